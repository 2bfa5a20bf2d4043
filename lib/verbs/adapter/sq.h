/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions on the send queue that ibv_post_send() and ibv_wr_*() share. */
#ifndef URN_VERBS_SQ_H
#define URN_VERBS_SQ_H

#include "verbs/adapter/copy.h"
#include "verbs/adapter/adapter.h"

#include <string.h>

#define URN_SEND_FLAGS ((unsigned int)(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE))

/* True when no slot is free. Reads how far the queue is polled only when the queue seems full. */
static inline bool
urn_sq_full(struct urn_adapter_sq *sq)
{
	if (URN_LIKELY(sq->prod - sq->cons < sq->cap))
		return false;
	/* Acquire: the dataplane has read the slots of requests that are polled. */
	sq->cons = atomic_load_explicit(sq->freed, memory_order_acquire);
	return sq->prod - sq->cons >= sq->cap;
}

/* The slot of the next request. */
static inline struct urn_abi_swqe *
urn_sq_slot(const struct urn_adapter_sq *sq)
{
	return (struct urn_abi_swqe *)(sq->slots + (size_t)(sq->prod & sq->mask) * sq->stride);
}

/* Publish the requests that have been written, ring, and fetch the next slot. The send queue's lock is held. */
static inline void
urn_sq_ring(struct urn_adapter_qp *qp)
{
	struct urn_adapter_sq *sq = &qp->sq;

	if (URN_UNLIKELY(qp->copy != NULL))
		urn_copy_posted(qp);
	/* Release: pairs with the dataplane's acquire of prod; the slots are written. */
	atomic_store_explicit(&sq->hdr->prod, sq->prod, memory_order_release);
	urn_dev_ring(qp->dev, qp->engine, qp->db);
	__builtin_prefetch(urn_sq_slot(sq), 1);
}

/* verbs and the ABI order the fields of an element differently. */
static inline struct urn_abi_sge
urn_sge(const struct ibv_sge *s)
{
	return (struct urn_abi_sge){.addr = s->addr, .lkey = s->lkey, .length = s->length};
}

static inline void
urn_wqe_bind(struct urn_abi_swqe *wqe, uint32_t rkey, uint32_t new_rkey, const struct ibv_mw_bind_info *info)
{
	wqe->bind.addr = info->addr;
	wqe->bind.length = info->length;
	wqe->bind.mw_rkey = rkey;
	wqe->bind.new_rkey = new_rkey;
	wqe->bind.mr_lkey = info->mr != NULL ? info->mr->lkey : 0;
	wqe->bind.access = urn_access(info->mw_access_flags);
}

#endif
