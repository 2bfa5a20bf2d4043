/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder of UC (IBTA 9.8). A packet is placed when it is the next of its message. A packet
 * that is missing ends the message: the rest of it is dropped, silently, until a packet begins
 * another message. A receive that a lost message had begun serves the next SEND.
 *
 * Beyond the standard, a packet behind its turn is dropped even where it begins a message: the
 * network may duplicate and reorder, and a message must not be delivered twice.
 */
#include "transport/act.h"
#include "transport/beside.h"
#include "transport/complete.h"
#include "transport/frame.h"
#include "transport/from_peer.h"
#include "transport/pool.h"
#include "transport/qp_end.h"
#include "transport/resp_accept.h"
#include "transport/uc.h"
#include "transport/uc_hold.h"

/* Drop a packet, and with it the message under way. The message's receive stays with the QP. */
static void
drop(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m, enum urn_counter why)
{
	qp->msg = URN_MSG_NONE;
	urn_tp_drop(tp, m, why);
}

/* A receive of ours is bad: it completes with an error, and the QP fails, in the packet's turn. */
static void
fail_recv(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m, uint64_t wr_id, uint8_t status,
	  uint8_t vendor_err)
{
	if (qp->recv)
		urn_resp_recv_used(tp, qp);
	qp->msg = URN_MSG_NONE;
	urn_resp_refuse_recv(tp, qp, m, 0, wr_id, status, vendor_err);
}

/* Have a receive at hand: one that a lost message left, or the next. returns: false when m was
 * dealt with */
static bool
have_recv(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	uint64_t wr_id = 0;
	bool bad = false;

	if (!qp->recv)
		qp->recv = urn_qp_take_recv(tp, qp, &bad, &wr_id);
	if (likely(qp->recv != NULL))
		return true;
	if (bad)
		fail_recv(tp, qp, m, wr_id, URN_WC_LOC_QP_OP_ERR, URN_VE_BAD_WQE);
	else
		drop(tp, qp, m, URN_C_DROP_UC_NO_RECV);
	return false;
}

/* The packet is placed: it waits for memory, and the next PSN becomes due. */
static void
take(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	qp->rx.epsn = urn_psn_add(urn_pkt(m)->psn, 1);
	urn_tp_hold(tp, m, qp, URN_ACT_REQUEST);
}

static void
accept_send(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	struct urn_pkt *p = urn_pkt(m);
	uint32_t len = p->payload_len;
	enum urn_mem_error e;

	if (p->op->flags & URN_OPF_FIRST) {
		if (!have_recv(tp, qp, m))
			return;
		qp->msg = URN_MSG_SEND;
		qp->msg_off = 0;
	}
	if (len > qp->recv->length - qp->msg_off) {
		drop(tp, qp, m, URN_C_DROP_UC_LENGTH);
		return;
	}
	e = urn_resp_place_send(tp, qp, m);
	if (unlikely(e != URN_MEM_OK)) {
		fail_recv(tp, qp, m, qp->recv->wr_id, URN_WC_LOC_PROT_ERR, urn_vendor_err(e));
		return;
	}
	qp->msg_off += len;
	if (p->op->flags & URN_OPF_LAST) {
		urn_resp_message_ends(qp, m, qp->recv->wr_id, true);
		urn_resp_recv_used(tp, qp);
	}
	take(tp, qp, m);
}

static void
accept_write(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	struct urn_pkt *p = urn_pkt(m);
	bool recv = p->op->flags & URN_OPF_RECV, last = p->op->flags & URN_OPF_LAST;
	uint32_t left;

	if (p->op->flags & URN_OPF_FIRST) {
		urn_resp_write_header(qp, m);
		if (urn_resp_write_begins(tp, qp) != 0) {
			drop(tp, qp, m, URN_C_DROP_UC_ACCESS);
			return;
		}
	}
	left = qp->msg_len - qp->msg_off;
	if (last ? p->payload_len != left : p->payload_len >= left) {
		drop(tp, qp, m, URN_C_DROP_UC_LENGTH);
		return;
	}
	if (recv && !have_recv(tp, qp, m))
		return;
	if (!urn_resp_place_write(tp, qp, m)) {
		drop(tp, qp, m, URN_C_DROP_UC_ACCESS);
		return;
	}
	p->recv.bits = URN_REQ_WRITE;
	if (last)
		urn_resp_message_ends(qp, m, recv ? qp->recv->wr_id : 0, recv);
	if (last && recv)
		urn_resp_recv_used(tp, qp);
	take(tp, qp, m);
}

void
urn_uc_accept(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	if (unlikely(!urn_qp_from_peer(qp, m)))
		urn_tp_drop(tp, m, URN_C_DROP_PEER);
	else if (unlikely(urn_pkt(m)->op->flags & URN_OPF_ACK))
		urn_uc_told(tp, qp, m);
	else if (urn_uc_holds(tp, qp))
		urn_uc_hold(tp, qp, m);
	else
		urn_uc_take(tp, qp, m);
}

