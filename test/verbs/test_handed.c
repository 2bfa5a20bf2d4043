/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completions for queues of another engine, which takes them slower than they come: those
 * of one program, however many, delay no other program's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"

#include "control/objects.h"
#include "engine/engine.h"
#include "verbs/adapter/adapter.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <time.h>

enum {
	QPS = 160,
	DEPTH = 64,   /* receives and requests of a QP: all QPs' together are more than the ring holds */
	MINE = 50,    /* requests of the modest program */
	MORE = 14,    /* requests that it posts later */
	TURNS = 400,  /* turns in which all that was posted is done */
	HERE = 0,     /* engine of the QPs */
	THERE = 2,    /* engine of their completions */
};

_Static_assert(QPS * DEPTH > 2 * URN_ENGINE_RING, "the ring is full");

/* A program on node 0, with QPs in ERR: posted requests complete at once. */
struct prog {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *sends, *recvs; /* completion queues on THERE and HERE */
	struct ibv_qp *qp[QPS];
	uint32_t qps;
};

static void
attach(struct rig *r, struct prog *p, uint32_t qps)
{
	struct rig_qp o = {0};
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};

	p->ctx = rig_attach(r, 0);
	p->pd = ibv_alloc_pd(p->ctx);
	p->sends = ibv_create_cq(p->ctx, QPS * DEPTH, NULL, NULL, 1);
	p->recvs = ibv_create_cq(p->ctx, 1, NULL, NULL, 0);
	assert_true(p->pd && p->sends && p->recvs);
	o = (struct rig_qp){.pd = p->pd, .send_cq = p->sends, .recv_cq = p->recvs, .depth = DEPTH};
	for (p->qps = 0; p->qps < qps; p->qps++) {
		p->qp[p->qps] = rig_make_qp(r, 0, &o);
		assert_int_equal(ibv_modify_qp(p->qp[p->qps], &err, IBV_QP_STATE), 0);
	}
}

static void
detach(struct prog *p)
{
	while (p->qps)
		assert_int_equal(ibv_destroy_qp(p->qp[--p->qps]), 0);
	assert_int_equal(ibv_destroy_cq(p->sends), 0);
	assert_int_equal(ibv_destroy_cq(p->recvs), 0);
	assert_int_equal(ibv_dealloc_pd(p->pd), 0);
	assert_int_equal(ibv_close_device(p->ctx), 0);
}

/* Post n numbered requests on each of the program's QPs. */
static void
post(const struct prog *p, uint32_t first, uint32_t n)
{
	for (uint32_t i = 0; i < p->qps; i++) {
		for (uint32_t k = 0; k < n; k++) {
			struct ibv_send_wr wr = {.wr_id = first + k, .opcode = IBV_WR_SEND};

			rig_send_on(p->qp[i], &wr);
		}
	}
}

/* Turns in which the other engine does not take its completions. */
static void
turn_here(struct rig *r, unsigned int n)
{
	while (n--)
		urn_engine_poll(urn_dp_engine(r->dp, HERE));
}

/* All of n requests of the program's one QP complete, in order. returns: the turns it took */
static unsigned int
expect(struct rig *r, const struct prog *p, uint32_t n)
{
	time_t start = time(NULL);
	unsigned int turns = 0;
	struct ibv_wc wc;

	for (uint32_t k = 0; k < n; turns++) {
		assert_true(time(NULL) - start < 60);
		while (ibv_poll_cq(p->sends, 1, &wc) == 1) {
			assert_int_equal(wc.wr_id, k++);
			assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
		}
		rig_turn(r);
	}
	return turns;
}

/* Asynchronous events of a program that report a broken completion queue. returns: how many came */
static uint32_t
broken(struct prog *p)
{
	struct pollfd fd = {.fd = p->ctx->async_fd, .events = POLLIN};
	struct ibv_async_event ev;
	uint32_t n = 0;

	for (; poll(&fd, 1, 0) == 1; n++) {
		assert_int_equal(ibv_get_async_event(p->ctx, &ev), 0);
		assert_int_equal(ev.event_type, IBV_EVENT_CQ_ERR);
		assert_ptr_equal(ev.element.cq, p->sends);
		ibv_ack_async_event(&ev);
	}
	return n;
}

