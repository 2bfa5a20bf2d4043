/* SPDX-License-Identifier: BSD-3-Clause */
/* The latency histogram: fixed memory, quantiles less than 1 % off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "common/hist.h"

static struct urn_hist a, b;

static double
off(uint64_t got, uint64_t want)
{
	return want ? ((double)got - (double)want) / (double)want : (double)got;
}

static void
assert_close(uint64_t got, uint64_t want)
{
	double d = off(got, want);

	if (d > 0.01 || d < -0.01)
		fail_msg("%llu is more than 1 %% off %llu", (unsigned long long)got,
			 (unsigned long long)want);
}

/* An empty histogram answers 0 and does not divide by its count. */
static void
empty_answers_zero(void **state)
{
	(void)state;
	urn_hist_reset(&a);
	assert_int_equal(urn_hist_count(&a), 0);
	assert_int_equal(urn_hist_min(&a), 0);
	assert_int_equal(urn_hist_max(&a), 0);
	assert_int_equal(urn_hist_quantile(&a, 0.5), 0);
}

/* Every value, alone, comes back less than 1 % off (here clamped: exact). */
static void
single_value_is_exact(void **state)
{
	static const uint64_t values[] = {0, 1, 127, 128, 129, 999, 123456789, 1ull << 63,
					  UINT64_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		urn_hist_reset(&a);
		urn_hist_add(&a, values[i]);
		assert_true(urn_hist_min(&a) == values[i]);
		assert_true(urn_hist_max(&a) == values[i]);
		assert_true(urn_hist_quantile(&a, 0.5) == values[i]);
	}
}

/* Buckets are in order, without gaps, and none is wider than 1 % of its value. */
static void
buckets_are_narrow(void **state)
{
	unsigned int last = 0, index;

	(void)state;
	for (uint64_t v = 1; v < 5000000; v++) {
		index = urn_hist_index(v);
		assert_true(index == last || index == last + 1);
		last = index;
	}
	for (unsigned int bit = 8; bit < 63; bit++) {
		uint64_t v = (1ull << bit) + 12345u % (1ull << bit);

		urn_hist_reset(&a);
		urn_hist_add(&a, 0);
		urn_hist_add(&a, v);
		urn_hist_add(&a, UINT64_MAX);
		assert_close(urn_hist_quantile(&a, 0.5), v);
	}
	assert_true(urn_hist_index(UINT64_MAX) < URN_HIST_BUCKETS);
}

/* Quantiles of 1..100000 are right. */
static void
quantiles_of_a_ramp(void **state)
{
	(void)state;
	urn_hist_reset(&a);
	for (uint64_t v = 1; v <= 100000; v++)
		urn_hist_add(&a, v);
	assert_close(urn_hist_quantile(&a, 0.5), 50000);
	assert_close(urn_hist_quantile(&a, 0.99), 99000);
	assert_close(urn_hist_quantile(&a, 0.999), 99900);
	assert_int_equal(urn_hist_quantile(&a, 0), 1);
	assert_int_equal(urn_hist_quantile(&a, 1), 100000);
	assert_int_equal(urn_hist_quantile(&a, -3), 1);
	assert_int_equal(urn_hist_quantile(&a, 7), 100000);
}

/* The p99 of 100 values is the 99th, not the 100th. */
static void
rank_is_not_one_too_far(void **state)
{
	(void)state;
	urn_hist_reset(&a);
	for (int i = 0; i < 99; i++)
		urn_hist_add(&a, 10);
	urn_hist_add(&a, 1000);
	assert_int_equal(urn_hist_quantile(&a, 0.99), 10);
	assert_int_equal(urn_hist_quantile(&a, 0.991), 1000);
}

/* The merge of two threads' histograms equals one histogram of both. */
static void
merge_adds_up(void **state)
{
	(void)state;
	urn_hist_reset(&a);
	urn_hist_reset(&b);
	for (uint64_t v = 1; v <= 1000; v++)
		urn_hist_add(v % 2 ? &a : &b, v);
	urn_hist_merge(&a, &b);
	assert_int_equal(urn_hist_count(&a), 1000);
	assert_int_equal(urn_hist_min(&a), 1);
	assert_int_equal(urn_hist_max(&a), 1000);
	assert_close(urn_hist_quantile(&a, 0.5), 500);

	urn_hist_reset(&b);
	urn_hist_merge(&b, &a);
	assert_int_equal(urn_hist_min(&b), 1);
	assert_int_equal(urn_hist_count(&b), 1000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_answers_zero),
		cmocka_unit_test(single_value_is_exact),
		cmocka_unit_test(buckets_are_narrow),
		cmocka_unit_test(quantiles_of_a_ramp),
		cmocka_unit_test(rank_is_not_one_too_far),
		cmocka_unit_test(merge_adds_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
