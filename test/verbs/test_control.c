/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control path: the order in which objects may be destroyed, limits, isolation of
 * clients, and ends of life in every order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "control.h"
#include "verbs/adapter/adapter.h"

#include <urnic/cm.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- order */

/* An object that others depend on can't be destroyed before them, and stays as it was. */
static void
test_order(void **state)
{
	struct ibv_srq_init_attr si = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_ah_attr ai = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1}};
	struct ibv_comp_channel *ch;
	struct rig_qp o = {0};
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_ah *ah;
	struct ibv_qp *qp;
	struct rig r;

	(void)state;
	rig_open(&r, NULL, NULL);
	pd = ibv_alloc_pd(r.end[0].ctx);
	ch = ibv_create_comp_channel(r.end[0].ctx);
	o.pd = pd;
	o.recv_cq = ibv_create_cq(r.end[0].ctx, 10, NULL, ch, 0);
	o.srq = ibv_create_srq(pd, &si);
	mr = ibv_reg_mr(pd, r.end[0].buf, 100, ALL_ACCESS);
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	rig_gid(&r, 1, &ai.grh.dgid);
	ah = ibv_create_ah(pd, &ai);
	assert_true(pd && ch && o.recv_cq && o.srq && mr && mw && ah);
	qp = rig_make_qp(&r, 0, &o);

	control_refused(ibv_destroy_comp_channel(ch), EBUSY, "completion queue");
	control_refused(ibv_destroy_cq(o.recv_cq), EBUSY, "destroy those first");
	control_refused(ibv_destroy_srq(o.srq), EBUSY, "destroy those first");
	control_refused(ibv_dealloc_pd(pd), EBUSY, "in use");
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(o.recv_cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(ch), 0);
	control_refused(ibv_dealloc_pd(pd), EBUSY, "in use");
	assert_int_equal(ibv_destroy_srq(o.srq), 0);
	control_refused(ibv_dealloc_pd(pd), EBUSY, "in use");
	assert_int_equal(ibv_dereg_mr(mr), 0);
	control_refused(ibv_dealloc_pd(pd), EBUSY, "in use");
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	control_refused(ibv_dealloc_pd(pd), EBUSY, "in use");
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	rig_post(&r, 0, IBV_WR_RDMA_WRITE, 0, 5000, 0, 1);
	rig_expect(&r, 0, IBV_WC_SUCCESS);
	rig_close(&r);
}

/* ---- limits */

/* A call beyond a limit gives an errno value and a sentence; objects that are given back make room again. */
static void
test_counts(void **state)
{
	static void *obj[70000];
	struct ibv_ah_attr ai = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1}};
	struct rig_end *end;
	unsigned int n;
	struct rig r;

	(void)state;
	rig_open(&r, NULL, NULL);
	end = &r.end[0];
	rig_gid(&r, 1, &ai.grh.dgid);
	for (int again = 0; again < 2; again++) {
		for (n = 0; (obj[n] = ibv_alloc_pd(end->ctx)); n++)
			;
		control_refused(errno, ENOMEM, "no more protection domains");
		assert_int_equal(n, MAX_PD - 1); /* the rig has one */
		while (n--)
			assert_int_equal(ibv_dealloc_pd(obj[n]), 0);

		for (n = 0; (obj[n] = ibv_reg_mr(end->pd, end->buf, 1, 0)); n++)
			;
		control_refused(errno, ENOMEM, "no more regions");
		assert_int_equal(n, 1024 - 1); /* likewise */
		while (n--)
			assert_int_equal(ibv_dereg_mr(obj[n]), 0);

		for (n = 0; (obj[n] = ibv_create_ah(end->pd, &ai)); n++)
			;
		control_refused(errno, ENOMEM, "no more address handles");
		assert_int_equal(n, MAX_AH);
		while (n--)
			assert_int_equal(ibv_destroy_ah(obj[n]), 0);
	}
	rig_close(&r);
}

