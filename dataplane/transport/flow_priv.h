/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside of flows (flow.h). One struct serves both directions between this engine and an engine of
 * a node.
 *
 *   flow.c        making, finding, ageing; messages in and out of a flow
 *   flow_strand.c strands: an owner's messages and packets in a flow, and their turns
 *   flow_dry.c    strands that wait for room in the pool of packets
 *   flow_tx.c     packets of messages, first and repeated, and the parts that they hold
 *   flow_frame.c  frames of packets
 *   flow_rx.c     data that came: order, messages
 *   flow_refuse.c refused messages that the sender does not know of yet
 *   flow_whole.c  parts of long messages that came, and the buffers that they are put together in
 *   flow_ack.c    acknowledgements and resets, both ways
 *   flow_timer.c  repeats, giving up, ageing
 *   flow_rest.c   flows at rest: the little that is kept of an idle flow whose client needs room
 * (flow_rest.h)
 *
 * Sending uses the sequence of PSNs that queue pairs use (psn_tx.h, psn_timer.h): one work a
 * packet. A receiver needs no packet in order, because messages have no order among each other: it
 * delivers what comes at once, and notes the PSN in a bitmap.
 */
#ifndef URN_TRANSPORT_FLOW_PRIV_H
#define URN_TRANSPORT_FLOW_PRIV_H

#include "transport/flow.h"
#include "transport/frame.h"
#include "transport/psn_timer.h"
#include "transport/requester.h"
#include "transport/sched.h"
#include "wire/flow.h"

#include <sys/queue.h>

enum {
	URN_FLOWS_MAX = 65536,		      /* flows of an engine and adapter */
	URN_FLOWS_RX_MAX = URN_FLOWS_MAX / 2, /* ... of those, made by packets that came */
	URN_FLOWS_DOUBTED = 2048, /* flows with URN_FLOWF_DOUBTED; beyond, senders are asked */
	URN_FLOWS_OWNER = 4096,	  /* flows that messages of a maker made; beyond half of them, idle
				     ones go to rest early */
	URN_FLOW_MAKERS = 4096,	  /* buckets of owners, for the bound of flows */
	URN_FLOW_BUCKETS = 16384,
	URN_FLOW_STRAND_BUCKETS = 16384,
	URN_FLOW_SPARE_STRANDS = 64, /* strands that are kept for reuse, besides one a flow */
	URN_FLOW_FRAMES = 16,	     /* packets of a strand in a turn */
	URN_FLOW_LOOK = 16, /* strands that are looked at for messages that share a packet */
	URN_FLOW_ACKS = 64, /* acknowledgements in a turn of theirs */
	URN_FLOW_DRY = 16,  /* owners without room that a turn looks at, and strands of each */
	URN_FLOW_FIRST =
		16, /* packets under way until the node acknowledges the first one of an epoch */
	URN_FLOW_ASKS = 32, /* packets repeated at once in an epoch because a node's answer told too
			       little of its age */
	URN_FLOW_ACTIVE = 8,  /* long messages of a flow that are being sent at the same time; the
				 last place is for an owner that has no other */
	URN_FLOW_WHOLES = 64, /* messages of an engine that are being put together */
	URN_FLOW_WHOLES_FLOW = 16, /* ... of a flow: more than URN_FLOW_ACTIVE, and so those that
				      were sent whole get done */
	URN_FLOW_WHOLES_NODE = 16, /* ... of a node, when half of all places are taken */
	URN_FLOW_IDS = 1024, /* ids that are told apart: a sender begins fewer while parts of one
				are under way */
	URN_FLOW_SLOW_SHIFT = 13, /* slower than a byte in 2^13 ns: the place goes to another */
	URN_FLOW_KINDS = 8,	  /* sizes of the buffers for these: 8 KiB, 16 KiB, ... 1 MiB */
	URN_FLOW_KEPT_BYTES = 8 << 20, /* bytes of buffers without a message that an engine keeps */
	URN_FLOW_REFUSALS = 8,	       /* packets with refused messages that a flow remembers */
	URN_FLOW_REFUSALS_LARGE = 2048, /* flows of an engine that remember a whole window of those
					   at the same time */
	URN_FLOW_AGE_SHIFT = 20,	/* ns to units of urn_flow.tx_born */
	URN_FLOW_TIMEOUT = 16,		/* code of the timeout: 268 ms (IBTA 9.7.6.1.3) */
	URN_FLOW_RETRIES = 7,
	/* The key of a flow besides the node's address: 8 bits. */
	URN_FLOW_KEY_ENGINE = 0x0f,    /* engine of the node */
	URN_FLOW_KEY_VIA_FIRST = 0x10, /* from that engine to our first one; also a bit of the top
					  byte of urn_flow_hdr.psn */
	URN_FLOW_KEY_OWN = 0x60,       /* index of our own address, by which the node knows us */
	URN_FLOW_KEY_OWN_SHIFT = 5,
	URN_FLOW_KEY_TO_FIRST = 0x80, /* to the node's first engine, whichever that is */
};

