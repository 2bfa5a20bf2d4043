/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Engines by themselves: sleep and wake-up, many engines a thread, several nodes and
 * adapters a process, hand-over between engines.
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
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include <rte_cycles.h>

/* ---- sleep; the engines' epoll_pwait2() comes here, and may take a minute instead of their 100 us */

static struct {
	int calls, woken;
	void (*meanwhile)(struct rig *r); /* called while the engine is asleep */
	struct rig *r;
	long nsec;                        /* time limit of the last call */
} nap;

int __real_epoll_pwait2(int fd, struct epoll_event *ev, int max, const struct timespec *limit,
			const sigset_t *mask);
int __wrap_epoll_pwait2(int fd, struct epoll_event *ev, int max, const struct timespec *limit,
			const sigset_t *mask);

int
__wrap_epoll_pwait2(int fd, struct epoll_event *ev, int max, const struct timespec *limit,
		    const sigset_t *mask)
{
	static const struct timespec minute = {.tv_sec = 60}, none;
	int got;

	nap.calls++;
	nap.nsec = limit->tv_nsec;
	if (nap.meanwhile)
		nap.meanwhile(nap.r);
	got = __real_epoll_pwait2(fd, ev, max, nap.meanwhile ? &minute : &none, mask);
	nap.woken += got > 0;
	return got;
}

static int yields;

int __wrap_sched_yield(void);

int
__wrap_sched_yield(void)
{
	yields++;
	return 0;
}

static void
write_one(struct rig *r)
{
	rig_post(r, 0, IBV_WR_RDMA_WRITE, 0, 100, 0, 1);
}

static void
sleeper(struct rig *r, uint32_t empty_polls, uint32_t sleep_us)
{
	struct urn_engine *e = urn_dp_engine(r->dp, 0);

	rig_turns(r, 200); /* announcements are on their way */
	e->cfg.idle = URN_IDLE_SLEEP;
	e->cfg.empty_polls = empty_polls;
	e->cfg.sleep_us = sleep_us;
	memset(&nap, 0, sizeof(nap));
	nap.r = r;
}

/* The engine sleeps over nothing: a doorbell before keeps it awake, a doorbell after wakes it. */
static void
test_doorbell_wakes(void **state)
{
	struct rig_config cfg = {.engines = 1};
	struct urn_engine *e;
	struct rig r;

	(void)state;
	rig_open(&r, &cfg, NULL);
	e = urn_dp_engine(r.dp, 0);
	sleeper(&r, 10, 250);
	/* The engine does not sleep before that many empty polls. */
	urn_engine_idle(e, 9);
	assert_int_equal(nap.calls, 0);
	urn_engine_idle(e, 10);
	assert_int_equal(nap.calls, 1);
	assert_int_equal(nap.nsec, 250000);
	/* A doorbell before: no sleep. */
	write_one(&r);
	urn_engine_idle(e, 10);
	assert_int_equal(nap.calls, 1);
	rig_expect(&r, 0, IBV_WC_SUCCESS);
	rig_turns(&r, 100);
	/* A doorbell while the engine is asleep: the eventfd wakes it, not the time limit. */
	for (int i = 1; i <= 20; i++) {
		nap.meanwhile = write_one;
		urn_engine_idle(e, 10);
		assert_int_equal(nap.calls, 1 + i);
		assert_int_equal(nap.woken, i);
		nap.meanwhile = NULL;
		rig_expect(&r, 0, IBV_WC_SUCCESS);
		rig_turns(&r, 100);
		/* A doorbell does not wake an engine that is awake: the next sleep lasts. */
		write_one(&r);
		rig_expect(&r, 0, IBV_WC_SUCCESS);
		rig_turns(&r, 100);
	}
	urn_engine_idle(e, 10);
	assert_int_equal(nap.woken, 20);
	rig_close(&r);
}

