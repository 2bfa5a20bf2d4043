/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that may fail on demand, in front of the provider's. */
#include "verbs/fault/state.h"

#include <errno.h>
#include <stdlib.h>

/* The provider's table, behind the faults of a context. */
static const struct urn_verbs_ops *
real_of(struct ibv_context *c)
{
	return urn_fault_ctx(c)->real;
}

/* A call about a queue. returns: 0, or the errno value that it is to fail with */
static int
about(enum urn_fault_site site, struct ibv_context *c, uint32_t kind, uint32_t handle)
{
	struct urn_fault_obj *o = urn_fault_obj_use(c, kind, handle);
	int err = urn_fault_call(site, o);

	urn_fault_obj_leave(o);
	return err;
}

/* ---- the device */

static void
fault_close(struct ibv_context *c)
{
	struct urn_fault_ctx *f = urn_fault_ctx(c);
	bool last;

	pthread_mutex_lock(&urn_fault_state.lock);
	while (urn_fault_state.acts)
		pthread_cond_wait(&urn_fault_state.cond, &urn_fault_state.lock);
	LIST_REMOVE(f, link);
	urn_fault_objs_drop(c);
	last = LIST_EMPTY(&urn_fault_state.contexts);
	pthread_mutex_unlock(&urn_fault_state.lock);
	if (last)
		urn_fault_thread_join();
	f->real->close(c);
	free(f);
}

static int
fault_query_device(struct ibv_context *c, struct ibv_device_attr_ex *attr)
{
	int err = urn_fault_call(URN_FAULT_QUERY_DEVICE, NULL);

	return err != 0 ? err : real_of(c)->query_device(c, attr);
}

static int
fault_query_port(struct ibv_context *c, struct ibv_port_attr *attr)
{
	int err = urn_fault_call(URN_FAULT_QUERY_PORT, NULL);

	if (err == 0)
		err = real_of(c)->query_port(c, attr);
	if (err == 0 && urn_fault_ctx(c)->port_down) {
		attr->state = IBV_PORT_DOWN;
		attr->phys_state = 3; /* disabled */
	}
	return err;
}

static int
fault_query_gid(struct ibv_context *c, uint32_t index, union ibv_gid *gid)
{
	int err = urn_fault_call(URN_FAULT_QUERY_GID, NULL);

	return err != 0 ? err : real_of(c)->query_gid(c, index, gid);
}

static int
fault_get_async_event(struct ibv_context *c, struct ibv_async_event *event)
{
	return urn_fault_call(URN_FAULT_GET_ASYNC_EVENT, NULL) != 0
		       ? -1
		       : real_of(c)->get_async_event(c, event);
}

/* ---- memory and addresses */

static struct ibv_pd *
fault_alloc_pd(struct ibv_context *c)
{
	return urn_fault_call(URN_FAULT_ALLOC_PD, NULL) != 0 ? NULL : real_of(c)->alloc_pd(c);
}

static int
fault_dealloc_pd(struct ibv_pd *pd)
{
	int err = urn_fault_call(URN_FAULT_DEALLOC_PD, NULL);

	return err != 0 ? err : real_of(pd->context)->dealloc_pd(pd);
}

static struct ibv_mr *
fault_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	if (urn_fault_call(URN_FAULT_REG_MR, NULL) != 0)
		return NULL;
	return real_of(pd->context)->reg_mr(pd, addr, length, iova, access);
}

static int
fault_dereg_mr(struct ibv_mr *mr)
{
	int err = urn_fault_call(URN_FAULT_DEREG_MR, NULL);

	return err != 0 ? err : real_of(mr->context)->dereg_mr(mr);
}

static int
fault_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
	       unsigned int access)
{
	if (urn_fault_call(URN_FAULT_REREG_MR, NULL) != 0)
		return IBV_REREG_MR_ERR_CMD;
	return real_of(mr->context)->rereg_mr(mr, flags, pd, addr, length, access);
}