#define URN_FLOW_RENEW_NS 20000000000ull /* ns without a packet after which a sender begins a new epoch */
#define URN_FLOW_AGE_NS 40000000000ull   /* ns without a packet either way after which a flow is forgotten */
#define URN_FLOW_NOBODY_NS 1000000ull	 /* ns ... if the node never answered */
#define URN_FLOW_CROWD_NS                                                                     \
	250000000ull /* ns without a packet either way after which a flow goes to rest if its \
			maker has many */
#define URN_FLOW_ASK_NS 2500000000ull    /* ns without a MAC address after which there is no such node: longer than all tries for it take */
#define URN_FLOW_YOUNG_NS (URN_FLOW_YOUNG_MS * 1000000ull)
#define URN_FLOW_DOUBT_NS 5000000000ull  /* ns without an accepted packet after which an older epoch is believed */
#define URN_FLOW_STALL_NS                                                                          \
	10000000000ull /* ns without a part after which a message gives its place to another; also \
			  allowance of a slow one */
#define URN_FLOW_KEEP_NS \
	10000000000ull /* ns without a long message after which buffers go back to the system */

/* Positions of a message in its flow; urn_flow_msg.state. */
enum urn_flow_msg_state {
	URN_FLOW_MSG_QUEUED, /* in shorts or longs of its strand; pprev is valid */
	URN_FLOW_MSG_ACTIVE, /* in active of its flow; pprev is valid */
	URN_FLOW_MSG_SENT,   /* whole, in a packet; work is valid */
	URN_FLOW_MSG_PARTS,  /* all parts were sent: in packets alone */
};

/* Positions of a packet; urn_flow_packet.state. */
enum urn_flow_packet_state {
	URN_FLOW_OUT,   /* in flight */
	URN_FLOW_LOST,  /* to be sent again */
	URN_FLOW_ACKED, /* acknowledged; packets before it are not */
};

enum urn_flow_flag {
	URN_FLOWF_ACK = 1 << 0,	     /* an acknowledgement is owed */
	URN_FLOWF_MARKED = 1 << 1,   /* packets came with a mark since the last one */
	URN_FLOWF_LOOP = 1 << 2,     /* the node is this adapter */
	URN_FLOWF_MAC = 1 << 3,	     /* tmpl has the node's MAC address */
	URN_FLOWF_RX = 1 << 4,	     /* made by a packet that came: counts in urn_flows.rx */
	URN_FLOWF_TX = 1 << 5,	     /* tmpl, tx and tx_epoch are made */
	URN_FLOWF_ACK_LATE = 1 << 7, /* the acknowledgement let data go first, in the turn before */
	URN_FLOWF_STALLED = 1 << 8,  /* a message stalled and lost its place; stalled_id is valid */
	URN_FLOWF_ASKS = 1 << 9,     /* nothing is under way, and the MAC address is waited for;
					asked_at is valid */
	URN_FLOWF_DOUBTED = 1 << 10, /* rx_epoch may be forged: no packet of it named our start;
					counts in urn_flows.doubted */
	URN_FLOWF_UNSURE = 1 << 11,  /* the node answered, and may have been started since the
					epoch's first packet; no tx_start */
	URN_FLOWF_SENT = 1 << 6,     /* data was sent since the acknowledgement is owed; valid with
					URN_FLOWF_ACK */
};

