/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The frame parser and the ICRC check on any bytes. The frame ends where an unreadable
 * page begins. Invariants: the verdict of a second, plain parser; the ICRC of a third
 * implementation; and a frame that is read stays as it is.
 *
 * Input: a byte of enum fix, then the frame.
 */
#include "fuzz.h"

#include "common/test_mbuf.h"
#include "packet/frame.h"
#include "unit/wire/plain.h"

#include <string.h>

#include <rte_ip.h>

/* Fields corrected before the parser runs, or few frames get far. */
enum fix {
	FIX_LENGTHS = 1 << 0, /* lengths of IP and UDP */
	FIX_SUM = 1 << 1,     /* checksum of the IPv4 header */
	FIX_SEAL = 1 << 2,    /* both, and the ICRC */
};

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

static void
put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static void
fix(uint8_t *f, uint32_t len, uint8_t how)
{
	bool v6 = len > 14 && f[14] >> 4 == 6;
	uint32_t udp = v6 ? 54 : 34;

	if (len < udp + 8)
		return;
	if (how & FIX_LENGTHS) {
		put16(f + (v6 ? 18 : 16), len - (v6 ? 54 : 14));
		put16(f + udp + 4, len - udp);
	}
	if ((how & FIX_SUM) && !v6) {
		put16(f + 24, 0);
		put16(f + 24, (uint16_t)~rte_be_to_cpu_16(rte_raw_cksum(f + 14, 20)));
	}
	if (how & FIX_SEAL)
		frame_seal(f, len);
}

/* The ICRC by a third implementation. */
static bool
icrc_right(const uint8_t *f, uint32_t len)
{
	static uint8_t copy[TEST_MBUF_MAX];

	memcpy(copy, f, len);
	frame_seal(copy, len);
	return memcmp(copy + len - 4, f + len - 4, 4) == 0;
}

static void
check_roce(struct rte_mbuf *m, const uint8_t *f, const struct verdict *v)
{
	const struct urn_pkt *p = urn_pkt(m);

	fuzz_check(rte_pktmbuf_data_len(m) == v->len && rte_pktmbuf_pkt_len(m) == v->len);
	fuzz_check(p->payload_off == v->payload_off && p->payload_len == v->payload_len);
	fuzz_check(p->psn <= 0xffffff && p->dqpn <= 0xffffff && p->op->name);
	fuzz_check((urn_wire_icrc_ok(m) != 0) == icrc_right(f, v->len));
	fuzz_check(memcmp(rte_pktmbuf_mtod(m, void *), f, v->len) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t f[TEST_MBUF_MAX];
	uint32_t len = size ? (uint32_t)size - 1 : 0;
	struct rte_mbuf *m;
	struct verdict v;

	if (size == 0 || len > sizeof(f))
		return 0;
	memcpy(f, data + 1, len);
	fix(f, len, data[0]);
	m = test_mbuf_wrap(f, len);
	v = plain_parse(f, len);
	fuzz_check(urn_wire_parse(m) == v.kind);
	fuzz_check(urn_pkt(m)->kind == v.kind);
	if (v.kind == URN_FRAME_BAD || v.kind == URN_FRAME_OTHER)
		fuzz_check(urn_pkt(m)->drop == v.drop);
	else if (v.kind == URN_FRAME_ROCE)
		check_roce(m, f, &v);
	return 0;
}
