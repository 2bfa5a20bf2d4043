/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unreliable datagrams. A send is complete once its frame is made. A receive gets 40 bytes in front
 * of the payload: the IPv6 header, or for IPv4 20 zero bytes and the IPv4 header (doc/reference/wire.md
 * "Lengths").
 */
#include "transport/act.h"
#include "transport/beside.h"
#include "transport/complete.h"
#include "transport/frame.h"
#include "transport/part.h"
#include "transport/pool.h"
#include "transport/qp_end.h"
#include "transport/requester.h"
#include "transport/sched.h"
#include "transport/service.h"

/* ---- sending */

/* Complete the headers of an address handle. returns: 0, -1 wait, -2 unreachable */
static int
resolve(struct urn_tp *tp, struct urn_ah *ah)
{
	uint8_t mac[6];
	int rc;

	if (likely(ah->loop || !tp->cfg.neigh || (ah->ready && tp->now < ah->mac_until)))
		return 0;
	rc = tp->cfg.neigh(tp->cfg.neigh_ctx, ah->av.dgid, mac);
	if (rc == 0) {
		if (memcmp(ah->tmpl.bytes, mac, 6) != 0)
			memcpy(ah->tmpl.bytes, mac, 6);
		ah->mac_until = tp->now + URN_TP_AH_NS;
		ah->ready = true;
	}
	return rc;
}

static bool
build(struct urn_tp *tp, struct urn_qp *qp, struct urn_work *w, const struct urn_ah *ah)
{
	bool imm = w->kind & URN_WK_IMM;
	uint8_t opcode = imm ? URN_UD_SEND_ONLY_IMM : URN_UD_SEND_ONLY, *bth;
	const struct urn_opcode *op = &urn_opcodes[opcode];
	uint8_t se = w->flags & URN_WRF_SOLICITED ? URN_BTH_SE : 0;
	struct urn_txd *t = urn_tp_frame(tp, &ah->tmpl, opcode, w->length, w->wqe.ud.remote_qpn,
					 qp->tx.next, se, false, &bth);

	if (unlikely(!t))
		return false;

	uint8_t *data = bth + op->hdr_len;
	uint32_t qkey = w->wqe.ud.remote_qkey;
	/* A Q_Key with the top bit set stands for the QP's own Q_Key (IBTA 10.2.5). */
	struct urn_deth d = {
		.qkey = rte_cpu_to_be_32(qkey & 0x80000000u ? qp->qkey : qkey),
		.sqpn = rte_cpu_to_be_32(qp->qpn),
	};

	t->loop = ah->loop;
	memcpy(bth + op->off[URN_EXT_DETH], &d, sizeof(d));
	if (imm)
		memcpy(bth + op->off[URN_EXT_IMM], &w->imm, 4);
	if (w->flags & URN_WRF_INLINE) {
		memcpy(data, urn_work_inline(w), w->length);
	} else {
		enum urn_mem_error e = urn_tp_sge_ops(tp, t->m, t, urn_work_sge(w), w->num_sge, 0,
						      data, w->length, qp->pd);

		if (e != URN_MEM_OK) {
			urn_tp_unframe(tp, t);
			w->state = URN_WORK_FAILED;
			w->status = URN_WC_LOC_PROT_ERR;
			w->vendor_err = urn_vendor_err(e);
			return true;
		}
	}
	qp->tx.next = urn_psn_add(qp->tx.next, 1);
	w->state = URN_WORK_SENT;
	urn_tp_send(tp, t, qp, URN_ACT_TX_DATAGRAM, ah->loop);
	if (unlikely(ah->group))
		t->loop = URN_LOOP_GROUP;
	URN_COUNT(tp, TX_REQUESTS);
	return true;
}

/* The oldest request, whose frame is finished; NULL: it was flushed meanwhile. */
static struct urn_work *
finished(const struct urn_qp *qp)
{
	struct urn_work *w = qp->tx.head;

	return w && w->state == URN_WORK_SENT ? w : NULL;
}

static void
sent(struct urn_tp *tp, struct urn_qp *qp)
{
	if (finished(qp))
		urn_req_flush_one(tp, qp, URN_WC_SUCCESS);
}

static void
unreadable(struct urn_tp *tp, const struct urn_txd *d)
{
	struct urn_work *w = finished(d->qp);

	if (w)
		urn_req_fail(tp, d->qp, w, URN_WC_LOC_PROT_ERR, URN_VE_MEMORY);
}

