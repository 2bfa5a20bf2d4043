/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wires and switches. Each direction of a wire is an impairment; two nodes are
 * joined back to back, or nodes hang on a row of switches:
 *
 *    n0   n2        n1
 *     \   /          |
 *      s0 ───────── s1 ── n3
 *
 * Access links, node to switch and back, are the bad ones; wires between
 * switches have a delay only, until a link fault hits them.
 */
#include "sim.h"

static int
add_dir(struct sim *s, int node, int to_switch, bool access)
{
	struct sim_net *n = &s->net;
	struct sim_dir *d = &n->dir[n->dirs];

	memset(d, 0, sizeof(*d));
	d->node = node;
	d->to_switch = to_switch;
	d->access = access;
	return (int)n->dirs++;
}

/* Nodes, switches and the wires between them; links are pairs of directions. */
static void
lay_out(struct sim *s)
{
	struct sim_net *n = &s->net;
	unsigned int nodes = s->plan.nodes, switches = s->plan.switches, home[SIM_NODES];
	int right[SIM_SWITCHES], left[SIM_SWITCHES], to_node[SIM_NODES];

	if (switches == 0) {
		n->from_node[0] = add_dir(s, 1, -1, true);
		n->from_node[1] = add_dir(s, 0, -1, true);
		return;
	}
	for (unsigned int i = 0; i < nodes; i++) {
		home[i] = sim_rnd(&s->rng, switches);
		n->from_node[i] = add_dir(s, -1, (int)home[i], true);
		to_node[i] = add_dir(s, (int)i, -1, true);
	}
	for (unsigned int w = 0; w + 1 < switches; w++) {
		right[w] = add_dir(s, -1, (int)w + 1, false);
		left[w + 1] = add_dir(s, -1, (int)w, false);
	}
	for (unsigned int w = 0; w < switches; w++)
		for (unsigned int i = 0; i < nodes; i++)
			n->route[w][i] = home[i] == w ? to_node[i] : home[i] > w ? right[w] : left[w];
}

/* What a hop does of what a path does; a path has `hops` bad hops. */
static void
make_bad(struct sim *s, struct sim_dir *d, unsigned int hops)
{
	struct urn_impair_config *c = &d->cfg;
	struct sim_rng delay = sim_rng_of(c->seed, 100 + SIM_DELAY);
	struct sim_rng thin = sim_rng_of(c->seed, 100 + SIM_RATE);
	struct sim_rng flap = sim_rng_of(c->seed, 100 + SIM_FLAP);

	if (d->access) {
		c->drop = sim_on(s, SIM_DROP) ? s->plan.drop / hops : 0;
		c->dup = sim_on(s, SIM_DUP) ? s->plan.dup / hops : 0;
		c->reorder = sim_on(s, SIM_REORDER) ? s->plan.reorder / hops : 0;
		c->corrupt = sim_on(s, SIM_CORRUPT) ? s->plan.corrupt / hops : 0;
	}
	if (sim_on(s, SIM_DELAY) && sim_one_in(&delay, 2)) {
		c->delay_ns += sim_rnd(&delay, 60000);
		c->jitter_ns = sim_rnd(&delay, 60000);
	}
	if (sim_on(s, SIM_RATE) && sim_one_in(&thin, 2)) {
		c->rate_bps = 50000000ull << sim_rnd(&thin, 8);
		c->queue = sim_between(&thin, 16, 512);
	}
	if (sim_on(s, SIM_FLAP) && sim_one_in(&flap, 3)) {
		c->flap_up_ns = sim_between(&flap, 100000, 5000000);
		c->flap_down_ns = sim_between(&flap, 10000, 3000000);
		s->stats.fired[SIM_FLAP]++;
	}
}

void
sim_net_open(struct sim *s)
{
	struct sim_net *n = &s->net;

	n->dirs = 0;
	n->lost = 0;
	lay_out(s);
	for (unsigned int i = 0; i < n->dirs; i++) {
		struct sim_dir *d = &n->dir[i];

		d->cfg.seed = s->seed * 64 + i;
		d->cfg.delay_ns = sim_between(&s->rng, 100, 5000);
		/* A good wire loses nothing, however much is sent. */
		d->cfg.queue = s->plan.pairs > 16 ? 4 * SIM_MBUFS : SIM_MBUFS;
		make_bad(s, d, s->plan.switches ? 2 : 1);
		d->imp = urn_impair_create(&d->cfg, n->copies);
		if (!d->imp)
			sim_fail(s, "a wire could not be made");
	}
}

