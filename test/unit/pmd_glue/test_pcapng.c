/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks of pcapng, read without any code of ours (draft-ietf-opsawg-pcapng, section 4). */
#include "test/unit/pmd_glue/harness.h"
#include "pmd_glue/pcapng.h"

#include <string.h>

enum { GUARD = 0xa5 };

static uint32_t
u32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return v;
}

/* A block has its length at both ends, in fours, and writes nothing behind itself. */
static void
check_frame_of(const uint8_t *b, size_t len, uint32_t type, size_t room)
{
	check(len >= 12 && len % 4 == 0 && len <= room);
	check(u32(b) == type && u32(b + 4) == len && u32(b + len - 4) == len);
	check(b[len] == GUARD);
}

/* Find an option among those from `at` on, which must end in an end of options right before the
 * length. */
static const uint8_t *
option(const uint8_t *b, size_t at, size_t len, uint16_t code, uint16_t *size)
{
	const uint8_t *found = NULL;

	for (;;) {
		uint16_t c, n;

		check(at + 4 <= len - 4);
		memcpy(&c, b + at, 2);
		memcpy(&n, b + at + 2, 2);
		if (c == 0) {
			check(n == 0 && at + 4 == len - 4);
			return found;
		}
		check(at + 4 + RTE_ALIGN((uint32_t)n, 4u) <= len - 4);
		if (c == code) {
			check(found == NULL);
			found = b + at + 4;
			*size = n;
		}
		at += 4 + RTE_ALIGN((uint32_t)n, 4u);
	}
}

static void
section(void **state)
{
	uint8_t b[URN_PCAPNG_SMALL + 1];
	size_t len;

	(void)state;
	memset(b, GUARD, sizeof(b));
	len = urn_pcapng_section(b);
	check_frame_of(b, len, 0x0a0d0d0a, URN_PCAPNG_SMALL);
	check(u32(b + 8) == 0x1a2b3c4d && u32(b + 12) == 1); /* version 1.0 */
}

/* Names of every length, the longest cut; the snap length and the times' unit. */
static void
interface(void **state)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 9};
	char name[100] = "";
	uint8_t b[URN_PCAPNG_SMALL + 1];
	uint16_t size = 0;
	const uint8_t *v;
	size_t len;

	(void)state;
	for (size_t n = 1; n < sizeof(name); n++) {
		memset(name, 'n', n);
		memset(b, GUARD, sizeof(b));
		len = urn_pcapng_interface(b, name, mac, (uint32_t)n * 1000);
		check_frame_of(b, len, 1, URN_PCAPNG_SMALL);
		check(b[8] == 1 && b[9] == 0 && u32(b + 12) == n * 1000);
		v = option(b, 16, len, 2, &size);
		check(v != NULL && size == RTE_MIN(n, (size_t)63) && memcmp(v, name, size) == 0);
		v = option(b, 16, len, 6, &size);
		check(v != NULL && size == 6 && memcmp(v, mac, 6) == 0);
		v = option(b, 16, len, 9, &size);
		check(v != NULL && size == 1 && *v == 9);
	}
}

/* A frame of one or two segments, of every padding; the length before it was cut. */
static void
frame(void **state)
{
	uint8_t data[64], b[sizeof(data) + URN_PCAPNG_FRAME_MORE + 1];
	struct rte_mbuf m[2];

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i + 1);
	for (uint16_t n = 0; n <= sizeof(data); n++) {
		const struct urn_pcapng_frame f = {.m = m,
						   .ns = 0x1122334455667788,
						   .iface = 3,
						   .len = 9000,
						   .queue = 5,
						   .direction = URN_PCAPNG_OUT};
		uint16_t size = 0;
		const uint8_t *v;
		size_t len, options = 28 + RTE_ALIGN((size_t)n, 4);

		memset(m, 0, sizeof(m));
		m[0] = (struct rte_mbuf){
			.buf_addr = data, .data_len = n / 2, .pkt_len = n, .next = &m[1]};
		m[1] = (struct rte_mbuf){.buf_addr = data + n / 2, .data_len = n - n / 2};
		memset(b, GUARD, sizeof(b));
		len = urn_pcapng_frame(b, &f);
		check_frame_of(b, len, 6, n + (size_t)URN_PCAPNG_FRAME_MORE);
		check(u32(b + 8) == 3 && u32(b + 12) == 0x11223344 && u32(b + 16) == 0x55667788);
		check(u32(b + 20) == n && u32(b + 24) == 9000 && memcmp(b + 28, data, n) == 0);
		for (size_t i = 28 + (size_t)n; i < options; i++)
			check(b[i] == 0);
		v = option(b, options, len, 2, &size);
		check(v != NULL && size == 4 && u32(v) == 2);
		v = option(b, options, len, 6, &size);
		check(v != NULL && size == 4 && u32(v) == 5);
	}
}

static void
stats(void **state)
{
	const uint64_t want[2] = {1ull << 40, 7};
	uint8_t b[URN_PCAPNG_SMALL + 1];
	uint16_t size = 0;
	size_t len;

	(void)state;
	memset(b, GUARD, sizeof(b));
	len = urn_pcapng_stats(b, 2, 0x100000002, want[0], want[1]);
	check_frame_of(b, len, 5, 64); /* a limit leaves 64 bytes out for each port */
	check(u32(b + 8) == 2 && u32(b + 12) == 1 && u32(b + 16) == 2);
	for (uint16_t i = 0; i < 2; i++) {
		const uint8_t *v = option(b, 20, len, 4 + i, &size);

		check(v != NULL && size == 8 && memcmp(v, &want[i], 8) == 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(section),
		cmocka_unit_test(interface),
		cmocka_unit_test(frame),
		cmocka_unit_test(stats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
