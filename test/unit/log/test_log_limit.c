/* SPDX-License-Identifier: BSD-3-Clause */
/* Bounds of sources of the log (log/limit.h): no program and no user floods it, and no event goes
 * uncounted. Time is the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rnd.h"
#include "log/limit.h"

#include <string.h>

static struct urn_log_limit l;

static uint32_t
rnd(uint64_t *seed, uint32_t below)
{
	return (uint32_t)urn_rnd_below(urn_rnd_next(seed), below);
}

/* Take all numbers that are due. returns: their sum */
static uint64_t
due(uint64_t now)
{
	struct urn_log_more more;
	uint64_t sum = 0;

	while (urn_log_limit_due(&l, now, &more)) {
		assert_in_range(more.event, 0, URN_LOG_EVENT_COUNT - 1);
		assert_true(more.n > 0);
		sum += more.n;
	}
	return sum;
}

/* A program has its lines, and another one its own; the number of the others comes after a second,
 * and names the program. */
static void
of_one_program(void **state)
{
	const struct urn_log_who loud = {.client = 3, .pid = 30, .uid = 7, .program = "loud"};
	const struct urn_log_who calm = {.client = 4, .pid = 40, .uid = 8, .program = "calm"};
	struct urn_log_more more;
	unsigned int lines = 0;

	(void)state;
	memset(&l, 0, sizeof(l));
	for (unsigned int i = 0; i < 1000; i++)
		lines += urn_log_limit_pass(&l, URN_LOG_QP_ERROR, &loud, 5);
	assert_int_equal(lines, URN_LOG_PER_SOURCE);
	assert_true(urn_log_limit_pass(&l, URN_LOG_QP_ERROR, &calm, 5));
	assert_true(urn_log_limit_pass(&l, URN_LOG_REACHED, &loud, 5));
	assert_false(urn_log_limit_due(&l, 4 + URN_LOG_SECOND, &more));
	assert_true(urn_log_limit_due(&l, 5 + URN_LOG_SECOND, &more));
	assert_int_equal(more.n, 1000 - URN_LOG_PER_SOURCE);
	assert_int_equal(more.event, URN_LOG_QP_ERROR);
	assert_true(more.has_who && !more.user);
	assert_string_equal(more.who.program, "loud");
	assert_false(urn_log_limit_due(&l, UINT64_MAX, &more));
	assert_true(urn_log_limit_pass(&l, URN_LOG_QP_ERROR, &loud, 6 + URN_LOG_SECOND));
}

/* A user with thousands of programs has a user's lines, and leaves the others theirs. */
static void
of_one_user(void **state)
{
	unsigned int lines = 0;
	const struct urn_log_who other = {.client = 999999, .pid = 1, .uid = 8};
	struct urn_log_more more;

	(void)state;
	memset(&l, 0, sizeof(l));
	for (uint32_t i = 1; i <= 5000; i++) {
		const struct urn_log_who who = {.client = i, .pid = 100, .uid = 7};

		lines += urn_log_limit_pass(&l, URN_LOG_ATTACHED, &who, 5);
	}
	assert_int_equal(lines, URN_LOG_PER_USER);
	for (unsigned int i = 0; i < URN_LOG_PER_SOURCE; i++)
		assert_true(urn_log_limit_pass(&l, URN_LOG_ATTACHED, &other, 5));
	assert_true(urn_log_limit_due(&l, 5 + URN_LOG_SECOND, &more));
	assert_int_equal(more.n, 5000 - URN_LOG_PER_USER);
	assert_true(more.has_who && more.user);
	assert_int_equal(more.who.uid, 7);
}

