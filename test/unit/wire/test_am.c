/* SPDX-License-Identifier: BSD-3-Clause */
/* AM-2, AM-3, AM-9: headers of remote memory access, built and parsed; malformed messages are no
 * messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "abi/am_codes.h"
#include "wire/am.h"

#include <stdlib.h>
#include <string.h>

enum { LEN = 40, HEADER = (int)sizeof(struct urn_am_hdr) };

static const struct urn_am_msg sound[] = {
	{.kind = URN_AM_K_WRITE, .len = LEN, .tag = 0x123456789abcdef0, .addr = 0x1000, .key = 77},
	{.kind = URN_AM_K_WRITE_REPLY, .len = LEN, .tag = 2},
	{.kind = URN_AM_K_READ, .len = LEN, .tag = 3, .addr = UINT64_MAX - LEN + 1},
	{.kind = URN_AM_K_READ_REPLY, .len = LEN, .tag = UINT64_MAX},
	{.kind = URN_AM_K_ERROR, .len = LEN, .tag = 5, .code = URN_AM_RANGE},
};

/* Build a message in memory that ends right behind it, so that a read too far is seen. returns:
 * memory to be freed */
static uint8_t *
build(const struct urn_am_msg *m, uint32_t *len)
{
	uint8_t head[HEADER], *at;

	*len = urn_am_build(head, m);
	at = malloc(*len);
	assert_non_null(at);
	memset(at, 0x5a, *len);
	memcpy(at, head, HEADER);
	return at;
}

static void
messages_are_parsed_as_built(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 5; i++) {
		bool data = sound[i].kind == URN_AM_K_WRITE || sound[i].kind == URN_AM_K_READ_REPLY;
		struct urn_am_msg m;
		uint32_t len;
		uint8_t *at = build(&sound[i], &len);

		assert_int_equal(len, HEADER + (data ? LEN : 0));
		assert_true(urn_am_parse(at, len, &m));
		assert_ptr_equal(m.data, data ? at + HEADER : NULL);
		assert_int_equal(m.kind, sound[i].kind);
		assert_int_equal(m.code, sound[i].code);
		assert_int_equal(m.len, sound[i].len);
		assert_int_equal(m.tag, sound[i].tag);
		assert_int_equal(m.addr, sound[i].addr);
		assert_int_equal(m.key, sound[i].key);
		assert_int_equal(urn_am_kind_is_reply(m.kind),
				 m.kind != URN_AM_K_WRITE && m.kind != URN_AM_K_READ);
		free(at);
	}
}

/* The bytes on the wire are these, whatever the machine (doc/inside/active-messages.md). */
static void
bytes_are_in_network_order(void **state)
{
	static const uint8_t golden[HEADER] = {
		1, 0, 0, 0, 0, 0, 0,	40, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0,
		0, 0, 0, 0, 0, 0, 0x10, 0,  0,	  0,	0,    0,    0,	  0,	0,    77};
	uint8_t at[HEADER];

	(void)state;
	urn_am_build(at, &sound[0]);
	assert_memory_equal(at, golden, HEADER);
}

/* Every length but the right one is refused. */
static void
lengths_are_exact(void **state)
{
	static uint8_t long_one[HEADER + LEN + 64];

	(void)state;
	for (unsigned int i = 0; i < 5; i++) {
		uint32_t right = urn_am_build(long_one, &sound[i]);
		struct urn_am_msg m;

		for (uint32_t len = 0; len < sizeof(long_one); len++)
			assert_int_equal(urn_am_parse(long_one, len, &m), len == right);
	}
}

/* Set bytes of a sound message. returns: true when it is still a message */
static bool
parses_with(unsigned int i, uint32_t at, const uint8_t *bytes, uint32_t n)
{
	struct urn_am_msg m;
	uint32_t len;
	uint8_t *p = build(&sound[i], &len);
	bool is;

	memcpy(p + at, bytes, n);
	is = urn_am_parse(p, len, &m);
	free(p);
	return is;
}

