/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Engines on threads of their own, as on lcores, and programs on others: two threads
 * serve each adapter, QPs' completion queues belong to different engines, and packets
 * come in at the wrong one. With every idle policy.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"
#include "engine/engine.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { POSTERS = 3, MESSAGES = 2000, DEPTH = 64, SIZE = 3000 };

/* The first failure, in any thread; cmocka's assertions are for the main thread only. */
static const char *_Atomic wrong;

static bool
so(bool ok, const char *what)
{
	const char *none = NULL;

	if (!ok)
		atomic_compare_exchange_strong(&wrong, &none, what);
	return ok;
}

static bool
late(time_t start)
{
	return !so(time(NULL) - start < 60, "nothing happens for a minute");
}

/* ---- engines' threads */

struct lcore {
	pthread_t thread;
	struct rig *r;
	unsigned int first, n; /* engines first, first + 1, ... */
	volatile bool stop;
};

static void *
lcore_main(void *arg)
{
	struct lcore *l = arg;
	unsigned int empty = 0;

	so(rte_thread_register() == 0, "the thread is no lcore");
	if (l->n == 1) {
		urn_engine_run(urn_dp_engine(l->r->dp, l->first), &l->stop);
	} else {
		for (unsigned int i = 0; i < l->n; i++)
			urn_engine_bind(urn_dp_engine(l->r->dp, l->first + i));
		while (!l->stop) {
			unsigned int done = 0;

			for (unsigned int i = 0; i < l->n; i++)
				done += urn_engine_poll(urn_dp_engine(l->r->dp, l->first + i));
			empty = done ? 0 : empty + 1;
			if (empty)
				urn_engine_idle(urn_dp_engine(l->r->dp, l->first), empty);
		}
		for (unsigned int i = 0; i < l->n; i++)
			urn_engine_unbind(urn_dp_engine(l->r->dp, l->first + i));
	}
	rte_thread_unregister();
	return NULL;
}

static void
start(struct lcore *l, unsigned int lcores, struct rig *r, enum urn_idle idle)
{
	for (unsigned int i = 0; i < r->engines; i++) {
		struct urn_engine *e = urn_dp_engine(r->dp, i);

		e->cfg.idle = idle;
		e->cfg.empty_polls = 50;
		urn_engine_unbind(e);
	}
	for (unsigned int i = 0; i < lcores; i++) {
		l[i] = (struct lcore){.r = r, .n = r->engines / lcores};
		l[i].first = i * l[i].n;
		assert_int_equal(pthread_create(&l[i].thread, NULL, lcore_main, &l[i]), 0);
	}
}

static void
stop(struct lcore *l, unsigned int lcores)
{
	for (unsigned int i = 0; i < lcores; i++) {
		l[i].stop = true;
		assert_int_equal(pthread_join(l[i].thread, NULL), 0);
	}
}

/* ---- programs */

/* A pair of QPs that several threads post to; the receiver waits for its queue by a channel. */
struct pair {
	struct rig *r;
	struct ibv_qp *qp[2];
	struct ibv_cq *cq[2][2]; /* by end: sends, receives */
	struct ibv_comp_channel *channel;
	_Atomic uint32_t next;   /* next message to post */
	_Atomic uint32_t polled; /* sends completed */
	_Atomic uint8_t seen[2][MESSAGES];
	pthread_t poster[POSTERS], taker;
	uint8_t *buf;            /* receives, at end 1 */
	struct ibv_mr *mr;
};

static void
poll_sends(struct pair *p)
{
	struct ibv_wc wc[4];
	int n = ibv_poll_cq(p->cq[0][0], 4, wc);

	for (int i = 0; i < n; i++) {
		so(wc[i].status == IBV_WC_SUCCESS, "a send failed");
		so(wc[i].wr_id < MESSAGES && !atomic_exchange(&p->seen[0][wc[i].wr_id % MESSAGES], 1),
		   "a send completed twice");
	}
	if (n > 0)
		atomic_fetch_add(&p->polled, (uint32_t)n);
	else
		sched_yield();
}

static void
post(struct pair *p, uint32_t i)
{
	struct rig_end *end = &p->r->end[0];
	struct ibv_sge sge = {(uintptr_t)end->buf + i % 1000, SIZE, end->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = i, .opcode = IBV_WR_SEND_WITH_IMM, .sg_list = &sge,
				 .num_sge = 1, .send_flags = IBV_SEND_SIGNALED, .imm_data = i}, *bad;
	time_t begin = time(NULL);
	int rc;

	while ((rc = ibv_post_send(p->qp[0], &wr, &bad)) == ENOMEM && !late(begin))
		poll_sends(p); /* slots are free when their completions are polled */
	so(rc == 0, "a post failed");
}

