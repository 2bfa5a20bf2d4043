/* SPDX-License-Identifier: BSD-3-Clause */
/* AM-2, AM-9: packets of atomic operations and their replies, built and parsed; malformed ones are
 * no messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "abi/am_codes.h"
#include "wire/am.h"

#include <stdlib.h>
#include <string.h>

enum { HEADER = (int)sizeof(struct urn_am_hdr), WORDS = (int)sizeof(struct urn_am_atomic_hdr) };

/* Build a packet in memory that ends right behind it. returns: memory to be freed */
static uint8_t *
build(const struct urn_am_atomic *a, uint32_t len)
{
	struct urn_am_msg m = {.kind = URN_AM_K_ATOMIC, .len = len, .tag = 9, .addr = 64, .key = 1};
	uint8_t *at = malloc(HEADER + WORDS);

	assert_non_null(at);
	assert_int_equal(urn_am_build(at, &m), HEADER + WORDS);
	urn_am_put_atomic(at + HEADER, a);
	return at;
}

static bool
parses(const struct urn_am_atomic *a, uint32_t len)
{
	struct urn_am_msg m;
	uint8_t *at = build(a, len);
	bool is = urn_am_parse(at, HEADER + WORDS, &m);

	free(at);
	return is;
}

/* Operations and operands come out as they went in. */
static void
operations_are_parsed_as_built(void **state)
{
	(void)state;
	for (unsigned int op = URN_AM_FETCH_ADD; op <= URN_AM_COMPARE_SWAP; op++) {
		struct urn_am_atomic a = {.op = (uint8_t)op, .value = 0x0102030405060708}, got;
		struct urn_am_msg m;
		uint8_t *at;

		a.compare = op == URN_AM_COMPARE_SWAP ? UINT64_MAX : 0;
		at = build(&a, 8);
		assert_true(urn_am_parse(at, HEADER + WORDS, &m));
		assert_false(urn_am_kind_is_reply(m.kind));
		assert_ptr_equal(m.data, at + HEADER);
		assert_true(urn_am_get_atomic(m.data, m.len, &got));
		assert_true(got.op == op && got.value == a.value && got.compare == a.compare);
		free(at);
	}
}

/* The bytes on the wire are these, whatever the machine. */
static void
bytes_are_in_network_order(void **state)
{
	static const uint8_t golden[WORDS] = {5, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4,
					      5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 9};
	static const uint8_t old[8] = {0, 0, 0, 0, 1, 2, 3, 4};
	struct urn_am_atomic a = {URN_AM_COMPARE_SWAP, 0x0102030405060708, 9};
	uint8_t data[WORDS];

	(void)state;
	urn_am_put_atomic(data, &a);
	assert_memory_equal(data, golden, WORDS);
	urn_am_put_old(data, 0x01020304);
	assert_memory_equal(data, old, 8);
	assert_true(urn_am_get_old(data) == 0x01020304);
}

/* Words have 4 or 8 bytes, values fit, operations are known, and operands without a use are 0. */
static void
operands_are_strict(void **state)
{
	struct urn_am_atomic a = {URN_AM_COMPARE_SWAP, 1, 2};

	(void)state;
	for (uint32_t len = 0; len < 20; len++)
		assert_int_equal(parses(&a, len), len == 4 || len == 8);
	for (unsigned int op = 0; op < 256; op++) {
		a.op = (uint8_t)op;
		assert_int_equal(parses(&a, 8), op == URN_AM_COMPARE_SWAP); /* `compare` is used */
	}
	a = (struct urn_am_atomic){URN_AM_SWAP, 1ull << 32, 0};
	assert_true(parses(&a, 8));
	assert_false(parses(&a, 4));
	a = (struct urn_am_atomic){URN_AM_COMPARE_SWAP, 1, 1ull << 32};
	assert_true(parses(&a, 8));
	assert_false(parses(&a, 4));
	for (unsigned int i = 1; i < 8; i++) {
		struct urn_am_msg m;
		uint8_t *at = build(&a, 8);

		at[HEADER + i] = 1; /* reserved */
		assert_false(urn_am_parse(at, HEADER + WORDS, &m));
		free(at);
	}
}

/* Every length but the right one is refused; so is a reply of 4 bytes with a value of 8. */
static void
lengths_are_exact(void **state)
{
	struct urn_am_msg r = {.kind = URN_AM_K_ATOMIC_REPLY, .len = 4, .tag = 7}, m;
	struct urn_am_atomic a = {URN_AM_FETCH_ADD, 1, 0};
	uint8_t *at = build(&a, 8), reply[HEADER + WORDS] = {0};

	(void)state;
	for (uint32_t len = 0; len <= HEADER + WORDS; len++)
		assert_int_equal(urn_am_parse(at, len, &m), len == HEADER + WORDS);
	free(at);
	assert_int_equal(urn_am_build(reply, &r), HEADER + 8);
	urn_am_put_old(reply + HEADER, UINT32_MAX);
	for (uint32_t len = 0; len <= sizeof(reply); len++)
		assert_int_equal(urn_am_parse(reply, len, &m), len == HEADER + 8);
	assert_true(urn_am_parse(reply, HEADER + 8, &m) && urn_am_kind_is_reply(m.kind));
	urn_am_put_old(reply + HEADER, 1ull << 32);
	assert_false(urn_am_parse(reply, HEADER + 8, &m));
	r.len = 5;
	urn_am_build(reply, &r);
	assert_false(urn_am_parse(reply, HEADER + 8, &m));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operations_are_parsed_as_built),
		cmocka_unit_test(bytes_are_in_network_order),
		cmocka_unit_test(operands_are_strict),
		cmocka_unit_test(lengths_are_exact),
	};

	return cmocka_run_group_tests_name("wire_am_atomic", tests, NULL, NULL);
}
