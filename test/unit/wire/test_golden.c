/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parser and the builder against 1,225 packets made by kernel soft-RoCE
 * (test/data/rxe_golden.index.txt lists them).
 */
#include "counters.h"
#include "wire/build.h"
#include "wire/pkt.h"

#include "common/test_mbuf.h"
#include "common/test_pcap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct test_pcap golden;

/* Packets by opcode, as tshark counts them (-T fields -e infiniband.bth.opcode). */
static const unsigned int tshark_count[256] = {
	[0x00] = 27, [0x01] = 27, [0x02] = 27, [0x04] = 198, [0x06] = 79, [0x07] = 213,
	[0x08] = 56, [0x09] = 18, [0x0a] = 9, [0x0b] = 6, [0x0c] = 60, [0x0d] = 28,
	[0x0e] = 153, [0x0f] = 26, [0x10] = 9, [0x11] = 205, [0x12] = 10, [0x13] = 5,
	[0x14] = 5, [0x17] = 20, [0x20] = 6, [0x21] = 6, [0x22] = 6, [0x64] = 26,
};

/* Opcode of a golden frame, found without the parser: 42 or 62 bytes in. */
static uint8_t
opcode_of(const struct test_frame *f)
{
	return f->data[f->data[12] == 0x08 ? 42 : 62];
}

static int
load(void **state)
{
	(void)state;
	return test_pcap_load(&golden, "rxe_golden.pcap");
}

static int
unload(void **state)
{
	(void)state;
	test_pcap_free(&golden);
	return 0;
}

/* All RC, UC, UD and ACK packets are accepted, with right ICRCs. */
static void
test_accepts_all(void **state)
{
	unsigned int count[256] = { 0 }, v6 = 0;

	(void)state;
	assert_int_equal(golden.frames, 1225);
	for (unsigned int i = 0; i < golden.frames; i++) {
		struct rte_mbuf *m = test_mbuf_wrap(golden.frame[i].data, golden.frame[i].len);
		uint8_t opcode = opcode_of(&golden.frame[i]);
		enum urn_frame_kind kind = urn_wire_parse(m);

		count[opcode]++;
		assert_int_equal(kind, URN_FRAME_ROCE);
		assert_int_equal(urn_pkt(m)->opcode, opcode);
		assert_ptr_equal(urn_pkt(m)->op, &urn_opcodes[opcode]);
		assert_true(urn_wire_icrc_ok(m));
		assert_memory_equal(rte_pktmbuf_mtod(m, void *), golden.frame[i].data,
				    golden.frame[i].len);
		v6 += urn_pkt(m)->ipv6;
	}
	assert_memory_equal(count, tshark_count, sizeof(count));
	assert_int_equal(v6, 18);
}

/* Contents of a golden frame's headers, read from its bytes. */
static struct urn_path
path_of(const uint8_t *f, int ipv6)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	const struct urn_eth *eth = (const struct urn_eth *)f;
	struct urn_path path = { .sport = (uint16_t)(f[ipv6 ? 54 : 34] << 8 | f[ipv6 ? 55 : 35]) };

	memcpy(path.smac, eth->src, 6);
	memcpy(path.dmac, eth->dst, 6);
	if (ipv6) {
		memcpy(path.sgid, f + 22, 16);
		memcpy(path.dgid, f + 38, 16);
		path.tos = (uint8_t)(f[14] << 4 | f[15] >> 4);
		path.flow_label = (uint32_t)((f[15] & 0xf) << 16 | f[16] << 8 | f[17]);
		path.ttl = f[21];
	} else {
		memcpy(path.sgid, mapped, 12);
		memcpy(path.dgid, mapped, 12);
		memcpy(path.sgid + 12, f + 26, 4);
		memcpy(path.dgid + 12, f + 30, 4);
		path.tos = f[15];
		path.ttl = f[22];
	}
	return path;
}

/* Put the IPv4 id of `from`, which the kernel increments, into a frame we built. */
static void
take_ip_id(uint8_t *frame, const uint8_t *from)
{
	struct urn_ipv4 *ip = (struct urn_ipv4 *)(frame + URN_ETH_BYTES);
	uint32_t sum = (uint16_t)~ip->csum;

	memcpy(&ip->id, from + URN_ETH_BYTES + 4, 2);
	sum += ip->id;
	ip->csum = (uint16_t)~((sum & 0xffff) + (sum >> 16));
}

/* Everything but the payload is rebuilt: the same bytes, and so the same ICRC. */
static void
test_rebuild(void **state)
{
	static uint8_t out[8192];

	(void)state;
	for (unsigned int i = 0; i < golden.frames; i++) {
		const struct test_frame *g = &golden.frame[i];
		struct rte_mbuf *m = test_mbuf_wrap(g->data, g->len);
		struct urn_pkt *p = urn_pkt(m);
		uint32_t roce_len, pad;
		struct urn_path path;
		struct urn_tmpl t;
		uint8_t flags;

		if (urn_wire_parse(m) != URN_FRAME_ROCE)
			continue;
		path = path_of(g->data, p->ipv6);
		flags = urn_pkt_bth(m)->flags & (URN_BTH_SE | URN_BTH_M);
		pad = (4u - p->payload_len) & 3u;
		roce_len = p->op->hdr_len + p->payload_len + pad;

		urn_tmpl_init(&t, &path);
		assert_int_equal(t.len, p->bth_off);
		assert_int_equal(t.len + roce_len + URN_ICRC_BYTES, g->len);
		memset(out, 0xee, sizeof(out));
		urn_build_headers(out, &t, roce_len);
		urn_build_bth((struct urn_bth *)(out + t.len), p->opcode, flags, (uint8_t)pad,
			      p->dqpn, p->psn, p->ackreq);
		memcpy(out + t.len + sizeof(struct urn_bth),
		       g->data + p->bth_off + sizeof(struct urn_bth),
		       roce_len - sizeof(struct urn_bth));
		if (!p->ipv6)
			take_ip_id(out, g->data);
		urn_build_icrc(out, t.len + roce_len, p->ipv6, 1);
		assert_memory_equal(out, g->data, g->len);
		assert_int_equal(out[g->len], 0xee);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accepts_all),
		cmocka_unit_test(test_rebuild),
	};

	return cmocka_run_group_tests_name("golden", tests, load, unload);
}