static struct ibv_mw *
fault_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	return urn_fault_call(URN_FAULT_ALLOC_MW, NULL) != 0
		       ? NULL
		       : real_of(pd->context)->alloc_mw(pd, type);
}

static int
fault_dealloc_mw(struct ibv_mw *mw)
{
	int err = urn_fault_call(URN_FAULT_DEALLOC_MW, NULL);

	return err != 0 ? err : real_of(mw->context)->dealloc_mw(mw);
}

static int
fault_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	int err = about(URN_FAULT_BIND_MW, qp->context, URN_FAULT_QP, qp->handle);

	return err != 0 ? err : real_of(qp->context)->bind_mw(qp, mw, bind);
}

static struct ibv_ah *
fault_create_ah(struct ibv_pd *pd, const struct ibv_ah_attr *attr)
{
	return urn_fault_call(URN_FAULT_CREATE_AH, NULL) != 0
		       ? NULL
		       : real_of(pd->context)->create_ah(pd, attr);
}

static int
fault_destroy_ah(struct ibv_ah *ah)
{
	int err = urn_fault_call(URN_FAULT_DESTROY_AH, NULL);

	return err != 0 ? err : real_of(ah->context)->destroy_ah(ah);
}

/* ---- completion queues */

static struct ibv_comp_channel *
fault_create_comp_channel(struct ibv_context *c)
{
	return urn_fault_call(URN_FAULT_CREATE_COMP_CHANNEL, NULL) != 0
		       ? NULL
		       : real_of(c)->create_comp_channel(c);
}

static int
fault_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	int err = urn_fault_call(URN_FAULT_DESTROY_COMP_CHANNEL, NULL);

	return err != 0 ? err : real_of(channel->context)->destroy_comp_channel(channel);
}

static int
fault_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq)
{
	if (urn_fault_call(URN_FAULT_GET_CQ_EVENT, NULL) != 0)
		return -1;
	return real_of(channel->context)->get_cq_event(channel, cq);
}

static struct ibv_cq_ex *
fault_create_cq(struct ibv_context *c, const struct ibv_cq_init_attr_ex *attr)
{
	struct urn_fault_obj *o;
	struct ibv_cq_ex *cq;

	if (urn_fault_call(URN_FAULT_CREATE_CQ, NULL) != 0)
		return NULL;
	cq = real_of(c)->create_cq(c, attr);
	o = cq != NULL ? urn_fault_obj_add(c, URN_FAULT_CQ, cq, cq->handle) : NULL;
	if (o != NULL)
		urn_fault_cq_stand_in(o, cq);
	return cq;
}

static int
fault_resize_cq(struct ibv_cq *cq, uint32_t cqe)
{
	int err = about(URN_FAULT_RESIZE_CQ, cq->context, URN_FAULT_CQ, cq->handle);

	return err != 0 ? err : real_of(cq->context)->resize_cq(cq, cqe);
}

static int
fault_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	int err = about(URN_FAULT_REQ_NOTIFY_CQ, cq->context, URN_FAULT_CQ, cq->handle);

	return err != 0 ? err : real_of(cq->context)->req_notify_cq(cq, solicited_only);
}

static int
fault_destroy_cq(struct ibv_cq *cq)
{
	int err = about(URN_FAULT_DESTROY_CQ, cq->context, URN_FAULT_CQ, cq->handle);
	struct urn_fault_obj *o;

	if (err != 0)
		return err;
	o = urn_fault_obj_hold(cq->context, URN_FAULT_CQ, cq->handle);
	err = real_of(cq->context)->destroy_cq(cq);
	urn_fault_obj_end(o, err == 0);
	return err;
}

/* ---- shared receive queues */

static struct ibv_srq *
fault_create_srq(struct ibv_pd *pd, struct ibv_srq_attr *attr, const struct ibv_cq *cq)
{
	struct ibv_srq *srq;

	if (urn_fault_call(URN_FAULT_CREATE_SRQ, NULL) != 0)
		return NULL;
	srq = real_of(pd->context)->create_srq(pd, attr, cq);
	if (srq != NULL)
		(void)urn_fault_obj_add(pd->context, URN_FAULT_SRQ, srq, srq->handle);
	return srq;
}

