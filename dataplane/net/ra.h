/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Router advertisements and solicitations of IPv6 (RFC 4861, 4.1, 4.2, 6.1.2): frames alone,
 * without a table or a clock (neigh_router.c has both). An adapter takes the router's lifetime and
 * preference (RFC 4191, 2.1) and the prefixes on the link. Other values are left
 * alone: the link's MTU, because queue pairs have the path MTU that their programs gave them;
 * addresses to make (SLAAC), because an adapter has those of its configuration; hop limit, times,
 * and routes of RFC 4191.
 */
#ifndef URN_NET_RA_H
#define URN_NET_RA_H

#include "counters.h"
#include "wire/pkt.h"

enum {
	URN_RA_PREFIXES = 8,	   /* prefixes of one advertisement that are taken */
	URN_RA_PREFIX_BITS = 32,   /* a shorter prefix is no link's, but would win over gateways */
	URN_RA_SOLICIT_BYTES = 70, /* a solicitation's frame */
};
#define URN_RA_FOREVER UINT32_MAX /* a lifetime without an end, seconds (RFC 4861, 4.6.2) */

/* A prefix whose addresses are on the link. */
struct urn_ra_prefix {
	uint8_t prefix[16];  /* all bits behind len zero */
	uint8_t len;	     /* bits, URN_RA_PREFIX_BITS to 128 */
	uint32_t lifetime_s; /* seconds; 0: it is on the link no more; URN_RA_FOREVER */
};

/* Fields of a valid advertisement. */
struct urn_ra {
	uint8_t router[16];  /* link-local */
	uint16_t lifetime_s; /* seconds as a default router; 0: it is none */
	int8_t preference;   /* 1: high, 0: medium, -1: low */
	bool more;	     /* there were more prefixes than prefix[] has room for */
	uint8_t prefixes;    /* elements of prefix in use */
	struct urn_ra_prefix prefix[URN_RA_PREFIXES];
};

/* True when a frame that urn_wire_parse() took is a router advertisement, valid or not. */
bool urn_ra_is(const struct rte_mbuf *m);
/*
 * Read a frame for which urn_ra_is() holds; reads only inside the frame.
 * returns: RA_RX with *ra filled in; DROP_RA_FAR: not from a router on the link (hop limit,
 * source); DROP_NEIGH: malformed
 */
enum urn_counter urn_ra_read(const struct rte_mbuf *m, struct urn_ra *ra);
/*
 * Write a router solicitation to all routers into an empty mbuf with URN_RA_SOLICIT_BYTES of room.
 * mac, src: the adapter's, src link-local
 */
void urn_ra_solicit(struct rte_mbuf *m, const uint8_t mac[6], const uint8_t src[16]);

#endif
