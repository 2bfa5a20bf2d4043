/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a urnic-perf run: both sides done, a failure, a stall, a signal. */
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
		side[i] = (struct side){.run = &run, .o = &o, .index = i, .peer = &side[1 - i]};
	side[0].meter = &m;
	side[1].ran.most = m.ran.most;
	urn_stop_install();
	return 0;
}

/* The run stops when both sides are done, however often one reports that. */
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

/* The first failure is reported. */
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

/*
 * Run both sides' threads from one time to another, or A's alone; they look at the clock
 * every few milliseconds.
 */
static void
run_to(uint64_t from, uint64_t to, bool both)
{
	for (uint64_t t = from; t <= to; t += HZ / 200) {
		if (both)
			meter_ran(&side[1].ran, t);
		side_watch(&side[0], t);
	}
}

/* No progress for 10 seconds ends the run with a sentence; progress does not. */
static void
stall_fails_the_run(void **state)
{
	(void)state;
	run_to(1 * HZ, 9 * HZ, true);
	meter_count(&m, 5, 9 * HZ);
	run_to(10 * HZ, 20 * HZ, true);
	assert_false(atomic_load(&run.failed));
	m.posted = 12;
	run_to(20 * HZ, 20 * HZ + HZ / 100, true);
	assert_true(atomic_load(&run.failed));
	assert_non_null(strstr(run.err.text, "write_bw: nothing has moved for 10 seconds"));
	assert_non_null(strstr(run.err.text, "after 5 messages; 7 more"));
}

/* A thread in another process can't be watched: then only the side's own thread counts. */
static void
stall_without_peer(void **state)
{
	(void)state;
	side[0].peer = NULL;
	run_to(1 * HZ, 11 * HZ, false);
	assert_false(atomic_load(&run.failed));
	run_to(11 * HZ, 11 * HZ + HZ / 100, false);
	assert_true(atomic_load(&run.failed));
}

/* The counting thread did not run for a minute, and then looks before anything could move. */
static void
not_run_is_no_stall(void **state)
{
	(void)state;
	run_to(1 * HZ, 5 * HZ, true);
	side_watch(&side[0], 65 * HZ);
	assert_false(atomic_load(&run.failed));
	run_to(65 * HZ, 70 * HZ, true);
	assert_false(atomic_load(&run.failed));
}

/* The other side's thread does not run, and nothing can move; but the wait for it has an end. */
static void
peer_not_run_is_no_stall(void **state)
{
	(void)state;
	run_to(1 * HZ, 3 * HZ, true);
	run_to(3 * HZ, 60 * HZ, false);
	assert_false(atomic_load(&run.failed));
	run_to(60 * HZ, 62 * HZ, false);
	assert_true(atomic_load(&run.failed));
	assert_non_null(strstr(run.err.text, "for 60 seconds, in which the other side's thread was hardly run"));
}

/* The thread runs again, and nothing moves all the same. */
static void
peer_run_again_is_watched(void **state)
{
	(void)state;
	run_to(1 * HZ, 21 * HZ, false);
	assert_false(atomic_load(&run.failed));
	run_to(21 * HZ, 24 * HZ, true);
	assert_true(atomic_load(&run.failed));
	assert_non_null(strstr(run.err.text, "nothing has moved for 10 seconds, after"));
}

/* Only the other side's recent running time counts: not before, nor in another wait. */
static void
peer_run_before_does_not_count(void **state)
{
	(void)state;
	run_to(1 * HZ, 8 * HZ, false);
	meter_count(&m, 1, 8 * HZ);
	for (uint64_t t = 8; t < 30; t += 2) {
		run_to(t * HZ, (t + 2) * HZ, true);
		meter_count(&m, 1, (t + 2) * HZ);
	}
	run_to(30 * HZ, 60 * HZ, false);
	assert_false(atomic_load(&run.failed));
}

/* Step until the other side's thread is seen to run, or for 30 seconds of this side's. */
static unsigned int
until_peer_runs(struct side *s, uint64_t now)
{
	side_watch(s, now);
	if (__atomic_load_n(&s->peer->ran.cycles, __ATOMIC_RELAXED) > 0)
		atomic_store(&s->run->stop, true);
	else if (m.ran.cycles > 30 * HZ)
		run_fail(s->run, "the other side's thread is not seen to be run");
	return 0;
}

static unsigned int
nothing(struct side *s, uint64_t now)
{
	(void)s;
	(void)now;
	return 0;
}

/* With a thread each or a shared one, the run watches the thread of the side that does not count. */
static void
threads_say_that_they_are_run(void **state)
{
	struct perf_opts two = {.op = PERF_WRITE_BW, .attach = "elsewhere"};

	(void)state;
	for (int core = 0; core < 2; core++) {
		setup(state);
		side[0].o = side[1].o = &two;
		side[0].step = until_peer_runs;
		side[1].step = nothing;
		side[1].ran.most = 0; /* the workers set it */
		two.core[1] = core;
		assert_int_equal(workers_run(&side[0], &side[1], &run), 0);
		assert_int_equal(side[1].ran.most, m.ran.most);
		assert_true(side[1].ran.cycles > 0);
	}
}

/* A side that is done may wait for the other without being called stalled. */
static void
done_is_no_stall(void **state)
{
	(void)state;
	side_watch(&side[0], 1 * HZ);
	side_done(&side[0]);
	run_to(1 * HZ, 100 * HZ, true);
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
		cmocka_unit_test_setup(stall_without_peer, setup),
		cmocka_unit_test_setup(not_run_is_no_stall, setup),
		cmocka_unit_test_setup(peer_not_run_is_no_stall, setup),
		cmocka_unit_test_setup(peer_run_again_is_watched, setup),
		cmocka_unit_test_setup(peer_run_before_does_not_count, setup),
		cmocka_unit_test_setup(threads_say_that_they_are_run, setup),
		cmocka_unit_test_setup(done_is_no_stall, setup),
		cmocka_unit_test_setup(signal_cuts_the_measurement, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