/* Limits of QPs and queues: by number, and by room in the area. */
static void
test_queues(void **state)
{
	static void *obj[70000];
	struct ibv_srq_init_attr si = {.attr = {.max_wr = 32768, .max_sge = 16}};
	struct rig_end *end;
	unsigned int n, before;
	struct rig r;

	(void)state;
	rig_open(&r, NULL, NULL);
	end = &r.end[0];
	before = 0;
	for (int again = 0; again < 3; again++) {
		for (n = 0; (obj[n] = control_small_qp(end, 1)); n++)
			;
		control_refused(errno, ENOSPC, "no more QPs (at most 1024)");
		assert_int_equal(n, 1024 - 1); /* the rig has one */
		while (n--)
			assert_int_equal(ibv_destroy_qp(obj[n]), 0);

		/* 32768 * (64 + 32) bytes each in 64 MiB, less the room reserved for smaller queues. */
		for (n = 0; (obj[n] = control_small_qp(end, 32768)); n++)
			;
		control_refused(errno, ENOMEM, "no room for the QP's queues in the area of 64 MiB");
		assert_in_range(n, 10, 21);
		assert_true(again == 0 || n == before);
		before = n;
		while (n--)
			assert_int_equal(ibv_destroy_qp(obj[n]), 0);

		for (n = 0; (obj[n] = ibv_create_cq(end->ctx, 65536, NULL, NULL, 0)); n++)
			;
		control_refused(errno, ENOMEM, "no room for the completion queue");
		assert_true(n > 0);
		while (n--)
			assert_int_equal(ibv_destroy_cq(obj[n]), 0);

		for (n = 0; (obj[n] = ibv_create_srq(end->pd, &si)); n++)
			;
		control_refused(errno, ENOMEM, "no room for the SRQ");
		assert_true(n > 0);
		while (n--)
			assert_int_equal(ibv_destroy_srq(obj[n]), 0);
	}
	rig_post(&r, 0, IBV_WR_RDMA_WRITE, 0, 5000, 0, 1);
	rig_expect(&r, 0, IBV_WC_SUCCESS);
	rig_close(&r);
}

/* Limits of the sizes of one object. */
static void
test_sizes(void **state)
{
	static const struct ibv_qp_cap bad[] = {
		{32769, 1, 1, 1, 0}, {1, 32769, 1, 1, 0}, {1, 1, 17, 1, 0}, {1, 1, 1, 17, 0},
		{1, 1, 1, 1, 257}, {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX},
	};
	struct ibv_srq_init_attr si;
	struct rig_end *end;
	struct rig r;

	(void)state;
	rig_open(&r, NULL, NULL);
	end = &r.end[0];
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct ibv_qp_init_attr init = {.send_cq = end->cq, .recv_cq = end->cq,
						.qp_type = IBV_QPT_RC, .cap = bad[i]};

		assert_null(ibv_create_qp(end->pd, &init));
		control_refused(errno, EINVAL, "at most");
		si = (struct ibv_srq_init_attr){.attr = {.max_wr = bad[i].max_recv_wr,
							 .max_sge = bad[i].max_recv_sge}};
		if (bad[i].max_recv_wr + bad[i].max_recv_sge == 2)
			continue;
		assert_null(ibv_create_srq(end->pd, &si));
		control_refused(errno, EINVAL, "an SRQ has");
	}
	assert_null(ibv_create_cq(end->ctx, 0, NULL, NULL, 0));
	assert_null(ibv_create_cq(end->ctx, -1, NULL, NULL, 0));
	assert_null(ibv_create_cq(end->ctx, URN_ABI_MAX_CQE + 1, NULL, NULL, 0));
	control_refused(errno, EINVAL, "can be had");
	assert_null(ibv_create_cq(end->ctx, 1, NULL, NULL, 1));
	control_refused(errno, EINVAL, "completion vector 1");
	assert_null(ibv_reg_mr(end->pd, (void *)UINTPTR_MAX, 2, 0));
	control_refused(errno, EINVAL, "wraps around");
	assert_null(ibv_reg_mr(end->pd, end->buf, 2, IBV_ACCESS_REMOTE_WRITE));
	control_refused(errno, EINVAL, "local write");
	rig_close(&r);
}

/* ---- doorbells of many QPs */

static void
check_doorbell(struct rig *r, struct ibv_qp *qp)
{
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};
	struct ibv_send_wr wr = {.wr_id = qp->qp_num, .opcode = IBV_WR_RDMA_WRITE};

	assert_int_equal(ibv_modify_qp(qp, &err, IBV_QP_STATE), 0);
	rig_turns(r, 10);
	rig_send_on(qp, &wr);
	assert_int_equal(rig_expect(r, 0, IBV_WC_WR_FLUSH_ERR).wr_id, qp->qp_num);
	assert_int_equal(rig_counter(r, 0, URN_C_BAD_DOORBELL), 0);
}

