/* SPDX-License-Identifier: BSD-3-Clause */
/* Impairments: refused configurations, and changes while frames are inside. */
#include "impair_bench.h"

#include <errno.h>
#include <math.h>

/* A shorter delay does not let later frames overtake. */
static void
test_set(void **state)
{
	struct urn_impair_config slow = {.delay_ns = 100, .drop = 0.5}, fast = {.drop = 0.5};
	static uint32_t a[N], b[N];
	struct urn_impair *imp = make(&slow);
	unsigned int na, nb;

	(void)state;
	na = pass(imp, 0, 50, 0, 1, a);
	assert_int_equal(na, 0);
	assert_int_equal(urn_impair_set(imp, &fast), 0);
	na = pass(imp, 50, 50, 50, 1, a);
	na += drain(imp, a + na);
	for (unsigned int i = 1; i < na; i++)
		assert_true(a[i] > a[i - 1]);
	/* The random sequence went on: the same frames pass as without the change. */
	urn_impair_destroy(imp);
	imp = make(&fast);
	nb = pass(imp, 0, 100, 0, 1, b);
	assert_int_equal(na, nb);
	assert_memory_equal(a, b, na * sizeof(*a));
	/* Another seed, and the first one again: the sequence starts anew. */
	fast.seed = 1;
	assert_int_equal(urn_impair_set(imp, &fast), 0);
	fast.seed = 0;
	assert_int_equal(urn_impair_set(imp, &fast), 0);
	assert_int_equal(pass(imp, 0, 100, 200, 1, a), nb);
	assert_memory_equal(a, b, nb * sizeof(*a));
	/* A senseless configuration changes nothing. */
	slow.drop = 2;
	assert_int_equal(urn_impair_set(imp, &slow), -EINVAL);
	assert_true(urn_impair_config(imp)->drop == 0.5 && !urn_impair_config(imp)->delay_ns);
	urn_impair_destroy(imp);
}

static void
test_check(void **state)
{
	static const struct urn_impair_config bad[] = {
		{.drop = -0.1},
		{.dup = 1.5},
		{.corrupt = NAN},
		{.reorder = INFINITY},
		{.reorder_max = URN_IMPAIR_MAX_PASS + 1, .reorder_min = 1},
		{.reorder_min = 3, .reorder_max = 2},
		{.reorder_max = 2},
		{.delay_ns = URN_IMPAIR_MAX_NS + 1},
		{.jitter_ns = UINT64_MAX},
		{.reorder_ns = UINT64_MAX},
		{.rate_bps = 1},
		{.rate_bps = UINT64_MAX},
		{.flap_up_ns = 1},
		{.flap_down_ns = 1},
		{.flap_up_ns = 1, .flap_down_ns = UINT64_MAX},
		{.queue = URN_IMPAIR_MAX_QUEUE + 1},
	};
	char why[100];

	(void)state;
	for (size_t i = 0; i < RTE_DIM(bad); i++) {
		why[0] = '\0';
		assert_int_equal(urn_impair_check(&bad[i], why, sizeof(why)), -EINVAL);
		assert_true(strlen(why) > 10);
		assert_int_equal(urn_impair_check(&bad[i], NULL, 0), -EINVAL);
		assert_null(urn_impair_create(&bad[i], 0, test_eal_pool()));
	}
	assert_int_equal(urn_impair_check(&everything, why, sizeof(why)), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_set),
		T(test_check),
	};

	return cmocka_run_group_tests_name("impair_config", tests, NULL, NULL);
}
