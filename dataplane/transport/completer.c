/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Responses at the requester: ACK, NAK, READ responses, atomic responses (doc/reference/wire.md
 * "Acknowledgement", "Errors at the requester").
 *
 * A READ or atomic is completed by its response alone. An acknowledgement that reaches beyond a
 * READ whose response is missing shows that the response was lost: the acknowledgement counts up to
 * that READ only, and the READ is asked for again.
 */
#include "transport/act.h"
#include "transport/back.h"
#include "transport/frame.h"
#include "transport/pool.h"
#include "transport/psn_timer.h"
#include "transport/requester.h"
#include "transport/sched.h"

/* Codes of doc/reference/wire.md. */
static const uint16_t credit_value[32] = {
	0,   1,   2,   3,   4,    6,    8,    12,   16,   24,   32,    48,    64,    96,    128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 0,
};
static const uint32_t rnr_us[32] = {
	655360, 10,   20,   30,   40,   60,    80,    120,   160,   240,   320,
	480,    640,  960,  1280, 1920, 2560,  3840,  5120,  7680,  10240, 15360,
	20480, 30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520,
};

static void refused(struct urn_tp *tp, struct urn_qp *qp, uint32_t psn, uint8_t syndrome);
static void receiver_not_ready(struct urn_tp *tp, struct urn_qp *qp, uint32_t psn, uint8_t code);

/* There was progress: settle repairs, and handle a refusal whose turn has come. */
static void
progress_repair(struct urn_tp *tp, struct urn_qp *qp)
{
	struct urn_repair *r = urn_repair_of(tp, &qp->tx);
	uint8_t syndrome = r->nak_syn;
	int32_t d = syndrome ? urn_psn_diff(qp->tx.una, r->nak_psn) : -1;

	if (d >= 0)
		r->nak_syn = 0; /* its turn has come; or the refused request was repeated and is done */
	if (d != 0)
		urn_repair_settle(tp, qp);
	else if ((syndrome & URN_SYN_KIND) == URN_SYN_RNR)
		receiver_not_ready(tp, qp, qp->tx.una, syndrome & URN_SYN_VALUE);
	else
		refused(tp, qp, qp->tx.una, syndrome);
}

/* n more PSNs were acknowledged: counts and timers start again. */
static void
progress(struct urn_tp *tp, struct urn_qp *qp, uint32_t n)
{
	urn_psn_progress(&qp->tx);
	if (unlikely(qp->tx.early) && !(qp->tx.flags & URN_TXF_HELD))
		urn_peer_repeats(urn_qp_peer(tp, qp), tp->cfg.rto_floor, tp->now);
	if (unlikely(qp->tx.back || (qp->tx.flags & URN_TXF_EARLY)))
		urn_req_back_answered(tp, qp);
	urn_peer_timed(tp, &qp->tx, n);
	if (unlikely(qp->tx.repair))
		progress_repair(tp, qp);
	if (unlikely(qp->state == URN_QPS_ERR))
		return;
	if (unlikely(qp->flags & URN_QPF_TRACE))
		urn_trace_age(tp, qp, URN_TRACE_RESP);
	if (qp->tx.una != qp->tx.next)
		urn_req_arm(tp, qp);
	else /* work posted from here on waits for an address from its own beginning */
		qp->flags &= ~(uint32_t)URN_QPF_NO_MAC;
	if (qp->tx.cur.work || urn_sq_ready(&qp->sq))
		urn_tp_sched(tp, qp);
}

/*
 * A response was lost, or packets were (NAK): repeat from una, once until there is progress.
 * answers: responses did not arrive; false: the peer misses packets
 */
static void
lost(struct urn_tp *tp, struct urn_qp *qp, bool answers)
{
	struct urn_work *w;

	if (qp->state != URN_QPS_RTS && qp->state != URN_QPS_SQD)
		return; /* the last acknowledgement has ended the QP */
	urn_peer_heard(urn_qp_peer(tp, qp), tp->now);
	switch (urn_psn_lost(&qp->tx)) {
	case URN_PSN_NO_MATTER:
		break;
	case URN_PSN_ALL_BACK:
		urn_req_all_back(tp, qp);
		break;
	case URN_PSN_GO_BACK:
		urn_req_go_back(tp, qp);
		urn_req_arm(tp, qp);
		break;
	case URN_PSN_USED_UP:
		w = urn_psn_tx_oldest(&qp->tx);
		if (w)
			urn_req_fail(tp, qp, w, URN_WC_RETRY_EXC_ERR, URN_VE_SEQ);
		if (w)
			urn_failure_sequence(tp, qp->share, qp->qpn, answers);
		break;
	}
}

