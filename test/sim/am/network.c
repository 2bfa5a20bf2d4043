/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The oracle of the network: which flow failed when, between which two nodes, and whether it had a
 * reason. An operation or a request may only blame the network for a failure of a flow between its
 * own two nodes in its own time, or for the death of its target. Failures of flows come here first
 * (--wrap), and are judged:
 *
 *   UNREACHABLE  one of the two was cut off or down while the flow tried, or the wires lose much
 *   RESTARTED    the peer's life began, or its last one ended, after the epoch's first packet; or
 *                so shortly before that the peer does not answer for it (young)
 *   NO NODE      nobody has the address
 */
#include "amsim.h"

#define TRIES_NS (3 * MS_S)	  /* all tries of a flow take less */
#define BORN_NS UINT64_C(2000000) /* error of urn_flow.tx_born, at most */

void __real_urn_flow_fail(struct urn_tp *tp, struct urn_flow *f, uint8_t code, bool all);
void __wrap_urn_flow_fail(struct urn_tp *tp, struct urn_flow *f, uint8_t code, bool all);

static struct ms_world *world; /* world whose flows fail */

void
as_network_open(struct ms_world *w)
{
	world = w;
	if (w->plan.nodes > AS_NODES)
		ms_fail(w, "the table of flows has room for %d nodes", AS_NODES);
}

/* ---- reasons */

static bool
was_away(const struct ms_node *n, uint64_t since)
{
	return !n->tp || n->gone_at >= since || n->cut_until >= since;
}

static bool
may_be_unreachable(const struct ms_node *from, const struct ms_node *to)
{
	uint64_t since = world->now - RTE_MIN(world->now, TRIES_NS);

	return world->plan.drop > 0.1 || was_away(from, since) || was_away(to, since);
}

static bool
may_be_restarted(const struct ms_node *to, const struct urn_flow *f)
{
	uint64_t born = world->now - ((uint64_t)((uint32_t)(world->now >> 20) - f->tx_born) << 20);

	return !to->tp || (to->gone_at && to->gone_at + URN_FLOW_YOUNG_NS + BORN_NS >= born);
}

/* The node with an address; NULL: none. */
static const struct ms_node *
node_of(const uint8_t gid[16])
{
	for (unsigned int i = 0; i < world->plan.nodes; i++)
		if (memcmp(world->node[i].gid, gid, 16) == 0)
			return &world->node[i];
	return NULL;
}

static void
judge(const struct ms_node *from, const struct ms_node *to, const struct urn_flow *f, uint8_t code)
{
	bool right = code == URN_MSG_RESTARTED	   ? may_be_restarted(to, f)
		     : code == URN_MSG_UNREACHABLE ? may_be_unreachable(from, to)
						   : false;

	if (!right)
		ms_fail(world,
			"the flow of node %u to %u, epoch %llx, fails with %s, without reason",
			from->id, to->id, (unsigned long long)f->tx_epoch, urn_msg_code_word(code));
}

void
__wrap_urn_flow_fail(struct urn_tp *tp, struct urn_flow *f, uint8_t code, bool all)
{
	const struct ms_node *from = world->node, *to = node_of(f->gid);

	while (from->tp != tp)
		from++;
	if (to && world->as) {
		struct as_flow *flow = &world->as->flow[from->id][to->id];

		judge(from, to, f, code);
		flow->failed_at = world->now;
		if (code == URN_MSG_RESTARTED)
			flow->restarted_at = world->now;
		ms_trace(world, "the flow of node %u to %u, epoch %llx, fails: %s", from->id,
			 to->id, (unsigned long long)f->tx_epoch, urn_msg_code_word(code));
	}
	__real_urn_flow_fail(tp, f, code, all);
}

/* ---- excuses */

bool
as_flow_failed(const struct ms_world *w, uint32_t from, uint32_t to, uint64_t since)
{
	return w->as->flow[from][to].failed_at >= since;
}

bool
as_flow_restarted(const struct ms_world *w, uint32_t from, uint32_t to, uint64_t since)
{
	return w->as->flow[from][to].restarted_at >= since;
}

bool
as_any_failed(const struct ms_world *w, uint32_t from, uint64_t since)
{
	for (unsigned int i = 0; i < w->plan.nodes; i++)
		if (as_flow_failed(w, from, i, since))
			return true;
	return false;
}

bool
as_was_down(const struct ms_world *w, uint32_t node, uint64_t since)
{
	const struct ms_node *n = &w->node[node];

	return !n->tp || n->gone_at >= since;
}
