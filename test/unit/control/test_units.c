/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes and times as people write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "units.h"

static void
sizes_are_parsed(void **state)
{
	static const struct {
		const char *text;
		uint64_t value;
	} good[] = {
		{"0", 0},
		{"8", 8},
		{"64K", 65536},
		{"64k", 65536},
		{"4KiB", 4096},
		{"1MB", 1048576},
		{"1G", 1u << 30},
		{"12B", 12},
		{"17179869183G", 17179869183ull << 30},
		{"18446744073709551615", UINT64_MAX},
	};
	uint64_t v;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(urn_text_parse_size(good[i].text, &v), 0);
		assert_true(v == good[i].value);
	}
}

/* A text that is no size is refused and leaves the result alone. */
static void
bad_sizes_are_refused(void **state)
{
	static const char *const bad[] = {"",
					  "K",
					  "-1",
					  "+1",
					  " 1",
					  "1 K",
					  "1.5K",
					  "0x10",
					  "1KK",
					  "1T",
					  "1Ki",
					  "18446744073709551616",
					  "17179869184G",
					  "64Kx"};
	uint64_t v = 77;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(urn_text_parse_size(bad[i], &v), -1);
	assert_int_equal(urn_text_parse_uint("12K", &v), -1);
	assert_int_equal(urn_text_parse_uint("", &v), -1);
	assert_int_equal(v, 77);
	assert_int_equal(urn_text_parse_uint("12", &v), 0);
	assert_int_equal(v, 12);
}

static void
times_are_parsed(void **state)
{
	uint64_t v = 77;

	(void)state;
	assert_int_equal(urn_text_parse_time("10", &v), 0);
	assert_true(v == 10000000000);
	assert_int_equal(urn_text_parse_time("0.5s", &v), 0);
	assert_true(v == 500000000);
	assert_int_equal(urn_text_parse_time("200ms", &v), 0);
	assert_true(v == 200000000);
	assert_int_equal(urn_text_parse_time("1.5us", &v), 0);
	assert_true(v == 1500);
	v = 77;
	assert_int_equal(urn_text_parse_time("1.", &v), -1);
	assert_int_equal(urn_text_parse_time(".5", &v), -1);
	assert_int_equal(urn_text_parse_time("5 s", &v), -1);
	assert_int_equal(urn_text_parse_time("18446744073709551615", &v), -1);
	assert_true(v == 77);
}

static void
rates_are_parsed(void **state)
{
	static const char *const bad[] = {"",	  "x",	 "1X",	   "1GG",
					  "1.",	  ".5G", "1 G",	   "1e6",
					  "0x10", "-5M", "1.2.3M", "18446744073709551615G"};
	uint64_t v = 77;

	(void)state;
	assert_int_equal(urn_text_parse_rate("5000000", &v), 0);
	assert_true(v == 5000000);
	assert_int_equal(urn_text_parse_rate("2.5G", &v), 0);
	assert_true(v == 2500000000);
	assert_int_equal(urn_text_parse_rate("40M", &v), 0);
	assert_true(v == 40000000);
	assert_int_equal(urn_text_parse_rate("1.5k", &v), 0);
	assert_true(v == 1500);
	v = 77;
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(urn_text_parse_rate(bad[i], &v), -1);
	assert_true(v == 77);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_parsed),
		cmocka_unit_test(bad_sizes_are_refused),
		cmocka_unit_test(times_are_parsed),
		cmocka_unit_test(rates_are_parsed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
