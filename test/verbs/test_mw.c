/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows, end to end through verbs (their bounds and keys: test/packet/test_window.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"

#include <errno.h>
#include <string.h>

enum { AT = 4096, LEN = 4000 };

/* End 0 writes through a key of end 1's memory. */
static void
write_through(struct rig *r, uint32_t rkey, size_t off, enum ibv_wc_status status)
{
	struct rig_end *me = &r->end[0];
	struct ibv_sge sge = {(uintptr_t)me->buf, 256, me->mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = (uintptr_t)r->end[1].buf + off, .rkey = rkey},
	};

	rig_fill(me->buf, 256, rkey);
	rig_send_on(me->qp, &wr);
	rig_expect(r, 0, status);
	if (status == IBV_WC_SUCCESS)
		assert_memory_equal(r->end[1].buf + off, me->buf, 256);
}

static struct ibv_mw_bind_info
at(struct rig *r, size_t off, uint64_t len)
{
	return (struct ibv_mw_bind_info){
		.mr = r->end[1].mr,
		.addr = (uintptr_t)r->end[1].buf + off,
		.length = len,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
}

/* ibv_bind_mw() gives a new key each time; the one before dies. */
static void
test_type_1(void **state)
{
	struct ibv_mw_bind bind = {.wr_id = 5, .send_flags = IBV_SEND_SIGNALED};
	struct rig r;

	(void)state;
	for (int what = 0; what < 3; what++) {
		struct ibv_mw *mw;
		uint32_t key;

		rig_open(&r, NULL, NULL);
		mw = ibv_alloc_mw(r.end[1].pd, IBV_MW_TYPE_1);
		assert_non_null(mw);
		bind.bind_info = at(&r, AT, LEN);
		assert_int_equal(ibv_bind_mw(r.end[1].qp, mw, &bind), 0);
		assert_int_equal(rig_expect(&r, 1, IBV_WC_SUCCESS).opcode, IBV_WC_BIND_MW);
		key = mw->rkey;
		write_through(&r, key, AT, IBV_WC_SUCCESS);
		assert_int_equal(ibv_dereg_mr(r.end[1].mr), EBUSY); /* a window is on it */
		if (what == 0) {
			write_through(&r, key, AT - 1, IBV_WC_REM_ACCESS_ERR);
		} else {
			bind.bind_info = at(&r, AT, what == 1 ? LEN : 0); /* again, or freed */
			assert_int_equal(ibv_bind_mw(r.end[1].qp, mw, &bind), 0);
			rig_expect(&r, 1, IBV_WC_SUCCESS);
			assert_int_not_equal(mw->rkey, key);
			if (what == 1)
				write_through(&r, mw->rkey, AT, IBV_WC_SUCCESS);
			write_through(&r, key, AT, IBV_WC_REM_ACCESS_ERR);
		}
		assert_int_equal(ibv_dealloc_mw(mw), 0);
		rig_close(&r);
	}
}

static void
bind_2(struct rig *r, struct ibv_mw *mw, uint32_t rkey)
{
	struct ibv_send_wr wr = {
		.wr_id = 6, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = rkey;
	wr.bind_mw.bind_info = at(r, AT, LEN);
	rig_send_on(r->end[1].qp, &wr);
	assert_int_equal(rig_expect(r, 1, IBV_WC_SUCCESS).opcode, IBV_WC_BIND_MW);
}

/* Bound, used, invalidated by the peer or by its owner, and bound anew under another key. */
static void
test_type_2(void **state)
{
	(void)state;
	for (int local = 0; local < 2; local++) {
		struct ibv_send_wr inv = {.wr_id = 7, .send_flags = IBV_SEND_SIGNALED};
		struct ibv_mw *mw;
		struct ibv_wc wc;
		uint32_t key;
		struct rig r;

		rig_open(&r, NULL, NULL);
		mw = ibv_alloc_mw(r.end[1].pd, IBV_MW_TYPE_2);
		assert_non_null(mw);
		key = ibv_inc_rkey(mw->rkey);
		bind_2(&r, mw, key);
		write_through(&r, key, AT + LEN - 256, IBV_WC_SUCCESS);
		inv.invalidate_rkey = key;
		inv.opcode = local ? IBV_WR_LOCAL_INV : IBV_WR_SEND_WITH_INV;
		if (!local)
			rig_recv(&r, 1, 0, 64, 8);
		rig_send_on(r.end[local].qp, &inv);
		if (!local) {
			wc = rig_expect(&r, 1, IBV_WC_SUCCESS);
			assert_int_equal(wc.wc_flags, IBV_WC_WITH_INV);
			assert_int_equal(wc.invalidated_rkey, key);
		}
		assert_int_equal(rig_expect(&r, local, IBV_WC_SUCCESS).wr_id, 7);
		bind_2(&r, mw, ibv_inc_rkey(key));
		write_through(&r, ibv_inc_rkey(key), AT, IBV_WC_SUCCESS);
		write_through(&r, key, AT, IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(ibv_dealloc_mw(mw), 0);
		rig_close(&r);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_type_1),
		cmocka_unit_test(test_type_2),
	};

	return cmocka_run_group_tests_name("mw", tests, NULL, NULL);
}
