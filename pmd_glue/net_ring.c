/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_ring: two ports of one process joined back to back. Queue i of one side
 * is joined to queue i of the other by a ring for each direction. The rings
 * have one producer and one consumer: each queue belongs to one lcore.
 *
 *        port 0                              port 1
 *   tx queue i ──────► ring[0][i] ──────► rx queue i
 *   rx queue i ◄────── ring[1][i] ◄────── tx queue i
 *
 * The PMD would report a link as up though the other side is stopped; here both
 * ports share one cable: the link is up when both sides are started.
 */
#include "pmd_glue/family.h"
#include "pmd_glue/pool.h"

#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ring.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CABLE_QUEUES_MAX 16

_Static_assert(CABLE_QUEUES_MAX <= RTE_PMD_RING_MAX_RX_RINGS &&
		       CABLE_QUEUES_MAX <= RTE_PMD_RING_MAX_TX_RINGS,
	       "more than the PMD takes");

struct cable {
	struct rte_ring *ring[2][CABLE_QUEUES_MAX]; /* index: sending side, queue */
	struct cable_end {
		struct cable *cable;
		struct urn_port *port; /* NULL: not open; owner: control threads */
		unsigned int side;     /* 0 or 1 */
		bool started;	   /* written by its side, read by the other: atomic */
		bool pulled;	   /* likewise: the side's cable is out */
		char name[RTE_ETH_NAME_MAX_LEN]; /* name of the ethdev port */
	} end[2];
	uint16_t queues;	     /* each way */
	unsigned int users;	     /* number of open ends, plus urn_port_open_ring_pair() */
	struct rte_mempool *pool[2]; /* pools of closed ends: the other end may still hold packets */
};

static unsigned int cables_made; /* makes names unique; control threads, atomic */

static void
cable_free(struct cable *c)
{
	unsigned int side, q;
	struct rte_mbuf *m;

	for (side = 0; side < 2; side++) {
		for (q = 0; q < c->queues; q++) {
			struct rte_ring *r = c->ring[side][q];

			while (r != NULL && rte_ring_sc_dequeue(r, (void **)&m) == 0)
				rte_pktmbuf_free(m);
			rte_ring_free(r);
		}
	}
	/* By now packets of other ports' pools have been given back, too. */
	urn_pool_free(c->pool[0]);
	urn_pool_free(c->pool[1]);
	free(c);
}

/* Entries of a side's rings: the larger of its own transmit and the other's receive descriptors. */
static unsigned int
cable_depth(const struct urn_port_config cfg[2], unsigned int side)
{
	unsigned int n = RTE_MAX(cfg[side].tx_desc, cfg[1 - side].rx_desc);

	return rte_align32pow2(n != 0 ? RTE_MAX(n, 32u) : urn_family_ring.desc);
}

static struct cable *
cable_make(const struct urn_port_config cfg[2], unsigned int id)
{
	char name[RTE_RING_NAMESIZE];
	struct cable *c = calloc(1, sizeof(*c));
	unsigned int side, q;

	if (c == NULL)
		return NULL;
	c->queues = RTE_MAX(1, RTE_MIN(RTE_MAX(cfg[0].queues, cfg[1].queues), CABLE_QUEUES_MAX));
	for (side = 0; side < 2; side++) {
		c->end[side].cable = c;
		c->end[side].side = side;
		for (q = 0; q < c->queues; q++) {
			snprintf(name, sizeof(name), "urnc%u_%u_%u", id, side, q);
			c->ring[side][q] =
				rte_ring_create(name, cable_depth(cfg, side), SOCKET_ID_ANY,
						RING_F_SP_ENQ | RING_F_SC_DEQ);
			if (c->ring[side][q] == NULL) {
				cable_free(c);
				return NULL;
			}
		}
	}
	return c;
}

/* Make the ethdev port of one side; "net_ring_" is put in front by the PMD. */
static int
end_attach(struct cable *c, unsigned int side, unsigned int id)
{
	char name[RTE_ETH_NAME_MAX_LEN - 16];

	snprintf(name, sizeof(name), "urnc%u_%u", id, side);
	snprintf(c->end[side].name, sizeof(c->end[side].name), "net_ring_%s", name);
	return rte_eth_from_rings(name, c->ring[1 - side], c->queues, c->ring[side], c->queues, 0);
}

static int
pair_check(const struct urn_port_config cfg[2], struct urn_err *err)
{
	unsigned int side;

	for (side = 0; side < 2; side++) {
		if (urn_port_check(&cfg[side], err) == 0)
			continue;
		urn_err_name(err, &cfg[side]);
		return -1;
	}
	return 0;
}

