/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The worker of a space goes to sleep while an engine puts an operation into its lane: a
 * litmus test of both fences between them (doc/inside/ordering.md). Without a fence the test
 * fails.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/litmus.h"

#include <unistd.h>

/* The worker's futex is the test's: defined before the worker's source, which is included here. */
static long test_futex(_Atomic uint32_t *word, int what);

#define syscall(nr, word, what, value, ...) ((void)(nr), (void)(value), test_futex(word, what))
#include "memory/worker.c"
#undef syscall

enum { ROUNDS = 100000 };

static struct {
	struct urn_space space __attribute__((aligned(128)));
	struct urn_lane lane __attribute__((aligned(128)));
	struct urn_foreign foreign;
	struct urn_region region;
	struct space_worker worker;
	bool lost; /* worker: asleep, and the engine that put the operation has not woken it */
} t;

static long
test_futex(_Atomic uint32_t *word, int what)
{
	if ((what & FUTEX_CMD_MASK) != FUTEX_WAIT)
		return 0;
	while (!litmus_second_done())
		rte_pause();
	t.lost = atomic_load(word) != 0;
	atomic_store(word, 0);
	return 0;
}

/* The lane is empty; the next operation is of an unknown kind, and fails without a system call. */
static void
ready(void *arg)
{
	(void)arg;
	(void)serve_all(&t.worker);
	atomic_store(&t.space.asleep, 0);
	t.lost = false;
}

static void
worker_naps(void *arg)
{
	(void)arg;
	nap(&t.worker);
}

/* Put the operation as urn_lanes_flush() does. */
static void
engine_puts(void *arg)
{
	(void)arg;
	atomic_store_explicit(&t.lane.sent, ++t.lane.prod, memory_order_release);
	urn_space_wake(&t.space);
}

static bool
sleeps_on(void *arg)
{
	(void)arg;
	return t.lost;
}

static void
test_nap(void **state)
{
	(void)state;
	t.space.fds = (struct urn_space_fds){.mem = -1, .maps = -1, .pidfd = -1};
	t.foreign.space = &t.space;
	t.region.base = (void *)&t.foreign;
	t.lane.space = &t.space;
	atomic_store(&t.lane.cpu, -1);
	for (unsigned int i = 0; i < URN_LANE_SLOTS; i++)
		t.lane.slot[i] = (struct urn_memop){.kind = UINT8_MAX, .region = &t.region};
	atomic_store(&t.space.lanes, &t.lane);
	t.worker.space = &t.space;
	t.worker.page = 4096;
	assert_int_equal(litmus_run(&(struct litmus){.ready = ready, .first = worker_naps,
				 .second = engine_puts, .bad = sleeps_on, .rounds = ROUNDS}), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
