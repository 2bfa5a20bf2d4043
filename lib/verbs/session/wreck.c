/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wrecks: lives of the primary adapter that are over, of which the program still has objects -
 * queue pairs without a session, shared receive queues, addresses. These objects are lost, and may
 * be posted to and destroyed at any time, without the lock: so the adapter and its queues stay open
 * until the program has destroyed them all.
 *
 * A wreck has descriptors, and address space for a whole area. A program that makes such objects in
 * each life and destroys none gets the primary adapter back a bounded number of times, and then
 * only when it has destroyed those of one life; its sessions go on over the backup.
 */
#include "verbs/front.h"
#include "verbs/session/heal.h"
#include "verbs/session/log.h"

#include <errno.h>
#include <stdlib.h>

enum {
	URN_SV_WRECKS = 8,	/* wrecks at a time */
	URN_SV_WRECK_MS = 1000, /* between looks at wrecks whose objects may be gone */
};

/* Objects of the program in one life of the primary adapter. The last user frees this. */
struct urn_sv_life {
	_Atomic uint32_t uses; /* objects, and one of the device or the wreck */
};

struct urn_sv_life *
urn_sv_life_begin(void)
{
	struct urn_sv_life *life = calloc(1, sizeof(*life));

	if (life == NULL)
		urn_fail(ENOMEM, "no memory for a virtual device");
	else
		atomic_store(&life->uses, 1);
	return life;
}

struct urn_sv_life *
urn_sv_life_more(struct urn_sv_ctx *ctx)
{
	atomic_fetch_add(&ctx->life->uses, 1);
	return ctx->life;
}

struct urn_sv_life *
urn_sv_life_use(struct urn_sv_ctx *ctx)
{
	struct urn_sv_life *life;

	urn_sv_lock(ctx);
	life = urn_sv_life_more(ctx);
	urn_sv_unlock(ctx);
	return life;
}

void
urn_sv_life_leave(struct urn_sv_life *life)
{
	if (atomic_fetch_sub(&life->uses, 1) == 1)
		free(life);
}

/* An adapter that was lost. All are the context's; its lock. */
struct urn_sv_wreck {
	LIST_ENTRY(urn_sv_wreck) link;
	struct ibv_context *c;
	struct urn_sv_life *life;	   /* objects of the program that are its alone */
	uint32_t cqs, pds, channels;	   /* entries of cq, pd and channel */
	struct ibv_cq **cq;		   /* its completion queues */
	struct ibv_pd **pd;		   /* its domains */
	struct ibv_comp_channel **channel; /* its channels */
};

static void
urn_sv_wreck_free(struct urn_sv_wreck *w)
{
	free(w->cq);
	free(w->pd);
	free(w->channel);
	free(w);
}

static void
urn_sv_wreck_close(struct urn_sv_wreck *w)
{
	for (uint32_t i = 0; i < w->cqs; i++)
		(void)ibv_destroy_cq(w->cq[i]);
	for (uint32_t i = 0; i < w->channels; i++)
		(void)ibv_destroy_comp_channel(w->channel[i]);
	for (uint32_t i = 0; i < w->pds; i++)
		(void)ibv_dealloc_pd(w->pd[i]);
	(void)ibv_close_device(w->c);
	urn_sv_life_leave(w->life);
	urn_sv_wreck_free(w);
}

void
urn_sv_wrecks_close(struct urn_sv_ctx *ctx)
{
	while (!LIST_EMPTY(&ctx->wrecks)) {
		struct urn_sv_wreck *w = LIST_FIRST(&ctx->wrecks);

		LIST_REMOVE(w, link);
		urn_sv_wreck_close(w);
	}
}

/* True when the program has objects that are an adapter's alone. c: a context of the primary
 * adapter; life: its objects other than queue pairs */
static bool
urn_sv_has_alone(const struct urn_sv_ctx *ctx, const struct ibv_context *c,
		 const struct urn_sv_life *life)
{
	const struct urn_sv_qp *q;

	LIST_FOREACH(q, &ctx->qps, link)
		if (urn_sv_plain(q) && q->path[0].real->context == c)
			return true;
	return atomic_load(&life->uses) > 1;
}

bool
urn_sv_needed(const struct urn_sv_ctx *ctx, uint32_t adapter)
{
	return adapter == 0 && ctx->below[0] != NULL &&
	       urn_sv_has_alone(ctx, ctx->below[0], ctx->life);
}

