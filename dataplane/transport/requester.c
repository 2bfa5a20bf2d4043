/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requester turns work into packets.
 *
 * The cursor of the QP's PSNs (psn_tx.h) walks along the work under way. A packet that is sent
 * again out of its turn is made at a cursor of its own, so that the QP's stays where it is.
 */
#include "transport/ack.h"
#include "transport/act.h"
#include "transport/complete.h"
#include "transport/failure.h"
#include "transport/frame.h"
#include "transport/part.h"
#include "transport/pool.h"
#include "transport/put_ext.h"
#include "transport/qp_end.h"
#include "transport/requester.h"
#include "transport/service.h"

#include "memory/copy.h"

/* ---- completing */

/* Complete w, and with it the n requests of which w is the last. */
static void
complete(struct urn_tp *tp, struct urn_qp *qp, const struct urn_work *w, uint32_t n, uint8_t status,
	 uint8_t vendor_err)
{
	struct urn_abi_cqe cqe = {
		.wr_id = w->wr_id,
		.byte_len = w->piece == URN_PIECE_HEAD ? w->whole : w->length,
		.qp_num = qp->qpn,
		.vendor_err = vendor_err,
		.status = status,
		.opcode = urn_wr_info[w->opcode & (URN_WR_INFOS - 1)].wc_opcode,
	};

	qp->sq.retired += n;
	if (unlikely(!urn_tp_cqe(tp, qp->send_cq, &cqe, false, &qp->sq.hdr->cons, qp->sq.retired)))
		urn_qp_cqe_lost(tp, qp);
}

void
urn_req_flush_one(struct urn_tp *tp, struct urn_qp *qp, uint8_t status)
{
	struct urn_work *w = urn_psn_tx_pop(&qp->tx);

	if (w->piece == URN_PIECE_BULK)
		; /* the head behind it stands for the request */
	else if (status != URN_WC_SUCCESS || (w->flags & URN_WRF_SIGNALED))
		complete(tp, qp, w, 1, status, 0);
	else
		urn_tp_retire_quietly(tp, qp, 1);
	urn_work_put(tp, qp, w);
}

void
urn_req_fail(struct urn_tp *tp, struct urn_qp *qp, struct urn_work *w, uint8_t status,
	     uint8_t vendor_err)
{
	/* Work before w is retired, or can't complete any more. */
	while (qp->tx.head && qp->tx.head != w)
		urn_req_flush_one(tp, qp, URN_WC_WR_FLUSH_ERR);
	if (qp->tx.head)
		urn_psn_tx_pop(&qp->tx);
	if (unlikely(w->piece == URN_PIECE_BULK && qp->tx.head)) {
		urn_work_put(tp, qp, w);
		w = urn_psn_tx_pop(&qp->tx); /* the head, which stands for the request */
	}
	urn_failure_request(tp, qp, w, status, vendor_err);
	complete(tp, qp, w, 1, status, vendor_err);
	urn_work_put(tp, qp, w);
	urn_qp_service(tp, qp)->fail(tp, qp);
}

/* True when the oldest work is done. */
static inline bool
is_done(const struct urn_qp *qp, const struct urn_work *w)
{
	if (w->npsn == 0 || urn_work_is_fetch(w))
		return w->state == URN_WORK_DONE;
	return w->state == URN_WORK_SENT &&
	       urn_psn_diff(qp->tx.una, urn_psn_add(w->first_psn, w->npsn)) >= 0;
}

URN_FAST void
urn_req_retire(struct urn_tp *tp, struct urn_qp *qp)
{
	struct urn_work *w;
	uint32_t n = 0;

	while ((w = qp->tx.head) && is_done(qp, w)) {
		urn_psn_tx_pop(&qp->tx);
		n += w->piece != URN_PIECE_BULK;
		if (w->flags & URN_WRF_SIGNALED) {
			complete(tp, qp, w, n, URN_WC_SUCCESS, 0);
			n = 0;
		}
		if (urn_work_is_fetch(w))
			qp->tx.fetch_out--;
		urn_work_put(tp, qp, w);
	}
	if (n)
		urn_tp_retire_quietly(tp, qp, n);
	if (unlikely(w && w->state == URN_WORK_FAILED))
		urn_req_fail(tp, qp, w, w->status, w->vendor_err);
	else if (unlikely(qp->state == URN_QPS_SQD))
		urn_qp_check_drained(tp, qp);
}

