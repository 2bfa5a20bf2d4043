/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding a neighbour: asked for, found, lost, moved; and addresses that need no question. */
#include "neigh_bench.h"

#include <errno.h>

static void
test_create(void **state)
{
	static const uint8_t own[URN_NEIGH_OWN + 1][16];
	static const uint8_t group_mac[6] = { 1, 0, 0x5e, 0, 0, 1 };
	struct urn_neigh *none;

	(void)state;
	assert_null(urn_neigh_create(us_mac, own, URN_NEIGH_OWN + 1));
	assert_int_equal(errno, EINVAL);
	assert_null(urn_neigh_create(group_mac, own, 1));
	assert_null(urn_neigh_create(no_addr, own, 1));
	urn_neigh_destroy(NULL);
	none = urn_neigh_create(us_mac, NULL, 0);
	assert_non_null(none);
	urn_neigh_destroy(none);
}

/* Addresses that need no question, and addresses that can't be asked for. */
static void
test_fixed_answers(void **state)
{
	static const uint8_t group[6] = { 0x33, 0x33, 0xff, 0xaa, 0xbb, 1 };
	static const uint8_t broadcast[16] = { [10] = 0xff, [11] = 0xff, 255, 255, 255, 255 };
	static const uint8_t any4[16] = { [10] = 0xff, [11] = 0xff };

	(void)state;
	expect_lookup(us_v4, URN_NEIGH_OK, us_mac);
	expect_lookup(us_ll, URN_NEIGH_OK, us_mac);
	assert_true(urn_neigh_is_own(nb, us_global));
	assert_false(urn_neigh_is_own(nb, peer_global));
	expect_lookup(us_group, URN_NEIGH_OK, group);
	expect_lookup(broadcast, URN_NEIGH_FAIL, NULL);
	expect_lookup(any4, URN_NEIGH_FAIL, NULL);
	expect_lookup(no_addr, URN_NEIGH_FAIL, NULL);
	assert_int_equal(urn_neigh_count(nb), 0);
}

/* Without an address of the family there is no sender for a question. */
static void
test_other_family(void **state)
{
	struct urn_neigh *was = nb;

	(void)state;
	nb = urn_neigh_create(us_mac, (const uint8_t (*)[16])us_v4, 1);
	assert_non_null(nb);
	expect_lookup(peer_ll, URN_NEIGH_FAIL, NULL);
	assert_int_equal(urn_neigh_count(nb), 0);
	expect_lookup(peer_v4, URN_NEIGH_UNKNOWN, NULL);
	urn_neigh_destroy(nb);
	nb = was;
}

