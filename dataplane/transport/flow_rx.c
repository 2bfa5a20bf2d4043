/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows: data that came. A packet is checked whole, then its messages are delivered one by one. The
 * flow notes the packet's PSN, and the codes of refused messages. A packet for whose refusals there
 * is no room is not accepted: its sender repeats the packet.
 */
#include "transport/flow_rest.h"

#include "wire/ecn.h"

/* A packet of data, checked. */
struct data {
	struct urn_flow_from from;
	const uint8_t *payload;
	uint32_t len;      /* bytes of payload */
	uint32_t una;      /* oldest PSN that the sender has not seen acknowledged */
	uint32_t start;    /* our start, as the sender knows it, or the age of its epoch (wire/flow.h) */
	uint64_t epoch;
	uint8_t key;       /* key of the flow */
	uint8_t segs;
};

/* ---- order */

static inline bool
bit_get(const struct urn_flow *f, uint32_t psn)
{
	return f->bitmap[psn % URN_FLOW_WINDOW / 64] >> (psn % 64) & 1;
}

static inline void
bit_flip(struct urn_flow *f, uint32_t psn)
{
	f->bitmap[psn % URN_FLOW_WINDOW / 64] ^= 1ull << (psn % 64);
}

/* Move `expected` over PSNs that came, and at least to `psn`. */
static void
advance(struct urn_flow *f, uint32_t psn)
{
	while (urn_psn_diff(psn, f->expected) > 0 || bit_get(f, f->expected)) {
		if (bit_get(f, f->expected))
			bit_flip(f, f->expected);
		f->expected = urn_psn_add(f->expected, 1);
	}
}

void
urn_flow_forget_rx(struct urn_tp *tp, struct urn_flow *f)
{
	urn_flow_drop_wholes(tp, f);
	urn_flow_drop_refusals(tp, f);
	memset(f->bitmap, 0, sizeof(f->bitmap));
}

/* ---- a packet */

static uint8_t
take_segment(struct urn_tp *tp, struct urn_flow *f, struct data *d, const struct urn_flow_seg *s)
{
	const struct urn_flow_part *p = (const struct urn_flow_part *)s;
	uint8_t code;

	if (unlikely(s->kind == URN_FLOW_VOID))
		return URN_MSG_DONE;
	if (unlikely(s->kind == URN_FLOW_LET_GO))
		return urn_flow_let_go(tp, f, p);
	d->from.qid = rte_be_to_cpu_64(s->src_qid);
	if (s->kind == URN_FLOW_PART)
		return urn_flow_take_part(tp, f, &d->from, p);
	code = urn_flow_user(tp)->deliver(tp, &d->from, rte_be_to_cpu_64(s->qid),
					  (const uint8_t *)(s + 1), rte_be_to_cpu_16(s->bytes));
	if (likely(code == URN_MSG_DONE))
		URN_COUNT(tp, FLOW_MESSAGES_RX);
	return code;
}

/* Bytes of a segment with its header. */
static inline uint32_t
seg_span(const struct urn_flow_seg *s)
{
	return urn_flow_seg_head(s->kind) + urn_flow_pad(rte_be_to_cpu_16(s->bytes));
}

/* True when the numbers of a segment of a long message are sound. */
static inline bool
is_sound(const struct urn_flow_part *p)
{
	uint32_t len = rte_be_to_cpu_32(p->len), off = rte_be_to_cpu_32(p->off),
		 bytes = rte_be_to_cpu_16(p->seg.bytes);

	if (!p->id)
		return false;
	return p->seg.kind == URN_FLOW_LET_GO ||
	       (len <= URN_MSG_MAX && bytes && off <= len && bytes <= len - off);
}

/*
 * Check the segments of a packet, and count them. A packet with a segment of a long message has no
 * other. returns: true when all are sound
 */
static bool
check_segments(struct data *d)
{
	const uint8_t *at = d->payload, *end = at + d->len;
	bool alone = false;

	d->segs = 0;
	while (at < end) {
		const struct urn_flow_seg *s = (const struct urn_flow_seg *)at;

		if ((size_t)(end - at) < sizeof(*s) || seg_span(s) > (size_t)(end - at) ||
		    d->segs == URN_FLOW_SEGMENTS || s->kind >= URN_FLOW_SEG_KINDS)
			return false;
		if (urn_flow_is_long(s->kind)) {
			if (!is_sound((const struct urn_flow_part *)s))
				return false;
			alone = true;
		}
		at += seg_span(s);
		d->segs++;
	}
	return d->segs == 1 || (d->segs && !alone);
}

