/* SPDX-License-Identifier: BSD-3-Clause */
/* Users of a shard: their clients, and their parts of the doorbells of a turn
 * (doc/inside/fairness.md). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rnd.h"
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>

enum {
	CROWD = 400,
	EACH = 3000, /* doorbells that a client rings */
	ALL = 1024,  /* doorbells that a turn takes */
	MOST = 32,   /* ... of one client */
	ROOT = 0,
	OTHER = 1000,
	ALIKE = OTHER + 3 * 64, /* six bits in common */
	MANY = 300,		/* users of the test of the tree */
	BITS = 32,
};

static struct urn_tp tp;
static struct urn_shard shard;
static struct urn_client_shard crowd[CROWD], one;
static struct urn_abi_db db[CROWD + 1];
static struct urn_client_shard pair[MANY][2];
static struct urn_abi_db pair_db[MANY][2];

/* Let a client attach as a process of a user. */
static void
attach(struct urn_client_shard *c, struct urn_abi_db *page, uid_t uid)
{
	memset(c, 0, sizeof(*c));
	memset(page, 0, sizeof(*page));
	c->shard = &shard;
	c->scan.db = page;
	c->scan.tops = 1;
	c->scan.top = UINT32_MAX;
	free(urn_shard_join(&shard, c, uid, calloc(1, sizeof(struct urn_shard_user))));
	urn_shard_add_client(&shard, c);
}

static int
setup(void **state)
{
	(void)state;
	memset(&tp, 0, sizeof(tp));
	memset(&shard, 0, sizeof(shard));
	shard.tp = &tp;
	urn_shard_init_lists(&shard);
	return 0;
}

static void
ring(struct urn_abi_db *page)
{
	for (uint32_t i = 0; i < EACH; i++)
		(void)urn_abi_db_ring(page, i);
}

/* Doorbells that a client rang and no turn has taken. */
static unsigned int
rung(struct urn_client_shard *c)
{
	uint32_t id[EACH];

	return urn_db_take(&c->scan, id, EACH);
}

/* Users of the tree. *depth: users on the longest way down */
static unsigned int
count(unsigned int *depth)
{
	struct {
		const struct urn_shard_user *u;
		unsigned int depth;
	} rest[CROWD + 1], at;
	unsigned int n = 0, users = 0;

	*depth = 0;
	rest[n++] = (typeof(at)){shard.users, 1};
	while (n) {
		at = rest[--n];
		if (!at.u)
			continue;
		users++;
		*depth = RTE_MAX(*depth, at.depth);
		assert_true(n + 2 <= CROWD + 1);
		for (unsigned int i = 0; i < 2; i++)
			rest[n++] = (typeof(at)){at.u->side[i], at.depth + 1};
	}
	return users;
}

static unsigned int
users(void)
{
	unsigned int depth;

	return count(&depth);
}

/* Clients of one user share its entry, which goes with the last of them. */
static void
clients_join(void **state)
{
	(void)state;
	attach(&crowd[0], &db[0], OTHER);
	attach(&crowd[1], &db[1], ALIKE);
	attach(&crowd[2], &db[2], OTHER);
	attach(&crowd[3], &db[3], ROOT);
	assert_ptr_equal(crowd[0].share.user, crowd[2].share.user);
	assert_ptr_not_equal(crowd[0].share.user, crowd[1].share.user);
	assert_int_equal(users(), 3);
	assert_int_equal(shard.hot_users, 3);
	urn_shard_remove_client(&shard, &crowd[0]);
	assert_int_equal(users(), 3);
	assert_int_equal(shard.hot_users, 3);
	urn_shard_remove_client(&shard, &crowd[2]);
	assert_int_equal(users(), 2);
	assert_int_equal(shard.hot_users, 2);
	urn_shard_remove_client(&shard, &crowd[1]);
	urn_shard_remove_client(&shard, &crowd[3]);
	assert_int_equal(users(), 0);
	assert_int_equal(shard.hot_users, 0);
}

/* Users whose numbers have all bits but one in common, which makes the longest ways: to attach
 * looks at 33 users at most. */
