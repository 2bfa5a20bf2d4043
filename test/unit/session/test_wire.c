/* SPDX-License-Identifier: BSD-3-Clause */
/* REPORT, MIGRATED and LEAVE as they travel (FO-13, FO-17). */
#include "session/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { CONN = 7, BYTE_VERSION = 4, BYTE_KIND = 5, BYTE_LENGTH = 7, BYTE_CONN = 11 };

static struct urn_sess_report
full(void)
{
	struct urn_sess_report r = {
		.epoch = 0x01020304,
		.flags = URN_SESS_R_READY | URN_SESS_R_LOG | URN_SESS_R_UNSURE,
		.paths = 0xfffe,
		.sent = 0x1112131415161718,
		.received = 0x2122232425262728,
		.sends = 0x3132333435363738,
		.atomics = 0x4142434445464748,
	};

	for (uint32_t i = 0; i < URN_SESS_ATOMICS; i++)
		r.old[i] = 0x5152535455565700 + i;
	return r;
}

/* Read a message from memory that ends with it, so that a sanitizer sees each byte too many. */
static enum urn_sess_verdict
get(const uint8_t *bytes, uint32_t length)
{
	const struct urn_sess_msg none = {0};
	uint8_t *copy = malloc(length ? length : 1);
	struct urn_sess_msg m;
	enum urn_sess_verdict v;

	assert_non_null(copy);
	memcpy(copy, bytes, length);
	memset(&m, 0xff, sizeof(m));
	v = urn_sess_wire_get(copy, length, CONN, &m);
	free(copy);
	if (v != URN_SESS_V_OK)
		assert_memory_equal(&m, &none, sizeof(m));
	return v;
}

/* Change one byte of a REPORT and read it. */
static enum urn_sess_verdict
forged(uint32_t at, uint8_t value)
{
	uint8_t bytes[URN_SESS_WIRE_MAX];
	struct urn_sess_report r = full();

	urn_sess_wire_report(bytes, CONN, &r);
	bytes[at] = value;
	return get(bytes, sizeof(bytes));
}

/* FO-13: each field of REPORT comes back, and lies where the header file says, at any alignment. */
static void
report(void **state)
{
	uint8_t area[URN_SESS_WIRE_MAX + 1], *bytes = area + 1;
	struct urn_sess_report r = full();
	struct urn_sess_msg m;

	(void)state;
	assert_int_equal(urn_sess_wire_report(bytes, CONN, &r), URN_SESS_WIRE_MAX);
	assert_memory_equal(bytes, "USES\1\1\0\270\0\0\0\7\1\2\3\4", URN_SESS_WIRE_HEAD);
	assert_memory_equal(bytes + 16, "\0\0\0\7\0\0\xff\xfe", 8);
	assert_int_equal(bytes[24], 0x11);
	assert_int_equal(bytes[32], 0x21);
	assert_int_equal(bytes[40], 0x31);
	assert_int_equal(bytes[48], 0x41);
	assert_int_equal(bytes[56], 0x51);
	assert_int_equal(bytes[183], URN_SESS_ATOMICS - 1);
	assert_int_equal(urn_sess_wire_get(bytes, URN_SESS_WIRE_MAX, CONN, &m), URN_SESS_V_OK);
	assert_int_equal(m.kind, URN_SESS_WIRE_REPORT);
	assert_int_equal(m.conn, CONN);
	assert_int_equal(m.epoch, r.epoch);
	assert_memory_equal(&m.told, &r, sizeof(r));
}

/* FO-17: MIGRATED is a head and nothing else. */
static void
migrated(void **state)
{
	uint8_t bytes[URN_SESS_WIRE_HEAD];
	const struct urn_sess_report none = {0};
	struct urn_sess_msg m;

	(void)state;
	assert_int_equal(urn_sess_wire_migrated(bytes, CONN, 9), URN_SESS_WIRE_HEAD);
	assert_memory_equal(bytes, "USES\1\2\0\20\0\0\0\7\0\0\0\11", URN_SESS_WIRE_HEAD);
	assert_int_equal(urn_sess_wire_get(bytes, sizeof(bytes), CONN, &m), URN_SESS_V_OK);
	assert_int_equal(m.kind, URN_SESS_WIRE_MIGRATED);
	assert_int_equal(m.epoch, 9);
	assert_memory_equal(&m.told, &none, sizeof(none));
}

