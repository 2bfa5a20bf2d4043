/* SPDX-License-Identifier: BSD-3-Clause */
/* The times at which peers are asked, the number of requests, and the end of asking (doc/inside/link.md). */
#include "learn_bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Contents and address of the request, and the entry after the response. */
static void
ask_and_learn(const uint8_t *gid, const uint8_t *us)
{
	struct urn_link_info info;
	struct link_spec s;
	uint64_t tid;

	expect_features(gid, 0);
	expect_state(gid, ASKING);
	expect_features(gid, 0);
	assert_int_equal(arw_of(lk, gid), URN_LINK_ARW_NONE);
	tid = ask(gid, START);
	assert_memory_equal(buf, peer_mac, 6);
	assert_memory_equal(buf + 6, us_mac, 6);
	assert_memory_equal(buf + (buf[12] == 8 ? 26 : 22), us + (buf[12] == 8 ? 12 : 0),
			    buf[12] == 8 ? 4 : 16);
	assert_int_equal(link_get(link_body(buf) + 16, 4), URN_LINK_F_SACK);
	assert_int_equal(link_body(buf)[20], URN_LINK_ARW_64);
	expect_no_news();
	s = link_good(1, tid);
	s.arw = 3;
	s.features = 0xfffffff1;
	assert_int_equal(from(gid, &s, START + MS, NULL), URN_C_LINK_RESP_RX);
	assert_int_equal(urn_learn_peek(lk, gid, &info), URN_LEARN_KNOWN);
	assert_int_equal(info.epoch, 0x1111);
	assert_int_equal(info.features, 0xfffffff1);
	/* Unknown bits are not common features. */
	expect_news(gid, URN_LINK_F_SACK);
	expect_features(gid, URN_LINK_F_SACK);
	assert_int_equal(arw_of(lk, gid), URN_LINK_ARW_256);
	expect_poll(START + SECOND, 0);
}

/* Addresses that are never asked. */
static void
test_not_asked(void **state)
{
	static const uint8_t group[16] = {0xff, 2, [15] = 1}, none[16];
	static const uint8_t v4_group[16] = {[10] = 0xff, [11] = 0xff, 224, 0, 0, 1};

	(void)state;
	expect_features(us_v4, URN_LINK_F_SACK);
	expect_features(us_ll, URN_LINK_F_SACK);
	expect_features(group, 0);
	expect_features(v4_group, 0);
	expect_features(none, 0);
	assert_int_equal(urn_learn_count(lk), 0);
	expect_poll(START, 0);
	expect_state(peer_v4, UNKNOWN);
	assert_int_equal(urn_learn_count(lk), 0);
}

/* We have no address of its family. */
static void
test_no_family(void **state)
{
	struct urn_neigh *four = urn_neigh_create(us_mac, (const uint8_t (*)[16])us_v4, 1);
	struct urn_learn_config cfg = config();
	struct urn_learn *other;

	(void)state;
	cfg.neigh = four;
	other = urn_learn_create(&cfg);
	assert_true(four && other);
	assert_int_equal(urn_learn_features(other, peer_ll), 0);
	assert_int_equal(urn_learn_count(other), 0);
	urn_learn_destroy(other);
	urn_neigh_destroy(four);
}

static void
test_learn(void **state)
{
	(void)state;
	ask_and_learn(peer_v4, us_v4);
	ask_and_learn(peer_ll, us_ll);
	assert_int_equal(urn_learn_count(lk), 2);
}

/* Eight requests, all with one transaction id, ever slower up to a limit; then the peer is plain. */
static void
test_retry(void **state)
{
	static const uint64_t at[] = {0, 10, 30, 70, 150, 230, 310, 390};
	uint64_t tid = 0;
	struct link_spec s;

	(void)state;
	expect_features(peer_v4, 0);
	for (unsigned int i = 0; i < 8; i++) {
		if (i)
			expect_poll(START + at[i] * MS - 1, 0);
		expect_poll(START + at[i] * MS, 1);
		assert_true(i == 0 || link_tid(buf) == tid);
		tid = link_tid(buf);
		expect_state(peer_v4, ASKING);
	}
	expect_poll(START + 470 * MS - 1, 0);
	expect_state(peer_v4, ASKING);
	expect_poll(START + 470 * MS, 0);
	expect_state(peer_v4, PLAIN);
	/* The peer counted as plain all the time. */
	expect_no_news();
	/* No new request for a long time; then one with another id. */
	expect_poll(START + 30 * SECOND + 470 * MS - 1, 0);
	expect_features(peer_v4, 0);
	expect_poll(START + 30 * SECOND + 470 * MS, 0); /* only on demand */
	expect_features(peer_v4, 0);
	expect_poll(START + 31 * SECOND, 1);
	assert_int_not_equal(link_tid(buf), tid);
	expect_state(peer_v4, PLAIN);
	/* An answer to the old request comes too late. */
	s = link_good(1, tid);
	assert_int_equal(from(peer_v4, &s, START + 31 * SECOND, NULL), URN_C_DROP_LINK_UNASKED);
	expect_state(peer_v4, PLAIN);
}

