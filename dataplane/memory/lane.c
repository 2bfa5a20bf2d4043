/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine's end of the lanes: handing operations to workers, taking their answers. */
#include "memory/foreign.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <rte_branch_prediction.h>

enum {
	WAIT_BLOCK = 256,
	FEW_MAX = 128, /* operations; with 64 or 256 for a QP, throughput is lower (doc/inside/performance.md) */
};

struct urn_lane_wait {
	STAILQ_ENTRY(urn_lane_wait) next; /* among those of the lane, or the free ones */
	struct urn_memop op;
};

struct urn_lane_block {
	SLIST_ENTRY(urn_lane_block) next; /* in the pool */
	struct urn_lane_wait wait[WAIT_BLOCK];
};

int
urn_lanes_init(struct urn_lanes *ls, const void *owner, const struct urn_memx_config *cfg)
{
	memset(ls, 0, sizeof(*ls));
	ls->owner = owner;
	ls->limit = cfg->foreign ? cfg->foreign : 1024;
	ls->full = (uint32_t)(ls->limit * 2ull / 3);
	ls->gate.pds = cfg->max_pds;
	STAILQ_INIT(&ls->free);
	/* Half of the number that closes the gate of a lane, so that incoming operations have room. */
	ls->gate.few = ls->limit / 8 < FEW_MAX ? ls->limit / 8 + !(ls->limit / 8) : FEW_MAX;
	ls->gate.pd = calloc(cfg->max_pds + 1u, sizeof(*ls->gate.pd));
	ls->shut = calloc(cfg->max_pds + 1u, sizeof(*ls->shut));
	if (ls->gate.pd && ls->shut)
		return 0;
	urn_lanes_fini(ls);
	return ENOMEM;
}

void
urn_lanes_fini(struct urn_lanes *ls)
{
	struct urn_lane_block *b;
	struct urn_lane_user *u;

	while ((b = SLIST_FIRST(&ls->blocks))) {
		SLIST_REMOVE_HEAD(&ls->blocks, next);
		free(b);
	}
	for (uint32_t i = 0; i < URN_LANE_USERS; i++) {
		while ((u = SLIST_FIRST(&ls->user[i]))) {
			SLIST_REMOVE_HEAD(&ls->user[i], next);
			free(u);
		}
	}
	free(ls->gate.pd);
	free(ls->shut);
}

/* ---- lanes */

/* Make the lane to a space, when the first operation goes there. */
static __attribute__((noinline)) struct urn_lane *
lane_make(struct urn_lanes *ls, struct urn_space *s)
{
	struct urn_lane *l = aligned_alloc(64, (sizeof(*l) + 63) & ~(size_t)63);

	if (!l)
		return NULL;
	memset(l, 0, sizeof(*l));
	l->owner = ls->owner;
	l->space = s;
	STAILQ_INIT(&l->waits);
	l->next = atomic_load_explicit(&s->lanes, memory_order_relaxed);
	/* Release: the worker finds a complete lane (serve_all()). */
	while (!atomic_compare_exchange_weak_explicit(&s->lanes, &l->next, l, memory_order_release,
						      memory_order_relaxed))
		;
	return l;
}

static struct urn_lane *
lane_of(struct urn_lanes *ls, struct urn_space *s)
{
	struct urn_lane *l = urn_lane_find(s, ls->owner);

	return likely(l != NULL) ? l : lane_make(ls, s);
}

static uint32_t
lane_under_way(const struct urn_lane *l)
{
	return l->prod - l->cons + l->waiting;
}

/* Operations that a lane may have under way before its clients are limited. */
static uint32_t
lane_limit(const struct urn_lanes *ls)
{
	return ls->n < ls->limit / 2 ? ls->limit / 4 : ls->limit / 32 + 1;
}

/* ---- users */

static struct urn_lane_user *
user_find(const struct urn_lanes *ls, uid_t uid)
{
	struct urn_lane_user *u;

	SLIST_FOREACH(u, &ls->user[uid % URN_LANE_USERS], next)
		if (u->uid == uid)
			break;
	return u;
}

/* Make the entry of a user, at its first operation. NULL: no memory */
static __attribute__((noinline)) struct urn_lane_user *
user_make(struct urn_lanes *ls, uid_t uid)
{
	struct urn_lane_user *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	u->uid = uid;
	SLIST_INSERT_HEAD(&ls->user[uid % URN_LANE_USERS], u, next);
	return u;
}

