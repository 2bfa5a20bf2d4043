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

enum {
	EARLY_MAX = 16, /* doublings of the measured retransmission time */
	HELD_TURNS = 64, /* turns to look at packets that came while turns stood still: 2,048 packets of a port */
};
/* A neighbour that does not answer is asked by broadcast after 10 ms (net: URN_NEIGH_WAITS_NS), and then answers. */
#define DOUBT_NS 16000000ull
#define AGAIN_NS 10000000ull /* ns after which turns have looked at all waiting packets */
_Static_assert(HELD_TURNS <= UINT8_MAX, "counted in urn_psn_tx.early");

/* The QP's own timeout, ns. */
static inline uint64_t
span(const struct urn_qp *qp)
{
	return 1ull << (URN_TIMEOUT_SHIFT + qp->tx.timeout);
}

/* Time from a timeout until the requester checks whether the peer's MAC address has changed, ns. */
static inline uint64_t
doubt_ns(const struct urn_qp *qp)
{
	uint64_t most = span(qp) - span(qp) / 4;

	return DOUBT_NS < most ? DOUBT_NS : most;
}

/* Time in ns at which the probe, or the next repeat by the measured round trip, is due. */
static inline uint64_t
early_due(const struct urn_tp *tp, const struct urn_qp *qp)
{
	const struct urn_peer *peer = urn_qp_peer(tp, qp);
	uint64_t floor = tp->cfg.rto_floor, due = qp->tx.deadline - span(qp), plain;

	if (!urn_qp_selective(tp, qp)) {
		plain = unlikely(qp->tx.flags & URN_TXF_DOUBT) ? doubt_ns(qp) : urn_req_back_due(tp, qp);
		return plain == UINT64_MAX ? plain : due + plain;
	}
	if (!floor)
		return UINT64_MAX;
	due += urn_peer_pto(peer, floor);
	if (unlikely(qp->tx.early))
		due += urn_peer_rto(peer, floor) * ((1ull << qp->tx.early) - 1);
	return due;
}

void
urn_req_wake_at(struct urn_tp *tp, struct urn_qp *qp, uint64_t due)
{
	/* A timer that fires too early looks for due work and starts again. */
	if (!urn_timer_started(&qp->tx.timer) ||
	    unlikely(qp->tx.timer.tick > (due >> URN_WHEEL_TICK_SHIFT) + 1))
		urn_wheel_start(&tp->wheel, &qp->tx.timer, due);
}

