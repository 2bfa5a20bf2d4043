/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints inside: their structs, and what the files of this folder ask each other. */
#ifndef URN_AM_PRIV_H
#define URN_AM_PRIV_H

#include "am/am.h"
#include "base/fair.h"
#include "base/pool.h"
#include "counters.h"
#include "transport/tp.h"
#include "wire/am.h"
#include "wire/am_more.h"

#include <sys/queue.h>

enum {
	URN_AM_NIL = 0xffff,   /* no operation */
	URN_AM_EP_OUTS = 256,  /* packets of an endpoint that wait for their reply or to be sent */
	URN_AM_OUTS = 16384,   /* ... of all endpoints of the engine */
	URN_AM_REPLIES = 4096, /* replies of the engine that were not delivered yet */
	URN_AM_NODES = 64,     /* buckets of nodes, for the bound of their replies */
	URN_AM_NODE_REPLIES = 512, /* replies to the nodes of a bucket */
	URN_AM_KEEP_REPLIES = 16,  /* ... that the others leave to them */
	URN_AM_LATE_STEPS = 64,	   /* replies without a flow that a turn tries */
	URN_AM_FRAMES = 16,	   /* packets of an endpoint in a turn ... */
	URN_AM_SHORT = 256, /* ... where URN_AM_SHORTS writes of so many bytes count as one: they
			       share the flow's packets */
	URN_AM_SHORTS = 4,
	URN_AM_PIECES = 4,		     /* pieces of memory that one packet may touch */
	URN_AM_HEAD_MAX = URN_AM_MORE_BYTES, /* bytes of a message that need not lie in memory */
};

#define URN_AM_RETRY_NS 200000ull    /* ns from a refusal for want of room to the next try */
#define URN_AM_LOOK_NS 1000000000ull /* ns between looks for operations that stand still */
#define URN_AM_REPLY_NS \
	10000000000ull /* ns without progress after which an operation is given up */

/* A piece of memory in this process. */
struct urn_am_piece {
	uint8_t *at;
	uint32_t len; /* bytes */
};

/* A range of a region: the dataplane's copy. */
struct urn_am_range {
	uint64_t addr, len; /* first byte and bytes, in the addresses of lkey; len is not 0 */
	uint64_t last;	    /* last byte of this range and of those behind that touch each other */
	uint32_t lkey;	    /* key of the memory region; checked again with each packet */
};

struct urn_am_region {
	uint64_t key;	 /* access key, its place in urn_am_ep.region in the low bits; 0: reached
			    without */
	uint32_t access; /* enum urn_am_access */
	uint32_t n;	 /* ranges */
	struct urn_am_range range[]; /* disjoint, by address; ranges of one lkey do not touch */
};

/* Bits of struct urn_am_out.flags; a packet without any of the first three is free. */
enum urn_am_out_flag {
	URN_AM_OUT_QUEUED = 1 << 0, /* to be given to a flow */
	URN_AM_OUT_FLOW = 1 << 1,   /* a flow has it */
	URN_AM_OUT_REPLY = 1 << 2,  /* its reply is waited for */
	URN_AM_OUT_BACK = 1 << 6,   /* data of a peer's tagged read (tagged.h) */
};

/* Places that the bytes of a packet come from; they are gathered when a flow makes a frame. */
enum urn_am_source {
	URN_AM_FROM_HEAD,   /* all bytes are in urn_am_out.buf */
	URN_AM_FROM_LOCAL,  /* addr, in memory of the endpoint's client; key is its local key */
	URN_AM_FROM_REGION, /* addr, in the endpoint's region with that key, which peers may read */
};

/*
 * A packet that this engine sends: of an operation, or a reply to a peer's. The bytes of its
 * message are the first msg.len in buf, or the first msg.head in buf and the others in memory of
 * the endpoint with the number msg.src_qid.
 */
