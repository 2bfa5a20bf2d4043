/* SPDX-License-Identifier: BSD-3-Clause */
/* State that flows keep, and their bounds (flow_priv.h). */
#ifndef URN_TRANSPORT_FLOW_STATE_H
#define URN_TRANSPORT_FLOW_STATE_H

#include "base/fair.h"
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
	URN_FLOW_MAKERS = 4096,	  /* buckets of owners, and of users, for the bounds of flows */
	URN_FLOW_BUCKETS = 16384,
	URN_FLOW_STRAND_BUCKETS = 16384,
	URN_FLOW_SPARE_STRANDS = 64, /* strands that are kept for reuse */
	URN_FLOW_SPARE_FLOWS = 4,    /* ... and one more for so many flows */
	URN_FLOW_FRAMES = 16,	     /* packets of a strand in a turn */
	URN_FLOW_LOOK = 16,  /* strands that are looked at for messages that share a packet */
	URN_FLOW_ACKS = 64,  /* acknowledgements in a turn of theirs; of those that wait for their
				priority, looked at in a turn of the engine */
	URN_FLOW_FAILS = 64, /* messages of a flow that failed, answered in a turn of a strand */
	URN_FLOW_DRY = 16,   /* owners without room that a turn looks at, and strands of each */
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
	URN_FLOW_KINDS = 8, /* sizes of the buffers for these: 8 KiB, 16 KiB, ... 1 MiB, and 4 KiB
			       for a header each */
	URN_FLOW_KEPT_BYTES =
		8 * URN_MSG_MAX, /* bytes of buffers without a message that an engine keeps */
	URN_FLOW_REFUSALS = 6,	 /* packets with refused messages that a flow remembers */
	URN_FLOW_REFUSALS_LARGE = 2048, /* flows of an engine that remember a whole window of those
					   at the same time */
	URN_FLOW_PROBE_TRIES = 3,	/* transmissions of a probe in its length */
	URN_FLOW_PROBE_AGAIN = 1 << 16, /* packets from a probe that was lost to the next */
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

#define URN_FLOW_RENEW_NS \
	20000000000ull /* ns without a packet after which a sender begins a new epoch */
#define URN_FLOW_AGE_NS \
	40000000000ull /* ns without a packet either way after which a flow is forgotten */
#define URN_FLOW_NOBODY_NS 1000000ull /* ns ... if the node never answered */
#define URN_FLOW_CROWD_NS                                                                     \
	250000000ull /* ns without a packet either way after which a flow goes to rest if its \
			maker has many */
#define URN_FLOW_ASK_NS                                                                          \
	2500000000ull /* ns without a MAC address after which there is no such node: longer than \
			 all tries for it take */
#define URN_FLOW_YOUNG_NS (URN_FLOW_YOUNG_MS * 1000000ull)
#define URN_FLOW_DOUBT_NS \
	5000000000ull /* ns without an accepted packet after which an older epoch is believed */
#define URN_FLOW_STALL_NS                                                                          \
	10000000000ull /* ns without a part after which a message gives its place to another; also \
			  allowance of a slow one */
#define URN_FLOW_KEEP_NS \
	10000000000ull /* ns without a long message after which buffers go back to the system */

/* Positions of a message in its flow; urn_flow_msg.state. */
enum urn_flow_msg_state {
	URN_FLOW_MSG_QUEUED, /* in shorts or failing of its strand; pprev is valid */
	URN_FLOW_MSG_LONG,   /* in longs of its strand; pprev is valid */
	URN_FLOW_MSG_ACTIVE, /* in active of its flow; pprev is valid */
	URN_FLOW_MSG_SENT,   /* whole, in a packet; work is valid */
	URN_FLOW_MSG_PARTS,  /* all parts were sent: in packets alone */
};

/* Positions of a packet; urn_flow_packet.state. */
enum urn_flow_packet_state {
	URN_FLOW_OUT,	/* in flight */
	URN_FLOW_LOST,	/* to be sent again */
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
	URN_FLOWF_PROBE = 1 << 12,   /* a probe is to be sent */
	URN_FLOWF_PROBED = 1 << 13,  /* a probe is under way */
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
	URN_STRAND_FAILS = 1 << 21,   /* in urn_flow.failing, and in the schedule or being served:
					 its turns answer messages of a failure, and send nothing */
	URN_STRAND_AT_ONCE = 1 << 22, /* its next turn waits for no messages: it waited long, for
					 the end of a pause, or for others of its owner */
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
	struct urn_flow *flow;		  /* the flow that it came by */
	uint64_t since, at;		  /* ns: when the first part came, and the last */
	uint64_t qid, src_qid;
	uint32_t id;	   /* number of the message, among those of the flow */
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
	uint64_t codes; /* by segment, four bits each from the lowest on: enum urn_msg_code; 0:
			   there is no such segment */
	uint32_t psn : 24;
	uint32_t told : 1; /* an acknowledgement with the codes was sent since the packet came last
			    */
	uint32_t in : 1;   /* ... the one that is being made has them; valid from urn_flow_say() to
			      urn_flow_put_said() */
} __attribute__((packed, aligned(4)));
_Static_assert(sizeof(struct urn_flow_refusal) == 12, "memory of refusals");

