/* SPDX-License-Identifier: BSD-3-Clause */
/* The JSON writer: commas, nesting, escapes, numbers that JSON can't express. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/json.h"

static char *text;
static size_t text_len;
static struct urn_json j;

static int
setup(void **state)
{
	FILE *f = open_memstream(&text, &text_len);

	(void)state;
	urn_json_init(&j, f);
	return f == NULL;
}

static int
teardown(void **state)
{
	(void)state;
	free(text);
	return 0;
}

static void
assert_text(const char *want)
{
	fclose(j.out);
	assert_string_equal(text, want);
}

static void
object_with_members(void **state)
{
	(void)state;
	urn_json_object(&j, NULL);
	urn_json_str(&j, "op", "write_bw");
	urn_json_u64(&j, "size", UINT64_MAX);
	urn_json_object(&j, "drops");
	urn_json_end(&j);
	urn_json_array(&j, "list");
	urn_json_bool(&j, NULL, true);
	urn_json_null(&j, NULL);
	urn_json_end(&j);
	urn_json_end(&j);
	assert_text("{\n  \"op\": \"write_bw\",\n  \"size\": 18446744073709551615,\n"
		    "  \"drops\": {},\n  \"list\": [\n    true,\n    null\n  ]\n}\n");
}

/* Quotes, backslashes and control characters cannot break out of a string. */
static void
strings_are_escaped(void **state)
{
	(void)state;
	urn_json_str(&j, NULL, "a\"b\\c\n\t\x01\x7f \xc3\xa9");
	assert_text("\"a\\\"b\\\\c\\n\\t\\u0001\\u007f \xc3\xa9\"");
}

static void
numbers_that_json_lacks_are_null(void **state)
{
	(void)state;
	urn_json_array(&j, NULL);
	urn_json_num(&j, NULL, 1.0 / 3, 3);
	urn_json_num(&j, NULL, (double)NAN, 3);
	urn_json_num(&j, NULL, (double)INFINITY, 3);
	urn_json_num(&j, NULL, 2, 0);
	urn_json_end(&j);
	assert_text("[\n  0.333,\n  null,\n  null,\n  2\n]\n");
}

/* A writer nested too deep, and one close too many, are refused. */
static void
nesting_is_bounded(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < URN_JSON_DEPTH; i++)
		assert_int_equal(urn_json_array(&j, NULL), 0);
	assert_int_equal(urn_json_array(&j, NULL), -1);
	assert_int_equal(urn_json_object(&j, NULL), -1);
	for (unsigned int i = 0; i < URN_JSON_DEPTH + 3; i++)
		urn_json_end(&j);
	fclose(j.out);
	assert_int_equal(j.depth, 0);
	assert_ptr_equal(strstr(text, "{"), NULL);
}

static const char *
counter_name(unsigned int i)
{
	static const char *const names[] = {"sent", "drop_mac", "drop", "drop_ip"};

	return names[i];
}

/* Counters that are zero are left out, and so is the prefix. */
static void
counters_by_their_names(void **state)
{
	static const uint64_t v[] = {7, 8, 9, 0};

	(void)state;
	urn_json_object(&j, NULL);
	urn_json_counters(&j, "drops", "drop_", counter_name, v, 4);
	urn_json_counters(&j, "all", "", counter_name, v, 4);
	urn_json_end(&j);
	assert_text("{\n  \"drops\": {\n    \"mac\": 8\n  },\n"
		    "  \"all\": {\n    \"sent\": 7,\n    \"drop_mac\": 8,\n    \"drop\": 9\n  }\n}\n");
}

static void
a_latency_in_us(void **state)
{
	struct urn_hist h;

	(void)state;
	urn_hist_reset(&h);
	for (uint64_t ns = 1; ns <= 100; ns++)
		urn_hist_add(&h, ns);
	urn_json_latency(&j, NULL, &h);
	assert_text("{\n  \"min\": 0.001,\n  \"p50\": 0.050,\n  \"p99\": 0.099,\n"
		    "  \"p999\": 0.100,\n  \"max\": 0.100\n}\n");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(object_with_members, setup, teardown),
		cmocka_unit_test_setup_teardown(strings_are_escaped, setup, teardown),
		cmocka_unit_test_setup_teardown(numbers_that_json_lacks_are_null, setup, teardown),
		cmocka_unit_test_setup_teardown(nesting_is_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(counters_by_their_names, setup, teardown),
		cmocka_unit_test_setup_teardown(a_latency_in_us, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