struct urn_am_out {
	struct urn_flow_msg msg; /* the flow's with URN_AM_OUT_FLOW */
	TAILQ_ENTRY(urn_am_out)
	link; /* in its endpoint's list, or among the replies that wait; valid for those */
	struct urn_am_ep *ep; /* endpoint; NULL: a reply */
	uint64_t tag;	      /* number in the upper 48 bits, slot below; never used twice */
	uint64_t at;	      /* ns, of a reply: when it was made */
	uint32_t slot;	      /* constant */
	uint32_t len;	      /* bytes of memory */
	uint32_t off; /* bytes of the operation before this packet's; valid with ep; else the
			 serial number of a BACK's transfer */
	uint16_t op;  /* index of the operation; valid with ep; else of a BACK's transfer */
	uint8_t flags;	      /* enum urn_am_out_flag */
	uint8_t bucket;	      /* bucket of a reply's node */
	uint8_t from;	      /* enum urn_am_source */
	uint8_t more;	      /* writes that a reply answers besides the first */
	uint8_t node[16];     /* GID it goes to */
	uint64_t addr, key; /* where the bytes behind the head are; valid unless URN_AM_FROM_HEAD */
	uint8_t buf[URN_AM_HEAD_MAX];
};

_Static_assert(sizeof(struct urn_am_out) <= 320, "5 MiB of packets for an engine's operations");

TAILQ_HEAD(urn_am_outs, urn_am_out);

/* An operation under way. */
struct urn_am_oper {
	struct urn_abi_am_cmd cmd; /* copy of the client's command */
	struct urn_abi_am_operand
		word; /* ... and of its operands; valid with an atomic operation */
	uint64_t old; /* atomic operation: the word's value before; valid with code DONE at its end
		       */
	uint64_t at;		   /* ns: when one of its packets made progress last */
	uint32_t sent, done; /* bytes that packets were made of; bytes that replies confirmed */
	uint64_t tag;	     /* one answer for many packets: index in the low 16 bits below a number
				that was never used; 0: each packet has its reply */
	uint32_t next;	     /* the pool's */
	uint16_t outs;	     /* packets that are not finished */
	uint16_t chunk; /* bytes of memory in each packet but the last; valid with more than one */
	uint8_t code;	     /* enum urn_am_code of the first error */
	uint8_t way;	     /* enum urn_am_way, never AUTO */
	bool used;	     /* under way */
	bool open;	     /* the tag is in use: an answer is waited for, or data */
	bool asked;	     /* tagged: the request was made */
	bool taken;	     /* tagged: the target took data */
	bool given_up; /* failed without the answer of the target, which may have placed bytes */
	bool silent;	     /* given up: `at` stays, so that all its packets are found */
};

/* The list of struct urn_am that an endpoint is in, for ARM INTR. */
enum urn_am_told {
	URN_AM_TOLD_NO, /* none */
	URN_AM_TOUCHED, /* operations ended in this turn */
	URN_AM_LATE,	/* its event found no room */
};

struct urn_am_ep {
	struct urn_source_ops_user user; /* source and operations */
	struct urn_source_timer timer;	 /* started while operations are under way */
	struct urn_abi_am_ep *regs;	 /* in the client's area; the same for its life */
	uint32_t entries, ranges; /* slots of a ring, and of the list; the same for its life */
	uint32_t pd, slot;	  /* the same for its life */
	uint32_t taken, events;	  /* commands taken, events written; wrap */
	uint64_t commands;	  /* commands taken; other threads read it, as the next three */
	uint64_t done, failed;	  /* operations that ended: without an error, with one */
	uint8_t code;		  /* enum urn_am_code of the last error; 0: none yet */
	uint32_t under;		  /* operations under way */
	uint32_t queued;	  /* packets with URN_AM_OUT_QUEUED */
	uint32_t open;		  /* operations that are open */
	uint16_t outs;		  /* packets in `out` */
	uint16_t current;	  /* operation that packets are made of; URN_AM_NIL: none */
	uint64_t retry_at;	  /* ns: queued packets wait until then; valid with some */
	uint64_t look_at; /* ns: when operations that stand still are looked for; valid with some */
	struct urn_am_outs out;	  /* packets that are not free, the oldest first */
	struct urn_am_oper *oper; /* entries; owner */
	struct urn_pool opers;	  /* free ones */
	struct urn_am_region *
		*region; /* URN_AM_REGIONS_MAX, those with a key; owner; NULL: none yet */
	struct urn_am_region *space; /* memory that is reached without a key; NULL: none; owner */
	uint32_t regions_n, ranges_n; /* regions with a key or without; ranges of all of them */
	int channel_fd;		      /* -1: none; the same for its life */
	uint32_t channel;	      /* control's; the same for its life */
	uint64_t cookie;	      /* the same for its life */
	uint32_t pipelined_from,
		tagged_from; /* like those of struct urn_am; 0: those; the same for its life */
	uint8_t told;		      /* enum urn_am_told */
	TAILQ_ENTRY(urn_am_ep) tell;  /* in a list of struct urn_am; valid unless told is NO */
	LIST_HEAD(, urn_am_transfer) transfers; /* transfers of peers (tagged.h) */
	/* Operations of peers, or packets of them, that were refused; other threads read it. */
	uint64_t refused;
	/* enum urn_am_code of the last refusal; 0: none yet */
	uint8_t refused_code;
};

