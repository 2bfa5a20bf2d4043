/* SPDX-License-Identifier: BSD-3-Clause */
/* Making, changing and destroying queue pairs; send.c, wr.c and recv.c post to them. */
#include "verbs/adapter/adapter.h"
#include "verbs/adapter/copy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define URN_OPS_UD (1u << URN_WR_SEND | 1u << URN_WR_SEND_IMM)
#define URN_OPS_UC                                                            \
	(URN_OPS_UD | 1u << URN_WR_RDMA_WRITE | 1u << URN_WR_RDMA_WRITE_IMM | \
	 1u << URN_WR_LOCAL_INV | 1u << URN_WR_BIND_MW)
/* URN_WR_BIND_MW1 is not among them: only ibv_bind_mw() makes it. */
#define URN_OPS_RC (URN_OPS_UD | 1u << URN_WR_RDMA_WRITE | 1u << URN_WR_RDMA_WRITE_IMM | \
	1u << URN_WR_RDMA_READ | 1u << URN_WR_CMP_SWAP | 1u << URN_WR_FETCH_ADD | \
	1u << URN_WR_LOCAL_INV | 1u << URN_WR_BIND_MW | 1u << URN_WR_SEND_INV)

static void
urn_cap_to_abi(const struct ibv_qp_cap *cap, struct urn_abi_qp_cap *out)
{
	out->max_send_wr = cap->max_send_wr;
	out->max_recv_wr = cap->max_recv_wr;
	out->max_send_sge = cap->max_send_sge;
	out->max_recv_sge = cap->max_recv_sge;
	out->max_inline = cap->max_inline_data;
}

static void
urn_cap_from_abi(const struct urn_abi_qp_cap *cap, struct ibv_qp_cap *out)
{
	out->max_send_wr = cap->max_send_wr;
	out->max_recv_wr = cap->max_recv_wr;
	out->max_send_sge = cap->max_send_sge;
	out->max_recv_sge = cap->max_recv_sge;
	out->max_inline_data = cap->max_inline;
}

/*
 * Set whether posting is allowed in a state: sends from RTS on, receives from INIT
 * on. Other threads may be posting while one moves the QP to the error state.
 */
static void
urn_qp_set_state(struct urn_adapter_qp *qp, enum ibv_qp_state state)
{
	/* dev->gone is read under each lock: the thread that seals the queues sets it before it takes the lock. */
	urn_lock_take(&qp->sq.lock);
	qp->sq.ok = urn_dev_gone(qp->dev) == URN_DEV_THERE && (state == IBV_QPS_RTS || state == IBV_QPS_SQD || state == IBV_QPS_SQE ||
		state == IBV_QPS_ERR);
	urn_lock_give(&qp->sq.lock);
	urn_lock_take(&qp->rq.lock);
	qp->rq.ok = urn_dev_gone(qp->dev) == URN_DEV_THERE && state != IBV_QPS_RESET &&
		qp->rq.hdr != NULL;
	urn_lock_give(&qp->rq.lock);
}

/* Take over the queues that the dataplane made. */
static void
urn_qp_map(struct urn_adapter_qp *qp, const struct urn_dev *dev, const struct urn_abi_rep *rep)
{
	struct urn_adapter_sq *sq = &qp->sq;
	struct urn_adapter_rq *rq = &qp->rq;

	qp->dev = dev;
	qp->engine = rep->qp.engine;
	qp->db = rep->qp.db;
	urn_cap_from_abi(&rep->qp.cap, &qp->cap);

	sq->hdr = urn_dev_at(dev, rep->qp.sq_off);
	sq->slots = urn_dev_at(dev, rep->qp.sq_off + URN_ABI_WQ_SLOTS);
	sq->mask = rep->qp.sq_entries - 1;
	sq->stride = rep->qp.sq_stride;
	sq->cap = qp->cap.max_send_wr < rep->qp.sq_entries ? qp->cap.max_send_wr : rep->qp.sq_entries;
	sq->max_sge = qp->cap.max_send_sge;
	sq->max_inline = qp->cap.max_inline_data;
	sq->ud = qp->ibv.qp_type == IBV_QPT_UD;
	sq->ops = sq->ud ? URN_OPS_UD : qp->ibv.qp_type == IBV_QPT_UC ? URN_OPS_UC : URN_OPS_RC;
	sq->prod = atomic_load_explicit(&sq->hdr->prod, memory_order_relaxed);
	sq->cons = atomic_load_explicit(&sq->hdr->cons, memory_order_acquire);
	sq->freed = &qp->polled->send;

	if (rep->qp.rq_entries == 0) {
		qp->taken = urn_dev_at(dev, rep->qp.rq_off);
		return;
	}
	urn_rq_map(rq, dev, rep->qp.rq_off, rep->qp.rq_entries, rep->qp.rq_stride,
		   &qp->polled->recv);
	rq->cap = qp->cap.max_recv_wr < rep->qp.rq_entries ? qp->cap.max_recv_wr : rep->qp.rq_entries;
	rq->max_sge = qp->cap.max_recv_sge;
}

