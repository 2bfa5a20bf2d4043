/* SPDX-License-Identifier: BSD-3-Clause */
/* UC packets that wait for their receiver's memory, and senders that wait for them. */
#include "transport/frame.h"
#include "transport/pool.h"
#include "transport/ring.h"
#include "transport/uc.h"
#include "transport/uc_hold.h"

#include <stdlib.h>

enum {
	WORD_QPN = 24,	  /* bits of a word before the sender's number */
	WORD_WINDOW = 48, /* ... and before the window */
};

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
	tp->uc_dealt = calloc(slots(tp), sizeof(*tp->uc_dealt));
	tp->uc_told = calloc(slots(tp), sizeof(*tp->uc_told));
	return tp->uc_full && tp->uc_dealt && tp->uc_told ? 0 : -1;
}

void
urn_uc_held_free(struct urn_tp *tp)
{
	free(tp->uc_full);
	free(tp->uc_dealt);
	free(tp->uc_told);
}

void
urn_tp_near(const struct urn_tp *tp, struct urn_tp_near *near)
{
	near->full = tp->uc_full;
	near->dealt = tp->uc_dealt;
	near->slots = slots(tp);
}

/* ---- the receiver's side */

uint64_t
urn_uc_dealt_word(uint32_t psn, uint32_t sender, uint32_t window)
{
	return psn | (uint64_t)sender << WORD_QPN | (uint64_t)window << WORD_WINDOW;
}

/* Tell senders of this dataplane. returns: the word until now */
static uint64_t
put_word(struct urn_tp *tp, const struct urn_qp *qp, uint32_t psn)
{
	_Atomic uint64_t *word = &tp->uc_dealt[urn_qpn_slot(qp->qpn)];
	uint64_t before = atomic_load_explicit(word, memory_order_relaxed);

	/* A hint, as the byte is: a sender that sees it late makes frames later. */
	atomic_store_explicit(
		word,
		urn_uc_dealt_word(psn, qp->dest_qpn,
				  RTE_MIN(qp->share->uc_window, (uint32_t)URN_UC_WINDOW)),
		memory_order_relaxed);
	return before;
}

void
urn_uc_dealt(struct urn_tp *tp, struct urn_qp *qp, uint32_t psn)
{
	urn_uc_owe(tp, qp, urn_uc_word_psn(put_word(tp, qp, psn)), psn);
}

/* Count a queue pair in or out: those of a client share half of what may be kept. */
static void
count_in(const struct urn_tp *tp, struct urn_tp_share *share, int32_t more)
{
	uint32_t each;

	share->uc_n += (uint32_t)more;
	each = share->uc_n ? tp->cfg.kept / 2 / share->uc_n : URN_UC_WINDOW_FAR;
	share->uc_window =
		RTE_MAX(RTE_MIN(each, (uint32_t)URN_UC_WINDOW_FAR), (uint32_t)URN_UC_WINDOW_LEAST);
}

/* The queue pair takes packets from now on. */
static void
open_window(struct urn_tp *tp, const struct urn_qp *qp)
{
	if (!atomic_load_explicit(&tp->uc_dealt[urn_qpn_slot(qp->qpn)], memory_order_relaxed))
		count_in(tp, qp->share, 1);
	put_word(tp, qp, qp->rx.epsn);
}

/* The queue pair takes no packets any more: no sender is to wait for it. */
static void
close_window(struct urn_tp *tp, const struct urn_qp *qp)
{
	if (atomic_exchange_explicit(&tp->uc_dealt[urn_qpn_slot(qp->qpn)], 0, memory_order_relaxed))
		count_in(tp, qp->share, -1);
}

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
	urn_kept_count(tp, qp->share, -1);
	if (!qp->rx.ooo)
		tell(tp, qp, 0);
	return m;
}

__attribute__((cold)) void
urn_uc_hold(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	if (qp->rx.ooo_count >= URN_UC_HELD || !urn_kept_room(tp, qp->share)) {
		urn_tp_drop(tp, m, URN_C_DROP_MEMORY);
		return;
	}
	if (!qp->rx.ooo) {
		tell(tp, qp, 1);
		urn_tp_sched(tp, qp); /* looked at again and again until the gate opens */
	}
	urn_ring_append(&qp->rx.ooo, m);
	qp->rx.ooo_count++;
	urn_kept_count(tp, qp->share, 1);
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
urn_uc_stop(struct urn_tp *tp, struct urn_qp *qp)
{
	close_window(tp, qp);
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
urn_uc_connect(struct urn_tp *tp, struct urn_qp *qp)
{
	struct urn_tp_near near;

	open_window(tp, qp);
	qp->near = 0;
	if (tp->cfg.near &&
	    tp->cfg.near(tp->cfg.near_ctx, qp->av.dgid, urn_qpn_engine(qp->dest_qpn), &near) &&
	    urn_qpn_slot(qp->dest_qpn) < near.slots)
		qp->near = number_of(tp, &near);
}

/* Frames that the QP may make by its peer's word, at most `budget`, until as many are on their way
 * as the peer lets. */
static unsigned int
window_left(const struct urn_qp *qp, uint64_t word, unsigned int budget)
{
	uint32_t window, flight;

	if ((word >> WORD_QPN & URN_PSN_MASK) != qp->qpn)
		return budget; /* the peer's QP is not connected to this one, or not yet */
	window = (uint32_t)(word >> WORD_WINDOW);
	flight = urn_uc_flight(qp, urn_uc_word_psn(word));
	if (flight >= URN_UC_LATE)
		return budget; /* the peer expects quite other PSNs: it learns them from a frame */
	return flight < window ? RTE_MIN(budget, window - flight) : 0;
}

/* Frames that the QP may make, at most `budget`, as the tables of its peer in this dataplane say.
 */
static unsigned int
near_room(const struct urn_qp *qp, const struct urn_tp_near *near, unsigned int budget)
{
	uint32_t slot = urn_qpn_slot(qp->dest_qpn);

	if (unlikely(atomic_load_explicit(&near->full[slot], memory_order_relaxed)))
		return 0;
	if (!near->dealt)
		return budget;
	return window_left(qp, atomic_load_explicit(&near->dealt[slot], memory_order_relaxed),
			   budget);
}

unsigned int
urn_uc_room(struct urn_tp *tp, struct urn_qp *qp, unsigned int budget)
{
	unsigned int room = qp->near == URN_UC_FAR
				    ? window_left(qp, tp->uc_told[urn_qpn_slot(qp->qpn)], budget)
				    : near_room(qp, &tp->near[qp->near - 1], budget);

	if (likely(room)) {
		qp->tx.deadline = 0;
		return room;
	}
	if (!qp->tx.deadline) {
		qp->tx.deadline = tp->now + URN_UC_WAIT_NS;
		URN_COUNT(tp, UC_WAITS);
	}
	return tp->now < qp->tx.deadline ? 0 : budget;
}
