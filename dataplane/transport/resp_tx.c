/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending of the responder: READ responses and atomic responses from its record, oldest first, then
 * a NAK, then the merged acknowledgement. An acknowledgement never overtakes a response before it,
 * because the peer would take that response for lost.
 */
#include "transport/ack.h"
#include "transport/act.h"
#include "transport/complete.h"
#include "transport/frame.h"
#include "transport/part.h"
#include "transport/qp_end.h"
#include "transport/requester.h"
#include "transport/responder.h"
#include "transport/ring.h"

URN_FAST bool
urn_resp_owes(const struct urn_qp *qp)
{
	/* In error, only requests from before the refusal, or the error, are answered. */
	if (qp->state == URN_QPS_ERR)
		return urn_ack_nak_is_owed(&qp->rx) ||
		       (!qp->rec_pending && urn_ack_is_owed(&qp->rx));
	return qp->rec_pending || urn_ack_any_is_owed(&qp->rx) || (qp->flags & URN_QPF_PARTS);
}

static void
put_aeth(uint8_t *at, uint8_t syndrome, uint32_t msn)
{
	rte_be32_t v = rte_cpu_to_be_32((uint32_t)syndrome << 24 | (msn & URN_PSN_MASK));

	memcpy(at, &v, sizeof(v));
}

static void
hand_on(struct urn_tp *tp, struct urn_qp *qp, struct urn_txd *d, uint8_t syndrome)
{
	d->syndrome = syndrome;
	urn_tp_send(tp, d, qp, URN_ACT_TX_RESPONSE, (qp->flags & URN_QPF_LOOP) != 0);
	URN_COUNT(tp, TX_RESPONSES);
}

/* Oldest record that needs a response. */
static struct urn_rec *
oldest(struct urn_qp *qp)
{
	for (uint32_t i = 0; i <= qp->rec_mask; i++) {
		struct urn_rec *rec = &qp->rec[(qp->rec_head + i) & qp->rec_mask];

		if (rec->pending)
			return rec;
	}
	return NULL;
}

static void
answered(struct urn_qp *qp, struct urn_rec *rec)
{
	rec->pending = 0;
	qp->rec_pending--;
}

void
urn_resp_cut(struct urn_tp *tp, struct urn_qp *qp, uint32_t psn, uint8_t syndrome)
{
	if ((qp->flags & URN_QPF_CUT) && urn_psn_diff(psn, qp->rx.nak_psn) >= 0)
		return; /* behind a response that failed before */
	tp->c.v[syndrome == URN_NAK_ACCESS ? URN_C_NAK_ACCESS : URN_C_NAK_OPERATIONAL]++;
	if (qp->state != URN_QPS_ERR) {
		urn_failure_quiet(tp, qp, URN_FAILURE_REFUSED, psn, syndrome);
		urn_qp_event(tp, qp, syndrome == URN_NAK_ACCESS ? URN_EVENT_QP_ACCESS_ERR
								: URN_EVENT_QP_FATAL);
	}
	urn_ack_owe_nak(&qp->rx, psn, syndrome);
	qp->flags |= URN_QPF_REFUSED | URN_QPF_CUT;
	for (uint32_t i = 0; qp->rec && i <= qp->rec_mask; i++)
		qp->rec[i].pending = 0;
	qp->rec_pending = 0;
	urn_qp_error(tp, qp);
	urn_tp_sched(tp, qp);
}

URN_FAST bool
urn_resp_valid(const struct urn_txd *d)
{
	const struct urn_qp *qp = d->qp;
	int32_t diff = urn_psn_diff(d->psn, qp->rx.nak_psn);

	/* With the PSN of the NAK only the refusal may go out. */
	return likely(!(qp->flags & URN_QPF_CUT)) || diff < 0 ||
	       (diff == 0 && d->syndrome == qp->rx.nak_syn);
}

static uint8_t
response_opcode(bool first, bool last)
{
	return first ? (last ? URN_RC_READ_RESP_ONLY : URN_RC_READ_RESP_FIRST)
		     : (last ? URN_RC_READ_RESP_LAST : URN_RC_READ_RESP_MIDDLE);
}