TAILQ_HEAD(urn_am_eps, urn_am_ep);

/* A slot, which outlives its endpoints. */
struct urn_am_slot {
	struct urn_am_ep *ep; /* NULL: none */
	uint64_t qid;	      /* number of ep; 0 without */
	uint32_t generation;  /* endpoints that had the slot before */
	uint32_t next;	      /* the pool's */
};

struct urn_am {
	struct urn_source_ops_user user; /* source that sends the replies that wait */
	struct urn_tp_share replying;	 /* its share: replies have turns at flows like a client */
	struct urn_am_slot
		*slot; /* URN_AM_ENDPOINTS_MAX; untouched memory until a slot is used; owner */
	struct urn_pool slots;	/* free slots */
	_Atomic uint32_t count; /* endpoints; other threads read it */
	uint32_t generation;	/* start of the generations, from the seed */
	uint32_t engine;	/* index */
	bool unregistered;	/* memory may be reached without a key */
	/* Bytes from which AUTO is pipelined (0: one packet does not hold them), and tagged. */
	uint32_t pipelined_from, tagged_from;
	struct urn_am_tagged *tagged; /* transfers of peers; owner */
	uint64_t seed;		/* seed of the hash of nodes */
	uint64_t tags;		/* number of the next packet */
	struct urn_am_out *
		*out;	    /* by slot, URN_AM_OUTS + URN_AM_REPLIES; made when first used; owner */
	uint32_t outs_made; /* entries of out that were made */
	struct urn_am_out *out_free; /* free packets, linked by link.tqe_next */
	uint32_t outs, replies;	     /* packets of operations, and replies, that are not free */
	struct urn_fair fair_outs;   /* how many of the former a client, or a user, may have */
	uint16_t node[URN_AM_NODES]; /* replies by bucket of nodes */
	uint32_t kept;		     /* replies that are kept for buckets with few */
	uint8_t last[16], bucket;    /* node that a bucket was asked for last, and its bucket */
	struct urn_am_outs late;     /* replies that no flow had room for, the oldest first */
	struct urn_am_out
		*open; /* reply to a write that was made last; NULL: none, or it is free */
	struct urn_am_eps touched, untold; /* endpoints to look at, and those whose event is late */
	uint32_t untold_n;		   /* number of endpoints in these two lists */
	uint64_t untold_due; /* ns: when late events are tried again; valid with some */
};

/*
 * The bound of a table whose entries nodes take. A bucket of nodes has `most` entries, and `keep`
 * that no other bucket can take, so that nodes of many buckets that take all they can leave some to
 * every other.
 */
struct urn_am_bound {
	uint32_t all, most, keep; /* entries: of the table, of a bucket, kept for a bucket */
};

/* Let a bucket take an entry. held: entries of the bucket; n: of all; kept: entries that are kept
 * for buckets with less than bound.keep. returns: false: no room, nothing was changed */
static inline bool
urn_am_bound_take(const struct urn_am_bound *b, uint16_t *held, uint32_t *n, uint32_t *kept)
{
	bool own = *held < b->keep;

	if (unlikely(!own && (*held >= b->most || b->all - *n <= *kept)))
		return false;
	*kept -= own;
	(*held)++;
	(*n)++;
	return true;
}

/* A bucket gives an entry back. */
static inline void
urn_am_bound_give(const struct urn_am_bound *b, uint16_t *held, uint32_t *n, uint32_t *kept)
{
	(*held)--;
	(*n)--;
	*kept += *held < b->keep;
}

static inline struct urn_am *
urn_am_of(const struct urn_tp *tp)
{
	return tp->cfg.am;
}

/* Number of the endpoint of a slot that has one. */
static inline uint64_t
urn_am_number(const struct urn_am *am, uint32_t slot)
{
	return am->slot[slot].qid;
}

