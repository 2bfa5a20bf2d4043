/* SPDX-License-Identifier: BSD-3-Clause */
/* Making, changing and destroying queue pairs; send.c, wr.c and recv.c post to them. */
#include "verbs/cm.h"
#include "verbs/copy.h"
#include "verbs/verbs_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Attributes that can't be changed. */
#define URN_QP_UNSUPPORTED (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE | IBV_QP_RATE_LIMIT)

#define URN_OPS_UD (1u << URN_WR_SEND | 1u << URN_WR_SEND_IMM)
/* URN_WR_BIND_MW1 is not among them: only ibv_bind_mw() makes it. */
#define URN_OPS_RC (URN_OPS_UD | 1u << URN_WR_RDMA_WRITE | 1u << URN_WR_RDMA_WRITE_IMM | \
	1u << URN_WR_RDMA_READ | 1u << URN_WR_CMP_SWAP | 1u << URN_WR_FETCH_ADD | \
	1u << URN_WR_LOCAL_INV | 1u << URN_WR_BIND_MW | 1u << URN_WR_SEND_INV)

#define URN_QP_EX_UD ((uint64_t)(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM))
#define URN_QP_EX_RC (URN_QP_EX_UD | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | \
	IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | \
	IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW | \
	IBV_QP_EX_WITH_SEND_WITH_INV)

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
urn_qp_set_state(struct urn_qp *qp, enum ibv_qp_state state)
{
	/* dev->gone is read under each lock: the thread that seals the queues sets it before it takes the lock. */
	qp->ibv.state = state;
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
urn_qp_map(struct urn_qp *qp, const struct urn_dev *dev, const struct urn_abi_rep *rep)
{
	struct urn_sq *sq = &qp->sq;
	struct urn_rq *rq = &qp->rq;

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
	sq->ops = sq->ud ? URN_OPS_UD : URN_OPS_RC;
	sq->prod = atomic_load_explicit(&sq->hdr->prod, memory_order_relaxed);
	sq->cons = atomic_load_explicit(&sq->hdr->cons, memory_order_acquire);

	if (rep->qp.rq_entries == 0) {
		qp->taken = urn_dev_at(dev, rep->qp.rq_off);
		return;
	}
	urn_rq_map(rq, dev, rep->qp.rq_off, rep->qp.rq_entries, rep->qp.rq_stride);
	rq->cap = qp->cap.max_recv_wr < rep->qp.rq_entries ? qp->cap.max_recv_wr : rep->qp.rq_entries;
	rq->max_sge = qp->cap.max_recv_sge;
}

static int
urn_qp_ask(struct urn_qp *qp, struct urn_dev *dev, const struct ibv_qp_init_attr_ex *attr)
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
	err = urn_dev_call(dev, &req, &rep);
	if (err != 0)
		return err;
	qp->ibv.handle = rep.handle;
	qp->ibv.qp_num = rep.handle;
	qp->ibv.qp_type = attr->qp_type;
	urn_qp_map(qp, dev, &rep);
	return 0;
}

/* attr->pd is set; attr->cap gets the granted capabilities. */
static struct ibv_qp *
urn_qp_create(struct ibv_qp_init_attr_ex *attr)
{
	struct urn_ctx *ctx = urn_ctx(attr->pd->context);
	struct urn_qp *qp;

	if (attr->qp_type != IBV_QPT_RC && attr->qp_type != IBV_QPT_UD) {
		urn_unsupported("a queue pair of another type than RC and UD");
		return NULL;
	}
	if (attr->send_cq == NULL || attr->recv_cq == NULL) {
		urn_fail(EINVAL, "a queue pair needs completion queues for both directions");
		return NULL;
	}
	qp = urn_object_alloc(sizeof(*qp));
	if (qp == NULL)
		return NULL;
	qp->ticket = urn_objs_put(&ctx->objs, URN_OBJ_QP, qp);
	if (qp->ticket == 0)
		goto err_free;
	if (urn_qp_ask(qp, &ctx->dev, attr) != 0)
		goto err_take;
	qp->ibv.context = attr->pd->context;
	qp->ibv.qp_context = attr->qp_context;
	qp->ibv.pd = attr->pd;
	qp->ibv.send_cq = attr->send_cq;
	qp->ibv.recv_cq = attr->recv_cq;
	qp->ibv.srq = attr->srq;
	qp->sq_sig_all = attr->sq_sig_all != 0;
	pthread_mutex_init(&qp->ibv.mutex, NULL);
	pthread_cond_init(&qp->ibv.cond, NULL);
	urn_copy_create(qp, attr->pd);
	urn_qp_set_state(qp, IBV_QPS_RESET);
	attr->cap = qp->cap;
	return &qp->ibv;

err_take:
	urn_objs_take(&ctx->objs, qp->ticket);
err_free:
	free(qp);
	return NULL;
}

struct ibv_qp *
ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct ibv_qp_init_attr_ex attr;
	struct ibv_qp *qp;

	/* The extended attributes begin like the plain ones. */
	memset(&attr, 0, sizeof(attr));
	memcpy(&attr, init, sizeof(*init));
	attr.pd = pd;
	qp = urn_qp_create(&attr);
	if (qp != NULL)
		init->cap = attr.cap;
	return qp;
}

