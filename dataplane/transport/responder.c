/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder, first half: accept. Checks a request packet in PSN order - sequence, length,
 * right, key - and asks for the memory operations. This half changes only the state that the next
 * packet is checked against; everything that the peer or the program may see waits for the second
 * half (resp_finish.c).
 *
 * Packets ahead of their turn are kept, sorted, within a bound; they take no receive and touch no
 * memory. A refusal takes its turn like any packet, so it never overtakes the acknowledgement of
 * earlier packets.
 */
#include "transport/ack.h"
#include "transport/act.h"
#include "transport/complete.h"
#include "transport/frame.h"
#include "transport/pool.h"
#include "transport/kept.h"
#include "transport/requester.h"
#include "transport/resp_accept.h"
#include "transport/responder.h"
#include "transport/ring.h"
#include "transport/sched.h"

void
urn_resp_refuse_recv(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m, uint8_t syndrome,
		     uint64_t wr_id, uint8_t status, uint8_t vendor_err)
{
	struct urn_pkt *p = urn_pkt(m);

	urn_resp_refuse(tp, qp, m, syndrome);
	p->recv.bits = URN_REQ_RECV;
	p->recv.status = status;
	p->recv.vendor_err = vendor_err;
	p->recv.wr_id = wr_id;
}

/* No receive: the peer is to try later. The packet was not accepted. */
static void
not_ready(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	urn_pkt(m)->recv.syndrome = URN_SYN_RNR | qp->min_rnr_timer;
	urn_pkt(m)->recv.bits = 0;
	urn_ack_not_ready(&qp->rx);
	urn_tp_hold(tp, m, qp, URN_ACT_NAK);
}

/* ---- SEND */

/* Take a receive for a SEND that begins. returns: false when the packet was dealt with */
static bool
begin_send(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	uint64_t wr_id = 0;
	bool bad;

	qp->recv = urn_qp_take_recv(tp, qp, &bad, &wr_id);
	if (likely(qp->recv != NULL)) {
		qp->msg = URN_MSG_SEND;
		qp->msg_off = 0;
		return true;
	}
	if (bad)
		urn_resp_refuse_recv(tp, qp, m, URN_NAK_OP, wr_id, URN_WC_LOC_QP_OP_ERR,
				     URN_VE_BAD_WQE);
	else
		not_ready(tp, qp, m);
	return false;
}

/* A refusal uses up the receive under way. returns: its wr_id */
static uint64_t
spoil_recv(struct urn_tp *tp, struct urn_qp *qp)
{
	uint64_t wr_id = qp->recv->wr_id;

	urn_resp_recv_used(tp, qp);
	qp->msg = URN_MSG_NONE;
	return wr_id;
}

/* Invalidate the key that a SEND names. *old: see struct urn_mem_binding */
static bool
invalidate(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m, struct urn_region **old)
{
	struct urn_mem_binding b = {.windows = &qp->windows};

	if (urn_mem_invalidate(tp->cfg.mem, urn_resp_key_to_invalidate(m), qp->pd, qp->qpn, &b) !=
	    URN_MEM_OK)
		return false;
	*old = b.old;
	return true;
}

/*
 * Let the packet wait until memory has answered all earlier operations on that region: packets
 * before it have their turn first anyway, but answers to READs may still be read from the region.
 * Operations on the region keep it, so the window's count is given back.
 */
static void
wait_for_region(struct urn_tp *tp, struct rte_mbuf *m, struct urn_region *mr)
{
	urn_tp_op(tp, m, URN_MEMOP_FENCE, mr, mr->start, NULL, 1);
	urn_mem_let_go(tp->cfg.mem, mr);
}