/* A request can't be sent: fail it in its turn, once the requests before it are done. */
static bool
fail_in_turn(struct urn_tp *tp, struct urn_qp *qp, struct urn_work *w)
{
	if (qp->tx.head == w)
		urn_req_fail(tp, qp, w, w->status, w->vendor_err);
	return true;
}

/* Send one request. returns: false when nothing can be done now; *more: try again soon */
static bool
send_one(struct urn_tp *tp, struct urn_qp *qp, struct urn_work *w, bool *more)
{
	struct urn_ah *ah = NULL;
	int rc;

	*more = false;
	if (w->state != URN_WORK_FAILED) {
		ah = tp->cfg.ah ? tp->cfg.ah(tp->cfg.ah_ctx, w->wqe.ud.ah) : NULL;
		if (!ah || ah->pd != qp->pd) {
			w->state = URN_WORK_FAILED;
			w->status = URN_WC_LOC_QP_OP_ERR;
			w->vendor_err = URN_VE_AH;
		}
	}
	if (w->state == URN_WORK_FAILED) {
		*more = fail_in_turn(tp, qp, w);
		return false;
	}
	rc = resolve(tp, ah);
	if (rc == -1) {
		urn_qp_wait_neigh(tp, qp);
		return false;
	}
	if (rc != 0) { /* unreliable: the datagram is lost, and counted */
		URN_COUNT(tp, DROP_NO_NEIGH);
		if (qp->tx.head != w) {
			*more = true;
			return false;
		}
		qp->tx.cur.work = w->next;
		urn_req_flush_one(tp, qp, URN_WC_SUCCESS);
		return true;
	}
	if (unlikely(tp->sched.stopped) && !ah->loop && urn_sched_stops(tp, &qp->source, &ah->tmpl))
		return false;
	*more = true;
	if (!build(tp, qp, w, ah))
		return false;
	if (w->state == URN_WORK_FAILED)
		return false;
	qp->tx.cur.work = w->next;
	return true;
}

/* Check a request: a SEND, with or without immediate, of one packet. */
static uint8_t
check(const struct urn_qp *qp, const struct urn_work *w)
{
	if (!(w->kind & URN_WK_DGRAM))
		return URN_WC_LOC_QP_OP_ERR;
	return w->length > qp->mtu ? URN_WC_LOC_LEN_ERR : URN_WC_SUCCESS;
}

static bool
transmit(struct urn_tp *tp, struct urn_qp *qp, unsigned int budget)
{
	bool more = true;

	if (unlikely(urn_tp_gated(tp, qp))) /* looked at again and again until the gate opens */
		return (qp->tx.cur.work || urn_sq_ready(&qp->sq)) && urn_tp_again(tp, qp);

	while (budget--) {
		struct urn_work *w = qp->tx.cur.work;

		if (!urn_tp_tx_room(tp) || urn_part_ends(tp))
			return true;
		if (!w) {
			if (qp->state != URN_QPS_RTS || !(w = urn_req_fetch(tp, qp)))
				return qp->state == URN_QPS_RTS && urn_sq_ready(&qp->sq) &&
				       urn_tp_again(tp, qp);
			qp->tx.cur.work = w;
		}
		if (w->state == URN_WORK_QUEUED && qp->state != URN_QPS_RTS)
			return false; /* SQD: the request waits */
		if (!send_one(tp, qp, w, &more))
			return more;
	}
	return true;
}

/* ---- receiving */

/* Put the 40 bytes in front of the payload, over headers that were read already. */
static void
make_grh(struct rte_mbuf *m)
{
	const struct urn_pkt *p = urn_pkt(m);
	uint8_t grh[URN_GRH_BYTES] = {0};
	const uint8_t *l3 = rte_pktmbuf_mtod_offset(m, const uint8_t *, p->l3_off);

	if (p->ipv6)
		memcpy(grh, l3, sizeof(struct urn_ipv6));
	else
		memcpy(grh + 20, l3, sizeof(struct urn_ipv4));
	memcpy(urn_pkt_payload(m) - URN_GRH_BYTES, grh, URN_GRH_BYTES);
}

/* Let header and payload be placed, `total` bytes; sets recv.bits. */
static enum urn_mem_error
place(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m, const struct urn_recv *r,
      uint32_t total)
{
	make_grh(m);
	if (urn_beside_takes(tp, qp, m, r, total)) {
		urn_pkt(m)->recv.bits = URN_REQ_BESIDE;
		return URN_MEM_OK;
	}
	return urn_tp_sge_ops(tp, m, NULL, r->sge, r->num_sge, 0,
			      urn_pkt_payload(m) - URN_GRH_BYTES, total, urn_qp_recv_pd(qp));
}

