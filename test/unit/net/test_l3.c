/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/l3.h"
#include "wire/build.h"

#include "common/test_eal.h"
#include "common/test_mbuf.h"
#include "l3_frames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const uint8_t us_group[16] = { 0xff, 0x02, [11] = 1, 0xff, 0xaa, 0xbb, 0x01 };
static const uint8_t all_nodes[16] = { 0xff, 0x02, [15] = 1 };
static uint8_t buf[L3_ROOM];

/* Read buf[0..len) with nothing readable behind it. */
static enum urn_counter
rd(uint32_t len, struct urn_l3_msg *msg)
{
	struct rte_mbuf *m = test_mbuf_wrap(buf, len);
	enum urn_frame_kind kind = urn_wire_parse(m);

	if (kind == URN_FRAME_BAD || kind == URN_FRAME_OTHER)
		return (enum urn_counter)urn_pkt(m)->drop;
	return urn_l3_read(m, msg);
}

static void
expect(uint32_t len, enum urn_counter want)
{
	struct urn_l3_msg msg;

	assert_string_equal(urn_counter_name(rd(len, &msg)), urn_counter_name(want));
}

/* The same after the checksums were corrected: refused for another reason. */
static void
expect_bad(uint32_t len)
{
	l3_fix(buf, len);
	expect(len, URN_C_DROP_NEIGH);
}

/* Read a frame in a pool's mbuf and answer it; buf[] then holds the answer. */
static uint32_t
answer(uint32_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_eal_pool());
	struct urn_l3_msg msg;
	uint32_t out;

	assert_non_null(m);
	memset(rte_pktmbuf_mtod(m, void *), 0xee, TEST_EAL_ROOM);
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), buf, len);
	urn_wire_parse(m);
	assert_string_not_equal(urn_counter_name(urn_l3_read(m, &msg)), "drop_neigh");
	assert_int_equal(urn_l3_reply(m, &msg, us_mac), 1);
	out = rte_pktmbuf_data_len(m);
	assert_int_equal(rte_pktmbuf_pkt_len(m), out);
	memcpy(buf, rte_pktmbuf_mtod(m, void *), out);
	rte_pktmbuf_free(m);
	assert_true(l3_sums_ok(buf, out));
	return out;
}

/* RFC 4291, 2.7.1; RFC 2464, 7; RFC 1112, 6.4. */
static void
test_addresses(void **state)
{
	static const uint8_t want6[6] = { 0x33, 0x33, 0xff, 0xaa, 0xbb, 0x01 };
	static const uint8_t want4[6] = { 0x01, 0x00, 0x5e, 0x7f, 0x02, 0x03 };
	static const uint8_t group4[16] = { [10] = 0xff, [11] = 0xff, 239, 255, 2, 3 };
	uint8_t group[16], mac[6] = { 0 };

	(void)state;
	urn_l3_solicited_node(group, us_ll);
	assert_memory_equal(group, us_group, 16);
	assert_true(urn_gid_multicast_mac(mac, group));
	assert_memory_equal(mac, want6, 6);
	assert_true(urn_gid_multicast_mac(mac, group4));
	assert_memory_equal(mac, want4, 6);
	assert_false(urn_gid_multicast_mac(mac, us_v4));
	assert_false(urn_gid_multicast_mac(mac, us_ll));
	assert_true(urn_l3_mac_ok(us_mac));
	assert_false(urn_l3_mac_ok(no_addr));
	assert_false(urn_l3_mac_ok(want6));
}

static void
test_arp_request(void **state)
{
	static const uint8_t want[42] = {
		2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 6,
		0, 1, 8, 0, 6, 4, 0, 2,
		2, 0, 0, 0, 0, 1, 10, 0, 0, 1,
		2, 0, 0, 0, 0, 2, 10, 0, 0, 2,
	};
	struct urn_l3_msg msg;
	uint32_t len;

	(void)state;
	len = l3_arp(buf, 1, peer_mac, peer_v4, us_v4);
	assert_int_equal(rd(len, &msg), URN_C_ARP_RX);
	assert_int_equal(msg.kind, URN_L3_ARP_REQUEST);
	assert_true(msg.has_src && msg.has_mac && msg.override);
	assert_memory_equal(msg.mac, peer_mac, 6);
	assert_memory_equal(msg.src, peer_v4, 16);
	assert_memory_equal(msg.target, us_v4, 16);

	memset(buf + len, 0x77, 18); /* Ethernet padding does not come back */
	assert_int_equal(answer(len + 18), 42);
	assert_memory_equal(buf, want, 42);
}

