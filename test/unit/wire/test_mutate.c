/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * architecture rule 4 under fire: tens of thousands of seeded mutations of golden
 * frames. Each mutant ends where an unreadable page begins, so an overread
 * ends the test. The verdict is compared with that of a second parser, written
 * to be plain instead of fast.
 */
#include "counters.h"
#include "wire/pkt.h"

#include "common/test_mbuf.h"
#include "common/test_pcap.h"
#include "frames.h"
#include "plain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MUTANTS = 200000, ROOM = 16384 };

static struct test_pcap golden;
static uint64_t rng;

/* splitmix64 */
static uint32_t
rnd(uint32_t below)
{
	uint64_t z = rng += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return below ? (uint32_t)((z ^ (z >> 31)) >> 32) % below : 0;
}

/* ---- mutations; each returns the new length */

static uint32_t
cut(uint8_t *f, uint32_t len)
{
	(void)f;
	return rnd(len + 1);
}

static uint32_t
extend(uint8_t *f, uint32_t len)
{
	uint32_t more = 1 + rnd(rnd(4) ? 64 : 4096);

	for (uint32_t i = 0; i < more; i++)
		f[len + i] = (uint8_t)rnd(256);
	return len + more;
}

static uint32_t
flip(uint8_t *f, uint32_t len)
{
	uint32_t bits = 1 + rnd(8);

	for (uint32_t i = 0; i < bits; i++)
		f[rnd(len)] ^= (uint8_t)(1u << rnd(8));
	return len;
}

static uint32_t
flip_header(uint8_t *f, uint32_t len)
{
	f[rnd(len < 74 ? len : 74)] ^= (uint8_t)(1u << rnd(8));
	return len;
}

static uint32_t
bth_off(const uint8_t *f)
{
	return f[12] == 0x08 ? 42 : 62;
}

static uint32_t
lie_ip(uint8_t *f, uint32_t len)
{
	uint32_t at = f[12] == 0x08 ? 16 : 18;
	uint32_t v = rnd(2) ? rnd(65536) : be16(f + at) + rnd(17) - 8;

	f[at] = (uint8_t)(v >> 8);
	f[at + 1] = (uint8_t)v;
	return len;
}

static uint32_t
lie_udp(uint8_t *f, uint32_t len)
{
	uint32_t at = bth_off(f) - 4;
	uint32_t v = rnd(2) ? rnd(65536) : be16(f + at) + rnd(17) - 8;

	f[at] = (uint8_t)(v >> 8);
	f[at + 1] = (uint8_t)v;
	return len;
}

/* Cut or extend, and correct all lengths: only the BTH's rules are left. */
static uint32_t
resize(uint8_t *f, uint32_t len)
{
	uint32_t bth = bth_off(f), l3 = f[12] == 0x08 ? 20 : 0;
	uint32_t end = bth + rnd(rnd(2) ? 48 : len + 64);

	for (uint32_t i = len; i < end; i++)
		f[i] = (uint8_t)rnd(256);
	f[bth - 4] = (uint8_t)((end - bth + 8) >> 8);
	f[bth - 3] = (uint8_t)(end - bth + 8);
	f[l3 ? 16 : 18] = (uint8_t)((end - bth + 8 + l3) >> 8);
	f[l3 ? 17 : 19] = (uint8_t)(end - bth + 8 + l3);
	return end;
}

static uint32_t
bad_opcode(uint8_t *f, uint32_t len)
{
	f[bth_off(f)] = (uint8_t)rnd(256);
	return len;
}

static uint32_t
bad_flags(uint8_t *f, uint32_t len)
{
	f[bth_off(f) + 1] = (uint8_t)(rnd(3) ? rnd(256) & 0xf0 : rnd(256));
	return len;
}

static uint32_t
bad_version(uint8_t *f, uint32_t len)
{
	f[14] = (uint8_t)rnd(256);
	return len;
}

static uint32_t
noise(uint8_t *f, uint32_t len)
{
	for (uint32_t i = rnd(2) ? 14 : 0; i < len; i++)
		f[i] = (uint8_t)rnd(256);
	return len;
}

static uint32_t
other_type(uint8_t *f, uint32_t len)
{
	static const uint16_t type[] = { 0x0800, 0x86dd, 0x0806, 0x8100, 0x8915 };
	uint16_t t = type[rnd(5)];

	f[12] = (uint8_t)(t >> 8);
	f[13] = (uint8_t)t;
	return len;
}

static uint32_t (*const mutations[])(uint8_t *, uint32_t) = {
	cut, extend, flip, flip_header, lie_ip, lie_udp, resize, resize, bad_opcode, bad_flags,
	bad_version, noise, other_type,
};

/* ---- the test */

