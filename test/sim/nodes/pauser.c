/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hostile pauser: the last node's port sends frames of flow control to its switch, and means to
 * stop others with them. The node itself sends and receives like any other.
 */
#include "nodes.h"

#include "switch/pfc.h"

enum {
	LONGEST = 4, /* messages that a malformed one may come with */
	GAP_US = 2,  /* us for which a pauser below the watchdog lets frames go: one or two */
};

struct ms_node *
ms_pauser(struct ms_world *w)
{
	return w->plan.pauser ? &w->node[w->plan.nodes - 1] : NULL;
}

/* Give the switch a frame that came from the pauser. */
static void
put(struct ms_node *n, struct rte_mbuf *m)
{
	n->w->stats.pfc++;
	urn_switch_input(n->sw, n->port, &m, 1, n->w->now);
}

static struct rte_mbuf *
message(struct ms_node *n, uint8_t priorities, uint16_t quanta)
{
	struct urn_pfc pfc = {.enable = priorities};
	struct rte_mbuf *m = rte_pktmbuf_alloc(n->w->pool);

	for (unsigned int i = 0; i < URN_PFC_PRIORITIES; i++)
		pfc.quanta[i] = quanta;
	if (!m || urn_pfc_write(m, n->mac, &pfc) != 0)
		ms_fail(n->w, "no packet for flow control");
	return m;
}

static void
say(struct ms_node *n, uint8_t priorities, uint16_t quanta)
{
	put(n, message(n, priorities, quanta));
}

/* Send messages with some bytes changed, or cut off. */
static void
say_broken(struct ms_node *n)
{
	struct ms_world *w = n->w;

	for (uint64_t k = 1 + ms_upto(w, LONGEST); k; k--) {
		struct rte_mbuf *m = message(n, 1, URN_PFC_LONGEST);
		uint8_t *f = rte_pktmbuf_mtod(m, uint8_t *);

		for (uint64_t i = ms_upto(w, 4); i; i--)
			f[ms_upto(w, 34)] = (uint8_t)ms_upto(w, 256);
		if (ms_one_in(w, 3))
			rte_pktmbuf_trim(m, (uint16_t)ms_upto(w, m->data_len - 13));
		put(n, m);
	}
}

/* ns until the watchdog of a switch looks, less a little. */
static uint64_t
below(const struct ms_world *w)
{
	return MS_WATCHDOG - 20 * MS_US - (w->now & 0xfff);
}

/* Send what is due. returns: ns until the next */
static uint64_t
act(struct ms_node *n)
{
	struct ms_world *w = n->w;

	switch (w->plan.pauser) {
	case MS_PAUSER_BELOW:
		w->pauser_off = !w->pauser_off;
		say(n, 1, w->pauser_off ? 0 : URN_PFC_LONGEST);
		return w->pauser_off ? GAP_US * MS_US : below(w);
	case MS_PAUSER_ALL:
		say(n, 0xff, URN_PFC_LONGEST);
		return 2 * MS_MS;
	case MS_PAUSER_BROKEN:
		say_broken(n);
		return 1 + ms_upto(w, 500 * MS_US);
	case MS_PAUSER_STORM:
		w->pauser_off = !w->pauser_off;
		say(n, (uint8_t)(1 | ms_upto(w, 256)), w->pauser_off ? 0 : URN_PFC_LONGEST);
		return 1 + ms_upto(w, 100 * MS_US);
	default:
		say(n, 1, URN_PFC_LONGEST);
		return 2 * MS_MS;
	}
}

void
ms_pauser_step(struct ms_world *w)
{
	if (!w->plan.pauser || w->idle || w->now < w->pauser_at)
		return;
	w->pauser_at = w->now + act(ms_pauser(w));
}

uint64_t
ms_pauser_next(const struct ms_world *w)
{
	return w->plan.pauser && !w->idle ? w->pauser_at : MS_NEVER;
}
