/* SPDX-License-Identifier: BSD-3-Clause */
/* DB-8: ARM INTR fires once, at a message's arrival or at once; an event without room comes later.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"

#include <string.h>

#define MS 1000000ull /* ns */
#define R(i) rig_regs(i)

static struct {
	unsigned int room; /* events that find room from now on */
	unsigned int n, tries;
	struct urn_abi_event ev[4096];
	int fd[4096];
} pipe_to;

static bool
tell(void *ctx, int fd, const struct urn_abi_event *ev)
{
	assert_ptr_equal(ctx, &pipe_to);
	pipe_to.tries++;
	if (!pipe_to.room)
		return false;
	pipe_to.room--;
	pipe_to.fd[pipe_to.n] = fd;
	pipe_to.ev[pipe_to.n++] = *ev;
	return true;
}

/* The end of a turn. returns: events that were told in it */
static unsigned int
told(uint64_t now)
{
	unsigned int before = pipe_to.n;

	rig.tp->now = now;
	if (*urn_msg_untold_at(rig.regs))
		urn_msg_tell(rig.regs, now, tell, &pipe_to);
	return pipe_to.n - before;
}

static int
setup(void **state)
{
	memset(&pipe_to, 0, sizeof(pipe_to));
	pipe_to.room = 4096;
	return rig_setup(state);
}

static void
open_queue(unsigned int i)
{
	rig_open(i, 100 + (int)i, 7000 + i);
	rig_configure(i, 0, 4, 64);
}

static void
arm(unsigned int i)
{
	atomic_store(&R(i)->conf.arm, 1);
}

static void
fires_once_at_an_arrival(void **state)
{
	(void)state;
	open_queue(0);
	rig_deliver(rig_qid(0), 8, 1);
	assert_int_equal(told(1), 0); /* not armed */
	arm(0);
	assert_int_equal(told(2), 0);
	rig_deliver(rig_qid(0), 8, 1);
	rig_deliver(rig_qid(0), 8, 1);
	assert_int_equal(told(3), 1);
	assert_int_equal(pipe_to.ev[0].type, URN_EVENT_MSG);
	assert_int_equal(pipe_to.ev[0].handle, URN_MSG_HANDLE(RIG_ENGINE, rig.set[0]->slot));
	assert_int_equal(pipe_to.ev[0].cookie, 7000);
	assert_int_equal(pipe_to.fd[0], 100);
	assert_int_equal(atomic_load(&R(0)->conf.arm), 0);
	assert_int_equal(atomic_load(&R(0)->rstat.pending), 1);
	rig_deliver(rig_qid(0), 8, 1);
	assert_int_equal(told(4), 0); /* one shot */
	assert_false(*urn_msg_untold_at(rig.regs));
}

/* Armed while messages wait, with the doorbell rung: fires at once; with no message: not before one
 * comes. */
static void
arming_while_messages_wait_fires(void **state)
{
	(void)state;
	open_queue(0);
	arm(0);
	rig_ring(0);
	rig_turn(1);
	assert_int_equal(told(1), 0);
	atomic_store(&R(0)->conf.arm, 0);
	rig_deliver(rig_qid(0), 8, 1);
	assert_int_equal(told(2), 0);
	arm(0);
	rig_ring(0);
	rig_turn(3);
	assert_int_equal(told(3), 1);
	atomic_store(&R(0)->ctrl.head, 1); /* read: nothing waits */
	arm(0);
	rig_ring(0);
	rig_turn(4);
	assert_int_equal(told(4), 0);
}

/* A refused message wakes nobody. */
static void
refusals_do_not_fire(void **state)
{
	(void)state;
	open_queue(0);
	arm(0);
	assert_int_equal(rig_deliver(rig_qid(0), 4000, 1), URN_MSG_TOO_LONG);
	assert_int_equal(told(1), 0);
	assert_int_equal(atomic_load(&R(0)->conf.arm), 1);
}

