/* SPDX-License-Identifier: BSD-3-Clause */
/* Received frames: parse, check, find the QP, hand to its service. */
#include "transport/flow_priv.h"
#include "transport/frame.h"
#include "transport/mcast.h"
#include "transport/requester.h"
#include "transport/sched.h"
#include "transport/service.h"
#include "transport/unsealed.h"

#include "stage.h"
#include "wire/vlan.h"

/* True when the frame is meant for this adapter. */
static inline bool
addressed(const struct urn_tp *tp, struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	const uint8_t *l3 = frame + urn_pkt(m)->l3_off;

	if (unlikely(memcmp(frame, tp->cfg.mac, 6) != 0))
		return false;
	if (likely(!urn_pkt(m)->ipv6))
		return tp->has_ipv4 && memcmp(l3 + 16, tp->ipv4, 4) == 0;
	for (unsigned int i = 0; i < tp->ipv6_n; i++)
		if (memcmp(l3 + 24, tp->ipv6[i], 16) == 0)
			return true;
	return false;
}

/* True when the gate of a protection domain is closed. */
static bool
is_shut(const struct urn_tp *tp, uint32_t pd)
{
	return (pd <= tp->gate->pds && tp->gate->pd[pd]) ||
	       urn_memx_gated(tp->cfg.memx, tp->cfg.mem, pd);
}

__attribute__((cold)) bool
urn_tp_is_gated(const struct urn_tp *tp, const struct urn_qp *qp)
{
	/* The gate of the QP's own domain, or that of its shared receive queue. */
	return is_shut(tp, qp->pd) || (qp->srq && is_shut(tp, qp->srq->pd));
}

/* Hand a packet to the tables of the adapter, which the engine has. */
static void
give_other(struct urn_tp *tp, struct rte_mbuf *m)
{
	if (tp->other_n < URN_TP_OUT)
		tp->other[tp->other_n++] = m;
	else
		urn_tp_drop(tp, m, URN_C_DROP_OTHER);
}

/* Give a packet to the engine that its destination names. */
static void
hand_over(struct urn_tp *tp, struct rte_mbuf *m)
{
	if (tp->handover_n < URN_TP_OUT)
		tp->handover[tp->handover_n++] = m;
	else
		urn_tp_drop(tp, m, URN_C_DROP_HANDOVER);
}

/* A packet of a flow: to this engine, or to the node's first engine, whichever that is. */
static void
take_flow(struct urn_tp *tp, struct rte_mbuf *m)
{
	struct urn_pkt *p = urn_pkt(m);

	if ((p->dqpn & URN_FLOW_SLOT) == URN_FLOW_SLOT_FIRST && tp->cfg.first_engine != tp->cfg.engine) {
		p->dqpn = tp->cfg.first_engine << URN_FLOW_ENGINE_SHIFT | URN_FLOW_SLOT_FIRST;
		hand_over(tp, m);
		return;
	}
	urn_flow_accept(tp, m);
}

/* No QP has that number: it may be QP1, which every adapter has and no program does. */
static __attribute__((cold, noinline)) void
no_qp(struct urn_tp *tp, struct rte_mbuf *m)
{
	if (urn_pkt(m)->dqpn == URN_QPN_GSI && tp->cfg.gsi)
		give_other(tp, m);
	else
		urn_tp_drop(tp, m, URN_C_DROP_NO_QP);
}

/* A packet whose opcode is not of the QP's service: a congestion notification, or none of ours. */
static __attribute__((cold, noinline)) void
other_opcode(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	const struct urn_service *s = urn_qp_service(tp, qp);

	if ((urn_pkt(m)->op->flags & URN_OPF_CNP) && s->notified)
		s->notified(tp, qp, m);
	else
		urn_tp_drop(tp, m, URN_C_DROP_QP_TYPE);
}

static inline void
deliver(struct urn_tp *tp, struct rte_mbuf *m)
{
	struct urn_qp *qp = urn_pkt(m)->qp;
	const struct urn_service *svc;

	if (unlikely(!qp)) {
		if (urn_pkt(m)->op->flags & URN_OPF_FLOW)
			take_flow(tp, m);
		else
			no_qp(tp, m);
		return;
	}
	if (unlikely(qp->state < URN_QPS_RTR || qp->state == URN_QPS_ERR ||
		     (qp->flags & (URN_QPF_DYING | URN_QPF_REFUSED)))) {
		urn_tp_drop(tp, m, URN_C_DROP_QP_STATE);
		return;
	}
	svc = urn_qp_service(tp, qp);
	if (unlikely(!(urn_pkt(m)->op->flags & svc->opcodes)))
		other_opcode(tp, qp, m);
	else
		svc->accept(tp, qp, m);
	/* A packet and the kept packets behind it may need much memory. */
	if (tp->ops_bytes >= URN_TP_OPS_BYTES || unlikely(urn_tp_burst_full(tp)))
		urn_tp_execute(tp);
}

