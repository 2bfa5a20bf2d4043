/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder, second half: finish. A packet that memory answered is finished in its turn:
 * complete the receive, count the message, owe the acknowledgement or the response, or refuse
 * (doc/reference/wire.md "Duplicates", "Acknowledgement").
 */
#include "transport/ack.h"
#include "transport/act.h"
#include "transport/beside.h"
#include "transport/complete.h"
#include "transport/frame.h"
#include "transport/pool.h"
#include "transport/qp_end.h"
#include "transport/requester.h"
#include "transport/responder.h"
#include "transport/sched.h"

URN_FAST void
urn_resp_owe_ack(struct urn_tp *tp, struct urn_qp *qp, bool now)
{
	urn_ack_owe(&qp->rx, tp->turn, now);
	urn_tp_sched(tp, qp);
}

/* Owe a NAK for PSN psn; all NAKs but sequence and RNR end the QP. told: no event is needed */
static void
owe_nak(struct urn_tp *tp, struct urn_qp *qp, uint32_t psn, uint8_t syndrome, bool told)
{
	urn_ack_owe_nak(&qp->rx, psn, syndrome);
	urn_tp_sched(tp, qp);
	if ((syndrome & URN_SYN_KIND) == URN_SYN_RNR)
		return;
	qp->flags |= URN_QPF_REFUSED;
	tp->c.v[syndrome == URN_NAK_ACCESS    ? URN_C_NAK_ACCESS
		: syndrome == URN_NAK_INV_REQ ? URN_C_NAK_INV_REQ
					      : URN_C_NAK_OPERATIONAL]++;
	if (!told) {
		urn_failure_quiet(tp, qp, URN_FAILURE_REFUSED, psn, syndrome);
		urn_qp_event(tp, qp,
			     syndrome == URN_NAK_ACCESS	   ? URN_EVENT_QP_ACCESS_ERR
			     : syndrome == URN_NAK_INV_REQ ? URN_EVENT_QP_REQ_ERR
							   : URN_EVENT_QP_FATAL);
	}
	urn_qp_error(tp, qp);
}

/* returns: false when the completion was lost: then the program never learns of the message */
static inline __attribute__((always_inline)) bool
recv_done(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m, uint8_t status,
	  uint8_t vendor_err)
{
	const struct urn_pkt *p = urn_pkt(m);
	uint8_t bits = p->recv.bits;
	bool ok = status == URN_WC_SUCCESS;
	uint8_t wc_flags = (uint8_t)((ok && (bits & URN_REQ_IMM) ? URN_WCF_WITH_IMM : 0) |
				     (ok && (bits & URN_REQ_INV) ? URN_WCF_WITH_INV : 0) |
				     (ok && (bits & URN_REQ_BESIDE) ? URN_WCF_BESIDE : 0));
	const struct urn_abi_cqe cqe = {
		.wr_id = p->recv.wr_id,
		.byte_len = ok ? p->recv.bytes : 0,
		.imm = wc_flags & (URN_WCF_WITH_IMM | URN_WCF_WITH_INV) ? p->recv.imm : 0,
		.qp_num = qp->qpn,
		.src_qp = qp->dest_qpn,
		.vendor_err = vendor_err,
		.status = status,
		.opcode = bits & URN_REQ_WRITE ? URN_WCO_RECV_RDMA_WITH_IMM : URN_WCO_RECV,
		.wc_flags = wc_flags,
	};

	return urn_tp_cqe_inline(tp, qp->recv_cq, &cqe, p->solicited, urn_rq_mark(&qp->rq),
				 urn_rq_did(&qp->rq));
}

/* The memory of a request could not be written. */
static __attribute__((noinline)) void
request_failed(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	struct urn_pkt *p = urn_pkt(m);
	uint8_t bits = p->recv.bits;

	if (bits & URN_REQ_RECV) {
		uint8_t status = bits & URN_REQ_WRITE ? URN_WC_LOC_ACCESS_ERR : URN_WC_LOC_PROT_ERR;

		(void)recv_done(tp, qp, m, status, URN_VE_MEMORY);
		urn_failure_receive(tp, qp, p->psn, status, URN_VE_MEMORY, URN_NAK_OP);
	} else if (p->op->flags & URN_OPF_SEND) {
		qp->flags |= URN_QPF_RECV_BAD; /* the receive of its message, which is incomplete */
	}
	owe_nak(tp, qp, p->psn, URN_NAK_OP, bits & URN_REQ_RECV);
}

