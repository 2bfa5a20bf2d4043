/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighbours of one adapter: the MAC address of a GID.
 *
 * Routes say where a destination is: on the adapter's own link, or behind a router, whose MAC is
 * then asked for instead (RFC 1122, 3.3.1). The longest prefix wins. Without the prefix of an own
 * address of its family every destination is on the link, which suits a back-to-back cable, a
 * switch or a memif. A static entry of the destination itself goes before routes.
 *
 * The table is fixed in size. An entry exists because a user here looked it
 * up ("wanted"), because it was configured ("static"), or because its owner
 * asked for an address of ours ("learnt"). The network can only fill the
 * learnt part, at most URN_NEIGH_LEARNT entries, the oldest making room; so no
 * flood evicts a peer that is in use. A wanted entry gives way to another
 * wanted one only: first failed, then unanswered, then longest unused.
 *
 *             lookup                        answer
 *   (none) ------------> INCOMPLETE ----------------------> REACHABLE
 *                         |     ^                            |     ^
 *          all requests   |     | lookup after               | 60 s, or doubt
 *          not answered   v     | URN_NEIGH_FAIL_NS          v     | answer
 *                         FAILED <------------------------- STALE -+
 *                                  asked, no answer
 *
 * Requests go out 0, 10, 60, 260 and 1260 ms after a lookup, so that a lost
 * request costs little; a failed address that is still looked up is asked for once
 * every two seconds. A MAC that is known is proved by one request to its holder
 * alone, and only without an answer by a request to everybody. A claim that
 * nobody asked for - an announcement, a request of another station, an answer while
 * the holder is asked - does not replace a known MAC (NEIGH_CLAIM): for one that is in use the
 * claim raises a doubt, and a learnt one is asked for before its first use. A user whose peer has
 * become silent raises a doubt, too (urn_neigh_doubt()).
 *
 * An adapter may take routers and prefixes from router advertisements, too (router.h).
 *
 * Nothing here reads a clock, sends, or frees: time comes in as nanoseconds of
 * any clock that does not run backwards, frames go out in mbufs of the caller's
 * pool. Several engines may call at once (one lock; slow path). Users cache the
 * MAC, watch urn_neigh_generation(), and look up again when the generation changed, and
 * when a peer stops answering.
 */
#ifndef URN_NET_NEIGH_H
#define URN_NET_NEIGH_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

enum {
	URN_NEIGH_ENTRIES = 4096, /* entries of the table */
	URN_NEIGH_LEARNT = 1024,  /* entries, at most, that only the network asked for */
	URN_NEIGH_STATIC = 2048,  /* entries, at most, that were configured */
	URN_NEIGH_OWN = 16,	  /* addresses of one adapter */
	URN_NEIGH_ROUTES = 128,	  /* routes of one adapter, prefixes of own addresses among them */
	URN_NEIGH_ROUTERS = 4,	  /* routers that advertise themselves, at most (router.h) */
	URN_NEIGH_PREFIXES = 8,	  /* prefixes that routers say are on the link, at most */
	URN_NEIGH_ADVERTISED = URN_NEIGH_ROUTERS + URN_NEIGH_PREFIXES,
	URN_NEIGH_ROUTES_ALL = URN_NEIGH_ROUTES + URN_NEIGH_ADVERTISED, /* with advertised ones */
	URN_NEIGH_TRIES = 5, /* requests before an address counts as failed */
};
/* Waits after each request, before the next; after the last, before the address counts as failed. */
#define URN_NEIGH_WAITS_NS { 10000000ull, 50000000ull, 200000000ull, 1000000000ull, 1000000000ull }
#define URN_NEIGH_FAIL_NS 1000000000ull       /* before a failed address is asked for again */
#define URN_NEIGH_CALM_NS 10000000ull         /* after an answer, before the MAC may be doubted */
#define URN_NEIGH_REACHABLE_NS 60000000000ull /* before an answer is doubted */

/* State of an address. */
enum urn_neigh_state {
	URN_NEIGH_NONE,       /* not in the table */
	URN_NEIGH_INCOMPLETE, /* asked for, no answer yet */
	URN_NEIGH_REACHABLE,  /* MAC known and confirmed */
	URN_NEIGH_STALE,      /* MAC known, in doubt; used until it fails */
	URN_NEIGH_FAILED,     /* nobody answered */
};

