/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way to another adapter, shared by all QPs of this engine that lead there: the features of
 * that adapter, and measurements of the wire (round trip, and by how much packets overtake each
 * other). From these follow the retransmission time, and how long a missing packet counts as late.
 */
#ifndef URN_TRANSPORT_PEER_H
#define URN_TRANSPORT_PEER_H

#include "transport/board.h"
#include "transport/delay.h"

#include <stdbool.h>
#include <stdint.h>

struct urn_psn_tx;
struct urn_tp;

enum {
	URN_PEER_BUCKETS = 4096, /* 16 of the most peers in each */
	URN_PEER_PAGE = 64,	 /* indices of a page */
	URN_PEER_PAGES = 1024,
	URN_PEER_MAX = URN_PEER_PAGE * URN_PEER_PAGES - 1, /* peers, beside the peer 0 */
	URN_PEER_DISTANCE =
		4, /* packets from behind that make a missing packet a lost one, at first */
	URN_PEER_DISTANCE_MAX = 64, /* ... at most; a receiver keeps at least twice as many */
	URN_PEER_CALM = 64,	    /* repairs without a late packet until the distance is halved */
};

struct urn_peer {
	struct urn_peer *next;	 /* in the bucket */
	uint8_t gid[16];         /* address of the other adapter */
	uint16_t index;		 /* the same for its life */
	uint32_t refs;           /* QPs that lead there */
	uint32_t features;       /* URN_LINK_F_*, of both sides; 0: plain RoCEv2, or not known yet */
	uint16_t line;		 /* bytes of its cache lines, 64, 128 or 256; 0: not known (AW-2) */

	/* ---- measured */
	uint64_t srtt, rttvar;   /* ns (RFC 6298); srtt 0: not measured yet */
	uint64_t rtt_min;        /* ns: smallest recently; valid with srtt */
	uint64_t rtt_min_until;  /* ns: when rtt_min is forgotten */
	uint32_t backoff;        /* doublings of the times to a probe and a repeat; 0 after a measurement */
	uint64_t backoff_until;  /* ns: no further doubling before */
	uint32_t distance;       /* see struct urn_board_limits */
	uint64_t late_ns;        /* longest time that a packet was only late, ns; 0: never */
	uint32_t calm;           /* repairs since a packet was late */

	/* ns: the peer was heard then, and perhaps later, by a QP that spends retries since; 0: no
	 * QP ever did */
	uint64_t heard;

	/* ---- a peer that follows only the standard (back.c) */
	uint64_t psn_ns;         /* ns that one PSN of many in flight takes: the best recently; valid with srtt */
	uint64_t repeated_at;    /* ns: when a QP last repeated something by a timer; 0: never */
	const struct urn_psn_tx *repeated; /* its sequence, only compared; valid with repeated_at */
	uint64_t answer_ns;      /* ns from repeated_at until the answer, the last time; 0: none came yet */
	uint64_t hasty_until;    /* ns: when hasty is forgotten */
	uint32_t hasty;          /* doublings of the time to an early repeat; valid until hasty_until */

	/* ---- how much is under way at most (urn_peer_delivered()) */
	uint64_t delivered;      /* PSNs acknowledged, of all QPs */
	uint64_t rate;           /* PSNs a ns, 32 fractional bits: the best recently; 0: not known */
	uint32_t window;         /* packets in flight a QP */
	struct urn_delay delay;	 /* ... of these, as many as keep queues on the way short; limit 0:
				    not used */

	/* ---- the packet that is being timed */
	const struct urn_psn_tx *timed; /* sequence of that packet; NULL: none */
	uint32_t timed_psn;
	uint64_t timed_at;       /* ns: when the packet was sent */
	uint64_t timed_delivered; /* `delivered` when the packet was sent */
};

/* The peer was heard at this time, ns, by a QP that repeats: of all such QPs, the latest counts. */
static inline void
urn_peer_heard(struct urn_peer *peer, uint64_t at)
{
	if (at > peer->heard)
		peer->heard = at;
}

/* Indices of peers that lie together. */
struct urn_peer_page {
	uint64_t used;			    /* bit: the index has a peer; not 0 */
	struct urn_peer *at[URN_PEER_PAGE]; /* valid with that bit; owner */
};

/*
 * All peers of a transport. Queue pairs know a peer by its index, which has half the bytes that a
 * queue pair could spare for an address. A peer is memory of its own, and so is each page of the
 * index with a peer: peers that nobody holds cost nothing. Low indices are given out first, so that
 * few pages are there. Index 0 stands for all peers that found no room.
 */
