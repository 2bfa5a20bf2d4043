/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients of a shard come and go at the same cost, however many there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/engine.h"

#include <string.h>
#include <sys/mman.h>

enum { CLIENTS = 30, PAGE = 4096, QUIET_TURNS = 6000, MOST_HOT = 8 };

static struct urn_tp tp;
static struct urn_shard shard;
static struct urn_abi_db db[CLIENTS];
static uint8_t *page; /* a client each */

static struct urn_client_shard *
client(unsigned int i)
{
	return (void *)(page + (size_t)i * PAGE);
}

static int
setup(void **state)
{
	(void)state;
	memset(&tp, 0, sizeof(tp));
	memset(db, 0, sizeof(db));
	shard = (struct urn_shard){.tp = &tp};
	page = mmap(NULL, CLIENTS * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(page, MAP_FAILED);
	for (unsigned int i = 0; i < CLIENTS; i++) {
		client(i)->scan.db = &db[i];
		client(i)->scan.tops = 1;
		client(i)->scan.top = UINT32_MAX;
		urn_shard_add_client(&shard, client(i));
	}
	assert_int_equal(shard.hot_n, CLIENTS);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	munmap(page, CLIENTS * PAGE);
	return 0;
}

/* All lists say the same. returns: clients there are */
static unsigned int
sound(void)
{
	const struct urn_client_shard *prev = NULL;
	unsigned int n = 0, hot = 0;

	for (const struct urn_client_shard *c = shard.clients; c; c = c->next) {
		assert_ptr_equal(c->prev, prev);
		prev = c;
		n++;
	}
	prev = NULL;
	for (const struct urn_client_shard *c = shard.hot; c; c = c->hot_next) {
		assert_ptr_equal(c->hot_prev, prev);
		assert_true(c->hot);
		prev = c;
		hot++;
	}
	assert_int_equal(hot, shard.hot_n);
	assert_int_equal(shard.hot_n + shard.cold_n, n);
	return n;
}

/* Take one away, while only it and those beside it in a list can be looked at. */
static void
leave(unsigned int i)
{
	struct urn_client_shard *c = client(i);
	const struct urn_client_shard *near[] = {c, c->next, c->prev, c->hot ? c->hot_next : NULL,
						 c->hot ? c->hot_prev : NULL};

	for (unsigned int k = 0; k < CLIENTS; k++) {
		bool allowed = false;

		for (unsigned int n = 0; n < sizeof(near) / sizeof(near[0]); n++)
			allowed = allowed || near[n] == client(k);
		if (!allowed)
			assert_int_equal(mprotect(client(k), PAGE, PROT_NONE), 0);
	}
	urn_shard_remove_client(&shard, c);
	assert_int_equal(mprotect(page, CLIENTS * PAGE, PROT_READ | PROT_WRITE), 0);
	memset(c, 0xa5, sizeof(*c));
}

static void
leaves_without_a_walk(void **state)
{
	unsigned int left = CLIENTS - 3;

	(void)state;
	leave(15);
	leave(CLIENTS - 1); /* first of the list */
	leave(0);           /* last */
	assert_int_equal(sound(), left);
	for (int i = 0; i < QUIET_TURNS; i++)
		urn_shard_doorbells(&shard);
	assert_in_range(shard.hot_n, 1, MOST_HOT);
	assert_int_equal(sound(), left);
	/* In turn the one that is looked at next, a hot one, and any. */
	while (left) {
		const struct urn_client_shard *c = left % 3 == 0 ? shard.cold_at : left % 3 == 1 ? shard.hot : NULL;

		c = c ? c : shard.clients;
		leave((unsigned int)(((const uint8_t *)c - page) / PAGE));
		assert_int_equal(sound(), --left);
		urn_shard_doorbells(&shard);
	}
	assert_null(shard.clients);
	assert_null(shard.hot);
}

/* One that was quiet and rings is heard in its turn, and is hot again. */
static void
cold_ones_warm_up(void **state)
{
	(void)state;
	for (int i = 0; i < QUIET_TURNS; i++)
		urn_shard_doorbells(&shard);
	for (unsigned int i = 0; i < CLIENTS; i++) {
		uint64_t bad = tp.c.v[URN_C_BAD_DOORBELL];

		urn_abi_db_ring(&db[i], 0);
		for (unsigned int k = 0; k < CLIENTS && tp.c.v[URN_C_BAD_DOORBELL] == bad; k++)
			urn_shard_doorbells(&shard);
		assert_int_equal(tp.c.v[URN_C_BAD_DOORBELL], bad + 1); /* it has no QP */
		assert_true(client(i)->hot);
		assert_int_equal(sound(), CLIENTS);
	}
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(leaves_without_a_walk),
		TEST(cold_ones_warm_up),
	};

	return cmocka_run_group_tests_name("doorbells", tests, NULL, NULL);
}