/*
 * Everything before PSN `to` is acknowledged. returns: false when a READ or atomic without its
 * response stands before `to`; the rest counts once that response has come
 */
static URN_FAST bool
acked(struct urn_tp *tp, struct urn_qp *qp, uint32_t to)
{
	uint32_t n;
	bool whole;

	if (urn_psn_diff(to, qp->tx.acked) > 0) {
		qp->tx.acked = to;
		/* The peer had no receive for a request, but took a copy of the request after all. */
		if (unlikely(qp->tx.flags & URN_TXF_RNR_WAIT))
			urn_req_end_rnr_wait(tp, qp);
	}
	n = urn_psn_tx_settle(&qp->tx, &whole);
	if (n) {
		urn_req_retire(tp, qp);
		if (likely(qp->state == URN_QPS_RTS || qp->state == URN_QPS_SQD))
			progress(tp, qp, n);
	}
	return whole;
}

/* ---- accept: checks in order of arrival */

static void
bad_response(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m, uint8_t status,
	     uint8_t vendor_err)
{
	qp->tx.fetch->state = URN_WORK_BROKEN; /* further responses to it are not looked at */
	urn_pkt(m)->bad = (struct urn_pkt_bad){.status = status, .vendor_err = vendor_err};
	urn_tp_hold(tp, m, qp, URN_ACT_BAD_RESP);
}

/*
 * Find the READ or atomic that this response is the next one of: the oldest that waits for one.
 * NULL: the response does not match, and was dealt with.
 */
static struct urn_work *
match(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	struct urn_work *w = qp->tx.fetch;
	struct urn_pkt *p = urn_pkt(m);

	if (urn_psn_diff(p->psn, qp->tx.next) >= 0) {
		urn_tp_drop(tp, m, URN_C_DROP_PSN);
		return NULL;
	}
	if (!w || w->state == URN_WORK_BROKEN) {
		if (unlikely(qp->flags & URN_QPF_TRACE) && !urn_comp_is_copy(tp, qp, m))
			return NULL;
		urn_req_alive(tp, qp, p->psn, true);
		urn_tp_drop(tp, m, URN_C_DROP_RESPONSE);
		return NULL;
	}

	int32_t d = urn_psn_diff(p->psn, urn_psn_add(w->first_psn, w->accepted));

	if (likely(d == 0))
		return w;
	if (d > 0) {
		URN_COUNT(tp, OUT_OF_ORDER);
		if (urn_qp_selective(tp, qp)) {
			/* Packets missing before it may only be late, and are asked for separately. */
			enum urn_keep kept = urn_repair_keep(tp, qp, m);

			if (kept == URN_KEEP_AGAIN)
				urn_tp_drop(tp, m, URN_C_DROP_OOO);
			if (kept != URN_KEEP_NO_ROOM)
				return NULL;
		}
		/* Handled in its turn, because a loss may end the QP while memory still places earlier responses. */
		urn_pkt_begin(p);
		urn_tp_hold(tp, m, qp, URN_ACT_LOST);
		return NULL;
	}
	URN_COUNT(tp, DUPLICATES);
	if (unlikely(qp->flags & URN_QPF_TRACE) && !urn_comp_is_copy(tp, qp, m))
		return NULL;
	urn_req_alive(tp, qp, p->psn, true);
	urn_tp_done(tp, m);
	return NULL;
}

/* The oldest waiting READ or atomic has its whole response: find the next one. */
static void
next_fetch(struct urn_qp *qp)
{
	struct urn_work *w = qp->tx.fetch->next;

	while (w && !(urn_work_is_fetch(w) && w->npsn && w->accepted < w->npsn))
		w = w->next;
	qp->tx.fetch = w && w->state == URN_WORK_SENT ? w : NULL;
}

