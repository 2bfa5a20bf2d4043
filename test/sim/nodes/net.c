/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wires and switches. A node's NIC holds some frames and sends them at the rate of its wire; a
 * lossless switch asks it to wait by credits or by frames of flow control. Switches hang in a tree
 * or in a ring:
 *
 *     n0  n2     n1                n0 ── s0 ──► s1 ── n1
 *      \  /       |                      ▲       │
 *       s0 ────── s1 ── n3                └── s2 ◄┘
 */
#include "nodes.h"

#include "switch/pfc.h"

enum {
	MARK_SOME = 5000, /* bytes that wait at a port, above which some frames are marked */
	MARK_ALL = 30000, /* ... and above which all are */
	/* Bytes on the way when a sender is told to stop, with small accounts: less than the window
	   of a flow, so that a sender that goes on loses frames. */
	HEADROOM = 65536,
};

static void
set_impairments(const struct ms_world *w, struct urn_switch_port_config *c, uint64_t seed)
{
	const struct ms_plan *p = &w->plan;

	for (unsigned int i = 0; i < 2; i++) {
		struct urn_impair_config *d = &c->impair[i];

		d->seed = seed * 2 + i;
		d->drop = p->drop;
		d->dup = p->dup;
		d->reorder = p->reorder;
		d->delay_ns = p->delay;
		d->jitter_ns = p->jitter;
	}
	c->impair[URN_SWITCH_IN].queue = MS_MBUFS;
}

/* Add a port. node: it leads to a node, else to a switch. returns: its number */
static uint16_t
add_port(struct ms_world *w, struct urn_switch *sw, bool node)
{
	struct urn_switch_port_config c = {.speed = w->plan.rate,
					   .credits = node && w->plan.credits};
	int port;

	if (node)
		set_impairments(w, &c, sim_rng_next(&w->rng));
	else
		c.impair[URN_SWITCH_IN].delay_ns = c.impair[URN_SWITCH_OUT].delay_ns =
			w->plan.delay;
	c.impair[URN_SWITCH_OUT].rate_bps = w->plan.rate;
	c.impair[URN_SWITCH_OUT].queue = w->plan.lossless ? MS_MBUFS : w->plan.queue;
	port = urn_switch_add_port(sw, &c);
	if (port < 0)
		ms_fail(w, "a port of a switch could not be made: %d", port);
	return (uint16_t)port;
}

/* Let frames to a node leave a switch by a port. */
static void
fix(struct ms_world *w, struct urn_switch *sw, unsigned int node, uint16_t port)
{
	if (urn_fdb_set(urn_switch_fdb(sw), urn_mac(w->node[node].mac), port) != 0)
		ms_fail(w, "an address of a switch could not be fixed");
}

static struct urn_switch *
make_switch(struct ms_world *w)
{
	struct urn_switch_config c = {
		.name = "switch", .copies = w->pool, .fdb.max = 256, .no_learning = true};
	struct urn_switch *sw;

	if (w->plan.dcqcn)
		c.mark = (struct urn_mark_config){
			.kmin = MARK_SOME, .kmax = MARK_ALL, .pmax = 0.1, .seed = w->seed};
	if (w->plan.lossless) {
		c.lossless.priorities = 1;
		urn_lossless_preset(&c.lossless);
		c.lossless.no_pfc = false;
		if (w->plan.ring || w->plan.pauser)
			c.lossless.watchdog_ns = c.lossless.restore_ns = MS_WATCHDOG;
		if (w->plan.tight) {
			c.lossless.share = 4096;
			c.lossless.xoff = 16384;
			c.lossless.xon = 8192;
			c.lossless.headroom = HEADROOM;
		}
	}
	sw = urn_switch_create(&c);
	if (!sw)
		ms_fail(w, "a switch could not be made");
	return sw;
}

/* A tree: each switch hangs at the first one. */
static void
join_tree(struct ms_world *w)
{
	for (unsigned int s = 1; s < w->plan.switches; s++) {
		uint16_t down = add_port(w, w->sw[0], false), up = add_port(w, w->sw[s], false);

		if (urn_switch_link(w->sw[0], down, w->sw[s], up) != 0)
			ms_fail(w, "switches could not be joined");
		for (unsigned int i = 0; i < w->plan.nodes; i++)
			if (w->node[i].sw == w->sw[s])
				fix(w, w->sw[0], i, down);
			else
				fix(w, w->sw[s], i, up);
	}
}

static void
join_ring(struct ms_world *w)
{
	for (unsigned int s = 0; s < w->plan.switches; s++) {
		w->next[s] = add_port(w, w->sw[s], false);
		w->before[s] = add_port(w, w->sw[s], false);
		for (unsigned int i = 0; i < w->plan.nodes; i++)
			if (w->node[i].sw != w->sw[s])
				fix(w, w->sw[s], i, w->next[s]);
	}
}

