/* SPDX-License-Identifier: BSD-3-Clause */
#include "counters.h"
#include "wire/icrc.h"
#include "wire/pkt.h"

#include "common/test_mbuf.h"
#include "frames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static uint8_t buf[FRAME_ROOM + 64];

enum { IP = 14, V4_UDP = 34, V4_BTH = 42, V6_UDP = 54, V6_BTH = 62 };

static uint32_t
make(uint8_t opcode, int ipv6, uint32_t payload)
{
	struct frame_spec s = { .opcode = opcode, .ipv6 = ipv6, .payload = payload,
				.dqpn = 0x123456, .psn = 0xabcdef, .ttl = 64, .ackreq = 1 };

	memset(buf, 0, sizeof(buf));
	return frame_make(buf, &s);
}

/* Parse buf[0..len) with its IPv4 checksum corrected; it must be dropped for this reason. */
static void
expect_drop(uint32_t len, enum urn_frame_kind kind, enum urn_counter why)
{
	struct rte_mbuf *m;

	frame_fix_csum(buf, len);
	m = test_mbuf_wrap(buf, len);
	assert_int_equal(urn_wire_parse(m), kind);
	assert_int_equal(urn_pkt(m)->kind, kind);
	assert_int_equal(urn_pkt(m)->drop, why);
}

static void
expect_bad(uint32_t len, enum urn_counter why)
{
	expect_drop(len, URN_FRAME_BAD, why);
}

/* Every field that the parser finds, for every opcode and both IP versions. */
static void
test_fields(void **state)
{
	uint8_t ops[256];
	unsigned int n = frame_opcodes(ops);

	(void)state;
	for (unsigned int i = 0; i < n * 8; i++) {
		const struct urn_opcode *op = &urn_opcodes[ops[i / 8]];
		uint32_t payload = op->flags & URN_OPF_PAYLOAD ? 4 + i % 4 : 0;
		int ipv6 = (i >> 2) & 1;
		uint32_t len = make(ops[i / 8], ipv6, payload);
		struct rte_mbuf *m = test_mbuf_wrap(buf, len);
		struct urn_pkt *p = urn_pkt(m);

		assert_int_equal(urn_wire_parse(m), URN_FRAME_ROCE);
		assert_int_equal(p->kind, URN_FRAME_ROCE);
		assert_ptr_equal(p->op, op);
		assert_int_equal(p->opcode, ops[i / 8]);
		assert_int_equal(p->ipv6, ipv6);
		assert_int_equal(p->l3_off, IP);
		assert_int_equal(p->bth_off, ipv6 ? V6_BTH : V4_BTH);
		assert_int_equal(p->payload_off, p->bth_off + op->hdr_len);
		assert_int_equal(p->payload_len, payload);
		assert_int_equal(p->dqpn, 0x123456);
		assert_int_equal(p->psn, 0xabcdef);
		assert_int_equal(p->pkey, URN_PKEY_DEFAULT);
		assert_int_equal(p->ackreq, 1);
		assert_int_equal(p->solicited, 0);
		assert_true(urn_wire_icrc_ok(m));
	}
}

/* SE and A are single bits; M set or clear makes no difference. */
static void
test_flag_bits(void **state)
{
	struct rte_mbuf *m;
	uint32_t len;

	(void)state;
	len = make(URN_RC_SEND_ONLY, 0, 8);
	buf[V4_BTH + 1] = URN_BTH_SE;
	buf[V4_BTH + 8] = 0x7f; /* reserved bits beside A */
	m = test_mbuf_wrap(buf, len);
	assert_int_equal(urn_wire_parse(m), URN_FRAME_ROCE);
	assert_int_equal(urn_pkt(m)->solicited, 1);
	assert_int_equal(urn_pkt(m)->ackreq, 0);
	assert_int_equal(urn_pkt(m)->psn, 0xabcdef);
}

