/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program's objects on an adapter that came back (FO-19): domains, regions, channels,
 * completion queues, memory of queue pairs, listeners. Queue pairs follow path by path (heal.c).
 * The thread makes them with the lock held, while no call of the program makes, changes or ends
 * objects (calls.c); so it makes a few in a turn, and lets the lock go between turns.
 *
 * Each object is tried once in a round. Objects that can't be made are left out, and the next
 * round begins after a pause. Calls of the program wait until the first round is over, and no
 * object that uses regions without a session is made before (urn_sv_rest_early()). A later round
 * waits for calls, but only once: when they kept it off, new ones wait until that round is over.
 */
#include "verbs/front.h"
#include "verbs/session/heal.h"
#include "verbs/session/log.h"

#include <urnic/attach.h>

#include <errno.h>

enum {
	URN_SV_REST_AT_A_TIME = 32,  /* objects that are tried in a turn */
	URN_SV_REST_LEAST_MS = 500,  /* pause before objects that are left out are tried again */
	URN_SV_REST_MOST_MS = 30000, /* ... and the longest one */
};

bool
urn_sv_rest_due(struct urn_sv_ctx *ctx, uint32_t adapter, uint32_t *tried)
{
	struct urn_sv_rest *r = &ctx->rest[adapter];

	if (*tried == r->round)
		return false;
	if (r->left == 0) {
		r->goes = true;
		return false;
	}
	r->left--;
	*tried = r->round;
	return true;
}

/* ---- each object that is not there yet */

int
urn_sv_rest_left_out(struct urn_sv_ctx *ctx, uint32_t adapter, const char *what, uint32_t name,
		     int err)
{
	if (err == 0)
		return 0;
	ctx->rest[adapter].lacks++;
	urn_sv_log_device(ctx, URN_SV_E_ADAPTER_BAD, "adapter %s lacks %s %u: %s",
			  urn_verbs_ctx(ctx->below[adapter])->id.name, what, name,
			  urn_attach_error());
	return err == EIO ? EIO : 0;
}

/* A region. returns: 0 or an errno value with its text */
static int
urn_sv_region_anew(struct urn_sv_pd *pd, struct urn_sv_mr *mr, uint32_t adapter)
{
	int err = urn_sv_mr_below(mr, adapter);

	if (err != 0)
		return err;
	pd->missing[adapter]--;
	urn_sv_keys_set(&pd->local, mr->ibv.lkey, adapter, mr->below[adapter]->lkey);
	urn_sv_keys_set(pd->remote, mr->ibv.rkey, adapter, mr->below[adapter]->rkey);
	return 0;
}

/* A domain and its regions. returns: 0, also if some are left out; EIO: like urn_sv_rest_left_out()
 */
