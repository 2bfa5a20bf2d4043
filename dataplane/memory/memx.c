/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The executor of gather, place and atomic operations.
 *
 * On mapped memory every operation is normally done and answered at once; on foreign memory the
 * worker of the space does it (foreign.h). For tests an executor can be told to defer operations: a
 * deferred operation is not done before it is answered, or before a later one that touches the same
 * bytes, so that a transport that does not wait for its answers sends and shows wrong bytes. All
 * decisions come from the seed: the same calls give the same answers.
 */
#include "base/rnd.h"
#include "memory/atomic.h"
#include "memory/copy.h"
#include "memory/foreign.h"
#include "memory/internal.h"
#include "memory/stores.h"
#include "wire/hdr.h"
#include "wire/icrc.h"

#include <stdlib.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_prefetch.h>

/*
 * Operations ahead for which the executor prefetches memory: 64-byte places over 10,000 regions
 * take 16 ns each, 18 ns without; 2 or 4 make no difference.
 */
#define MEMX_AHEAD 2

/* An operation under way. */
struct memx_pending {
	struct urn_memop op;
	uint64_t due; /* the poll that answers it */
	uint32_t seq; /* operations deferred before it */
	bool done;    /* op.status is its answer; otherwise the operation is still to be done */
};

struct urn_memx {
	struct urn_memx_config cfg;
	bool testing;		   /* operations may be deferred or fail */
	bool apart; /* operations are looked at first: testing, or stores are counted */
	uint64_t rng;		   /* state of the seeded generator */
	uint64_t polls;		   /* polls so far */
	struct memx_pending *list; /* cfg.pending entries, in the order they came */
	uint32_t count;		   /* entries in use */
	uint32_t put_off;	   /* operations deferred so far; read by others */
	uint32_t oldest;	   /* ... and number of the oldest under way; read by others */
	struct urn_lanes lanes;	   /* operations on foreign memory */
};

/* True when the operation is on foreign memory. One of length 0 needs no region, and is on none. */
static inline bool
memx_is_foreign(const struct urn_memop *op)
{
	return op->len && unlikely(op->region->foreign);
}

/* Address of the bytes of an operation in this process; not for length 0. */
static inline uint8_t *
memx_target(const struct urn_memop *op)
{
	return op->region->base + (op->addr - op->region->start);
}

static inline bool
memx_is_atomic(const struct urn_memop *op)
{
	return op->kind == URN_MEMOP_CMP_SWAP || op->kind == URN_MEMOP_FETCH_ADD;
}

static inline bool
memx_is_gather(const struct urn_memop *op)
{
	return op->kind == URN_MEMOP_GATHER || op->kind == URN_MEMOP_GATHER_ICRC;
}

