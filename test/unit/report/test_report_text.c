/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "report/report_out.h"

#include <string.h>

static struct urn_report_buf out;
static struct urn_report_text text;

static int
setup(void **state)
{
	(void)state;
	urn_report_text_init(&text, &out);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	urn_report_text_free(&text);
	urn_report_buf_free(&out);
	return 0;
}

static void
row(const char *name, uint64_t n, bool on, const char *last)
{
	struct urn_report_sink *s = &text.sink;

	s->begin(s, "thing", false);
	s->str(s, "name", name);
	s->u64(s, "count", n);
	s->flag(s, "on", on);
	s->str(s, "last", last);
	s->end(s);
}

static void
columns_are_aligned(void **state)
{
	(void)state;
	row("a", 1, true, "x");
	row("longer", 1234567, false, "");
	urn_report_text_flush(&text);
	assert_string_equal(out.data, "name      count  on   last\n"
				      "a             1  yes  x\n"
				      "longer  1234567  no   -\n");
}

/* A table in parts has one head, and its columns never become narrower. */
static void
parts_belong_together(void **state)
{
	(void)state;
	row("longer", 10000, true, "x");
	urn_report_text_flush(&text);
	urn_report_buf_clear(&out);
	row("a", 1, true, "y");
	urn_report_text_flush(&text);
	assert_string_equal(out.data, "a           1  yes  y\n");
}

static void
nothing_prints_nothing(void **state)
{
	(void)state;
	urn_report_text_flush(&text);
	assert_int_equal(out.len, 0);
}

/* Programs may have any name: it can't steer a terminal. */
static void
terminals_are_safe(void **state)
{
	(void)state;
	row("\x1b[2Jx", 1, true,
	    "\xc2\x9b"
	    "1m\xff\n");
	row("\xc3\xa9\xe2\x82\xac", 1, true, "ok");
	urn_report_text_flush(&text);
	assert_string_equal(out.data, "name   count  on   last\n"
				      "?[2Jx      1  yes  ?1m??\n"
				      "\xc3\xa9\xe2\x82\xac         1  yes  ok\n");
}

static void
cards_have_a_line_a_field(void **state)
{
	struct urn_report_sink *s = &text.sink;

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		s->begin(s, "thing", true);
		s->str(s, "name", "a\x1b");
		s->u64(s, "n", i);
		s->str(s, "none", "");
		s->end(s);
	}
	urn_report_text_flush(&text);
	assert_string_equal(out.data, "name                   a?\n"
				      "n                      0\n"
				      "none                   -\n"
				      "\n"
				      "name                   a?\n"
				      "n                      1\n"
				      "none                   -\n");
}

/* A table keeps its columns when objects have fewer or more fields than the first. */
static void
rows_are_of_one_length(void **state)
{
	struct urn_report_sink *s = &text.sink;

	(void)state;
	for (unsigned int n = 2; n < 5; n++) {
		s->begin(s, "thing", false);
		for (unsigned int i = 0; i < (n == 3 ? 1 : n); i++)
			s->u64(s, "n", i);
		s->end(s);
	}
	for (unsigned int i = 0; i < 2; i++) {
		s->begin(s, "wide", false);
		for (unsigned int k = 0; k < URN_REPORT_COLUMNS + 3; k++)
			s->u64(s, "n", k);
		s->end(s);
	}
	urn_report_text_flush(&text);
	assert_string_equal(out.data, "n  n\n0  1\n0  -\n0  1\n0  1\n0  1\n");
}

static void
wide_tables_are_cut(void **state)
{
	struct urn_report_sink *s = &text.sink;

	(void)state;
	s->begin(s, "wide", false);
	for (unsigned int k = 0; k < URN_REPORT_COLUMNS + 3; k++)
		s->u64(s, "n", k % 10);
	s->end(s);
	urn_report_text_flush(&text);
	assert_int_equal(out.len, 2 * (URN_REPORT_COLUMNS * 3 - 2 + 1));
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(columns_are_aligned), T(parts_belong_together),     T(nothing_prints_nothing),
		T(terminals_are_safe),	T(cards_have_a_line_a_field), T(rows_are_of_one_length),
		T(wide_tables_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
