/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/opcode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { R = 1 << 0, A = 1 << 1, T = 1 << 2, TA = 1 << 3, I = 1 << 4, V = 1 << 5, D = 1 << 6,
       K = 1 << 7, F = 1 << 8 };

/* A second copy of doc/reference/wire.md "Opcodes": opcode, extensions, bytes of headers. */
static const struct {
	uint8_t opcode;
	uint16_t ext;
	uint8_t len;
} want[] = {
	{0x00, 0, 12}, {0x01, 0, 12},	  {0x02, 0, 12}, {0x03, I, 16},	     {0x04, 0, 12},
	{0x05, I, 16}, {0x06, R, 28},	  {0x07, 0, 12}, {0x08, 0, 12},	     {0x09, I, 16},
	{0x0a, R, 28}, {0x0b, R | I, 32}, {0x0c, R, 28}, {0x0d, A, 16},	     {0x0e, 0, 12},
	{0x0f, A, 16}, {0x10, A, 16},	  {0x11, A, 16}, {0x12, A | TA, 24}, {0x13, T, 40},
	{0x14, T, 40}, {0x16, V, 16},	  {0x17, V, 16}, {0x64, D, 20},	     {0x65, D | I, 24},
	{0x81, 0, 28}, {0xc0, A | K, 88}, {0xc1, F, 28}, {0x20, 0, 12},	     {0x21, 0, 12},
	{0x22, 0, 12}, {0x23, I, 16},	  {0x24, 0, 12}, {0x25, I, 16},	     {0x26, R, 28},
	{0x27, 0, 12}, {0x28, 0, 12},	  {0x29, I, 16}, {0x2a, R, 28},	     {0x2b, R | I, 32},
	{0xc2, F, 28}, {0xc3, F, 28},	  {0xc4, R, 28}, {0xc5, R | I, 32},  {0xc6, A, 16},
};

enum { WANTED = sizeof(want) / sizeof(want[0]) };

static const uint8_t ext_bytes[URN_EXTS] = { 16, 4, 28, 8, 4, 4, 8, 72, 16 };

static int
has(uint8_t opcode, enum urn_op_flag flag)
{
	return (urn_opcodes[opcode].flags & flag) != 0;
}

/* True when the opcode is in RC's space and has no meaning. */
static int
reserved(unsigned int op)
{
	return op == 0x15 || (op >= 0x18 && op <= 0x1f);
}

/*
 * Exactly the opcodes of doc/reference/wire.md are known; RC's reserved ones are requests of no kind;
 * all others have no flags.
 */
static void
test_known(void **state)
{
	unsigned int known = 0;

	(void)state;
	for (unsigned int i = 0; i < WANTED; i++) {
		assert_true(has(want[i].opcode, URN_OPF_VALID));
		assert_non_null(urn_opcodes[want[i].opcode].name);
	}
	for (unsigned int op = 0; op < 256; op++) {
		assert_int_equal(urn_opcode_reserved(&urn_opcodes[op]), reserved(op));
		if (reserved(op)) {
			assert_int_equal(urn_opcodes[op].flags, URN_OPF_VALID | URN_OPF_RC |
								URN_OPF_REQUEST | URN_OPF_PAYLOAD);
			assert_int_equal(urn_opcodes[op].hdr_len, 12);
			continue;
		}
		if (has((uint8_t)op, URN_OPF_VALID)) {
			known++;
			continue;
		}
		assert_int_equal(urn_opcodes[op].flags, 0);
		assert_int_equal(urn_opcodes[op].hdr_len, 0);
		assert_null(urn_opcodes[op].name);
	}
	assert_int_equal(known, WANTED);
}

/* Extensions follow the BTH without gaps, and payload follows them. */
static void
test_extensions(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < WANTED; i++) {
		const struct urn_opcode *op = &urn_opcodes[want[i].opcode];
		unsigned int sum = 12;

		assert_int_equal(op->hdr_len, want[i].len);
		for (unsigned int e = 0; e < URN_EXTS; e++) {
			assert_int_equal(op->off[e] != 0, (want[i].ext >> e) & 1);
			if (op->off[e] == 0)
				continue;
			assert_true(op->off[e] >= 12);
			assert_true(op->off[e] + ext_bytes[e] <= op->hdr_len);
			sum += ext_bytes[e];
		}
		if (!(op->flags & URN_OPF_CNP))
			assert_int_equal(sum, op->hdr_len);
	}
	/* The order on the wire of two extensions. */
	assert_int_equal(urn_opcodes[URN_RC_WRITE_ONLY_IMM].off[URN_EXT_IMM], 28);
	assert_int_equal(urn_opcodes[URN_RC_ATOMIC_ACK].off[URN_EXT_ATOMIC_ACK], 16);
	assert_int_equal(urn_opcodes[URN_UD_SEND_ONLY_IMM].off[URN_EXT_IMM], 20);
}

