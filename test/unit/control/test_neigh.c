/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/neigh.h"
#include "counters.h"
#include "wire/pkt.h"

#include "common/test_eal.h"
#include "l3_frames.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#define MS 1000000ull
#define SECOND 1000000000ull

static struct urn_neigh *nb;
static uint8_t buf[L3_ROOM];
static const uint8_t us_group[16] = { 0xff, 0x02, [11] = 1, 0xff, 0xaa, 0xbb, 0x01 };
static const uint8_t all_nodes[16] = { 0xff, 0x02, [15] = 1 };

static int
setup(void **state)
{
	uint8_t own[3][16];

	(void)state;
	memcpy(own[0], us_v4, 16);
	memcpy(own[1], us_global, 16);
	memcpy(own[2], us_ll, 16);
	nb = urn_neigh_create(us_mac, (const uint8_t (*)[16])own, 3);
	return nb != NULL ? 0 : -1;
}

static int
teardown(void **state)
{
	(void)state;
	urn_neigh_destroy(nb);
	/* Every mbuf is back. */
	return rte_mempool_avail_count(test_eal_pool()) == TEST_EAL_MBUFS ? 0 : -1;
}

/* Give buf[0..len) to the table. returns its result; *counter: what it counted */
static int
input(uint32_t len, uint64_t now, enum urn_counter *counter)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_eal_pool());
	int reply;

	assert_non_null(m);
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), buf, len);
	urn_wire_parse(m);
	reply = urn_neigh_input(nb, m, now);
	if (counter != NULL)
		*counter = (enum urn_counter)urn_pkt(m)->drop;
	if (reply)
		memcpy(buf, rte_pktmbuf_mtod(m, void *), rte_pktmbuf_data_len(m));
	rte_pktmbuf_free(m);
	return reply;
}

/* The peer answers an ARP request of ours. */
static void
arp_answer(const uint8_t *gid, const uint8_t *mac, uint64_t now)
{
	assert_int_equal(input(l3_arp(buf, 2, mac, gid, us_v4), now, NULL), 0);
}

/* Poll; returns how many requests came, the last of them in buf[]. */
static unsigned int
poll_all(uint64_t now, unsigned int max)
{
	struct rte_mbuf *out[64];
	unsigned int n = urn_neigh_poll(nb, now, test_eal_pool(), out, max);

	assert_true(n <= max);
	for (unsigned int i = 0; i < n; i++) {
		memcpy(buf, rte_pktmbuf_mtod(out[i], void *), rte_pktmbuf_data_len(out[i]));
		assert_true(l3_sums_ok(buf, rte_pktmbuf_data_len(out[i])));
		rte_pktmbuf_free(out[i]);
	}
	return n;
}

static void
expect_lookup(const uint8_t *gid, int want, const uint8_t *want_mac)
{
	uint8_t mac[6] = { 0 };

	assert_int_equal(urn_neigh_lookup(nb, gid, mac), want);
	if (want_mac != NULL)
		assert_memory_equal(mac, want_mac, 6);
}

/* Look up and answer: the usual way to be REACHABLE and wanted. gid: IPv4. */
static void
make_reachable(const uint8_t *gid, const uint8_t *mac, uint64_t now)
{
	expect_lookup(gid, URN_NEIGH_UNKNOWN, NULL);
	assert_int_equal(poll_all(now, 1), 1);
	arp_answer(gid, mac, now);
	assert_int_equal(urn_neigh_peek(nb, gid, NULL), URN_NEIGH_REACHABLE);
}

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

/* What needs no asking, and what can't be asked for. */
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

/* Without an address of the family there is nobody to ask as. */
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
	assert_int_equal(urn_neigh_peek(nb, peer_v4, NULL), URN_NEIGH_INCOMPLETE);
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
	assert_int_equal(urn_neigh_peek(nb, peer_ll, NULL), URN_NEIGH_INCOMPLETE);
	assert_int_equal(input(l3_advert(buf, us_ll, peer_ll, peer_mac, 0x60), SECOND, NULL), 0);
	assert_int_equal(urn_neigh_peek(nb, peer_ll, NULL), URN_NEIGH_REACHABLE);
	assert_int_not_equal(urn_neigh_generation(nb), gen);
	expect_lookup(peer_ll, URN_NEIGH_OK, peer_mac);
}

