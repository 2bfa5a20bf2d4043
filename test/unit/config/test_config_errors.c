/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of mistakes: in the order of lines, bounded, without leaks. */
#include "config_test.h"

static void
sorted_by_line(void **state)
{
	struct urn_config_errors e = {0};

	(void)state;
	urn_config_error(&e, "f", 7, "a %d", 1);
	urn_config_error(&e, "f", 3, "b");
	urn_config_error(&e, "f", 7, "c");
	urn_config_error(&e, "f", 0, "d");
	assert_int_equal(urn_config_errors_count(&e), 4);
	assert_string_equal(e.error[0].text, "f: d");
	assert_string_equal(e.error[1].text, "f:3: b");
	assert_string_equal(e.error[2].text, "f:7: a 1");
	assert_string_equal(e.error[3].text, "f:7: c");
	assert_int_equal(e.error[2].line, 7);
	urn_config_errors_free(&e);
	assert_int_equal(e.n, 0);
	assert_null(e.error);
}

static void
bounded(void **state)
{
	struct urn_config_errors e = {0};

	(void)state;
	for (unsigned int i = 1; i <= URN_CONFIG_ERRORS_MAX + 5; i++)
		urn_config_error(&e, "f", i, "x");
	assert_int_equal(e.n, URN_CONFIG_ERRORS_MAX);
	assert_int_equal(e.more, 5);
	assert_int_equal(urn_config_errors_count(&e), URN_CONFIG_ERRORS_MAX + 5);
	assert_int_equal(e.error[e.n - 1].line, URN_CONFIG_ERRORS_MAX);
	urn_config_errors_free(&e);
	assert_int_equal(urn_config_errors_count(&e), 0);
	/* Without a list the call does nothing. */
	urn_config_error(NULL, "f", 1, "x");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sorted_by_line),
		cmocka_unit_test(bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
