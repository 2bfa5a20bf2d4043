/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults that come at a time of their own; other faults are made by the code that they affect. */
#include "sim.h"

#define SLEEPS_NS 2200000u
_Static_assert(2 * SIM_HANGS + 6 <= SIM_TIMED, "room for them, and for queues that are drained");

/* A random time, ns from the start, at which most runs are still going on. */
static uint64_t
some_time(struct sim_rng *r)
{
	uint32_t scale = 1u << sim_between(r, 11, 22);

	return scale + sim_rnd(r, scale);
}

static void
add(struct sim *s, uint64_t at, unsigned int f, bool ends, uint32_t a, uint32_t b)
{
	unsigned int i = s->timed_n;

	if (i == SIM_TIMED)
		return;
	for (; i > 0 && s->timed[i - 1].at > at; i--)
		s->timed[i] = s->timed[i - 1];
	s->timed[i] = (struct sim_timed){.at = at, .fault = (uint8_t)f, .ends = ends, .a = a, .b = b};
	s->timed_n++;
}

/* Add one to three faults of a kind, each of which ends after a while. */
static void
add_lasting(struct sim *s, enum sim_fault f, uint32_t of, uint32_t longest_us)
{
	struct sim_rng r = sim_rng_of(s->seed, 100 + f);
	uint32_t n = sim_between(&r, 1, 3);

	if (!sim_on(s, f) || of == 0)
		return;
	while (n--) {
		uint64_t at = s->start + some_time(&r);
		uint32_t a = sim_rnd(&r, of), b = sim_rnd(&r, 1u << 16);
		uint32_t us = sim_one_in(&r, 8) ? longest_us * 10 : longest_us;

		add(s, at, f, false, a, b);
		add(s, at + sim_rnd(&r, us) * 1000ull + 1000, f, true, a, b);
	}
}

/*
 * Add hangs: engines that are not run, together: a few times, or repeatedly with a few turns
 * between, as on a machine with too many busy threads. An engine may sleep by itself for a
 * millisecond or two: as short a time is no hang.
 */
static void
add_hangs(struct sim *s)
{
	struct sim_rng r = sim_rng_of(s->seed, 100 + SIM_HANG);
	uint64_t at = s->start + some_time(&r);

	if (!sim_on(s, SIM_HANG))
		return;
	for (uint32_t i = 0; i < s->plan.hangs; i++) {
		uint64_t ns = s->plan.hang_ns >> sim_rnd(&r, 6);

		ns = ns / 2 + sim_rnd(&r, (uint32_t)(ns / 2));
		if (s->plan.hang_node == SIM_NODES && ns < SLEEPS_NS)
			ns += SLEEPS_NS;
		add(s, at, SIM_HANG, false, s->plan.hang_node, 0);
		add(s, at + ns, SIM_HANG, true, s->plan.hang_node, 0);
		at += ns + (s->plan.hangs > 3 ? sim_rnd(&r, 20000) + 1 : some_time(&r));
	}
}

static void
add_sudden(struct sim *s, enum sim_fault f, uint32_t of)
{
	struct sim_rng r = sim_rng_of(s->seed, 100 + f);
	uint32_t n = sim_between(&r, 1, 3);

	if (!sim_on(s, f) || of == 0)
		return;
	while (n--) {
		uint64_t at = s->start + some_time(&r);
		uint32_t a = sim_rnd(&r, of);

		add(s, at, f, false, a, sim_rnd(&r, 1u << 16));
	}
}

void
sim_faults_open(struct sim *s)
{
	unsigned int links = s->net.dirs / 2;

	s->timed_n = s->timed_next = 0;
	add_lasting(s, SIM_BLACKHOLE, links, 5000);
	add_lasting(s, SIM_CUT, links, 5000);
	add_lasting(s, SIM_PAUSE, s->plan.nodes, 2000);
	add_lasting(s, SIM_DRAIN, s->ends, 500);
	add_lasting(s, SIM_EXHAUST, s->plan.nodes, 1000);
	add_lasting(s, SIM_STALL, s->plan.nodes * SIM_SPACES, 1000);
	add_hangs(s);
	if (sim_on(s, SIM_VANISH) || sim_on(s, SIM_MOVE)) {
		unsigned int f = sim_on(s, SIM_VANISH) ? SIM_VANISH : SIM_MOVE;
		uint64_t at = s->start + s->plan.away_at;

		add(s, at, f, false, s->plan.away_node, 0);
		add(s, at + s->plan.away_ns, f, true, s->plan.away_node, 0);
	}
	add_sudden(s, SIM_QPERR, s->ends);
	add_sudden(s, SIM_DEREG, s->ends);
	if (sim_on(s, SIM_NEIGH)) {
		struct sim_rng r = sim_rng_of(s->seed, 100 + SIM_NEIGH);

		s->node[sim_rnd(&r, s->plan.nodes)].unknown_until = s->start + some_time(&r);
		s->stats.fired[SIM_NEIGH]++;
	}
}