static struct urn_lane_user *
user_of(struct urn_lanes *ls, uid_t uid)
{
	struct urn_lane_user *u = user_find(ls, uid);

	return likely(u != NULL) ? u : user_make(ls, uid);
}

/* Operations that may be added to those under way. */
static uint32_t
left(const struct urn_lanes *ls)
{
	return ls->n < ls->limit ? ls->limit - ls->n : 0;
}

/*
 * A user may have twice the number that is left: two thirds of the limit when it is alone; n users
 * that take all they can leave one part of 2 n + 1. The user may go on when as much is left as it
 * has.
 */
static __attribute__((cold, noinline)) void
user_check(struct urn_lanes *ls, struct urn_lane_user *u)
{
	if (!u->closed && u->n >= 2 * left(ls)) {
		u->closed = true;
		ls->gate.users++;
	} else if (u->closed && u->n <= left(ls)) {
		u->closed = false;
		ls->gate.users--;
	}
}

/* ---- the gate */

static void
gate_close(struct urn_lanes *ls, struct urn_lane *l, uint32_t pd)
{
	if (pd > ls->gate.pds || ls->gate.pd[pd])
		return;
	ls->gate.pd[pd] = 1;
	ls->gate.closed++;
	ls->shut[pd] = (struct urn_lane_shut){.by = l, .next = l->closed};
	l->closed = pd;
}

static void
gate_open(struct urn_lanes *ls, struct urn_lane *l)
{
	while (l->closed) {
		uint32_t pd = l->closed;

		l->closed = ls->shut[pd].next;
		ls->shut[pd].by = NULL;
		ls->gate.pd[pd] = 0;
		ls->gate.closed--;
	}
}

void
urn_lanes_forget_pd(struct urn_lanes *ls, uint32_t pd)
{
	uint32_t *at;

	if (pd > ls->gate.pds || !ls->gate.pd[pd])
		return;
	for (at = &ls->shut[pd].by->closed; *at != pd; at = &ls->shut[*at].next)
		;
	*at = ls->shut[pd].next;
	ls->shut[pd].by = NULL;
	ls->gate.pd[pd] = 0;
	ls->gate.closed--;
}

bool
urn_lanes_gated(const struct urn_lanes *ls, const struct urn_space *space)
{
	const struct urn_lane_user *u = user_find(ls, space->uid);
	const struct urn_lane *l = urn_lane_find(space, ls->owner);

	return (u && u->closed) || (l && l->closed);
}

/* ---- operations that find no slot */

static struct urn_lane_wait *
wait_get(struct urn_lanes *ls)
{
	struct urn_lane_wait *w = STAILQ_FIRST(&ls->free);
	struct urn_lane_block *b;

	if (unlikely(!w)) {
		/*
		 * The pool grows to as many as packets wait at most, and is not given back before
		 * the executor goes.
		 */
		b = calloc(1, sizeof(*b));
		if (!b)
			return NULL;
		SLIST_INSERT_HEAD(&ls->blocks, b, next);
		for (int i = 0; i < WAIT_BLOCK; i++)
			STAILQ_INSERT_HEAD(&ls->free, &b->wait[i], next);
		w = STAILQ_FIRST(&ls->free);
	}
	STAILQ_REMOVE_HEAD(&ls->free, next);
	return w;
}

static bool
lane_wait(struct urn_lanes *ls, struct urn_lane *l, const struct urn_memop *op)
{
	struct urn_lane_wait *w = wait_get(ls);

	if (!w)
		return false;
	w->op = *op;
	STAILQ_INSERT_TAIL(&l->waits, w, next);
	l->waiting++;
	return true;
}

/* ---- there and back */

static inline void
lane_fill(struct urn_lanes *ls, struct urn_lane *l, const struct urn_memop *op)
{
	l->slot[l->prod++ % URN_LANE_SLOTS] = *op;
	if (!l->flush) {
		l->flush = true;
		l->next_flush = ls->to_flush;
		ls->to_flush = l;
	}
}