enum sent {
	SENT_NOT,  /* no buffer: try again */
	SENT_OK,   /* sent, or refused */
	SENT_DEAD, /* a repeat, and its key is dead by now */
};

/*
 * Send packet `cur` of a READ response. first, last: cur is that of the packets that go out now.
 * again: the packet was sent before.
 */
static URN_FAST enum sent
send_packet(struct urn_tp *tp, struct urn_qp *qp, const struct urn_rec *rec, uint32_t cur,
	    bool first, bool last, bool again)
{
	uint32_t off = cur << qp->mtu_shift, left = rec->length - off;
	uint32_t len = left < qp->mtu ? left : qp->mtu;
	uint8_t opcode = response_opcode(first, last), *bth;
	const struct urn_opcode *op = &urn_opcodes[opcode];
	struct urn_region *region = NULL;

	if (len && urn_mem_check_inline(tp->cfg.mem, rec->rkey, qp->pd, qp->qpn, rec->va + off, len,
				 URN_ACCESS_REMOTE_READ, 1, &region) != URN_MEM_OK) {
		/*
		 * The region vanished, or its rights. A repeated READ mostly was long on its way:
		 * the peer has the response and had the key invalidated itself. A refusal would end
		 * a good connection.
		 */
		if (again)
			return SENT_DEAD;
		urn_resp_cut(tp, qp, urn_psn_add(rec->first_psn, cur), URN_NAK_ACCESS);
		return SENT_OK;
	}

	struct urn_txd *d = urn_tp_frame(tp, &qp->tmpl, opcode, len, qp->dest_qpn,
					 urn_psn_add(rec->first_psn, cur), 0, false, &bth);

	if (unlikely(!d))
		return SENT_NOT;
	d->loop = (qp->flags & URN_QPF_LOOP) != 0;
	if (op->off[URN_EXT_AETH])
		put_aeth(bth + op->off[URN_EXT_AETH], URN_SYN_ACK_NOCREDIT, rec->msn);
	if (len)
		urn_tp_gather(tp, d, region, rec->va + off, bth + op->hdr_len, len);
	hand_on(tp, qp, d, 0);
	return SENT_OK;
}

/* Send the next packet of the answer to a READ on record. */
static bool
send_read(struct urn_tp *tp, struct urn_qp *qp, struct urn_rec *rec)
{
	bool last = rec->cur + 1 == rec->end;
	enum sent sent = send_packet(tp, qp, rec, rec->cur, rec->head, last, rec->again);

	if (unlikely(sent == SENT_NOT))
		return false;
	if (unlikely(!rec->pending))
		return true; /* the READ was refused, and all records with it */
	if (unlikely(sent == SENT_DEAD))
		URN_COUNT(tp, DROP_DUPLICATE);
	rec->cur++;
	rec->head = 0;
	if (last || unlikely(sent == SENT_DEAD))
		answered(qp, rec);
	return true;
}

/* Answer parts of READs that were asked for again. returns: false when that must go on later */
static bool
send_parts(struct urn_tp *tp, struct urn_qp *qp, unsigned int *budget)
{
	while (qp->flags & URN_QPF_PARTS) {
		struct urn_pkt *p = urn_pkt(urn_repair_of(tp, &qp->tx)->parts);
		struct urn_rec *rec = urn_resp_find_record(qp, p->psn, URN_REC_READ);
		uint32_t cur = p->part.start;
		enum sent sent;

		if (!rec || p->part.end > urn_rec_npsn(qp, rec)) {
			URN_COUNT(tp, DROP_DUPLICATE); /* its record was reused meanwhile */
			urn_repair_part_done(tp, qp);
			continue;
		}
		if (*budget == 0 || !urn_tp_tx_room(tp) || urn_part_ends(tp))
			return false;
		sent = send_packet(tp, qp, rec, cur, p->part.head, cur + 1 == p->part.end, true);
		if (sent == SENT_NOT)
			return false;
		--*budget;
		p->part.head = false;
		p->part.start = cur + 1;
		if (sent == SENT_DEAD)
			URN_COUNT(tp, DROP_DUPLICATE);
		if (cur + 1 == p->part.end || sent == SENT_DEAD)
			urn_repair_part_done(tp, qp);
		if (tp->ops_bytes >= URN_TP_OPS_BYTES)
			urn_tp_execute(tp);
	}
	return true;
}

