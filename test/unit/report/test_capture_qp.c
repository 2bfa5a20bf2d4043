/* SPDX-License-Identifier: BSD-3-Clause */
/* The frames of a queue pair among others: of every opcode, in each kind of frame, cut at every
 * byte. */
#include "test/unit/pmd_glue/harness.h"
#include "report/capture_qp.h"
#include "wire/hdr.h"
#include "wire/opcode.h"

#include <netinet/in.h>
#include <string.h>

enum { QP = 0x123456, PEER = 0x42 };

struct frame {
	uint8_t data[256];
	uint16_t bth; /* offset */
	uint16_t len; /* with BTH, and a DETH behind it */
};

static void
make(struct frame *f, unsigned int tags, bool ipv6, uint8_t opcode, uint32_t dqpn, uint32_t sqpn)
{
	static const uint8_t types[2][2] = {{8, 0}, {0x86, 0xdd}};
	uint8_t *p = f->data + 12;
	struct urn_udp udp = {.dport = RTE_BE16(URN_ROCE_PORT)};
	struct urn_bth bth = {.opcode = opcode, .dqpn = rte_cpu_to_be_32(dqpn | 0x80000000u)};
	struct urn_deth deth = {.sqpn = rte_cpu_to_be_32(sqpn)};

	memset(f, 0, sizeof(*f));
	for (; tags > 0; tags--, p += 4)
		memcpy(p, "\x81\x00\x20\x05", 4);
	memcpy(p, types[ipv6], 2);
	p += 2;
	if (ipv6) {
		p[0] = 0x60;
		p[6] = IPPROTO_UDP;
		p += 40;
	} else {
		p[0] = 0x46; /* with four bytes of options */
		p[9] = IPPROTO_UDP;
		p += 24;
	}
	memcpy(p, &udp, sizeof(udp));
	p += sizeof(udp);
	f->bth = (uint16_t)(p - f->data);
	memcpy(p, &bth, sizeof(bth));
	memcpy(p + sizeof(bth), &deth, sizeof(deth));
	f->len = (uint16_t)(f->bth + sizeof(bth) + sizeof(deth));
}

/* Ask about a frame in two segments, the first of `cut` bytes. */
static bool
wants(const struct urn_capture_qps *q, struct frame *f, uint16_t cut)
{
	struct rte_mbuf m[2];

	memset(m, 0, sizeof(m));
	m[0].buf_addr = f->data;
	m[0].data_len = cut;
	m[0].pkt_len = f->len;
	m[0].nb_segs = 2;
	m[0].next = &m[1];
	m[1].buf_addr = f->data + cut;
	m[1].data_len = (uint16_t)(f->len - cut);
	return urn_capture_qps_want(q, m);
}

static void
opcodes(void **state)
{
	const struct urn_capture_qps q = {.n = 2, .qpn = {QP, PEER}};
	struct frame f;

	(void)state;
	for (unsigned int i = 0; i < 256 * 6; i++) {
		uint8_t op = (uint8_t)(i / 6);
		unsigned int tags = i % 6 / 2;
		bool ipv6 = i % 2, flow = (urn_opcodes[op].flags & URN_OPF_FLOW) != 0;

		make(&f, tags, ipv6, op, QP, 7);
		check(wants(&q, &f, 30) == !flow);
		make(&f, tags, ipv6, op, PEER, 7);
		check(wants(&q, &f, 30) == !flow);
		make(&f, tags, ipv6, op, PEER + 1, 7);
		check(!wants(&q, &f, 30));
		/* Only datagrams name their sender; a peer's datagrams to others are not asked for.
		 */
		make(&f, tags, ipv6, op, 9, QP);
		check(wants(&q, &f, 30) == (op == URN_UD_SEND_ONLY || op == URN_UD_SEND_ONLY_IMM));
		make(&f, tags, ipv6, op, 9, PEER);
		check(!wants(&q, &f, 30));
	}
}

/* A frame that is cut anywhere is not read behind its end; segments begin anywhere. */
static void
every_cut(void **state)
{
	const struct urn_capture_qps q = {.n = 1, .qpn = {QP}};
	struct frame f;

	(void)state;
	for (unsigned int i = 0; i < 6; i++) {
		make(&f, i / 2, i % 2, URN_UD_SEND_ONLY, 9, QP);
		for (uint16_t cut = 0; cut <= f.len; cut++)
			check(wants(&q, &f, cut));
		while (f.len > 0) {
			f.len--;
			check(!wants(&q, &f, 0) && !wants(&q, &f, f.len));
		}
	}
}

static void
other_frames(void **state)
{
	const struct urn_capture_qps q = {.n = 1, .qpn = {QP}};
	struct frame f;

	(void)state;
	for (unsigned int i = 0; i < 6; i++) {
		unsigned int l3 = 14 + i / 2 * 4;

		make(&f, i / 2, i % 2, URN_RC_ACK, QP, 0);
		check(wants(&q, &f, 0));
		f.data[f.bth - 6]++; /* another UDP port */
		check(!wants(&q, &f, 0));
		make(&f, i / 2, i % 2, URN_RC_ACK, QP, 0);
		f.data[l3 + (i % 2 ? 6 : 9)] = IPPROTO_TCP;
		check(!wants(&q, &f, 0));
		make(&f, i / 2, i % 2, URN_RC_ACK, QP, 0);
		f.data[l3 - 1]++; /* another Ethernet type */
		check(!wants(&q, &f, 0));
	}
	make(&f, 3, false, URN_RC_ACK, QP, 0);
	check(!wants(&q, &f, 0));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opcodes),
		cmocka_unit_test(every_cut),
		cmocka_unit_test(other_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