static int
fault_modify_srq(struct ibv_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
	int err = about(URN_FAULT_MODIFY_SRQ, srq->context, URN_FAULT_SRQ, srq->handle);

	return err != 0 ? err : real_of(srq->context)->modify_srq(srq, attr, mask);
}

static int
fault_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	int err = about(URN_FAULT_QUERY_SRQ, srq->context, URN_FAULT_SRQ, srq->handle);

	return err != 0 ? err : real_of(srq->context)->query_srq(srq, attr);
}

static int
fault_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int err = about(URN_FAULT_POST_SRQ_RECV, srq->context, URN_FAULT_SRQ, srq->handle);

	if (err == 0)
		return real_of(srq->context)->post_srq_recv(srq, wr, bad);
	*bad = wr;
	return err;
}

static int
fault_destroy_srq(struct ibv_srq *srq)
{
	int err = about(URN_FAULT_DESTROY_SRQ, srq->context, URN_FAULT_SRQ, srq->handle);
	struct urn_fault_obj *o;

	if (err != 0)
		return err;
	o = urn_fault_obj_hold(srq->context, URN_FAULT_SRQ, srq->handle);
	err = real_of(srq->context)->destroy_srq(srq);
	urn_fault_obj_end(o, err == 0);
	return err;
}

/* ---- queue pairs */

static struct ibv_qp *
fault_create_qp(struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_context *c = attr->pd->context;
	struct urn_fault_obj *o;
	struct ibv_qp *qp;

	if (urn_fault_call(URN_FAULT_CREATE_QP, NULL) != 0)
		return NULL;
	qp = real_of(c)->create_qp(attr);
	o = qp != NULL ? urn_fault_obj_add(c, URN_FAULT_QP, qp, qp->qp_num) : NULL;
	if (o == NULL)
		return qp;
	o->cq[0] = attr->send_cq;
	o->cq[1] = attr->recv_cq;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		urn_fault_qp_stand_in(o, (struct ibv_qp_ex *)qp);
	return qp;
}

/* Note the state that a queue pair has got to. */
static void
qp_moved(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct urn_fault_state *s = &urn_fault_state;
	struct urn_fault_obj *o;

	pthread_mutex_lock(&s->lock);
	o = urn_fault_obj_find(qp->context, URN_FAULT_QP, qp->qp_num);
	if (o != NULL && state == IBV_QPS_RESET)
		o->flushed[0] = o->flushed[1] = o->connected = o->breaks = false;
	if (o != NULL && (state == IBV_QPS_RTR || state == IBV_QPS_RTS)) {
		o->connected = true;
		if (!s->connected)
			urn_fault_start(URN_FAULT_KILL_PEER);
		s->connected = true;
	}
	pthread_mutex_unlock(&s->lock);
}

static int
fault_modify_qp(struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	int err = about(URN_FAULT_MODIFY_QP, qp->context, URN_FAULT_QP, qp->qp_num);

	if (err == 0)
		err = real_of(qp->context)->modify_qp(qp, attr, mask);
	if (err == 0 && (mask & IBV_QP_STATE))
		qp_moved(qp, attr->qp_state);
	return err;
}

static int
fault_connect_qp(struct ibv_qp *qp, const struct ibv_qp_attr *rtr, int rtr_mask,
		 const struct ibv_qp_attr *rts, int rts_mask, enum ibv_qp_state *reached)
{
	int err = about(URN_FAULT_MODIFY_QP, qp->context, URN_FAULT_QP, qp->qp_num);

	if (err != 0)
		return err;
	err = real_of(qp->context)->connect_qp(qp, rtr, rtr_mask, rts, rts_mask, reached);
	qp_moved(qp, *reached);
	return err;
}

