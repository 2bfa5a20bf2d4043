/* SPDX-License-Identifier: BSD-3-Clause */
/* How many lines of a connection the log of steps takes. */
#include "verbs/session/lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { SECOND = 1000, BEGIN = 123456 };

/* Lines that are taken of so many. */
static unsigned int
take(struct urn_sv_lines *l, unsigned int n, uint64_t now)
{
	unsigned int taken = 0;

	for (unsigned int i = 0; i < n; i++)
		taken += urn_sv_lines_take(l, now);
	return taken;
}

/* The bound of a flood is taken, and the rest is counted. */
static void
flood(void **state)
{
	struct urn_sv_lines l = {0};

	(void)state;
	assert_int_equal(take(&l, 10 * URN_SV_LINES, BEGIN), URN_SV_LINES);
	assert_int_equal(l.out, 9 * URN_SV_LINES);
	assert_int_equal(take(&l, URN_SV_LINES, BEGIN + SECOND), URN_SV_LINES_A_SECOND);
}

/* Over a long time no more than so many a second are taken, however they are spread. */
static void
lasting(void **state)
{
	const unsigned int seconds = 600;
	struct urn_sv_lines l = {0};
	unsigned int taken = 0;

	(void)state;
	for (unsigned int ms = 0; ms <= seconds * SECOND; ms += 7)
		taken += take(&l, 3, BEGIN + ms);
	assert_in_range(taken, URN_SV_LINES + seconds * URN_SV_LINES_A_SECOND - 1,
			URN_SV_LINES + seconds * URN_SV_LINES_A_SECOND);
}

/* A connection that is quiet for long has no more than the bound at a time; fewer lines a second
 * than come free are all taken. */
static void
quiet(void **state)
{
	struct urn_sv_lines l = {0};

	(void)state;
	for (unsigned int i = 0; i < 10 * URN_SV_LINES; i++)
		assert_true(urn_sv_lines_take(&l, BEGIN + i * SECOND / URN_SV_LINES_A_SECOND));
	assert_int_equal(take(&l, 2 * URN_SV_LINES, UINT64_C(1) << 50), URN_SV_LINES);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flood),
		cmocka_unit_test(lasting),
		cmocka_unit_test(quiet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
