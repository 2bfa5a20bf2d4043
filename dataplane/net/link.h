/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the peers of one adapter can do besides RoCEv2 (doc/link.md): learnt by
 * a link request and its response, once a pair of adapters, and kept. Traffic
 * never waits for it: until a peer is known it gets plain RoCEv2.
 *
 *                 asked for              response, or a request of the peer's
 *   UNKNOWN ----------------> ASKING ------------------------------> KNOWN
 *                               |                                     |  ^
 *      URN_LINK_TRIES requests, | a status, another version,          |  |
 *      each wait longer,        | nobody has the address     asked for|  | response,
 *      no answer                v                          after AGAIN|  | request
 *                             PLAIN <---------------------------------+  |
 *                               | no answer                              |
 *                               +----------------------------------------+
 *
 * KNOWN and PLAIN keep what they say while they are asked about again. A
 * request with another epoch than the one known says that the peer was started
 * anew: what it says replaces what was known, and is asked about once more, for
 * it could be a late copy.
 *
 * The table is fixed in size. An entry is there because somebody here asked
 * for it ("wanted"), or because the peer sent a request ("learnt"). The network
 * can fill the learnt part only, at most URN_LINK_LEARNT, the oldest making
 * room; and only about wanted ones is there news.
 *
 * Nothing here reads a clock, sends or frees: time comes in as nanoseconds of
 * any clock that does not run backwards, frames go out in mbufs of the caller's
 * pool. Several engines may call at once (one lock; slow path).
 */
#ifndef URN_NET_LINK_H
#define URN_NET_LINK_H

#include "net/neigh.h"
#include "wire/link.h"

enum {
	URN_LINK_ENTRIES = 4096, /* of the table */
	URN_LINK_LEARNT = 1024,  /* of them, at most, that only the network asked for */
	URN_LINK_TRIES = 8,      /* requests before a peer counts as plain */
};
#define URN_LINK_RETRY_NS 10000000ull      /* wait after the first request; doubles ... */
#define URN_LINK_RETRY_MAX_NS 80000000ull  /* ... up to this */
#define URN_LINK_AGAIN_NS 30000000000ull   /* before what is known, or plain, is asked about again */

enum urn_link_state {
	URN_LINK_UNKNOWN, /* never heard of */
	URN_LINK_ASKING,  /* request on its way, or about to be */
	URN_LINK_KNOWN,   /* it said what it can */
	URN_LINK_PLAIN,   /* no answer, or one that we do not understand */
	URN_LINK_STATES,
};

/* Name of a state, for people. */
const char *urn_link_state_name(unsigned int state);

struct urn_link_config {
	struct urn_neigh *neigh; /* of the adapter; owner: the caller; outlives the table */
	uint8_t mac[6];
	uint32_t offer;          /* URN_LINK_F_ bits that this adapter offers */
	uint8_t arw;             /* enum urn_link_arw of this machine */
	bool icrc;               /* send it */
	uint64_t seed;           /* epoch and transaction ids are drawn from it */
};

struct urn_link;

/* Make the table of an adapter. NULL: no memory. */
struct urn_link *urn_link_create(const struct urn_link_config *cfg);
/* NULL is allowed. */
void urn_link_destroy(struct urn_link *lk);

/*
 * What this adapter and a peer both can: URN_LINK_F_ bits, 0: plain RoCEv2, or
 * not known yet. Starts asking what is not known; urn_link_poll() sends it. An
 * own address has all that we offer.
 */
uint32_t urn_link_features(struct urn_link *lk, const uint8_t gid[16]);

/* Counts news, so that who waits can tell for the price of a load. Needs no lock. */
uint32_t urn_link_generation(const struct urn_link *lk);

/* A peer about which something changed, and what is true now. */
struct urn_link_news {
	uint8_t gid[16];
	uint32_t features; /* as of urn_link_features() */
};

/*
 * Take the news since *seen, oldest first, a peer once; *seen moves on. Each
 * engine has a *seen of its own, 0 at first. returns: how many are in out[],
 * at most max; call again when it is max
 */
unsigned int urn_link_news(struct urn_link *lk, uint32_t *seen, struct urn_link_news *out,
			   unsigned int max);

/*
 * Take a received RoCEv2 frame to QP1, parsed, addressed to us, its ICRC
 * checked. now: nanoseconds. urn_pkt(m)->drop is set to the counter that
 * applies, whatever the result.
 * returns 1: m now is the response, to be sent; 0: done with, to be freed
 */
int urn_link_input(struct urn_link *lk, struct rte_mbuf *m, uint64_t now);

/*
 * Let time pass: write due requests into new mbufs of `pool`, which needs
 * URN_PKT_PRIV private bytes and 342 of data, and give up on what was not
 * answered. Call it about every millisecond, from one engine. Stops early when
 * the pool is empty; what is left stays due. returns: frames in out[], at most max
 */
unsigned int urn_link_poll(struct urn_link *lk, uint64_t now, struct rte_mempool *pool,
			   struct rte_mbuf **out, unsigned int max);

/* State of a peer, for telemetry and tests; changes nothing. *info, when KNOWN: what it said. */
enum urn_link_state urn_link_peek(struct urn_link *lk, const uint8_t gid[16],
				  struct urn_link_info *info);
/* Cache lines of a peer: URN_LINK_ARW_NONE unless it is known. */
enum urn_link_arw urn_link_arw(struct urn_link *lk, const uint8_t gid[16]);
/* Entries in use. */
unsigned int urn_link_count(struct urn_link *lk);

#endif
