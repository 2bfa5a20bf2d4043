/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Routers that advertise themselves: solicitations (RFC 4861, 6.3.7), lifetimes, which router is
 * used (6.3.6; RFC 4191, 3), and bounds. Time is the test's own.
 */
#include "neigh_bench.h"

#include "net/router.h"

static const uint8_t far6[16] = {0x20, 0x01, 0x0d, 0xb8, 0, 9, [15] = 3};
static const uint8_t net_a[16] = {0xfd, 0, 0, 1}, on_a[16] = {0xfd, 0, 0, 1, [15] = 7};
static const uint8_t gateway[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 0xfe};
static uint32_t heard; /* news that were read */

/* Router number i, from 1 on. */
static const uint8_t *
router(uint8_t i)
{
	static uint8_t gid[16] = {0xfe, 0x80};

	gid[15] = (uint8_t)(0xf0 + i);
	return gid;
}

/* Routes of the configuration: the own prefix, and a gateway or none. */
static void
configure(bool with_gateway)
{
	struct urn_neigh_route r[2] = {{.len = 64, .kind = URN_NEIGH_ROUTE_LINK},
				       {.kind = URN_NEIGH_ROUTE_GATEWAY}};

	memcpy(r[0].prefix, us_global, 8);
	memcpy(r[1].via, gateway, 16);
	assert_int_equal(urn_neigh_set_routes(nb, r, with_gateway ? 2 : 1), 0);
}

static int
setup_ra(void **state)
{
	if (setup(state) != 0)
		return -1;
	urn_neigh_accept_ra(nb);
	heard = 0;
	configure(false);
	return 0;
}

static void
announce(void)
{
	struct rte_mbuf *out[8];

	rte_pktmbuf_free_bulk(out, urn_neigh_announce(nb, test_eal_pool(), out, 8));
}

/* A router's frame of len bytes comes, and time passes until it has had its effect. */
static void
advertised(uint32_t len, uint64_t now)
{
	enum urn_counter c;

	assert_int_equal(input(len, now, &c), 0);
	assert_string_equal(urn_counter_name(c), "rx_ra");
	poll_all(now, 64);
	poll_all(now + URN_ROUTER_SETTLE_NS, 64);
}

static void
advertise(uint8_t i, uint32_t lifetime, uint8_t flags, uint64_t now)
{
	advertised(l3_ra(buf, router(i), lifetime, flags), now);
}

/* The next news; via: 0: of a prefix. */
static struct urn_router_news
next_news(unsigned int what, uint8_t via)
{
	struct urn_router_news n;
	uint32_t lost;

	assert_int_equal(urn_neigh_router_news(nb, &heard, &n, 1, &lost), 1);
	assert_int_equal(lost, 0);
	assert_int_equal(n.what, what);
	assert_int_equal(n.route.kind, via ? URN_NEIGH_ROUTE_ROUTER : URN_NEIGH_ROUTE_RA_LINK);
	if (via)
		assert_memory_equal(n.route.via, router(via), 16);
	return n;
}

static void
no_news(void)
{
	struct urn_router_news n;
	uint32_t lost;

	assert_int_equal(urn_neigh_router_news(nb, &heard, &n, 1, &lost), 0);
	assert_int_equal(lost, 0);
}

/* ---- solicitations */

/* Poll each millisecond. returns: the time of the next solicitation; 0: none came */
static uint64_t
next_solicitation(uint64_t from, uint64_t to)
{
	for (uint64_t now = from; now <= to; now += MS) {
		unsigned int n = poll_all(now, 64);

		assert_true(n <= 1);
		if (n == 1) {
			assert_int_equal(buf[54], 133);
			return now;
		}
	}
	return 0;
}

