/* SPDX-License-Identifier: BSD-3-Clause */
/* The few calls of bpf(2) that a port needs. Functions return 0 or a descriptor, or -errno. */
#ifndef URN_PMD_GLUE_BPF_H
#define URN_PMD_GLUE_BPF_H

#include <stdbool.h>
#include <stdint.h>

/* The kernel's id of a program, a map or, with btf, a description of types. */
int urn_bpf_id(int fd, bool btf, uint64_t *id);
/* Name of a map: at most 15 bytes and a NUL. */
int urn_bpf_map_name(int map, char name[16]);
/* Put an entry into a map, in place of one with that key. */
int urn_bpf_map_set(int map, const void *key, const void *value);
/* Take an entry out of a map; an entry that is not there is no error. */
int urn_bpf_map_drop(int map, const void *key);
/* Read an entry. For an array per CPU, value has room for a number for each possible CPU. */
int urn_bpf_map_get(int map, const void *key, void *value);
/* Number of CPUs that may ever be there, which arrays per CPU have entries for. */
unsigned int urn_bpf_cpus(void);
/*
 * Attach a program to an interface, as long as the descriptor that is returned is open: the kernel
 * takes it off when the process dies. The interface must have no program.
 */
int urn_bpf_link(int prog, unsigned int ifindex);
/* Take a program off an interface that was attached by netlink, as DPDK's PMD does. */
int urn_bpf_detach(unsigned int ifindex);

#endif