static void
accept_send(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	struct urn_pkt *p = urn_pkt(m);
	uint32_t len = p->payload_len;
	struct urn_region *old = NULL;
	enum urn_mem_error e;

	if ((p->op->flags & URN_OPF_FIRST) && !begin_send(tp, qp, m))
		return;
	if (unlikely(len > qp->recv->length - qp->msg_off)) {
		urn_resp_refuse_recv(tp, qp, m, URN_NAK_INV_REQ, spoil_recv(tp, qp),
				     URN_WC_LOC_LEN_ERR, URN_VE_RECV_SHORT);
		return;
	}
	/*
	 * The key is invalidated here and not in the second half: a packet behind this one is
	 * checked before that half, and must neither get through nor be placed after the program
	 * was told that the key is dead.
	 */
	if (unlikely(p->op->off[URN_EXT_IETH]) && !invalidate(tp, qp, m, &old)) {
		urn_resp_refuse_recv(tp, qp, m, URN_NAK_ACCESS, spoil_recv(tp, qp),
				     URN_WC_LOC_ACCESS_ERR, URN_VE_WINDOW);
		return;
	}
	e = urn_resp_place_send(tp, qp, m);
	if (unlikely(e != URN_MEM_OK))
		urn_resp_refuse_recv(tp, qp, m, URN_NAK_OP, spoil_recv(tp, qp), URN_WC_LOC_PROT_ERR,
				     urn_vendor_err(e));
	if (unlikely(old != NULL))
		wait_for_region(tp, m, old);
	if (unlikely(e != URN_MEM_OK))
		return;
	qp->msg_off += len;
	if (p->op->flags & URN_OPF_LAST) {
		urn_resp_message_ends(qp, m, qp->recv->wr_id, true);
		urn_resp_recv_used(tp, qp);
	}
	urn_resp_accepted(tp, qp, m, URN_ACT_REQUEST, 1);
}

/* ---- WRITE */

/* Check the header of a WRITE. returns: 0 or the syndrome to refuse it with */
static uint8_t
begin_write(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	urn_resp_write_header(qp, m);
	if (!(urn_pkt(m)->op->flags & URN_OPF_LAST) && qp->msg_len <= qp->mtu)
		return URN_NAK_INV_REQ;
	return urn_resp_write_begins(tp, qp);
}

/* True when a packet has the end of the WRITE, and of the head as much as the packet's header says.
 */
static bool
two_fit(const struct urn_qp *qp, struct rte_mbuf *m)
{
	uint32_t left = qp->msg_len - qp->msg_off, len = urn_pkt(m)->payload_len;
	struct urn_reth r;

	memcpy(&r, urn_pkt_ext(m, URN_EXT_RETH), sizeof(r));
	return len > left && len - left == rte_be_to_cpu_32(r.length);
}

/* True when this packet's length fits the WRITE. */
static bool
write_fits(const struct urn_tp *tp, const struct urn_qp *qp, struct rte_mbuf *m)
{
	const struct urn_pkt *p = urn_pkt(m);
	uint32_t left = qp->msg_len - qp->msg_off;

	if (unlikely(urn_resp_is_two(p)))
		return (tp->cfg.features & URN_LINK_F_WRITE_TWO) && two_fit(qp, m);
	return p->op->flags & URN_OPF_LAST ? p->payload_len == left : p->payload_len < left;
}

/*
 * Place the last packet of a WRITE with two addresses: the end of the bulk, and the head where the
 * packet says. returns: false when a key has died, or the head's key or range is not allowed;
 * nothing is placed then
 */
static __attribute__((noinline)) bool
place_two(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	uint32_t left = qp->msg_len - qp->msg_off, head = urn_pkt(m)->payload_len - left;
	uint64_t at = qp->msg_va + qp->msg_off, va;
	struct urn_region *bulk, *region;
	struct urn_reth r;

	memcpy(&r, urn_pkt_ext(m, URN_EXT_RETH), sizeof(r));
	va = rte_be_to_cpu_64(r.va);
	if (urn_mem_check(tp->cfg.mem, qp->msg_rkey, qp->pd, qp->qpn, at, left,
			  URN_ACCESS_REMOTE_WRITE, 1, &bulk) != URN_MEM_OK)
		return false;
	if (urn_mem_check(tp->cfg.mem, rte_be_to_cpu_32(r.rkey), qp->pd, qp->qpn, va, head,
			  URN_ACCESS_REMOTE_WRITE, 1, &region) != URN_MEM_OK)
		return false;
	urn_tp_op(tp, m, URN_MEMOP_PLACE, bulk, at, urn_pkt_payload(m), left);
	urn_tp_op(tp, m, URN_MEMOP_PLACE, region, va, urn_pkt_payload(m) + left, head);
	qp->msg_off += left + head;
	return true;
}

