/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unreliable connections. Requests are cut into packets as on RC, but nobody acknowledges them: a
 * request is complete when its last frame has gone. Frames of a QP go in order, so that tx.una
 * counts the frames that have gone, and urn_req_retire() serves UC as it serves RC.
 */
#include "transport/act.h"
#include "transport/complete.h"
#include "transport/frame.h"
#include "transport/part.h"
#include "transport/put_ext.h"
#include "transport/qp_end.h"
#include "transport/requester.h"
#include "transport/sched.h"
#include "transport/service.h"
#include "transport/uc.h"
#include "transport/uc_hold.h"

#include "memory/copy.h"

/* ---- the peer's MAC address */

/* Look up the peer's MAC address. returns: 0; -1: wait; -2: nobody answers for the address */
static int
resolve(struct urn_tp *tp, struct urn_qp *qp)
{
	uint8_t mac[6];
	int rc;

	if (likely((qp->flags & URN_QPF_MAC) && qp->mac_gen == tp->mac_gen) || !tp->cfg.neigh ||
	    (qp->flags & URN_QPF_LOOP))
		return 0;
	rc = tp->cfg.neigh(tp->cfg.neigh_ctx, qp->av.dgid, mac);
	qp->flags &= ~(uint32_t)URN_QPF_MAC;
	if (rc != 0)
		return rc;
	memcpy(qp->tmpl.bytes, mac, 6);
	qp->mac_gen = tp->mac_gen;
	qp->flags |= URN_QPF_MAC;
	return 0;
}

/*
 * Nobody answers for the peer's address: the rest of the request is lost, as on the wire.
 * Frames of it that wait for memory go first. returns: true when more is to be done
 */
static bool
lose(struct urn_tp *tp, struct urn_qp *qp, struct urn_work *w)
{
	if (qp->tx.una != qp->tx.cur.psn || qp->tx.head != w)
		return false; /* sent() lets the QP be served again */
	URN_COUNT(tp, DROP_NO_NEIGH);
	qp->tx.una = qp->tx.next = urn_psn_add(w->first_psn, w->npsn);
	w->state = URN_WORK_SENT;
	urn_req_retire(tp, qp);
	return true;
}

/* ---- sending */

static void
fail_in_turn(struct urn_tp *tp, struct urn_qp *qp, struct urn_work *w, uint8_t status,
	     uint8_t vendor_err)
{
	w->state = URN_WORK_FAILED;
	w->status = status;
	w->vendor_err = vendor_err;
	urn_req_retire(tp, qp);
}

/* Build the next packet of a SEND or WRITE. returns: false when there is no buffer */
static bool
build(struct urn_tp *tp, struct urn_qp *qp, struct urn_work *w)
{
	uint32_t idx = (qp->tx.cur.psn - w->first_psn) & URN_PSN_MASK;
	uint32_t off = idx << qp->mtu_shift, len = RTE_MIN(w->length - off, (uint32_t)qp->mtu);
	bool first = idx == 0, last = idx + 1 == w->npsn;
	uint8_t opcode = URN_UC | urn_wr_info[w->opcode].wire[last << 1 | first], *bth, *data;
	uint8_t se = last && (w->flags & URN_WRF_SOLICITED) ? URN_BTH_SE : 0;
	struct urn_txd *d = urn_tp_frame(tp, &qp->tmpl, opcode, len, qp->dest_qpn, qp->tx.cur.psn,
					 se, false, &bth);
	enum urn_mem_error e = URN_MEM_OK;

	if (unlikely(!d))
		return false;
	d->loop = (qp->flags & URN_QPF_LOOP) != 0;
	urn_put_extensions(bth, &urn_opcodes[opcode], w);
	data = bth + urn_opcodes[opcode].hdr_len;
	if (w->flags & URN_WRF_INLINE)
		urn_copy(data, urn_work_inline(w) + off, len);
	else
		e = urn_tp_sge_op(tp, d->m, d, urn_work_sge(w), w->num_sge, off, data, len, qp->pd);
	if (unlikely(e != URN_MEM_OK)) {
		urn_tp_unframe(tp, d);
		fail_in_turn(tp, qp, w, URN_WC_LOC_PROT_ERR, urn_vendor_err(e));
		return true;
	}
	w->state = last ? URN_WORK_SENT : URN_WORK_SENDING;
	urn_tp_send(tp, d, qp, URN_ACT_TX_DATAGRAM, (qp->flags & URN_QPF_LOOP) != 0);
	URN_COUNT(tp, TX_REQUESTS);
	qp->tx.cur.psn = qp->tx.next = urn_psn_add(qp->tx.cur.psn, 1);
	if (last)
		qp->tx.cur.work = w->next;
	return true;
}

/* A frame has gone. */
static void
sent(struct urn_tp *tp, struct urn_qp *qp)
{
	if (!qp->tx.head)
		return;
	qp->tx.una = urn_psn_add(qp->tx.una, 1);
	urn_req_retire(tp, qp);
	if (unlikely(!(qp->flags & URN_QPF_MAC)))
		urn_tp_sched(tp, qp); /* work may wait to be lost */
}

/* The frame that could not be read is the oldest of the oldest request. */
static void
unreadable(struct urn_tp *tp, const struct urn_txd *d)
{
	struct urn_work *w = d->qp->tx.head;

	if (w)
		urn_req_fail(tp, d->qp, w, URN_WC_LOC_PROT_ERR, URN_VE_MEMORY);
}

/* Check a request: no READ, no atomic, no SEND that invalidates (IBTA 10.8.2, table of operations).
 */
static uint8_t
check(const struct urn_qp *qp, const struct urn_work *w)
{
	(void)qp;
	return (w->kind & URN_WK_FETCH) || w->opcode == URN_WR_SEND_INV ? URN_WC_LOC_QP_OP_ERR
									: URN_WC_SUCCESS;
}

