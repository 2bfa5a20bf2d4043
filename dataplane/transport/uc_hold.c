/* SPDX-License-Identifier: BSD-3-Clause */
/* UC packets that wait for their receiver's memory, and senders that wait for them. */
#include "transport/frame.h"
#include "transport/pool.h"
#include "transport/ring.h"
#include "transport/uc.h"
#include "transport/uc_hold.h"

#include <stdlib.h>

/* Queue pairs that an engine's table has room for. */
static uint32_t
slots(const struct urn_tp *tp)
{
	return tp->qp_chunks * URN_TP_QP_CHUNK;
}

int
urn_uc_held_init(struct urn_tp *tp)
{
	tp->left.held = tp->cfg.kept;
	urn_fair_init(&tp->fair_held, tp->cfg.kept);
	tp->uc_full = calloc(slots(tp), sizeof(*tp->uc_full));
	return tp->uc_full ? 0 : -1;
}

void
urn_uc_held_free(struct urn_tp *tp)
{
	free(tp->uc_full);
}

void
urn_tp_near(const struct urn_tp *tp, struct urn_tp_near *near)
{
	near->full = tp->uc_full;
	near->slots = slots(tp);
}

/* ---- the receiver's side */

static void
tell(struct urn_tp *tp, const struct urn_qp *qp, uint8_t full)
{
	/* A hint: senders that see it late send a few frames more, which the queue has room for. */
	atomic_store_explicit(&tp->uc_full[urn_qpn_slot(qp->qpn)], full, memory_order_relaxed);
}

/* Take the packet that waits longest, of which there is one, out of the queue. */
static struct rte_mbuf *
pop(struct urn_tp *tp, struct urn_qp *qp)
{
	struct rte_mbuf *m = urn_ring_pop(&qp->rx.ooo);

	qp->rx.ooo_count--;
	qp->share->held--;
	tp->left.held++;
	tp->kept--;
	if (!qp->rx.ooo)
		tell(tp, qp, 0);
	return m;
}

__attribute__((cold)) void
urn_uc_hold(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	if (qp->rx.ooo_count >= URN_UC_HELD || tp->kept >= tp->cfg.kept ||
	    !urn_fair_has(&tp->fair_held, tp->left.held, qp->share->held)) {
		urn_tp_drop(tp, m, URN_C_DROP_MEMORY);
		return;
	}
	if (!qp->rx.ooo) {
		tell(tp, qp, 1);
		urn_tp_sched(tp, qp); /* looked at again and again until the gate opens */
	}
	urn_ring_append(&qp->rx.ooo, m);
	qp->rx.ooo_count++;
	qp->share->held++;
	tp->left.held--;
	tp->kept++;
	URN_COUNT(tp, UC_HELD);
}

__attribute__((cold)) bool
urn_uc_take_held(struct urn_tp *tp, struct urn_qp *qp, unsigned int budget)
{
	while (qp->rx.ooo && budget--) {
		struct rte_mbuf *m;

		if (urn_tp_gated(tp, qp))
			return urn_tp_again(tp, qp);
		m = pop(tp, qp);
		if (unlikely(qp->flags & URN_QPF_REFUSED))
			urn_tp_drop(tp, m, URN_C_DROP_QP_STATE);
		else
			urn_uc_take(tp, qp, m);
		/* Executing may close the gate, or fail the QP, which drops the rest. */
		if (tp->ops_bytes >= URN_TP_OPS_BYTES || urn_tp_burst_full(tp))
			urn_tp_execute(tp);
	}
	return qp->rx.ooo != NULL;
}

void
urn_uc_drop_held(struct urn_tp *tp, struct urn_qp *qp)
{
	while (qp->rx.ooo)
		urn_tp_drop(tp, pop(tp, qp), URN_C_DROP_FLUSHED);
}

/* ---- the sender's side */

/* The number of a table among those that the QPs of this engine look at. returns: 0: no room */
static uint16_t
number_of(struct urn_tp *tp, const struct urn_tp_near *near)
{
	for (unsigned int i = 0; i < URN_TP_NEAR; i++) {
		if (!tp->near[i].full)
			tp->near[i] = *near;
		if (tp->near[i].full == near->full)
			return (uint16_t)(i + 1);
	}
	return 0;
}

void
urn_uc_find_near(struct urn_tp *tp, struct urn_qp *qp)
{
	struct urn_tp_near near;

	qp->near = 0;
	if (tp->cfg.near &&
	    tp->cfg.near(tp->cfg.near_ctx, qp->av.dgid, urn_qpn_engine(qp->dest_qpn), &near) &&
	    urn_qpn_slot(qp->dest_qpn) < near.slots)
		qp->near = number_of(tp, &near);
}

bool
urn_uc_must_wait(struct urn_tp *tp, struct urn_qp *qp)
{
	const _Atomic uint8_t *full = &tp->near[qp->near - 1].full[urn_qpn_slot(qp->dest_qpn)];

	if (likely(!atomic_load_explicit(full, memory_order_relaxed))) {
		qp->tx.deadline = 0;
		return false;
	}
	if (!qp->tx.deadline) {
		qp->tx.deadline = tp->now + URN_UC_WAIT_NS;
		URN_COUNT(tp, UC_WAITS);
	}
	return tp->now < qp->tx.deadline;
}