static void
accept_write(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	struct urn_pkt *p = urn_pkt(m);
	bool recv = (p->op->flags & URN_OPF_RECV) != 0, bad = false;
	struct urn_recv *r = NULL;
	uint8_t syndrome = 0;
	uint64_t wr_id = 0;

	if (p->op->flags & URN_OPF_FIRST)
		syndrome = begin_write(tp, qp, m);
	if (!syndrome && !write_fits(tp, qp, m))
		syndrome = URN_NAK_INV_REQ;
	if (unlikely(syndrome)) {
		urn_resp_refuse(tp, qp, m, syndrome);
		return;
	}
	if (recv) {
		r = urn_qp_take_recv(tp, qp, &bad, &wr_id);
		if (!r && !bad) {
			if (p->op->flags & URN_OPF_FIRST)
				qp->msg = URN_MSG_NONE;
			not_ready(tp, qp, m);
			return;
		}
		if (r)
			urn_recv_put(tp, qp, r); /* only its wr_id is needed */
	}
	if (bad) {
		urn_resp_refuse_recv(tp, qp, m, URN_NAK_OP, wr_id, URN_WC_LOC_QP_OP_ERR,
				     URN_VE_BAD_WQE);
		return;
	}
	if (unlikely(urn_resp_is_two(p) ? !place_two(tp, qp, m)
					: !urn_resp_place_write(tp, qp, m))) {
		if (recv)
			urn_resp_refuse_recv(tp, qp, m, URN_NAK_ACCESS, wr_id,
					     URN_WC_LOC_ACCESS_ERR, URN_VE_ACCESS);
		else
			urn_resp_refuse(tp, qp, m, URN_NAK_ACCESS);
		return;
	}
	p->recv.bits = URN_REQ_WRITE;
	if (p->op->flags & URN_OPF_LAST)
		urn_resp_message_ends(qp, m, wr_id, recv);
	urn_resp_accepted(tp, qp, m, URN_ACT_REQUEST, 1);
}

/* ---- order */

/* True when the opcode is one that may follow, and the payload has the right length. */
static bool
follows(const struct urn_qp *qp, struct rte_mbuf *m)
{
	uint32_t f = urn_pkt(m)->op->flags;

	if (qp->msg == URN_MSG_NONE
		    ? !(f & URN_OPF_FIRST)
		    : (f & URN_OPF_FIRST) ||
			      !(f & (qp->msg == URN_MSG_SEND ? URN_OPF_SEND : URN_OPF_WRITE)))
		return false;
	return urn_resp_has_length(qp, m);
}

/* Not in line: with one caller each, the functions for SENDs and WRITEs are in line here. */
static __attribute__((noinline)) void
accept_in_order(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	uint32_t f = urn_pkt(m)->op->flags;

	urn_pkt_begin(urn_pkt(m));
	if (unlikely(!follows(qp, m)))
		urn_resp_refuse(tp, qp, m, URN_NAK_INV_REQ);
	else if (f & URN_OPF_SEND)
		accept_send(tp, qp, m);
	else if (f & URN_OPF_WRITE)
		accept_write(tp, qp, m);
	else if (f & URN_OPF_READ)
		urn_resp_accept_read(tp, qp, m);
	else
		urn_resp_accept_atomic(tp, qp, m);
	if (unlikely(urn_ack_has_gap(&qp->rx)))
		urn_ack_gap_closed(&qp->rx, (qp->flags & URN_QPF_REFUSED) != 0);
	if (unlikely(qp->flags & URN_QPF_TRACE))
		urn_trace_age(tp, qp, URN_TRACE_REQ);
}

/*
 * True when this packet is a copy of the one that was kept in its place and taken up in its turn.
 * Other bytes under the same headers are only counted, because a requester that repeats reads its
 * program's memory again, and the program may have written there by then. No requester sends other
 * headers: one of the two packets was forged, and perhaps the one that was executed.
 * returns: false when the QP fails for that reason: m is taken
 */
