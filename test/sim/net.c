/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wires and switches: two nodes are joined back to back, or nodes hang on a
 * random tree of the product's switches (dataplane/switch):
 *
 *    n0   n2        n1
 *     \   /          |
 *      s0 ───────── s1 ── n3
 *       └── s2 ── n4
 *
 * Each direction of a wire is an impairment. Access wires, between node and
 * switch, are the bad ones; those between switches have a delay only, until a
 * link fault hits them. Half of the runs learn addresses, half have them fixed.
 */
#include "sim.h"

#include "wire/unsealed.h"

#include <stdlib.h>

/* Give one hop its part of a path's impairments; a path has `hops` bad hops. */
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

static void
make_config(struct sim *s, struct sim_dir *d, bool access, unsigned int hops)
{
	unsigned int i = (unsigned int)(d - s->net.dir);

	memset(d, 0, sizeof(*d));
	d->access = access;
	d->cfg.seed = s->seed * 64 + i;
	d->cfg.delay_ns = sim_between(&s->rng, 100, 5000);
	/* A good wire loses nothing at any load. */
	d->cfg.queue = s->plan.pairs > 16 ? 4 * SIM_MBUFS : SIM_MBUFS;
	make_bad(s, d, hops);
}

/* ---- laying it out */

static void
back_to_back(struct sim *s)
{
	struct sim_net *n = &s->net;

	for (unsigned int i = 0; i < 2; i++) {
		make_config(s, &n->dir[i], true, 1);
		n->dir[i].imp = urn_impair_create(&n->dir[i].cfg, 0, n->copies);
		if (!n->dir[i].imp)
			sim_fail(s, "a wire could not be made");
	}
	n->dirs = 2;
}

/* Add a port, whose two directions are the next of the list. returns: its number */
static uint16_t
add_port(struct sim *s, unsigned int w, bool access)
{
	struct sim_net *n = &s->net;
	struct urn_switch_port_config c = {.name = "port"};
	int port;

	for (int i = 0; i < 2; i++)
		make_config(s, &n->dir[n->dirs + i], access, 2);
	c.impair[URN_SWITCH_IN] = n->dir[n->dirs].cfg;
	c.impair[URN_SWITCH_OUT] = n->dir[n->dirs + 1].cfg;
	port = urn_switch_add_port(n->sw[w], &c);
	if (port < 0) {
		sim_fail(s, "a port of a switch could not be made: %d", port);
		return 0;
	}
	n->dir[n->dirs].imp = urn_switch_impair(n->sw[w], (uint16_t)port, URN_SWITCH_IN);
	n->dir[n->dirs + 1].imp = urn_switch_impair(n->sw[w], (uint16_t)port, URN_SWITCH_OUT);
	n->dirs += 2;
	return (uint16_t)port;
}

/* The port of a switch by which another is reached. */
typedef uint16_t toward_t[SIM_SWITCHES][SIM_SWITCHES];

/* Fix the ports of this switch by which each node is reached. */
static void
fix_addresses(struct sim *s, unsigned int w, toward_t toward)
{
	struct sim_net *n = &s->net;

	for (unsigned int i = 0; i < s->plan.nodes; i++) {
		uint16_t port = n->home[i] == w ? n->port[i] : toward[w][n->home[i]];

		if (urn_fdb_set(urn_switch_fdb(n->sw[w]), urn_mac(s->node[i].mac), port) != 0)
			sim_fail(s, "an address of a switch could not be fixed");
	}
}

/* Join each switch to one of those before it. */
static void
join_switches(struct sim *s, toward_t toward)
{
	struct sim_net *n = &s->net;

	for (unsigned int w = 1; w < s->plan.switches; w++) {
		unsigned int to = sim_rnd(&s->rng, w);
		uint16_t down = add_port(s, to, false), up = add_port(s, w, false);

		if (urn_switch_link(n->sw[to], down, n->sw[w], up) != 0)
			sim_fail(s, "switches could not be joined");
		for (unsigned int v = 0; v < w; v++) {
			toward[w][v] = up;
			toward[v][w] = v == to ? down : toward[v][to];
		}
	}
}

static void
tree_of_switches(struct sim *s)
{
	struct sim_net *n = &s->net;
	struct urn_switch_config c = {.name = "switch", .copies = n->copies, .fdb.max = 64};
	toward_t toward = {{0}};
	/* A real switch drops a corrupted frame by its FCS: such a frame must not teach wrong addresses. */
	bool learn = sim_one_in(&s->rng, 2) && !sim_on(s, SIM_CORRUPT);

	c.no_learning = !learn;
	for (unsigned int w = 0; w < s->plan.switches; w++)
		n->sw[w] = urn_switch_create(&c);
	for (unsigned int i = 0; i < s->plan.nodes; i++) {
		n->home[i] = sim_rnd(&s->rng, s->plan.switches);
		n->port[i] = add_port(s, n->home[i], true);
	}
	join_switches(s, toward);
	for (unsigned int w = 0; w < s->plan.switches && !learn; w++)
		fix_addresses(s, w, toward);
}