static inline void
finish_request(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	struct urn_pkt *p = urn_pkt(m);
	uint8_t bits = p->recv.bits;

	if (unlikely(bits & URN_REQ_BESIDE) &&
	    !urn_beside_ready(tp, qp, m, urn_pkt_payload(m), p->payload_len))
		p->mem_status = URN_MEMOP_FAILED;
	if (unlikely(p->mem_status != URN_MEMOP_DONE)) {
		request_failed(tp, qp, m);
		return;
	}
	if (bits & URN_REQ_LAST) {
		/* A message without a completion is not acknowledged: its program would never know
		 * of it. */
		if ((bits & URN_REQ_RECV) && unlikely(!recv_done(tp, qp, m, URN_WC_SUCCESS, 0))) {
			owe_nak(tp, qp, p->psn, URN_NAK_OP, false);
			return;
		}
		qp->rx.msn = urn_psn_add(qp->rx.msn, 1);
		if (unlikely(qp->state == URN_QPS_RTR))
			urn_qp_established(tp, qp);
	}
	qp->rx.done = p->psn;
	/*
	 * The program has a message beside its completion at once, and may answer before an ACK
	 * that waits to be merged: programs look for their send's completion, once, when the answer
	 * is there (ib_send_lat -e).
	 */
	if (p->ackreq)
		urn_resp_owe_ack(tp, qp, (bits & URN_REQ_BESIDE) != 0);
	else if (unlikely(urn_ack_nak_is_owed(&qp->rx)))
		urn_tp_sched(tp, qp); /* the NAK may have waited for this packet */
}

/* A READ or atomic is on record: let its response be made. */
static void
answer(struct urn_tp *tp, struct urn_qp *qp, struct urn_rec *rec)
{
	qp->rx.msn = urn_psn_add(qp->rx.msn, 1);
	rec->msn = qp->rx.msn;
	rec->busy = 0;
	rec->pending = 1;
	rec->again = 0;
	rec->head = 1;
	rec->cur = 0;
	rec->end = urn_rec_npsn(qp, rec);
	qp->rec_pending++;
	qp->rx.done = urn_psn_add(rec->first_psn, urn_rec_npsn(qp, rec) - 1);
	urn_tp_sched(tp, qp);
	if (unlikely(qp->state == URN_QPS_RTR))
		urn_qp_established(tp, qp);
}

static void
finish_atomic(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	struct urn_pkt *p = urn_pkt(m);
	struct urn_rec *rec = &qp->rec[p->record.index];

	if (p->mem_status != URN_MEMOP_DONE) {
		rec->busy = 0;
		rec->kind = URN_REC_NONE;
		owe_nak(tp, qp, p->psn, URN_NAK_OP, false);
		return;
	}
	rec->va = p->record.operand[0]; /* the original value: a repeat is answered with it, too */
	answer(tp, qp, rec);
}

/*
 * Answer packets start..end-1 from the record once more, together with packets that still are to be
 * sent from there: the peer may not be able to ask for those a second time.
 */
static void
replay(struct urn_tp *tp, struct urn_qp *qp, struct urn_rec *rec, uint32_t start, uint32_t end)
{
	if (!rec->pending) {
		qp->rec_pending++;
		rec->pending = 1;
		rec->again = 1;
		rec->cur = start;
		rec->end = end;
		rec->head = 1;
	}
	if (start <= rec->cur) {
		rec->cur = start;
		rec->head = 1;
	}
	if (end > rec->end)
		rec->end = end;
	urn_tp_sched(tp, qp);
}

/*
 * Answer a repeated READ, only within the range that was asked for the first time.
 * returns: false when the packet was put aside: a part, while another answer from this record is
 * under way
 */