/*
 * Take over the queues that the dataplane made, and count how far they are polled. returns: 0, or
 * ENOMEM and the dataplane has destroyed them
 */
static int
urn_qp_take(struct urn_adapter_qp *qp, struct urn_ctx *ctx, const struct urn_abi_rep *rep,
	    struct ibv_srq *srq)
{
	urn_qp_map(qp, &ctx->dev, rep);
	if (urn_polled_begin(ctx, qp, srq) != 0) {
		(void)urn_dev_call_handle(&ctx->dev, URN_CTL_DESTROY_QP, qp->ibv.handle);
		return urn_fail(ENOMEM, "no memory for a queue pair");
	}
	if (qp->rq.hdr != NULL)
		urn_rq_reload(&qp->rq);
	return 0;
}

static int
urn_qp_ask(struct urn_adapter_qp *qp, struct urn_ctx *ctx, const struct ibv_qp_init_attr_ex *attr)
{
	struct urn_abi_req req = {.op = URN_CTL_CREATE_QP};
	struct urn_abi_rep rep;
	int err;

	req.create_qp.pd = attr->pd->handle;
	req.create_qp.type = (uint32_t)attr->qp_type;
	req.create_qp.send_cq = attr->send_cq->handle;
	req.create_qp.recv_cq = attr->recv_cq->handle;
	req.create_qp.srq = attr->srq != NULL ? attr->srq->handle : 0;
	req.create_qp.sq_sig_all = attr->sq_sig_all != 0;
	req.create_qp.cookie = qp->ticket;
	urn_cap_to_abi(&attr->cap, &req.create_qp.cap);
	err = urn_dev_call(&ctx->dev, &req, &rep);
	if (err != 0)
		return err;
	qp->ibv.handle = rep.handle;
	qp->ibv.qp_num = rep.handle;
	qp->ibv.qp_type = attr->qp_type;
	return urn_qp_take(qp, ctx, &rep, attr->srq);
}

struct ibv_qp *
urn_create_qp(struct ibv_qp_init_attr_ex *attr)
{
	struct urn_ctx *ctx = urn_ctx(attr->pd->context);
	struct urn_adapter_qp *qp = urn_object_alloc(sizeof(*qp));

	if (qp == NULL)
		return NULL;
	qp->ticket = urn_objs_put(&ctx->objs, URN_OBJ_QP, qp);
	if (qp->ticket == 0)
		goto err_free;
	if (urn_polled_get(ctx, qp) != 0)
		goto err_take;
	if (urn_qp_ask(qp, ctx, attr) != 0)
		goto err_put;
	qp->sq_sig_all = attr->sq_sig_all != 0;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		urn_qp_init_wr(qp);
	urn_qp_set_state(qp, IBV_QPS_RESET);
	attr->cap = qp->cap;
	return &qp->ibv;

err_put:
	urn_polled_put(ctx, qp);
err_take:
	urn_objs_take(&ctx->objs, qp->ticket);
err_free:
	free(qp);
	return NULL;
}

static void
urn_attr_to_abi(const struct ibv_qp_attr *attr, int mask, struct urn_abi_qp_attr *out)
{
	out->state = (uint8_t)attr->qp_state;
	out->cur_state = (uint8_t)attr->cur_qp_state;
	out->path_mtu = (uint8_t)attr->path_mtu;
	out->en_sqd_notify = attr->en_sqd_async_notify;
	out->max_rd_atomic = attr->max_rd_atomic;
	out->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	out->min_rnr_timer = attr->min_rnr_timer;
	out->port_num = attr->port_num;
	out->timeout = attr->timeout;
	out->retry_cnt = attr->retry_cnt;
	out->rnr_retry = attr->rnr_retry;
	out->pkey_index = attr->pkey_index;
	out->qkey = attr->qkey;
	out->rq_psn = attr->rq_psn;
	out->sq_psn = attr->sq_psn;
	out->dest_qpn = attr->dest_qp_num;
	out->access = urn_access(attr->qp_access_flags);
	urn_cap_to_abi(&attr->cap, &out->cap);
	if (mask & IBV_QP_AV)
		urn_av_from_ah(&attr->ah_attr, &out->av);
}

