/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DB-9: congestion control, simulated: 2 to 16 senders into one port share it fairly, keep it busy,
 * and lose nearly nothing; with marks of the switch, and by the delay alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "incast.h"

#include "common/test_eal.h"

#include <stdlib.h>
#include <string.h>

#define MS 1000000ull
#define LIMIT 50000ull /* ns */

static void
defaults(struct incast_config *c, uint64_t seed)
{
	(void)test_eal_pool();
	incast_defaults(c);
	c->seed = seed;
	c->warm_ns = 10 * MS;
	c->run_ns = 60 * MS;
}

static void
run(const struct incast_config *c, struct incast_result *r)
{
	if (!incast_run(c, r))
		fail_msg("%s", r->why);
	assert_true(r->frames > 0);
}

/* Goodput in percent, and fairness in thousandths: cmocka prints integers. */
static int
goodput(const struct incast_result *r)
{
	return (int)(r->goodput * 100);
}

static int
fairness(const struct incast_result *r)
{
	return (int)(r->jain * 1000);
}

/* The table's figures: fairness 0.95, goodput 85 %, drops ten times fewer than without DCQCN. */
static void
sixteen_senders(void **state)
{
	struct incast_result with, without;
	struct incast_config c;

	(void)state;
	for (uint64_t seed = 1; seed <= 3; seed++) {
		defaults(&c, seed);
		run(&c, &with);
		assert_in_range(fairness(&with), 950, 1000);
		assert_in_range(goodput(&with), 85, 100);
		assert_true(with.cnps > 0 && with.marks > 0);
		c.dcqcn = false;
		run(&c, &without);
		assert_int_equal(without.cnps + without.marks,
				 0); /* nothing that is sent can be marked */
		assert_true(without.drops > 1000);
		assert_true(without.drops >= 10 * with.drops);
	}
}

/* Any number of senders; and nothing is sent again but for losses: a pace is not taken for silence.
 */
static void
two_to_sixteen(void **state)
{
	struct incast_result r;
	struct incast_config c;

	(void)state;
	for (uint32_t n = 2; n <= 16; n += n < 4 ? 1 : 4) {
		for (int mtu = 1024; mtu <= 4096; mtu *= 4) {
			defaults(&c, n);
			c.senders = n;
			c.mtu = (uint32_t)mtu;
			run(&c, &r);
			assert_in_range(fairness(&r), 950, 1000);
			assert_in_range(goodput(&r), 85, 100);
			assert_true(r.repeats <= 2 * r.drops + 20 * n);
			assert_true(r.queue_max <= 2 * URN_MARK_KMAX);
		}
	}
}

/* A switch that marks nothing: the limit of the delay bounds its queue, and loses no goodput. */
static void
delay_bounds_the_queue(void **state)
{
	struct incast_result free_run, r;
	struct incast_config c;
	uint64_t bound;

	(void)state;
	for (uint32_t n = 2; n <= 16; n *= 2) {
		defaults(&c, n);
		c.senders = n;
		c.dcqcn = false;
		run(&c, &free_run);
		c.delay_limit = LIMIT;
		run(&c, &r);
		/* Bytes that the port sends in the limit, and a frame of each sender. */
		bound = c.rate_bps / 8000 * LIMIT / 1000000 + n * 1200;
		assert_true(r.queue_p99 <= bound);
		if (n > 2)
			assert_true(free_run.queue_mean > bound);
		assert_int_equal(r.drops, 0);
		assert_in_range(goodput(&r), 90, 100);
		assert_in_range(fairness(&r), 950, 1000);
	}
	/* One sender, on a way without a queue, loses nothing by the limit. */
	defaults(&c, 1);
	c.senders = 1;
	c.dcqcn = false;
	c.delay_limit = LIMIT;
	run(&c, &r);
	assert_in_range(goodput(&r), 92, 100);
}

/* One seed is one run. */
static void
same_by_seed(void **state)
{
	struct incast_result a, b, other;
	struct incast_config c;

	(void)state;
	defaults(&c, 7);
	c.run_ns = 10 * MS;
	run(&c, &a);
	run(&c, &b);
	assert_memory_equal(&a, &b, sizeof(a));
	c.seed = 8;
	run(&c, &other);
	assert_memory_not_equal(&a, &other, sizeof(a));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sixteen_senders),
		cmocka_unit_test(two_to_sixteen),
		cmocka_unit_test(delay_bounds_the_queue),
		cmocka_unit_test(same_by_seed),
	};

	return cmocka_run_group_tests_name("incast", tests, NULL, NULL);
}