void
urn_req_unreadable(struct urn_tp *tp, struct urn_qp *qp, uint32_t psn)
{
	bool behind = false; /* the cursor stands before the work, and stays there */

	for (struct urn_work *w = qp->tx.head; w; w = w->next) {
		behind |= w == qp->tx.cur.work;
		if (((psn - w->first_psn) & URN_PSN_MASK) >= w->npsn)
			continue;
		w->state = URN_WORK_FAILED;
		w->status = URN_WC_LOC_PROT_ERR;
		w->vendor_err = URN_VE_MEMORY;
		if (!behind)
			qp->tx.cur.work = w;
		break;
	}
	/* The unreadable frame may have been the one that asked for an acknowledgement. */
	urn_ack_ask_undone(&qp->tx.cur);
	urn_req_retire(tp, qp);
	urn_tp_sched(tp, qp);
}

/* ---- sending */

/* True when work that was not begun may be begun now. SEND and WRITE: step() checks the window. */
static inline bool
may_begin(const struct urn_tp *tp, const struct urn_qp *qp, const struct urn_work *w)
{
	uint32_t out = (w->first_psn - qp->tx.una) & URN_PSN_MASK;

	if (unlikely(w->flags & URN_WRF_FENCE) && qp->tx.fetch_out)
		return false;
	if (unlikely(out + w->npsn > URN_PSN_MAX_OUTSTANDING))
		return false;
	if (urn_work_is_fetch(w))
		return qp->tx.fetch_out < qp->tx.max_fetch && out < tp->window;
	/* Without credit, one request may be sent to ask for credit (IBTA 9.7.7.2.5). */
	return !qp->tx.credits || !urn_work_takes_recv(w) || urn_psn_diff(w->ssn, qp->tx.lsn) <= 0 ||
	       qp->tx.una == qp->tx.next;
}

/* True when this packet should ask for an acknowledgement. out: packets in flight before it */
static inline bool
wants_ack(const struct urn_tp *tp, struct urn_qp *qp, const struct urn_psn_cursor *cur,
	  const struct urn_work *w, uint32_t out, bool last)
{
	if (urn_ack_wanted(&qp->tx, cur, out, tp->window))
		return true;
	if (!last)
		return false;
	/* The last packet for now: no work is posted, or there is no room to fetch any. */
	return unlikely(qp->state != URN_QPS_RTS || !urn_work_room(tp, qp)) ||
	       (!w->next && urn_sq_ready(&qp->sq) == 0);
}

/* Give the frame to the burst; the frame goes out once its payload was gathered. */
static void
hand_on(struct urn_tp *tp, struct urn_qp *qp, struct urn_psn_cursor *cur, struct urn_txd *d,
	uint32_t npsn, bool ackreq)
{
	uint32_t psn = cur->psn;

	urn_tp_send(tp, d, qp, URN_ACT_TX_REQUEST, (qp->flags & URN_QPF_LOOP) != 0);
	URN_COUNT(tp, TX_REQUESTS);
	if (unlikely(urn_psn_tx_sent(&qp->tx, cur, npsn, ackreq)))
		URN_COUNT(tp, RETRANSMITS);
	else if (ackreq)
		urn_peer_time(tp, &qp->tx, psn);
}

/* The work can't be done: it fails in its turn, and nothing behind the work is sent. */
static void
fail_here(struct urn_tp *tp, struct urn_qp *qp, struct urn_psn_cursor *cur, struct urn_work *w,
	  uint8_t status, uint8_t vendor_err)
{
	w->state = URN_WORK_FAILED;
	w->status = status;
	w->vendor_err = vendor_err;
	urn_ack_ask_undone(cur); /* ask() does then */
	urn_req_retire(tp, qp);
}

/*
 * Gather the last packet of a write with two addresses into the frame: the end of the bulk, which
 * is at off, and the head. returns: URN_MEM_OK, or the reason why nothing was gathered
 */
