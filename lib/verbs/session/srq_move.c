/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The home of a shared receive queue (FO-14). The home is one adapter, which has all receives, and
 * all connections of the queue use paths of it. A connection that has to go to the other adapter
 * takes the queue and the queue's other connections along. The connection waits, before its
 * receives count as posted, until the last of them was fenced and drained and the receives are on
 * the other adapter; so its peer sends nothing that would find no receive.
 *
 * Verbs take no receive back from a real queue. So the real queue of a home that was left is
 * spoiled: none of its queue pairs may be used again, and paths there are made anew with another
 * one.
 */
#include "verbs/front.h"
#include "verbs/session/heal.h"
#include "verbs/session/log.h"
#include "verbs/session/srq.h"

#include <errno.h>

enum {
	/* Between moves from homes that live, and how long a connection waits for one. */
	URN_SV_SRQ_STAY_MS = 5000,
	/* How long a queue pair is waited for that does not say that it gave receives back. */
	URN_SV_SRQ_GIVE_MS = 1000,
};

bool
urn_sv_srq_stale(const struct urn_sv_path *p)
{
	return p->shared != NULL && p->shared->spoiled;
}

/* True when a connection has a path alive on an adapter. */
static bool
urn_sv_srq_reaches(const struct urn_sv_qp *q, uint32_t adapter)
{
	for (uint32_t i = 0; i < URN_SV_PATHS; i++)
		if (q->path[i].mine == adapter && (q->c.alive & 1u << urn_sv_bit(q, i)))
			return true;
	return false;
}

/* True when a queue may return to the primary adapter: all its connections have a path there. */
static bool
urn_sv_srq_returns(const struct urn_sv_srq *s, struct urn_sv_ctx *ctx)
{
	struct urn_sv_qp *q;

	if (s->home == 0 || !ctx->options.fail_back || ctx->dead[0] || ctx->down[0])
		return false;
	LIST_FOREACH(q, &ctx->qps, link)
		if (urn_sv_srq_lives(q, s) && !urn_sv_srq_reaches(q, 0))
			return false;
	return true;
}

void
urn_sv_srq_shun(struct urn_sv_qp *q)
{
	const struct urn_sv_srq *s = q->srq;

	if (s == NULL || q->mode != URN_SV_SESSION)
		return;
	q->c.shun = 0;
	if (q->ctx->dead[s->home] || q->ctx->down[s->home] || urn_sv_srq_returns(s, q->ctx))
		return;
	for (uint32_t i = 0; i < URN_SV_PATHS; i++)
		if (q->path[i].mine != s->home)
			q->c.shun |= 1u << urn_sv_bit(q, i);
}

/* ---- leaving the home */

/* True when a connection uses an adapter, or has not drained its queue pair there. */
static bool
urn_sv_srq_busy(const struct urn_sv_srq *s, struct urn_sv_ctx *ctx, uint32_t adapter)
{
	struct urn_sv_qp *q;

	LIST_FOREACH(q, &ctx->qps, link)
		if (urn_sv_srq_lives(q, s) && q->c.open && urn_sv_used(q)->mine == adapter)
			return true;
	return false;
}

/* A connection leaves all paths of an adapter. why: for the log of steps */
static void
urn_sv_srq_part(struct urn_sv_qp *q, uint32_t adapter, const char *why)
{
	for (uint32_t i = 0; i < URN_SV_PATHS; i++) {
		uint32_t bit = urn_sv_bit(q, i);

		if (q->path[i].mine != adapter || !(q->c.alive & 1u << bit))
			continue;
		q->why = why;
		urn_sv_down(q, bit);
	}
}

/* All connections leave the home. */
static void
urn_sv_srq_part_all(const struct urn_sv_srq *s, struct urn_sv_ctx *ctx)
{
	struct urn_sv_qp *q;

	LIST_FOREACH(q, &ctx->qps, link)
		if (urn_sv_srq_lives(q, s))
			urn_sv_srq_part(q, s->home, "its shared receive queue moves");
}

/*
 * Put the queue pair of a path in error: nothing can be placed through it any more. returns: false:
 * its adapter does not answer, and counts as lost soon
 */
static bool
urn_sv_srq_shut_path(struct urn_sv_path *p)
{
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};

	if (p->real == NULL || p->qp->ctx->dead[p->mine] || p->qp->ibv.state == IBV_QPS_RESET)
		return true;
	if (ibv_modify_qp(p->real, &err, IBV_QP_STATE) == EIO)
		return false;
	p->heal.fresh = p->heal.probing = false; /* to be made anew */
	p->heal.due = 0;
	return true;
}

