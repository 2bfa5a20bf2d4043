/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes on the peer's cache lines between two nodes (AW-3, AW-7, AW-8;
 * doc/inside/aligned-writes.md). RIG_REMOTE: over a dataplane's socket.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <urnic/align.h>

enum { SIZE = 32768, LINE = 256, CANARY = 512, TARGET = 4096, ROOM = 3 * SIZE };

/* Wait until node 0 knows the lines of node 1. */
static void
learn(struct rig *r)
{
	uint32_t wr = 1;

	/* Traffic starts plain, and changes over when the answer comes. */
	for (uint64_t before = 0; !before; before = rig_counter(r, 0, URN_C_ALIGNED)) {
		rig_post(r, 0, IBV_WR_RDMA_WRITE, 0, SIZE, TARGET + 1, wr++);
		rig_expect(r, 0, IBV_WC_SUCCESS);
	}
}

/* The stores of one WRITE of SIZE bytes to this offset. */
static void
stores_of(struct rig *r, uint32_t off, struct urn_stores *d)
{
	struct urn_stores before, after;

	assert_int_equal(urn_mr_stores(r->end[1].mr, &before), 0);
	rig_post(r, 0, IBV_WR_RDMA_WRITE, 0, SIZE, TARGET + off, off);
	assert_int_equal(rig_expect(r, 0, IBV_WC_SUCCESS).wr_id, off);
	assert_int_equal(urn_mr_stores(r->end[1].mr, &after), 0);
	for (int i = 0; i < 3; i++) {
		d->full[i] = after.full[i] - before.full[i];
		d->partial[i] = after.partial[i] - before.partial[i];
	}
}

/*
 * AW-7: 32 KiB at MTU 1024 onto lines of 256 bytes: 64 partial and 96 full stores for every offset
 * off the line, on the peer's lines 2 and 127; on the line none and 128 either way.
 */
static void
table(void **state)
{
	struct urn_stores d;
	struct rig r;

	(void)state;
	rig_open(&r, &(struct rig_config){.cache_line = LINE, .count_stores = true}, NULL);
	for (uint32_t off = 0; off < LINE; off++) {
		stores_of(&r, off, &d);
		assert_int_equal(d.partial[2], off ? 64 : 0);
		assert_int_equal(d.full[2], off ? 96 : 128);
	}
	assert_int_equal(rig_counter(&r, 0, URN_C_ALIGNED), 0);
	assert_int_equal(urn_qp_align(r.end[0].qp, URN_LINE_PEER), 0);
	learn(&r);
	for (uint32_t off = 0; off < LINE; off++) {
		stores_of(&r, off, &d);
		assert_int_equal(d.partial[2], off ? 2 : 0);
		assert_int_equal(d.full[2], off ? 127 : 128);
	}
	rig_close(&r);
}

/* The calls refuse lines and types that there are not; an adapter that does not count says so. */
static void
refuses(void **state)
{
	struct urn_stores s;
	struct rig r;

	(void)state;
	rig_open(&r, NULL, NULL);
	assert_int_equal(urn_qp_align(r.end[0].qp, 100), EINVAL);
	assert_int_equal(urn_qp_align(r.end[0].qp, 128), 0);
	assert_int_equal(urn_mr_stores(r.end[0].mr, &s), EOPNOTSUPP);
	assert_non_null(strstr(urn_attach_error(), "count_stores"));
	rig_close(&r);
	rig_open(&r, NULL, &(struct rig_qp){.type = IBV_QPT_UD});
	assert_int_equal(urn_qp_align(r.end[0].qp, 64), EINVAL);
	rig_close(&r);
}

/* One WRITE of any length to any offset: its bytes, and no others, and one completion at each end.
 */