/* Deliver the messages of a packet, and note refusals. returns: false: no room, nothing happened */
static bool
take_segments(struct urn_tp *tp, struct urn_flow *f, struct data *d, uint32_t psn)
{
	uint8_t code[URN_FLOW_SEGMENTS] = {0};
	const uint8_t *at = d->payload;
	bool refused = false;

	for (unsigned int i = 0; i < d->segs; i++) {
		const struct urn_flow_seg *s = (const struct urn_flow_seg *)at;

		code[i] = take_segment(tp, f, d, s);
		if (unlikely(code[i] == URN_FLOW_NO_ROOM)) /* a part, and so the only segment */
			return false;
		if (unlikely(code[i] != URN_MSG_DONE)) {
			URN_COUNT(tp, FLOW_REFUSED_RX);
			refused = true;
		}
		at += seg_span(s);
	}
	if (unlikely(refused))
		urn_flow_note_refusals(tp, f, psn, code);
	return true;
}

static void
owe_ack(struct urn_tp *tp, struct urn_flow *f, struct rte_mbuf *m)
{
	const struct urn_eth *eth = rte_pktmbuf_mtod(m, const struct urn_eth *);

	memcpy(f->ack_mac, eth->src, 6);
	urn_flow_owe(tp, f);
}

/* True when the sender of a packet gets our answers: the packet names our start, or is our own. */
static bool
is_known(const struct data *d)
{
	return d->start >= URN_FLOW_START_MIN || d->from.own;
}

/* True when this node may get packets that came to its life before, too, and waited in the network
 * since. */
static bool
is_young(const struct urn_tp *tp)
{
	return tp->now - tp->flows->born < URN_FLOW_YOUNG_NS;
}

/*
 * True when a packet begins an epoch, and its sender is to be asked for our start first: its source
 * may be forged, or the packet may have waited while this node was started. A packet with a forged
 * source neither ends the epoch of the node that has the address, nor fills the table of flows. f:
 * the flow; NULL: none
 */
static bool
is_doubtful(const struct urn_tp *tp, const struct urn_flow *f, const struct data *d)
{
	if (is_known(d) || (f && f->rx_epoch == d->epoch))
		return false;
	return (f && f->rx_epoch) || tp->flows->doubted >= URN_FLOWS_DOUBTED || is_young(tp);
}

/* Look at the epoch of a packet; a later one begins the direction anew. returns: true when the packet may be accepted */
static bool
check_epoch(struct urn_tp *tp, struct urn_flow *f, const struct data *d)
{
	bool sure = f->rx_epoch && !(f->flags & URN_FLOWF_DOUBTED);

	if (likely(f->rx_epoch == d->epoch)) {
		if (unlikely(!sure) && is_known(d))
			urn_flow_doubt(tp, f, false);
		return true;
	}
	/* An epoch of before the node's clock was set back does not shut the node out for ever. */
	if (sure && (int64_t)(d->epoch - f->rx_epoch) < 0 && tp->now - f->rx_at < URN_FLOW_DOUBT_NS)
		return false;
	urn_flow_forget_rx(tp, f);
	f->rx_epoch = d->epoch;
	f->expected = d->una;
	urn_flow_doubt(tp, f, !is_known(d));
	return true;
}

/* urn_flow_refusals_room(), the short way for a flow without refusals. */
static inline bool
refusals_room(struct urn_tp *tp, struct urn_flow *f, uint32_t psn)
{
	return likely(!f->refusals && tp->flows->spare) || urn_flow_refusals_room(tp, f, psn);
}