/* Frames that the port did not take keep an engine awake, too. */
static void
test_work_keeps_awake(void **state)
{
	struct rig_config cfg = {.engines = 2};
	struct urn_err err;
	struct rig r;

	(void)state;
	rig_open(&r, &cfg, NULL);
	rig_post(&r, 0, IBV_WR_RDMA_WRITE, 0, 100, 0, 1);
	rig_expect(&r, 0, IBV_WC_SUCCESS);
	rig_turns(&r, 100);
	sleeper(&r, 1, 100);
	assert_int_equal(urn_port_stop(r.port[0], &err), 0);
	write_one(&r);
	urn_engine_poll(urn_dp_engine(r.dp, 0));
	urn_engine_idle(urn_dp_engine(r.dp, 0), 1);
	assert_int_equal(nap.calls, 0);
	assert_int_equal(urn_port_start(r.port[0], &err), 0);
	rig_expect(&r, 0, IBV_WC_SUCCESS);
	rig_close(&r);
}

static _Atomic bool called;

static void *
call_main(void *arg)
{
	struct ibv_pd *pd = ibv_alloc_pd(arg);
	struct ibv_cq *cq = ibv_create_cq(arg, 4, NULL, NULL, 0);

	/* The engine has to carry out this call. */
	if (pd && cq && ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0)
		atomic_store(&called, true);
	return NULL;
}

static pthread_t caller;

static void
call_one(struct rig *r)
{
	if (!caller)
		pthread_create(&caller, NULL, call_main, r->end[0].ctx);
}

/* A control call of another thread wakes the engine. */
static void
test_call_wakes(void **state)
{
	struct rig_config cfg = {.engines = 1};
	struct rig r;

	(void)state;
	rig_open(&r, &cfg, NULL);
	sleeper(&r, 1, 100);
	nap.meanwhile = call_one;
	while (!atomic_load(&called)) {
		urn_engine_idle(urn_dp_engine(r.dp, 0), 1);
		assert_int_equal(nap.woken, nap.calls);
		/* Until the call is done, its caller has one more to make. */
		while (!atomic_load(&called) && !urn_dp_engine(r.dp, 0)->mail)
			sched_yield();
		rig_turn(&r);
		while (!atomic_load(&called) && !urn_dp_engine(r.dp, 0)->mail)
			sched_yield();
	}
	pthread_join(caller, NULL);
	rig_close(&r);
}

/* The policies that spin or pause never sleep; a sleep never lasts over a millisecond. */
static void
test_policies(void **state)
{
	struct urn_engine_config ec = {.idle = URN_IDLE_SLEEP, .sleep_us = 500000};
	struct urn_engine *e;

	(void)state;
	e = urn_engine_create(0, &ec, "policy");
	assert_non_null(e);
	memset(&nap, 0, sizeof(nap));
	yields = 0;
	for (unsigned int i = 1; i < 1024; i++)
		urn_engine_idle(e, i);
	assert_int_equal(nap.calls, 0);
	assert_in_range(yields, 50, 1023); /* a thread that waits for this core gets it */
	urn_engine_idle(e, 1024);
	assert_int_equal(nap.calls, 1);
	assert_int_equal(nap.nsec, 1000000);
	/* Sleeps grow longer where nothing comes for long, to a millisecond at most. */
	e->cfg.sleep_us = 100;
	for (int i = 0; i < 6; i++) {
		static const long nsec[] = {100000, 200000, 400000, 800000, 1000000, 1000000};

		urn_engine_idle(e, 1024 + 256 * (unsigned int)i);
		assert_int_equal(nap.nsec, nsec[i]);
		urn_engine_idle(e, 1024 + 256 * (unsigned int)i + 255);
		assert_int_equal(nap.nsec, nsec[i]);
	}
	urn_engine_idle(e, UINT32_MAX);
	assert_int_equal(nap.nsec, 1000000);
	nap.calls = 1;
	for (enum urn_idle idle = URN_IDLE_SPIN; idle <= URN_IDLE_PAUSE; idle++) {
		e->cfg.idle = idle;
		yields = 0;
		for (unsigned int i = 0; i < 5000; i++)
			urn_engine_idle(e, i);
		assert_int_equal(yields > 0, idle == URN_IDLE_PAUSE);
	}
	assert_int_equal(nap.calls, 1);
	urn_engine_destroy(e);
}

/* ---- many engines of one thread */

