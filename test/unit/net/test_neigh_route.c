/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Routes: the neighbour that is asked for instead of a destination (RFC 1122, 3.3.1; longest prefix
 * first, RFC 1812, 5.2.4.3), and routes that can't be.
 */
#include "neigh_bench.h"

#include "wire/build.h"

#include <errno.h>

/* Destinations; us_v4 is 10.0.0.1, us_global 2001:db8::1. */
static const uint8_t near4[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 77};
static const uint8_t far4[16] = {[10] = 0xff, [11] = 0xff, 10, 1, 2, 3};
static const uint8_t farther4[16] = {[10] = 0xff, [11] = 0xff, 10, 1, 200, 3};
static const uint8_t else4[16] = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 1};
static const uint8_t far6[16] = {0x20, 0x01, 0x0d, 0xb8, 0, 9, [15] = 3};
static const uint8_t r1[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 251};
static const uint8_t r2[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 252};
static const uint8_t r3[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 253};
static const uint8_t r6[16] = {0xfe, 0x80, [15] = 0xfe};
static const uint8_t r1_mac[6] = {2, 0, 0, 1, 0, 1}, r6_mac[6] = {2, 0, 0, 1, 0, 6};

static struct urn_neigh_route
route(unsigned int kind, const uint8_t prefix[16], unsigned int len, const uint8_t *via)
{
	struct urn_neigh_route r = {.len = (uint8_t)len, .kind = (uint8_t)kind};

	memcpy(r.prefix, prefix, 16);
	(void)urn_neigh_mask(r.prefix, len);
	if (via)
		memcpy(r.via, via, 16);
	return r;
}

#define LINK(prefix, len) route(URN_NEIGH_ROUTE_LINK, prefix, len, NULL)
#define VIA(prefix, len, via) route(URN_NEIGH_ROUTE_STATIC, prefix, len, via)
#define SET(...)                                                                     \
	urn_neigh_set_routes(nb, (const struct urn_neigh_route[]){__VA_ARGS__},      \
			     sizeof((const struct urn_neigh_route[]){__VA_ARGS__}) / \
				     sizeof(struct urn_neigh_route))

