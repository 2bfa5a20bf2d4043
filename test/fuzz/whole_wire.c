/* SPDX-License-Identifier: BSD-3-Clause */
/* The dataplane's turns, and the wire of its adapter: the nodes on it, and their answers. */
#include "whole.h"

#include "common/test_link_mad.h"
#include "common/test_sent.h"
#include "unit/net/l3_frames.h"
#include "wire/cm.h"
#include "wire/link.h"

#include <string.h>

enum { BURST = 32 };

/* ---- time; the linker puts this in front (--wrap) */

static uint64_t clock_ns = 1000000000;

uint64_t __wrap_urn_engine_now(const struct urn_engine *e);

uint64_t
__wrap_urn_engine_now(const struct urn_engine *e)
{
	(void)e;
	return clock_ns;
}

uint64_t
whole_now(void)
{
	return clock_ns;
}

/* ---- frames to the adapter */

static void
give(struct whole *w, struct rte_mbuf *m)
{
	const struct urn_port *wire = w->cables->wire[0];
	bool second = w->wire & WHOLE_BOTH ? w->put & 1 : w->wire & WHOLE_SECOND;
	uint16_t queue = second && wire->caps.queues > 1;

	w->put++;
	if (urn_port_tx(wire, queue, &m, 1) != 1) {
		whole_turn(w, 100, 3);
		if (urn_port_tx(wire, queue, &m, 1) != 1) {
			rte_pktmbuf_free(m); /* the link is down */
			return;
		}
	}
	w->given++;
}

static struct rte_mbuf *
buffer(const struct whole *w, const uint8_t *bytes, uint32_t len)
{
	static const uint8_t old[] = {0x2e, 0xff, 0x00, 0xa5};
	struct rte_mbuf *m = rte_pktmbuf_alloc(w->cables->wire[0]->pool);

	fuzz_check(m);
	/* The private area's old contents must not matter. */
	memset((uint8_t *)m->buf_addr - URN_PORT_PRIV, old[w->put % sizeof(old)], URN_PORT_PRIV);
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), bytes, len);
	return m;
}

void
whole_put(struct whole *w, const uint8_t *bytes, uint32_t len, bool split)
{
	uint32_t room = w->cables->wire[0]->room - RTE_PKTMBUF_HEADROOM;
	uint32_t half = split || len > room ? len / 2 : len;
	struct rte_mbuf *m = buffer(w, bytes, half);

	if (half < len)
		fuzz_check(rte_pktmbuf_chain(m, buffer(w, bytes + half, len - half)) == 0);
	give(w, m);
}

/* ---- frames from it */

/* The node that is asked for answers. */
static void
answer_who_is(struct whole *w, const uint8_t *f, uint32_t len)
{
	uint8_t out[L3_ROOM];
	uint32_t n = 0;

	if (len >= 42 && f[12] == 0x08 && f[13] == 0x06 && f[21] == 1) {
		if (memcmp(f + 38, peer_v4 + 12, 4) == 0)
			n = l3_arp(out, 2, peer_mac, peer_v4, us_v4);
	} else if (len >= 78 && f[12] == 0x86 && f[20] == 58 && f[54] == 135) {
		if (memcmp(f + 62, peer_ll, 16) == 0)
			n = l3_advert(out, f + 22, peer_ll, peer_mac, 0x60);
	}
	if (n)
		whole_put(w, out, n, false);
}

static void
answer_link(struct whole *w, const uint8_t *f)
{
	struct link_spec s;
	uint8_t out[LINK_FRAME_ROOM];
	uint32_t len;

	w->link_tid = link_tid(f);
	s = link_good(1, w->link_tid);
	s.features = w->cfg.selective ? URN_LINK_F_ALL : 0;
	len = link_frame(out, &s, w->peer.mac, w->peer.gid, w->self.mac, w->self.gid);
	frame_seal(out, len);
	if (!(w->wire & WHOLE_DEAF))
		whole_put(w, out, len, false);
}

