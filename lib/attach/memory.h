/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors of all of this program's memory: a process that has them reads and writes each byte.
 */
#ifndef URN_ATTACH_MEMORY_H
#define URN_ATTACH_MEMORY_H

/*
 * Open /proc/self/mem and /proc/self/maps, by which the dataplane reaches any memory of ours.
 * Without them regions must lie in memory of urn_alloc().
 *
 * own: the two descriptors, for urn_memory_close()
 * returns: descriptors there, 2 or none
 */
unsigned int urn_memory_open(int own[2]);
/* Close the descriptors, n of them. */
void urn_memory_close(const int own[2], unsigned int n);

#endif