static void
accept_read(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	struct urn_work *w = match(tp, qp, m);
	struct urn_pkt *p = urn_pkt(m);

	if (!w)
		return;

	uint32_t off = w->accepted << qp->mtu_shift, left = w->length - off;
	bool last = w->accepted + 1 == w->npsn;
	bool ends = (p->op->flags & URN_OPF_LAST) != 0;

	urn_pkt_begin(p);
	if (!urn_work_is_read(w) || (ends != last && (last || !w->parts)) ||
	    p->payload_len != (last ? left : qp->mtu)) {
		bad_response(tp, qp, m, URN_WC_BAD_RESP_ERR, URN_VE_RESPONSE);
		return;
	}

	enum urn_mem_error e = urn_tp_sge_op(tp, m, NULL, urn_work_sge(w), w->num_sge, off,
					     urn_pkt_payload(m), p->payload_len, qp->pd);

	if (e != URN_MEM_OK) {
		bad_response(tp, qp, m, URN_WC_LOC_PROT_ERR, urn_vendor_err(e));
		return;
	}
	w->accepted++;
	if (last)
		next_fetch(qp);
	if (unlikely(qp->tx.repair))
		urn_repair_came(tp, qp, p->psn);
	urn_tp_hold(tp, m, qp, URN_ACT_READ_RESP);
}

static void
accept_atomic(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	struct urn_work *w = match(tp, qp, m);
	struct urn_pkt *p = urn_pkt(m);

	if (!w)
		return;
	urn_pkt_begin(p);
	if (urn_work_is_read(w)) {
		bad_response(tp, qp, m, URN_WC_BAD_RESP_ERR, URN_VE_RESPONSE);
		return;
	}

	/* Convert to host order in the frame, from where the value is placed. */
	uint8_t *orig = urn_pkt_ext(m, URN_EXT_ATOMIC_ACK);
	uint64_t v;

	memcpy(&v, orig, sizeof(v));
	v = rte_be_to_cpu_64(v);
	memcpy(orig, &v, sizeof(v));

	enum urn_mem_error e = urn_tp_sge_ops(tp, m, NULL, urn_work_sge(w), w->num_sge, 0, orig, 8,
					      qp->pd);

	if (e != URN_MEM_OK) {
		bad_response(tp, qp, m, URN_WC_LOC_PROT_ERR, urn_vendor_err(e));
		return;
	}
	w->accepted++;
	next_fetch(qp);
	if (unlikely(qp->tx.repair))
		urn_repair_came(tp, qp, urn_pkt(m)->psn);
	urn_tp_hold(tp, m, qp, URN_ACT_ATOMIC_ACK);
}

static void
accept_response(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	if (unlikely(urn_pkt(m)->op->flags & URN_OPF_ATOMIC))
		accept_atomic(tp, qp, m);
	else
		accept_read(tp, qp, m);
}

/* Accept a kept response in its turn. The response's fingerprint is kept, because the genuine
 * packet may still come. */
static void
accept_one_kept(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	uint32_t psn = urn_pkt(m)->psn;
	bool due = urn_psn_tx_response(&qp->tx) == psn;
	struct urn_print print = urn_trace_print(m);

	accept_response(tp, qp, m);
	if (due && urn_psn_tx_response(&qp->tx) != psn)
		urn_trace_add(tp, qp, URN_TRACE_RESP, psn, print);
}

/* Accept the kept responses whose turn has come. */
static void
accept_kept(struct urn_tp *tp, struct urn_qp *qp)
{
	struct rte_mbuf *m;

	for (;;) {
		/* Executing may end the QP, and let go of its kept packets. */
		if (urn_tp_burst_full(tp))
			urn_tp_execute(tp);
		m = urn_repair_take(tp, qp);
		if (!m)
			return;
		accept_one_kept(tp, qp, m);
	}
}

URN_FAST void
urn_comp_accept(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	struct urn_pkt *p = urn_pkt(m);

	if (likely(p->op->flags & URN_OPF_ACK)) {
		urn_pkt_begin(p);
		urn_tp_hold(tp, m, qp, p->op->off[URN_EXT_SACK] ? URN_ACT_SACK : URN_ACT_ACK);
		return;
	}
	accept_response(tp, qp, m);
	if (unlikely(qp->tx.repair))
		accept_kept(tp, qp);
}

/* ---- finish: in order, memory answered */

static void
receiver_not_ready(struct urn_tp *tp, struct urn_qp *qp, uint32_t psn, uint8_t code)
{
	if (!urn_psn_rnr_left(&qp->tx)) {
		struct urn_work *w = urn_psn_tx_work_at(&qp->tx, psn);

		if (w)
			urn_req_fail(tp, qp, w, URN_WC_RNR_RETRY_EXC_ERR, URN_VE_RNR);
		return;
	}
	urn_req_go_back(tp, qp);
	urn_psn_rnr_wait(&qp->tx, tp->now + rnr_us[code] * 1000ull);
	urn_wheel_start(&tp->wheel, &qp->tx.timer, qp->tx.deadline);
}

