/* SPDX-License-Identifier: BSD-3-Clause */
/* The MAC address of a connected QP's peer: looking it up, and waiting until it is known. */
#include "transport/ack.h"
#include "transport/qp_end.h"
#include "transport/requester.h"
#include "transport/responder.h"
#include "transport/sched.h"

void
urn_qp_leave_neigh(struct urn_tp *tp, struct urn_qp *qp)
{
	urn_source_unlink(&tp->neigh_head, &tp->neigh_tail, &qp->source);
	qp->flags &= ~(uint32_t)URN_QPF_NEIGH;
	tp->neigh_n--;
}

void
urn_qp_wait_neigh(struct urn_tp *tp, struct urn_qp *qp)
{
	/* serve() has taken the QP off the schedule. */
	qp->flags |= URN_QPF_NEIGH;
	qp->source.next = NULL;
	qp->source.prev = tp->neigh_tail;
	if (tp->neigh_head)
		tp->neigh_tail->next = &qp->source;
	else
		tp->neigh_head = &qp->source;
	tp->neigh_tail = &qp->source;
	tp->neigh_n++;
	if (tp->neigh_next < tp->now)
		tp->neigh_next = tp->now + URN_TP_NEIGH_NS;
}

/* True when the QP has work to be sent, or work sent and not acknowledged. */
static bool
has_work(struct urn_qp *qp)
{
	return (qp->state == URN_QPS_RTS || qp->state == URN_QPS_SQD) &&
	       (qp->tx.head || (qp->state == URN_QPS_RTS && urn_sq_ready(&qp->sq)));
}

/*
 * The peer's MAC address is not known now. Work under way waits for the address as long as for a
 * peer that does not answer, by the QP's own timeout and retries. Work with nothing sent yet does
 * so from when nobody answered for the address (silent). So a silent neighbour cuts neither wait
 * short.
 */
static void
wait_for_mac(struct urn_tp *tp, struct urn_qp *qp, bool silent)
{
	urn_qp_wait_neigh(tp, qp);
	if ((qp->flags & URN_QPF_NO_MAC) || !has_work(qp) || (!silent && qp->tx.una == qp->tx.next))
		return;
	qp->flags |= URN_QPF_NO_MAC;
	if (qp->tx.una == qp->tx.next || !urn_timer_started(&qp->tx.timer))
		urn_req_arm(tp, qp);
}

/*
 * Nobody answers for the peer's address. Answers that the responder owes are dropped, because the
 * peer asks again; so a QP that has nothing else to send does not wait.
 */
static void
unreachable(struct urn_tp *tp, struct urn_qp *qp)
{
	if (urn_resp_owes(qp))
		URN_COUNT(tp, DROP_NO_NEIGH);
	urn_ack_void(&qp->rx);
	for (uint32_t i = 0; qp->rec && i <= qp->rec_mask; i++)
		qp->rec[i].pending = 0;
	qp->rec_pending = 0;
	if (has_work(qp))
		wait_for_mac(tp, qp, true);
}

URN_FAST bool
urn_qp_reachable(struct urn_tp *tp, struct urn_qp *qp)
{
	uint8_t mac[6];
	int rc;

	if (likely((qp->flags & URN_QPF_MAC) && qp->mac_gen == tp->mac_gen) || !tp->cfg.neigh ||
	    (qp->flags & URN_QPF_LOOP))
		return true;
	rc = tp->cfg.neigh(tp->cfg.neigh_ctx, qp->av.dgid, mac);
	if (rc == 0) {
		if ((qp->tx.flags & URN_TXF_DOUBT) && memcmp(qp->tmpl.bytes, mac, 6) != 0)
			qp->tx.flags |= URN_TXF_MOVED;
		memcpy(qp->tmpl.bytes, mac, 6);
		qp->mac_gen = tp->mac_gen;
		qp->flags |= URN_QPF_MAC;
		qp->flags &= ~(uint32_t)URN_QPF_NO_MAC;
		return true;
	}
	qp->flags &= ~(uint32_t)URN_QPF_MAC;
	if (rc == -1)
		wait_for_mac(tp, qp, false);
	else
		unreachable(tp, qp);
	return false;
}