static int
urn_sv_domain_anew(struct urn_sv_ctx *ctx, struct urn_sv_pd *pd, uint32_t adapter)
{
	struct urn_sv_region *r;
	int err = 0;

	if (pd->below[adapter] == NULL) {
		if (!urn_sv_rest_due(ctx, adapter, &pd->tried[adapter]))
			return 0;
		err = urn_sv_pd_make(pd, ctx, adapter);
		if (err != 0) {
			(void)urn_sv_pd_end(pd, adapter);
			return urn_sv_rest_left_out(ctx, adapter, "protection domain",
						    pd->ibv.handle, err);
		}
	}
	LIST_FOREACH(r, &pd->regions, link) {
		struct urn_sv_mr *mr = urn_sv_mr_of(r);

		if (err == 0 && mr->below[adapter] == NULL &&
		    urn_sv_rest_due(ctx, adapter, &mr->tried[adapter]))
			err = urn_sv_rest_left_out(ctx, adapter, "the region with the key",
						   mr->ibv.lkey,
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
		if (err == 0 && ch->below[adapter] == NULL &&
		    urn_sv_rest_due(ctx, adapter, &ch->tried[adapter]))
			err = urn_sv_rest_left_out(ctx, adapter, "channel", (uint32_t)ch->ibv.fd,
						   urn_sv_channel_anew(ctx, ch, adapter));
	LIST_FOREACH(cq, &ctx->cqs, link)
		if (err == 0 && cq->below[adapter] == NULL &&
		    urn_sv_rest_due(ctx, adapter, &cq->tried[adapter]))
			err = urn_sv_rest_left_out(ctx, adapter, "completion queue", cq->ibv.handle,
						   urn_sv_queue_anew(ctx, cq, adapter));
	return err;
}

/* True when a queue pair lacks something that can be made there now. */
static bool
urn_sv_qp_lacks(const struct urn_sv_qp *q, uint32_t adapter)
{
	bool lacks = false;

	if (q->memory != NULL && q->memory_mr[adapter] == NULL)
		return q->pd->below[adapter] != NULL;
	if (!q->can || q->mode != URN_SV_NEW || adapter == 0 || !urn_sv_ready(q, adapter))
		return false;
	for (uint32_t i = 0; i < URN_SV_PATHS; i++)
		lacks |= q->path[i].mine == adapter && q->path[i].real == NULL;
	return lacks;
}

/* Make objects that are not on an adapter yet, as many as a turn takes. returns: like
 * urn_sv_domain_anew() */
static int
urn_sv_rest_turn(struct urn_sv_ctx *ctx, uint32_t adapter)
{
	struct urn_sv_pd *pd;
	struct urn_sv_qp *q;
	int err;

	ctx->rest[adapter].left = URN_SV_REST_AT_A_TIME;
	ctx->rest[adapter].goes = false;
	err = urn_sv_queues_anew(ctx, adapter);
	LIST_FOREACH(pd, &ctx->pds, link)
		if (err == 0)
			err = urn_sv_domain_anew(ctx, pd, adapter);
	LIST_FOREACH(q, &ctx->qps, link)
		if (err == 0 && urn_sv_qp_lacks(q, adapter) &&
		    urn_sv_rest_due(ctx, adapter, &q->tried[adapter]))
			err = urn_sv_rest_left_out(ctx, adapter, "something of queue pair",
						   q->ibv.qp_num, urn_sv_qp_anew(q, adapter));
	/* Requests that come to listeners find the other objects there. */
	return err == 0 && adapter == 0 ? urn_sv_ends_anew(ctx) : err;
}

/* ---- rounds */

void
urn_sv_rest_begin(struct urn_sv_ctx *ctx, uint32_t adapter)
{
	struct urn_sv_rest *r = &ctx->rest[adapter];

	*r = (struct urn_sv_rest){
		.round = r->round + 1, .pause = URN_SV_REST_LEAST_MS, .goes = true, .first = true};
}

int
urn_sv_rest_early(const struct urn_sv_ctx *ctx)
{
	return !ctx->rest[0].first
		       ? 0
		       : urn_fail(EIO, "the primary adapter of the virtual device came back, and "
				       "has not all objects yet: make this one later");
}

/* The next objects are tried after the pause, which grows. now: ms */
static void
urn_sv_rest_later(struct urn_sv_rest *r, uint64_t now)
{
	uint32_t pause = 2 * r->pause;

	r->first = r->late = false;
	r->due = now + r->pause;
	r->pause = pause < URN_SV_REST_MOST_MS ? pause : URN_SV_REST_MOST_MS;
}

/* A turn is due, and no call of the program is in the way. now: ms */
static void
urn_sv_rest_go(struct urn_sv_ctx *ctx, uint32_t adapter, uint64_t now)
{
	struct urn_sv_rest *r = &ctx->rest[adapter];

	if (!r->goes) {
		r->round++;
		r->lacks = 0;
	}
	/* An adapter that is lost says so by an event. EIO of a living one is that object's alone:
	 * the next turn goes on behind it. */
	r->goes |= urn_sv_rest_turn(ctx, adapter) != 0;
	if (r->goes)
		r->due = now + URN_SV_TURN_MS;
	else
		urn_sv_rest_later(r, now);
}

uint64_t
urn_sv_rest_tick(struct urn_sv_ctx *ctx, uint32_t adapter, uint64_t now, bool *wait)
{
	struct urn_sv_rest *r = &ctx->rest[adapter];

	if (ctx->dead[adapter] || (!r->goes && r->lacks == 0))
		return UINT64_MAX;
	if (now >= r->due && ctx->calls == 0) {
		urn_sv_rest_go(ctx, adapter, now);
	} else if (now >= r->due && (r->first || r->late)) {
		*wait = true; /* the last call to end wakes the thread */
		return UINT64_MAX;
	} else if (now >= r->due) {
		r->late = true; /* calls that overlap would keep the round off for ever */
		r->due = now + URN_SV_REST_LEAST_MS;
	}
	*wait |= (r->first || r->late) && r->goes; /* between turns, too */
	return r->goes || r->lacks != 0 ? r->due : UINT64_MAX;
}