static void
see_mad(struct whole *w, struct rte_mbuf *m)
{
	const uint8_t *mad;
	struct urn_cm_msg msg;
	uint32_t sqpn;

	fuzz_check(urn_mad_find(m, &mad, &sqpn) == 0);
	if (((const struct urn_mad_hdr *)mad)->mgmt_class != URN_MAD_CLASS_CM) {
		answer_link(w, rte_pktmbuf_mtod(m, const uint8_t *));
		return;
	}
	fuzz_check(urn_cm_read(mad, sqpn, &msg) == URN_C_CM_RX);
	w->cm[w->cm_n % WHOLE_CM_SEEN].id = msg.local_id;
	w->cm[w->cm_n++ % WHOLE_CM_SEEN].tid = (uint32_t)msg.tid;
}

/* A frame that the adapter sends is valid, and from its own address. */
static void
see(struct whole *w, struct rte_mbuf *m)
{
	const uint8_t *f = rte_pktmbuf_mtod(m, const uint8_t *);
	enum urn_frame_kind kind = urn_wire_parse(m);

	fuzz_check(m->nb_segs == 1 && m->pkt_len == m->data_len);
	fuzz_check(memcmp(f + 6, us_mac, 6) == 0);
	test_sent(m);
	switch (kind) {
	case URN_FRAME_ROCE:
		fuzz_check(urn_wire_icrc_ok(m));
		if (urn_pkt(m)->dqpn == URN_QPN_GSI && !w->open_wire)
			see_mad(w, m);
		break;
	case URN_FRAME_ARP:
	case URN_FRAME_ICMP:
	case URN_FRAME_ICMP6:
		fuzz_check(l3_sums_ok(f, m->data_len));
		if (!(w->wire & WHOLE_DEAF))
			answer_who_is(w, f, m->data_len);
		break;
	default:
		fuzz_fail("sent a frame of kind %d", (int)kind);
	}
}

/* Pass frames to the other adapter, whatever MAC the sender has for it: the sender's table may be false. */
static void
pass(struct whole *w, unsigned int to, struct rte_mbuf *m)
{
	const struct urn_port *wire = w->cables->wire[to];
	uint8_t *f = rte_pktmbuf_mtod(m, uint8_t *);

	if (!(f[0] & 1))
		memcpy(f, w->cables->port[to]->mac, 6);
	if (urn_port_tx(wire, 0, &m, 1) != 1)
		rte_pktmbuf_free(m);
}

static void
take_out(struct whole *w, unsigned int from)
{
	const struct urn_port *wire = w->cables->wire[from];
	struct rte_mbuf *m[BURST];

	for (uint16_t q = 0; q < wire->caps.queues; q++) {
		unsigned int n = urn_port_rx(wire, q, m, BURST);

		for (unsigned int i = 0; i < n; i++) {
			if (from == 0)
				see(w, m[i]);
			if (w->open_wire)
				pass(w, !from, m[i]);
			else
				rte_pktmbuf_free(m[i]);
		}
	}
}

void
whole_turn(struct whole *w, uint64_t ns, unsigned int engines)
{
	clock_ns += ns;
	for (unsigned int i = 0; i < WHOLE_ENGINES; i++)
		if (engines >> i & 1)
			urn_engine_turn(urn_dp_engine(w->dp, i), clock_ns);
	for (unsigned int i = 0; i < 2; i++)
		if (!(w->wire & WHOLE_HELD))
			take_out(w, i);
	if (w->ctx)
		whole_poll(w);
}

void
whole_set_wire(struct whole *w, uint8_t how)
{
	struct urn_err err = {""};
	bool down = w->wire & WHOLE_DOWN, wanted = how & WHOLE_DOWN;

	w->wire = how;
	w->cut |= wanted;
	if (down == wanted)
		return;
	if ((wanted ? urn_port_stop : urn_port_start)(w->cables->wire[0], &err) != 0)
		fuzz_fail("the wire: %s", err.text);
}

void
whole_drain(struct whole_cables *c)
{
	struct urn_port *port[4] = {c->port[0], c->wire[0], c->port[1], c->wire[1]};
	struct rte_mbuf *m[BURST];

	for (int i = 0; i < 4; i++) {
		for (uint16_t q = 0; q < port[i]->caps.queues; q++) {
			unsigned int n;

			while ((n = urn_port_rx(port[i], q, m, BURST)) > 0)
				rte_pktmbuf_free_bulk(m, n);
		}
	}
}
