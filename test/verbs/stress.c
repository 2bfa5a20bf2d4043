/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting, and judging the completions, of stress.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "stress.h"

#include <string.h>

/* ---- where things lie: local slots, remote slots, receive buffers, atomics */

size_t
stress_mem_size(void)
{
	return (size_t)STRESS_ROOM * (2 * STRESS_PAIRS * STRESS_SLOTS + STRESS_PAIRS * STRESS_RECVS) + 4096;
}

static uint8_t *
local_at(struct stress_side *s, int q, int slot)
{
	return s->mem + (size_t)STRESS_ROOM * (size_t)(q * STRESS_SLOTS + slot) + STRESS_GUARD;
}

static uint8_t *
remote_at(struct stress_side *s, int q, int slot)
{
	return s->mem + (size_t)STRESS_ROOM * (size_t)(STRESS_PAIRS * STRESS_SLOTS + q * STRESS_SLOTS + slot) + STRESS_GUARD;
}

static uint8_t *
recv_at(struct stress_side *s, uint64_t i)
{
	return s->mem + (size_t)STRESS_ROOM * (size_t)(2 * STRESS_PAIRS * STRESS_SLOTS + i) + STRESS_GUARD;
}

uint64_t *
stress_word_at(struct stress_side *s, int q)
{
	return (uint64_t *)(s->mem + stress_mem_size() - 4096) + q * 8;
}

uint32_t
stress_rnd(struct stress *t, uint32_t n)
{
	return (uint32_t)(rig_rand(&t->rng) % n);
}

static uint32_t
rnd_len(struct stress *t)
{
	static const uint32_t edge[] = {0, 1, 7, 8, 255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097, 8192};

	switch (stress_rnd(t, 4)) {
	case 0:
		return edge[stress_rnd(t, sizeof(edge) / sizeof(edge[0]))];
	case 1:
		return stress_rnd(t, 64);
	case 2:
		return stress_rnd(t, 6000);
	default:
		return stress_rnd(t, t->max + 1);
	}
}

/* Cut a buffer into elements of odd lengths, some of them empty. */
static int
cut(struct stress *t, struct ibv_sge *sge, uint8_t *p, uint32_t len, uint32_t lkey)
{
	int n = 1 + (int)stress_rnd(t, STRESS_SGES), used = 0;

	for (int i = 0; i < n; i++) {
		uint32_t part = i == n - 1 ? len : stress_rnd(t, 4) == 0 ? 0 : stress_rnd(t, len + 1);

		sge[used++] = (struct ibv_sge){(uintptr_t)p, part, part ? lkey : 0xdead};
		p += part;
		len -= part;
	}
	return used;
}

static void
check_bytes(struct stress *t, const uint8_t *p, const struct stress_op *o, const char *what)
{
	static uint8_t want[STRESS_ROOM];

	memset(want, 0xee, STRESS_GUARD);
	rig_fill(want + STRESS_GUARD, o->len, o->seed);
	memset(want + STRESS_GUARD + o->len, 0xee, STRESS_GUARD);
	if (memcmp(p - STRESS_GUARD, want, o->len + 2 * STRESS_GUARD) == 0)
		return;
	for (uint32_t i = 0; i < o->len + 2 * STRESS_GUARD; i++)
		if (p[(int64_t)i - STRESS_GUARD] != want[i])
			fail_msg("seed %llu: %s of %u bytes, request %llu, is wrong at %d",
				 (unsigned long long)t->seed, what, o->len, (unsigned long long)o->seq,
				 (int)i - STRESS_GUARD);
}

static void
put_guards(uint8_t *p, uint32_t len)
{
	memset(p - STRESS_GUARD, 0xee, len + 2 * STRESS_GUARD);
}

/* ---- receives */

void
stress_post_recvs(struct stress *t, int e, int q)
{
	struct stress_side *s = &t->side[e];
	struct stress_flow *f = &s->flow[q];
	struct ibv_recv_wr wr, *bad;
	struct ibv_sge sge[STRESS_SGES];
	uint64_t i;

	for (i = s->srq ? 0 : (uint64_t)q * STRESS_RECVS; i < (uint64_t)(s->srq ? STRESS_PAIRS : q + 1) * STRESS_RECVS; i++) {
		if (s->recv_busy[i] || stress_rnd(t, 3) == 0)
			continue;
		put_guards(recv_at(s, i), STRESS_MAX);
		wr = (struct ibv_recv_wr){.wr_id = i, .sg_list = sge};
		wr.num_sge = cut(t, sge, recv_at(s, i), STRESS_MAX, s->mr->lkey);
		assert_int_equal(s->srq ? ibv_post_srq_recv(s->srq, &wr, &bad)
					: ibv_post_recv(f->qp, &wr, &bad), 0);
		s->recv_busy[i] = true;
	}
}

/* ---- requests */

static void
fill_wr(struct stress *t, int e, int q, int slot, struct stress_op *o, struct ibv_send_wr *wr,
	struct ibv_sge *sge)
{
	struct stress_side *s = &t->side[e], *peer = &t->side[!e];
	uint8_t *local = local_at(s, q, slot), *remote = remote_at(peer, q, slot);

