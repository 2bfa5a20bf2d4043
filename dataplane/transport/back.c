/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Going back: the cursor of the requester returns to the oldest PSN that is not acknowledged, and
 * everything sent from there on is sent again.
 *
 * To a peer with selective acknowledgements, and after a NAK, the requester repeats everything.
 * After a timeout of a peer that follows only the standard, the requester repeats only a little:
 * such a peer executes every repeated READ, whole, behind all that it still has to do. A slow
 * peer would only get slower.
 *
 *        una            back_end                 next_psn
 *         ▼                ▼                        ▼
 *         [repeated now    |held back until then    ]
 *
 * The next packets tell loss from slowness. When the answer reaches back_end and nothing follows,
 * the packets behind were lost too, and twice as many are repeated. When the answer goes beyond
 * back_end, the peer works on the packets sent first, and the cursor moves on to new work.
 */
#include "transport/back.h"
#include "transport/requester.h"
#include "transport/sched.h"

enum {
	TIMEOUT_PSNS = 5,     /* log2 of the PSNs that a timeout repeats, plus 1: 16 PSNs */
	EARLY_PSNS = 1,       /* ... that an early repeat does: the oldest packet, or READ */
	MOST_PSNS = 9,        /* ... at most: the widest window */
	ALIVE_MAX = 15,       /* halves of a timeout by which duplicates delay the timeout, in all */
	ACK_LATE = 1024,      /* PSNs that a duplicate ACK may be behind and still show that the peer lives */
	RESPONSE_LATE = 65536, /* ... a duplicate response */
};

/* The cursor goes back to una, or to the first response that is missing. */
static void
to_oldest(struct urn_qp *qp)
{
	struct urn_work *w = qp->w_head;

	for (; w; w = w->next) {
		uint32_t end = urn_psn_add(w->first_psn, w->npsn);

		if (w->state == URN_WORK_FAILED || w->state == URN_WORK_BROKEN ||
		    w->state == URN_WORK_QUEUED || w->state == URN_WORK_FENCED)
			break;
		if (w->npsn == 0)
			continue; /* local work is not repeated */
		if (urn_work_is_fetch(w) ? w->accepted < w->npsn : urn_psn_diff(qp->una, end) < 0)
			break;
	}
	qp->w_cur = w;
	if (!w)
		qp->cur_psn = qp->next_psn;
	else if (urn_work_is_fetch(w))
		qp->cur_psn = urn_psn_add(w->first_psn, w->accepted);
	else
		qp->cur_psn = urn_psn_diff(qp->una, w->first_psn) > 0 ? qp->una : w->first_psn;
}

static void
go_back(struct urn_tp *tp, struct urn_qp *qp)
{
	if (qp->cur_psn == qp->next_psn)
		qp->flags = qp->since_ack ? qp->flags | URN_QPF_UNASKED
					  : qp->flags & ~(uint32_t)URN_QPF_UNASKED;
	qp->flags |= URN_QPF_WENT_BACK;
	qp->flags &= ~(uint32_t)URN_QPF_OWN_BACK;
	qp->since_ack = 0;
	urn_repair_void(tp, qp); /* the peer may have dropped packets that it said it keeps */
	to_oldest(qp);
	urn_tp_sched(tp, qp);
}

void
urn_req_go_back(struct urn_tp *tp, struct urn_qp *qp)
{
	go_back(tp, qp);
	qp->back = 0;
	qp->back_end = qp->next_psn;
	urn_peer_untime(tp, qp);
}

void
urn_req_all_back(struct urn_tp *tp, struct urn_qp *qp)
{
	if (!urn_req_held_back(qp))
		return;
	qp->back = 0;
	qp->back_end = qp->next_psn;
	urn_peer_untime(tp, qp);
	urn_tp_sched(tp, qp);
}

/* returns: the PSN behind at most `psns` PSNs from the cursor on, in whole READs; the first READ in any case */
static uint32_t
end_of(const struct urn_qp *qp, uint32_t psns)
{
	uint32_t end = qp->cur_psn;

	for (const struct urn_work *w = qp->w_cur; w; w = w->next) {
		uint32_t stop = urn_psn_add(w->first_psn, w->npsn);

		if (urn_psn_diff(w->first_psn, qp->next_psn) >= 0)
			break;
		if (urn_psn_diff(stop, qp->next_psn) > 0)
			stop = qp->next_psn;
		if (((stop - qp->cur_psn) & URN_PSN_MASK) > psns) {
			if (!urn_work_is_fetch(w))
				end = urn_psn_add(qp->cur_psn, psns);
			else if (end == qp->cur_psn)
				end = stop;
			break;
		}
		end = stop;
	}
	return end;
}

