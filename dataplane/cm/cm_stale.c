/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections that may be stale. A peer that connects a queue pair which has a connection here has
 * forgotten that connection (IBTA 12.9.8.3.1); but a request proves nothing of its sender, and
 * whoever writes the peer's address and a queue pair's number into one may not end a connection
 * by it. So the request is refused, as the IBTA wants it, and the peer is asked.
 *
 * The question is a DREQ with both ids of the connection that names no queue pair. A peer that has
 * the connection finds that the queue pair is not the connection's, and drops the DREQ (Linux:
 * cm_dreq_handler()). A peer that does not know the ids answers with a DREP, as to any DREQ for
 * ids that nobody has. The DREP counts only with the transaction id of the question, which is drawn
 * for it and goes to the peer's address alone. Silence ends nothing: a peer that has started anew
 * and asks for a connection is there to answer.
 */
#include "cm/cm_internal.h"

enum { NO_QPN = 0 }; /* a queue pair that no connection has */

/* Send the question, and wait. */
static void
ask(struct urn_cm *cm, struct cm_conn *e, uint64_t now)
{
	struct urn_cm_msg m;

	cm_head(e, &m, URN_CM_DREQ);
	m.tid = e->doubt_tid;
	m.qpn = NO_QPN;
	CM_COUNT(cm, CM_STALE_ASKED);
	cm_send_late(cm, e->own, e->peer, &m);
	/* Else the timer runs for the next repeat of the kept message, and for the next question.
	 */
	if (!e->insists)
		cm_timer(cm, e, now + cm_patience(e->timeout));
}

void
cm_stale(struct urn_cm *cm, struct cm_conn *old, uint64_t now)
{
	if (old->state != URN_CM_ESTABLISHED || old->doubts)
		return;
	/* One for all questions: a peer that keeps its answer repeats that one. */
	if (old->doubt_tid == 0)
		old->doubt_tid = cm_draw(cm);
	old->doubts = 1;
	ask(cm, old, now);
}

void
cm_stale_again(struct urn_cm *cm, struct cm_conn *e, uint64_t now)
{
	if (e->doubts == 0)
		return;
	if (e->doubts > e->max_tries) {
		e->doubts = 0;
		return;
	}
	e->doubts++;
	ask(cm, e, now);
}

enum urn_counter
cm_stale_answer(struct urn_cm *cm, struct cm_conn *e, const struct urn_cm_msg *m, uint64_t now)
{
	/* An answer that comes late counts: a peer that has forgotten a connection never knows it
	 * again. */
	if (e->doubt_tid == 0 || m->tid != e->doubt_tid)
		return URN_C_DROP_CM_STATE;
	if (!cm_tell(cm, e, URN_CM_EVENT_DISCONNECTED, m, 0))
		return URN_C_DROP_CM_EVENT;
	cm_timewait(cm, e, now);
	return URN_C_CM_STALE_ENDED;
}