static __attribute__((noinline)) enum urn_mem_error
gather_two(struct urn_tp *tp, struct urn_qp *qp, struct urn_work *w, struct urn_txd *d,
	   uint8_t *data, uint32_t off)
{
	uint32_t bulk = w->length - off - w->skip, before = tp->ops_n;
	enum urn_mem_error e;

	if (w->flags & URN_WRF_INLINE) {
		urn_copy(data, urn_work_inline(w) + w->skip + off, bulk);
		urn_copy(data + bulk, urn_work_inline(w), w->skip);
		return URN_MEM_OK;
	}
	e = urn_tp_sge_op(tp, d->m, d, urn_work_sge(w), w->num_sge, w->skip + off, data, bulk,
			  qp->pd);
	if (e == URN_MEM_OK)
		e = urn_tp_sge_op(tp, d->m, d, urn_work_sge(w), w->num_sge, 0, data + bulk, w->skip,
				  qp->pd);
	if (e != URN_MEM_OK)
		tp->ops_n = before;
	return e;
}

/* The opcode of a packet of a SEND or WRITE. */
static inline uint8_t
opcode_of(const struct urn_work *w, bool first, bool last)
{
	if (unlikely(last && w->piece == URN_PIECE_TWO))
		return w->kind & URN_WK_IMM ? URN_RC_WRITE_LAST_TWO_IMM : URN_RC_WRITE_LAST_TWO;
	return urn_wr_info[w->opcode].wire[last << 1 | first];
}

/* Write the extension headers of a packet of a SEND or WRITE. */
static inline void
put_extensions(uint8_t *bth, const struct urn_opcode *op, const struct urn_work *w, bool last)
{
	urn_put_extensions(bth, op, w);
	if (unlikely(last && w->piece == URN_PIECE_TWO))
		urn_put_reth(bth + op->off[URN_EXT_RETH], w, w->remote_addr - w->skip, w->skip);
}

/* Put the bytes of a packet of a SEND or WRITE into its frame. returns: URN_MEM_OK, or the reason
 * why not */
static inline enum urn_mem_error
put_payload(struct urn_tp *tp, struct urn_qp *qp, struct urn_work *w, struct urn_txd *d,
	    uint8_t *data, uint32_t off, uint32_t len, bool last)
{
	if (unlikely(last && w->piece == URN_PIECE_TWO))
		return gather_two(tp, qp, w, d, data, off);
	if (w->flags & URN_WRF_INLINE) {
		urn_copy(data, urn_work_inline(w) + w->skip + off, len);
		return URN_MEM_OK;
	}
	return len ? urn_tp_sge_op(tp, d->m, d, urn_work_sge(w), w->num_sge, w->skip + off, data,
				   len, qp->pd)
		   : URN_MEM_OK;
}

/* Send one packet of a SEND or WRITE. out: packets in flight. returns: false when there is no buffer */
static inline bool
send_data(struct urn_tp *tp, struct urn_qp *qp, struct urn_psn_cursor *cur, struct urn_work *w,
	  uint32_t out)
{
	uint32_t idx = (cur->psn - w->first_psn) & URN_PSN_MASK;
	uint32_t off = idx << qp->mtu_shift, left = w->length - off;
	uint32_t len = left < qp->mtu ? left : qp->mtu;
	bool first = idx == 0, last = idx + 1 == w->npsn;
	uint8_t opcode = opcode_of(w, first, last), *bth;
	const struct urn_opcode *op = &urn_opcodes[opcode];
	enum urn_mem_error e;
	bool ackreq = wants_ack(tp, qp, cur, w, out, last);
	uint8_t se = last && (w->flags & URN_WRF_SOLICITED) ? URN_BTH_SE : 0;
	struct urn_txd *d = urn_tp_frame_inline(tp, &qp->tmpl, opcode, len, qp->dest_qpn,
						cur->psn, se, ackreq, &bth);

	if (unlikely(!d))
		return false;

	d->loop = (qp->flags & URN_QPF_LOOP) != 0;
	if (op->hdr_len > sizeof(struct urn_bth))
		put_extensions(bth, op, w, last);
	e = put_payload(tp, qp, w, d, bth + op->hdr_len, off, len, last);
	if (unlikely(e != URN_MEM_OK)) {
		urn_tp_unframe(tp, d);
		fail_here(tp, qp, cur, w, URN_WC_LOC_PROT_ERR, urn_vendor_err(e));
		return true;
	}
	w->state = last || w->state == URN_WORK_SENT ? URN_WORK_SENT : URN_WORK_SENDING;
	hand_on(tp, qp, cur, d, 1, ackreq);
	if (last)
		cur->work = w->next;
	return true;
}