static void
test_arp_reply(void **state)
{
	struct urn_l3_msg msg;

	(void)state;
	assert_int_equal(rd(l3_arp(buf, 2, peer_mac, peer_v4, us_v4), &msg), URN_C_ARP_RX);
	assert_int_equal(msg.kind, URN_L3_ARP_REPLY);
	assert_memory_equal(msg.target, peer_v4, 16);
	assert_memory_equal(msg.mac, peer_mac, 6);
}

/* RFC 5227: a probe has no sender address, and is answered. */
static void
test_arp_probe(void **state)
{
	struct urn_l3_msg msg;
	uint32_t len = l3_arp(buf, 1, peer_mac, no_addr, us_v4);

	(void)state;
	assert_int_equal(rd(len, &msg), URN_C_ARP_RX);
	assert_false(msg.has_src);
	assert_int_equal(answer(len), 42);
	assert_memory_equal(buf + 32, peer_mac, 6);
	assert_memory_equal(buf + 38, no_addr, 4);
}

static void
test_arp_malformed(void **state)
{
	/* Offset and value that make a valid request malformed. */
	static const uint8_t bad[][2] = {
		{ 14, 1 }, { 15, 6 }, { 16, 0x86 }, { 17, 6 }, { 18, 8 }, { 18, 0 }, { 19, 16 },
		{ 19, 0 }, { 20, 1 }, { 21, 0 }, { 21, 3 }, { 21, 8 }, { 22, 0x03 },
		{ 28, 224 }, { 28, 255 }, { 28, 127 }, { 28, 0 },
	};
	uint32_t len;

	(void)state;
	for (unsigned int i = 0; i < sizeof(bad) / 2; i++) {
		len = l3_arp(buf, 1, peer_mac, peer_v4, us_v4);
		buf[bad[i][0]] = bad[i][1];
		expect(len, URN_C_DROP_NEIGH);
	}
	len = l3_arp(buf, 1, peer_mac, peer_v4, us_v4);
	for (uint32_t n = 14; n < len; n++)
		expect(n, URN_C_DROP_NEIGH);
	len = l3_arp(buf, 1, no_addr, peer_v4, us_v4);
	expect(len, URN_C_DROP_NEIGH);
	len = l3_arp(buf, 2, peer_mac, no_addr, us_v4); /* a reply from no address */
	expect(len, URN_C_DROP_NEIGH);
}

/* The same data comes back, to the sender, with right checksums, for odd lengths too. */
static void
check_echo(const uint8_t *us, const uint8_t *peer, uint32_t data)
{
	static uint8_t was[L3_ROOM];
	int v6 = us[10] != 0xff;
	uint32_t icmp = v6 ? 54 : 34, len = l3_echo(buf, peer, us, data);
	struct urn_l3_msg msg;

	memcpy(was, buf, len);
	assert_int_equal(rd(len, &msg), URN_C_ECHO_RX);
	assert_int_equal(msg.kind, URN_L3_ECHO);
	assert_memory_equal(msg.src, peer, 16);
	assert_memory_equal(msg.dst, us, 16);
	assert_int_equal(answer(len), len);
	assert_memory_equal(buf, peer_mac, 6);
	assert_memory_equal(buf + 6, us_mac, 6);
	assert_int_equal(buf[icmp], v6 ? 129 : 0);
	assert_memory_equal(buf + icmp + 4, was + icmp + 4, len - icmp - 4);
	if (v6) {
		assert_memory_equal(buf + 22, us, 16);
		assert_memory_equal(buf + 38, peer, 16);
	} else {
		assert_memory_equal(buf + 26, us + 12, 4);
		assert_memory_equal(buf + 30, peer + 12, 4);
	}
	assert_int_equal(buf[v6 ? 21 : 22], 64);
}