/* The work at the cursor, fetched if need be. NULL: there is none, or it must wait; *more: try
 * again */
static struct urn_work *
next_work(struct urn_tp *tp, struct urn_qp *qp, bool *more)
{
	struct urn_work *w = qp->tx.cur.work;

	*more = false;
	if (!w) {
		if (!qp->tx.head) /* frames that were flushed have never gone */
			qp->tx.una = qp->tx.cur.psn = qp->tx.next;
		if (qp->state != URN_QPS_RTS)
			return NULL;
		w = urn_req_fetch(tp, qp);
		if (!w) {
			*more = urn_sq_ready(&qp->sq) && urn_tp_again(tp, qp);
			return NULL;
		}
		qp->tx.cur.work = w;
	}
	if (w->state == URN_WORK_QUEUED && qp->state != URN_QPS_RTS)
		return NULL; /* SQD: the request waits */
	return w;
}

/* Do one step of the work at the cursor. returns: false when nothing can be done now; *more: try
 * again */
static bool
step(struct urn_tp *tp, struct urn_qp *qp, struct urn_work *w, bool *more)
{
	*more = false;
	if (unlikely(w->state == URN_WORK_FAILED)) {
		urn_req_retire(tp, qp);
		*more = qp->state == URN_QPS_SQE;
		return false;
	}
	if (unlikely(w->npsn == 0)) {
		if (urn_req_step_local(tp, qp, w))
			return true;
		*more = qp->tx.cur.work == w && w->state == URN_WORK_FENCED && urn_tp_again(tp, qp);
		return false;
	}
	*more = true;
	return build(tp, qp, w);
}

/* True when frames may go to the peer now; otherwise *more: true to try again soon */
static bool
may_send(struct urn_tp *tp, struct urn_qp *qp, struct urn_work *w, bool *more)
{
	int rc = resolve(tp, qp);

	*more = false;
	if (rc == -1)
		urn_qp_wait_neigh(tp, qp);
	else if (rc != 0)
		*more = lose(tp, qp, w);
	else
		return likely(!tp->sched.stopped) || (qp->flags & URN_QPF_LOOP) ||
		       !urn_sched_stops(tp, &qp->source, &qp->tmpl);
	return false;
}

/* Send at most `budget` frames. returns: true when there is more to send */
static bool
send_frames(struct urn_tp *tp, struct urn_qp *qp, unsigned int budget)
{
	bool more = true;

	if (qp->near)
		budget = urn_uc_room(tp, qp, budget);
	/* Looked at again and again until the gate opens, the QP's own, or the peer has room. */
	if (unlikely(urn_tp_gated(tp, qp)) || !budget)
		return (qp->tx.cur.work || urn_sq_ready(&qp->sq)) && urn_tp_again(tp, qp);
	if (unlikely(qp->flags & URN_QPF_HOLD))
		return false;
	while (budget--) {
		struct urn_work *w;

		if (!urn_tp_tx_room(tp) || urn_part_ends(tp))
			return true;
		w = next_work(tp, qp, &more);
		if (!w)
			return more;
		if (w->npsn && w->state != URN_WORK_FAILED && !may_send(tp, qp, w, &more))
			return more;
		if (!step(tp, qp, w, &more))
			return more;
		if (tp->ops_bytes >= URN_TP_OPS_BYTES)
			urn_tp_execute(tp);
		if (qp->state != URN_QPS_RTS && qp->state != URN_QPS_SQD)
			return true; /* the send queue failed: flush */
	}
	return true;
}

/* Tell a sender elsewhere the word that it is owed; a later packet asks anew where the way to the
 * sender is not known. */
static __attribute__((noinline)) void
tell(struct urn_tp *tp, struct urn_qp *qp)
{
	if (likely(resolve(tp, qp) == 0))
		urn_uc_tell(tp, qp);
	else
		urn_ack_void(&qp->rx);
}

static bool
transmit(struct urn_tp *tp, struct urn_qp *qp, unsigned int budget)
{
	bool held = unlikely(qp->rx.ooo != NULL) && urn_uc_take_held(tp, qp, budget);

	if (unlikely(qp->state == URN_QPS_ERR)) /* the memory of a packet that waited was bad */
		return true;
	if (unlikely(urn_uc_owes(qp)))
		tell(tp, qp);
	return send_frames(tp, qp, budget) || held || unlikely(urn_uc_owes(qp));
}

/* The send queue failed. The QP receives on all the same, unless it is in the error state. */
static bool
flush(struct urn_tp *tp, struct urn_qp *qp, unsigned int budget)
{
	bool held = qp->rx.ooo && urn_uc_take_held(tp, qp, budget);

	if (qp->state != URN_QPS_ERR && urn_uc_owes(qp))
		tell(tp, qp);
	return urn_qp_flush(tp, qp, budget) || held;
}

/* True when a word may still go out: the QP takes packets. */
static bool
valid(const struct urn_txd *d)
{
	return d->qp->state != URN_QPS_ERR;
}

static void
stop(struct urn_tp *tp, struct urn_qp *qp, bool gone)
{
	(void)gone;
	urn_uc_stop(tp, qp);
}

const struct urn_service urn_uc = {
	.name = "UC",
	.offered = true,
	.opcodes = URN_OPF_UC,
	.checked = UINT8_MAX,
	.reads_on = true,
	.in_order = true,
	.moves = urn_uc_moves,
	.accept = urn_uc_accept,
	.finish = urn_uc_finish,
	.check = check,
	.transmit = transmit,
	.flush = flush,
	.valid = valid,
	.unreadable = unreadable,
	.sent = sent,
	.fail = urn_qp_sqe,
	.stop = stop,
};
