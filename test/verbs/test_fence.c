/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fence of a queue pair on a living adapter (FO-16): when the change to ERR was answered,
 * nothing more is placed through the queue pair, and the receive that it had in hand is complete,
 * wherever its completion goes. No engine turns between the answer and the look.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"

#include "control/objects.h"
#include "engine/engine.h"

#include <errno.h>
#include <string.h>
#include <time.h>

enum {
	LEN = 12 * 1024, /* bytes of a message: twelve packets */
	AT = 4096,	 /* where it goes in end 1's buffer */
	FIRST = 1,	 /* engine of end 1's queue pairs, */
	OTHER = 3,	 /* and of their completions */
};

static bool stuck;     /* memory gives no answers */
static uint64_t hurry; /* seconds that each look at the clock takes */

unsigned int __real_urn_memx_poll(struct urn_memx *x, struct urn_memop *ops, unsigned int max);
unsigned int __wrap_urn_memx_poll(struct urn_memx *x, struct urn_memop *ops, unsigned int max);
int __real_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);

unsigned int
__wrap_urn_memx_poll(struct urn_memx *x, struct urn_memop *ops, unsigned int max)
{
	return stuck ? 0 : __real_urn_memx_poll(x, ops, max);
}

int
__wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	static time_t later;
	int rc = __real_clock_gettime(id, ts);

	later += (time_t)hurry;
	ts->tv_sec += later;
	return rc;
}

/* The dataplane's view of a queue pair of end 1. */
static const struct urn_qp *
seen(struct rig *r, const struct ibv_qp *qp)
{
	const struct urn_engine *e = urn_dp_engine(r->dp, FIRST);

	return urn_tp_qp(e->shard[0]->tp, qp->qp_num);
}

static uint64_t
missing(struct rig *r)
{
	return urn_memx_holds(urn_dp_engine(r->dp, FIRST)->shard[0]->memx, NULL);
}

static int
to_err(struct ibv_qp *qp)
{
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};

	return ibv_modify_qp(qp, &err, IBV_QP_STATE);
}

/* Nothing is written to end 1's buffer any more. */
static void
expect_untouched(struct rig *r)
{
	memset(r->end[1].buf, 0xa5, RIG_BUF);
	rig_turns(r, 100);
	for (size_t i = 0; i < RIG_BUF; i++)
		assert_int_equal(r->end[1].buf[i], 0xa5);
}

/* ---- own receives */

/*
 * End 1 goes to ERR after so many turns of a message. returns: true when the message was under way
 */
static bool
fence_after(unsigned int turns, uint64_t seed)
{
	struct rig_config cfg = {.delay_seed = seed};
	struct ibv_wc wc;
	struct rig r;
	bool half;

	rig_open(&r, &cfg, NULL);
	rig_turns(&r, 100);
	rig_recv(&r, 1, AT, LEN, 5);
	rig_fill(r.end[0].buf, LEN, 1);
	rig_post(&r, 0, IBV_WR_SEND, 0, LEN, 0, 1);
	rig_turns(&r, turns);
	half = seen(&r, r.end[1].qp)->recv != NULL;
	assert_int_equal(to_err(r.end[1].qp), 0);
	assert_int_equal(missing(&r), 0);
	/* A receive that the queue pair never took is flushed later. */
	if (ibv_poll_cq(r.end[1].cq, 1, &wc) == 0) {
		assert_false(half);
		wc = rig_wait(&r, 1);
		assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	}
	assert_int_equal(wc.wr_id, 5);
	if (wc.status == IBV_WC_SUCCESS)
		assert_memory_equal(r.end[0].buf, r.end[1].buf + AT, LEN);
	else
		assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	expect_untouched(&r);
	assert_int_equal(ibv_poll_cq(r.end[1].cq, 1, &wc), 0);
	rig_close(&r);
	return half;
}

/* In each turn of a message, whose memory answers late: the answer to the change comes later. */
static void
test_half(void **state)
{
	unsigned int halves = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 2; seed++)
		for (unsigned int turns = 0; turns < 24; turns++)
			halves += fence_after(turns, seed);
	assert_true(halves > 0);
}

/* ---- receives of a shared queue, and completions of another engine */

/* A queue pair of end 1 with a shared receive queue, whose completions are another engine's. */
struct apart {
	struct rig r;
	struct ibv_srq *srq;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static void
apart_open(struct apart *a, uint64_t seed)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct rig_config cfg = {.engines = 4, .delay_seed = seed};
	struct ibv_recv_wr wr = {.wr_id = 5, .num_sge = 1}, *bad;
	struct rig_qp o = {0};
	struct ibv_sge sge;