/* A thread that posts and polls on the same queues as the others. */
static void *
poster(void *arg)
{
	struct pair *p = arg;
	time_t begin = time(NULL);
	uint32_t i;

	while ((i = atomic_fetch_add(&p->next, 1)) < MESSAGES && !atomic_load(&wrong)) {
		post(p, i);
		poll_sends(p);
	}
	while (atomic_load(&p->polled) < MESSAGES && !atomic_load(&wrong) && !late(begin))
		poll_sends(p);
	return NULL;
}

static void
post_recv(struct pair *p, uint32_t slot)
{
	struct ibv_sge sge = {(uintptr_t)p->buf + (size_t)slot * SIZE, SIZE, p->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

	so(ibv_post_recv(p->qp[1], &wr, &bad) == 0, "a receive was refused");
}

static uint32_t
take(struct pair *p)
{
	struct ibv_wc wc;
	uint32_t n = 0;

	while (ibv_poll_cq(p->cq[1][1], 1, &wc) == 1) {
		const uint8_t *got = p->buf + wc.wr_id * SIZE;
		uint32_t i = wc.imm_data;

		n++;
		so(wc.status == IBV_WC_SUCCESS && wc.byte_len == SIZE, "a receive failed");
		so(i < MESSAGES && !atomic_exchange(&p->seen[1][i % MESSAGES], 1), "received twice");
		so(memcmp(got, p->r->end[0].buf + i % 1000, SIZE) == 0, "bytes differ");
		post_recv(p, (uint32_t)wc.wr_id);
	}
	return n;
}

/* A thread that sleeps on the channel between completions. */
static void *
taker(void *arg)
{
	struct pair *p = arg;
	struct pollfd fd = {.fd = p->channel->fd, .events = POLLIN};
	uint32_t got = 0, events = 0;
	struct ibv_cq *cq;
	void *context;

	while (got < MESSAGES && !atomic_load(&wrong)) {
		if (!so(ibv_req_notify_cq(p->cq[1][1], 0) == 0, "not armed"))
			break;
		got += take(p);
		if (got == MESSAGES)
			break;
		if (!so(poll(&fd, 1, 60000) == 1, "no event in a minute"))
			break;
		so(ibv_get_cq_event(p->channel, &cq, &context) == 0 && cq == p->cq[1][1], "event");
		events++;
	}
	while (poll(&fd, 1, 0) == 1 && ibv_get_cq_event(p->channel, &cq, &context) == 0)
		events++;
	ibv_ack_cq_events(p->cq[1][1], events);
	return NULL;
}

/* The QPs' queues lie on different engines: on which ones, varies from pair to pair. */
static void
pair_open(struct pair *p, struct rig *r, unsigned int kind)
{
	struct rig_qp o = {.depth = DEPTH, .sge = 1};

	memset(p, 0, sizeof(*p));
	p->r = r;
	p->buf = calloc(DEPTH, SIZE);
	p->mr = ibv_reg_mr(r->end[1].pd, p->buf, (size_t)DEPTH * SIZE, IBV_ACCESS_LOCAL_WRITE);
	p->channel = ibv_create_comp_channel(r->end[1].ctx);
	assert_true(p->buf && p->mr && p->channel);
	for (int e = 0; e < 2; e++) {
		int vectors = r->end[e].ctx->num_comp_vectors;

		for (int c = 0; c < 2; c++) {
			int vector = (int)(kind >> (2 * e + c)) % vectors;

			p->cq[e][c] = ibv_create_cq(r->end[e].ctx, 2 * DEPTH, NULL,
						    e && c ? p->channel : NULL, vector);
			assert_non_null(p->cq[e][c]);
		}
		o.send_cq = p->cq[e][0];
		o.recv_cq = p->cq[e][1];
		p->qp[e] = rig_make_qp(r, e, &o);
	}
	o.timeout = 18; /* threads that share two cores may be away for long */
	for (int e = 0; e < 2; e++)
		rig_connect(r, e, p->qp[e], 9, p->qp[!e]->qp_num, 9, &o);
	for (uint32_t i = 0; i < DEPTH; i++)
		post_recv(p, i);
}

static void
pair_start(struct pair *p)
{
	assert_int_equal(pthread_create(&p->taker, NULL, taker, p), 0);
	for (int i = 0; i < POSTERS; i++)
		assert_int_equal(pthread_create(&p->poster[i], NULL, poster, p), 0);
}

static void
pair_join(struct pair *p)
{
	for (int i = 0; i < POSTERS; i++)
		pthread_join(p->poster[i], NULL);
	pthread_join(p->taker, NULL);
}

static void
pair_close(struct pair *p)
{
	for (int e = 0; e < 2; e++) {
		assert_int_equal(ibv_destroy_qp(p->qp[e]), 0);
		for (int c = 0; c < 2; c++)
			assert_int_equal(ibv_destroy_cq(p->cq[e][c]), 0);
	}
	assert_int_equal(ibv_destroy_comp_channel(p->channel), 0);
	assert_int_equal(ibv_dereg_mr(p->mr), 0);
	free(p->buf);
}

/* Objects come and go beside the traffic, on a context that comes and goes, too. */
static void
churn(struct rig *r, unsigned int i)
{
	struct ibv_context *ctx = rig_attach(r, i & 1);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 10, NULL, NULL, (int)i % ctx->num_comp_vectors);
	struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
					.cap = {4, 4, 1, 1, 0}};
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};
	struct ibv_recv_wr wr = {.wr_id = i}, *bad;
	struct ibv_mr *mr = ibv_reg_mr(pd, &init, sizeof(init), 0);
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	time_t begin = time(NULL);
	struct ibv_wc wc;

	assert_true(pd && cq && mr && qp);
	assert_int_equal(ibv_resize_cq(cq, 100), 0);
	assert_int_equal(ibv_modify_qp(qp, &err, IBV_QP_STATE), 0);
	assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
	while (ibv_poll_cq(cq, 1, &wc) == 0 && !late(begin))
		sched_yield();
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wc.wr_id, i);
	if (i % 3) {
		assert_int_equal(ibv_destroy_qp(qp), 0);
		assert_int_equal(ibv_dereg_mr(mr), 0);
		assert_int_equal(ibv_destroy_cq(cq), 0);
		assert_int_equal(ibv_dealloc_pd(pd), 0);
		assert_int_equal(ibv_close_device(ctx), 0);
		return;
	}
	assert_int_equal(ibv_close_device(ctx), 0);
	free(qp);
	free(mr);
	free(cq);
	free(pd);
}

