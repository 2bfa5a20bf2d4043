/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighbours of one adapter: the MAC address of a GID.
 *
 * Every destination is taken to be on the adapter's own link: there is no
 * routing table, and no gateway is asked. This rule suits a back-to-back cable, a
 * switch or a memif; a routed network wants a static entry per peer with
 * the router's MAC (key "neighbour" of the configuration).
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
	URN_NEIGH_OWN = 16,       /* addresses of one adapter */
	URN_NEIGH_TRIES = 5,      /* requests before an address counts as failed */
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
	URN_NEIGH_OK = 0,       /* MAC known */
	URN_NEIGH_UNKNOWN = -1, /* being asked for; look up again when the generation changes */
	URN_NEIGH_FAIL = -2,    /* nobody answers, or the address can't be asked for */
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
 * urn_neigh_poll().
 * returns URN_NEIGH_OK with mac set, URN_NEIGH_UNKNOWN or URN_NEIGH_FAIL
 */
int urn_neigh_lookup(struct urn_neigh *nb, const uint8_t gid[16], uint8_t mac[6]);

/*
 * The peer of an address is silent: if the peer's MAC is known it is proved anew, and used
 * meanwhile. Nothing happens while the peer is being asked already, or when its MAC was proved less
 * than URN_NEIGH_CALM_NS ago, so that many callers cost no more than one. Slow path: one lock.
 */
void urn_neigh_doubt(struct urn_neigh *nb, const uint8_t gid[16]);

/*
 * Changes whenever a wanted entry gets a MAC or another one, so that a waiting user
 * sees the change with one load. Needs no lock.
 */
uint32_t urn_neigh_generation(const struct urn_neigh *nb);

/*
 * Take a received frame that urn_wire_parse() called ARP, ICMP or ICMP6.
 * now: nanoseconds. urn_pkt(m)->drop is set to the counter that applies,
 * whatever the result: ARP_RX, ND_RX, ECHO_RX, NEIGH_CONFLICT, NEIGH_CLAIM, or a reason for
 * dropping (DROP_NEIGH, DROP_ADDRESS, DROP_NOT_ROCE, NO_MBUF).
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
 * when the port comes up or the MAC moved here. returns: frames in out[]
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
};

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