/* Three requests a second apart, then FAILED for a while, then asked again. */
static void
test_retries(void **state)
{
	uint64_t t = SECOND;

	(void)state;
	expect_lookup(peer_v4, URN_NEIGH_UNKNOWN, NULL);
	for (unsigned int try = 0; try < URN_NEIGH_TRIES; try++, t += SECOND) {
		assert_int_equal(poll_all(t, 64), 1);
		assert_int_equal(poll_all(t + SECOND - 1, 64), 0);
		expect_lookup(peer_v4, URN_NEIGH_UNKNOWN, NULL);
	}
	assert_int_equal(poll_all(t, 64), 0);
	assert_int_equal(urn_neigh_peek(nb, peer_v4, NULL), URN_NEIGH_FAILED);
	expect_lookup(peer_v4, URN_NEIGH_FAIL, NULL);
	poll_all(t + URN_NEIGH_FAIL_NS - 1, 64);
	expect_lookup(peer_v4, URN_NEIGH_FAIL, NULL);
	assert_int_equal(poll_all(t + URN_NEIGH_FAIL_NS, 64), 0); /* nobody looked */
	expect_lookup(peer_v4, URN_NEIGH_UNKNOWN, NULL);
	assert_int_equal(poll_all(t + URN_NEIGH_FAIL_NS, 64), 1);
}

/* An answer that comes too late is still one. */
static void
test_late_answer(void **state)
{
	uint32_t gen = urn_neigh_generation(nb);

	(void)state;
	expect_lookup(peer_v4, URN_NEIGH_UNKNOWN, NULL);
	for (uint64_t t = SECOND; t <= 4 * SECOND; t += SECOND)
		poll_all(t, 64);
	expect_lookup(peer_v4, URN_NEIGH_FAIL, NULL);
	arp_answer(peer_v4, peer_mac, 4 * SECOND);
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
	assert_int_equal(urn_neigh_peek(nb, peer_v4, NULL), URN_NEIGH_REACHABLE);
	assert_int_equal(poll_all(t + 1, 64), 0);
	expect_lookup(peer_v4, URN_NEIGH_OK, peer_mac); /* starts asking */
	assert_int_equal(urn_neigh_peek(nb, peer_v4, NULL), URN_NEIGH_STALE);
	assert_int_equal(poll_all(t + 1, 64), 1);
	expect_lookup(peer_v4, URN_NEIGH_OK, peer_mac);
	arp_answer(peer_v4, peer_mac, t + 2);
	assert_int_equal(urn_neigh_peek(nb, peer_v4, NULL), URN_NEIGH_REACHABLE);
	assert_int_equal(urn_neigh_generation(nb), gen); /* no news */

	t += 2 + URN_NEIGH_REACHABLE_NS;
	poll_all(t + 1, 64);
	expect_lookup(peer_v4, URN_NEIGH_OK, peer_mac);
	for (unsigned int i = 0; i < URN_NEIGH_TRIES; i++)
		assert_int_equal(poll_all(t + 1 + i * SECOND, 64), 1);
	assert_int_equal(poll_all(t + 1 + 3 * SECOND, 64), 0);
	expect_lookup(peer_v4, URN_NEIGH_FAIL, NULL);
}

/* A gratuitous ARP says that an address moved to another MAC. */
static void
test_mac_moves(void **state)
{
	uint32_t gen;

	(void)state;
	make_reachable(peer_v4, peer_mac, SECOND);
	gen = urn_neigh_generation(nb);
	input(l3_arp(buf, 1, peer_mac, peer_v4, peer_v4), SECOND, NULL);
	assert_int_equal(urn_neigh_generation(nb), gen);
	assert_int_equal(input(l3_arp(buf, 1, other_mac, peer_v4, peer_v4), SECOND, NULL), 0);
	assert_int_not_equal(urn_neigh_generation(nb), gen);
	expect_lookup(peer_v4, URN_NEIGH_OK, other_mac);
}

/* RFC 4861, 7.2.5: what an advertisement does to a known neighbour. */
static void
test_advert_rules(void **state)
{
	uint32_t gen;

	(void)state;
	expect_lookup(peer_ll, URN_NEIGH_UNKNOWN, NULL);
	input(l3_advert(buf, us_ll, peer_ll, peer_mac, 0x60), SECOND, NULL);
	gen = urn_neigh_generation(nb);
	/* Another MAC without the override flag: kept, but doubted. */
	input(l3_advert(buf, us_ll, peer_ll, other_mac, 0x40), SECOND, NULL);
	assert_int_equal(urn_neigh_peek(nb, peer_ll, NULL), URN_NEIGH_STALE);
	assert_int_equal(urn_neigh_generation(nb), gen);
	expect_lookup(peer_ll, URN_NEIGH_OK, peer_mac);
	assert_int_equal(poll_all(SECOND, 64), 1);
	/* Unsolicited and the same: proves nothing. */
	input(l3_advert(buf, all_nodes, peer_ll, peer_mac, 0x20), SECOND, NULL);
	assert_int_equal(urn_neigh_peek(nb, peer_ll, NULL), URN_NEIGH_STALE);
	/* Solicited without a MAC: the old one is proved. */
	input(l3_advert(buf, us_ll, peer_ll, NULL, 0x40), SECOND, NULL);
	assert_int_equal(urn_neigh_peek(nb, peer_ll, NULL), URN_NEIGH_REACHABLE);
	expect_lookup(peer_ll, URN_NEIGH_OK, peer_mac);
	/* Unsolicited with override: the new one, not proved yet. */
	input(l3_advert(buf, all_nodes, peer_ll, other_mac, 0x20), SECOND, NULL);
	assert_int_equal(urn_neigh_peek(nb, peer_ll, NULL), URN_NEIGH_STALE);
	assert_int_not_equal(urn_neigh_generation(nb), gen);
	expect_lookup(peer_ll, URN_NEIGH_OK, other_mac);
}