/* True when packets are equal in all that the ICRC covers and does not mask. */
static int
same_covered(const uint8_t *a, const uint8_t *b, uint32_t len)
{
	uint8_t x[ROOM], y[ROOM];
	static const uint8_t v4[] = { 15, 22, 24, 25, 40, 41, 46 };
	static const uint8_t v6[] = { 15, 16, 17, 21, 60, 61, 66 };
	const uint8_t *m = a[12] == 0x08 ? v4 : v6;

	memcpy(x, a + 14, len - 14);
	memcpy(y, b + 14, len - 14);
	for (unsigned int i = 0; i < 7; i++)
		x[m[i] - 14] = y[m[i] - 14] = 0;
	if (a[12] != 0x08) {
		x[0] &= 0xf0;
		y[0] &= 0xf0;
	}
	return memcmp(x, y, len - 14) == 0;
}

static void
check_accepted(struct rte_mbuf *m, const uint8_t *f, const struct verdict *v,
	       const struct test_frame *from)
{
	const struct urn_pkt *p = urn_pkt(m);
	int intact;

	assert_int_equal(rte_pktmbuf_data_len(m), v->len);
	assert_int_equal(p->payload_off, v->payload_off);
	assert_int_equal(p->payload_len, v->payload_len);
	intact = v->len == from->len && f[12] == from->data[12] &&
		 same_covered(f, from->data, v->len);
	assert_int_equal(urn_wire_icrc_ok(m), intact);
	assert_memory_equal(rte_pktmbuf_mtod(m, void *), f, v->len);
}

static void
check_mutant(const uint8_t *f, uint32_t len, const struct test_frame *from,
	     uint64_t seen[URN_COUNTER_COUNT], uint64_t *good)
{
	struct rte_mbuf *m = test_mbuf_wrap(f, len);
	struct verdict v = plain_parse(f, len);
	enum urn_frame_kind kind = urn_wire_parse(m);

	assert_int_equal(kind, v.kind);
	assert_int_equal(urn_pkt(m)->kind, v.kind);
	if (kind == URN_FRAME_BAD || kind == URN_FRAME_OTHER) {
		assert_int_equal(urn_pkt(m)->drop, v.drop);
		assert_memory_equal(urn_counter_name(urn_pkt(m)->drop), "drop_", 5);
		seen[v.drop]++;
	} else if (kind == URN_FRAME_ROCE) {
		check_accepted(m, f, &v, from);
		(*good)++;
	}
}

static void
test_mutants(void **state)
{
	static const enum urn_counter reasons[] = {
		URN_C_DROP_SHORT, URN_C_DROP_LENGTH, URN_C_DROP_IP_HEADER, URN_C_DROP_IP_CSUM,
		URN_C_DROP_FRAGMENT, URN_C_DROP_BTH_VERSION, URN_C_DROP_OPCODE, URN_C_DROP_PAD,
		URN_C_DROP_NOT_ROCE,
	};
	static uint8_t f[ROOM];
	uint64_t seen[URN_COUNTER_COUNT] = { 0 }, good = 0;

	(void)state;
	rng = 20240607;
	for (unsigned int i = 0; i < MUTANTS; i++) {
		const struct test_frame *g = &golden.frame[rnd(golden.frames)];
		unsigned int n = sizeof(mutations) / sizeof(mutations[0]);
		uint32_t len = g->len;

		memcpy(f, g->data, len);
		len = mutations[i % n](f, len);
		if (rnd(4) == 0 && len > 80)
			len = mutations[rnd(6)](f, len);
		if (rnd(8) != 0)
			frame_fix_csum(f, len); /* otherwise few get past the IPv4 header */
		check_mutant(f, len, g, seen, &good);
	}
	/* The mutations reach every reason, and some mutants are valid. */
	for (unsigned int i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		assert_true(seen[reasons[i]] > 10);
	assert_true(good > 1000);
}

/* One frame of each opcode in the capture, cut at each length. */
static void
test_every_cut(void **state)
{
	uint64_t seen[URN_COUNTER_COUNT] = { 0 }, good = 0;
	uint8_t done[512] = { 0 };

	(void)state;
	for (unsigned int i = 0; i < golden.frames; i++) {
		const struct test_frame *g = &golden.frame[i];
		unsigned int key = g->data[bth_off(g->data)] + (g->data[12] == 0x08 ? 0 : 256);

		if (done[key])
			continue;
		done[key] = 1;
		for (uint32_t len = 0; len <= g->len; len++)
			check_mutant(g->data, len, g, seen, &good);
	}
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mutants),
		cmocka_unit_test(test_every_cut),
	};

	return cmocka_run_group_tests_name("mutate", tests, load, unload);
}
