/* SPDX-License-Identifier: BSD-3-Clause */
/* AM-4 to AM-7, AM-10: messages of transfers with a tag, built and parsed; malformed ones are none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "abi/am_codes.h"
#include "wire/am.h"

#include <stdlib.h>
#include <string.h>

enum { LEN = 40, HEADER = (int)sizeof(struct urn_am_hdr), TOTAL = URN_AM_TOTAL_MAX };

static const struct urn_am_msg sound[] = {
	{.kind = URN_AM_K_TAG_WRITE, .len = TOTAL, .tag = 1, .addr = 0x1000, .key = 77},
	{.kind = URN_AM_K_TAG_READ, .len = TOTAL, .tag = 2, .addr = UINT64_MAX - TOTAL + 1},
	{.kind = URN_AM_K_TAG_DATA, .len = LEN, .tag = 3, .addr = TOTAL - LEN, .key = UINT64_MAX},
	{.kind = URN_AM_K_TAG_BACK, .len = LEN, .tag = 4, .addr = 0, .key = 5},
	{.kind = URN_AM_K_TAG_DONE, .len = TOTAL, .tag = 5, .addr = TOTAL},
	{.kind = URN_AM_K_TAG_ERROR, .len = TOTAL, .tag = 6, .addr = 7, .code = URN_AM_ADDRESSEE},
	{.kind = URN_AM_K_TAG_CANCEL, .len = TOTAL, .tag = 7, .code = URN_AM_LOCAL},
	{.kind = URN_AM_K_PART,
	 .len = LEN,
	 .tag = 8,
	 .addr = 9,
	 .key = 1,
	 .total = TOTAL,
	 .every = 9},
};
enum { SOUND = 8 };

static bool
has_data(const struct urn_am_msg *m)
{
	return m->kind == URN_AM_K_TAG_DATA || m->kind == URN_AM_K_TAG_BACK ||
	       m->kind == URN_AM_K_PART;
}

/* True when a message parses; its bytes end where memory ends. */
static bool
parses(const struct urn_am_msg *m, struct urn_am_msg *got)
{
	uint8_t head[HEADER + 8], *at;
	uint32_t len = urn_am_build(head, m);
	bool is;

	at = calloc(1, len);
	assert_non_null(at);
	memcpy(at, head, len < sizeof(head) ? len : sizeof(head));
	is = urn_am_parse(at, len, got);
	if (is && has_data(m))
		assert_ptr_equal(got->data, at + len - m->len);
	free(at);
	return is;
}

static void
messages_are_parsed_as_built(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < SOUND; i++) {
		const struct urn_am_msg *s = &sound[i];
		struct urn_am_msg m;

		assert_true(parses(s, &m));
		assert_true(m.kind == s->kind && m.code == s->code && m.len == s->len);
		assert_true(m.tag == s->tag && m.addr == s->addr && m.key == s->key);
		assert_true(m.total == s->total && m.every == s->every);
		assert_int_equal(m.data != NULL, has_data(s));
		assert_int_equal(urn_am_kind_is_reply(m.kind),
				 s->kind >= URN_AM_K_TAG_BACK && s->kind <= URN_AM_K_TAG_ERROR);
	}
}

/* Every length but the right one is refused. */
static void
lengths_are_exact(void **state)
{
	static uint8_t long_one[HEADER + 8 + LEN + 64];

	(void)state;
	for (unsigned int i = 0; i < SOUND; i++) {
		uint32_t right = urn_am_build(long_one, &sound[i]);
		struct urn_am_msg m;

		for (uint32_t len = 0; len < sizeof(long_one); len++)
			assert_int_equal(urn_am_parse(long_one, len, &m), len == right);
		memset(long_one, 0, sizeof(long_one));
	}
}

/* Numbers beyond a kind's bounds, and fields that it does not use, are refused. */
static void
fields_are_strict(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < SOUND; i++) {
		struct urn_am_msg m = sound[i], got;
		bool answer = i >= 4 && i <= 6;

		m.len = 0;
		assert_false(parses(&m, &got));
		m.len = has_data(&m) ? URN_AM_CHUNK_MAX + 1 : TOTAL + 1;
		assert_false(parses(&m, &got));
		m = sound[i];
		m.code = m.code ? 0 : 1;
		assert_false(parses(&m, &got));
		m.code = URN_AM_CODES;
		assert_false(parses(&m, &got));
		m = sound[i];
		m.key++;
		assert_int_equal(parses(&m, &got), !answer);
		m = sound[i];
		m.addr = i == 1	  ? m.addr + 1
			 : i == 0 ? UINT64_MAX - TOTAL + 2
				  : (uint64_t)TOTAL + 1;
		m.addr = i == 2 || i == 3 ? TOTAL - LEN + 1
			 : i == 7	  ? UINT64_MAX - LEN + 2
					  : m.addr;
		assert_false(parses(&m, &got));
	}
}

/* Only zero bytes placed are no confirmation; an error may have none. */
static void
confirmations_have_bytes(void **state)
{
	struct urn_am_msg m = sound[4], got;

	(void)state;
	m.addr = 0;
	assert_false(parses(&m, &got));
	m = sound[5];
	m.addr = 0;
	assert_true(parses(&m, &got));
}

/* A part is no longer than its transfer, and says after how many packets it wants a reply. */
static void
parts_are_strict(void **state)
{
	struct urn_am_msg m = sound[7], got;
	uint8_t at[HEADER + 8 + LEN] = {0};

	(void)state;
	m.total = LEN;
	assert_true(parses(&m, &got));
	m.total = LEN - 1;
	assert_false(parses(&m, &got));
	m.total = TOTAL + 1;
	assert_false(parses(&m, &got));
	m = sound[7];
	m.every = 0;
	assert_false(parses(&m, &got));
	m = sound[7];
	m.len = URN_AM_CHUNK_MAX;
	assert_true(parses(&m, &got));
	m.len++;
	assert_false(parses(&m, &got));
	for (unsigned int i = 0; i < 3; i++) {
		urn_am_build(at, &sound[7]);
		assert_true(urn_am_parse(at, sizeof(at), &got));
		at[HEADER + 5 + i] = 1;
		assert_false(urn_am_parse(at, sizeof(at), &got));
	}
}

/* Bytes on the wire, whatever the machine (doc/reference/wire.md). */
static void
bytes_are_in_network_order(void **state)
{
	static const uint8_t golden[HEADER + 8] = {15, 0, 0, 0, 0,    0, 0, 40, 0, 0, 0, 0, 0, 0,
						   0,  8, 0, 0, 0,    0, 0, 0,	0, 9, 0, 0, 0, 0,
						   0,  0, 0, 1, 0x40, 0, 0, 0,	9, 0, 0, 0};
	uint8_t at[HEADER + 8];

	(void)state;
	urn_am_build(at, &sound[7]);
	assert_memory_equal(at, golden, sizeof(golden));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_are_parsed_as_built),
		cmocka_unit_test(lengths_are_exact),
		cmocka_unit_test(fields_are_strict),
		cmocka_unit_test(confirmations_have_bytes),
		cmocka_unit_test(parts_are_strict),
		cmocka_unit_test(bytes_are_in_network_order),
	};

	return cmocka_run_group_tests_name("wire_am_tag", tests, NULL, NULL);
}
