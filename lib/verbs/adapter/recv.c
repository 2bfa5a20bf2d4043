/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting receive requests, to a QP's own queue or to a shared one. */
#include "verbs/adapter/adapter.h"

#include <errno.h>

void
urn_rq_map(struct urn_adapter_rq *rq, const struct urn_dev *dev, uint64_t off, uint32_t entries,
	   uint32_t stride, const _Atomic uint32_t *freed)
{
	rq->hdr = urn_dev_at(dev, off);
	rq->slots = urn_dev_at(dev, off + URN_ABI_WQ_SLOTS);
	rq->mask = entries - 1;
	rq->stride = stride;
	rq->freed = freed;
}

void
urn_rq_reload(struct urn_adapter_rq *rq)
{
	rq->prod = atomic_load_explicit(&rq->hdr->prod, memory_order_relaxed);
	rq->cons = atomic_load_explicit(rq->freed, memory_order_acquire);
}

/* Receives of an SRQ that were polled, and surely taken: those lost with a queue pair are a guess.
 */
static inline uint32_t
urn_rq_taken(const struct urn_adapter_rq *rq, uint32_t polled)
{
	uint32_t taken = atomic_load_explicit(&rq->hdr->cons, memory_order_acquire);

	return (int32_t)(taken - polled) < 0 ? taken : polled;
}

static inline bool
urn_rq_full(struct urn_adapter_rq *rq)
{
	if (URN_LIKELY(rq->prod - rq->cons < rq->cap))
		return false;
	/* Acquire: the dataplane has read the slots of requests that are polled. */
	rq->cons = atomic_load_explicit(rq->freed, memory_order_acquire);
	if (rq->shared)
		rq->cons = urn_rq_taken(rq, rq->cons);
	return rq->prod - rq->cons >= rq->cap;
}

static inline int
urn_rq_put(struct urn_adapter_rq *rq, const struct ibv_recv_wr *wr)
{
	struct urn_abi_rwqe *wqe;
	struct urn_abi_sge *to;
	int i;

	if (URN_UNLIKELY((uint32_t)wr->num_sge > rq->max_sge))
		return EINVAL;
	if (URN_UNLIKELY(urn_rq_full(rq)))
		return ENOMEM;
	wqe = (struct urn_abi_rwqe *)(rq->slots + (size_t)(rq->prod & rq->mask) * rq->stride);
	wqe->wr_id = wr->wr_id;
	wqe->num_sge = (uint32_t)wr->num_sge;
	wqe->taker = 0;
	to = (struct urn_abi_sge *)(wqe + 1);
	for (i = 0; i < wr->num_sge; i++) {
		to[i].addr = wr->sg_list[i].addr;
		to[i].lkey = wr->sg_list[i].lkey;
		to[i].length = wr->sg_list[i].length;
	}
	rq->prod++;
	return 0;
}

/* Post a list. returns: 0, or an errno value with *bad the first that was not posted */
static URN_FAST int
urn_rq_post(struct urn_adapter_rq *rq, const struct urn_dev *dev, struct ibv_recv_wr *wr,
	    struct ibv_recv_wr **bad)
{
	int err = 0;

	urn_lock_take(&rq->lock);
	if (URN_UNLIKELY(!rq->ok)) {
		err = urn_dev_refusal(dev);
		*bad = wr;
		wr = NULL;
	}
	for (; wr != NULL; wr = wr->next) {
		err = urn_rq_put(rq, wr);
		if (URN_UNLIKELY(err != 0)) {
			*bad = wr;
			break;
		}
	}
	/* Release: pairs with the dataplane's acquire of prod; the slots are written. */
	if (rq->hdr != NULL)
		atomic_store_explicit(&rq->hdr->prod, rq->prod, memory_order_release);
	urn_lock_give(&rq->lock);
	return err;
}

int
urn_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct urn_adapter_qp *qp = urn_qp(ibqp);
	int err = urn_rq_post(&qp->rq, qp->dev, wr, bad);

	/* ring is set in the error state only: the dataplane flushes the receives that are posted. */
	if (qp->rq.hdr != NULL &&
	    URN_UNLIKELY(atomic_load_explicit(&qp->rq.hdr->ring, memory_order_relaxed) != 0))
		urn_dev_ring(qp->dev, qp->engine, qp->db);
	return err;
}

int
urn_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return urn_rq_post(&urn_srq(srq)->rq, urn_ctx_dev(srq->context), wr, bad);
}
