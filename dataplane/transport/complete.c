/* SPDX-License-Identifier: BSD-3-Clause */
/* Completions, events, and taking receives. */
#include "transport/complete.h"
#include "transport/pool.h"

void
urn_tp_event(struct urn_tp *tp, uint32_t type, uint32_t handle, uint64_t cookie,
	     struct urn_tp_share *owner)
{
	if (unlikely(tp->event_n == URN_TP_OUT && tp->cfg.take_events))
		tp->cfg.take_events(tp->cfg.give_ctx);
	if (unlikely(tp->event_n == URN_TP_OUT)) {
		URN_COUNT(tp, EVENT_LOST);
		return;
	}
	tp->event[tp->event_n++] = (struct urn_tp_event){
		.ev = {.type = type, .handle = handle, .cookie = cookie},
		.owner = owner,
	};
}

void
urn_qp_event(struct urn_tp *tp, struct urn_qp *qp, uint32_t type)
{
	urn_tp_event(tp, type, qp->qpn, qp->cookie, qp->share);
}

void
urn_qp_established(struct urn_tp *tp, struct urn_qp *qp)
{
	if (qp->flags & URN_QPF_COMM_EST)
		return;
	qp->flags |= URN_QPF_COMM_EST;
	urn_qp_event(tp, qp, URN_EVENT_COMM_EST);
}

/* A completion finds no room: give one event of the queue, and let its QPs fail. */
static __attribute__((noinline)) void
overrun(struct urn_tp *tp, struct urn_cq *cq)
{
	URN_COUNT(tp, CQ_OVERRUN);
	urn_tp_cq_break(tp, cq);
}

void
urn_tp_cq_break(struct urn_tp *tp, struct urn_cq *cq)
{
	if (__atomic_exchange_n(&cq->overrun, true, __ATOMIC_RELAXED))
		return;
	/* Another engine may own the queue: its share is not touched here. */
	urn_tp_event(tp, URN_EVENT_CQ_ERR, cq->handle, cq->cookie,
		     urn_share_on(cq->owner, tp->cfg.engine));
	if (tp->cfg.cq_broken)
		tp->cfg.cq_broken(tp->cfg.give_ctx, cq);
}

/* Write a completion to a queue that has room. */
static inline __attribute__((always_inline)) void
put(struct urn_tp *tp, struct urn_cq *cq, const struct urn_abi_cqe *cqe, bool solicited,
    _Atomic uint32_t *mark, uint32_t after)
{
	if (unlikely(cqe->wc_flags & URN_WCF_BESIDE)) {
		urn_cq_put_beside(cq, tp->beside.to, tp->beside.data, tp->beside.len);
		URN_COUNT(tp, BESIDE);
	}
	urn_cq_put(cq, cqe, mark, after);
	if (likely(cq->channel_fd < 0))
		return;
	cq->solicited |= solicited || cqe->status != URN_WC_SUCCESS;
	if (!cq->touched) {
		cq->touched = true;
		cq->next = tp->touched;
		tp->touched = cq;
	}
}

void
urn_tp_cqe_handed(struct urn_tp *tp, const struct urn_tp_xcqe *x)
{
	_Atomic uint32_t *mark = x->mark;
	struct urn_abi_cqe cqe = x->cqe;

	/* The queue may have been reset meanwhile: its mark must not go back. */
	if (mark && (int32_t)(x->after - atomic_load_explicit(mark, memory_order_relaxed)) <= 0)
		mark = NULL;
	/* The slot was claimed; but the client's index may be wrong since. */
	if (cqe.status != URN_TP_NO_CQE && likely(urn_cq_room(x->cq))) {
		cqe.wqe = (uint16_t)(x->after - 1);
		put(tp, x->cq, &cqe, x->solicited, mark, x->after);
		return;
	}
	if (cqe.status != URN_TP_NO_CQE)
		overrun(tp, x->cq);
	if (mark)
		atomic_store_explicit(mark, x->after, memory_order_release);
}

/* Hand a completion to the engine that owns the queue. */
static __attribute__((noinline)) void
give(struct urn_tp *tp, struct urn_cq *cq, struct urn_abi_cqe cqe, bool solicited,
     _Atomic uint32_t *mark, uint32_t after)
{
	struct urn_tp_xcqe x = {
		.cq = cq, .cqe = cqe, .mark = mark, .after = after, .solicited = solicited};

	tp->cfg.give_cqe(tp->cfg.give_ctx, &x);
}

