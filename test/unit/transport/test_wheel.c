/* SPDX-License-Identifier: BSD-3-Clause */
/* The timing wheel against a plain list of deadlines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "transport/wheel.h"

#include <string.h>

#define TICK (1ull << URN_WHEEL_TICK_SHIFT)
#define REACH (1ull << (URN_WHEEL_BITS * URN_WHEEL_LEVELS)) /* ticks */
enum { TIMERS = 500 };

static uint64_t rng;

static uint64_t
rnd(uint64_t n)
{
	uint64_t z = rng += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (z ^ z >> 31) % n;
}

/* A delay that is likely to end at the edge of a level, or beyond the last. */
static uint64_t
rnd_wait(void)
{
	unsigned int level = (unsigned int)rnd(URN_WHEEL_LEVELS + 1);
	uint64_t span = TICK << (URN_WHEEL_BITS * level);

	switch (rnd(4)) {
	case 0:
		return span;
	case 1:
		return span - 1 - rnd(3);
	case 2:
		return span * (1 + rnd(64)) + rnd(3);
	default:
		return rnd(span * 64);
	}
}

/* ---- one timer */

static void
one(uint64_t start, uint64_t wait)
{
	struct urn_wheel w;
	struct urn_timer t = {0};
	uint64_t due = start + wait;
	/* The timer's tick begins after the deadline, by at most a tick. */
	uint64_t first = ((due >> URN_WHEEL_TICK_SHIFT) + 1) << URN_WHEEL_TICK_SHIFT;

	urn_wheel_init(&w, start);
	assert_false(urn_wheel_due(&w, start + 1000 * TICK));
	urn_wheel_start(&w, &t, due);
	assert_true(urn_timer_started(&t));
	assert_null(urn_wheel_expire(&w, start));
	assert_null(urn_wheel_expire(&w, start + wait / 2));
	assert_null(urn_wheel_expire(&w, due));
	assert_null(urn_wheel_expire(&w, first - 1));
	assert_true(urn_wheel_due(&w, first));
	assert_ptr_equal(urn_wheel_expire(&w, first), &t);
	assert_false(urn_timer_started(&t));
	assert_null(urn_wheel_expire(&w, first));
	assert_false(urn_wheel_due(&w, first + TICK));
}

/* Never early, and at the first tick after the deadline, on every level and beyond them. */
static void
test_edges(void **state)
{
	static const uint64_t starts[] = {0, 1, 63, 64, 4095, 4096, 262143, REACH - 1, REACH, 3 * REACH + 77};

	(void)state;
	for (unsigned int s = 0; s < sizeof(starts) / sizeof(starts[0]); s++) {
		for (unsigned int level = 0; level <= URN_WHEEL_LEVELS; level++) {
			uint64_t span = TICK << (URN_WHEEL_BITS * level);

			one(starts[s] * TICK, span - 1);
			one(starts[s] * TICK + 5, span);
			one(starts[s] * TICK, span + 1);
			one(starts[s] * TICK + TICK - 1, 63 * span + 12345);
		}
		one(starts[s] * TICK, 0);
		one(starts[s] * TICK, 10 * REACH * TICK);
	}
}

/* A deadline in the past is due at the next tick. */
static void
test_past(void **state)
{
	struct urn_timer t = {0};
	struct urn_wheel w;

	(void)state;
	urn_wheel_init(&w, 1000 * TICK);
	urn_wheel_start(&w, &t, 10);
	assert_null(urn_wheel_expire(&w, 1000 * TICK));
	assert_ptr_equal(urn_wheel_expire(&w, 1001 * TICK), &t);
}

/* An empty wheel does not follow the clock; a timer started then is not late. */
static void
test_after_idle(void **state)
{
	static const uint64_t idle[] = {1, 64, 5000, 300000, REACH - 1, REACH, 9 * REACH};
	struct urn_timer t = {0};
	struct urn_wheel w;

	(void)state;
	for (unsigned int i = 0; i < sizeof(idle) / sizeof(idle[0]); i++) {
		uint64_t now = 7 * TICK + idle[i] * TICK;

		urn_wheel_init(&w, 7 * TICK);
		assert_null(urn_wheel_expire(&w, 7 * TICK));
		urn_wheel_start(&w, &t, now + 10 * TICK);
		assert_null(urn_wheel_expire(&w, now));
		assert_null(urn_wheel_expire(&w, now + 10 * TICK));
		assert_ptr_equal(urn_wheel_expire(&w, now + 11 * TICK), &t);
	}
}

