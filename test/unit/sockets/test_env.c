/* SPDX-License-Identifier: BSD-3-Clause */
/* Variables of urnic's that a program has removed from its environment (env.c). */
#include "rig.h"

#include <stdlib.h>

// NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,clang-diagnostic-reserved-identifier)
char *__wrap_secure_getenv(const char *name);

/* Servers clear their environment; the library still finds its own variables, and no others. A
 * value that the program has set since counts. */
static void
test_cleared(void **state)
{
	(void)state;
	assert_int_equal(clearenv(), 0);
	assert_string_equal(__wrap_secure_getenv("URNIC_TIMEOUT"), "77");
	assert_string_equal(__wrap_secure_getenv("XDG_RUNTIME_DIR"), "/nowhere");
	assert_null(__wrap_secure_getenv("URNIC_SOCKETS_EXEC"));
	assert_null(__wrap_secure_getenv("URNIC_TIME"));
	assert_null(__wrap_secure_getenv("OTHER"));
	assert_int_equal(setenv("URNIC_TIMEOUT", "5", 1), 0);
	assert_string_equal(__wrap_secure_getenv("URNIC_TIMEOUT"), "5");
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_cleared)};

	/* The variables have to be there at the program's start. */
	if (argc == 1) {
		(void)setenv("URNIC_TIMEOUT", "77", 1);
		(void)setenv("XDG_RUNTIME_DIR", "/nowhere", 1);
		(void)setenv("URNIC_SOCKETS_EXEC", "9999", 1);
		(void)setenv("OTHER", "x", 1);
		(void)execl("/proc/self/exe", argv[0], "again", (char *)NULL);
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