/* A sound packet of data for this flow. returns: the counter of the reason why it is dropped; or URN_COUNTER_COUNT */
static enum urn_counter
take_data(struct urn_tp *tp, struct urn_flow *f, struct data *d, struct rte_mbuf *m)
{
	uint32_t psn = urn_pkt(m)->psn;
	int32_t ahead, una;

	if (unlikely(!check_epoch(tp, f, d)))
		return URN_C_FLOW_DROP_STALE;
	una = urn_psn_diff(d->una, f->expected);
	ahead = urn_psn_diff(psn, d->una);
	if (unlikely(ahead < 0 || ahead >= URN_FLOW_WINDOW || una > URN_FLOW_WINDOW || una < -URN_FLOW_WINDOW))
		return ahead < 0 ? URN_C_FLOW_DROP_STALE : URN_C_FLOW_DROP_FAR;
	advance(f, d->una);
	if (unlikely(f->refusals))
		urn_flow_forget_refusals(tp, f, d->una);
	if (unlikely(urn_psn_diff(psn, f->expected) < 0 || bit_get(f, psn))) {
		if (unlikely(f->refusals))
			urn_flow_tell_again(f, psn);
		owe_ack(tp, f, m);
		return URN_C_FLOW_DUPLICATES;
	}
	if (unlikely(!refusals_room(tp, f, psn) || !take_segments(tp, f, d, psn)))
		return URN_C_FLOW_DROP_ROOM;
	bit_flip(f, psn);
	advance(f, f->expected);
	f->rx_at = tp->now;
	owe_ack(tp, f, m);
	return URN_C_FLOW_RX;
}

/* ---- any packet of a flow */

/* The address that a packet came from, as a GID. */
static void
source_of(struct rte_mbuf *m, uint8_t gid[16])
{
	const uint8_t *l3 = rte_pktmbuf_mtod_offset(m, const uint8_t *, urn_pkt(m)->l3_off);

	if (urn_pkt(m)->ipv6) {
		memcpy(gid, l3 + offsetof(struct urn_ipv6, src), 16);
		return;
	}
	memset(gid, 0, 10);
	memset(gid + 10, 0xff, 2);
	memcpy(gid + 12, l3 + offsetof(struct urn_ipv4, src), 4);
}

/* True when a packet with this IP header went to an address. */
static inline bool
went_to(const uint8_t gid[16], const uint8_t *l3, bool ipv6)
{
	return ipv6 ? memcmp(gid, l3 + offsetof(struct urn_ipv6, dst), 16) == 0
		    : memcmp(gid + 12, l3 + offsetof(struct urn_ipv4, dst), 4) == 0 &&
			       urn_gid_is_v4(gid);
}

/* Index of our own address that a packet went to, as bits of a key. */
static URN_FAST uint8_t
own_of(const struct urn_tp *tp, struct rte_mbuf *m)
{
	const uint8_t *l3 = rte_pktmbuf_mtod_offset(m, const uint8_t *, urn_pkt(m)->l3_off);
	bool ipv6 = urn_pkt(m)->ipv6;

	/* The last one first: a configured address is behind the link-local one. */
	for (unsigned int i = tp->cfg.gids; i-- > 0;)
		if (went_to(tp->cfg.gid[i], l3, ipv6))
			return (uint8_t)(i << URN_FLOW_KEY_OWN_SHIFT);
	return 0; /* not reached: the address was compared before */
}

static bool
is_own(const struct urn_tp *tp, const uint8_t gid[16])
{
	for (unsigned int i = 0; i < tp->cfg.gids; i++)
		if (memcmp(tp->cfg.gid[i] + 12, gid + 12, 4) == 0 &&
		    memcmp(tp->cfg.gid[i], gid, 12) == 0)
			return true;
	return false;
}

/* Read a packet of data. returns: true when its fields are sound */
static URN_FAST bool
read_data(struct urn_tp *tp, struct rte_mbuf *m, struct data *d)
{
	const struct urn_flow_hdr *h = urn_pkt_ext(m, URN_EXT_FLOW);
	uint32_t top = rte_be_to_cpu_32(h->psn) >> 24;

	d->payload = urn_pkt_payload(m);
	d->len = urn_pkt(m)->payload_len;
	d->epoch = rte_be_to_cpu_64(h->epoch);
	d->start = rte_be_to_cpu_32(h->start);
	d->una = rte_be_to_cpu_32(h->psn) & URN_PSN_MASK;
	d->key = (uint8_t)(top | own_of(tp, m));
	return d->epoch && top <= (URN_FLOW_KEY_VIA_FIRST | URN_FLOW_KEY_ENGINE) && check_segments(d);
}

/* True when packets of this epoch may have come to a life of this node that is over. */
static bool
is_of_before(const struct urn_tp *tp, const struct data *d)
{
	if (likely(d->start >= URN_FLOW_START_MIN))
		return d->start != tp->cfg.flow_epoch;
	return urn_flow_clock(tp) - tp->flows->born < d->start * 1000000ull;
}