/* Three, 4 s apart, the first within a second; and again after the link was away. */
static void
test_solicit(void **state)
{
	uint64_t base = 1000 * SECOND, first, t;

	(void)state;
	assert_int_equal(next_solicitation(base, base + 20 * SECOND), 0);
	for (unsigned int round = 0; round < 2; round++) {
		base += 100 * SECOND;
		announce();
		first = next_solicitation(base, base + SECOND);
		assert_true(first != 0);
		t = first;
		for (unsigned int i = 0; i < 2; i++) {
			uint64_t next = next_solicitation(t + MS, t + 5 * SECOND);

			assert_int_equal(next, t + 4 * SECOND);
			t = next;
		}
		assert_int_equal(next_solicitation(t + MS, t + 20 * SECOND), 0);
	}
}

/* A router's answer ends them; one that is no default router does not. */
static void
test_solicit_answered(void **state)
{
	uint64_t base = 1000 * SECOND, t;

	(void)state;
	announce();
	t = next_solicitation(base, base + SECOND);
	assert_true(t != 0);
	advertise(1, 0, 0, t + MS);
	t = next_solicitation(t + SECOND, t + 5 * SECOND);
	assert_true(t != 0);
	advertise(1, 1800, 0, t + MS);
	assert_int_equal(next_solicitation(t + SECOND, t + 20 * SECOND), 0);
}

/* Without an mbuf a solicitation stays due. */
static void
test_solicit_without_mbuf(void **state)
{
	uint64_t now = 1000 * SECOND;
	struct rte_mbuf *all[TEST_EAL_MBUFS];

	(void)state;
	announce();
	assert_int_equal(rte_pktmbuf_alloc_bulk(test_eal_pool(), all, TEST_EAL_MBUFS), 0);
	assert_int_equal(poll_all(now, 64), 0);
	assert_int_equal(poll_all(now + 2 * SECOND, 64), 0);
	rte_pktmbuf_free_bulk(all, TEST_EAL_MBUFS);
	assert_int_equal(poll_all(now + 2 * SECOND, 0), 0); /* nor without room */
	assert_int_equal(poll_all(now + 2 * SECOND, 64), 1);
	assert_int_equal(buf[54], 133);
}

/* ---- lifetimes */

/* A router comes, is used for what no other route has, and ends: by time. */
static void
test_expires(void **state)
{
	uint64_t now = 1000 * SECOND;
	struct urn_neigh_route r[4];
	struct urn_router_news n;
	uint32_t gen;

	(void)state;
	expect_hop(far6, NULL);
	gen = urn_neigh_generation(nb);
	advertise(1, 30, 0, now);
	assert_int_not_equal(urn_neigh_generation(nb), gen);
	expect_hop(far6, router(1));
	expect_hop(peer_global, peer_global);
	n = next_news(URN_ROUTER_CAME, 1);
	assert_int_equal(n.route.left_s, 30);
	n = next_news(URN_ROUTER_USED, 1);
	assert_memory_equal(n.before, no_addr, 16);
	assert_int_equal(urn_neigh_routes(nb, r, 4), 2);
	assert_int_equal(r[0].left_s, 0);
	assert_int_equal(r[1].kind, URN_NEIGH_ROUTE_ROUTER);
	assert_int_equal(r[1].left_s, 30);
	/* The next advertisement makes the life longer, and changes nothing else. */
	gen = urn_neigh_generation(nb);
	advertise(1, 30, 0, now + 20 * SECOND);
	assert_int_equal(urn_neigh_generation(nb), gen);
	poll_all(now + 50 * SECOND - 1, 64);
	expect_hop(far6, router(1));
	assert_int_equal(urn_neigh_routes(nb, r, 4), 2);
	assert_int_equal(r[1].left_s, 1);
	no_news();
	poll_all(now + 50 * SECOND, 64);
	expect_hop(far6, NULL);
	assert_int_not_equal(urn_neigh_generation(nb), gen);
	(void)next_news(URN_ROUTER_EXPIRED, 1);
	no_news();
	assert_int_equal(urn_neigh_routes(nb, r, 4), 1);
}

/* ... by its own word; and a lifetime of zero from a router that nobody knows is nothing. */
static void
test_ends(void **state)
{
	uint64_t now = 1000 * SECOND;

	(void)state;
	advertise(2, 0, 0, now);
	no_news();
	advertise(1, 9000, 0, now);
	expect_hop(far6, router(1));
	advertise(1, 0, 0, now + SECOND);
	expect_hop(far6, NULL);
	(void)next_news(URN_ROUTER_CAME, 1);
	(void)next_news(URN_ROUTER_USED, 1);
	(void)next_news(URN_ROUTER_ENDED, 1);
	no_news();
}