struct urn_peers {
	struct urn_peer_page *page[URN_PEER_PAGES]; /* by index; NULL: no peer in the page; owner */
	uint64_t room[URN_PEER_PAGES / 64];	    /* bit: the page has an index without a peer */
	struct urn_peer **bucket;		    /* URN_PEER_BUCKETS, by address; owner */
	uint32_t seed;				    /* seed of the hash */
	uint32_t window;			    /* packets in flight a QP, at most */
	uint64_t delay_limit; /* ns that a round trip may take (delay.h); 0: any time */
};

/* The peer with an index that urn_peer_get() gave, held by the caller; or the peer 0. */
static inline struct urn_peer *
urn_peer_at(const struct urn_peers *ps, uint16_t index)
{
	return ps->page[index / URN_PEER_PAGE]->at[index % URN_PEER_PAGE];
}

/* The peer with the lowest index from `*index` on, which is set to the index behind it; NULL: there is none. */
struct urn_peer *urn_peer_next(const struct urn_peers *ps, uint32_t *index);

/*
 * Make the peer 0. window: packets in flight a QP, at most; delay_limit: ns, see struct
 * urn_peers; seed: random, so that clients can't choose addresses that share a bucket.
 * returns: 0 or ENOMEM
 */
int urn_peers_init(struct urn_peers *ps, uint32_t window, uint64_t delay_limit, uint32_t seed);
void urn_peers_free(struct urn_peers *ps);
/* The peer with this address, made if needed, held until urn_peer_put(). returns: its index; 0: no
 * room, or no memory */
uint16_t urn_peer_get(struct urn_peers *ps, const uint8_t gid[16]);
/* Hold a peer no more: its memory goes with the last one that held it. Index 0 is left alone. */
void urn_peer_put(struct urn_peers *ps, uint16_t index);
/* Look up a peer by address without holding it. NULL: no QP leads there. */
struct urn_peer *urn_peer_find(struct urn_peers *ps, const uint8_t gid[16]);

/*
 * Progress came after a probe or repeats: the way may be longer than is known, and its round trip
 * was not measured (RFC 6298, 5.5 to 5.7). Many QPs that find this at the same time count as one.
 * floor_ns: as in urn_peer_pto()
 */
void urn_peer_repeats(struct urn_peer *p, uint64_t floor_ns, uint64_t now);
/* A round trip was measured (RFC 6298, 2). */
void urn_peer_rtt(struct urn_peer *p, uint64_t ns, uint64_t now);
/*
 * The packet that was timed was acknowledged: measure its round trip, and the rate of the way from
 * the PSNs delivered meanwhile. A QP has twice the product of both in flight, and a burst, at most
 * `most` packets: more packets would only wait in queues. A limit of the delay makes them fewer.
 */
void urn_peer_delivered(struct urn_peer *p, uint64_t now, uint32_t most);
/* Learn from a scoreboard's news: the wire reorders, or we asked again too early. */
void urn_peer_learn(struct urn_peer *p, const struct urn_board_news *news);
/* A repair has ended; after URN_PEER_CALM of them without a late packet the limits are halved. */
void urn_peer_repaired(struct urn_peer *p);
/* Limits for scoreboards of this peer. */
void urn_peer_limits(const struct urn_peer *p, struct urn_board_limits *l);
/* Retransmission time, ns, at least floor_ns (RFC 6298, 2.3). */
uint64_t urn_peer_rto(const struct urn_peer *p, uint64_t floor_ns);
/*
 * Time to an early repeat to a peer without selective acknowledgements, ns, with `psns` PSNs in
 * flight; UINT64_MAX: no round trip was measured. floor_ns: as in urn_peer_rto()
 */
uint64_t urn_peer_early(const struct urn_peer *p, uint64_t floor_ns, uint32_t psns, uint64_t now);
/*
 * Time from the answer to a repeat until the PSNs behind it are repeated, ns, as long as nothing
 * else comes. psns, floor_ns: as in urn_peer_early()
 */
uint64_t urn_peer_go_on(const struct urn_peer *p, uint64_t floor_ns, uint32_t psns);
/* An early repeat was needless: the next ones come later, for a while. */
void urn_peer_hasty(struct urn_peer *p, uint64_t now);
/* Time to a probe, ns: well before urn_peer_rto(). */
uint64_t urn_peer_pto(const struct urn_peer *p, uint64_t floor_ns);

#endif
