/* SPDX-License-Identifier: BSD-3-Clause */
/* The value of URNIC_SESSION_SILENCE. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "verbs/session/silence.h"

static void
test_values(void **state)
{
	static const struct {
		const char *text;
		bool good;
		uint32_t ms;
	} v[] = {
		{NULL, true, URN_SV_SILENCE_MS},
		{"", true, URN_SV_SILENCE_MS},
		{"100", true, 100},
		{"60000", true, 60000},
		{"99", false, 0},
		{"60001", false, 0},
		{"-500", false, 0},
		{" 500", false, 0},
		{"500ms", false, 0},
		{"18446744073709551716", false, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		uint32_t ms;

		assert_int_equal(urn_sv_silence(v[i].text, &ms), v[i].good);
		if (v[i].good)
			assert_int_equal(ms, v[i].ms);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_values)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