/* ---- tests */

static void
traffic(unsigned int engines, unsigned int lcores, uint32_t queues, enum urn_idle idle)
{
	struct rig_config cfg = {.engines = engines, .queues = queues};
	static struct pair p[4];
	struct lcore l[4];
	struct rig r;

	rig_open(&r, &cfg, NULL);
	rig_fill(r.end[0].buf, RIG_BUF, 5);
	start(l, lcores, &r, idle);
	/* Sends and receives on one engine, and on two; at either end. */
	for (unsigned int i = 0; i < 4; i++)
		pair_open(&p[i], &r, (unsigned int[]){0x0, 0x9, 0x6, 0xb}[i]);
	for (int i = 0; i < 4; i++)
		pair_start(&p[i]);
	for (unsigned int i = 0; i < 100 && !atomic_load(&wrong); i++)
		churn(&r, i);
	for (int i = 0; i < 4; i++)
		pair_join(&p[i]);
	if (atomic_load(&wrong))
		fail_msg("%s", atomic_load(&wrong));
	for (int i = 0; i < 4; i++)
		pair_close(&p[i]);
	stop(l, lcores);
	for (int n = 0; n < 2 && engines > 2; n++) {
		assert_true(rig_counter(&r, n, URN_C_HANDOVER_RX) > 0);
		/* A QP lives on its receive queue's engine: only senders' completions are handed over. */
		assert_int_equal(rig_counter(&r, n, URN_C_HANDOVER_CQE) > 0, n == 0);
		assert_int_equal(rig_counter(&r, n, URN_C_CQ_OVERRUN), 0);
	}
	rig_close(&r);
}

static void
test_spin(void **state)
{
	(void)state;
	traffic(2, 2, 0, URN_IDLE_SPIN);
	traffic(4, 2, 0, URN_IDLE_SPIN);
}

static void
test_pause(void **state)
{
	(void)state;
	traffic(2, 2, 0, URN_IDLE_PAUSE);
	/* One queue of the port for two engines: one sends for the other. */
	traffic(4, 2, 1, URN_IDLE_PAUSE);
	traffic(4, 4, 0, URN_IDLE_PAUSE);
}

static void
test_sleep(void **state)
{
	(void)state;
	traffic(2, 2, 0, URN_IDLE_SLEEP);
	traffic(4, 2, 0, URN_IDLE_SLEEP);
	traffic(4, 4, 0, URN_IDLE_SLEEP);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spin),
		cmocka_unit_test(test_pause),
		cmocka_unit_test(test_sleep),
	};

	return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
