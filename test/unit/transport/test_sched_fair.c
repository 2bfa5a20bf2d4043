/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The schedule's fairness, with made-up sources: users first, then clients, then sources, bounded
 * in turns and in bytes (doc/inside/fairness.md).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rnd.h"
#include "transport/sched.h"

#include <string.h>

enum {
	USERS = 3,
	CLIENTS = 100, /* clients of a user */
	SOURCES = 64,  /* sources of a client */
	TURNS = 20000,
	LONG = 32 * (4096 + 60), /* bytes of the longest turn of a queue pair */
	SHORT = 16 * (64 + 28),	 /* bytes of a turn with short frames */
	TRIES = 256,		 /* calls until a turn is found while all owe some */
	STEPS = 64,		 /* turns that are given up in one of the engine */
	CROWD = 40,		 /* users at a port that is paused */
	SERVED = 16,		 /* sources that have turns between two pauses */
};

/* A made-up client, and what it got. */
struct made {
	struct urn_tp_share share; /* first */
	struct urn_source source[SOURCES];
	uint32_t turns;
	uint64_t bytes;
	uint32_t long_turn; /* bytes of its turns */
};

static struct urn_sched sched;
static struct urn_tp_user user[USERS];
static struct made client[USERS][CLIENTS];

static int
setup(void **state)
{
	(void)state;
	memset(&sched, 0, sizeof(sched));
	memset(user, 0, sizeof(user));
	memset(client, 0, sizeof(client));
	for (int u = 0; u < USERS; u++)
		for (int c = 0; c < CLIENTS; c++) {
			client[u][c].share.user = &user[u];
			client[u][c].long_turn = SHORT;
			for (int i = 0; i < SOURCES; i++)
				client[u][c].source[i].share = &client[u][c].share;
		}
	return 0;
}

static void
add(struct made *m, int sources)
{
	for (int i = 0; i < sources; i++)
		urn_sched_add(&sched, &m->source[i]);
}

/* Let a source have its turn. returns: its client */
static struct made *
turn(void)
{
	struct urn_source *src = NULL;
	struct made *m;

	for (int i = 0; i < TRIES && !src; i++)
		src = urn_sched_take(&sched);
	assert_non_null(src);
	m = (struct made *)src->share;
	urn_sched_add(&sched, src);
	urn_sched_charge(src->share, m->long_turn);
	m->turns++;
	m->bytes += m->long_turn;
	return m;
}

static void
turns(int n)
{
	while (n--)
		(void)turn();
}

/* Turns of all clients of a user. */
static uint32_t
turns_of(int u)
{
	uint32_t n = 0;

	for (int c = 0; c < CLIENTS; c++)
		n += client[u][c].turns;
	return n;
}

static uint64_t
bytes_of(int u)
{
	uint64_t n = 0;

	for (int c = 0; c < CLIENTS; c++)
		n += client[u][c].bytes;
	return n;
}

/* A user with one busy source gets every other turn beside a user with 100 clients and 6,400. */
static void
users_first(void **state)
{
	(void)state;
	for (int c = 0; c < CLIENTS; c++)
		add(&client[0][c], SOURCES);
	add(&client[1][0], 1);
	for (int i = 0; i < TURNS; i++) {
		turns(1);
		assert_in_range(turns_of(0) + 1 - turns_of(1), 0, 2);
	}
	for (int c = 0; c < CLIENTS; c++) /* the turns of a user go round its clients */
		assert_in_range(client[0][c].turns, TURNS / 2 / CLIENTS, TURNS / 2 / CLIENTS + 1);
}

/* The clients of a user have equal turns, whatever the number of their sources. */
static void
clients_then(void **state)
{
	(void)state;
	add(&client[0][0], SOURCES);
	add(&client[0][1], 1);
	add(&client[1][0], SOURCES);
	turns(TURNS);
	assert_in_range(client[0][0].turns, TURNS / 4 - 1, TURNS / 4 + 1);
	assert_in_range(client[0][1].turns, TURNS / 4 - 1, TURNS / 4 + 1);
	assert_in_range(client[1][0].turns, TURNS / 2 - 1, TURNS / 2 + 1);
}

