/* SPDX-License-Identifier: BSD-3-Clause */
/* ARM INTR of an endpoint fires once, when an operation ends; an event without room comes later. */
#include "rig.h"

#include "msg/msg.h"

#include <string.h>

#define MS 1000000ull /* ns */

static struct {
	unsigned int room; /* events that find room from now on */
	unsigned int n, tries;
	struct urn_abi_event ev[64];
	int fd[64];
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
told(uint64_t ns)
{
	unsigned int before = pipe_to.n;

	rig.tp->now += ns;
	if (*urn_am_untold_at(rig.am))
		urn_am_tell(rig.am, rig.tp->now, tell, &pipe_to);
	return pipe_to.n - before;
}

static int
setup(void **state)
{
	memset(&pipe_to, 0, sizeof(pipe_to));
	pipe_to.room = 64;
	return rig_setup(state);
}

static void
arm(unsigned int i)
{
	atomic_store(&rig.end[i].regs->client.arm, 1);
}

/* An operation of end i ends. */
static void
one_ends(unsigned int i)
{
	rig_command(i, URN_AM_WRITE, 1, 0, 0, 8);
	rig_run();
	rig_expect(i, URN_AM_DONE, 8);
}

static void
fires_once_at_an_end(void **state)
{
	(void)state;
	one_ends(0);
	assert_int_equal(told(1), 0); /* not armed */
	arm(0);
	assert_int_equal(told(1), 0); /* nothing ended since */
	rig_command(0, URN_AM_WRITE, 1, 0, 0, 8);
	assert_int_equal(told(1), 0); /* under way */
	rig_run();
	rig_expect(0, URN_AM_DONE, 8);
	one_ends(0);
	assert_int_equal(told(1), 1);
	assert_int_equal(pipe_to.ev[0].type, URN_EVENT_AM);
	assert_int_equal(pipe_to.ev[0].handle, URN_MSG_HANDLE(3, rig.end[0].ep->slot));
	assert_int_equal(pipe_to.ev[0].cookie, 7000);
	assert_int_equal(pipe_to.fd[0], 100);
	assert_int_equal(atomic_load(&rig.end[0].regs->client.arm), 0);
	assert_int_equal(atomic_load(&rig.end[0].regs->dp.pending), 1);
	one_ends(0);
	assert_int_equal(told(1), 0); /* one shot */
	assert_false(*urn_am_untold_at(rig.am));
}

/* An endpoint without a channel is never looked at; commands that make no sense fire, too. */
static void
errors_fire_and_others_do_not(void **state)
{
	(void)state;
	arm(NO_CHANNEL);
	one_ends(NO_CHANNEL);
	assert_false(*urn_am_untold_at(rig.am));
	arm(2);
	rig_command(2, 99, 1, 0, 0, 8);
	rig_expect(2, URN_AM_BAD_COMMAND, 0);
	assert_int_equal(told(1), 1);
	assert_int_equal(pipe_to.fd[0], 102);
	assert_int_equal(pipe_to.tries, 1);
}

/* A pipe without room: the event comes later, no more often than every millisecond, once. */
static void
late_events_come_later(void **state)
{
	(void)state;
	pipe_to.room = 0;
	arm(0);
	one_ends(0);
	assert_int_equal(told(1), 0);
	assert_int_equal(atomic_load(&rig.end[0].regs->client.arm), 1);
	assert_int_equal(atomic_load(&rig.end[0].regs->dp.pending), 0);
	assert_true(*urn_am_untold_at(rig.am));
	one_ends(0);
	assert_int_equal(told(1000), 0);
	assert_int_equal(pipe_to.tries, 1);
	pipe_to.room = 1;
	assert_int_equal(told(MS), 1);
	assert_false(*urn_am_untold_at(rig.am));
	assert_int_equal(told(MS), 0);
}

/* A client that disarms meanwhile gets no event; an endpoint that ends is in no list any more. */
static void
late_events_may_be_moot(void **state)
{
	(void)state;
	pipe_to.room = 0;
	arm(0);
	arm(2);
	one_ends(0);
	one_ends(2);
	assert_int_equal(told(1), 0);
	assert_int_equal(pipe_to.tries, 2);
	atomic_store(&rig.end[0].regs->client.arm, 0);
	rig_close(2);
	one_ends(0);
	pipe_to.room = 9;
	assert_int_equal(told(MS), 0);
	assert_false(*urn_am_untold_at(rig.am));
	arm(0);
	one_ends(0);
	rig_close(0); /* touched */
	assert_false(*urn_am_untold_at(rig.am));
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		T(fires_once_at_an_end),
		T(errors_fire_and_others_do_not),
		T(late_events_come_later),
		T(late_events_may_be_moot),
	};

	return cmocka_run_group_tests_name("am_tell", tests, NULL, NULL);
}
