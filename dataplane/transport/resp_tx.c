/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the responder sends: READ responses and atomic responses from its
 * record, oldest first, then a NAK, then the merged acknowledgement. An
 * acknowledgement never overtakes a response before it, since it would tell
 * the peer that the response was lost.
 */
#include "transport/internal.h"

enum { ACK_TURNS = 4 }; /* an acknowledgement waits for at most so many turns */

bool
urn_resp_owes(const struct urn_qp *qp)
{
	/* In error, an answer is owed only to what came before the refusal, or the error. */
	if (qp->state == URN_QPS_ERR)
		return (qp->flags & URN_QPF_NAK) || (!qp->rec_pending && (qp->flags & URN_QPF_ACK));
	return qp->rec_pending || (qp->flags & (URN_QPF_ACK | URN_QPF_NAK));
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

/* Oldest record with a response to be made. */
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
	if ((qp->flags & URN_QPF_CUT) && urn_psn_diff(psn, qp->nak_psn) >= 0)
		return; /* behind one that failed before */
	tp->c.v[syndrome == URN_NAK_ACCESS ? URN_C_NAK_ACCESS : URN_C_NAK_OPERATIONAL]++;
	if (qp->state != URN_QPS_ERR)
		urn_qp_event(tp, qp, syndrome == URN_NAK_ACCESS ? URN_EVENT_QP_ACCESS_ERR
								: URN_EVENT_QP_FATAL);
	qp->nak_psn = psn;
	qp->nak_syn = syndrome;
	qp->flags |= URN_QPF_NAK | URN_QPF_REFUSED | URN_QPF_CUT;
	for (uint32_t i = 0; qp->rec && i <= qp->rec_mask; i++)
		qp->rec[i].pending = 0;
	qp->rec_pending = 0;
	urn_qp_error(tp, qp);
	urn_tp_sched(tp, qp);
}

bool
urn_resp_valid(const struct urn_txd *d)
{
	const struct urn_qp *qp = d->qp;
	int32_t diff = urn_psn_diff(d->psn, qp->nak_psn);

	/* Of this PSN only the refusal. */
	return likely(!(qp->flags & URN_QPF_CUT)) || diff < 0 ||
	       (diff == 0 && d->syndrome == qp->nak_syn);
}

static uint8_t
response_opcode(bool first, bool last)
{
	return first ? (last ? URN_RC_READ_RESP_ONLY : URN_RC_READ_RESP_FIRST)
		     : (last ? URN_RC_READ_RESP_LAST : URN_RC_READ_RESP_MIDDLE);
}