static struct urn_dp *
bare_dp(unsigned int engines)
{
	struct urn_dp_config cfg = {.engines = engines};
	struct urn_err err;
	struct urn_dp *dp = urn_dp_create(&cfg, &err);

	if (!dp)
		fail_msg("%s", err.text);
	for (unsigned int i = 0; i < engines; i++)
		urn_engine_bind(urn_dp_engine(dp, i));
	return dp;
}

/* A thread that polls dozens of engines: a call to the last one comes to its end. */
static void
test_many_engines(void **state)
{
	struct urn_dp *more[3];
	struct rig r;

	(void)state;
	/* The EAL is up by now. */
	for (int i = 0; i < 3; i++)
		more[i] = bare_dp(URN_ABI_MAX_ENGINES);
	rig_open(&r, NULL, NULL);
	rig_post(&r, 0, IBV_WR_RDMA_WRITE, 0, 100, 0, 1);
	rig_expect(&r, 0, IBV_WC_SUCCESS);
	/* Bound engines are taken down, too; binding one twice is like once. */
	urn_engine_bind(urn_dp_engine(more[2], 3));
	urn_dp_destroy(more[0]);
	rig_close(&r);
	urn_dp_destroy(more[2]);
	urn_dp_destroy(more[1]);
}

static void *
bind_and_end(void *arg)
{
	for (unsigned int i = 0; i < 2; i++)
		urn_engine_bind(urn_dp_engine(arg, i));
	return NULL;
}

/* A thread that ended without unbinding leaves a dataplane that can be taken down, with its clients. */
static void
test_thread_gone(void **state)
{
	struct urn_err err;
	pthread_t t;
	struct rig r;
	struct urn_abi_channel *ch;
	struct ibv_context *ctx;
	struct ibv_cq *cq;

	(void)state;
	rig_open(&r, NULL, NULL);
	ctx = rig_attach(&r, 0);
	cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
	assert_non_null(cq);
	ch = urn_dp_attach(r.dp, 1, &err);
	assert_non_null(ch);
	ch->close(ch->ctx);
	for (int e = 0; e < 2; e++) {
		assert_int_equal(ibv_destroy_qp(r.end[e].qp), 0);
		assert_int_equal(ibv_destroy_cq(r.end[e].cq), 0);
		assert_int_equal(ibv_dereg_mr(r.end[e].mr), 0);
		assert_int_equal(ibv_dealloc_pd(r.end[e].pd), 0);
		assert_int_equal(ibv_close_device(r.end[e].ctx), 0);
		free(r.end[e].buf);
	}
	for (unsigned int i = 0; i < 2; i++)
		urn_engine_unbind(urn_dp_engine(r.dp, i));
	assert_int_equal(pthread_create(&t, NULL, bind_and_end, r.dp), 0);
	pthread_join(t, NULL);
	urn_dp_destroy(r.dp);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_close_device(ctx), 0);
	for (int i = 0; i < 2; i++)
		urn_port_close(r.port[i]);
}

/* ---- between engines */

/* A frame counts once, on whichever engine it came in; the ring's tail is stored relaxed. */
static void
test_hand_over(void **state)
{
	static struct rig_config cfg = {.engines = 4, .queues = 1};
	struct rig_qp o = {.mtu = IBV_MTU_256};
	struct ibv_qp *qp[2];
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_sge sge;
	struct rig r;

	(void)state;
	rig_open(&r, &cfg, NULL);
	for (int e = 0; e < 2; e++) {
		o.send_cq = o.recv_cq = ibv_create_cq(r.end[e].ctx, 16, NULL, NULL, 1);
		assert_non_null(o.send_cq);
		qp[e] = rig_make_qp(&r, e, &o);
	}
	for (int e = 0; e < 2; e++)
		rig_connect(&r, e, qp[e], 3, qp[!e]->qp_num, 3, &o);
	sge = (struct ibv_sge){(uintptr_t)r.end[0].buf, 50000, r.end[0].mr->lkey};
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.wr.rdma.remote_addr = (uintptr_t)r.end[1].buf;
	wr.wr.rdma.rkey = r.end[1].mr->rkey;
	rig_send_on(qp[0], &wr);
	struct ibv_wc wc;

	while (ibv_poll_cq(qp[0]->send_cq, 1, &wc) == 0)
		rig_turn(&r);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	rig_turns(&r, 1000);
	for (int e = 0; e < 2; e++) {
		assert_true(rig_counter(&r, e, URN_C_HANDOVER_RX) > 0);
		assert_int_equal(rig_counter(&r, e, URN_C_RX_PACKETS), rig_counter(&r, !e, URN_C_TX_PACKETS));
		assert_int_equal(rig_counter(&r, e, URN_C_RX_BYTES), rig_counter(&r, !e, URN_C_TX_BYTES));
	}
	for (unsigned int i = 0; i < 4; i++) {
		const struct rte_ring *ring = urn_dp_engine(r.dp, i)->ring;

		assert_true(rte_ring_get_prod_sync_type(ring) == RTE_RING_SYNC_MT_RTS);
		assert_true(ring->rts_prod.tail.val.pos > 0);
		assert_int_equal(ring->rts_prod.head.val.pos, ring->rts_prod.tail.val.pos);
	}
	for (int e = 0; e < 2; e++) {
		struct ibv_cq *cq = qp[e]->send_cq;

		assert_int_equal(ibv_destroy_qp(qp[e]), 0);
		assert_int_equal(ibv_destroy_cq(cq), 0);
	}
	rig_close(&r);
}