/* Flags that hold for every opcode. */
static void
test_flags_agree(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < WANTED; i++) {
		uint8_t op = want[i].opcode;
		int kinds = has(op, URN_OPF_SEND) + has(op, URN_OPF_WRITE) +
			    has(op, URN_OPF_READ) + has(op, URN_OPF_ATOMIC);

		if (op == URN_CNP) {
			assert_int_equal(urn_opcodes[op].flags, URN_OPF_VALID | URN_OPF_CNP);
			continue;
		}
		if (op == URN_RC_SACK) { /* an ACK; fields of a later version count as payload */
			assert_int_equal(urn_opcodes[op].flags,
					 urn_opcodes[URN_RC_ACK].flags | URN_OPF_PAYLOAD);
			assert_int_equal(urn_opcodes[op].off[URN_EXT_SACK], 16);
			continue;
		}
		if (op == URN_UC_WORD) { /* an answer of UC, which the standard has not */
			assert_int_equal(urn_opcodes[op].flags ^ URN_OPF_UC,
					 urn_opcodes[URN_RC_ACK].flags ^ URN_OPF_RC);
			continue;
		}
		assert_int_equal(has(op, URN_OPF_FLOW),
				 op >= URN_FLOW_DATA && op <= URN_FLOW_RESET);
		if (has(op, URN_OPF_FLOW)) { /* no queue pair's; messages of any length are payload */
			assert_false(has(op, URN_OPF_RC) || has(op, URN_OPF_UD) || kinds);
			assert_int_equal(has(op, URN_OPF_PAYLOAD), op != URN_FLOW_RESET);
			continue;
		}
		assert_int_equal(has(op, URN_OPF_RC), op < 0x20 || op >= URN_RC_WRITE_LAST_TWO);
		assert_int_equal(has(op, URN_OPF_UC), op >= 0x20 && op < 0x60);
		assert_int_equal(has(op, URN_OPF_UD), op >= 0x60 && op < 0x80);
		if (has(op, URN_OPF_UC)) /* a request of RC with another top */
			assert_int_equal(urn_opcodes[op].flags ^ URN_OPF_UC,
					 urn_opcodes[op & 0x1f].flags ^ URN_OPF_RC);
		assert_int_equal(has(op, URN_OPF_REQUEST) + has(op, URN_OPF_RESPONSE), 1);
		assert_int_equal(kinds, op != URN_RC_ACK);
		/* doc/reference/wire.md "Lengths": first and middle packets are full, the last is not empty. */
		if (has(op, URN_OPF_PAYLOAD)) {
			int first = has(op, URN_OPF_FIRST), last = has(op, URN_OPF_LAST);

			assert_int_equal(has(op, URN_OPF_FULL), !last);
			assert_int_equal(has(op, URN_OPF_NONZERO), last && !first);
		} else {
			assert_false(has(op, URN_OPF_FULL) || has(op, URN_OPF_NONZERO));
		}
	}
}

static void
check_set(const uint8_t *ops, unsigned int n, enum urn_op_flag flag)
{
	unsigned int found = 0;

	for (unsigned int i = 0; i < n; i++)
		assert_true(has(ops[i], flag));
	/* UC has those of RC (test_flags_agree()). */
	for (unsigned int op = 0; op < 256; op++)
		found += has((uint8_t)op, flag) && !has((uint8_t)op, URN_OPF_UC);
	assert_int_equal(found, n);
}

/* Packets that take a receive, start and end messages, answer, carry data. */
static void
test_sets(void **state)
{
	static const uint8_t recv[] = {0x02, 0x03, 0x04, 0x05, 0x09, 0x0b,
				       0x16, 0x17, 0x64, 0x65, 0xc5};
	static const uint8_t resp[] = { 0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12, 0xc0, 0xc2, 0xc3 };
	static const uint8_t full[] = { 0x00, 0x01, 0x06, 0x07, 0x0d, 0x0e };
	static const uint8_t nonzero[] = {0x02, 0x03, 0x08, 0x09, 0x0f, 0x16, 0xc4, 0xc5};
	static const uint8_t atomic[] = { 0x12, 0x13, 0x14 };
	static const uint8_t write[] = {0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0xc4, 0xc5};
	static const uint8_t read[] = { 0x0c, 0x0d, 0x0e, 0x0f, 0x10 };
	static const uint8_t first[] = { 0x00, 0x04, 0x05, 0x06, 0x0a, 0x0b, 0x0c, 0x0d, 0x10,
					 0x12, 0x13, 0x14, 0x17, 0x64, 0x65 };
	static const uint8_t last[] = {0x02, 0x03, 0x04, 0x05, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0f,
				       0x10, 0x12, 0x13, 0x14, 0x16, 0x17, 0x64, 0x65, 0xc4, 0xc5};

	(void)state;
	check_set(recv, sizeof(recv), URN_OPF_RECV);
	check_set(resp, sizeof(resp), URN_OPF_RESPONSE);
	check_set(full, sizeof(full), URN_OPF_FULL);
	check_set(nonzero, sizeof(nonzero), URN_OPF_NONZERO);
	check_set(atomic, sizeof(atomic), URN_OPF_ATOMIC);
	check_set(write, sizeof(write), URN_OPF_WRITE);
	check_set(read, sizeof(read), URN_OPF_READ);
	check_set(first, sizeof(first), URN_OPF_FIRST);
	check_set(last, sizeof(last), URN_OPF_LAST);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_extensions),
		cmocka_unit_test(test_flags_agree),
		cmocka_unit_test(test_sets),
	};

	return cmocka_run_group_tests_name("opcode", tests, NULL, NULL);
}
