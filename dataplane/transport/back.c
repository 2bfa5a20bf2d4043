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
 *        una            cur.end                  next
 *         ▼                ▼                        ▼
 *         [repeated now    |held back until then    ]
 *
 * The next packets tell loss from slowness. When the answer reaches cur.end and nothing follows,
 * the packets behind were lost too, and twice as many are repeated. When the answer goes beyond
 * cur.end, the peer works on the packets sent first, and the cursor moves on to new work.
 */
#include "transport/back.h"
#include "transport/requester.h"
#include "transport/sched.h"

enum {
	TIMEOUT_PSNS = 5,     /* log2 of the PSNs that a timeout repeats, plus 1: 16 PSNs */
	EARLY_PSNS = 1,       /* ... that an early repeat does: the oldest packet, or READ */
	MOST_PSNS = 9,        /* ... at most: the widest window */
	ACK_LATE = 1024,      /* PSNs that a duplicate ACK may be behind and still show that the peer lives */
	RESPONSE_LATE = 65536, /* ... a duplicate response */
};

/* Go back and repeat 2^(back - 1) PSNs; back 0: all. */
static void
go_back(struct urn_tp *tp, struct urn_qp *qp, uint8_t back)
{
	urn_psn_tx_go_back(&qp->tx, back);
	urn_repair_void(tp, qp); /* the peer may have dropped packets that it said it keeps */
	urn_tp_sched(tp, qp);
}

void
urn_req_go_back(struct urn_tp *tp, struct urn_qp *qp)
{
	go_back(tp, qp, 0);
	urn_peer_untime(tp, &qp->tx);
}

void
urn_req_all_back(struct urn_tp *tp, struct urn_qp *qp)
{
	if (!urn_psn_tx_held_back(&qp->tx))
		return;
	urn_psn_tx_all_back(&qp->tx);
	urn_peer_untime(tp, &qp->tx);
	urn_tp_sched(tp, qp);
}

/* Repeat 2^(back - 1) PSNs from una on. */
static void
repeat(struct urn_tp *tp, struct urn_qp *qp, uint8_t back)
{
	struct urn_peer *p = urn_qp_peer(tp, qp);

	go_back(tp, qp, back);
	p->repeated_at = tp->now;
	p->repeated = &qp->tx;
	/* The round trip of a packet that is not repeated is still measured. */
	if (p->timed == &qp->tx && urn_psn_diff(p->timed_psn, qp->tx.cur.end) < 0)
		p->timed = NULL;
}

void
urn_req_back_timeout(struct urn_tp *tp, struct urn_qp *qp)
{
	qp->tx.flags &= ~(uint32_t)URN_TXF_EARLY;
	repeat(tp, qp, TIMEOUT_PSNS);
}

uint64_t
urn_req_back_due(const struct urn_tp *tp, const struct urn_qp *qp)
{
	const struct urn_peer *p = urn_qp_peer(tp, qp);
	uint32_t out = urn_psn_tx_out(&qp->tx);

	if (qp->tx.early)
		return UINT64_MAX; /* only one until there is progress */
	if (unlikely(urn_psn_tx_may_go_on(&qp->tx))) {
		uint64_t ns = urn_peer_go_on(p, tp->cfg.rto_floor, out);
		uint64_t quarter = urn_psn_span(&qp->tx) / 4;

		/* Nothing was measured: a slow peer may still work on the packets that were sent first. */
		return p->srtt || ns > quarter ? ns : quarter;
	}
	return tp->cfg.rto_floor ? urn_peer_early(p, tp->cfg.rto_floor, out, tp->now) : UINT64_MAX;
}

void
urn_req_back_early(struct urn_tp *tp, struct urn_qp *qp)
{
	bool on = urn_psn_tx_may_go_on(&qp->tx);

	URN_COUNT(tp, EARLY_TIMEOUTS);
	qp->tx.flags |= URN_TXF_EARLY;
	qp->tx.early = 1;
	repeat(tp, qp, !on ? EARLY_PSNS : qp->tx.back < MOST_PSNS ? qp->tx.back + 1 : MOST_PSNS);
}

void
urn_req_back_answered(struct urn_tp *tp, struct urn_qp *qp)
{
	struct urn_peer *p = urn_qp_peer(tp, qp);
	uint64_t took = tp->now - p->repeated_at;

	if ((qp->tx.flags & URN_TXF_EARLY) && took < p->rtt_min / 2) {
		qp->tx.flags &= ~(uint32_t)URN_TXF_EARLY;
		urn_peer_hasty(p, tp->now); /* sooner than the repeat can have arrived */
	}
	if (!qp->tx.back)
		return;
	if (urn_psn_diff(qp->tx.una, qp->tx.cur.end) > 0 && qp->tx.cur.psn != qp->tx.next)
		urn_psn_tx_to_newest(&qp->tx); /* the peer answers the packets that were sent first */
	else if (qp->tx.una == qp->tx.cur.end && p->repeated == &qp->tx)
		p->answer_ns = took;
	if (qp->tx.cur.psn == qp->tx.next)
		qp->tx.back = 0;
}

void
urn_req_alive(struct urn_tp *tp, struct urn_qp *qp, uint32_t psn, bool response)
{
	int32_t late = urn_psn_diff(qp->tx.una, psn);

	if (late <= 0 || late > (response ? RESPONSE_LATE : ACK_LATE) || urn_qp_selective(tp, qp))
		return;
	if (qp->tx.flags & URN_TXF_EARLY) {
		qp->tx.flags &= ~(uint32_t)URN_TXF_EARLY;
		urn_peer_hasty(urn_qp_peer(tp, qp), tp->now); /* answered twice: the repeat was needless */
	}
	urn_peer_heard(urn_qp_peer(tp, qp), tp->now);
	urn_psn_alive(&qp->tx, tp->now);
}