/* Bits of urn_source.flags of a strand, besides those of sources. */
enum urn_flow_strand_flag {
	URN_STRAND_READY = 1 << 16,   /* in urn_flow.ready */
	URN_STRAND_GATHERS = 1 << 17, /* in the list urn_tp.gathered; with URN_SOURCE_AWAY */
	URN_STRAND_DRY = 1 << 18,     /* in the list urn_tp_share.dry; with URN_SOURCE_AWAY */
	URN_STRAND_SHARED = 1 << 20,  /* a packet with messages of other owners was lost: its turn
					 comes before those of the owner's other strands */
	URN_STRAND_ORPHAN =
		1 << 19, /* its owner has no message in it, and may be gone: in no bucket */
};

/* A queue of messages. */
struct urn_flow_queue {
	struct urn_flow_msg *head;
	struct urn_flow_msg **tail; /* link behind the last one */
};

/* A long message that is put together. */
struct urn_flow_whole {
	SLIST_ENTRY(urn_flow_whole)
	link; /* in the flow's list, the newest first; or in urn_flows.kept */
	TAILQ_ENTRY(urn_flow_whole) turn; /* in urn_flows.whole */
	struct urn_flow *flow; /* the flow that it came by */
	uint64_t since, at;    /* ns: when the first part came, and the last */
	uint64_t qid, src_qid;
	uint32_t id;       /* number of the message, among those of the flow */
	uint32_t len, got; /* bytes of the message; bytes that came */
	uint64_t edges; /* ends of the parts that came, less their beginnings: sum of secret numbers
			   (flow_whole.c) */
	uint8_t kind;	/* kind of the buffer, which this struct begins; the same for its life */
	uint8_t data[] __attribute__((aligned(64))); /* room for len bytes, or for more */
};

SLIST_HEAD(urn_flow_whole_list, urn_flow_whole);

/* A node with messages that are put together. */
struct urn_flow_node {
	uint8_t gid[16];
	uint32_t wholes; /* messages, of all its flows; not 0 */
};

/* A packet with refused messages. */
struct urn_flow_refusal {
	uint64_t codes; /* by segment, four bits each from the lowest on: enum urn_msg_code; 0: there is no such segment */
	uint32_t psn : 24;
	uint32_t told : 1; /* an acknowledgement with the codes was sent since the packet came last
			    */
	uint32_t in : 1;   /* ... the one that is being made has them; valid from urn_flow_say() to
			      urn_flow_put_said() */
} __attribute__((packed, aligned(4)));
_Static_assert(sizeof(struct urn_flow_refusal) == 12, "memory of refusals");

/* Packets with refused messages, until the sender says that it knows. */
struct urn_flow_refusals {
	uint32_t una;  /* oldest PSN that the sender has not seen acknowledged, as of the packet that came last */
	uint16_t n;    /* entries of `of`, in the order in which the packets came; not 0 */
	uint16_t room; /* places of `of`: URN_FLOW_REFUSALS or URN_FLOW_WINDOW */
	struct urn_flow_refusal of[];
};

/* Contents of an acknowledgement. */
struct urn_flow_said {
	uint64_t bitmap[URN_FLOW_WINDOW / 64]; /* bit PSN % 256: came ahead of expected */
	uint32_t expected; /* all PSNs before this one came */
	uint16_t n;        /* packets with refused messages, at most URN_FLOW_REFUSED_MAX */
	bool more;         /* new refusals found no place */
};

/*
 * A strand: the messages and packets of one owner in a flow. The strand is the source of the turns
 * in which the owner's messages are sent, in the owner's share; so a client gets the same turns
 * with one flow as with thousands. A strand lives while messages or packets are in it.
 */
struct urn_flow_strand {
	struct urn_source_ops_user user; /* first: the place in the schedule; share: the owner's */
	struct urn_flow *flow;		 /* the flow; the same for the strand's life */
	struct urn_flow_strand
		*hash_next; /* in its bucket, or among spare ones; not valid for an orphan */
	struct urn_flow_queue shorts,
		longs; /* messages not sent yet; long ones wait until few are active */
	TAILQ_ENTRY(urn_flow_strand) ready; /* in urn_flow.ready; valid with URN_STRAND_READY */
	uint32_t msgs;	 /* messages of the owner that the flow has, in any position */
	uint8_t packets; /* packets sent in its turns, and not acknowledged: counted in the share's
			    work */
	uint8_t lost;	 /* ... those of them that are to be sent again */
	uint8_t active;	 /* messages of it in urn_flow.active */
	uint8_t gathered_n : 7; /* messages since its last turn, at most URN_FLOW_SEGMENTS */
	uint8_t gone : 1;	/* a message was let go midway: its turn sends urn_flow.gone */
};
_Static_assert(sizeof(struct urn_flow_strand) <= 128, "memory of an owner in a flow");
_Static_assert(URN_FLOW_WINDOW - 1 <= UINT8_MAX, "urn_flow_strand.packets");

