/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers that nobody can guess (base/draw.h); the program's getrandom() comes here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/draw.h"
#include "base/rnd.h"

static struct {
	unsigned int calls;
	int err; /* 0: answer */
} kernel;

ssize_t __real_getrandom(void *buf, size_t len, unsigned int flags);
ssize_t __wrap_getrandom(void *buf, size_t len, unsigned int flags);

ssize_t
__wrap_getrandom(void *buf, size_t len, unsigned int flags)
{
	kernel.calls++;
	assert_true(len <= 256);
	assert_int_equal(flags, 0);
	if (!kernel.err)
		return __real_getrandom(buf, len, flags);
	errno = kernel.err;
	return -1;
}

static int
compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void
differ(uint64_t *v, size_t n)
{
	qsort(v, n, sizeof(*v), compare);
	for (size_t i = 1; i < n; i++)
		assert_true(v[i - 1] != v[i]);
}

/* No number comes twice, none is the next of a sequence, and the kernel is asked now and then. */
static void
test_kernel(void **state)
{
	enum { N = 4000 };
	static uint64_t v[N];
	struct urn_draw d;

	(void)state;
	kernel.calls = 0;
	kernel.err = 0;
	assert_int_equal(urn_draw_init(&d, 0), 0);
	for (int i = 0; i < N; i++)
		v[i] = urn_draw(&d);
	assert_in_range(kernel.calls, N / URN_DRAW_WORDS, N / (URN_DRAW_WORDS - 2));
	differ(v, N);
}

/* Two sources have nothing in common. */
static void
test_apart(void **state)
{
	struct urn_draw d[2];
	uint64_t v[128];

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(urn_draw_init(&d[i], 0), 0);
		for (int j = 0; j < 64; j++)
			v[64 * i + j] = urn_draw(&d[i]);
	}
	differ(v, 128);
}

static void
test_seed(void **state)
{
	struct urn_draw d;
	uint64_t s = 7;

	(void)state;
	kernel.calls = 0;
	assert_int_equal(urn_draw_init(&d, 7), 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(urn_draw(&d), urn_rnd_next(&s));
	assert_int_equal(kernel.calls, 0);
}

/* Without random numbers nothing starts; a source that has started goes on without repeating
 * itself. */
static void
test_no_kernel(void **state)
{
	struct urn_draw d;
	uint64_t v[200];

	(void)state;
	kernel.err = ENOSYS;
	assert_int_equal(urn_draw_init(&d, 0), ENOSYS);
	kernel.err = 0;
	assert_int_equal(urn_draw_init(&d, 0), 0);
	kernel.err = ENOSYS;
	for (int i = 0; i < 200; i++)
		v[i] = urn_draw(&d);
	kernel.err = 0;
	differ(v, 200);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kernel),
		cmocka_unit_test(test_apart),
		cmocka_unit_test(test_seed),
		cmocka_unit_test(test_no_kernel),
	};

	return cmocka_run_group_tests_name("draw", tests, NULL, NULL);
}