/* Frames that never leave the adapter do not count as the port's. */
static void
test_loopback_counts(void **state)
{
	struct rig_config cfg = {.loopback = true};
	uint64_t before;
	struct rig r;

	(void)state;
	rig_open(&r, &cfg, NULL);
	rig_turns(&r, 100);
	before = rig_counter(&r, 0, URN_C_RX_PACKETS);
	rig_post(&r, 0, IBV_WR_RDMA_WRITE, 0, 50000, 0, 1);
	rig_expect(&r, 0, IBV_WC_SUCCESS);
	assert_true(rig_counter(&r, 0, URN_C_LOOPBACK) >= 49);
	assert_int_equal(rig_counter(&r, 0, URN_C_RX_PACKETS), before);
	rig_close(&r);
}

/* ---- several nodes and adapters in one process */

enum { RAILS = 3, ENDS = 2 * RAILS };

/* An adapter of one of two nodes, and its program; ends 2 n and 2 n + 1 are of the same cable. */
struct rail_end {
	struct urn_port *port;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr; /* region of all of buf */
	struct ibv_qp *qp;
	uint8_t buf[4096];
};

static struct urn_dp *
open_rails(struct rail_end *end)
{
	struct urn_adapter_config ac[ENDS];
	struct urn_dp_config dc = {.engines = 2, .adapters = ENDS, .adapter = ac};
	struct urn_dp *dp;
	struct urn_err err;

	memset(ac, 0, sizeof(ac));
	for (unsigned int i = 0; i < ENDS; i += 2) {
		struct urn_port_config pc[2] = {{.name = "a", .mbufs = 2048}, {.name = "b", .mbufs = 2048}};
		struct urn_port *port[2];

		assert_int_equal(urn_port_open_ring_pair(pc, port, &err), 0);
		end[i].port = port[0];
		end[i + 1].port = port[1];
	}
	for (unsigned int i = 0; i < ENDS; i++) {
		snprintf(ac[i].node, sizeof(ac[i].node), "node%u", i & 1);
		ac[i].port = end[i].port;
		ac[i].engines = 1u << (i & 1);
		ac[i].ipv4[0] = 10;
		ac[i].ipv4[2] = (uint8_t)(i / 2);
		ac[i].ipv4[3] = (uint8_t)(1 + (i & 1));
		ac[i].max_qp = ac[i].max_mr = 16;
		ac[i].work_in_flight = 64;
		ac[i].area_size = 1 << 24;
	}
	dp = urn_dp_create(&dc, &err);
	if (!dp)
		fail_msg("%s", err.text);
	return dp;
}

static void
open_end(struct rail_end *e)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};

	e->pd = ibv_alloc_pd(e->ctx);
	e->cq = ibv_create_cq(e->ctx, 8, NULL, NULL, 0);
	e->mr = ibv_reg_mr(e->pd, e->buf, sizeof(e->buf),
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	init.send_cq = init.recv_cq = e->cq;
	assert_true(e->pd && e->cq && e->mr);
	e->qp = ibv_create_qp(e->pd, &init);
	assert_non_null(e->qp);
}