TAILQ_HEAD(urn_flow_strands, urn_flow_strand);

struct urn_flow {
	struct urn_source_ops_user
		user; /* first: waits for the pace of the flow; no data is sent in its turns */
	struct urn_flow *hash_next;      /* in its bucket */
	struct urn_flow *ack_next;	 /* in urn_flows.acks; valid with URN_FLOWF_ACK */
	uint8_t gid[16];                 /* the node */
	TAILQ_ENTRY(urn_flow) of_maker;	 /* in urn_flow_maker.flows; valid with maker */

	/* ---- sending */
	struct urn_psn_tx tx;      /* packets under way, one work each */
	struct urn_tmpl tmpl;      /* headers to the node; valid with URN_FLOWF_TX */
	uint32_t strands;	   /* strands of the flow */
	uint64_t tx_epoch; /* valid with URN_FLOWF_TX; 0: none yet; else the epoch before the flow
			      was at rest */
	uint64_t tx_at;            /* ns: when a packet was sent or acknowledged last */
	struct urn_flow_strands ready; /* strands with something to send: those with lost packets
					* first, then the one that sent longest ago */
	struct urn_flow_strand
		*strand; /* the strand that was found last; NULL: none, or it has gone */
	struct urn_flow_queue
		active;	   /* long messages that are being sent, of all strands, the oldest first */
	uint32_t tx_start; /* start of the node, which was before the epoch's first packet; 0: not
			      known yet */
	uint32_t tx_born;          /* units of 2^20 ns, wraps: when the epoch's first packet was sent; 0: none was */
	uint32_t sent_no;          /* transmissions so far */
	uint32_t next_id;          /* id of the long message that was begun last */
	uint32_t gone[URN_FLOW_ACTIVE]; /* ids of long messages that were let go midway: the node is
					   to be told; gone_n are valid */

	/* ---- receiving */
	uint64_t rx_epoch;         /* 0: nothing came yet */
	uint64_t rx_at;            /* ns: when a packet was accepted last */
	uint64_t bitmap[URN_FLOW_WINDOW / 64]; /* bit PSN % 256: came ahead of expected */
	struct urn_flow_refusals *refusals;    /* NULL: none */
	struct urn_flow_whole_list wholes;
	uint64_t *refused_ids; /* owner; URN_FLOW_IDS bits, id % URN_FLOW_IDS: the long message was
				  refused; NULL: none */
	uint32_t last_id; /* newest id of a long message that came; 0: none did. Bits are of ids up
			     to it */
	uint32_t expected;         /* first PSN that has not come */
	uint32_t stalled_id;       /* the largest id of a message that lost its place; valid with URN_FLOWF_STALLED */

	/* ---- both */
	uint8_t key;               /* URN_FLOW_KEY_ bits */
	uint8_t active_n;          /* messages in active */
	uint8_t asks; /* packets repeated because tx_start stayed unknown, at most URN_FLOW_ASKS */
	uint8_t gone_n;            /* entries of gone; with the active messages that began, at most URN_FLOW_ACTIVE */
	uint8_t ack_mac[6];        /* MAC address that the last data packet came from */
	uint16_t flags;            /* enum urn_flow_flag */
	uint16_t mac_gen;          /* urn_tp.mac_gen when the MAC was looked up; valid with URN_FLOWF_MAC */
	uint16_t congestion;       /* state of congestion, by index; 0: none */
	uint16_t out, lost;        /* packets in flight; packets to be sent again */
	uint16_t wholes_n;         /* entries of wholes */
	uint16_t maker; /* bucket of the owner whose message made the flow, and 1: the flow is in
			   urn_flows.maker there; 0: none */
	uint16_t asked_at;         /* units of 2^20 ns, wraps: when the wait for the MAC address began; valid with URN_FLOWF_ASKS */
};
_Static_assert(sizeof(struct urn_flow) <= 512, "memory of an active flow");
_Static_assert(URN_FLOW_WINDOW - 1 <= UINT8_MAX, "urn_flow_msg.out");

