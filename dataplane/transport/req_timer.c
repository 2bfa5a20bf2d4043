/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Timers of the requester. One timer a QP serves all of them: the wait that a peer asked for (RNR),
 * gaps that are lost by now, a probe and repeats after the measured round trip, and the
 * acknowledgement timeout of the QP's attributes, which alone costs a retry (doc/inside/recovery.md
 * "Time").
 */
#include "transport/back.h"
#include "transport/qp_end.h"
#include "transport/requester.h"
#include "transport/sched.h"

/* A neighbour that does not answer is asked by broadcast after 10 ms (net: URN_NEIGH_WAITS_NS), and then answers. */
#define DOUBT_NS 16000000ull

/* Time from a timeout until the requester checks whether the peer's MAC address has changed, ns. */
static inline uint64_t
doubt_ns(const struct urn_qp *qp)
{
	uint64_t span = urn_psn_span(&qp->tx), most = span - span / 4;

	return DOUBT_NS < most ? DOUBT_NS : most;
}

/* Fill in when the requester probes and repeats early (struct urn_psn_clock: first, step). */
static inline void
early_times(const struct urn_tp *tp, const struct urn_qp *qp, struct urn_psn_clock *c)
{
	const struct urn_peer *peer = urn_qp_peer(tp, qp);
	uint64_t floor = tp->cfg.rto_floor;

	c->step = 0;
	if (!urn_qp_selective(tp, qp)) {
		c->first = unlikely(qp->tx.flags & URN_TXF_DOUBT) ? doubt_ns(qp) : urn_req_back_due(tp, qp);
	} else if (!floor) {
		c->first = UINT64_MAX;
	} else {
		c->first = urn_peer_pto(peer, floor);
		if (unlikely(qp->tx.early))
			c->step = urn_peer_rto(peer, floor);
	}
}

/* Time in ns at which a look at the timer is due next. */
static inline uint64_t
timer_due(const struct urn_tp *tp, const struct urn_qp *qp)
{
	struct urn_psn_clock c;

	early_times(tp, qp, &c);
	return urn_psn_due(&qp->tx, c.first, c.step);
}

URN_FAST void
urn_req_wake_at(struct urn_tp *tp, struct urn_qp *qp, uint64_t due)
{
	urn_psn_wake_at(&tp->wheel, &qp->tx, due);
}

URN_FAST void
urn_req_arm(struct urn_tp *tp, struct urn_qp *qp)
{
	if (unlikely(qp->tx.flags & URN_TXF_RNR_WAIT) || qp->tx.timeout == 0)
		return;
	urn_psn_arm(&qp->tx, tp->now);
	urn_req_wake_at(tp, qp, timer_due(tp, qp));
}

void
urn_req_end_rnr_wait(struct urn_tp *tp, struct urn_qp *qp)
{
	qp->tx.flags &= ~(uint32_t)URN_TXF_RNR_WAIT;
	urn_tp_sched(tp, qp);
	urn_req_arm(tp, qp);
}

/* Retries are used up: the oldest work fails. */
static void
give_up(struct urn_tp *tp, struct urn_qp *qp)
{
	struct urn_work *w;

	if (qp->flags & URN_QPF_NO_MAC)
		URN_COUNT(tp, DROP_NO_NEIGH);
	if (!qp->tx.head && qp->state == URN_QPS_RTS) /* no work was begun, for want of the peer's address */
		urn_req_fetch(tp, qp);
	w = urn_psn_tx_oldest(&qp->tx);
	if (w)
		urn_req_fail(tp, qp, w, URN_WC_RETRY_EXC_ERR, URN_VE_TIMEOUT);
	else
		qp->flags &= ~(uint32_t)URN_QPF_NO_MAC; /* no room for work: once more, from the start */
}

