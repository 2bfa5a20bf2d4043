/* SPDX-License-Identifier: BSD-3-Clause */
/* Unasked frames of the network: believed, answered, or not; and our announcements. */
#include "neigh_bench.h"

/* RFC 4861, 7.2.5: the effect of an advertisement on a known neighbour. */
static void
test_advert_rules(void **state)
{
	uint32_t gen;

	(void)state;
	expect_lookup(peer_ll, URN_NEIGH_UNKNOWN, NULL);
	input(l3_advert(buf, us_ll, peer_ll, peer_mac, 0x60), SECOND, NULL);
	gen = urn_neigh_generation(nb);
	/* Another MAC without the override flag: kept, but doubted. */
	input(l3_advert(buf, us_ll, peer_ll, other_mac, 0x40), 2 * SECOND, NULL);
	assert_int_equal(test_neigh_state(nb, peer_ll, NULL), URN_NEIGH_STALE);
	assert_int_equal(urn_neigh_generation(nb), gen);
	expect_lookup(peer_ll, URN_NEIGH_OK, peer_mac);
	assert_int_equal(poll_all(2 * SECOND, 64), 1);
	/* Unsolicited, with the same MAC: confirms nothing. */
	input(l3_advert(buf, all_nodes, peer_ll, peer_mac, 0x20), SECOND, NULL);
	assert_int_equal(test_neigh_state(nb, peer_ll, NULL), URN_NEIGH_STALE);
	/* Solicited without a MAC: the old one is confirmed. */
	input(l3_advert(buf, us_ll, peer_ll, NULL, 0x40), SECOND, NULL);
	assert_int_equal(test_neigh_state(nb, peer_ll, NULL), URN_NEIGH_REACHABLE);
	expect_lookup(peer_ll, URN_NEIGH_OK, peer_mac);
	/* Unsolicited with override: a claim, which any node can make; so the old MAC is doubted. */
	input(l3_advert(buf, all_nodes, peer_ll, other_mac, 0x20), 3 * SECOND, NULL);
	assert_int_equal(test_neigh_state(nb, peer_ll, NULL), URN_NEIGH_STALE);
	assert_int_equal(urn_neigh_generation(nb), gen);
	expect_lookup(peer_ll, URN_NEIGH_OK, peer_mac);
	assert_int_equal(poll_all(3 * SECOND, 64), 1);
	/* Solicited, everybody was asked, and it has the override flag: the new MAC counts. */
	assert_int_equal(poll_all(4 * SECOND, 64), 1);
	input(l3_advert(buf, us_ll, peer_ll, other_mac, 0x40), 4 * SECOND, NULL);
	expect_lookup(peer_ll, URN_NEIGH_OK, peer_mac);
	input(l3_advert(buf, us_ll, peer_ll, other_mac, 0x60), 4 * SECOND, NULL);
	assert_int_not_equal(urn_neigh_generation(nb), gen);
	expect_lookup(peer_ll, URN_NEIGH_OK, other_mac);
}

/* A node that asks for us is learnt and answered, without waking anybody. */
static void
test_learns_requests(void **state)
{
	uint32_t gen = urn_neigh_generation(nb);
	enum urn_counter c;

	(void)state;
	assert_int_equal(input(l3_arp(buf, 1, peer_mac, peer_v4, us_v4), SECOND, &c), 1);
	assert_int_equal(c, URN_C_ARP_RX);
	assert_int_equal(buf[21], 2);
	assert_int_equal(input(l3_solicit(buf, peer_ll, us_group, us_ll, peer_mac), SECOND, &c), 1);
	assert_int_equal(c, URN_C_ND_RX);
	assert_int_equal(buf[54], 136);
	assert_int_equal(urn_neigh_generation(nb), gen);
	assert_int_equal(urn_neigh_count(nb), 2);
	expect_lookup(peer_v4, URN_NEIGH_OK, peer_mac);
	expect_lookup(peer_ll, URN_NEIGH_OK, peer_mac);
	/* Now they are wanted: claims about them are checked, and there is news. */
	input(l3_arp(buf, 1, other_mac, peer_v4, us_v4), 2 * SECOND, NULL);
	assert_int_equal(urn_neigh_generation(nb), gen);
	assert_int_equal(poll_all(2 * SECOND, 64), 1);
	assert_int_equal(poll_all(3 * SECOND, 64), 1);
	arp_answer(peer_v4, other_mac, 3 * SECOND);
	assert_int_not_equal(urn_neigh_generation(nb), gen);
	expect_lookup(peer_v4, URN_NEIGH_OK, other_mac);
	assert_int_equal(input(l3_echo(buf, peer_v4, us_v4, 56), SECOND, &c), 1);
	assert_int_equal(c, URN_C_ECHO_RX);
}

