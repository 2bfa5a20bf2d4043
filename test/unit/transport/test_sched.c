/* SPDX-License-Identifier: BSD-3-Clause */
/* The schedule, with made-up sources: turns of clients and of their sources, and times
 * (architecture.md, seam 7). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "transport/sched.h"

#include <string.h>

#define TICK (1ull << URN_WHEEL_TICK_SHIFT)
enum { MANY = 512, CLIENTS = 3 };

static struct urn_tp tp;
static struct urn_tp_share client[CLIENTS];
static struct urn_source source[CLIENTS][MANY];

static int
setup(void **state)
{
	(void)state;
	memset(&tp, 0, sizeof(tp));
	memset(client, 0, sizeof(client));
	memset(source, 0, sizeof(source));
	tp.now = 1;
	urn_wheel_init(&tp.wheel, tp.now);
	for (int c = 0; c < CLIENTS; c++)
		for (int i = 0; i < MANY; i++)
			source[c][i].share = &client[c];
	return 0;
}

static void
add(int c, int n)
{
	for (int i = 0; i < n; i++)
		urn_sched_add(&tp.sched, &source[c][i]);
}

/* Take the source whose turn it is, which must be this one. */
static void
next_is(int c, int i)
{
	assert_non_null(tp.sched.head);
	assert_ptr_equal(urn_sched_take(&tp.sched), &source[c][i]);
}

static void
is_empty(void)
{
	assert_null(tp.sched.head);
	assert_int_equal(tp.sched.n, 0);
}

/* A client with 512 busy sources gets a turn for each turn of a client with one. */
static void
test_many_against_one(void **state)
{
	int turns[2] = {0, 0};

	(void)state;
	add(0, MANY);
	add(1, 1);
	for (int i = 0; i < 4 * MANY; i++) {
		struct urn_source *src = urn_sched_take(&tp.sched);

		turns[src->share == &client[1]]++;
		assert_in_range(turns[0] - turns[1] + 1, 1, 2);
		urn_sched_add(&tp.sched, src);
	}
	assert_int_equal(turns[0], turns[1]);
}

/* A client that comes back into the round goes behind the others, whose turn is not put off further. */
static void
test_newcomer(void **state)
{
	(void)state;
	add(0, 3);
	add(1, 2);
	next_is(0, 0);
	add(2, 1);
	next_is(1, 0);
	next_is(0, 1);
	next_is(2, 0);
	add(2, 1);
	next_is(1, 1);
	next_is(0, 2);
	next_is(2, 0);
	is_empty();
}

/* The sources of a client have turns in the order in which they came, and none is left out. */
static void
test_order(void **state)
{
	(void)state;
	add(0, MANY);
	add(0, MANY); /* each is there once */
	assert_int_equal(tp.sched.n, MANY);
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < MANY; i++) {
			next_is(0, i);
			urn_sched_add(&tp.sched, &source[0][i]);
		}
}

/* Sources leave from any place, and with their last source clients do: the others keep their order. */
static void
test_leave(void **state)
{
	(void)state;
	for (int gone = 0; gone < CLIENTS; gone++)
		for (int first = 0; first < 3; first++) {
			for (int c = 0; c < CLIENTS; c++)
				add(c, 3);
			for (int k = 0; k < 3; k++) {
				urn_sched_remove(&tp.sched, &source[gone][(first + k) % 3]);
				urn_sched_remove(&tp.sched, &source[gone][(first + k) % 3]);
				assert_int_equal(tp.sched.n, 3 * CLIENTS - k - 1);
			}
			for (int i = 0; i < 3; i++)
				for (int c = 0; c < CLIENTS; c++)
					if (c != gone)
						next_is(c, i);
			is_empty();
		}
	add(0, 3);
	urn_sched_remove(&tp.sched, &source[0][1]);
	next_is(0, 0);
	next_is(0, 2);
	source[0][0].flags |= URN_SOURCE_CLOSED;
	urn_sched_add(&tp.sched, &source[0][0]);
	is_empty();
}

/* Let the time pass, as a turn of the transport does. */
static void
pass(uint64_t now)
{
	struct urn_timer *t;

	tp.now = now;
	while ((t = urn_wheel_expire(&tp.wheel, now))) {
		assert_int_equal(t->kind, URN_TIMER_PACE);
		urn_sched_due(&tp, t);
	}
}

