/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of an endpoint that leave. An endpoint has two outboxes, one for requests and one for
 * answers. An outbox has lanes, register sets that send one message at a time, and shares them
 * among its peers, so that no peer stops the messages to others:
 *
 *   message ─► lane ─► DONE
 *                │ QUEUE FULL or BUSY, for 2 ms
 *                ▼
 *              parked, in memory of the library ─► a lane again, after pauses of 1 to 64 ms
 *
 * A peer has at most three times as many lanes as are idle, fewer long lanes than are idle, and the
 * messages to it take fewer bytes than are free. So a peer that takes nothing leaves a quarter of
 * the lanes, and half of the long ones and of the room, to the next one. A parked message leaves
 * its lane to others; the peer's other messages are parked behind it.
 *
 * In the outbox for answers a peer is a queue of a node. All queues of a node together have the
 * part that one peer has in the outbox for requests, and each of them has a part of what is free to
 * its node. So a program that takes no answers leaves something to the other programs of its node:
 *
 *   outbox ─┬─ node (a peer without messages of its own: `above` the others) ─┬─ queue of a program
 *           │                                                                 └─ queue of a program
 *           └─ node ── queue of a program
 *
 *   outbox.c  lanes and peers
 *   known.c   queues of answers that are remembered longer than they are peers
 *   parked.c  messages that wait for a peer
 *   prepare.c messages whose payload the program writes into the lane
 *   answer.c  answers: several to one peer share a message
 */
#ifndef URN_AM_OUTBOX_H
#define URN_AM_OUTBOX_H

#include "msg/set.h"

enum {
	URN_AM_LANES_MAX = 64,	   /* lanes of an outbox: the bits of a bitmap */
	URN_AM_OUT_LANES = 64,	   /* lanes for requests */
	URN_AM_BACK_LANES = 24,	   /* lanes for answers */
	URN_AM_BACK_MOST = 5,	   /* lanes for answers to one node, of which a queue leaves one:
				      with two for a queue, both ends wait */
	URN_AM_SHARE = 3,	   /* lanes that a peer may have for each idle one */
	URN_AM_LONG_SHARE = 1,	   /* the same for long lanes, which are few */
	URN_AM_ALIKE_BYTES = 8192, /* longest messages for which all lanes are alike */
	URN_AM_SHORT_BYTES = 4192, /* bytes of a short lane, if there are short and long ones */
	URN_AM_LONG_BYTES = 512 << 10, /* bytes of all long lanes, if these are more than ... */
	URN_AM_LONG_MIN = 4,	       /* ... so many lanes */
	URN_AM_MISSES = 4,	       /* lanes without an answer that a look finds, at most */
	URN_AM_TRY_US = 200,	       /* microseconds between tries of a lane */
	URN_AM_TRIES = 10,	       /* tries of a lane after the first one */
	URN_AM_PAUSE_US = 1000,	       /* pause of a parked message: the first one */
	URN_AM_PAUSE_MAX_US = 64000,   /* ... and the longest */
	URN_AM_PARKED_PEERS = 8,       /* peers whose parked messages are looked at in a call */
	URN_AM_KNOWN_SETS = 1024, /* queues of answers that are remembered: sets of places ... */
	URN_AM_KNOWN_WAYS = 4,	  /* ... in each, one for any queue of the set */
	/* Errors after which a message is sent again: it is not there. RESTARTED: the flow led to
	 * an earlier life of the node. */
	URN_AM_RETRY_KINDS =
		URN_MSG_RETRY_QUEUE_FULL | URN_MSG_RETRY_BUSY | URN_MSG_RETRY_RESTARTED,
};
_Static_assert((int)URN_AM_OUT_LANES <= (int)URN_AM_LANES_MAX, "lanes");
_Static_assert((int)URN_AM_BACK_LANES <= (int)URN_AM_LANES_MAX, "lanes");

#define URN_AM_NO_PEER UINT32_MAX
/* ns after which a parked answer may be given up; longer than a flow tries, so that lanes which
 * silent nodes had are idle before */
#define URN_AM_BACK_NS UINT64_C(3000000000)
/* ns for which a queue of answers is remembered; and for which a node is taken for one with full
 * queues after the last refusal, longer than the longest pause of a parked answer */
#define URN_AM_KNOWN_NS UINT64_C(10000000000)
#define URN_AM_FULL_NS UINT64_C(100000000)

