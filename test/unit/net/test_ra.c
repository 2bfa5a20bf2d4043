/* SPDX-License-Identifier: BSD-3-Clause */
/* Router advertisements as they come, and solicitations as they go (RFC 4861, 4.1, 6.1.2). */
#include "net/ra.h"

#include "common/test_eal.h"
#include "common/test_mbuf.h"
#include "l3_frames.h"
#include "net/l3.h"
#include "wire/build.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const uint8_t net_a[16] = {0xfd, 0, 0, 1}, net_b[16] = {0xfd, 0, 0, 2};
static uint8_t buf[L3_ROOM];

/* Read buf[0..len) with nothing readable behind it. */
static enum urn_counter
rd(uint32_t len, struct urn_ra *ra)
{
	struct rte_mbuf *m = test_mbuf_wrap(buf, len);
	enum urn_frame_kind kind = urn_wire_parse(m);

	memset(ra, 0, sizeof(*ra));
	if (kind == URN_FRAME_BAD || kind == URN_FRAME_OTHER)
		return (enum urn_counter)urn_pkt(m)->drop;
	assert_true(urn_ra_is(m));
	return urn_ra_read(m, ra);
}

static void
expect(uint32_t len, enum urn_counter want)
{
	struct urn_ra ra;

	assert_string_equal(urn_counter_name(rd(len, &ra)), urn_counter_name(want));
}

/* The same after the checksum was corrected. */
static void
expect_fixed(uint32_t len, enum urn_counter want)
{
	l3_fix(buf, len);
	expect(len, want);
}

/* An advertisement as a router sends it: its MAC, the link's MTU, two prefixes. returns: its length
 */
static uint32_t
usual(void)
{
	uint32_t len = l3_ra(buf, peer_ll, 1800, 0x08);

	len = l3_option(buf, len, 1, 1);
	memcpy(buf + len - 6, peer_mac, 6);
	len = l3_option(buf, len, 5, 1);
	len = l3_prefix(buf, len, net_a, 64, 0xc0, 86400);
	len = l3_prefix(buf, len, net_b, 64, 0x80, UINT32_MAX);
	l3_fix(buf, len);
	return len;
}

static void
fields(void **state)
{
	struct urn_ra ra;

	(void)state;
	assert_int_equal(rd(usual(), &ra), URN_C_RA_RX);
	assert_memory_equal(ra.router, peer_ll, 16);
	assert_int_equal(ra.lifetime_s, 1800);
	assert_int_equal(ra.preference, 1);
	assert_int_equal(ra.prefixes, 2);
	assert_false(ra.more);
	assert_memory_equal(ra.prefix[0].prefix, net_a, 16);
	assert_int_equal(ra.prefix[0].len, 64);
	assert_int_equal(ra.prefix[0].lifetime_s, 86400);
	assert_memory_equal(ra.prefix[1].prefix, net_b, 16);
	assert_true(ra.prefix[1].lifetime_s == URN_RA_FOREVER);
}

/* RFC 4191, 2.2: the reserved value is medium. */
static void
preferences(void **state)
{
	static const int want[4] = {0, 1, 0, -1};
	struct urn_ra ra;

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		assert_int_equal(
			rd(l3_ra(buf, peer_ll, 9000, (uint8_t)(0xc7 & ~0x18u) | (uint8_t)(i << 3)),
			   &ra),
			URN_C_RA_RX);
		assert_int_equal(ra.preference, want[i]);
	}
}

/* Each length but the whole one, and those that end between two options, is malformed; nothing
 * behind the frame is read. */
static void
cut_short(void **state)
{
	uint32_t whole = usual();

	(void)state;
	for (uint32_t len = 55; len < whole; len++) {
		bool between = len == 70 || len == 78 || len == 86 || len == 118;

		(void)usual();
		expect(len, URN_C_DROP_LENGTH); /* IPv6 says more */
		buf[18] = (uint8_t)((len - 54) >> 8);
		buf[19] = (uint8_t)(len - 54);
		if (len >= 62)
			expect(len, URN_C_DROP_NEIGH); /* the checksum */
		expect_fixed(len, between ? URN_C_RA_RX : URN_C_DROP_NEIGH);
	}
}

/* Each single byte of the message is under the checksum. */
static void
checksum(void **state)
{
	uint32_t len = usual();

	(void)state;
	for (uint32_t at = 22; at < len; at++) {
		if (at == 54)
			continue; /* another type is no advertisement */
		buf[at] ^= 0x10;
		expect(len, URN_C_DROP_NEIGH);
		buf[at] ^= 0x10;
	}
	expect(len, URN_C_RA_RX);
}

/* A router that is not on the link, or none: the hop limit and the source. */
static void
far(void **state)
{
	static const uint8_t hops[] = {0, 1, 64, 254};
	uint32_t len = usual();

	(void)state;
	for (unsigned int i = 0; i < sizeof(hops); i++) {
		buf[21] = hops[i];
		expect(len, URN_C_DROP_RA_FAR);
	}
	expect(l3_ra(buf, peer_global, 1800, 0), URN_C_DROP_RA_FAR);
	expect(l3_ra(buf, no_addr, 1800, 0), URN_C_DROP_RA_FAR);
}

