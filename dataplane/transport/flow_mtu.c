/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows: the length of packets. An epoch begins with packets of the path MTU, which every way
 * carries. Acknowledgements tell the node's room, and the network between may have less. Therefore
 * a packet of that length without a message, a probe, goes first, when messages need long packets.
 *
 *   path MTU ── node told its room, long message waits ──► probe ── acknowledged ──► room of both
 *      ▲                                                     │
 *      └────── again after URN_FLOW_PROBE_AGAIN packets ◄────┘ lost: repeated as a short packet
 *
 * A longer packet carries no message before one of its length has come, so a network that drops
 * long frames costs packets, and no message. A network that ceases to carry them later ends the
 * epoch by its timeouts; the next epoch begins with packets of the path MTU.
 *
 * Designs that were rejected: the length as a promise of the node alone, because switches between
 * have an MTU of their own; messages as probes, because a packet that may have come can't be cut
 * anew, and would be repeated until the flow gives up.
 */
#include "transport/flow_priv.h"

void
urn_flow_mtu_renew(const struct urn_tp *tp, struct urn_flow *f)
{
	f->told = 0;
	f->probe_no = f->sent_no - URN_FLOW_PROBE_AGAIN;
	f->flags &= (uint16_t) ~(URN_FLOWF_PROBE | URN_FLOWF_PROBED);
	f->mtu = f->flags & URN_FLOWF_LOOP ? tp->cfg.flow_mtu : tp->cfg.mtu;
}

void
urn_flow_mtu_told(const struct urn_tp *tp, struct urn_flow *f, uint16_t mtu)
{
	if (mtu < URN_FLOW_MTU_MIN)
		return;
	f->told = RTE_MIN(mtu, tp->cfg.flow_mtu) & (uint16_t)~3;
	if (f->told < f->mtu)
		f->mtu = f->told;
	if (f->active_n) /* a long message began already, and others may wait behind */
		urn_flow_mtu_want(f);
}

void
urn_flow_mtu_want(struct urn_flow *f)
{
	if (likely(f->told <= f->mtu) || (f->flags & URN_FLOWF_PROBED) ||
	    f->sent_no - f->probe_no < URN_FLOW_PROBE_AGAIN)
		return;
	f->flags |= URN_FLOWF_PROBE;
}

void
urn_flow_mtu_fill(struct urn_flow *f, struct urn_work *w)
{
	f->flags = (uint16_t)((f->flags & ~URN_FLOWF_PROBE) | URN_FLOWF_PROBED);
	w->flow.part = 1;
	w->flow.segs = 1;
	w->flow.voids = 1;
	w->flow.probe = URN_FLOW_PROBE_TRIES + 1;
	w->flow.bytes = f->told - (uint32_t)sizeof(struct urn_flow_seg);
}

void
urn_flow_mtu_try(struct urn_work *w)
{
	if (w->flow.probe > 1)
		w->flow.probe--;
	else
		w->flow.bytes = 0;
}

void
urn_flow_mtu_probed(struct urn_tp *tp, struct urn_flow *f, const struct urn_work *w)
{
	f->flags &= (uint16_t)~URN_FLOWF_PROBED;
	if (w->flow.bytes) { /* none of its transmissions was short */
		URN_COUNT(tp, FLOW_LONG);
		f->mtu = f->told;
		return;
	}
	URN_COUNT(tp, FLOW_PROBES_LOST);
	f->probe_no = f->sent_no;
}

/* Bytes behind the flow header that packets of a flow are expected to have, when long messages
 * follow. */
static uint32_t
expect(const struct urn_tp *tp, const struct urn_flow *f)
{
	bool lost =
		!(f->flags & URN_FLOWF_PROBED) && f->sent_no - f->probe_no < URN_FLOW_PROBE_AGAIN;

	if (!f->told)
		return tp->cfg.flow_mtu;
	return lost ? f->mtu : f->told;
}

uint32_t
urn_flow_fits(struct urn_tp *tp, const uint8_t gid[16], uint64_t qid)
{
	int own = urn_flow_own_index(tp, gid);
	uint32_t mtu = tp->cfg.flow_mtu;
	const struct urn_flow *f = NULL;
	uint8_t key;

	if (likely(own >= 0)) {
		key = (uint8_t)(urn_flow_key_to(qid) | own << URN_FLOW_KEY_OWN_SHIFT);
		f = urn_flow_find(tp, gid, key);
	}
	if (f && (f->flags & URN_FLOWF_TX))
		mtu = expect(tp, f);
	return mtu - (uint32_t)sizeof(struct urn_flow_seg);
}