/* Shut all queue pairs that could take receives of the home's real queue. returns: like
 * urn_sv_srq_shut_path() */
static bool
urn_sv_srq_shut(const struct urn_sv_srq *s, struct urn_sv_ctx *ctx)
{
	struct urn_sv_qp *q;

	LIST_FOREACH(q, &ctx->qps, link) {
		if (q->srq != s)
			continue;
		for (uint32_t i = 0; i < URN_SV_PATHS; i++)
			if (q->path[i].mine == s->home && !urn_sv_srq_shut_path(&q->path[i]))
				return false;
	}
	return true;
}

/* A queue pair that is not connected loses what it has on a real queue that is spoiled. */
static void
urn_sv_srq_orphan(struct urn_sv_qp *q, uint32_t adapter)
{
	if (q->mode != URN_SV_NEW)
		return;
	/* Peers know the connection by the number of P-P's queue pair. */
	if (adapter == 0) {
		q->lost = true;
		if (q->listener != 0)
			urn_sv_unlisten(q);
		return;
	}
	for (uint32_t i = 0; i < URN_SV_PATHS; i++)
		if (q->path[i].mine == adapter)
			urn_sv_path_end(&q->path[i], true);
}

/* Give up the home's real queue, if its adapter is there. */
static void
urn_sv_srq_abandon(struct urn_sv_srq *s, struct urn_sv_ctx *ctx)
{
	struct urn_sv_qp *q;

	if (ctx->dead[s->home])
		return; /* anew.c ends it with all that the adapter had */
	LIST_FOREACH(q, &ctx->qps, link)
		if (q->srq == s)
			urn_sv_srq_orphan(q, s->home);
	urn_sv_srq_spoil(s, s->home);
}

/* Move the receives to another adapter. returns: false: not yet */
static bool
urn_sv_srq_move(struct urn_sv_srq *s, struct urn_sv_ctx *ctx, uint32_t to)
{
	uint32_t from = s->home;

	urn_sv_srq_part_all(s, ctx);
	if (urn_sv_srq_busy(s, ctx, from) || !urn_sv_srq_shut(s, ctx))
		return false;
	urn_sv_srq_abandon(s, ctx);
	s->home = to;
	for (uint32_t i = 0; i < s->size; i++)
		if (s->slot[i].state == URN_SV_SLOT_ON && s->slot[i].on == from)
			urn_sv_srq_back(s, i);
	urn_sv_srq_go(s);
	if (s->limit != 0)
		(void)urn_sv_srq_arm(s);
	urn_sv_log_device(ctx, URN_SV_E_QUEUE, "shared receive queue %u is on the %s adapter",
			  s->ibv.handle, to == 0 ? "primary" : "backup");
	return true;
}

/* ---- queue pairs that are made anew */

bool
urn_sv_srq_given(struct urn_sv_path *p, uint64_t now)
{
	struct ibv_qp_attr shut = {.qp_state = IBV_QPS_ERR};
	int err;

	if (p->shared == NULL || p->real == NULL || p->alone || urn_sv_srq_stale(p) ||
	    p->qp->srq->kind != URN_SV_SRQ_SESSION)
		return true;
	/* A receive in hand of a queue pair that is reset or destroyed would be lost to the queue.
	 */
	if (p->shut_at == 0) {
		err = ibv_modify_qp(p->real, &shut, IBV_QP_STATE);
		if (err != 0)
			return err != EIO; /* an adapter that does not answer is lost soon */
		p->shut_at = now;
		p->heal.fresh = false;
	}
	return p->given || now - p->shut_at >= URN_SV_SRQ_GIVE_MS;
}

void
urn_sv_srq_take_back(struct urn_sv_qp *q)
{
	if (q->srq == NULL || q->srq->kind != URN_SV_SRQ_SESSION || q->ctx->forked)
		return;
	/* The receives of an adapter that does not answer go back when it counts as lost. */
	for (uint32_t i = 0; i < URN_SV_PATHS; i++)
		(void)urn_sv_srq_shut_path(&q->path[i]);
	for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++)
		urn_sv_cq_drain((struct urn_sv_cq *)q->ibv.recv_cq, i);
}

/* ---- connections */

