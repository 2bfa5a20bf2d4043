/* SPDX-License-Identifier: BSD-3-Clause */
/* The dataplane's side of the XDP program xdp_filter.bpf.c, which DPDK's PMD loads. */
#ifndef URN_PMD_GLUE_XDP_FILTER_H
#define URN_PMD_GLUE_XDP_FILTER_H

#include "pmd_glue/fds.h"
#include "pmd_glue/filter.h"

#include <stdatomic.h>

/* A program that was loaded for a port. */
struct urn_xdp_filter {
	bool begun;	  /* false: none was; all below is zero then */
	uint8_t retry;	  /* calls of tend() until shares are written again; 0: none; under busy */
	atomic_flag busy; /* a thread writes shares */
	int addresses, counts, vlan; /* its maps; owner: the port's urn_fds */
	int link;	   /* keeps the program on the interface; -1: none; owner: this struct */
	int watch;	   /* tells of the kernel's addresses; -1: none; owner: this struct */
	unsigned int cpus; /* entries of a count */
	unsigned int n;	   /* addresses of the port */
	struct urn_filter_key key[URN_FILTER_ADDRESSES]; /* n are valid */
};

/*
 * Path of the program for the PMD's argument xdp_prog: inside this process, valid until its end.
 * NULL: urnic was built without a compiler for it.
 */
const char *urn_xdp_filter_path(void);
/*
 * Find the program and its maps among the descriptors that the PMD opened, and tie the program to
 * this process: the PMD attaches it so that it would outlive a killed one and keep the next from
 * starting. No address is taken yet. returns 0, or -1 with *err
 */
int urn_xdp_filter_begin(struct urn_xdp_filter *f, const struct urn_fds *own, unsigned int ifindex,
			 struct urn_err *err);
/* Take the frames for these n addresses, at most URN_FILTER_ADDRESSES, in a VLAN, 0: in none.
 * returns 0, or -1 with *err */
int urn_xdp_filter_set(struct urn_xdp_filter *f, const struct urn_filter_key *key, unsigned int n,
		       uint16_t vlan, struct urn_err *err);
/*
 * Look whether the kernel's addresses changed, every few milliseconds. Any thread. Waits only when
 * they did: for the kernel's list of them, which takes milliseconds on a host with thousands.
 */
void urn_xdp_filter_tend(struct urn_xdp_filter *f);
/* Sum of each count over the CPUs. returns: false: the kernel does not say */
bool urn_xdp_filter_counts(const struct urn_xdp_filter *f, struct urn_port_filter_counts *out);
/* Take the program off the interface. All zero (never begun) is allowed. */
void urn_xdp_filter_end(struct urn_xdp_filter *f);

#endif
