/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a state of congestion, with made-up sources: a source that waits for the timer of its
 * state still has a turn when the state goes (doc/inside/recovery.md "Congestion").
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "transport/congestion.h"
#include "transport/sched.h"

#include <string.h>

#define LINE 1250000000ull /* bytes a second: 10 Gbit/s */
#define MS 1000000ull
#define S (1000 * MS)

enum { SOURCES = 2 };

static struct urn_tp tp;
static struct urn_tp_share client;
static struct urn_source source[SOURCES];
static uint16_t slot[SOURCES];

static int
setup(void **state)
{
	(void)state;
	memset(&tp, 0, sizeof(tp));
	memset(&client, 0, sizeof(client));
	memset(source, 0, sizeof(source));
	memset(slot, 0, sizeof(slot));
	tp.now = S;
	urn_wheel_init(&tp.wheel, tp.now);
	urn_dcqcn_defaults(&tp.dcqcn, LINE);
	for (int i = 0; i < SOURCES; i++)
		source[i].share = &client;
	return urn_congestion_init(&tp);
}

static int
teardown(void **state)
{
	(void)state;
	urn_congestion_free(&tp);
	return 0;
}

/* Let the time pass, as turns of the transport do. */
static void
pass(uint64_t ns)
{
	struct urn_timer *t;

	tp.now += ns;
	while ((t = urn_wheel_expire(&tp.wheel, tp.now)))
		urn_sched_due(&tp, t);
}

/* Let source 1 ask for the only state of the pool until it has it: a few are looked at each turn.
 */
static void
take_the_state(void)
{
	for (int i = 0; i < URN_CONGESTIONS && !slot[1]; i++) {
		tp.turn++;
		urn_congestion_reported(&tp, &source[1], &slot[1], LINE);
	}
	assert_int_not_equal(slot[1], 0);
	assert_int_equal(slot[0], 0);
}

/* The state of a source that waits for its pace goes to another one: the source has its turn now.
 */
static void
test_waits(void **state)
{
	(void)state;
	tp.congestions.end = 2; /* one state */
	urn_congestion_reported(&tp, &source[0], &slot[0], LINE);
	urn_congestion_sent_source(&tp, &slot[0], 9000000); /* 14.4 ms of the half rate */
	assert_false(urn_congestion_open_source(&tp, &slot[0]));
	pass(5 * MS); /* the rate is back, and the source, which waits, does not look */
	assert_int_equal(tp.sched.n, 0);
	assert_int_equal(tp.wheel.count, 1);
	take_the_state();
	assert_int_equal(tp.wheel.count, 0); /* nothing else will wake it */
	assert_int_equal(tp.sched.n, 1);
	assert_ptr_equal(urn_sched_take(&tp.sched), &source[0]);
	assert_true(urn_congestion_open_source(&tp, &slot[0]));
}

/* A source that has nothing to send gets no turn when its state goes. */
static void
test_idle(void **state)
{
	(void)state;
	tp.congestions.end = 2;
	urn_congestion_reported(&tp, &source[0], &slot[0], LINE);
	pass(5 * MS);
	take_the_state();
	assert_int_equal(tp.sched.n, 0);
}

/*
 * A source that sent at the time of its timer, but before the timer was looked at, is parked until
 * its next time. The wait ends with the state, and leaves the source free for other turns.
 */
static void
test_parked(void **state)
{
	(void)state;
	urn_congestion_reported(&tp, &source[0], &slot[0], 0);
	urn_congestion_sent_source(&tp, &slot[0], 12500); /* 10 ms of the least rate */
	assert_false(urn_congestion_open_source(&tp, &slot[0]));
	tp.now += 10 * MS;
	assert_true(urn_congestion_open_source(&tp, &slot[0]));
	urn_congestion_sent_source(&tp, &slot[0], 10000000);
	pass(MS);
	assert_true(source[0].flags & URN_SOURCE_PARKED);
	urn_congestion_end_source(&tp, &slot[0]);
	assert_int_equal(tp.wheel.count, 0);
	assert_int_equal(tp.sched.n, 0);
	urn_sched_add(&tp.sched, &source[0]);
	assert_int_equal(tp.sched.n, 1);
}

/* Sources that ask for states when there are none make a turn look at 16, however many ask. */
static void
test_few_looks(void **state)
{
	(void)state;
	tp.congestions.end = 2;
	urn_congestion_reported(&tp, &source[0], &slot[0], LINE);
	for (int turn = 1; turn < 10; turn++) {
		tp.turn++;
		for (int i = 0; i < 100; i++)
			urn_congestion_reported(&tp, &source[1], &slot[1], LINE);
		assert_int_equal(tp.congestion_hand, turn * 16);
	}
}

/* Flows are nobody's: together they have what one user may have, and leave states to the sources of
 * clients. */
static void
test_nobodys(void **state)
{
	enum { ALL = 2 * URN_CONGESTIONS };
	static struct urn_source flow[ALL];
	static uint16_t flow_slot[ALL];
	struct urn_tp_user user = {0};
	unsigned int n = 0;

	(void)state;
	memset(flow_slot, 0, sizeof(flow_slot));
	client.user = &user;
	for (int i = 0; i < ALL; i++) {
		flow[i].share = &tp.nobodys;
		urn_congestion_reported(&tp, &flow[i], &flow_slot[i], LINE);
		n += flow_slot[i] != 0;
	}
	assert_int_equal(n, tp.nobodys.states);
	assert_in_range(n, URN_CONGESTIONS * 2 / 3, URN_CONGESTIONS * 7 / 9 + 1);
	for (int i = 0; i < SOURCES; i++) {
		urn_congestion_reported(&tp, &source[i], &slot[i], LINE);
		assert_int_not_equal(slot[i], 0);
	}
	assert_int_equal(user.states, SOURCES);
	for (int i = 0; i < ALL; i++)
		urn_congestion_end_source(&tp, &flow_slot[i]);
	assert_int_equal(tp.nobodys.states, 0);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_waits),     TEST(test_idle),	  TEST(test_parked),
		TEST(test_few_looks), TEST(test_nobodys),
	};

	return cmocka_run_group_tests_name("congestion", tests, NULL, NULL);
}