/* The engine looks at as many summary words as the QPs need, and finds each QP. */
static void
test_doorbells(void **state)
{
	static struct ibv_qp *qp[4097];
	struct rig_config cfg = {.max_qp = 5000};
	const struct urn_abi_db *db;
	struct rig r;

	(void)state;
	rig_open(&r, &cfg, NULL);
	db = urn_ctx_dev(r.end[0].ctx)->db[0];
	for (int i = 0; i < 4097; i++) {
		/* With the rig's own QP, the 4096th is the last of the first word. */
		assert_int_equal(atomic_load(&db->tops), i < 4096 ? 1 : 2);
		qp[i] = control_small_qp(&r.end[0], 1);
		assert_non_null(qp[i]);
	}
	assert_int_equal(urn_qp(qp[4096])->db, 4097);
	check_doorbell(&r, qp[0]);
	check_doorbell(&r, qp[63]);
	check_doorbell(&r, qp[4094]);
	check_doorbell(&r, qp[4095]);
	check_doorbell(&r, qp[4096]);
	for (int i = 0; i < 4097; i++)
		assert_int_equal(ibv_destroy_qp(qp[i]), 0);
	rig_close(&r);
}

/* ---- one client and another */

static int
raw(struct ibv_context *ctx, uint32_t op, uint32_t handle, struct urn_abi_req *req)
{
	struct urn_abi_req none = {.op = 0};
	struct urn_abi_rep rep;

	req = req ? req : &none;
	req->op = op;
	req->handle = handle;
	return urn_dev_call(urn_ctx_dev(ctx), req, &rep);
}

/* The attributes that connect a queue pair, for two changes of state. */
static void
both_changes(struct rig *r, struct ibv_qp_attr *rtr, int *rtr_mask, struct ibv_qp_attr *rts, int *rts_mask)
{
	*rtr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_512, .dest_qp_num = 77, .rq_psn = 0x111,
		.max_dest_rd_atomic = 5, .min_rnr_timer = 3,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1, .hop_limit = 9}}};
	rig_gid(r, 1, &rtr->ah_attr.grh.dgid);
	*rts = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 13, .retry_cnt = 6, .rnr_retry = 5,
				    .sq_psn = 0x222, .max_rd_atomic = 4};
	*rtr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	*rts_mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		    IBV_QP_MAX_QP_RD_ATOMIC;
}

static struct ibv_qp *
in_init(struct rig *r)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp *qp = control_small_qp(&r->end[0], 4);

	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				       IBV_QP_ACCESS_FLAGS), 0);
	return qp;
}

/* The QP is in this state: its struct ibv_qp and ibv_query_qp() both say so. */
static void
in_state(struct ibv_qp *qp, enum ibv_qp_state state, struct ibv_qp_attr *a)
{
	struct ibv_qp_init_attr init;

	assert_int_equal(qp->state, state);
	assert_int_equal(ibv_query_qp(qp, a, IBV_QP_STATE, &init), 0);
	assert_int_equal(a->qp_state, state);
}

/* RTR and RTS by one call have the effect of two calls; one that fails leaves the state that the two would. */
static void
test_connect_at_once(void **state)
{
	struct ibv_qp_attr rtr, rts, one, two;
	int rtr_mask, rts_mask;
	struct urn_abi_req req;
	struct ibv_qp *qp[3];
	struct rig r;

	(void)state;
	rig_open(&r, NULL, NULL);
	both_changes(&r, &rtr, &rtr_mask, &rts, &rts_mask);
	for (int i = 0; i < 3; i++)
		qp[i] = in_init(&r);
	assert_int_equal(urn_cm_qp_ready(qp[0], &rtr, rtr_mask, &rts, rts_mask), 0);
	assert_int_equal(ibv_modify_qp(qp[1], &rtr, rtr_mask), 0);
	assert_int_equal(ibv_modify_qp(qp[1], &rts, rts_mask), 0);
	in_state(qp[0], IBV_QPS_RTS, &one);
	in_state(qp[1], IBV_QPS_RTS, &two);
	assert_memory_equal(&one, &two, sizeof(one));
	assert_int_equal(one.rq_psn, 0x111);
	assert_int_equal(one.sq_psn, 0x222);
	assert_int_equal(one.max_dest_rd_atomic, 5);
	/* A second call is as wrong as RTR would be. */
	control_refused(urn_cm_qp_ready(qp[0], &rtr, rtr_mask, &rts, rts_mask), EINVAL, "");
	in_state(qp[0], IBV_QPS_RTS, &one);

	control_refused(urn_cm_qp_ready(qp[2], &rtr, rtr_mask & ~IBV_QP_AV, &rts, rts_mask), EINVAL,
			"");
	in_state(qp[2], IBV_QPS_INIT, &one);
	control_refused(urn_cm_qp_ready(qp[2], &rtr, rtr_mask, &rts, rts_mask & ~IBV_QP_TIMEOUT),
			EINVAL, "");
	in_state(qp[2], IBV_QPS_RTR, &one);
	assert_int_equal(ibv_modify_qp(qp[2], &rts, rts_mask), 0);
	in_state(qp[2], IBV_QPS_RTS, &one);
	assert_int_equal(one.sq_psn, 0x222);

	/* No other pair of changes is possible, nor one that changes no state. */
	for (uint32_t i = 0; i < URN_QP_STATES * URN_QP_STATES; i++) {
		req = (struct urn_abi_req){.connect_qp = {URN_QPM_STATE, URN_QPM_STATE, {.state = i % URN_QP_STATES},
							  {.state = i / URN_QP_STATES}}};
		control_refused(raw(r.end[0].ctx, URN_CTL_CONNECT_QP, qp[1]->handle, &req), EINVAL,
				"");
		in_state(qp[1], IBV_QPS_RTS, &one);
	}
	for (uint32_t i = 0; i < 2; i++) {
		req = (struct urn_abi_req){.connect_qp = {i, 1 - i, {.state = URN_QPS_RTR}, {.state = URN_QPS_RTS}}};
		control_refused(raw(r.end[0].ctx, URN_CTL_CONNECT_QP, qp[1]->handle, &req), EINVAL,
				"RTR");
	}
	for (int i = 0; i < 3; i++)
		assert_int_equal(ibv_destroy_qp(qp[i]), 0);
	rig_close(&r);
}