static int
fault_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	int err = about(URN_FAULT_QUERY_QP, qp->context, URN_FAULT_QP, qp->qp_num);

	return err != 0 ? err : real_of(qp->context)->query_qp(qp, attr, mask, init);
}

static int
fault_destroy_qp(struct ibv_qp *qp)
{
	int err = about(URN_FAULT_DESTROY_QP, qp->context, URN_FAULT_QP, qp->qp_num);
	struct urn_fault_obj *o;

	if (err != 0)
		return err;
	o = urn_fault_obj_hold(qp->context, URN_FAULT_QP, qp->qp_num);
	err = real_of(qp->context)->destroy_qp(qp);
	urn_fault_obj_end(o, err == 0);
	return err;
}

static int
fault_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int err = about(URN_FAULT_POST_SEND, qp->context, URN_FAULT_QP, qp->qp_num);

	if (err == 0)
		return real_of(qp->context)->post_send(qp, wr, bad);
	*bad = wr;
	return err;
}

static int
fault_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int err = about(URN_FAULT_POST_RECV, qp->context, URN_FAULT_QP, qp->qp_num);

	if (err == 0)
		return real_of(qp->context)->post_recv(qp, wr, bad);
	*bad = wr;
	return err;
}

/* The requests that ibv_wr_start() and so on have built are posted, or dropped, here. */
static int
fault_wr_complete(struct ibv_qp_ex *ex)
{
	struct ibv_qp *qp = &ex->qp_base;
	struct urn_fault_obj *o = urn_fault_obj_use(qp->context, URN_FAULT_QP, qp->qp_num);
	int err = urn_fault_call(URN_FAULT_POST_SEND, o);

	if (o == NULL)
		return EINVAL; /* another thread is destroying the queue pair */
	if (err != 0)
		o->real.wr_abort(ex);
	else
		err = o->real.wr_complete(ex);
	urn_fault_obj_leave(o);
	return err;
}

void
urn_fault_qp_stand_in(struct urn_fault_obj *o, struct ibv_qp_ex *qp)
{
	o->real.wr_abort = qp->wr_abort;
	o->real.wr_complete = qp->wr_complete;
	qp->wr_complete = fault_wr_complete;
}

void
urn_fault_calls_fill(struct urn_fault_ctx *f)
{
	struct urn_verbs_ops *o = &f->ops;

	o->close = fault_close;
	o->query_device = fault_query_device;
	o->query_port = fault_query_port;
	o->query_gid = fault_query_gid;
	o->get_async_event = fault_get_async_event;
	o->alloc_pd = fault_alloc_pd;
	o->dealloc_pd = fault_dealloc_pd;
	o->reg_mr = fault_reg_mr;
	o->dereg_mr = fault_dereg_mr;
	if (f->real->rereg_mr != NULL)
		o->rereg_mr = fault_rereg_mr;
	o->alloc_mw = fault_alloc_mw;
	o->dealloc_mw = fault_dealloc_mw;
	o->bind_mw = fault_bind_mw;
	o->create_ah = fault_create_ah;
	o->destroy_ah = fault_destroy_ah;
	o->create_comp_channel = fault_create_comp_channel;
	o->destroy_comp_channel = fault_destroy_comp_channel;
	o->get_cq_event = fault_get_cq_event;
	o->create_cq = fault_create_cq;
	o->resize_cq = fault_resize_cq;
	o->req_notify_cq = fault_req_notify_cq;
	o->destroy_cq = fault_destroy_cq;
	o->create_srq = fault_create_srq;
	o->modify_srq = fault_modify_srq;
	o->query_srq = fault_query_srq;
	o->post_srq_recv = fault_post_srq_recv;
	o->destroy_srq = fault_destroy_srq;
	o->create_qp = fault_create_qp;
	o->modify_qp = fault_modify_qp;
	o->connect_qp = fault_connect_qp;
	o->query_qp = fault_query_qp;
	o->post_send = fault_post_send;
	o->post_recv = fault_post_recv;
	o->destroy_qp = fault_destroy_qp;
}