static bool
send_atomic(struct urn_tp *tp, struct urn_qp *qp, struct urn_rec *rec)
{
	const struct urn_opcode *op = &urn_opcodes[URN_RC_ATOMIC_ACK];
	rte_be64_t orig = rte_cpu_to_be_64(rec->va);
	uint8_t *bth;
	struct urn_txd *d = urn_tp_frame(tp, &qp->tmpl, URN_RC_ATOMIC_ACK, 0, qp->dest_qpn,
					 rec->first_psn, 0, false, &bth);

	if (unlikely(!d))
		return false;
	put_aeth(bth + op->off[URN_EXT_AETH], URN_SYN_ACK_NOCREDIT, rec->msn);
	memcpy(bth + op->off[URN_EXT_ATOMIC_ACK], &orig, sizeof(orig));
	hand_on(tp, qp, d, 0);
	answered(qp, rec);
	return true;
}

static URN_FAST bool
send_aeth(struct urn_tp *tp, struct urn_qp *qp, uint32_t psn, uint8_t syndrome)
{
	uint8_t *bth;
	struct urn_txd *d = urn_tp_frame(tp, &qp->tmpl, URN_RC_ACK, 0, qp->dest_qpn, psn, 0, false,
					 &bth);

	if (unlikely(!d))
		return false;
	put_aeth(bth + urn_opcodes[URN_RC_ACK].off[URN_EXT_AETH], syndrome, qp->rx.msn);
	hand_on(tp, qp, d, syndrome);
	return true;
}

/* Number of PSNs that a kept request takes. */
static uint32_t
psns_of(const struct urn_qp *qp, struct rte_mbuf *m)
{
	struct urn_reth r;
	uint32_t n;

	if (!(urn_pkt(m)->op->flags & URN_OPF_READ))
		return 1;
	memcpy(&r, urn_pkt_ext(m, URN_EXT_RETH), sizeof(r));
	n = (uint32_t)(((uint64_t)rte_be_to_cpu_32(r.length) + qp->mtu - 1) >> qp->mtu_shift);
	return n == 0 ? 1 : n < URN_PSN_MAX_OUTSTANDING ? n : URN_PSN_MAX_OUTSTANDING;
}

/*
 * Describe the kept packets for a selective acknowledgement: a bitmap behind the PSN that is due,
 * and behind the bitmap the first ranges. Packets that find no place are reported when they are
 * nearer.
 */
static void
describe_kept(const struct urn_qp *qp, struct urn_sack *s)
{
	uint32_t first = 0, end = 0, base = urn_psn_add(qp->rx.epsn, 1);

	memset(s, 0, sizeof(*s));
	s->version = URN_SACK_VERSION;
	s->expected = rte_cpu_to_be_32(qp->rx.epsn);
	for (struct rte_mbuf *m = urn_ring_first(qp->rx.ooo); m; m = urn_ring_next(qp->rx.ooo, m)) {
		uint32_t psn = urn_pkt(m)->psn, n = psns_of(qp, m);
		uint32_t bit = (psn - base) & URN_PSN_MASK;

		for (; n && bit < URN_SACK_BITS; n--, bit++, psn = urn_psn_add(psn, 1))
			s->bitmap[bit / 8] |= (uint8_t)(1u << bit % 8);
		if (n == 0)
			continue;
		if (s->ranges == 0 || psn != end) {
			if (s->ranges == URN_SACK_RANGES)
				return;
			first = psn;
			s->ranges++;
		}
		end = urn_psn_add(psn, n);
		s->range[s->ranges - 1].first = rte_cpu_to_be_32(first);
		s->range[s->ranges - 1].end = rte_cpu_to_be_32(end);
	}
}

