/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Everything at once, from a seed: operations of all kinds and sizes on several
 * QPs in both directions. Every byte is checked against what was sent, every
 * completion comes exactly once and in order (architecture rule 7). A failure names
 * the seed that repeats it:
 *
 *   test_verbs_stress SEED      runs that seed alone
 *   test_verbs_stress -COUNT    runs seeds 1..COUNT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mempool.h>

enum {
	PAIRS = 4,            /* QPs at each end */
	SLOTS = 6,            /* requests under way for each QP */
	RECVS = 12,           /* receives posted for each QP, or its share of the SRQ */
	MAX = 100 * 1024,     /* bytes of a message */
	GUARD = 64,
	ROOM = MAX + 2 * GUARD,
	SGES = 5,
	KINDS = 8,
};

struct op {
	bool used, local_done, needs_recv, remote_done, signaled;
	uint8_t opcode;
	uint32_t len, seed, imm;
	uint64_t seq, expect; /* atomics: the value before */
};

struct flow {                 /* requests of one QP */
	struct ibv_qp *qp;
	struct op op[SLOTS];
	uint64_t posted, retired; /* requests */
	uint64_t recv_ops[SLOTS];  /* slots of requests that take a receive, in order: a ring */
	uint64_t recv_in, recv_out;
	uint64_t counter;          /* model of the peer's word for atomics */
	uint64_t recv_posted, recv_done;
	bool draining, final;      /* final: its last request, a signalled one, is posted */
};

struct side {
	struct flow flow[PAIRS];
	struct ibv_cq *cq[2];
	struct ibv_srq *srq;
	uint64_t srq_posted, srq_done;
	uint8_t *mem;              /* see the functions below */
	struct ibv_mr *mr;
	bool recv_busy[PAIRS * RECVS];
};

struct stress {
	struct rig r;
	struct side side[2];
	uint64_t rng, seed;
	uint64_t left;             /* requests still to be posted */
	uint64_t finished;
	uint32_t max;              /* bytes of a message, this time */
};

/* ---- where things lie: local slots, remote slots, receive buffers, atomics */

static size_t
mem_size(void)
{
	return (size_t)ROOM * (2 * PAIRS * SLOTS + PAIRS * RECVS) + 4096;
}

static uint8_t *
local_at(struct side *s, int q, int slot)
{
	return s->mem + (size_t)ROOM * (size_t)(q * SLOTS + slot) + GUARD;
}

static uint8_t *
remote_at(struct side *s, int q, int slot)
{
	return s->mem + (size_t)ROOM * (size_t)(PAIRS * SLOTS + q * SLOTS + slot) + GUARD;
}

static uint8_t *
recv_at(struct side *s, uint64_t i)
{
	return s->mem + (size_t)ROOM * (size_t)(2 * PAIRS * SLOTS + i) + GUARD;
}

static uint64_t *
word_at(struct side *s, int q)
{
	return (uint64_t *)(s->mem + mem_size() - 4096) + q * 8;
}

static uint32_t
rnd(struct stress *t, uint32_t n)
{
	return (uint32_t)(rig_rand(&t->rng) % n);
}

static uint32_t
rnd_len(struct stress *t)
{
	static const uint32_t edge[] = {0, 1, 7, 8, 255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097, 8192};

	switch (rnd(t, 4)) {
	case 0:
		return edge[rnd(t, sizeof(edge) / sizeof(edge[0]))];
	case 1:
		return rnd(t, 64);
	case 2:
		return rnd(t, 6000);
	default:
		return rnd(t, t->max + 1);
	}
}

/* Cut a buffer into elements of odd lengths, some of them empty. */
static int
cut(struct stress *t, struct ibv_sge *sge, uint8_t *p, uint32_t len, uint32_t lkey)
{
	int n = 1 + (int)rnd(t, SGES), used = 0;

	for (int i = 0; i < n; i++) {
		uint32_t part = i == n - 1 ? len : rnd(t, 4) == 0 ? 0 : rnd(t, len + 1);

		sge[used++] = (struct ibv_sge){(uintptr_t)p, part, part ? lkey : 0xdead};
		p += part;
		len -= part;
	}
	return used;
}