/* Programs that are no clients, such as those that are refused, are one source a user. */
static void
of_no_client(void **state)
{
	struct urn_log_more more;
	unsigned int lines = 0;

	(void)state;
	memset(&l, 0, sizeof(l));
	for (int i = 0; i < 100; i++) {
		const struct urn_log_who who = {.pid = 100 + i, .uid = 7};

		lines += urn_log_limit_pass(&l, URN_LOG_REFUSED, &who, 5);
	}
	assert_int_equal(lines, URN_LOG_PER_SOURCE);
	assert_true(urn_log_limit_due(&l, UINT64_MAX, &more));
	assert_int_equal(more.n, 100 - URN_LOG_PER_SOURCE);
	assert_true(more.has_who && more.user); /* the number is no single process's */
	assert_int_equal(more.who.uid, 7);
}

/* Floods of thousands of clients of a user, and users that have all lines of a second, take no line
 * from a port, and the floods take none from another user. */
static void
of_the_system(void **state)
{
	const struct urn_log_who calm = {.client = 1, .pid = 1, .uid = 9};
	uint64_t asked = 0;

	(void)state;
	memset(&l, 0, sizeof(l));
	for (uint32_t i = 0; i < 1600; i++) {
		const struct urn_log_who who = {.client = 100 + i, .pid = 100, .uid = 7};

		urn_log_limit_add(&l, URN_LOG_QP_ERROR, i % 3 ? &who : NULL, 5, 5 + i / 16);
		asked += 5;
	}
	for (unsigned int i = 0; i < URN_LOG_PER_SOURCE; i++)
		assert_true(urn_log_limit_pass(&l, URN_LOG_QP_ERROR, &calm, 200));
	for (uint32_t i = 0; i < 100000; i++) {
		const struct urn_log_who who = {.client = 5000 + i, .pid = 1, .uid = 10 + i % 50};

		asked += !urn_log_limit_pass(&l, i % URN_LOG_EVENT_COUNT, &who, 200);
	}
	for (unsigned int i = 0; i < URN_LOG_PER_SYSTEM; i++)
		assert_true(urn_log_limit_pass(&l, URN_LOG_PORT_DOWN, NULL, 200));
	assert_false(urn_log_limit_pass(&l, URN_LOG_PORT_DOWN, NULL, 200));
	assert_true(urn_log_limit_pass(&l, URN_LOG_PORT_DOWN, NULL, 200 + URN_LOG_SECOND));
	assert_int_equal(due(UINT64_MAX), asked + 1);
}

/* Random events of random sources: at most so many lines a second, and each event is a line or is
 * counted. */
static void
nothing_is_lost(void **state)
{
	uint64_t asked = 0, lines = 0, counted = 0, now = 1, until = 0, in_second = 0;
	uint64_t seed = 7;

	(void)state;
	memset(&l, 0, sizeof(l));
	for (unsigned int i = 0; i < 200000; i++) {
		const struct urn_log_who who = {
			.client = rnd(&seed, 300), .pid = 1, .uid = rnd(&seed, 200)};
		enum urn_log_event event = rnd(&seed, URN_LOG_EVENT_COUNT);
		bool pass, program = rnd(&seed, 5) != 0;

		now += rnd(&seed, 200) * 1000;
		if (now >= until) {
			until = now + URN_LOG_SECOND;
			in_second = 0;
		}
		if (rnd(&seed, 10) == 0) {
			urn_log_limit_add(&l, event, &who, 3, now);
			asked += 3;
			continue;
		}
		asked++;
		pass = urn_log_limit_pass(&l, event, program ? &who : NULL, now);
		lines += pass;
		in_second += pass && program;
		assert_true(in_second <= 2 * URN_LOG_PER_SECOND); /* seconds may overlap */
		if (rnd(&seed, 50) == 0)
			counted += due(now);
	}
	counted += due(UINT64_MAX);
	assert_int_equal(lines + counted, asked);
	assert_true(lines > 100 && counted > 1000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_one_program),  cmocka_unit_test(of_one_user),
		cmocka_unit_test(of_no_client),	   cmocka_unit_test(of_the_system),
		cmocka_unit_test(nothing_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
