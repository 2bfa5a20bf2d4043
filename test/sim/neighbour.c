/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes that vanish and come back, and nodes whose MAC address moves, in place of the table of
 * neighbours (dataplane/net/neigh.h), which asks for addresses.
 *
 * A node that vanished receives and sends nothing, and the others' tables still know its address,
 * ask for it for a while, or say that nobody has it, by the seed. When the node is back in time no request
 * may fail for its absence; when it is not, requests that wait for it fail, no earlier than the QP's timeout
 * and retries allow, and not much later. A node that moved has another MAC address: frames to the old one
 * are lost. The others' tables know the new address when they are asked. Either all their QPs are told, before
 * their peers' retries are used up; or nobody is told, and a QP with requests to that node has to find
 * it: then the node itself has no requests, for a responder notices nothing. No request may fail for a move.
 */
#include "sim.h"

#define SLACK_NS 2500000u /* for QPs that look for an address once a millisecond, timers and packets in flight */

static uint64_t
timeout_ns(const struct sim_plan *p)
{
	return 4096ull << p->timeout;
}

void
sim_neigh_draw(struct sim_plan *p, const struct sim_scenario *sc, uint64_t seed)
{
	struct sim_rng r = sim_rng_of(seed, 8);
	uint64_t all;

	if (!(sc->may & SIM_BIT(VANISH)))
		return;
	p->faults |= sim_one_in(&r, 3) ? SIM_BIT(MOVE) : SIM_BIT(VANISH);
	p->retry_cnt = (uint8_t)sim_between(&r, 2, 7);
	p->away_node = sim_rnd(&r, p->nodes);
	p->away_at = 20000 + sim_rnd(&r, 400000);
	p->away_told = sim_one_in(&r, 2);
	all = timeout_ns(p) * (p->retry_cnt + 1u);
	p->away_asks = sim_one_in(&r, 3) ? UINT64_MAX : sim_one_in(&r, 2) ? 0 : sim_rnd(&r, (uint32_t)all);
	if (p->faults & SIM_BIT(MOVE)) {
		p->away_ns = sim_rnd(&r, (uint32_t)(timeout_ns(p) * (p->retry_cnt - 1u)));
	} else if (sim_one_in(&r, 2)) {
		p->away_ns = sim_rnd(&r, (uint32_t)(timeout_ns(p) * p->retry_cnt - SLACK_NS));
	} else {
		p->away_ns = 4 * all + sim_rnd(&r, (uint32_t)all);
		p->away_fails = true;
	}
}

static bool
is_away(const struct sim_node *n)
{
	return n->s->away && n->id == n->s->plan.away_node;
}

int
sim_neigh_asked(const struct sim_node *n, const struct sim_node *to)
{
	const struct sim_plan *p = &n->s->plan;

	if ((!is_away(n) && !is_away(to)) || p->away_asks == UINT64_MAX)
		return 0;
	return n->s->now < n->s->start + p->away_at + p->away_asks ? -1 : -2;
}

bool
sim_neigh_take(const struct sim_node *n, struct rte_mbuf *m)
{
	uint8_t *dst = rte_pktmbuf_mtod(m, uint8_t *);

	if (!sim_on(n->s, SIM_MOVE))
		return true;
	if (memcmp(dst, n->mac, 6) != 0)
		return false;
	memcpy(dst, n->tp->cfg.mac, 6); /* the address that the transport was made with */
	return true;
}

/* All requests that waited for the node since it vanished must have failed by now. */
static void
judge_waiting(struct sim *s)
{
	const struct sim_plan *p = &s->plan;
	uint64_t most = 2 * timeout_ns(p) * (p->retry_cnt + 1u) + SLACK_NS;

	/* For requests that were not sent yet, time counts from the end of asking for the address. */
	most += p->away_asks == UINT64_MAX ? 0 : p->away_asks;
	for (unsigned int i = 0; i < s->ends; i++) {
		const struct sim_end *e = &s->end[i];

		if (e->peer->node == e->node || (e->node->id != p->away_node && e->peer->node->id != p->away_node))
			continue;
		if (e->posted != e->done && s->now - e->posted_at[e->done % SIM_SLOTS] > most)
			sim_fail(s, "node %u QP 0x%x: request %u has waited %llu us for a peer that is gone", e->node->id,
				 e->qp->qpn, e->done, (unsigned long long)((s->now - e->posted_at[e->done % SIM_SLOTS]) / 1000));
	}
}

/* Tell the other nodes that their tables have a new entry for the node. */
static void
tell_others(struct sim *s)
{
	for (unsigned int i = 0; i < s->plan.nodes; i++) {
		if (i == s->plan.away_node)
			continue;
		urn_tp_neigh_changed(s->node[i].tp);
		sim_node_wake(&s->node[i], s->now);
	}
}

void
sim_neigh_vanish(struct sim *s, bool ends)
{
	if (ends && s->plan.away_fails && !s->winding_up)
		judge_waiting(s);
	s->away = !ends;
	if (s->plan.away_told)
		tell_others(s);
	sim_net_cut(s, s->plan.switches ? s->plan.away_node : 0, 3, !ends);
}

void
sim_neigh_move(struct sim *s, bool told)
{
	if (!told)
		s->node[s->plan.away_node].mac[3] ^= 0x40;
	else if (s->plan.away_told)
		tell_others(s);
}

void
sim_neigh_judge(const struct sim_end *e, const struct urn_abi_cqe *c)
{
	const struct sim *s = e->node->s;
	uint64_t least = timeout_ns(&s->plan) * (s->plan.retry_cnt + 1u), waited;

	if (c->status != URN_WC_RETRY_EXC_ERR || (!sim_on(s, SIM_VANISH) && !sim_on(s, SIM_MOVE)))
		return;
	waited = s->now - e->posted_at[c->wr_id % SIM_SLOTS];
	if (waited < least)
		sim_fail(e->node->s, "node %u QP 0x%x: request %llu was given up after %llu us, and retries last %llu us",
			 e->node->id, e->qp->qpn, (unsigned long long)c->wr_id, (unsigned long long)(waited / 1000),
			 (unsigned long long)(least / 1000));
}
