/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers from a seed. */
#include "base/rnd.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* The values are those of splitmix64's first publication: simulations of many seeds depend on them.
 */
static void
sequence_is_splitmix64(void **state)
{
	static const uint64_t want[] = {0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f};
	uint64_t seed = 0;

	(void)state;
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(urn_rnd_next(&seed), want[i]);
}

/* Values by number are those in turn. */
static void
any_value_by_number(void **state)
{
	uint64_t seed = 77;

	(void)state;
	for (unsigned int i = 0; i < 100; i++)
		assert_int_equal(urn_rnd_next(&seed), urn_rnd_at(77, i));
}

/* A word is mapped in proportion: the least to 0, the greatest to n - 1. */
static void
below_keeps_its_bound(void **state)
{
	(void)state;
	for (uint64_t n = 1; n < 1000; n++) {
		assert_int_equal(urn_rnd_below(0, n), 0);
		assert_int_equal(urn_rnd_below(UINT64_MAX, n), n - 1);
	}
	assert_int_equal(urn_rnd_below(UINT64_C(1) << 63, 10), 5);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sequence_is_splitmix64),
		cmocka_unit_test(any_value_by_number),
		cmocka_unit_test(below_keeps_its_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
