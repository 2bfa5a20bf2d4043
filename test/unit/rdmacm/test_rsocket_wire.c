/* SPDX-License-Identifier: BSD-3-Clause */
/* The data of rsockets' protocol, as rdma-core lays them out (RS-1). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dropin/rdmacm/rsocket/wire.h"

#include <errno.h>
#include <string.h>

/* Private data of rdma-core 44.0 on a little-endian host: rq 384, two entries, 64 KiB. */
static const uint8_t rdma_core[40] = {
	1, 2, 0x01, 0x80, 0, 0, 0,    0, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 0, 0, 1, 2,
	0, 0, 0,    2,	  0, 0, 0x7f, 0, 1,    2,    3,	   4,	 0,    0,    0x0a, 0x0b, 0, 1, 0, 0,
};

static void
test_conn(void **state)
{
	struct urn_rs_conn_wire w;
	struct urn_rs_conn c;

	(void)state;
	assert_int_equal(urn_rs_conn_read(rdma_core, sizeof(rdma_core), &c), 0);
	assert_int_equal(c.credits, 384);
	assert_false(c.big);
	assert_int_equal(c.iomaps, 0);
	assert_true(c.targets.addr == 0x123456789abcdef0);
	assert_int_equal(c.targets.key, 0x102);
	assert_int_equal(c.targets.length, 2);
	assert_true(c.buffer.addr == 0x7f0001020304);
	assert_int_equal(c.buffer.key, 0x0a0b);
	assert_int_equal(c.buffer.length, 65536);
	urn_rs_conn_write(&c, &w);
	assert_memory_equal(&w, rdma_core, sizeof(w));
}

/* Private data that can't be a peer's are refused. */
static void
test_conn_bad(void **state)
{
	static const struct {
		unsigned int at;
		uint8_t value;
	} bad[] = {{0, 0}, {0, 2}, {23, 0}, {23, 1}, {20, 1}};
	struct urn_rs_conn c;
	uint8_t w[40];

	(void)state;
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memcpy(w, rdma_core, sizeof(w));
		w[bad[i].at] = bad[i].value;
		assert_int_equal(urn_rs_conn_read(w, sizeof(w), &c), EPROTO);
	}
	memcpy(w, rdma_core, sizeof(w));
	w[2] = w[3] = 0; /* no credit */
	assert_int_equal(urn_rs_conn_read(w, sizeof(w), &c), EPROTO);
	assert_int_equal(urn_rs_conn_read(rdma_core, 39, &c), EPROTO);
	assert_int_equal(urn_rs_conn_read(NULL, 0, &c), EPROTO);
}

static void
test_messages(void **state)
{
	(void)state;
	assert_int_equal(urn_rs_msg(URN_RS_DATA, 1000), 1000);
	assert_int_equal(urn_rs_msg(URN_RS_SGL, 0x1234), 0x80001234);
	assert_int_equal(urn_rs_msg(URN_RS_IOMAP, 3), 0xc0000003);
	assert_int_equal(urn_rs_msg(URN_RS_CTRL, URN_RS_SHUTDOWN), 0xe0000002);
	assert_int_equal(urn_rs_msg_op(0xe0000001), URN_RS_CTRL);
	assert_int_equal(urn_rs_msg_arg(0xffffffff), 0x1fffffff);
}

/* 8 bits tell numbers to 128 exactly, and larger ones in steps of 256. */
static void
test_iomaps(void **state)
{
	(void)state;
	assert_int_equal(urn_rs_iomaps_round(0), 0);
	assert_int_equal(urn_rs_iomaps_round(1), 1);
	assert_int_equal(urn_rs_iomaps_round(128), 128);
	assert_int_equal(urn_rs_iomaps_round(200), 128);
	assert_int_equal(urn_rs_iomaps_round(256), 256);
	assert_int_equal(urn_rs_iomaps_round(1000), 768);
	assert_int_equal(urn_rs_iomaps_round(UINT32_MAX), URN_RS_IOMAPS_MOST);
}

static void
test_sge(void **state)
{
	struct urn_rs_sge s, got;

	(void)state;
	urn_rs_sge_write(&s, 0x0102030405060708, 0x11223344, 0x100, false);
	got = urn_rs_sge_read(&s);
	assert_true(got.addr == 0x0102030405060708);
	assert_int_equal(got.key, 0x11223344);
	assert_int_equal(got.length, 0x100);
	urn_rs_sge_write(&s, 0x0102030405060708, 0x11223344, 0x100, true);
	assert_true(s.addr == 0x0807060504030201);
	assert_int_equal(s.key, 0x44332211);
	assert_int_equal(s.length, 0x10000);
}

/* A map entry gives no byte outside of it, whatever the peer wrote there. */
static void
test_map(void **state)
{
	struct urn_rs_map m[3] = {
		{.offset = 0, .sge = {0x1000, 7, 0}}, /* unmapped */
		{.offset = 100, .sge = {0x2000, 8, 50}},
		{.offset = UINT64_MAX - 9, .sge = {UINT64_MAX, 9, UINT32_MAX}},
	};
	struct urn_rs_sge s;

	(void)state;
	assert_false(urn_rs_map_find(m, 3, 0, &s));
	assert_false(urn_rs_map_find(m, 3, 99, &s));
	assert_false(urn_rs_map_find(m, 3, 150, &s));
	assert_false(urn_rs_map_find(m, 1, 100, &s));
	assert_true(urn_rs_map_find(m, 3, 149, &s));
	assert_true(s.addr == 0x2031);
	assert_int_equal(s.key, 8);
	assert_int_equal(s.length, 1);
	assert_true(urn_rs_map_find(m, 3, UINT64_MAX, &s));
	assert_int_equal(s.length, UINT32_MAX - 9);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_conn),	 cmocka_unit_test(test_conn_bad),
		cmocka_unit_test(test_messages), cmocka_unit_test(test_iomaps),
		cmocka_unit_test(test_sge),	 cmocka_unit_test(test_map),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