/* Nothing is learnt from a frame that is not for us, not asked for, or malformed. */
static void
test_learns_nothing_else(void **state)
{
	static uint8_t other_group[16];
	enum urn_counter c;
	uint8_t gid[16];
	uint32_t len;

	(void)state;
	l3_nth_v4(gid, 9);
	assert_int_equal(input(l3_arp(buf, 1, peer_mac, peer_v4, gid), SECOND, &c), 0);
	assert_int_equal(c, URN_C_ARP_RX);
	assert_int_equal(input(l3_arp(buf, 2, peer_mac, peer_v4, us_v4), SECOND, &c), 0);
	assert_int_equal(input(l3_arp(buf, 1, peer_mac, no_addr, us_v4), SECOND, &c), 1);
	assert_int_equal(input(l3_advert(buf, us_ll, peer_ll, peer_mac, 0x60), SECOND, &c), 0);
	assert_int_equal(c, URN_C_ND_RX);
	memcpy(other_group, us_group, 16);
	other_group[15] = 9;
	memcpy(gid, us_ll, 16);
	gid[15] = 9;
	assert_int_equal(input(l3_solicit(buf, peer_ll, other_group, gid, peer_mac), SECOND, &c),
			 0);
	/* RFC 4862: a DAD probe for us is answered; its sender has no address. */
	assert_int_equal(input(l3_solicit(buf, no_addr, other_group, gid, NULL), SECOND, &c), 0);
	assert_int_equal(input(l3_solicit(buf, no_addr, us_group, us_ll, NULL), SECOND, &c), 1);
	assert_memory_equal(buf + 38, all_nodes, 16);
	len = l3_arp(buf, 1, peer_mac, peer_v4, us_v4);
	buf[18] = 5;
	assert_int_equal(input(len, SECOND, &c), 0);
	assert_int_equal(c, URN_C_DROP_NEIGH);
	len = l3_solicit(buf, peer_ll, us_group, us_ll, peer_mac);
	buf[21] = 64;
	assert_int_equal(input(len, SECOND, &c), 0);
	assert_int_equal(c, URN_C_DROP_NEIGH);
	l3_nth_v4(gid, 9);
	assert_int_equal(input(l3_echo(buf, peer_v4, gid, 8), SECOND, &c), 0);
	assert_int_equal(c, URN_C_DROP_ADDRESS);
	assert_int_equal(urn_neigh_count(nb), 0);
}

/* Another node claims an address of ours: counted, not answered, not learnt. */
static void
test_conflict(void **state)
{
	enum urn_counter c;

	(void)state;
	assert_int_equal(input(l3_arp(buf, 1, other_mac, us_v4, us_v4), SECOND, &c), 0);
	assert_int_equal(c, URN_C_NEIGH_CONFLICT);
	assert_int_equal(input(l3_arp(buf, 2, other_mac, us_v4, us_v4), SECOND, &c), 0);
	assert_int_equal(c, URN_C_NEIGH_CONFLICT);
	assert_int_equal(input(l3_advert(buf, all_nodes, us_ll, other_mac, 0x20), SECOND, &c), 0);
	assert_int_equal(c, URN_C_NEIGH_CONFLICT);
	assert_int_equal(input(l3_echo(buf, us_v4, us_v4, 8), SECOND, &c), 0);
	assert_int_equal(c, URN_C_NEIGH_CONFLICT);
	/* Our own announcement, back over a loop, is no conflict. */
	assert_int_equal(input(l3_arp(buf, 1, us_mac, us_v4, us_v4), SECOND, &c), 0);
	assert_int_equal(c, URN_C_ARP_RX);
	expect_lookup(us_v4, URN_NEIGH_OK, us_mac);
	assert_int_equal(urn_neigh_count(nb), 0);
}

/* Unasked claims of another MAC for a neighbour in use: refused and counted, in any number. */
static void
test_claims_in_use(void **state)
{
	enum urn_counter c;
	uint32_t gen;

	(void)state;
	make_reachable(peer_v4, peer_mac, SECOND);
	gen = urn_neigh_generation(nb);
	for (uint32_t i = 0; i < 1000; i++) {
		uint64_t now = 2 * SECOND + i * MS;

		/* A request of somebody else, one to us, and an answer that nobody asked for. */
		input(l3_arp(buf, 1, other_mac, peer_v4, peer_v4), now, &c);
		assert_int_equal(c, URN_C_NEIGH_CLAIM);
		assert_int_equal(input(l3_arp(buf, 1, other_mac, peer_v4, us_v4), now, &c), 1);
		assert_int_equal(c, URN_C_NEIGH_CLAIM);
		input(l3_arp(buf, 2, other_mac, peer_v4, us_v4), now, &c);
		assert_int_equal(c, URN_C_NEIGH_CLAIM);
		expect_lookup(peer_v4, URN_NEIGH_OK, peer_mac);
		/* The holder is asked, no more often than each 10 ms, and answers. */
		if (poll_all(now, 64) == 1)
			arp_answer(peer_v4, peer_mac, now);
	}
	assert_int_equal(urn_neigh_generation(nb), gen);
	input(l3_arp(buf, 1, peer_mac, peer_v4, us_v4), 4 * SECOND, &c);
	assert_int_equal(c, URN_C_ARP_RX);
}

/*
 * An address that only the network told, claimed by two: neither is believed, and everybody is
 * asked before the first use.
 */
