/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools of a transport: work requests, receives, and buffers that go back in bursts. (tp.c) */
#ifndef URN_TRANSPORT_POOL_H
#define URN_TRANSPORT_POOL_H

#include "transport/tp.h"

/* Put the next entries of a pool that were never used on its list, which is empty. (tp.c) */
void urn_work_more(struct urn_tp *tp);
void urn_ext_more(struct urn_tp *tp);
void urn_recv_more(struct urn_tp *tp);

static inline struct urn_recv *
urn_recv_get(struct urn_tp *tp, struct urn_qp *qp)
{
	struct urn_tp_user *user = urn_share_user(qp->share);
	struct urn_recv *r = tp->recv_free;

	if (unlikely(!urn_fair_user_has(&tp->fair_others, tp->left.recv, qp->share->recv,
					user->recv)))
		return NULL;
	tp->recv_free = r->next;
	if (unlikely(!tp->recv_free))
		urn_recv_more(tp);
	tp->left.recv--;
	qp->share->recv++;
	user->recv++;
	return r;
}

static inline void
urn_recv_put(struct urn_tp *tp, struct urn_qp *qp, struct urn_recv *r)
{
	r->next = tp->recv_free;
	tp->recv_free = r;
	tp->left.recv++;
	qp->share->recv--;
	urn_share_user(qp->share)->recv--;
}

/*
 * True when a client may take one more entry of work, if what it and its user have counts so many
 * times. The packets in flight that it left to nobody count as its own, while nobody has so many.
 * (tp.c)
 */
bool urn_work_has(const struct urn_tp *tp, struct urn_tp_share *share, uint32_t times);

/* True when the QP has room for one more request. */
static inline bool
urn_work_room(const struct urn_tp *tp, const struct urn_qp *qp)
{
	uint32_t held = urn_share_user(qp->share)->work + qp->share->orphans;

	return likely(tp->left.work > tp->fair_work.kept + held / 8) ||
	       urn_work_has(tp, qp->share, 1);
}

/* Count entries of work that a client, and its user, hold more; or fewer: a negative number. */
static inline void
urn_work_count(struct urn_tp_share *share, int32_t more)
{
	share->work += (uint32_t)more;
	urn_share_user(share)->work += (uint32_t)more;
}

/* Take an entry of work, for which there is room (urn_work_room()). */
static inline struct urn_work *
urn_work_take(struct urn_tp *tp, struct urn_qp *qp)
{
	struct urn_work *w = tp->work_free;

	tp->work_free = w->next;
	if (unlikely(!tp->work_free))
		urn_work_more(tp);
	tp->left.work--;
	urn_work_count(qp->share, 1);
	return w;
}

/* Get room for what does not fit into an entry of work. NULL: none */
static inline struct urn_work_ext *
urn_ext_get(struct urn_tp *tp, const struct urn_qp *qp)
{
	struct urn_tp_user *user = urn_share_user(qp->share);
	struct urn_work_ext *x = tp->ext_free;

	if (!urn_fair_user_has(&tp->fair_others, tp->left.ext, qp->share->ext, user->ext))
		return NULL;
	tp->ext_free = x->next;
	if (unlikely(!tp->ext_free))
		urn_ext_more(tp);
	tp->left.ext--;
	qp->share->ext++;
	user->ext++;
	return x;
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
		urn_share_user(qp->share)->ext--;
	}
	w->next = tp->work_free;
	tp->work_free = w;
	tp->left.work++;
	urn_work_count(qp->share, -1);
}

/*
 * True when one more packet may be kept for a client, ahead of its turn or until memory is free:
 * not so many are kept for the client, for its user, and for all.
 */
static inline bool
urn_kept_room(const struct urn_tp *tp, struct urn_tp_share *share)
{
	return urn_fair_user_has(&tp->fair_held, tp->left.held, share->held,
				 urn_share_user(share)->held);
}

/* Count packets that are kept for a client more; or fewer: a negative number. */
static inline void
urn_kept_count(struct urn_tp *tp, struct urn_tp_share *share, int32_t more)
{
	tp->kept += (uint32_t)more;
	tp->left.held -= (uint32_t)more;
	share->held += (uint32_t)more;
	urn_share_user(share)->held += (uint32_t)more;
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