/* A bucket of owners: flows that their messages made. */
struct urn_flow_maker {
	TAILQ_HEAD(, urn_flow)
	flows;		/* valid after the first one; in the order in which they were
			   made, or last looked at for room */
	uint32_t made;	/* number of flows, at most urn_flows.owner_max */
	uint32_t rests; /* flows at rest */
};

/* All flows of a transport. */
struct urn_flows {
	struct urn_flow **bucket;  /* URN_FLOW_BUCKETS */
	uint64_t looped;           /* bit of mbuf.ol_flags: the frame is one that we sent to ourselves */
	uint64_t epochs;           /* epochs given out */
	uint64_t born;             /* ns: start of this transport */
	uint32_t n, rx;            /* flows, and those with URN_FLOWF_RX; n is read by others */
	uint32_t doubted;          /* flows with URN_FLOWF_DOUBTED */
	uint32_t owner_max;	   /* flows of a maker: URN_FLOWS_OWNER, less in tests */
	struct urn_flow_maker maker[URN_FLOW_MAKERS]; /* by bucket of the owner */
	TAILQ_HEAD(, urn_flow_rest)
	resting; /* flows at rest, the one that has rested longest first; owner */
	struct urn_flow_rest **rest_bucket; /* URN_FLOW_BUCKETS; owner */
	uint32_t rests;			    /* flows at rest */
	uint32_t rests_max;		    /* ... at most: URN_FLOWS_RESTS, less in tests */
	struct urn_source_timer
		rest_timer; /* when the first of these is forgotten; started with resting */
	struct urn_source_ops_user rester; /* the source of that timer; has no turns */
	struct urn_flow *taking;   /* flow whose packet is being taken: it does not go to rest
				      meanwhile; NULL: none */
	uint32_t wholes;           /* messages that are put together */
	TAILQ_HEAD(, urn_flow_whole) whole; /* ... those, the one that began first in front */
	struct urn_flow_node
		node[URN_FLOW_WHOLES]; /* nodes with messages among these; nodes are valid */
	uint32_t nodes;
	uint32_t kept_n; /* buffers that are kept */
	struct urn_flow_whole_list
		kept[URN_FLOW_KINDS]; /* buffers without a message, by kind; owner */
	uint64_t kept_at;	      /* ns: when a buffer was taken last */
	uint64_t secret;	      /* for place() (flow_whole.c): nobody else knows it */
	uint32_t kept_bytes;	      /* bytes of messages that those have room for, at most
					 URN_FLOW_KEPT_BYTES */
	struct urn_flow *last;     /* the flow that was sent to last; NULL: none, or it has gone */
	struct urn_flow *found;    /* the flow that was found last; NULL: none, or it has gone */
	struct urn_flow_strand **strand_bucket; /* URN_FLOW_STRAND_BUCKETS; owner */
	struct urn_flow_strand *spare_strands;	/* strands without an owner, by hash_next; owner */
	uint32_t spare_strands_n;		/* ... how many */
	struct urn_source_ops_user teller;	/* the turns of acknowledgements */
	struct urn_tp_share telling;		/* ... their place among the clients */
	struct urn_flow *acks_last;		/* the last one of urn_tp.acks; valid with these */
	uint32_t acks_n,
		acks_old; /* flows there; those of them, from the first on, since an earlier turn */
	struct urn_flow_refusals *spare; /* taken when a message is refused; NULL: none now */
	struct urn_flow_refusals *spare_large; /* the same with places for a whole window */
	uint32_t large;            /* flows with such places, at most URN_FLOW_REFUSALS_LARGE */
};

static inline const struct urn_flow_user *
urn_flow_user(const struct urn_tp *tp)
{
	return tp->cfg.flow_user;
}

static inline struct urn_flow *
urn_flow_of(struct urn_source *src)
{
	return (struct urn_flow *)src;
}

static inline void
urn_flow_queue_init(struct urn_flow_queue *q)
{
	q->head = NULL;
	q->tail = &q->head;
}

static inline struct urn_flow_strand *
urn_flow_strand_of(struct urn_source *src)
{
	return (struct urn_flow_strand *)src;
}