static void
long_ways(void **state)
{
	unsigned int depth;

	(void)state;
	attach(&crowd[0], &db[0], ROOT);
	for (unsigned int i = 1; i <= BITS; i++)
		attach(&crowd[i], &db[i], 1u << (BITS - i));
	assert_int_equal(count(&depth), BITS + 1);
	assert_in_range(depth, BITS / 2, BITS + 1);
	attach(&one, &db[CROWD], 1);
	assert_ptr_equal(one.share.user, crowd[BITS].share.user);
	assert_int_equal(count(&depth), BITS + 1);
	urn_shard_remove_client(&shard, &one);
	for (unsigned int i = 0; i <= BITS; i++)
		urn_shard_remove_client(&shard, &crowd[i]);
	assert_null(shard.users);
}

/* Users come and go in any order: each client has the entry of its own user, as long as there is
 * one. */
static void
come_and_go(void **state)
{
	static struct urn_client_shard *of[MANY][2];
	unsigned int there = 0, depth;
	uint64_t rng = 7;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		uint64_t r = urn_rnd_next(&rng);
		uid_t u = r % MANY, k = r >> 32 & 1, uid = u * 0x01010101u;

		if (of[u][k]) {
			urn_shard_remove_client(&shard, of[u][k]);
			of[u][k] = NULL;
			there -= !of[u][!k];
		} else {
			of[u][k] = &pair[u][k];
			attach(of[u][k], &pair_db[u][k], uid);
			there += !of[u][!k];
		}
		if (of[u][0] && of[u][1])
			assert_ptr_equal(of[u][0]->share.user, of[u][1]->share.user);
		for (int j = 0; j < 2; j++)
			if (of[u][j])
				assert_int_equal(of[u][j]->user->uid, uid);
		assert_int_equal(count(&depth), there);
		assert_true(depth <= BITS + 1);
	}
	for (unsigned int u = 0; u < MANY; u++)
		for (int k = 0; k < 2; k++)
			if (of[u][k])
				urn_shard_remove_client(&shard, of[u][k]);
	assert_null(shard.users);
}

/* A user whose clients are all cold counts among the users with hot ones no more. */
static void
cold_users(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < CROWD; i++)
		attach(&crowd[i], &db[i], i < CROWD / 2 ? OTHER : ALIKE);
	assert_int_equal(shard.hot_users, 2);
	for (int i = 0; i < 10000; i++)
		urn_shard_doorbells(&shard);
	assert_in_range(shard.hot_n, 1, 8);
	assert_in_range(shard.hot_users, 1, 2);
	for (unsigned int i = 0; i < CROWD; i++) {
		struct urn_shard_user *u = crowd[i].user;

		(void)urn_abi_db_ring(&db[i], 1);
		urn_client_shard_heard(&crowd[i]);
		assert_true(crowd[i].hot && u->hot);
	}
	assert_int_equal(shard.hot_n, CROWD);
	assert_int_equal(shard.hot_users, 2);
	for (unsigned int i = 0; i < CROWD; i++)
		urn_shard_remove_client(&shard, &crowd[i]);
	assert_int_equal(users(), 0);
}

/* 400 clients of a user ring all they have: a turn takes as many doorbells of another user's one
 * client as if it were alone, and some of each of the 400. */
static void
crowds_leave_room(void **state)
{
	unsigned int left = EACH, n;

	(void)state;
	for (unsigned int i = 0; i < CROWD; i++) {
		attach(&crowd[i], &db[i], OTHER);
		ring(&db[i]);
	}
	attach(&one, &db[CROWD], ALIKE);
	ring(&db[CROWD]);
	for (int i = 0; i < 10; i++) {
		n = urn_shard_doorbells(&shard);
		assert_in_range(n, MOST + CROWD, ALL);
		left -= MOST;
	}
	assert_int_equal(rung(&one), left);
	for (unsigned int i = 0; i < CROWD; i++)
		assert_in_range(rung(&crowd[i]), EACH - 10 * MOST, EACH - 10);
	for (unsigned int i = 0; i < CROWD; i++)
		urn_shard_remove_client(&shard, &crowd[i]);
	urn_shard_remove_client(&shard, &one);
	assert_int_equal(users(), 0);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, setup)
	const struct CMUnitTest tests[] = {
		TEST(clients_join), TEST(long_ways),	     TEST(come_and_go),
		TEST(cold_users),   TEST(crowds_leave_room),
	};

	return cmocka_run_group_tests_name("users", tests, NULL, NULL);
}
