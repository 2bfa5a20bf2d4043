/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An adapter that came back (FO-19). The dataplane there knows nothing of the objects that were
 * there, so all of them are made anew: domains, regions, channels, completion queues, memory of
 * queue pairs. Queue pairs follow path by path (heal.c). The thread does that with the lock held,
 * while no call of the program makes, changes or ends objects (calls.c).
 *
 * Objects of the primary adapter alone - queue pairs without a session, shared receive queues,
 * addresses, ends of connection management - stay what they are, lost. The lost adapter and its
 * queues stay open as a wreck while the program may have some.
 */
#include "verbs/front.h"
#include "verbs/session/heal.h"
#include "verbs/session/log.h"

#include <urnic/attach.h>

#include <errno.h>
#include <stdlib.h>

enum {
	URN_SV_REST_LEAST_MS = 500,  /* pause before objects that are left out are tried again */
	URN_SV_REST_MOST_MS = 30000, /* ... and the longest one */
};

/* An adapter that was lost. All are the context's; its lock. */
struct urn_sv_wreck {
	LIST_ENTRY(urn_sv_wreck) link;
	struct ibv_context *c;
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

/* ---- the lost adapter goes */

/* True when a queue pair of a lost adapter is the program's as it is. */
static bool
urn_sv_stays(const struct urn_sv_qp *q, uint32_t adapter)
{
	return adapter == 0 && q->mode != URN_SV_SESSION && q->path[0].real != NULL;
}

/* A queue pair's part of a lost adapter. */
static void
urn_sv_qp_lost(struct urn_sv_qp *q, uint32_t adapter)
{
	bool stays = urn_sv_stays(q, adapter);

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
}

/* True when the wreck of an adapter has objects of the program. */
static bool
urn_sv_needed(const struct urn_sv_ctx *ctx, uint32_t adapter)
{
	const struct urn_sv_qp *q;

	LIST_FOREACH(q, &ctx->qps, link)
		if (urn_sv_stays(q, adapter))
			return true;
	return adapter == 0 && ctx->alone != 0;
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

/* Keep a lost adapter as a wreck, with its queues. returns: 0 or ENOMEM */
static int
urn_sv_wreck_make(struct urn_sv_ctx *ctx, uint32_t adapter)
{
	struct urn_sv_wreck *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return ENOMEM;
	if (urn_sv_wreck_room(ctx, w) != 0) {
		urn_sv_wreck_free(w);
		return ENOMEM;
	}
	urn_sv_wreck_fill(ctx, w, adapter);
	w->c = ctx->below[adapter];
	ctx->below[adapter] = NULL;
	LIST_INSERT_HEAD(&ctx->wrecks, w, link);
	return 0;
}

/* Take the last completions of a lost adapter, then end what queue pairs and regions have there. */
static void
urn_sv_strip(struct urn_sv_ctx *ctx, uint32_t adapter)
{
	struct urn_sv_cq *cq;
	struct urn_sv_region *r;
	struct urn_sv_pd *pd;
	struct urn_sv_qp *q;

	LIST_FOREACH(cq, &ctx->cqs, link)
		urn_sv_cq_drain(cq, adapter);
	LIST_FOREACH(q, &ctx->qps, link)
		urn_sv_qp_lost(q, adapter);
	LIST_FOREACH(pd, &ctx->pds, link)
		LIST_FOREACH(r, &pd->regions, link) {
			struct urn_sv_mr *mr = urn_sv_mr_of(r);

			if (mr->below[adapter] != NULL)
				(void)ibv_dereg_mr(mr->below[adapter]);
			mr->below[adapter] = NULL;
		}
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

/* End all that a lost adapter has; keep: but what the program has there alone. returns: 0 or
 * ENOMEM */
static int
urn_sv_clear(struct urn_sv_ctx *ctx, uint32_t adapter, bool keep)
{
	if (ctx->below[adapter] == NULL)
		return 0;
	urn_sv_strip(ctx, adapter);
	urn_sv_thread_unmake(ctx, adapter);
	if (keep && urn_sv_needed(ctx, adapter) && urn_sv_wreck_make(ctx, adapter) != 0)
		return ENOMEM;
	urn_sv_shut(ctx, adapter);
	return 0;
}

/* ---- the adapter that came back: each object that is not there yet */

/* An object can't be made: it is left out for now. returns: EIO: the adapter is lost again; 0 */
static int
urn_sv_left_out(struct urn_sv_ctx *ctx, uint32_t adapter, const char *what, uint32_t name, int err)
{
	if (err == 0 || err == EIO)
		return err;
	ctx->lacks[adapter]++;
	urn_sv_log_device(ctx, "adapter %s lacks %s %u: %s",
			  urn_verbs_ctx(ctx->below[adapter])->id.name, what, name,
			  urn_attach_error());
	return 0;
}

/* A region. returns: 0 or an errno value with its text */
static int
urn_sv_region_anew(struct urn_sv_pd *pd, struct urn_sv_mr *mr, uint32_t adapter)
{
	int err = urn_sv_mr_below(mr, adapter);

	if (err != 0)
		return err;
	urn_sv_keys_set(&pd->local, mr->ibv.lkey, adapter, mr->below[adapter]->lkey);
	urn_sv_keys_set(pd->remote, mr->ibv.rkey, adapter, mr->below[adapter]->rkey);
	return 0;
}

/* A domain and its regions. returns: 0, also if some are left out; EIO: the adapter is lost */
static int
urn_sv_domain_anew(struct urn_sv_ctx *ctx, struct urn_sv_pd *pd, uint32_t adapter)
{
	struct urn_sv_region *r;
	int err = 0;

	if (pd->below[adapter] == NULL) {
		err = urn_sv_pd_make(pd, ctx, adapter);
		if (err != 0) {
			(void)urn_sv_pd_end(pd, adapter);
			return urn_sv_left_out(ctx, adapter, "protection domain", pd->ibv.handle,
					       err);
		}
	}
	LIST_FOREACH(r, &pd->regions, link) {
		struct urn_sv_mr *mr = urn_sv_mr_of(r);

		if (err == 0 && mr->below[adapter] == NULL)
			err = urn_sv_left_out(ctx, adapter, "the region with the key", mr->ibv.lkey,
					      urn_sv_region_anew(pd, mr, adapter));
	}
	return err;
}

/* Make the queue pairs of a backup. returns: 0 or an errno value with its text */
static int
urn_sv_backup_anew(struct urn_sv_path *p)
{
	struct urn_sv_qp *q = p->qp;
	int err = urn_sv_real_anew(p);

	if (err == 0)
		err = urn_sv_ctl_make(q, p);
	if (err == 0 && q->ibv.state != IBV_QPS_RESET)
		err = urn_sv_path_init(p);
	if (err != 0) {
		urn_sv_path_end(p, true);
		return err;
	}
	urn_sv_path_psns(p);
	/* The peer may connect to the queue pairs that an answer named: not to these. */
	if (q->promised)
		urn_sess_heal_made(&p->heal.end);
	return 0;
}

/* The backups of a queue pair that is not connected. returns: 0 or an errno value with its text */
static int
urn_sv_backups_anew(struct urn_sv_qp *q, uint32_t adapter)
{
	int err = 0;

	/* A queue pair whose domain lacks a region there gets its backups with that. */
	for (uint32_t i = 0; i < URN_SV_PATHS && err == 0 && urn_sv_ready(q, adapter); i++)
		if (q->path[i].mine == adapter && q->path[i].real == NULL)
			err = urn_sv_backup_anew(&q->path[i]);
	return err;
}

/* A queue pair's memory, and its backups if it is not connected. returns: 0 or an errno value with
 * its text */
static int
urn_sv_qp_anew(struct urn_sv_qp *q, uint32_t adapter)
{
	int err = 0;

	if (q->memory != NULL && q->memory_mr[adapter] == NULL && q->pd->below[adapter] != NULL) {
		err = urn_sv_room_below(q, adapter);
		if (err == 0)
			urn_sv_keys_set(&q->pd->local, q->memory_key, adapter,
					q->memory_mr[adapter]->lkey);
	}
	if (err == 0 && q->can && q->mode == URN_SV_NEW && adapter != 0)
		err = urn_sv_backups_anew(q, adapter);
	return err;
}

/* A channel. returns: 0 or an errno value with its text */
static int
urn_sv_channel_anew(struct urn_sv_ctx *ctx, struct urn_sv_channel *ch, uint32_t adapter)
{
	int err = urn_sv_channel_below(ch, ctx, adapter);

	if (err != 0)
		urn_sv_channel_end(ch, ctx, adapter);
	return err;
}

/* A completion queue. returns: 0 or an errno value with its text */
static int
urn_sv_queue_anew(struct urn_sv_ctx *ctx, struct urn_sv_cq *cq, uint32_t adapter)
{
	int err;

	if (cq->channel != NULL && cq->channel->below[adapter] == NULL)
		return urn_fail(ENODEV, "its channel is missing");
	err = urn_sv_cq_below(cq, ctx, adapter);
	if (err == 0 && cq->armed)
		err = ibv_req_notify_cq(cq->below[adapter], 0);
	return err;
}

/* Queues and channels. returns: like urn_sv_domain_anew() */
static int
urn_sv_queues_anew(struct urn_sv_ctx *ctx, uint32_t adapter)
{
	struct urn_sv_channel *ch;
	struct urn_sv_cq *cq;
	int err = 0;

	LIST_FOREACH(ch, &ctx->channels, link)
		if (err == 0 && ch->below[adapter] == NULL)
			err = urn_sv_left_out(ctx, adapter, "channel", (uint32_t)ch->ibv.fd,
					      urn_sv_channel_anew(ctx, ch, adapter));
	LIST_FOREACH(cq, &ctx->cqs, link)
		if (err == 0 && cq->below[adapter] == NULL)
			err = urn_sv_left_out(ctx, adapter, "completion queue", cq->ibv.handle,
					      urn_sv_queue_anew(ctx, cq, adapter));
	return err;
}

/* Make all objects that are not on an adapter yet. returns: like urn_sv_domain_anew() */
static int
urn_sv_rest(struct urn_sv_ctx *ctx, uint32_t adapter)
{
	struct urn_sv_pd *pd;
	struct urn_sv_qp *q;
	int err;

	ctx->lacks[adapter] = 0;
	err = urn_sv_queues_anew(ctx, adapter);
	LIST_FOREACH(pd, &ctx->pds, link)
		if (err == 0)
			err = urn_sv_domain_anew(ctx, pd, adapter);
	LIST_FOREACH(q, &ctx->qps, link)
		if (err == 0)
			err = urn_sv_left_out(ctx, adapter, "something of queue pair",
					      q->ibv.qp_num, urn_sv_qp_anew(q, adapter));
	return err;
}

/* Make all objects on the adapter that came back. returns: 0, also if some are left out, or an
 * errno value with its text: the adapter is of no use */
static int
urn_sv_fill(struct urn_sv_ctx *ctx, uint32_t adapter)
{
	int err = urn_sv_choose(ctx, adapter);

	if (err == 0)
		err = urn_sv_thread_make(ctx, adapter);
	return err == 0 ? urn_sv_rest(ctx, adapter) : err;
}

/* ---- attempts */

/* The objects that are left out are tried again after a pause, which grows. now: ms */
static void
urn_sv_rest_later(struct urn_sv_ctx *ctx, uint32_t adapter, uint64_t now)
{
	uint32_t pause = 2 * ctx->rest_pause[adapter];

	ctx->rest_due[adapter] = now + ctx->rest_pause[adapter];
	ctx->rest_pause[adapter] = pause < URN_SV_REST_MOST_MS ? pause : URN_SV_REST_MOST_MS;
}

/* Try the objects again that are left out, if that is due and no call of the program makes or ends
 * objects. now: ms. returns: ms: when it is due next; UINT64_MAX: none are left out */
static uint64_t
urn_sv_rest_again(struct urn_sv_ctx *ctx, uint32_t adapter, uint64_t now)
{
	if (ctx->dead[adapter] || ctx->lacks[adapter] == 0)
		return UINT64_MAX;
	if (now >= ctx->rest_due[adapter]) {
		/* An adapter that is lost meanwhile says so by an event. */
		if (ctx->calls == 0)
			(void)urn_sv_rest(ctx, adapter);
		urn_sv_rest_later(ctx, adapter, now);
		if (ctx->lacks[adapter] == 0)
			return UINT64_MAX;
	}
	return ctx->rest_due[adapter];
}

/* Replace a lost adapter by the one that came back. */
static void
urn_sv_replace(struct urn_sv_ctx *ctx, uint32_t adapter, struct ibv_context *c)
{
	if (urn_sv_clear(ctx, adapter, true) != 0) {
		urn_sv_log_device(ctx, "an adapter is back, and there is no memory for it");
		(void)ibv_close_device(c);
		return;
	}
	ctx->below[adapter] = c;
	ctx->returned[adapter]++;
	if (urn_sv_fill(ctx, adapter) == 0) {
		ctx->dead[adapter] = ctx->over[adapter] = false;
		urn_sv_again_well(ctx, adapter);
		ctx->rest_pause[adapter] = URN_SV_REST_LEAST_MS;
		urn_sv_rest_later(ctx, adapter, urn_sv_now_ms());
		urn_sv_log_device(ctx, "adapter %s is back", urn_verbs_ctx(c)->id.name);
		return;
	}
	urn_sv_log_device(ctx, "an adapter is back, and can't be used: %s", urn_attach_error());
	/* Nothing of the program is on this one: no wreck is kept of it. */
	(void)urn_sv_clear(ctx, adapter, false);
	urn_sv_again_want(ctx, adapter);
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

/* Replace an adapter that came back, if nobody is in the way. returns: false: somebody is */
static bool
urn_sv_take_back(struct urn_sv_ctx *ctx, uint32_t adapter)
{
	struct ibv_context *c;

	urn_sv_again_want(ctx, adapter);
	if (!urn_sv_again_there(ctx, adapter))
		return true;
	if (ctx->calls != 0 || urn_sv_drains(ctx, adapter))
		return false;
	c = urn_sv_again_take(ctx, adapter);
	if (c != NULL)
		urn_sv_replace(ctx, adapter, c);
	return true;
}

uint64_t
urn_sv_anew(struct urn_sv_ctx *ctx, uint64_t now)
{
	uint64_t next = UINT64_MAX;
	bool wait = false, replaces;

	for (uint32_t i = 0; i < URN_SV_ADAPTERS && !ctx->forked; i++) {
		uint64_t its = urn_sv_rest_again(ctx, i, now);

		next = its < next ? its : next;
		if (ctx->dead[i])
			wait |= !urn_sv_take_back(ctx, i);
	}
	/* Calls wait until others end, but not until a lost adapter is drained. */
	replaces = wait && ctx->calls != 0;
	if (ctx->replacing && !replaces)
		pthread_cond_broadcast(&ctx->cond);
	ctx->replacing = replaces;
	return next;
}