/* A prefix on the link: its stations are asked for, not the router; until it ends. */
static void
test_prefix(void **state)
{
	uint64_t now = 1000 * SECOND;
	struct urn_router_news n;
	struct urn_neigh_route r[4];

	(void)state;
	advertised(l3_prefix(buf, l3_ra(buf, router(1), 1800, 0), net_a, 64, 0x80, 60), now);
	expect_hop(on_a, on_a);
	expect_hop(far6, router(1));
	(void)next_news(URN_ROUTER_CAME, 1);
	n = next_news(URN_ROUTER_CAME, 0);
	assert_memory_equal(n.route.prefix, net_a, 16);
	assert_int_equal(n.route.len, 64);
	assert_int_equal(n.route.left_s, 60);
	(void)next_news(URN_ROUTER_USED, 1);
	/* Another router, or none, may say the same prefix. */
	advertised(l3_prefix(buf, l3_ra(buf, router(2), 0, 0), net_a, 64, 0x80, UINT32_MAX),
		   now + 10 * SECOND);
	poll_all(now + 1000 * SECOND, 64);
	expect_hop(on_a, on_a);
	assert_int_equal(urn_neigh_routes(nb, r, 4), 3);
	assert_memory_equal(r[1].prefix, net_a, 16);
	assert_int_equal(r[1].left_s, 0); /* no end */
	advertised(l3_prefix(buf, l3_ra(buf, router(2), 0, 0), net_a, 64, 0x80, 0),
		   now + 1001 * SECOND);
	expect_hop(on_a, router(1));
	(void)next_news(URN_ROUTER_ENDED, 0);
	no_news();
}

/* Configured routes go first, and a reload changes them alone. */
static void
test_configured_first(void **state)
{
	uint64_t now = 1000 * SECOND;
	struct urn_neigh_route r[8];

	(void)state;
	configure(true);
	advertised(l3_prefix(buf, l3_ra(buf, router(1), 1800, 0x08), us_global, 64, 0x80, 60), now);
	expect_hop(far6, gateway);
	assert_int_equal(urn_neigh_routes(nb, r, 8), 4);
	assert_int_equal(r[0].kind, URN_NEIGH_ROUTE_LINK);
	assert_int_equal(r[1].kind, URN_NEIGH_ROUTE_RA_LINK);
	assert_int_equal(r[2].kind, URN_NEIGH_ROUTE_GATEWAY);
	assert_int_equal(r[3].kind, URN_NEIGH_ROUTE_ROUTER);
	(void)next_news(URN_ROUTER_CAME, 1);
	(void)next_news(URN_ROUTER_CAME, 0);
	no_news(); /* the router is not used */
	configure(false);
	expect_hop(far6, router(1));
	assert_int_equal(urn_neigh_routes(nb, r, 8), 3);
	poll_all(now + SECOND, 64);
	(void)next_news(URN_ROUTER_USED, 1); /* it is now */
	configure(true);
	expect_hop(far6, gateway);
	poll_all(now + 2 * SECOND, 64);
	no_news();
	/* The end of the advertised prefix leaves the own one. */
	poll_all(now + 100 * SECOND, 64);
	expect_hop(peer_global, peer_global);
	(void)next_news(URN_ROUTER_EXPIRED, 0);
	/* A gateway that goes once more leaves the router, and that is told again. */
	configure(false);
	poll_all(now + 101 * SECOND, 64);
	(void)next_news(URN_ROUTER_USED, 1);
	no_news();
}

/* ---- several routers */

