/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bells lose no wake-up: all interleavings of two ringers and a sleeper.
 *
 * Ringers and sleeper are coroutines that run the code of bell.c. Each stops before a write of
 * the eventfd, before and behind a read of it, and between its own steps, so that a schedule
 * decides which one goes on. Schedules are tried one after the other until there is no other. A
 * schedule that leaves the sleeper asleep although there are news is a lost wake-up.
 */
#include "stream/shell/bell.h"

#include <setjmp.h> /* IWYU pragma: keep */
#include <stdarg.h> /* IWYU pragma: keep */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <poll.h>
#include <ucontext.h>
#include <unistd.h>

enum { RINGERS = 2, ACTORS = RINGERS + 1, SLEEPER = RINGERS, STEPS = 64, STACK = 64 << 10 };

/* Orders of the sleeper's steps. */
enum order {
	RIGHT,	     /* urn_bell_take(), then a look */
	CLEAR_FIRST, /* `rung` is cleared before the eventfd is read */
	CLEAR_LAST,  /* `rung` is cleared behind the look */
};

ssize_t __real_read(int fd, void *to, size_t len);
ssize_t __wrap_read(int fd, void *to, size_t len);
ssize_t __real_write(int fd, const void *from, size_t len);
ssize_t __wrap_write(int fd, const void *from, size_t len);

static struct urn_bell bell;
static enum order order;
static uint32_t rings[RINGERS]; /* rings of each ringer */
static uint32_t news, seen, all;
static uint64_t writes;

static ucontext_t home, actor[ACTORS];
static uint8_t stack[ACTORS][STACK];
static bool done[ACTORS];
static uint32_t at;	 /* the actor that runs */
static bool inside;	 /* a schedule runs: system calls stop their actor */
static bool would_sleep; /* the sleeper sleeps, unless the eventfd is readable */

/* Choices of a schedule: which one of the actors that can go on does. */
static uint32_t choice[STEPS], room[STEPS], depth;

/* ---- actors */

static void
stop(void)
{
	if (inside)
		(void)swapcontext(&actor[at], &home);
}

ssize_t
__wrap_read(int fd, void *to, size_t len)
{
	ssize_t n;

	stop();
	n = __real_read(fd, to, len);
	stop();
	return n;
}

ssize_t
__wrap_write(int fd, const void *from, size_t len)
{
	writes++;
	stop();
	return __real_write(fd, from, len);
}

static void
ringer(uint32_t me)
{
	for (uint32_t i = 0; i < rings[me]; i++) {
		if (i > 0)
			stop();
		news++;
		stop();
		urn_bell_ring(&bell);
	}
	done[me] = true;
}

static void
look(void)
{
	stop();
	seen = news;
}

static void
take(void)
{
	uint64_t count;

	switch (order) {
	case CLEAR_FIRST:
		atomic_store(&bell.rung, false);
		(void)!read(bell.fd, &count, sizeof(count));
		look();
		break;
	case CLEAR_LAST:
		(void)!read(bell.fd, &count, sizeof(count));
		look();
		stop();
		atomic_store(&bell.rung, false);
		break;
	default:
		urn_bell_take(&bell);
		look();
		break;
	}
}

static void
sleeper(void)
{
	look();
	while (seen != all) {
		would_sleep = true;
		stop();
		would_sleep = false;
		take();
	}
	done[SLEEPER] = true;
}

static void
begin(void)
{
	if (at == SLEEPER)
		sleeper();
	else
		ringer(at);
	for (;;)
		stop();
}

/* ---- schedules */

static bool
readable(void)
{
	struct pollfd p = {.fd = bell.fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static bool
runs(uint32_t i)
{
	return !done[i] && !(i == SLEEPER && would_sleep && !readable());
}

/* Actors that can go on. returns: how many */
static uint32_t
able(uint32_t who[ACTORS])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < ACTORS; i++)
		if (runs(i))
			who[n++] = i;
	return n;
}

static void
reset(void)
{
	assert_int_equal(urn_bell_make(&bell), 0);
	news = seen = 0;
	would_sleep = false;
	memset(done, 0, sizeof(done));
	for (uint32_t i = 0; i < ACTORS; i++) {
		assert_int_equal(getcontext(&actor[i]), 0);
		actor[i].uc_stack.ss_sp = stack[i];
		actor[i].uc_stack.ss_size = STACK;
		actor[i].uc_link = &home;
		makecontext(&actor[i], begin, 0);
	}
}

/* Run one schedule. returns: true: the sleeper has seen all news */
static bool
run(void)
{
	uint32_t who[ACTORS], n;

	reset();
	inside = true;
	for (depth = 0; (n = able(who)) != 0; depth++) {
		assert_true(depth < STEPS);
		room[depth] = n;
		at = who[choice[depth]];
		(void)swapcontext(&home, &actor[at]);
	}
	inside = false;
	urn_bell_end(&bell);
	return done[SLEEPER];
}

/* Choose the next schedule. returns: false: there is none */
static bool
next(void)
{
	while (depth > 0 && choice[depth - 1] + 1 == room[depth - 1])
		choice[--depth] = 0;
	if (depth == 0)
		return false;
	choice[depth - 1]++;
	return true;
}

/* Run all schedules, or those up to the first lost wake-up. returns: true: one is lost */
static bool
loses(enum order o, uint32_t first, uint32_t second, uint64_t *schedules)
{
	bool whole;

	order = o;
	rings[0] = first;
	rings[1] = second;
	all = first + second;
	memset(choice, 0, sizeof(choice));
	*schedules = 0;
	do {
		whole = run();
		++*schedules;
	} while (whole && next());
	return !whole;
}

/* ---- tests */

static void
test_order(void **state)
{
	uint64_t schedules;

	(void)state;
	assert_false(loses(RIGHT, 1, 0, &schedules));
	assert_false(loses(RIGHT, 1, 1, &schedules));
	assert_in_range(schedules, 100, UINT32_MAX);
	assert_false(loses(RIGHT, 3, 0, &schedules));
	assert_in_range(schedules, 1000, UINT32_MAX);
}

static void
test_wrong_orders(void **state)
{
	uint64_t schedules;

	(void)state;
	/* The second ring is written and taken away with the first, so the third is not written. */
	assert_false(loses(CLEAR_FIRST, 1, 1, &schedules));
	assert_true(loses(CLEAR_FIRST, 2, 1, &schedules));
	assert_true(loses(CLEAR_FIRST, 3, 0, &schedules));
	assert_true(loses(CLEAR_LAST, 1, 1, &schedules));
	assert_true(loses(CLEAR_LAST, 2, 0, &schedules));
}

/* A bell that nobody takes costs one write. */
static void
test_one_write(void **state)
{
	uint64_t before;

	(void)state;
	assert_int_equal(urn_bell_make(&bell), 0);
	for (int turn = 0; turn < 3; turn++) {
		before = writes;
		for (int i = 0; i < 100; i++)
			urn_bell_ring(&bell);
		assert_int_equal(writes - before, 1);
		assert_true(readable());
		urn_bell_take(&bell);
		assert_false(readable());
	}
	urn_bell_end(&bell);
	assert_int_equal(bell.fd, -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_wrong_orders),
		cmocka_unit_test(test_one_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