static void
test_echo(void **state)
{
	(void)state;
	for (uint32_t data = 0; data < 70; data++) {
		check_echo(us_v4, peer_v4, data);
		check_echo(us_ll, peer_ll, data);
	}
	check_echo(us_v4, peer_v4, 1472);
	check_echo(us_global, peer_global, 1452);
}

static void
test_echo_malformed(void **state)
{
	static const uint8_t multicast4[16] = { [10] = 0xff, [11] = 0xff, 224, 0, 0, 1 };
	uint32_t len;

	(void)state;
	len = l3_echo(buf, peer_v4, us_v4, 9);
	buf[45] ^= 1; /* wrong checksum */
	expect(len, URN_C_DROP_NEIGH);
	len = l3_echo(buf, peer_ll, us_ll, 9);
	buf[65] ^= 1;
	expect(len, URN_C_DROP_NEIGH);
	len = l3_echo(buf, peer_v4, us_v4, 9);
	buf[35] = 1; /* code */
	expect_bad(len);
	len = l3_echo(buf, peer_ll, us_ll, 9);
	buf[55] = 1;
	expect_bad(len);
	expect(l3_echo(buf, multicast4, us_v4, 9), URN_C_DROP_NEIGH);
	expect(l3_echo(buf, all_nodes, us_ll, 9), URN_C_DROP_NEIGH);
	expect(l3_echo(buf, no_addr, us_ll, 9), URN_C_DROP_NEIGH);
	len = l3_echo(buf, peer_v4, us_v4, 9);
	buf[6] |= 1; /* sent from a multicast MAC */
	expect(len, URN_C_DROP_NEIGH);
	for (uint32_t icmp = 0; icmp < 8; icmp++) { /* too short for a header */
		l3_echo(buf, peer_v4, us_v4, 0);
		buf[17] = (uint8_t)(20 + icmp);
		l3_fix(buf, 34 + icmp);
		expect(34 + icmp, URN_C_DROP_NEIGH);
		l3_echo(buf, peer_ll, us_ll, 0);
		buf[19] = (uint8_t)icmp;
		expect(54 + icmp, URN_C_DROP_NEIGH);
	}
	len = l3_echo(buf, peer_v4, us_v4, 9);
	buf[34] = 3; /* destination unreachable: valid, and no business of ours */
	l3_fix(buf, len);
	expect(len, URN_C_DROP_NOT_ROCE);
	len = l3_echo(buf, peer_ll, us_ll, 9);
	buf[54] = 134; /* router advertisement */
	l3_fix(buf, len);
	expect(len, URN_C_DROP_NOT_ROCE);
}

/* The advertisement that answers a solicitation. */
static void
check_advert(uint32_t len, const uint8_t *dst_mac, const uint8_t *dst, const uint8_t *target,
	     uint8_t flags)
{
	assert_int_equal(len, 86);
	assert_memory_equal(buf, dst_mac, 6);
	assert_memory_equal(buf + 6, us_mac, 6);
	assert_int_equal(buf[14], 0x60);
	assert_int_equal(buf[19], 32);
	assert_int_equal(buf[21], 255);
	assert_memory_equal(buf + 22, target, 16);
	assert_memory_equal(buf + 38, dst, 16);
	assert_int_equal(buf[54], 136);
	assert_int_equal(buf[55], 0);
	assert_int_equal(buf[58], flags);
	assert_memory_equal(buf + 62, target, 16);
	assert_int_equal(buf[78], 2);
	assert_int_equal(buf[79], 1);
	assert_memory_equal(buf + 80, us_mac, 6);
}

