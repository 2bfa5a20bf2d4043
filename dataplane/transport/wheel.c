/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A timer sits on the lowest level whose span still holds it: level l takes timers due within
 * 64^(l+1) ticks. When the clock enters a slot of a higher level, that slot's timers are put in
 * again and so come down. `now` only moves to ticks at which a slot has timers, so an empty wheel,
 * or a long sleep, costs a few bit scans and no walk over the ticks between.
 */
#include "abi/urn_abi.h"
#include "transport/wheel.h"

#include <string.h>

static void
insert(struct urn_wheel *w, struct urn_timer *t)
{
	uint64_t delta = t->tick - w->now, tick = t->tick;
	unsigned int level = 0;

	while (level < URN_WHEEL_LEVELS - 1 && delta >= 1ull << (URN_WHEEL_BITS * (level + 1)))
		level++;
	if (delta >= 1ull << (URN_WHEEL_BITS * URN_WHEEL_LEVELS))
		tick = w->now + (1ull << (URN_WHEEL_BITS * URN_WHEEL_LEVELS)) - 1;

	unsigned int i = (unsigned int)(tick >> (URN_WHEEL_BITS * level)) & (URN_WHEEL_SLOTS - 1);
	struct urn_timer **head = &w->slot[level][i];

	t->next = *head;
	t->pprev = head;
	if (t->next)
		t->next->pprev = &t->next;
	*head = t;
	w->busy[level] |= 1ull << i;
}

static void
unlink_timer(struct urn_wheel *w, struct urn_timer *t)
{
	*t->pprev = t->next;
	if (t->next)
		t->next->pprev = t->pprev;
	t->pprev = NULL;
	w->count--;
	/* The slot's bit stays until the slot is visited: a bit set for an empty slot does no harm. */
}

void
urn_wheel_init(struct urn_wheel *w, uint64_t now_ns)
{
	memset(w, 0, sizeof(*w));
	w->now = now_ns >> URN_WHEEL_TICK_SHIFT;
}

void
urn_wheel_start(struct urn_wheel *w, struct urn_timer *t, uint64_t due_ns)
{
	if (t->pprev)
		unlink_timer(w, t);
	t->tick = (due_ns >> URN_WHEEL_TICK_SHIFT) + 1;
	if (t->tick <= w->now)
		t->tick = w->now + 1;
	insert(w, t);
	w->count++;
}

void
urn_wheel_stop(struct urn_wheel *w, struct urn_timer *t)
{
	if (t->pprev)
		unlink_timer(w, t);
}

/* The next tick after w->now at which some slot must be visited. */
static uint64_t
next_visit(const struct urn_wheel *w)
{
	uint64_t best = UINT64_MAX;

	for (unsigned int l = 0; l < URN_WHEEL_LEVELS; l++) {
		unsigned int shift = URN_WHEEL_BITS * l;
		uint64_t pos = (w->now >> shift) + 1; /* slots of this level, counted from 0 for ever */
		unsigned int i = (unsigned int)pos & (URN_WHEEL_SLOTS - 1);
		uint64_t bits = w->busy[l];

		if (!bits)
			continue;
		bits = i ? bits >> i | bits << (URN_WHEEL_SLOTS - i) : bits;

		uint64_t at = (pos + (uint64_t)__builtin_ctzll(bits)) << shift;

		if (at < best)
			best = at;
	}
	return best;
}

/* The clock enters tick w->now: move the timers for it down from higher levels. */
static void
cascade(struct urn_wheel *w)
{
	for (unsigned int l = 1; l < URN_WHEEL_LEVELS; l++) {
		unsigned int shift = URN_WHEEL_BITS * l;

		if (w->now & ((1ull << shift) - 1))
			break;

		unsigned int i = (unsigned int)(w->now >> shift) & (URN_WHEEL_SLOTS - 1);
		struct urn_timer *t = w->slot[l][i], *next;

		w->slot[l][i] = NULL;
		w->busy[l] &= ~(1ull << i);
		for (; t; t = next) {
			next = t->next;
			insert(w, t);
		}
	}
}

URN_FAST struct urn_timer *
urn_wheel_expire(struct urn_wheel *w, uint64_t now_ns)
{
	uint64_t target = now_ns >> URN_WHEEL_TICK_SHIFT;

	for (;;) {
		unsigned int i = (unsigned int)w->now & (URN_WHEEL_SLOTS - 1);
		struct urn_timer *t = w->slot[0][i];

		if (t) {
			unlink_timer(w, t);
			return t;
		}
		w->busy[0] &= ~(1ull << i);

		uint64_t at = w->count ? next_visit(w) : UINT64_MAX;

		if (at > target) {
			if (target > w->now) {
				/* No slot is entered on the way, so none is skipped. */
				w->now = target;
			}
			return NULL;
		}
		w->now = at;
		cascade(w);
	}
}

uint64_t
urn_wheel_next(const struct urn_wheel *w)
{
	return w->count ? next_visit(w) << URN_WHEEL_TICK_SHIFT : UINT64_MAX;
}