int
urn_port_open_ring_pair(const struct urn_port_config cfg[2], struct urn_port *out[2],
			struct urn_err *err)
{
	unsigned int id = __atomic_fetch_add(&cables_made, 1, __ATOMIC_RELAXED);
	struct urn_port_config side_cfg;
	unsigned int side;
	struct cable *c;

	out[0] = out[1] = NULL;
	if (pair_check(cfg, err) != 0)
		return -1;
	c = cable_make(cfg, id);
	if (c == NULL) {
		urn_err_set(err,
			    "ports %s and %s: no memory for the rings between them; give DPDK "
			    "more memory",
			    cfg[0].name, cfg[1].name);
		return -1;
	}
	/* This function holds the cable until both ends are open. */
	c->users = 1;
	for (side = 0; side < 2; side++) {
		if (end_attach(c, side, id) < 0) {
			urn_err_set(err, "port %s: cannot make a ring port: %s", cfg[side].name,
				    rte_strerror(rte_errno));
			goto fail;
		}
		side_cfg = cfg[side];
		side_cfg.queues = RTE_MIN(RTE_MAX(side_cfg.queues, 1), c->queues);
		snprintf(side_cfg.device, sizeof(side_cfg.device), "%s", c->end[side].name);
		c->users++;
		out[side] = urn_port_open_by(&side_cfg, &urn_family_ring, &c->end[side], err);
		if (out[side] == NULL)
			goto fail;
	}
	c->users--;
	c->end[0].port = out[0];
	c->end[1].port = out[1];
	/* The first port looked at the link before the second was there. */
	(void)urn_port_poll_link(out[0]);
	return 0;
fail:
	urn_port_close(out[0]);
	out[0] = NULL;
	if (--c->users == 0)
		cable_free(c);
	return -1;
}

struct urn_port *
urn_port_other_end(const struct urn_port *port)
{
	const struct cable_end *end = port->family == &urn_family_ring ? port->family_data : NULL;

	return end == NULL ? NULL : end->cable->end[1 - end->side].port;
}

static int
ring_starting(struct urn_port *port, struct urn_err *err)
{
	struct cable_end *end = port->family_data;
	struct rte_mbuf *m;
	unsigned int q;

	(void)err;
	if (end == NULL)
		return 0;
	/* Frames that were sent while the cable was out are lost, as on a real one. */
	for (q = 0; q < port->caps.queues; q++)
		while (rte_ring_sc_dequeue(end->cable->ring[1 - end->side][q], (void **)&m) == 0)
			rte_pktmbuf_free(m);
	return 0;
}

static int
ring_started(struct urn_port *port, struct urn_err *err)
{
	struct cable_end *end = port->family_data;

	(void)err;
	if (end != NULL)
		__atomic_store_n(&end->started, true, __ATOMIC_RELAXED);
	return 0;
}

static void
ring_stopping(struct urn_port *port)
{
	struct cable_end *end = port->family_data;

	if (end != NULL)
		__atomic_store_n(&end->started, false, __ATOMIC_RELAXED);
}

static bool
ring_link(struct urn_port *port)
{
	struct cable_end *end = port->family_data;

	if (end == NULL)
		return port->started;
	end = &end->cable->end[1 - end->side];
	return port->started && __atomic_load_n(&end->started, __ATOMIC_RELAXED) &&
	       !__atomic_load_n(&end->pulled, __ATOMIC_RELAXED);
}

/* Both sides share the cable: the other side sees it pulled, too. */
static void
ring_plugged(struct urn_port *port, bool in)
{
	struct cable_end *end = port->family_data;

	if (end != NULL)
		__atomic_store_n(&end->pulled, !in, __ATOMIC_RELAXED);
}

static void
ring_closed(struct urn_port *port)
{
	struct cable_end *end = port->family_data;

	if (end == NULL)
		return;
	port->family_data = NULL;
	end->port = NULL;
	end->cable->pool[end->side] = port->pool;
	port->pool = NULL;
	if (--end->cable->users == 0)
		cable_free(end->cable);
}

const struct urn_port_family urn_family_ring = {
	.prefix = "net_ring",
	.keys = " nodeaction ",
	.mtu_max = URN_PORT_MTU_MAX,
	.mtu_configure = true,
	.desc = 1024,
	.memory = true,
	.starting = ring_starting,
	.started = ring_started,
	.stopping = ring_stopping,
	.plugged = ring_plugged,
	.link = ring_link,
	.closed = ring_closed,
};
