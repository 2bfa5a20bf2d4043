/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of all kinds and sizes on several queue pairs in both directions, from a seed;
 * every byte and completion is checked.
 */
#ifndef URN_TEST_STRESS_H
#define URN_TEST_STRESS_H

#include "rig.h"

enum {
	STRESS_PAIRS = 4,            /* QPs at each end */
	STRESS_SLOTS = 6,            /* requests under way for each QP */
	STRESS_RECVS = 12,           /* receives posted for each QP, or its share of the SRQ */
	STRESS_MAX = 100 * 1024,     /* bytes of a message */
	STRESS_GUARD = 64,
	STRESS_ROOM = STRESS_MAX + 2 * STRESS_GUARD,
	STRESS_SGES = 5,
	STRESS_KINDS = 8,
};

struct stress_op {
	bool used, local_done, needs_recv, remote_done, signaled;
	uint8_t opcode;
	uint32_t len, seed, imm;
	uint64_t seq, expect; /* atomics: the expected value before */
};

struct stress_flow {                 /* requests of one QP */
	struct ibv_qp *qp;
	struct stress_op op[STRESS_SLOTS];
	uint64_t posted, retired; /* requests */
	uint64_t recv_ops[STRESS_SLOTS];  /* slots of requests that take a receive, in order: a ring */
	uint64_t recv_in, recv_out;
	uint64_t counter;          /* expected value of the peer's word for atomics */
	uint64_t recv_posted, recv_done;
	bool draining, final;      /* final: the QP's last request, a signalled one, is posted */
};

struct stress_side {
	struct stress_flow flow[STRESS_PAIRS];
	struct ibv_cq *cq[2];
	struct ibv_srq *srq;
	uint64_t srq_posted, srq_done;
	uint8_t *mem;              /* laid out by the functions below */
	struct ibv_mr *mr;
	bool recv_busy[STRESS_PAIRS * STRESS_RECVS];
};

struct stress {
	struct rig r;
	struct stress_side side[2];
	uint64_t rng, seed;
	uint64_t left;             /* requests still to be posted */
	uint64_t finished;
	uint32_t max;              /* bytes of a message, this time */
};

/* A number below n. */
uint32_t stress_rnd(struct stress *t, uint32_t n);
/* Bytes of a side's memory. */
size_t stress_mem_size(void);
/* Address of the word for atomics of QP q at a side. */
uint64_t *stress_word_at(struct stress_side *s, int q);
/* Post some of the free receives of QP q of end e. */
void stress_post_recvs(struct stress *t, int e, int q);
/* Post a request of any kind, if there is room and one is left to post. */
void stress_post_one(struct stress *t, int e, int q);
/* Poll end e's queues; fails the test on any error. */
void stress_poll(struct stress *t, int e);

#endif