/* True when something is to be sent in the turns of a strand that was not sent before. */
static inline bool
urn_flow_strand_has_new(const struct urn_flow_strand *l)
{
	return l->shorts.head || l->active || l->longs.head ||
	       (unlikely(l->gone) && l->flow->gone_n);
}

/* True when the node accepted nothing of this life of the sending end and sent nothing: the flow
 * knows nothing. */
static inline bool
urn_flow_is_unanswered(const struct urn_flow *f)
{
	return !f->tx_start && !f->rx_epoch;
}

/* True when something is to be sent, new or again. */
static inline bool
urn_flow_has_work(const struct urn_flow *f)
{
	return !TAILQ_EMPTY(&f->ready);
}

/* ---- flow.c */

/* Make the flows of a transport, or none without a user. returns: 0 or -1: no memory */
int urn_flows_init(struct urn_tp *tp);
void urn_flows_free(struct urn_tp *tp);
/* The time now, ns: later than the turn's, which may have begun long ago. Not for each packet. */
static inline uint64_t
urn_flow_clock(const struct urn_tp *tp)
{
	return tp->cfg.clock ? tp->cfg.clock(tp->cfg.clock_ctx) : tp->now;
}

/* The flow with this key; NULL: none. */
struct urn_flow *urn_flow_find(struct urn_tp *tp, const uint8_t gid[16], uint8_t key);
/* Make a flow, which is not there. flags: 0 or URN_FLOWF_RX. NULL: no room (counted) */
struct urn_flow *urn_flow_make(struct urn_tp *tp, const uint8_t gid[16], uint8_t key, uint16_t flags);
/* The epoch that a flow receives is in doubt, or not any more. */
void urn_flow_doubt(struct urn_tp *tp, struct urn_flow *f, bool doubted);
/* The own address of a flow. */
static inline const uint8_t *
urn_flow_own(const struct urn_tp *tp, const struct urn_flow *f)
{
	return tp->cfg.gid[(f->key & URN_FLOW_KEY_OWN) >> URN_FLOW_KEY_OWN_SHIFT];
}

/* Forget a flow without messages. */
void urn_flow_free(struct urn_tp *tp, struct urn_flow *f);
void urn_flow_put(struct urn_flow_queue *q, struct urn_flow_msg *m, enum urn_flow_msg_state state);
void urn_flow_take(struct urn_flow_queue *q, struct urn_flow_msg *m);
/* Give the answer to the user. */
void urn_flow_answer(struct urn_tp *tp, struct urn_flow_msg *m, uint8_t code);
/* Begin a new epoch; no packet is under way. */
void urn_flow_renew(struct urn_tp *tp, struct urn_flow *f);
/*
 * The packets under way are void: their messages fail. all: messages that were not sent fail, too. The
 * flow begins a new epoch.
 */
void urn_flow_fail(struct urn_tp *tp, struct urn_flow *f, uint8_t code, bool all);

/* ---- flow_strand.c */

/* The strand of an owner in a flow, made if there is none. owner: NULL: nobody. NULL: no memory */
struct urn_flow_strand *urn_flow_strand_get(struct urn_tp *tp, struct urn_flow *f,
					    struct urn_tp_share *owner);
/* Put a message, with its strand, into the strand's queue; the strand's turn is the caller's. */
void urn_flow_queue(const struct urn_tp *tp, struct urn_flow_msg *m);
/* Take a message that was not sent, or not whole, out of its queue; urn_flow_strand_settle() is to
 * follow. */
void urn_flow_unqueue(const struct urn_tp *tp, struct urn_flow_msg *m);
/* The strand got something to send. first: in front of the others */
void urn_flow_strand_ready(struct urn_flow_strand *l, bool first);
/*
 * A strand lost a message, a packet, or something to send: it leaves the lists that it has no
 * business in, and goes when it is empty. Without messages it belongs to nobody, for its client may
 * go.
 */
void urn_flow_strand_settle(struct urn_tp *tp, struct urn_flow_strand *l);
/* A strand leaves the schedule, and each list of those that wait for a turn. */
void urn_flow_strand_leave(struct urn_tp *tp, struct urn_flow_strand *l);
/* A packet, acknowledged or given up, is none of its strand any more; the strand may go. */
void urn_flow_strand_done(struct urn_tp *tp, struct urn_flow *f, struct urn_work *w);
/* Let strands of the flow have a turn: those with lost packets, and as many as the window has room
 * for. */