/* Handle a well-formed RoCEv2 frame; its QP was looked up, if it is ours. */
static inline void
demultiplex(struct urn_tp *tp, struct rte_mbuf *m, bool checked)
{
	struct urn_pkt *p = urn_pkt(m);

	if (unlikely(!addressed(tp, m)))
		urn_mcast_rx(tp, m, checked);
	else if (unlikely(!checked && !urn_tp_icrc_ok(tp, m)))
		urn_tp_drop(tp, m, URN_C_DROP_ICRC);
	else if (unlikely(!urn_pkey_match(p->pkey, URN_PKEY_DEFAULT)))
		urn_tp_drop(tp, m, URN_C_DROP_PKEY);
	else if (likely(urn_qpn_engine(p->dqpn) == tp->cfg.engine))
		deliver(tp, m);
	else if (p->dqpn == URN_QPN_GSI) /* any engine takes it */
		no_qp(tp, m);
	else if ((p->op->flags & URN_OPF_FLOW) && (p->dqpn & URN_FLOW_SLOT) == URN_FLOW_SLOT_FIRST)
		take_flow(tp, m);
	else
		hand_over(tp, m);
}

/* Deal with a frame that is no RoCEv2. */
static void
take_kind(struct urn_tp *tp, struct rte_mbuf *m, enum urn_frame_kind kind)
{
	switch (kind) {
	case URN_FRAME_ARP:
	case URN_FRAME_ICMP:
	case URN_FRAME_ICMP6:
		give_other(tp, m);
		break;
	case URN_FRAME_ROCE:
	case URN_FRAME_OTHER:
	case URN_FRAME_BAD:
		urn_tp_drop(tp, m, urn_pkt(m)->drop);
		break;
	}
}

/*
 * Deal with a frame that is not RoCEv2 as it stands. A tag with a priority alone is taken off (IEEE
 * 802.1Q, 6.9.1): such a frame is in no VLAN. returns: true when RoCEv2 was behind the tag
 */
static __attribute__((cold, noinline)) bool
take_rest(struct urn_tp *tp, struct rte_mbuf *m, enum urn_frame_kind kind)
{
	if (kind == URN_FRAME_OTHER && urn_vlan_has(m)) {
		if (urn_vlan_vid(m) != 0) {
			urn_tp_drop(tp, m, URN_C_DROP_VLAN);
			return false;
		}
		urn_vlan_pop(m);
		kind = urn_wire_parse(m);
		if (kind == URN_FRAME_ROCE)
			return true;
	}
	take_kind(tp, m, kind);
	return false;
}

/* Parse a frame. returns: true when it is RoCEv2; other frames are dealt with here */
static inline bool
take_roce(struct urn_tp *tp, struct rte_mbuf *m)
{
	enum urn_frame_kind kind;

	if (unlikely(m->nb_segs > 1) && rte_pktmbuf_linearize(m) != 0) {
		urn_tp_drop(tp, m, URN_C_DROP_LENGTH);
		return false;
	}
	kind = urn_wire_parse(m);
	return likely(kind == URN_FRAME_ROCE) || take_rest(tp, m, kind);
}

enum { AHEAD = 6 }; /* packets fetched into the cache before they are looked at */

/*
 * Fetch the header, the private area and the frame at once. The header tells where the frame
 * begins, but that is nearly always the place of a fresh packet.
 */
static inline void
prefetch_packet(struct rte_mbuf *m)
{
	rte_prefetch0(m);
	rte_prefetch0(urn_pkt(m));
	rte_prefetch0(urn_pkt_fresh(m));
	rte_prefetch0(urn_pkt_fresh(m) + 64);
}

/* Fetch what a short packet has beyond two lines: the ICRC is computed soon. For packets of flows, whose headers are longer. */
static inline void
prefetch_rest(struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);

	for (uint32_t at = 128; at < m->data_len && at < 256; at += 64)
		rte_prefetch0(frame + at);
}

/*
 * Parse a burst and look up the QPs, so that their cache lines arrive while others are parsed.
 * returns: number of RoCEv2 packets; they are in roce[]
 */
static inline unsigned int
parse_burst(struct urn_tp *tp, struct rte_mbuf **m, unsigned int n, bool checked,
	    struct rte_mbuf **roce)
{
	struct urn_qp *last = NULL;
	unsigned int count = 0;
	uint64_t bytes = 0;

	for (unsigned int i = 0; i < n; i++) {
		struct urn_qp *qp;

		if (i + AHEAD < n)
			prefetch_packet(m[i + AHEAD]);
		bytes += m[i]->pkt_len;
		if (!take_roce(tp, m[i]))
			continue;
		qp = urn_tp_qp(tp, urn_pkt(m[i])->dqpn);
		urn_pkt(m[i])->qp = qp;
		roce[count++] = m[i];
		if (qp && qp != last)
			urn_qp_prefetch(qp);
		else if (!qp)
			prefetch_rest(m[i]);
		last = qp;
	}
	/* Each packet counts once: not again when it is handed over, and not when it never was at a port. */
	if (likely(!checked)) {
		URN_COUNT_N(tp, RX_PACKETS, n);
		URN_COUNT_N(tp, RX_BYTES, bytes);
		URN_COUNT_N(tp, RX_ROCE, count);
	}
	return count;
}

URN_FAST void
urn_tp_rx(struct urn_tp *tp, struct rte_mbuf **m, unsigned int n, bool checked)
{
	struct rte_mbuf *roce[URN_TP_BURST];
	unsigned int count;

	URN_STAGE(PARSE);
	for (unsigned int i = 0; i < n && i < AHEAD; i++)
		prefetch_packet(m[i]);
	count = parse_burst(tp, m, n, checked, roce);
	URN_STAGE(RESPOND);
	for (unsigned int i = 0; i < count; i++)
		demultiplex(tp, roce[i], checked);
	urn_tp_execute(tp);
}
