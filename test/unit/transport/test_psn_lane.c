/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * architecture.md, seams 1 and 3: reliability that is not a queue pair's. A lane of words (lane.h)
 * brings every word over a bad wire, once and in order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lane.h"

static void
good_wire(void **state)
{
	static struct lane l;

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		lane_start(&l, 1, (struct lane_way){.keeps = i, .selective = i, .early = true});
		lane_run(&l);
		assert_false(l.failed);
		assert_int_equal(l.repeats + l.naks + l.probes + l.timeouts, 0);
	}
}

/* Without probes and early repeats, the end of the words is brought by the timeout alone. */
static void
bad_wire(void **state)
{
	static struct lane l;
	unsigned int timeouts = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		lane_start(&l, seed, (struct lane_way){.bad = true});
		lane_run(&l);
		assert_false(l.failed);
		assert_true(l.repeats > 0 && l.naks > 1000); /* most gaps are told */
		timeouts += l.timeouts;
	}
	assert_true(timeouts > 0);
}

/* Probes and early repeats leave little to the timeout, which costs retries. */
static void
bad_wire_early(void **state)
{
	unsigned int timeouts[2] = {0}, turns[2] = {0};
	static struct lane l;

	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		for (unsigned int early = 0; early < 2; early++) {
			lane_start(&l, seed, (struct lane_way){.bad = true, .early = early});
			lane_run(&l);
			assert_false(l.failed);
			assert_int_equal(l.probes > 0, early);
			timeouts[early] += l.timeouts;
			turns[early] += l.turn;
		}
	}
	assert_true(timeouts[1] * 8 < timeouts[0]);
	assert_true(turns[1] * 2 < turns[0]);
}

/* Selective acknowledgements: only missing words go again. */
static void
bad_wire_selective(void **state)
{
	unsigned int probes = 0;
	static struct lane l;

	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		unsigned int all;

		lane_start(&l, seed, (struct lane_way){.bad = true, .early = true});
		lane_run(&l);
		all = l.repeats;
		lane_start(&l, seed,
			   (struct lane_way){
				   .bad = true, .early = true, .keeps = true, .selective = true});
		lane_run(&l);
		assert_false(l.failed);
		assert_true(l.repeats * 3 < all);
		assert_true(l.mended * 2 > l.repeats); /* more by gaps than by probes and timeouts */
		assert_true(l.sacks > 0 && l.naks == 0);
		probes += l.probes;
	}
	/* A second gap is told when the first is filled, and not found by a probe. */
	assert_true(probes < 8 * 90);
}

/* IBTA 9.7.6.1.3: a silent peer costs a timeout for the first transmission and each retry. */
static void
silent_peer(void **state)
{
	const uint32_t span = 1u << LANE_TIMEOUT, whole = (LANE_RETRIES + 1) * span;
	static struct lane l;

	(void)state;
	for (unsigned int early = 0; early < 2; early++) {
		lane_start(&l, 1, (struct lane_way){.dead_turns = UINT32_MAX, .early = early});
		lane_run(&l);
		assert_true(l.failed);
		assert_int_equal(l.timeouts, LANE_RETRIES + 1);
		assert_in_range(l.failed_turn, whole, whole + 2 * (LANE_RETRIES + 2));
		assert_int_equal(l.got, 0);
	}
}

/* Progress gives the retries back. */
static void
silent_for_a_while(void **state)
{
	const uint32_t span = 1u << LANE_TIMEOUT;
	static struct lane l;

	(void)state;
	lane_start(&l, 1, (struct lane_way){.dead_turns = LANE_RETRIES * span});
	lane_run(&l);
	assert_false(l.failed);
	assert_int_equal(l.timeouts, LANE_RETRIES);
	assert_int_equal(l.tx.retries, LANE_RETRIES);
}