void urn_flow_wake(struct urn_tp *tp, struct urn_flow *f);
/* Free all strands that have an owner, and the spare ones. */
void urn_flows_free_strands(struct urn_flows *fl);
/* There are fewer flows: keep fewer spare strands. */
void urn_flows_trim_strands(struct urn_flows *fl);
/* Free a strand of a flow that ends with its transport; no list has the strand. */
void urn_flow_strand_free(struct urn_tp *tp, struct urn_flow_strand *l);

/* ---- flow_dry.c */

/* True when the owner of a strand may take one more entry of the pool for it. */
bool urn_flow_may_take(const struct urn_tp *tp, const struct urn_flow_strand *l);
/* The pool has no work for the owner of a strand, which is in no list: the strand waits. */
void urn_flow_dry(struct urn_tp *tp, struct urn_flow_strand *l);
/* Let strands that wait for work have a turn if there is some; asked in each turn with such
 * strands. */
void urn_flows_refill(struct urn_tp *tp);
/* A strand that waits for work waits no longer. */
void urn_flow_dry_end(struct urn_tp *tp, struct urn_flow_strand *l);

/* ---- flow_tx.c */

/* Packets that the window has room for. */
uint32_t urn_flow_room(const struct urn_tp *tp, const struct urn_flow *f);

/* Serve a strand when all sources of this turn have been served, unless a list has it already. */
void urn_flow_gather(struct urn_tp *tp, struct urn_flow_strand *l);
/* Let strands send what they got from the sources that were served in this turn. */
void urn_flows_send(struct urn_tp *tp);
/* Serve a strand; urn_source_ops.serve. */
bool urn_flow_serve(struct urn_tp *tp, struct urn_source *src);

/* ---- flow_frame.c */

/* Bytes that a short message takes in a packet. */
static inline uint32_t
urn_flow_seg_bytes(const struct urn_flow_msg *m)
{
	return (uint32_t)sizeof(struct urn_flow_seg) + urn_flow_pad(m->len);
}

/* Send a frame of a flow, which is complete. loop: to this adapter itself */
void urn_flow_emit(struct urn_tp *tp, const struct urn_txd *d, bool loop);
/*
 * Send a packet. again: the packet was sent before. Messages whose bytes are not there any more are
 * answered, and void in the packet. returns: false: no buffer
 */
bool urn_flow_send_packet(struct urn_tp *tp, struct urn_flow *f, struct urn_work *w, bool again);
/* Give the work of a packet back. */
void urn_flow_work_put(struct urn_tp *tp, struct urn_work *w);
/* A packet in flight is to be sent again. */
void urn_flow_lose(struct urn_flow *f, struct urn_work *w);

/* ---- flow_rx.c */

/* A packet of a flow came, for this engine; takes m. */
void urn_flow_accept(struct urn_tp *tp, struct rte_mbuf *m);
/* Forget everything about a direction: refusals, messages that are put together. */
void urn_flow_forget_rx(struct urn_tp *tp, struct urn_flow *f);

/* ---- flow_refuse.c */

/*
 * True when the refusals of packet `psn` can be noted. The last place is kept for the first packet that has not
 * come: with its acknowledgement the sender moves on, and places get free.
 */
bool urn_flow_refusals_room(struct urn_tp *tp, struct urn_flow *f, uint32_t psn);
/* Note the codes of a packet, by segment; there is room. */
void urn_flow_note_refusals(struct urn_tp *tp, struct urn_flow *f, uint32_t psn, const uint8_t code[URN_FLOW_SEGMENTS]);
/* The sender knows the answers to packets before una. The flow has refusals, perhaps none afterwards. */
void urn_flow_forget_refusals(struct urn_tp *tp, struct urn_flow *f, uint32_t una);
/* A packet came once more: its sender may have missed the acknowledgement. The flow has refusals. */
void urn_flow_tell_again(struct urn_flow *f, uint32_t psn);
/* Choose the contents of the next acknowledgement. */
void urn_flow_say(struct urn_flow *f, struct urn_flow_said *s);
/* Write the refusals that were chosen, which count as told from here. to: room for urn_flow_said.n */
void urn_flow_put_said(struct urn_flow *f, struct urn_flow_refused *to);
/* Forget all refusals of a flow. */
void urn_flow_drop_refusals(struct urn_tp *tp, struct urn_flow *f);
/* The same with those of a flow at rest. */
void urn_flows_put_refusals(struct urn_flows *fl, struct urn_flow_refusals *r);
void urn_flows_free_refusals(struct urn_flows *fl);

