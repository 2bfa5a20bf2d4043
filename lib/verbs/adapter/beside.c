/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs/adapter/beside.h"

#include "verbs/adapter/poll.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/*
 * Copy by the kernel: a program may have unmapped memory and tell only now that it is not to be
 * used any more; the bytes then go nowhere, as they would with an adapter that pins pages.
 */
static void
urn_beside_copy_safely(const struct urn_abi_beside *b)
{
	struct iovec from = {(void *)(uintptr_t)b->data,
			     b->length}; // NOLINT(performance-no-int-to-ptr)
	struct iovec to = {(void *)(uintptr_t)b->addr,
			   b->length}; // NOLINT(performance-no-int-to-ptr)

	if (process_vm_writev(getpid(), &from, 1, &to, 1, 0) < 0 && errno != EFAULT)
		memcpy(to.iov_base, b->data, b->length); /* a container forbids the call */
}

void
urn_beside_copy(struct urn_adapter_cq *cq, uint32_t i, bool polled)
{
	struct urn_abi_cqe *cqe = &cq->cqe[i & cq->mask];
	const struct urn_abi_beside *b;

	cqe->wc_flags &= (uint8_t)~URN_WCF_BESIDE;
	if (cq->beside == NULL)
		return;
	b = &cq->beside[i & cq->mask];
	if (b->length > sizeof(b->data))
		return;
	if (polled)
		memcpy((void *)(uintptr_t)b->addr, b->data,
		       b->length); // NOLINT(performance-no-int-to-ptr)
	else
		urn_beside_copy_safely(b);
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
		urn_beside_take(cq, i++, false);
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