static void
test_solicit(void **state)
{
	struct urn_l3_msg msg;
	uint32_t len;

	(void)state;
	len = l3_solicit(buf, peer_ll, us_group, us_ll, other_mac);
	assert_int_equal(rd(len, &msg), URN_C_ND_RX);
	assert_int_equal(msg.kind, URN_L3_SOLICIT);
	assert_true(msg.has_src && msg.has_mac);
	assert_memory_equal(msg.mac, other_mac, 6);
	assert_memory_equal(msg.target, us_ll, 16);
	check_advert(answer(len), other_mac, peer_ll, us_ll, 0x60);

	/* A probe of a known neighbour comes without its MAC option: 8 bytes are added. */
	len = l3_solicit(buf, peer_ll, us_ll, us_ll, NULL);
	assert_int_equal(rd(len, &msg), URN_C_ND_RX);
	assert_false(msg.has_mac);
	check_advert(answer(len), peer_mac, peer_ll, us_ll, 0x60);
}

/* In an mbuf that ends with the frame there is no room for these 8 bytes. */
static void
test_solicit_no_room(void **state)
{
	struct urn_l3_msg msg;
	uint32_t len = l3_solicit(buf, peer_ll, us_ll, us_ll, NULL);
	struct rte_mbuf *m = test_mbuf_wrap(buf, len);

	(void)state;
	urn_wire_parse(m);
	assert_int_equal(urn_l3_read(m, &msg), URN_C_ND_RX);
	assert_int_equal(urn_l3_reply(m, &msg, us_mac), 0);
}

/* RFC 4862: a node that checks for a duplicate has no address; all nodes hear the answer. */
static void
test_dad(void **state)
{
	static const uint8_t all_mac[6] = { 0x33, 0x33, 0, 0, 0, 1 };
	struct urn_l3_msg msg;
	uint32_t len;

	(void)state;
	len = l3_solicit(buf, no_addr, us_group, us_ll, NULL);
	assert_int_equal(rd(len, &msg), URN_C_ND_RX);
	assert_false(msg.has_src);
	check_advert(answer(len), all_mac, all_nodes, us_ll, 0x20);

	/* RFC 4861, 7.1.1: with a MAC, or not to the solicited-node group, it is malformed. */
	expect(l3_solicit(buf, no_addr, us_group, us_ll, peer_mac), URN_C_DROP_NEIGH);
	expect(l3_solicit(buf, no_addr, us_ll, us_ll, NULL), URN_C_DROP_NEIGH);
	expect(l3_solicit(buf, no_addr, all_nodes, us_ll, NULL), URN_C_DROP_NEIGH);
}

static void
test_advert(void **state)
{
	struct urn_l3_msg msg;

	(void)state;
	assert_int_equal(rd(l3_advert(buf, us_ll, peer_ll, peer_mac, 0x60), &msg), URN_C_ND_RX);
	assert_int_equal(msg.kind, URN_L3_ADVERT);
	assert_true(msg.solicited && msg.override && msg.has_mac);
	assert_int_equal(rd(l3_advert(buf, us_ll, peer_ll, NULL, 0x40), &msg), URN_C_ND_RX);
	assert_true(msg.solicited && !msg.override && !msg.has_mac);
	assert_int_equal(rd(l3_advert(buf, all_nodes, peer_ll, peer_mac, 0x20), &msg),
			 URN_C_ND_RX);
	assert_true(!msg.solicited && msg.override);
	/* RFC 4861, 7.1.2: a solicited answer does not go to a group. */
	expect(l3_advert(buf, all_nodes, peer_ll, peer_mac, 0x60), URN_C_DROP_NEIGH);
}

/* The rules that solicitations and advertisements share. */
static void
check_nd_malformed(int advert)
{
	for (unsigned int i = 0; i < 10; i++) {
		uint32_t len = advert ? l3_advert(buf, us_ll, peer_ll, peer_mac, 0x60)
				      : l3_solicit(buf, peer_ll, us_group, us_ll, peer_mac);

		expect(len, URN_C_ND_RX);
		switch (i) {
		case 0: buf[21] = 254; break;           /* passed a router */
		case 1: buf[55] = 1; break;             /* code */
		case 2: buf[79] = 0; break;             /* option of no length */
		case 3: buf[79] = 2; break;             /* ... longer than the message */
		case 4: buf[79] = 255; break;
		case 5: buf[80] |= 1; break;            /* MAC of a group */
		case 6: memset(buf + 80, 0, 6); break;  /* ... zero */
		case 7: buf[62] = 0xff; break;          /* target is a group */
		case 8: memset(buf + 62, 0, 16); break; /* ... is no address */
		case 9: buf[22] = 0xff; break;          /* sender is a group */
		}
		expect_bad(len);
	}
}

