/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Holding UC back while a receiver's memory is busy. UC repeats nothing, so a packet that finds the
 * gate of its program's foreign memory closed (sched.h, urn_tp_gated()) is lost for good if it is
 * dropped. Two things keep it:
 *
 *   sender's QP ── frames ─► receiver's QP ─► gate closed: the packet waits in urn_qp.rx.ooo,
 *        ▲                        │           in the order of arrival, others behind it
 *        └─ urn_tp.uc_full[slot] ─┘           1 while a packet waits
 *
 * The receiver's queue is bounded, for each queue pair and for each client by a fair share of what
 * an engine may keep, packets ahead of their turn included; beyond that packets are dropped
 * (drop_memory). A sender on an adapter of the
 * same dataplane looks at the receiver's byte, and makes no more frames while it is 1: so the queue
 * has to hold only what was on its way. A sender elsewhere is not told, and may lose messages.
 *
 * A receiver whose memory stands still must not keep a sender from completing its requests, which
 * nobody acknowledges: a sender waits at most URN_UC_WAIT_NS at a stretch.
 *
 * The receiver's engine writes the byte, and those of senders read the byte, as a hint that orders
 * nothing. The byte lies in a table, and not in the queue pair, because the table lives as long as
 * its adapter.
 */
#ifndef URN_TRANSPORT_UC_HOLD_H
#define URN_TRANSPORT_UC_HOLD_H

#include "transport/sched.h"

enum {
	URN_UC_HELD = 1024, /* packets that wait for the memory of one queue pair, at most */
};

#define URN_UC_WAIT_NS \
	1000000000ull /* ns that a sender waits for a receiver's memory at a stretch, at most */

/* Make the table of bytes, and the rule for fair shares. returns: 0, or -1: no memory */
int urn_uc_held_init(struct urn_tp *tp);
/* Free the table. */
void urn_uc_held_free(struct urn_tp *tp);
/* True when packets that come must wait: others do, or the gate is closed. */
static inline bool
urn_uc_holds(const struct urn_tp *tp, const struct urn_qp *qp)
{
	return unlikely(qp->rx.ooo != NULL) || urn_tp_gated(tp, qp);
}
/* Let a packet wait for memory, or drop it where it finds no room; takes m. */
void urn_uc_hold(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);
/*
 * Accept at most `budget` of the packets that wait, if the gate is open; the QP is in a state that
 * accepts packets. returns: true when the QP stays in the schedule for the rest
 */
bool urn_uc_take_held(struct urn_tp *tp, struct urn_qp *qp, unsigned int budget);
/* Drop the packets that wait: the QP ends, or is in error. */
void urn_uc_drop_held(struct urn_tp *tp, struct urn_qp *qp);
/* Find out whether the peer of a QP is on an adapter of this dataplane; its address was set. */
void urn_uc_find_near(struct urn_tp *tp, struct urn_qp *qp);
/* True when the QP must make no frame now, because packets wait for its peer's memory. */
bool urn_uc_must_wait(struct urn_tp *tp, struct urn_qp *qp);

#endif