/* LEAVE is a head and three ids; the head's epoch may be 0, for there may be no migration. */
static void
leave(void **state)
{
	uint8_t area[URN_SESS_WIRE_LEAVE_BYTES + 1], *bytes = area + 1;
	struct urn_sess_report told = {
		.received = 0x0102030405060708, .sent = 0x1112131415161718, .sends = 0x21};
	struct urn_sess_msg m;

	(void)state;
	assert_int_equal(urn_sess_wire_leave(bytes, CONN, 0, &told), URN_SESS_WIRE_LEAVE_BYTES);
	assert_memory_equal(bytes, "USES\1\3\0\50\0\0\0\7\0\0\0\0\1\2\3\4\5\6\7\10", 24);
	assert_int_equal(bytes[24], 0x11);
	assert_int_equal(bytes[39], 0x21);
	assert_int_equal(urn_sess_wire_get(bytes, URN_SESS_WIRE_LEAVE_BYTES, CONN, &m),
			 URN_SESS_V_OK);
	assert_int_equal(m.kind, URN_SESS_WIRE_LEAVE);
	assert_int_equal(m.epoch, 0);
	assert_memory_equal(&m.told, &told, sizeof(told));
	assert_int_equal(get(bytes, URN_SESS_WIRE_LEAVE_BYTES - 1), URN_SESS_V_LENGTH);
	bytes[BYTE_CONN]++;
	assert_int_equal(get(bytes, URN_SESS_WIRE_LEAVE_BYTES), URN_SESS_V_CONN);
}

/* Each length but the right one is refused, of both kinds, and nothing is read behind the end. */
static void
lengths(void **state)
{
	uint8_t bytes[2 * URN_SESS_WIRE_MAX] = {0};
	struct urn_sess_report r = full();

	(void)state;
	for (uint32_t n = 0; n < sizeof(bytes); n++) {
		enum urn_sess_verdict bad =
			n < URN_SESS_WIRE_HEAD ? URN_SESS_V_SHORT : URN_SESS_V_LENGTH;

		urn_sess_wire_report(bytes, CONN, &r);
		assert_int_equal(get(bytes, n), n == URN_SESS_WIRE_MAX ? URN_SESS_V_OK : bad);
		urn_sess_wire_migrated(bytes, CONN, 1);
		assert_int_equal(get(bytes, n), n == URN_SESS_WIRE_HEAD ? URN_SESS_V_OK : bad);
	}
	assert_int_equal(forged(BYTE_LENGTH, URN_SESS_WIRE_HEAD), URN_SESS_V_LENGTH);
}

/* Each reason of a drop has a verdict of its own. */
static void
forgeries(void **state)
{
	uint8_t bytes[URN_SESS_WIRE_HEAD];

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(forged(i, 0), URN_SESS_V_MAGIC);
	assert_int_equal(forged(BYTE_VERSION, 0), URN_SESS_V_VERSION);
	assert_int_equal(forged(BYTE_VERSION, 2), URN_SESS_V_VERSION);
	assert_int_equal(forged(BYTE_KIND, 0), URN_SESS_V_KIND);
	assert_int_equal(forged(BYTE_KIND, 5), URN_SESS_V_KIND);
	assert_int_equal(forged(BYTE_KIND, URN_SESS_WIRE_LEAVE), URN_SESS_V_LENGTH);
	assert_int_equal(forged(BYTE_KIND, URN_SESS_WIRE_MIGRATED), URN_SESS_V_LENGTH);
	assert_int_equal(forged(BYTE_CONN, CONN + 1), URN_SESS_V_CONN);
	urn_sess_wire_migrated(bytes, CONN, 0);
	assert_int_equal(get(bytes, sizeof(bytes)), URN_SESS_V_EPOCH);
	for (uint32_t i = 16; i < 19; i++)
		assert_int_equal(forged(i, 1), URN_SESS_V_FLAGS);
	assert_int_equal(forged(19, 0x10), URN_SESS_V_FLAGS);
	/* Path 8 is alive, and may be shunned; path 0 is not alive. */
	assert_int_equal(forged(20, 1), URN_SESS_V_OK);
	assert_int_equal(forged(21, 1), URN_SESS_V_PATHS);
}

/* Each verdict has a text, and a number that is none has "?". */
static void
texts(void **state)
{
	(void)state;
	for (unsigned int v = 0; v < URN_SESS_V_COUNT; v++)
		assert_true(strlen(urn_sess_wire_text(v)) > 1);
	assert_string_equal(urn_sess_wire_text(URN_SESS_V_COUNT), "?");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(report),    cmocka_unit_test(migrated), cmocka_unit_test(lengths),
		cmocka_unit_test(forgeries), cmocka_unit_test(texts),	 cmocka_unit_test(leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