/* IBTA 9.7.5.2.8: an RNR NAK is waited out, and its retries are counted apart; 7: for ever. */
static void
receiver_full(void **state)
{
	static struct lane l;

	(void)state;
	lane_start(&l, 1, (struct lane_way){.full_turns = 15});
	lane_run(&l);
	assert_false(l.failed);
	assert_int_equal(l.tx.rnr_tries, 2);
	assert_int_equal(l.tx.retries, LANE_RETRIES);
	assert_int_equal(l.timeouts, 0);

	lane_start(&l, 1, (struct lane_way){.full_turns = 1000});
	lane_run(&l);
	assert_true(l.failed);
	assert_in_range(l.failed_turn, 20, 30); /* two waits of ten turns */

	lane_start(&l, 1, (struct lane_way){.full_turns = 1000});
	l.tx.rnr_retry = URN_RNR_FOREVER;
	lane_run(&l);
	assert_false(l.failed);
	assert_int_equal(l.timeouts, 0);
}

/* The words behind the one that found no room are neither kept nor asked for: the RNR NAK tells of
 * all. */
static void
refused_once(void **state)
{
	static struct lane l;

	(void)state;
	for (unsigned int keeps = 0; keeps < 2; keeps++) {
		for (unsigned int selective = 0; selective <= keeps; selective++) {
			lane_start(&l, 1,
				   (struct lane_way){.keeps = keeps,
						     .selective = selective,
						     .rate = 4,
						     .full_from = 100,
						     .full_turns = 108});
			lane_run(&l);
			assert_false(l.failed);
			assert_int_equal(l.rnr_naks, 1);
			assert_int_equal(l.naks + l.sacks + l.put_by + l.timeouts, 0);
		}
	}
}

/* Words that wait for others find no room either when their turn comes. */
static void
refused_behind_gaps(void **state)
{
	static struct lane l;
	unsigned int rnr_naks = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		lane_start(&l, seed,
			   (struct lane_way){.bad = true,
					     .early = true,
					     .keeps = true,
					     .selective = true,
					     .full_from = 100,
					     .full_turns = 300});
		l.tx.rnr_retry = URN_RNR_FOREVER;
		lane_run(&l);
		assert_false(l.failed);
		assert_true(l.put_by > 0);
		assert_true(l.sacks > 500); /* selective again, once there is room */
		rnr_naks += l.rnr_naks;
	}
	assert_true(rnr_naks > 0);
}

/*
 * Words that slow memory makes the receiver drop are asked for, so that they wait for no timer; the
 * one that was asked for is taken, because the sender goes back once.
 */
static void
slow_memory(void **state)
{
	static struct lane l;

	(void)state;
	for (unsigned int selective = 0; selective < 2; selective++) {
		lane_start(&l, 1,
			   (struct lane_way){.gate_turns = 400,
					     .keeps = selective,
					     .selective = selective,
					     .rate = selective ? 8 : 0});
		lane_run(&l);
		assert_false(l.failed);
		assert_true(l.naks > 0 && l.repeats > 0);
		assert_int_equal(l.timeouts + l.probes, 0);
	}
}

/* A timeout that ran out while turns stood still does not count. */
static void
turns_stand_still(void **state)
{
	static struct lane l;

	(void)state;
	lane_start(&l, 1, (struct lane_way){.stand_turns = 3u << LANE_TIMEOUT}); /* while acknowledgements are owed */
	lane_run(&l);
	assert_true(l.turn > 3u << LANE_TIMEOUT);
	assert_false(l.failed);
	assert_int_equal(l.timeouts, 0);
	assert_int_equal(l.tx.retries, LANE_RETRIES);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_wire),	       cmocka_unit_test(bad_wire),
		cmocka_unit_test(bad_wire_early),      cmocka_unit_test(bad_wire_selective),
		cmocka_unit_test(silent_peer),	       cmocka_unit_test(silent_for_a_while),
		cmocka_unit_test(receiver_full),       cmocka_unit_test(refused_once),
		cmocka_unit_test(refused_behind_gaps), cmocka_unit_test(slow_memory),
		cmocka_unit_test(turns_stand_still),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