/* Who asks for us is learnt and answered, without waking anybody. */
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
	/* Now they are wanted: news about them is told. */
	input(l3_arp(buf, 1, other_mac, peer_v4, us_v4), SECOND, NULL);
	assert_int_not_equal(urn_neigh_generation(nb), gen);
	assert_int_equal(input(l3_echo(buf, peer_v4, us_v4, 56), SECOND, &c), 1);
	assert_int_equal(c, URN_C_ECHO_RX);
}

/* Nothing is learnt from what is not for us, not asked for, or malformed. */
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
	/* RFC 4862: a DAD probe is answered if it is for us; its sender has no address. */
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

/* Another machine claims an address of ours: counted, not answered, not learnt. */
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
	/* Our own announcement, come back over a loop, is none. */
	assert_int_equal(input(l3_arp(buf, 1, us_mac, us_v4, us_v4), SECOND, &c), 0);
	assert_int_equal(c, URN_C_ARP_RX);
	expect_lookup(us_v4, URN_NEIGH_OK, us_mac);
	assert_int_equal(urn_neigh_count(nb), 0);
}

static void
test_static(void **state)
{
	uint8_t gid[16];

	(void)state;
	assert_int_equal(urn_neigh_add_static(nb, peer_v4, peer_mac), 0);
	expect_lookup(peer_v4, URN_NEIGH_OK, peer_mac);
	input(l3_arp(buf, 1, other_mac, peer_v4, us_v4), SECOND, NULL);
	input(l3_arp(buf, 2, other_mac, peer_v4, us_v4), SECOND, NULL);
	expect_lookup(peer_v4, URN_NEIGH_OK, peer_mac);
	poll_all(1000 * SECOND, 64);
	expect_lookup(peer_v4, URN_NEIGH_OK, peer_mac); /* is never doubted */
	assert_int_equal(poll_all(1000 * SECOND, 64), 0);
	assert_int_equal(urn_neigh_add_static(nb, peer_v4, other_mac), 0);
	expect_lookup(peer_v4, URN_NEIGH_OK, other_mac);

	/* One that is being asked for becomes static: no more requests. */
	expect_lookup(peer_ll, URN_NEIGH_UNKNOWN, NULL);
	assert_int_equal(urn_neigh_add_static(nb, peer_ll, peer_mac), 0);
	assert_int_equal(poll_all(1001 * SECOND, 64), 0);

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

/* A flood of requests from made-up addresses neither grows the table nor wakes anybody. */
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
	assert_int_equal(urn_neigh_peek(nb, gid, NULL), URN_NEIGH_REACHABLE); /* the newest */
	assert_int_equal(urn_neigh_peek(nb, peer_ll, NULL), URN_NEIGH_INCOMPLETE);
	expect_lookup(peer_v4, URN_NEIGH_OK, peer_mac);
	expect_lookup(peer_global, URN_NEIGH_OK, other_mac);
}

/* Nor do many look-ups of nobody: what is reachable outlasts what is not. */
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
	/* All are asked for, never more than was wanted at once, and all fail. */
	for (t = 2 * SECOND; t < 8 * SECOND; t += 10 * MS)
		sent += poll_all(t, 32);
	assert_int_equal(sent, (URN_NEIGH_ENTRIES - 2) * URN_NEIGH_TRIES);
	for (; t < 12 * SECOND; t += 10 * MS)
		assert_int_equal(poll_all(t, 32), 0);
	assert_int_equal(urn_neigh_peek(nb, gid, NULL), URN_NEIGH_FAILED);
	for (uint32_t i = 20000; i < 30000; i++) { /* room is made by those */
		l3_nth_v4(gid, i);
		expect_lookup(gid, URN_NEIGH_UNKNOWN, NULL);
	}
	expect_lookup(peer_v4, URN_NEIGH_OK, peer_mac);
	expect_lookup(peer_global, URN_NEIGH_OK, other_mac);
	assert_int_equal(urn_neigh_count(nb), URN_NEIGH_ENTRIES);
}