/* A message on a lane, or parked. */
struct urn_am_letter {
	struct urn_msg_to to;
	uint64_t number;  /* number of the request; 0: answers */
	uint64_t until;	  /* ns: answers may be given up from then on; 0: never parked */
	uint32_t peer;	  /* index */
	uint32_t off;	  /* first byte in the buffer */
	uint32_t len;	  /* bytes */
	uint32_t bytes;	  /* bytes that count in peer and outbox until the message has ended */
	uint16_t answers; /* answers in it; 0: a request, or a note about a stray answer */
	uint8_t code; /* enum urn_msg_code of the last refusal, of the request or of those that it
			 was parked behind; 0: none */
	bool again;	  /* sent again after RESTARTED, though it may have been there */
};

/* A register set that sends. */
struct urn_am_lane {
	struct urn_register_set set;
	struct urn_am_letter m; /* valid while the lane is not idle */
	uint64_t ticket;	/* ticket of the request that is prepared here; 0: none */
	uint32_t asked;		/* the request's slot in the endpoint; valid with a ticket */
	uint32_t seq;		/* number of the last doorbell write */
	uint8_t index;
	bool large; /* takes long messages */
};

/* A message that waits for its peer; owner: the list of the peer. */
struct urn_am_parked {
	struct urn_am_parked *next, *prev; /* in the list of the peer */
	struct urn_am_letter m;
	uint32_t room; /* bytes of data */
	_Alignas(32) uint8_t data[]; /* aligned like a lane, for payloads that are made in place */
};

/* A target of messages, or a node with several of them. */
struct urn_am_peer {
	uint8_t node[16];
	uint64_t qid;		   /* queue of the target; valid unless `whole` */
	struct urn_am_peer *above; /* the peer's node, in an outbox for answers; NULL: none */
	bool whole; /* a node: lanes, parked, bytes and since are sums over its queues; the other
		       counts, pauses and parked messages are theirs */
	uint64_t hash;	  /* hash of node, queue and the outbox's secret */
	uint32_t next;	  /* in the bucket, or next free one */
	uint32_t waiting; /* next in the list of peers with parked messages; valid with `waits` */
	uint32_t users;	  /* reasons to keep the peer: requests, lanes, parked messages, the list;
			     queues of the node */
	uint32_t open;	  /* requests without an answer */
	uint32_t lanes[2];		    /* lanes that are not idle: short ones, long ones */
	uint32_t prepared; /* ... of requests that are prepared: nothing was sent */
	uint32_t open_lanes; /* ... with answers that others may join: nothing was sent; of nodes
				only */
	uint32_t parked;		    /* parked messages */
	uint64_t bytes;			    /* bytes that count, of its messages */
	struct urn_am_parked *first, *last; /* parked messages, in the order of their sending */
	uint64_t next_at;		    /* ns: no try before; valid with pause_us */
	uint64_t since;	  /* ns, up to 10 ms early: when the node took or refused an answer last, or
			     got one after a while without; of nodes only */
	uint64_t full_at; /* ns, likewise: when a queue of the node was full last; 0: never; of
			     nodes only */
	uint32_t pause_us;
	uint32_t burst;	 /* lanes that parked messages may have now */
	uint8_t trouble; /* enum urn_msg_code of the message that ended last, if the peer refused
			    it, or its node was not reached; 0: neither. A node has URN_MSG_BUSY if
			    answers were BUSY since `since`, else 0 */
	bool waits;	 /* in the list of peers with parked messages */
	/* Answers that are written: a message that further ones may join. At most one is set. */
	struct urn_am_lane *open_lane;
	struct urn_am_parked *open_parked;
};

/* A queue of answers that is remembered. */
struct urn_am_known {
	uint32_t tag;	   /* bits of the queue's hash; 0: the place is free */
	uint32_t at : 31;  /* units of 2^20 ns, wraps: when the queue took or refused an answer */
	uint32_t full : 1; /* the queue refused the answer */
};

struct urn_am_outbox {
	struct urn_am_lane lane[URN_AM_LANES_MAX];
	uint32_t lanes;
	uint32_t short_size; /* bytes that a short lane holds */
	uint32_t size;	     /* bytes of the longest message */
	uint64_t idle, large;
	uint32_t idle_n[2]; /* idle lanes: short ones, long ones */
	uint32_t most;	    /* lanes of a class that a peer may have, or a node with `nodes` */
	bool nodes;	    /* queues of a node share the node's part */
	/* Lanes under way, in the order of sending but for those that were looked at in vain. */
	uint8_t under_way[URN_AM_LANES_MAX];
	uint32_t head, busy;