void
ms_net_open(struct ms_world *w)
{
	for (unsigned int s = 0; s < w->plan.switches; s++)
		w->sw[s] = make_switch(w);
	for (unsigned int i = 0; i < w->plan.nodes; i++) {
		struct ms_node *n = &w->node[i];

		n->sw = w->sw[i % w->plan.switches];
		n->port = add_port(w, n->sw, true);
		fix(w, n->sw, i, n->port);
	}
	if (w->plan.ring)
		join_ring(w);
	else
		join_tree(w);
}

void
ms_net_close(struct ms_world *w)
{
	for (unsigned int s = 0; s < MS_SWITCHES; s++) {
		urn_switch_destroy(w->sw[s]);
		w->sw[s] = NULL;
	}
}

/* ---- counters */

static void
count_port(struct ms_world *w, struct urn_switch *sw, uint16_t port)
{
	const uint64_t *c = urn_switch_counters(sw, port)->v;
	const uint64_t *q = urn_switch_queues(sw, port)->level[0].c.v;

	for (unsigned int k = URN_SWITCH_DROP_RUNT; k <= URN_SWITCH_DROP_COPY; k++)
		w->stats.lost += c[k];
	w->stats.lost += q[URN_SWQ_C_DROP_FRAMES] + q[URN_SWQ_C_DROP_BYTES] +
			 q[URN_SWQ_C_DROP_MEMORY] + q[URN_SWQ_C_DROP_HEADROOM] +
			 q[URN_SWQ_C_DROP_WATCHDOG];
	for (unsigned int k = URN_SWITCH_DROP_RUNT; k <= URN_SWITCH_DROP_COPY; k++)
		if (c[k])
			ms_trace(w, "%s port %u: %s %llu", urn_switch_name(sw), port,
				 urn_switch_counter_name(k), (unsigned long long)c[k]);
	for (unsigned int k = 0; k < URN_SWQ_COUNTER_COUNT; k++)
		if (q[k])
			ms_trace(w, "%s port %u: %s %llu", urn_switch_name(sw), port,
				 urn_swq_counter_name(k), (unsigned long long)q[k]);
	w->stats.pauses += q[URN_SWQ_C_XOFFS];
	w->stats.marked += urn_switch_marks(sw, port)->c.v[URN_MARK_C_MARKED];
	w->stats.watchdogs += q[URN_SWQ_C_WATCHDOG];
	for (unsigned int d = 0; d < 2; d++) {
		const uint64_t *i = urn_impair_counters(urn_switch_impair(sw, port, d))->v;

		w->stats.lost +=
			i[URN_IMPAIR_DROPPED] + i[URN_IMPAIR_QUEUE] + i[URN_IMPAIR_NO_MBUF];
	}
}

static void
count_at(struct ms_world *w, struct urn_switch *sw, uint16_t port)
{
	const struct ms_node *pauser = ms_pauser(w);
	uint64_t before = w->stats.lost;

	count_port(w, sw, port);
	if (pauser && pauser->sw == sw && pauser->port == port)
		w->stats.pauser_lost += w->stats.lost - before;
}

void
ms_net_count(struct ms_world *w)
{
	for (unsigned int s = 0; s < w->plan.switches; s++)
		for (uint16_t p = 0; p < urn_switch_ports(w->sw[s]); p++)
			count_at(w, w->sw[s], p);
}

/* ---- NICs */

/* True when the switch lets the NIC send. */
static bool
may_send(const struct ms_node *n)
{
	return n->nic_free <= n->w->now && n->paused <= n->w->now &&
	       urn_switch_takes(n->sw, n->port);
}

static bool
is_cut(const struct ms_node *n)
{
	return n->cut_until > n->w->now;
}

/* Note a frame by time, node, length and the ICRC at its end, which differs when any byte does. */
static void
note_frame(const struct ms_node *n, const struct rte_mbuf *m)
{
	uint32_t icrc = 0;

	if (rte_pktmbuf_is_contiguous(m) && m->data_len >= sizeof(icrc))
		memcpy(&icrc, rte_pktmbuf_mtod_offset(m, uint8_t *, m->data_len - sizeof(icrc)),
		       sizeof(icrc));
	ms_note(n->w, n->w->now);
	ms_note(n->w, (uint64_t)n->id << 48 | (uint64_t)m->pkt_len << 32 | icrc);
}

static void
into_switch(struct ms_node *n, struct rte_mbuf *m)
{
	n->w->into++;
	urn_switch_input(n->sw, n->port, &m, 1, n->w->now);
}

