/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of the program and the replacement of an adapter exclude each other, for a bounded time. */
#include "verbs/session/heal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

enum { SHORT_MS = 50, LONG_MS = 3600000 };

static struct urn_sv_ctx ctx;

static int
setup(void **state)
{
	(void)state;
	memset(&ctx, 0, sizeof(ctx));
	pthread_mutex_init(&ctx.lock, NULL);
	pthread_cond_init(&ctx.cond, NULL);
	ctx.wake_fd = -1;
	return 0;
}

static void *
call(void *arg)
{
	(void)arg;
	urn_sv_enter(&ctx);
	return NULL;
}

/* A call waits until the adapter is replaced. */
static void
waits(void **state)
{
	pthread_t thread;

	(void)state;
	ctx.options.silence = LONG_MS;
	(void)urn_sv_hold(&ctx, true, urn_sv_now_ms());
	assert_int_equal(pthread_create(&thread, NULL, call, NULL), 0);
	for (int i = 0; i < SHORT_MS; i++) {
		const struct timespec step = {.tv_nsec = 1000000};

		nanosleep(&step, NULL);
		urn_sv_lock(&ctx);
		assert_int_equal(ctx.calls, 0);
		pthread_cond_broadcast(&ctx.cond); /* for another reason */
		urn_sv_unlock(&ctx);
	}
	urn_sv_lock(&ctx);
	assert_true(urn_sv_hold(&ctx, false, urn_sv_now_ms()) == UINT64_MAX);
	urn_sv_unlock(&ctx);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(ctx.calls, 1);
	urn_sv_exit(&ctx);
	assert_int_equal(ctx.calls, 0);
}

/* A call that lasts holds no other up for ever: nobody ends the wait. All calls have one wait
 * together: when one has waited, the next does not. */
static void
bounded(void **state)
{
	uint64_t begin = urn_sv_now_ms();

	(void)state;
	ctx.options.silence = SHORT_MS;
	(void)urn_sv_hold(&ctx, true, begin);
	ctx.calls = 1;
	urn_sv_enter(&ctx);
	assert_true(urn_sv_now_ms() - begin >= SHORT_MS - 1);
	assert_int_equal(ctx.calls, 2);
	assert_true(ctx.replacing);
	ctx.options.silence = LONG_MS;
	urn_sv_enter(&ctx);
	assert_int_equal(ctx.calls, 3);
	/* A replacement that is not due makes nobody wait. */
	(void)urn_sv_hold(&ctx, false, begin);
	urn_sv_enter(&ctx);
	assert_int_equal(ctx.calls, 4);
}

/* Calls wait for one replacement until one time, whatever is done meanwhile; and, for calls that
 * overlap are not to keep it off for ever, again after as long a time. */
static void
one_wait(void **state)
{
	const uint64_t begin = 1000, most = SHORT_MS;

	(void)state;
	ctx.options.silence = SHORT_MS;
	for (uint64_t now = begin; now < begin + 2 * most; now++) {
		assert_true(urn_sv_hold(&ctx, true, now) == begin + 2 * most);
		assert_true(ctx.replacing && ctx.hold_until == begin + most);
	}
	assert_true(urn_sv_hold(&ctx, true, begin + 2 * most) == begin + 4 * most);
	assert_true(ctx.replacing && ctx.hold_until == begin + 3 * most);
	assert_true(urn_sv_hold(&ctx, false, begin + 2 * most) == UINT64_MAX);
	assert_false(ctx.replacing);
	assert_true(urn_sv_hold(&ctx, true, begin + 2 * most + 1) == begin + 4 * most + 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(waits, setup),
		cmocka_unit_test_setup(bounded, setup),
		cmocka_unit_test_setup(one_wait, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
