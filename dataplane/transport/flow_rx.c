/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows: data that came. A packet is checked whole, then its messages are delivered one by one. The
 * flow notes the packet's PSN, and the codes of refused messages. A packet for whose refusals there
 * is no room is not accepted: its sender repeats the packet.
 */
#include "transport/flow_priv.h"

#include "wire/ecn.h"

#include <stdlib.h>

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

/* ---- refusals */

/* The sender knows the answers to packets before una. */
static void
forget_refusals(struct urn_tp *tp, struct urn_flow *f, uint32_t una)
{
	struct urn_flow_refusals *r = f->refusals;
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->n; i++)
		if (urn_psn_diff(r->of[i].psn, una) >= 0)
			r->of[n++] = r->of[i];
	r->n = n;
	if (n)
		return;
	f->refusals = NULL;
	if (tp->flows->spare)
		free(r);
	else
		tp->flows->spare = r;
}

/*
 * True when the refusals of packet `psn` can be noted. The last place is kept for the first packet that has not
 * come: with its acknowledgement the sender moves on, and places get free.
 */
static bool
refusals_room(struct urn_tp *tp, const struct urn_flow *f, uint32_t psn)
{
	if (f->refusals)
		return f->refusals->n < URN_FLOW_REFUSED_MAX - (psn != f->expected);
	if (!tp->flows->spare)
		tp->flows->spare = malloc(sizeof(struct urn_flow_refusals)); /* after the spare was taken */
	return tp->flows->spare != NULL;
}

static void
note_refusals(struct urn_tp *tp, struct urn_flow *f, const struct urn_flow_refused *r)
{
	if (!f->refusals) {
		f->refusals = tp->flows->spare;
		f->refusals->n = 0;
		tp->flows->spare = NULL;
	}
	f->refusals->of[f->refusals->n++] = *r;
}

void
urn_flow_forget_rx(struct urn_tp *tp, struct urn_flow *f)
{
	urn_flow_drop_wholes(tp, f);
	if (f->refusals) {
		free(f->refusals);
		f->refusals = NULL;
	}
	memset(f->bitmap, 0, sizeof(f->bitmap));
	f->flags &= (uint16_t)~URN_FLOWF_STALLED;
}

/* ---- a packet */

static uint8_t
take_segment(struct urn_tp *tp, struct urn_flow *f, struct data *d, const struct urn_flow_seg *s)
{
	uint8_t code;

	if (unlikely(s->kind == URN_FLOW_VOID)) {
		if (s->id)
			urn_flow_let_go(tp, f, s);
		return URN_MSG_DONE;
	}
	d->from.qid = rte_be_to_cpu_64(s->src_qid);
	if (s->kind == URN_FLOW_PART)
		return urn_flow_take_part(tp, f, &d->from, s);
	code = urn_flow_user(tp)->deliver(tp, &d->from, rte_be_to_cpu_64(s->qid), (const uint8_t *)(s + 1),
					  rte_be_to_cpu_32(s->len));
	if (likely(code == URN_MSG_DONE))
		URN_COUNT(tp, FLOW_MESSAGES_RX);
	return code;
}

/* Bytes of a segment with its header. */
static inline uint32_t
seg_span(const struct urn_flow_seg *s)
{
	return (uint32_t)sizeof(*s) + urn_flow_pad(rte_be_to_cpu_16(s->bytes));
}

/* Check the segments of a packet, and count them. returns: true when all are sound */
static bool
check_segments(struct data *d)
{
	const uint8_t *at = d->payload, *end = at + d->len;

	d->segs = 0;
	while (at < end) {
		const struct urn_flow_seg *s = (const struct urn_flow_seg *)at;
		uint32_t len, off, bytes;

		if ((size_t)(end - at) < sizeof(*s) || seg_span(s) > (size_t)(end - at) ||
		    d->segs == URN_FLOW_SEGMENTS || s->kind > URN_FLOW_VOID)
			return false;
		len = rte_be_to_cpu_32(s->len);
		off = rte_be_to_cpu_32(s->off);
		bytes = rte_be_to_cpu_16(s->bytes);
		if (s->kind == URN_FLOW_WHOLE && bytes != len)
			return false;
		if (s->kind == URN_FLOW_PART && (len > URN_MSG_MAX || !bytes || off > len || bytes > len - off))
			return false;
		at += seg_span(s);
		d->segs++;
	}
	return d->segs != 0;
}

/* Deliver the messages of a packet, and note refusals. */
static void
take_segments(struct urn_tp *tp, struct urn_flow *f, struct data *d, uint32_t psn)
{
	struct urn_flow_refused r = {.psn = psn};
	const uint8_t *at = d->payload;
	bool refused = false;

	for (unsigned int i = 0; i < d->segs; i++) {
		const struct urn_flow_seg *s = (const struct urn_flow_seg *)at;

		r.code[i] = take_segment(tp, f, d, s);
		if (unlikely(r.code[i] != URN_MSG_DONE)) {
			URN_COUNT(tp, FLOW_REFUSED_RX);
			refused = true;
		}
		at += seg_span(s);
	}
	if (unlikely(refused))
		note_refusals(tp, f, &r);
}

static void
owe_ack(struct urn_tp *tp, struct urn_flow *f, struct rte_mbuf *m)
{
	const struct urn_eth *eth = rte_pktmbuf_mtod(m, const struct urn_eth *);

	memcpy(f->ack_mac, eth->src, 6);
	f->flags |= URN_FLOWF_ACK;
	urn_flow_sched(tp, f);
}