uint64_t
sim_faults_next(const struct sim *s)
{
	return s->timed_next < s->timed_n ? s->timed[s->timed_next].at : UINT64_MAX;
}

/* ---- each */

static void
drain(struct sim *s, struct sim_end *e, bool ends)
{
	if (!e->qp)
		return;
	if (!ends && e->qp->state == URN_QPS_RTS) {
		struct urn_abi_qp_attr a = {.en_sqd_notify = 1};

		e->drains++;
		e->drained_at = s->now;
		e->told_before = e->told[URN_EVENT_SQ_DRAINED];
		e->draining = true;
		sim_modify(e->node, e->qp, URN_QPS_SQD, URN_QPM_EN_SQD_NOTIFY, &a);
	} else if (ends && e->draining && e->qp->state == URN_QPS_SQD) {
		if (!e->client)
			sim_event_drained(e);
		sim_modify(e->node, e->qp, URN_QPS_RTS, 0, NULL);
		e->draining = false;
	}
	sim_node_wake(e->node, s->now);
}

/* Take most of a node's packets away, or give them back. */
static void
hog(struct sim_node *n, uint32_t keep, bool ends)
{
	if (n->hogged)
		rte_pktmbuf_free_bulk(n->hog, n->hogged);
	n->hogged = 0;
	if (!ends)
		while (rte_mempool_avail_count(n->pool) > keep && n->hogged < SIM_MBUFS &&
		       (n->hog[n->hogged] = rte_pktmbuf_alloc(n->pool)))
			n->hogged++;
	sim_node_wake(n, n->s->now);
}

/* Deregister a region of an end. A window that is bound to the region prevents that. */
static void
deregister(struct sim *s, struct sim_end *e, bool local)
{
	struct sim_node *n = e->node;
	bool *dead = local ? &e->local_dead : &e->key_dead;

	int m = local ? e->m_local : e->m_key;

	if (*dead || !sim_node_kill(n, local ? e->local_key : e->key, m))
		return;
	*dead = true;
	model_key_dead(s->model, m);
	sim_node_wake(n, s->now);
}

/* Stop running a node's engine, or run it again. */
static void
hang(struct sim_node *n, bool ends)
{
	n->asleep_until = ends ? 0 : UINT64_MAX;
	n->hung |= !ends;
	n->due = ends ? n->s->now : UINT64_MAX;
}

static void
happen(struct sim *s, const struct sim_timed *t)
{
	struct sim_node *n = &s->node[t->a % s->plan.nodes];

	sim_note(s, -1, sim_fault_name(t->fault), t->ends, t->a, t->b);
	s->stats.fired[t->fault] += !t->ends;
	switch (t->fault) {
	case SIM_BLACKHOLE:
		sim_net_cut(s, t->a, 3, !t->ends);
		break;
	case SIM_CUT:
		sim_net_cut(s, t->a, 1 + t->b % 2, !t->ends);
		break;
	case SIM_PAUSE:
		hang(n, t->ends);
		break;
	case SIM_HANG:
		for (unsigned int i = 0; i < s->plan.nodes; i++)
			if (t->a == SIM_NODES || t->a == i)
				hang(&s->node[i], t->ends);
		break;
	case SIM_DRAIN:
		drain(s, &s->end[t->a], t->ends);
		break;
	case SIM_EXHAUST:
		hog(n, t->b % 48, t->ends);
		break;
	case SIM_STALL:
		sim_space_stall(n, t->a / s->plan.nodes, t->ends);
		break;
	case SIM_VANISH:
		sim_neigh_vanish(s, t->ends);
		break;
	case SIM_MOVE:
		sim_neigh_move(s, t->ends);
		break;
	case SIM_QPERR:
		sim_end_ended(&s->end[t->a]);
		break;
	case SIM_DEREG:
		deregister(s, &s->end[t->a], t->b % 2);
		break;
	default:
		break;
	}
}

void
sim_faults_step(struct sim *s)
{
	while (s->timed_next < s->timed_n && s->timed[s->timed_next].at <= s->now && !s->why[0])
		happen(s, &s->timed[s->timed_next++]);
}
