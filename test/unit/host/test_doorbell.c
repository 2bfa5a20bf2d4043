/* SPDX-License-Identifier: BSD-3-Clause */
/* Doorbells: ringer and scan, in one thread and in several. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "host/doorbell.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

static struct urn_abi_db *
db_new(struct urn_db_scan *s, uint32_t ids)
{
	struct urn_abi_db *db = aligned_alloc(64, sizeof(*db));

	assert_non_null(db);
	memset((void *)db, 0, sizeof(*db));
	*s = (struct urn_db_scan){.db = db, .tops = (ids - 1) / 4096 + 1, .top = UINT32_MAX};
	return db;
}

/* Each doorbell that rang is taken, once, in whatever bursts; no other is. */
static void
test_all_ids(void **state)
{
	static const uint32_t edge[] = {0,    1,    63,    64,     65,     4095,  4096,
					4097, 8191, 65535, 131072, 200000, 262080, 262143};
	enum { EDGES = sizeof(edge) / sizeof(edge[0]) };
	struct urn_db_scan s;
	struct urn_abi_db *db = db_new(&s, URN_ABI_MAX_QP_ENGINE);
	uint32_t id[EDGES];

	(void)state;
	assert_false(urn_db_any(&s));
	assert_int_equal(urn_db_take(&s, id, EDGES), 0);
	for (unsigned int burst = 1; burst <= EDGES; burst++) {
		unsigned int got = 0;

		for (unsigned int i = 0; i < EDGES; i++) {
			assert_int_equal(urn_abi_db_ring(db, edge[i]), 0);
			assert_int_equal(urn_abi_db_ring(db, edge[i]), 0);
		}
		while (urn_db_any(&s)) {
			unsigned int n = urn_db_take(&s, id, burst);

			for (unsigned int i = 0; i < n; i++)
				assert_int_equal(id[i], edge[got++]);
		}
		assert_int_equal(got, EDGES);
		assert_int_equal(urn_db_take(&s, id, EDGES), 0);
	}
	free(db);
}

/*
 * A client sets bits of all its summary words, with nothing behind: each call looks at a few
 * words, and a doorbell that rings meanwhile is found, wherever the scan stands.
 */
static void
test_flood(void **state)
{
	static const uint32_t rings[] = {0, 4095, 131072, 262143};
	struct urn_db_scan s;
	struct urn_abi_db *db = db_new(&s, URN_ABI_MAX_QP_ENGINE);
	uint32_t id[32];

	(void)state;
	for (unsigned int r = 0; r < sizeof(rings) / sizeof(rings[0]); r++) {
		unsigned int calls = 0, got = 0;

		for (unsigned int t = 0; t < URN_ABI_DB_TOPS; t++)
			atomic_store(&db->top[t], UINT64_MAX);
		assert_int_equal(urn_abi_db_ring(db, rings[r]), 0);
		for (; urn_db_any(&s); calls++) {
			unsigned int looked = 0;
			unsigned int before = (unsigned int)__builtin_popcountll(s.left_top);

			for (unsigned int t = 0; t < URN_ABI_DB_TOPS; t++)
				before += (unsigned int)__builtin_popcountll(atomic_load(&db->top[t]));
			got += urn_db_take(&s, id, 32);
			if (got == 1)
				assert_int_equal(id[0], rings[r]);
			looked = before - (unsigned int)__builtin_popcountll(s.left_top);
			for (unsigned int t = 0; t < URN_ABI_DB_TOPS; t++)
				looked -= (unsigned int)__builtin_popcountll(atomic_load(&db->top[t]));
			assert_in_range(looked, 0, 64);
		}
		assert_int_equal(got, 1);
		assert_in_range(calls, 64, 80);
		assert_int_equal(urn_db_take(&s, id, 32), 0);
	}
	free(db);
}

/* A doorbell that rings in the middle of a scan is not lost, before or behind the scan's position. */
static void
test_middle(void **state)
{
	struct urn_db_scan s;
	struct urn_abi_db *db = db_new(&s, URN_ABI_MAX_QP_ENGINE);
	uint32_t id[4];

	(void)state;
	for (uint32_t i = 100; i < 104; i++)
		urn_abi_db_ring(db, i);
	assert_int_equal(urn_db_take(&s, id, 2), 2);
	urn_abi_db_ring(db, 5);   /* a word that the scan has passed */
	urn_abi_db_ring(db, 100); /* a bit taken already */
	urn_abi_db_ring(db, 250000);
	assert_true(urn_db_any(&s));
	assert_int_equal(urn_db_take(&s, id, 2), 2);
	assert_int_equal(id[0], 102);
	assert_int_equal(id[1], 103);
	unsigned int seen = 0;

	while (urn_db_any(&s))
		if (urn_db_take(&s, id, 1))
			seen |= id[0] == 5 ? 1u : id[0] == 100 ? 2u : id[0] == 250000 ? 4u : 8u;
	assert_int_equal(seen, 7);
	free(db);
}

/* The ringer learns that the dataplane sleeps. */
static void
test_asleep(void **state)
{
	struct urn_db_scan s;
	struct urn_abi_db *db = db_new(&s, 64);

	(void)state;
	atomic_store(&db->asleep, 1);
	assert_int_equal(urn_abi_db_ring(db, 3), 1);
	assert_int_equal(urn_abi_db_ring(db, 3), 1); /* although the doorbell rings already */
	atomic_store(&db->asleep, 0);
	assert_int_equal(urn_abi_db_ring(db, 3), 0);
	free(db);
}

/* ---- several ringers, who share words */

enum { RINGERS = 3, IDS = 9000, ROUNDS = 200000 };

static struct {
	struct urn_abi_db *db;
	_Atomic uint32_t posted[IDS]; /* like a queue's prod */
	_Atomic uint32_t running;
} race;

static void *
ringer(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;

	for (int i = 0; i < ROUNDS; i++) {
		uint32_t id = (uint32_t)rand_r(&seed) % IDS;

		if (i & 1)
			id %= 130;
		atomic_fetch_add_explicit(&race.posted[id], 1, memory_order_release);
		urn_abi_db_ring(race.db, id);
	}
	atomic_fetch_sub(&race.running, 1);
	return NULL;
}

/* Every post is seen by a take that follows: in the end no post is left behind. */
static void
test_no_lost_ring(void **state)
{
	static uint32_t seen[IDS];
	struct urn_db_scan s;
	pthread_t t[RINGERS];
	uint32_t id[32];
	bool last;

	(void)state;
	race.db = db_new(&s, IDS);
	race.running = RINGERS;
	for (uintptr_t i = 0; i < RINGERS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, ringer, (void *)(i + 1)), 0);
	do {
		last = atomic_load(&race.running) == 0;
		while (urn_db_any(&s)) {
			unsigned int n = urn_db_take(&s, id, 32);

			for (unsigned int i = 0; i < n; i++) {
				assert_true(id[i] < IDS);
				seen[id[i]] = atomic_load_explicit(&race.posted[id[i]],
								   memory_order_acquire);
			}
		}
		sched_yield();
	} while (!last);
	for (int i = 0; i < RINGERS; i++)
		pthread_join(t[i], NULL);
	for (uint32_t i = 0; i < IDS; i++)
		assert_int_equal(seen[i], atomic_load(&race.posted[i]));
	free(race.db);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_ids), cmocka_unit_test(test_middle), cmocka_unit_test(test_flood),
		cmocka_unit_test(test_asleep), cmocka_unit_test(test_no_lost_ring),
	};

	return cmocka_run_group_tests_name("doorbell", tests, NULL, NULL);
}
