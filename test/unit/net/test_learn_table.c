/* SPDX-License-Identifier: BSD-3-Clause */
/* Floods, a full table, and its random numbers (doc/inside/link.md). */
#include "learn_bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void
wanted_crowd(uint32_t count)
{
	struct link_spec s = link_good(0, 1);
	uint8_t gid[16];

	for (uint32_t i = 0; i < count; i++) {
		l3_nth_v4(gid, i);
		urn_learn_features(lk, gid);
		request(gid, &s, START, URN_C_LINK_REQ_RX);
	}
}

/* A flood of requests fills its part of the table, is answered, and drives no entry out. */
static void
test_flood(void **state)
{
	struct link_spec s = link_good(0, 1);
	uint8_t gid[16];

	(void)state;
	make_known(peer_v4, START);
	for (uint32_t i = 0; i < 3000; i++) {
		l3_nth_v6(gid, i);
		request(gid, &s, START, URN_C_LINK_REQ_RX);
	}
	assert_int_equal(urn_learn_count(lk), URN_LEARN_LEARNT + 1);
	expect_state(peer_v4, KNOWN);
	l3_nth_v6(gid, 3000 - URN_LEARN_LEARNT);
	expect_state(gid, KNOWN);
	l3_nth_v6(gid, 3000 - URN_LEARN_LEARNT - 1);
	expect_state(gid, UNKNOWN);
	expect_no_news();
	/* Wanted entries take the place of learnt ones. */
	wanted_crowd(URN_LEARN_ENTRIES - 1);
	assert_int_equal(urn_learn_count(lk), URN_LEARN_ENTRIES);
	expect_state(peer_v4, KNOWN);
	l3_nth_v6(gid, 2999);
	expect_state(gid, UNKNOWN);
	request(gid, &s, START, URN_C_LINK_REQ_RX); /* answered, not kept */
	expect_state(gid, UNKNOWN);
}

/* The entry unused for longest goes for a new one; its news goes with it. */
static void
test_full(void **state)
{
	struct urn_learn_news n[1];
	uint8_t gid[16], first[16], second[16];

	(void)state;
	wanted_crowd(URN_LEARN_ENTRIES);
	l3_nth_v4(first, 0);
	l3_nth_v4(second, 1);
	expect_features(first, URN_LINK_F_SACK); /* used */
	l3_nth_v4(gid, URN_LEARN_ENTRIES);
	expect_features(gid, 0);
	expect_state(gid, ASKING);
	expect_state(first, KNOWN);
	expect_state(second, UNKNOWN);
	assert_int_equal(urn_learn_count(lk), URN_LEARN_ENTRIES);
	assert_int_equal(urn_learn_news(lk, &seen, n, 1), 1);
	assert_memory_equal(n[0].gid, first, 16);
	for (unsigned int i = 2; i < URN_LEARN_ENTRIES; i++)
		assert_int_equal(urn_learn_news(lk, &seen, n, 1), 1);
	expect_no_news();
}

/* A table full of questions: polls are bounded, and the oldest question gives way. */
static void
test_full_of_questions(void **state)
{
	uint8_t gid[16];

	(void)state;
	for (uint32_t i = 0; i <= URN_LEARN_ENTRIES; i++) {
		l3_nth_v4(gid, i);
		urn_neigh_add_static(nb, gid, peer_mac); /* up to the room of the neighbours' table */
		expect_features(gid, 0);
	}
	assert_int_equal(urn_learn_count(lk), URN_LEARN_ENTRIES);
	l3_nth_v4(gid, 0);
	expect_state(gid, UNKNOWN);
	assert_int_equal(poll_max(START, 100), 100);
	/* All questions are tried, and end, with and without a MAC address. */
	for (unsigned int i = 0; i < 6000; i++) {
		struct rte_mbuf *out[64];
		unsigned int n = urn_neigh_poll(nb, START + i * MS, test_eal_pool(), out, 64);

		rte_pktmbuf_free_bulk(out, n);
		poll_max(START + i * MS, 256);
	}
	for (uint32_t i = 1; i <= URN_LEARN_ENTRIES; i++) {
		l3_nth_v4(gid, i);
		expect_state(gid, PLAIN);
	}
}

/* Entries being asked give way as well when there is nothing else. */
static void
test_full_of_tries(void **state)
{
	uint8_t gid[16];

	(void)state;
	for (uint32_t i = 0; i < 8; i++) {
		l3_nth_v4(gid, i);
		urn_neigh_add_static(nb, gid, peer_mac);
		expect_features(gid, 0);
		/* Entries have different numbers of tries. */
		for (uint32_t k = 0; k < i % 4; k++)
			poll_max(START + k * SECOND, 64);
	}
	for (uint32_t i = 8; i < 3 * URN_LEARN_ENTRIES; i++) {
		l3_nth_v4(gid, i);
		expect_features(gid, 0);
		if (i % 1000 == 0)
			poll_max(START + 9 * SECOND + i * MS, 64);
	}
	assert_int_equal(urn_learn_count(lk), URN_LEARN_ENTRIES);
	expect_state(gid, ASKING);
}

/* Two adapters, and one adapter started twice, have different epochs; requests have different ids. */
static void
test_drawn(void **state)
{
	struct urn_learn_config cfg = config();
	uint64_t epoch, tid;

	(void)state;
	tid = ask(peer_v4, START);
	epoch = link_get(link_body(buf) + 8, 8);
	assert_int_not_equal(epoch, 0);
	assert_int_not_equal(ask(peer_ll, START), tid);
	assert_int_equal(link_get(link_body(buf) + 8, 8), epoch);
	urn_learn_destroy(lk);
	cfg.seed++;
	lk = urn_learn_create(&cfg);
	assert_int_not_equal(ask(peer_v4, START), tid);
	assert_int_not_equal(link_get(link_body(buf) + 8, 8), epoch);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_flood),
		T(test_full),
		T(test_full_of_questions),
		T(test_full_of_tries),
		T(test_drawn),
	};

	return cmocka_run_group_tests_name("link_table", tests, NULL, NULL);
}
