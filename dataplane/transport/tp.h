/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The transport of one adapter on one engine: a pure state machine (architecture rule 1). Packets
 * and the time come in as arguments; frames, completions, events and memory operations go out
 * through the arrays of this struct. The transport calls no ethdev function, reads no clock,
 * touches no program's memory, allocates nothing on the fast path: packets, work and receives come
 * from pools made at the start.
 *
 * Path of a received packet:
 *
 *   parse, ICRC, find the QP ─► accept: all checks, in PSN order; advances the state that
 *   the next packet is checked against, and asks for memory operations
 *   ─► execute the burst's operations ─► finish: in order, once a packet's
 *   operations are answered; completes, counts messages, owes acknowledgements
 *
 * Path of a frame to send: build ─► gather ─► finish: ICRC, out. A packet or frame that memory
 * answers later waits in the QP's rx or tx list, with everything of that QP behind it.
 */
#ifndef URN_TRANSPORT_TP_H
#define URN_TRANSPORT_TP_H

#include "base/fair.h"
#include "base/pool.h"
#include "counters.h"
#include "memory/mem.h"
#include "transport/congestion.h"
#include "transport/kept.h"
#include "transport/peer.h"
#include "transport/psn.h"
#include "transport/qp.h"
#include "transport/repair.h"

#include <stdbool.h>

#include <rte_mbuf.h>
#include <rte_mempool.h>

enum {
	URN_TP_OPS = 160, /* memory operations gathered before they are executed */
	URN_TP_OPS_BYTES =
		8192,	     /* ... or bytes: those that were read for the ICRC are in L1 still */
	URN_TP_BURST = 32,   /* received packets handled together */
	URN_TP_SHARES = 256, /* sources that a turn serves, each with its share */
	URN_TP_FAILS =
		192, /* messages of flows that failed: when a turn has answered so many, it ends */
	URN_TP_TX = 256,     /* frames that wait for the port */
	URN_TP_LOOP = 256,   /* frames to ourselves that wait for the next turn */
	URN_TP_OUT = 64,     /* events, handed-over packets, others */
	URN_TP_SERVICES = 8, /* types of QPs that there may be */
	URN_TP_NEAR =
		64, /* transports of this dataplane that UC queue pairs have peers on, at most */
	URN_TP_QP_CHUNK = 1024,	  /* QP table entries made at a time */
	URN_TP_ENGINE_SHIFT = 20, /* QPN: engine above, slot below */
	/*
	 * Requests that a QP keeps ahead of their turn, and how many PSNs ahead of the one that is
	 * due they may be. A urnic requester begins a request only within 256 PSNs of the oldest
	 * that is not acknowledged (the adapter's window), which is never behind the one that is
	 * due here. A standard requester repeats everything from a gap on, kept or not, so that
	 * keeping less costs nothing; and soft-RoCE sends no further than 128 PSNs ahead. A higher
	 * number would only serve forged frames.
	 */
	URN_TP_OOO_QP = 256,
	/*
	 * The same for responses, which have no window of their own, and come as far ahead as the
	 * READs that were asked for reach; 1 MiB at MTU 1024.
	 */
	URN_TP_OOO_READ = 1024,
};

struct urn_engine_client;
struct urn_am;
struct urn_flow_user;
struct urn_flows;
struct urn_mcast;
struct urn_service;

/*
 * The receivers of UC on one transport, as senders on others see them (uc_hold.h). Written by the
 * transport's engine, read by any; valid as long as the transport.
 */
struct urn_tp_near {
	const _Atomic uint8_t *full; /* by slot of the queue pair's number: 1 while packets wait for
				      * its program's memory; NULL: no such transport */
	const _Atomic uint64_t *dealt; /* by slot: the word of urn_uc_dealt_word(); NULL: none */
	uint32_t slots;		       /* entries of each table */
};

/* A shared receive queue. */
struct urn_srq {
	struct urn_rq rq;
	uint32_t handle;
	uint32_t pd;
	uint32_t limit;      /* event when fewer receives are left; 0: not armed */
	uint32_t max_wr, max_sge; /* granted sizes */
	uint32_t users;      /* control: QPs that use it */
	uint32_t engine;     /* index of the engine that owns it */
	uint64_t cookie;     /* the client's, for events */
	struct urn_tp_share *owner; /* the client's share on that engine; NULL: no client */
};

