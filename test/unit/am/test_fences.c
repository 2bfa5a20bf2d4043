/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fence of ARM INTR of endpoints, by a litmus test (doc/inside/ordering.md): without it the
 * test fails. One side is the engine's code, the other does by hand what lib/am does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/litmus.h"

#include "am/priv.h"

#include <string.h>

enum { ROUNDS = 100000 };

struct arming {
	struct urn_am am;
	struct urn_am_ep ep;
	struct urn_abi_am_ep regs __attribute__((aligned(128)));
	uint32_t events __attribute__((aligned(128))); /* events written before this round */
	bool fired;
	bool seen __attribute__((aligned(128))); /* the client, having armed, saw the event */
};

static bool
tell(void *ctx, int fd, const struct urn_abi_event *ev)
{
	struct arming *a = ctx;

	(void)fd;
	(void)ev;
	a->fired = true;
	return true;
}

static void
ready(void *arg)
{
	struct arming *a = arg;

	a->events = atomic_load(&a->regs.dp.events);
	a->fired = false;
	atomic_store(&a->regs.client.arm, 0);
}

/* The engine: an event is written, and the turn ends. */
static void
engine(void *arg)
{
	struct arming *a = arg;

	atomic_store_explicit(&a->regs.dp.events, a->events + 1, memory_order_release);
	urn_am_touch(&a->am, &a->ep);
	urn_am_tell(&a->am, 1000, tell, a);
}

/* The client: it arms, and looks once more. */
static void
client(void *arg)
{
	struct arming *a = arg;

	atomic_store_explicit(&a->regs.client.arm, 1, memory_order_seq_cst);
	atomic_thread_fence(memory_order_seq_cst);
	a->seen = atomic_load_explicit(&a->regs.dp.events, memory_order_acquire) != a->events;
}

/* Neither saw the other: the client sleeps on. */
static bool
is_bad(void *arg)
{
	const struct arming *a = arg;

	return !a->fired && !a->seen;
}

static void
test_arming(void **state)
{
	static struct arming a;
	struct litmus l = {ready, engine, client, is_bad, &a, ROUNDS};

	(void)state;
	TAILQ_INIT(&a.am.touched);
	TAILQ_INIT(&a.am.untold);
	a.ep.regs = &a.regs;
	assert_int_equal(litmus_run(&l), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arming),
	};

	return cmocka_run_group_tests_name("am_fences", tests, NULL, NULL);
}