static void
nic_send(struct ms_node *n)
{
	struct ms_world *w = n->w;

	while (n->nic_n && may_send(n)) {
		struct rte_mbuf *m = n->nic[0];
		uint64_t bits = (m->pkt_len + URN_IMPAIR_WIRE_EXTRA) * 8ull;

		memmove(&n->nic[0], &n->nic[1], --n->nic_n * sizeof(n->nic[0]));
		n->nic_free = RTE_MAX(w->now, n->nic_free) + bits * MS_S / w->plan.rate;
		w->stats.frames++;
		note_frame(n, m);
		if (is_cut(n) || (w->plan.carries && m->pkt_len > w->plan.carries))
			rte_pktmbuf_free(m);
		else
			into_switch(n, m);
	}
}

static void
obey(struct ms_node *n, const struct rte_mbuf *m)
{
	struct urn_pfc pfc;

	if (urn_pfc_read(m, &pfc) != 0)
		ms_fail(n->w, "a frame of flow control makes no sense");
	if (!(pfc.enable & 1))
		return;
	n->paused = n->w->now + urn_pfc_ns(pfc.quanta[0], urn_pfc_quantum(n->w->plan.rate));
	if (!pfc.quanta[0])
		n->paused = 0;
}

static void
nic_receive(struct ms_node *n, struct rte_mbuf *m)
{
	struct ms_world *w = n->w;

	if (urn_pfc_is_control(m)) {
		obey(n, m);
		rte_pktmbuf_free(m);
		ms_node_wake(n, w->now);
		return;
	}
	w->out_of++;
	if (n->held_until > w->now && n->held_n < n->held_room) {
		n->held[n->held_n++] = m;
		return;
	}
	if (n->held_until > w->now && n->held_lossy) {
		rte_pktmbuf_free(m);
		return;
	}
	if (is_cut(n) || !n->tp)
		rte_pktmbuf_free(m);
	else
		ms_node_rx(n, m);
}

void
ms_net_drop_held(struct ms_node *n)
{
	while (n->held_n)
		rte_pktmbuf_free(n->held[--n->held_n]);
	n->held_until = 0;
}

/* The network lets go of the frames that it held for a node. */
static void
let_go(struct ms_node *n)
{
	n->held_until = 0;
	for (unsigned int i = 0; i < n->held_n; i++) {
		n->w->stats.held += n->tp != NULL;
		n->w->out_of--; /* counted when it was held */
		nic_receive(n, n->held[i]);
	}
	n->held_n = 0;
}

/* ---- time */

/* Carry frames between two switches of a ring. */
static void
carry(struct ms_world *w, struct urn_switch *a, uint16_t pa, struct urn_switch *b, uint16_t pb)
{
	struct rte_mbuf *m[32];
	unsigned int n;

	while ((n = urn_switch_output(a, pa, m, 32, w->now)) > 0)
		urn_switch_input(b, pb, m, n, w->now);
}

/* A frame comes out of a switch, unless it is to be lost there. */
static void
give(struct ms_node *to, struct rte_mbuf *m)
{
	if (!to->w->lose || urn_pfc_is_control(m)) {
		nic_receive(to, m);
		return;
	}
	to->w->lose = false;
	rte_pktmbuf_free(m);
}

void
ms_net_step(struct ms_world *w)
{
	unsigned int switches = w->plan.switches, n;
	struct rte_mbuf *m[32];

	for (unsigned int i = 0; i < w->plan.nodes; i++)
		nic_send(&w->node[i]);
	urn_switch_run_all(w->sw, switches, w->now);
	for (unsigned int s = 0; s < switches && w->plan.ring; s++) {
		unsigned int t = (s + 1) % switches;

		carry(w, w->sw[s], w->next[s], w->sw[t], w->before[t]);
		carry(w, w->sw[t], w->before[t], w->sw[s], w->next[s]);
	}
	for (unsigned int i = 0; i < w->plan.nodes; i++) {
		struct ms_node *to = &w->node[i];

		if (to->held_n && to->held_until <= w->now)
			let_go(to);
		while ((n = urn_switch_output(to->sw, to->port, m, 32, w->now)) > 0)
			for (unsigned int k = 0; k < n; k++)
				give(to, m[k]);
	}
}

uint64_t
ms_net_next(const struct ms_world *w)
{
	uint64_t best = MS_NEVER;

	for (unsigned int s = 0; s < w->plan.switches; s++)
		best = RTE_MIN(best, urn_switch_next(w->sw[s]));
	for (unsigned int i = 0; i < w->plan.nodes; i++) {
		const struct ms_node *n = &w->node[i];

		if (n->held_n)
			best = RTE_MIN(best, n->held_until);
		if (!n->nic_n)
			continue;
		/* Credits come back when a frame leaves the switch, which is an event by itself. */
		best = RTE_MIN(best, RTE_MAX(n->nic_free, n->paused));
	}
	return best;
}
