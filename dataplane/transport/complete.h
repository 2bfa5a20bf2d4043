/* SPDX-License-Identifier: BSD-3-Clause */
/* Completions, receives and events. (complete.c) */
#ifndef URN_TRANSPORT_COMPLETE_H
#define URN_TRANSPORT_COMPLETE_H

#include "transport/sched.h"
#include "transport/tp.h"

/* mark, after: as in urn_cq_put(). returns: false when the queue has no room and the completion is
 * lost */
bool urn_tp_cqe(struct urn_tp *tp, struct urn_cq *cq, const struct urn_abi_cqe *cqe, bool solicited,
		_Atomic uint32_t *mark, uint32_t after);
/* n more send requests are done, without a completion. */
void urn_tp_retire_quietly(struct urn_tp *tp, struct urn_qp *qp, uint32_t n);

/* urn_tp_cqe(), in line where there is nothing but a completion to write. */
static inline __attribute__((always_inline)) bool
urn_tp_cqe_inline(struct urn_tp *tp, struct urn_cq *cq, const struct urn_abi_cqe *cqe,
		  bool solicited, _Atomic uint32_t *mark, uint32_t after)
{
	if (unlikely(cqe->status != URN_WC_SUCCESS || (cqe->wc_flags & URN_WCF_BESIDE) ||
		     cq->engine != tp->cfg.engine || cq->channel_fd >= 0 || cq->overrun ||
		     cq->shared || !urn_cq_room(cq))) {
		/* A copy, so that the caller's *cqe has no address, and stays in registers. */
		const struct urn_abi_cqe copy = *cqe;

		return urn_tp_cqe(tp, cq, &copy, solicited, mark, after);
	}
	URN_COUNT(tp, CQE);
	urn_cq_put(cq, cqe, mark, after);
	return true;
}

/*
 * A completion of the QP was lost. The QP goes to the error state when it is served next, because
 * the caller is at work on it.
 */
static inline void
urn_qp_cqe_lost(struct urn_tp *tp, struct urn_qp *qp)
{
	if (qp->state == URN_QPS_ERR)
		return;
	qp->flags |= URN_QPF_CQ_BROKEN;
	urn_tp_sched(tp, qp);
}

/* The peer's first message to a QP in RTR: the connection is established (IBTA 11.6.3.1). */
void urn_qp_established(struct urn_tp *tp, struct urn_qp *qp);
void urn_qp_event(struct urn_tp *tp, struct urn_qp *qp, uint32_t type);
/* Write the receive completion of a QP. */
void urn_qp_recv_done(struct urn_tp *tp, struct urn_qp *qp, uint64_t wr_id, uint8_t status,
		      uint8_t vendor_err, uint32_t byte_len, uint8_t opcode, uint8_t wc_flags,
		      uint32_t imm, uint32_t src_qp, bool solicited);
/* Take a receive of the QP or its SRQ. NULL: none is posted (*bad 0) or the queue is broken (*bad
 * 1). */
struct urn_recv *urn_qp_take_recv(struct urn_tp *tp, struct urn_qp *qp, bool *bad, uint64_t *wr_id);

/*
 * Protection domain that the keys in a QP's receives must have: that of its shared receive queue,
 * if it has one (IBTA 10.2.9).
 */
static inline uint32_t
urn_qp_recv_pd(const struct urn_qp *qp)
{
	return unlikely(qp->srq != NULL) ? qp->srq->pd : qp->pd;
}

#endif