/* Masks and prefixes of every length, checked bit by bit. */
static void
test_prefixes(void **state)
{
	(void)state;
	for (unsigned int len = 0; len <= 128; len++) {
		uint8_t a[16], b[16];

		memset(a, 0xff, 16);
		assert_int_equal(urn_neigh_mask(a, len), len < 128);
		for (unsigned int bit = 0; bit < 128; bit++)
			assert_int_equal(a[bit / 8] >> (7 - bit % 8) & 1, bit < len);
		assert_false(urn_neigh_mask(a, len));
		for (unsigned int bit = 0; bit < 128; bit++) {
			memset(a, 0x5a, 16);
			memcpy(b, a, 16);
			b[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
			assert_int_equal(urn_neigh_same_prefix(a, b, len), bit >= len);
		}
	}
	/* The two families have nothing in common, whatever the bits. */
	assert_false(urn_neigh_same_prefix(far4, far6, 0));
}

/* Without a prefix of the family all of it is on the link. */
static void
test_none(void **state)
{
	(void)state;
	expect_hop(far4, far4);
	expect_hop(far6, far6);
	assert_int_equal(SET(LINK(us_v4, 96 + 24)), 0);
	expect_hop(far4, NULL);
	expect_hop(near4, near4);
	expect_hop(far6, far6);
	expect_lookup(far4, URN_NEIGH_NO_ROUTE, NULL);
	assert_int_equal(urn_neigh_count(nb), 0);
	assert_int_equal(urn_neigh_set_routes(nb, NULL, 0), 0);
	expect_hop(far4, far4);
}

/* The longest prefix wins, whatever the order of the routes. */
static void
test_longest(void **state)
{
	static const unsigned int orders[][5] = {{0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {2, 4, 0, 3, 1}};
	const struct urn_neigh_route all[5] = {
		LINK(us_v4, 96 + 24), VIA(far4, 96 + 16, r1), VIA(far4, 96 + 17, r2),
		VIA(us_v4, 96, r3),   VIA(far4, 128, r3),
	};
	struct urn_neigh_route r[5], got[5];
	uint8_t host[16];

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		for (unsigned int k = 0; k < 5; k++)
			r[k] = all[orders[i][k]];
		assert_int_equal(urn_neigh_set_routes(nb, r, 5), 0);
		expect_hop(near4, near4);
		expect_hop(farther4, r1);
		memcpy(host, far4, 16);
		expect_hop(host, r3);
		host[15]++;
		expect_hop(host, r2);
		expect_hop(else4, r3);
		assert_int_equal(urn_neigh_routes(nb, got, 5), 5);
		for (unsigned int k = 1; k < 5; k++)
			assert_true(got[k - 1].len >= got[k].len);
	}
}

/* The default route of IPv6 is none of IPv4, and link-local addresses are on the link always. */
static void
test_families(void **state)
{
	(void)state;
	assert_int_equal(SET(LINK(us_v4, 96 + 24), LINK(us_global, 64), VIA(no_addr, 0, r6)), 0);
	expect_hop(far4, NULL);
	expect_hop(far6, r6);
	expect_hop(peer_global, peer_global);
	expect_hop(peer_ll, peer_ll);
}

/* The router is asked, by its own address, and its MAC is used for all behind it. */
static void
test_router_is_asked(void **state)
{
	(void)state;
	assert_int_equal(SET(LINK(us_v4, 96 + 24), VIA(us_v4, 96, r1)), 0);
	expect_lookup(far4, URN_NEIGH_UNKNOWN, NULL);
	expect_lookup(else4, URN_NEIGH_UNKNOWN, NULL);
	assert_int_equal(urn_neigh_count(nb), 1);
	assert_int_equal(poll_all(SECOND, 64), 1);
	assert_memory_equal(buf + 38, r1 + 12, 4); /* the target of the ARP request */
	arp_answer(r1, r1_mac, SECOND);
	expect_lookup(far4, URN_NEIGH_OK, r1_mac);
	expect_lookup(else4, URN_NEIGH_OK, r1_mac);
	/* A silent peer behind it raises a doubt about the router. */
	assert_int_equal(poll_all(2 * SECOND, 64), 0);
	urn_neigh_doubt(nb, far4);
	assert_int_equal(poll_all(2 * SECOND, 64), 1);
	assert_memory_equal(buf, r1_mac, 6);
	expect_lookup(far4, URN_NEIGH_OK, r1_mac);
}

/* An IPv6 router is asked by its link-local address, from ours. */
static void
test_router6(void **state)
{
	(void)state;
	assert_int_equal(SET(LINK(us_global, 64), VIA(no_addr, 0, r6)), 0);
	expect_lookup(far6, URN_NEIGH_UNKNOWN, NULL);
	assert_int_equal(poll_all(SECOND, 64), 1);
	assert_memory_equal(buf + 22, us_ll, 16);
	assert_memory_equal(buf + 62, r6, 16);
	assert_int_equal(input(l3_advert(buf, us_ll, r6, r6_mac, 0x60), SECOND, NULL), 0);
	expect_lookup(far6, URN_NEIGH_OK, r6_mac);
}

/* A static entry of the destination goes before routes, and needs none. */
static void
test_static_first(void **state)
{
	(void)state;
	assert_int_equal(urn_neigh_add_static(nb, far4, peer_mac), 0);
	assert_int_equal(SET(LINK(us_v4, 96 + 24)), 0);
	expect_lookup(far4, URN_NEIGH_OK, peer_mac);
	assert_int_equal(SET(LINK(us_v4, 96 + 24), VIA(us_v4, 96, r1)), 0);
	expect_lookup(far4, URN_NEIGH_OK, peer_mac);
	expect_hop(far4, far4);
	expect_lookup(farther4, URN_NEIGH_UNKNOWN, NULL);
}

/* An address that was a neighbour, and is behind a router now, is looked up there; users are told.
 */
static void
test_change(void **state)
{
	uint32_t gen;

	(void)state;
	make_reachable(far4, peer_mac, SECOND);
	gen = urn_neigh_generation(nb);
	assert_int_equal(SET(LINK(us_v4, 96 + 24), VIA(us_v4, 96, r1)), 0);
	assert_int_not_equal(urn_neigh_generation(nb), gen);
	make_reachable(r1, r1_mac, SECOND);
	expect_lookup(far4, URN_NEIGH_OK, r1_mac);
	assert_int_equal(urn_neigh_set_routes(nb, NULL, 0), 0);
	expect_lookup(far4, URN_NEIGH_OK, peer_mac);
}

/* Routes that can't be; the earlier ones stay. */
static void
test_refused(void **state)
{
	struct urn_neigh_route many[URN_NEIGH_ROUTES + 1], bad = VIA(far4, 96 + 16, r1);

	(void)state;
	assert_int_equal(SET(LINK(us_v4, 96 + 24), VIA(us_v4, 96, r1)), 0);
	assert_int_equal(SET(VIA(far4, 96 + 16, r1), VIA(far4, 96 + 16, r2)), EEXIST);
	assert_int_equal(SET(LINK(us_v4, 96 + 24), VIA(us_v4, 96 + 24, r2)), EEXIST);
	assert_int_equal(SET(LINK(us_v4, 96 + 24), VIA(us_v4, 96, else4)),
			 EINVAL); /* not on the link */
	assert_int_equal(SET(LINK(us_v4, 96 + 24), VIA(us_v4, 96, us_v4)), EINVAL);
	assert_int_equal(SET(LINK(us_v4, 96 + 24), VIA(us_v4, 96, r6)), EINVAL);
	assert_int_equal(SET(LINK(us_global, 64), VIA(no_addr, 0, us_group)), EINVAL);
	assert_int_equal(SET(VIA(us_v4, 95, r1)), EINVAL);
	bad.prefix[15] = 1; /* behind its length */
	assert_int_equal(SET(LINK(us_v4, 96 + 24), bad), EINVAL);
	bad = VIA(far4, 96 + 16, r1);
	bad.len = 129;
	assert_int_equal(SET(LINK(us_v4, 96 + 24), bad), EINVAL);
	for (unsigned int i = 0; i < URN_NEIGH_ROUTES + 1; i++) {
		many[i] = VIA(far4, 128, r1);
		many[i].prefix[14] = (uint8_t)i;
	}
	assert_int_equal(urn_neigh_set_routes(nb, many, URN_NEIGH_ROUTES + 1), ENOSPC);
	assert_int_equal(urn_neigh_routes(nb, many, 2), 2);
	expect_hop(far4, r1);
	assert_int_equal(urn_neigh_set_routes(nb, many + 2, URN_NEIGH_ROUTES - 2), 0);
}

/* The table's list says who is a router; one address can be looked at alone. */
static void
test_list(void **state)
{
	struct urn_neigh_info n[4];
	uint8_t mac[6];
	uint32_t at = 0;

	(void)state;
	assert_int_equal(SET(LINK(us_v4, 96 + 24), VIA(us_v4, 96, r1), VIA(far4, 96 + 16, r1)), 0);
	assert_int_equal(urn_neigh_peek(nb, r1, mac), URN_NEIGH_NONE);
	make_reachable(r1, r1_mac, SECOND);
	make_reachable(near4, peer_mac, SECOND);
	assert_int_equal(urn_neigh_list(nb, &at, n, 4), 2);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(n[i].routes, memcmp(n[i].gid, r1, 16) == 0 ? 2 : 0);
	assert_int_equal(urn_neigh_peek(nb, r1, mac), URN_NEIGH_REACHABLE);
	assert_memory_equal(mac, r1_mac, 6);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_prefixes),	 T(test_none),	  T(test_longest),	T(test_families),
		T(test_router_is_asked), T(test_router6), T(test_static_first), T(test_change),
		T(test_refused),	 T(test_list),
	};

	return cmocka_run_group_tests_name("neigh_route", tests, NULL, NULL);
}