	put_guards(local, o->len);
	put_guards(remote, o->len);
	if (o->opcode >= IBV_WR_ATOMIC_CMP_AND_SWP && o->opcode <= IBV_WR_ATOMIC_FETCH_AND_ADD) {
		struct stress_flow *f = &s->flow[q];

		wr->wr.atomic.remote_addr = (uintptr_t)stress_word_at(peer, q);
		wr->wr.atomic.rkey = peer->mr->rkey;
		o->expect = f->counter;
		if (o->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
			wr->wr.atomic.compare_add = rig_rand(&t->rng);
			f->counter += wr->wr.atomic.compare_add;
		} else {
			wr->wr.atomic.compare_add = f->counter + (stress_rnd(t, 3) == 0);
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

void
stress_post_one(struct stress *t, int e, int q)
{
	static const uint8_t kinds[STRESS_KINDS] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
		IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND,
	};
	struct stress_flow *f = &t->side[e].flow[q];
	int slot = (int)(f->posted % STRESS_SLOTS);
	struct stress_op *o = &f->op[slot];
	struct ibv_sge sge[STRESS_SGES];
	struct ibv_send_wr wr = {.wr_id = f->posted, .next = NULL};

	if (o->used || t->left == 0)
		return;
	memset(o, 0, sizeof(*o));
	o->used = true;
	o->opcode = kinds[stress_rnd(t, STRESS_KINDS)];
	o->len = rnd_len(t);
	if (o->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || o->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		o->len = 8;
	o->seed = (uint32_t)rig_rand(&t->rng);
	o->imm = (uint32_t)rig_rand(&t->rng);
	o->seq = f->posted;
	o->needs_recv = o->opcode == IBV_WR_SEND || o->opcode == IBV_WR_SEND_WITH_IMM ||
			o->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	/* The last request of a lap is signalled, so that every slot completes. */
	o->signaled = slot == STRESS_SLOTS - 1 || t->left == 1 || stress_rnd(t, 3) != 0;
	wr.opcode = o->opcode;
	wr.send_flags = (o->signaled ? IBV_SEND_SIGNALED : 0) | (stress_rnd(t, 4) == 0 ? IBV_SEND_FENCE : 0) |
			(stress_rnd(t, 4) == 0 ? IBV_SEND_SOLICITED : 0);
	fill_wr(t, e, q, slot, o, &wr, sge);
	if (o->opcode <= IBV_WR_SEND_WITH_IMM && o->len <= 64 && stress_rnd(t, 2)) {
		wr.send_flags |= IBV_SEND_INLINE;
		for (int i = 0; i < wr.num_sge; i++)
			sge[i].lkey = 0xbad; /* the key of inline data is not looked at */
	}
	rig_send_on(f->qp, &wr);
	if (wr.send_flags & IBV_SEND_INLINE) /* the buffer may be used again at once */
		memset(local_at(&t->side[e], q, slot), 0x55, o->len);
	if (o->needs_recv)
		f->recv_ops[f->recv_in++ % STRESS_SLOTS] = (uint64_t)slot;
	f->posted++;
	t->left--;
}

/* ---- completions */

static void
free_slot(struct stress *t, struct stress_op *o)
{
	if (!o->local_done || (o->needs_recv && !o->remote_done))
		return;
	o->used = false;
	t->finished++;
}

static void
request_done(struct stress *t, int e, int q, int slot)
{
	struct stress_op *o = &t->side[e].flow[q].op[slot];
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
flow_of(struct stress_side *s, uint32_t qpn)
{
	for (int q = 0; q < STRESS_PAIRS; q++)
		if (s->flow[q].qp->qp_num == qpn)
			return q;
	fail_msg("a completion of QP 0x%x", qpn);
	return 0;
}

static void
sent(struct stress *t, int e, const struct ibv_wc *wc)
{
	int q = flow_of(&t->side[e], wc->qp_num);
	struct stress_flow *f = &t->side[e].flow[q];

	if (wc->wr_id < f->retired || wc->wr_id >= f->posted)
		fail_msg("seed %llu: request %llu completed out of order or twice (%llu to %llu)",
			 (unsigned long long)t->seed, (unsigned long long)wc->wr_id,
			 (unsigned long long)f->retired, (unsigned long long)f->posted);
	/*
	 * Requests before this one that were not signalled are done too; a signalled one
	 * must not be skipped.
	 */
	while (f->retired <= wc->wr_id) {
		int slot = (int)(f->retired % STRESS_SLOTS);

		if (f->retired < wc->wr_id)
			assert_false(f->op[slot].signaled);
		f->retired++;
		request_done(t, e, q, slot);
	}
}

static void
received(struct stress *t, int e, const struct ibv_wc *wc)
{
	struct stress_side *s = &t->side[e];
	int q = flow_of(s, wc->qp_num), slot;
	struct stress_flow *from = &t->side[!e].flow[q];
	struct stress_op *o;

	assert_true(from->recv_out < from->recv_in);
	slot = (int)from->recv_ops[from->recv_out++ % STRESS_SLOTS];
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

void
stress_poll(struct stress *t, int e)
{
	struct ibv_wc wc[8];

	for (int c = 0; c < 2; c++) {
		int n = ibv_poll_cq(t->side[e].cq[c], 1 + (int)stress_rnd(t, 8), wc);

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