/* Sources with a time have no turn before it, and come back in the order of their times. */
static void
test_not_before(void **state)
{
	static const uint64_t at[] = {50, 3, 9000, 70, 20000000 /* beyond the reach of the wheel */};
	static const int order[] = {1, 0, 3, 2, 4};
	struct urn_pace pace[5] = {0};

	(void)state;
	add(0, 5);
	for (int i = 0; i < 5; i++) {
		pace[i].source = &source[0][i];
		urn_sched_park(&tp, &pace[i], at[i] * TICK);
	}
	is_empty();
	add(0, 5); /* doorbells do not count before the time */
	is_empty();
	for (int k = 0; k < 5; k++) {
		int i = order[k];

		pass(at[i] * TICK - 1);
		is_empty();
		assert_in_range(urn_wheel_next(&tp.wheel), 0, (at[i] + 1) * TICK);
		pass((at[i] + 1) * TICK);
		next_is(0, i);
		is_empty();
	}
	assert_int_equal(tp.wheel.count, 0);
}

/* All times that passed during one long turn come back in their order, behind the sources that were there. */
static void
test_late(void **state)
{
	struct urn_pace pace[8] = {0};

	(void)state;
	for (int i = 0; i < 8; i++) {
		pace[i].source = &source[0][i];
		urn_sched_park(&tp, &pace[i], (uint64_t)(8 - i) * 100 * TICK);
	}
	urn_sched_add(&tp.sched, &source[0][8]);
	pass(5000 * TICK);
	next_is(0, 8);
	for (int i = 8; i-- > 0;)
		next_is(0, i);
	is_empty();
}

/* A time that has come already parks nothing; an owner that ends takes its source back. */
static void
test_unpark(void **state)
{
	struct urn_pace pace = {.source = &source[0][0]};

	(void)state;
	urn_sched_park(&tp, &pace, tp.now);
	next_is(0, 0);
	urn_sched_park(&tp, &pace, 100 * TICK);
	urn_sched_park(&tp, &pace, 10 * TICK);
	pass(11 * TICK);
	next_is(0, 0);
	urn_sched_park(&tp, &pace, 100 * TICK);
	urn_sched_unpark(&tp, &pace);
	pass(1000 * TICK);
	is_empty();
	add(0, 1);
	next_is(0, 0);
	source[0][0].flags |= URN_SOURCE_CLOSED;
	urn_sched_park(&tp, &pace, tp.now);
	is_empty();
}

static int told; /* calls of tell_due() */

static void
tell_due(struct urn_tp *of, struct urn_source *src)
{
	(void)of;
	assert_int_equal(src->flags & URN_SOURCE_HELD, 0);
	told++;
}

/* A source with operations that knows what to do when its time has come is told, and has no turn.
 */
static void
test_due(void **state)
{
	static const struct urn_source_ops ops = {.due = tell_due};
	struct urn_source_ops_user user = {.source = {.kind = URN_SOURCE_OPS, .share = &client[0]},
					   .ops = &ops};
	struct urn_pace pace = {.source = &user.source, .not_before = 30000000 * TICK};

	(void)state;
	told = 0;
	urn_sched_wake(&tp, &pace);
	pass(20000000 * TICK); /* the wheel does not reach further */
	assert_int_equal(told, 0);
	assert_int_equal(tp.wheel.count, 1);
	pass(30000001 * TICK);
	assert_int_equal(told, 1);
	urn_sched_park(&tp, &pace, tp.now + 10 * TICK);
	pass(tp.now + 11 * TICK);
	assert_int_equal(told, 2);
	assert_int_equal(tp.wheel.count, 0);
	is_empty();
}

static uint8_t priority_of[64]; /* by DSCP: its upper three bits */

static void
set_priorities(void)
{
	for (unsigned int i = 0; i < 64; i++)
		priority_of[i] = (uint8_t)(i >> 3);
	tp.priority_of = priority_of;
}

/* Headers of a frame of the priority of a DSCP, IPv4. */
static struct urn_tmpl
headers(uint8_t dscp)
{
	struct urn_tmpl t = {.len = 42};

	t.bytes[12] = 0x08;
	t.bytes[14] = 0x45;
	t.bytes[15] = (uint8_t)(dscp << 2);
	return t;
}

/* Sources of a priority that is stopped wait beside the schedule, in order; those of others do not.
 */
