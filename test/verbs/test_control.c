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

#include "rig.h"
#include "verbs/adapter/adapter.h"

#include <urnic/cm.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PD = 4096, MAX_AH = 65536 }; /* control/adapter.h */

#define ALL_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
		    IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

/* The call failed with errno value `want`, and the message has `word`. */
static void
refused(int err, int want, const char *word)
{
	assert_int_equal(err, want);
	assert_int_equal(errno, want);
	if (!strstr(urn_attach_error(), word))
		fail_msg("\"%s\" says nothing of \"%s\"", urn_attach_error(), word);
}

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

	refused(ibv_destroy_comp_channel(ch), EBUSY, "completion queue");
	refused(ibv_destroy_cq(o.recv_cq), EBUSY, "destroy those first");
	refused(ibv_destroy_srq(o.srq), EBUSY, "destroy those first");
	refused(ibv_dealloc_pd(pd), EBUSY, "in use");
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(o.recv_cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(ch), 0);
	refused(ibv_dealloc_pd(pd), EBUSY, "in use");
	assert_int_equal(ibv_destroy_srq(o.srq), 0);
	refused(ibv_dealloc_pd(pd), EBUSY, "in use");
	assert_int_equal(ibv_dereg_mr(mr), 0);
	refused(ibv_dealloc_pd(pd), EBUSY, "in use");
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	refused(ibv_dealloc_pd(pd), EBUSY, "in use");
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
		refused(errno, ENOMEM, "no more protection domains");
		assert_int_equal(n, MAX_PD - 1); /* the rig has one */
		while (n--)
			assert_int_equal(ibv_dealloc_pd(obj[n]), 0);

		for (n = 0; (obj[n] = ibv_reg_mr(end->pd, end->buf, 1, 0)); n++)
			;
		refused(errno, ENOMEM, "no more regions");
		assert_int_equal(n, 1024 - 1); /* likewise */
		while (n--)
			assert_int_equal(ibv_dereg_mr(obj[n]), 0);

		for (n = 0; (obj[n] = ibv_create_ah(end->pd, &ai)); n++)
			;
		refused(errno, ENOMEM, "no more address handles");
		assert_int_equal(n, MAX_AH);
		while (n--)
			assert_int_equal(ibv_destroy_ah(obj[n]), 0);
	}
	rig_close(&r);
}