uint8_t
urn_lanes_put(struct urn_lanes *ls, const struct urn_memop *op)
{
	const struct urn_foreign *f = (const void *)op->region->base;
	struct urn_lane *l = lane_of(ls, f->space);

	if (unlikely(!l))
		return URN_MEMOP_FAILED;
	if (!l->active) {
		l->user = user_of(ls, f->space->uid);
		if (unlikely(!l->user))
			return URN_MEMOP_FAILED;
	}
	/* No operation overtakes another: while others wait no slot is free, because lane_take() refills slots. */
	if (likely(l->prod - l->cons < URN_LANE_SLOTS))
		lane_fill(ls, l, op);
	else if (!lane_wait(ls, l, op))
		return URN_MEMOP_FAILED;
	if (!l->active) {
		l->active = true;
		l->next_active = ls->active;
		ls->active = l;
	}
	__atomic_store_n(&l->put, l->put + 1, __ATOMIC_RELAXED);
	ls->n++;
	l->user->n++;
	if (unlikely(ls->n >= ls->full))
		user_check(ls, l->user);
	if (unlikely(lane_under_way(l) >= lane_limit(ls)))
		gate_close(ls, l, op->region->pd);
	return URN_MEMOP_PENDING;
}

void
urn_lanes_flush(struct urn_lanes *ls)
{
	struct urn_lane *l;

	while ((l = ls->to_flush)) {
		ls->to_flush = l->next_flush;
		l->flush = false;
		atomic_store_explicit(&l->cpu, sched_getcpu(), memory_order_relaxed);
		/* Pairs with the acquire in the worker's serve(). */
		atomic_store_explicit(&l->sent, l->prod, memory_order_release);
		urn_space_wake(l->space);
	}
}

/* Take answers of one lane. returns: their number */
static unsigned int
lane_take(struct urn_lanes *ls, struct urn_lane *l, struct urn_memop *ops, unsigned int max)
{
	/* Pairs with the release in the worker's serve(). */
	uint32_t n = atomic_load_explicit(&l->done, memory_order_acquire) - l->cons;
	struct urn_lane_wait *w;

	if (n > max)
		n = max;
	for (uint32_t i = 0; i < n; i++)
		ops[i] = l->slot[l->cons++ % URN_LANE_SLOTS];
	/* Pairs with the acquire in urn_lane_passed(): the effects of these operations are visible. */
	__atomic_store_n(&l->taken, l->cons, __ATOMIC_RELEASE);
	ls->n -= n;
	l->user->n -= n;
	if (unlikely(l->user->closed))
		user_check(ls, l->user);
	while (unlikely((w = STAILQ_FIRST(&l->waits)) != NULL) &&
	       l->prod - l->cons < URN_LANE_SLOTS) {
		lane_fill(ls, l, &w->op);
		STAILQ_REMOVE_HEAD(&l->waits, next);
		l->waiting--;
		STAILQ_INSERT_HEAD(&ls->free, w, next);
	}
	if (unlikely(l->closed) && lane_under_way(l) <= lane_limit(ls) / 2)
		gate_open(ls, l);
	return n;
}

unsigned int
urn_lanes_poll(struct urn_lanes *ls, struct urn_memop *ops, unsigned int max)
{
	struct urn_lane **at = &ls->active, *l, *first = NULL, **end;
	unsigned int n = 0;

	while ((l = *at) && n < max) {
		n += lane_take(ls, l, ops + n, max - n);
		if (lane_under_way(l) == 0) {
			l->active = false;
			*at = l->next_active;
		} else {
			at = &l->next_active;
		}
	}
	/* Lanes that had no turn come first in the next call. */
	if (unlikely(l && at != &ls->active)) {
		first = l;
		for (end = at; *end; end = &(*end)->next_active)
			;
		*end = ls->active;
		*at = NULL;
		ls->active = first;
	}
	urn_lanes_flush(ls);
	return n;
}

bool
urn_lanes_crowded(const struct urn_lanes *ls)
{
	int cpu = sched_getcpu();

	for (const struct urn_lane *l = ls->active; l; l = l->next_active)
		if (atomic_load_explicit(&l->space->cpu, memory_order_relaxed) == cpu)
			return true;
	return false;
}

unsigned int
urn_lanes_hold(const struct urn_lanes *ls, const struct urn_region *region)
{
	const struct urn_lane_wait *w;
	unsigned int n = 0;

	for (const struct urn_lane *l = ls->active; l; l = l->next_active) {
		for (uint32_t i = l->cons; i != l->prod; i++)
			n += l->slot[i % URN_LANE_SLOTS].region == region;
		STAILQ_FOREACH(w, &l->waits, next)
			n += w->op.region == region;
	}
	return n;
}