static bool
duplicate_read(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	struct urn_pkt *p = urn_pkt(m);
	struct urn_rec *rec = urn_resp_find_record(qp, p->psn, URN_REC_READ);
	struct urn_reth r;

	if (!rec) {
		URN_COUNT(tp, DROP_DUPLICATE);
		return true;
	}
	memcpy(&r, urn_pkt_ext(m, URN_EXT_RETH), sizeof(r));

	uint32_t start = (p->psn - rec->first_psn) & URN_PSN_MASK;
	uint32_t len = rte_be_to_cpu_32(r.length);
	uint64_t off = (uint64_t)start << qp->mtu_shift;
	uint32_t npsn = len ? (len + qp->mtu - 1u) >> qp->mtu_shift : 1;

	/* Parts other than a tail end on a packet boundary. */
	if (rte_be_to_cpu_32(r.rkey) != rec->rkey || rte_be_to_cpu_64(r.va) != rec->va + off ||
	    off + len > rec->length ||
	    (off + len < rec->length && (len == 0 || (len & (qp->mtu - 1u))))) {
		URN_COUNT(tp, DROP_DUPLICATE);
		return true;
	}
	if (rec->pending && (off + len < rec->length || rec->end < urn_rec_npsn(qp, rec))) {
		p->part.start = start;
		p->part.end = start + npsn;
		p->part.head = true;
		if (urn_repair_part(tp, qp, m))
			return false;
		if (off + len < rec->length) {
			URN_COUNT(tp, DROP_DUPLICATE); /* no room: the peer repeats it */
			return true;
		}
		/* The rest is asked for only once (a peer goes back once, and may have no timer).
		 */
	}
	replay(tp, qp, rec, start, start + npsn);
	return true;
}

static void
duplicate_atomic(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	struct urn_rec *rec = urn_resp_find_record(qp, urn_pkt(m)->psn, URN_REC_ATOMIC);

	if (rec)
		replay(tp, qp, rec, 0, 1);
	else
		URN_COUNT(tp, DROP_DUPLICATE);
}

void
urn_resp_replay(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	if (urn_pkt(m)->op->flags & URN_OPF_ATOMIC)
		duplicate_atomic(tp, qp, m);
	else if (!duplicate_read(tp, qp, m))
		return;
	urn_tp_done(tp, m);
}

static void
finish_nak(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	struct urn_pkt *p = urn_pkt(m);
	bool told = false;

	if (p->recv.bits & URN_REQ_RECV) {
		urn_qp_recv_done(tp, qp, p->recv.wr_id, p->recv.status, p->recv.vendor_err, 0,
				 URN_WCO_RECV, 0, 0, qp->dest_qpn, false);
		urn_failure_receive(tp, qp, p->psn, p->recv.status, p->recv.vendor_err,
				    p->recv.syndrome);
		told = true;
	}
	owe_nak(tp, qp, p->psn, p->recv.syndrome, told);
}

/* The QP went to the error state meanwhile: only give the receive back. */
static __attribute__((noinline)) void
flushed(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	struct urn_pkt *p = urn_pkt(m);
	bool recv = (p->action == URN_ACT_REQUEST || p->action == URN_ACT_NAK) &&
		    (p->recv.bits & URN_REQ_RECV);

	if (recv && (qp->flags & URN_QPF_RECV_BAD))
		(void)recv_done(tp, qp, m, URN_WC_LOC_PROT_ERR, URN_VE_MEMORY);
	else if (recv)
		(void)recv_done(tp, qp, m, URN_WC_WR_FLUSH_ERR, 0);
	if (recv)
		qp->flags &= ~(uint32_t)URN_QPF_RECV_BAD;
	urn_tp_drop(tp, m, URN_C_DROP_FLUSHED);
}

/* All but SENDs and WRITEs. returns: true when the packet is finished with */
static __attribute__((noinline)) bool
finish_other(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	struct urn_pkt *p = urn_pkt(m);

	switch (p->action) {
	case URN_ACT_READ:
		answer(tp, qp, &qp->rec[p->record.index]);
		break;
	case URN_ACT_ATOMIC:
		finish_atomic(tp, qp, m);
		break;
	case URN_ACT_NAK:
		finish_nak(tp, qp, m);
		break;
	case URN_ACT_DUP:
		urn_resp_owe_ack(tp, qp, true);
		break;
	case URN_ACT_DUP_READ:
		return duplicate_read(tp, qp, m);
	case URN_ACT_DUP_ATOMIC:
		duplicate_atomic(tp, qp, m);
		break;
	}
	return true;
}

URN_FAST void
urn_resp_finish(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	if (unlikely(qp->state == URN_QPS_ERR)) {
		flushed(tp, qp, m);
		return;
	}
	if (likely(urn_pkt(m)->action == URN_ACT_REQUEST))
		finish_request(tp, qp, m);
	else if (!finish_other(tp, qp, m))
		return;
	urn_tp_done(tp, m);
}