/* A client without a user counts as a user. */
static void
without_user(void **state)
{
	(void)state;
	client[2][0].share.user = client[2][1].share.user = NULL;
	add(&client[0][0], 3);
	add(&client[0][1], 3);
	add(&client[2][0], 3);
	add(&client[2][1], 3);
	turns(TURNS);
	assert_in_range(turns_of(0), TURNS / 3 - 1, TURNS / 3 + 1);
	assert_in_range(client[2][0].turns, TURNS / 3 - 1, TURNS / 3 + 1);
	assert_in_range(client[2][1].turns, TURNS / 3 - 1, TURNS / 3 + 1);
}

/* Sources, and with them clients and users, come and go in any order: the round has exactly those
 * that have work. */
static void
come_and_go(void **state)
{
	uint64_t rng = 17;
	uint32_t in = 0;

	(void)state;
	for (int i = 0; i < 10 * TURNS; i++) {
		uint64_t r = urn_rnd_next(&rng);
		struct urn_source *src = &client[r % USERS][r / 4 % 5].source[r / 32 % 3];
		bool was = src->flags & URN_SOURCE_SCHED;

		if (r >> 40 & 1) {
			urn_sched_remove(&sched, src);
			in -= was;
		} else if (r >> 41 & 1) {
			urn_sched_add_first(&sched, src);
			in += !was;
		} else {
			urn_sched_add(&sched, src);
			in += !was;
		}
		assert_int_equal(sched.n, in);
		assert_true(!sched.head == !in);
		if ((r >> 44) % 64)
			continue;
		for (; in; in--)
			assert_non_null(urn_sched_take(&sched));
		assert_null(sched.head);
		for (int u = 0; u < USERS; u++)
			assert_null(user[u].head);
	}
}

/*
 * The bytes of one who has long turns are those of as many turns of URN_TURN_BYTES as the other
 * had, and one turn more at most.
 */
static void
assert_bounded(uint64_t bytes, uint32_t others_turns)
{
	assert_true(bytes <= (uint64_t)(others_turns + 1) * URN_TURN_BYTES + LONG);
	assert_true(bytes >= (uint64_t)others_turns * URN_TURN_BYTES - LONG - URN_TURN_BYTES);
}

/* A client with 4 KiB frames has no more bytes than a turn's for each turn of one with short
 * frames, of the same user. */
static void
bytes_of_clients(void **state)
{
	(void)state;
	client[0][0].long_turn = LONG;
	add(&client[0][0], SOURCES);
	add(&client[0][1], 1);
	for (int i = 0; i < TURNS; i++) {
		turns(1);
		if (i > 100)
			assert_bounded(client[0][0].bytes, client[0][1].turns);
	}
}

/* Nor has a user, whatever the number of its clients. */
static void
bytes_of_users(void **state)
{
	(void)state;
	for (int c = 0; c < CLIENTS; c++) {
		client[0][c].long_turn = LONG;
		add(&client[0][c], 2);
	}
	add(&client[1][0], 1);
	for (int i = 0; i < TURNS; i++) {
		turns(1);
		if (i > 100)
			assert_bounded(bytes_of(0), client[1][0].turns);
	}
}

/* All but one owe turns: each of them still has its bytes, and none more. */
static void
bytes_of_many(void **state)
{
	(void)state;
	for (int c = 1; c < CLIENTS; c++) {
		client[0][c].long_turn = LONG;
		add(&client[0][c], 2);
	}
	add(&client[0][0], 1);
	turns(TURNS);
	for (int c = 1; c < CLIENTS; c++)
		assert_bounded(client[0][c].bytes, client[0][0].turns);
}

/* One that is alone pays nothing, now or when others come. */
static void
alone(void **state)
{
	(void)state;
	client[0][0].long_turn = LONG;
	add(&client[0][0], 1);
	for (int i = 0; i < 1000; i++) {
		assert_ptr_equal(urn_sched_take(&sched), &client[0][0].source[0]);
		urn_sched_add(&sched, &client[0][0].source[0]);
		urn_sched_charge(&client[0][0].share, LONG);
	}
	add(&client[0][1], 1);
	add(&client[1][0], 1);
	turns(100);
	/* The client owes its last turn, and no more. */
	assert_true(client[0][0].bytes + LONG + LONG >=
		    (uint64_t)client[0][1].turns * URN_TURN_BYTES);
}

/* Short turns cost nothing, however many there are. */
static void
short_turns(void **state)
{
	(void)state;
	client[0][0].long_turn = URN_TURN_BYTES;
	add(&client[0][0], 1);
	add(&client[0][1], 1);
	turns(TURNS);
	assert_int_equal(client[0][0].turns, client[0][1].turns);
	assert_int_equal(client[0][0].share.debt, 0);
}

