/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues; recv.c posts to them. */
#include "verbs/adapter/adapter.h"

#include <stdlib.h>

/* Take over the queue that the dataplane made. */
static void
urn_srq_setup(struct urn_adapter_srq *srq, const struct urn_dev *dev, const struct urn_abi_rep *rep,
	      const struct ibv_srq_attr *attr)
{
	srq->ibv.handle = rep->handle;
	srq->rq.cap = rep->queue.entries;
	srq->rq.max_sge = attr->max_sge;
	srq->rq.shared = true;
	/* A slot can be used again once as many receives are polled: they complete in any order. */
	urn_rq_map(&srq->rq, dev, rep->queue.off, rep->queue.entries, rep->queue.stride,
		   &srq->polled);
	atomic_store(&srq->polled, atomic_load(&srq->rq.hdr->cons));
	urn_rq_reload(&srq->rq);
	urn_lock_take(&srq->rq.lock);
	srq->rq.ok = urn_dev_gone(dev) == URN_DEV_THERE;
	urn_lock_give(&srq->rq.lock);
}

/* cq: its engine is to own the queue; NULL: any engine */
struct ibv_srq *
urn_create_srq(struct ibv_pd *pd, struct ibv_srq_attr *attr, const struct ibv_cq *cq)
{
	struct urn_abi_req req = {.op = URN_CTL_CREATE_SRQ};
	struct urn_ctx *ctx = urn_ctx(pd->context);
	struct urn_adapter_srq *srq = urn_object_alloc(sizeof(*srq));
	struct urn_abi_rep rep;

	if (srq == NULL)
		return NULL;
	srq->ticket = urn_objs_put(&ctx->objs, URN_OBJ_SRQ, srq);
	if (srq->ticket == 0)
		goto err_free;
	req.create_srq.pd = pd->handle;
	req.create_srq.max_wr = attr->max_wr;
	req.create_srq.max_sge = attr->max_sge;
	req.create_srq.limit = 0; /* verbs: armed by ibv_modify_srq() only */
	req.create_srq.cq_hint = cq != NULL ? cq->handle : 0;
	req.create_srq.cookie = srq->ticket;
	if (urn_dev_call(&ctx->dev, &req, &rep) != 0)
		goto err_take;
	urn_srq_setup(srq, &ctx->dev, &rep, attr);
	attr->max_wr = rep.queue.entries;
	return &srq->ibv;

err_take:
	urn_objs_take(&ctx->objs, srq->ticket);
err_free:
	free(srq);
	return NULL;
}

int
urn_modify_srq(struct ibv_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
	struct urn_abi_req req = {.op = URN_CTL_MODIFY_SRQ, .handle = srq->handle};
	struct urn_abi_rep rep;

	req.modify_srq.set_limit = (mask & IBV_SRQ_LIMIT) != 0;
	req.modify_srq.limit = attr->srq_limit;
	return urn_dev_call(urn_ctx_dev(srq->context), &req, &rep);
}

int
urn_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	struct urn_abi_req req = {.op = URN_CTL_QUERY_SRQ, .handle = srq->handle};
	struct urn_abi_rep rep;
	int err = urn_dev_call(urn_ctx_dev(srq->context), &req, &rep);

	if (err != 0)
		return err;
	attr->max_wr = rep.srq_attr.max_wr;
	attr->max_sge = rep.srq_attr.max_sge;
	attr->srq_limit = rep.srq_attr.limit;
	return 0;
}

int
urn_destroy_srq(struct ibv_srq *ibsrq)
{
	struct urn_ctx *ctx = urn_ctx(ibsrq->context);
	struct urn_adapter_srq *srq = urn_srq(ibsrq);
	int err = urn_dev_call_handle(&ctx->dev, URN_CTL_DESTROY_SRQ, ibsrq->handle);

	if (err != 0)
		return err;
	urn_objs_take(&ctx->objs, srq->ticket);
	urn_events_wait(&ctx->dev, &ibsrq->mutex, &ibsrq->cond, &ibsrq->events_completed, srq->async_got);
	return 0;
}