void
urn_uc_take(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	const struct urn_pkt *p = urn_pkt(m);
	int32_t ahead = urn_psn_rx_ahead(&qp->rx, p->psn);
	uint32_t f = p->op->flags;

	if (ahead < 0 && ahead >= -URN_UC_LATE) {
		urn_tp_drop(tp, m, URN_C_DROP_UC_LATE);
		return;
	}
	urn_uc_dealt(tp, qp, urn_psn_add(p->psn, 1));
	/* A message that begins ends the one under way; others go on with the one under way only.
	 */
	if (!(f & URN_OPF_FIRST) &&
	    (ahead != 0 || qp->msg == URN_MSG_NONE ||
	     !(f & (qp->msg == URN_MSG_SEND ? URN_OPF_SEND : URN_OPF_WRITE)))) {
		drop(tp, qp, m, URN_C_DROP_UC_GAP);
		return;
	}
	if (unlikely(!urn_resp_has_length(qp, m))) {
		drop(tp, qp, m, URN_C_DROP_UC_LENGTH);
		return;
	}
	urn_pkt_begin(urn_pkt(m));
	if (f & URN_OPF_SEND)
		accept_send(tp, qp, m);
	else
		accept_write(tp, qp, m);
}

/* Complete the receive that the packet takes. */
static void
recv_done(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m, uint8_t status,
	  uint8_t vendor_err)
{
	const struct urn_pkt *p = urn_pkt(m);
	bool ok = status == URN_WC_SUCCESS, imm = ok && (p->recv.bits & URN_REQ_IMM);

	urn_qp_recv_done(tp, qp, p->recv.wr_id, status, vendor_err, ok ? p->recv.bytes : 0,
			 p->recv.bits & URN_REQ_WRITE ? URN_WCO_RECV_RDMA_WITH_IMM : URN_WCO_RECV,
			 (uint8_t)((imm ? URN_WCF_WITH_IMM : 0) |
				   (ok && (p->recv.bits & URN_REQ_BESIDE) ? URN_WCF_BESIDE : 0)),
			 imm ? p->recv.imm : 0, qp->dest_qpn, p->solicited);
}

/* The QP went to the error state meanwhile: only give the receive back. */
static void
flushed(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	bool bad = qp->flags & URN_QPF_RECV_BAD;

	if (urn_pkt(m)->recv.bits & URN_REQ_RECV) {
		recv_done(tp, qp, m, bad ? URN_WC_LOC_PROT_ERR : URN_WC_WR_FLUSH_ERR,
			  bad ? URN_VE_MEMORY : URN_VE_NONE);
		qp->flags &= ~(uint32_t)URN_QPF_RECV_BAD;
	}
	urn_tp_drop(tp, m, URN_C_DROP_FLUSHED);
}

/* Memory of the program could not be written: the QP fails, because the peer is not told. */
static void
unwritable(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	const struct urn_pkt *p = urn_pkt(m);
	uint8_t status = p->recv.bits & URN_REQ_WRITE ? URN_WC_LOC_ACCESS_ERR : URN_WC_LOC_PROT_ERR;

	if ((p->recv.bits & URN_REQ_WRITE) && !(p->recv.bits & URN_REQ_RECV))
		urn_failure_quiet(tp, qp, URN_FAILURE_REFUSED, p->psn,
				  0); /* no receive completes */
	else
		urn_failure_receive(tp, qp, p->psn, status, URN_VE_MEMORY, 0);
	if (p->recv.bits & URN_REQ_RECV)
		recv_done(tp, qp, m, status, URN_VE_MEMORY);
	else if (p->op->flags & URN_OPF_SEND)
		qp->flags |= URN_QPF_RECV_BAD; /* the receive of its message, which is incomplete */
	if (!(p->recv.bits & URN_REQ_RECV))
		urn_qp_event(tp, qp, URN_EVENT_QP_FATAL);
	urn_qp_error(tp, qp);
}

void
urn_uc_finish(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	struct urn_pkt *p = urn_pkt(m);

	if (unlikely(qp->state == URN_QPS_ERR)) {
		flushed(tp, qp, m);
		return;
	}
	if (unlikely(p->action == URN_ACT_REQUEST && (p->recv.bits & URN_REQ_BESIDE)) &&
	    !urn_beside_ready(tp, qp, m, urn_pkt_payload(m), p->payload_len))
		p->mem_status = URN_MEMOP_FAILED;
	if (unlikely(p->action == URN_ACT_NAK)) {
		urn_failure_receive(tp, qp, p->psn, p->recv.status, p->recv.vendor_err, 0);
		recv_done(tp, qp, m, p->recv.status, p->recv.vendor_err);
		urn_qp_error(tp, qp);
	} else if (unlikely(p->mem_status != URN_MEMOP_DONE)) {
		unwritable(tp, qp, m);
	} else if (p->recv.bits & URN_REQ_LAST) {
		if (p->recv.bits & URN_REQ_RECV)
			recv_done(tp, qp, m, URN_WC_SUCCESS, URN_VE_NONE);
		if (unlikely(qp->state == URN_QPS_RTR))
			urn_qp_established(tp, qp);
	}
	urn_tp_done(tp, m);
}
