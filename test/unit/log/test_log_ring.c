/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring of errors (log/ring.h): the engine never waits, and each error is read, or counted once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "log/ring.h"

#include <pthread.h>
#include <string.h>

static struct urn_log_ring ring;

static void
put(uint32_t n)
{
	struct urn_log_failure *f = urn_log_ring_place(&ring);

	if (!f)
		return;
	*f = (struct urn_log_failure){.f = {.qpn = n, .psn = ~n}};
	urn_log_ring_put(&ring);
}

/* A full ring keeps the oldest and counts the others. */
static void
full(void **state)
{
	struct urn_log_failure f;

	(void)state;
	memset(&ring, 0, sizeof(ring));
	for (uint32_t i = 0; i < URN_LOG_RING + 10; i++)
		put(i);
	for (uint32_t i = 0; i < URN_LOG_RING; i++) {
		assert_true(urn_log_ring_take(&ring, &f));
		assert_int_equal(f.f.qpn, i);
	}
	assert_false(urn_log_ring_take(&ring, &f));
	assert_int_equal(urn_log_ring_take_lost(&ring), 10);
	assert_int_equal(urn_log_ring_take_lost(&ring), 0);
	put(77);
	assert_true(urn_log_ring_take(&ring, &f));
	assert_int_equal(f.f.qpn, 77);
}

/* The engine learns that there is no room before it writes anything, and what the reader has not
 * taken stays. A place that is not put is none. */
static void
room_first(void **state)
{
	struct urn_log_failure f;

	(void)state;
	memset(&ring, 0, sizeof(ring));
	assert_non_null(urn_log_ring_place(&ring));
	assert_false(urn_log_ring_take(&ring, &f));
	for (uint32_t i = 0; i < URN_LOG_RING; i++)
		put(i);
	assert_null(urn_log_ring_place(&ring));
	assert_int_equal(urn_log_ring_take_lost(&ring), 1);
	assert_true(urn_log_ring_take(&ring, &f));
	assert_int_equal(f.f.qpn, 0);
	assert_ptr_equal(urn_log_ring_place(&ring), &ring.record[0]);
}

/* Further errors are counted for each client; with too many clients, for all. */
static void
floods(void **state)
{
	uint32_t client, n, sum = 0;

	(void)state;
	memset(&ring, 0, sizeof(ring));
	for (uint32_t i = 0; i < 3 * URN_LOG_FLOODS; i++)
		for (uint32_t k = 0; k <= i; k++)
			urn_log_ring_more(&ring, i + 1);
	for (unsigned int i = 0; i < URN_LOG_FLOODS; i++) {
		n = urn_log_ring_take_more(&ring, i, &client);
		assert_int_equal(n, client);
		sum += n;
	}
	sum += urn_log_ring_take_lost(&ring);
	assert_int_equal(sum, 3 * URN_LOG_FLOODS * (3 * URN_LOG_FLOODS + 1) / 2);
	assert_int_equal(urn_log_ring_take_more(&ring, 0, &client), 0);
}

enum { MANY = 200000 };

static void *
engine(void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < MANY; i++) {
		put(i);
		urn_log_ring_more(&ring, 1 + i % 40);
	}
	return NULL;
}

/* An engine and a reader at a time: records are whole and in their order, and all are accounted
 * for. */
static void
both(void **state)
{
	uint64_t got = 0, more = 0, lost = 0;
	struct urn_log_failure f;
	uint32_t next = 0, client;
	bool more_to_come = true;
	pthread_t thread;

	(void)state;
	memset(&ring, 0, sizeof(ring));
	assert_int_equal(pthread_create(&thread, NULL, engine, NULL), 0);
	while (more_to_come) {
		more_to_come = pthread_tryjoin_np(thread, NULL) != 0;
		for (; urn_log_ring_take(&ring, &f); got++) {
			assert_true(f.f.qpn >= next);
			assert_int_equal(f.f.psn, ~f.f.qpn);
			next = f.f.qpn + 1;
		}
		for (unsigned int i = 0; i < URN_LOG_FLOODS; i++)
			more += urn_log_ring_take_more(&ring, i, &client);
		lost += urn_log_ring_take_lost(&ring);
	}
	assert_int_equal(got + more + lost, 2 * MANY);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full),
		cmocka_unit_test(room_first),
		cmocka_unit_test(floods),
		cmocka_unit_test(both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
