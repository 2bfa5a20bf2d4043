/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The schedule's fairness when a priority is paused, over and over, with made-up sources: turns
 * after a pause, and their bytes (doc/inside/fairness.md).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "made.h"

#include <string.h>

enum {
	CROWD = 40,  /* users at a port that is paused */
	SERVED = 16, /* sources that have turns between two pauses */
};

/* Users with one client each: more than one time without a pause serves. */
static struct {
	struct urn_tp tp;
	struct urn_tp_user user[CROWD];
	struct made client[CROWD];
	struct made second; /* one more client of user 0 */
} crowd;

static const uint8_t priority_of[64];

static void
join(struct made *m, struct urn_tp_user *u, int sources)
{
	m->share.user = u;
	for (int i = 0; i < sources; i++) {
		m->source[i].share = &m->share;
		urn_sched_add(&crowd.tp.sched, &m->source[i]);
	}
}

static void
open_crowd(void)
{
	memset(&crowd, 0, sizeof(crowd));
	crowd.tp.priority_of = priority_of;
	for (int u = 0; u < CROWD; u++)
		join(&crowd.client[u], &crowd.user[u], u % 2 ? SOURCES : 1);
}

/* The priority is paused: all that have turns wait. */
static void
pause_crowd(void)
{
	struct urn_source *src;

	crowd.tp.sched.stopped = 1;
	while (crowd.tp.sched.n && (src = urn_sched_next(&crowd.tp.sched)))
		assert_true(urn_sched_stops(&crowd.tp, src, &made_tmpl));
}

/* The pause ends, and a few sources have turns before the next one. */
static void
resume_crowd(unsigned int most)
{
	crowd.tp.sched.stopped = 0;
	urn_sched_begin(&crowd.tp.sched);
	for (unsigned int i = 0; i < most; i++) {
		struct urn_source *src = urn_sched_next(&crowd.tp.sched);

		assert_non_null(src);
		assert_false(urn_sched_stops(&crowd.tp, src, &made_tmpl));
		((struct made *)src->share)->turns++;
		urn_sched_add(&crowd.tp.sched, src);
	}
}

/* All sources go on, none was lost. */
static void
end_crowd(uint32_t sources)
{
	uint32_t n = 0;

	crowd.tp.sched.stopped = 0;
	while (urn_sched_any(&crowd.tp.sched))
		n += urn_sched_next(&crowd.tp.sched) != NULL;
	assert_int_equal(n, sources);
	assert_int_equal(crowd.tp.sched.n, 0);
}

/* The least turns that each user of the crowd has had after so many pauses: one of two turns is of
 * those that waited, and they go on one after another. */
static void
assert_parts(uint32_t pauses, unsigned int most)
{
	for (int u = 0; u < CROWD; u++)
		assert_true(crowd.client[u].turns + 1 > pauses * ((most + 1) / 2) / CROWD);
}

/*
 * More users than have turns between two pauses, each second one with many sources: pause after
 * pause each has had its part, whatever the number of turns.
 */
static void
paused_users(void **state)
{
	static const unsigned int most[] = {1, 2, 7, SERVED, CROWD, 256};

	(void)state;
	for (size_t i = 0; i < sizeof(most) / sizeof(most[0]); i++) {
		open_crowd();
		for (uint32_t n = 1; n <= 200; n++) {
			pause_crowd();
			resume_crowd(most[i]);
			assert_parts(n, most[i]);
		}
		end_crowd(CROWD / 2 + CROWD / 2 * SOURCES);
	}
}

/* A source that is rung during each pause, as a program does that goes on posting, is put back
 * behind nobody: its user has its part, too. */
static void
rung_while_paused(void **state)
{
	(void)state;
	open_crowd();
	for (uint32_t n = 1; n <= 200; n++) {
		pause_crowd();
		urn_sched_add(&crowd.tp.sched, &crowd.client[0].source[0]);
		pause_crowd();
		resume_crowd(SERVED);
		assert_parts(n, SERVED);
	}
	end_crowd(CROWD / 2 + CROWD / 2 * SOURCES);
}

/* A client of a user with one source goes on as often as one with many, pause after pause. */
static void
paused_clients(void **state)
{
	const struct made *one = &crowd.client[0], *many = &crowd.second;

	(void)state;
	open_crowd();
	join(&crowd.second, &crowd.user[0], SOURCES);
	for (uint32_t n = 1; n <= 200; n++) {
		pause_crowd();
		resume_crowd(SERVED);
		assert_parts(n / 2, SERVED); /* two clients share the part of a user */
		assert_true(many->turns + 1 > n * SERVED / 4 / CROWD);
	}
	assert_in_range(one->turns + 2 * SERVED - many->turns, 0, 4 * SERVED);
	end_crowd(CROWD / 2 + (CROWD / 2 + 1) * SOURCES);
}