/* Another client's handles are not valid: none of its objects can be read, used or destroyed. */
static void
test_foreign_handles(void **state)
{
	struct urn_abi_req qp = {.create_qp = {.type = URN_QPT_RC}}, mr = {.reg_mr = {.length = 8}}, req;
	struct rig_end *end;
	struct ibv_context *other;
	struct ibv_cq *cq, *cqs[3];
	struct ibv_pd *pd;
	struct rig r;

	(void)state;
	rig_open(&r, NULL, NULL);
	end = &r.end[0];
	other = rig_attach(&r, 0);
	pd = ibv_alloc_pd(other);
	/* Handles of queues are numbered by client: this one needs more queues than the other. */
	for (int i = 0; i < 3; i++)
		cqs[i] = ibv_create_cq(other, 4, NULL, NULL, 0);
	cq = cqs[2];
	assert_true(pd && cqs[0] && cqs[1] && cq);
	assert_int_equal(raw(other, URN_CTL_DEALLOC_PD, end->pd->handle, NULL), EINVAL);
	assert_int_equal(raw(other, URN_CTL_DEREG_MR, end->mr->handle, NULL), EINVAL);
	assert_int_equal(raw(other, URN_CTL_DEALLOC_MW, end->mr->handle, NULL), EINVAL);
	assert_int_equal(raw(other, URN_CTL_QUERY_QP, end->qp->handle, NULL), EINVAL);
	assert_int_equal(raw(other, URN_CTL_DESTROY_QP, end->qp->handle, NULL), EINVAL);
	req = (struct urn_abi_req){.modify_qp = {.mask = URN_QPM_STATE, .attr = {.state = URN_QPS_ERR}}};
	assert_int_equal(raw(other, URN_CTL_MODIFY_QP, end->qp->handle, &req), EINVAL);
	req = (struct urn_abi_req){.connect_qp = {URN_QPM_STATE, URN_QPM_STATE, {.state = URN_QPS_RTR},
						  {.state = URN_QPS_RTS}}};
	assert_int_equal(raw(other, URN_CTL_CONNECT_QP, end->qp->handle, &req), EINVAL);
	assert_non_null(strstr(urn_attach_error(), "no QP"));
	mr.reg_mr.pd = end->pd->handle;
	assert_int_equal(raw(other, URN_CTL_REG_MR, 0, &mr), EINVAL);
	req = (struct urn_abi_req){.alloc_mw = {.pd = end->pd->handle, .type = 2}};
	assert_int_equal(raw(other, URN_CTL_ALLOC_MW, 0, &req), EINVAL);
	req = (struct urn_abi_req){.create_srq = {.pd = end->pd->handle, .max_wr = 1}};
	assert_int_equal(raw(other, URN_CTL_CREATE_SRQ, 0, &req), EINVAL);
	qp.create_qp.pd = end->pd->handle;
	qp.create_qp.send_cq = qp.create_qp.recv_cq = cq->handle;
	assert_int_equal(raw(other, URN_CTL_CREATE_QP, 0, &qp), EINVAL);
	qp.create_qp.pd = pd->handle;
	assert_int_equal(raw(end->ctx, URN_CTL_CREATE_QP, 0, &qp), EINVAL);
	/* The client's own handles work, so the request itself is not wrong. */
	assert_int_equal(raw(other, URN_CTL_CREATE_QP, 0, &qp), 0);
	assert_int_equal(raw(other, 0, 0, NULL), EINVAL);
	assert_int_equal(raw(other, URN_CTL_OPS, 0, NULL), EINVAL);
	assert_int_equal(raw(other, UINT32_MAX, 0, NULL), EINVAL);
	assert_int_equal(ibv_close_device(other), 0);
	/* Objects of the library; the dataplane's went with the context. */
	for (int i = 0; i < 3; i++)
		free(cqs[i]);
	free(pd);
	rig_post(&r, 0, IBV_WR_RDMA_WRITE, 0, 5000, 0, 1);
	rig_expect(&r, 0, IBV_WC_SUCCESS);
	rig_close(&r);
}