/* An address handle, as the transport needs it. */
struct urn_ah {
	uint32_t pd;         /* 0: none */
	bool loop;           /* the destination is our own address */
	bool group;	     /* the destination is a multicast group */
	bool ready;          /* tmpl has the MAC */
	uint64_t mac_until;  /* ns: when the MAC is looked up anew; valid with ready */
	struct urn_abi_av av;
	struct urn_tmpl tmpl;
	struct urn_engine_client *client; /* control: its maker. No share: all engines use the AH */
};

/* An asynchronous event that this turn has not given yet. */
struct urn_tp_event {
	struct urn_abi_event ev;
	struct urn_tp_share *owner; /* share of the client to tell, on the transport's own engine */
};

/* Status of an entry that is no completion: mark becomes `after`, and nothing else happens. */
#define URN_TP_NO_CQE UINT8_MAX

/* A completion for a queue of another engine. */
struct urn_tp_xcqe {
	struct urn_cq *cq;
	struct urn_abi_cqe cqe;
	_Atomic uint32_t *mark; /* see urn_cq_put(); the owner of cq stores it */
	uint32_t after;
	uint32_t solicited;
};
_Static_assert(sizeof(struct urn_tp_xcqe) % 4 == 0, "element of an rte_ring");

/* A message that goes beside the completion in hand (beside.h). */
struct urn_tp_beside {
	uint64_t to;	     /* address in the client's process */
	const uint8_t *data; /* in the packet */
	uint32_t len;	     /* bytes, at most URN_ABI_BESIDE */
};

/* The way of a frame that goes out. */
enum urn_loop {
	URN_LOOP_NO,	/* to the port */
	URN_LOOP_OWN,	/* to this adapter itself */
	URN_LOOP_GROUP, /* to the port, and to those of this adapter who are in its multicast group
			 */
};

/*
 * A frame on its way out, in the engine's own memory: the packet's private area would be one more
 * cache line to pull from the core that freed the packet.
 */
struct urn_txd {
	struct rte_mbuf *m;
	struct urn_qp *qp;
	uint32_t psn;
	uint16_t mem_left;   /* gathers not answered yet */
	uint8_t mem_status;  /* worst result of the gathers */
	uint8_t ipv6;        /* 0 or 1 */
	uint8_t loop;	     /* enum urn_loop */
	uint8_t action;      /* URN_ACT_TX_REQUEST, URN_ACT_TX_RESPONSE or URN_ACT_TX_DATAGRAM */
	uint8_t syndrome;    /* syndrome of an ACK or NAK; 0: another response */
	bool sealed;	     /* memory writes the ICRC when it gathers the payload */
};

