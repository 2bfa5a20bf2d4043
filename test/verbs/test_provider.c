/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A provider above the adapter's, on two nodes (architecture.md, seam 5): its objects own the
 * adapters' objects, and programs move data through it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cm_rig.h"

#include "../unit/lib/count.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* The rig, whose ends are replaced by ends that stand above the adapters. */
struct over {
	struct rig r;
	struct rig_end was[2];
	struct ibv_comp_channel *ch; /* channel of end 1's queue */
};

/* A node of the rig, for the provider to stand above. */
struct below {
	struct rig *r;
	unsigned int node;
};

static struct ibv_context *
attach(void *arg)
{
	const struct below *b = arg;

	return rig_attach(b->r, b->node);
}

/* Find the provider's device above an end in the list, and open it. */
static struct ibv_context *
open_above(const struct rig_end *end)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;
	char name[IBV_SYSFS_NAME_MAX];

	snprintf(name, sizeof(name), "over_%.50s", ibv_get_device_name(end->ctx->device));
	for (int i = 0; list && list[i] && !ctx; i++)
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			ctx = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	return ctx;
}

static void
replace(struct over *o, int e)
{
	struct rig_end *end = &o->r.end[e];

	o->was[e] = *end;
	end->ctx = open_above(end);
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
	static struct below below[2] = {{&o.r, 0}, {&o.r, 1}};
	struct rig *r = &o.r;

	memset(&o, 0, sizeof(o));
	memset(&count, 0, sizeof(count));
	rig_open(r, NULL, NULL);
	count_register();
	for (int e = 0; e < 2; e++)
		count.device[e] = (struct count_device){.open = attach, .arg = &below[e]};
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
	assert_int_equal(count.calls[COUNT(identify)], 2);
	count_withdraw();
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

static struct urn_abi_cm_event
next(struct rig *r, struct urn_cm_end *end, enum urn_cm_event_type type)
{
	time_t start = time(NULL);
	struct urn_abi_cm_event ev;
	int rc;

	while ((rc = urn_cm_end_event(end, &ev)) == EAGAIN) {
		assert_true(time(NULL) - start < 60);
		rig_turns(r, 4);
	}
	assert_int_equal(rc, 0);
	assert_int_equal(ev.type, type);
	return ev;
}

/* End 0 asks end 1 for a connection, which is made. *asked, *came: its ids at the ends */
static void
connect_ends(struct over *o, struct urn_cm_end **c, uint32_t *asked, uint32_t *came)
{
	struct urn_abi_req req = rig_cm_request(&o->r, 0, o->r.end[0].qp->qp_num);
	struct urn_abi_cm_accept acc = {.qpn = o->r.end[1].qp->qp_num, .psn = 1};
	struct urn_abi_cm_event ev;

	assert_int_equal(urn_cm_end_connect(c[0], &req.cm_connect, asked), 0);
	ev = next(&o->r, c[1], URN_CM_EVENT_REQUEST);
	assert_int_equal(ev.qpn, o->r.end[0].qp->qp_num);
	*came = ev.id;
	assert_int_equal(urn_cm_end_accept(c[1], *came, &acc), 0);
	assert_int_equal(next(&o->r, c[0], URN_CM_EVENT_REPLY).qpn, acc.qpn);
	assert_int_equal(urn_cm_end_establish(c[0], *asked, NULL, 0), 0);
	next(&o->r, c[1], URN_CM_EVENT_ESTABLISHED);
}

/* Programs connect through the provider: its ends own ends of the adapters. */
static void
connections_go_through(void **state)
{
	struct over *o = *state;
	struct urn_cm_end *c[2];
	uint32_t listener, asked, came;

	for (int e = 0; e < 2; e++)
		assert_int_equal(urn_cm_end_open(&c[e], o->r.end[e].ctx), 0);
	assert_int_equal(urn_cm_end_listen(c[1], SERVICE, 0, 0, &listener), 0);
	connect_ends(o, c, &asked, &came);
	assert_int_equal(urn_cm_end_disconnect(c[0], asked, NULL, 0), 0);
	next(&o->r, c[1], URN_CM_EVENT_DISCONNECT);
	assert_int_equal(urn_cm_end_disconnect(c[1], came, NULL, 0), 0);
	next(&o->r, c[0], URN_CM_EVENT_DISCONNECTED);
	assert_int_equal(urn_cm_end_destroy(c[0], asked), 0);
	assert_int_equal(urn_cm_end_destroy(c[1], came), 0);
	assert_int_equal(urn_cm_end_destroy(c[1], listener), 0);
	for (int e = 0; e < 2; e++)
		urn_cm_end_close(c[e]);
	assert_int_equal(count.cm[COUNT_CM(open)], 2);
	assert_int_equal(count.cm[COUNT_CM(listen)], 1);
	assert_int_equal(count.cm[COUNT_CM(connect)], 1);
	assert_int_equal(count.cm[COUNT_CM(accept)], 1);
	assert_int_equal(count.cm[COUNT_CM(establish)], 1);
	assert_int_equal(count.cm[COUNT_CM(disconnect)], 2);
	assert_int_equal(count.cm[COUNT_CM(destroy)], 3);
	assert_int_equal(count.cm[COUNT_CM(close)], 2);
	assert_true(count.cm[COUNT_CM(event)] >= 5);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bytes_go_through, setup, teardown),
		cmocka_unit_test_setup_teardown(events_go_through, setup, teardown),
		cmocka_unit_test_setup_teardown(extended_calls_go_through, setup, teardown),
		cmocka_unit_test_setup_teardown(errors_go_through, setup, teardown),
		cmocka_unit_test_setup_teardown(connections_go_through, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
