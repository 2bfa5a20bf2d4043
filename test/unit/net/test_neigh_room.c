/* SPDX-License-Identifier: BSD-3-Clause */
/* Configured neighbours, floods, a full table, and threads that share it. */
#include "neigh_bench.h"

#include <errno.h>
#include <pthread.h>

static void
test_static(void **state)
{
	enum urn_counter c;
	uint8_t gid[16];

	(void)state;
	assert_int_equal(urn_neigh_add_static(nb, peer_v4, peer_mac), 0);
	expect_lookup(peer_v4, URN_NEIGH_OK, peer_mac);
	input(l3_arp(buf, 1, peer_mac, peer_v4, us_v4), SECOND, &c);
	assert_int_equal(c, URN_C_ARP_RX);
	input(l3_arp(buf, 1, other_mac, peer_v4, us_v4), SECOND, &c);
	assert_int_equal(c, URN_C_NEIGH_CLAIM);
	input(l3_arp(buf, 2, other_mac, peer_v4, us_v4), SECOND, &c);
	assert_int_equal(c, URN_C_NEIGH_CLAIM);
	expect_lookup(peer_v4, URN_NEIGH_OK, peer_mac);
	poll_all(1000 * SECOND, 64);
	expect_lookup(peer_v4, URN_NEIGH_OK, peer_mac); /* is never doubted */
	assert_int_equal(poll_all(1000 * SECOND, 64), 0);
	assert_int_equal(urn_neigh_add_static(nb, peer_v4, other_mac), 0);
	expect_lookup(peer_v4, URN_NEIGH_OK, other_mac);

	/* A neighbour being asked for becomes static: no more requests. */
	expect_lookup(peer_ll, URN_NEIGH_UNKNOWN, NULL);
	assert_int_equal(urn_neigh_add_static(nb, peer_ll, peer_mac), 0);
	assert_int_equal(poll_all(1001 * SECOND, 64), 0);
	input(l3_advert(buf, us_ll, peer_ll, other_mac, 0x60), 1001 * SECOND, &c);
	assert_int_equal(c, URN_C_NEIGH_CLAIM);
	expect_lookup(peer_ll, URN_NEIGH_OK, peer_mac);

	assert_int_equal(urn_neigh_add_static(nb, us_v4, peer_mac), EINVAL);
	assert_int_equal(urn_neigh_add_static(nb, us_group, peer_mac), EINVAL);
	assert_int_equal(urn_neigh_add_static(nb, peer_global, no_addr), EINVAL);
	for (uint32_t i = 2; i < URN_NEIGH_STATIC; i++) {
		l3_nth_v4(gid, i);
		assert_int_equal(urn_neigh_add_static(nb, gid, peer_mac), 0);
	}
	assert_int_equal(urn_neigh_add_static(nb, peer_global, peer_mac), ENOSPC);
	assert_int_equal(urn_neigh_add_static(nb, peer_v4, peer_mac), 0); /* replaces */
}

/* A flood of requests from random addresses neither grows the table nor wakes anybody. */
static void
test_arp_flood(void **state)
{
	uint8_t gid[16];
	uint32_t gen;

	(void)state;
	make_reachable(peer_v4, peer_mac, SECOND);
	assert_int_equal(urn_neigh_add_static(nb, peer_global, other_mac), 0);
	expect_lookup(peer_ll, URN_NEIGH_UNKNOWN, NULL);
	gen = urn_neigh_generation(nb);
	for (uint32_t i = 0; i < 20000; i++) {
		l3_nth_v4(gid, i);
		assert_int_equal(input(l3_arp(buf, 1, other_mac, gid, us_v4), SECOND + i, NULL),
				 1);
	}
	for (uint32_t i = 0; i < 5000; i++) {
		l3_nth_v6(gid, i);
		input(l3_solicit(buf, gid, us_group, us_ll, other_mac), SECOND + i, NULL);
	}
	assert_int_equal(urn_neigh_count(nb), URN_NEIGH_LEARNT + 3);
	assert_int_equal(urn_neigh_generation(nb), gen);
	assert_int_equal(test_neigh_state(nb, gid, NULL), URN_NEIGH_REACHABLE); /* the newest */
	assert_int_equal(test_neigh_state(nb, peer_ll, NULL), URN_NEIGH_INCOMPLETE);
	expect_lookup(peer_v4, URN_NEIGH_OK, peer_mac);
	expect_lookup(peer_global, URN_NEIGH_OK, other_mac);
}