static void
test_preference(void **state)
{
	uint64_t now = 1000 * SECOND;
	struct urn_neigh_route r[8];

	(void)state;
	advertise(1, 1800, 0x18, now); /* low */
	expect_hop(far6, router(1));
	advertise(2, 1800, 0, now + SECOND);
	expect_hop(far6, router(2));
	advertise(3, 1800, 0, now + 2 * SECOND); /* no better: nothing changes */
	expect_hop(far6, router(2));
	assert_int_equal(urn_neigh_routes(nb, r, 8), 4);
	assert_memory_equal(r[1].via, router(2), 16);
	advertise(1, 1800, 0x08, now + 3 * SECOND); /* high */
	expect_hop(far6, router(1));
	advertise(1, 0, 0, now + 4 * SECOND);
	expect_hop(far6, router(2));		 /* not 3: the first of the two */
	advertise(1, 1800, 0, now + 4 * SECOND); /* again, and no better */
	expect_hop(far6, router(2));
	advertise(1, 0, 0, now + 5 * SECOND);
	advertise(2, 0, 0, now + 5 * SECOND);
	expect_hop(far6, router(3));
}

/* Let nobody answer for the router that is used. returns: the time at which that is known */
static uint64_t
no_answer(uint64_t now)
{
	uint8_t mac[6];

	(void)urn_neigh_lookup(nb, far6, mac);
	for (unsigned int i = 0; i < 3000; i++)
		poll_all(now += MS, 64);
	return now;
}

/* A router without an answer is left for another, and tried again after a minute. */
static void
test_unreachable(void **state)
{
	uint64_t now = 1000 * SECOND;
	struct urn_router_news n;

	(void)state;
	advertise(1, 1800, 0x08, now);
	advertise(2, 1800, 0, now + SECOND);
	expect_hop(far6, router(1));
	now = no_answer(now + 2 * SECOND);
	expect_hop(far6, router(2));
	(void)next_news(URN_ROUTER_CAME, 1);
	(void)next_news(URN_ROUTER_USED, 1);
	(void)next_news(URN_ROUTER_CAME, 2);
	n = next_news(URN_ROUTER_USED, 2);
	assert_memory_equal(n.before, router(1), 16);
	/* Advertisements alone don't bring the router back. */
	advertise(1, 1800, 0x08, now + SECOND);
	expect_hop(far6, router(2));
	/* Without any that answers the better one of the two is used. */
	now = no_answer(now + 2 * SECOND);
	expect_hop(far6, router(1));
	poll_all(now + 70 * SECOND, 64);
	expect_hop(far6, router(1));
}

/* The last router stays in use without an answer, and nobody is made to look up again for it. */
static void
test_only_one(void **state)
{
	uint64_t now = 1000 * SECOND;
	uint32_t gen;

	(void)state;
	advertise(1, 1800, 0, now);
	gen = urn_neigh_generation(nb);
	now = no_answer(now + SECOND);
	expect_hop(far6, router(1));
	poll_all(now + 100 * SECOND, 64);
	expect_hop(far6, router(1));
	assert_int_equal(urn_neigh_generation(nb), gen);
}

/* ---- bounds */

/* Routers and prefixes that find no room are left out; those that are known stay. */
static void
test_room(void **state)
{
	uint64_t now = 1000 * SECOND;
	struct urn_neigh_route r[URN_NEIGH_ROUTES_ALL];
	enum urn_counter c;
	uint8_t p[16];

	(void)state;
	for (unsigned int i = 1; i <= URN_NEIGH_ROUTERS; i++)
		advertise((uint8_t)i, 1800, 0, now);
	assert_int_equal(input(l3_ra(buf, router(9), 1800, 0x08), now, &c), 0);
	assert_string_equal(urn_counter_name(c), "ra_full");
	for (unsigned int i = 0; i < 2 * URN_NEIGH_PREFIXES; i++) {
		memcpy(p, net_a, 16);
		p[7] = (uint8_t)i;
		(void)input(l3_prefix(buf, l3_ra(buf, router(1), 1800, 0), p, 64, 0x80, 60), now,
			    &c);
		assert_string_equal(urn_counter_name(c),
				    i < URN_NEIGH_PREFIXES ? "rx_ra" : "ra_full");
	}
	poll_all(now + SECOND, 64);
	expect_hop(far6, router(1));
	assert_int_equal(urn_neigh_routes(nb, r, URN_NEIGH_ROUTES_ALL), 1 + URN_NEIGH_ADVERTISED);
	/* One that ends makes room. */
	advertise(2, 0, 0, now + 2 * SECOND);
	advertise(9, 1800, 0x08, now + 3 * SECOND);
	expect_hop(far6, router(9));
}

