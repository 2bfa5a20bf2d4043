/* SPDX-License-Identifier: BSD-3-Clause */
/* The log of atomics in the memory of the program that has them carried out (lib/abi/queue.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"
#include "verbs/adapter/adapter.h"

enum { WORD = 64 }; /* offset of the word that atomics change */

/* Add 1 to the word of end 1, n times, with a READ behind each: READs have no entries. */
static void
add(struct rig *r, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		rig_post(r, 0, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, WORD, 1);
		rig_expect(r, 0, IBV_WC_SUCCESS);
		rig_post(r, 0, IBV_WR_RDMA_READ, 0, 8, WORD, 2);
		rig_expect(r, 0, IBV_WC_SUCCESS);
	}
}

/* The log has `entries`, and those of the newest atomics up to number `last`. */
static void
check(struct rig *r, uint32_t entries, uint64_t last, uint64_t kept)
{
	uint32_t n;
	const struct urn_abi_atomic *log = urn_adapter_atomics(r->end[1].qp, &n);

	assert_non_null(log);
	assert_int_equal(n, entries);
	for (uint64_t i = 0; i < kept; i++) {
		const struct urn_abi_atomic *a = &log[(last - i) % entries];

		assert_int_equal(a->number, last - i);
		assert_int_equal(a->addr, (uintptr_t)r->end[1].buf + WORD);
		assert_int_equal(a->old, last - i - 1);
		assert_int_equal(a->new, last - i);
		assert_int_equal(atomic_load(&a->state), URN_ATOMIC_DONE);
	}
}

static void
test_numbers(void **state)
{
	struct rig_qp qp = {.dest_rd_atomic = 4};
	struct rig r;

	(void)state;
	rig_open(&r, NULL, &qp);
	*(uint64_t *)(r.end[1].buf + WORD) = 0;
	check(&r, 4, 0, 0);
	add(&r, 3);
	check(&r, 4, 3, 3);
	add(&r, 20);
	check(&r, 4, 23, 4);
	rig_close(&r);
}

/* A change of the number of records, while the queue is drained, keeps the newest entries. */
static void
test_drained(void **state)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .max_dest_rd_atomic = 16};
	struct rig_qp qp = {.dest_rd_atomic = 4};
	struct rig r;

	(void)state;
	rig_open(&r, NULL, &qp);
	*(uint64_t *)(r.end[1].buf + WORD) = 0;
	add(&r, 7);
	rig_to(r.end[1].qp, IBV_QPS_SQD);
	rig_turns(&r, 100);
	assert_int_equal(
		ibv_modify_qp(r.end[1].qp, &attr, IBV_QP_STATE | IBV_QP_MAX_DEST_RD_ATOMIC), 0);
	check(&r, 16, 7, 4);
	rig_to(r.end[1].qp, IBV_QPS_RTS);
	add(&r, 2);
	check(&r, 16, 9, 6);
	rig_to(r.end[1].qp, IBV_QPS_SQD);
	rig_turns(&r, 100);
	attr.max_dest_rd_atomic = 2;
	assert_int_equal(
		ibv_modify_qp(r.end[1].qp, &attr, IBV_QP_STATE | IBV_QP_MAX_DEST_RD_ATOMIC), 0);
	check(&r, 2, 9, 2);
	rig_close(&r);
}

/* The header is in memory of the program, and its contents are checked. */
static void
test_header(void **state)
{
	struct urn_adapter_qp *qp;
	struct urn_dev *dev;
	struct rig r;
	uint32_t n;

	(void)state;
	rig_open(&r, NULL, &(struct rig_qp){.dest_rd_atomic = 4});
	qp = urn_qp(r.end[1].qp);
	dev = urn_ctx_dev(r.end[1].ctx);
	assert_non_null(urn_adapter_atomics(r.end[1].qp, &n));
	for (uint32_t bad = 0; bad < 6; bad++) {
		static const uint32_t entries[] = {0, 3, 2 * URN_ABI_MAX_RD_ATOMIC, 4, 4, 4};
		const uint64_t off[] = {0, 0, 0, dev->info.area_size - 152, 4, UINT64_MAX - 7};

		atomic_store(&qp->rq.hdr->atomics, entries[bad]);
		qp->rq.hdr->atomics_off = off[bad];
		assert_null(urn_adapter_atomics(r.end[1].qp, &n));
		assert_int_equal(n, 0);
	}
	qp->rq.hdr->atomics_off = dev->info.area_size - 160;
	assert_non_null(urn_adapter_atomics(r.end[1].qp, &n));
	/* A dataplane of before has another layout. */
	dev->info.features &= ~(uint32_t)URN_ABI_FEATURE_ATOMICS;
	assert_null(urn_adapter_atomics(r.end[1].qp, &n));
	rig_close(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_drained),
		cmocka_unit_test(test_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