	rig_open(&a->r, &cfg, NULL);
	a->srq = ibv_create_srq(a->r.end[1].pd, &init);
	a->cq = ibv_create_cq(a->r.end[1].ctx, 16, NULL, NULL, 1);
	assert_true(a->srq != NULL && a->cq != NULL);
	o.srq = a->srq;
	o.send_cq = o.recv_cq = a->cq;
	a->qp = rig_make_qp(&a->r, 1, &o);
	assert_non_null(seen(&a->r, a->qp));
	assert_int_equal(seen(&a->r, a->qp)->recv_cq->engine, OTHER);
	rig_to(a->r.end[0].qp, IBV_QPS_RESET);
	rig_connect(&a->r, 0, a->r.end[0].qp, 100, a->qp->qp_num, 200, &(struct rig_qp){0});
	rig_connect(&a->r, 1, a->qp, 200, a->r.end[0].qp->qp_num, 100, &o);
	sge = (struct ibv_sge){(uintptr_t)a->r.end[1].buf + AT, LEN, a->r.end[1].mr->lkey};
	wr.sg_list = &sge;
	assert_int_equal(ibv_post_srq_recv(a->srq, &wr, &bad), 0);
	rig_turns(&a->r, 100);
	rig_fill(a->r.end[0].buf, LEN, 1);
}

static void
apart_close(struct apart *a)
{
	assert_int_equal(ibv_destroy_qp(a->qp), 0);
	assert_int_equal(ibv_destroy_srq(a->srq), 0);
	assert_int_equal(ibv_destroy_cq(a->cq), 0);
	rig_close(&a->r);
}

/* All engines turn but that of the completions. */
static void
turn_but_other(struct apart *a, unsigned int turns)
{
	while (turns--)
		for (unsigned int i = 0; i < a->r.engines; i++)
			if (i != OTHER)
				urn_engine_poll(urn_dp_engine(a->r.dp, i));
}

/* The message came whole, and its completion is on its way to the other engine. */
static void
test_on_the_way(void **state)
{
	struct apart a;
	struct ibv_wc wc;

	(void)state;
	apart_open(&a, 0);
	rig_post(&a.r, 0, IBV_WR_SEND, 0, LEN, 0, 1);
	turn_but_other(&a, 200);
	assert_null(seen(&a.r, a.qp)->recv);
	assert_int_equal(ibv_poll_cq(a.cq, 1, &wc), 0);
	assert_int_equal(to_err(a.qp), 0);
	assert_int_equal(ibv_poll_cq(a.cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 5);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_memory_equal(a.r.end[0].buf, a.r.end[1].buf + AT, LEN);
	expect_untouched(&a.r);
	apart_close(&a);
}

/* A message of a shared queue's receive is half placed: the receive comes back with the answer. */
static void
test_shared(void **state)
{
	unsigned int halves = 0;
	struct apart a;
	struct ibv_wc wc;

	(void)state;
	for (unsigned int turns = 0; turns < 24; turns++) {
		bool took, half;

		apart_open(&a, 7);
		rig_post(&a.r, 0, IBV_WR_SEND, 0, LEN, 0, 1);
		turn_but_other(&a, turns);
		half = seen(&a.r, a.qp)->recv != NULL;
		took = half || missing(&a.r) != 0;
		assert_int_equal(to_err(a.qp), 0);
		assert_int_equal(missing(&a.r), 0);
		/* A receive that no message has taken stays in the shared queue. */
		if (ibv_poll_cq(a.cq, 1, &wc) == 1)
			assert_int_equal(wc.wr_id, 5);
		else
			assert_false(took);
		halves += half;
		expect_untouched(&a.r);
		assert_int_equal(ibv_poll_cq(a.cq, 1, &wc), 0);
		apart_close(&a);
	}
	assert_true(halves > 0);
}

/* ---- memory that never answers */

/* The wait for a program's own memory is bounded, and its end says that this is no fence. */
static void
test_bounded(void **state)
{
	struct rig_config cfg = {.delay_seed = 7};
	struct rig r;

	(void)state;
	rig_open(&r, &cfg, NULL);
	rig_turns(&r, 100);
	rig_recv(&r, 1, AT, LEN, 5);
	rig_fill(r.end[0].buf, LEN, 1);
	rig_post(&r, 0, IBV_WR_SEND, 0, LEN, 0, 1);
	for (int i = 0; i < 1000 && (seen(&r, r.end[1].qp)->recv == NULL || missing(&r) == 0); i++)
		rig_turn(&r);
	assert_true(missing(&r) != 0);
	stuck = true;
	hurry = 40;
	assert_int_equal(to_err(r.end[1].qp), ETIMEDOUT);
	hurry = 0;
	assert_non_null(strstr(urn_attach_error(), "may still be placed"));
	assert_int_equal(rig_state(r.end[1].qp), IBV_QPS_ERR);
	assert_int_equal(ibv_poll_cq(r.end[1].cq, 1, &(struct ibv_wc){0}), 0);
	/* The same again waits again, and the memory answers now. */
	stuck = false;
	assert_int_equal(to_err(r.end[1].qp), 0);
	assert_int_equal(missing(&r), 0);
	assert_int_equal(rig_expect(&r, 1, IBV_WC_WR_FLUSH_ERR).wr_id, 5);
	expect_untouched(&r);
	rig_close(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_half),
		cmocka_unit_test(test_on_the_way),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
