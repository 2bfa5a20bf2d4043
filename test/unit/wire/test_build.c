/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/build.h"
#include "wire/icrc.h"

#include "frames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <rte_ip.h>

static const uint8_t v4_gid[16] = { [10] = 0xff, [11] = 0xff, 192, 168, 7, 9 };

/* doc/reference/wire.md "Addresses": only ::ffff:a.b.c.d is IPv4. */
static void
test_gid_kind(void **state)
{
	uint8_t gid[16];

	(void)state;
	assert_true(urn_gid_is_v4(v4_gid));
	for (unsigned int i = 0; i < 12; i++) {
		memcpy(gid, v4_gid, 16);
		gid[i] ^= 0x10;
		assert_false(urn_gid_is_v4(gid));
	}
}

/* The IPv4 checksum is right at every length that a frame can have. */
static void
test_v4_checksum(void **state)
{
	struct urn_path path = frame_path(0);
	uint8_t frame[64];
	struct urn_tmpl t;

	(void)state;
	for (unsigned int i = 0; i < 256; i++) {
		path.dgid[15] = (uint8_t)(i * 7);
		path.sgid[13] = (uint8_t)~i;
		path.tos = (uint8_t)i;
		path.ttl = (uint8_t)(255 - i);
		urn_tmpl_init(&t, &path);
		for (uint32_t len = 12; len < 4200; len += 4) {
			struct urn_ipv4 *ip = (struct urn_ipv4 *)(frame + 14);

			urn_build_headers(frame, &t, len);
			assert_int_equal(rte_raw_cksum(ip, sizeof(*ip)), 0xffff);
			assert_int_equal(rte_be_to_cpu_16(ip->len), 20 + 8 + len + 4);
		}
	}
}

/* doc/reference/wire.md "Frame": contents of the IPv4 headers. */
static void
test_v4_headers(void **state)
{
	struct urn_path path = frame_path(0);
	const struct urn_eth *eth;
	const struct urn_ipv4 *ip;
	const struct urn_udp *udp;
	uint8_t frame[64];
	struct urn_tmpl t;

	(void)state;
	path.tos = 0xb9;
	memset(frame, 0xee, sizeof(frame));
	urn_tmpl_init(&t, &path);
	urn_build_headers(frame, &t, 100);
	eth = (const struct urn_eth *)frame;
	ip = (const struct urn_ipv4 *)(frame + 14);
	udp = (const struct urn_udp *)(frame + 34);
	assert_int_equal(t.len, 42);
	assert_int_equal(t.ipv6, 0);
	assert_memory_equal(eth->dst, path.dmac, 6);
	assert_memory_equal(eth->src, path.smac, 6);
	assert_int_equal(eth->type, RTE_BE16(0x0800));
	assert_int_equal(ip->ver_ihl, 0x45);
	assert_int_equal(ip->tos, 0xb9);
	assert_int_equal(ip->id, 0);
	assert_int_equal(ip->frag, RTE_BE16(0x4000));
	assert_int_equal(ip->ttl, 64);
	assert_int_equal(ip->proto, 17);
	assert_memory_equal(ip->src, path.sgid + 12, 4);
	assert_memory_equal(ip->dst, path.dgid + 12, 4);
	assert_int_equal(udp->sport, RTE_BE16(0xc123));
	assert_int_equal(udp->dport, RTE_BE16(4791));
	assert_int_equal(udp->len, RTE_BE16(112));
	assert_int_equal(udp->csum, 0);
	assert_int_equal(frame[42], 0xee);
}

/* The same over IPv6; the UDP checksum is 0, as in kernel soft-RoCE. */
static void
test_v6_headers(void **state)
{
	struct urn_path path = frame_path(1);
	const struct urn_ipv6 *ip;
	const struct urn_udp *udp;
	uint8_t frame[80];
	struct urn_tmpl t;

	(void)state;
	path.tos = 0xb9;
	path.flow_label = 0xfff12345; /* only 20 bits count */
	memset(frame, 0xee, sizeof(frame));
	urn_tmpl_init(&t, &path);
	urn_build_headers(frame, &t, 100);
	ip = (const struct urn_ipv6 *)(frame + 14);
	udp = (const struct urn_udp *)(frame + 54);
	assert_int_equal(t.len, 62);
	assert_int_equal(t.ipv6, 1);
	assert_int_equal(((const struct urn_eth *)frame)->type, RTE_BE16(0x86dd));
	assert_int_equal(ip->ver_tc_flow, RTE_BE32(0x6b912345));
	assert_int_equal(ip->len, RTE_BE16(112));
	assert_int_equal(ip->next, 17);
	assert_int_equal(ip->hop, 64);
	assert_memory_equal(ip->src, path.sgid, 16);
	assert_memory_equal(ip->dst, path.dgid, 16);
	assert_int_equal(udp->sport, RTE_BE16(0xc123));
	assert_int_equal(udp->dport, RTE_BE16(4791));
	assert_int_equal(udp->len, RTE_BE16(112));
	assert_int_equal(udp->csum, 0);
	assert_int_equal(frame[62], 0xee);
}

/* doc/reference/wire.md "BTH": every field at its place. */
static void
test_bth(void **state)
{
	static const uint8_t want[12] = { 0x0a, 0xf0, 0xff, 0xff, 0, 0x12, 0x34, 0x56,
					  0x80, 0xfe, 0xdc, 0xba };
	struct urn_bth b;

	(void)state;
	urn_build_bth(&b, URN_RC_WRITE_ONLY, URN_BTH_SE | URN_BTH_M, 3, 0xff123456, 0xfffedcba, 1);
	assert_memory_equal(&b, want, sizeof(want));
	urn_build_bth(&b, URN_RC_WRITE_ONLY, 0, 0, 0x123456, 0xfedcba, 0);
	assert_int_equal(b.flags, 0);
	assert_int_equal(((const uint8_t *)&b)[8], 0);
}

/* With the ICRC off zeros are sent, and the frame has the same length. */
static void
test_icrc_off(void **state)
{
	static uint8_t frame[FRAME_ROOM];
	struct frame_spec s = { .opcode = URN_RC_SEND_ONLY, .payload = 20, .ttl = 64 };
	uint32_t len = frame_make(frame, &s), crc;

	(void)state;
	memcpy(&crc, frame + len - 4, 4);
	assert_int_equal(rte_le_to_cpu_32(crc), urn_icrc(frame + 14, len - 18, 0));
	frame[len] = 0xee;
	urn_build_icrc(frame, len - 4, 0, 0);
	memcpy(&crc, frame + len - 4, 4);
	assert_int_equal(crc, 0);
	assert_int_equal(frame[len], 0xee);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gid_kind),   cmocka_unit_test(test_v4_checksum),
		cmocka_unit_test(test_v4_headers), cmocka_unit_test(test_v6_headers),
		cmocka_unit_test(test_bth),        cmocka_unit_test(test_icrc_off),
	};

	return cmocka_run_group_tests_name("build", tests, NULL, NULL);
}
