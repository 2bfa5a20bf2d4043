/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows: acknowledgements and resets that came. */
#include "transport/flow_priv.h"

/* The flow that an answer belongs to. NULL: its epoch is over (counted) */
static struct urn_flow *
answered_flow(struct urn_tp *tp, struct rte_mbuf *m, const uint8_t gid[16], uint8_t own)
{
	const struct urn_flow_hdr *h = urn_pkt_ext(m, URN_EXT_FLOW);
	uint32_t top = rte_be_to_cpu_32(h->psn) >> 24;
	uint8_t key = (uint8_t)((top & URN_FLOW_KEY_VIA_FIRST ? URN_FLOW_KEY_TO_FIRST : top & URN_FLOW_KEY_ENGINE) | own);
	struct urn_flow *f = urn_flow_find(tp, gid, key);

	if (f && (f->flags & URN_FLOWF_TX) && f->tx_epoch == rte_be_to_cpu_64(h->epoch))
		return f;
	URN_COUNT(tp, FLOW_DROP_STALE);
	return NULL;
}

void
urn_flow_was_reset(struct urn_tp *tp, struct rte_mbuf *m, const uint8_t gid[16], uint8_t own)
{
	struct urn_flow *f = answered_flow(tp, m, gid, own);

	urn_tp_done(tp, m);
	if (!f || urn_psn_tx_idle(&f->tx))
		return;
	URN_COUNT(tp, FLOW_RESTARTED);
	urn_flow_fail(tp, f, URN_MSG_RESTARTED, false);
}

/* An acknowledgement, checked. */
struct ack {
	const struct urn_flow_refused *refused;
	const uint8_t *bitmap;
	uint32_t expected; /* all PSNs before it came */
	int32_t newest;	   /* number of the latest transmission that is acknowledged, less
			      urn_flow.sent_no; at most 0 */
	uint16_t room; /* bytes that the node takes behind the flow header; 0: it says nothing */
	uint8_t refused_n;
	uint8_t flags;
};

/* Read an acknowledgement. returns: true when it is sound */
static bool
read_ack(struct rte_mbuf *m, const struct urn_flow *f, struct ack *a)
{
	const struct urn_flow_hdr *h = urn_pkt_ext(m, URN_EXT_FLOW);
	const struct urn_flow_ack *w = (const struct urn_flow_ack *)urn_pkt_payload(m);
	uint32_t len = urn_pkt(m)->payload_len, need;

	if (len < sizeof(*w))
		return false;
	need = (uint32_t)(sizeof(*w) + w->refused * sizeof(struct urn_flow_refused));
	if (w->flags & URN_FLOW_ACK_ROOM)
		need += (uint32_t)sizeof(struct urn_flow_room);
	if (len < need)
		return false;
	a->room = 0;
	if (w->flags & URN_FLOW_ACK_ROOM)
		a->room = rte_be_to_cpu_16(
			((const struct urn_flow_room *)((const uint8_t *)w + need) - 1)->mtu);
	a->refused = (const struct urn_flow_refused *)(w + 1);
	a->refused_n = w->refused;
	a->flags = w->flags;
	a->bitmap = w->bitmap;
	a->expected = rte_be_to_cpu_32(h->psn) & URN_PSN_MASK;
	return urn_psn_diff(a->expected, f->tx.una) <= (int32_t)urn_psn_tx_out(&f->tx);
}

/* True when an acknowledgement says that a packet came. One that was overtaken says nothing about PSNs behind its window. */
static bool
came(const struct ack *a, uint32_t psn)
{
	int32_t ahead = urn_psn_diff(psn, a->expected);

	return ahead < 0 || ((a->flags & URN_FLOW_ACK_HOLES) && ahead < URN_FLOW_WINDOW &&
			     a->bitmap[psn % URN_FLOW_WINDOW / 8] >> (psn % 8) & 1);
}

/* Codes of the messages of a packet. NULL: none was refused */
static const uint8_t *
codes_of(const struct ack *a, uint32_t psn)
{
	for (unsigned int i = 0; i < a->refused_n; i++)
		if ((rte_be_to_cpu_32(a->refused[i].psn) & URN_PSN_MASK) == psn)
			return a->refused[i].code;
	return NULL;
}

