/* SPDX-License-Identifier: BSD-3-Clause */
/* RC, end to end through verbs: every operation, sizes around the MTU, both families. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"

#include <string.h>

static const uint32_t sizes[] = {0, 1, 3, 4, 61, 64, 255, 256, 1023, 1024, 1025, 2048, 4097, 65536, 300001};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static void
send_all(struct rig *r)
{
	for (unsigned int i = 0; i < SIZES; i++) {
		uint32_t n = sizes[i];
		struct ibv_wc wc;

		rig_fill(r->end[0].buf, n, i + 1);
		memset(r->end[1].buf, 0xee, n + 8);
		rig_recv(r, 1, 0, n + 4, 70 + i);
		rig_post(r, 0, IBV_WR_SEND_WITH_IMM, 0, n, 0, 7 + i);
		wc = rig_expect(r, 1, IBV_WC_SUCCESS);
		assert_int_equal(wc.opcode, IBV_WC_RECV);
		assert_int_equal(wc.wr_id, 70 + i);
		assert_int_equal(wc.byte_len, n);
		assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
		assert_int_equal(be32toh(wc.imm_data), 0x11223344);
		wc = rig_expect(r, 0, IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, 7 + i);
		assert_int_equal(wc.opcode, IBV_WC_SEND);
		assert_memory_equal(r->end[0].buf, r->end[1].buf, n);
		assert_int_equal(r->end[1].buf[n], 0xee);
	}
}

static void
write_read_all(struct rig *r)
{
	for (unsigned int i = 0; i < SIZES; i++) {
		uint32_t n = sizes[i];

		rig_fill(r->end[0].buf, n, i + 100);
		memset(r->end[1].buf, 0xee, n + 32);
		rig_post(r, 0, IBV_WR_RDMA_WRITE, 0, n, 5, 1);
		rig_expect(r, 0, IBV_WC_SUCCESS);
		assert_memory_equal(r->end[0].buf, r->end[1].buf + 5, n);
		assert_int_equal(r->end[1].buf[4], 0xee);
		assert_int_equal(r->end[1].buf[5 + n], 0xee);
		memset(r->end[0].buf + 500000, 0xdd, n + 1);
		rig_post(r, 0, IBV_WR_RDMA_READ, 500000, n, 5, 2);

		struct ibv_wc wc = rig_expect(r, 0, IBV_WC_SUCCESS);

		assert_int_equal(wc.opcode, IBV_WC_RDMA_READ);
		assert_int_equal(wc.byte_len, n);
		assert_memory_equal(r->end[0].buf + 500000, r->end[1].buf + 5, n);
		assert_int_equal(r->end[0].buf[500000 + n], 0xdd);
	}
}

static void
atomics(struct rig *r)
{
	uint64_t *remote = (uint64_t *)(r->end[1].buf + 64), *local = (uint64_t *)r->end[0].buf;

	*remote = 1;
	rig_post(r, 0, IBV_WR_ATOMIC_CMP_AND_SWP, 0, 8, 64, 1);
	rig_expect(r, 0, IBV_WC_SUCCESS);
	assert_int_equal(*local, 1);
	assert_int_equal(*remote, 42);
	rig_post(r, 0, IBV_WR_ATOMIC_CMP_AND_SWP, 0, 8, 64, 1);
	rig_expect(r, 0, IBV_WC_SUCCESS);
	assert_int_equal(*local, 42);
	assert_int_equal(*remote, 42);
	rig_post(r, 0, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, 64, 1);
	rig_expect(r, 0, IBV_WC_SUCCESS);
	assert_int_equal(*local, 42);
	assert_int_equal(*remote, 43);
}

static void
run_all(const struct rig_config *cfg, enum ibv_mtu mtu)
{
	struct rig r;
	struct rig_qp qp = {.mtu = mtu};

	rig_open(&r, cfg, &qp);
	send_all(&r);
	write_read_all(&r);
	atomics(&r);
	rig_quiet(&r, 0);
	rig_quiet(&r, 1);
	rig_close(&r);
}

static void
test_mtus(void **state)
{
	(void)state;
	for (enum ibv_mtu mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; mtu++)
		run_all(NULL, mtu);
}

static void
test_ipv6(void **state)
{
	struct rig_config cfg = {.ipv6 = true};

	(void)state;
	run_all(&cfg, IBV_MTU_4096);
}

static void
test_one_engine(void **state)
{
	struct rig_config cfg = {.engines = 1};

	(void)state;
	run_all(&cfg, IBV_MTU_4096);
}

static void
test_four_engines(void **state)
{
	struct rig_config cfg = {.engines = 4};

	(void)state;
	run_all(&cfg, IBV_MTU_4096);
}

static void
test_loopback(void **state)
{
	struct rig_config cfg = {.loopback = true};

	(void)state;
	run_all(&cfg, IBV_MTU_4096);
}

/* Architecture rule 1: the same results when memory answers late. */
static void
test_memory_late(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct rig_config cfg = {.delay_seed = seed};

		run_all(&cfg, IBV_MTU_1024);
	}
}

/* Requests and acknowledgements have the traffic class and the hop limit of the queue pair's
 * attributes on the wire. */
static void
test_traffic_class(void **state)
{
	static const struct rig_qp qp[] = {{.hop_limit = 3, .traffic_class = 0xb8},
					   {.hop_limit = 255, .traffic_class = 0x44}};

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		/* Link requests have their own: there are none. */
		struct rig_config cfg = {.wire_seed = 1, .ipv6 = i / 2, .no_learn = 3};
		unsigned int want = qp[i % 2].traffic_class << 8 | qp[i % 2].hop_limit;
		struct rig r;

		rig_open(&r, &cfg, &qp[i % 2]);
		rig_post(&r, 0, IBV_WR_RDMA_WRITE, 0, 64, 0, 1);
		rig_expect(&r, 0, IBV_WC_SUCCESS);
		for (int node = 0; node < 2; node++)
			assert_int_equal(r.way[node] & ~(3u << 8), want); /* ECN aside */
		rig_close(&r);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mtus),	      cmocka_unit_test(test_ipv6),
		cmocka_unit_test(test_one_engine),    cmocka_unit_test(test_four_engines),
		cmocka_unit_test(test_loopback),      cmocka_unit_test(test_memory_late),
		cmocka_unit_test(test_traffic_class),
	};

	return cmocka_run_group_tests_name("rc", tests, NULL, NULL);
}
