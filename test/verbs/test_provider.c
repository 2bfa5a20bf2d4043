/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A provider above the adapter's, on two nodes (HOUSE seam 5): its objects own the adapters'
 * objects, and programs move data through it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"

#include "../unit/lib/count.h"

#include <string.h>

/* The rig, whose ends are replaced by ends that stand above the adapters. */
struct over {
	struct rig r;
	struct rig_end was[2];
	struct ibv_comp_channel *ch; /* of end 1's queue */
};

static void
replace(struct over *o, int e)
{
	struct rig_end *end = &o->r.end[e];

	o->was[e] = *end;
	end->ctx = urn_verbs_open(&count_ops, rig_attach(&o->r, (unsigned int)e));
	assert_non_null(end->ctx);
	end->pd = ibv_alloc_pd(end->ctx);
	assert_non_null(end->pd);
	if (e == 1)
		o->ch = ibv_create_comp_channel(end->ctx);
	end->cq = ibv_create_cq(end->ctx, 64, NULL, e == 1 ? o->ch : NULL, 0);
	end->mr = ibv_reg_mr(end->pd, end->buf, RIG_BUF,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	assert_true(end->cq && end->mr);
	end->qp = rig_make_qp(&o->r, e, &(struct rig_qp){0});
}

static int
setup(void **state)
{
	static struct over o;
	struct rig *r = &o.r;

	memset(&o, 0, sizeof(o));
	memset(&count, 0, sizeof(count));
	rig_open(r, NULL, NULL);
	for (int e = 0; e < 2; e++)
		replace(&o, e);
	for (int e = 0; e < 2; e++)
		rig_connect(r, e, r->end[e].qp, r->end[e].psn, r->end[!e].qp->qp_num,
			    r->end[!e].psn, &(struct rig_qp){0});
	*state = &o;
	return 0;
}

static int
teardown(void **state)
{
	struct over *o = *state;

	for (int e = 0; e < 2; e++) {
		struct rig_end *end = &o->r.end[e];

		assert_int_equal(ibv_destroy_qp(end->qp), 0);
		assert_int_equal(ibv_destroy_cq(end->cq), 0);
		if (e == 1)
			assert_int_equal(ibv_destroy_comp_channel(o->ch), 0);
		assert_int_equal(ibv_dereg_mr(end->mr), 0);
		assert_int_equal(ibv_dealloc_pd(end->pd), 0);
		assert_int_equal(ibv_close_device(end->ctx), 0);
		*end = o->was[e];
	}
	assert_int_equal(count.calls[COUNT(create_qp)], 2);
	assert_int_equal(count.calls[COUNT(destroy_qp)], 2);
	assert_int_equal(count.calls[COUNT(destroy_cq)], 2);
	assert_int_equal(count.calls[COUNT(dereg_mr)], 2);
	assert_int_equal(count.calls[COUNT(dealloc_pd)], 2);
	assert_int_equal(count.calls[COUNT(close)], 2);
	rig_close(&o->r);
	return 0;
}

static void
same_bytes(struct rig *r, int a, int b, size_t off_a, size_t off_b, size_t len)
{
	assert_memory_equal(r->end[a].buf + off_a, r->end[b].buf + off_b, len);
}

static void
bytes_go_through(void **state)
{
	struct over *o = *state;
	struct rig *r = &o->r;
	struct ibv_wc wc;

	assert_int_equal(count.calls[COUNT(open)], 2);
	assert_int_equal(count.calls[COUNT(modify_qp)], 6);
	rig_fill(r->end[0].buf, RIG_BUF, 1);
	rig_fill(r->end[1].buf, RIG_BUF, 2);

	rig_recv(r, 1, 0, 5000, 11);
	rig_post(r, 0, IBV_WR_SEND, 100, 5000, 0, 12);
	assert_int_equal(rig_expect(r, 0, IBV_WC_SUCCESS).wr_id, 12);
	wc = rig_expect(r, 1, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 11);
	assert_int_equal(wc.qp_num, r->end[1].qp->qp_num);
	same_bytes(r, 0, 1, 100, 0, 5000);

	rig_post(r, 1, IBV_WR_RDMA_WRITE, 8192, 100000, 200000, 13);
	assert_int_equal(rig_expect(r, 1, IBV_WC_SUCCESS).wr_id, 13);
	same_bytes(r, 1, 0, 8192, 200000, 100000);

	rig_post(r, 0, IBV_WR_RDMA_READ, 400000, 70000, 500000, 14);
	assert_int_equal(rig_expect(r, 0, IBV_WC_SUCCESS).wr_id, 14);
	same_bytes(r, 0, 1, 400000, 500000, 70000);

	assert_int_equal(count.calls[COUNT(post_send)], 3);
	assert_int_equal(count.calls[COUNT(post_recv)], 1);
	assert_true(count.calls[COUNT(poll_cq)] >= 4);
}

/* A completion event of the adapter's queue comes out as one of the queue above. */
static void
events_go_through(void **state)
{
	struct over *o = *state;
	struct rig *r = &o->r;
	struct ibv_cq *cq;
	void *arg;

	assert_int_equal(ibv_req_notify_cq(r->end[1].cq, 0), 0);
	rig_recv(r, 1, 0, 64, 1);
	rig_post(r, 0, IBV_WR_SEND, 0, 64, 0, 2);
	rig_expect(r, 0, IBV_WC_SUCCESS);
	rig_expect(r, 1, IBV_WC_SUCCESS);
	assert_int_equal(ibv_get_cq_event(o->ch, &cq, &arg), 0);
	assert_ptr_equal(cq, r->end[1].cq);
	ibv_ack_cq_events(cq, 1);
	assert_int_equal(count.calls[COUNT(req_notify_cq)], 1);
	assert_int_equal(count.calls[COUNT(get_cq_event)], 1);
}

/* The extended ways to post and to poll go through, and are the provider's own as well. */
static void
extended_calls_go_through(void **state)
{
	struct over *o = *state;
	struct rig *r = &o->r;
	struct rig_end *end = &r->end[0];
	struct ibv_cq_init_attr_ex ca = {.cqe = 16};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(end->ctx, &ca);
	struct ibv_qp_init_attr_ex qa = {
		.qp_type = IBV_QPT_RC,
		.pd = end->pd,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_poll_cq_attr pa = {0};
	struct ibv_qp_ex *ex;
	struct ibv_qp *qp;

	assert_non_null(cq);
	qa.send_cq = qa.recv_cq = ibv_cq_ex_to_cq(cq);
	qp = ibv_create_qp_ex(end->ctx, &qa);
	assert_non_null(qp);
	ex = ibv_qp_to_qp_ex(qp);
	assert_non_null(ex);
	/* The other end's QP is connected to the new one instead. */
	rig_to(r->end[1].qp, IBV_QPS_RESET);
	rig_connect(r, 1, r->end[1].qp, 1, qp->qp_num, 2, &(struct rig_qp){0});
	rig_connect(r, 0, qp, 2, r->end[1].qp->qp_num, 1, &(struct rig_qp){0});
	rig_fill(end->buf, 64, 3);
	rig_recv(r, 1, 4096, 64, 31);
	ibv_wr_start(ex);
	ex->wr_id = 32;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, end->mr->lkey, (uintptr_t)end->buf, 64);
	assert_int_equal(ibv_wr_complete(ex), 0);
	assert_int_equal(rig_expect(r, 1, IBV_WC_SUCCESS).wr_id, 31);
	same_bytes(r, 0, 1, 0, 4096, 64);
	rig_turns(r, 2000);
	assert_int_equal(ibv_start_poll(cq, &pa), 0);
	assert_true(cq->wr_id == 32 && cq->status == IBV_WC_SUCCESS);
	assert_int_equal(ibv_wc_read_opcode(cq), IBV_WC_SEND);
	ibv_end_poll(cq);
	assert_int_equal(count.batches, 1);
	assert_int_equal(count.polls, 1);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	count.calls[COUNT(create_qp)]--;
	count.calls[COUNT(destroy_qp)]--;
	count.calls[COUNT(destroy_cq)]--;
}

/* Errors come out, too: the state that the adapter's QP fell into is that of the QP above. */
static void
errors_go_through(void **state)
{
	struct over *o = *state;
	struct rig *r = &o->r;

	rig_recv(r, 0, 0, 64, 21);
	rig_to(r->end[0].qp, IBV_QPS_ERR);
	assert_int_equal(r->end[0].qp->state, IBV_QPS_ERR);
	assert_int_equal(rig_expect(r, 0, IBV_WC_WR_FLUSH_ERR).wr_id, 21);
	assert_int_equal(rig_state(r->end[0].qp), IBV_QPS_ERR);
	assert_int_equal(count.calls[COUNT(query_qp)], 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bytes_go_through, setup, teardown),
		cmocka_unit_test_setup_teardown(events_go_through, setup, teardown),
		cmocka_unit_test_setup_teardown(extended_calls_go_through, setup, teardown),
		cmocka_unit_test_setup_teardown(errors_go_through, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
