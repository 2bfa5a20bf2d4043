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

/* Thousands of sources of a user wait because their priority is stopped: the one of another user is
 * among the first that have turns again, each time. */
static void
stopped(void **state)
{
	static uint8_t priority_of[64];
	static struct urn_tp tp;
	const struct urn_tmpl t = {.len = 42, .bytes = {[12] = 0x08, [14] = 0x45}};
	struct urn_source *one = &client[1][0].source[0];

	(void)state;
	memset(&tp, 0, sizeof(tp));
	tp.priority_of = priority_of;
	tp.sched.stopped = 1;
	for (int c = 0; c < CLIENTS; c++)
		for (int i = 0; i < SOURCES; i++)
			assert_true(urn_sched_stops(&tp, &client[0][c].source[i], &t));
	for (int round = 0; round < 50; round++) {
		assert_true(urn_sched_stops(&tp, one, &t));
		urn_sched_go(&tp.sched, 0, 2);
		assert_int_equal(tp.sched.n, 2);
		for (int i = 0; i < 2; i++) {
			struct urn_source *src = urn_sched_take(&tp.sched);

			if (src == one)
				tp.turn++;
			else
				assert_true(urn_sched_stops(&tp, src, &t));
		}
	}
	assert_int_equal(tp.turn, 50);
	for (int p = CLIENTS * SOURCES; p--;)
		urn_sched_go(&tp.sched, 0, 1);
	assert_int_equal(tp.sched.n, CLIENTS * SOURCES);
	assert_int_equal(user[0].stopped[0] + user[1].stopped[0] + tp.sched.waiting, 0);
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
		TEST(short_turns),	TEST(stopped),
	};

	return cmocka_run_group_tests_name("sched_fair", tests, NULL, NULL);
}