static void
check_bytes(struct stress *t, const uint8_t *p, const struct op *o, const char *what)
{
	static uint8_t want[ROOM];

	memset(want, 0xee, GUARD);
	rig_fill(want + GUARD, o->len, o->seed);
	memset(want + GUARD + o->len, 0xee, GUARD);
	if (memcmp(p - GUARD, want, o->len + 2 * GUARD) == 0)
		return;
	for (uint32_t i = 0; i < o->len + 2 * GUARD; i++)
		if (p[(int64_t)i - GUARD] != want[i])
			fail_msg("seed %llu: %s of %u bytes, request %llu, is wrong at %d",
				 (unsigned long long)t->seed, what, o->len, (unsigned long long)o->seq,
				 (int)i - GUARD);
}

static void
put_guards(uint8_t *p, uint32_t len)
{
	memset(p - GUARD, 0xee, len + 2 * GUARD);
}

/* ---- receives */

static void
post_recvs(struct stress *t, int e, int q)
{
	struct side *s = &t->side[e];
	struct flow *f = &s->flow[q];
	struct ibv_recv_wr wr, *bad;
	struct ibv_sge sge[SGES];
	uint64_t i;

	for (i = s->srq ? 0 : (uint64_t)q * RECVS; i < (uint64_t)(s->srq ? PAIRS : q + 1) * RECVS; i++) {
		if (s->recv_busy[i] || rnd(t, 3) == 0)
			continue;
		put_guards(recv_at(s, i), MAX);
		wr = (struct ibv_recv_wr){.wr_id = i, .sg_list = sge};
		wr.num_sge = cut(t, sge, recv_at(s, i), MAX, s->mr->lkey);
		assert_int_equal(s->srq ? ibv_post_srq_recv(s->srq, &wr, &bad)
					: ibv_post_recv(f->qp, &wr, &bad), 0);
		s->recv_busy[i] = true;
	}
}

/* ---- requests */

static void
fill_wr(struct stress *t, int e, int q, int slot, struct op *o, struct ibv_send_wr *wr,
	struct ibv_sge *sge)
{
	struct side *s = &t->side[e], *peer = &t->side[!e];
	uint8_t *local = local_at(s, q, slot), *remote = remote_at(peer, q, slot);

	put_guards(local, o->len);
	put_guards(remote, o->len);
	if (o->opcode >= IBV_WR_ATOMIC_CMP_AND_SWP && o->opcode <= IBV_WR_ATOMIC_FETCH_AND_ADD) {
		struct flow *f = &s->flow[q];

		wr->wr.atomic.remote_addr = (uintptr_t)word_at(peer, q);
		wr->wr.atomic.rkey = peer->mr->rkey;
		o->expect = f->counter;
		if (o->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
			wr->wr.atomic.compare_add = rig_rand(&t->rng);
			f->counter += wr->wr.atomic.compare_add;
		} else {
			wr->wr.atomic.compare_add = f->counter + (rnd(t, 3) == 0);
			wr->wr.atomic.swap = rig_rand(&t->rng);
			if (wr->wr.atomic.compare_add == f->counter)
				f->counter = wr->wr.atomic.swap;
		}
	} else {
		wr->wr.rdma.remote_addr = (uintptr_t)remote;
		wr->wr.rdma.rkey = o->len ? peer->mr->rkey : 0xbad;
		rig_fill(o->opcode == IBV_WR_RDMA_READ ? remote : local, o->len, o->seed);
	}
	wr->sg_list = sge;
	wr->num_sge = cut(t, sge, local, o->len, s->mr->lkey);
	wr->imm_data = o->imm;
}

