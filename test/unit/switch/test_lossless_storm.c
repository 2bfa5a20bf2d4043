/* SPDX-License-Identifier: BSD-3-Clause */
/* Pause storms that mean to hold the watchdog off, and receivers that are slow only
 * (doc/inside/lossless.md "The watchdog"). */
#include "lossless_bench.h"

#define MS 1000000ull

/* A receiver, station 0, that pauses for ever, and means to hold the watchdog off. */
struct storm {
	uint64_t watchdog_ns;
	unsigned int steps;
	unsigned int drip;  /* steps from one frame that it takes to the next; 0: takes none */
	unsigned int other; /* steps from one frame of priority 0 for it to the next; 0: none */
};

/*
 * Station 2 sends to the receiver of a storm and to station 1 by turns, without a window. The storm
 * stops it once, and the watchdog drops frames once, after `bound` ns at most.
 */
static void
storm(const struct storm *s, uint64_t bound)
{
	struct urn_lossless_config cfg = bench_config();
	unsigned int before = 0, step = 0;
	struct bench b;

	cfg.watchdog_ns = s->watchdog_ns;
	cfg.restore_ns = 6 * MS; /* longer than the time between two pauses */
	bench_open(&b, 4, &cfg);
	for (unsigned int t = 0; t < s->steps; t++) {
		if (s->drip && t % s->drip == 0)
			bench_pfc(&b, 0, 0);
		if ((s->drip && t % s->drip == 0) || t % 1000 == 0)
			bench_pfc(&b, 0, 0xffff);
		bench_send(&b, 2, t & 1 ? 0 : 1);
		bench_send(&b, 3, 1);
		if (s->other && t % s->other == 0)
			bench_send_lossy(&b, 3, 0);
		bench_step(&b);
		if (bench_sum(&b, URN_SWQ_C_WATCHDOG) == 0)
			step = t, before = b.st[1].from[2];
	}
	print_message("dropped after %.1f ms; %u frames to station 1 until then, %u in all %u "
		      "steps\n",
		      (double)step * BENCH_STEP / 1e6, before, b.st[1].from[2], s->steps);
	assert_int_equal(bench_sum(&b, URN_SWQ_C_WATCHDOG), 1);
	assert_true(bench_sum(&b, URN_SWQ_C_DROP_WATCHDOG) > 0);
	assert_in_range(step, s->watchdog_ns / BENCH_STEP, bound / BENCH_STEP);
	/* From then on it sends as if the receiver were none. */
	assert_true(b.st[1].from[2] - before > (s->steps - step) / 2 - 100);
	bench_close(&b);
}

/* Frames of another priority on the wire say nothing about the priority that stands still. */
static void
test_storm_other(void **state)
{
	(void)state;
	/* One now and then, within the watchdog's time. */
	storm(&(struct storm){.watchdog_ns = 2 * MS, .steps = 20000, .other = 1500}, 3 * MS);
	/* A wire that is never free. */
	storm(&(struct storm){.watchdog_ns = 2 * MS, .steps = 20000, .other = 1}, 3 * MS);
}

/* A peer that pauses again and again, and takes a frame within each time of the watchdog, is stuck.
 */
static void
test_storm_drip(void **state)
{
	(void)state;
	storm(&(struct storm){.watchdog_ns = 20 * MS, .steps = 200000, .drip = 18000}, 90 * MS);
}

/*
 * A peer that begins a storm anew whenever its pauses count again: each is ended, and they stop the
 * sender for a small part of the time in all.
 */
static void
test_storm_again(void **state)
{
	enum { STEPS = 200000 };
	struct urn_lossless_config cfg = bench_config();
	struct urn_switch_account a;
	struct bench b;

	(void)state;
	cfg.watchdog_ns = cfg.restore_ns = MS / 5;
	bench_open(&b, 3, &cfg);
	for (unsigned int t = 0; t < STEPS; t++) {
		assert_true(urn_switch_account(b.sw, 0, BENCH_PRIORITY, &a));
		if (!a.restoring && !a.paused)
			bench_pfc(&b, 0, 0xffff);
		bench_send(&b, 2, t & 1 ? 0 : 1);
		bench_step(&b);
	}
	print_message("%u of %u frames with %u storms\n", b.st[1].from[2], STEPS / 2,
		      (unsigned int)bench_sum(&b, URN_SWQ_C_WATCHDOG));
	assert_in_range(bench_sum(&b, URN_SWQ_C_WATCHDOG), 10, 30);
	assert_in_range(b.st[1].from[2], STEPS / 2 * 95 / 100, STEPS / 2);
	bench_close(&b);
}

/*
 * A receiver that takes `take` frames in each `period` steps is slow, and the priority stays
 * lossless for as long as it likes. Station 2 sends a frame each `every` steps.
 */
static void
slow_receiver(unsigned int period, unsigned int take, unsigned int every)
{
	enum { STEPS = 100000 };
	struct urn_lossless_config cfg = bench_config();
	struct bench b;

	cfg.watchdog_ns = 2 * MS;
	bench_open(&b, 3, &cfg);
	for (unsigned int t = 0; t < STEPS; t++) {
		if (t % period == 0)
			bench_pfc(&b, 0, 0);
		if (t % period == take)
			bench_pfc(&b, 0, 0xffff);
		if (t % every == take + 1)
			bench_send(&b, 2, 0);
		bench_step(&b);
	}
	assert_int_equal(bench_sum(&b, URN_SWQ_C_WATCHDOG), 0);
	assert_int_equal(bench_drops(&b), 0);
	assert_true(b.st[0].came + take + 1 > STEPS / RTE_MAX(period / take, every));
	bench_close(&b);
}

static void
test_slow_receiver(void **state)
{
	(void)state;
	/* A 256th of what its wire carries, as the last of a cascade of switches. */
	slow_receiver(1024, 4, 8);
	/* All that waits, which is little, just before the watchdog's time. */
	slow_receiver(1900, 4, 1900);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, frames_setup, frames_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_storm_other),
		TEST(test_storm_drip),
		TEST(test_storm_again),
		TEST(test_slow_receiver),
	};

	return cmocka_run_group_tests_name("switch_lossless_storm", tests, NULL, NULL);
}
