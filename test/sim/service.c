/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A responder that is slow: it executes one request after the other, in the order in which
 * they come, and takes a time for each packet of a request, and of the response to a READ. A
 * repeated READ takes the whole time once more. Packets for the node's own requests arrive
 * at once, and so do all packets of other nodes.
 *
 *   wire ─► queue, so many ns a packet ─► transport
 */
#include "sim.h"

enum { BTH = 12, OPCODES_OF_RC = 0x20 };

/* Number of bytes that a READ asks for. */
static uint32_t
read_bytes(const uint8_t *bth)
{
	uint32_t v;

	memcpy(&v, bth + BTH + 12, 4); /* RETH: address, key, length */
	return rte_be_to_cpu_32(v);
}

/* Number of packets whose time a request takes; 0: no request. */
static uint32_t
cost(const struct sim *s, const struct rte_mbuf *m)
{
	const uint8_t *f = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t bth = f[12] == 0x86 ? 62 : 42, mtu_shift = s->plan.mtu_code + 7u;

	if (m->data_len < bth + BTH || f[bth] >= OPCODES_OF_RC)
		return 0;
	switch (f[bth]) {
	case 0x0c: /* READ; a corrupted frame may be shorter */
		if (m->data_len < bth + BTH + 16)
			return 1;
		return (read_bytes(f + bth) >> mtu_shift) % (1 << 12) + 1;
	case 0x0d: case 0x0e: case 0x0f: case 0x10: case 0x11: case 0x12: /* responses, ACK */
		return 0;
	default:
		return 1;
	}
}

bool
sim_service_take(struct sim_node *n, struct rte_mbuf *m)
{
	struct sim *s = n->s;
	uint64_t free_at = s->now;
	uint32_t packets;

	if (!sim_on(s, SIM_SERVICE) || n->id != s->seed % s->plan.nodes)
		return false;
	packets = cost(s, m);
	if (packets == 0 || n->slow_in - n->slow_out == SIM_RX)
		return false;
	if (n->slow_in != n->slow_out && n->slow[(n->slow_in - 1) % SIM_RX].at > free_at)
		free_at = n->slow[(n->slow_in - 1) % SIM_RX].at;
	n->slow[n->slow_in % SIM_RX].m = m;
	n->slow[n->slow_in % SIM_RX].at = free_at + packets * s->plan.service_ns;
	n->slow_in++;
	s->stats.fired[SIM_SERVICE]++;
	return true;
}

uint64_t
sim_service_next(const struct sim_node *n)
{
	return n->slow_in == n->slow_out ? UINT64_MAX : n->slow[n->slow_out % SIM_RX].at;
}

struct rte_mbuf *
sim_service_pop(struct sim_node *n)
{
	return sim_service_next(n) <= n->s->now ? n->slow[n->slow_out++ % SIM_RX].m : NULL;
}
