/* SPDX-License-Identifier: BSD-3-Clause */
/* Words of UC receivers to senders in other dataplanes: how far the receiver is, and its window. */
#include "memory/check.h"
#include "transport/act.h"
#include "transport/frame.h"
#include "transport/requester.h"
#include "transport/uc.h"
#include "transport/uc_hold.h"

_Static_assert((int)URN_UC_FAR > (int)URN_TP_NEAR, "the number of no table");
_Static_assert((int)URN_UC_WINDOW_FAR < (int)URN_UC_HELD &&
		       (int)URN_UC_WINDOW_FAR < (int)URN_UC_LATE,
	       "a window has room in the queue, and makes sense");
_Static_assert(URN_UC_WINDOW_LEAST >= 4, "a quarter of a window has a packet");

/* ---- the receiver's side */

/*
 * True when the sender is in another dataplane, and knows words, and the receiver's memory may be
 * slow: memory that is shared takes packets as fast as they come.
 */
static bool
tells(const struct urn_tp *tp, const struct urn_qp *qp)
{
	struct urn_space **at;

	if ((qp->near && qp->near != URN_UC_FAR) ||
	    !(urn_qp_peer(tp, qp)->features & URN_LINK_F_UC_WINDOW))
		return false;
	at = urn_mem_pd_space(tp->cfg.mem, qp->pd);
	/* Pairs with the release in urn_mem_add_foreign(); only whether there is a space counts. */
	return at && __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

void
urn_uc_owe(struct urn_tp *tp, struct urn_qp *qp, uint32_t before, uint32_t psn)
{
	/* The power of two that is a quarter of the window, or less: PSNs that are divided by it.
	 */
	uint32_t step = 1u << (29 - __builtin_clz(qp->share->uc_window | URN_UC_WINDOW_LEAST));

	if (likely(!((before ^ psn) & URN_PSN_MASK & ~(step - 1)) && before != qp->rq_psn))
		return;
	if (!tells(tp, qp))
		return;
	urn_ack_owe(&qp->rx, tp->turn, true);
	urn_tp_sched(tp, qp);
}

void
urn_uc_tell(struct urn_tp *tp, struct urn_qp *qp)
{
	uint64_t word =
		atomic_load_explicit(&tp->uc_dealt[urn_qpn_slot(qp->qpn)], memory_order_relaxed);
	const struct urn_opcode *op = &urn_opcodes[URN_UC_WORD];
	struct urn_aeth aeth;
	struct urn_txd *d;
	uint8_t *bth;

	if (unlikely(!urn_tp_tx_room(tp)))
		return;
	d = urn_tp_frame(tp, &qp->tmpl, URN_UC_WORD, 0, qp->dest_qpn, urn_uc_word_psn(word), 0,
			 false, &bth);
	if (unlikely(!d))
		return;
	aeth.syn_msn = rte_cpu_to_be_32(qp->share->uc_window);
	memcpy(bth + op->off[URN_EXT_AETH], &aeth, sizeof(aeth));
	d->syndrome = 0;
	urn_tp_send(tp, d, qp, URN_ACT_TX_RESPONSE, (qp->flags & URN_QPF_LOOP) != 0);
	urn_ack_sent(&qp->rx);
	URN_COUNT(tp, TX_UC_WINDOWS);
}

/* ---- the sender's side */

/*
 * True when a word makes sense: the receiver can have taken what it says it has, and has room for
 * a window. Anybody on the wire may have made the word, so it must not name a small one.
 */
static bool
makes_sense(const struct urn_qp *qp, uint32_t psn, uint32_t window)
{
	return urn_uc_flight(qp, psn) < URN_UC_LATE && window >= URN_UC_WINDOW_LEAST &&
	       window <= URN_UC_WINDOW_FAR && (!qp->near || qp->near == URN_UC_FAR);
}

void
urn_uc_told(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	const struct urn_pkt *p = urn_pkt(m);
	uint64_t *word = &tp->uc_told[urn_qpn_slot(qp->qpn)];
	uint32_t psn = p->psn, window, was;
	struct urn_aeth aeth;

	memcpy(&aeth, urn_pkt_ext(m, URN_EXT_AETH), sizeof(aeth));
	window = rte_be_to_cpu_32(aeth.syn_msn) & URN_PSN_MASK;
	if (!makes_sense(qp, psn, window)) {
		urn_tp_drop(tp, m, URN_C_DROP_UC_WINDOW);
		return;
	}
	was = qp->near ? urn_uc_flight(qp, urn_uc_word_psn(*word)) : URN_UC_LATE;
	/* A word that a newer one overtook says nothing. */
	if (urn_uc_flight(qp, psn) <= was || was >= URN_UC_LATE) {
		*word = urn_uc_dealt_word(psn, qp->qpn, window);
		qp->near = URN_UC_FAR;
		urn_tp_sched(tp, qp);
	}
	urn_tp_drop(tp, m, URN_C_RX_UC_WINDOWS);
}
