/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Routers that advertise themselves (RFC 4861, 6.3): a part of the table of neighbours (neigh.h) of
 * an adapter that accepts router advertisements, and of no other.
 *
 *   advertisement ──► up to URN_NEIGH_ROUTERS routers and URN_NEIGH_PREFIXES prefixes, with the end
 *                     of their lifetimes
 *                        │ at most every URN_ROUTER_SETTLE_NS, and only when something changed
 *                        ▼
 *                     routes behind the configured ones of the same prefix ──► generation, news
 *
 * Configured routes go first: an advertised router is used only without a configured gateway of
 * IPv6. A router that is used stays so, until it ends its service, its lifetime is
 * over, it does not answer neighbour solicitations (it is then left alone for URN_ROUTER_SHUN_NS as
 * long as another one answers), or one of a higher preference comes. A router or prefix that finds
 * no room is left out and counted: those that are known stay, so that a flood of other routers
 * pushes none out. However many advertisements come, users look up again at most once each
 * URN_ROUTER_SETTLE_NS.
 *
 * Solicitations go out when the adapter's addresses are announced: the first within a second, by
 * random, and two more each 4 s later, unless a router has advertised itself (RFC 4861, 6.3.7).
 */
#ifndef URN_NET_ROUTER_H
#define URN_NET_ROUTER_H

#include "net/neigh.h"

#define URN_ROUTER_SETTLE_NS 200000000ull    /* between two changes of routes, at least */
#define URN_ROUTER_SHUN_NS 60000000000ull    /* before a router without an answer is tried again */
#define URN_ROUTER_DELAY_NS 1000000000ull    /* before the first solicitation, at most */
#define URN_ROUTER_INTERVAL_NS 4000000000ull /* between two solicitations */
enum {
	URN_ROUTER_SOLICITS = 3, /* solicitations without an answer */
	URN_ROUTER_NEWS = 32,	 /* news that are kept for their reader */
};

/* Accept router advertisements from now on. Call before any engine uses the table. */
void urn_neigh_accept_ra(struct urn_neigh *nb);
/* True when the table accepts router advertisements. */
bool urn_neigh_accepts_ra(const struct urn_neigh *nb);

/* Changes of advertised routers and prefixes. */
enum urn_router_what {
	URN_ROUTER_CAME,    /* a router or prefix is advertised */
	URN_ROUTER_USED,    /* a router is used from now on */
	URN_ROUTER_ENDED,   /* the router ended its service, or that of a prefix */
	URN_ROUTER_EXPIRED, /* no advertisement came within the lifetime */
};

struct urn_router_news {
	uint8_t what; /* enum urn_router_what */
	struct urn_neigh_route
		route;	    /* kind ROUTER, or RA_LINK: a prefix; left_s: at that moment */
	uint8_t before[16]; /* USED: the router that was used before; all zero: none */
};

/*
 * Read the news since the last call. Any thread; takes no lock when there are none. seen: 0 at
 * first, moves on; max: at least 1
 * lost: set to the number of news that this reader was too late for
 * returns: elements of out[]; 0: there are no more
 */
unsigned int urn_neigh_router_news(struct urn_neigh *nb, uint32_t *seen,
				   struct urn_router_news *out, unsigned int max, uint32_t *lost);

#endif