static void
malformed(void **state)
{
	uint32_t len = usual();

	(void)state;
	buf[55] = 1; /* code */
	expect_fixed(len, URN_C_DROP_NEIGH);
	for (unsigned int option = 0; option < 4; option++) {
		static const uint32_t at[4] = {70, 78, 86, 118};

		len = usual();
		buf[at[option] + 1] = 0; /* an option without a length would be walked for ever */
		expect_fixed(len, URN_C_DROP_NEIGH);
		buf[at[option] + 1] = 255;
		expect_fixed(len, URN_C_DROP_NEIGH);
	}
	/* A prefix in 8 bytes, which the frame ends with. */
	len = l3_option(buf, l3_ra(buf, peer_ll, 1800, 0), 3, 1);
	expect(len, URN_C_DROP_NEIGH);
	len = usual();
	buf[6] = 1; /* from a group's MAC */
	expect(len, URN_C_DROP_NEIGH);
}

/* Prefixes that are not on the link, or that no link has. */
static void
other_prefixes(void **state)
{
	static const struct {
		uint8_t prefix[16], bits, flags;
	} none[] = {
		{{0xfd, 9}, 64, 0x40}, /* for addresses alone */
		{{0xfd, 9}, 129, 0x80},
		{{0xfd, 9}, 255, 0x80},
		{{0xfd, 9}, 31, 0x80},
		{{0}, 0, 0x80},
		{{0xfe, 0x80}, 64, 0x80},
		{{0xff, 0x02}, 64, 0x80},
		{{[10] = 0xff, [11] = 0xff, 10}, 104, 0x80}, /* IPv4's */
	};
	struct urn_ra ra;
	uint32_t len = l3_ra(buf, peer_ll, 0, 0);
	uint8_t loose[16];

	(void)state;
	for (unsigned int i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		len = l3_prefix(buf, len, none[i].prefix, none[i].bits, none[i].flags, 100);
	memset(loose, 0xfd, 16); /* bits behind the length */
	len = l3_prefix(buf, len, loose, 36, 0x80, 0);
	assert_int_equal(rd(len, &ra), URN_C_RA_RX);
	assert_int_equal(ra.prefixes, 1);
	assert_memory_equal(ra.prefix[0].prefix, "\xfd\xfd\xfd\xfd\xf0\0\0\0\0\0\0\0\0\0\0\0", 16);
	assert_int_equal(ra.prefix[0].lifetime_s, 0);
	assert_int_equal(ra.lifetime_s, 0);
}

static void
many_prefixes(void **state)
{
	uint32_t len = l3_ra(buf, peer_ll, 1800, 0);
	struct urn_ra ra;

	(void)state;
	for (uint8_t i = 0; i < 40; i++) {
		uint8_t p[16] = {0xfd, i};

		len = l3_prefix(buf, len, p, 64, 0x80, 100);
		assert_int_equal(rd(len, &ra), URN_C_RA_RX);
		assert_int_equal(ra.prefixes, i < URN_RA_PREFIXES ? i + 1 : URN_RA_PREFIXES);
		assert_int_equal(ra.more, i >= URN_RA_PREFIXES);
	}
}

/* Other messages are none. */
static void
others(void **state)
{
	struct rte_mbuf *m;

	(void)state;
	m = test_mbuf_wrap(buf, l3_solicit(buf, peer_ll, us_ll, us_ll, peer_mac));
	(void)urn_wire_parse(m);
	assert_false(urn_ra_is(m));
	m = test_mbuf_wrap(buf, l3_echo(buf, peer_v4, us_v4, 64));
	buf[54] = 134;
	(void)urn_wire_parse(m);
	assert_false(urn_ra_is(m));
	(void)usual();
	buf[18] = buf[19] = 0; /* IPv6 without a payload */
	m = test_mbuf_wrap(buf, 54);
	(void)urn_wire_parse(m);
	assert_false(urn_ra_is(m));
}

/* RFC 4861, 4.1; RFC 2464, 7. */
static void
solicitation(void **state)
{
	static const uint8_t head[22] = {0x33, 0x33, 0,	   0,	 0, 2, 2, 0, 0,	 0,  0,
					 1,    0x86, 0xdd, 0x60, 0, 0, 0, 0, 16, 58, 255};
	static const uint8_t routers[16] = {0xff, 2, [15] = 2};
	static const uint8_t option[8] = {1, 1, 2, 0, 0, 0, 0, 1};
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_eal_pool());
	const uint8_t *f;

	(void)state;
	assert_non_null(m);
	f = rte_pktmbuf_mtod(m, const uint8_t *);
	memset(rte_pktmbuf_mtod(m, void *), 0xee, TEST_EAL_ROOM);
	urn_ra_solicit(m, us_mac, us_ll);
	assert_int_equal(rte_pktmbuf_data_len(m), 70);
	assert_int_equal(rte_pktmbuf_pkt_len(m), 70);
	assert_memory_equal(f, head, sizeof(head));
	assert_memory_equal(f + 22, us_ll, 16);
	assert_memory_equal(f + 38, routers, 16);
	assert_memory_equal(f + 54, "\x85\0", 2);
	assert_memory_equal(f + 58, "\0\0\0", 4);
	assert_memory_equal(f + 62, option, 8);
	assert_true(l3_sums_ok(f, 70));
	rte_pktmbuf_free(m);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields),
		cmocka_unit_test(preferences),
		cmocka_unit_test(cut_short),
		cmocka_unit_test(checksum),
		cmocka_unit_test(far),
		cmocka_unit_test(malformed),
		cmocka_unit_test(other_prefixes),
		cmocka_unit_test(many_prefixes),
		cmocka_unit_test(others),
		cmocka_unit_test(solicitation),
	};

	return cmocka_run_group_tests_name("ra", tests, NULL, NULL);
}
