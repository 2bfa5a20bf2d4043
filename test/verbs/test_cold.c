/* SPDX-License-Identifier: BSD-3-Clause */
/* Many programs that are attached and idle: how their engine hears of them, awake and asleep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"
#include "control/objects.h"
#include "engine/engine.h"
#include "transport/tp.h"

#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <rte_cycles.h>

/* A program that is attached, with a queue pair connected to itself. */
struct idler {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t buf[64];
};

static void
idler_open(struct rig *r, struct idler *p)
{
	const struct rig_qp how = {.depth = 4};
	struct rig_qp o = how;
	union ibv_gid gid;

	p->ctx = rig_attach(r, 0);
	p->pd = ibv_alloc_pd(p->ctx);
	p->cq = ibv_create_cq(p->ctx, 16, NULL, NULL, 0);
	p->mr = ibv_reg_mr(p->pd, p->buf, sizeof(p->buf),
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	assert_true(p->pd && p->cq && p->mr);
	o.pd = p->pd;
	o.send_cq = o.recv_cq = p->cq;
	p->qp = rig_make_qp(r, 0, &o);
	rig_gid(r, 0, &gid);
	rig_connect_to(r, p->qp, 1, p->qp->qp_num, 1, &gid, &o);
}

static void
idler_write(struct idler *p, uint8_t value)
{
	struct ibv_sge sge = {(uintptr_t)p->buf, 1, p->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED};

	p->buf[0] = value;
	wr.wr.rdma.remote_addr = (uintptr_t)p->buf + 32;
	wr.wr.rdma.rkey = p->mr->rkey;
	rig_send_on(p->qp, &wr);
}

static void
idler_close(struct idler *p)
{
	assert_int_equal(ibv_destroy_qp(p->qp), 0);
	assert_int_equal(ibv_dereg_mr(p->mr), 0);
	assert_int_equal(ibv_destroy_cq(p->cq), 0);
	assert_int_equal(ibv_dealloc_pd(p->pd), 0);
	assert_int_equal(ibv_close_device(p->ctx), 0);
}

/* The program's write is done, once the engine has heard of the doorbell. */
static void
idler_done(struct rig *r, struct idler *p)
{
	struct ibv_wc wc;
	int n = 0;

	for (uint64_t end = rte_rdtsc() + 60 * rte_get_tsc_hz(); n == 0 && rte_rdtsc() < end;
	     rig_turns(r, 1))
		n = ibv_poll_cq(p->cq, 1, &wc);
	assert_int_equal(n, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

/*
 * Most of many idle clients are not looked at in a turn, and none is forgotten when it
 * rings while the engine is awake, even when others come and go.
 */
static void
test_idle_clients(void **state)
{
	enum { N = 40 };
	static struct idler idler[N];
	const struct rig_config cfg = {.engines = 1};
	struct urn_shard *shard;
	struct rig r;

	(void)state;
	rig_open(&r, &cfg, NULL);
	shard = urn_dp_engine(r.dp, 0)->shard[0];
	for (int i = 0; i < N; i++)
		idler_open(&r, &idler[i]);
	for (int round = 0; round < 3; round++) {
		rig_turns(&r, 6000);
		assert_in_range(shard->hot_n, 1, 8);
		assert_int_equal(shard->hot_n + shard->cold_n, N - round + 1);
		for (int i = round; i < N; i++)
			idler_write(&idler[i], (uint8_t)(i + round + 1));
		for (int i = round; i < N; i++) {
			idler_done(&r, &idler[i]);
			assert_int_equal(idler[i].buf[32], i + round + 1);
		}
		rig_turns(&r, 6000);
		idler_close(&idler[round]); /* the client is cold, or hot */
	}
	for (int i = 3; i < N; i++)
		idler_close(&idler[i]);
	assert_int_equal(shard->hot_n + shard->cold_n, 1);
	rig_close(&r);
}

/* ---- sleep; the engine's epoll_pwait2() comes here */

static struct {
	struct rig *r;
	struct idler *rings; /* rings while the engine sleeps (then for a minute); NULL: no sleep */
	int woken;
} asleep;

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

	(void)limit;
	if (asleep.rings)
		idler_write(asleep.rings, 7);
	got = __real_epoll_pwait2(fd, ev, max, asleep.rings ? &minute : &none, mask);
	asleep.rings = NULL;
	asleep.woken += got > 0;
	return got;
}

static bool
any_busy(struct urn_engine *e)
{
	for (unsigned int i = 0; i < e->shards_n; i++)
		if (urn_tp_busy(e->shard[i]->tp))
			return true;
	return false;
}

/* A client that is not looked at in each turn wakes an engine that sleeps, and is heard at once. */
static void
test_cold_wakes(void **state)
{
	enum { N = 40 };
	static struct idler idler[N];
	const struct rig_config cfg = {.engines = 1};
	struct urn_engine *e;
	struct ibv_wc wc;
	struct rig r;

	(void)state;
	rig_open(&r, &cfg, NULL);
	e = urn_dp_engine(r.dp, 0);
	for (int i = 0; i < N; i++)
		idler_open(&r, &idler[i]);
	rig_turns(&r, 6000);
	assert_in_range(e->shard[0]->hot_n, 1, 8);
	e->cfg.idle = URN_IDLE_SLEEP;
	e->cfg.empty_polls = 4;
	asleep.r = &r;
	for (int i = 0; i < N; i++) {
		while (any_busy(e)) /* frames of the nodes themselves come due at any time */
			rig_turns(&r, 1);
		asleep.rings = &idler[i];
		urn_engine_idle(e, 4); /* the engine must wake, or it sleeps for a minute */
		assert_int_equal(asleep.woken, i + 1);
		e->hear_due = UINT64_MAX; /* no later look at the client is needed */
		rig_turns(&r, 100);
		assert_int_equal(ibv_poll_cq(idler[i].cq, 1, &wc), 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	}
	for (int i = 0; i < N; i++)
		idler_close(&idler[i]);
	rig_close(&r);
}

/* The engine no longer hears a client that is gone, though its process still writes. */
static void
test_gone_is_not_heard(void **state)
{
	static struct idler idler;
	const struct rig_config cfg = {.engines = 1};
	const struct urn_client *c;
	struct epoll_event ev[8];
	struct urn_engine *e;
	uint64_t one = 1;
	struct rig r;
	int kept;

	(void)state;
	rig_open(&r, &cfg, NULL);
	e = urn_dp_engine(r.dp, 0);
	idler_open(&r, &idler);
	c = urn_client_of(LIST_FIRST(&e->shard[0]->clients)->client); /* the newest client */
	kept = dup(c->wake_fd[0]);
	assert_true(kept >= 0);
	assert_int_equal(write(kept, &one, sizeof(one)), sizeof(one));
	assert_true(epoll_wait(e->sleep_fd, ev, RTE_DIM(ev), 0) > 0);
	idler_close(&idler);
	while (epoll_wait(e->sleep_fd, ev, RTE_DIM(ev), 0) > 0) {
		/* written by the closing */
	}
	assert_int_equal(write(kept, &one, sizeof(one)), sizeof(one));
	assert_int_equal(epoll_wait(e->sleep_fd, ev, RTE_DIM(ev), 0), 0);
	close(kept);
	rig_close(&r);
}

/* True when an epoll watches the file of a descriptor. */
static bool
watches(int epoll, int fd)
{
	char path[64], line[256];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", epoll);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		int watched;

		found = found || (sscanf(line, "tfd: %d", &watched) == 1 && watched == fd);
	}
	fclose(f);
	return found;
}

/*
 * An engine watches no file that a client has: the kernel locks a watched file when the watch ends,
 * and a client can hold that lock (doc/inside/trust.md, "A program with many watchers").
 */
static void
test_watches_no_client(void **state)
{
	static struct idler idler;
	const struct rig_config cfg = {.engines = 1};
	const struct urn_client *c;
	const struct urn_engine *e;
	struct rig r;

	(void)state;
	rig_open(&r, &cfg, NULL);
	e = urn_dp_engine(r.dp, 0);
	idler_open(&r, &idler);
	c = urn_client_of(LIST_FIRST(&e->shard[0]->clients)->client);
	assert_false(watches(e->sleep_fd, c->wake_fd[0]));
	assert_true(watches(e->sleep_fd, c->wake_set[0]));
	assert_true(watches(c->wake_set[0], c->wake_fd[0]));
	idler_close(&idler);
	rig_close(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_idle_clients),
		cmocka_unit_test(test_cold_wakes),
		cmocka_unit_test(test_gone_is_not_heard),
		cmocka_unit_test(test_watches_no_client),
	};

	return cmocka_run_group_tests_name("cold", tests, NULL, NULL);
}
