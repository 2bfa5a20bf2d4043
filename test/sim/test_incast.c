/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DB-9: congestion control, simulated: 2 to 16 senders into one port share it fairly, keep it busy,
 * and lose nearly nothing; with marks of the switch, and by the delay alone; queue pairs, and
 * messages over flows.
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
defaults(struct incast_config *c, uint64_t seed, bool over_msg)
{
	(void)test_eal_pool();
	incast_defaults(c);
	c->seed = seed;
	c->over_msg = over_msg;
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

/* The table's figures: fairness 0.95, goodput 85 %, drops ten times fewer than without DCQCN.
 * Senders of messages learn of marks by acknowledgements, and get no notifications. */
static void
sixteen(bool over_msg)
{
	struct incast_result with, without;
	struct incast_config c;

	for (uint64_t seed = 1; seed <= 3; seed++) {
		defaults(&c, seed, over_msg);
		run(&c, &with);
		assert_in_range(fairness(&with), 950, 1000);
		assert_in_range(goodput(&with), 85, 100);
		assert_true(with.marks > 0 && (with.cnps > 0) == !over_msg);
		c.dcqcn = false;
		run(&c, &without);
		assert_int_equal(without.cnps + without.marks,
				 0); /* nothing that is sent can be marked */
		assert_true(without.drops > 1000);
		assert_true(without.drops >= 10 * with.drops);
	}
}

static void
sixteen_senders(void **state)
{
	(void)state;
	sixteen(false);
}

static void
sixteen_senders_of_messages(void **state)
{
	(void)state;
	sixteen(true);
}

/* Any number of senders; and nothing is sent again but for losses: a pace is not taken for silence.
 */
static void
few_to_many(bool over_msg)
{
	struct incast_result r;
	struct incast_config c;

	for (uint32_t n = 2; n <= 16; n += n < 4 ? 1 : 4) {
		for (int mtu = 1024; mtu <= 4096; mtu *= 4) {
			defaults(&c, n, over_msg);
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

static void
two_to_sixteen(void **state)
{
	(void)state;
	few_to_many(false);
}

static void
two_to_sixteen_of_messages(void **state)
{
	(void)state;
	few_to_many(true);
}

/* A switch that marks nothing: the limit of the delay bounds its queue, and loses no goodput.
 * least: percent that headers leave, and less for what begins and ends; fair: thousandths */
static void
delay_bounds(bool over_msg, int least, int fair)
{
	struct incast_result free_run, r;
	struct incast_config c;
	uint64_t bound;

	for (uint32_t n = 2; n <= 16; n *= 2) {
		defaults(&c, n, over_msg);
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
		assert_in_range(goodput(&r), least, 100);
		assert_in_range(fairness(&r), fair, 1000);
	}
}

static void
delay_bounds_the_queue(void **state)
{
	(void)state;
	delay_bounds(false, 90, 950);
}

/* Headers take more of a packet of messages, and two senders keep the shares that they have when
 * the limit is reached. */
static void
delay_bounds_the_queue_of_messages(void **state)
{
	(void)state;
	delay_bounds(true, 86, 930);
}

/* One sender, on a way without a queue, loses nothing by the limit. */
static void
one_sender_loses_nothing(void **state)
{
	struct incast_result r;
	struct incast_config c;

	(void)state;
	for (int over_msg = 0; over_msg < 2; over_msg++) {
		defaults(&c, 1, over_msg);
		c.senders = 1;
		c.dcqcn = false;
		c.delay_limit = LIMIT;
		run(&c, &r);
		assert_in_range(goodput(&r), over_msg ? 87 : 92, 100);
	}
}

/* A node that was just made lets each new flow ask first, so all senders begin at once, and many
 * lose all packets that they sent. These come back together, by one probe, and none falls behind.
 */
static void
young_nodes(void **state)
{
	static const uint64_t seeds[] = {2, 4, 8, 11};
	struct incast_result r;
	struct incast_config c;

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		defaults(&c, seeds[i], true);
		c.young = true;
		run(&c, &r);
		assert_in_range(fairness(&r), 950, 1000);
	}
}

/* More long messages come at a time than a receiver puts together: the others are sent again. */
static void
many_senders_of_messages(void **state)
{
	struct incast_result r;
	struct incast_config c;

	(void)state;
	defaults(&c, 1, true);
	c.senders = 64;
	c.run_ns = 20 * MS;
	run(&c, &r);
	assert_in_range(fairness(&r), 950, 1000);
	assert_in_range(goodput(&r), 70, 100);
}

/* One seed is one run. */
static void
same_by_seed(void **state)
{
	struct incast_result a, b, other;
	struct incast_config c;

	(void)state;
	defaults(&c, 7, false);
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
		cmocka_unit_test(sixteen_senders_of_messages),
		cmocka_unit_test(two_to_sixteen_of_messages),
		cmocka_unit_test(young_nodes),
		cmocka_unit_test(many_senders_of_messages),
		cmocka_unit_test(delay_bounds_the_queue_of_messages),
		cmocka_unit_test(one_sender_loses_nothing),
		cmocka_unit_test(same_by_seed),
	};

	return cmocka_run_group_tests_name("incast", tests, NULL, NULL);
}