/* Send a READ request for packets from..end-1 of the response. */
static bool
send_read(struct urn_tp *tp, struct urn_qp *qp, struct urn_psn_cursor *cur, struct urn_work *w,
	  uint32_t from, uint32_t end)
{
	uint32_t off = from << qp->mtu_shift;
	uint32_t length = (end == w->npsn ? w->length : end << qp->mtu_shift) - off;
	uint8_t opcode = urn_wr_info[w->opcode].wire[3], *bth;
	struct urn_txd *d;

	cur->psn = urn_psn_add(w->first_psn, from);
	d = urn_tp_frame(tp, &qp->tmpl, opcode, 0, qp->dest_qpn, cur->psn, 0, true, &bth);
	if (unlikely(!d))
		return false;
	urn_put_reth(bth + urn_opcodes[opcode].off[URN_EXT_RETH], w, w->remote_addr + off, length);
	hand_on(tp, qp, cur, d, end - from, true);
	return true;
}

static bool
send_atomic(struct urn_tp *tp, struct urn_qp *qp, struct urn_psn_cursor *cur, struct urn_work *w)
{
	bool cas = w->kind & URN_WK_COMPARE;
	uint8_t opcode = urn_wr_info[w->opcode].wire[3], *bth;
	struct urn_txd *d = urn_tp_frame(tp, &qp->tmpl, opcode, 0, qp->dest_qpn, cur->psn, 0, true,
					 &bth);

	if (unlikely(!d))
		return false;

	struct urn_atomic_eth a = {
		.va = rte_cpu_to_be_64(w->remote_addr),
		.rkey = rte_cpu_to_be_32(w->rkey),
		.swap_add = rte_cpu_to_be_64(cas ? w->swap : w->compare_add),
		.compare = cas ? rte_cpu_to_be_64(w->compare_add) : 0,
	};

	memcpy(bth + urn_opcodes[opcode].off[URN_EXT_ATOMIC], &a, sizeof(a));
	hand_on(tp, qp, cur, d, 1, true);
	return true;
}

static bool
send_fetch(struct urn_tp *tp, struct urn_qp *qp, struct urn_psn_cursor *cur, struct urn_work *w)
{
	bool begun = w->state == URN_WORK_SENT;

	if (w->accepted == w->npsn) { /* a repeat, and the response came meanwhile */
		cur->psn = urn_psn_add(w->first_psn, w->npsn);
		cur->work = w->next;
		return true;
	}
	if (urn_work_is_read(w) ? !send_read(tp, qp, cur, w, w->accepted, w->npsn)
				: !send_atomic(tp, qp, cur, w))
		return false;
	if (!begun) {
		w->state = URN_WORK_SENT;
		qp->tx.fetch_out++;
		if (!qp->tx.fetch)
			qp->tx.fetch = w;
	}
	cur->work = w->next;
	return true;
}

bool
urn_req_refetch(struct urn_tp *tp, struct urn_qp *qp, struct urn_work *w, uint32_t from,
		uint32_t end)
{
	struct urn_psn_cursor cur = qp->tx.cur;
	uint32_t first = (from - w->first_psn) & URN_PSN_MASK;
	bool sent;

	urn_peer_untime(tp, &qp->tx); /* the answer may be to either copy */
	cur.psn = from;
	if (urn_work_is_read(w)) {
		sent = send_read(tp, qp, &cur, w, first, (end - w->first_psn) & URN_PSN_MASK);
		w->parts = 1;
	} else {
		sent = send_atomic(tp, qp, &cur, w);
	}
	if (sent)
		URN_COUNT(tp, REFETCHES);
	return sent;
}