/* ---- flow_whole.c */

/* No code of a message: the packet is not accepted, and comes again. */
enum { URN_FLOW_NO_ROOM = 0xff };

/*
 * Take a part of a long message. from: qid is set when the message is whole. returns: URN_MSG_DONE,
 * or the code that the message is refused with, or URN_FLOW_NO_ROOM
 */
uint8_t urn_flow_take_part(struct urn_tp *tp, struct urn_flow *f, struct urn_flow_from *from,
			   const struct urn_flow_seg *s);
/* The sender let go of a long message midway. Parts that were overtaken are not taken. returns: as
 * urn_flow_take_part() */
uint8_t urn_flow_let_go(struct urn_tp *tp, struct urn_flow *f, const struct urn_flow_seg *s);
/* Forget the messages of a flow that are put together, and those that were refused. */
void urn_flow_drop_wholes(struct urn_tp *tp, struct urn_flow *f);
/* Give all buffers without a message back to the system. */
void urn_flows_free_kept(struct urn_flows *fl);
/* The same if none was needed for URN_FLOW_KEEP_NS; asked when a flow's timer is due, the last
 * flow's before it goes. */
void urn_flows_age_kept(struct urn_tp *tp);

/* ---- flow_ack.c */

/* A flow owes an acknowledgement. */
void urn_flow_owe(struct urn_tp *tp, struct urn_flow *f);
/* Prepare the turns of acknowledgements. */
void urn_flows_init_acks(struct urn_flows *fl);
/*
 * Send acknowledgements at the end of a turn. Data goes first, for a turn at most: a program that
 * answers a message waits for the answer's way, and the sender of the message for both. Those
 * without room have turns of their own.
 */
void urn_flows_tell(struct urn_tp *tp);
/* An acknowledgement came from a node; own: URN_FLOW_KEY_OWN bits of the address it went to; takes m. */
void urn_flow_acked(struct urn_tp *tp, struct rte_mbuf *m, const uint8_t gid[16], uint8_t own);
/*
 * Ask the sender of a packet of data, of which nothing is kept, to repeat the packet with our
 * start: acknowledge nothing. The sender of a packet with a forged source does not get the
 * question. engine: the one that the packet named; una: oldest PSN that the sender has not seen
 * acknowledged
 */
void urn_flow_ask(struct urn_tp *tp, struct rte_mbuf *m, const uint8_t gid[16], uint8_t key,
		  uint32_t engine, uint32_t una);
/* Data with this key and epoch, network order, named a start of ours that is over: say so. */
void urn_flow_reset(struct urn_tp *tp, struct rte_mbuf *m, const uint8_t gid[16], uint8_t key,
		    uint32_t engine);
/*
 * Answer a packet of data for an engine that this adapter does not have: the packet came, and none
 * of its messages has a queue. No flow is made or needed. key: as of a flow; engine: the one that
 * the packet named
 */
void urn_flow_refuse(struct urn_tp *tp, struct rte_mbuf *m, const uint8_t gid[16], uint8_t key,
		     uint32_t engine);
/* Our data was answered so; takes m. */
void urn_flow_was_reset(struct urn_tp *tp, struct rte_mbuf *m, const uint8_t gid[16], uint8_t own);

/* ---- flow_timer.c */

/* Begin to wait for an acknowledgement anew. */
void urn_flow_arm(struct urn_tp *tp, struct urn_flow *f);
/* All packets in flight are to be sent again. */
void urn_flow_lose_all(struct urn_tp *tp, struct urn_flow *f);
/* Nothing is under way: look at the flow again when it may be forgotten. */
void urn_flow_age(struct urn_tp *tp, struct urn_flow *f);
/* The timer of a flow is due. */
void urn_flow_due(struct urn_tp *tp, struct urn_flow *f);

#endif