static struct ibv_qp *
small_qp(struct rig_end *end, uint32_t depth)
{
	struct ibv_qp_init_attr init = {.send_cq = end->cq, .recv_cq = end->cq, .qp_type = IBV_QPT_RC,
					.cap = {depth, depth, 1, 1, 0}};

	return ibv_create_qp(end->pd, &init);
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
		for (n = 0; (obj[n] = small_qp(end, 1)); n++)
			;
		refused(errno, ENOSPC, "no more QPs (at most 1024)");
		assert_int_equal(n, 1024 - 1); /* the rig has one */
		while (n--)
			assert_int_equal(ibv_destroy_qp(obj[n]), 0);

		/* 32768 * (64 + 32) bytes each in 64 MiB, less the room reserved for smaller queues. */
		for (n = 0; (obj[n] = small_qp(end, 32768)); n++)
			;
		refused(errno, ENOMEM, "no room for the QP's queues in the area of 64 MiB");
		assert_in_range(n, 10, 21);
		assert_true(again == 0 || n == before);
		before = n;
		while (n--)
			assert_int_equal(ibv_destroy_qp(obj[n]), 0);

		for (n = 0; (obj[n] = ibv_create_cq(end->ctx, 65536, NULL, NULL, 0)); n++)
			;
		refused(errno, ENOMEM, "no room for the completion queue");
		assert_true(n > 0);
		while (n--)
			assert_int_equal(ibv_destroy_cq(obj[n]), 0);

		for (n = 0; (obj[n] = ibv_create_srq(end->pd, &si)); n++)
			;
		refused(errno, ENOMEM, "no room for the SRQ");
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
		refused(errno, EINVAL, "at most");
		si = (struct ibv_srq_init_attr){.attr = {.max_wr = bad[i].max_recv_wr,
							 .max_sge = bad[i].max_recv_sge}};
		if (bad[i].max_recv_wr + bad[i].max_recv_sge == 2)
			continue;
		assert_null(ibv_create_srq(end->pd, &si));
		refused(errno, EINVAL, "an SRQ has");
	}
	assert_null(ibv_create_cq(end->ctx, 0, NULL, NULL, 0));
	assert_null(ibv_create_cq(end->ctx, -1, NULL, NULL, 0));
	assert_null(ibv_create_cq(end->ctx, URN_ABI_MAX_CQE + 1, NULL, NULL, 0));
	refused(errno, EINVAL, "can be had");
	assert_null(ibv_create_cq(end->ctx, 1, NULL, NULL, 1));
	refused(errno, EINVAL, "completion vector 1");
	assert_null(ibv_reg_mr(end->pd, (void *)UINTPTR_MAX, 2, 0));
	refused(errno, EINVAL, "wraps around");
	assert_null(ibv_reg_mr(end->pd, end->buf, 2, IBV_ACCESS_REMOTE_WRITE));
	refused(errno, EINVAL, "local write");
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
		qp[i] = small_qp(&r.end[0], 1);
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
	struct ibv_qp *qp = small_qp(&r->end[0], 4);

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
	refused(urn_cm_qp_ready(qp[0], &rtr, rtr_mask, &rts, rts_mask), EINVAL, "");
	in_state(qp[0], IBV_QPS_RTS, &one);

	refused(urn_cm_qp_ready(qp[2], &rtr, rtr_mask & ~IBV_QP_AV, &rts, rts_mask), EINVAL, "");
	in_state(qp[2], IBV_QPS_INIT, &one);
	refused(urn_cm_qp_ready(qp[2], &rtr, rtr_mask, &rts, rts_mask & ~IBV_QP_TIMEOUT), EINVAL, "");
	in_state(qp[2], IBV_QPS_RTR, &one);
	assert_int_equal(ibv_modify_qp(qp[2], &rts, rts_mask), 0);
	in_state(qp[2], IBV_QPS_RTS, &one);
	assert_int_equal(one.sq_psn, 0x222);

	/* No other pair of changes is possible, nor one that changes no state. */
	for (uint32_t i = 0; i < URN_QP_STATES * URN_QP_STATES; i++) {
		req = (struct urn_abi_req){.connect_qp = {URN_QPM_STATE, URN_QPM_STATE, {.state = i % URN_QP_STATES},
							  {.state = i / URN_QP_STATES}}};
		refused(raw(r.end[0].ctx, URN_CTL_CONNECT_QP, qp[1]->handle, &req), EINVAL, "");
		in_state(qp[1], IBV_QPS_RTS, &one);
	}
	for (uint32_t i = 0; i < 2; i++) {
		req = (struct urn_abi_req){.connect_qp = {i, 1 - i, {.state = URN_QPS_RTR}, {.state = URN_QPS_RTS}}};
		refused(raw(r.end[0].ctx, URN_CTL_CONNECT_QP, qp[1]->handle, &req), EINVAL, "RTR");
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

/* ---- ends of life */

/* All kinds of objects, made on a context, with work under way. */
struct all {
	struct ibv_context *ctx;
	void *obj[16];
	int n;
	uint8_t *buf;
};

static void *
keep(struct all *a, void *p)
{
	assert_non_null(p);
	return a->obj[a->n++] = p;
}

static void
make_all(struct rig *r, struct all *a)
{
	struct ibv_srq_init_attr si = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_ah_attr ai = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1}};
	struct rig_qp o = {.mtu = IBV_MTU_256};
	struct ibv_mr *mr;
	struct ibv_qp *qp;

	memset(a, 0, sizeof(*a));
	a->ctx = rig_attach(r, 0);
	a->buf = calloc(1, 1 << 16);
	o.pd = keep(a, ibv_alloc_pd(a->ctx));
	o.send_cq = keep(a, ibv_create_cq(a->ctx, 10, NULL, NULL, 0));
	o.recv_cq = keep(a, ibv_create_cq(a->ctx, 10, NULL, NULL, a->ctx->num_comp_vectors - 1));
	mr = keep(a, ibv_reg_mr(o.pd, a->buf, 1 << 16, ALL_ACCESS));
	keep(a, ibv_alloc_mw(o.pd, IBV_MW_TYPE_2));
	rig_gid(r, 1, &ai.grh.dgid);
	keep(a, ibv_create_ah(o.pd, &ai));
	qp = keep(a, rig_make_qp(r, 0, &o));
	rig_connect(r, 0, qp, 1, 0xabcde, 1, &o); /* nobody answers at this QP number */
	for (int i = 0; i < 5; i++) {
		struct ibv_sge sge = {(uintptr_t)a->buf, 1 << 16, mr->lkey};
		struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1};

		rig_send_on(qp, &wr);
	}
	rig_recv_on(qp, a->buf, 100, mr->lkey, 1);
	o.srq = keep(a, ibv_create_srq(o.pd, &si));
	keep(a, rig_make_qp(r, 0, &o));
}

static void
free_all(struct all *a)
{
	for (int i = 0; i < a->n; i++)
		free(a->obj[i]);
	free(a->buf);
}