/* Packets with refused messages, until the sender says that it knows. */
struct urn_flow_refusals {
	uint32_t una; /* oldest PSN that the sender has not seen acknowledged, as of the packet that
			 came last */
	uint16_t n;   /* entries of `of`, in the order in which the packets came; not 0 */
	uint16_t room; /* places of `of`: URN_FLOW_REFUSALS or URN_FLOW_WINDOW */
	struct urn_flow_refusal of[];
};

/* Contents of an acknowledgement. */
struct urn_flow_said {
	uint64_t bitmap[URN_FLOW_WINDOW / 64]; /* bit PSN % 256: came ahead of expected */
	uint32_t expected;		       /* all PSNs before this one came */
	uint16_t n; /* packets with refused messages, at most URN_FLOW_REFUSED_MAX */
	bool more;  /* new refusals found no place */
};

/*
 * A strand: the messages and packets of one owner in a flow. The strand is the source of the turns
 * in which the owner's messages are sent, in the owner's share; so a client gets the same turns
 * with one flow as with thousands. A strand lives while messages or packets are in it, and an empty
 * one as long as it is urn_flow.strand.
 */
struct urn_flow_strand {
	struct urn_source_ops_user user; /* first: the place in the schedule; share: the owner's,
					    an address that is not followed in an empty strand */
	struct urn_flow *flow;		 /* the flow; the same for the strand's life */
	struct urn_flow_strand
		*hash_next; /* in its bucket, or among spare ones; not valid for an orphan */
	struct urn_flow_queue shorts,
		longs; /* messages not sent yet; long ones wait until few are active */
	TAILQ_ENTRY(urn_flow_strand)
	ready; /* in urn_flow.ready, with URN_STRAND_READY, or in
		* urn_flow.failing, with URN_STRAND_FAILS */
	/* Valid with URN_STRAND_FAILS; user.source.rest is the code of the failure then. */
	struct urn_flow_msg *failing; /* messages in no packet that are to be answered, the first of
					 a list; NULL: none */
	struct urn_work *failed;      /* packets whose messages are to be answered, the last of a
					 ring by next; NULL: none */
	uint32_t msgs;		      /* messages of the owner that the flow has, in any position */
	uint8_t packets; /* packets sent in its turns that are neither acknowledged nor answered:
			    counted in the share's work */
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
	struct urn_flow *hash_next;	/* in its bucket */
	struct urn_flow *ack_next;	/* in urn_flows.acks; valid with URN_FLOWF_ACK */
	uint8_t gid[16];		/* the node */
	TAILQ_ENTRY(urn_flow) of_maker; /* in urn_flow_maker.flows; valid with maker */

	/* ---- sending */
	struct urn_psn_tx tx; /* packets under way, one work each */
	struct urn_tmpl tmpl; /* headers to the node; valid with URN_FLOWF_TX */
	uint32_t strands;     /* strands of the flow */
	uint64_t tx_epoch; /* valid with URN_FLOWF_TX; 0: none yet; else the epoch before the flow
			      was at rest */
	uint64_t tx_at;	   /* ns: when a packet was sent or acknowledged last */
	struct urn_flow_strands ready;	 /* strands with something to send: those with lost packets
					  * first, then the one that sent longest ago */
	struct urn_flow_strands failing; /* strands with messages of a failure to answer */
	struct urn_flow_strand *strand;	 /* the strand that was found last, perhaps an empty one;
					    NULL: none, or it  has gone */
	struct urn_flow_queue
		active;	   /* long messages that are being sent, of all strands, the oldest first */
	uint32_t tx_start; /* start of the node, which was before the epoch's first packet; 0: not
			      known yet */
	uint32_t tx_born;  /* units of 2^20 ns, wraps: when the epoch's first packet was sent; 0:
			      none was */
	uint32_t sent_no;  /* transmissions so far */
	uint32_t next_id;  /* id of the long message that was begun last */
	uint32_t probe_no; /* sent_no when a probe was lost last */
	uint16_t mtu;  /* bytes of a packet behind the flow header, at most; valid with URN_FLOWF_TX
			*/
	uint16_t told; /* ... that node and port carry, a multiple of 4; 0: the node did not tell in
			  this epoch */
	uint32_t gone[URN_FLOW_ACTIVE]; /* ids of long messages that were let go midway: the node is
					   to be told; gone_n are valid */

