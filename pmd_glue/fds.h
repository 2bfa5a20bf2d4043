/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors that a PMD opened and keeps to itself. DPDK gives no way to ask for them, and some
 * PMDs never close theirs. So a family notes the process's descriptors before and after a step of
 * the PMD's: new ones are the port's.
 */
#ifndef URN_PMD_GLUE_FDS_H
#define URN_PMD_GLUE_FDS_H

#include <stdbool.h>
#include <stdint.h>

#define URN_FDS_MAX 256u

/* Kinds of descriptors that are looked for. */
enum urn_fd_kind {
	URN_FD_OTHER,
	URN_FD_XDP,  /* AF_XDP socket */
	URN_FD_MAP,  /* BPF map */
	URN_FD_PROG, /* BPF program */
	URN_FD_BTF,  /* description of the types of a BPF object */
};

/* A descriptor, and what tells whether its number still stands for the same thing. */
struct urn_fd {
	int fd;
	uint8_t kind; /* enum urn_fd_kind */
	uint64_t id;  /* inode of a socket; the kernel's id of a BPF object */
};

struct urn_fds {
	unsigned int n;
	struct urn_fd of[URN_FDS_MAX];
};

/*
 * Add all descriptors of the process to *s that are AF_XDP sockets or, with `bpf`, BPF objects; but
 * not those in `but`, which may be NULL. returns: false: not all of them, because /proc/self/fd
 * can't be read or there is no room for more
 */
bool urn_fds_find(struct urn_fds *s, const struct urn_fds *but, bool bpf);
/* Close the descriptors of *s that still are what they were, and empty it. */
void urn_fds_close(struct urn_fds *s);

#endif
