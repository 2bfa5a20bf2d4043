/* SPDX-License-Identifier: BSD-3-Clause */
/* A node: transport, register sets and endpoints of remote memory of one adapter on one engine,
 * given turns like an engine gives them. */
#include "nodes.h"

#include <stdlib.h>

enum { RUNG = 8 }; /* doorbells that a turn takes */

static int
neigh(void *ctx, const uint8_t gid[16], uint8_t mac[6])
{
	struct ms_node *n = ctx;
	uint32_t node = (uint32_t)gid[14] << 8 | gid[15];

	if (node == 0 || node > n->w->plan.nodes)
		return n->w->now < n->neigh_at ? -1 : -2;
	if (n->w->now < n->neigh_at)
		return -1;
	memcpy(mac, n->w->node[node - 1].mac, 6);
	return 0;
}

static struct urn_ah *
no_ah(void *ctx, uint32_t id)
{
	(void)ctx;
	(void)id;
	return NULL;
}

/* A set found no room: its doorbell is rung again. */
static void
ring_again(void *ctx, const struct urn_source *src)
{
	struct ms_node *n = ctx;

	n->rung[src->db] = 1;
}

static void
make_config(struct ms_node *n, struct urn_tp_config *c)
{
	struct ms_world *w = n->w;

	*c = (struct urn_tp_config){
		.mem = n->mem,
		.memx = n->memx,
		.pool = w->pool,
		.gids = 1,
		.mtu = (uint16_t)w->plan.mtu,
		.flow_mtu = (uint16_t)ms_flow_mtu(w, n->id),
		.icrc = true,
		.max_qp = 16,
		.work = 4096,
		.window = 256,
		.kept = 64,
		.hash_seed = (uint32_t)w->seed,
		.rto_floor = MS_MS,
		.line = w->plan.dcqcn ? w->plan.rate / 8 : 0,
		.neigh = neigh,
		.neigh_ctx = n,
		.ah = no_ah,
		.ring_again = ring_again,
		.give_ctx = n,
		.flow_user = n->am ? &urn_am_flow_user : &urn_msg_flow_user,
		.am = n->am,
		.flow_ctx = n->regs,
		.flow_epoch = 1700000000 + ++w->starts,
	};
	memcpy(c->mac, n->mac, 6);
	memcpy(c->gid[0], n->gid, 16);
}

void
ms_node_start(struct ms_node *n)
{
	struct ms_world *w = n->w;
	struct urn_memx_config x = {.pending = 64};
	struct urn_tp_config c;

	/* Flows rely on it (doc/inside/messages.md). */
	if (n->gone_at && w->now - n->gone_at < 3 * MS_MS)
		ms_fail(w, "node %u is up again after %.3f ms, which no node is", n->id,
			(double)(w->now - n->gone_at) / 1e6);
	n->mem = urn_mem_create(4096, 64);
	n->memx = urn_memx_create(&x);
	n->regs = urn_msg_regs_create(0, 0, sim_rng_next(&w->rng));
	n->am = w->load->am ? urn_am_create(0, sim_rng_next(&w->rng), true) : NULL;
	if (!n->mem || !n->memx || !n->regs || (w->load->am && !n->am))
		ms_fail(w, "no memory");
	if (n->am)
		urn_am_tagged_from(n->am, w->plan.am.tagged_from);
	make_config(n, &c);
	n->tp = urn_tp_create(&c, w->now);
	if (!n->tp)
		ms_fail(w, "no transport");
	if (w->now == w->start) /* the first nodes are up for long, or for a while */
		n->tp->flows->born -= ms_one_in(w, w->plan.young_in) ? ms_upto(w, URN_FLOW_YOUNG_NS)
								     : 2 * URN_FLOW_YOUNG_NS;
	if (w->plan.flows)
		n->tp->flows->owner_max = w->plan.flows;
	memset(n->share, 0, sizeof(n->share));
	n->neigh_at = w->plan.most_p99 > 0 ? 0 : w->now + ms_upto(w, 3 * MS_MS);
	n->up_at = MS_NEVER;
	n->gone_at = n->gone_at ? w->now : 0;
	n->wake = w->now;
	w->load->up(n);
	ms_trace(w, "node %u is up", n->id);
}

void
ms_node_stop(struct ms_node *n)
{
	n->w->load->down(n);
	if (n->tp) {
		if (urn_msg_count(n->regs) || (n->am && urn_am_count(n->am)))
			ms_fail(n->w, "node %u: register sets or endpoints are left", n->id);
		n->w->stats.rests += n->tp->c.v[URN_C_FLOW_RESTED];
		urn_tp_destroy(n->tp);
		urn_msg_regs_destroy(n->regs);
		urn_am_destroy(n->am);
		urn_memx_destroy(n->memx);
		urn_mem_destroy(n->mem);
	}
	while (n->nic_n)
		rte_pktmbuf_free(n->nic[--n->nic_n]);
	while (n->rx_n)
		rte_pktmbuf_free(n->rx[--n->rx_n]);
	n->tp = NULL;
	n->dying = false;
	n->gone_at = n->w->now;
	n->wake = MS_NEVER;
}