/* Ethernet pads short frames: bytes behind the IP packet are cut off. */
static void
test_trims_padding(void **state)
{
	(void)state;
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		uint32_t len = make(URN_RC_ACK, ipv6, 0);
		struct rte_mbuf *m;

		memset(buf + len, 0x5a, 40);
		m = test_mbuf_wrap(buf, len + 40);
		assert_int_equal(urn_wire_parse(m), URN_FRAME_ROCE);
		assert_int_equal(rte_pktmbuf_data_len(m), len);
		assert_int_equal(rte_pktmbuf_pkt_len(m), len);
		assert_int_equal(urn_pkt(m)->payload_len, 0);
		assert_true(urn_wire_icrc_ok(m));
	}
}

/* Frames cut at every length: never accepted, always with a reason. */
static void
test_truncated(void **state)
{
	(void)state;
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		uint32_t full = make(URN_RC_WRITE_ONLY_IMM, ipv6, 9);
		uint32_t headers = IP + (ipv6 ? 40 : 20);

		for (uint32_t len = 0; len < full; len++) {
			make(URN_RC_WRITE_ONLY_IMM, ipv6, 9);
			expect_bad(len, len < headers ? URN_C_DROP_SHORT : URN_C_DROP_LENGTH);
		}
	}
}

/* The IP and UDP lengths agree, but the headers of the opcode do not fit in. */
static void
test_short_for_opcode(void **state)
{
	(void)state;
	for (uint32_t roce = 0; roce < 28 + URN_ICRC_BYTES; roce++) {
		make(URN_RC_WRITE_ONLY, 0, 0);
		buf[IP + 3] = (uint8_t)(28 + roce);
		buf[V4_UDP + 5] = (uint8_t)(8 + roce);
		expect_bad(V4_BTH + roce, URN_C_DROP_SHORT);
	}
	for (uint32_t udp = 0; udp < 8; udp++) {
		make(URN_RC_SEND_ONLY, 0, 0);
		buf[IP + 3] = (uint8_t)(20 + udp);
		expect_bad(V4_UDP + udp, URN_C_DROP_SHORT);
	}
}

static void
test_lying_lengths(void **state)
{
	uint32_t len;

	(void)state;
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		uint32_t ip_len = IP + (ipv6 ? 5 : 3), udp_len = (ipv6 ? V6_UDP : V4_UDP) + 5;

		len = make(URN_RC_SEND_ONLY, ipv6, 16);
		buf[ip_len]++; /* past the frame */
		expect_bad(len, URN_C_DROP_LENGTH);
		len = make(URN_RC_SEND_ONLY, ipv6, 16);
		buf[ip_len]--; /* less than UDP says */
		expect_bad(len, URN_C_DROP_LENGTH);
		len = make(URN_RC_SEND_ONLY, ipv6, 16);
		buf[udp_len]--;
		expect_bad(len, URN_C_DROP_LENGTH);
		len = make(URN_RC_SEND_ONLY, ipv6, 16);
		buf[udp_len - 1] = 0xff;
		expect_bad(len, URN_C_DROP_LENGTH);
	}
	len = make(URN_RC_SEND_ONLY, 0, 16);
	buf[IP + 2] = 0;
	buf[IP + 3] = 19; /* less than the IP header */
	expect_bad(len, URN_C_DROP_LENGTH);
}