/* returns: false when there is no buffer */
static bool
send_sack(struct urn_tp *tp, struct urn_qp *qp)
{
	const struct urn_opcode *op = &urn_opcodes[URN_RC_SACK];
	struct urn_sack s;
	uint8_t *bth;
	struct urn_txd *d = urn_tp_frame(tp, &qp->tmpl, URN_RC_SACK, 0, qp->dest_qpn, qp->rx.done, 0,
					 false, &bth);

	if (unlikely(!d))
		return false;
	put_aeth(bth + op->off[URN_EXT_AETH], URN_SYN_ACK_NOCREDIT, qp->rx.msn);
	describe_kept(qp, &s);
	memcpy(bth + op->off[URN_EXT_SACK], &s, sizeof(s));
	hand_on(tp, qp, d, URN_SYN_ACK_NOCREDIT);
	URN_COUNT(tp, TX_SACKS);
	return true;
}

/* returns: false when there is no buffer */
static bool
send_nak(struct urn_tp *tp, struct urn_qp *qp)
{
	if (!send_aeth(tp, qp, urn_ack_nak_for(&qp->rx), qp->rx.nak_syn))
		return false;
	urn_ack_nak_sent(&qp->rx);
	if ((qp->rx.nak_syn & URN_SYN_KIND) == URN_SYN_RNR)
		URN_COUNT(tp, TX_RNR_NAKS);
	else
		URN_COUNT(tp, TX_NAKS);
	return true;
}

/* Send the merged acknowledgement. returns: false when there is no buffer */
static bool
send_ack(struct urn_tp *tp, struct urn_qp *qp)
{
	if (!send_aeth(tp, qp, qp->rx.done, URN_SYN_ACK_NOCREDIT))
		return false;
	urn_ack_sent(&qp->rx);
	URN_COUNT(tp, TX_ACKS);
	return true;
}

URN_FAST bool
urn_resp_tx(struct urn_tp *tp, struct urn_qp *qp, unsigned int budget)
{
	bool quiet = tp->quiet || (unlikely(tp->hasty) && !(qp->rx.flags & URN_RXF_MANY));

	/* A peer that knows SACKs does not take responses that a SACK overtakes for lost. */
	if (unlikely(qp->rx.ooo != NULL) && qp->state != URN_QPS_ERR && urn_qp_selective(tp, qp) &&
	    urn_ack_sack_due(&qp->rx, tp->turn, quiet)) {
		if (!urn_tp_tx_room(tp) || !send_sack(tp, qp))
			return true;
		urn_ack_sent(&qp->rx);
	}
	if (unlikely(qp->flags & URN_QPF_PARTS) && !send_parts(tp, qp, &budget))
		return true;
	while (qp->rec_pending) {
		struct urn_rec *rec = oldest(qp);

		if (!rec || budget-- == 0 || !urn_tp_tx_room(tp) || urn_part_ends(tp))
			return true;
		if (rec->kind == URN_REC_READ ? !send_read(tp, qp, rec) : !send_atomic(tp, qp, rec))
			return true;
		if (tp->ops_bytes >= URN_TP_OPS_BYTES)
			urn_tp_execute(tp);
	}
	if (!urn_tp_tx_room(tp))
		return true;
	switch (urn_ack_due(&qp->rx, tp->turn, quiet, (qp->flags & URN_QPF_CUT) != 0,
			    qp->state == URN_QPS_ERR)) {
	case URN_ACK_NONE:
		return false;
	case URN_ACK_LATER:
		return true;
	case URN_ACK_ACK:
		return !send_ack(tp, qp);
	case URN_ACK_NAK:
		return !send_nak(tp, qp);
	}
	return false;
}

/*
 * Send the merged acknowledgement of a QP that is stopped. A program may destroy its QP as soon as
 * it has the last receive, which it sees before that acknowledgement is sent; the peer's request
 * must not fail for that.
 */
void
urn_resp_last_ack(struct urn_tp *tp, struct urn_qp *qp)
{
	if (!urn_ack_is_owed(&qp->rx) || !(qp->flags & URN_QPF_MAC) || qp->rec_pending ||
	    qp->tx_last || !urn_tp_tx_room(tp))
		return;
	if (send_ack(tp, qp))
		urn_tp_execute(tp);
}