/* The request in buf[] is for everybody; for the holder of a MAC alone. */
static void
to_everybody(void)
{
	static const uint8_t broadcast[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

	assert_memory_equal(buf, broadcast, 6);
}

static void
to_holder(const uint8_t *mac)
{
	assert_memory_equal(buf, mac, 6);
	assert_int_equal(buf[21], 1);
	assert_memory_equal(buf + 32, mac, 6);
}

/* INCOMPLETE -> REACHABLE over IPv4: one request, its answer, the generation. */
static void
test_resolve_arp(void **state)
{
	static const uint8_t want[42] = {
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 6,
		0, 1, 8, 0, 6, 4, 0, 1,
		2, 0, 0, 0, 0, 1, 10, 0, 0, 1,
		0, 0, 0, 0, 0, 0, 10, 0, 0, 2,
	};
	uint32_t gen = urn_neigh_generation(nb);

	(void)state;
	assert_int_equal(poll_all(SECOND, 64), 0);
	expect_lookup(peer_v4, URN_NEIGH_UNKNOWN, NULL);
	expect_lookup(peer_v4, URN_NEIGH_UNKNOWN, NULL); /* asks once only */
	assert_int_equal(test_neigh_state(nb, peer_v4, NULL), URN_NEIGH_INCOMPLETE);
	assert_int_equal(poll_all(SECOND + MS, 64), 1);
	assert_memory_equal(buf, want, sizeof(want));
	assert_int_equal(poll_all(SECOND + 2 * MS, 64), 0);
	assert_int_equal(urn_neigh_generation(nb), gen);

	arp_answer(peer_v4, peer_mac, SECOND + 3 * MS);
	assert_int_not_equal(urn_neigh_generation(nb), gen);
	expect_lookup(peer_v4, URN_NEIGH_OK, peer_mac);
	assert_int_equal(poll_all(10 * SECOND, 64), 0); /* nothing left to ask */
}

/* The same over IPv6: to the solicited-node group, from an address of like scope. */
static void
check_solicit(const uint8_t *target, const uint8_t *src, const uint8_t *group_mac)
{
	expect_lookup(target, URN_NEIGH_UNKNOWN, NULL);
	assert_int_equal(poll_all(SECOND, 64), 1);
	assert_memory_equal(buf, group_mac, 6);
	assert_memory_equal(buf + 6, us_mac, 6);
	assert_int_equal(buf[20], 58);
	assert_int_equal(buf[21], 255);
	assert_memory_equal(buf + 22, src, 16);
	assert_int_equal(buf[38], 0xff);
	assert_int_equal(buf[50], 0xff);
	assert_memory_equal(buf + 51, target + 13, 3);
	assert_int_equal(buf[54], 135);
	assert_memory_equal(buf + 62, target, 16);
	assert_int_equal(buf[78], 1);
	assert_memory_equal(buf + 80, us_mac, 6);
}

static void
test_resolve_nd(void **state)
{
	static const uint8_t ll_group[6] = { 0x33, 0x33, 0xff, 0xcc, 0xdd, 2 };
	static const uint8_t global_group[6] = { 0x33, 0x33, 0xff, 0, 0, 2 };
	uint32_t gen;

	(void)state;
	check_solicit(peer_ll, us_ll, ll_group);
	check_solicit(peer_global, us_global, global_group);
	gen = urn_neigh_generation(nb);
	input(l3_advert(buf, us_ll, peer_ll, NULL, 0x60), SECOND, NULL); /* tells no MAC */
	assert_int_equal(test_neigh_state(nb, peer_ll, NULL), URN_NEIGH_INCOMPLETE);
	assert_int_equal(input(l3_advert(buf, us_ll, peer_ll, peer_mac, 0x60), SECOND, NULL), 0);
	assert_int_equal(test_neigh_state(nb, peer_ll, NULL), URN_NEIGH_REACHABLE);
	assert_int_not_equal(urn_neigh_generation(nb), gen);
	expect_lookup(peer_ll, URN_NEIGH_OK, peer_mac);
}

/* The time after which each request is repeated, or given up. */
static const uint64_t waits[URN_NEIGH_TRIES] = { 10 * MS, 50 * MS, 200 * MS, SECOND, SECOND };

/*
 * A lost request is soon repeated, then slower; then the neighbour is FAILED for a while, then
 * asked for again.
 */
static void
test_retries(void **state)
{
	uint64_t t = SECOND;

	(void)state;
	expect_lookup(peer_v4, URN_NEIGH_UNKNOWN, NULL);
	for (unsigned int try = 0; try < URN_NEIGH_TRIES; t += waits[try++]) {
		assert_int_equal(poll_all(t, 64), 1);
		to_everybody();
		assert_int_equal(poll_all(t + waits[try] - 1, 64), 0);
		expect_lookup(peer_v4, URN_NEIGH_UNKNOWN, NULL);
	}
	assert_int_equal(poll_all(t, 64), 0);
	assert_int_equal(test_neigh_state(nb, peer_v4, NULL), URN_NEIGH_FAILED);
	expect_lookup(peer_v4, URN_NEIGH_FAIL, NULL);
	poll_all(t + URN_NEIGH_FAIL_NS - 1, 64);
	expect_lookup(peer_v4, URN_NEIGH_FAIL, NULL);
	assert_int_equal(poll_all(t + URN_NEIGH_FAIL_NS, 64), 0); /* nobody looked */
	expect_lookup(peer_v4, URN_NEIGH_UNKNOWN, NULL);
	assert_int_equal(poll_all(t + URN_NEIGH_FAIL_NS, 64), 1);
	/* One request only: look-ups of a peer that is gone ask no more often than that. */
	assert_int_equal(poll_all(t + 2 * URN_NEIGH_FAIL_NS - 1, 64), 0);
	expect_lookup(peer_v4, URN_NEIGH_UNKNOWN, NULL);
	assert_int_equal(poll_all(t + 2 * URN_NEIGH_FAIL_NS, 64), 0);
	expect_lookup(peer_v4, URN_NEIGH_FAIL, NULL);
}

/* An answer that comes too late counts. */
static void
test_late_answer(void **state)
{
	uint32_t gen = urn_neigh_generation(nb);

	(void)state;
	expect_lookup(peer_v4, URN_NEIGH_UNKNOWN, NULL);
	for (uint64_t t = SECOND; t <= 6 * SECOND; t += SECOND)
		poll_all(t, 64);
	expect_lookup(peer_v4, URN_NEIGH_FAIL, NULL);
	arp_answer(peer_v4, peer_mac, 6 * SECOND);
	expect_lookup(peer_v4, URN_NEIGH_OK, peer_mac);
	assert_int_not_equal(urn_neigh_generation(nb), gen);
}

/* A MAC is doubted after a minute, used while it is asked for again, and may fail. */
static void
test_stale(void **state)
{
	uint64_t t = SECOND + URN_NEIGH_REACHABLE_NS;
	uint32_t gen;

	(void)state;
	make_reachable(peer_v4, peer_mac, SECOND);
	gen = urn_neigh_generation(nb);
	poll_all(t, 64);
	expect_lookup(peer_v4, URN_NEIGH_OK, peer_mac);
	assert_int_equal(test_neigh_state(nb, peer_v4, NULL), URN_NEIGH_REACHABLE);
	assert_int_equal(poll_all(t + 1, 64), 0);
	expect_lookup(peer_v4, URN_NEIGH_OK, peer_mac); /* starts asking */
	assert_int_equal(test_neigh_state(nb, peer_v4, NULL), URN_NEIGH_STALE);
	assert_int_equal(poll_all(t + 1, 64), 1);
	to_holder(peer_mac);
	expect_lookup(peer_v4, URN_NEIGH_OK, peer_mac);
	arp_answer(peer_v4, peer_mac, t + 2);
	assert_int_equal(test_neigh_state(nb, peer_v4, NULL), URN_NEIGH_REACHABLE);
	assert_int_equal(urn_neigh_generation(nb), gen); /* no news */

	t += 2 + URN_NEIGH_REACHABLE_NS;
	poll_all(t + 1, 64);
	expect_lookup(peer_v4, URN_NEIGH_OK, peer_mac);
	for (unsigned int i = 0; i < URN_NEIGH_TRIES; t += waits[i++]) {
		assert_int_equal(poll_all(t + 1, 64), 1);
		if (i)
			to_everybody();
		else
			to_holder(peer_mac);
		expect_lookup(peer_v4, URN_NEIGH_OK, peer_mac);
	}
	assert_int_equal(poll_all(t + 1, 64), 0);
	expect_lookup(peer_v4, URN_NEIGH_FAIL, NULL);
}

/*
 * A gratuitous ARP reports that an address moved to another MAC: the holder is asked, and
 * without its answer everybody; the one that answers then has the address.
 */
static void
test_mac_moves(void **state)
{
	uint64_t t = 2 * SECOND;
	uint32_t gen;

	(void)state;
	make_reachable(peer_v4, peer_mac, SECOND);
	gen = urn_neigh_generation(nb);
	input(l3_arp(buf, 1, peer_mac, peer_v4, peer_v4), t, NULL);
	assert_int_equal(poll_all(t, 64), 0);
	assert_int_equal(input(l3_arp(buf, 1, other_mac, peer_v4, peer_v4), t + SECOND, NULL), 0);
	t += SECOND;
	assert_int_equal(poll_all(t, 64), 1);
	to_holder(peer_mac);
	assert_int_equal(poll_all(t + 9 * MS, 64), 0);
	assert_int_equal(urn_neigh_generation(nb), gen);
	expect_lookup(peer_v4, URN_NEIGH_OK, peer_mac);
	assert_int_equal(poll_all(t + 10 * MS, 64), 1);
	to_everybody();
	arp_answer(peer_v4, other_mac, t + 11 * MS);
	assert_int_not_equal(urn_neigh_generation(nb), gen);
	expect_lookup(peer_v4, URN_NEIGH_OK, other_mac);
	assert_int_equal(poll_all(t + SECOND, 64), 0);
}

/*
 * Unasked claims, perhaps forged: an announcement, another node's request, an answer
 * while only the holder is asked. The MAC in use stays, its holder is asked once, however
 * many claims there are, and its answer ends the doubt.
 */
static void
test_forged_claims(void **state)
{
	uint64_t t = 2 * SECOND;
	uint32_t gen;

	(void)state;
	make_reachable(peer_v4, peer_mac, SECOND);
	gen = urn_neigh_generation(nb);
	for (unsigned int round = 0; round < 4; round++, t += SECOND) {
		for (unsigned int i = 0; i < 100; i++) {
			if (round == 0)
				arp_answer(peer_v4, other_mac, t);
			else if (round == 1)
				input(l3_arp(buf, 1, other_mac, peer_v4, us_v4), t, NULL);
			else
				input(l3_arp(buf, 1, other_mac, peer_v4, peer_v4), t, NULL);
			expect_lookup(peer_v4, URN_NEIGH_OK, peer_mac);
		}
		assert_int_equal(test_neigh_state(nb, peer_v4, NULL), URN_NEIGH_STALE);
		assert_int_equal(poll_all(t, 64), 1);
		to_holder(peer_mac);
		arp_answer(peer_v4, other_mac, t); /* an answer to a question for another node */
		expect_lookup(peer_v4, URN_NEIGH_OK, peer_mac);
		arp_answer(peer_v4, peer_mac, t + MS);
		assert_int_equal(test_neigh_state(nb, peer_v4, NULL), URN_NEIGH_REACHABLE);
		/* Confirmed just now: for a while nothing is doubted. */
		arp_answer(peer_v4, other_mac, t + MS + URN_NEIGH_CALM_NS - 1);
		assert_int_equal(poll_all(t + 100 * MS, 64), 0);
	}
	assert_int_equal(urn_neigh_generation(nb), gen);
}

/* A silent peer: its user doubts the MAC, which is confirmed or looked up again. */
static void
test_doubt(void **state)
{
	uint64_t t = 2 * SECOND;

	(void)state;
	urn_neigh_doubt(nb, peer_v4); /* no entry */
	assert_int_equal(urn_neigh_count(nb), 0);
	make_reachable(peer_v4, peer_mac, SECOND);
	urn_neigh_doubt(nb, peer_v4);
	assert_int_equal(poll_all(t, 64), 0); /* confirmed just now */
	for (unsigned int i = 0; i < 1000; i++)
		urn_neigh_doubt(nb, peer_v4);
	assert_int_equal(poll_all(t, 64), 1);
	to_holder(peer_mac);
	assert_int_equal(poll_all(t + 10 * MS, 64), 1);
	to_everybody();
	urn_neigh_doubt(nb, peer_v4); /* is being asked already */
	assert_int_equal(poll_all(t + 10 * MS, 64), 0);
	arp_answer(peer_v4, other_mac, t + 11 * MS);
	expect_lookup(peer_v4, URN_NEIGH_OK, other_mac);
	urn_neigh_doubt(nb, us_v4);
	assert_int_equal(urn_neigh_add_static(nb, peer_v4, peer_mac), 0);
	urn_neigh_doubt(nb, peer_v4);
	assert_int_equal(poll_all(t + SECOND, 64), 0);
}

/* The same over IPv6: the holder is asked at its own address (RFC 4861, 7.3.3). */
static void
test_doubt_nd(void **state)
{
	static const uint8_t group[6] = { 0x33, 0x33, 0xff, 0xcc, 0xdd, 2 };
	uint64_t t = 2 * SECOND;

	(void)state;
	expect_lookup(peer_ll, URN_NEIGH_UNKNOWN, NULL);
	poll_all(SECOND, 64);
	input(l3_advert(buf, us_ll, peer_ll, peer_mac, 0x60), SECOND, NULL);
	poll_all(t, 64);
	urn_neigh_doubt(nb, peer_ll);
	assert_int_equal(poll_all(t, 64), 1);
	assert_memory_equal(buf, peer_mac, 6);
	assert_memory_equal(buf + 38, peer_ll, 16);
	input(l3_advert(buf, us_ll, peer_ll, other_mac, 0x60), t, NULL);
	expect_lookup(peer_ll, URN_NEIGH_OK, peer_mac);
	assert_int_equal(poll_all(t + 10 * MS, 64), 1);
	assert_memory_equal(buf, group, 6);
	input(l3_advert(buf, us_ll, peer_ll, other_mac, 0x60), t + 11 * MS, NULL);
	expect_lookup(peer_ll, URN_NEIGH_OK, other_mac);
}

/* Engines read their clocks at different moments: time does not run backwards. */
static void
test_time_order(void **state)
{
	(void)state;
	expect_lookup(peer_v4, URN_NEIGH_UNKNOWN, NULL);
	assert_int_equal(poll_all(10 * SECOND, 64), 1);
	assert_int_equal(poll_all(9 * SECOND, 64), 0);
	assert_int_equal(poll_all(10 * SECOND + 10 * MS, 64), 1);
	poll_all(11 * SECOND, 64);
	/* Confirmed by a slow clock: counts as confirmed now, not 11 s ago. */
	input(l3_arp(buf, 1, peer_mac, peer_v4, us_v4), 0, NULL);
	poll_all(URN_NEIGH_REACHABLE_NS + 2 * SECOND, 64);
	expect_lookup(peer_v4, URN_NEIGH_OK, peer_mac);
	assert_int_equal(test_neigh_state(nb, peer_v4, NULL), URN_NEIGH_REACHABLE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_create),
		T(test_fixed_answers),
		T(test_other_family),
		T(test_resolve_arp),
		T(test_resolve_nd),
		T(test_retries),
		T(test_late_answer),
		T(test_stale),
		T(test_mac_moves),
		T(test_forged_claims),
		T(test_doubt),
		T(test_doubt_nd),
		T(test_time_order),
	};

	return cmocka_run_group_tests_name("neigh", tests, NULL, NULL);
}
