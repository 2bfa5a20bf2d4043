/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requester's parts, called by each other and by other files of the transport: requests,
 * timers, repairs, responses.
 */
#ifndef URN_TRANSPORT_REQUESTER_H
#define URN_TRANSPORT_REQUESTER_H

#include "transport/psn_timer.h"
#include "transport/tp.h"
#include "wire/link.h"

/* ---- requester.c */

/* Fetch, segment, build; at most `budget` frames. returns: true when more could be sent */
bool urn_req_tx(struct urn_tp *tp, struct urn_qp *qp, unsigned int budget);
/* The QP's timer ran out: look at gaps, the RNR wait, probe, repeats and timeout. (req_timer.c) */
void urn_req_timer(struct urn_tp *tp, struct urn_qp *qp);
/* Complete the work at the head of the queue, as far as it is done. */
void urn_req_retire(struct urn_tp *tp, struct urn_qp *qp);
/* The work w fails with this status: complete it, and put the QP into the error state. */
void urn_req_fail(struct urn_tp *tp, struct urn_qp *qp, struct urn_work *w, uint8_t status,
		  uint8_t vendor_err);
/*
 * Execute the bind or invalidate at the cursor. returns: false when the work behind it can't be
 * done now
 */
bool urn_req_step_local(struct urn_tp *tp, struct urn_qp *qp, struct urn_work *w);
/* ---- req_timer.c */

/* Restart the timer: there was progress, or something was sent while nothing was outstanding. */
void urn_req_arm(struct urn_tp *tp, struct urn_qp *qp);
/* The wait that a peer's RNR NAK asked for is over: send on, under the acknowledgement timer. */
void urn_req_end_rnr_wait(struct urn_tp *tp, struct urn_qp *qp);
/* Look at the QP at this time, ns, or earlier. */
void urn_req_wake_at(struct urn_tp *tp, struct urn_qp *qp, uint64_t due);

/* ---- requester.c, for repairs */

/*
 * Send the packet of work w with this PSN again; last: it ends a stretch, so ask for an
 * acknowledgement.
 * returns: the PSN behind the packets sent (a READ or atomic is sent whole), or psn when nothing
 * can be sent now
 */
uint32_t urn_req_resend(struct urn_tp *tp, struct urn_qp *qp, struct urn_work *w, uint32_t psn,
			bool last);
/* Ask again for PSNs from..end-1 of the response to READ or atomic w. returns: false when there was no buffer */
bool urn_req_refetch(struct urn_tp *tp, struct urn_qp *qp, struct urn_work *w, uint32_t from,
		     uint32_t end);
/* The memory of the packet with this PSN could not be read: the work of the packet fails in its turn. */
void urn_req_unreadable(struct urn_tp *tp, struct urn_qp *qp, uint32_t psn);

/* ---- the peer's adapter (peer.h) */

/* The way that a sequence takes. */
static inline struct urn_peer *
urn_psn_peer(const struct urn_tp *tp, const struct urn_psn_tx *tx)
{
	return urn_peer_at(&tp->peers, tx->peer);
}

static inline struct urn_peer *
urn_qp_peer(const struct urn_tp *tp, const struct urn_qp *qp)
{
	return urn_psn_peer(tp, &qp->tx);
}

/* True when both sides support selective acknowledgements. */
static inline bool
urn_qp_selective(const struct urn_tp *tp, const struct urn_qp *qp)
{
	return urn_qp_peer(tp, qp)->features & URN_LINK_F_SACK;
}

/* A packet that asks for an acknowledgement goes out for the first time: time it, if none is being timed. */
static inline void
urn_peer_time(struct urn_tp *tp, const struct urn_psn_tx *tx, uint32_t psn)
{
	struct urn_peer *p = urn_psn_peer(tp, tx);

	if (p->timed)
		return;
	p->timed = tx;
	p->timed_psn = psn;
	p->timed_at = tp->now;
	p->timed_delivered = p->delivered;
}

/* Stop timing a packet of this sequence: its round trip can't be measured any more. */
static inline void
urn_peer_untime(struct urn_tp *tp, const struct urn_psn_tx *tx)
{
	if (urn_psn_peer(tp, tx)->timed == tx)
		urn_psn_peer(tp, tx)->timed = NULL;
}

