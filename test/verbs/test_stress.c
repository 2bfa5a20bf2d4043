/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Everything at once, from a seed: operations of all kinds and sizes on several QPs in
 * both directions. Every byte is compared with the one sent, every completion comes
 * exactly once and in order (architecture rule 7). A failure names the seed that repeats
 * it:
 *
 *   test_verbs_stress SEED      runs that seed alone
 *   test_verbs_stress -COUNT    runs seeds 1..COUNT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "stress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mempool.h>

/* At random, drain a queue in the middle of things, or resize a CQ. */
static void
disturb(struct stress *t)
{
	int e = (int)stress_rnd(t, 2);
	struct stress_flow *f = &t->side[e].flow[stress_rnd(t, STRESS_PAIRS)];

	if (stress_rnd(t, 50) == 0) {
		rig_to(f->qp, f->draining ? IBV_QPS_RTS : IBV_QPS_SQD);
		f->draining = !f->draining;
	}
	if (stress_rnd(t, 400) == 0)
		assert_int_equal(ibv_resize_cq(t->side[e].cq[stress_rnd(t, 2)], 256 << stress_rnd(t, 3)), 0);
}

/* The end: every queue goes on, and ends with a request that is signalled. */
static void
wind_up(struct stress *t)
{
	for (int e = 0; e < 2; e++) {
		for (int q = 0; q < STRESS_PAIRS; q++) {
			struct stress_flow *f = &t->side[e].flow[q];

			if (f->draining)
				rig_to(f->qp, IBV_QPS_RTS);
			f->draining = false;
			if (f->final || f->op[f->posted % STRESS_SLOTS].used)
				continue;
			f->final = true;
			t->left = 1; /* stress_post_one() signals the last request */
			stress_post_one(t, e, q);
		}
	}
}

/* ---- set up, run, take down */

static void
open_side(struct stress *t, int e, struct rig_qp *o)
{
	struct stress_side *s = &t->side[e];
	struct rig_end *end = &t->r.end[e];
	int vectors = end->ctx->num_comp_vectors;

	s->mem = aligned_alloc(4096, (stress_mem_size() + 4095) & ~4095ul);
	assert_non_null(s->mem);
	memset(s->mem, 0, stress_mem_size());
	s->mr = ibv_reg_mr(end->pd, s->mem, stress_mem_size(),
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC);
	assert_non_null(s->mr);
	for (int c = 0; c < 2; c++) {
		s->cq[c] = ibv_create_cq(end->ctx, 256, NULL, NULL, c % vectors);
		assert_non_null(s->cq[c]);
	}
	if (stress_rnd(t, 3) == 0) {
		struct ibv_srq_init_attr a = {.attr = {.max_wr = STRESS_PAIRS * STRESS_RECVS, .max_sge = STRESS_SGES}};

		s->srq = ibv_create_srq(end->pd, &a);
		assert_non_null(s->srq);
	}
	o->srq = s->srq;
	for (int q = 0; q < STRESS_PAIRS; q++) {
		o->send_cq = s->cq[stress_rnd(t, 2)];
		o->recv_cq = s->cq[stress_rnd(t, 2)];
		s->flow[q].qp = rig_make_qp(&t->r, e, o);
	}
}

static void
connect_all(struct stress *t, struct rig_qp *o)
{
	for (int q = 0; q < STRESS_PAIRS; q++) {
		uint32_t psn[2] = {stress_rnd(t, 1 << 24), stress_rnd(t, 2) ? 0xfffffa : stress_rnd(t, 1 << 24)};

		o->mtu = IBV_MTU_256 + stress_rnd(t, 5);
		o->rd_atomic = 1 + (int)(stress_rnd(t, 2) ? stress_rnd(t, 4) : stress_rnd(t, 128));
		o->dest_rd_atomic = o->rd_atomic;
		for (int e = 0; e < 2; e++)
			rig_connect(&t->r, e, t->side[e].flow[q].qp, psn[e],
				    t->side[!e].flow[q].qp->qp_num, psn[!e], o);
	}
}

static void
close_side(struct stress *t, int e)
{
	struct stress_side *s = &t->side[e];

	for (int q = 0; q < STRESS_PAIRS; q++)
		assert_int_equal(ibv_destroy_qp(s->flow[q].qp), 0);
	if (s->srq)
		assert_int_equal(ibv_destroy_srq(s->srq), 0);
	for (int c = 0; c < 2; c++)
		assert_int_equal(ibv_destroy_cq(s->cq[c]), 0);
	assert_int_equal(ibv_dereg_mr(s->mr), 0);
	free(s->mem);
}

