/* SPDX-License-Identifier: BSD-3-Clause */
/* The wire between the two nodes: a bad one loses, duplicates and delays frames, from a seed. */
#include "rig_priv.h"

uint64_t
rig_rand(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static bool
is_udp(struct rte_mbuf *m)
{
	const uint8_t *f = rte_pktmbuf_mtod(m, const uint8_t *);

	return m->data_len > 42 && ((f[12] == 0x08 && f[13] == 0 && f[23] == 17) ||
				    (f[12] == 0x86 && f[13] == 0xdd && f[20] == 17));
}

static void
wire_send(struct rig *r, int to, uint16_t queue, struct rte_mbuf *m)
{
	if (urn_port_tx(r->wire[to], queue, &m, 1) != 1)
		rte_pktmbuf_free(m); /* like a lossy wire */
}

/* Traffic class << 8 | hop limit of a frame that is_udp(). */
static uint16_t
way_of(struct rte_mbuf *m)
{
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, 14);
	bool v6 = ip[0] >> 4 == 6;
	unsigned int class = v6 ? (ip[0] << 4 | ip[1] >> 4) & 0xffu : ip[1];

	return (uint16_t)(class << 8 | ip[v6 ? 7 : 8]);
}

static void
wire_pass(struct rig *r, int to, uint16_t queue, struct rte_mbuf *m)
{
	uint32_t fate = (uint32_t)(rig_rand(&r->wire_rng) % 1000);
	struct rte_mbuf *copy;

	if (!is_udp(m)) {
		wire_send(r, to, queue, m);
		return;
	}
	r->way[to] = way_of(m);
	if (fate < r->cfg.lose) {
		rte_pktmbuf_free(m);
		return;
	}
	fate -= r->cfg.lose;
	if (fate < r->cfg.twice) {
		copy = rte_pktmbuf_copy(m, r->wire[to]->pool, 0, UINT32_MAX);
		if (copy)
			wire_send(r, to, queue, copy);
	} else if (fate - r->cfg.twice < r->cfg.late) {
		struct rig_late *h = &r->held[rig_rand(&r->wire_rng) % RIG_LATE];

		if (!h->m) {
			*h = (struct rig_late){m, 1 + (uint32_t)(rig_rand(&r->wire_rng) % 20),
					       (uint16_t)to, queue};
			return;
		}
	}
	wire_send(r, to, queue, m);
}

void
rig_wire_turn(struct rig *r)
{
	struct rte_mbuf *m[32];

	for (int i = 0; i < RIG_LATE; i++) {
		struct rig_late *h = &r->held[i];

		if (h->m && --h->turns == 0) {
			wire_send(r, h->to, h->queue, h->m);
			h->m = NULL;
		}
	}
	for (int i = 0; i < 2; i++)
		for (uint16_t q = 0; q < r->wire[i]->caps.queues; q++) {
			unsigned int n = urn_port_rx(r->wire[i], q, m, 32);

			for (unsigned int j = 0; j < n; j++)
				wire_pass(r, !i, q, m[j]);
		}
}

/* Frames under way lie in buffers of one node and on the rings of the other, and must not outlive those. */
void
rig_wire_drain(struct rig *r)
{
	struct urn_port *port[4] = {r->port[0], r->port[1], r->wire[0], r->wire[1]};
	struct rte_mbuf *m[32];

	for (int i = 0; i < 4; i++) {
		for (uint16_t q = 0; port[i] && q < port[i]->caps.queues; q++) {
			unsigned int n;

			while ((n = urn_port_rx(port[i], q, m, 32)) > 0)
				rte_pktmbuf_free_bulk(m, n);
		}
	}
}