/* A client that ends leaves no place behind, whether its sources wait or were woken. */
static void
leaves_while_paused(void **state)
{
	(void)state;
	open_crowd();
	pause_crowd();
	for (int u = 0; u < CROWD; u++) {
		assert_true(crowd.tp.sched.waiting);
		for (int i = 0; i < (u % 2 ? SOURCES : 1); i++) {
			if (u % 4 < 2)
				urn_sched_add(&crowd.tp.sched, &crowd.client[u].source[i]);
			urn_sched_remove(&crowd.tp.sched, &crowd.client[u].source[i]);
		}
		urn_sched_leave(&crowd.tp.sched, &crowd.client[u].share);
		memset(&crowd.client[u], 0xa5, sizeof(crowd.client[u]));
		memset(&crowd.user[u], 0xa5, sizeof(crowd.user[u]));
	}
	assert_int_equal(crowd.tp.sched.waiting | crowd.tp.sched.placed, 0);
	crowd.tp.sched.stopped = 0;
	assert_false(urn_sched_any(&crowd.tp.sched));
}

/* Let a few sources have turns between two pauses, and then stop all. n: turns */
static void
between_pauses(int n)
{
	struct urn_source *src;

	crowd.tp.sched.stopped = 0;
	urn_sched_begin(&crowd.tp.sched);
	while (n) {
		src = urn_sched_next(&crowd.tp.sched);
		if (!src && crowd.tp.sched.over)
			urn_sched_begin(&crowd.tp.sched);
		if (!src)
			continue;
		(void)made_served(&crowd.tp.sched, src);
		n--;
	}
	crowd.tp.sched.stopped = 1;
	while (crowd.tp.sched.n) {
		src = urn_sched_next(&crowd.tp.sched);
		if (!src && crowd.tp.sched.over)
			urn_sched_begin(&crowd.tp.sched);
		if (!src)
			continue;
		((struct made *)src->share)->stops++;
		assert_true(urn_sched_stops(&crowd.tp, src, &made_tmpl));
	}
}

/* One with long frames has had no more bytes than a turn's for each turn of another. */
static void
assert_bounded(const struct made *greedy, const struct made *other)
{
	assert_true(greedy->bytes <=
		    (uint64_t)(other->turns + other->stops + 2) * URN_TURN_BYTES + LONG);
}

/* A user with long frames has no more bytes than a turn's for each turn of another, pause after
 * pause, whether it goes on first or last. */
static void
bytes_after_pauses(void **state)
{
	const struct made *greedy = &crowd.client[0], *other = &crowd.client[1];

	(void)state;
	for (int n = 1; n <= 7; n++) {
		open_crowd();
		crowd.client[0].long_turn = LONG;
		for (int i = 0; i < 500; i++) {
			between_pauses(n);
			assert_bounded(greedy, other);
		}
		assert_true(greedy->turns > 0);
	}
}

/* Nor has a client among those of its user. */
static void
bytes_of_paused_clients(void **state)
{
	const struct made *greedy = &crowd.client[0], *other = &crowd.second;

	(void)state;
	for (int n = 1; n <= 7; n++) {
		open_crowd();
		join(&crowd.second, &crowd.user[0], 1);
		crowd.client[0].long_turn = LONG;
		for (int i = 0; i < 2000; i++) {
			between_pauses(n);
			assert_bounded(greedy, other);
		}
		assert_true(greedy->turns > 0);
	}
}

/* A user that is alone pays nothing after a pause, and nobody waits for it later. */
static void
alone_after_pauses(void **state)
{
	struct urn_source *src;

	(void)state;
	open_crowd();
	for (int u = 1; u < CROWD; u++)
		for (int i = 0; i < SOURCES; i++)
			urn_sched_remove(&crowd.tp.sched, &crowd.client[u].source[i]);
	for (int i = 0; i < 100; i++) {
		crowd.tp.sched.stopped = 1;
		src = urn_sched_next(&crowd.tp.sched);
		assert_ptr_equal(src, &crowd.client[0].source[0]);
		assert_true(urn_sched_stops(&crowd.tp, src, &made_tmpl));
		crowd.tp.sched.stopped = 0;
		src = urn_sched_next(&crowd.tp.sched);
		assert_ptr_equal(src, &crowd.client[0].source[0]);
		urn_sched_add(&crowd.tp.sched, src);
		urn_sched_charge(&crowd.client[0].share, LONG);
	}
	assert_true(crowd.user[0].debt <= LONG);
}

/* Two sources of a client wait: each has one of the first two turns. With many of a client, those
 * that went on have each third turn. */
static void
of_one_client(void **state)
{
	uint32_t again = 0;

	(void)state;
	memset(&crowd, 0, sizeof(crowd));
	crowd.tp.priority_of = priority_of;
	join(&crowd.second, &crowd.user[0], SOURCES);
	pause_crowd();
	crowd.tp.sched.stopped = 0;
	urn_sched_begin(&crowd.tp.sched);
	for (int i = 0; i < SOURCES; i++) {
		struct urn_source *src = urn_sched_next(&crowd.tp.sched);

		assert_non_null(src);
		again += i < 2 && src != &crowd.second.source[i];
		urn_sched_add(&crowd.tp.sched, src);
	}
	assert_int_equal(again, 0);
	assert_in_range(crowd.tp.sched.waiting_n[0], SOURCES / 3 - 1, SOURCES / 3 + 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paused_users),
		cmocka_unit_test(rung_while_paused),
		cmocka_unit_test(paused_clients),
		cmocka_unit_test(leaves_while_paused),
		cmocka_unit_test(of_one_client),
		cmocka_unit_test(bytes_after_pauses),
		cmocka_unit_test(bytes_of_paused_clients),
		cmocka_unit_test(alone_after_pauses),
	};

	return cmocka_run_group_tests_name("sched_pause", tests, NULL, NULL);
}
