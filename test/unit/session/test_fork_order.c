/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers of fork(): one that is registered behind ibv_fork_init() finds the locks of verbs free,
 * though devices are opened later. Locks that are held over calls of verbs are taken there. */
#include "verbs/session/heal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <urnic/attach.h>

enum { PATIENCE_S = 30 };

static struct urn_sv_ctx ctx;
static bool device, memory;

static void *
allocates(void *arg)
{
	urn_free(urn_alloc(4096));
	return arg;
}

/* Another thread may use verbs while it holds a lock that this handler is to take. */
static void
before(void)
{
	struct timespec end;
	pthread_t t;

	device = pthread_mutex_trylock(&ctx.lock) == 0;
	if (device)
		pthread_mutex_unlock(&ctx.lock);
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += PATIENCE_S;
	memory = pthread_create(&t, NULL, allocates, NULL) == 0 &&
		 pthread_timedjoin_np(t, NULL, &end) == 0;
}

static void
test_order(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(ibv_fork_init(), 0);
	assert_int_equal(pthread_atfork(before, NULL, NULL), 0);
	pthread_mutex_init(&ctx.lock, NULL);
	pthread_cond_init(&ctx.cond, NULL);
	urn_sv_fork_join(&ctx);
	urn_free(urn_alloc(4096));
	pid = fork();
	if (pid == 0)
		_exit(!ctx.forked);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(device);
	assert_true(memory);
	urn_sv_fork_leave(&ctx);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_order)};

	return cmocka_run_group_tests_name("fork_order", tests, NULL, NULL);
}