/* Nor do many look-ups of absent neighbours: reachable entries outlast the others. */
static void
test_lookup_flood(void **state)
{
	unsigned int sent = 0;
	uint8_t gid[16];
	uint64_t t;

	(void)state;
	make_reachable(peer_v4, peer_mac, SECOND);
	assert_int_equal(urn_neigh_add_static(nb, peer_global, other_mac), 0);
	for (uint32_t i = 0; i < 10000; i++) {
		l3_nth_v4(gid, i);
		expect_lookup(gid, URN_NEIGH_UNKNOWN, NULL);
	}
	assert_int_equal(urn_neigh_count(nb), URN_NEIGH_ENTRIES);
	/* All are asked for, never more than were wanted at once, and all fail. */
	for (t = 2 * SECOND; t < 12 * SECOND; t += 10 * MS)
		sent += poll_all(t, 32);
	assert_int_equal(sent, (URN_NEIGH_ENTRIES - 2) * URN_NEIGH_TRIES);
	for (; t < 16 * SECOND; t += 10 * MS)
		assert_int_equal(poll_all(t, 32), 0);
	assert_int_equal(test_neigh_state(nb, gid, NULL), URN_NEIGH_FAILED);
	for (uint32_t i = 20000; i < 30000; i++) { /* those make room */
		l3_nth_v4(gid, i);
		expect_lookup(gid, URN_NEIGH_UNKNOWN, NULL);
	}
	expect_lookup(peer_v4, URN_NEIGH_OK, peer_mac);
	expect_lookup(peer_global, URN_NEIGH_OK, other_mac);
	assert_int_equal(urn_neigh_count(nb), URN_NEIGH_ENTRIES);
}

/* A table full of reachable neighbours drops the one unused for longest. */
static void
test_oldest_goes(void **state)
{
	uint8_t gid[16];

	(void)state;
	for (uint32_t i = 0; i < URN_NEIGH_ENTRIES; i++) {
		l3_nth_v4(gid, i);
		make_reachable(gid, peer_mac, SECOND);
	}
	l3_nth_v4(gid, 0);
	expect_lookup(gid, URN_NEIGH_OK, peer_mac); /* used again: 1 is the oldest now */
	/* Strangers get no entry at all. */
	assert_int_equal(input(l3_arp(buf, 1, other_mac, peer_v4, us_v4), SECOND, NULL), 1);
	assert_int_equal(test_neigh_state(nb, peer_v4, NULL), URN_NEIGH_NONE);

	expect_lookup(peer_v4, URN_NEIGH_UNKNOWN, NULL);
	assert_int_equal(test_neigh_state(nb, gid, NULL), URN_NEIGH_REACHABLE);
	l3_nth_v4(gid, 1);
	assert_int_equal(test_neigh_state(nb, gid, NULL), URN_NEIGH_NONE);
	l3_nth_v4(gid, 2);
	assert_int_equal(test_neigh_state(nb, gid, NULL), URN_NEIGH_REACHABLE);
}

/* A poll keeps to its budget, and a request without an mbuf stays due. */
static void
test_poll_bounds(void **state)
{
	static struct rte_mbuf *held[TEST_EAL_MBUFS];
	struct rte_mbuf *out[4];
	unsigned int n = 0;
	uint8_t gid[16];

	(void)state;
	for (uint32_t i = 0; i < 10; i++) {
		l3_nth_v4(gid, i);
		expect_lookup(gid, URN_NEIGH_UNKNOWN, NULL);
	}
	assert_int_equal(poll_all(SECOND, 0), 0);
	assert_int_equal(poll_all(SECOND, 4), 4);
	while (n < TEST_EAL_MBUFS && (held[n] = rte_pktmbuf_alloc(test_eal_pool())) != NULL)
		n++;
	assert_int_equal(urn_neigh_poll(nb, SECOND, test_eal_pool(), out, 4), 0);
	while (n > 0)
		rte_pktmbuf_free(held[--n]);
	assert_int_equal(poll_all(SECOND, 64), 6);
	assert_int_equal(poll_all(SECOND, 64), 0);
}

/* Several threads at the same time: the table stays consistent. */
static void *
hammer(void *arg)
{
	uint32_t base = *(const uint32_t *)arg, at;
	struct urn_neigh_info info;
	uint8_t gid[16], mac[6];

	for (uint32_t i = 0; i < 20000; i++) {
		l3_nth_v4(gid, base + i % 6000);
		urn_neigh_lookup(nb, gid, mac);
		if (i % 16 == 0)
			urn_neigh_add_static(nb, gid, peer_mac);
		at = i % URN_NEIGH_ENTRIES;
		urn_neigh_list(nb, &at, &info, 1);
	}
	return NULL;
}

static void
test_threads(void **state)
{
	static const uint32_t base[2] = { 0, 3000 };
	unsigned int found = 0;
	pthread_t t[2];
	uint8_t gid[16];

	(void)state;
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&t[i], NULL, hammer, (void *)(uintptr_t)&base[i]),
				 0);
	for (unsigned int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	for (uint32_t i = 0; i < 9000; i++) {
		l3_nth_v4(gid, i);
		found += test_neigh_state(nb, gid, NULL) != URN_NEIGH_NONE;
	}
	assert_int_equal(found, URN_NEIGH_ENTRIES);
	assert_int_equal(urn_neigh_count(nb), URN_NEIGH_ENTRIES);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_static),
		T(test_arp_flood),
		T(test_lookup_flood),
		T(test_oldest_goes),
		T(test_poll_bounds),
		T(test_threads),
	};

	return cmocka_run_group_tests_name("neigh_room", tests, NULL, NULL);
}
