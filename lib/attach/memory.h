/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors of all of this program's memory: a process that has them reads and writes each byte.
 */
#ifndef URN_ATTACH_MEMORY_H
#define URN_ATTACH_MEMORY_H

/* Descriptors of this program's memory. Not open: URN_MEMORY_NONE. */
struct urn_memory {
	int fd[2]; /* /proc/self/mem and /proc/self/maps, owned, closed by exec; both -1: none */
};

#define URN_MEMORY_NONE ((struct urn_memory){{-1, -1}})

/*
 * Open /proc/self/mem and /proc/self/maps, by which the dataplane reaches any memory of ours.
 * Without them regions must lie in memory of urn_alloc(). The kernel asks for the right to open
 * them only here: it stays with the descriptors when the program gives its own up.
 *
 * m: not open, or open already: then nothing is done
 * returns: 0; ENOMEM, EMFILE or ENFILE with its text: for now; EOPNOTSUPP: the system does not let
 * us
 */
int urn_memory_open(struct urn_memory *m);
/* How many descriptors there are, 2 or none. */
unsigned int urn_memory_count(const struct urn_memory *m);
/* Close the descriptors, if there are any. */
void urn_memory_close(struct urn_memory *m);

#endif
