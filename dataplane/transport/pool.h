/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools of a transport: work requests, receives, and buffers that go back in bursts. (tp.c) */
#ifndef URN_TRANSPORT_POOL_H
#define URN_TRANSPORT_POOL_H

#include "transport/tp.h"

/*
 * True when a client that holds `held` entries of a pool may take one more. left: entries in the
 * pool. With this rule a client that is alone gets at most 8 of 9 entries. n clients that take all
 * they can at the same time leave one part of 8 n + 1; one after another, one in 9 to the power of
 * n.
 */
static inline bool
urn_pool_has(uint32_t left, uint32_t held)
{
	return likely(left > held / 8);
}

/* Put the next entries of a pool that were never used on its list, which is empty. (tp.c) */
void urn_work_more(struct urn_tp *tp);
void urn_ext_more(struct urn_tp *tp);
void urn_recv_more(struct urn_tp *tp);

static inline struct urn_recv *
urn_recv_get(struct urn_tp *tp, struct urn_qp *qp)
{
	struct urn_recv *r = tp->recv_free;

	if (unlikely(!urn_pool_has(tp->left.recv, qp->share->recv)))
		return NULL;
	tp->recv_free = r->next;
	if (unlikely(!tp->recv_free))
		urn_recv_more(tp);
	tp->left.recv--;
	qp->share->recv++;
	return r;
}

static inline void
urn_recv_put(struct urn_tp *tp, struct urn_qp *qp, struct urn_recv *r)
{
	r->next = tp->recv_free;
	tp->recv_free = r;
	tp->left.recv++;
	qp->share->recv--;
}

/* True when the QP has room for one more request. */
static inline bool
urn_work_room(const struct urn_tp *tp, const struct urn_qp *qp)
{
	return urn_pool_has(tp->left.work, qp->share->work);
}

static inline void
urn_work_put(struct urn_tp *tp, struct urn_qp *qp, struct urn_work *w)
{
	if (unlikely(w->state ==
		     URN_WORK_FENCED)) /* flushed: nobody waits for the fence any more */
		urn_mem_let_go(tp->cfg.mem, w->fence.mr);
	if (w->ext) {
		w->ext->next = tp->ext_free;
		tp->ext_free = w->ext;
		tp->left.ext++;
		qp->share->ext--;
	}
	w->next = tp->work_free;
	tp->work_free = w;
	tp->left.work++;
	qp->share->work--;
}

/* Get raw packet buffers from the pool. returns: false when the pool is empty (counted) */
bool urn_tp_refill(struct urn_tp *tp);
/* Give the packets in done[] back to their pools. */
void urn_tp_give_back(struct urn_tp *tp);

/* Finish with a received packet. */
static inline void
urn_tp_done(struct urn_tp *tp, struct rte_mbuf *m)
{
	tp->done[tp->done_n++] = m;
	if (unlikely(tp->done_n == URN_TP_BURST))
		urn_tp_give_back(tp);
}

#endif