void
sim_net_open(struct sim *s)
{
	s->net.dirs = 0;
	s->net.lost = 0;
	if (s->plan.switches)
		tree_of_switches(s);
	else
		back_to_back(s);
}

static void
count(struct sim *s, const struct sim_dir *d)
{
	const uint64_t *c = urn_impair_counters(d->imp)->v;

	s->stats.dropped += c[URN_IMPAIR_DROPPED] + c[URN_IMPAIR_BLACKHOLE] + c[URN_IMPAIR_FLAP] +
			    c[URN_IMPAIR_QUEUE];
	s->stats.fired[SIM_DROP] += c[URN_IMPAIR_DROPPED];
	s->stats.fired[SIM_DUP] += c[URN_IMPAIR_DUPLICATED];
	s->stats.fired[SIM_REORDER] += c[URN_IMPAIR_REORDERED];
	s->stats.fired[SIM_CORRUPT] += c[URN_IMPAIR_CORRUPTED];
	s->stats.fired[SIM_DELAY] += d->cfg.jitter_ns ? c[URN_IMPAIR_DELAYED] : 0;
	s->stats.fired[SIM_RATE] += d->cfg.rate_bps ? c[URN_IMPAIR_DELAYED] : 0;
}

void
sim_net_close(struct sim *s)
{
	struct sim_net *n = &s->net;

	for (unsigned int i = 0; i < n->dirs; i++) {
		if (n->dir[i].imp)
			count(s, &n->dir[i]);
		if (!s->plan.switches)
			urn_impair_destroy(n->dir[i].imp);
		n->dir[i].imp = NULL;
	}
	for (unsigned int w = 0; w < s->plan.switches; w++) {
		urn_switch_destroy(n->sw[w]);
		n->sw[w] = NULL;
	}
}

/* ---- frames */

static void
to_node(struct sim *s, struct sim_node *n, struct rte_mbuf **m, unsigned int k)
{
	for (unsigned int i = 0; i < k; i++) {
		if (!sim_neigh_take(n, m[i])) {
			rte_pktmbuf_free(m[i]);
			continue;
		}
		if (sim_service_take(n, m[i]))
			continue;
		if (n->rx_in - n->rx_out == SIM_RX) {
			s->net.lost++;
			rte_pktmbuf_free(m[i]);
			continue;
		}
		n->rx[n->rx_in++ % SIM_RX] = m[i];
	}
	sim_node_wake(n, s->now);
}

/* Give a slow node the requests that are due to be executed. */
static void
executed(struct sim *s, struct sim_node *n)
{
	struct rte_mbuf *m;

	while (n->rx_in - n->rx_out < SIM_RX && (m = sim_service_pop(n))) {
		n->rx[n->rx_in++ % SIM_RX] = m;
		sim_node_wake(n, s->now);
	}
}

/*
 * Seal frames that somebody looks at, or that may be corrupted on their way. The others may be
 * lost, late or double; each third is sealed, so that receivers get frames of both kinds.
 */
static void
seal(const struct sim *s, struct rte_mbuf **m, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (s->capture || sim_on(s, SIM_CORRUPT) || (s->stats.frames + i) % 3 == 0)
			urn_wire_seal(m[i]);
}

void
sim_net_send(struct sim *s, unsigned int node, struct rte_mbuf **m, unsigned int n)
{
	struct sim_net *net = &s->net;

	n = sim_sabotage_frames(s, m, n);
	seal(s, m, n);
	s->stats.frames += n;
	sim_capture(s, m, n);
	if (s->plan.switches)
		urn_switch_input(net->sw[net->home[node]], net->port[node], m, n, s->now);
	else
		urn_impair_push(net->dir[node].imp, m, n, s->now);
}

uint64_t
sim_net_next(const struct sim *s)
{
	const struct sim_net *n = &s->net;
	uint64_t best = UINT64_MAX, at;

	for (unsigned int i = 0; i < (s->plan.switches ? s->plan.switches : 2); i++) {
		at = s->plan.switches ? urn_switch_next(n->sw[i]) : urn_impair_next(n->dir[i].imp);
		if (at < best)
			best = at;
	}
	for (unsigned int i = 0; i < s->plan.nodes; i++) {
		at = sim_service_next(&s->node[i]);
		if (at < best)
			best = at;
	}
	return best;
}

void
sim_net_step(struct sim *s)
{
	struct sim_net *n = &s->net;
	struct rte_mbuf *m[32];
	unsigned int k;

	if (s->plan.switches)
		urn_switch_run_all(n->sw, s->plan.switches, s->now);
	for (unsigned int i = 0; i < s->plan.nodes; i++)
		while ((k = s->plan.switches
				    ? urn_switch_output(n->sw[n->home[i]], n->port[i], m, 32, s->now)
				    : urn_impair_pop(n->dir[!i].imp, m, 32, s->now)))
			to_node(s, &s->node[i], m, k);
	for (unsigned int i = 0; i < s->plan.nodes; i++)
		executed(s, &s->node[i]);
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