/* The endpoint with a number; NULL: none. */
static inline struct urn_am_ep *
urn_am_find(const struct urn_am *am, uint64_t qid)
{
	uint32_t i = urn_am_qid_slot(qid);

	return i < am->slots.made && am->slot[i].qid == qid ? am->slot[i].ep : NULL;
}

/* Let the endpoint have a turn. (ep.c) */
void urn_am_sched(struct urn_tp *tp, struct urn_am_ep *ep);

/*
 * The memory of a memory region of a client, in this process. access: 0 or URN_ACCESS_LOCAL_WRITE;
 * NULL: not all bytes are mapped memory of that key and protection domain. Valid in this turn
 * (space.c)
 */
uint8_t *urn_am_mapped(const struct urn_tp *tp, uint32_t pd, uint32_t lkey, uint64_t addr,
		       uint64_t len, uint32_t access);
/*
 * Check a packet of a peer: key, then rights, then every byte of the range.
 *
 * access: one bit of enum urn_am_access; len: 1 to URN_AM_CHUNK_MAX; addr + len does not wrap
 * around piece, n: set on success: the memory, in order; valid in this turn
 *
 * returns: enum
 * urn_am_code
 */
uint8_t urn_am_reach(const struct urn_tp *tp, const struct urn_am_ep *ep, uint64_t key,
		     uint64_t addr, uint32_t len, uint32_t access,
		     struct urn_am_piece piece[URN_AM_PIECES], unsigned int *n);
/* Check that every byte lies within the ranges of a key, with this right. returns: enum urn_am_code
 */
uint8_t urn_am_covers(const struct urn_am_ep *ep, uint64_t key, uint64_t addr, uint32_t len,
		      uint32_t access);
/* Note that something of a peer was refused. ep: NULL: the endpoint has ended; code: enum
 * urn_am_code (ep.c) */
void urn_am_refused(struct urn_tp *tp, struct urn_am_ep *ep, uint8_t code);
/* Forget all regions of an endpoint. */
void urn_am_regions_free(struct urn_am_ep *ep);

/* Take a packet for an operation; NULL: the endpoint, its client or the engine has too many.
 * (out.c) */
struct urn_am_out *urn_am_out_get(struct urn_am *am, struct urn_am_ep *ep);
/* The bucket of a node, for the bounds of its replies and transfers. */
uint8_t urn_am_bucket(struct urn_am *am, const uint8_t node[16]);
/* Take a packet for a reply to a node; NULL: the node or the engine has too many. */
struct urn_am_out *urn_am_reply_get(struct urn_am *am, const uint8_t node[16]);
/* A packet is free, and no flow has it. */
void urn_am_out_put(struct urn_am *am, struct urn_am_out *o);
/* The packet with a tag that is not free; NULL: none. */
struct urn_am_out *urn_am_out_find(const struct urn_am *am, uint64_t tag);
/*
 * Say where the bytes behind the head of a packet's message are: o->len bytes at addr. from: not
 * URN_AM_FROM_HEAD; key: as of struct urn_am_out. msg.len is set before, to head and bytes
 */
void urn_am_out_from(struct urn_am_out *o, enum urn_am_source from, uint64_t addr, uint64_t key);
/* Write bytes behind the head of a packet's message; struct urn_flow_user.gather. */
bool urn_am_out_gather(struct urn_tp *tp, const struct urn_am_out *o, uint32_t off, uint32_t bytes,
		       struct urn_flow_slice *to);
/* Give a packet to a flow. returns: URN_MSG_PENDING, and URN_AM_OUT_FLOW is set; else the code of
 * urn_flow_send() */
uint8_t urn_am_out_send(struct urn_tp *tp, struct urn_am_out *o);

/* Use a share of the endpoint's turn. returns: true when there is more to do (initiator.c) */
bool urn_am_serve(struct urn_tp *tp, struct urn_source *src);
/* The endpoint's timer is due. */
void urn_am_due(struct urn_tp *tp, struct urn_source *src);
/* A packet of an operation was answered by its flow. */
void urn_am_out_answered(struct urn_tp *tp, struct urn_am_out *o, uint8_t code);
/* A reply came. returns: enum urn_msg_code for the flow */
uint8_t urn_am_take_reply(struct urn_tp *tp, struct urn_am_ep *ep, const struct urn_flow_from *from,
			  const struct urn_am_msg *m);