/* WRITE to the other end of the cable, and check the bytes there. */
static void
write_over(struct rig *r, struct rail_end *e, struct rail_end *other, uint32_t seed)
{
	struct ibv_sge sge = {(uintptr_t)e->buf, 2000, e->mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_wc wc;

	rig_fill(e->buf, 2000, seed);
	wr.wr.rdma.remote_addr = (uintptr_t)other->buf + 2000;
	wr.wr.rdma.rkey = other->mr->rkey;
	rig_send_on(e->qp, &wr);
	while (ibv_poll_cq(e->cq, 1, &wc) == 0)
		rig_turn(r);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_memory_equal(other->buf + 2000, e->buf, 2000);
}

static void
close_end(struct rail_end *e)
{
	assert_int_equal(ibv_destroy_qp(e->qp), 0);
	assert_int_equal(ibv_destroy_cq(e->cq), 0);
	assert_int_equal(ibv_dereg_mr(e->mr), 0);
	assert_int_equal(ibv_dealloc_pd(e->pd), 0);
	assert_int_equal(ibv_close_device(e->ctx), 0);
}

/* Two nodes of three adapters each, over three cables, on two engines: each rail works independently. */
static void
test_adapters(void **state)
{
	static struct rail_end end[ENDS];
	struct rig_qp o = {0};
	struct rig r = {.engines = 2};

	(void)state;
	r.dp = open_rails(end);
	for (unsigned int i = 0; i < ENDS; i++) {
		end[i].ctx = rig_attach(&r, i);
		/* Each adapter has a name of its own. */
		assert_int_equal(ibv_get_device_name(end[i].ctx->device)[5], '0' + (char)i);
		open_end(&end[i]);
	}
	for (unsigned int i = 0; i < ENDS; i++) {
		union ibv_gid gid;

		assert_int_equal(ibv_query_gid(end[i ^ 1].ctx, 1, 1, &gid), 0);
		rig_connect_to(&r, end[i].qp, 1, end[i ^ 1].qp->qp_num, 1, &gid, &o);
	}
	for (unsigned int i = 0; i < ENDS; i++)
		write_over(&r, &end[i], &end[i ^ 1], i);
	for (unsigned int i = 0; i < ENDS; i++)
		close_end(&end[i]);
	urn_dp_destroy(r.dp);
	for (unsigned int i = 0; i < ENDS; i++)
		urn_port_close(end[i].port);
}

/* A TSC that goes back by an hour, as after a move to another core or machine: time goes on. */
static void
test_time_goes_on(void **state)
{
	uint64_t hour, before[2];
	struct urn_engine *e[2];
	struct rig r;

	(void)state;
	rig_open(&r, NULL, NULL);
	hour = 3600 * rte_get_tsc_hz();
	write_one(&r);
	assert_int_equal(rig_wait(&r, 0).status, IBV_WC_SUCCESS);
	for (int i = 0; i < 2; i++) {
		e[i] = urn_dp_engine(r.dp, (unsigned int)i);
		before[i] = e[i]->shard[0]->tp->now;
		e[i]->tsc += hour;
		e[i]->tsc_base += hour;
	}
	rig_turns(&r, 1);
	for (int i = 0; i < 2; i++) {
		assert_true(e[i]->shard[0]->tp->now >= before[i]);
		assert_true(e[i]->shard[0]->tp->now - before[i] < 1800 * 1000000000ull);
		before[i] = e[i]->shard[0]->tp->now;
	}
	write_one(&r);
	assert_int_equal(rig_wait(&r, 0).status, IBV_WC_SUCCESS);
	for (int i = 0; i < 2; i++)
		assert_true(e[i]->shard[0]->tp->now > before[i]);
	rig_close(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_time_goes_on),	 cmocka_unit_test(test_doorbell_wakes),
		cmocka_unit_test(test_work_keeps_awake), cmocka_unit_test(test_call_wakes),
		cmocka_unit_test(test_policies),	 cmocka_unit_test(test_many_engines),
		cmocka_unit_test(test_thread_gone),	 cmocka_unit_test(test_hand_over),
		cmocka_unit_test(test_loopback_counts),	 cmocka_unit_test(test_adapters),
	};

	return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