static void
refused(struct urn_tp *tp, struct urn_qp *qp, uint32_t psn, uint8_t syndrome)
{
	struct urn_work *w = urn_psn_tx_work_at(&qp->tx, psn);
	uint8_t status = syndrome == URN_NAK_ACCESS ? URN_WC_REM_ACCESS_ERR
			 : syndrome == URN_NAK_OP   ? URN_WC_REM_OP_ERR
						    : URN_WC_REM_INV_REQ_ERR;

	if (w)
		urn_req_fail(tp, qp, w, status, URN_VE_NAK);
}

/* Take credits from the AETH of PSN psn; an AETH that is older than our state gives none. */
static URN_FAST void
take_credits(struct urn_tp *tp, struct urn_qp *qp, uint32_t psn, uint32_t aeth)
{
	uint8_t code = (aeth >> 24) & URN_SYN_VALUE;
	bool had = qp->tx.credits;

	if (urn_psn_diff(psn, qp->tx.una) < -1 || (aeth >> 24 & URN_SYN_KIND) != URN_SYN_ACK)
		return;
	qp->tx.credits = code != 31;
	qp->tx.lsn = ((aeth & URN_PSN_MASK) + credit_value[code]) & URN_PSN_MASK;
	if (had && (qp->tx.cur.work || urn_sq_ready(&qp->sq)))
		urn_tp_sched(tp, qp);
}

static uint32_t
aeth_of(struct rte_mbuf *m)
{
	uint32_t v;

	memcpy(&v, urn_pkt_ext(m, URN_EXT_AETH), sizeof(v));
	return rte_be_to_cpu_32(v);
}

/* Count a NAK. returns: false when its syndrome is reserved: then the NAK means nothing */
static bool
known_nak(struct urn_tp *tp, uint8_t syndrome)
{
	if ((syndrome & URN_SYN_KIND) == URN_SYN_RNR)
		URN_COUNT(tp, RX_RNR_NAKS);
	else if (syndrome >= URN_NAK_SEQ && syndrome <= URN_NAK_OP)
		URN_COUNT(tp, RX_NAKS);
	else
		return false;
	return true;
}

/*
 * A NAK came while a response from before it is missing. Where responses may be overtaken, that is
 * no loss: a refusal waits for its turn, and an RNR NAK is obeyed at once.
 * returns: true when the NAK was dealt with so
 */
static bool
overtook(struct urn_tp *tp, struct urn_qp *qp, uint32_t psn, uint8_t syndrome)
{
	struct urn_repair *r;

	if (!urn_qp_selective(tp, qp) || syndrome == URN_NAK_SEQ || qp->state == URN_QPS_ERR)
		return false;
	if ((syndrome & URN_SYN_KIND) == URN_SYN_RNR && urn_psn_rnr_left(&qp->tx))
		return true;
	r = urn_repair_get(tp, qp);
	if (!r)
		return false;
	r->nak_psn = psn;
	r->nak_syn = syndrome;
	return true;
}

static void
finish_nak(struct urn_tp *tp, struct urn_qp *qp, uint32_t psn, uint8_t syndrome)
{
	bool again = (qp->tx.flags & URN_TXF_RNR_WAIT) && psn == qp->tx.acked;

	if (!known_nak(tp, syndrome)) {
		URN_COUNT(tp, DROP_RESPONSE);
		return;
	}
	if (urn_psn_diff(psn, qp->tx.una) < 0)
		return; /* late: the NAK was dealt with */
	/* The peer may have dropped the packets that it asks for after we went back by ourselves. */
	if (syndrome == URN_NAK_SEQ && unlikely(qp->tx.flags & URN_TXF_OWN_BACK))
		qp->tx.flags &= ~(uint32_t)(URN_TXF_OWN_BACK | URN_TXF_WENT_BACK);
	if (!acked(tp, qp, psn) && !overtook(tp, qp, psn, syndrome)) {
		lost(tp, qp, true);
		return;
	}
	if (qp->state != URN_QPS_RTS && qp->state != URN_QPS_SQD)
		return;
	if ((syndrome & URN_SYN_KIND) == URN_SYN_RNR) {
		if (urn_psn_diff(qp->tx.acked, psn) > 0)
			return; /* late: the request was taken since */
		/* Again: the wire duplicated the NAK, and its wait is under way. */
		if (!again && (qp->tx.una == psn || urn_psn_rnr_left(&qp->tx)))
			receiver_not_ready(tp, qp, psn, syndrome & URN_SYN_VALUE);
	} else if (syndrome == URN_NAK_SEQ) {
		lost(tp, qp, false);
	} else if (qp->tx.una == psn) {
		refused(tp, qp, psn, syndrome);
	}
}