static void
urn_attr_from_abi(const struct urn_abi_qp_attr *in, struct ibv_qp_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->qp_state = in->state;
	attr->cur_qp_state = in->cur_state;
	attr->path_mtu = in->path_mtu;
	attr->path_mig_state = IBV_MIG_MIGRATED;
	attr->qkey = in->qkey;
	attr->rq_psn = in->rq_psn;
	attr->sq_psn = in->sq_psn;
	attr->dest_qp_num = in->dest_qpn;
	attr->qp_access_flags = in->access;
	urn_cap_from_abi(&in->cap, &attr->cap);
	urn_av_to_ah(&in->av, &attr->ah_attr);
	attr->pkey_index = in->pkey_index;
	attr->en_sqd_async_notify = in->en_sqd_notify;
	attr->sq_draining = in->sq_draining;
	attr->max_rd_atomic = in->max_rd_atomic;
	attr->max_dest_rd_atomic = in->max_dest_rd_atomic;
	attr->min_rnr_timer = in->min_rnr_timer;
	attr->port_num = in->port_num;
	attr->timeout = in->timeout;
	attr->retry_cnt = in->retry_cnt;
	attr->rnr_retry = in->rnr_retry;
}

/* Remove the QP's unread completions. */
static void
urn_qp_clean(struct urn_adapter_qp *qp)
{
	urn_cq_clean(urn_cq(qp->ibv.send_cq), qp->ibv.qp_num);
	if (qp->ibv.recv_cq != qp->ibv.send_cq)
		urn_cq_clean(urn_cq(qp->ibv.recv_cq), qp->ibv.qp_num);
}

/* The dataplane has dropped all requests: begin again at the queues' present indices. */
static void
urn_qp_reload(struct urn_adapter_qp *qp)
{
	urn_qp_clean(qp);
	urn_polled_restart(qp, qp->taken != NULL ? atomic_load(&qp->taken->cons) : 0);
	urn_lock_take(&qp->sq.lock);
	qp->sq.prod = atomic_load_explicit(&qp->sq.hdr->prod, memory_order_relaxed);
	qp->sq.cons = atomic_load_explicit(&qp->sq.hdr->cons, memory_order_acquire);
	urn_copy_reset(qp);
	urn_lock_give(&qp->sq.lock);
	if (qp->rq.hdr == NULL)
		return;
	urn_lock_take(&qp->rq.lock);
	urn_rq_reload(&qp->rq);
	urn_lock_give(&qp->rq.lock);
}

int
urn_modify_qp(struct ibv_qp *ibqp, const struct ibv_qp_attr *attr, int mask)
{
	struct urn_abi_req req = {.op = URN_CTL_MODIFY_QP, .handle = ibqp->handle};
	struct urn_adapter_qp *qp = urn_qp(ibqp);
	struct urn_abi_rep rep;
	int err;

	req.modify_qp.mask = (uint32_t)mask;
	urn_attr_to_abi(attr, mask, &req.modify_qp.attr);
	err = urn_dev_call(urn_ctx_dev(ibqp->context), &req, &rep);
	if (err != 0 || !(mask & IBV_QP_STATE))
		return err;
	if (attr->qp_state == IBV_QPS_RESET)
		urn_qp_reload(qp);
	if (attr->qp_state == IBV_QPS_RTS)
		urn_copy_connected(qp);
	urn_qp_set_state(qp, attr->qp_state);
	return 0;
}