/* A code from the wire: an error that a node may give; any other number counts as BUSY. */
static uint8_t
wire_code(struct urn_tp *tp, const uint8_t *codes, unsigned int i)
{
	uint8_t code = codes ? codes[i] : URN_MSG_DONE;

	if (likely(code == URN_MSG_DONE))
		return code;
	URN_COUNT(tp, FLOW_REFUSED_TX);
	return code > URN_MSG_DONE && code < URN_MSG_CODES ? code : URN_MSG_BUSY;
}

/* A part of a long message was answered. */
static void
part_acked(struct urn_tp *tp, struct urn_flow_msg *m, uint8_t code)
{
	m->out--;
	if (code != URN_MSG_DONE && !m->code)
		m->code = code;
	if (m->code && m->state == URN_FLOW_MSG_ACTIVE) { /* no further part is sent */
		urn_flow_unqueue(m);
		m->state = URN_FLOW_MSG_PARTS;
		urn_flow_strand_settle(tp, m->strand);
	}
	if (m->state == URN_FLOW_MSG_PARTS && !m->out)
		urn_flow_answer(tp, m, m->code ? m->code : URN_MSG_DONE);
}

/* A packet was acknowledged: answer its messages. */
static void
packet_acked(struct urn_tp *tp, struct urn_flow *f, struct urn_work *w, const struct ack *a)
{
	const uint8_t *codes = unlikely(a->refused_n) ? codes_of(a, w->first_psn) : NULL;
	struct urn_flow_msg *m = w->flow.msg, *next;

	w->flow.msg = NULL;
	urn_flow_strand_done(tp, f, w);
	if (unlikely(w->flow.probe))
		urn_flow_mtu_probed(tp, f, w);
	for (unsigned int i = 0; i < w->flow.segs && m; i++) {
		if (w->flow.voids & 1u << i)
			continue;
		if (w->flow.part) {
			part_acked(tp, m, wire_code(tp, codes, i));
			return;
		}
		next = m->next;
		urn_flow_answer(tp, m, wire_code(tp, codes, i));
		m = next;
	}
}

/* Look at the packets under way. returns: number of packets that this acknowledgement is the first for */
static uint32_t
settle(struct urn_tp *tp, struct urn_flow *f, struct ack *a)
{
	struct urn_work *w, *next;
	uint32_t n = 0;

	a->newest = INT32_MIN;
	for (w = f->tx.head; w; w = next) {
		next = w->next;
		if (!(a->flags & URN_FLOW_ACK_HOLES) && urn_psn_diff(w->first_psn, a->expected) >= 0)
			break;
		if (w->flow.state == URN_FLOW_ACKED || !came(a, w->first_psn))
			continue;
		if ((int32_t)(w->flow.sent_no - f->sent_no) > a->newest)
			a->newest = (int32_t)(w->flow.sent_no - f->sent_no);
		packet_acked(tp, f, w, a);
		n++;
	}
	while ((w = f->tx.head) && w->flow.state == URN_FLOW_ACKED) {
		urn_psn_tx_pop(&f->tx);
		urn_flow_work_put(tp, w);
	}
	return n;
}

/* Packets that were sent well before one that came are lost: their transmissions were overtaken by `distance` others. */
static void
judge(struct urn_tp *tp, struct urn_flow *f, const struct ack *a)
{
	struct urn_board_limits l;

	urn_peer_limits(urn_psn_peer(tp, &f->tx), &l);
	for (struct urn_work *w = f->tx.head; w; w = w->next)
		if (w->flow.state == URN_FLOW_OUT &&
		    a->newest - (int32_t)(w->flow.sent_no - f->sent_no) >= (int32_t)l.distance)
			urn_flow_lose(f, w);
}

/* Bytes a second that the flow sends now: the bytes in flight, in a round trip. */
static uint64_t
rate_now(const struct urn_tp *tp, const struct urn_flow *f)
{
	uint64_t srtt = urn_psn_peer(tp, &f->tx)->srtt, rate;

	if (!srtt)
		return tp->dcqcn.line;
	rate = (uint64_t)f->out * f->mtu * 1000000000ull / srtt;
	return rate < tp->dcqcn.least ? tp->dcqcn.least : rate;
}

/* una moves on to the oldest packet under way, and time goes on from here. */
static void
progress(struct urn_tp *tp, struct urn_flow *f)
{
	uint32_t una = f->tx.head ? f->tx.head->first_psn : f->tx.next;
	uint32_t n = (una - f->tx.una) & URN_PSN_MASK;

	if (unlikely(f->tx.early) && !(f->tx.flags & URN_TXF_HELD))
		urn_peer_repeats(urn_psn_peer(tp, &f->tx), tp->cfg.rto_floor, tp->now);
	f->tx.una = f->tx.acked = una;
	urn_psn_progress(&f->tx);
	urn_peer_timed(tp, &f->tx, n);
	f->tx_at = tp->now;
	if (urn_psn_tx_idle(&f->tx))
		urn_flow_age(tp, f);
	else
		urn_flow_arm(tp, f);
}