static void
finish_ack(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	uint32_t psn = urn_pkt(m)->psn, aeth = aeth_of(m);
	uint8_t syndrome = aeth >> 24 & (URN_SYN_KIND | URN_SYN_VALUE); /* the top bit is reserved */

	if (urn_psn_diff(psn, qp->tx.next) >= 0) {
		URN_COUNT(tp, DROP_PSN);
		return;
	}
	if ((syndrome & URN_SYN_KIND) != URN_SYN_ACK) {
		finish_nak(tp, qp, psn, syndrome);
		return;
	}
	URN_COUNT(tp, RX_ACKS);
	take_credits(tp, qp, psn, aeth);
	if (unlikely(urn_psn_diff(psn, qp->tx.una) < 0))
		urn_req_alive(tp, qp, psn, false);
	else if (!acked(tp, qp, urn_psn_add(psn, 1)) &&
	    !urn_qp_selective(tp, qp))
		lost(tp, qp, true);
}

/* An ACK that also lists later packets that the peer has. A SACK may have overtaken responses. */
static void
finish_sack(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	uint32_t psn = urn_pkt(m)->psn, aeth = aeth_of(m);

	if (!(tp->cfg.features & URN_LINK_F_SACK)) {
		URN_COUNT(tp, DROP_RESPONSE);
		return;
	}
	if (urn_psn_diff(psn, qp->tx.next) >= 0 ||
	    (aeth >> 24 & (URN_SYN_KIND | URN_SYN_VALUE)) != URN_SYN_ACK_NOCREDIT) {
		URN_COUNT(tp, DROP_SACK);
		return;
	}
	URN_COUNT(tp, RX_SACKS);
	if (urn_psn_diff(psn, qp->tx.una) >= 0)
		acked(tp, qp, urn_psn_add(psn, 1));
	if ((qp->state != URN_QPS_RTS && qp->state != URN_QPS_SQD) ||
	    (qp->tx.flags & URN_TXF_RNR_WAIT) || qp->tx.una == qp->tx.next)
		return;
	if (!urn_repair_sack(tp, qp, m))
		lost(tp, qp, false);
}

/* A response was placed: it also acknowledges all requests before its own. */
static void
finish_fetch(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	struct urn_pkt *p = urn_pkt(m);
	struct urn_work *w;

	acked(tp, qp, p->psn);
	w = qp->tx.head;
	if (qp->state == URN_QPS_ERR || !w || !urn_work_is_fetch(w))
		return;
	if (p->mem_status != URN_MEMOP_DONE) {
		urn_req_fail(tp, qp, w, URN_WC_LOC_PROT_ERR, URN_VE_MEMORY);
		return;
	}
	if (p->op->off[URN_EXT_AETH])
		take_credits(tp, qp, p->psn, aeth_of(m));
	w->placed++;
	if (w->placed == w->npsn)
		w->state = URN_WORK_DONE;
	acked(tp, qp, urn_psn_add(p->psn, 1));
}

URN_FAST void
urn_comp_finish(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	struct urn_pkt *p = urn_pkt(m);

	if (unlikely(qp->state != URN_QPS_RTS && qp->state != URN_QPS_SQD)) {
		urn_tp_drop(tp, m, URN_C_DROP_FLUSHED);
		return;
	}
	switch (p->action) {
	case URN_ACT_ACK:
		finish_ack(tp, qp, m);
		break;
	case URN_ACT_SACK:
		finish_sack(tp, qp, m);
		break;
	case URN_ACT_READ_RESP:
	case URN_ACT_ATOMIC_ACK:
		finish_fetch(tp, qp, m);
		break;
	case URN_ACT_LOST:
		lost(tp, qp, true);
		break;
	case URN_ACT_MADE_UP:
		urn_qp_lost(tp, qp);
		break;
	case URN_ACT_BAD_RESP:
		URN_COUNT(tp, DROP_RESPONSE);
		acked(tp, qp, p->psn);
		if (qp->tx.fetch && qp->tx.fetch->state == URN_WORK_BROKEN && qp->state != URN_QPS_ERR)
			urn_req_fail(tp, qp, qp->tx.fetch, p->bad.status, p->bad.vendor_err);
		break;
	}
	urn_tp_done(tp, m);
}