/* All of n requests of each of the program's QPs complete, each QP's in order. */
static void
expect_all(struct rig *r, const struct prog *p, uint32_t n)
{
	uint32_t next[QPS] = {0}, left = p->qps * n;
	time_t start = time(NULL);
	struct ibv_wc wc;

	while (left) {
		assert_true(time(NULL) - start < 60);
		while (ibv_poll_cq(p->sends, 1, &wc) == 1) {
			uint32_t i = 0;

			while (p->qp[i]->qp_num != wc.qp_num)
				i++;
			assert_int_equal(wc.wr_id, next[i]++);
			assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
			left--;
		}
		rig_turn(r);
	}
	assert_int_equal(ibv_poll_cq(p->sends, 1, &wc), 0);
}

/*
 * One program floods the other engine's ring: none of its completions is lost, for its queue
 * has room, nor one of another program, which waits for the ring only.
 */
static void
test_flood(void **state)
{
	struct prog greedy, modest;
	struct rig r;

	(void)state;
	rig_open(&r, &(struct rig_config){.engines = 4}, NULL);
	attach(&r, &greedy, QPS);
	attach(&r, &modest, 1);
	post(&greedy, 0, DEPTH);
	turn_here(&r, TURNS);
	post(&modest, 0, MINE);
	turn_here(&r, TURNS);
	/* New completions, when there is room, overtake none that is late. */
	post(&modest, MINE, MORE);
	urn_engine_poll(urn_dp_engine(r.dp, THERE));
	turn_here(&r, 1);
	/* Two programs have late completions: half of the room is for this one. */
	assert_in_range(expect(&r, &modest, MINE + MORE), 1,
			(URN_ENGINE_RING + 2 * (MINE + MORE)) / URN_TP_BURST + 8);
	expect_all(&r, &greedy, DEPTH);
	assert_int_equal(rig_counter(&r, 0, URN_C_CQE_LOST), 0);
	assert_int_equal(rig_counter(&r, 0, URN_C_CQ_OVERRUN), 0);
	assert_int_equal(broken(&modest), 0);
	assert_int_equal(broken(&greedy), 0);
	detach(&greedy);
	detach(&modest);
	rig_close(&r);
}

/* One program's calls wait for no other's completions: they end though the ring is full all the time. */
static void
test_calls(void **state)
{
	struct prog greedy, modest;
	struct rig r;

	(void)state;
	rig_open(&r, &(struct rig_config){.engines = 4}, NULL);
	attach(&r, &greedy, QPS);
	attach(&r, &modest, 1);
	post(&greedy, 0, DEPTH);
	turn_here(&r, TURNS);
	post(&modest, 0, MINE);
	turn_here(&r, TURNS);
	detach(&modest);
	/* The rest of the greedy program's completions is late still. */
	assert_false(TAILQ_EMPTY(&r.dp->adapter[0]->shard[HERE]->late_cqes));
	detach(&greedy);
	assert_true(TAILQ_EMPTY(&r.dp->adapter[0]->shard[HERE]->late_cqes));
	rig_close(&r);
}

/* A queue with completions on their way to it may grow, and shrinks no further than they need. */
static void
test_resize(void **state)
{
	struct prog p;
	struct rig r;

	(void)state;
	rig_open(&r, &(struct rig_config){.engines = 4}, NULL);
	attach(&r, &p, QPS);
	post(&p, 0, DEPTH);
	turn_here(&r, TURNS);
	assert_int_equal(ibv_resize_cq(p.sends, QPS * DEPTH / 4), EINVAL);
	assert_int_equal(ibv_resize_cq(p.sends, 4 * QPS * DEPTH), 0);
	for (int i = 0; i < 100; i++)
		rig_turn(&r);
	assert_int_equal(ibv_resize_cq(p.sends, QPS * DEPTH), 0);
	expect_all(&r, &p, DEPTH);
	/* The room is counted right afterwards. */
	post(&p, 0, DEPTH);
	turn_here(&r, TURNS);
	expect_all(&r, &p, DEPTH);
	assert_int_equal(broken(&p), 0);
	detach(&p);
	rig_close(&r);
}

/* The program writes to its memory that all its requests are over, and all completions polled. */
static void
lie(const struct prog *p, const struct urn_client_shard *c)
{
	for (uint32_t i = 0; i < p->qps; i++)
		atomic_store(&urn_qp(p->qp[i])->polled->send, urn_qp(p->qp[i])->sq.prod);
	for (uint32_t i = 0; i < c->used; i++) {
		struct urn_qp *qp = urn_source_qp(c->source[i]);

		atomic_store(&qp->sq.hdr->cons, atomic_load(&qp->sq.hdr->prod));
		atomic_store(&qp->send_cq->hdr->cons, qp->send_cq->claimed);
	}
}

/*
 * A program that claims to have read completions which it never got frees slots without end. The
 * program's completions for the other engine are bounded all the same: its own queue breaks, nobody
 * else's.
 */