/* Results of urn_neigh_lookup(). */
enum {
	URN_NEIGH_OK = 0,	/* MAC known */
	URN_NEIGH_UNKNOWN = -1, /* being asked for; look up again when the generation changes */
	URN_NEIGH_FAIL = -2,	/* nobody answers, or the address can't be asked for */
	URN_NEIGH_NO_ROUTE =
		-3, /* the address is outside of every prefix, and no route leads there */
};

struct urn_neigh;

/* A neighbour whose MAC address was configured. */
struct urn_neigh_fixed {
	uint8_t gid[16];
	uint8_t mac[6];
};

/*
 * Make the table of an adapter. mac: its own; own: its n addresses as GIDs
 * (IPv4 as ::ffff:a.b.c.d), n at most URN_NEIGH_OWN; an address of all zeros is left
 * out. returns NULL: no memory, too many addresses, or a mac that is zero or
 * multicast (errno: ENOMEM, EINVAL)
 */
struct urn_neigh *urn_neigh_create(const uint8_t mac[6], const uint8_t (*own)[16], unsigned int n);
/* NULL is allowed. */
void urn_neigh_destroy(struct urn_neigh *nb);

/* True when this is one of the adapter's own addresses. Needs no lock. */
int urn_neigh_is_own(const struct urn_neigh *nb, const uint8_t gid[16]);
/* True when a station can have this address: IPv4 not in 0/8, 127/8, 224/3; IPv6 not ::, ::1, multicast. */
int urn_neigh_unicast(const uint8_t gid[16]);
/*
 * Own address to send to a GID from: of the GID's family, and of the same scope if
 * there is one. NULL: none. Needs no lock.
 */
const uint8_t *urn_neigh_source(const struct urn_neigh *nb, const uint8_t gid[16]);

/*
 * Set or replace a static entry, which nothing on the network changes or evicts.
 * returns 0; EINVAL: a MAC or GID that no single station has, or our own;
 * ENOSPC: URN_NEIGH_STATIC are there already
 */
int urn_neigh_add_static(struct urn_neigh *nb, const uint8_t gid[16], const uint8_t mac[6]);

/*
 * Look up the MAC of a GID. An own address gives the own MAC, a multicast address the
 * group's. Starts resolving an unknown GID; the request goes out by
 * urn_neigh_poll(). The MAC looked up is the router's where the destination is behind one.
 * returns URN_NEIGH_OK with mac set, URN_NEIGH_UNKNOWN, URN_NEIGH_FAIL or URN_NEIGH_NO_ROUTE
 */
int urn_neigh_lookup(struct urn_neigh *nb, const uint8_t gid[16], uint8_t mac[6]);

/*
 * The peer of an address is silent: if the peer's MAC is known it is proved anew, and used
 * meanwhile. Nothing happens while the peer is being asked already, or when its MAC was proved less
 * than URN_NEIGH_CALM_NS ago, so that many callers cost no more than one. Slow path: one lock.
 */
void urn_neigh_doubt(struct urn_neigh *nb, const uint8_t gid[16]);

/* Kinds of routes, by their origin. */
enum urn_neigh_route_kind {
	URN_NEIGH_ROUTE_LINK,	 /* the prefix of an own address: on the link */
	URN_NEIGH_ROUTE_GATEWAY, /* the default route of a family */
	URN_NEIGH_ROUTE_STATIC,	 /* another configured route */
	/* Not for urn_neigh_set_routes(): from router advertisements (router.h). */
	URN_NEIGH_ROUTE_ROUTER,	 /* a router for all else of IPv6 */
	URN_NEIGH_ROUTE_RA_LINK, /* a prefix on the link */
};

/* True for the kinds of routes whose destinations are on the link. */
static inline bool
urn_neigh_route_on_link(unsigned int kind)
{
	return kind == URN_NEIGH_ROUTE_LINK || kind == URN_NEIGH_ROUTE_RA_LINK;
}

/* Where destinations of a prefix are. */
struct urn_neigh_route {
	uint8_t prefix[16]; /* GID, all bits behind len zero */
	uint8_t via[16];    /* the router's GID, of the prefix's family; on the link: all zero */
	uint8_t len;	    /* bits of the GID: IPv4's /24 is 120; an IPv4 prefix has 96 at least */
	uint8_t kind;	    /* enum urn_neigh_route_kind */
	uint32_t left_s;    /* seconds to the route's end, set by urn_neigh_routes(); 0: no end */
};