static void
accept_packet(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	struct urn_pkt *p = urn_pkt(m);
	uint32_t total = p->payload_len + URN_GRH_BYTES;
	struct urn_deth d;
	struct urn_recv *r;
	uint64_t wr_id;
	bool bad;

	if (unlikely(urn_tp_gated(tp, qp))) {
		urn_tp_drop(tp, m, URN_C_DROP_MEMORY);
		return;
	}
	memcpy(&d, urn_pkt_ext(m, URN_EXT_DETH), sizeof(d));
	if (rte_be_to_cpu_32(d.qkey) != qp->qkey) {
		urn_tp_drop(tp, m, URN_C_DROP_QKEY);
		return;
	}
	if (p->payload_len > qp->mtu) {
		urn_tp_drop(tp, m, URN_C_DROP_UD_LENGTH);
		return;
	}
	urn_pkt_begin(p);
	r = urn_qp_take_recv(tp, qp, &bad, &wr_id);
	if (!r && !bad) {
		urn_tp_drop(tp, m, URN_C_DROP_UD_NO_RECV);
		return;
	}
	p->recv.bits = 0;
	p->recv.wr_id = wr_id;
	p->recv.bytes = total;
	p->recv.status = URN_WC_SUCCESS;
	p->recv.vendor_err = URN_VE_NONE;
	p->recv.src_qp = rte_be_to_cpu_32(d.sqpn) & URN_QPN_MASK;
	if (p->op->off[URN_EXT_IMM])
		memcpy(&p->recv.imm, urn_pkt_ext(m, URN_EXT_IMM), 4);
	if (bad) {
		p->recv.status = URN_WC_LOC_QP_OP_ERR;
		p->recv.vendor_err = URN_VE_BAD_WQE;
	} else if (total > r->length) {
		p->recv.status = URN_WC_LOC_LEN_ERR;
		p->recv.vendor_err = URN_VE_RECV_SHORT;
	} else {
		enum urn_mem_error e = place(tp, qp, m, r, total);

		if (e != URN_MEM_OK) {
			p->recv.status = URN_WC_LOC_PROT_ERR;
			p->recv.vendor_err = urn_vendor_err(e);
		}
	}
	if (r)
		urn_recv_put(tp, qp, r);
	urn_tp_hold(tp, m, qp, URN_ACT_UD_RECV);
}

static void
finish_packet(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	struct urn_pkt *p = urn_pkt(m);
	uint8_t status = p->recv.status, ve = p->recv.vendor_err;
	bool imm = p->op->off[URN_EXT_IMM] != 0;

	if ((p->recv.bits & URN_REQ_BESIDE) &&
	    !urn_beside_ready(tp, qp, m, urn_pkt_payload(m) - URN_GRH_BYTES, p->recv.bytes))
		p->mem_status = URN_MEMOP_FAILED;
	if (status == URN_WC_SUCCESS && p->mem_status != URN_MEMOP_DONE) {
		status = URN_WC_LOC_PROT_ERR;
		ve = URN_VE_MEMORY;
	}
	if (status == URN_WC_LOC_LEN_ERR)
		URN_COUNT(tp, DROP_UD_LENGTH);
	else if (status != URN_WC_SUCCESS)
		URN_COUNT(tp, DROP_UD_MEMORY);
	if (qp->state == URN_QPS_ERR)
		status = URN_WC_WR_FLUSH_ERR;
	else if (status != URN_WC_SUCCESS)
		urn_failure_receive(tp, qp, 0, status, ve, 0);
	urn_qp_recv_done(tp, qp, p->recv.wr_id, status, ve, p->recv.bytes, URN_WCO_RECV,
			 (uint8_t)(URN_WCF_GRH | (p->ipv6 ? 0 : URN_WCF_IPV4) |
				   (imm ? URN_WCF_WITH_IMM : 0) |
				   (status == URN_WC_SUCCESS && (p->recv.bits & URN_REQ_BESIDE)
					    ? URN_WCF_BESIDE
					    : 0)),
			 imm ? p->recv.imm : 0, p->recv.src_qp, p->solicited);
	urn_tp_done(tp, m);
}

const struct urn_service urn_ud = {
	.name = "UD",
	.offered = true,
	.opcodes = URN_OPF_UD,
	.checked = UINT8_MAX,
	.moves = urn_ud_moves,
	.accept = accept_packet,
	.finish = finish_packet,
	.check = check,
	.transmit = transmit,
	.flush = urn_qp_flush,
	.unreadable = unreadable,
	.sent = sent,
	.fail = urn_qp_sqe,
};