static void
test_lie(void **state)
{
	enum { ROUNDS = 8, ENTRIES = 16384 };
	const struct urn_client_shard *c;
	struct prog liar, modest;
	struct rig r;

	(void)state;
	rig_open(&r, &(struct rig_config){.engines = 4}, NULL);
	attach(&r, &modest, 1);
	attach(&r, &liar, QPS);
	for (c = LIST_FIRST(&r.dp->adapter[0]->shard[HERE]->clients); c->used != QPS;)
		c = LIST_NEXT(c, link);
	assert_int_equal(urn_source_qp(c->source[0])->send_cq->mask + 1, ENTRIES);
	for (int i = 0; i < ROUNDS; i++) {
		post(&liar, 0, DEPTH);
		turn_here(&r, TURNS);
		lie(&liar, c);
		assert_in_range(c->late_cqes.n - c->late_cqes.quiet, 0, ENTRIES + URN_ABI_MAX_ENGINES);
		assert_in_range(c->late_cqes.quiet, 0, c->sq_entries);
	}
	assert_int_equal(urn_source_qp(c->source[0])->send_cq->handed_late, c->late_cqes.n - c->late_cqes.quiet);
	/* One completion is lost, and the queue is broken; the others find it so. */
	assert_int_equal(rig_counter(&r, 0, URN_C_CQE_LOST), 1);
	assert_in_range(rig_counter(&r, 0, URN_C_CQ_OVERRUN), QPS * DEPTH, ROUNDS * QPS * DEPTH);
	post(&modest, 0, MINE);
	expect(&r, &modest, MINE);
	assert_int_equal(broken(&liar), 1);
	assert_int_equal(broken(&modest), 0);
	detach(&liar);
	detach(&modest);
	rig_close(&r);
}

/*
 * A queue of another engine is full: a message without room there is not acknowledged,
 * though the QP's engine has it in hand and the other engine never comes to look.
 */
static void
test_full(void **state)
{
	enum { ROOM = 4 };
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 16, .max_sge = 1}};
	struct ibv_async_event ev;
	struct rig_qp o = {0};
	struct ibv_qp *to, *from;
	struct ibv_wc wc;
	struct rig r;

	(void)state;
	rig_open(&r, &(struct rig_config){.engines = 4}, NULL);
	o.srq = ibv_create_srq(r.end[1].pd, &init);
	o.recv_cq = ibv_create_cq(r.end[1].ctx, ROOM, NULL, NULL, 1);
	assert_true(o.srq && o.recv_cq);
	to = rig_make_qp(&r, 1, &o);
	from = rig_make_qp(&r, 0, &(struct rig_qp){0});
	rig_connect(&r, 1, to, 5, from->qp_num, 5, &o);
	rig_connect(&r, 0, from, 5, to->qp_num, 5, &(struct rig_qp){0});
	for (uint64_t i = 0; i <= ROOM; i++) {
		struct ibv_recv_wr rwr = {.wr_id = i}, *bad;
		struct ibv_send_wr wr = {.wr_id = i, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};

		assert_int_equal(ibv_post_srq_recv(o.srq, &rwr, &bad), 0);
		rig_send_on(from, &wr);
		while (ibv_poll_cq(r.end[0].cq, 1, &wc) == 0)
			for (int e = 0; e < 3; e++) /* all engines but the fourth, which owns the queue */
				urn_engine_poll(urn_dp_engine(r.dp, (unsigned int)e));
		assert_int_equal(wc.wr_id, i);
		assert_int_equal(wc.status, i < ROOM ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR);
	}
	assert_int_equal(rig_state(to), IBV_QPS_ERR);
	for (uint64_t i = 0; i < ROOM; i++) {
		while (ibv_poll_cq(o.recv_cq, 1, &wc) == 0)
			rig_turn(&r);
		assert_int_equal(wc.wr_id, i);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	}
	assert_int_equal(ibv_get_async_event(r.end[1].ctx, &ev), 0);
	assert_int_equal(ev.event_type, IBV_EVENT_CQ_ERR);
	assert_ptr_equal(ev.element.cq, o.recv_cq);
	ibv_ack_async_event(&ev);
	rig_event(&r, 1, IBV_EVENT_QP_FATAL);
	rig_event(&r, 1, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_int_equal(ibv_destroy_qp(to), 0);
	assert_int_equal(ibv_destroy_qp(from), 0);
	assert_int_equal(ibv_destroy_srq(o.srq), 0);
	assert_int_equal(ibv_destroy_cq(o.recv_cq), 0);
	rig_close(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flood),
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_resize),
		cmocka_unit_test(test_lie),
		cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