/* Without a channel the interrupt is counted only: the reader polls. */
static void
fires_without_a_channel(void **state)
{
	(void)state;
	rig_open(0, -1, 0);
	rig_configure(0, 0, 4, 64);
	arm(0);
	rig_deliver(rig_qid(0), 8, 1);
	assert_int_equal(told(1), 0);
	assert_int_equal(pipe_to.tries, 0);
	assert_int_equal(atomic_load(&R(0)->rstat.pending), 1);
	assert_int_equal(atomic_load(&R(0)->conf.arm), 0);
}

/* No room: the event is late, tried once a millisecond, and not lost. */
static void
a_late_event_comes(void **state)
{
	(void)state;
	open_queue(0);
	arm(0);
	pipe_to.room = 0;
	rig_deliver(rig_qid(0), 8, 1);
	assert_int_equal(told(1 * MS), 0);
	assert_int_equal(pipe_to.tries, 1);
	assert_int_equal(atomic_load(&R(0)->rstat.pending), 0);
	rig_deliver(rig_qid(0), 8, 1); /* more messages do not hurry it */
	for (uint64_t t = MS; t < 2 * MS; t += MS / 10)
		assert_int_equal(told(t), 0);
	assert_int_equal(pipe_to.tries, 1);
	pipe_to.room = 5;
	assert_int_equal(told(2 * MS), 1);
	assert_int_equal(told(9 * MS), 0);
	assert_int_equal(atomic_load(&R(0)->rstat.pending), 1);
	assert_false(*urn_msg_untold_at(rig.regs));
}

/* The reader of a late event that disarms meanwhile is not woken. */
static void
a_late_event_may_be_taken_back(void **state)
{
	(void)state;
	open_queue(0);
	arm(0);
	pipe_to.room = 0;
	rig_deliver(rig_qid(0), 8, 1);
	told(1 * MS);
	assert_int_equal(atomic_exchange(&R(0)->conf.arm, 0), 1);
	pipe_to.room = 5;
	assert_int_equal(told(3 * MS), 0);
	assert_false(*urn_msg_untold_at(rig.regs));
}

/* Sets end with events due and late: those of others come, in their order. */
static void
sets_end_with_late_events(void **state)
{
	(void)state;
	pipe_to.room = 0;
	for (unsigned int i = 0; i < 40; i++) {
		open_queue(i);
		arm(i);
		rig_deliver(rig_qid(i), 8, 1);
		if (i == 29)
			told(1 * MS); /* 30 late, 10 touched */
	}
	for (unsigned int i = 0; i < 40; i += 3)
		rig_close(i);
	pipe_to.room = 100;
	told(5 * MS);
	told(9 * MS);
	assert_int_equal(pipe_to.n, 26);
	for (unsigned int i = 0, n = 0; i < 40; i++)
		if (i % 3)
			assert_int_equal(pipe_to.ev[n++].cookie, 7000 + i);
}

/* Readers that do not read cost a bounded number of tries each millisecond, and each has its turn.
 */
static void
late_tries_are_bounded(void **state)
{
	(void)state;
	pipe_to.room = 0;
	for (unsigned int i = 0; i < RIG_SETS; i++) {
		open_queue(i);
		arm(i);
		rig_deliver(rig_qid(i), 8, 1);
	}
	told(1 * MS);
	pipe_to.tries = 0;
	told(2 * MS);
	assert_int_equal(pipe_to.tries, 64);
	pipe_to.room = 4096;
	assert_int_equal(told(3 * MS), 64);
	assert_int_equal(pipe_to.ev[0].cookie, 7064); /* those that were not tried come first */
	assert_int_equal(told(4 * MS), RIG_SETS - 64);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		T(fires_once_at_an_arrival),  T(arming_while_messages_wait_fires),
		T(refusals_do_not_fire),      T(fires_without_a_channel),
		T(a_late_event_comes),	      T(a_late_event_may_be_taken_back),
		T(sets_end_with_late_events), T(late_tries_are_bounded),
	};

	return cmocka_run_group_tests_name("tell", tests, NULL, NULL);
}