/* End an operation if nothing of it is under way any more; else let its endpoint have a turn. */
void urn_am_oper_check(struct urn_tp *tp, struct urn_am_ep *ep, uint16_t i);
/* An operation failed: no more packets of it are made. code: enum urn_am_code */
void urn_am_oper_fail(struct urn_tp *tp, struct urn_am_ep *ep, uint16_t i, uint8_t code);
/* A packet of an operation is finished. code: enum urn_am_code */
void urn_am_out_finish(struct urn_tp *tp, struct urn_am_out *o, uint8_t code);

/* Bytes of memory in one packet to an endpoint, as far as its flow knows, a multiple of 8. more:
 * bytes between the message's header and those (initiator.c) */
uint32_t urn_am_chunk_to(struct urn_tp *tp, const uint8_t node[16], uint64_t qid, uint32_t more);
/* The way and the tag of an operation, whose command was checked. (tag_initiator.c) */
void urn_am_way_choose(struct urn_tp *tp, struct urn_am_ep *ep, uint16_t i);
/* Bytes of the operation's next packet. */
uint32_t urn_am_next_len(struct urn_am_oper *op);
/* Make the message of a packet that of an operation with a tag. */
void urn_am_tag_message(const struct urn_am_oper *op, const struct urn_am_out *o,
			struct urn_am_msg *m);
/* The tag of an operation that failed is retired, and its target is told. */
void urn_am_tag_give_up(struct urn_tp *tp, struct urn_am_ep *ep, struct urn_am_oper *op);
/* Give up open operations that have no packet, and made no progress. */
void urn_am_tag_look(struct urn_tp *tp, struct urn_am_ep *ep);
/* An answer or data for an operation with a tag came. returns: enum urn_msg_code for the flow */
uint8_t urn_am_take_back(struct urn_tp *tp, struct urn_am_ep *ep, const struct urn_flow_from *from,
			 const struct urn_am_msg *m);
/* A packet for a transfer came. returns: enum urn_msg_code for the flow (tag_target.c) */
uint8_t urn_am_take_tagged(struct urn_tp *tp, struct urn_am_ep *ep,
			   const struct urn_flow_from *from, const struct urn_am_msg *m);

/* Give a reply to a flow, or let it wait, or drop it. (target.c) */
void urn_am_reply_send(struct urn_tp *tp, struct urn_am_out *o);

/* An event was written: the endpoint is looked at, at the turn's end (tell.c). */
void urn_am_touch(struct urn_am *am, struct urn_am_ep *ep);
/* The endpoint ends. */
void urn_am_untouch(struct urn_am *am, struct urn_am_ep *ep);

/* Check the command of an atomic operation. returns: enum urn_am_code (atomic.c) */
uint8_t urn_am_atomic_check(const struct urn_abi_am_cmd *c, const struct urn_abi_am_operand *word);
/* Write the data of an atomic operation's packet. */
void urn_am_atomic_write(const struct urn_am_oper *op, uint8_t *data);
/* Carry a peer's atomic operation out. *old: the word's value before, set with URN_AM_DONE.
 * returns: enum urn_am_code */
uint8_t urn_am_atomic_take(struct urn_tp *tp, const struct urn_am_ep *ep,
			   const struct urn_am_msg *m, uint64_t *old);

/* A peer's write, read or atomic operation came. returns: enum urn_msg_code for the flow (target.c)
 */
uint8_t urn_am_take_request(struct urn_tp *tp, struct urn_am_ep *ep,
			    const struct urn_flow_from *from, const struct urn_am_msg *m);
/* True when the reply to a write can join the message of the reply before. (replies.c) */
bool urn_am_reply_joins(const struct urn_am *am, const struct urn_am_ep *ep,
			const struct urn_flow_from *from, const struct urn_am_msg *m);
/* Let the reply to a write with that tag join, in the same turn. */
void urn_am_reply_join(struct urn_am *am, uint64_t tag);
/* A message with replies to several writes came. data, len: any bytes. returns: enum urn_msg_code
 * for the flow */
uint8_t urn_am_take_replies(struct urn_tp *tp, struct urn_am_ep *ep,
			    const struct urn_flow_from *from, const uint8_t *data, uint32_t len);
/* A reply of ours was answered by its flow. (target.c) */
void urn_am_reply_answered(struct urn_tp *tp, struct urn_am_out *o, uint8_t code);
/* The operations of struct urn_am as a source: replies that wait. */
extern const struct urn_source_ops urn_am_late_ops;

#endif