/* A completion finds no room: move the client's index of the queue all the same, because the request is over. */
static __attribute__((cold, noinline)) bool
lose(struct urn_tp *tp, struct urn_cq *cq, _Atomic uint32_t *mark, uint32_t after)
{
	const struct urn_abi_cqe none = {.status = URN_TP_NO_CQE};

	overrun(tp, cq);
	if (!mark)
		return false;
	if (cq->engine == tp->cfg.engine)
		atomic_store_explicit(mark, after, memory_order_release);
	else
		give(tp, cq, none, false, mark, after); /* behind the completions on their way */
	return false;
}

URN_FAST bool
urn_tp_cqe(struct urn_tp *tp, struct urn_cq *cq, const struct urn_abi_cqe *cqe, bool solicited,
	   _Atomic uint32_t *mark, uint32_t after)
{
	URN_COUNT(tp, CQE);
	if (unlikely(cqe->status != URN_WC_SUCCESS))
		URN_COUNT(tp, CQE_ERR);
	if (unlikely(__atomic_load_n(&cq->overrun, __ATOMIC_RELAXED) ||
		     !(cq->shared ? urn_cq_claim(cq) : urn_cq_room(cq))))
		return lose(tp, cq, mark, after);
	if (likely(cq->engine == tp->cfg.engine)) {
		put(tp, cq, cqe, solicited, mark, after);
	} else {
		URN_COUNT(tp, HANDOVER_CQE);
		give(tp, cq, *cqe, solicited, mark, after);
	}
	return true;
}

URN_FAST void
urn_tp_retire_quietly(struct urn_tp *tp, struct urn_qp *qp, uint32_t n)
{
	const struct urn_abi_cqe none = {.status = URN_TP_NO_CQE};

	if (likely(qp->send_cq->engine == tp->cfg.engine)) {
		urn_sq_retire(&qp->sq, n);
		return;
	}
	/* Behind the completions that are on their way: cons of the queue never goes back. */
	qp->sq.retired += n;
	give(tp, qp->send_cq, none, false, &qp->sq.hdr->cons, qp->sq.retired);
}

void
urn_qp_recv_done(struct urn_tp *tp, struct urn_qp *qp, uint64_t wr_id, uint8_t status,
		 uint8_t vendor_err, uint32_t byte_len, uint8_t opcode, uint8_t wc_flags,
		 uint32_t imm, uint32_t src_qp, bool solicited)
{
	const struct urn_abi_cqe cqe = {
		.wr_id = wr_id,
		.byte_len = byte_len,
		.imm = imm,
		.qp_num = qp->qpn,
		.src_qp = src_qp,
		.vendor_err = vendor_err,
		.status = status,
		.opcode = opcode,
		.wc_flags = wc_flags,
	};

	if (unlikely(!urn_tp_cqe(tp, qp->recv_cq, &cqe, solicited, urn_rq_mark(&qp->rq),
				 urn_rq_did(&qp->rq))))
		urn_qp_cqe_lost(tp, qp);
}

/* Give one event when fewer receives are left than the limit (IBTA 10.2.9.1). */
static void
check_limit(struct urn_tp *tp, struct urn_srq *srq)
{
	if (likely(!srq->limit) || urn_rq_count(&srq->rq) >= srq->limit)
		return;
	srq->limit = 0;
	urn_tp_event(tp, URN_EVENT_SRQ_LIMIT, srq->handle, srq->cookie, srq->owner);
}

URN_FAST struct urn_recv *
urn_qp_take_recv(struct urn_tp *tp, struct urn_qp *qp, bool *bad, uint64_t *wr_id)
{
	struct urn_rq *rq = qp->srq ? &qp->srq->rq : &qp->rq;
	struct urn_recv *r;

	*bad = false;
	if (!urn_rq_ready(rq))
		return NULL;
	r = qp->srq && urn_rq_taken_full(&qp->rq) ? NULL : urn_recv_get(tp, qp);
	if (unlikely(!r)) {
		URN_COUNT(tp, NO_WORK);
		return NULL;
	}

	bool ok = urn_rq_take(rq, r, qp->qpn, &qp->rq);

	*wr_id = r->wr_id;
	if (qp->srq)
		check_limit(tp, qp->srq);
	if (unlikely(!ok)) {
		URN_COUNT(tp, BAD_WQE);
		urn_recv_put(tp, qp, r);
		*bad = true;
		return NULL;
	}
	return r;
}