void
sim_net_close(struct sim *s)
{
	for (unsigned int i = 0; i < s->net.dirs; i++) {
		struct sim_dir *d = &s->net.dir[i];
		const struct urn_impair_counters *c;

		if (!d->imp)
			continue;
		c = urn_impair_counters(d->imp);
		s->stats.dropped += c->v[URN_IMPAIR_DROPPED] + c->v[URN_IMPAIR_BLACKHOLE] +
				    c->v[URN_IMPAIR_FLAP] + c->v[URN_IMPAIR_QUEUE];
		s->stats.fired[SIM_DROP] += c->v[URN_IMPAIR_DROPPED];
		s->stats.fired[SIM_DUP] += c->v[URN_IMPAIR_DUPLICATED];
		s->stats.fired[SIM_REORDER] += c->v[URN_IMPAIR_REORDERED];
		s->stats.fired[SIM_CORRUPT] += c->v[URN_IMPAIR_CORRUPTED];
		s->stats.fired[SIM_DELAY] += d->cfg.jitter_ns ? c->v[URN_IMPAIR_DELAYED] : 0;
		s->stats.fired[SIM_RATE] += d->cfg.rate_bps ? c->v[URN_IMPAIR_DELAYED] : 0;
		urn_impair_destroy(d->imp);
		d->imp = NULL;
	}
}

void
sim_net_send(struct sim *s, unsigned int node, struct rte_mbuf **m, unsigned int n)
{
	s->stats.frames += n;
	urn_impair_push(s->net.dir[s->net.from_node[node]].imp, m, n, s->now);
}

static void
to_node(struct sim *s, struct sim_node *n, struct rte_mbuf *m)
{
	if (n->rx_in - n->rx_out == SIM_RX) {
		s->net.lost++;
		rte_pktmbuf_free(m);
		return;
	}
	n->rx[n->rx_in++ % SIM_RX] = m;
	sim_node_wake(n, s->now);
}

/* A frame has come to the end of a wire. The last byte of a MAC says which node. */
static void
arrive(struct sim *s, const struct sim_dir *d, struct rte_mbuf *m)
{
	const uint8_t *f = rte_pktmbuf_mtod(m, const uint8_t *);
	unsigned int to = f[5] - 1u;

	if (d->node >= 0) {
		to_node(s, &s->node[d->node], m);
		return;
	}
	if (to >= s->plan.nodes) { /* a bit of the address was turned over */
		rte_pktmbuf_free(m);
		return;
	}
	urn_impair_push(s->net.dir[s->net.route[d->to_switch][to]].imp, &m, 1, s->now);
}

uint64_t
sim_net_next(const struct sim *s)
{
	uint64_t best = UINT64_MAX;

	for (unsigned int i = 0; i < s->net.dirs; i++) {
		uint64_t at = urn_impair_next(s->net.dir[i].imp);

		if (at < best)
			best = at;
	}
	return best;
}

void
sim_net_step(struct sim *s)
{
	struct rte_mbuf *m[32];

	for (unsigned int i = 0; i < s->net.dirs; i++) {
		struct sim_dir *d = &s->net.dir[i];
		unsigned int n;

		if (urn_impair_next(d->imp) > s->now)
			continue;
		while ((n = urn_impair_pop(d->imp, m, 32, s->now)))
			for (unsigned int k = 0; k < n; k++)
				arrive(s, d, m[k]);
	}
}

void
sim_net_cut(struct sim *s, unsigned int link, unsigned int which, bool cut)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct sim_dir *d = &s->net.dir[(link * 2 + i) % s->net.dirs];

		if (!(which & 1u << i))
			continue;
		d->cfg.blackhole = cut;
		if (urn_impair_set(d->imp, &d->cfg) != 0)
			sim_fail(s, "a wire could not be changed");
	}
}
