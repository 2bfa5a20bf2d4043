/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One node's transport under fire: three live QPs whose program posts requests,
 * and whose peer sends whatever the input says. After each turn it is looked at
 * whether all still holds that must hold (node_check()).
 *
 * Its memory, at NODE_VA of the keys:
 *
 *   guard | region: what requests and the peer may use | guard | shut: the peer
 *   may READ it, nobody may write it | guard
 */
#ifndef URN_TEST_NODE_H
#define URN_TEST_NODE_H

#include "fuzz.h"
#include "packet/frame.h"
#include "transport/tp.h"

enum {
	NODE_QPS = 3,	 /* 0: RC; 1: RC, with the SRQ when there is one; 2: UD, likewise */
	NODE_SLOTS = 32, /* of each work queue */
	NODE_CQES = 512, /* more than can be under way */
	NODE_GUARD = 4096,
	NODE_LEN = 32768, /* bytes of the region */
	NODE_SHUT = 8192, /* bytes of the shut one */
	NODE_QKEY = 0x11223344,
	NODE_KEYS = 6,
	NODE_PACE = 32,	 /* operations of a worker in a turn, when it is not slow */
	NODE_GATE = 16,	 /* operations under way that close gates */
	NODE_PEER_QPN = 0x7000, /* the peer's QPs, as ours; of the one that is looped: its own */
};

#define NODE_VA 0x7000001000ull      /* the region, as keys speak of it */
#define NODE_SHUT_VA 0x7100001000ull
#define NODE_PSN 0xfffff0u           /* both sides begin here; wraps soon */

/* How the node is made; each from a byte of the input. */
struct node_config {
	bool ipv6, srq;
	bool late, failing;   /* memory answers late; fails now and then */
	bool selective;       /* both sides know selective acknowledgements */
	uint64_t rto_floor;   /* ns; 0: none */
	bool plain;	      /* this side does not know them, whatever the peer does */
	bool loop;	      /* QP 1 is connected to itself */
	bool events;	      /* completion queues have channels, the SRQ a limit */
	bool far;	      /* the receives' completion queue is another engine's */
	bool unresolved;      /* the address handle's MAC is not known at first */
	bool scarce;	      /* one QP at a time may repair losses */
	bool poor;            /* few packet buffers and little work at once */
	bool foreign;	      /* the region is another process's: gates close before it (transport) */
	uint32_t window, kept;
	uint32_t mtu;
	uint8_t timeout, retry_cnt, rnr_retry;
	uint8_t rd_atomic, dest_rd_atomic;
	uint64_t seed;        /* of memory's whims */
};

struct node_qp {
	struct urn_qp *qp;
	struct urn_abi_wq *sq, *rq;
	uint32_t peer_qpn;
	uint32_t sent;        /* posted so far, as wr_id counts */
	uint32_t sent_seen;   /* sends before it are done with */
	uint64_t quiet;       /* bit sent % NODE_SLOTS: it is not signalled */
	uint32_t recvs, recvs_seen;
};

struct node {
	struct node_config cfg;
	uint64_t now;         /* ns */
	struct urn_tp *tp;
	struct urn_mem *mem;
	struct urn_memx *memx;
	struct urn_space *space; /* NULL: the region is mapped */
	uint8_t pace;         /* operations of it that are carried out in a turn */
	struct rte_mempool *pool;
	struct frame_addr self, peer, other;
	uint8_t *ram;
	uint32_t pd, other_pd;
	uint32_t key, key_local, key_shut, key_other, window; /* 0: taken away */
	struct urn_cq scq, rcq;
	uint32_t scq_seen, rcq_seen;
	struct urn_srq srq;
	uint32_t srq_posted, srq_done;
	uint8_t srq_got[1024]; /* by the number of the receive: it has completed */
	bool lost_recvs;      /* a QP was reset while it held receives of the SRQ */
	struct urn_ah ah;
	struct node_qp q[NODE_QPS];
	struct rte_mbuf *in[URN_TP_BURST];
	unsigned int in_n;
	struct urn_tp_xcqe far[NODE_CQES]; /* completions on their way through another engine */
	unsigned int far_n;
	uint64_t frames_in, others, mads, handovers, delivered;
	int neigh;            /* what asking for the peer's MAC says: 0, -1 or -2 */
	struct frame seen;    /* sent last */
};

/* Once a process. */
void node_init(void);
void node_open(struct node *n, const struct node_config *cfg);
/* All that is under way comes to an end, completes, and nothing is left. */
void node_close(struct node *n);

/* Is this the QP that is connected to itself? */
static inline bool
node_is_loop(const struct node *n, const struct node_qp *q)
{
	return n->cfg.loop && q == &n->q[1];
}

/* A frame for the next turn, in two segments or one; makes a turn when the burst is full. */
void node_put(struct node *n, const uint8_t *bytes, uint32_t len, bool split);
/* Time passes, frames are received and sent, and everything is checked. */
void node_turn(struct node *n, uint64_t ns);

/* A request: op of enum urn_abi_wr_op; nothing when the queue is full. */
struct node_send {
	uint8_t op, flags, num_sge;
	uint32_t len;
	uint64_t addr, remote; /* as keys speak of them */
	uint32_t lkey, rkey;
	bool ring;
};
void node_post(struct node *n, unsigned int q, const struct node_send *s);
/* A receive; broken: with more elements than its queue has. */
void node_recv(struct node *n, unsigned int q, uint64_t addr, uint32_t lkey, uint32_t len,
	       bool broken);
/* To ERR, or to RESET and back to RTS (RTR: no further than that), or RTR to RTS, or between RTS
 * and SQD. */
void node_state(struct node *n, unsigned int q, uint8_t state);
/* Take the region's key away, or register it again. */
void node_dereg(struct node *n);
void node_rereg(struct node *n);
/*
 * The worker of the foreign region carries out so many operations a turn from now on;
 * fails: it carries out one at once, which fails.
 */
void node_pace(struct node *n, uint8_t ops, bool fails);
/* Answers of memory, where more is asked of it than a turn gives. returns: how many */
unsigned int node_poll_memory(struct node *n);
/* The peer is found to know selective acknowledgements, or not to. */
void node_link(struct node *n, bool selective);
/* The byte at an address that keys speak of; of no region: the first guard. */
const uint8_t *node_at(const struct node *n, uint64_t va);
/* Key number k of NODE_KEYS; others: one that nobody has. */
uint32_t node_key(const struct node *n, unsigned int k);

#endif
