/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs/adapter/beside.h"

#include "verbs/adapter/poll.h"

#include <sched.h>
#include <string.h>

void
urn_beside_copy(struct urn_adapter_cq *cq, uint32_t i)
{
	struct urn_abi_cqe *cqe = &cq->cqe[i & cq->mask];
	const struct urn_abi_beside *b;

	cqe->wc_flags &= (uint8_t)~URN_WCF_BESIDE;
	if (cq->beside == NULL)
		return;
	b = &cq->beside[i & cq->mask];
	if (b->length <= sizeof(b->data))
		memcpy((void *)(uintptr_t)b->addr, b->data, b->length); // NOLINT(performance-no-int-to-ptr)
}

/* Copy all that waits in a queue. returns: false while the queue is being resized */
static bool
urn_beside_settle_cq(struct urn_adapter_cq *cq)
{
	bool there;
	uint32_t i, n;

	urn_beside_lock(cq);
	there = !cq->resizing;
	i = atomic_load_explicit(&cq->hdr->cons, memory_order_relaxed);
	for (n = 0; there && n < cq->entries && urn_cq_at(cq, i) != NULL; n++)
		urn_beside_take(cq, i++);
	urn_beside_unlock(cq);
	return there;
}

/* Copy all that waits in the queues of a context. returns: false when a queue was being resized */
static bool
urn_beside_settle_all(struct urn_ctx *ctx)
{
	bool all = true;

	pthread_mutex_lock(&ctx->objs.lock);
	for (uint32_t i = 0; i < ctx->objs.slots; i++) {
		struct urn_adapter_cq *cq = ctx->objs.slot[i].obj;

		if (ctx->objs.slot[i].kind == URN_OBJ_CQ && cq->beside != NULL)
			all = urn_beside_settle_cq(cq) && all;
	}
	pthread_mutex_unlock(&ctx->objs.lock);
	return all;
}

void
urn_beside_settle(struct urn_ctx *ctx)
{
	if (!atomic_load_explicit(&ctx->has_beside, memory_order_relaxed))
		return;
	while (!urn_beside_settle_all(ctx))
		sched_yield(); /* another thread resizes a queue, and waits for nobody */
}