/* Check that urnic can do all that the extended attributes ask for. */
static int
urn_qp_check_ex(const struct ibv_qp_init_attr_ex *attr)
{
	const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS |
		IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	const uint64_t ops = attr->qp_type == IBV_QPT_UD ? URN_QP_EX_UD : URN_QP_EX_RC;

	if (attr->comp_mask & ~known)
		return urn_unsupported("a queue pair with XRC, TSO, or a receive indirection table");
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || attr->pd == NULL)
		return urn_fail(EINVAL, "a queue pair needs a protection domain");
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && attr->create_flags != 0)
		return urn_unsupported("a queue pair with creation flags");
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) && (attr->send_ops_flags & ~ops))
		return urn_unsupported("a send operation that was asked for, on this type of queue pair");
	return 0;
}

struct ibv_qp *
urn_create_qp_ex(struct ibv_context *c, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp;

	(void)c;
	if (urn_qp_check_ex(attr) != 0)
		return NULL;
	qp = urn_qp_create(attr);
	if (qp != NULL && (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)) {
		urn_qp(qp)->extended = true;
		urn_qp_init_wr(urn_qp(qp));
	}
	return qp;
}

struct ibv_qp_ex *
ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	return urn_qp(qp)->extended ? &urn_qp(qp)->ex : NULL;
}

/* ---- changing and asking */

static int
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
	return mask & IBV_QP_AV ? urn_av_from_ah(&attr->ah_attr, &out->av) : 0;
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
urn_qp_clean(struct urn_qp *qp)
{
	urn_cq_clean(urn_cq(qp->ibv.send_cq), qp->ibv.qp_num);
	if (qp->ibv.recv_cq != qp->ibv.send_cq)
		urn_cq_clean(urn_cq(qp->ibv.recv_cq), qp->ibv.qp_num);
}

/* The dataplane has dropped all requests: begin again at the queues' present indices. */
static void
urn_qp_reload(struct urn_qp *qp)
{
	urn_qp_clean(qp);
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
ibv_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	struct urn_abi_req req = {.op = URN_CTL_MODIFY_QP, .handle = ibqp->handle};
	struct urn_qp *qp = urn_qp(ibqp);
	struct urn_abi_rep rep;
	int err;

	if (mask & URN_QP_UNSUPPORTED)
		return urn_unsupported("alternate paths and rate limits of a queue pair");
	req.modify_qp.mask = (uint32_t)mask;
	err = urn_attr_to_abi(attr, mask, &req.modify_qp.attr);
	if (err == 0)
		err = urn_dev_call(urn_ctx_dev(ibqp->context), &req, &rep);
	if (err != 0 || !(mask & IBV_QP_STATE))
		return err;
	if (attr->qp_state == IBV_QPS_RESET)
		urn_qp_reload(qp);
	urn_qp_set_state(qp, attr->qp_state);
	return 0;
}

int
urn_cm_qp_ready(struct ibv_qp *ibqp, const struct ibv_qp_attr *rtr, int rtr_mask,
	const struct ibv_qp_attr *rts, int rts_mask)
{
	struct urn_abi_req req = {.op = URN_CTL_CONNECT_QP, .handle = ibqp->handle};
	struct urn_abi_rep rep;
	int err;

	if ((rtr_mask | rts_mask) & URN_QP_UNSUPPORTED)
		return urn_unsupported("alternate paths and rate limits of a queue pair");
	req.connect_qp.rtr_mask = (uint32_t)rtr_mask;
	req.connect_qp.rts_mask = (uint32_t)rts_mask;
	err = urn_attr_to_abi(rtr, rtr_mask, &req.connect_qp.rtr);
	if (err == 0)
		err = urn_attr_to_abi(rts, rts_mask, &req.connect_qp.rts);
	if (err != 0)
		return err;
	err = urn_dev_call(urn_ctx_dev(ibqp->context), &req, &rep);
	if (err == 0)
		urn_qp_set_state(urn_qp(ibqp), IBV_QPS_RTS);
	else if (rep.handle != 0)
		urn_qp_set_state(urn_qp(ibqp), IBV_QPS_RTR);
	return err;
}

int
ibv_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	struct urn_abi_req req = {.op = URN_CTL_QUERY_QP, .handle = ibqp->handle};
	struct urn_qp *qp = urn_qp(ibqp);
	struct urn_abi_rep rep;
	int err = urn_dev_call(urn_ctx_dev(ibqp->context), &req, &rep);

	if (err != 0)
		return err;
	urn_attr_from_abi(&rep.qp_attr, attr);
	if (mask & IBV_QP_STATE)
		urn_qp_set_state(qp, attr->qp_state);
	memset(init, 0, sizeof(*init));
	init->qp_context = ibqp->qp_context;
	init->send_cq = ibqp->send_cq;
	init->recv_cq = ibqp->recv_cq;
	init->srq = ibqp->srq;
	init->cap = qp->cap;
	init->qp_type = ibqp->qp_type;
	init->sq_sig_all = qp->sq_sig_all;
	return 0;
}

int
ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	(void)qp, (void)op, (void)flags;
	return 0; /* bytes of one message may be placed in any order */
}

int
ibv_destroy_qp(struct ibv_qp *ibqp)
{
	struct urn_ctx *ctx = urn_ctx(ibqp->context);
	struct urn_qp *qp = urn_qp(ibqp);
	int err = urn_dev_call_handle(&ctx->dev, URN_CTL_DESTROY_QP, ibqp->handle);

	if (err != 0)
		return err;
	urn_qp_clean(qp);
	urn_objs_take(&ctx->objs, qp->ticket);
	urn_events_wait(&ctx->dev, &ibqp->mutex, &ibqp->cond, &ibqp->events_completed, qp->async_got);
	pthread_cond_destroy(&ibqp->cond);
	pthread_mutex_destroy(&ibqp->mutex);
	urn_copy_destroy(qp);
	free(qp);
	return 0;
}
