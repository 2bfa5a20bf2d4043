/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The filter of a port on an interface that the kernel uses as well: urnic gets what is urnic's
 * (filter_rules.h), the kernel keeps the rest. net_af_xdp has an XDP program for it, which takes
 * frames away from the kernel; net_af_packet has a classic filter on its sockets, which get
 * copies. Other families have none.
 *
 * A port with cfg.filter gets no frame until urn_port_filter() was called. A port without takes all
 * frames, as a switch needs.
 */
#ifndef URN_PMD_GLUE_FILTER_H
#define URN_PMD_GLUE_FILTER_H

#include "pmd_glue/filter_rules.h"
#include "pmd_glue/port.h"

#include <linux/filter.h>

/* Kinds of filters. */
enum urn_port_filter_kind {
	URN_PORT_FILTER_NONE,	/* all frames come */
	URN_PORT_FILTER_SOCKET, /* classic filter on the port's packet sockets */
	URN_PORT_FILTER_XDP,	/* XDP program on the port's interface */
};

/* Frames since the filter was put in. */
struct urn_port_filter_counts {
	uint64_t v[URN_FILTER_COUNTS]; /* enum urn_filter_count */
};

/*
 * Have a port hand over the frames for these addresses, and no others. gid: n addresses, GIDs in
 * network order; all zero: none. vlan: the VLAN that the frames are tagged with; 0: none, and tags
 * with a priority alone. A port without a filter: nothing to do. returns 0, or -1 with *err, which
 * names the port
 */
int urn_port_filter(struct urn_port *port, const uint8_t (*gid)[16], unsigned int n, uint16_t vlan,
		    struct urn_err *err);
/* Word for people: "xdp", "socket" or "none". */
const char *urn_port_filter_name(const struct urn_port *port);
/* Read the filter's counts. returns: false: this filter does not count */
bool urn_port_filter_counts(const struct urn_port *port, struct urn_port_filter_counts *out);

/* ---- classic filters (filter_classic.c) */

/* Instructions of the filter for URN_FILTER_ADDRESSES addresses at most. */
#define URN_FILTER_CLASSIC_MAX 512u

/*
 * Make the classic BPF program that accepts the frames that are urnic's, by the rules of
 * filter_rules.h, and announcements of other stations (gratuitous ARP, neighbour and router
 * advertisements to a group). key: n addresses, at most URN_FILTER_ADDRESSES; none: MAC control,
 * groups and announcements alone. vlan: the adapter's, 0: none. returns: its instructions
 */
unsigned int urn_filter_classic(struct sock_filter code[URN_FILTER_CLASSIC_MAX],
				const struct urn_filter_key *key, unsigned int n, uint16_t vlan);
/*
 * Attach that filter to this process's packet sockets of an interface, in place of an earlier one.
 * returns: number of sockets, or -errno
 */
int urn_filter_classic_attach(unsigned int ifindex, const struct urn_filter_key *key,
			      unsigned int n, uint16_t vlan);

/* ---- the kernel's addresses (filter_kernel.c) */

/*
 * Note for each of n addresses whether the kernel has it, too: share[i] is ROCE then, else ALL.
 * Waits for the kernel's list. returns: false: the kernel gave none, and share[] is as it was
 */
bool urn_filter_shares(const struct urn_filter_key *key, uint32_t *share, unsigned int n);
/* A socket that becomes readable when the kernel's addresses change. returns: -1: none */
int urn_filter_watch(void);
/* True when the kernel's addresses changed since the last call. Never waits. */
bool urn_filter_changed(int watch);

#endif