/* An answer after we gave up counts. */
static void
test_late_answer(void **state)
{
	uint64_t tid = ask(peer_v4, START);
	struct link_spec s = link_good(1, tid);

	(void)state;
	for (unsigned int i = 1; i <= 500; i++)
		poll_max(START + i * MS, 1);
	expect_state(peer_v4, PLAIN);
	assert_int_equal(from(peer_v4, &s, START + SECOND, NULL), URN_C_LINK_RESP_RX);
	expect_state(peer_v4, KNOWN);
	expect_news(peer_v4, URN_LINK_F_SACK);
}

/* No request is sent before the MAC address is known; if nobody has it, the peer is plain. */
static void
test_no_mac(void **state)
{
	uint8_t gid[16], mac[6], frame[L3_ROOM];
	struct rte_mbuf *m, *out[4];
	unsigned int n = 0;
	uint32_t len;

	(void)state;
	l3_nth_v4(gid, 5);
	expect_features(gid, 0);
	for (unsigned int i = 0; i < 100; i++)
		expect_poll(START + i * MS, 0);
	assert_int_equal(urn_neigh_poll(nb, START + 100 * MS, test_eal_pool(), out, 4), 1);
	rte_pktmbuf_free(out[0]);
	len = l3_arp(frame, 2, peer_mac, gid, us_v4);
	m = rte_pktmbuf_alloc(test_eal_pool());
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), frame, len);
	urn_wire_parse(m);
	urn_neigh_input(nb, m, START + 100 * MS);
	rte_pktmbuf_free(m);
	expect_poll(START + 101 * MS, 1);
	assert_memory_equal(buf, peer_mac, 6);

	l3_nth_v4(gid, 6);
	expect_features(gid, 0);
	for (unsigned int i = 0; i < 4000 && urn_learn_peek(lk, gid, NULL) == URN_LEARN_ASKING; i++) {
		uint64_t now = START + SECOND + i * MS;

		n += urn_neigh_poll(nb, now, test_eal_pool(), out, 4);
		if (n)
			rte_pktmbuf_free(out[0]);
		n = 0;
		poll_max(now, 4);
	}
	expect_state(gid, PLAIN);
	assert_int_equal(urn_neigh_lookup(nb, gid, mac), URN_NEIGH_FAIL);
}

/* A poll looks at a limited number, however many wait for a MAC address. */
static void
test_poll_bound(void **state)
{
	uint8_t gid[16];

	(void)state;
	for (uint32_t i = 0; i < 1000; i++) {
		l3_nth_v4(gid, i);
		expect_features(gid, 0);
	}
	expect_poll(START, 0);
	/* Each one looked at is looked up as a neighbour; two were there before. */
	assert_in_range(urn_neigh_count(nb), 3, 2 + 100);
}

/* No buffer: the request stays due. */
static void
test_no_buffer(void **state)
{
	static struct rte_mbuf *all[TEST_EAL_MBUFS];
	struct rte_mbuf *out[4];

	(void)state;
	expect_features(peer_v4, 0);
	assert_int_equal(rte_pktmbuf_alloc_bulk(test_eal_pool(), all, TEST_EAL_MBUFS), 0);
	assert_int_equal(urn_learn_poll(lk, START, test_eal_pool(), out, 4), 0);
	rte_pktmbuf_free_bulk(all, TEST_EAL_MBUFS);
	expect_state(peer_v4, ASKING);
	assert_int_equal(poll_max(START + MS, 0), 0);
	expect_poll(START + MS, 1);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_not_asked),
		T(test_no_family),
		T(test_learn),
		T(test_retry),
		T(test_late_answer),
		T(test_no_mac),
		T(test_poll_bound),
		T(test_no_buffer),
	};

	return cmocka_run_group_tests_name("link_ask", tests, NULL, NULL);
}
