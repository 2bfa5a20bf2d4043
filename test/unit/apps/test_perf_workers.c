/* SPDX-License-Identifier: BSD-3-Clause */
/* How a run of urnic-perf ends: both sides through, a failure, a stall, a signal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/text.h"
#include "urnic-perf/perf.h"

#define HZ 1000000000ull

/* ---- engines are not needed here */

unsigned int
urn_engine_poll(struct urn_engine *e)
{
	(void)e;
	return 0;
}

void
urn_engine_bind(struct urn_engine *e)
{
	(void)e;
}

void
urn_engine_unbind(struct urn_engine *e)
{
	(void)e;
}

void
urn_engine_idle(struct urn_engine *e, unsigned int empty)
{
	(void)e;
	(void)empty;
}

unsigned int
perf_wire_poll(struct perf_wire *w)
{
	(void)w;
	return 0;
}

static struct perf_opts o = {.op = PERF_WRITE_BW};
static struct run run;
static struct meter m;
static struct side side[2];

static int
setup(void **state)
{
	(void)state;
	memset(&run, 0, sizeof(run));
	meter_init(&m, 0, 0, 1000 * HZ, HZ);
	for (unsigned int i = 0; i < 2; i++)
		side[i] = (struct side){.run = &run, .o = &o, .index = i};
	side[0].meter = &m;
	urn_stop_install();
	return 0;
}

/* The run stops when both sides are through, however often one says so. */
static void
stops_when_both_are_done(void **state)
{
	(void)state;
	side_done(&side[0]);
	side_done(&side[0]);
	assert_false(atomic_load(&run.stop));
	side_done(&side[1]);
	assert_true(atomic_load(&run.stop));
	assert_false(atomic_load(&run.failed));
}

/* The first failure is the one that is told. */
static void
first_failure_wins(void **state)
{
	(void)state;
	run_fail(&run, "first %d", 1);
	run_fail(&run, "second %d", 2);
	assert_true(atomic_load(&run.stop));
	assert_true(atomic_load(&run.failed));
	assert_string_equal(run.err.text, "first 1");
}

/* No progress for 10 seconds ends the run with a sentence; progress does not. */
static void
stall_fails_the_run(void **state)
{
	(void)state;
	side_watch(&side[0], 1 * HZ);
	meter_count(&m, 5, 9 * HZ);
	side_watch(&side[0], 10 * HZ);
	side_watch(&side[0], 19 * HZ);
	assert_false(atomic_load(&run.failed));
	m.posted = 12;
	side_watch(&side[0], 20 * HZ + 1);
	assert_true(atomic_load(&run.failed));
	assert_non_null(strstr(run.err.text, "write_bw: nothing has moved for 10 seconds"));
	assert_non_null(strstr(run.err.text, "after 5 messages; 7 more"));
}

/* A side that is through may wait for the other without being called stalled. */
static void
done_is_no_stall(void **state)
{
	(void)state;
	side_watch(&side[0], 1 * HZ);
	side_done(&side[0]);
	side_watch(&side[0], 100 * HZ);
	assert_false(atomic_load(&run.failed));
}

static void
signal_cuts_the_measurement(void **state)
{
	(void)state;
	side_watch(&side[0], 1 * HZ);
	raise(SIGTERM);
	side_watch(&side[0], 2 * HZ);
	assert_true(run.interrupted);
	assert_int_equal(m.phase, METER_OVER);
	assert_false(atomic_load(&run.failed));
	assert_int_equal(meter_allow(&m, 1), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(stops_when_both_are_done, setup),
		cmocka_unit_test_setup(first_failure_wins, setup),
		cmocka_unit_test_setup(stall_fails_the_run, setup),
		cmocka_unit_test_setup(done_is_no_stall, setup),
		cmocka_unit_test_setup(signal_cuts_the_measurement, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