	struct urn_am_peer *peer; /* owner */
	uint32_t *bucket;	  /* owner */
	uint32_t peers, mask;	  /* places for peers; buckets less one */
	uint32_t free;		  /* a free place */
	uint32_t last;		  /* the peer that was found last; URN_AM_NO_PEER: none */
	struct urn_am_known *known; /* sets of places; NULL without `nodes`; owner */
	uint64_t seed;
	uint64_t room, bytes;	       /* bytes that may count, and do */
	uint32_t parked, parked_max;   /* parked messages, and how many there may be */
	uint32_t waiting, waiting_end; /* peers with parked messages; URN_AM_NO_PEER: none */
	/* Lanes with answers that further ones may join. */
	uint8_t open[URN_AM_LANES_MAX];
	uint32_t opens;
};

/* Wishes for an outbox. */
struct urn_am_outbox_attr {
	struct urn_msg_dev *dev;
	uint32_t lanes, most; /* lanes, and those of a class that one peer, or node, may have */
	uint32_t size;	      /* bytes of the longest message */
	uint32_t vector;      /* picks the engine */
	uint32_t parked;      /* parked messages, at most */
	uint64_t seed;	      /* random */
	bool nodes;	      /* queues of a node share the node's part */
};

/* Make an outbox, which is all zero. returns: 0, or an errno value with its text; fini() follows in
 * any case */
int urn_am_outbox_init(struct urn_am_outbox *box, const struct urn_am_outbox_attr *attr);
void urn_am_outbox_fini(struct urn_am_outbox *box);

/* ---- peers */

/* The peer of a node and a queue, made if there is none, with its node if the outbox has nodes;
 * NULL: no place. urn_am_peer_put() forgets one without users, and a node without queues. */
struct urn_am_peer *urn_am_peer_get(struct urn_am_outbox *box, const uint8_t node[16],
				    uint64_t qid);
void urn_am_peer_put(struct urn_am_outbox *box, struct urn_am_peer *p);
/* A user of a peer is gone. */
static inline void
urn_am_peer_leave(struct urn_am_outbox *box, struct urn_am_peer *p)
{
	if (--p->users == 0)
		urn_am_peer_put(box, p);
}

static inline uint32_t
urn_am_peer_index(const struct urn_am_outbox *box, const struct urn_am_peer *p)
{
	return (uint32_t)(p - box->peer);
}

/* A message to a peer counts for so many more bytes, also for its node. */
static inline void
urn_am_peer_weighs(struct urn_am_outbox *box, struct urn_am_peer *p, uint32_t bytes)
{
	box->bytes += bytes;
	p->bytes += bytes;
	if (p->above != NULL)
		p->above->bytes += bytes;
}

/* A message to a peer counts for so many bytes less. */
static inline void
urn_am_peer_lightens(struct urn_am_outbox *box, struct urn_am_peer *p, uint32_t bytes)
{
	box->bytes -= bytes;
	p->bytes -= bytes;
	if (p->above != NULL)
		p->above->bytes -= bytes;
}

/* ---- queues of answers that are remembered (known.c) */

enum urn_am_repute {
	URN_AM_STRANGER, /* no answer of the queue is remembered */
	URN_AM_TAKER,	 /* the queue took the last answer */
	URN_AM_REFUSER,	 /* the queue was full */
};

/* Remember what a queue did with an answer. now: ns */
void urn_am_remember(struct urn_am_outbox *box, const struct urn_am_peer *p, bool full,
		     uint64_t now);
enum urn_am_repute urn_am_repute(const struct urn_am_outbox *box, const struct urn_am_peer *p,
				 uint64_t now);

/* True when a queue of a node was full just now. */
static inline bool
urn_am_has_full(const struct urn_am_peer *node, uint64_t now)
{
	return node->full_at != 0 && now < node->full_at + URN_AM_FULL_NS;
}

/* A lane is taken for an answer to a node, or an answer leaves on one that was. idle: lanes of the
 * node from which nothing has left. When there are no others, and no answer was BUSY before, the
 * node is silent from now on at the earliest. */
static inline void
urn_am_node_asked(struct urn_am_peer *node, uint32_t idle, uint64_t now)
{
	if (node->lanes[0] + node->lanes[1] == idle && node->trouble == 0)
		node->since = now;
}

/* ---- lanes */

/* True when a peer may have a lane for a message of so many bytes. */
static inline bool
urn_am_has_lane(const struct urn_am_outbox *box, const struct urn_am_peer *p, uint32_t size)
{
	bool large = size > box->short_size;
	uint32_t share = large ? URN_AM_LONG_SHARE : URN_AM_SHARE, had = p->lanes[large];
	uint32_t most = share * box->idle_n[large];

	most = most < box->most ? most : box->most;
	if (p->above == NULL)
		return had < most;
	/* A queue has a share of those that are free to its node. */
	return p->above->lanes[large] < most && had < share * (most - p->above->lanes[large]);
}