/* No object of clients is left: the test can have all that there ever was. */
static void
check_whole(struct rig *r)
{
	static void *obj[MAX_AH + 1];
	struct ibv_ah_attr ai = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1}};
	struct ibv_context *ctx = rig_attach(r, 0);
	struct rig_end end = {.ctx = ctx, .buf = r->end[0].buf};
	unsigned int n;

	rig_gid(r, 1, &ai.grh.dgid);
	for (n = 0; (obj[n] = ibv_alloc_pd(ctx)); n++)
		;
	assert_int_equal(n, MAX_PD - 1);
	while (--n)
		assert_int_equal(ibv_dealloc_pd(obj[n]), 0);
	end.pd = obj[0];
	for (n = 0; (obj[n] = ibv_reg_mr(end.pd, end.buf, 1, 0)); n++)
		;
	assert_int_equal(n, 1024 - 1);
	while (n--)
		assert_int_equal(ibv_dereg_mr(obj[n]), 0);
	for (n = 0; (obj[n] = ibv_create_ah(end.pd, &ai)); n++)
		;
	assert_int_equal(n, MAX_AH);
	while (n--)
		assert_int_equal(ibv_destroy_ah(obj[n]), 0);
	end.cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
	for (n = 0; (obj[n] = small_qp(&end, 1)); n++)
		;
	assert_int_equal(n, 1024 - 1);
	while (n--)
		assert_int_equal(ibv_destroy_qp(obj[n]), 0);
	assert_int_equal(ibv_destroy_cq(end.cq), 0);
	assert_int_equal(ibv_dealloc_pd(end.pd), 0);
	assert_int_equal(ibv_close_device(ctx), 0);
}

/* A context closes with all objects still there: everything is taken back, nobody else notices. */
static void
test_detach(void **state)
{
	static const unsigned int engines[] = {1, 2, 4};
	struct all a;
	struct rig r;

	(void)state;
	for (int i = 0; i < 6; i++) {
		struct rig_config cfg = {.engines = engines[i % 3], .delay_seed = i < 3 ? 0 : 9};

		rig_open(&r, &cfg, NULL);
		for (int round = 0; round < 50; round++) {
			uint64_t regions = 0;

			make_all(&r, &a);
			rig_turns(&r, (unsigned int)round);
			assert_int_equal(ibv_close_device(a.ctx), 0);
			memset(a.buf, 0xa5, 1 << 16);
			rig_turns(&r, 30);
			/* The engine writes to no buffer that is the program's again. */
			for (int k = 0; k < 1 << 16; k++)
				regions += a.buf[k] != 0xa5;
			assert_int_equal(regions, 0);
			free_all(&a);
		}
		rig_post(&r, 0, IBV_WR_RDMA_WRITE, 0, 50000, 0, 1);
		rig_expect(&r, 0, IBV_WC_SUCCESS);
		assert_memory_equal(r.end[0].buf, r.end[1].buf, 50000);
		if (cfg.engines != 4) /* vector 0 holds as many QPs as the adapter may have */
			check_whole(&r);
		rig_close(&r);
	}
}

/* A dataplane goes before its clients: their calls fail, and closing works. */
static void
test_taken_down(void **state)
{
	struct ibv_device_attr da;
	struct ibv_port_attr pa;
	struct ibv_cq *cq;
	struct all a;
	struct rig r;

	(void)state;
	rig_open(&r, NULL, NULL);
	make_all(&r, &a);
	rig_turns(&r, 10);
	/* The engines are still bound to this thread. */
	urn_dp_destroy(r.dp);
	assert_null(ibv_alloc_pd(a.ctx));
	refused(errno, ENODEV, "taken down");
	refused(ibv_query_port(a.ctx, 1, &pa), ENODEV, "taken down");
	assert_int_equal(ibv_query_device(a.ctx, &da), 0);
	assert_null(ibv_create_cq(a.ctx, 1, NULL, NULL, 0));
	/* Posted requests go nowhere. */
	rig_recv_on(a.obj[6], a.buf, 100, 1, 1);
	/* The objects are gone: giving them back succeeds. */
	cq = r.end[0].cq;
	assert_int_equal(ibv_destroy_qp(r.end[0].qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dereg_mr(r.end[0].mr), 0);
	assert_int_equal(ibv_dealloc_pd(r.end[0].pd), 0);
	assert_int_equal(ibv_close_device(a.ctx), 0);
	free_all(&a);
	assert_int_equal(ibv_close_device(r.end[0].ctx), 0);
	assert_int_equal(ibv_destroy_qp(r.end[1].qp), 0);
	assert_int_equal(ibv_destroy_cq(r.end[1].cq), 0);
	assert_int_equal(ibv_dereg_mr(r.end[1].mr), 0);
	assert_int_equal(ibv_dealloc_pd(r.end[1].pd), 0);
	assert_int_equal(ibv_close_device(r.end[1].ctx), 0);
	for (int i = 0; i < 2; i++) {
		free(r.end[i].buf);
		urn_port_close(r.port[i]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),     cmocka_unit_test(test_counts),
		cmocka_unit_test(test_queues),    cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_doorbells), cmocka_unit_test(test_connect_at_once), cmocka_unit_test(test_foreign_handles),
		cmocka_unit_test(test_nonsense),  cmocka_unit_test(test_detach),
		cmocka_unit_test(test_taken_down),
	};

	return cmocka_run_group_tests_name("control", tests, NULL, NULL);
}