/* The sequence was acknowledged up to una, by n PSNs more: measure, if the packet that is being timed is among those. */
static inline void
urn_peer_timed(struct urn_tp *tp, const struct urn_psn_tx *tx, uint32_t n)
{
	struct urn_peer *p = urn_psn_peer(tp, tx);

	p->delivered += n;
	if (p->timed == tx && urn_psn_diff(tx->una, p->timed_psn) > 0)
		urn_peer_delivered(p, tp->now, tp->cfg.window);
}

/* ---- repair.c */

/* Make the pool. returns: 0, or -1: no memory */
int urn_repairs_init(struct urn_tp *tp);

static inline struct urn_repair *
urn_repair_of(const struct urn_tp *tp, const struct urn_psn_tx *tx)
{
	return tx->repair ? &tp->repair[tx->repair] : NULL;
}

/* Get the QP's repair state, made if needed. NULL: none left for its client, or user (counted) */
struct urn_repair *urn_repair_get(struct urn_tp *tp, struct urn_qp *qp);
/* Give the QP's repair state back, with everything that it keeps. */
void urn_repair_end(struct urn_tp *tp, struct urn_qp *qp);
/* There was progress: forget settled PSNs, and give the state back when nothing else is left. */
void urn_repair_settle(struct urn_tp *tp, struct urn_qp *qp);
/* Everything is repeated: forget what the scoreboard of requests knows. */
void urn_repair_void(struct urn_tp *tp, struct urn_qp *qp);
/* Judge missing packets. returns: ns, when to judge again; UINT64_MAX: nothing is missing */
uint64_t urn_repair_look(struct urn_tp *tp, struct urn_qp *qp);
/* Take in a selective acknowledgement. returns: false when there is no room */
bool urn_repair_sack(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);
enum urn_keep { URN_KEEP_DONE, URN_KEEP_AGAIN, URN_KEEP_NO_ROOM };
/* Keep a response ahead of its turn; when it is kept already, or there is no room, the caller still owns m. */
enum urn_keep urn_repair_keep(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);
/*
 * A response was dropped: ask for it until it comes. returns: true when that is noted; false
 * without selective acknowledgements, or without room
 */
bool urn_repair_missed(struct urn_tp *tp, struct urn_qp *qp, uint32_t psn);
/* True when this PSN is that of the response that is due, and was asked for again. */
bool urn_repair_asked(const struct urn_tp *tp, const struct urn_qp *qp, uint32_t psn);
/* Take a kept response whose turn has come, or is over. NULL: none */
struct rte_mbuf *urn_repair_take(struct urn_tp *tp, struct urn_qp *qp);
/* A response came in its turn. */
void urn_repair_came(struct urn_tp *tp, struct urn_qp *qp, uint32_t psn);
/* Put a repeated READ request, for a part, aside. returns: false when there is no room */
bool urn_repair_part(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);
/* The oldest part is answered. */
void urn_repair_part_done(struct urn_tp *tp, struct urn_qp *qp);
/* Send lost packets again. returns: true when there is more to send */
bool urn_repair_tx(struct urn_tp *tp, struct urn_qp *qp, unsigned int *budget);

/* ---- fetch.c */

/* Copy and check the next posted request. NULL: none, or no room (counted). */
struct urn_work *urn_req_fetch(struct urn_tp *tp, struct urn_qp *qp);
/* Execute bind and local invalidate: to be called until the state of w is neither QUEUED nor FENCED. */
void urn_req_local(struct urn_tp *tp, struct urn_qp *qp, struct urn_work *w);

/* ---- completer.c: responses at the requester */

void urn_comp_accept(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);
void urn_comp_finish(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);
/*
 * True when this response is a copy of the one that was kept in its place and taken up in its turn.
 * A response that differs is counted. For a READ that is all, because its memory may have changed
 * since the first answer; a packet that does not answer the request at all was forged for certain,
 * and does nothing. The value of an atomic does not change between answers: the program may have
 * the wrong one.
 * returns: false when the QP fails for that reason: m is taken
 */
bool urn_comp_is_copy(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);

#endif