/* The turns that users and clients give up in one of the engine are bounded, whoever owes some. */
static void
few_steps(void **state)
{
	uint64_t owed = 0, left = 0;

	(void)state;
	for (int u = 0; u < USERS; u++)
		for (int c = 0; c < CLIENTS; c++) {
			add(&client[u][c], 1);
			client[u][c].share.debt = 16 * URN_TURN_BYTES;
			owed += client[u][c].share.debt;
		}
	for (int u = 0; u < USERS; u++) {
		user[u].debt = 16 * URN_TURN_BYTES;
		owed += user[u].debt;
	}
	for (int n = 1; n <= 20; n++) {
		struct urn_source *src;

		while ((src = urn_sched_take(&sched)))
			urn_sched_add(&sched, src);
		left = 0;
		for (int u = 0; u < USERS; u++) {
			left += user[u].debt;
			for (int c = 0; c < CLIENTS; c++)
				left += client[u][c].share.debt;
		}
		assert_int_equal(left, owed - (uint64_t)n * STEPS * URN_TURN_BYTES);
	}
}

/* ---- a priority that is paused, over and over */

/* Users with one client each: more than one time without a pause serves. */
static struct {
	struct urn_tp tp;
	struct urn_tp_user user[CROWD];
	struct made client[CROWD];
	struct made second; /* one more client of user 0 */
} crowd;

static const struct urn_tmpl tmpl = {.len = 42, .bytes = {[12] = 0x08, [14] = 0x45}};

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
	static uint8_t priority_of[64];

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
		assert_true(urn_sched_stops(&crowd.tp, src, &tmpl));
}

/* The pause ends, and a few sources have turns before the next one. */
static void
resume_crowd(unsigned int most)
{
	crowd.tp.sched.stopped = 0;
	for (unsigned int i = 0; i < most; i++) {
		struct urn_source *src = urn_sched_next(&crowd.tp.sched);

		assert_non_null(src);
		assert_false(urn_sched_stops(&crowd.tp, src, &tmpl));
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
	assert_int_equal(crowd.tp.sched.waiting, 0);
	crowd.tp.sched.stopped = 0;
	assert_false(urn_sched_any(&crowd.tp.sched));
}

/* Thousands of sources of a user wait because their priority is stopped: the one of another user is
 * among the first that have turns again, each time. */
static void
stopped(void **state)
{
	static uint8_t priority_of[64];
	static struct urn_tp tp;
	struct urn_source *one = &client[1][0].source[0];

	(void)state;
	memset(&tp, 0, sizeof(tp));
	tp.priority_of = priority_of;
	tp.sched.stopped = 1;
	for (int c = 0; c < CLIENTS; c++)
		for (int i = 0; i < SOURCES; i++)
			assert_true(urn_sched_stops(&tp, &client[0][c].source[i], &tmpl));
	for (int round = 0; round < 50; round++) {
		tp.sched.stopped = 1;
		assert_true(urn_sched_stops(&tp, one, &tmpl));
		tp.sched.stopped = 0;
		for (int i = 0; i < 2; i++) {
			struct urn_source *src = urn_sched_next(&tp.sched);

			tp.sched.stopped = 1;
			if (src == one)
				tp.turn++;
			else
				assert_true(urn_sched_stops(&tp, src, &tmpl));
			tp.sched.stopped = 0;
		}
	}
	assert_int_equal(tp.turn, 50);
	for (int n = CLIENTS * SOURCES; n--;)
		assert_non_null(urn_sched_next(&tp.sched));
	assert_false(urn_sched_any(&tp.sched));
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, setup)
	const struct CMUnitTest tests[] = {
		TEST(users_first),
		TEST(clients_then),
		TEST(without_user),
		TEST(come_and_go),
		TEST(bytes_of_clients),
		TEST(bytes_of_users),
		TEST(bytes_of_many),
		TEST(alone),
		TEST(short_turns),
		TEST(few_steps),
		TEST(stopped),
		TEST(paused_users),
		TEST(rung_while_paused),
		TEST(paused_clients),
		TEST(leaves_while_paused),
	};

	return cmocka_run_group_tests_name("sched_fair", tests, NULL, NULL);
}