static void
post_one(struct stress *t, int e, int q)
{
	static const uint8_t kinds[KINDS] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
		IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND,
	};
	struct flow *f = &t->side[e].flow[q];
	int slot = (int)(f->posted % SLOTS);
	struct op *o = &f->op[slot];
	struct ibv_sge sge[SGES];
	struct ibv_send_wr wr = {.wr_id = f->posted, .next = NULL};

	if (o->used || t->left == 0)
		return;
	memset(o, 0, sizeof(*o));
	o->used = true;
	o->opcode = kinds[rnd(t, KINDS)];
	o->len = rnd_len(t);
	if (o->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || o->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		o->len = 8;
	o->seed = (uint32_t)rig_rand(&t->rng);
	o->imm = (uint32_t)rig_rand(&t->rng);
	o->seq = f->posted;
	o->needs_recv = o->opcode == IBV_WR_SEND || o->opcode == IBV_WR_SEND_WITH_IMM ||
			o->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	/* The last of a lap is signalled, so that every slot is heard of. */
	o->signaled = slot == SLOTS - 1 || t->left == 1 || rnd(t, 3) != 0;
	wr.opcode = o->opcode;
	wr.send_flags = (o->signaled ? IBV_SEND_SIGNALED : 0) | (rnd(t, 4) == 0 ? IBV_SEND_FENCE : 0) |
			(rnd(t, 4) == 0 ? IBV_SEND_SOLICITED : 0);
	fill_wr(t, e, q, slot, o, &wr, sge);
	if (o->opcode <= IBV_WR_SEND_WITH_IMM && o->len <= 64 && rnd(t, 2)) {
		wr.send_flags |= IBV_SEND_INLINE;
		for (int i = 0; i < wr.num_sge; i++)
			sge[i].lkey = 0xbad; /* not looked at */
	}
	rig_send_on(f->qp, &wr);
	if (wr.send_flags & IBV_SEND_INLINE) /* the buffer may be used again at once */
		memset(local_at(&t->side[e], q, slot), 0x55, o->len);
	if (o->needs_recv)
		f->recv_ops[f->recv_in++ % SLOTS] = (uint64_t)slot;
	f->posted++;
	t->left--;
}

/* ---- completions */

static void
free_slot(struct stress *t, struct op *o)
{
	if (!o->local_done || (o->needs_recv && !o->remote_done))
		return;
	o->used = false;
	t->finished++;
}

static void
request_done(struct stress *t, int e, int q, int slot)
{
	struct op *o = &t->side[e].flow[q].op[slot];
	uint8_t *local = local_at(&t->side[e], q, slot), *remote = remote_at(&t->side[!e], q, slot);
	uint64_t old;

	if (o->opcode == IBV_WR_RDMA_READ) {
		check_bytes(t, local, o, "a READ");
	} else if (o->opcode <= IBV_WR_RDMA_WRITE_WITH_IMM) {
		check_bytes(t, remote, o, "a WRITE");
	} else if (!o->needs_recv) {
		memcpy(&old, local, 8);
		if (old != o->expect)
			fail_msg("seed %llu: an atomic returned %llx, not %llx",
				 (unsigned long long)t->seed, (unsigned long long)old,
				 (unsigned long long)o->expect);
	}
	o->local_done = true;
	free_slot(t, o);
}

static int
flow_of(struct side *s, uint32_t qpn)
{
	for (int q = 0; q < PAIRS; q++)
		if (s->flow[q].qp->qp_num == qpn)
			return q;
	fail_msg("a completion of QP 0x%x", qpn);
	return 0;
}

static void
sent(struct stress *t, int e, const struct ibv_wc *wc)
{
	int q = flow_of(&t->side[e], wc->qp_num);
	struct flow *f = &t->side[e].flow[q];

	if (wc->wr_id < f->retired || wc->wr_id >= f->posted)
		fail_msg("seed %llu: request %llu completed out of order or twice (%llu to %llu)",
			 (unsigned long long)t->seed, (unsigned long long)wc->wr_id,
			 (unsigned long long)f->retired, (unsigned long long)f->posted);
	/* Those before it that were not signalled are done too; none that was is left out. */
	while (f->retired <= wc->wr_id) {
		int slot = (int)(f->retired % SLOTS);

		if (f->retired < wc->wr_id)
			assert_false(f->op[slot].signaled);
		f->retired++;
		request_done(t, e, q, slot);
	}
}

