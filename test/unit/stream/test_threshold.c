/* SPDX-License-Identifier: BSD-3-Clause */
/* Thresholds that adapt (SF-9). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "stream/threshold.h"

static void
test_raise_and_lower(void **state)
{
	struct urn_st_threshold t = {100, 60, 300, false, 0};

	(void)state;
	assert_true(urn_st_threshold_raise(&t));
	assert_int_equal(t.value, 200);
	assert_true(urn_st_threshold_raise(&t));
	assert_int_equal(t.value, 300);
	assert_false(urn_st_threshold_raise(&t));
	assert_true(urn_st_threshold_lower(&t));
	assert_int_equal(t.value, 150);
	assert_true(urn_st_threshold_lower(&t));
	assert_true(urn_st_threshold_lower(&t));
	assert_int_equal(t.value, 60);
	assert_false(urn_st_threshold_lower(&t));
}

/* A frozen threshold and an infinite one stay. */
static void
test_stay(void **state)
{
	struct urn_st_threshold t = {100, 60, 300, true, 0};

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_false(urn_st_threshold_raise(&t));
		assert_false(urn_st_threshold_lower(&t));
		for (int k = 0; k < 2 * URN_ST_DOWN_AFTER; k++)
			assert_false(urn_st_threshold_kept(&t, 80));
		t = (struct urn_st_threshold){URN_ST_INFINITE, 60, 300, false, 0};
	}
	assert_true(t.value == URN_ST_INFINITE);
}

/* A way down: transfers that the threshold keeps from zero copy lower it; smaller and larger ones
 * do not count. */
static void
test_way_down(void **state)
{
	struct urn_st_threshold t = {200, 60, 300, false, 0};

	(void)state;
	for (int i = 1; i < URN_ST_DOWN_AFTER; i++) {
		assert_false(urn_st_threshold_kept(&t, 60));
		assert_false(urn_st_threshold_kept(&t, 59));
		assert_false(urn_st_threshold_kept(&t, 200));
	}
	assert_true(urn_st_threshold_kept(&t, 199));
	assert_int_equal(t.value, 100);
	/* The count begins anew when the value moved. */
	for (int i = 1; i < URN_ST_DOWN_AFTER; i++)
		assert_false(urn_st_threshold_kept(&t, 80));
	assert_true(urn_st_threshold_raise(&t));
	assert_false(urn_st_threshold_kept(&t, 80));
}

static void
test_ok(void **state)
{
	(void)state;
	assert_true(urn_st_threshold_ok(&(struct urn_st_threshold){1, 1, 1, false, 0}));
	assert_true(
		urn_st_threshold_ok(&(struct urn_st_threshold){URN_ST_INFINITE, 1, 1, false, 0}));
	assert_false(urn_st_threshold_ok(&(struct urn_st_threshold){0, 0, 1, false, 0}));
	assert_false(urn_st_threshold_ok(&(struct urn_st_threshold){5, 6, 9, false, 0}));
	assert_false(urn_st_threshold_ok(&(struct urn_st_threshold){10, 6, 9, false, 0}));
	assert_false(urn_st_threshold_ok(&(struct urn_st_threshold){5, 6, 5, false, 0}));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_raise_and_lower),
		cmocka_unit_test(test_stay),
		cmocka_unit_test(test_way_down),
		cmocka_unit_test(test_ok),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
