/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "switch/impair_words.h"

#include <rte_common.h>

#include <string.h>

/* A configuration read from a list becomes an equivalent list, with or without defaults. */
static void
words_come_back(void **state)
{
	static const struct {
		const char *in, *out;
	} lists[] = {
		{"drop=1%", "drop=1%"},
		{"drop=0.1%,seed=7", "drop=0.1%,seed=7"},
		{"seed=9", ""},
		{"dup=100", "dup=100%"},
		{"corrupt=0.00001", "corrupt=1e-05%"},
		{"reorder=2,hold=3", "reorder=2%,hold=3"},
		{"reorder=2,hold=2-5,hold-time=1.5ms", "reorder=2%,hold=2-5,hold-time=1500us"},
		{"reorder=2", "reorder=2%"},
		{"delay=200us,jitter=2s", "delay=200us,jitter=2s"},
		{"delay=0.5us", "delay=0.5us"},
		{"rate=2.5G,queue=10", "rate=2500000k,queue=10"},
		{"flap=900ms/1s", "flap=900ms/1s"},
		{"blackhole", "blackhole"},
	};
	char text[256];

	(void)state;
	for (size_t i = 0; i < RTE_DIM(lists); i++) {
		struct urn_impair_config c = {0};
		struct urn_impair *imp;

		assert_int_equal(urn_impair_take_list(&c, lists[i].in, NULL), 0);
		assert_string_equal(urn_impair_text(&c, text, sizeof(text)), lists[i].out);
		/* An impairment in force has its defaults filled in. */
		imp = urn_impair_create(&c, 0, NULL);
		assert_non_null(imp);
		assert_string_equal(urn_impair_text(urn_impair_config(imp), text, sizeof(text)),
				    lists[i].out);
		urn_impair_destroy(imp);
	}
}

static void
nothing_is_an_empty_text(void **state)
{
	const struct urn_impair_config none = {0};
	char text[256] = "x";

	(void)state;
	assert_string_equal(urn_impair_text(&none, text, sizeof(text)), "");
}

/* The longest text fits; a longer one is cut, within the buffer. */
static void
texts_are_bounded(void **state)
{
	struct urn_impair_config c = {0};
	char text[256], small[16];

	(void)state;
	assert_int_equal(
		urn_impair_take_list(&c,
				     "drop=1.0625%,dup=99.9375%,corrupt=2.03125%,reorder=3.25%,"
				     "hold=11-32,hold-time=1.000001s,delay=59.999999s,"
				     "jitter=59.999999s,rate=999999999999",
				     NULL),
		0);
	assert_int_equal(urn_impair_take_list(&c,
					      "flap=1234567.000001s/1234567.000001s,queue=1048576,"
					      "blackhole,seed=18446744073709551615",
					      NULL),
			 0);
	urn_impair_text(&c, text, sizeof(text));
	assert_true(strlen(text) < sizeof(text) - 2);
	assert_non_null(strstr(text, "seed=18446744073709551615"));
	memset(small, 'x', sizeof(small));
	urn_impair_text(&c, small, 8);
	assert_string_equal(small, "drop=1.");
	assert_int_equal(small[8], 'x');
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_come_back),
		cmocka_unit_test(nothing_is_an_empty_text),
		cmocka_unit_test(texts_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