/* Execute an atomic in steps, because the new value is logged before it is stored. returns: the old value */
static uint64_t
memx_atomic_logged(const struct urn_memop *op, uint64_t *target, const uint64_t word[2])
{
	uint64_t old = __atomic_load_n(target, __ATOMIC_SEQ_CST), now;

	do {
		now = urn_atomic_result(op, old, word);
		urn_atomic_intend(op, old, now);
		if (op->kind == URN_MEMOP_CMP_SWAP && old != word[0])
			break; /* nothing is stored */
	} while (!__atomic_compare_exchange_n(target, &old, now, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
	urn_atomic_did(op);
	return old;
}

static uint8_t
memx_atomic(const struct urn_memop *op)
{
	uint64_t *word = urn_pkt(op->m)->record.operand;
	uint8_t *target = memx_target(op);
	uint64_t old;

	/* The transport refuses unaligned addresses; but a region's base may still be unaligned. */
	if ((uintptr_t)target & 7)
		return URN_MEMOP_FAILED;
	if (op->frame) {
		old = memx_atomic_logged(op, (uint64_t *)target, word);
	} else if (op->kind == URN_MEMOP_FETCH_ADD) {
		old = __atomic_fetch_add((uint64_t *)target, word[0], __ATOMIC_SEQ_CST);
	} else {
		old = word[0];
		__atomic_compare_exchange_n((uint64_t *)target, &old, word[1], false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	}
	word[0] = old;
	return URN_MEMOP_DONE;
}

/* Do one operation. returns: its status, enum urn_memop_status */
static inline uint8_t
memx_do(const struct urn_memop *op)
{
	switch (op->kind) {
	case URN_MEMOP_GATHER:
		if (op->len)
			urn_copy(op->frame, memx_target(op), op->len);
		return URN_MEMOP_DONE;
	case URN_MEMOP_GATHER_ICRC:
		urn_icrc_gather(urn_pkt_fresh(op->m) + URN_ETH_BYTES, op->frame, memx_target(op),
				op->len);
		return URN_MEMOP_DONE;
	case URN_MEMOP_PLACE:
		if (op->len)
			urn_copy(memx_target(op), op->frame, op->len);
		return URN_MEMOP_DONE;
	case URN_MEMOP_CMP_SWAP:
	case URN_MEMOP_FETCH_ADD:
		return memx_atomic(op);
	case URN_MEMOP_FENCE:
		return URN_MEMOP_DONE;
	default:
		return URN_MEMOP_FAILED;
	}
}

/* ---- deferring, for tests */

/* True when the order of two operations matters. */
static bool
memx_conflict(const struct urn_memop *a, const struct urn_memop *b)
{
	uint64_t an = memx_is_atomic(a) ? 8 : a->len, bn = memx_is_atomic(b) ? 8 : b->len;
	uintptr_t at, bt;

	if (a->kind == URN_MEMOP_FENCE || b->kind == URN_MEMOP_FENCE)
		return a->region == b->region;
	if (!an || !bn || (memx_is_gather(a) && memx_is_gather(b)))
		return false;
	at = (uintptr_t)memx_target(a);
	bt = (uintptr_t)memx_target(b);
	return at < bt ? bt - at < an : at - bt < bn;
}

/*
 * Prepare for `op`: do the earlier operations (the first n of the list) up to the last one that
 * touches the same bytes.
 */
static void
memx_catch_up(struct urn_memx *x, const struct urn_memop *op, uint32_t n)
{
	while (n && (x->list[n - 1].done || !memx_conflict(&x->list[n - 1].op, op)))
		n--;
	for (uint32_t i = 0; i < n; i++) {
		struct memx_pending *p = &x->list[i];

		if (!p->done)
			p->op.status = memx_do(&p->op);
		p->done = true;
	}
}

/*
 * Take a copy of an operation, to be answered later. returns: false when there is no room, or it is
 * not to be deferred
 */
static bool
memx_defer(struct urn_memx *x, const struct urn_memop *op, bool fails)
{
	uint32_t polls = x->cfg.delay_polls ? x->cfg.delay_polls : 1;
	struct memx_pending *p;

	if (!x->cfg.delay_seed || urn_rnd_next(&x->rng) % 100 >= x->cfg.delay_percent ||
	    x->count == x->cfg.pending)
		return false;
	p = &x->list[x->count++];
	p->op = *op;
	p->op.status = URN_MEMOP_FAILED;
	p->due = x->polls + 1 + urn_rnd_next(&x->rng) % polls;
	p->done = fails;
	p->seq = x->put_off;
	__atomic_store_n(&x->put_off, x->put_off + 1, __ATOMIC_RELAXED);
	return true;
}

static unsigned int
memx_execute_testing(struct urn_memx *x, struct urn_memop *ops, unsigned int n)
{
	unsigned int not_done = 0;

	for (unsigned int i = 0; i < n; i++) {
		struct urn_memop *op = &ops[i];
		bool fails = urn_rnd_next(&x->rng) % 1000000 < x->cfg.fail_per_million &&
			     op->kind != URN_MEMOP_FENCE;

		if (memx_is_foreign(op)) {
			op->status = fails ? URN_MEMOP_FAILED : urn_lanes_put(&x->lanes, op);
		} else if (memx_defer(x, op, fails)) {
			op->status = URN_MEMOP_PENDING;
		} else if (fails) {
			op->status = URN_MEMOP_FAILED;
		} else {
			memx_catch_up(x, op, x->count);
			op->status = memx_do(op);
		}
		not_done += op->status != URN_MEMOP_DONE;
	}
	urn_lanes_flush(&x->lanes);
	return not_done;
}

static void
memx_shuffle(struct urn_memx *x, struct urn_memop *ops, unsigned int n)
{
	for (unsigned int i = n; i > 1; i--) {
		unsigned int j = (unsigned int)(urn_rnd_next(&x->rng) % i);
		struct urn_memop t = ops[i - 1];

		ops[i - 1] = ops[j];
		ops[j] = t;
	}
}

/* ---- interface */

struct urn_memx *
urn_memx_create(const struct urn_memx_config *cfg)
{
	struct urn_memx *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->cfg = *cfg;
	if (!cfg->delay_seed || !cfg->delay_percent)
		x->cfg.pending = 0;
	x->testing = x->cfg.pending || cfg->fail_per_million;
	x->apart = x->testing || cfg->count_stores;
	x->rng = cfg->delay_seed;
	if (urn_lanes_init(&x->lanes, x, cfg) != 0) {
		free(x);
		return NULL;
	}
	if (x->cfg.pending) {
		x->list = calloc(x->cfg.pending, sizeof(*x->list));
		if (!x->list) {
			urn_memx_destroy(x);
			return NULL;
		}
	}
	return x;
}

void
urn_memx_destroy(struct urn_memx *x)
{
	if (!x)
		return;
	urn_lanes_fini(&x->lanes);
	free(x->list);
	free(x);
}

/* Count the lines that placements store to. */
static void
memx_count(const struct urn_memx *x, const struct urn_memop *ops, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		const struct urn_memop *op = &ops[i];
		struct urn_stores_of *s;

		if (op->kind != URN_MEMOP_PLACE || !op->len)
			continue;
		s = urn_stores_at(op->region);
		if (s)
			urn_stores_count(&s[x->cfg.engine],
					 op->region->foreign ? urn_foreign_target(op)
							     : (uintptr_t)memx_target(op),
					 op->len);
	}
}

static URN_FAST unsigned int
memx_execute_now(struct urn_memx *x, struct urn_memop *ops, unsigned int n)
{
	unsigned int not_done = 0;

	for (unsigned int i = 0; i < n; i++) {
		if (i + MEMX_AHEAD < n && ops[i + MEMX_AHEAD].len)
			rte_prefetch0(memx_target(&ops[i + MEMX_AHEAD]));
		ops[i].status = memx_is_foreign(&ops[i]) ? urn_lanes_put(&x->lanes, &ops[i])
							 : memx_do(&ops[i]);
		not_done += ops[i].status != URN_MEMOP_DONE;
	}
	if (unlikely(not_done))
		urn_lanes_flush(&x->lanes);
	return not_done;
}

unsigned int
urn_memx_execute(struct urn_memx *x, struct urn_memop *ops, unsigned int n)
{
	if (likely(!x->apart))
		return memx_execute_now(x, ops, n);
	if (x->cfg.count_stores)
		memx_count(x, ops, n);
	return x->testing ? memx_execute_testing(x, ops, n) : memx_execute_now(x, ops, n);
}

/* Take answers of deferred operations. */
static unsigned int
memx_poll_testing(struct urn_memx *x, struct urn_memop *ops, unsigned int max)
{
	unsigned int n = 0;
	uint32_t left = 0;

	x->polls++;
	for (uint32_t i = 0; i < x->count; i++) {
		struct memx_pending *p = &x->list[i];

		if (n == max || p->due > x->polls) {
			/* Close the gap; operations before this one keep their order. */
			if (left != i)
				x->list[left] = *p;
			left++;
			continue;
		}
		if (!p->done) {
			memx_catch_up(x, &p->op, left);
			p->op.status = memx_do(&p->op);
		}
		ops[n++] = p->op;
	}
	x->count = left;
	__atomic_store_n(&x->oldest, left ? x->list[0].seq : x->put_off, __ATOMIC_RELEASE);
	memx_shuffle(x, ops, n);
	return n;
}

unsigned int
urn_memx_poll(struct urn_memx *x, struct urn_memop *ops, unsigned int max)
{
	unsigned int n = 0;

	if (unlikely(x->count))
		n = memx_poll_testing(x, ops, max);
	if (unlikely(x->lanes.n))
		n += urn_lanes_poll(&x->lanes, ops + n, max - n);
	return n;
}

bool
urn_memx_crowded(const struct urn_memx *x)
{
	return x->lanes.n && urn_lanes_crowded(&x->lanes);
}

const struct urn_memx_gate *
urn_memx_gate(const struct urn_memx *x)
{
	return &x->lanes.gate;
}

bool
urn_memx_gated(const struct urn_memx *x, const struct urn_mem *mem, uint32_t pd)
{
	struct urn_space **at = urn_mem_pd_space(mem, pd);
	const struct urn_space *space;

	if (pd <= x->lanes.gate.pds && x->lanes.gate.pd[pd])
		return true;
	/* Pairs with the release in urn_mem_add_foreign(). */
	space = at ? __atomic_load_n(at, __ATOMIC_ACQUIRE) : NULL;
	return space && urn_lanes_gated(&x->lanes, space);
}

void
urn_memx_forget_pd(struct urn_memx *x, uint32_t pd)
{
	urn_lanes_forget_pd(&x->lanes, pd);
}

void
urn_memx_mark(const struct urn_memx *x, const struct urn_region *region, struct urn_memx_mark *mark)
{
	const struct urn_foreign *f = (const void *)region->base;

	mark->list = __atomic_load_n(&x->put_off, __ATOMIC_RELAXED);
	mark->lane = region->foreign ? urn_lane_mark(f->space, x) : 0;
}

bool
urn_memx_passed(const struct urn_memx *x, const struct urn_region *region,
		const struct urn_memx_mark *mark)
{
	const struct urn_foreign *f = (const void *)region->base;

	return (int32_t)(__atomic_load_n(&x->oldest, __ATOMIC_ACQUIRE) - mark->list) >= 0 &&
	       (!region->foreign || urn_lane_passed(f->space, x, mark->lane));
}

URN_FAST unsigned int
urn_memx_holds(const struct urn_memx *x, const struct urn_region *region)
{
	unsigned int n;

	if (!region)
		return x->count + x->lanes.n;
	n = region->foreign ? urn_lanes_hold(&x->lanes, region) : 0;
	for (uint32_t i = 0; i < x->count; i++)
		n += x->list[i].op.region == region;
	return n;
}
