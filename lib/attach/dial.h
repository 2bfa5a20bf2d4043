/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection to a dataplane's socket. */
#ifndef URN_ATTACH_DIAL_H
#define URN_ATTACH_DIAL_H

/*
 * Connect to the socket at a path, and wait there as long as the program is patient (patience.h).
 * returns: a descriptor that exec closes; -1 with errno and its text
 */
int urn_dial(const char *path);

#endif