/* Repeat 2^(back - 1) PSNs from una on. */
static void
repeat(struct urn_tp *tp, struct urn_qp *qp, uint8_t back)
{
	struct urn_peer *p = urn_qp_peer(tp, qp);

	go_back(tp, qp);
	qp->back = back & 15u;
	qp->back_end = end_of(qp, 1u << (back - 1));
	p->repeated_at = tp->now;
	p->repeated_qpn = qp->qpn;
	/* The round trip of a packet that is not repeated is still measured. */
	if (p->timed == qp && urn_psn_diff(p->timed_psn, qp->back_end) < 0)
		p->timed = NULL;
}

void
urn_req_back_timeout(struct urn_tp *tp, struct urn_qp *qp)
{
	qp->flags &= ~(uint32_t)URN_QPF_EARLY;
	repeat(tp, qp, TIMEOUT_PSNS);
}

/* True when the repeated part was answered, and more is held back. */
static inline bool
may_go_on(const struct urn_qp *qp)
{
	return qp->back && qp->cur_psn != qp->next_psn && urn_psn_diff(qp->una, qp->back_end) >= 0;
}

uint64_t
urn_req_back_due(const struct urn_tp *tp, const struct urn_qp *qp)
{
	const struct urn_peer *p = urn_qp_peer(tp, qp);
	uint32_t out = (qp->next_psn - qp->una) & URN_PSN_MASK;

	if (qp->early)
		return UINT64_MAX; /* only one until there is progress */
	if (unlikely(may_go_on(qp))) {
		uint64_t ns = urn_peer_go_on(p, tp->cfg.rto_floor, out);
		uint64_t quarter = 1ull << (URN_TIMEOUT_SHIFT + qp->timeout - 2);

		/* Nothing was measured: a slow peer may still work on the packets that were sent first. */
		return p->srtt || ns > quarter ? ns : quarter;
	}
	return tp->cfg.rto_floor ? urn_peer_early(p, tp->cfg.rto_floor, out, tp->now) : UINT64_MAX;
}

void
urn_req_back_early(struct urn_tp *tp, struct urn_qp *qp)
{
	bool on = may_go_on(qp);

	URN_COUNT(tp, EARLY_TIMEOUTS);
	qp->flags |= URN_QPF_EARLY;
	qp->early = 1;
	repeat(tp, qp, !on ? EARLY_PSNS : qp->back < MOST_PSNS ? qp->back + 1 : MOST_PSNS);
}

/* The peer answers the packets that were sent first: move the cursor on to work that was never sent. */
static void
to_newest(struct urn_qp *qp)
{
	struct urn_work *w = qp->w_cur;

	while (w && w->state != URN_WORK_FAILED && w->state != URN_WORK_BROKEN &&
	       urn_psn_diff(urn_psn_add(w->first_psn, w->npsn), qp->next_psn) <= 0 &&
	       w->state != URN_WORK_QUEUED && w->state != URN_WORK_FENCED)
		w = w->next;
	qp->w_cur = w;
	qp->cur_psn = qp->next_psn;
	qp->back = 0;
	qp->since_ack = (qp->flags & URN_QPF_UNASKED) != 0;
}

void
urn_req_back_answered(struct urn_tp *tp, struct urn_qp *qp)
{
	struct urn_peer *p = urn_qp_peer(tp, qp);
	uint64_t took = tp->now - p->repeated_at;

	if ((qp->flags & URN_QPF_EARLY) && took < p->rtt_min / 2) {
		qp->flags &= ~(uint32_t)URN_QPF_EARLY;
		urn_peer_hasty(p, tp->now); /* sooner than the repeat can have arrived */
	}
	if (!qp->back)
		return;
	if (urn_psn_diff(qp->una, qp->back_end) > 0 && qp->cur_psn != qp->next_psn)
		to_newest(qp);
	else if (qp->una == qp->back_end && p->repeated_qpn == qp->qpn)
		p->answer_ns = took;
	if (qp->cur_psn == qp->next_psn)
		qp->back = 0;
}

void
urn_req_alive(struct urn_tp *tp, struct urn_qp *qp, uint32_t psn, bool response)
{
	int32_t late = urn_psn_diff(qp->una, psn);
	uint64_t span = 1ull << (URN_TIMEOUT_SHIFT + qp->timeout);
	uint64_t halves;

	if (late <= 0 || late > (response ? RESPONSE_LATE : ACK_LATE) || urn_qp_selective(tp, qp))
		return;
	if (qp->flags & URN_QPF_EARLY) {
		qp->flags &= ~(uint32_t)URN_QPF_EARLY;
		urn_peer_hasty(urn_qp_peer(tp, qp), tp->now); /* answered twice: the repeat was needless */
	}
	if (qp->timeout == 0 || qp->una == qp->next_psn || (qp->flags & URN_QPF_RNR_WAIT))
		return;
	halves = (tp->now + span - qp->deadline) >> (URN_TIMEOUT_SHIFT + qp->timeout - 1);
	if (halves == 0 || qp->alive + halves > ALIVE_MAX)
		return;
	qp->alive = (uint8_t)((qp->alive + halves) & ALIVE_MAX);
	qp->flags &= ~(uint32_t)URN_QPF_HELD;
	qp->deadline = tp->now + span;
}