static void
test_ip_header(void **state)
{
	uint32_t len;

	(void)state;
	len = make(URN_RC_SEND_ONLY, 0, 16);
	buf[IP] = 0x46; /* options */
	expect_bad(len, URN_C_DROP_IP_HEADER);
	buf[IP] = 0x44; /* less than a header */
	expect_bad(len, URN_C_DROP_IP_HEADER);
	buf[IP] = 0x65;
	expect_bad(len, URN_C_DROP_IP_HEADER);
	len = make(URN_RC_SEND_ONLY, 1, 16);
	buf[IP] = 0x45;
	expect_bad(len, URN_C_DROP_IP_HEADER);

	for (unsigned int bit = 0; bit < 160; bit++) {
		struct rte_mbuf *m;

		len = make(URN_RC_SEND_ONLY, 0, 16);
		buf[IP + bit / 8] ^= (uint8_t)(1u << (bit & 7));
		m = test_mbuf_wrap(buf, len);
		assert_int_not_equal(urn_wire_parse(m), URN_FRAME_ROCE);
	}
	len = make(URN_RC_SEND_ONLY, 0, 16);
	buf[IP + 12] ^= 1; /* a source address, which only the checksum protects */
	{
		struct rte_mbuf *m = test_mbuf_wrap(buf, len);

		assert_int_equal(urn_wire_parse(m), URN_FRAME_BAD);
		assert_int_equal(urn_pkt(m)->drop, URN_C_DROP_IP_CSUM);
	}
}

static void
test_fragments(void **state)
{
	uint32_t len;

	(void)state;
	len = make(URN_RC_SEND_ONLY, 0, 16);
	buf[IP + 6] = 0x20; /* more fragments */
	expect_bad(len, URN_C_DROP_FRAGMENT);
	buf[IP + 6] = 0;
	buf[IP + 7] = 1; /* an offset */
	expect_bad(len, URN_C_DROP_FRAGMENT);
	len = make(URN_RC_SEND_ONLY, 1, 16);
	buf[IP + 6] = 44; /* fragment header */
	expect_bad(len, URN_C_DROP_FRAGMENT);
	/* DF is set in our frames and not required of others. */
	len = make(URN_RC_SEND_ONLY, 0, 16);
	buf[IP + 6] = 0;
	frame_fix_csum(buf, len);
	assert_int_equal(urn_wire_parse(test_mbuf_wrap(buf, len)), URN_FRAME_ROCE);
}

/* doc/reference/wire.md "BTH": version 0, opcodes of the table only. */
static void
test_bth(void **state)
{
	uint32_t len;

	(void)state;
	for (unsigned int v = 1; v < 16; v++) {
		len = make(URN_RC_SEND_ONLY, 0, 16);
		buf[V4_BTH + 1] |= (uint8_t)v;
		expect_bad(len, URN_C_DROP_BTH_VERSION);
	}
	for (unsigned int op = 0; op < 256; op++) {
		if (urn_opcodes[op].flags & URN_OPF_VALID)
			continue;
		len = make(URN_RC_SEND_ONLY, 0, 64);
		buf[V4_BTH] = (uint8_t)op;
		expect_bad(len, URN_C_DROP_OPCODE);
	}
}

/* Pad and payload fit each other and the opcode. */
static void
test_pad(void **state)
{
	uint8_t ops[256];
	unsigned int n = frame_opcodes(ops);
	uint32_t len;

	(void)state;
	for (uint32_t pad = 1; pad < 4; pad++) {
		len = make(URN_RC_SEND_ONLY, 0, 0);
		buf[V4_BTH + 1] = (uint8_t)(pad << 4); /* a pad without payload */
		expect_bad(len, URN_C_DROP_PAD);
		len = make(URN_RC_SEND_ONLY, 0, 16);
		buf[IP + 3] = (uint8_t)(buf[IP + 3] - pad); /* not a multiple of 4 */
		buf[V4_UDP + 5] = (uint8_t)(buf[V4_UDP + 5] - pad);
		expect_bad(len - pad, URN_C_DROP_PAD);
	}
	for (unsigned int i = 0; i < n; i++) {
		if (urn_opcodes[ops[i]].flags & URN_OPF_PAYLOAD)
			continue;
		len = make(ops[i], 0, 4); /* payload where the opcode has none */
		expect_bad(len, URN_C_DROP_LENGTH);
		len = make(ops[i], 0, 0);
		buf[V4_BTH + 1] |= 0x10;
		expect_bad(len, URN_C_DROP_PAD);
	}
}

