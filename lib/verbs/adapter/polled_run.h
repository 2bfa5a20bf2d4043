/* SPDX-License-Identifier: BSD-3-Clause */
/* Noting that completions are polled (polled.h), by the thread that polls, under its queue's lock.
 */
#ifndef URN_VERBS_POLLED_RUN_H
#define URN_VERBS_POLLED_RUN_H

#include "verbs/adapter/adapter.h"

/* Completions in a row, of one queue, that a poll hands out. */
struct urn_polled_run {
	uint64_t queue;	       /* QPN, and the kind of queue; 0: no completion yet */
	struct urn_polled *of; /* NULL: no such queue pair */
	uint16_t end;	       /* low bits of the index behind the newest request */
	bool recv;
};

/* Name of the queue of a completion. */
static inline uint64_t
urn_polled_queue(const struct urn_abi_cqe *cqe)
{
	return (uint64_t)cqe->qp_num << 8 | (cqe->opcode & URN_WCO_RECV) | 1;
}

/* Free the slots of a run. The completion queue's read index has been published. */
static inline void
urn_polled_end(const struct urn_polled_run *run)
{
	struct urn_polled *p = run->of;
	_Atomic uint32_t *word;
	uint32_t was;
	uint16_t ahead;

	if (p == NULL)
		return;
	word = run->recv ? &p->recv : &p->send;
	was = atomic_load_explicit(word, memory_order_relaxed);
	/* More than a queue has slots: a completion from before a reset. */
	ahead = (uint16_t)(run->end - was);
	if (ahead > URN_ABI_MAX_WR)
		return;
	/* Release: pairs with the acquire of posters; the dataplane has read the slots. */
	atomic_store_explicit(word, was + ahead, memory_order_release);
	if (run->recv && p->srq != NULL)
		atomic_fetch_add_explicit(p->srq, ahead, memory_order_release);
}

/*
 * The completion, at index `cons`, is of another queue than the run: publish what was read before,
 * and begin anew.
 */
static inline void
urn_polled_turn(struct urn_adapter_cq *cq, uint32_t cons, struct urn_polled_run *run,
		const struct urn_abi_cqe *cqe)
{
	struct urn_polled *p = cq->polled;

	if (run->queue != 0) {
		cq->cons = cons;
		/* Release: the slots may be overwritten from now on. */
		atomic_store_explicit(&cq->hdr->cons, cons, memory_order_release);
		urn_polled_end(run);
	}
	if (p == NULL || atomic_load_explicit(&p->qpn, memory_order_acquire) != cqe->qp_num)
		p = urn_polled_find(cq, cons, cqe->qp_num);
	run->queue = urn_polled_queue(cqe);
	run->of = p;
	run->recv = (cqe->opcode & URN_WCO_RECV) != 0;
}

#endif
