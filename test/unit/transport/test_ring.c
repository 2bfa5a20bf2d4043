/* SPDX-License-Identifier: BSD-3-Clause */
/* transport/ring.c: packets by PSN, in any order of arrival. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "transport/ring.h"

#include <string.h>

enum { N = 40 };
#define BASE 0xfffff0u /* the PSN wraps soon */

/* An mbuf with its private area; no other field is used. */
static struct {
	struct rte_mbuf m;
	struct urn_pkt pkt;
} pool[N];

static struct rte_mbuf *
packet(uint32_t n)
{
	urn_pkt(&pool[n].m)->psn = urn_psn_add(BASE, n);
	return &pool[n].m;
}

static void
in_any_order(void **state)
{
	uint64_t x = 99;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		bool in[N] = {false};
		struct rte_mbuf *last = NULL;
		uint32_t at = 0;

		assert_null(urn_ring_first(last));
		for (int i = 0; i < 60; i++) {
			uint32_t n;

			x = x * 6364136223846793005ull + 1442695040888963407ull;
			n = (uint32_t)(x >> 33) % N;
			if (in[n])
				continue;
			assert_true(urn_ring_insert(&last, packet(n)));
			in[n] = true;
		}
		for (struct rte_mbuf *m = urn_ring_first(last); m; m = urn_ring_next(last, m)) {
			while (!in[at])
				at++;
			assert_ptr_equal(m, packet(at));
			at++;
		}
		for (at = 0; last; at++)
			if (in[at])
				assert_ptr_equal(urn_ring_pop(&last), packet(at));
		for (; at < N; at++)
			assert_false(in[at]);
	}
}

/* A second packet with a PSN that is there is not taken. */
static void
each_once(void **state)
{
	static struct {
		struct rte_mbuf m;
		struct urn_pkt pkt;
	} twin;
	struct rte_mbuf *last = NULL;

	(void)state;
	for (uint32_t n = 10; n < 20; n += 3)
		assert_true(urn_ring_insert(&last, packet(n)));
	for (uint32_t n = 10; n < 20; n += 3) {
		urn_pkt(&twin.m)->psn = urn_psn_add(BASE, n);
		assert_false(urn_ring_insert(&last, &twin.m));
	}
	assert_ptr_equal(last, packet(19));
	assert_ptr_equal(urn_ring_first(last), packet(10));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_any_order),
		cmocka_unit_test(each_once),
	};

	return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