/* Any request of a client gets an answer, and does no harm to others. */
static void
test_nonsense(void **state)
{
	struct ibv_context *other;
	uint64_t rng = 1;
	struct rig r;

	(void)state;
	rig_open(&r, NULL, NULL);
	for (int round = 0; round < 4; round++) {
		other = rig_attach(&r, 0);
		for (int i = 0; i < 20000; i++) {
			struct urn_abi_req req;
			uint32_t *word = (uint32_t *)&req;
			struct urn_abi_rep rep;

			for (size_t k = 0; k < sizeof(req) / 4; k++)
				word[k] = (uint32_t)(rig_rand(&rng) >>
						     (rig_rand(&rng) % 3 ? 56 + rig_rand(&rng) % 8 : 32));
			req.op = (uint32_t)rig_rand(&rng) % (URN_CTL_OPS + 1);
			if (req.op == URN_CTL_CREATE_CQ)
				req.create_cq.channel_fd = -1;
			if (req.op == URN_CTL_CM_LISTEN)
				req.cm_listen.channel_fd = -1;
			if (req.op == URN_CTL_CM_CONNECT || req.op == URN_CTL_CM_RESOLVE)
				req.cm_connect.channel_fd = -1;
			if (req.op == URN_CTL_ASYNC_FD)
				req.async_fd.fd = -1;
			if (rig_rand(&rng) % 4 == 0)
				req.handle |= (uint32_t)rig_rand(&rng) << 8;
			urn_dev_call(urn_ctx_dev(other), &req, &rep);
			if (rep.err)
				assert_int_not_equal(rep.why[0], 0);
			if (i % 64 == 0)
				rig_turn(&r);
		}
		rig_post(&r, 0, IBV_WR_RDMA_WRITE, 0, 5000, 0, 1);
		rig_expect(&r, 0, IBV_WC_SUCCESS);
		assert_int_equal(ibv_close_device(other), 0);
	}
	rig_close(&r);
}

/* Keys of an adapter's regions are drawn (memory/key.c): two dataplanes give out others, and
 * neither in order. */
static void
test_drawn_keys(void **state)
{
	enum { KEYS = 64 };
	uint32_t key[2][KEYS];
	int same = 0, next = 0;

	(void)state;
	for (int d = 0; d < 2; d++) {
		struct ibv_mr *mr[KEYS];
		struct rig r;

		rig_open(&r, NULL, NULL);
		for (int i = 0; i < KEYS; i++) {
			mr[i] = ibv_reg_mr(r.end[0].pd, r.end[0].buf, 100, ALL_ACCESS);
			assert_non_null(mr[i]);
			key[d][i] = mr[i]->rkey;
		}
		for (int i = 0; i < KEYS; i++)
			assert_int_equal(ibv_dereg_mr(mr[i]), 0);
		rig_close(&r);
	}
	for (int i = 0; i < KEYS; i++) {
		same += key[0][i] == key[1][i];
		next += i > 0 && (key[0][i] >> 8) - (key[0][i - 1] >> 8) == 1;
	}
	assert_in_range(same, 0, 4);
	assert_in_range(next, 0, 8);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_queues),		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_doorbells),	cmocka_unit_test(test_connect_at_once),
		cmocka_unit_test(test_foreign_handles), cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_drawn_keys),
	};

	return cmocka_run_group_tests_name("control", tests, NULL, NULL);
}
