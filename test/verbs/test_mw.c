/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows, end to end through verbs (their bounds and keys: test/packet/test_window.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"

#include "control/objects.h"
#include "engine/engine.h"

#include <errno.h>
#include <stdlib.h>
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

/* ibv_bind_mw() gives a new key each time; the key before becomes invalid. */
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
			bind.bind_info = at(&r, AT, what == 1 ? LEN : 0); /* bind again, or unbind */
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

/*
 * A type 2 window dies with its QP (IBTA 10.6.7), when that is reset or destroyed: then its
 * region can go, and another QP can bind the window. A window taken away before does no harm.
 */
static void
test_dies_with_qp(void **state)
{
	(void)state;
	for (int destroy = 0; destroy < 2; destroy++) {
		struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
		struct rig_qp o = {0};
		struct ibv_mw *mw[3];
		struct ibv_qp *qp;
		struct rig r;

		rig_open(&r, NULL, NULL);
		for (int i = 0; i < 3; i++) {
			mw[i] = ibv_alloc_mw(r.end[1].pd, IBV_MW_TYPE_2);
			assert_non_null(mw[i]);
			bind_2(&r, mw[i], ibv_inc_rkey(mw[i]->rkey));
		}
		assert_int_equal(ibv_dealloc_mw(mw[1]), 0);
		assert_int_equal(ibv_dereg_mr(r.end[1].mr), EBUSY);
		qp = r.end[1].qp;
		if (destroy)
			assert_int_equal(ibv_destroy_qp(qp), 0);
		else
			assert_int_equal(ibv_modify_qp(qp, &reset, IBV_QP_STATE), 0);
		r.end[1].qp = rig_make_qp(&r, 1, &o);
		if (!destroy)
			assert_int_equal(ibv_destroy_qp(qp), 0);
		rig_connect(&r, 1, r.end[1].qp, 1, r.end[0].qp->qp_num, r.end[0].psn, &o);
		bind_2(&r, mw[0], ibv_inc_rkey(mw[0]->rkey));
		assert_int_equal(ibv_dereg_mr(r.end[1].mr), EBUSY);
		assert_int_equal(ibv_dealloc_mw(mw[0]), 0);
		assert_int_equal(ibv_dereg_mr(r.end[1].mr), 0);
		r.end[1].mr = ibv_reg_mr(r.end[1].pd, r.end[1].buf, RIG_BUF, IBV_ACCESS_LOCAL_WRITE);
		assert_non_null(r.end[1].mr);
		assert_int_equal(ibv_dealloc_mw(mw[2]), 0);
		rig_close(&r);
	}
}

/* Memory operations that the engines of a node have in flight. */
static unsigned int
under_way(const struct rig *r, unsigned int node)
{
	unsigned int n = 0;

	for (unsigned int e = 0; e < URN_ABI_MAX_ENGINES; e++)
		if (r->dp->adapter[node]->shard[e])
			n += urn_memx_holds(r->dp->adapter[node]->shard[e]->memx, NULL);
	return n;
}

/* Bind by a QP of node 1 whose completions go to cq, and wait for the end of it. */
static void
bind_by(struct rig *r, struct ibv_qp *binder, struct ibv_cq *cq, struct ibv_mw *mw,
	struct ibv_mw_bind *bind)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_bind_mw(binder, mw, bind), 0);
	while (ibv_poll_cq(cq, 1, &wc) == 0)
		rig_turn(r);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

/* Node 0 writes 256 bytes through a window. returns: true when they were seen under way in node 1's
 * memory */
static bool
write_starts(struct rig *r, uint32_t rkey)
{
	struct ibv_sge sge = {(uintptr_t)r->end[0].buf, 256, r->end[0].mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1};

	wr.wr.rdma.remote_addr = (uintptr_t)r->end[1].buf + AT;
	wr.wr.rdma.rkey = rkey;
	rig_send_on(r->end[0].qp, &wr);
	for (int i = 0; i < 200; i++) {
		rig_turn(r);
		if (under_way(r, 1) > 0)
			return true;
	}
	return false;
}

/*
 * Data let in by a window has landed when the window is freed, or reported unbound, however
 * late memory is, and on whichever engine the data came in.
 */
static void
test_late_write(void **state)
{
	unsigned int late = 0;
	bool foreign = getenv("URNIC_TEST_FOREIGN") != NULL;

	(void)state;
	for (uint64_t seed = 1; seed <= 24; seed++) {
		struct ibv_mw_bind bind = {.wr_id = 5, .send_flags = IBV_SEND_SIGNALED};
		bool unbind = seed & 1, seen;
		struct rig_qp o = {0};
		struct ibv_qp *binder;
		struct ibv_cq *cq;
		struct ibv_mw *mw;
		struct rig r;

		rig_open(&r, &(struct rig_config){.engines = 4, .delay_seed = seed}, NULL);
		if (r.cfg.remote) { /* a thread of its own turns the engines */
			rig_close(&r);
			return;
		}
		mw = ibv_alloc_mw(r.end[1].pd, IBV_MW_TYPE_1);
		cq = ibv_create_cq(r.end[1].ctx, 16, NULL, NULL, 1);
		assert_true(mw && cq);
		o.send_cq = o.recv_cq = cq;
		binder = rig_make_qp(&r, 1, &o); /* on the node's other engine */
		rig_connect(&r, 1, binder, 1, r.end[0].qp->qp_num, 1, &o);
		bind.bind_info = at(&r, AT, LEN);
		bind_by(&r, binder, cq, mw, &bind);
		rig_fill(r.end[0].buf, 256, (uint32_t)seed);
		memset(r.end[1].buf + AT, 0, 256);
		seen = write_starts(&r, mw->rkey);
		if (unbind) {
			bind.bind_info.length = 0;
			bind_by(&r, binder, cq, mw, &bind);
		}
		assert_int_equal(ibv_dealloc_mw(mw), 0);
		if (seen) {
			assert_int_equal(under_way(&r, 1), 0);
			assert_memory_equal(r.end[1].buf + AT, r.end[0].buf, 256);
		}
		late += seen;
		assert_int_equal(ibv_destroy_qp(binder), 0);
		assert_int_equal(ibv_destroy_cq(cq), 0);
		rig_close(&r);
	}
	if (!foreign) /* with foreign memory the worker may be as fast as it likes */
		assert_in_range(late, 6, UINT32_MAX); /* otherwise this test would show nothing */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_type_1),
		cmocka_unit_test(test_type_2),
		cmocka_unit_test(test_dies_with_qp),
		cmocka_unit_test(test_late_write),
	};

	return cmocka_run_group_tests_name("mw", tests, NULL, NULL);
}