static void
report(struct stress *t)
{
	for (int e = 0; e < 2; e++)
		for (int q = 0; q < STRESS_PAIRS; q++) {
			const struct stress_flow *f = &t->side[e].flow[q];

			printf("end %d QP %d: posted %llu, done %llu, receives %llu of %llu\n", e, q,
			       (unsigned long long)f->posted, (unsigned long long)f->retired,
			       (unsigned long long)f->recv_out, (unsigned long long)f->recv_in);
		}
	for (int e = 0; e < 2; e++) {
		for (unsigned int i = 0; i < URN_COUNTER_COUNT; i++)
			if (rig_counter(&t->r, e, i))
				printf("node %d: %s %llu\n", e, urn_counter_name(i),
				       (unsigned long long)rig_counter(&t->r, e, i));
		printf("node %d: %u of its mbufs in use\n", e,
		       rte_mempool_in_use_count(t->r.port[e]->pool));
	}
}

static void
run(struct stress *t, uint64_t requests)
{
	uint64_t seen = 0, idle = 0;

	t->left = requests;
	while (t->finished < requests + 2 * STRESS_PAIRS) {
		for (int i = (int)stress_rnd(t, 6); i > 0; i--)
			stress_post_one(t, (int)stress_rnd(t, 2), (int)stress_rnd(t, STRESS_PAIRS));
		for (int i = (int)stress_rnd(t, 4); i > 0; i--)
			stress_post_recvs(t, (int)stress_rnd(t, 2), (int)stress_rnd(t, STRESS_PAIRS));
		if (t->left)
			disturb(t);
		else
			wind_up(t);
		rig_turns(&t->r, 1 + stress_rnd(t, 3));
		for (int e = 0; e < 2; e++)
			stress_poll(t, e);
		idle = seen == t->finished ? idle + 1 : 0;
		seen = t->finished;
		if (idle > 3000000) {
			report(t);
			fail_msg("seed %llu: stuck after %llu of %llu requests",
				 (unsigned long long)t->seed, (unsigned long long)t->finished,
				 (unsigned long long)requests);
		}
	}
}

/* The variations between runs come from the seed too. */
static void
stress(uint64_t seed, uint64_t requests)
{
	static const uint32_t windows[] = {1, 2, 3, 5, 16, 64, 256, 0};
	static struct stress t;
	bool own_thread = getenv("URNIC_TEST_FOREIGN") || getenv("RIG_REMOTE");
	struct rig_config cfg = {0};
	struct rig_qp o = {.depth = STRESS_RECVS, .sge = STRESS_SGES, .inline_bytes = 64};

	memset(&t, 0, sizeof(t));
	t.seed = seed;
	t.rng = seed;
	cfg.engines = 1u << stress_rnd(&t, 3);
	cfg.queues = stress_rnd(&t, 4) == 0 ? 1 : 0;
	cfg.window = windows[stress_rnd(&t, 8)];
	cfg.ipv6 = stress_rnd(&t, 3) == 0;
	cfg.loopback = stress_rnd(&t, 5) == 0;
	cfg.work_in_flight = stress_rnd(&t, 4) == 0 ? 8 : 0;
	cfg.delay_seed = stress_rnd(&t, 2) ? seed : 0;
	if (!cfg.loopback && stress_rnd(&t, 2)) {
		cfg.wire_seed = seed;
		cfg.lose = stress_rnd(&t, 20);
		cfg.twice = stress_rnd(&t, 20);
		cfg.late = stress_rnd(&t, 40);
	}
	/*
	 * Without losses, all must go on without the acknowledgement timer. With losses
	 * the timer is 17 ms: on a busy machine a thread is away for many of the shortest
	 * timeouts, and eight in a row end the connection; it is longer where memory has
	 * a thread of its own.
	 */
	o.timeout = !cfg.wire_seed ? -1 : own_thread ? 16 : 12;
	t.max = cfg.window && cfg.window < 16 ? 20000 : STRESS_MAX;
	rig_open(&t.r, &cfg, NULL);
	for (int e = 0; e < 2; e++)
		open_side(&t, e, &o);
	connect_all(&t, &o);
	run(&t, requests);
	rig_quiet(&t.r, 0);
	for (int e = 0; e < 2; e++)
		for (int q = 0; q < STRESS_PAIRS; q++)
			assert_int_equal(*stress_word_at(&t.side[!e], q), t.side[e].flow[q].counter);
	for (int e = 0; e < 2; e++)
		close_side(&t, e);
	rig_close(&t.r);
}

static uint64_t first = 1, last = 12;

static void
test_seeds(void **state)
{
	(void)state;
	for (uint64_t seed = first; seed <= last; seed++)
		stress(seed, 600);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_seeds)};
	long n = argc > 1 ? strtol(argv[1], NULL, 0) : 0;

	if (n > 0)
		first = last = (uint64_t)n;
	else if (n < 0)
		last = (uint64_t)-n;
	return cmocka_run_group_tests_name("stress", tests, NULL, NULL);
}