/* Take an idle lane, after urn_am_has_lane(); its letter has the peer and the bytes that
 * count; target and length are the caller's, all else is zero. */
struct urn_am_lane *urn_am_lane_take(struct urn_am_outbox *box, struct urn_am_peer *p,
				     uint32_t size);
/* The message of a lane has ended: the lane is idle. */
void urn_am_lane_give(struct urn_am_outbox *box, struct urn_am_lane *l);
/* A message takes fewer bytes than it counts for: from now on it counts for what it takes. */
static inline void
urn_am_lane_trim(struct urn_am_outbox *box, struct urn_am_lane *l, uint32_t size)
{
	urn_am_peer_lightens(box, &box->peer[l->m.peer], l->m.bytes - size);
	l->m.bytes = size;
}
/* Send the message of a lane. */
void urn_am_lane_send(struct urn_am_outbox *box, struct urn_am_lane *l);
/*
 * The next lane under way whose message has its answer; it is not under way any more. left, misses:
 * box->busy and 0 at first. NULL: none of those that are looked at
 */
struct urn_am_lane *urn_am_lane_ended(struct urn_am_outbox *box, uint32_t *left, uint32_t *misses,
				      uint8_t *code);

/* ---- parked messages */

/* True when a peer may have so many more bytes; a queue has fewer than are free to its node.
 * Messages on lanes may count for more than the room. */
static inline bool
urn_am_has_room(const struct urn_am_outbox *box, const struct urn_am_peer *p, uint32_t size)
{
	uint64_t left = box->room > box->bytes ? box->room - box->bytes : 0;

	if (p->above != NULL)
		left = left > p->above->bytes ? left - p->above->bytes : 0;
	return p->bytes + size <= left;
}

/* True when there is room for another parked message of a peer, of so many bytes that do not count
 * yet. */
static inline bool
urn_am_may_park(const struct urn_am_outbox *box, const struct urn_am_peer *p, uint32_t size)
{
	uint32_t left = box->parked_max - box->parked;

	if (p->above != NULL)
		left = left > p->above->parked ? left - p->above->parked : 0;
	return p->parked < left && urn_am_has_room(box, p, size);
}

/*
 * Make a parked message of a peer, the last one. m: letter; room: bytes for its data, which the
 * caller fills; they count from now on. NULL: no memory
 */
struct urn_am_parked *urn_am_park(struct urn_am_outbox *box, struct urn_am_peer *p,
				  const struct urn_am_letter *m, uint32_t room);
/*
 * Park the message of a lane, which the peer refused; the lane is idle then. now: ns. NULL: no
 * memory, and the lane is as before
 */
struct urn_am_parked *urn_am_park_lane(struct urn_am_outbox *box, struct urn_am_lane *l,
				       uint8_t code, uint64_t now);
/*
 * Close a message of answers that further ones may have joined. at: its buffer (answer.c)
 */
void urn_am_letter_close(struct urn_am_letter *m, uint8_t *at);
/* Free a parked message. */
void urn_am_unpark(struct urn_am_outbox *box, struct urn_am_parked *k);
/* A message to a peer was not taken. code: enum urn_msg_code */
static inline void
urn_am_peer_failed(struct urn_am_peer *p, uint8_t code)
{
	const uint32_t kinds =
		URN_AM_RETRY_KINDS | URN_MSG_RETRY_UNREACHABLE | URN_MSG_RETRY_NO_NODE;

	p->trouble = urn_msg_code_kind(code) & kinds ? code & ~URN_MSG_MAY_BE_THERE : 0;
}
/* A peer has refused a message: its parked ones pause. now: ns */
void urn_am_peer_pause(struct urn_am_peer *p, uint64_t now);
/* A message to a peer was taken: its parked ones follow. */
void urn_am_peer_takes(const struct urn_am_outbox *box, struct urn_am_peer *p);
/*
 * Send parked messages of some peers whose time has come. now: ns; sent: called for each before its
 * parked memory is freed, with ctx; late: called for the number of answers that are given up: their
 * time is over, and their peer refuses messages, or is silent
 */
void urn_am_unpark_due(struct urn_am_outbox *box, uint64_t now,
		       void (*sent)(void *ctx, const struct urn_am_parked *k),
		       void (*late)(void *ctx, uint32_t answers), void *ctx);

/* True when a message with this code is not there, and may be taken later. code: enum urn_msg_code
 */
static inline bool
urn_am_is_refusal(uint8_t code)
{
	return !(code & URN_MSG_MAY_BE_THERE) && (urn_msg_code_kind(code) & URN_AM_RETRY_KINDS);
}

#endif
