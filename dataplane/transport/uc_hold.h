/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Holding UC back while a receiver's memory is busy. UC repeats nothing, so a packet that finds the
 * gate of its program's foreign memory closed (sched.h, urn_tp_gated()) is lost for good if it is
 * dropped. Two things keep it:
 *
 *   sender's QP ── frames ─► receiver's QP ─► gate closed: the packet waits in urn_qp.rx.ooo,
 *        ▲                        │           in the order of arrival, others behind it
 *        ├─ urn_tp.uc_full[slot] ─┤           1 while a packet waits
 *        └─ urn_tp.uc_dealt[slot] ┘           PSN behind the last packet taken or dropped, window
 *
 * The receiver's queue is bounded, for each queue pair and for each client by a fair share of what
 * an engine may keep, packets ahead of their turn included; beyond that packets are dropped
 * (drop_memory). A sender on an adapter of the
 * same dataplane looks at the receiver's byte, and makes no more frames while it is 1. The sender
 * also makes no frame while as many as the receiver's window are on their way or wait, which the
 * PSN in the receiver's word tells. Windows become smaller with the number of a client's UC queue
 * pairs, so that all of them together fill half of what an engine may keep: a single client may
 * have that much (base/fair.h), and the queues have room for all that comes. The bound holds for as
 * many queue pairs as half of what may be kept has windows of URN_UC_WINDOW_LEAST.
 *
 * A sender elsewhere, in a dataplane that knows UC windows too (URN_LINK_F_UC_WINDOW), is told its
 * word in packets (uc_tell.c): with the first packet that comes, and each time that a quarter of
 * the window was taken. Only receivers tell whose client has foreign memory. Until the first word
 * comes the sender sends without a bound, as it does to every other peer.
 *
 * A receiver whose memory stands still must not keep a sender from completing its requests, which
 * nobody acknowledges: a sender waits at most URN_UC_WAIT_NS at a stretch.
 *
 * A packet that is lost on the wire counts as under way until a later one comes: a message's next
 * packets, although they are dropped, tell. When a whole window is lost, the sender waits as long.
 * A receiver that takes no packets has the word 0, and nobody waits for it.
 *
 * The receiver's engine writes byte and word, and those of senders read them, as hints that order
 * nothing. Both lie in tables, and not in the queue pair, because the tables live as long as their
 * adapter. The word has the sender's number, because a slot may get another queue pair.
 */
#ifndef URN_TRANSPORT_UC_HOLD_H
#define URN_TRANSPORT_UC_HOLD_H

#include "transport/ack.h"
#include "transport/sched.h"

enum {
	URN_UC_HELD = 1024,  /* packets that wait for the memory of one queue pair, at most */
	URN_UC_WINDOW = 128, /* packets on their way to one queue pair of the dataplane, at most:
				enough for the turns of two engines, of 16 frames a queue pair */
	URN_UC_WINDOW_FAR = 512, /* ... from another dataplane, whose engine may wait for a core
				    while ours empties the window */
	URN_UC_WINDOW_LEAST = 8, /* ... however many queue pairs there are */
	URN_UC_FAR = UINT16_MAX, /* urn_qp.near of a sender whose peer elsewhere has told a word */
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
/* Drop the packets that wait, and let nobody wait for the QP: the QP ends, or is in error. */
void urn_uc_stop(struct urn_tp *tp, struct urn_qp *qp);
/*
 * Find out whether the peer of a QP is on an adapter of this dataplane, and tell senders which PSN
 * is due. The QP's addresses, numbers and rx.epsn were set.
 */
void urn_uc_connect(struct urn_tp *tp, struct urn_qp *qp);
/* The word of a receiver. psn: due next; sender: number of the peer's QP; window: packets */
uint64_t urn_uc_dealt_word(uint32_t psn, uint32_t sender, uint32_t window);
/* Packets before this PSN were taken or dropped: tell the sender, wherever it is. */
void urn_uc_dealt(struct urn_tp *tp, struct urn_qp *qp, uint32_t psn);
/* True when the receiver owes a sender elsewhere its word. */
static inline bool
urn_uc_owes(const struct urn_qp *qp)
{
	return urn_ack_owes(&qp->rx);
}
/*
 * The receiver's word changed, from `before` to `psn`, both the PSN that was due: owe the sender
 * its word if it is elsewhere and is to know by now. (uc_tell.c)
 */
void urn_uc_owe(struct urn_tp *tp, struct urn_qp *qp, uint32_t before, uint32_t psn);
/* Send the word that is owed, as far as there is room; the headers to the peer are complete.
 * (uc_tell.c) */
void urn_uc_tell(struct urn_tp *tp, struct urn_qp *qp);
/* A word came, for a sender; takes m. (uc_tell.c) */
void urn_uc_told(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);
/* The frames that the QP has sent beyond those that a word names. psn: that of the word */
static inline uint32_t
urn_uc_flight(const struct urn_qp *qp, uint32_t psn)
{
	return (qp->tx.cur.psn - psn) & URN_PSN_MASK;
}
/* The PSN of a word. */
static inline uint32_t
urn_uc_word_psn(uint64_t word)
{
	return (uint32_t)word & URN_PSN_MASK;
}
/*
 * Frames that the QP, whose peer is near or has told its word, may make now, at most `budget`.
 * returns: 0 while packets wait for the peer's memory, or as many are on their way as the peer lets
 */
unsigned int urn_uc_room(struct urn_tp *tp, struct urn_qp *qp, unsigned int budget);

#endif