void
urn_req_arm(struct urn_tp *tp, struct urn_qp *qp)
{
	uint64_t due;

	if (unlikely(qp->tx.flags & URN_TXF_RNR_WAIT) || qp->tx.timeout == 0)
		return;
	qp->tx.deadline = tp->now + span(qp);
	qp->tx.flags &= ~(uint32_t)(URN_TXF_HELD | URN_TXF_DOUBT | URN_TXF_MOVED);
	qp->tx.early = 0;
	due = early_due(tp, qp);
	urn_req_wake_at(tp, qp, due < qp->tx.deadline ? due : qp->tx.deadline);
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
	struct urn_work *w = qp->tx.head;

	if (qp->flags & URN_QPF_NO_MAC)
		URN_COUNT(tp, DROP_NO_NEIGH);
	if (!w && qp->state == URN_QPS_RTS) /* no work was begun, for want of the peer's address */
		w = urn_req_fetch(tp, qp);
	while (w && w->next && w->npsn == 0)
		w = w->next;
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
	if (qp->tx.retries == 0) {
		give_up(tp, qp);
		return;
	}
	qp->tx.retries--;
	qp->flags &= ~(uint32_t)URN_QPF_MAC; /* the peer may have moved: ask for its MAC again */
	if (tp->cfg.neigh_doubt)
		tp->cfg.neigh_doubt(tp->cfg.neigh_ctx, qp->av.dgid);
	if (qp->tx.una == qp->tx.next) { /* nothing was sent, for want of the peer's address */
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
		urn_req_wake_at(tp, qp, early_due(tp, qp));
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
	if (qp->tx.early == 0) {
		URN_COUNT(tp, PROBES);
		qp->tx.flags |= URN_TXF_PROBE;
		urn_tp_sched(tp, qp);
	} else {
		URN_COUNT(tp, EARLY_TIMEOUTS);
		urn_req_go_back(tp, qp);
	}
	if (qp->tx.early < EARLY_MAX)
		qp->tx.early++;
}

/* ---- turns that stood still */

/* Time, in ns, to look at packets that came meanwhile, and for a peer to answer, before anything is repeated. */
static inline uint64_t
patience(const struct urn_tp *tp, const struct urn_qp *qp)
{
	uint64_t pto = urn_peer_pto(urn_qp_peer(tp, qp), tp->cfg.rto_floor);

	return pto < span(qp) ? pto : span(qp);
}

/*
 * True when turns stood still while the timer ran, and went on less than `since` ns ago. Then
 * packets that came meanwhile may still wait unseen, and a peer that is served by the same thread
 * had no turns either.
 */
static inline bool
stood(const struct urn_tp *tp, const struct urn_qp *qp, uint64_t since)
{
	return tp->stood_at > qp->tx.deadline - span(qp) && tp->now < tp->stood_at + since;
}

/* True when the timer ran out and must not count yet, because turns stood still. */
static bool
too_soon(const struct urn_tp *tp, const struct urn_qp *qp)
{
	uint64_t pto = patience(tp, qp);

	return stood(tp, qp, pto > AGAIN_NS ? pto : AGAIN_NS);
}

/*
 * The timer ran out, and turns stood still meanwhile. The timeout counts after some more turns;
 * turns and not time alone, because turns may go on standing still with few between.
 */
static uint64_t
hold(struct urn_tp *tp, struct urn_qp *qp)
{
	qp->tx.flags |= URN_TXF_HELD;
	qp->tx.early = 0;
	qp->tx.deadline = tp->now + patience(tp, qp);
	return tp->now;
}

/* returns: see outstanding() */
static uint64_t
held(struct urn_tp *tp, struct urn_qp *qp)
{
	if (qp->tx.early < HELD_TURNS) {
		qp->tx.early++;
		return tp->now; /* look again with the next turn */
	}
	if (tp->now < qp->tx.deadline)
		return qp->tx.deadline;
	timed_out(tp, qp);
	return UINT64_MAX;
}

/* Look at outstanding work. returns: ns, when to look again; UINT64_MAX: never, or the timer runs */
static uint64_t
outstanding(struct urn_tp *tp, struct urn_qp *qp)
{
	/* Without the peer's MAC the timer runs on, though nothing more, or nothing at all, was sent. */
	bool no_mac = qp->flags & URN_QPF_NO_MAC;
	uint64_t due;

	if (qp->tx.timeout == 0 || (!no_mac && (qp->tx.una == qp->tx.next || !qp->tx.head)))
		return UINT64_MAX;
	if (unlikely(qp->tx.flags & URN_TXF_HELD)) {
		if (!qp->rx_head && !qp->tx_last)
			return held(tp, qp);
		urn_req_arm(tp, qp); /* like below; `early` counts turns, so early_due() can't use it */
		return UINT64_MAX;
	}
	due = no_mac ? UINT64_MAX : early_due(tp, qp);
	if (tp->now < due && tp->now < qp->tx.deadline)
		return due < qp->tx.deadline ? due : qp->tx.deadline;
	if (qp->rx_head || qp->tx_last) {
		urn_req_arm(tp, qp); /* our memory is slow, not the peer */
		return UINT64_MAX;
	}
	if (tp->now >= qp->tx.deadline) {
		if (too_soon(tp, qp))
			return hold(tp, qp);
		timed_out(tp, qp);
		return UINT64_MAX;
	}
	if (stood(tp, qp, patience(tp, qp))) {
		due = tp->stood_at + patience(tp, qp);
		return due < qp->tx.deadline ? due : qp->tx.deadline;
	}
	repeat_early(tp, qp);
	due = early_due(tp, qp);
	return due < qp->tx.deadline ? due : qp->tx.deadline;
}

void
urn_req_timer(struct urn_tp *tp, struct urn_qp *qp)
{
	uint64_t lost, due;

	if (qp->state == URN_QPS_ERR)
		urn_tp_sched(tp, qp); /* receives posted meanwhile are flushed */
	if (qp->state != URN_QPS_RTS && qp->state != URN_QPS_SQD)
		return;
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
