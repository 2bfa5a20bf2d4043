/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that came beside their completions (lib/abi/queue.h): the library copies them to the
 * memory of their receives. The thread that polls the completion does it; and one that takes
 * the memory, the queue pair or the queue away does it for all completions that nobody has polled.
 *
 * The lock `beside_lock` of such a queue is held while a message is copied, while the index is
 * published that lets the dataplane write the element again, and while the queue is replaced. A
 * thread that takes memory away does so perhaps in the middle of an extended poll of its own, which
 * holds the queue's lock: so this lock is another one, taken after it.
 */
#ifndef URN_VERBS_BESIDE_H
#define URN_VERBS_BESIDE_H

#include "verbs/adapter/adapter.h"

static inline void
urn_beside_lock(struct urn_adapter_cq *cq)
{
	if (URN_UNLIKELY(cq->beside != NULL))
		urn_lock_take(&cq->beside_lock);
}

static inline void
urn_beside_unlock(struct urn_adapter_cq *cq)
{
	if (URN_UNLIKELY(cq->beside != NULL))
		urn_lock_give(&cq->beside_lock);
}

/*
 * Copy the message beside the completion in slot i & mask; without the memory, which the program
 * unmapped, the completion gets an error. The queue's beside_lock is held.
 */
void urn_beside_copy(struct urn_adapter_cq *cq, uint32_t i);

/* Do so if there is one. The queue's beside_lock is held. */
static inline void
urn_beside_take(struct urn_adapter_cq *cq, uint32_t i)
{
	if (URN_UNLIKELY(cq->cqe[i & cq->mask].wc_flags & URN_WCF_BESIDE))
		urn_beside_copy(cq, i);
}

/* Copy all messages that wait in a context's queues: memory of the program may go afterwards. */
void urn_beside_settle(struct urn_ctx *ctx);

#endif
