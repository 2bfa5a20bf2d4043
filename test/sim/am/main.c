/* SPDX-License-Identifier: BSD-3-Clause */
/* urnic-am-sim: ends and talkers as the load of nodes. */
#include "sabotage.h"

#include "am/tagged.h"

#include <stdlib.h>

static const char *const stat_names[] = {
#define X(id, name) name,
	AS_STATS(X)
#undef X
		NULL,
};

static void
open_load(struct ms_world *w)
{
	struct as_sim *s = calloc(1, sizeof(*s));

	w->as = s;
	if (!s)
		ms_fail(w, "no memory");
	s->end_room = w->plan.nodes * w->plan.am.ends * 4 + 40;
	s->end = calloc(s->end_room, sizeof(*s->end));
	s->op = calloc(w->plan.messages + 1, sizeof(*s->op));
	s->talker_room = w->plan.nodes * w->plan.am.talkers * 4 + 40;
	s->talker = calloc(s->talker_room, sizeof(*s->talker));
	s->request = calloc(w->plan.messages + 1, sizeof(*s->request));
	s->scratch = malloc(2 * w->plan.am.zone + w->plan.len_max + 16);
	if (!s->end || !s->op || !s->scratch || !s->talker || !s->request)
		ms_fail(w, "no memory");
	memset(s->at, 0xff, sizeof(s->at));
	memset(s->talker_at, 0xff, sizeof(s->talker_at));
	as_clock(0);
	as_sabotage_open(w);
	as_network_open(w);
	s->revoke_at = w->plan.am.revoke_gap ? w->now + MS_MS : MS_NEVER;
}

static void
close_load(struct ms_world *w)
{
	struct as_sim *s = w->as;

	for (uint32_t i = 0; i < s->ends; i++)
		as_mem_free(&s->end[i].mem);
	for (uint32_t i = 0; i < s->ops; i++)
		free(s->op[i].want);
	free(s->end);
	free(s->op);
	free(s->talker);
	free(s->request);
	free(s->scratch);
	free(s);
	w->as = NULL;
}

static void
up(struct ms_node *n)
{
	for (unsigned int i = 0; i < n->w->plan.am.ends; i++)
		as_end_open(n, i);
	for (unsigned int i = 0; i < n->w->plan.am.talkers; i++)
		as_talker_open(n, i);
}

static void
down(struct ms_node *n)
{
	if (!n->w->as)
		return;
	for (unsigned int i = 0; i < AS_ENDS; i++)
		if (as_end_at(n, i))
			as_end_close(n, i);
	for (unsigned int i = 0; i < AS_TALKERS; i++)
		if (as_talker_at(n, i))
			as_talker_close(n, i);
}

static struct urn_source *
source(struct ms_node *n, unsigned int place)
{
	unsigned int which = (place - AS_ENDS) / AS_TALKER_PLACES;
	struct as_end *e = place < AS_ENDS ? as_end_at(n, place) : NULL;

	if (place >= AS_ENDS)
		return as_talker_at(n, which) ? as_dev_source(as_talker_at(n, which)->dev, place)
					      : NULL;
	return e && as_sabotage_rung(n->w, e) ? urn_am_ep_source(e->ep) : NULL;
}

static void
step(struct ms_node *n)
{
	struct ms_world *w = n->w;

	if (w->as->revoke_at <= w->now && !w->quiet) {
		as_revoke_one(w);
		w->as->revoke_at = w->now + 1 + ms_upto(w, 2ull * w->plan.am.revoke_gap);
	}
	for (unsigned int i = 0; i < w->plan.am.ends; i++)
		if (as_end_at(n, i))
			as_end_step(n, as_end_at(n, i));
	for (unsigned int i = 0; i < w->plan.am.talkers; i++)
		if (as_talker_at(n, i))
			as_talker_step(n, as_talker_at(n, i));
	as_sabotage_turn(n);
}

static void
woken(struct ms_node *n, uint64_t cookie)
{
	ms_fail(n->w, "node %u: an event for %llx, and nobody sleeps", n->id,
		(unsigned long long)cookie);
}