struct urn_tp_config {
	unsigned int engine;           /* index of the engine */
	struct urn_mem *mem;           /* memory of the adapter */
	struct urn_memx *memx;         /* executor of this adapter and engine */
	struct rte_mempool *pool;      /* packets to send */
	uint8_t mac[6];
	uint8_t gid[4][16];            /* our addresses; all zero: none */
	unsigned int gids;
	uint16_t mtu;                  /* largest path MTU, bytes */
	uint16_t flow_mtu; /* bytes behind the flow header of the longest packet of a flow that the
			      port carries, a multiple of 4, at least mtu; 0: mtu */
	bool icrc;                     /* send and check the ICRC */
	uint32_t max_qp;               /* on this engine */
	uint32_t work;                 /* requests under way, all QPs together */
	uint32_t window;               /* packets in flight a QP */
	uint32_t kept; /* packets kept ahead of their turn, and UC packets that wait for memory, all
			  QPs together */
	uint32_t hash_seed;            /* random, so that clients can't choose peers whose hashes collide */
	uint32_t repairs;              /* QPs that repair losses at the same time; 0: URN_REPAIRS */
	uint64_t line;                 /* bytes a second of the port, for congestion control; 0: none of that */
	/* Parameters of congestion control; 0: the published ones; no `line`. */
	struct urn_dcqcn_config dcqcn;
	uint64_t delay_limit; /* ns that a round trip may take before fewer packets are in flight
				 (delay.h); 0: any */
	/* The time now, ns, on the scale of turns and never before the turn's; NULL: that of the
	 * turn will do. */
	uint64_t (*clock)(void *ctx);
	void *clock_ctx;
	uint64_t rto_floor;            /* ns: least time to a repeat by the measured round trip; 0: no such repeats */
	const struct urn_flow_user *flow_user; /* the user of flows (flow.h); NULL: packets of flows are dropped */
	void *flow_ctx;                /* the flow user's: its part for this transport */
	struct urn_am *
		am; /* endpoints of remote memory access (am/am.h), for the flow user; NULL: none */
	uint32_t flow_epoch;           /* number of this start: later, by the difference, with each start of the node; at least 2^16 */
	uint64_t flow_secret; /* random: a node that guesses it could read bytes of messages of
				 others (flow_whole.c) */
	unsigned int first_engine;     /* index of the adapter's first engine, which has the named queues */
	/* Services by type of QP, besides those of RC, UC and UD; NULL: QPs of that type can't be
	 * made. */
	const struct urn_service *service[URN_TP_SERVICES];
	bool gsi;                      /* QP1 is there: MADs to QP1 go to other[] */
	uint32_t features;             /* URN_LINK_F_ bits (wire/link.h): features of this side */
	/* MAC of a neighbour, or of the router to it. returns: 0 known, -1 not yet, less: can't be
	 * reached. ctx: neigh_ctx. */
	int (*neigh)(void *ctx, const uint8_t gid[16], uint8_t mac[6]);
	/* The peer of an address is silent: its MAC may have changed, and is verified anew. NULL: not possible. */
	void (*neigh_doubt)(void *ctx, const uint8_t gid[16]);
	/* Address that is asked for instead of a destination's: its router's, or its own. returns:
	 * false: no route leads there. Slow path, for sentences. NULL: each is asked for itself. */
	bool (*neigh_hop)(void *ctx, const uint8_t gid[16], uint8_t hop[16]);
	void *neigh_ctx; /* for all three */
	/*
	 * Features that a peer and this adapter share, URN_LINK_F_ bits (wire/link.h); 0: plain
	 * RoCEv2, or not known yet. Called when a QP's peer becomes known (to RTR): the call starts
	 * finding out; urn_tp_peer_learned() tells of changes. NULL: nobody finds out.
	 * ctx: learn_ctx.
	 */
	uint32_t (*learn)(void *ctx, const uint8_t gid_peer[16]);
	/*
	 * Bytes of a peer's cache lines, 64, 128 or 256; 0: not known. Called after learn, with
	 * learn_ctx; urn_tp_peer_line() tells of changes. NULL: nobody knows
	 */
	uint32_t (*learn_line)(void *ctx, const uint8_t gid_peer[16]);
	void *learn_ctx; /* for both */
	/*
	 * The receivers of UC on an engine of the adapter with this address. returns: false when no
	 * adapter of this dataplane has it, or several have. NULL: nobody knows. ctx: near_ctx
	 */
	bool (*near)(void *ctx, const uint8_t gid[16], unsigned int engine,
		     struct urn_tp_near *near);
	void *near_ctx;
	/* Address handle by number, NULL: none. */
	struct urn_ah *(*ah)(void *ctx, uint32_t id);
	void *ah_ctx;
	/* Give a completion to the engine that owns its queue. */
	void (*give_cqe)(void *ctx, const struct urn_tp_xcqe *x);
	/*
	 * A completion queue has lost a completion: QPs that use it are to go to the error state
	 * (urn_qp_cq_broken()). NULL: only QPs that have a completion for it do.
	 */
	void (*cq_broken)(void *ctx, const struct urn_cq *cq);
	/* The obstacle between this transport and the wire, enum urn_obstacle. NULL: none is known
	 */
	uint8_t (*obstacle)(void *ctx);
	/*
	 * A request, receive or queue pair of the client with this share failed, and its record is
	 * whole. NULL: nobody is told
	 */
	void (*failed)(void *ctx, struct urn_tp_share *share, const struct urn_failure *f);
	/* Empty event[], because there is no room for another event; NULL: that event is lost. */
	void (*take_events)(void *ctx);
	/*
	 * Ring the doorbell of a source that has something to do and finds no room for it, in the
	 * pools or in its program's memory: the source is then looked at again with a few others of
	 * its client, however many there are. NULL: the source stays in the schedule, each turn.
	 */
	void (*ring_again)(void *ctx, const struct urn_source *src);
	/*
	 * True when the client with this share has given this process up: operations on its memory
	 * fail for that, which says nothing about the peer's requests. NULL: clients never do.
	 */
	bool (*has_left)(void *ctx, const struct urn_tp_share *share);
	void *give_ctx; /* ctx of all seven */
};

