/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Timing wheel: start, stop and expiry in O(1), nothing to do while nothing
 * is due.
 *
 * Four levels of 64 slots, each level's slot as wide as the whole level below; a bitmap per
 * level says which slots hold timers. One tick is 2^12 ns; the wheel reaches 64^4 ticks (68 s).
 * A timer beyond that is put at the far end; its owner, who keeps the real deadline, starts the
 * timer again.
 */
#ifndef URN_TRANSPORT_WHEEL_H
#define URN_TRANSPORT_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	URN_WHEEL_TICK_SHIFT = 12, /* ns to ticks */
	URN_WHEEL_LEVELS = 4,
	URN_WHEEL_BITS = 6,
	URN_WHEEL_SLOTS = 1 << URN_WHEEL_BITS,
};

/* The object that a timer of a transport is embedded in. */
enum urn_timer_kind {
	URN_TIMER_QP,     /* struct urn_psn_tx of a struct urn_qp */
	URN_TIMER_PACE,   /* struct urn_pace */
	URN_TIMER_SOURCE, /* struct urn_source_timer */
	URN_TIMER_FLOW,   /* struct urn_psn_tx of a struct urn_flow */
};

struct urn_timer {
	struct urn_timer *next, **pprev; /* links in a slot; pprev NULL: not started */
	uint64_t tick : 56;              /* when the timer is due */
	uint64_t kind : 8;               /* enum urn_timer_kind; set by the owner */
};

struct urn_wheel {
	uint64_t now;                    /* tick that was handled last */
	uint64_t busy[URN_WHEEL_LEVELS]; /* bit i: slot i holds timers */
	struct urn_timer *slot[URN_WHEEL_LEVELS][URN_WHEEL_SLOTS];
	uint32_t count;                  /* timers started */
};

void urn_wheel_init(struct urn_wheel *w, uint64_t now_ns);
/* Start (or move) a timer; the timer is due at the first tick after due_ns, never before it. */
void urn_wheel_start(struct urn_wheel *w, struct urn_timer *t, uint64_t due_ns);
void urn_wheel_stop(struct urn_wheel *w, struct urn_timer *t);
/*
 * Advance to now_ns and hand back one timer that is due, stopped; NULL when there is none left. To
 * be called until NULL, or until a budget is used up.
 */
struct urn_timer *urn_wheel_expire(struct urn_wheel *w, uint64_t now_ns);
/*
 * A time in ns before which no timer is due, at most the time of the first timer; UINT64_MAX: none
 * is started. For simulations and tests, which have a clock to move: call urn_wheel_expire() then,
 * and ask again. Engines have a clock that moves by itself.
 */
uint64_t urn_wheel_next(const struct urn_wheel *w);

static inline bool
urn_timer_started(const struct urn_timer *t)
{
	return t->pprev != NULL;
}

/* True when there is something to do at now_ns. */
static inline bool
urn_wheel_due(const struct urn_wheel *w, uint64_t now_ns)
{
	return w->count && (now_ns >> URN_WHEEL_TICK_SHIFT) > w->now;
}

#endif
