/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports name each feature of a list by its word (architecture.md, seam 9), also of a list of the
 * test's own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "report/report_out.h"
#include "report/report_priv.h"

#include <stdio.h>

static struct urn_report_buf out;
static struct urn_report_text text;

static const char *
report(const struct urn_features *list, uint32_t offered)
{
	urn_report_buf_free(&out);
	urn_report_text_init(&text, &out);
	text.sink.begin(&text.sink, "adapter", false);
	report_features(&text.sink, list, offered);
	text.sink.end(&text.sink);
	urn_report_text_flush(&text);
	urn_report_text_free(&text);
	return out.data;
}

static void
every_feature_has_its_word(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < urn_link_features.n; i++) {
		const struct urn_features one = {&urn_link_features.at[i], 1};
		char want[80];

		snprintf(want, sizeof(want), "%s\nyes\n", one.at->word);
		assert_string_equal(report(&one, one.at->mask), want);
		assert_null(strstr(report(&one, ~one.at->mask), "yes"));
	}
}

static void
a_list_with_one_more(void **state)
{
	static const struct urn_feature two[] = {{1, "sack", "known"},
						 {1u << 7, "echo", "of this test"}};
	static const struct urn_features list = {two, 2};

	(void)state;
	assert_string_equal(report(&list, 1u << 7), "sack  echo\nno    yes\n");
	assert_string_equal(report(&list, 1), "sack  echo\nyes   no\n");
	/* Bits without a row have no word, and change nothing. */
	assert_string_equal(report(&list, 1u << 9), "sack  echo\nno    no\n");
	urn_report_buf_free(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_feature_has_its_word),
		cmocka_unit_test(a_list_with_one_more),
	};

	return cmocka_run_group_tests_name("features in reports", tests, NULL, NULL);
}