struct urn_tp {
	struct urn_tp_config cfg;
	const struct urn_memx_gate *gate; /* the gate of cfg.memx */
	const struct urn_service *service[URN_TP_SERVICES]; /* by enum urn_abi_qp_type (service.h) */
	uint64_t now;                  /* ns, of this turn */
	uint32_t turn;                 /* counts turns; wraps */
	uint32_t turn_asked;           /* see urn_mem_turn() */
	uint64_t stood_at;             /* ns: time of the last urn_tp_stood(); 0: never */
	uint8_t ipv4[4];               /* our IPv4 address, of cfg.gid */
	bool has_ipv4;
	uint8_t ipv6[4][16];           /* our IPv6 addresses, of cfg.gid */
	unsigned int ipv6_n;
	bool quiet;                    /* set by the engine: nothing came in last, nothing was posted since */

	/* QPs by slot, in chunks made when first used. */
	struct urn_qp ***qp;
	uint32_t qp_chunks;
	uint32_t qp_count;
	uint32_t qp_next;              /* slot to try first */
	/* By slot: errors of queue pairs that newer ones pushed out of their clients' rings; owner;
	 * NULL: none yet, or none of that queue pair (failure.c). */
	struct urn_failure **failures;
	struct urn_qp *qp_free;        /* memory of QPs that are not in use, by source.next */
	struct urn_qp_slab *qp_slabs;  /* owner of all QPs' memory (qp.c) */

	struct urn_sched sched;        /* sources with work to do */
	struct urn_source *neigh_head, *neigh_tail; /* QPs that wait for a MAC address; those looked at last are behind */
	uint32_t neigh_n;              /* QPs that wait */
	uint32_t neigh_due;            /* those, from the first on, to look at before this round ends; not exact */
	uint64_t neigh_next;           /* ns: when the waiting QPs are looked at again */
	uint64_t mac_due;              /* ns: when mac_gen increases by itself */
	uint16_t mac_gen;              /* increases when a MAC may have changed: each QP then looks its MAC up anew */
	struct urn_wheel wheel;

	struct urn_peers peers;
	uint32_t window;               /* packets in flight that the QP being served may have */
	struct urn_repair *repair;     /* URN_REPAIRS + 1, by index from 1 on; owner */
	struct urn_pool repairs;       /* entries of repair that are free */
	struct urn_trace *trace;       /* URN_TRACES + 1, by index from 1 on; owner */
	struct urn_pool traces;        /* entries of trace that are free */
	struct urn_dcqcn_config dcqcn; /* line 0: no congestion control */
	struct urn_congestion *congestion; /* URN_CONGESTIONS + 1, by index from 1 on; owner */
	struct urn_pool congestions;   /* entries of congestion that are free */
	uint16_t congestion_hand;      /* index looked at last when the pool was empty; 0: none yet */
	uint32_t congestion_turn;      /* the turn of that look */
	struct urn_flows *flows;       /* flows of this engine (flow_priv.h); owner; NULL: no flow_user */
	struct urn_mcast *mcast; /* multicast groups (mcast.h); owner; NULL: none was joined yet */
	struct urn_source *gathered,
		*gathered_last; /* strands of flows that got messages in this turn, in order; the
				   last valid with the first */
	struct urn_flow *acks;	/* flows that owe an acknowledgement; NULL: none */
	bool gathers; /* sources are being served: flows wait for further messages until the turn's
			 have been */
	uint32_t fails; /* messages that the turn in hand answered because their flow failed;
			   URN_TP_FAILS of them end it */
	struct urn_tp_share *dry, *dry_last; /* clients whose strands of flows wait for work
						(flow_dry.c); the last valid with the first */
	uint64_t built;                /* bytes of frames begun so far, from the BTH on */
	uint64_t
		built_most; /* ... with which the turn of a source ends (part.h); UINT64_MAX: any */
	bool hasty; /* the user being served has short turns beside others: an acknowledgement of
		       a single packet waits for one turn only (part.h) */
	unsigned int turn_frames; /* frames of requests, and of answers, in the turn of a source */
	uint16_t trace_hand;           /* index looked at last when the pool was empty; 0: none yet */

