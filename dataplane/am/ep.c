/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints come and go: slots, generations of their numbers, and the endpoint as a source of work.
 */
#include "am/tagged.h"
#include "transport/sched.h"

#include <errno.h>
#include <stdlib.h>

#include "base/rnd.h"

struct urn_am *
urn_am_create(unsigned int engine, uint64_t seed, bool unregistered)
{
	struct urn_am *am = calloc(1, sizeof(*am));

	if (!am)
		return NULL;
	am->engine = engine;
	am->unregistered = unregistered;
	am->seed = urn_rnd_at(seed, 0);
	am->generation = (uint32_t)urn_rnd_at(seed, 1);
	am->tags = urn_rnd_at(seed, 2) >> 17; /* 48 bits in all: room for 2^47 */
	am->user.ops = &urn_am_late_ops;
	am->user.source.kind = URN_SOURCE_OPS;
	am->user.source.share = &am->replying;
	TAILQ_INIT(&am->late);
	TAILQ_INIT(&am->touched);
	TAILQ_INIT(&am->untold);
	urn_pool_init(&am->slots, 0, URN_AM_ENDPOINTS_MAX);
	am->kept = URN_AM_NODES * URN_AM_KEEP_REPLIES;
	am->tagged_from = URN_AM_TAGGED_FROM;
	am->tagged = urn_am_tagged_create(seed);
	am->slot = calloc(URN_AM_ENDPOINTS_MAX, sizeof(*am->slot));
	am->out = calloc(URN_AM_OUTS + URN_AM_REPLIES, sizeof(struct urn_am_out *));
	if (!am->slot || !am->out || !am->tagged) {
		urn_am_destroy(am);
		return NULL;
	}
	urn_fair_init(&am->fair_outs, URN_AM_OUTS);
	return am;
}

void
urn_am_destroy(struct urn_am *am)
{
	if (!am)
		return;
	for (uint32_t i = 0; i < am->outs_made; i++)
		free(am->out[i]);
	urn_am_tagged_destroy(am->tagged);
	free(am->out);
	free(am->slot);
	free(am);
}

void
urn_am_pipelined_from(struct urn_am *am, uint64_t bytes)
{
	am->pipelined_from = (uint32_t)RTE_MIN(bytes, (uint64_t)UINT32_MAX);
}

void
urn_am_tagged_from(struct urn_am *am, uint64_t bytes)
{
	am->tagged_from =
		bytes ? (uint32_t)RTE_MIN(bytes, (uint64_t)UINT32_MAX) : URN_AM_TAGGED_FROM;
}

uint32_t
urn_am_count(const struct urn_am *am)
{
	return atomic_load_explicit(&am->count, memory_order_relaxed);
}

/* ---- numbers */

struct urn_am_ep *
urn_am_ep_at(const struct urn_am *am, uint32_t slot)
{
	return slot < am->slots.made ? am->slot[slot].ep : NULL;
}

uint32_t
urn_am_slots(const struct urn_am *am)
{
	return am->slots.made;
}

/* ---- an endpoint's life */

/* Make an endpoint without a slot. NULL: no memory */
static struct urn_am_ep *
make(const struct urn_am_config *cfg)
{
	struct urn_am_ep *ep = calloc(1, sizeof(*ep));

	if (!ep)
		return NULL;
	ep->oper = calloc(cfg->entries, sizeof(*ep->oper));
	if (!ep->oper) {
		free(ep);
		return NULL;
	}
	ep->user.ops = &urn_am_ep_ops;
	ep->user.source.share = cfg->share;
	ep->user.source.kind = URN_SOURCE_OPS;
	ep->user.source.db = cfg->db & 0x3ffff;
	ep->timer.timer.kind = URN_TIMER_SOURCE;
	ep->timer.source = &ep->user.source;
	ep->regs = cfg->regs;
	ep->entries = cfg->entries;
	ep->ranges = cfg->ranges;
	ep->pd = cfg->pd;
	ep->channel_fd = cfg->channel_fd;
	ep->channel = cfg->channel;
	ep->cookie = cfg->cookie;
	ep->pipelined_from = cfg->pipelined_from;
	ep->tagged_from = cfg->tagged_from;
	ep->current = URN_AM_NIL;
	urn_pool_init(&ep->opers, 0, cfg->entries);
	TAILQ_INIT(&ep->out);
	LIST_INIT(&ep->transfers);
	return ep;
}