/* One packet of a READ response. returns false when there is no buffer. */
static bool
send_read(struct urn_tp *tp, struct urn_qp *qp, struct urn_rec *rec)
{
	uint32_t off = rec->cur << qp->mtu_shift, left = rec->length - off;
	uint32_t len = left < qp->mtu ? left : qp->mtu;
	bool first = rec->head, last = rec->cur + 1 == rec->end;
	uint8_t opcode = response_opcode(first, last), *bth;
	const struct urn_opcode *op = &urn_opcodes[opcode];
	struct urn_region *region = NULL;

	if (len && urn_mem_check_inline(tp->cfg.mem, rec->rkey, qp->pd, qp->qpn, rec->va + off, len,
				 URN_ACCESS_REMOTE_READ, 1, &region) != URN_MEM_OK) {
		/*
		 * The region vanished, or its rights. A READ that comes again was, as a rule,
		 * long on its way: the peer has the response and had the key invalidated
		 * itself. To refuse it would end a good connection.
		 */
		if (rec->again) {
			URN_COUNT(tp, DROP_DUPLICATE);
			answered(qp, rec);
			return true;
		}
		urn_resp_cut(tp, qp, urn_psn_add(rec->first_psn, rec->cur), URN_NAK_ACCESS);
		return true;
	}

	struct urn_txd *d = urn_tp_frame(tp, &qp->tmpl, opcode, len, qp->dest_qpn,
					 urn_psn_add(rec->first_psn, rec->cur), 0, false, &bth);

	if (unlikely(!d))
		return false;
	if (op->off[URN_EXT_AETH])
		put_aeth(bth + op->off[URN_EXT_AETH], URN_SYN_ACK_NOCREDIT, rec->msn);
	if (len)
		urn_tp_gather(tp, d, region, rec->va + off, bth + op->hdr_len, len);
	hand_on(tp, qp, d, 0);
	rec->cur++;
	rec->head = 0;
	if (last)
		answered(qp, rec);
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

static bool
send_aeth(struct urn_tp *tp, struct urn_qp *qp, uint32_t psn, uint8_t syndrome)
{
	uint8_t *bth;
	struct urn_txd *d = urn_tp_frame(tp, &qp->tmpl, URN_RC_ACK, 0, qp->dest_qpn, psn, 0, false,
					 &bth);

	if (unlikely(!d))
		return false;
	put_aeth(bth + urn_opcodes[URN_RC_ACK].off[URN_EXT_AETH], syndrome, qp->msn);
	hand_on(tp, qp, d, syndrome);
	return true;
}

/* returns false when there is no buffer */
static bool
send_nak(struct urn_tp *tp, struct urn_qp *qp)
{
	if (!send_aeth(tp, qp, qp->nak_psn, qp->nak_syn))
		return false;
	/* It acknowledges all before it: an ACK that is owed goes with it. */
	qp->flags &= ~(uint32_t)(URN_QPF_NAK | URN_QPF_ACK);
	if ((qp->nak_syn & URN_SYN_KIND) == URN_SYN_RNR)
		URN_COUNT(tp, TX_RNR_NAKS);
	else
		URN_COUNT(tp, TX_NAKS);
	return true;
}

/*
 * Is everything before the NAK done, so that it may say so? The NAK of a
 * response that was cut comes behind the responses before it.
 */
static bool
nak_ripe(const struct urn_qp *qp)
{
	return urn_psn_add(qp->done_psn, 1) == qp->nak_psn || (qp->flags & URN_QPF_CUT);
}

/*
 * Will it never be ripe? Its packet has come again before it could be sent, or
 * the QP is in error and does nothing of what is before it any more.
 */
static bool
nak_void(const struct urn_qp *qp)
{
	return urn_psn_diff(qp->done_psn, qp->nak_psn) >= 0 || qp->state == URN_QPS_ERR;
}

bool
urn_resp_tx(struct urn_tp *tp, struct urn_qp *qp, unsigned int budget)
{
	while (qp->rec_pending) {
		struct urn_rec *rec = oldest(qp);

		if (!rec || budget-- == 0 || !urn_tp_tx_room(tp))
			return true;
		if (rec->kind == URN_REC_READ ? !send_read(tp, qp, rec) : !send_atomic(tp, qp, rec))
			return true;
		if (tp->ops_bytes >= URN_TP_OPS_BYTES)
			urn_tp_execute(tp);
	}
	if (!urn_tp_tx_room(tp))
		return true;
	if (qp->flags & URN_QPF_NAK) {
		if (nak_ripe(qp))
			return !send_nak(tp, qp);
		if (!nak_void(qp))
			return false; /* the packet before it, once done, calls again */
		qp->flags &= ~(uint32_t)URN_QPF_NAK;
	}
	if (!(qp->flags & URN_QPF_ACK))
		return false;
	/*
	 * Let a turn go by, or some while there is other work, so that more may be
	 * acknowledged at once and an answer of the program goes out first.
	 */
	if (tp->turn - qp->ack_turn < (tp->quiet ? 1 : ACK_TURNS))
		return true;
	if (!send_aeth(tp, qp, qp->done_psn, URN_SYN_ACK_NOCREDIT))
		return true;
	qp->flags &= ~(uint32_t)URN_QPF_ACK;
	URN_COUNT(tp, TX_ACKS);
	return false;
}

/*
 * A program may destroy its QP as soon as it has the last receive, which it
 * sees before the merged acknowledgement is sent; its peer's request must not
 * fail for that.
 */
void
urn_resp_last_ack(struct urn_tp *tp, struct urn_qp *qp)
{
	if (!(qp->flags & URN_QPF_ACK) || !(qp->flags & URN_QPF_MAC) || qp->rec_pending ||
	    qp->tx_head || !urn_tp_tx_room(tp))
		return;
	if (!send_aeth(tp, qp, qp->done_psn, URN_SYN_ACK_NOCREDIT))
		return;
	qp->flags &= ~(uint32_t)URN_QPF_ACK;
	URN_COUNT(tp, TX_ACKS);
	urn_tp_execute(tp);
}