void
urn_sv_srq_join(struct urn_sv_qp *q)
{
	struct urn_sv_srq *s = q->srq;
	uint32_t mine = urn_sv_used(q)->mine;
	struct urn_sv_qp *other;
	bool alone = true;

	LIST_FOREACH(other, &q->ctx->qps, link)
		alone = alone && (other == q || !urn_sv_srq_lives(other, s));
	q->bound = false;
	if (mine == s->home) {
		urn_sv_srq_go(s);
		if (s->limit != 0)
			(void)urn_sv_srq_arm(s);
	} else if (!alone || !urn_sv_srq_move(s, q->ctx, mine)) {
		urn_sv_srq_part(q, mine, "its shared receive queue is on the other adapter");
	}
}

bool
urn_sv_srq_there(struct urn_sv_qp *q)
{
	q->bound = q->srq != NULL && urn_sv_at(q, q->c.next)->mine != q->srq->home;
	if (q->bound) {
		q->bound_at = urn_sv_now_ms();
		urn_sv_kick(q->ctx);
	}
	return !q->bound;
}

/* True when a connection waits for its queue. */
static bool
urn_sv_srq_waits(const struct urn_sv_qp *q, const struct urn_sv_srq *s)
{
	return urn_sv_srq_lives(q, s) && q->bound && q->c.state == URN_SESS_BINDING;
}

/* The first connection that waits for a queue. returns: NULL: none */
static struct urn_sv_qp *
urn_sv_srq_waiting(const struct urn_sv_srq *s, struct urn_sv_ctx *ctx)
{
	struct urn_sv_qp *q;

	LIST_FOREACH(q, &ctx->qps, link)
		if (urn_sv_srq_waits(q, s))
			break;
	return q;
}

/* Let connections go on to the home. */
static void
urn_sv_srq_arrived(const struct urn_sv_srq *s, struct urn_sv_ctx *ctx)
{
	struct urn_sv_qp *q;

	LIST_FOREACH(q, &ctx->qps, link)
		if (urn_sv_srq_waits(q, s) && urn_sv_at(q, q->c.next)->mine == s->home)
			urn_sv_rebound(q);
}

/* True when all connections of a queue that have a peer can follow to an adapter. */
static bool
urn_sv_srq_all_reach(const struct urn_sv_srq *s, struct urn_sv_ctx *ctx, uint32_t to)
{
	struct urn_sv_qp *q;

	LIST_FOREACH(q, &ctx->qps, link)
		if (urn_sv_srq_lives(q, s) && !q->left && !urn_sv_srq_reaches(q, to))
			return false;
	return true;
}

/* Connections that have waited too long for their queue give up the paths to which it does not
 * move; their peers learn of it. now: ms */
static void
urn_sv_srq_give_up(const struct urn_sv_srq *s, struct urn_sv_ctx *ctx, uint64_t now)
{
	struct urn_sv_qp *q;

	LIST_FOREACH(q, &ctx->qps, link)
		if (urn_sv_srq_waits(q, s) && now - q->bound_at >= URN_SV_SRQ_STAY_MS)
			urn_sv_srq_part(q, urn_sv_at(q, q->c.next)->mine,
					"its shared receive queue stays on the other adapter");
}

/*
 * A connection waits for its queue on another adapter. The word of its peer, that only paths there
 * are left, may be false: so a home that lives is left only if no other connection ends by that,
 * and seldom. The return to the primary adapter needs no such word.
 */
static void
urn_sv_srq_follow(struct urn_sv_srq *s, struct urn_sv_ctx *ctx, uint32_t to)
{
	uint64_t now = urn_sv_now_ms();
	bool stays = !ctx->dead[s->home] && !ctx->down[s->home] &&
		     !(to == 0 && urn_sv_srq_returns(s, ctx));
	bool soon = s->moved_at != 0 && now - s->moved_at < URN_SV_SRQ_STAY_MS;

	if (!s->leaving && stays && (soon || !urn_sv_srq_all_reach(s, ctx, to))) {
		urn_sv_srq_give_up(s, ctx, now);
		return;
	}
	if (!s->leaving && stays)
		s->moved_at = now;
	s->leaving = !urn_sv_srq_move(s, ctx, to);
}

void
urn_sv_srq_settle(struct urn_sv_ctx *ctx)
{
	struct urn_sv_srq *s;

	if (ctx->group.moving == 0)
		return;
	LIST_FOREACH(s, &ctx->srqs, link) {
		struct urn_sv_qp *q = urn_sv_srq_waiting(s, ctx);

		if (q == NULL)
			s->leaving = false;
		else if (urn_sv_at(q, q->c.next)->mine != s->home)
			urn_sv_srq_follow(s, ctx, urn_sv_at(q, q->c.next)->mine);
		urn_sv_srq_arrived(s, ctx);
	}
}
