/* SPDX-License-Identifier: BSD-3-Clause */
/* DB-9, doc/reference/wire.md: marks of congestion in frames, with the checksum of IPv4 kept right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/build.h"
#include "wire/ecn.h"
#include "wire/icrc.h"

#include <stdlib.h>
#include <string.h>

enum { TAG = 12, HEADERS = 62 };

/* The frame's Ethernet, IP and UDP headers with this traffic class. returns: their length */
static uint32_t
make(uint8_t *frame, bool ipv6, uint8_t tos, uint8_t salt)
{
	struct urn_path path = {.tos = tos, .ttl = 64, .sport = 0xc123};
	struct urn_tmpl t;

	memset(path.sgid, salt, 16);
	memset(path.dgid, (uint8_t)(salt * 7), 16);
	if (!ipv6) {
		static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};

		memcpy(path.sgid, v4, 12);
		memcpy(path.dgid, v4, 12);
	}
	urn_tmpl_init(&t, &path);
	urn_build_headers(frame, &t, 100);
	return t.len;
}

static uint16_t
sum_of(const uint8_t *l3)
{
	uint32_t sum = 0;

	for (int i = 0; i < 20; i += 2)
		sum += (uint32_t)l3[i] << 8 | l3[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* Each traffic class, many addresses: the mark is there, nothing else changes, the checksum holds. */
static void
marks(void **state)
{
	uint8_t frame[HEADERS], before[HEADERS];
	uint32_t icrc;

	(void)state;
	for (unsigned int i = 0; i < 2 * 256 * 16; i++) {
		bool ipv6 = i & 1;
		uint8_t tos = (uint8_t)(i >> 1);
		uint32_t len = make(frame, ipv6, tos, (uint8_t)(i >> 9));
		uint8_t *l3 = frame + URN_ETH_BYTES;

		memcpy(before, frame, len);
		icrc = urn_icrc(l3, len - URN_ETH_BYTES, ipv6);
		assert_int_equal(urn_ecn_get(l3, ipv6), tos & 3);
		assert_int_equal(urn_ecn_mark(frame, len), (tos & 3) != 0);
		if ((tos & 3) == 0) {
			assert_memory_equal(frame, before, len);
			continue;
		}
		assert_int_equal(urn_ecn_get(l3, ipv6), URN_ECN_CE);
		if (!ipv6)
			assert_int_equal(sum_of(l3), 0xffff);
		assert_int_equal(urn_icrc(l3, len - URN_ETH_BYTES, ipv6), icrc);
		/* All but the traffic class and the checksum is as before. */
		l3[1] = before[URN_ETH_BYTES + 1];
		if (!ipv6)
			memcpy(l3 + 10, before + URN_ETH_BYTES + 10, 2);
		assert_memory_equal(frame, before, len);
	}
}

/* Behind one or two VLAN tags a frame is marked, too, and behind three it is not. */
static void
tagged(void **state)
{
	uint8_t frame[HEADERS + 12];

	(void)state;
	for (int i = 0; i < 2 * (URN_ECN_TAGS + 1); i++) {
		bool ipv6 = i & 1;
		uint32_t len = make(frame, ipv6, URN_ECN_ECT0, 9), tags = 1 + (uint32_t)i / 2;

		memmove(frame + TAG + 4 * tags, frame + TAG, len - TAG);
		for (uint32_t t = 0; t < tags; t++)
			memcpy(frame + TAG + 4 * t,
			       t + 1 < tags ? "\x88\xa8\x00\x08" : "\x81\x00\x60\x07", 4);
		assert_int_equal(urn_ecn_mark(frame, len + 4 * tags), tags <= URN_ECN_TAGS);
		assert_int_equal(urn_ecn_get(frame + URN_ETH_BYTES + 4 * tags, ipv6),
				 tags <= URN_ECN_TAGS ? URN_ECN_CE : URN_ECN_ECT0);
	}
}

/* A frame of any length and type is read within its bounds only. */
static void
short_or_strange(void **state)
{
	uint8_t frame[HEADERS];

	(void)state;
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		uint32_t whole = ipv6 ? 54 : 34;

		for (uint32_t len = 0; len < whole; len++) {
			uint8_t *exact = malloc(len ? len : 1);

			make(frame, ipv6, URN_ECN_ECT0, 3);
			memcpy(exact, frame, len);
			assert_false(urn_ecn_mark(exact, len));
			free(exact);
		}
		make(frame, ipv6, URN_ECN_ECT0, 3);
		assert_true(urn_ecn_mark(frame, whole));
		make(frame, ipv6, URN_ECN_ECT0, 3);
		frame[URN_ETH_BYTES] = 0x55; /* another version than the type says */
		assert_false(urn_ecn_mark(frame, whole));
		make(frame, ipv6, URN_ECN_ECT0, 3);
		frame[TAG] = 0x88;
		assert_false(urn_ecn_mark(frame, whole));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(marks),
		cmocka_unit_test(tagged),
		cmocka_unit_test(short_or_strange),
	};

	return cmocka_run_group_tests_name("ecn", tests, NULL, NULL);
}