static __attribute__((cold, noinline)) bool
is_copy(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	enum urn_trace_verdict v = urn_trace_compare(tp, qp, URN_TRACE_REQ, m);

	if (likely(v == URN_TRACE_SAME))
		return true;
	URN_COUNT(tp, CONTRADICTS);
	if (v == URN_TRACE_PAYLOAD)
		return true;
	urn_pkt_begin(urn_pkt(m));
	urn_pkt(m)->psn = qp->rx.epsn; /* earlier packets were acknowledged, perhaps */
	urn_resp_refuse(tp, qp, m, URN_NAK_OP);
	return false;
}

/* Handle a packet behind its turn: it was accepted before. */
static void
duplicate(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	struct urn_pkt *p = urn_pkt(m);
	uint8_t act = p->op->flags & URN_OPF_READ     ? URN_ACT_DUP_READ
		      : p->op->flags & URN_OPF_ATOMIC ? URN_ACT_DUP_ATOMIC
						      : URN_ACT_DUP;

	URN_COUNT(tp, DUPLICATES);
	if (unlikely(qp->flags & URN_QPF_TRACE) && !is_copy(tp, qp, m))
		return;
	urn_pkt_begin(p);
	if (unlikely(urn_tp_gated(tp, qp)) && act != URN_ACT_DUP)
		urn_resp_replay(tp, qp, m); /* needs no memory, and must wait for none */
	else
		urn_tp_hold(tp, m, qp, act);
}

/* Handle a packet d PSNs ahead of its turn. */
static void
ahead(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m, int32_t d)
{
	/* Within that bound the store has a place for each packet. */
	bool far = d > URN_TP_OOO_QP, kept = !far && urn_resp_keep(tp, qp, m);

	URN_COUNT(tp, OUT_OF_ORDER);
	if (urn_ack_ahead(&qp->rx, tp->turn, urn_qp_selective(tp, qp), far))
		urn_tp_sched(tp, qp);
	if (!kept)
		urn_tp_drop(tp, m, far ? URN_C_DROP_FAR : URN_C_DROP_OOO);
}

/* Accept a kept packet in its turn. The kept packet's fingerprint stays, because the genuine packet
 * may still come. */
static void
accept_one_kept(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	struct urn_print print = urn_trace_print(m);
	uint32_t psn = urn_pkt(m)->psn;

	accept_in_order(tp, qp, m);
	if (likely(qp->rx.epsn != psn))
		urn_trace_add(tp, qp, URN_TRACE_REQ, psn, print);
}

/* Accept the kept packets whose turn has come. */
static void
accept_kept(struct urn_tp *tp, struct urn_qp *qp)
{
	struct rte_mbuf *m;
	bool filled = false;

	while ((m = urn_ring_first(qp->rx.ooo)) && !(qp->flags & URN_QPF_REFUSED) &&
	       !urn_ack_is_not_ready(&qp->rx)) {
		int32_t d = urn_psn_rx_ahead(&qp->rx, urn_pkt(m)->psn);

		if (d > 0)
			break;
		if (urn_tp_burst_full(tp)) {
			urn_tp_execute(tp);
			continue; /* executing may have ended the QP, and let go of its kept packets
				   */
		}
		urn_ring_pop(&qp->rx.ooo);
		qp->rx.ooo_count--;
		urn_kept_count(tp, qp->share, -1);
		if (d < 0) {
			duplicate(tp, qp, m);
		} else {
			accept_one_kept(tp, qp, m);
			filled = true;
		}
	}
	if (filled && !(qp->flags & URN_QPF_REFUSED) &&
	    urn_ack_taken_up(&qp->rx, tp->turn, urn_qp_selective(tp, qp)))
		urn_tp_sched(tp, qp);
}

URN_FAST void
urn_resp_accept(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	int32_t d = urn_psn_rx_ahead(&qp->rx, urn_pkt(m)->psn);

	if (likely(d == 0)) {
		urn_ack_came(&qp->rx);
		accept_in_order(tp, qp, m);
		if (unlikely(qp->rx.ooo != NULL))
			accept_kept(tp, qp);
	} else if (d < 0) {
		duplicate(tp, qp, m);
	} else {
		ahead(tp, qp, m, d);
	}
}