uint32_t
urn_req_resend(struct urn_tp *tp, struct urn_qp *qp, struct urn_work *w, uint32_t psn, bool last)
{
	struct urn_psn_cursor cur = qp->tx.cur;
	uint32_t end = urn_psn_add(w->first_psn, w->npsn);
	bool sent;

	if (w->state == URN_WORK_FAILED || w->state == URN_WORK_BROKEN)
		return end; /* the work ends the QP in its turn */
	urn_peer_untime(tp, &qp->tx); /* the answer may be to either copy */
	if (urn_work_is_fetch(w)) /* a response shows that the request arrived */
		return w->accepted || urn_req_refetch(tp, qp, w, w->first_psn, end) ? end : psn;
	cur.psn = psn;
	if (last)
		urn_ack_ask(&cur);
	sent = send_data(tp, qp, &cur, w, (psn - qp->tx.una) & URN_PSN_MASK);
	if (unlikely(qp->state == URN_QPS_ERR))
		return psn; /* the memory of the work is gone, and the work was the oldest */
	if (unlikely(w->state == URN_WORK_FAILED)) {
		qp->tx.cur.work = w;
		return psn;
	}
	return sent ? urn_psn_add(psn, 1) : psn;
}

bool
urn_req_step_local(struct urn_tp *tp, struct urn_qp *qp, struct urn_work *w)
{
	if (w->state == URN_WORK_QUEUED || w->state == URN_WORK_FENCED)
		urn_req_local(tp, qp, w);
	if (w->state == URN_WORK_DONE)
		qp->tx.cur.work = w->next;
	urn_req_retire(tp, qp);
	/* Failed work blocks the work behind it until its turn. */
	return qp->tx.cur.work != w;
}

/* True when the QP's state lets work begin. SQD ends requests that were begun (IBTA 10.3.1.5). */
static inline bool
may_send(const struct urn_qp *qp, const struct urn_work *w)
{
	return likely(qp->state == URN_QPS_RTS) || w->piece == URN_PIECE_HEAD;
}

/* Do one step of the work at the cursor. returns: false when nothing can be done now */
static inline bool
step(struct urn_tp *tp, struct urn_qp *qp, struct urn_work *w)
{
	uint32_t out = (qp->tx.cur.psn - qp->tx.una) & URN_PSN_MASK;

	if (unlikely(urn_psn_tx_held_back(&qp->tx)) && urn_psn_diff(qp->tx.cur.psn, qp->tx.cur.end) >= 0)
		return false;
	if (w->state == URN_WORK_QUEUED && unlikely(!may_send(qp, w) || !may_begin(tp, qp, w)))
		return false;
	if (unlikely(w->npsn == 0))
		return urn_req_step_local(tp, qp, w);
	if (urn_work_is_fetch(w))
		return send_fetch(tp, qp, &qp->tx.cur, w);
	return out < tp->window && send_data(tp, qp, &qp->tx.cur, w, out);
}

/*
 * The last packet did not ask for an acknowledgement, because more work was posted behind it, and
 * now that work can't follow (it is local, has failed, or must wait): repeat the packet, with the
 * request for an acknowledgement.
 * returns: false when this must be tried again
 */
static bool
ask(struct urn_tp *tp, struct urn_qp *qp)
{
	struct urn_work *last = urn_psn_tx_newest(&qp->tx);
	struct urn_psn_cursor cur = qp->tx.cur;
	uint32_t psn = (qp->tx.next - 1) & URN_PSN_MASK, end;
	bool sent;

	if (!last || urn_work_is_fetch(last))
		return true; /* nothing to ask for, or the response will tell */
	if (!urn_tp_tx_room(tp))
		return false;
	end = urn_psn_add(last->first_psn, last->npsn - 1);
	cur.psn = urn_psn_diff(end, psn) < 0 ? end : psn;
	urn_ack_ask(&cur);
	urn_peer_untime(tp, &qp->tx); /* the answer may be to either copy */
	sent = send_data(tp, qp, &cur, last, (cur.psn - qp->tx.una) & URN_PSN_MASK);
	if (unlikely(qp->state == URN_QPS_ERR))
		return true; /* the memory of the work is gone, and the work was the oldest */
	urn_ack_ask_tried(&qp->tx, &cur);
	if (unlikely(last->state == URN_WORK_FAILED)) {
		qp->tx.cur.work = last;
		qp->tx.cur.psn = cur.psn;
		return false;
	}
	return sent;
}

