/* SPDX-License-Identifier: BSD-3-Clause */
/* Counting in urnic-perf: warm-up left out, a number of messages or an amount of time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "urnic-perf/meter.h"

/* Cycles a second: a cycle is a nanosecond, which makes times easy to read. */
#define HZ 1000000000ull
#define MS 1000000ull

static struct meter m;

/* Warm-up excluded; exactly as many messages as asked for are measured. */
static void
by_messages(void **state)
{
	(void)state;
	meter_init(&m, 100, 10, 0, HZ);
	assert_int_equal(meter_allow(&m, 1000), 110);
	meter_tick(&m, 5);
	m.posted = 110;
	assert_int_equal(meter_allow(&m, 1), 0);

	meter_latency(&m, 50);
	meter_count(&m, 9, 20);
	assert_int_equal(m.phase, METER_WARM);
	meter_count(&m, 1, 1000);
	assert_int_equal(m.phase, METER_RUN);
	meter_latency(&m, 60);
	meter_count(&m, 99, 2000);
	assert_int_equal(m.phase, METER_RUN);
	meter_count(&m, 1, 1000 + 2 * HZ);
	assert_int_equal(m.phase, METER_OVER);
	assert_int_equal(m.measured, 100);
	assert_true(meter_seconds(&m) == 2.0);
	assert_int_equal(urn_hist_count(&m.hist), 1);
	assert_int_equal(urn_hist_min(&m.hist), 60);
}

/* A burst that crosses the end of a phase is divided there. */
static void
bursts_are_divided(void **state)
{
	(void)state;
	meter_init(&m, 100, 10, 0, HZ);
	meter_tick(&m, 1);
	meter_count(&m, 32, 5);
	assert_int_equal(m.phase, METER_RUN);
	assert_int_equal(m.base, 10);
	meter_count(&m, 200, 6);
	assert_int_equal(m.phase, METER_OVER);
	assert_int_equal(m.measured, 100);
	assert_int_equal(m.done, 232);
}

static void
by_time(void **state)
{
	(void)state;
	meter_init(&m, 0, 0, 1000 * MS, HZ);
	meter_tick(&m, 7);
	assert_int_equal(meter_allow(&m, 32), 32);
	meter_count(&m, 500, 50 * MS);
	meter_tick(&m, 99 * MS);
	assert_int_equal(m.phase, METER_WARM);
	meter_tick(&m, 101 * MS);
	assert_int_equal(m.phase, METER_RUN);
	meter_count(&m, 600, 600 * MS);
	meter_tick(&m, 1100 * MS);
	assert_int_equal(m.phase, METER_RUN);
	meter_tick(&m, 1101 * MS);
	assert_int_equal(m.phase, METER_OVER);
	assert_int_equal(m.measured, 600);
	assert_int_equal(meter_allow(&m, 32), 0);
	/* Late completions do not change the result. */
	meter_count(&m, 50, 1200 * MS);
	assert_int_equal(m.measured, 600);
	assert_int_equal(m.done, 1150);
}

/* Tick every few milliseconds from one time to another. */
static void
tick_to(uint64_t from, uint64_t to)
{
	for (uint64_t t = from; t <= to; t += 5 * MS)
		meter_tick(&m, t);
}

/* A stall is the time since the last progress, not since the last look. */
static void
stall_is_seen(void **state)
{
	(void)state;
	meter_init(&m, 0, 0, 10000 * MS, HZ);
	meter_tick(&m, 100 * MS);
	assert_int_equal(meter_stalled(&m), 0);
	tick_to(100 * MS, 300 * MS);
	assert_int_equal(meter_stalled(&m), 200 * MS);
	meter_count(&m, 1, 300 * MS);
	meter_tick(&m, 400 * MS);
	assert_int_equal(meter_stalled(&m), 0);
	tick_to(400 * MS, 450 * MS);
	assert_int_equal(meter_stalled(&m), 50 * MS);
}

/* Time in which the thread did not run, or a clock that goes back, is no stall. */
static void
not_run_is_no_stall(void **state)
{
	(void)state;
	meter_init(&m, 0, 0, 1000000 * MS, HZ);
	meter_tick(&m, 100000 * MS);
	meter_tick(&m, 160000 * MS);
	assert_int_equal(meter_stalled(&m), 10 * MS);
	meter_tick(&m, 150000 * MS);
	assert_int_equal(meter_stalled(&m), 10 * MS);
	tick_to(150000 * MS, 150030 * MS);
	assert_int_equal(meter_stalled(&m), 40 * MS);
}

/* An interrupted run reports its results so far, also from within the warm-up. */
static void
cut_short(void **state)
{
	(void)state;
	meter_init(&m, 100, 10, 0, HZ);
	meter_tick(&m, 1);
	meter_count(&m, 50, 2);
	meter_cut(&m, 5);
	assert_int_equal(m.phase, METER_OVER);
	assert_int_equal(m.measured, 0 + m.done - m.base);

	meter_init(&m, 0, 0, 1000 * MS, HZ);
	meter_tick(&m, 1);
	meter_cut(&m, 2);
	assert_int_equal(m.phase, METER_OVER);
	assert_int_equal(m.measured, 0);
}

/* Cycles become nanoseconds by the clock's rate. */
static void
cycles_are_scaled(void **state)
{
	(void)state;
	meter_init(&m, 10, 0, 0, 2 * HZ);
	meter_tick(&m, 1);
	assert_int_equal(m.phase, METER_RUN);
	meter_latency(&m, 240);
	assert_int_equal(urn_hist_max(&m.hist), 120);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_messages), cmocka_unit_test(bursts_are_divided),
		cmocka_unit_test(by_time),
		cmocka_unit_test(stall_is_seen),
		cmocka_unit_test(not_run_is_no_stall), cmocka_unit_test(cut_short),
		cmocka_unit_test(cycles_are_scaled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