static void
accept_data(struct urn_tp *tp, struct rte_mbuf *m, struct data *d)
{
	enum urn_counter why = URN_C_FLOW_DROP_FORMAT;
	struct urn_flow *f;

	if (unlikely(!read_data(tp, m, d)))
		goto drop;
	if (unlikely(is_of_before(tp, d))) {
		urn_flow_reset(tp, m, d->from.node, d->key, tp->cfg.engine);
		why = URN_C_FLOW_DROP_STALE;
		goto drop;
	}
	f = urn_flow_find(tp, d->from.node, d->key);
	if (unlikely(!f && !urn_flow_restore(tp, d->from.node, d->key, &f))) {
		rte_pktmbuf_free(m); /* the sender repeats its data */
		return;
	}
	if (unlikely(is_doubtful(tp, f, d))) {
		urn_flow_ask(tp, m, d->from.node, d->key, tp->cfg.engine, d->una);
		why = URN_C_FLOW_DROP_ASKED;
		goto drop;
	}
	if (unlikely(!f)) {
		f = urn_flow_make(tp, d->from.node, d->key, URN_FLOWF_RX);
		if (!f) {
			rte_pktmbuf_free(m);
			return;
		}
		urn_flow_age(tp, f);
	}
	if (urn_ecn_get(rte_pktmbuf_mtod_offset(m, const uint8_t *, urn_pkt(m)->l3_off), urn_pkt(m)->ipv6) ==
	    URN_ECN_CE) {
		URN_COUNT(tp, RX_MARKED);
		f->flags |= URN_FLOWF_MARKED;
	}
	tp->flows->taking = f;
	why = take_data(tp, f, d, m);
	tp->flows->taking = NULL;
drop:
	tp->c.v[why]++;
	urn_tp_done(tp, m);
}

URN_FAST void
urn_flow_accept(struct urn_tp *tp, struct rte_mbuf *m)
{
	bool looped = tp->flows && (m->ol_flags & tp->flows->looped);
	struct data d;

	if (unlikely(!tp->flows)) {
		urn_tp_drop(tp, m, URN_C_FLOW_DROP_NO_USER);
		return;
	}
	source_of(m, d.from.node);
	d.from.own = is_own(tp, d.from.node);
	if (unlikely(d.from.own != looped)) {
		urn_tp_drop(tp, m, URN_C_FLOW_DROP_FORGED);
		return;
	}
	switch (urn_pkt(m)->opcode) {
	case URN_FLOW_DATA:
		accept_data(tp, m, &d);
		break;
	case URN_FLOW_ACK:
		urn_flow_acked(tp, m, d.from.node, own_of(tp, m));
		break;
	default:
		urn_flow_was_reset(tp, m, d.from.node, own_of(tp, m));
		break;
	}
}

/* Answer a packet of data, checked as one of our own. returns: the counter of its drop */
static enum urn_counter
answer_stray(struct urn_tp *tp, struct rte_mbuf *m)
{
	uint32_t engine = urn_qpn_engine(urn_pkt(m)->dqpn);
	struct data d;

	if (!tp->flows || urn_pkt(m)->opcode != URN_FLOW_DATA ||
	    (urn_pkt(m)->dqpn & URN_FLOW_SLOT) != URN_FLOW_SLOT)
		return URN_C_DROP_NO_QP;
	source_of(m, d.from.node);
	d.from.own = is_own(tp, d.from.node);
	if (d.from.own != ((m->ol_flags & tp->flows->looped) != 0))
		return URN_C_FLOW_DROP_FORGED;
	if (!read_data(tp, m, &d))
		return URN_C_FLOW_DROP_FORMAT;
	if (is_of_before(tp, &d)) {
		urn_flow_reset(tp, m, d.from.node, d.key, engine);
		return URN_C_FLOW_DROP_STALE;
	}
	if (!is_known(&d) && is_young(tp)) { /* the life before may have had the engine */
		urn_flow_ask(tp, m, d.from.node, d.key, engine, d.una);
		return URN_C_FLOW_DROP_ASKED;
	}
	urn_flow_refuse(tp, m, d.from.node, d.key, engine);
	return URN_C_DROP_NO_QP;
}

void
urn_flow_no_engine(struct urn_tp *tp, struct rte_mbuf *m)
{
	tp->c.v[answer_stray(tp, m)]++;
	urn_flow_emit_last(tp); /* no urn_tp_execute() follows */
	rte_pktmbuf_free(m);
}
