/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of options: those that are accepted, and the advice that each refusal gives. */
#include "common/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

static struct urn_err err;

static void
says(int rc, const char *what)
{
	assert_int_equal(rc, -1);
	assert_string_equal(err.text, what);
}

static void
test_numbers(void **state)
{
	uint64_t v;
	uint32_t w;
	uint8_t b;

	(void)state;
	assert_int_equal(urn_opt_number("seed", "18446744073709551615", 0, UINT64_MAX, &v, &err), 0);
	assert_true(v == UINT64_MAX);
	says(urn_opt_number("seed", "1K", 0, 9, &v, &err), "--seed 1K: give a number from 0 to 9");
	assert_int_equal(urn_opt_u32("qps", "1", 1, 65536, &w, &err), 0);
	assert_int_equal(w, 1);
	says(urn_opt_u32("qps", "0", 1, 65536, &w, &err), "--qps 0: give a number from 1 to 65536");
	/* A number is not cut to its lower 32 bits, nor to 8. */
	says(urn_opt_u32("qps", "4294967297", 1, 65536, &w, &err),
	     "--qps 4294967297: give a number from 1 to 65536");
	assert_int_equal(urn_opt_u8("timeout", "31", 0, 31, &b, &err), 0);
	assert_int_equal(b, 31);
	says(urn_opt_u8("timeout", "256", 0, 31, &b, &err),
	     "--timeout 256: give a number from 0 to 31");
}

static void
test_sizes(void **state)
{
	uint64_t v;
	uint32_t w;

	(void)state;
	assert_int_equal(urn_opt_size("size", "1G", 0, 1ull << 30, &v, &err), 0);
	assert_true(v == 1ull << 30);
	says(urn_opt_size("size", "2G", 0, 1ull << 30, &v, &err),
	     "--size 2G: give a number from 0 to 1G, such as 64 or 64K");
	says(urn_opt_size("size", "", 1536, 1ull << 45, &v, &err),
	     "--size : give a number from 1536 to 32768G, such as 64 or 64K");
	assert_int_equal(urn_opt_size32("iters", "4k", 1, 1000000000, &w, &err), 0);
	assert_int_equal(w, 4096);
	says(urn_opt_size32("iters", "4G", 1, 1000000000, &w, &err),
	     "--iters 4G: give a number from 1 to 1000000000, such as 64 or 64K");
}

static void
test_times(void **state)
{
	const uint64_t hour = 3600000000000ull;
	uint64_t ns;

	(void)state;
	assert_int_equal(urn_opt_time("wait", "1.5", 1000000, hour, &ns, &err), 0);
	assert_int_equal(ns, 1500000000);
	says(urn_opt_time("wait", "0", 1000000, hour, &ns, &err),
	     "--wait 0: give seconds from 0.001 to 3600, such as 2 or 200ms");
	says(urn_opt_time("wait", "3601", 0, hour, &ns, &err),
	     "--wait 3601: give seconds from 0 to 3600, such as 2 or 200ms");
}

static void
test_words(void **state)
{
	static const char *const words[] = {"ring", "memif", "null"};
	static const char *const many[] = {"twenty-letters-and-a", "twenty-letters-and-b",
					   "twenty-letters-and-c", "twenty-letters-and-d",
					   "twenty-letters-and-e", "twenty-letters-and-f"};
	enum urn_idle idle;
	int which;

	(void)state;
	assert_int_equal(urn_opt_find(words, 3, "null"), 2);
	assert_int_equal(urn_opt_find(words, 2, "null"), -1);
	assert_int_equal(urn_opt_word("link", "memif", words, 3, &which, &err), 0);
	assert_int_equal(which, 1);
	says(urn_opt_word("link", "mem", words, 3, &which, &err),
	     "--link mem: give one of ring, memif, null");
	assert_int_equal(which, -1);
	/* A list that is too long is cut. */
	assert_int_equal(urn_opt_word("link", "x", many, 6, &which, &err), -1);
	assert_non_null(strstr(err.text, "and-a, twenty-letters-and-b"));
	assert_int_equal(urn_opt_idle("spin", &idle, &err), 0);
	assert_int_equal(idle, URN_IDLE_SPIN);
	assert_int_equal(urn_opt_idle("sleep", &idle, &err), 0);
	assert_int_equal(idle, URN_IDLE_SLEEP);
	says(urn_opt_idle("nap", &idle, &err), "--idle nap: give one of spin, pause, sleep");
}

static void
test_mtu(void **state)
{
	static const char *const bad[] = {"0", "128", "1500", "8192", "4294967552", "x"};
	uint32_t mtu;

	(void)state;
	assert_int_equal(urn_opt_mtu("256", &mtu, &err), 0);
	assert_int_equal(mtu, 256);
	assert_int_equal(urn_opt_mtu("4K", &mtu, &err), 0);
	assert_int_equal(mtu, 4096);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(urn_opt_mtu(bad[i], &mtu, &err), -1);
	assert_string_equal(err.text, "--mtu x: give 256, 512, 1024, 2048 or 4096");
}

static void
test_bad(void **state)
{
	(void)state;
	urn_opt_bad(':', "--size", "--help", &err);
	assert_string_equal(err.text, "--size wants a value; --help tells which");
	urn_opt_bad('?', "--frob", "pingpong --help", &err);
	assert_string_equal(err.text,
			    "--frob is no option, or not a whole one; pingpong --help lists them");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_mtu),
		cmocka_unit_test(test_bad),
	};

	return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
