/* SPDX-License-Identifier: BSD-3-Clause */
/* urnic-msg-sim: boxes as the load of nodes. */
#include "msgsim.h"

#include <stdlib.h>

static void
open_load(struct ms_world *w)
{
	w->boxes = 0;
	w->box_room = w->plan.nodes * w->plan.sets * 4 + 1000;
	w->mail = calloc(w->plan.messages, sizeof(*w->mail));
	w->box = calloc(w->box_room, sizeof(*w->box));
	if (!w->mail || !w->box)
		ms_fail(w, "no memory");
}

static void
close_load(struct ms_world *w)
{
	free(w->mail);
	free(w->box);
	w->mail = NULL;
	w->box = NULL;
}

static void
up(struct ms_node *n)
{
	for (unsigned int i = 0; i < n->w->plan.sets; i++)
		ms_box_open(n, i);
}

static void
down(struct ms_node *n)
{
	for (unsigned int i = 0; i < MS_SETS; i++)
		if (n->box[i] != UINT32_MAX)
			ms_box_close(n, i);
}

static struct urn_source *
source(struct ms_node *n, unsigned int place)
{
	struct ms_box *b = ms_box_at(n, place);

	return b ? urn_msg_source(b->set) : NULL;
}

static void
close_one(struct ms_world *w)
{
	struct ms_node *n = ms_any_node(w);
	unsigned int place = (unsigned int)ms_upto(w, w->plan.sets);

	if (!n->tp || n->box[place] == UINT32_MAX)
		return;
	ms_box_close(n, place);
	w->stats.closes++;
	if (!ms_one_in(w, 8))
		ms_box_open(n, place);
}

/* A reader that sleeps while messages wait was not woken. */
static void
check_sleepers(struct ms_world *w)
{
	for (uint32_t i = 0; i < w->boxes; i++) {
		const struct ms_box *b = &w->box[i];

		if (b->set && b->armed && !b->scribbles &&
		    atomic_load(&b->regs->rstat.tail) != b->head)
			ms_fail(w, "box %u sleeps, and was not woken", i);
	}
}

static void
finish(struct ms_world *w)
{
	for (unsigned int i = 0; i < w->plan.nodes; i++)
		down(&w->node[i]);
	ms_judge_end(w);
}

static void
step(struct ms_node *n)
{
	ms_sabotage_turn(n);
	ms_boxes_step(n);
}

/* Flows and their packets are looked at for every load. */
static void
left(struct ms_node *n)
{
	(void)n;
}

static const char help[] =
	"usage: urnic-msg-sim [option...]\n"
	"\n"
	"Simulates nodes that send messages by register sets, flows and switches, in one\n"
	"thread under a virtual clock, all choices from a seed. Each message must have\n"
	"its answer, and the answer must be true.\n"
	"\n";

int
main(int argc, char **argv)
{
	const struct ms_load load = {
		.program = "urnic-msg-sim",
		.help = help,
		.scenarios = ms_scenarios,
		.scenario_count = ms_scenario_count,
		.open = open_load,
		.close = close_load,
		.up = up,
		.down = down,
		.source = source,
		.step = step,
		.woken = ms_box_woken,
		.close_one = close_one,
		.look = ms_judge_stalls,
		.settle = check_sleepers,
		.finish = finish,
		.left = left,
		.sabotage = ms_sabotage_name,
	};

	return ms_main(&load, argc, argv);
}