static void
test_stopped(void **state)
{
	struct urn_tmpl three = headers(24), five = headers(40);

	(void)state;
	set_priorities();
	assert_false(urn_sched_stops(&tp, &source[0][0], &three));
	tp.sched.stopped = 1u << 3;
	add(0, 2); /* bytes that were not there have scheduled it in its turn */
	for (int i = 0; i < 5; i++)
		assert_true(urn_sched_stops(&tp, &source[0][i], &three));
	assert_false(urn_sched_stops(&tp, &source[0][5], &five));
	assert_int_equal(tp.sched.waiting, 1u << 3);
	is_empty();
	assert_true(urn_tp_busy(&tp));
	urn_sched_remove(&tp.sched, &source[0][2]);
	urn_sched_remove(&tp.sched, &source[0][4]);
	assert_int_equal(source[0][2].flags & URN_SOURCE_HELD, 0);
	tp.sched.stopped = 1u << 5;
	assert_ptr_equal(urn_sched_next(&tp.sched), &source[0][0]);
	assert_ptr_equal(urn_sched_next(&tp.sched), &source[0][1]);
	tp.sched.stopped = 1u << 3;
	assert_false(urn_sched_any(&tp.sched));
	tp.sched.stopped = 0;
	assert_ptr_equal(urn_sched_next(&tp.sched), &source[0][3]);
	is_empty();
	assert_int_equal(tp.sched.waiting, 0);
	assert_false(urn_tp_busy(&tp));
}

/* Something that happens to a source which waits gives it a turn, or a time. */
static void
test_stopped_and_more(void **state)
{
	struct urn_tmpl three = headers(24);
	struct urn_pace pace = {.source = &source[0][1]};

	(void)state;
	set_priorities();
	tp.sched.stopped = 1u << 3;
	for (int i = 0; i < 3; i++)
		assert_true(urn_sched_stops(&tp, &source[0][i], &three));
	add(0, 1);
	next_is(0, 0);
	is_empty();
	urn_sched_park(&tp, &pace, tp.now + 4 * TICK);
	assert_int_equal(source[0][1].flags & URN_SOURCE_HELD, URN_SOURCE_PARKED);
	urn_sched_add_first(&tp.sched, &source[0][2]);
	next_is(0, 2);
	/* The client's place is left, where nobody waits: no turn is for it, and no engine stays
	 * awake. */
	assert_int_equal(tp.sched.placed, 1u << 3);
	assert_int_equal(tp.sched.waiting, 0);
	is_empty();
	assert_false(urn_tp_busy(&tp));
	tp.sched.stopped = 0;
	assert_false(urn_sched_any(&tp.sched));
	urn_sched_unpark(&tp, &pace);
	tp.sched.stopped = 1u << 3;
	assert_true(urn_sched_stops(&tp, &source[0][0], &three));
	assert_true(urn_tp_busy(&tp));
	tp.sched.stopped = 0;
	assert_ptr_equal(urn_sched_next(&tp.sched), &source[0][0]);
	assert_int_equal(tp.sched.placed | tp.sched.waiting, 0);
}

/* Sources that wait are counted by priority, whatever takes them out. */
static void
test_stopped_count(void **state)
{
	struct urn_tmpl three = headers(24), five = headers(40);

	(void)state;
	set_priorities();
	tp.sched.stopped = 1u << 3 | 1u << 5;
	for (int i = 0; i < 3; i++)
		assert_true(urn_sched_stops(&tp, &source[0][i], &three));
	assert_true(urn_sched_stops(&tp, &source[1][0], &five));
	assert_int_equal(tp.sched.waiting_n[3], 3);
	assert_int_equal(tp.sched.waiting_n[5], 1);
	urn_sched_remove(&tp.sched, &source[1][0]);
	assert_int_equal(tp.sched.waiting, 1u << 3);
	add(0, 1);
	next_is(0, 0);
	assert_int_equal(tp.sched.waiting_n[3], 2);
	tp.sched.stopped = 0;
	assert_ptr_equal(urn_sched_next(&tp.sched), &source[0][1]);
	assert_ptr_equal(urn_sched_next(&tp.sched), &source[0][2]);
	assert_int_equal(tp.sched.waiting, 0);
	assert_int_equal(tp.sched.waiting_n[3] + tp.sched.waiting_n[5], 0);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, setup)
	const struct CMUnitTest tests[] = {
		TEST(test_many_against_one),
		TEST(test_newcomer),
		TEST(test_order),
		TEST(test_leave),
		TEST(test_not_before),
		TEST(test_late),
		TEST(test_unpark),
		TEST(test_due),
		TEST(test_stopped),
		TEST(test_stopped_and_more),
		TEST(test_stopped_count),
	};

	return cmocka_run_group_tests_name("sched", tests, NULL, NULL);
}
