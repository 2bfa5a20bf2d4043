/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The features that peers of one adapter have besides RoCEv2 (doc/inside/link.md): learnt by
 * a link request and its response, once for each pair of adapters, and kept. Traffic
 * never waits for the answer: until a peer is known it gets plain RoCEv2.
 *
 *                 asked for              response, or a request of the peer's
 *   UNKNOWN ----------------> ASKING ------------------------------> KNOWN
 *                               |                                     |  ^
 *      URN_LEARN_TRIES requests, | a status, another version,          |  |
 *      each wait longer,        | nobody has the address     asked for|  | response,
 *      no answer                v                          after AGAIN|  | request
 *                             PLAIN <---------------------------------+  |
 *                               | no answer                              |
 *                               +----------------------------------------+
 *
 * A peer stays KNOWN or PLAIN while it is asked again. A
 * request with another epoch than the known one says that the peer was started
 * anew: the request's features replace the known ones, and the peer is asked once more,
 * because the request could be a late copy.
 *
 * The table is fixed in size. An entry is there because an engine asked
 * for it ("wanted"), or because the peer sent a request ("learnt"). The network
 * can fill the learnt part only, at most URN_LEARN_LEARNT, the oldest making
 * room; and only wanted entries make news.
 *
 * Nothing here reads a clock, sends or frees: time comes in as nanoseconds of
 * any clock that does not run backwards, frames go out in mbufs of the caller's
 * pool. Several engines may call at once (one lock; slow path).
 */
#ifndef URN_NET_LEARN_H
#define URN_NET_LEARN_H

#include "net/neigh.h"
#include "wire/link.h"

enum {
	URN_LEARN_ENTRIES = 4096, /* entries of the table */
	URN_LEARN_LEARNT = 1024,  /* entries, at most, that only the network asked for */
	URN_LEARN_TRIES = 8,      /* requests before a peer counts as plain */
};
#define URN_LEARN_RETRY_NS 10000000ull      /* wait after the first request; doubles ... */
#define URN_LEARN_RETRY_MAX_NS 80000000ull  /* ... up to this */
#define URN_LEARN_AGAIN_NS 30000000000ull   /* before a known or plain peer is asked again */

enum urn_learn_state {
	URN_LEARN_UNKNOWN, /* never heard of */
	URN_LEARN_ASKING,  /* request on its way, or about to be */
	URN_LEARN_KNOWN,   /* the peer told its features */
	URN_LEARN_PLAIN,   /* no answer, a refusal, or an answer of another version */
	URN_LEARN_STATES,
};

/* Name of a state, for people. */
const char *urn_learn_state_name(unsigned int state);

struct urn_learn_config {
	struct urn_neigh *neigh; /* the adapter's; owner: the caller; outlives the table */
	uint8_t mac[6];
	uint32_t offer;          /* URN_LINK_F_ bits that this adapter offers */
	uint8_t arw;             /* enum urn_link_arw of this machine */
	bool icrc;               /* send an ICRC */
	uint64_t seed; /* epoch and transaction ids are drawn by it (base/draw.h); 0: nobody can
			  guess them */
};

struct urn_learn;

/* Make the table of an adapter. NULL: no memory. */
struct urn_learn *urn_learn_create(const struct urn_learn_config *cfg);
/* NULL is allowed. */
void urn_learn_destroy(struct urn_learn *lk);

/*
 * Features that this adapter and a peer both have: URN_LINK_F_ bits, 0: plain RoCEv2, or
 * not known yet. Starts asking an unknown peer; urn_learn_poll() sends the request. An
 * own address has all features that this adapter offers.
 */
uint32_t urn_learn_features(struct urn_learn *lk, const uint8_t gid[16]);

/*
 * Bytes of a peer's cache lines, 64, 128 or 256; 0: not known, or not told (AW-2). An own address
 * has the lines of this machine. Asks nobody: urn_learn_features() does.
 */
uint32_t urn_learn_line(struct urn_learn *lk, const uint8_t gid[16]);

/* Counts news, so that an engine sees with one load that there is news. Needs no lock. */
uint32_t urn_learn_generation(const struct urn_learn *lk);

/* A peer whose features or lines changed, and both now. */
struct urn_learn_news {
	uint8_t gid[16];
	uint32_t features; /* see urn_learn_features() */
	uint32_t line;	   /* see urn_learn_line() */
};

/*
 * Take the news since *seen, oldest first, a peer once; *seen moves on. Each
 * engine has a *seen of its own, 0 at first. returns: news in out[],
 * at most max; then call again
 */
unsigned int urn_learn_news(struct urn_learn *lk, uint32_t *seen, struct urn_learn_news *out,
			   unsigned int max);

/*
 * Take a received RoCEv2 frame to QP1, parsed, addressed to us, its ICRC
 * checked. now: nanoseconds. urn_pkt(m)->drop is set to the counter that
 * applies, whatever the result.
 * returns 1: m now is the response, to be sent; 0: m is done with, to be freed
 */
int urn_learn_input(struct urn_learn *lk, struct rte_mbuf *m, uint64_t now);

/*
 * Let time pass: write due requests into new mbufs of `pool`, which needs
 * URN_PKT_PRIV private bytes and 342 of data, and give up on peers that did not
 * answer. Call it about every millisecond, from one engine. Stops early when
 * the pool is empty; other requests stay due. returns: frames in out[], at most max
 */
unsigned int urn_learn_poll(struct urn_learn *lk, uint64_t now, struct rte_mempool *pool,
			   struct rte_mbuf **out, unsigned int max);

/* State of a peer, for telemetry and tests; changes nothing. *info, when KNOWN: the peer's answer. */
enum urn_learn_state urn_learn_peek(struct urn_learn *lk, const uint8_t gid[16],
				  struct urn_link_info *info);
/* Entries in use. */
unsigned int urn_learn_count(struct urn_learn *lk);

#endif