/* A table full of reachable neighbours gives up the one unused for longest. */
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
	/* Strangers can't get in at all. */
	assert_int_equal(input(l3_arp(buf, 1, other_mac, peer_v4, us_v4), SECOND, NULL), 1);
	assert_int_equal(urn_neigh_peek(nb, peer_v4, NULL), URN_NEIGH_NONE);

	expect_lookup(peer_v4, URN_NEIGH_UNKNOWN, NULL);
	assert_int_equal(urn_neigh_peek(nb, gid, NULL), URN_NEIGH_REACHABLE);
	l3_nth_v4(gid, 1);
	assert_int_equal(urn_neigh_peek(nb, gid, NULL), URN_NEIGH_NONE);
	l3_nth_v4(gid, 2);
	assert_int_equal(urn_neigh_peek(nb, gid, NULL), URN_NEIGH_REACHABLE);
}

/* Poll keeps to its budget, and what finds no mbuf stays due. */
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

/* Engines read their clocks at different moments: time does not run back. */
static void
test_time_order(void **state)
{
	(void)state;
	expect_lookup(peer_v4, URN_NEIGH_UNKNOWN, NULL);
	assert_int_equal(poll_all(10 * SECOND, 64), 1);
	assert_int_equal(poll_all(9 * SECOND, 64), 0);
	assert_int_equal(poll_all(11 * SECOND, 64), 1);
	/* Proved by a late clock: counts as proved now, not 11 s ago. */
	input(l3_arp(buf, 1, peer_mac, peer_v4, us_v4), 0, NULL);
	poll_all(URN_NEIGH_REACHABLE_NS + 2 * SECOND, 64);
	expect_lookup(peer_v4, URN_NEIGH_OK, peer_mac);
	assert_int_equal(urn_neigh_peek(nb, peer_v4, NULL), URN_NEIGH_REACHABLE);
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

/* An address that is not set is not ours, and nobody hears of it. */
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

static void
test_takes_mac(void **state)
{
	static const uint8_t yes[][6] = {
		{ 2, 0, 0, 0, 0, 1 },
		{ 0xff, 0xff, 0xff, 0xff, 0xff, 0xff },
		{ 0x33, 0x33, 0, 0, 0, 1 },
		{ 0x33, 0x33, 0xff, 0xaa, 0xbb, 1 },
		{ 0x33, 0x33, 0xff, 0, 0, 1 },
	};
	static const uint8_t no[][6] = {
		{ 2, 0, 0, 0, 0, 2 },
		{ 0x33, 0x33, 0, 0, 0, 2 },
		{ 0x33, 0x33, 0xff, 0xaa, 0xbb, 2 },
		{ 0x01, 0, 0x5e, 0, 0, 1 },
	};

	(void)state;
	for (unsigned int i = 0; i < 5; i++)
		assert_true(urn_neigh_takes_mac(nb, yes[i]));
	for (unsigned int i = 0; i < 4; i++)
		assert_false(urn_neigh_takes_mac(nb, no[i]));
}

/* Several threads at once: the table stays whole. */
static void *
hammer(void *arg)
{
	uint32_t base = *(const uint32_t *)arg;
	uint8_t gid[16], mac[6];

	for (uint32_t i = 0; i < 20000; i++) {
		l3_nth_v4(gid, base + i % 6000);
		urn_neigh_lookup(nb, gid, mac);
		if (i % 16 == 0)
			urn_neigh_add_static(nb, gid, peer_mac);
		urn_neigh_peek(nb, gid, mac);
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
		found += urn_neigh_peek(nb, gid, NULL) != URN_NEIGH_NONE;
	}
	assert_int_equal(found, URN_NEIGH_ENTRIES);
	assert_int_equal(urn_neigh_count(nb), URN_NEIGH_ENTRIES);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_create),          T(test_fixed_answers), T(test_other_family),
		T(test_resolve_arp),     T(test_resolve_nd),    T(test_retries),
		T(test_late_answer),     T(test_stale),         T(test_mac_moves),
		T(test_advert_rules),    T(test_learns_requests), T(test_learns_nothing_else),
		T(test_conflict),        T(test_static),        T(test_arp_flood),
		T(test_lookup_flood),    T(test_oldest_goes),   T(test_poll_bounds),
		T(test_time_order),      T(test_announce),      T(test_takes_mac),
		T(test_threads),         T(test_unset_address),
	};

	return cmocka_run_group_tests_name("neigh", tests, NULL, NULL);
}
