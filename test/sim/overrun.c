/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A completion queue that is too small for its program's requests, and a program that polls
 * late. When a completion finds no room, the queue's event comes once, and the queue takes no more; the QPs
 * that use it end, with one event each; and no message is acknowledged whose receive was not completed
 * (model_deaf()). Elsewhere the engine looks for idle QPs of the queue; here the simulation does, a while later.
 */
#include "sim.h"

enum { SCQ = 1, RCQ = 2, SLACK_NS = 20000 };

void
sim_cqs_open(struct sim_node *n)
{
	n->scq.cq.handle = SCQ;
	n->rcq.cq.handle = RCQ;
	n->poll_due = 0;
	n->walk_at = UINT64_MAX;
}

uint32_t
sim_cq_entries(const struct sim_node *n, bool receives, uint32_t usual)
{
	const struct sim_plan *p = &n->s->plan;
	bool small = sim_on(n->s, SIM_OVERRUN) && p->full_node == n->id && p->full_receives == receives;

	return small ? p->full_entries : usual;
}

bool
sim_polls_late(struct sim_node *n)
{
	if (!sim_on(n->s, SIM_OVERRUN) || n->s->plan.full_node != n->id)
		return false;
	if (n->s->now < n->poll_due)
		return true;
	n->poll_due = n->s->now + sim_rnd(&n->s->rng, 100000);
	return false;
}

void
sim_cq_broken(void *ctx, const struct urn_cq *cq)
{
	struct sim_node *n = ctx;

	(void)cq;
	n->walk_at = n->s->now + sim_rnd(&n->s->rng, SLACK_NS);
}

static bool
uses(const struct sim_end *e, const struct sim_cq *cq)
{
	return e->qp && (e->qp->send_cq == &cq->cq || e->qp->recv_cq == &cq->cq);
}

void
sim_cqs_walk(struct sim_node *n)
{
	if (n->s->now < n->walk_at)
		return;
	n->walk_at = UINT64_MAX;
	for (struct sim_end *e = n->ends; e; e = e->next)
		if ((n->scq.broken && uses(e, &n->scq)) || (n->rcq.broken && uses(e, &n->rcq)))
			urn_qp_cq_broken(n->tp, e->qp);
}

/* True when nothing else has ended the QP or is about to: then its program is told of its end. */
static bool
is_whole(const struct sim_end *e)
{
	return !e->node->s->winding_up && !e->ended_itself && !e->failed && !e->overrun && !e->peer->overrun &&
	       !e->peer->failed && e->peer->qp && e->peer->qp->state != URN_QPS_ERR;
}

void
sim_event_cq(struct sim_node *n, uint32_t handle)
{
	struct sim_cq *cq = handle == SCQ ? &n->scq : handle == RCQ ? &n->rcq : NULL;
	struct sim *s = n->s;

	if (!cq || !sim_on(s, SIM_OVERRUN) || cq->broken || cq->cq.prod - cq->seen <= cq->cq.mask) {
		sim_fail(s, "node %u: completion queue %u is said to have overflowed, for no reason", n->id, handle);
		return;
	}
	cq->broken = true;
	s->stats.fired[SIM_OVERRUN]++;
	for (struct sim_end *e = n->ends; e; e = e->next)
		/* With a peer on the same queue, the peer's failure may come first. */
		e->told_fatal |= uses(e, cq) && is_whole(e) && !uses(e->peer, cq);
	for (struct sim_end *e = n->ends; e; e = e->next) {
		if (!uses(e, cq))
			continue;
		e->overrun = true;
		e->deaf |= e->qp->send_cq == &cq->cq;
		model_deaf(s->model, e->m, e->qp->send_cq == &cq->cq, e->qp->recv_cq == &cq->cq);
		e->rq.over = true;
		sim_end_gives_up(e);
		if (e->deaf)
			e->left = 0;
	}
}

bool
sim_cqs_settled(const struct sim *s)
{
	for (unsigned int i = 0; i < s->plan.nodes; i++) {
		const struct sim_node *n = &s->node[i];

		if (!n->host && (n->walk_at != UINT64_MAX || (n->scq.broken && sim_cq_waits(&n->scq)) ||
				 (n->rcq.broken && sim_cq_waits(&n->rcq))))
			return false;
	}
	return true;
}

void
sim_overrun_judge(struct sim_end *e)
{
	if (e->overrun && e->qp && e->qp->state != URN_QPS_ERR)
		sim_fail(e->node->s, "node %u QP 0x%x: a completion queue of its has overflowed, and it is in state %s",
			 e->node->id, e->qp->qpn, urn_qp_state_name(e->qp->state));
	if (e->told_fatal && e->told[URN_EVENT_QP_FATAL] != 1)
		sim_fail(e->node->s, "node %u QP 0x%x: a completion queue of its has overflowed, and it was told %u times",
			 e->node->id, e->qp->qpn, e->told[URN_EVENT_QP_FATAL]);
}
