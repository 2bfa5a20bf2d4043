/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "report/report_out.h"

#include <string.h>

static void
begin(struct urn_report_json *j)
{
	j->sink.begin(&j->sink, "thing", false);
}

static void
objects_make_an_array(void **state)
{
	struct urn_report_buf b = {0};
	struct urn_report_json j;

	(void)state;
	urn_report_json_init(&j, &b);
	begin(&j);
	j.sink.str(&j.sink, "name", "a");
	j.sink.u64(&j.sink, "n", UINT64_MAX);
	j.sink.flag(&j.sink, "on", true);
	j.sink.end(&j.sink);
	begin(&j);
	j.sink.flag(&j.sink, "on", false);
	j.sink.end(&j.sink);
	urn_report_json_finish(&j);
	assert_string_equal(b.data,
			    "[\n{\"name\": \"a\", \"n\": 18446744073709551615, \"on\": true},\n"
			    "{\"on\": false}\n]\n");
	urn_report_buf_free(&b);
}

/* Parts that are fetched one by one make one array. */
static void
parts_belong_together(void **state)
{
	char all[128] = "";
	struct urn_report_buf b = {0};
	struct urn_report_json j;

	(void)state;
	urn_report_json_init(&j, &b);
	for (unsigned int i = 0; i < 3; i++) {
		begin(&j);
		j.sink.u64(&j.sink, "i", i);
		j.sink.end(&j.sink);
		strcat(all, b.data);
		urn_report_buf_clear(&b);
	}
	urn_report_json_finish(&j);
	strcat(all, b.data);
	assert_string_equal(all, "[\n{\"i\": 0},\n{\"i\": 1},\n{\"i\": 2}\n]\n");
	urn_report_buf_free(&b);
}

static void
nothing_is_an_empty_array(void **state)
{
	struct urn_report_buf b = {0};
	struct urn_report_json j;

	(void)state;
	urn_report_json_init(&j, &b);
	urn_report_json_finish(&j);
	assert_string_equal(b.data, "[]\n");
	urn_report_buf_free(&b);
}

static void
strings_are_escaped(void **state)
{
	static const struct {
		const char *in, *out;
	} texts[] = {
		{"", "\"\""},
		{"a\"b\\c", "\"a\\\"b\\\\c\""},
		{"\n\t\r\x1b\x7f", "\"\\n\\t\\u000d\\u001b\\u007f\""},
		{"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
		 "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\""},
		{"\xff", "\"\\ufffd\""},	    /* a byte that never occurs in UTF-8 */
		{"\xc0\xaf", "\"\\ufffd\\ufffd\""}, /* an encoding longer than needed */
		{"\xe0\x80\xaf", "\"\\ufffd\\ufffd\\ufffd\""},
		{"\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""},		  /* half of a surrogate pair */
		{"\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""}, /* beyond the last code point */
		{"\xe2\x82", "\"\\ufffd\\ufffd\""},			  /* cut short */
		{"\xc3"
		 "a",
		 "\"\\ufffda\""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct urn_report_buf b = {0};

		urn_report_json_string(&b, texts[i].in);
		assert_string_equal(b.data, texts[i].out);
		urn_report_buf_free(&b);
	}
}

static void
buffers_grow(void **state)
{
	struct urn_report_buf b = {0};

	(void)state;
	for (unsigned int i = 0; i < 5000; i++)
		urn_report_buf_printf(&b, "%05u", i);
	assert_int_equal(b.len, 25000);
	assert_false(b.failed);
	assert_memory_equal(b.data, "0000000001", 10);
	assert_memory_equal(b.data + 24990, "0499804999", 11);
	urn_report_buf_free(&b);
	assert_null(b.data);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(objects_make_an_array),
		cmocka_unit_test(parts_belong_together),
		cmocka_unit_test(nothing_is_an_empty_array),
		cmocka_unit_test(strings_are_escaped),
		cmocka_unit_test(buffers_grow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