	/* Pools: free lists, each with an entry while `left` counts one. */
	struct urn_work *work_free;
	struct urn_work_ext *ext_free;
	struct urn_recv *recv_free;
	struct urn_tp_share left;      /* entries left in the pools */
	struct urn_fair fair_work,
		fair_others, /* how much of it a client may take: of work; of ext, and of recv */
		fair_held,   /* ... of the packets that may be kept (cfg.kept) */
		fair_repairs, fair_states; /* ... and of repair, and of congestion */
	struct urn_tp_share made;      /* entries that were put on the lists so far; memory of others is untouched */
	struct urn_tp_share nobodys;   /* share of QPs without a client */
	void *work_mem, *ext_mem, *recv_mem; /* owner of the entries in the lists */
	uint32_t kept;			     /* packets that count against cfg.kept now */
	_Atomic uint8_t *uc_full;      /* the bytes of struct urn_tp_near; owner */
	_Atomic uint64_t *uc_dealt;    /* the words of struct urn_tp_near; owner */
	uint64_t *uc_told; /* words that receivers elsewhere sent, by slot of the sender's number;
			    * valid with urn_qp.near URN_UC_FAR; owner */
	struct urn_tp_near near[URN_TP_NEAR]; /* by urn_qp.near - 1; those in use come first */

	/* Packet buffers taken from the pool in bulk, raw, and those to be given back. */
	struct rte_mbuf *fresh[URN_TP_BURST];
	unsigned int fresh_n;
	struct rte_mbuf *done[URN_TP_BURST];
	unsigned int done_n;

	/* The burst in hand. */
	struct urn_memop ops[URN_TP_OPS];
	unsigned int ops_n;
	uint32_t ops_bytes;                /* bytes that the operations move, all together */
	struct rte_mbuf *burst[URN_TP_TX]; /* received packets with operations in ops, in order */
	unsigned int burst_n;
	struct urn_txd txd[URN_TP_TX];     /* frames to send, likewise */
	unsigned int txd_n;
	struct rte_mbuf *flow_emit; /* frame of a flow in tx or loop whose ICRC is still to be
				       written; NULL: none */
	bool flow_emit_ipv6;	    /* its family; valid with one */
	/*
	 * Mark of frames that are sent without their ICRC, and of received ones that have none
	 * (unsealed.h); 0: each frame has its ICRC.
	 */
	uint64_t unsealed;

	/* Output, for the engine to take. */
	struct rte_mbuf *tx[URN_TP_TX];
	unsigned int tx_n;
	unsigned int
		tx_old; /* frames at the begin of tx that an earlier turn has left; the engine's */
	unsigned int tx_kept; /* places in tx that the transport leaves to frames that wait; the
				 engine's */
	unsigned int held;    /* frames that the engine keeps until a pause of its port ends; the
				 engine's */
	const uint8_t *priority_of; /* priorities of frames by DSCP, 64; the engine's; valid while
				       sched.stopped is not 0 */
	struct rte_mbuf *loop[URN_TP_LOOP];
	unsigned int loop_n;
	struct rte_mbuf *other[URN_TP_OUT]; /* ARP, ND, ICMP, MADs: for the adapter's tables */
	unsigned int other_n;
	struct rte_mbuf *handover[URN_TP_OUT]; /* packets of QPs of other engines */
	unsigned int handover_n;
	struct urn_tp_event event[URN_TP_OUT];
	unsigned int event_n;
	struct urn_cq *touched;        /* completion queues written this turn */
	struct urn_tp_beside
		beside; /* valid from urn_beside_ready() until that completion is written */

	struct urn_counters c;
};

#define URN_COUNT(tp, id) ((tp)->c.v[URN_C_##id]++)
#define URN_COUNT_N(tp, id, n) ((tp)->c.v[URN_C_##id] += (n))

/* ---- tp.c, rx.c, burst.c */

/* Make the transport of an adapter on an engine. NULL: no memory. */
struct urn_tp *urn_tp_create(const struct urn_tp_config *cfg, uint64_t now);
/* Free the transport, and every packet that it still holds. All QPs must be gone. */
void urn_tp_destroy(struct urn_tp *tp);
/* The receivers of UC on this transport, for senders on others. Any thread. (uc_hold.c) */
void urn_tp_near(const struct urn_tp *tp, struct urn_tp_near *near);

