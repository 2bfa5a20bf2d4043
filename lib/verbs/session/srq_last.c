/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The event IBV_EVENT_QP_LAST_WQE_REACHED of queue pairs with a shared receive queue (IBTA
 * 11.6.3): a queue pair in ERR takes no more receives, and all that it took are complete or back. A
 * program waits for it before it destroys the queue pair. With a session the event is ours, when
 * the connection has ended and its queue pairs are fenced; without one it is the adapter's.
 */
#include "verbs/front.h"
#include "verbs/session/heal.h"
#include "verbs/session/srq.h"

static void
urn_sv_last_due(struct urn_sv_qp *q)
{
	q->at_last = URN_SV_LAST_DUE;
	urn_sv_event_tell(q->ctx);
}

void
urn_sv_last_want(struct urn_sv_qp *q)
{
	if (q->srq == NULL || q->at_last != URN_SV_LAST_NONE)
		return;
	q->at_last = URN_SV_LAST_WANTED;
	urn_sv_kick(q->ctx);
}

void
urn_sv_last_settle(struct urn_sv_ctx *ctx)
{
	struct urn_sv_qp *q;

	LIST_FOREACH(q, &ctx->qps, link) {
		if (q->at_last != URN_SV_LAST_WANTED)
			continue;
		for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++)
			urn_sv_cq_drain((struct urn_sv_cq *)q->ibv.recv_cq, i);
		urn_sv_last_due(q);
	}
}

void
urn_sv_last_reached(struct urn_sv_ctx *ctx, uint32_t adapter, uint32_t qpn)
{
	struct urn_sv_path *p = urn_sv_find(ctx, adapter, qpn);

	if (p == NULL)
		return;
	p->given = true;
	/* The adapter gives one event each time that the queue pair comes to ERR. */
	if (p->qp->mode == URN_SV_PLAIN && p->qp->at_last != URN_SV_LAST_DUE)
		urn_sv_last_due(p->qp);
}

bool
urn_sv_last_take(struct urn_sv_qp *q)
{
	if (q->at_last != URN_SV_LAST_DUE)
		return false;
	q->at_last = URN_SV_LAST_TOLD;
	q->events_got++;
	return true;
}

void
urn_sv_last_forget(struct urn_sv_qp *q)
{
	if (q->at_last == URN_SV_LAST_DUE)
		urn_sv_event_hush(q->ctx);
	q->at_last = URN_SV_LAST_NONE;
}
