/* SPDX-License-Identifier: BSD-3-Clause */
/* The name that a wrong one may mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "near.h"

#include <string.h>

#define DIM(a) (sizeof(a) / sizeof((a)[0]))

static const char *
near_to(const char *word)
{
	static const char *const names[] = {"socket", "mode",	 "path_mtu", "max_qp", "max_mr",
					    "ports",  "engines", "p0",	     "a"};
	struct urn_near near;

	urn_near_begin(&near, word);
	for (size_t i = 0; i < DIM(names); i++)
		urn_near_try(&near, names[i]);
	return near.best ? near.best : "";
}

static void
test_near(void **state)
{
	static const char *const cases[][2] = {
		{"sokcet", "socket"},	/* swapped */
		{"soket", "socket"},	/* left out */
		{"socckett", "socket"}, /* added */
		{"Socket", "socket"},	/* case */
		{"max-qp", "max_qp"},	/* - for _ */
		{"max qp", "max_qp"},
		{"maxqp", "max_qp"},
		{"max_qr", "max_qp"}, /* the first of two equally near names */
		{"mtu", "path_mtu"},  /* a part of the name */
		{"port", "ports"},
		{"engine", "engines"},
		{"p1", "p0"},
		{"p", ""},
		{"A", "a"},
		{"b", ""}, /* the whole word would change */
		{"xy", ""},
		{"colour", ""},
		{"", ""},
		{"socketsocketsocketsocketsocketsocket", ""},
	};

	(void)state;
	for (size_t i = 0; i < DIM(cases); i++) {
		if (strcmp(near_to(cases[i][0]), cases[i][1]) != 0)
			fail_msg("%s: %s and not %s", cases[i][0], near_to(cases[i][0]),
				 cases[i][1]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_near)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