/*
 * Replace all routes but the advertised ones; users look up again (neigh_route.c).
 * returns 0; EINVAL: bits behind a length, a router that is no station of its own on the link, or
 * of another family; EEXIST: two routes of one prefix; ENOSPC: more than URN_NEIGH_ROUTES. On
 * failure the routes stay as they were.
 */
int urn_neigh_set_routes(struct urn_neigh *nb, const struct urn_neigh_route *route, unsigned int n);
/*
 * The address whose MAC frames to a GID carry: the GID itself on the link, or the router's.
 * returns false: no route leads there
 */
bool urn_neigh_hop(struct urn_neigh *nb, const uint8_t gid[16], uint8_t hop[16]);
/* Copy the routes, longest prefix first, and of one prefix the one that counts first; max of them
 * at most. returns: the number of all, at most URN_NEIGH_ROUTES_ALL */
unsigned int urn_neigh_routes(struct urn_neigh *nb, struct urn_neigh_route *out, unsigned int max);
/* Set all bits of a GID behind the first len to zero. returns: true when one was set */
bool urn_neigh_mask(uint8_t gid[16], unsigned int len);
/* True when both GIDs are of one family and the first len bits are the same. */
bool urn_neigh_same_prefix(const uint8_t a[16], const uint8_t b[16], unsigned int len);
/* True when the address is link-local, fe80::/10: never behind a router. */
bool urn_neigh_link_local(const uint8_t gid[16]);

/*
 * Changes whenever a wanted entry gets a MAC or another one, and when routes change, so that a
 * waiting user sees the change with one load. Needs no lock.
 */
uint32_t urn_neigh_generation(const struct urn_neigh *nb);

/*
 * Take a received frame that urn_wire_parse() called ARP, ICMP or ICMP6.
 * now: nanoseconds. urn_pkt(m)->drop is set to the counter that applies,
 * whatever the result: ARP_RX, ND_RX, RA_RX, RA_FULL, ECHO_RX, NEIGH_CONFLICT, NEIGH_CLAIM, or a
 * reason for dropping (DROP_NEIGH, DROP_RA_FAR, DROP_ADDRESS, DROP_NOT_ROCE, NO_MBUF).
 * returns 1: m now is the reply, to be sent; 0: m is done with, to be freed
 */
int urn_neigh_input(struct urn_neigh *nb, struct rte_mbuf *m, uint64_t now);

/*
 * Let time pass: write due requests into new mbufs of `pool`, which needs 128
 * private and 86 data bytes, and give up on addresses without an answer. Call it
 * about every millisecond, from one engine or several. Stops early when the
 * pool is empty; other requests stay due.
 * returns: frames in out[], at most max, to be sent
 */
unsigned int urn_neigh_poll(struct urn_neigh *nb, uint64_t now, struct rte_mempool *pool,
			    struct rte_mbuf **out, unsigned int max);

/*
 * Announce our addresses to the link, by gratuitous ARP and unsolicited advertisements,
 * when the port comes up or the MAC moved here; begin to look for routers where the table accepts
 * their advertisements. returns: frames in out[]
 */
unsigned int urn_neigh_announce(struct urn_neigh *nb, struct rte_mempool *pool,
				struct rte_mbuf **out, unsigned int max);

/* Entries in use, of any state. */
unsigned int urn_neigh_count(struct urn_neigh *nb);

struct urn_neigh_info {
	uint8_t gid[16];
	uint8_t mac[6];             /* REACHABLE and STALE */
	enum urn_neigh_state state;
	bool fixed;                 /* a static entry */
	unsigned int routes;	    /* routes that lead through the neighbour */
};

/* The entry of one address. returns: its state; mac: set when REACHABLE or STALE (neigh_list.c) */
enum urn_neigh_state urn_neigh_peek(struct urn_neigh *nb, const uint8_t gid[16], uint8_t mac[6]);

/*
 * List the table, in no order: *at is 0 at first and moves on. Entries that come or go
 * meanwhile may be in the list or not. returns: entries in out[], 0: there are no more
 * (neigh_list.c)
 */
unsigned int urn_neigh_list(struct urn_neigh *nb, uint32_t *at, struct urn_neigh_info *out,
			    unsigned int max);
/* Name of a state, for people. */
const char *urn_neigh_state_name(unsigned int state);

#endif
