/* SPDX-License-Identifier: BSD-3-Clause */
/* The reliable connected service: requester and responder of a QP under one roof (service.h). */
#include "transport/ack.h"
#include "transport/act.h"
#include "transport/back.h"
#include "transport/frame.h"
#include "transport/from_peer.h"
#include "transport/qp_end.h"
#include "transport/requester.h"
#include "transport/responder.h"
#include "transport/sched.h"
#include "transport/service.h"
#include "wire/ecn.h"

/* ---- receiving */

/* True when a switch on the way had a long queue. */
static inline bool
is_marked(struct rte_mbuf *m)
{
	const struct urn_pkt *p = urn_pkt(m);

	return urn_ecn_get(rte_pktmbuf_mtod_offset(m, const uint8_t *, p->l3_off), p->ipv6) ==
	       URN_ECN_CE;
}

/*
 * Drop m as if the wire had lost it: packets that wait for slow memory must leave packet buffers to
 * others. But the packet is asked for again as soon as there is room, because a QP may have no
 * timer.
 * returns: true when m was dropped
 */
static __attribute__((cold, noinline)) bool
drop_gated(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	const struct urn_pkt *p = urn_pkt(m);

	if (p->op->flags & URN_OPF_REQUEST) {
		/*
		 * A packet that we asked for is taken, or else it might be dropped each time: a
		 * requester goes back to a packet once, until there is progress. A repeat needs no
		 * memory, and its peer may have no timer to ask for the answer once more.
		 */
		if (urn_ack_was_asked_for(&qp->rx, p->psn) || urn_resp_must_answer(qp, m))
			return false;
		urn_resp_missed(tp, qp, p->psn);
	} else if ((p->op->flags & URN_OPF_ACK) ||
		   urn_psn_diff(p->psn, qp->tx.next) >= 0 || urn_repair_asked(tp, qp, p->psn)) {
		return false; /* needs no memory, answers nothing that was sent, or was asked for again */
	} else if (qp->state == URN_QPS_RTS || qp->state == URN_QPS_SQD) {
		/* Each of several responses is asked for: there may be none behind the last to show the loss. */
		if (!urn_repair_missed(tp, qp, p->psn))
			qp->tx.flags |= URN_TXF_MISSED;
		urn_tp_sched(tp, qp);
	}
	urn_tp_drop(tp, m, URN_C_DROP_MEMORY);
	return true;
}

static URN_FAST void
accept_packet(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	const struct urn_opcode *op = urn_pkt(m)->op;

	if (unlikely(!urn_qp_from_peer(qp, m))) {
		urn_tp_drop(tp, m, URN_C_DROP_PEER);
		return;
	}
	if (unlikely(is_marked(m)))
		urn_congestion_marked(tp, qp);
	if (unlikely(urn_opcode_reserved(op)) && urn_psn_diff(urn_pkt(m)->psn, qp->rx.epsn) < 0)
		/* Behind its turn: no packet of this kind was ever accepted. In its turn such a packet is refused. */
		urn_tp_drop(tp, m, URN_C_DROP_QP_TYPE);
	else if (unlikely(urn_tp_gated(tp, qp)) && drop_gated(tp, qp, m))
		return;
	else if (op->flags & URN_OPF_REQUEST)
		urn_resp_accept(tp, qp, m);
	else if (likely(qp->state == URN_QPS_RTS || qp->state == URN_QPS_SQD))
		urn_comp_accept(tp, qp, m);
	else
		urn_tp_drop(tp, m, URN_C_DROP_QP_STATE);
}

static void
notified(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	if (!urn_qp_from_peer(qp, m)) {
		urn_tp_drop(tp, m, URN_C_DROP_PEER);
		return;
	}
	urn_congestion_notified(tp, qp);
	urn_tp_drop(tp, m, URN_C_CNP_RX);
}

static void
finish_packet(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	if (urn_pkt(m)->action <= URN_ACT_DUP_ATOMIC)
		urn_resp_finish(tp, qp, m);
	else
		urn_comp_finish(tp, qp, m);
}

/* ---- sending */

/*
 * Check a READ or atomic by the rules of RC (IBTA 10.8.2, table of operations). The remote address
 * is left to the responder: it refuses an atomic that is not 8-byte aligned with an invalid request
 * NAK (IBTA 9.4.5.2, 9.7.5.2.8).
 */
static uint8_t
check_fetch(const struct urn_qp *qp, const struct urn_work *w)
{
	if (qp->tx.max_fetch == 0 || (w->flags & URN_WRF_INLINE))
		return URN_WC_LOC_QP_OP_ERR;
	return (w->kind & URN_WK_ATOMIC) && w->length != 8 ? URN_WC_LOC_LEN_ERR : URN_WC_SUCCESS;
}

/*
 * Serve a QP whose program has too many foreign-memory operations in flight: acknowledgements only.
 * The QP is looked at again and again until the gate opens.
 */
