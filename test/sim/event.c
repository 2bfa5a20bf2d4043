/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Judges asynchronous events of a bare transport: each event has a reason, and comes once; an
 * event that is due comes. client.c judges those of whole nodes.
 */
#include "sim.h"

/* True when the event is of a QP that refused a request of its peer (IBTA 10.10.2.3). */
static bool
is_refusal(uint32_t type)
{
	return type == URN_EVENT_QP_FATAL || type == URN_EVENT_QP_REQ_ERR || type == URN_EVENT_QP_ACCESS_ERR;
}

/* returns: how many events of this type the QP may have got, this one included; 0: none */
static unsigned int
may_come(const struct sim_end *e, uint32_t type)
{
	if (is_refusal(type))
		return e->peer->posted || e->overrun ? 1 : 0;
	if (type == URN_EVENT_SQ_DRAINED)
		return e->drains;
	if (type == URN_EVENT_LAST_WQE)
		return !e->rq.hdr && e->qp->state == URN_QPS_ERR;
	return 0; /* events of queue overflows, of limits that nobody set, of connections made by hand */
}

void
sim_event(struct sim_node *n, uint32_t type, uint32_t handle)
{
	struct sim_end *e = n->by_qpn[handle % URN_TP_QP_CHUNK];
	unsigned int came, most;

	sim_note(n->s, (int)n->id, "event", type, handle, 0);
	/* The QP of datagrams has no peer; its only event is its end. */
	if (n->ud.qp && n->ud.qp->qpn == handle)
		return;
	if (type == URN_EVENT_CQ_ERR) {
		sim_event_cq(n, handle);
		return;
	}
	if (type >= SIM_EVENTS || !e || !e->qp || e->qp->qpn != handle) {
		sim_fail(n->s, "node %u: event %u of 0x%x, for no reason", n->id, type, handle);
		return;
	}
	e->told[type]++;
	came = is_refusal(type) ? e->told[URN_EVENT_QP_FATAL] + e->told[URN_EVENT_QP_REQ_ERR] +
					  e->told[URN_EVENT_QP_ACCESS_ERR]
				: e->told[type];
	most = may_come(e, type);
	if (came > most)
		sim_fail(n->s, "node %u QP 0x%x: event %u came %u times, and may %u times", n->id, handle,
			 type, came, most);
}

void
sim_event_refused(struct sim_end *e, const struct urn_abi_cqe *c)
{
	if (c->status == URN_WC_REM_ACCESS_ERR && !e->peer->client)
		e->peer->refused = true;
}

void
sim_event_drained(struct sim_end *e)
{
	bool stood = sim_on(e->node->s, SIM_HANG) || sim_on(e->node->s, SIM_PAUSE);

	/* An engine without a turn since then can't have told. A response that waits for memory delays the event. */
	if (!stood && e->node->last > e->drained_at && !e->qp->tx.head && !e->qp->tx_last &&
	    e->told[URN_EVENT_SQ_DRAINED] == e->told_before)
		sim_fail(e->node->s, "node %u QP 0x%x: its queue was drained, and it was not told", e->node->id,
			 e->qp->qpn);
}

bool
sim_events_came(const struct sim *s)
{
	for (unsigned int i = 0; i < s->ends; i++) {
		const struct sim_end *e = &s->end[i];

		if (!e->client && e->qp && !e->rq.hdr && e->told[URN_EVENT_LAST_WQE] != 1)
			return false;
	}
	return true;
}

void
sim_event_close(const struct sim_end *e)
{
	struct sim *s = e->node->s;

	if (e->client || !e->qp || s->why[0])
		return;
	/* Only a QP that had not failed tells of a refusal; a failed receive tells of it, too, without an event. */
	if (e->refused && !e->ended_itself && e->told[URN_EVENT_QP_ACCESS_ERR] != 1)
		sim_fail(s, "node %u QP 0x%x: it refused a request for its key, and told %u times", e->node->id,
			 e->qp->qpn, e->told[URN_EVENT_QP_ACCESS_ERR]);
}