/*
 * Handle one burst of received frames, at most URN_TP_BURST; the transport owns them from here.
 * checked: their ICRC was checked, or needs no check (handed over by another engine). The caller
 * empties other[] and handover[] after each burst.
 */
void urn_tp_rx(struct urn_tp *tp, struct rte_mbuf **m, unsigned int n, bool checked);
/*
 * Give a client an asynchronous event about one of its objects. owner: the client's share on the
 * transport's own engine; without a client nobody is told. (complete.c)
 */
void urn_tp_event(struct urn_tp *tp, uint32_t type, uint32_t handle, uint64_t cookie,
		  struct urn_tp_share *owner);
/* The QP's doorbell was rung. */
void urn_tp_doorbell(struct urn_tp *tp, struct urn_qp *qp);
/* The doorbell of a source was rung. */
static inline void
urn_source_rung(struct urn_tp *tp, struct urn_source *src)
{
	if (likely(src->kind == URN_SOURCE_QP))
		urn_tp_doorbell(tp, urn_source_qp(src));
	else
		urn_source_ops(src)->rung(tp, src);
}
/*
 * Turns stood still until now, because the thread that gives them was not run. To be called before
 * the first urn_tp_turn() after that, with the same time. Packets that came meanwhile were not
 * looked at, and timers that ran out meanwhile say nothing about peers.
 */
static inline void
urn_tp_stood(struct urn_tp *tp, uint64_t now)
{
	tp->stood_at = now;
}
/* Start a turn: the time, answers of memory, timers. returns: number of things handled */
unsigned int urn_tp_turn(struct urn_tp *tp, uint64_t now);
/* Send frames of the scheduled QPs, as far as tx[] and loop[] have room. returns: frames made, and
 * turns given up for bytes sent before: an engine with either is not idle */
unsigned int urn_tp_tx(struct urn_tp *tp);
/*
 * The neighbour table changed: look at QPs that wait for an address again, in this and the next
 * turns, and at the address of any other QP when it is served next.
 */
void urn_tp_neigh_changed(struct urn_tp *tp);
/*
 * The features of a peer have changed, or the peer was restarted. features: URN_LINK_F_ bits that
 * hold for its QPs from now on; perhaps the same as before. In the engine's thread.
 */
void urn_tp_peer_learned(struct urn_tp *tp, const uint8_t gid_peer[16], uint32_t features);
/* The cache lines of a peer have become known, or are not known any more (0). line: bytes */
void urn_tp_peer_line(struct urn_tp *tp, const uint8_t gid_peer[16], uint32_t line);
/* A completion queue has lost a completion: give one event, and let the queue's QPs fail. (complete.c) */
void urn_tp_cq_break(struct urn_tp *tp, struct urn_cq *cq);
/* Write a completion to a queue of this engine; another engine handed it over, with its slot claimed. */
void urn_tp_cqe_handed(struct urn_tp *tp, const struct urn_tp_xcqe *x);
/* Take memory's answers now. returns: number of answers */
unsigned int urn_tp_poll_memory(struct urn_tp *tp);
/* True when there is something to do without a packet, doorbell or timer; or perhaps, while flows
 * wait for work. */
static inline bool
urn_tp_busy(const struct urn_tp *tp)
{
	return tp->sched.head || tp->loop_n || tp->tx_n || tp->held || tp->sched.waiting || tp->dry;
}

/* ---- qp.c: control, in the owner's thread */

struct urn_qp_config {
	uint8_t type;          /* enum urn_abi_qp_type */
	bool sig_all;
	uint32_t pd;
	uint32_t db;
	uint64_t cookie;
	struct urn_tp_share *share; /* the client's share, on this engine; NULL: the QP has no client */
	struct urn_cq *send_cq, *recv_cq;
	struct urn_srq *srq;
	struct urn_sq sq;      /* laid out in the client's area */
	struct urn_rq rq;
	/* True when this number must not be given out yet, though it is free. NULL: any free number is good */
	bool (*held)(void *ctx, uint32_t qpn);
	void *held_ctx;
};