static void
write_one(struct rig *r, uint8_t *want, uint64_t *rng, uint32_t n)
{
	uint32_t off = TARGET - 300 + (uint32_t)(rig_rand(rng) % 600);
	uint32_t len = (uint32_t)(rig_rand(rng) % (n % 2 ? 4096 : SIZE));
	uint32_t src = (uint32_t)(rig_rand(rng) % 1000);
	uint8_t *dst = r->end[1].buf;
	bool imm = rig_rand(rng) % 2;
	struct ibv_wc wc;

	rig_fill(r->end[0].buf + src, len, n);
	memset(dst, 0xa5, ROOM);
	memset(want, 0xa5, ROOM);
	memcpy(want + off, r->end[0].buf + src, len);
	if (imm)
		rig_recv(r, 1, ROOM, 0, n);
	rig_post(r, 0, imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE, src, len, off, n);
	if (imm) {
		wc = rig_expect(r, 1, IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, n);
		assert_int_equal(be32toh(wc.imm_data), 0x11223344);
		/* All bytes are there when the immediate is. */
		assert_memory_equal(dst, want, ROOM);
	}
	assert_int_equal(rig_expect(r, 0, IBV_WC_SUCCESS).wr_id, n);
	assert_memory_equal(dst, want, ROOM);
}

/* AW-8, over wires good and bad, memory fast and slow, peers that know urnic's features and plain
 * ones. */
static void
bytes(void **state)
{
	static const struct rig_config cfg[] = {
		{0},
		{.loopback = true},
		{.foreign = true},
		{.delay_seed = 5},
		{.wire_seed = 3, .lose = 20, .twice = 20, .late = 50},
		{.wire_seed = 4, .lose = 20, .twice = 20, .late = 50, .no_features = 3},
		{.wire_seed = 5, .lose = 20, .delay_seed = 9, .window = 16},
	};
	static const uint32_t lines[] = {64, 128, 256, URN_LINE_PEER, URN_LINE_OFF};
	uint8_t *want = malloc(ROOM);
	uint64_t rng = 77;

	(void)state;
	for (size_t i = 0; i < sizeof(cfg) / sizeof(cfg[0]); i++) {
		struct rig r;

		rig_open(&r, &cfg[i], &(struct rig_qp){.mtu = i % 2 ? IBV_MTU_256 : IBV_MTU_1024});
		/* Writes in one message begin when node 1 has answered what it knows; a bad wire
		 * may lose that answer. */
		for (uint32_t n = 0;
		     n < 60 || (!cfg[i].no_features && !rig_counter(&r, 0, URN_C_ALIGNED_ONE));
		     n++) {
			assert_int_equal(urn_qp_align(r.end[0].qp, lines[n % 5]), 0);
			write_one(&r, want, &rng, n);
		}
		assert_true(rig_counter(&r, 0, URN_C_ALIGNED) > 10);
		if (cfg[i].no_features)
			assert_int_equal(rig_counter(&r, 0, URN_C_ALIGNED_ONE), 0);
		rig_quiet(&r, 0);
		rig_close(&r);
	}
	free(want);
}

/* A range that the peer does not give is refused, in the bulk or in the head, and told once. */
static void
ends(void **state)
{
	(void)state;
	for (int head = 0; head < 2; head++) {
		struct ibv_mr *mr;
		struct rig r;

		rig_open(&r, NULL, NULL);
		assert_int_equal(urn_qp_align(r.end[0].qp, 256), 0);
		/* The first or the last bytes are outside. */
		mr = ibv_reg_mr(r.end[1].pd, r.end[1].buf + TARGET + (head ? 100 : 0), SIZE,
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
		assert_non_null(mr);

		struct ibv_sge sge = {(uintptr_t)r.end[0].buf, SIZE - 50 + 100, r.end[0].mr->lkey};
		struct ibv_send_wr wr = {
			.wr_id = 7,
			.opcode = IBV_WR_RDMA_WRITE,
			.sg_list = &sge,
			.num_sge = 1,
			.wr.rdma = {(uintptr_t)r.end[1].buf + TARGET + (head ? 1 : 77), mr->rkey}};

		rig_send_on(r.end[0].qp, &wr); /* unsignaled: an error completes all the same */
		assert_int_equal(rig_expect(&r, 0, IBV_WC_REM_ACCESS_ERR).wr_id, 7);
		rig_quiet(&r, 0);
		assert_int_equal(ibv_dereg_mr(mr), 0);
		rig_close(&r);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table),
		cmocka_unit_test(refuses),
		cmocka_unit_test(bytes),
		cmocka_unit_test(ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