/* The acknowledgement timer ran out. */
static void
timed_out(struct urn_tp *tp, struct urn_qp *qp)
{
	URN_COUNT(tp, TIMEOUTS);
	if (qp->tx.retries == qp->tx.retry_cnt) /* the wait began with the last progress */
		urn_peer_heard(urn_qp_peer(tp, qp), qp->tx.deadline - urn_psn_span(&qp->tx));
	if (!urn_psn_retry(&qp->tx)) {
		give_up(tp, qp);
		return;
	}
	qp->flags &= ~(uint32_t)URN_QPF_MAC; /* the peer may have moved: ask for its MAC again */
	if (tp->cfg.neigh_doubt)
		tp->cfg.neigh_doubt(tp->cfg.neigh_ctx, qp->av.dgid);
	if (urn_psn_tx_idle(&qp->tx)) { /* nothing was sent, for want of the peer's address */
		urn_req_arm(tp, qp);
		return;
	}
	if (urn_qp_selective(tp, qp)) {
		urn_req_go_back(tp, qp);
		urn_req_arm(tp, qp);
		return;
	}
	urn_req_back_timeout(tp, qp);
	urn_req_arm(tp, qp);
	qp->tx.early = 1; /* no early repeat before there is progress, or the next timeout */
	if (tp->cfg.neigh_doubt && !(qp->flags & URN_QPF_LOOP)) {
		qp->tx.flags |= URN_TXF_DOUBT;
		urn_req_wake_at(tp, qp, timer_due(tp, qp));
	}
}

/* Repeat once more if the peer has another MAC address by now: the first repeat went to the old one. */
static void
look_for_move(struct urn_tp *tp, struct urn_qp *qp)
{
	bool moved = urn_qp_reachable(tp, qp) && (qp->tx.flags & URN_TXF_MOVED);

	qp->tx.flags &= ~(uint32_t)(URN_TXF_DOUBT | URN_TXF_MOVED);
	if (!moved)
		return;
	URN_COUNT(tp, EARLY_TIMEOUTS);
	if (urn_qp_selective(tp, qp))
		urn_req_go_back(tp, qp); /* the peer has announced the feature meanwhile */
	else
		urn_req_back_timeout(tp, qp);
}

/* Nothing came for longer than a round trip takes: first probe, then repeat. Costs no retry. */
static void
repeat_early(struct urn_tp *tp, struct urn_qp *qp)
{
	if (qp->tx.flags & URN_TXF_DOUBT) {
		look_for_move(tp, qp);
		return;
	}
	if (!urn_qp_selective(tp, qp)) {
		urn_req_back_early(tp, qp);
		return;
	}
	if (urn_psn_early(&qp->tx)) {
		URN_COUNT(tp, EARLY_TIMEOUTS);
		urn_req_go_back(tp, qp);
	} else {
		URN_COUNT(tp, PROBES);
		urn_tp_sched(tp, qp);
	}
}

/* Look at outstanding work. returns: ns, when to look again; UINT64_MAX: never, or the timer runs */
static uint64_t
outstanding(struct urn_tp *tp, struct urn_qp *qp)
{
	/* Without the peer's MAC the timer runs on, though nothing more, or nothing at all, was sent. */
	bool no_mac = qp->flags & URN_QPF_NO_MAC, busy = qp->rx_head || qp->tx_last;
	struct urn_psn_clock c = {.now = tp->now, .stood_at = tp->stood_at};
	uint64_t again = UINT64_MAX;

	if (qp->tx.timeout == 0 || (!no_mac && (urn_psn_tx_idle(&qp->tx) || !qp->tx.head)))
		return UINT64_MAX;
	c.answer = urn_peer_pto(urn_qp_peer(tp, qp), tp->cfg.rto_floor);
	early_times(tp, qp, &c);
	if (no_mac)
		c.first = UINT64_MAX;
	switch (urn_psn_look(&qp->tx, &c, busy, &again)) {
	case URN_PSN_WAIT:
		return again;
	case URN_PSN_ARM:
		urn_req_arm(tp, qp);
		return UINT64_MAX;
	case URN_PSN_TIMED_OUT:
		timed_out(tp, qp);
		return UINT64_MAX;
	case URN_PSN_EARLY:
		break;
	}
	repeat_early(tp, qp);
	return timer_due(tp, qp);
}

void
urn_req_timer(struct urn_tp *tp, struct urn_qp *qp)
{
	uint64_t lost, due;

	if (qp->tx.flags & URN_TXF_RNR_WAIT) {
		if (tp->now < qp->tx.deadline) {
			urn_wheel_start(&tp->wheel, &qp->tx.timer, qp->tx.deadline);
			return;
		}
		urn_req_end_rnr_wait(tp, qp);
		return;
	}
	lost = urn_repair_look(tp, qp);
	due = outstanding(tp, qp);
	if (qp->state != URN_QPS_RTS && qp->state != URN_QPS_SQD)
		return; /* retries are used up */
	if (lost < due)
		due = lost;
	if (due != UINT64_MAX)
		urn_req_wake_at(tp, qp, due);
}