/* True when the sender of a packet gets our answers: the packet names our start, or is our own. */
static bool
is_known(const struct data *d)
{
	return d->start >= URN_FLOW_START_MIN || d->from.own;
}

/*
 * True when a packet begins an epoch, and its sender is to be asked for our start first: its source
 * may be forged. A packet with a forged source neither ends the epoch of the node that has the
 * address, nor fills the table of flows. f: the flow; NULL: none
 */
static bool
is_doubtful(const struct urn_tp *tp, const struct urn_flow *f, const struct data *d)
{
	if (is_known(d) || (f && f->rx_epoch == d->epoch))
		return false;
	return (f && f->rx_epoch) || tp->flows->doubted >= URN_FLOWS_DOUBTED;
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
		forget_refusals(tp, f, d->una);
	if (unlikely(urn_psn_diff(psn, f->expected) < 0 || bit_get(f, psn))) {
		owe_ack(tp, f, m);
		return URN_C_FLOW_DUPLICATES;
	}
	if (unlikely(!refusals_room(tp, f, psn)))
		return URN_C_FLOW_DROP_ROOM;
	take_segments(tp, f, d, psn);
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

/* Index of our own address that a packet went to, as bits of a key. */
static uint8_t
own_of(const struct urn_tp *tp, struct rte_mbuf *m)
{
	const uint8_t *l3 = rte_pktmbuf_mtod_offset(m, const uint8_t *, urn_pkt(m)->l3_off);
	bool ipv6 = urn_pkt(m)->ipv6;

	for (unsigned int i = 0; i < tp->cfg.gids; i++) {
		const uint8_t *gid = tp->cfg.gid[i];

		if (ipv6 ? memcmp(gid, l3 + offsetof(struct urn_ipv6, dst), 16) == 0
			 : urn_gid_is_v4(gid) && memcmp(gid + 12, l3 + offsetof(struct urn_ipv4, dst), 4) == 0)
			return (uint8_t)(i << URN_FLOW_KEY_OWN_SHIFT);
	}
	return 0; /* not reached: the address was compared before */
}

static bool
is_own(const struct urn_tp *tp, const uint8_t gid[16])
{
	for (unsigned int i = 0; i < tp->cfg.gids; i++)
		if (memcmp(tp->cfg.gid[i], gid, 16) == 0)
			return true;
	return false;
}

/* Read a packet of data. returns: true when its fields are sound */
static bool
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
	return tp->now - tp->flows->born < d->start * 1000000ull;
}

static void
accept_data(struct urn_tp *tp, struct rte_mbuf *m, struct data *d)
{
	enum urn_counter why = URN_C_FLOW_DROP_FORMAT;
	struct urn_flow *f;

	if (unlikely(!read_data(tp, m, d)))
		goto drop;
	if (unlikely(is_of_before(tp, d))) {
		urn_flow_reset(tp, m, d->from.node, d->key);
		why = URN_C_FLOW_DROP_STALE;
		goto drop;
	}
	f = urn_flow_find(tp, d->from.node, d->key);
	if (unlikely(is_doubtful(tp, f, d))) {
		urn_flow_ask(tp, m, d->from.node, d->key, d->una);
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
	why = take_data(tp, f, d, m);
drop:
	tp->c.v[why]++;
	urn_tp_done(tp, m);
}

/* Find out where a packet came from. returns: false: the packet was not for us, or forged; it was dropped */
static bool
find_source(struct urn_tp *tp, struct rte_mbuf *m, struct urn_flow_from *from)
{
	bool looped = tp->flows && (m->ol_flags & tp->flows->looped);

	if (unlikely(!tp->flows)) {
		urn_tp_drop(tp, m, URN_C_FLOW_DROP_NO_USER);
		return false;
	}
	source_of(m, from->node);
	from->own = is_own(tp, from->node);
	if (unlikely(from->own != looped)) {
		urn_tp_drop(tp, m, URN_C_FLOW_DROP_FORGED);
		return false;
	}
	return true;
}

void
urn_flow_accept(struct urn_tp *tp, struct rte_mbuf *m)
{
	struct data d;

	if (unlikely(!find_source(tp, m, &d.from)))
		return;
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

void
urn_flow_no_engine(struct urn_tp *tp, struct rte_mbuf *m)
{
	enum urn_counter why = URN_C_FLOW_DROP_STALE;
	struct data d;
	int32_t ahead;

	if (unlikely(!find_source(tp, m, &d.from)))
		return;
	if (urn_pkt(m)->opcode == URN_FLOW_DATA) {
		if (!read_data(tp, m, &d)) {
			why = URN_C_FLOW_DROP_FORMAT;
		} else if (is_of_before(tp, &d)) {
			urn_flow_reset(tp, m, d.from.node, d.key);
		} else {
			ahead = urn_psn_diff(urn_pkt(m)->psn, d.una);
			why = ahead < 0 || ahead >= URN_FLOW_WINDOW ? URN_C_FLOW_DROP_FAR : URN_C_FLOW_REFUSED_RX;
		}
	}
	if (why == URN_C_FLOW_REFUSED_RX)
		urn_flow_refuse_all(tp, m, d.from.node, d.key, d.una);
	tp->c.v[why]++;
	urn_tp_done(tp, m);
}
