/* SPDX-License-Identifier: BSD-3-Clause */
/* Progress over time: counts between samples, rates, pauses, and room for long runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "common/samples.h"

#define MS 1000000ull

static struct urn_samples s;

static int
make(void **state)
{
	(void)state;
	return urn_samples_make(&s, MS);
}

static int
end(void **state)
{
	(void)state;
	urn_samples_free(&s);
	return 0;
}

/* Counts lie on straight lines, and are those of the ends beyond them. */
static void
between(void **state)
{
	(void)state;
	assert_true(urn_samples_units(&s, 5) == 0);
	assert_int_equal(urn_samples_end(&s), 0);
	urn_samples_add(&s, 10, 100);
	urn_samples_add(&s, 20, 200);
	urn_samples_add(&s, 40, 600);
	assert_true(urn_samples_units(&s, 0) == 100);
	assert_true(urn_samples_units(&s, 10) == 100);
	assert_true(urn_samples_units(&s, 15) == 150);
	assert_true(urn_samples_units(&s, 20) == 200);
	assert_true(urn_samples_units(&s, 35) == 500);
	assert_true(urn_samples_units(&s, 50) == 600);
	assert_int_equal(urn_samples_end(&s), 40);
}

/* A clock or a count that goes back is left out. */
static void
back(void **state)
{
	(void)state;
	urn_samples_add(&s, 10, 100);
	urn_samples_add(&s, 10, 200);
	urn_samples_add(&s, 9, 200);
	urn_samples_add(&s, 20, 99);
	assert_int_equal(s.n, 1);
}

static void
rates(void **state)
{
	(void)state;
	urn_samples_add(&s, 0, 0);
	urn_samples_add(&s, 1000 * MS, 1000);
	urn_samples_add(&s, 2000 * MS, 1500);
	assert_true(urn_samples_rate(&s, 0, 1000 * MS) == 1000);
	assert_true(urn_samples_rate(&s, 1000 * MS, 2000 * MS) == 500);
	assert_true(urn_samples_rate(&s, 500 * MS, 1500 * MS) == 750);
	assert_true(urn_samples_rate(&s, 5, 5) == 0);
	assert_true(urn_samples_rate(&s, 6, 5) == 0);
}

/* The longest pause counts that ends behind a time; one without an end, too. */
static void
pauses(void **state)
{
	(void)state;
	assert_int_equal(urn_samples_gap(&s, 0), 0);
	urn_samples_add(&s, 1 * MS, 1);
	urn_samples_add(&s, 2 * MS, 1);
	urn_samples_add(&s, 9 * MS, 2);
	urn_samples_add(&s, 10 * MS, 3);
	urn_samples_add(&s, 11 * MS, 3);
	urn_samples_add(&s, 14 * MS, 4);
	assert_int_equal(urn_samples_gap(&s, 0), 8 * MS);
	assert_int_equal(urn_samples_gap(&s, 8 * MS), 8 * MS);
	assert_int_equal(urn_samples_gap(&s, 9 * MS), 4 * MS);
	urn_samples_add(&s, 34 * MS, 4);
	assert_int_equal(urn_samples_gap(&s, 9 * MS), 20 * MS);
}

/* A run of any length finds room: samples grow fewer, and rates stay right. */
static void
room(void **state)
{
	uint64_t n = 10ull * URN_SAMPLES_MAX;

	(void)state;
	for (uint64_t i = 0; i <= n; i++)
		urn_samples_add(&s, i * MS, 3 * i);
	assert_true(s.n <= URN_SAMPLES_MAX);
	assert_true(s.every_ns > MS);
	assert_int_equal(urn_samples_end(&s), n * MS);
	assert_true(urn_samples_rate(&s, 0, n * MS) > 2999.9);
	assert_true(urn_samples_rate(&s, 0, n * MS) < 3000.1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(between, make, end),
		cmocka_unit_test_setup_teardown(back, make, end),
		cmocka_unit_test_setup_teardown(rates, make, end),
		cmocka_unit_test_setup_teardown(pauses, make, end),
		cmocka_unit_test_setup_teardown(room, make, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
