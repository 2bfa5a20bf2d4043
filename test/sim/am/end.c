/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends: each is one life of an endpoint of remote memory, with its memory and its program. */
#include "amsim.h"

#include <stdlib.h>

enum { PATIENCE = 40 }; /* times longer that a lazy program leaves its events alone */

/* Lay zones out, with bytes between them that nobody writes. */
static void
lay_out(struct ms_world *w, struct as_end *e)
{
	uint32_t at = AS_GUARD;

	for (unsigned int i = 0; i < AS_ZONES; i++) {
		struct as_zone *z = &e->zone[i];
		uint32_t most = i ? w->plan.am.zone : 2 * w->plan.am.zone;

		z->at = at;
		z->len = ms_one_in(w, 2) ? most : RTE_MIN(most, 64 + (uint32_t)ms_upto(w, most));
		z->split = i && ms_one_in(w, 2) ? 1 + (uint32_t)ms_upto(w, z->len - 1) : z->len;
		at += z->len + AS_GUARD + (uint32_t)ms_upto(w, 64);
	}
	at = RTE_ALIGN_CEIL(at, 8u);
	e->zone[AS_WORD_ZONE] =
		(struct as_zone){.at = at, .len = 8 * AS_WORDS, .split = 8 * AS_WORDS};
	as_mem_make(w, &e->mem, at + 8 * AS_WORDS + AS_GUARD, 0x40000000u + e->id);
	e->iova = (1 + ms_upto(w, 1000)) << 32 | 8 * ms_upto(w, 512);
}

static void
open_endpoint(struct ms_node *n, struct as_end *e)
{
	struct urn_am_config c = {.share = &n->share[e->place % RTE_DIM(n->share)],
				  .db = e->place,
				  .ranges = AS_RANGES};
	size_t bytes;
	struct urn_am_view v;

	if (urn_mem_alloc_pd(n->mem, &e->pd) != 0)
		ms_fail(n->w, "no protection domain");
	bytes = RTE_ALIGN_CEIL(urn_am_ep_bytes(e->entries, AS_RANGES), 64u);
	c.regs = e->regs = aligned_alloc(64, bytes);
	if (!e->regs)
		ms_fail(n->w, "no memory");
	memset(e->regs, 0, bytes);
	c.entries = e->entries;
	c.pd = e->pd;
	if (urn_am_ep_open(n->am, &c, &e->ep) != 0)
		ms_fail(n->w, "an endpoint could not be made");
	urn_am_ep_look(n->am, e->ep, &v);
	e->qid = v.qid;
}

void
as_end_open(struct ms_node *n, unsigned int place)
{
	struct ms_world *w = n->w;
	struct as_sim *s = w->as;
	struct as_end *e;

	if (s->ends == s->end_room)
		return;
	e = &s->end[s->ends];
	memset(e, 0, sizeof(*e));
	e->id = s->ends++;
	e->node = n->id;
	e->place = place;
	e->entries = 1;
	while (e->entries < w->plan.am.entries && !ms_one_in(w, 6))
		e->entries *= 2;
	e->unread = ms_one_in(w, w->plan.am.unread_in);
	e->opened = e->progress = w->now;
	e->closed = MS_NEVER;
	e->post_at = w->now + ms_upto(w, w->plan.think + 1);
	e->read_at = w->now;
	lay_out(w, e);
	open_endpoint(n, e);
	for (unsigned int z = 0; z <= AS_ZONES; z++)
		as_zone_make(n, e, z);
	as_words_open(w, e);
	s->at[n->id][place] = (int32_t)e->id;
	ms_trace(w, "end %u opens on node %u, endpoint %llx, %u entries, memory at %llx", e->id,
		 n->id, (unsigned long long)e->qid, e->entries, (unsigned long long)e->iova);
	ms_node_wake(n, w->now);
}

void
as_end_close(struct ms_node *n, unsigned int place)
{
	struct as_end *e = as_end_at(n, place);
	struct ms_world *w = n->w;

	as_events_read(n, e, UINT32_MAX);
	if (!urn_am_ep_end(n->tp, urn_am_ep_source(e->ep)))
		ms_fail(w, "end %u does not end", e->id);
	e->ep = NULL;
	e->closed = w->now;
	as_words_close(w, e);
	as_judge_close(w, e);
	for (unsigned int z = 0; z <= AS_ZONES; z++) {
		as_zone_unmap(n, e, z);
		e->zone[z].there = false;
	}
	if (urn_mem_dealloc_pd(n->mem, e->pd) != 0)
		ms_fail(w, "end %u: its protection domain is in use", e->id);
	free(e->regs);
	e->regs = NULL;
	w->as->at[n->id][place] = AS_NONE;
	n->rung[place] = 0;
	ms_trace(w, "end %u closes", e->id);
}

static void
read_now(struct ms_node *n, struct as_end *e)
{
	struct ms_world *w = n->w;
	uint64_t gap = w->plan.read_gap;

	as_events_read(n, e, 1 + (uint32_t)ms_upto(w, e->entries));
	if (e->unread && !w->quiet && ms_one_in(w, 4))
		gap *= PATIENCE;
	e->read_at = w->now + 1 + ms_upto(w, gap + 1);
}

static void
post_now(struct ms_node *n, struct as_end *e)
{
	struct ms_world *w = n->w;
	unsigned int most = 1 + (unsigned int)ms_upto(w, 8);

	while (most-- && as_post(n, e))
		;
	e->post_at = w->now + 1 + ms_upto(w, w->plan.think + 1);
	if (w->quiet || w->mails == w->plan.messages)
		e->post_at = MS_NEVER;
}

void
as_end_step(struct ms_node *n, struct as_end *e)
{
	struct ms_world *w = n->w;

	if (w->quiet)
		e->read_at = RTE_MIN(e->read_at, w->now + w->plan.read_gap);
	if (e->read_at <= w->now)
		read_now(n, e);
	if (e->post_at <= w->now)
		post_now(n, e);
	ms_node_wake(n, e->post_at);
	if (atomic_load(&e->regs->dp.events) != e->events)
		ms_node_wake(n, e->read_at);
}
