/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions on a completion queue that the files share which read, clean and resize it. */
#ifndef URN_VERBS_POLL_H
#define URN_VERBS_POLL_H

#include "verbs/adapter/adapter.h"

/* The phase that completions have in the lap of index `i`. */
static inline uint8_t
urn_cq_phase(const struct urn_adapter_cq *cq, uint32_t i)
{
	return (i & cq->entries) == 0;
}

/* The completion at index `i`, or NULL when it has not been written yet. */
static inline struct urn_abi_cqe *
urn_cq_at(const struct urn_adapter_cq *cq, uint32_t i)
{
	struct urn_abi_cqe *cqe = &cq->cqe[i & cq->mask];

	/* Acquire: pairs with the dataplane's release of the phase; the other fields are there
	 * then. */
	if (atomic_load_explicit(&cqe->phase, memory_order_acquire) != urn_cq_phase(cq, i))
		return NULL;
	return cqe;
}

/* Publish the read index. Release: the slots may be overwritten from now on. */
static inline void
urn_cq_publish(struct urn_adapter_cq *cq)
{
	atomic_store_explicit(&cq->hdr->cons, cq->cons, memory_order_release);
}

static inline void
urn_cq_lock(struct urn_adapter_cq *cq)
{
	if (!cq->single)
		urn_lock_take(&cq->lock);
}

static inline void
urn_cq_unlock(struct urn_adapter_cq *cq)
{
	if (!cq->single)
		urn_lock_give(&cq->lock);
}

/* Arm a queue; its lock is held. returns: 0 or an errno value (poll.c) */
int urn_cq_arm(struct urn_adapter_cq *cq, enum urn_abi_cq_arm arm);

#endif