/* True when a node of this age, ms, was up before the epoch's first packet was sent. */
static bool
is_older(const struct urn_tp *tp, const struct urn_flow *f, uint32_t age)
{
	uint32_t spent = (uint32_t)(urn_flow_clock(tp) >> URN_FLOW_AGE_SHIFT) - f->tx_born;

	if (f->flags & URN_FLOWF_LOOP)
		return true;
	/* Time since then, rounded up: the answer may have been on its way for a part of that. */
	return ((spent + 1ull) << URN_FLOW_AGE_SHIFT) <= (age + (uint64_t)URN_FLOW_UP_MS) * 1000000;
}

/*
 * An acknowledgement tells another start than the flow knows. When none was known, this one counts
 * if all packets of the epoch went to this life of the node. m: a sound acknowledgement otherwise.
 * returns: false: drop the acknowledgement, because it is of another life than one before (counted)
 */
static __attribute__((cold, noinline)) bool
meet(struct urn_tp *tp, struct urn_flow *f, struct rte_mbuf *m)
{
	const struct urn_flow_hdr *h = urn_pkt_ext(m, URN_EXT_FLOW);
	const struct urn_flow_ack *a = (const struct urn_flow_ack *)urn_pkt_payload(m);
	uint32_t start = rte_be_to_cpu_32(h->start);

	if (f->tx_start || start < URN_FLOW_START_MIN) {
		tp->c.v[f->tx_start ? URN_C_FLOW_DROP_STALE : URN_C_FLOW_DROP_FORMAT]++;
		return false;
	}
	f->flags |= URN_FLOWF_UNSURE;
	if (is_older(tp, f, rte_be_to_cpu_16(a->age))) {
		f->tx_start = start;
		f->flags &= (uint16_t)~URN_FLOWF_UNSURE;
	}
	return true;
}

/*
 * The node kept nothing, and wants to see its start. If the sender is not sure that the node was up
 * before, the answer may have taken too long: a packet is repeated for another answer, and the node
 * resets the flow if it is younger than the packet says.
 */
static void
was_asked(struct urn_tp *tp, struct urn_flow *f)
{
	struct urn_work *w = f->tx.head;

	if (f->tx_start) {
		urn_flow_lose_all(tp, f);
	} else if (w && w->flow.state == URN_FLOW_OUT && !f->lost && f->asks < URN_FLOW_ASKS) {
		f->asks++;
		urn_flow_lose(f, w);
	}
}

URN_FAST void
urn_flow_acked(struct urn_tp *tp, struct rte_mbuf *m, const uint8_t gid[16], uint8_t own)
{
	struct urn_flow *f = answered_flow(tp, m, gid, own);
	const struct urn_flow_hdr *h = urn_pkt_ext(m, URN_EXT_FLOW);
	bool asked = false;
	struct ack a;

	URN_COUNT(tp, FLOW_ACKS_RX);
	if (f && unlikely(!read_ack(m, f, &a))) {
		URN_COUNT(tp, FLOW_DROP_FORMAT);
		f = NULL;
	}
	if (f && unlikely(f->tx_start != rte_be_to_cpu_32(h->start))) {
		asked = meet(tp, f, m);
		f = asked ? f : NULL;
	}
	if (!f) {
		urn_tp_done(tp, m);
		return;
	}
	if (unlikely(!f->told) && f->tx_start)
		urn_flow_mtu_told(tp, f, a.room);
	/* The rate before the packets in flight are counted down. */
	if (unlikely(a.flags & URN_FLOW_ACK_MARKED) && tp->dcqcn.line)
		urn_congestion_reported(tp, &f->user.source, &f->congestion, rate_now(tp, f));
	if (settle(tp, f, &a)) {
		if (unlikely(a.flags & URN_FLOW_ACK_HOLES))
			judge(tp, f, &a);
		progress(tp, f);
	} else if (unlikely(asked)) {
		was_asked(tp, f);
	}
	if (urn_flow_has_work(f))
		urn_flow_wake(tp, f);
	urn_tp_done(tp, m);
}
