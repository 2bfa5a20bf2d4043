/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One node's transport under fire: three live QPs whose program posts requests, and whose
 * peer sends the frames of the input. After each turn node_check() checks the invariants.
 *
 * The node's memory, at NODE_VA of the keys:
 *
 *   guard | region: requests and the peer may use it | guard | shut: the peer may READ it,
 *   nobody may write it | guard
 */
#ifndef URN_TEST_NODE_H
#define URN_TEST_NODE_H

#include "fuzz.h"
#include "packet/frame.h"
#include "transport/tp.h"

enum {
	NODE_QPS = 3,	 /* QP 0: RC; 1: RC, with the SRQ when there is one, or UC; 2: UD, with the
			    SRQ, too */
	NODE_SLOTS = 32, /* slots of each work queue */
	NODE_CQES = 512, /* more than can be in flight */
	NODE_GUARD = 4096,
	NODE_LEN = 32768, /* bytes of the region */
	NODE_SHUT = 8192, /* bytes of the shut region */
	NODE_QKEY = 0x11223344,
	NODE_KEYS = 6,
	NODE_PACE = 32, /* operations of a worker in a turn, when it is not slow */
	NODE_GATE = 16, /* operations in flight that close gates */
	NODE_PEER_QPN =
		0x7000, /* numbers of the peer's QPs, like ours; a looped QP's peer is itself */
};

#define NODE_VA 0x7000001000ull      /* the region's address in keys */
#define NODE_SHUT_VA 0x7100001000ull
#define NODE_PSN 0xfffff0u           /* first PSN of both sides; wraps soon */

/* Configuration of the node; each field comes from a byte of the input. */
struct node_config {
	bool ipv6, srq;
	bool late, failing;   /* memory answers late; some operations fail */
	bool selective;       /* both sides support selective acknowledgements */
	uint64_t rto_floor;   /* ns; 0: none */
	bool plain;	      /* this side does not support them, whatever the peer does */
	bool loop;	      /* QP 1 is connected to itself */
	bool uc;	      /* QP 1 is of UC */
	bool events;	      /* completion queues have channels, the SRQ a limit */
	bool far;	      /* the receives' completion queue belongs to another engine */
	bool unresolved;      /* the MAC of the address handle is not known at first */
	bool scarce;	      /* one QP at a time may repair losses */
	bool poor;            /* few packet buffers and little work at once */
	bool foreign;	      /* the region is of another process: gates close for it (transport) */
	uint32_t window, kept;
	uint32_t mtu;
	uint8_t timeout, retry_cnt, rnr_retry;
	uint8_t rd_atomic, dest_rd_atomic;
	uint64_t seed;        /* seed of memory's delays and failures */
};

struct node_qp {
	struct urn_qp *qp;
	struct urn_abi_wq *sq, *rq;
	uint32_t peer_qpn;
	uint32_t sent;        /* requests posted so far, counted like wr_id */
	uint32_t sent_seen;   /* sends before this one are done */
	uint64_t quiet;       /* bit sent % NODE_SLOTS: the request is not signalled */
	uint32_t recvs, recvs_seen;
};

struct node {
	struct node_config cfg;
	uint64_t now;         /* ns: the present time */
	struct urn_tp *tp;
	struct urn_mem *mem;
	struct urn_memx *memx;
	struct urn_space *space; /* NULL: the region is mapped */
	uint8_t pace;         /* operations of the space that are carried out in a turn */
	struct rte_mempool *pool;
	struct frame_addr self, peer, other;
	uint8_t *ram;
	uint32_t pd, other_pd;
	uint32_t key, key_local, key_shut, key_other, window; /* 0: not registered */
	struct urn_cq scq, rcq;
	uint32_t scq_seen, rcq_seen;
	struct urn_srq srq;
	uint32_t srq_posted, srq_done;
	uint8_t srq_got[1024]; /* by the receive's number: it has completed */
	bool lost_recvs;      /* a QP was reset while it held receives of the SRQ */
	struct urn_ah ah;
	struct node_qp q[NODE_QPS];
	struct rte_mbuf *in[URN_TP_BURST];
	unsigned int in_n;
	struct urn_tp_xcqe far[NODE_CQES]; /* completions on their way through another engine */
	unsigned int far_n;
	uint64_t frames_in, others, mads, handovers, delivered;
	int neigh;            /* result of a look-up of the peer's MAC: 0, -1 or -2 */
	struct frame seen;    /* the frame sent last */
};

/* Call once a process. */
void node_init(void);
void node_open(struct node *n, const struct node_config *cfg);
/* All requests come to an end and complete, and nothing is left. */
void node_close(struct node *n);

/* True when QP q is connected to itself. */
static inline bool
node_is_loop(const struct node *n, const struct node_qp *q)
{
	return n->cfg.loop && q == &n->q[1];
}

/* The receivers of UC on this dataplane (struct urn_tp_config): only a looped QP has its peer here.
 */
bool node_near(void *ctx, const uint8_t gid[16], unsigned int engine, struct urn_tp_near *near);
/* Add a frame for the next turn, in two segments or one; run a turn when the burst is full. */
void node_put(struct node *n, const uint8_t *bytes, uint32_t len, bool split);
/* Let time pass, receive and send frames, and check everything. */
void node_turn(struct node *n, uint64_t ns);

/* A request: op of enum urn_abi_wr_op; not posted when the queue is full. */
struct node_send {
	uint8_t op, flags, num_sge;
	uint32_t len;
	uint64_t addr, remote; /* addresses in keys */
	uint32_t lkey, rkey;
	bool ring;
};
void node_post(struct node *n, unsigned int q, const struct node_send *s);
/* A receive; broken: with more elements than its queue has. */
void node_recv(struct node *n, unsigned int q, uint64_t addr, uint32_t lkey, uint32_t len,
	       bool broken);
/*
 * Move a QP to ERR, or to RESET and back to RTS (RTR: only as far as that), or from RTR to RTS,
 * or between RTS and SQD.
 */
void node_state(struct node *n, unsigned int q, uint8_t state);
/* Deregister the region, or register it again. */
void node_dereg(struct node *n);
void node_rereg(struct node *n);
/*
 * The worker of the foreign region carries out so many operations a turn from now on;
 * fails: one operation at once, which fails.
 */
void node_pace(struct node *n, uint8_t ops, bool fails);
/* Answers of memory, when one turn gives too few. returns: the number of answers */
unsigned int node_poll_memory(struct node *n);
/* The link learns that the peer supports selective acknowledgements, or that it does not. */
void node_link(struct node *n, bool selective);
/* The byte at an address in keys; outside every region: in the first guard. */
const uint8_t *node_at(const struct node *n, uint64_t va);
/* Key number k of NODE_KEYS; other numbers: a key that nobody has. */
uint32_t node_key(const struct node *n, unsigned int k);

#endif
