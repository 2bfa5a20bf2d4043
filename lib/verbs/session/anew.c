/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An adapter that came back (FO-19). The dataplane there knows nothing of the objects that were
 * there, so all of them are made anew (rest.c). The lost adapter is cleared and replaced by the
 * thread with the lock held, while no call of the program makes, changes or ends objects (calls.c).
 *
 * Objects of the primary adapter alone - queue pairs without a session, shared receive queues of
 * such, addresses - stay what they are, lost (wreck.c).
 */
#include "verbs/front.h"
#include "verbs/session/heal.h"
#include "verbs/session/log.h"
#include "verbs/session/srq.h"

#include <urnic/attach.h>

#include <errno.h>

/* ---- the lost adapter goes */

/* A queue pair's part of a lost adapter. */
static void
urn_sv_qp_lost(struct urn_sv_qp *q, uint32_t adapter)
{
	bool stays = adapter == 0 && urn_sv_plain(q);

	for (uint32_t i = 0; i < URN_SV_PATHS; i++) {
		struct urn_sv_path *p = &q->path[i];

		if (p->mine != adapter)
			continue;
		urn_sv_path_end(p, i != 0 || !stays);
		p->heal.fresh = p->heal.probing = false;
		if (i != 0 || !stays || p->alone)
			continue;
		LIST_REMOVE(p, link); /* another queue pair may get its number */
		p->alone = true;
	}
	if (adapter == 0) {
		q->lost = true;
		q->listener = q->question = 0;
	}
	if (q->memory_mr[adapter] != NULL)
		(void)ibv_dereg_mr(q->memory_mr[adapter]);
	q->memory_mr[adapter] = NULL;
	if (q->memory_key != 0)
		urn_sv_keys_set(&q->pd->local, q->memory_key, adapter, URN_SV_NO_KEY);
}

/* A region's part of a lost adapter. */
static void
urn_sv_region_lost(struct urn_sv_mr *mr, uint32_t adapter)
{
	if (mr->below[adapter] != NULL)
		(void)ibv_dereg_mr(mr->below[adapter]);
	urn_sv_mr_lost(mr, adapter);
}

/* Take the last completions of a lost adapter, then end what queue pairs and regions have there. */
static void
urn_sv_strip(struct urn_sv_ctx *ctx, uint32_t adapter)
{
	struct urn_sv_cq *cq;
	struct urn_sv_region *r;
	struct urn_sv_srq *s;
	struct urn_sv_pd *pd;
	struct urn_sv_qp *q;

	LIST_FOREACH(cq, &ctx->cqs, link)
		urn_sv_cq_drain(cq, adapter);
	LIST_FOREACH(q, &ctx->qps, link)
		urn_sv_qp_lost(q, adapter);
	LIST_FOREACH(s, &ctx->srqs, link)
		urn_sv_srq_lost(s, adapter);
	LIST_FOREACH(pd, &ctx->pds, link)
		LIST_FOREACH(r, &pd->regions, link)
			urn_sv_region_lost(urn_sv_mr_of(r), adapter);
	if (adapter == 0)
		urn_sv_ends_strip(ctx);
}

/* End all that is left of an adapter, and close it. */
static void
urn_sv_shut(struct urn_sv_ctx *ctx, uint32_t adapter)
{
	struct urn_sv_channel *ch;
	struct urn_sv_cq *cq;
	struct urn_sv_pd *pd;

	LIST_FOREACH(cq, &ctx->cqs, link) {
		if (cq->below[adapter] != NULL)
			(void)ibv_destroy_cq(cq->below[adapter]);
		cq->below[adapter] = NULL;
	}
	LIST_FOREACH(ch, &ctx->channels, link)
		urn_sv_channel_end(ch, ctx, adapter);
	LIST_FOREACH(pd, &ctx->pds, link)
		(void)urn_sv_pd_end(pd, adapter);
	if (ctx->below[adapter] != NULL)
		(void)ibv_close_device(ctx->below[adapter]);
	ctx->below[adapter] = NULL;
}

/* End all that a lost adapter has, but what the program has there alone. returns: 0 or ENOMEM */
static int
urn_sv_clear(struct urn_sv_ctx *ctx, uint32_t adapter)
{
	if (ctx->below[adapter] == NULL)
		return 0;
	urn_sv_strip(ctx, adapter);
	urn_sv_thread_unmake(ctx, adapter);
	if (urn_sv_needed(ctx, adapter) && urn_sv_wreck_make(ctx, adapter) != 0)
		return ENOMEM;
	urn_sv_shut(ctx, adapter);
	return 0;
}