int
urn_am_ep_open(struct urn_am *am, const struct urn_am_config *cfg, struct urn_am_ep **ep)
{
	uint32_t slot = urn_pool_get(&am->slots, &am->slot[0].next, sizeof(am->slot[0]));
	struct urn_am_ep *e;

	if (slot == URN_HASH_NIL)
		return ENOSPC;
	e = make(cfg);
	if (!e) {
		urn_pool_put(&am->slots, slot, &am->slot[0].next, sizeof(am->slot[0]));
		return ENOMEM;
	}
	e->slot = slot;
	am->slot[slot].ep = e;
	am->slot[slot].qid =
		URN_AM_QID(am->generation + am->slot[slot].generation, am->engine, slot);
	atomic_fetch_add_explicit(&am->count, 1, memory_order_relaxed);
	*ep = e;
	return 0;
}

bool
urn_am_ep_end(struct urn_tp *tp, struct urn_source *src)
{
	struct urn_am *am = urn_am_of(tp);
	struct urn_am_ep *ep = urn_am_ep_of(src);
	struct urn_am_slot *slot = &am->slot[ep->slot];
	struct urn_am_out *o;

	urn_sched_remove(&tp->sched, src);
	urn_wheel_stop(&tp->wheel, &ep->timer.timer);
	urn_am_untouch(am, ep);
	while ((o = TAILQ_FIRST(&ep->out))) {
		if (o->flags & URN_AM_OUT_FLOW)
			urn_flow_forget(tp, &o->msg);
		urn_am_out_put(am, o);
	}
	urn_am_transfers_close(tp, ep);
	urn_am_regions_free(ep);
	slot->ep = NULL;
	slot->qid = 0;
	slot->generation++;
	urn_pool_put(&am->slots, ep->slot, &am->slot[0].next, sizeof(*slot));
	atomic_fetch_sub_explicit(&am->count, 1, memory_order_relaxed);
	free(ep->oper);
	free(ep);
	return true;
}

struct urn_am_ep *
urn_am_ep_of(struct urn_source *src)
{
	return (struct urn_am_ep *)((char *)src - offsetof(struct urn_am_ep, user.source));
}

struct urn_source *
urn_am_ep_source(struct urn_am_ep *ep)
{
	return &ep->user.source;
}

/* A value that the engine's thread writes. */
#define LOOK(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)

/* Entries between two indices of a ring, one of which the client wrote; at most `entries`. */
static uint32_t
between(uint32_t to, uint32_t from, uint32_t entries)
{
	return RTE_MIN(to - from, entries);
}

void
urn_am_refused(struct urn_tp *tp, struct urn_am_ep *ep, uint8_t code)
{
	URN_COUNT(tp, AM_ACCESS);
	if (!ep)
		return;
	ep->refused++;
	ep->refused_code = code;
}

void
urn_am_ep_look(const struct urn_am *am, const struct urn_am_ep *ep, struct urn_am_view *v)
{
	const struct urn_abi_am_client *c = &ep->regs->client;

	*v = (struct urn_am_view){
		.qid = urn_am_number(am, ep->slot),
		.share = ep->user.source.share,
		.regs = ep->regs,
		.entries = ep->entries,
		.ranges = ep->ranges,
		.pd = ep->pd,
		.slot = ep->slot,
		.commands = LOOK(ep->commands),
		.done = LOOK(ep->done),
		.failed = LOOK(ep->failed),
		.waiting = between(atomic_load_explicit(&c->commands, memory_order_relaxed),
				   LOOK(ep->taken), ep->entries),
		.unread = between(LOOK(ep->events),
				  atomic_load_explicit(&c->events, memory_order_relaxed),
				  ep->entries),
		.under = LOOK(ep->under),
		.packets = LOOK(ep->outs),
		.regions = LOOK(ep->regions_n),
		.ranges_used = LOOK(ep->ranges_n),
		.space = LOOK(ep->space) != NULL,
		.code = LOOK(ep->code),
		.refused = LOOK(ep->refused),
		.refused_code = LOOK(ep->refused_code),
		.channel = ep->channel,
	};
}

/* ---- the endpoint as a source */

URN_FAST void
urn_am_sched(struct urn_tp *tp, struct urn_am_ep *ep)
{
	urn_sched_add(&tp->sched, &ep->user.source);
}

/* The client rang: the endpoint is looked at in its client's turn. */
static URN_FAST void
rung(struct urn_tp *tp, struct urn_source *src)
{
	urn_sched_add(&tp->sched, src);
}

const struct urn_source_ops urn_am_ep_ops = {
	.rung = rung,
	.serve = urn_am_serve,
	.due = urn_am_due,
	.end = urn_am_ep_end,
};