int
urn_connect_qp(struct ibv_qp *ibqp, const struct ibv_qp_attr *rtr, int rtr_mask,
	const struct ibv_qp_attr *rts, int rts_mask, enum ibv_qp_state *reached)
{
	struct urn_abi_req req = {.op = URN_CTL_CONNECT_QP, .handle = ibqp->handle};
	struct urn_abi_rep rep;
	int err;

	req.connect_qp.rtr_mask = (uint32_t)rtr_mask;
	req.connect_qp.rts_mask = (uint32_t)rts_mask;
	urn_attr_to_abi(rtr, rtr_mask, &req.connect_qp.rtr);
	urn_attr_to_abi(rts, rts_mask, &req.connect_qp.rts);
	err = urn_dev_call(urn_ctx_dev(ibqp->context), &req, &rep);
	if (err != 0 && rep.handle == 0)
		return err;
	*reached = err == 0 ? IBV_QPS_RTS : IBV_QPS_RTR;
	if (err == 0)
		urn_copy_connected(urn_qp(ibqp));
	urn_qp_set_state(urn_qp(ibqp), *reached);
	return err;
}

int
urn_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	struct urn_abi_req req = {.op = URN_CTL_QUERY_QP, .handle = ibqp->handle};
	struct urn_adapter_qp *qp = urn_qp(ibqp);
	struct urn_abi_rep rep;
	int err = urn_dev_call(urn_ctx_dev(ibqp->context), &req, &rep);

	if (err != 0)
		return err;
	urn_attr_from_abi(&rep.qp_attr, attr);
	if (mask & IBV_QP_STATE)
		urn_qp_set_state(qp, attr->qp_state);
	init->cap = qp->cap;
	init->sq_sig_all = qp->sq_sig_all;
	return 0;
}

int
urn_qp_mcast(struct ibv_qp *ibqp, const union ibv_gid *gid, bool attach)
{
	struct urn_abi_req req = {.op = attach ? URN_CTL_ATTACH_MCAST : URN_CTL_DETACH_MCAST,
				  .handle = ibqp->handle};
	struct urn_abi_rep rep;

	memcpy(req.mcast.gid, gid->raw, sizeof(req.mcast.gid));
	return urn_dev_call(urn_ctx_dev(ibqp->context), &req, &rep);
}

int
urn_align_qp(struct ibv_qp *ibqp, uint32_t line)
{
	struct urn_abi_req req = {.op = URN_CTL_ALIGN_QP, .handle = ibqp->handle};
	struct urn_abi_rep rep;

	req.align_qp.line = line;
	return urn_dev_call(urn_ctx_dev(ibqp->context), &req, &rep);
}

int
urn_explain_error(struct ibv_context *c, uint32_t qpn, uint32_t status, char *text, size_t size)
{
	struct urn_abi_req req = {.op = URN_CTL_EXPLAIN, .handle = qpn};
	struct urn_abi_rep rep;
	int err;

	req.explain.status = status;
	err = urn_dev_call(urn_ctx_dev(c), &req, &rep);
	if (err == 0)
		snprintf(text, size, "%.*s", (int)sizeof(rep.explained.text) - 1,
			 rep.explained.text);
	return err;
}

/*
 * Receives that the queue pair has taken from its SRQ. before: their number before the queue pair
 * was destroyed, NULL: it is there. Another thread may have got the memory since: then the number
 * is the one before, and what came during the call is lost to the SRQ.
 */
static uint32_t
urn_qp_taken(const struct urn_adapter_qp *qp, const uint32_t *before)
{
	uint32_t now = qp->taken != NULL ? atomic_load(&qp->taken->cons) : 0;

	return before != NULL && now - *before > URN_ABI_TAKEN ? *before : now;
}

int
urn_destroy_qp(struct ibv_qp *ibqp)
{
	struct urn_ctx *ctx = urn_ctx(ibqp->context);
	struct urn_adapter_qp *qp = urn_qp(ibqp);
	uint32_t taken;
	int err;

	urn_qp_drain(qp);
	taken = urn_qp_taken(qp, NULL);
	err = urn_dev_call_handle(&ctx->dev, URN_CTL_DESTROY_QP, ibqp->handle);
	if (err != 0)
		return err;
	taken = urn_qp_taken(qp, &taken);
	urn_qp_clean(qp);
	if (qp->taken != NULL)
		urn_polled_restart(qp, taken);
	urn_polled_put(ctx, qp);
	urn_objs_take(&ctx->objs, qp->ticket);
	urn_events_wait(&ctx->dev, &ibqp->mutex, &ibqp->cond, &ibqp->events_completed, qp->async_got);
	urn_copy_destroy(qp);
	return 0;
}
