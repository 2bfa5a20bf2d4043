/* SPDX-License-Identifier: BSD-3-Clause */
/* Users of a shard: their clients, and their parts of the doorbells of a turn
 * (doc/inside/fairness.md). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

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
	ALIKE = OTHER + 3 * URN_SHARD_USERS, /* in the same bucket */
};

static struct urn_tp tp;
static struct urn_shard shard;
static struct urn_client_shard crowd[CROWD], one;
static struct urn_abi_db db[CROWD + 1];

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

static unsigned int
users(void)
{
	const struct urn_shard_user *u;
	unsigned int n = 0;

	for (unsigned int i = 0; i < URN_SHARD_USERS; i++)
		LIST_FOREACH(u, &shard.user[i], link)
			n++;
	return n;
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
		TEST(clients_join),
		TEST(cold_users),
		TEST(crowds_leave_room),
	};

	return cmocka_run_group_tests_name("users", tests, NULL, NULL);
}
