/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/icrc.h"
#include "wire/hdr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* The CNP of a ConnectX-4 Lx, IP header to the last byte before the ICRC. */
static const uint8_t cnp[56] = {
	0x45, 0xc2, 0x00, 0x3c, 0x71, 0x8c, 0x40, 0x00, 0x40, 0x11, 0x91, 0x61, 0x0a, 0x00,
	0x11, 0x01, 0x0a, 0x00, 0x12, 0x01, 0x00, 0x00, 0x12, 0xb7, 0x00, 0x28, 0x00, 0x00,
	0x81, 0x00, 0xff, 0xff, 0x40, 0x00, 0x01, 0x18,
};
static const uint8_t cnp_icrc[4] = { 0x82, 0xfd, 0x00, 0x2a };

static uint32_t
wire_crc(const uint8_t b[4])
{
	return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

/* CRC-32 bit by bit, over 8 ones and the bytes: the definition, no table, no library. */
static uint32_t
slow_icrc(const uint8_t *p, uint32_t len)
{
	uint32_t crc = 0xffffffff;

	for (uint32_t i = 0; i < 8 + len; i++) {
		crc ^= i < 8 ? 0xff : p[i - 8];
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? (crc >> 1) ^ 0xedb88320 : crc >> 1;
	}
	return ~crc;
}

/* doc/reference/wire.md "ICRC": the test vector. */
static void
test_vector(void **state)
{
	uint8_t frame[sizeof(cnp) + 4];

	(void)state;
	memcpy(frame, cnp, sizeof(cnp));
	memcpy(frame + sizeof(cnp), cnp_icrc, 4);
	assert_int_equal(urn_icrc(frame, sizeof(cnp), 0), wire_crc(cnp_icrc));
	assert_memory_equal(frame, cnp, sizeof(cnp)); /* masked bits are restored */
	assert_memory_equal(frame + sizeof(cnp), cnp_icrc, 4);
}

/* doc/reference/wire.md "ICRC": seed is the finalised CRC of the 8 ones. */
static void
test_seed(void **state)
{
	(void)state;
	assert_int_equal(slow_icrc(NULL, 0), URN_ICRC_SEED);
}

/* Every length that a frame can have, against the definition. */
static void
test_lengths(void **state)
{
	static const uint32_t len[] = { 40, 41, 43, 60, 63, 64, 65, 127, 128, 129, 255, 256,
					511, 1063, 2047, 4136, 4152, 4155 };
	static uint8_t buf[4160];

	(void)state;
	for (unsigned int i = 0; i < sizeof(buf); i++)
		buf[i] = (uint8_t)(i * 37 + (i >> 8));
	for (unsigned int i = 0; i < sizeof(len) / sizeof(len[0]); i++)
		assert_int_equal(urn_icrc_masked(buf, len[i]), slow_icrc(buf, len[i]));
}

/*
 * Short packets have a code path of their own, by 16 bytes and a rest: each length, and
 * some beyond, against the definition over a copy with the masked bits set. The frame
 * stays as it was, and may lie anywhere.
 */
static void
check_short(uint32_t min, int ipv6, const uint8_t *masked)
{
	uint8_t buf[304 + 16], copy[304];

	/* Frames have multiples of 4; other lengths take the path of processors without PCLMULQDQ. */
	for (uint32_t len = min; len <= sizeof(copy); len++) {
		uint8_t *l3 = buf + len / 4 % 16;

		for (unsigned int i = 0; i < sizeof(buf); i++)
			buf[i] = (uint8_t)(len + i * 29 + (i >> 3));
		for (unsigned int i = 0; i < len; i++)
			copy[i] = l3[i] | (i < 64 ? masked[i] : 0);
		assert_int_equal(urn_icrc(l3, len, ipv6), slow_icrc(copy, len));
		for (unsigned int i = 0; i < sizeof(buf); i++)
			assert_int_equal(buf[i], (uint8_t)(len + i * 29 + (i >> 3)));
	}
}

/*
 * Flip each bit of a packet: `masked` bits leave the CRC alone, all others do
 * not. Every length from the shortest packet on: the code for it differs.
 */
static void
check_masks(uint32_t min, int ipv6, const uint8_t *masked)
{
	uint8_t l3[104], was[104];

	for (unsigned int i = 0; i < sizeof(l3); i++)
		l3[i] = (uint8_t)(0x60 + i * 5);
	memcpy(was, l3, sizeof(l3));
	for (uint32_t len = min; len <= 96; len += 4) {
		uint32_t crc = urn_icrc(l3, len, ipv6);

		for (uint32_t bit = 0; bit < len * 8; bit++) {
			uint8_t m = (uint8_t)(1u << (bit & 7));
			uint32_t now;

			l3[bit / 8] ^= m;
			now = urn_icrc(l3, len, ipv6);
			l3[bit / 8] ^= m;
			assert_int_equal(now == crc, (masked[bit / 8] & m) != 0);
		}
		assert_memory_equal(l3, was, sizeof(l3));
	}
}

/* doc/reference/wire.md "ICRC": the bits replaced by ones, and the others, IPv4. */
static void
test_masks_v4(void **state)
{
	static const uint8_t masked[96] = { [1] = 0xff, [8] = 0xff, [10] = 0xff, [11] = 0xff,
					    [26] = 0xff, [27] = 0xff, [32] = 0xff };

	(void)state;
	check_masks(40, 0, masked);
	check_short(40, 0, masked);
}

/* The same, IPv6: traffic class, flow label, hop limit, UDP checksum, BTH byte 4. */
static void
test_masks_v6(void **state)
{
	static const uint8_t masked[96] = { [0] = 0x0f, [1] = 0xff, [2] = 0xff, [3] = 0xff,
					    [7] = 0xff, [46] = 0xff, [47] = 0xff, [52] = 0xff };

	(void)state;
	check_masks(60, 1, masked);
	check_short(60, 1, masked);
}

/* No byte behind the place of the ICRC is accessed, at the shortest lengths too. */
static void
test_touches_no_more(void **state)
{
	(void)state;
	for (uint32_t len = 40; len < 80; len++)
		for (int ipv6 = 0; ipv6 < (len >= 60 ? 2 : 1); ipv6++) {
			uint8_t *l3 = malloc(len + 4); /* the sanitizer checks accesses behind its end */

			assert_non_null(l3);
			memset(l3, 0x45, len + 4);
			urn_icrc(l3, len, ipv6);
			free(l3);
		}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vector),   cmocka_unit_test(test_seed),
		cmocka_unit_test(test_lengths),  cmocka_unit_test(test_masks_v4),
		cmocka_unit_test(test_masks_v6), cmocka_unit_test(test_touches_no_more),
	};

	return cmocka_run_group_tests_name("icrc", tests, NULL, NULL);
}
