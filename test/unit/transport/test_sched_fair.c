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
#include "made.h"

#include <string.h>

enum {
	USERS = 3,
	CLIENTS = 100, /* clients of a user */
	TURNS = 20000,
	TRIES = 256,	 /* calls until a turn is found while all owe some */
	STEPS = 144,	 /* turns that are given up in one of the engine */
	USER_STEPS = 48, /* ... by the clients of a user */
	VISITS = 256,	 /* turns that one of the engine has */
	MOB = 7,	 /* users whose clients owe many turns */
};

static struct urn_sched sched;
static uint32_t visits; /* turns of sources, of all turns of the engine */
static struct urn_tp_user user[USERS];
static struct made client[USERS][CLIENTS];

/* More users than may pay in a turn of the engine. */
static struct {
	struct urn_tp_user user[MOB];
	struct made client[MOB][2];
} mob;

static int
setup(void **state)
{
	(void)state;
	memset(&sched, 0, sizeof(sched));
	memset(user, 0, sizeof(user));
	memset(client, 0, sizeof(client));
	memset(&mob, 0, sizeof(mob));
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

	for (int i = 0; i < TRIES && !src; i++) {
		if (sched.over || !(visits++ % VISITS))
			urn_sched_begin(&sched);
		src = urn_sched_next(&sched);
	}
	assert_non_null(src);
	return made_served(&sched, src);
}

/* A turn of the engine. */
static void
engine_turn(void)
{
	urn_sched_begin(&sched);
	for (int i = 0; i < VISITS && urn_sched_any(&sched); i++) {
		struct urn_source *src = urn_sched_next(&sched);

		if (src)
			(void)made_served(&sched, src);
		else if (sched.over)
			break;
	}
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

/* Nor has a user, whatever the number of its clients. The user may have less: its clients give up
 * 48 turns in one of the engine. */
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
		assert_true(bytes_of(0) <=
			    (uint64_t)(client[1][0].turns + 1) * URN_TURN_BYTES + LONG);
		if (i % 5000 == 4999)
			assert_true(bytes_of(0) >=
				    (uint64_t)client[1][0].turns * URN_TURN_BYTES / 4);
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

/* Bytes that the clients of a user owe, and the user with them. */
static uint64_t
owed(int u)
{
	uint64_t n = user[u].debt;

	for (int c = 0; c < CLIENTS; c++)
		n += client[u][c].share.debt;
	return n;
}

/* All clients of a user, with short frames, owe turns. */
static void
all_owe(int u, uint32_t turns)
{
	for (int c = 0; c < CLIENTS; c++) {
		add(&client[u][c], 1);
		client[u][c].share.debt = turns * URN_TURN_BYTES;
	}
}

/* The turns that users and clients give up in one of the engine are bounded, whoever owes some; and
 * all are given up in the end. */
static void
few_steps(void **state)
{
	uint64_t all, left;

	(void)state;
	for (int u = 0; u < USERS; u++) {
		all_owe(u, 16);
		user[u].debt = 16 * URN_TURN_BYTES;
	}
	left = owed(0) + owed(1) + owed(2);
	for (int n = 0; left; n++) {
		assert_true(n < 2 * USERS * (CLIENTS + 1) * 16 / USER_STEPS);
		engine_turn();
		all = left;
		left = owed(0) + owed(1) + owed(2);
		assert_true(left + (uint64_t)STEPS * URN_TURN_BYTES >= all);
		for (int u = 0; u < USERS; u++) /* nobody alone has used up all */
			assert_true(user[u].paid <= USER_STEPS);
	}
}

/*
 * Clients of a user that owe thousands of turns end no turn of the engine: their user loses its
 * own, and the others have theirs meanwhile, whether they owe some or not.
 */
static void
steps_of_one(void **state)
{
	uint64_t before = (uint64_t)CLIENTS * 16 * URN_TURN_BYTES;

	(void)state;
	all_owe(0, 16);
	add(&client[1][0], 1);
	for (int c = 0; c < 2; c++) { /* a user with long frames, within its part */
		client[2][c].long_turn = 2 * URN_TURN_BYTES;
		add(&client[2][c], 1);
	}
	for (uint32_t n = 1; n <= CLIENTS * 16 / USER_STEPS; n++) {
		engine_turn();
		assert_int_equal(owed(0), before - (uint64_t)n * USER_STEPS * URN_TURN_BYTES);
		assert_int_equal(turns_of(0), 0);
		assert_true(turns_of(1) >= n * VISITS / 3);
		assert_bounded(bytes_of(2), turns_of(1));
	}
	turns(TURNS);
	assert_in_range(turns_of(0), TURNS / 3, TURNS / 2);
}

/* Many users whose clients owe turns use up those of an engine's turn: another user whose clients
 * owe some pays in the next turn, and is not put off further. */
static void
steps_of_many(void **state)
{
	(void)state;
	for (int u = 0; u < MOB; u++) {
		for (int c = 0; c < 2; c++) {
			struct made *m = &mob.client[u][c];

			m->share.user = &mob.user[u];
			m->source[0].share = &m->share;
			/* more than anybody can owe, so that none is served */
			m->share.debt = UINT32_MAX / 2;
			add(m, 1);
		}
	}
	for (int c = 0; c < 2; c++) {
		add(&client[0][c], 1);
		client[0][c].share.debt = 16 * URN_TURN_BYTES;
	}
	for (int n = 0; n < 3; n++)
		engine_turn();
	assert_true(turns_of(0) > 0);
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
			assert_true(urn_sched_stops(&tp, &client[0][c].source[i], &made_tmpl));
	for (int round = 0; round < 50; round++) {
		tp.sched.stopped = 1;
		assert_true(urn_sched_stops(&tp, one, &made_tmpl));
		tp.sched.stopped = 0;
		for (int i = 0; i < 2; i++) {
			struct urn_source *src = urn_sched_next(&tp.sched);

			tp.sched.stopped = 1;
			if (src == one)
				tp.turn++;
			else
				assert_true(urn_sched_stops(&tp, src, &made_tmpl));
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
		TEST(users_first),	TEST(clients_then),
		TEST(without_user),	TEST(come_and_go),
		TEST(bytes_of_clients), TEST(bytes_of_users),
		TEST(bytes_of_many),	TEST(alone),
		TEST(short_turns),	TEST(few_steps),
		TEST(steps_of_one),	TEST(steps_of_many),
		TEST(stopped),
	};

	return cmocka_run_group_tests_name("sched_fair", tests, NULL, NULL);
}