/* ---- attempts */

/* Make what the device itself needs on the adapter that came back; the program's objects follow
 * (rest.c). returns: 0 or an errno value with its text: the adapter is of no use */
static int
urn_sv_fill(struct urn_sv_ctx *ctx, uint32_t adapter)
{
	int err = urn_sv_choose(ctx, adapter);

	return err == 0 ? urn_sv_thread_make(ctx, adapter) : err;
}

/* The adapter that came back is of no use. Nothing of the program is on it, and it lives: each call
 * takes as long as it pleases, and the lock is held here. */
static void
urn_sv_reject(struct urn_sv_ctx *ctx, uint32_t adapter)
{
	struct urn_sv_part part = urn_sv_thread_take(ctx, adapter);

	part.c = ctx->below[adapter];
	ctx->below[adapter] = NULL;
	urn_sv_again_reject(ctx, adapter, &part);
	urn_sv_again_want(ctx, adapter);
}

/* Replace a lost adapter by the one that came back. */
static void
urn_sv_replace(struct urn_sv_ctx *ctx, uint32_t adapter, struct ibv_context *c)
{
	if (urn_sv_clear(ctx, adapter) != 0) {
		urn_sv_log_device(ctx, URN_SV_E_ADAPTER_BAD,
				  "an adapter is back, and there is no memory for it");
		urn_sv_again_reject(ctx, adapter, &(struct urn_sv_part){.c = c});
		urn_sv_again_want(ctx, adapter);
		return;
	}
	ctx->below[adapter] = c;
	ctx->returned[adapter]++;
	if (urn_sv_fill(ctx, adapter) == 0) {
		ctx->dead[adapter] = ctx->over[adapter] = false;
		urn_sv_again_well(ctx, adapter);
		urn_sv_rest_begin(ctx, adapter);
		urn_sv_log_device(ctx, URN_SV_E_ADAPTER_BACK, "adapter %s is back",
				  urn_verbs_ctx(c)->id.name);
		return;
	}
	urn_sv_log_device(ctx, URN_SV_E_ADAPTER_BAD, "an adapter is back, and can't be used: %s",
			  urn_attach_error());
	urn_sv_reject(ctx, adapter);
}

/* True when a queue pair still has to take completions of a lost adapter. */
static bool
urn_sv_drains(struct urn_sv_ctx *ctx, uint32_t adapter)
{
	struct urn_sv_qp *q;

	LIST_FOREACH(q, &ctx->qps, link)
		if (q->mode == URN_SV_SESSION && q->c.open && urn_sv_used(q)->mine == adapter)
			return true;
	return false;
}

/* Replace an adapter that came back, if nobody is in the way. returns: true: calls of the program
 * must end first */
static bool
urn_sv_take_back(struct urn_sv_ctx *ctx, uint32_t adapter)
{
	struct ibv_context *c;

	urn_sv_again_want(ctx, adapter);
	if (!urn_sv_again_there(ctx, adapter))
		return false;
	if (adapter == 0 && urn_sv_crowded(ctx))
		return false;
	/* Calls do not wait until a lost adapter is drained. */
	if (urn_sv_drains(ctx, adapter))
		return false;
	if (ctx->calls != 0)
		return true;
	c = urn_sv_again_take(ctx, adapter);
	if (c != NULL)
		urn_sv_replace(ctx, adapter, c);
	return false;
}

static uint64_t
urn_sv_sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t
urn_sv_anew(struct urn_sv_ctx *ctx, uint64_t now)
{
	uint64_t next = UINT64_MAX;
	bool wait = false;

	(void)urn_sv_wrecks_tick(ctx, now); /* before another one may be made */
	for (uint32_t i = 0; i < URN_SV_ADAPTERS && !ctx->forked; i++) {
		uint64_t its;

		if (ctx->dead[i])
			wait |= urn_sv_take_back(ctx, i);
		its = urn_sv_rest_tick(ctx, i, now, &wait);
		next = urn_sv_sooner(its, next);
	}
	/* All of this took time: calls wait from here on. */
	next = urn_sv_sooner(urn_sv_hold(ctx, wait, urn_sv_now_ms()), next);
	return urn_sv_sooner(urn_sv_wrecks_tick(ctx, now), next);
}