/*
 * Nothing came for a while: ask for the missing part of the oldest READ or atomic, and repeat the
 * newest packet that was sent; the peer answers that with the PSNs that it has.
 * returns: false when this must be tried again
 */
static bool
probe(struct urn_tp *tp, struct urn_qp *qp, unsigned int *budget)
{
	struct urn_work *w = qp->tx.fetch;

	/* A paced QP's turns may have one frame each: a probe does not wait for a longer turn. */
	if (urn_tp_tx_frames(tp) < 2)
		return false;
	*budget -= RTE_MIN(*budget, 2u);
	if (w && w->state == URN_WORK_SENT &&
	    !urn_req_refetch(tp, qp, w, urn_psn_add(w->first_psn, w->accepted),
			     urn_psn_add(w->first_psn, w->npsn)))
		return false;
	if (!ask(tp, qp))
		return false;
	qp->tx.flags &= ~(uint32_t)URN_TXF_PROBE;
	return true;
}

/* Repair losses before anything new is sent. returns: false when the repair must go on later */
static bool
repair(struct urn_tp *tp, struct urn_qp *qp, unsigned int *budget)
{
	if (qp->tx.flags & URN_TXF_PROBE) {
		if (qp->tx.una == qp->tx.next)
			qp->tx.flags &= ~(uint32_t)URN_TXF_PROBE;
		else if (!probe(tp, qp, budget))
			return false;
	}
	if (qp->tx.repair && qp->state != URN_QPS_ERR && urn_repair_tx(tp, qp, budget))
		return false;
	return qp->state != URN_QPS_ERR; /* work that can't be sent again ends the QP: flush */
}

URN_FAST bool
urn_req_tx(struct urn_tp *tp, struct urn_qp *qp, unsigned int budget)
{
	uint64_t no_mbuf = tp->c.v[URN_C_NO_MBUF];
	uint32_t before = qp->tx.next;
	bool more = true, starved = false;

	if (qp->tx.flags & URN_TXF_RNR_WAIT)
		return false;
	tp->window = urn_qp_peer(tp, qp)->window;
	if (budget > urn_tp_tx_frames(tp))
		budget = urn_tp_tx_frames(tp);
	if (unlikely(qp->tx.repair || (qp->tx.flags & URN_TXF_PROBE)) && !repair(tp, qp, &budget))
		return true;
	while (budget-- && urn_tp_tx_ops(tp)) {
		struct urn_work *w = qp->tx.cur.work;

		if (!w) {
			if (qp->state != URN_QPS_RTS || !(w = urn_req_fetch(tp, qp))) {
				/* No work, or no room for it: without room try again. */
				starved = qp->state == URN_QPS_RTS && urn_sq_ready(&qp->sq);
				more = starved && urn_tp_again(tp, qp);
				break;
			}
			qp->tx.cur.work = w;
		}
		if (unlikely(w->state == URN_WORK_FAILED || w->state == URN_WORK_BROKEN)) {
			urn_req_retire(tp, qp);
			more = false;
			break;
		}
		if (!step(tp, qp, w)) {
			/* No buffer: try again. Otherwise an ACK lets the QP go on. */
			more = tp->c.v[URN_C_NO_MBUF] != no_mbuf;
			if (unlikely(qp->tx.cur.work && qp->tx.cur.work->state == URN_WORK_FENCED)) {
				starved = true; /* waits for memory of other QPs or engines, perhaps: look again */
				more = urn_tp_again(tp, qp);
			}
			break;
		}
		if (tp->ops_bytes >= URN_TP_OPS_BYTES)
			urn_tp_execute(tp);
		if (qp->state != URN_QPS_RTS && qp->state != URN_QPS_SQD)
			return true; /* the QP failed: flush */
		if (urn_part_ends(tp))
			break;
	}
	if (unlikely(qp->state == URN_QPS_ERR))
		return true; /* flush */
	if (unlikely((!more || starved) && urn_ack_unasked(&qp->tx)) && !ask(tp, qp))
		more = true;
	/* A timer that runs already is left alone, even if it is due: posting work must not delay it. */
	if (qp->tx.una != qp->tx.next && (before == qp->tx.una || !urn_timer_started(&qp->tx.timer)))
		urn_req_arm(tp, qp);
	return more;
}