static void
close_talker(struct ms_world *w, struct ms_node *n)
{
	unsigned int place = (unsigned int)ms_upto(w, w->plan.am.talkers);

	if (!n->tp || !as_talker_at(n, place) || w->as->talkers == w->as->talker_room)
		return;
	as_talker_close(n, place);
	w->stats.closes++;
	as_talker_open(n, place);
}

static void
close_one(struct ms_world *w)
{
	struct ms_node *n = ms_any_node(w);
	unsigned int place = (unsigned int)ms_upto(w, w->plan.am.ends);

	if (w->plan.am.talkers && (!w->plan.am.ends || ms_one_in(w, 2))) {
		close_talker(w, n);
		return;
	}
	if (!n->tp || !as_end_at(n, place) || w->as->ends == w->as->end_room)
		return;
	as_end_close(n, place);
	w->stats.closes++;
	as_end_open(n, place);
}

static void
look(struct ms_world *w)
{
	as_judge_look(w);
	as_hear_look(w);
}

static void
settle(struct ms_world *w)
{
	for (unsigned int i = 0; i < w->plan.nodes; i++) {
		const uint64_t *c = w->node[i].tp->c.v;

		w->stats.more[AS_RETRIES] += c[URN_C_AM_RETRIES];
		if (c[URN_C_DROP_AM_FORMAT] || c[URN_C_AM_BAD_RING])
			ms_fail(w, "node %u: %llu packets were malformed, %llu rings made no sense",
				i, (unsigned long long)c[URN_C_DROP_AM_FORMAT],
				(unsigned long long)c[URN_C_AM_BAD_RING]);
	}
}

static void
finish(struct ms_world *w)
{
	for (unsigned int i = 0; i < w->plan.nodes; i++)
		down(&w->node[i]);
	as_judge_end(w);
	as_words_judge(w);
	as_hear_end(w);
}

static void
left(struct ms_node *n)
{
	const struct urn_am *am = n->am;

	if (am->outs || am->replies || !TAILQ_EMPTY(&am->late))
		ms_fail(n->w, "node %u: %u packets and %u replies of remote memory are left", n->id,
			am->outs, am->replies);
	if (am->tagged->n || am->tagged->early_n || am->tagged->turns ||
	    am->tagged->queue.writes_n || am->tagged->queue.reads_n)
		ms_fail(n->w, "node %u: %u transfers and %u early packets are left", n->id,
			am->tagged->n, am->tagged->early_n);
	if (am->kept != URN_AM_NODES * URN_AM_KEEP_REPLIES ||
	    am->tagged->kept != URN_AM_NODES * URN_AM_KEEP_TRANSFERS ||
	    am->tagged->early_kept != URN_AM_NODES * URN_AM_KEEP_EARLY)
		ms_fail(n->w, "node %u: places that are kept for nodes are miscounted", n->id);
	for (unsigned int i = 0; i < URN_AM_NODES; i++)
		if (am->node[i])
			ms_fail(n->w, "node %u: %u replies to a node are left", n->id, am->node[i]);
	for (unsigned int i = 0; i < RTE_DIM(n->share); i++)
		if (n->share[i].am)
			ms_fail(n->w, "node %u: a client has %u packets left", n->id,
				n->share[i].am);
}

static const char help[] =
	"usage: urnic-am-sim [option...]\n"
	"\n"
	"Simulates nodes that read and write each other's memory, and send active\n"
	"messages, in one thread under a virtual clock, all choices from a seed. Each\n"
	"operation must end once, its code must be true, and all memory must hold what\n"
	"it is to hold; each request's handler must run once, and its answer be true.\n"
	"\n";

int
main(int argc, char **argv)
{
	const struct ms_load load = {
		.program = "urnic-am-sim",
		.help = help,
		.scenarios = as_scenarios,
		.scenario_count = as_scenario_count,
		.am = true,
		.more = stat_names,
		.open = open_load,
		.close = close_load,
		.up = up,
		.down = down,
		.source = source,
		.step = step,
		.woken = woken,
		.close_one = close_one,
		.look = look,
		.settle = settle,
		.finish = finish,
		.left = left,
		.sabotage = as_sabotage_name,
	};

	return ms_main(&load, argc, argv);
}