static void
test_other_kinds(void **state)
{
	struct rte_mbuf *m;
	uint32_t len;

	(void)state;
	len = make(URN_RC_SEND_ONLY, 0, 16);
	buf[V4_UDP + 3] ^= 1; /* another port */
	expect_drop(len, URN_FRAME_OTHER, URN_C_DROP_NOT_ROCE);
	len = make(URN_RC_SEND_ONLY, 0, 16);
	buf[IP + 9] = 6; /* TCP */
	expect_drop(len, URN_FRAME_OTHER, URN_C_DROP_NOT_ROCE);
	len = make(URN_RC_SEND_ONLY, 1, 16);
	buf[IP + 6] = 0; /* hop-by-hop options */
	expect_drop(len, URN_FRAME_OTHER, URN_C_DROP_NOT_ROCE);
	buf[12] = 0x81; /* VLAN */
	expect_drop(len, URN_FRAME_OTHER, URN_C_DROP_NOT_ROCE);

	len = make(URN_RC_SEND_ONLY, 0, 16);
	buf[IP + 9] = 1;
	frame_fix_csum(buf, len);
	m = test_mbuf_wrap(buf, len);
	assert_int_equal(urn_wire_parse(m), URN_FRAME_ICMP);
	assert_int_equal(urn_pkt(m)->kind, URN_FRAME_ICMP);
	len = make(URN_RC_SEND_ONLY, 1, 16);
	buf[IP + 6] = 58;
	m = test_mbuf_wrap(buf, len);
	assert_int_equal(urn_wire_parse(m), URN_FRAME_ICMP6);
	buf[12] = 0x08;
	buf[13] = 0x06;
	m = test_mbuf_wrap(buf, 14); /* the parser ignores its contents */
	assert_int_equal(urn_wire_parse(m), URN_FRAME_ARP);
}

/* Bits of this byte of the packet, counted from the IP header, that are replaced by ones. */
static uint8_t
masked_bits(uint32_t at, int ipv6)
{
	if (ipv6)
		return at == 0 ? 0x0f : (at >= 1 && at <= 3) || at == 7 || at == 46 || at == 47 ||
					at == 52 ? 0xff : 0;
	return at == 1 || at == 8 || at == 10 || at == 11 || at == 26 || at == 27 || at == 32
		       ? 0xff : 0;
}

/*
 * doc/reference/wire.md "ICRC": each single bit flip behind the Ethernet header is caught, the ICRC
 * itself included, except for masked bits.
 */
static void
test_every_bit(void **state)
{
	uint8_t ops[256];
	unsigned int n = frame_opcodes(ops);

	(void)state;
	for (unsigned int i = 0; i < n * 2; i++) {
		int pay = (urn_opcodes[ops[i / 2]].flags & URN_OPF_PAYLOAD) != 0;
		uint32_t len = make(ops[i / 2], i & 1, pay ? 61 : 0);
		struct rte_mbuf *m = test_mbuf_wrap(buf, len);
		uint8_t *l3 = rte_pktmbuf_mtod_offset(m, uint8_t *, IP);

		assert_int_equal(urn_wire_parse(m), URN_FRAME_ROCE);
		for (uint32_t bit = 0; bit < (len - IP) * 8; bit++) {
			uint8_t b = (uint8_t)(1u << (bit & 7));

			l3[bit / 8] ^= b;
			assert_int_equal(urn_wire_icrc_ok(m),
					 (masked_bits(bit / 8, i & 1) & b) != 0);
			l3[bit / 8] ^= b;
		}
		assert_memory_equal(rte_pktmbuf_mtod(m, void *), buf, len);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_flag_bits),
		cmocka_unit_test(test_trims_padding),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_short_for_opcode),
		cmocka_unit_test(test_lying_lengths),
		cmocka_unit_test(test_ip_header),
		cmocka_unit_test(test_fragments),
		cmocka_unit_test(test_bth),
		cmocka_unit_test(test_pad),
		cmocka_unit_test(test_other_kinds),
		cmocka_unit_test(test_every_bit),
	};

	return cmocka_run_group_tests_name("parse", tests, NULL, NULL);
}