/* True when programs may make QPs of this type. type: any number */
bool urn_qp_offered(const struct urn_tp *tp, uint32_t type);
/* Make a QP. returns: 0 or ENOMEM, ENOSPC; EOPNOTSUPP: no service has that type */
int urn_qp_create(struct urn_tp *tp, const struct urn_qp_config *cfg, struct urn_qp **out);
/*
 * Modify a QP (the whole state machine of RC, UC and UD; IBTA 10.3.1, 11.2.5). A move to RESET is
 * done once urn_qp_stopped() is true: EAGAIN until then. returns: 0 or an errno value, with a
 * sentence in why[len]
 */
int urn_qp_modify(struct urn_tp *tp, struct urn_qp *qp, uint32_t mask,
		  const struct urn_abi_qp_attr *attr, char *why, size_t len);
/*
 * Log the atomics that this QP's peer asks for: as many entries as there are records
 * (max_dest_rd_atomic, rounded up to 2^n), at offset off of the client's area. Entries of the log
 * before are copied. The log is valid until the records are made anew.
 */
void urn_qp_log_atomics(struct urn_qp *qp, struct urn_abi_atomic *entry, uint64_t off);
/*
 * Let long writes of an RC QP go on the peer's cache lines from now on (reshape.h). line: enum
 * urn_abi_align, or bytes. In the engine's thread. returns: 0, or EINVAL: no such line, or not RC
 */
int urn_qp_align_writes(struct urn_qp *qp, uint32_t line);
void urn_qp_query(const struct urn_qp *qp, struct urn_abi_qp_attr *attr);
/*
 * Fence a QP in the error state (FO-16): once memory has answered for all packets that the QP had
 * accepted, flush the receive whose message was under way, which the flush of the other requests
 * does in a later turn. In the engine's thread, not while the QP is served. returns: true: nothing
 * more is placed through the QP, and each receive that it took is complete; false: not yet
 */
bool urn_qp_fence(struct urn_tp *tp, struct urn_qp *qp);
/*
 * The QP may not go on: its connection belongs to another QP, or a response was forged. Give an
 * event, and put the QP into the error state, where no answer is owed.
 */
void urn_qp_lost(struct urn_tp *tp, struct urn_qp *qp);
/*
 * The client of the QP has given this process up, and its memory is the client's again: end the QP
 * at once, without a completion, an event, or a word to the peer. Packets that wait for memory are
 * dropped when memory answers (urn_qp_quiet()). In the engine's thread, not while the QP is served.
 *
 * returns: false: the QP had ended before
 */
bool urn_qp_left(struct urn_tp *tp, struct urn_qp *qp);
/* Stop everything of a QP without completions, and unbind its type 2 windows: to be called until urn_qp_stopped(). */
void urn_qp_stop(struct urn_tp *tp, struct urn_qp *qp);
/* True when, after urn_qp_stop(), the QP is quiet, and no window is bound to it any more. */
bool urn_qp_stopped(const struct urn_qp *qp);
/* A CQ of the QP has lost a completion: put the QP into the error state, and give an event. In the engine's thread */
void urn_qp_cq_broken(struct urn_tp *tp, struct urn_qp *qp);
/* True when no packet of the QP waits for memory. */
bool urn_qp_quiet(const struct urn_qp *qp);
/* True when the QP's state sends nothing by itself, no packet waits for memory, and no answer is owed. */
bool urn_qp_silent(const struct urn_tp *tp, const struct urn_qp *qp);
/* Free a stopped QP. */
void urn_qp_destroy(struct urn_tp *tp, struct urn_qp *qp);

/* The place of a QP with this number in the table of its engine. */
static inline uint32_t
urn_qpn_slot(uint32_t qpn)
{
	return qpn & ((1u << URN_TP_ENGINE_SHIFT) - 1);
}

/* The QP with this number; NULL: none. */
static inline struct urn_qp *
urn_tp_qp(const struct urn_tp *tp, uint32_t qpn)
{
	uint32_t slot = urn_qpn_slot(qpn);
	uint32_t chunk = slot / URN_TP_QP_CHUNK;

	if (chunk >= tp->qp_chunks || !tp->qp[chunk])
		return NULL;
	return tp->qp[chunk][slot % URN_TP_QP_CHUNK];
}

static inline unsigned int
urn_qpn_engine(uint32_t qpn)
{
	return (qpn & 0xffffffu) >> URN_TP_ENGINE_SHIFT;
}

#endif