static __attribute__((noinline)) bool
serve_gated(struct urn_tp *tp, struct urn_qp *qp)
{
	/* A request that was dropped is asked for when the gate opens, not before. */
	bool data = qp->rec_pending || (qp->flags & URN_QPF_PARTS) || urn_ack_gap_is_owed(&qp->rx);
	bool more = data || qp->tx.cur.work || urn_sq_ready(&qp->sq) || qp->tx.repair ||
		    (qp->tx.flags & (URN_TXF_PROBE | URN_TXF_MISSED));

	if (!data && urn_resp_owes(qp))
		more |= urn_resp_tx(tp, qp, 1);
	return more && urn_tp_again(tp, qp);
}

static bool
transmit_now(struct urn_tp *tp, struct urn_qp *qp, unsigned int budget)
{
	bool more;

	if (unlikely(urn_tp_gated(tp, qp)))
		return serve_gated(tp, qp);
	if (unlikely(qp->tx.flags & URN_TXF_MISSED)) {
		qp->tx.flags &= (uint16_t)~URN_TXF_MISSED;
		if (!urn_psn_tx_idle(&qp->tx) && !(qp->tx.flags & URN_TXF_RNR_WAIT)) {
			urn_req_go_back(tp, qp);
			qp->tx.flags |= URN_TXF_OWN_BACK;
		}
	}
	more = urn_resp_owes(qp) && urn_resp_tx(tp, qp, budget);
	if ((qp->state == URN_QPS_RTS || qp->state == URN_QPS_SQD) && likely(!(qp->flags & URN_QPF_HOLD)))
		more |= urn_req_tx(tp, qp, budget);
	return more;
}

/* Serve a QP that saw congestion: notify its peer of marks, and send data at the QP's rate. */
static __attribute__((noinline)) bool
transmit_paced(struct urn_tp *tp, struct urn_qp *qp, unsigned int budget)
{
	unsigned int frames;
	uint64_t built;
	bool more;

	if (!urn_congestion_send_cnp(tp, qp))
		return true;
	if (!urn_congestion_open(tp, qp))
		/* An acknowledgement is no data, but must not overtake responses that are. */
		return !qp->rec_pending && !(qp->flags & URN_QPF_PARTS) && urn_resp_owes(qp) &&
		       urn_resp_tx(tp, qp, 1);
	built = tp->built;
	frames = urn_congestion_frames(tp, &qp->congestion, qp->mtu, budget);
	if (frames < budget)
		urn_ack_ask_within(&qp->tx, frames);
	more = transmit_now(tp, qp, frames);
	urn_congestion_sent(tp, qp, (uint32_t)(tp->built - built));
	return more;
}

static URN_FAST bool
transmit(struct urn_tp *tp, struct urn_qp *qp, unsigned int budget)
{
	if (unlikely(!urn_qp_reachable(tp, qp)))
		return false;
	if (unlikely(tp->sched.stopped) && !(qp->flags & URN_QPF_LOOP) &&
	    urn_sched_stops(tp, &qp->source, &qp->tmpl))
		return false;
	return unlikely(qp->congestion) ? transmit_paced(tp, qp, budget)
					: transmit_now(tp, qp, budget);
}

static bool
flush(struct urn_tp *tp, struct urn_qp *qp, unsigned int budget)
{
	bool more = urn_resp_owes(qp) && urn_qp_reachable(tp, qp) && urn_resp_tx(tp, qp, budget);

	return urn_qp_flush(tp, qp, budget) || more;
}

static void
unreadable(struct urn_tp *tp, const struct urn_txd *d)
{
	if (d->action == URN_ACT_TX_RESPONSE)
		urn_resp_cut(tp, d->qp, d->psn, URN_NAK_OP);
	else
		urn_req_unreadable(tp, d->qp, d->psn);
}

static void
stop(struct urn_tp *tp, struct urn_qp *qp, bool gone)
{
	if (gone)
		urn_resp_last_ack(tp, qp);
	urn_resp_drop_kept(tp, qp);
	urn_repair_end(tp, qp);
	urn_peer_untime(tp, &qp->tx);
	urn_congestion_end(tp, qp);
}

const struct urn_service urn_rc = {
	.name = "RC",
	.offered = true,
	.opcodes = URN_OPF_RC,
	.checked = URN_WK_FETCH,
	.reads_on = true,
	.in_order = true,
	.moves = urn_rc_moves,
	.accept = accept_packet,
	.notified = notified,
	.finish = finish_packet,
	.check = check_fetch,
	.transmit = transmit,
	.flush = flush,
	.valid = urn_resp_valid,
	.unreadable = unreadable,
	.due = urn_req_timer,
	.owes = urn_resp_owes,
	.fail = urn_qp_error,
	.stop = stop,
};