/* However often advertisements change their minds, users look up again five times a second. */
static void
test_flood(void **state)
{
	uint64_t now = 1000 * SECOND;
	uint32_t gen = urn_neigh_generation(nb), seen = 0, lost;
	struct urn_router_news n[URN_ROUTER_NEWS];

	(void)state;
	for (unsigned int i = 0; i < 20000; i++) {
		now += 100000; /* ten thousand a second, for two seconds */
		(void)input(l3_ra(buf, router((uint8_t)(1 + i % 7)), i % 3 ? 1800 : 0,
				  (uint8_t)(i % 4 << 3)),
			    now, NULL);
		poll_all(now, 64);
	}
	assert_in_range(urn_neigh_generation(nb) - gen, 2, 11);
	assert_int_equal(poll_all(now, 64), 0);
	/* A reader that comes late gets the last news, and the number of the others. */
	assert_int_equal(urn_neigh_router_news(nb, &seen, n, URN_ROUTER_NEWS, &lost),
			 URN_ROUTER_NEWS);
	assert_int_equal(seen, lost + URN_ROUTER_NEWS);
	assert_int_equal(urn_neigh_router_news(nb, &seen, n, URN_ROUTER_NEWS, &lost), 0);
}

/* Frames that are refused have no effect, each with its reason. */
static void
test_refused(void **state)
{
	uint64_t now = 1000 * SECOND;
	enum urn_counter c;
	uint32_t len;

	(void)state;
	len = l3_ra(buf, router(1), 1800, 0);
	buf[21] = 64; /* a router passed it on */
	(void)input(len, now, &c);
	assert_string_equal(urn_counter_name(c), "drop_ra_far");
	(void)input(l3_ra(buf, us_ll, 1800, 0), now, &c);
	assert_string_equal(urn_counter_name(c), "neigh_conflict");
	len = l3_prefix(buf, l3_ra(buf, router(1), 1800, 0), net_a, 64, 0x80, 60);
	len = l3_option(buf, len, 5, 1);
	buf[len - 7] = 0; /* the last option has no length: none of the earlier ones counts */
	l3_fix(buf, len);
	(void)input(len, now, &c);
	assert_string_equal(urn_counter_name(c), "drop_neigh");
	len = l3_ra(buf, router(1), 1800, 0);
	memcpy(buf + 6, us_mac, 6);
	(void)input(len, now, &c);
	assert_string_equal(urn_counter_name(c), "drop_neigh");
	poll_all(now + SECOND, 64);
	expect_hop(far6, NULL);
	expect_hop(on_a, NULL);
	no_news();
}

/* An adapter that does not accept them: they are dropped, and nothing is asked. */
static void
test_off(void **state)
{
	uint64_t now = 1000 * SECOND;
	enum urn_counter c;

	(void)state;
	assert_false(urn_neigh_accepts_ra(nb));
	configure(false);
	announce();
	(void)input(l3_ra(buf, router(1), 1800, 0), now, &c);
	assert_string_equal(urn_counter_name(c), "drop_not_roce");
	assert_int_equal(next_solicitation(now, now + 5 * SECOND), 0);
	expect_hop(far6, NULL);
}

#define R(f) cmocka_unit_test_setup_teardown(f, setup_ra, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		R(test_solicit),
		R(test_solicit_answered),
		R(test_solicit_without_mbuf),
		R(test_expires),
		R(test_ends),
		R(test_prefix),
		R(test_configured_first),
		R(test_preference),
		R(test_unreachable),
		R(test_only_one),
		R(test_room),
		R(test_flood),
		R(test_refused),
		T(test_off),
	};

	return cmocka_run_group_tests_name("neigh_router", tests, NULL, NULL);
}