static void
received(struct stress *t, int e, const struct ibv_wc *wc)
{
	struct side *s = &t->side[e];
	int q = flow_of(s, wc->qp_num), slot;
	struct flow *from = &t->side[!e].flow[q];
	struct op *o;

	assert_true(from->recv_out < from->recv_in);
	slot = (int)from->recv_ops[from->recv_out++ % SLOTS];
	o = &from->op[slot];
	assert_true(s->recv_busy[wc->wr_id]);
	s->recv_busy[wc->wr_id] = false;
	assert_int_equal(wc->byte_len, o->len);
	if (o->opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
		assert_int_equal(wc->opcode, IBV_WC_RECV_RDMA_WITH_IMM);
		check_bytes(t, remote_at(s, q, slot), o, "a WRITE with immediate");
	} else {
		assert_int_equal(wc->opcode, IBV_WC_RECV);
		check_bytes(t, recv_at(s, wc->wr_id), o, "a SEND");
	}
	if (o->opcode == IBV_WR_SEND) {
		assert_int_equal(wc->wc_flags, 0);
	} else {
		assert_int_equal(wc->wc_flags, IBV_WC_WITH_IMM);
		assert_int_equal(wc->imm_data, o->imm);
	}
	o->remote_done = true;
	free_slot(t, o);
}

static void
poll_side(struct stress *t, int e)
{
	struct ibv_wc wc[8];

	for (int c = 0; c < 2; c++) {
		int n = ibv_poll_cq(t->side[e].cq[c], 1 + (int)rnd(t, 8), wc);

		for (int i = 0; i < n; i++) {
			if (wc[i].status != IBV_WC_SUCCESS)
				fail_msg("seed %llu: %s (vendor_err %u)", (unsigned long long)t->seed,
					 ibv_wc_status_str(wc[i].status), wc[i].vendor_err);
			if (wc[i].opcode & IBV_WC_RECV)
				received(t, e, &wc[i]);
			else
				sent(t, e, &wc[i]);
		}
	}
}

/* Now and then a queue is drained in the middle of things, or a CQ resized. */
static void
disturb(struct stress *t)
{
	int e = (int)rnd(t, 2);
	struct flow *f = &t->side[e].flow[rnd(t, PAIRS)];

	if (rnd(t, 50) == 0) {
		rig_to(f->qp, f->draining ? IBV_QPS_RTS : IBV_QPS_SQD);
		f->draining = !f->draining;
	}
	if (rnd(t, 400) == 0)
		assert_int_equal(ibv_resize_cq(t->side[e].cq[rnd(t, 2)], 256 << rnd(t, 3)), 0);
}

/* The end: every queue goes on, and ends with a request that is signalled. */
static void
wind_up(struct stress *t)
{
	for (int e = 0; e < 2; e++) {
		for (int q = 0; q < PAIRS; q++) {
			struct flow *f = &t->side[e].flow[q];

			if (f->draining)
				rig_to(f->qp, IBV_QPS_RTS);
			f->draining = false;
			if (f->final || f->op[f->posted % SLOTS].used)
				continue;
			f->final = true;
			t->left = 1; /* post_one() signals the last */
			post_one(t, e, q);
		}
	}
}

/* ---- set up, run, take down */

static void
open_side(struct stress *t, int e, struct rig_qp *o)
{
	struct side *s = &t->side[e];
	struct rig_end *end = &t->r.end[e];
	int vectors = end->ctx->num_comp_vectors;

	s->mem = aligned_alloc(4096, (mem_size() + 4095) & ~4095ul);
	assert_non_null(s->mem);
	memset(s->mem, 0, mem_size());
	s->mr = ibv_reg_mr(end->pd, s->mem, mem_size(),
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC);
	assert_non_null(s->mr);
	for (int c = 0; c < 2; c++) {
		s->cq[c] = ibv_create_cq(end->ctx, 256, NULL, NULL, c % vectors);
		assert_non_null(s->cq[c]);
	}
	if (rnd(t, 3) == 0) {
		struct ibv_srq_init_attr a = {.attr = {.max_wr = PAIRS * RECVS, .max_sge = SGES}};

		s->srq = ibv_create_srq(end->pd, &a);
		assert_non_null(s->srq);
	}
	o->srq = s->srq;
	for (int q = 0; q < PAIRS; q++) {
		o->send_cq = s->cq[rnd(t, 2)];
		o->recv_cq = s->cq[rnd(t, 2)];
		s->flow[q].qp = rig_make_qp(&t->r, e, o);
	}
}