void
ms_node_kill(struct ms_node *n, bool hold)
{
	struct ms_world *w = n->w;

	ms_trace(w, "node %u goes down%s", n->id, hold ? ", and frames to it wait" : "");
	ms_node_stop(n);
	w->stats.restarts++;
	n->up_at = w->now + 5 * MS_MS + ms_upto(w, ms_one_in(w, 8) ? 6 * MS_S : 200 * MS_MS);
	if (!hold)
		return;
	n->held_until = n->up_at + ms_upto(w, ms_one_in(w, 4) ? 2 * MS_S : 100 * MS_MS);
	n->held_room = ms_one_in(w, 2) ? MS_HELD : 1 + (unsigned int)ms_upto(w, 8);
	n->held_lossy = ms_one_in(w, 2);
}

void
ms_node_rx(struct ms_node *n, struct rte_mbuf *m)
{
	if (n->rx_n == MS_RX)
		ms_fail(n->w, "node %u does not keep up with its wire", n->id);
	n->rx[n->rx_n++] = m;
	ms_node_wake(n, n->w->now);
}

/* Take the frames that came. returns: true when there were some */
static bool
receive(struct ms_node *n)
{
	bool some = n->rx_n != 0;

	for (unsigned int i = 0; i < n->rx_n; i += URN_TP_BURST)
		urn_tp_rx(n->tp, &n->rx[i], RTE_MIN(n->rx_n - i, (unsigned int)URN_TP_BURST),
			  false);
	n->rx_n = 0;
	return some;
}

/* Ring the doorbells that programs rang. */
static void
doorbells(struct ms_node *n)
{
	unsigned int taken = 0;

	for (unsigned int i = 0; i < n->w->plan.sets && taken < RUNG; i++) {
		unsigned int at = n->hand++ % n->w->plan.sets;
		struct urn_source *src;

		if (!n->rung[at])
			continue;
		taken++;
		n->rung[at] = 0;
		src = n->w->load->source(n, at);
		if (src)
			urn_source_rung(n->tp, src);
	}
}

/* Write an event. The pipe is full now and then. */
static bool
tell(void *ctx, int fd, const struct urn_abi_event *ev)
{
	struct ms_node *n = ctx;

	(void)fd;
	if (ms_one_in(n->w, 8))
		return false;
	n->w->load->woken(n, ev->cookie);
	return true;
}

/* Hand frames to the NIC, as many as there is room for. */
static void
to_nic(struct ms_node *n)
{
	struct urn_tp *tp = n->tp;
	unsigned int k = RTE_MIN(tp->tx_n, (unsigned int)MS_NIC - n->nic_n);

	memcpy(&n->nic[n->nic_n], tp->tx, k * sizeof(tp->tx[0]));
	n->nic_n += k;
	tp->tx_n -= k;
	memmove(tp->tx, &tp->tx[k], tp->tx_n * sizeof(tp->tx[0]));
	if (tp->tx_n)
		ms_node_wake(n, RTE_MAX(n->w->now + 500, RTE_MAX(n->nic_free, n->paused)));
}

static void
plan_turn(struct ms_node *n)
{
	const struct urn_tp *tp = n->tp;

	if (tp->sched.head || tp->loop_n || tp->dry)
		ms_node_wake(n, n->w->now + 500);
	if (*urn_msg_untold_at(n->regs))
		ms_node_wake(n, n->w->now + 100 * MS_US);
	ms_node_wake(n, urn_wheel_next(&tp->wheel));
	for (unsigned int i = 0; i < n->w->plan.sets; i++)
		if (n->rung[i])
			ms_node_wake(n, n->w->now + 500);
}

void
ms_node_turn(struct ms_node *n)
{
	struct urn_tp *tp = n->tp;
	struct ms_world *w = n->w;

	n->wake = MS_NEVER;
	urn_tp_turn(tp, w->now);
	if (receive(n) && n->dying) {
		ms_node_kill(n, true);
		return;
	}
	if (tp->flows->wholes >= MS_CROWD)
		n->crowded_at = w->now;
	doorbells(n);
	if (tp->sched.head)
		urn_tp_tx(tp);
	to_nic(n);
	while (tp->other_n)
		rte_pktmbuf_free(tp->other[--tp->other_n]);
	if (*urn_msg_untold_at(n->regs))
		urn_msg_tell(n->regs, w->now, tell, n);
	w->load->step(n);
	plan_turn(n);
}