	/* ---- receiving */
	uint64_t rx_epoch;		       /* 0: nothing came yet */
	uint64_t rx_at;			       /* ns: when a packet was accepted last */
	uint64_t bitmap[URN_FLOW_WINDOW / 64]; /* bit PSN % 256: came ahead of expected */
	struct urn_flow_refusals *refusals;    /* NULL: none */
	struct urn_flow_whole_list wholes;
	uint64_t *refused_ids; /* owner; URN_FLOW_IDS bits, id % URN_FLOW_IDS: the long message was
				  refused; NULL: none */
	uint32_t last_id;  /* newest id of a long message that came; 0: none did. Bits are of ids up
			      to it */
	uint32_t expected; /* first PSN that has not come */
	uint32_t stalled_id; /* the largest id of a message that lost its place; valid with
				URN_FLOWF_STALLED */

	/* ---- both */
	uint8_t key;	  /* URN_FLOW_KEY_ bits */
	uint8_t active_n; /* messages in active */
	uint8_t asks; /* packets repeated because tx_start stayed unknown, at most URN_FLOW_ASKS */
	uint8_t gone_n;	    /* entries of gone; with the active messages that began, at most
			       URN_FLOW_ACTIVE */
	uint8_t ack_mac[6]; /* MAC address that the last data packet came from */
	uint16_t flags;	    /* enum urn_flow_flag */
	uint16_t mac_gen; /* urn_tp.mac_gen when the MAC was looked up; valid with URN_FLOWF_MAC */
	uint16_t congestion; /* state of congestion, by index; 0: none */
	uint16_t out, lost;  /* packets in flight; packets to be sent again */
	uint16_t wholes_n;   /* entries of wholes */
	uint16_t maker;	   /* bucket of the owner whose message made the flow, and 1: the flow is in
			      urn_flows.maker there; 0: none */
	uint16_t user_at;  /* bucket of the owner's user, for urn_flows.of_user; valid with maker */
	uint16_t asked_at; /* units of 2^20 ns, wraps: when the wait for the MAC address began;
			      valid with URN_FLOWF_ASKS */
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
	struct urn_flow **bucket; /* URN_FLOW_BUCKETS */
	uint64_t looped;    /* bit of mbuf.ol_flags: the frame is one that we sent to ourselves */
	uint64_t epochs;    /* epochs given out */
	uint64_t born;	    /* ns: start of this transport */
	uint32_t n, rx;	    /* flows, and those with URN_FLOWF_RX; n is read by others */
	uint32_t doubted;   /* flows with URN_FLOWF_DOUBTED */
	uint32_t owner_max; /* flows of a maker: URN_FLOWS_OWNER, less in tests */
	uint32_t most;	    /* flows that clients share: URN_FLOWS_MAX, others in tests */
	struct urn_fair fair; /* how many flows messages of a maker, and of a user, may make */
	struct urn_flow_maker maker[URN_FLOW_MAKERS]; /* by bucket of the owner */
	uint32_t of_user[URN_FLOW_MAKERS]; /* flows that messages made, by bucket of the user */
	TAILQ_HEAD(, urn_flow_rest)
	resting; /* flows at rest, the one that has rested longest first; owner */
	struct urn_flow_rest **rest_bucket; /* URN_FLOW_BUCKETS; owner */
	uint32_t rests;			    /* flows at rest */
	uint32_t rests_max;		    /* ... at most: URN_FLOWS_RESTS, less in tests */
	struct urn_fair fair_rests;	    /* how many of them a maker may have */
	struct urn_source_timer
		rest_timer; /* when the first of these is forgotten; started with resting */
	struct urn_source_ops_user rester; /* the source of that timer; has no turns */
	struct urn_flow *taking; /* flow whose packet is being taken: it does not go to rest
				    meanwhile; NULL: none */
	uint32_t wholes;	 /* messages that are put together */
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
	struct urn_flow *last;	/* the flow that was sent to last; NULL: none, or it has gone */
	struct urn_flow *found; /* the flow that was found last; NULL: none, or it has gone */
	struct urn_flow_strand **strand_bucket; /* URN_FLOW_STRAND_BUCKETS; owner */
	struct urn_flow_strand *spare_strands;	/* strands without an owner, by hash_next; owner */
	uint32_t spare_strands_n;		/* ... how many */
	struct urn_source_ops_user teller;	/* the turns of acknowledgements */
	struct urn_tp_share telling;		/* ... their place among the clients */
	struct urn_flow *acks_last;		/* the last one of urn_tp.acks; valid with these */
	uint32_t acks_n,
		acks_old; /* flows there; those of them, from the first on, since an earlier turn */
	struct urn_flow_refusals *spare;       /* taken when a message is refused; NULL: none now */
	struct urn_flow_refusals *spare_large; /* the same with places for a whole window */
	uint32_t large; /* flows with such places, at most URN_FLOW_REFUSALS_LARGE */
};

#endif
