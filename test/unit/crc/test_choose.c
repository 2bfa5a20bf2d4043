/* SPDX-License-Identifier: BSD-3-Clause */
/* The choice of the kernel, each in a process of its own: the first call decides for all. */
#include "crc/kernels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char why[256];

/* Run a function in a child. returns: the function's result, 0 to 255 */
static int
child(int (*f)(const char *arg), const char *arg)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(f(arg));
	assert_true(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

static bool
known(const struct urn_crc_kernel *k)
{
	for (const struct urn_crc_kernel *const *i = urn_crc_kernels; *i; i++)
		if (*i == k)
			return k->usable();
	return false;
}

/* Without a choice the first CRC takes the widest kernel. */
static int
unchosen(const char *arg)
{
	(void)arg;
	if (urn_crc(0, (const uint8_t *)"123456789", 9, NULL) != 0xcbf43926)
		return 1;
	for (const struct urn_crc_kernel *const *k = urn_crc_kernels; *k; k++)
		if ((*k)->usable())
			return urn_crc_chosen == *k ? 0 : 2;
	return 3;
}

/* ... and so does the first copy. */
static int
unchosen_copy(const char *arg)
{
	uint8_t to[9];

	(void)arg;
	return urn_crc_copy(0, to, (const uint8_t *)"123456789", 9) == 0xcbf43926 &&
			       memcmp(to, "123456789", 9) == 0 && known(urn_crc_chosen)
		       ? 0
		       : 1;
}

/* A measurement chooses a kernel that the processor has, and a second call leaves it so. */
static int
measured(const char *arg)
{
	const struct urn_crc_kernel *k;

	(void)arg;
	unsetenv("URNIC_CRC");
	if (urn_crc_choose(why, sizeof(why)) != 0 || !known(urn_crc_chosen))
		return 1;
	k = urn_crc_chosen;
	setenv("URNIC_CRC", "none", 1);
	return urn_crc_choose(why, sizeof(why)) == 0 && urn_crc_chosen == k ? 0 : 2;
}

static int
told(const char *name)
{
	setenv("URNIC_CRC", name, 1);
	return urn_crc_choose(why, sizeof(why)) == 0 && strcmp(urn_crc_chosen->name, name) == 0 ? 0
												: 1;
}

/* Refused: with a sentence that names the variable and the word, each time. */
static int
refused(const char *name)
{
	setenv("URNIC_CRC", name, 1);
	for (int i = 0; i < 2; i++) {
		why[0] = '\0';
		if (urn_crc_choose(why, sizeof(why)) == 0 || !strstr(why, "URNIC_CRC") ||
		    !strstr(why, name))
			return 1;
	}
	return 0;
}

static void
test_unchosen(void **state)
{
	(void)state;
	assert_int_equal(child(unchosen, NULL), 0);
	assert_int_equal(child(unchosen_copy, NULL), 0);
}

static void
test_measured(void **state)
{
	(void)state;
	assert_int_equal(child(measured, NULL), 0);
}

/* Each kernel can be told; one that the processor lacks is refused, and never executed. */
static void
test_told(void **state)
{
	(void)state;
	for (const struct urn_crc_kernel *const *k = urn_crc_kernels; *k; k++)
		assert_int_equal(child((*k)->usable() ? told : refused, (*k)->name), 0);
	assert_int_equal(child(refused, "avx1024"), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_unchosen),
					   cmocka_unit_test(test_measured),
					   cmocka_unit_test(test_told)};

	return cmocka_run_group_tests_name("crc_choose", tests, NULL, NULL);
}