static void
test_nd_malformed(void **state)
{
	uint32_t len;

	(void)state;
	check_nd_malformed(0);
	check_nd_malformed(1);
	for (uint32_t n = 0; n < 32; n++) { /* cut, with lengths that agree */
		l3_solicit(buf, peer_ll, us_group, us_ll, peer_mac);
		buf[19] = (uint8_t)n;
		l3_fix(buf, 54 + n);
		expect(54 + n, n == 24 ? URN_C_ND_RX : URN_C_DROP_NEIGH);
	}
	len = l3_solicit(buf, peer_ll, us_group, us_ll, peer_mac);
	buf[57] ^= 1;
	expect(len, URN_C_DROP_NEIGH); /* checksum */
	/* Unknown options are skipped. */
	len = l3_solicit(buf, peer_ll, us_group, us_ll, peer_mac);
	buf[78] = 14;
	l3_fix(buf, len);
	expect(len, URN_C_ND_RX);
}

/* Seeded bit flips and cuts with corrected checksums: no overread, always a verdict. */
static void
test_mutants(void **state)
{
	uint64_t rng = 7;

	(void)state;
	for (unsigned int i = 0; i < 60000; i++) {
		struct rte_mbuf *m;
		struct urn_l3_msg msg;
		uint32_t len;
		uint8_t c;

		switch (i % 4) {
		case 0: len = l3_arp(buf, 1, peer_mac, peer_v4, us_v4); break;
		case 1: len = l3_echo(buf, peer_v4, us_v4, i % 50); break;
		case 2: len = l3_solicit(buf, peer_ll, us_group, us_ll, peer_mac); break;
		default: len = l3_advert(buf, us_ll, peer_ll, peer_mac, 0x60); break;
		}
		for (unsigned int k = 0; k < 3; k++) {
			rng = rng * 6364136223846793005ull + 1442695040888963407ull;
			buf[(rng >> 33) % len] ^= (uint8_t)(1u << (rng >> 60 & 7));
		}
		if ((rng >> 40) % 3 == 0)
			len = (uint32_t)(rng >> 42) % (len + 1);
		l3_fix(buf, len);
		m = test_mbuf_wrap(buf, len);
		if (urn_wire_parse(m) == URN_FRAME_BAD || urn_pkt(m)->kind == URN_FRAME_OTHER)
			continue;
		c = (uint8_t)urn_l3_read(m, &msg);
		assert_true(c == URN_C_ARP_RX || c == URN_C_ND_RX || c == URN_C_ECHO_RX ||
			    c == URN_C_DROP_NEIGH || c == URN_C_DROP_NOT_ROCE);
		if (c == URN_C_ARP_RX || c == URN_C_ND_RX || c == URN_C_ECHO_RX)
			urn_l3_reply(m, &msg, us_mac); /* in place, within the buffer */
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),      cmocka_unit_test(test_arp_request),
		cmocka_unit_test(test_arp_reply),      cmocka_unit_test(test_arp_probe),
		cmocka_unit_test(test_arp_malformed),  cmocka_unit_test(test_echo),
		cmocka_unit_test(test_echo_malformed), cmocka_unit_test(test_solicit),
		cmocka_unit_test(test_solicit_no_room), cmocka_unit_test(test_dad),
		cmocka_unit_test(test_advert),         cmocka_unit_test(test_nd_malformed),
		cmocka_unit_test(test_mutants),
	};

	return cmocka_run_group_tests_name("l3", tests, NULL, NULL);
}