static void
test_claims_of_learnt(void **state)
{
	enum urn_counter c;

	(void)state;
	input(l3_arp(buf, 1, peer_mac, peer_v4, us_v4), SECOND, &c);
	assert_int_equal(c, URN_C_ARP_RX);
	input(l3_arp(buf, 1, other_mac, peer_v4, us_v4), SECOND, &c);
	assert_int_equal(c, URN_C_NEIGH_CLAIM);
	input(l3_arp(buf, 1, peer_mac, peer_v4, us_v4), SECOND, &c);
	assert_int_equal(c, URN_C_ARP_RX);
	input(l3_solicit(buf, peer_ll, us_group, us_ll, peer_mac), SECOND, &c);
	assert_int_equal(c, URN_C_ND_RX);
	input(l3_advert(buf, us_ll, peer_ll, other_mac, 0x60), SECOND, &c);
	assert_int_equal(c, URN_C_NEIGH_CLAIM);
	expect_lookup(peer_v4, URN_NEIGH_UNKNOWN, NULL);
	expect_lookup(peer_ll, URN_NEIGH_UNKNOWN, NULL);
	assert_int_equal(poll_all(SECOND, 64), 2);
	arp_answer(peer_v4, other_mac, SECOND);
	expect_lookup(peer_v4, URN_NEIGH_OK, other_mac);
	input(l3_advert(buf, us_ll, peer_ll, peer_mac, 0x60), SECOND, NULL);
	expect_lookup(peer_ll, URN_NEIGH_OK, peer_mac);
	/* A place that is used anew remembers nothing of that. */
	for (uint32_t i = 0; i < 2 * URN_NEIGH_LEARNT; i++) {
		uint8_t gid[16];

		l3_nth_v4(gid, 100 + i);
		input(l3_arp(buf, 1, peer_mac, gid, us_v4), SECOND, NULL);
		if (i < URN_NEIGH_LEARNT)
			input(l3_arp(buf, 1, other_mac, gid, us_v4), SECOND, NULL);
	}
	for (uint32_t i = URN_NEIGH_LEARNT; i < 2 * URN_NEIGH_LEARNT; i++) {
		uint8_t gid[16];

		l3_nth_v4(gid, 100 + i);
		expect_lookup(gid, URN_NEIGH_OK, peer_mac);
	}
}

/* Gratuitous ARP and unsolicited advertisements, one for each address. */
static void
test_announce(void **state)
{
	static const uint8_t arp[42] = {
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 6,
		0, 1, 8, 0, 6, 4, 0, 1,
		2, 0, 0, 0, 0, 1, 10, 0, 0, 1,
		0, 0, 0, 0, 0, 0, 10, 0, 0, 1,
	};
	static const uint8_t all_mac[6] = { 0x33, 0x33, 0, 0, 0, 1 };
	struct rte_mbuf *out[8];
	const uint8_t *f;

	(void)state;
	assert_int_equal(urn_neigh_announce(nb, test_eal_pool(), out, 8), 3);
	assert_int_equal(rte_pktmbuf_data_len(out[0]), sizeof(arp));
	assert_memory_equal(rte_pktmbuf_mtod(out[0], void *), arp, sizeof(arp));
	f = rte_pktmbuf_mtod(out[2], const uint8_t *);
	assert_int_equal(rte_pktmbuf_data_len(out[2]), 86);
	assert_true(l3_sums_ok(f, 86));
	assert_memory_equal(f, all_mac, 6);
	assert_memory_equal(f + 22, us_ll, 16);
	assert_memory_equal(f + 38, all_nodes, 16);
	assert_int_equal(f[54], 136);
	assert_int_equal(f[58], 0x20); /* override, not solicited */
	assert_memory_equal(f + 62, us_ll, 16);
	rte_pktmbuf_free_bulk(out, 3);
	assert_int_equal(urn_neigh_announce(nb, test_eal_pool(), out, 2), 2);
	rte_pktmbuf_free_bulk(out, 2);
}

/* An address that is not set is not ours, and is not announced. */
static void
test_unset_address(void **state)
{
	static const uint8_t unset[16];
	uint8_t own[3][16] = { { 0 } }, mac[6];
	struct rte_mbuf *out[8];
	struct urn_neigh *t;

	(void)state;
	memcpy(own[0], us_ll, 16);
	memcpy(own[2], us_v4, 16);
	t = urn_neigh_create(us_mac, (const uint8_t (*)[16])own, 3);
	assert_non_null(t);
	assert_true(urn_neigh_is_own(t, us_ll) && urn_neigh_is_own(t, us_v4));
	assert_false(urn_neigh_is_own(t, unset));
	assert_int_equal(urn_neigh_lookup(t, unset, mac), URN_NEIGH_FAIL);
	assert_int_equal(urn_neigh_announce(t, test_eal_pool(), out, 8), 2);
	rte_pktmbuf_free_bulk(out, 2);
	urn_neigh_destroy(t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_advert_rules), T(test_learns_requests), T(test_learns_nothing_else),
		T(test_conflict),     T(test_claims_in_use),   T(test_claims_of_learnt),
		T(test_announce),     T(test_unset_address),
	};

	return cmocka_run_group_tests_name("neigh_learn", tests, NULL, NULL);
}