/* Make room for all queues, channels and domains of the program. returns: 0 or ENOMEM */
static int
urn_sv_wreck_room(const struct urn_sv_ctx *ctx, struct urn_sv_wreck *w)
{
	uint32_t cqs = 0, pds = 0, channels = 0;
	struct urn_sv_channel *ch;
	struct urn_sv_cq *cq;
	struct urn_sv_pd *pd;

	LIST_FOREACH(cq, &ctx->cqs, link)
		cqs++;
	LIST_FOREACH(pd, &ctx->pds, link)
		pds++;
	LIST_FOREACH(ch, &ctx->channels, link)
		channels++;
	w->cq = calloc(cqs + 1, sizeof(struct ibv_cq *));
	w->pd = calloc(pds + 1, sizeof(struct ibv_pd *));
	w->channel = calloc(channels + 1, sizeof(struct ibv_comp_channel *));
	return w->cq != NULL && w->pd != NULL && w->channel != NULL ? 0 : ENOMEM;
}

/* Give the queues, channels and domains of a lost adapter to its wreck. */
static void
urn_sv_wreck_fill(struct urn_sv_ctx *ctx, struct urn_sv_wreck *w, uint32_t adapter)
{
	struct urn_sv_channel *ch;
	struct urn_sv_cq *cq;
	struct urn_sv_pd *pd;

	LIST_FOREACH(cq, &ctx->cqs, link) {
		if (cq->below[adapter] != NULL)
			w->cq[w->cqs++] = cq->below[adapter];
		cq->below[adapter] = NULL;
	}
	LIST_FOREACH(ch, &ctx->channels, link) {
		struct ibv_comp_channel *below = urn_sv_channel_take(ch, ctx, adapter);

		if (below != NULL)
			w->channel[w->channels++] = below;
	}
	LIST_FOREACH(pd, &ctx->pds, link) {
		if (pd->below[adapter] != NULL)
			w->pd[w->pds++] = pd->below[adapter];
		pd->below[adapter] = NULL;
	}
}

/* The adapter that comes back begins a life with no objects. */
static void
urn_sv_life_swap(struct urn_sv_ctx *ctx, struct urn_sv_wreck *w)
{
	struct urn_sv_life *begun = w->life;

	w->life = ctx->life;
	ctx->life = begun;
}

int
urn_sv_wreck_make(struct urn_sv_ctx *ctx, uint32_t adapter)
{
	struct urn_sv_wreck *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return ENOMEM;
	w->life = urn_sv_life_begin();
	if (w->life == NULL || urn_sv_wreck_room(ctx, w) != 0) {
		free(w->life);
		urn_sv_wreck_free(w);
		return ENOMEM;
	}
	urn_sv_wreck_fill(ctx, w, adapter);
	urn_sv_life_swap(ctx, w);
	w->c = ctx->below[adapter];
	ctx->below[adapter] = NULL;
	LIST_INSERT_HEAD(&ctx->wrecks, w, link);
	return 0;
}

/* ---- the end of wrecks */

/* Close the wrecks whose objects are gone. returns: how many are left */
static uint32_t
urn_sv_wrecks_drop(struct urn_sv_ctx *ctx)
{
	struct urn_sv_wreck *w, *next;
	uint32_t left = 0;

	for (w = LIST_FIRST(&ctx->wrecks); w != NULL; w = next) {
		next = LIST_NEXT(w, link);
		if (urn_sv_has_alone(ctx, w->c, w->life)) {
			left++;
			continue;
		}
		LIST_REMOVE(w, link);
		urn_sv_wreck_close(w);
	}
	return left;
}

uint64_t
urn_sv_wrecks_tick(struct urn_sv_ctx *ctx, uint64_t now)
{
	if (ctx->forked || LIST_EMPTY(&ctx->wrecks))
		return UINT64_MAX;
	/* A call may be ending an object of a wreck: the object is counted until the call needs the
	 * wreck no more. So calls that overlap keep no wreck from its end. */
	return urn_sv_wrecks_drop(ctx) == 0 ? UINT64_MAX : now + URN_SV_WRECK_MS;
}

bool
urn_sv_crowded(struct urn_sv_ctx *ctx)
{
	const struct urn_sv_wreck *w;
	uint32_t n = 0;
	bool was = ctx->crowded;

	LIST_FOREACH(w, &ctx->wrecks, link)
		n++;
	ctx->crowded = n >= URN_SV_WRECKS && urn_sv_needed(ctx, 0);
	if (ctx->crowded && !was)
		urn_sv_log_device(ctx, URN_SV_E_ADAPTER_BAD,
				  "adapter %s is back, and waits: the program has objects of %u "
				  "lives before, which it must destroy",
				  urn_verbs_ctx(ctx->below[0])->id.name, n + 1);
	return ctx->crowded;
}