static void
connect_all(struct stress *t, struct rig_qp *o)
{
	for (int q = 0; q < PAIRS; q++) {
		uint32_t psn[2] = {rnd(t, 1 << 24), rnd(t, 2) ? 0xfffffa : rnd(t, 1 << 24)};

		o->mtu = IBV_MTU_256 + rnd(t, 5);
		o->rd_atomic = 1 + (int)(rnd(t, 2) ? rnd(t, 4) : rnd(t, 128));
		o->dest_rd_atomic = o->rd_atomic;
		for (int e = 0; e < 2; e++)
			rig_connect(&t->r, e, t->side[e].flow[q].qp, psn[e],
				    t->side[!e].flow[q].qp->qp_num, psn[!e], o);
	}
}

static void
close_side(struct stress *t, int e)
{
	struct side *s = &t->side[e];

	for (int q = 0; q < PAIRS; q++)
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
		for (int q = 0; q < PAIRS; q++) {
			const struct flow *f = &t->side[e].flow[q];

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
	while (t->finished < requests + 2 * PAIRS) {
		for (int i = (int)rnd(t, 6); i > 0; i--)
			post_one(t, (int)rnd(t, 2), (int)rnd(t, PAIRS));
		for (int i = (int)rnd(t, 4); i > 0; i--)
			post_recvs(t, (int)rnd(t, 2), (int)rnd(t, PAIRS));
		if (t->left)
			disturb(t);
		else
			wind_up(t);
		rig_turns(&t->r, 1 + rnd(t, 3));
		for (int e = 0; e < 2; e++)
			poll_side(t, e);
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

/* What differs from run to run comes from the seed too. */
static void
stress(uint64_t seed, uint64_t requests)
{
	static const uint32_t windows[] = {1, 2, 3, 5, 16, 64, 256, 0};
	static struct stress t;
	bool own_thread = getenv("URNIC_TEST_FOREIGN") || getenv("RIG_REMOTE");
	struct rig_config cfg = {0};
	struct rig_qp o = {.depth = RECVS, .sge = SGES, .inline_bytes = 64};

	memset(&t, 0, sizeof(t));
	t.seed = seed;
	t.rng = seed;
	cfg.engines = 1u << rnd(&t, 3);
	cfg.queues = rnd(&t, 4) == 0 ? 1 : 0;
	cfg.window = windows[rnd(&t, 8)];
	cfg.ipv6 = rnd(&t, 3) == 0;
	cfg.loopback = rnd(&t, 5) == 0;
	cfg.work_in_flight = rnd(&t, 4) == 0 ? 8 : 0;
	cfg.delay_seed = rnd(&t, 2) ? seed : 0;
	if (!cfg.loopback && rnd(&t, 2)) {
		cfg.wire_seed = seed;
		cfg.lose = rnd(&t, 20);
		cfg.twice = rnd(&t, 20);
		cfg.late = rnd(&t, 40);
	}
	/*
	 * Where nothing is lost, all must go on without the acknowledgement timer.
	 * Elsewhere it is 17 ms: on a busy machine a thread is away for many of the
	 * shortest ones, and eight in a row end the connection; more where memory has a
	 * thread of its own.
	 */
	o.timeout = !cfg.wire_seed ? -1 : own_thread ? 16 : 12;
	t.max = cfg.window && cfg.window < 16 ? 20000 : MAX;
	rig_open(&t.r, &cfg, NULL);
	for (int e = 0; e < 2; e++)
		open_side(&t, e, &o);
	connect_all(&t, &o);
	run(&t, requests);
	rig_quiet(&t.r, 0);
	for (int e = 0; e < 2; e++)
		for (int q = 0; q < PAIRS; q++)
			assert_int_equal(*word_at(&t.side[!e], q), t.side[e].flow[q].counter);
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