static void
fields_are_strict(void **state)
{
	uint8_t one = 1, v;

	(void)state;
	for (unsigned int k = 0; k < 256; k++) { /* kinds */
		v = (uint8_t)k;
		assert_int_equal(parses_with(1, 0, &v, 1),
				 k == URN_AM_K_WRITE_REPLY || k == URN_AM_K_READ ||
					 k == URN_AM_K_TAG_WRITE || k == URN_AM_K_TAG_READ);
		assert_int_equal(parses_with(0, 0, &v, 1), k == URN_AM_K_WRITE ||
								   k == URN_AM_K_TAG_DATA ||
								   k == URN_AM_K_TAG_BACK);
	}
	for (unsigned int c = 0; c < 256; c++) { /* codes */
		v = (uint8_t)c;
		assert_int_equal(parses_with(4, 1, &v, 1), c != 0 && c < URN_AM_CODES);
		assert_int_equal(parses_with(0, 1, &v, 1), c == 0);
	}
	for (unsigned int i = 0; i < 5; i++) {
		bool reply = urn_am_kind_is_reply(sound[i].kind);

		assert_false(parses_with(i, 2, &one, 1)); /* flags */
		assert_false(parses_with(i, 3, &one, 1));
		assert_false(parses_with(i, 4, &one, 1)); /* longer than a message moves */
		assert_int_equal(parses_with(i, 31, &one, 1), !reply); /* key */
		assert_int_equal(parses_with(i, 22, &one, 1), !reply); /* address */
	}
}

/* A range that wraps around the address space, and one of no bytes, are refused. */
static void
ranges_do_not_wrap(void **state)
{
	struct urn_am_msg m = sound[2], got;
	uint8_t at[HEADER];

	(void)state;
	urn_am_build(at, &m);
	assert_true(urn_am_parse(at, HEADER, &got));
	m.addr++;
	urn_am_build(at, &m);
	assert_false(urn_am_parse(at, HEADER, &got));
	m.addr = 0;
	m.len = 0;
	urn_am_build(at, &m);
	assert_false(urn_am_parse(at, HEADER, &got));
	m.len = URN_AM_CHUNK_MAX;
	urn_am_build(at, &m);
	assert_true(urn_am_parse(at, HEADER, &got));
	m.len++;
	urn_am_build(at, &m);
	assert_false(urn_am_parse(at, HEADER, &got));
}

/* Random bytes: a message that is taken is built to the same bytes again. */
static void
what_parses_is_canonical(void **state)
{
	uint32_t rnd = 1, taken = 0;

	(void)state;
	for (unsigned int n = 0; n < 200000; n++) {
		uint8_t at[HEADER + 64], again[HEADER];
		struct urn_am_msg m;
		uint32_t len;

		urn_am_build(at, &sound[n % 5]);
		for (unsigned int k = n % 4; k; k--) {
			rnd = rnd * 1103515245u + 12345u;
			at[(rnd >> 8) % HEADER] =
				(uint8_t)(rnd >> 20) & ((rnd >> 28) % 2 ? 0xff : 3);
		}
		len = HEADER +
		      (n % 7 ? LEN : 0) * (sound[n % 5].kind == URN_AM_K_WRITE || n % 5 == 3);
		if (!urn_am_parse(at, len, &m))
			continue;
		taken++;
		assert_int_equal(urn_am_build(again, &m), len);
		assert_memory_equal(again, at, HEADER);
	}
	assert_true(taken > 50000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_are_parsed_as_built),
		cmocka_unit_test(bytes_are_in_network_order),
		cmocka_unit_test(lengths_are_exact),
		cmocka_unit_test(fields_are_strict),
		cmocka_unit_test(ranges_do_not_wrap),
		cmocka_unit_test(what_parses_is_canonical),
	};

	return cmocka_run_group_tests_name("wire_am", tests, NULL, NULL);
}