/* ---- many */

struct many {
	struct urn_wheel w;
	struct urn_timer t[TIMERS];
	uint64_t due[TIMERS]; /* ticks; 0: stopped */
	uint64_t now;         /* ns: the present time */
};

static void
change(struct many *m)
{
	unsigned int i = (unsigned int)rnd(TIMERS);

	if (rnd(4) == 0) {
		urn_wheel_stop(&m->w, &m->t[i]);
		m->due[i] = 0;
	} else {
		uint64_t at = m->now + rnd_wait();

		urn_wheel_start(&m->w, &m->t[i], at);
		m->due[i] = (at >> URN_WHEEL_TICK_SHIFT) + 1;
	}
	assert_int_equal(urn_timer_started(&m->t[i]), m->due[i] != 0);
}

/* When the clock has gone on, all timers that are due expire, and no others. */
static void
advance(struct many *m)
{
	uint64_t tick;
	struct urn_timer *t;
	unsigned int left = 0;

	m->now += rnd_wait();
	tick = m->now >> URN_WHEEL_TICK_SHIFT;
	while ((t = urn_wheel_expire(&m->w, m->now))) {
		size_t i = (size_t)(t - m->t);

		assert_true(m->due[i] != 0 && m->due[i] <= tick);
		m->due[i] = 0;
		/* A timer that expires may start itself or another again. */
		if (rnd(3) == 0)
			change(m);
	}
	for (unsigned int i = 0; i < TIMERS; i++) {
		assert_true(m->due[i] == 0 || m->due[i] > tick);
		left += m->due[i] != 0;
	}
	assert_int_equal(m->w.count, left);
}

static void
test_many(void **state)
{
	static struct many m;

	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		memset(&m, 0, sizeof(m));
		rng = seed;
		m.now = rnd(100 * REACH * TICK);
		urn_wheel_init(&m.w, m.now);
		for (int i = 0; i < 3000; i++) {
			for (uint64_t n = rnd(8); n > 0; n--)
				change(&m);
			advance(&m);
		}
	}
}

/* A budget may stop an advance in the middle: the rest comes with the next calls, though the time stays. */
static void
test_budget(void **state)
{
	struct urn_timer t[100];
	struct urn_wheel w;
	unsigned int n = 0;

	(void)state;
	memset(t, 0, sizeof(t));
	urn_wheel_init(&w, 0);
	for (unsigned int i = 0; i < 100; i++)
		urn_wheel_start(&w, &t[i], 5 * TICK);
	while (n < 40 && urn_wheel_expire(&w, 6 * TICK))
		n++;
	while (urn_wheel_expire(&w, 6 * TICK))
		n++;
	assert_int_equal(n, 100);
}

/* The next time is never later than the first timer, and repeated advances to it soon reach the timer. */
static void
test_next(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 2000; i++) {
		struct urn_timer a = {0}, b = {0};
		uint64_t start = rnd(1ull << 40), now = start, first;
		struct urn_wheel w;
		unsigned int steps = 0;

		urn_wheel_init(&w, start);
		assert_true(urn_wheel_next(&w) == UINT64_MAX);
		urn_wheel_start(&w, &a, start + rnd_wait() % (REACH * TICK / 2));
		urn_wheel_start(&w, &b, start + rnd_wait() % (REACH * TICK / 2));
		first = (a.tick < b.tick ? a.tick : b.tick) << URN_WHEEL_TICK_SHIFT;
		while (!urn_wheel_expire(&w, now)) {
			now = urn_wheel_next(&w);
			assert_true(now > start && now <= first);
			assert_true(++steps <= 2 * URN_WHEEL_LEVELS);
		}
		assert_true(now == first);
		urn_wheel_stop(&w, &a);
		urn_wheel_stop(&w, &b);
		assert_true(urn_wheel_next(&w) == UINT64_MAX);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_edges), cmocka_unit_test(test_past),
		cmocka_unit_test(test_after_idle), cmocka_unit_test(test_many),
		cmocka_unit_test(test_budget), cmocka_unit_test(test_next),
	};

	return cmocka_run_group_tests_name("wheel", tests, NULL, NULL);
}
