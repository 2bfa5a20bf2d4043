/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program takes all it can of an engine's pools, and gives nothing back: its peers
 * never answer, and it has no timer. Others of the engine go on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"

#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

enum {
	QPS = 160,
	DEPTH = 64,
	ELEMENTS = 4,   /* more than fit into a request itself */
	A_TURN = 33,    /* fruitless looks at its QPs in a turn: a burst of doorbells, and one that is there */
	FEW_WORK = 64,  /* requests; 80 receives come with them */
	HALVES = 100,
	NOBODY = 0x3ff, /* number of a QP that does not exist */
	HALF = 32 << 10, /* bytes; more than an engine sends in one go */
};

/* A second program on node 0. */
struct greedy {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *buf; /* 2 * HALF */
};

static void
attach(struct rig *r, struct greedy *g)
{
	g->ctx = rig_attach(r, 0);
	g->pd = ibv_alloc_pd(g->ctx);
	g->cq = ibv_create_cq(g->ctx, QPS * DEPTH, NULL, NULL, 0);
	g->buf = calloc(2, HALF);
	g->mr = ibv_reg_mr(g->pd, g->buf, 2 * HALF, IBV_ACCESS_LOCAL_WRITE);
	assert_true(g->pd && g->cq && g->mr);
}

static void
detach(struct greedy *g)
{
	assert_int_equal(ibv_dereg_mr(g->mr), 0);
	assert_int_equal(ibv_destroy_cq(g->cq), 0);
	assert_int_equal(ibv_dealloc_pd(g->pd), 0);
	assert_int_equal(ibv_close_device(g->ctx), 0);
	free(g->buf);
}

/* Make a QP of the greedy program. */
static struct ibv_qp *
make_qp(struct rig *r, const struct greedy *g, uint32_t depth)
{
	const struct rig_qp o = {.pd = g->pd, .send_cq = g->cq, .recv_cq = g->cq, .depth = depth};

	return rig_make_qp(r, 0, &o);
}

/* Timeout off: a request waits for ever. */
static const struct rig_qp patient = {.timeout = -1};

/* The rig's own two programs write with so many elements. */
static void
others_go_on(struct rig *r, int elements)
{
	for (uint32_t i = 0; i < 30; i++) {
		struct ibv_sge sge[ELEMENTS];
		struct ibv_send_wr wr = {.wr_id = i, .opcode = IBV_WR_RDMA_WRITE, .sg_list = sge,
					 .num_sge = elements, .send_flags = IBV_SEND_SIGNALED};

		rig_fill(r->end[0].buf, (size_t)elements * 100, i);
		wr.wr.rdma.remote_addr = (uintptr_t)r->end[1].buf;
		wr.wr.rdma.rkey = r->end[1].mr->rkey;
		for (int k = 0; k < elements; k++)
			sge[k] = (struct ibv_sge){(uintptr_t)r->end[0].buf + (size_t)k * 100, 100,
						  r->end[0].mr->lkey};
		rig_send_on(r->end[0].qp, &wr);
		assert_int_equal(rig_expect(r, 0, IBV_WC_SUCCESS).wr_id, i);
		assert_memory_equal(r->end[0].buf, r->end[1].buf, (size_t)elements * 100);
	}
}

/* Post more requests than the engine has room for, none of which ends. */
static void
take_requests(struct rig *r, const struct greedy *g, int elements, struct ibv_qp *qp[QPS])
{
	struct ibv_sge sge[ELEMENTS];
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = sge, .num_sge = elements};
	union ibv_gid gid;

	rig_gid(r, 1, &gid);
	for (int k = 0; k < elements; k++)
		sge[k] = (struct ibv_sge){(uintptr_t)g->buf, 8, g->mr->lkey};
	for (uint32_t i = 0; i < QPS; i++) {
		qp[i] = make_qp(r, g, DEPTH);
		rig_connect_to(r, qp[i], 100, NOBODY, 200, &gid, &patient);
		for (uint32_t n = 0; n < DEPTH; n++)
			rig_send_on(qp[i], &wr);
	}
}

static void
requests_of(int elements)
{
	struct ibv_qp *qp[QPS];
	struct greedy g;
	struct rig r;
	uint64_t vain;

	rig_open(&r, &(struct rig_config){0}, NULL);
	attach(&r, &g);
	take_requests(&r, &g, elements, qp);
	rig_turns(&r, 2000);
	vain = rig_counter(&r, 0, URN_C_NO_WORK);
	assert_true(vain > 0);
	rig_turns(&r, 1000);
	/* Requests without room cost others no more than doorbells do, however many QPs post them. */
	assert_in_range(rig_counter(&r, 0, URN_C_NO_WORK) - vain, 1, 1000 * A_TURN);
	others_go_on(&r, elements);
	for (uint32_t i = 0; i < QPS; i++)
		assert_int_equal(ibv_destroy_qp(qp[i]), 0);
	detach(&g);
	rig_close(&r);
}

static void
test_requests(void **state)
{
	(void)state;
	requests_of(1);
}

static void
test_elements(void **state)
{
	(void)state;
	requests_of(ELEMENTS);
}

/*
 * The first half of a message comes to `to`, and no more: the second can't be read.
 * returns: true when it came; false when `to` found no receive for it
 */
static bool
send_half(struct rig *r, const struct greedy *g, struct ibv_qp *to)
{
	struct ibv_sge sge[2] = {{(uintptr_t)g->buf, HALF, g->mr->lkey}, {(uintptr_t)g->buf, HALF, 0}};
	struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_SEND, .sg_list = sge, .num_sge = 2};
	struct ibv_qp *qp = make_qp(r, g, 1);
	time_t start = time(NULL);
	union ibv_gid gid;
	struct ibv_wc wc;

	rig_gid(r, 0, &gid);
	rig_connect_to(r, to, 5, qp->qp_num, 5, &gid, &patient);
	rig_connect_to(r, qp, 5, to->qp_num, 5, &gid, &patient);
	rig_recv_on(to, g->buf, 2 * HALF, g->mr->lkey, 2);
	rig_send_on(qp, &wr);
	while (ibv_poll_cq(g->cq, 1, &wc) == 0) {
		if (rig_counter(r, 0, URN_C_NO_WORK) > 0)
			return ibv_destroy_qp(qp) != 0;
		assert_true(time(NULL) - start < 60);
		rig_turn(r);
	}
	assert_int_equal(wc.status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	return true;
}

/* Messages of which half has come keep their receives. */
static void
test_receives(void **state)
{
	struct ibv_qp *qp[HALVES];
	struct greedy g;
	struct rig r;
	uint32_t n = 0;
	bool came;

	(void)state;
	rig_open(&r, &(struct rig_config){.work_in_flight = FEW_WORK}, NULL);
	attach(&r, &g);
	do {
		assert_true(n < HALVES);
		qp[n] = make_qp(&r, &g, 1);
		came = send_half(&r, &g, qp[n++]);
	} while (came);
	for (uint32_t i = 0; i < 30; i++) {
		rig_recv(&r, 0, 0, 3000, 7);
		rig_post(&r, 1, IBV_WR_SEND, 0, 3000, 0, 8);
		assert_int_equal(rig_expect(&r, 0, IBV_WC_SUCCESS).wr_id, 7);
		assert_int_equal(rig_expect(&r, 1, IBV_WC_SUCCESS).wr_id, 8);
	}
	while (n--)
		assert_int_equal(ibv_destroy_qp(qp[n]), 0);
	detach(&g);
	rig_close(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_elements),
		cmocka_unit_test(test_receives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
