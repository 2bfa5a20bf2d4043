/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows: acknowledgements and resets, made and taken. */
#include "transport/flow_priv.h"

/* ---- made */

/* Top byte of an answer: the engine that the data was for, and whether it came there as the node's
 * first. */
static uint32_t
top_of(uint32_t engine, uint8_t key)
{
	return engine | (key & URN_FLOW_KEY_VIA_FIRST);
}

/* Write the header of an answer. epoch: network order; engine: that of the data, psn: 24 bits */
static struct urn_flow_hdr *
put_hdr(const struct urn_tp *tp, uint8_t *bth, uint64_t epoch, uint8_t key, uint32_t engine,
	uint32_t psn)
{
	struct urn_flow_hdr *h = (struct urn_flow_hdr *)(bth + sizeof(struct urn_bth));

	h->epoch = epoch;
	h->start = rte_cpu_to_be_32(tp->cfg.flow_epoch);
	h->psn = rte_cpu_to_be_32(top_of(engine, key) << 24 | psn);
	return h;
}

/* Age of this node as acknowledgements tell it, network order. */
static __attribute__((cold, noinline)) uint16_t
age_now(const struct urn_tp *tp)
{
	uint64_t ms = (urn_flow_clock(tp) - tp->flows->born) / 1000000;

	return rte_cpu_to_be_16((uint16_t)RTE_MIN(ms, (uint64_t)URN_FLOW_AGE_MAX));
}

static void
put_ack(const struct urn_tp *tp, struct urn_flow *f, const struct urn_flow_said *s, uint8_t *bth)
{
	struct urn_flow_hdr *h = put_hdr(tp, bth, rte_cpu_to_be_64(f->rx_epoch), f->key,
					 tp->cfg.engine, s->expected);
	struct urn_flow_ack *a = (struct urn_flow_ack *)(h + 1);
	struct urn_flow_refused *r;
	uint64_t any = 0;

	for (unsigned int i = 0; i < RTE_DIM(s->bitmap); i++) {
		uint64_t word = rte_cpu_to_le_64(s->bitmap[i]);

		any |= word;
		memcpy(a->bitmap + 8 * i, &word, 8);
	}
	a->flags = (uint8_t)(URN_FLOW_ACK_ROOM | (any ? URN_FLOW_ACK_HOLES : 0) |
			     (f->flags & URN_FLOWF_MARKED ? URN_FLOW_ACK_MARKED : 0));
	a->refused = (uint8_t)s->n;
	a->age = 0;
	if (unlikely(f->flags & URN_FLOWF_DOUBTED))
		a->age = age_now(tp);
	r = (struct urn_flow_refused *)(a + 1);
	if (unlikely(s->n))
		urn_flow_put_said(f, r);
	*(struct urn_flow_room *)(r + s->n) =
		(struct urn_flow_room){.mtu = rte_cpu_to_be_16(tp->cfg.flow_mtu)};
}

/* Make the headers of an answer. mac: the address that the data came from; key: of its flow */
static void
answer_path(const struct urn_tp *tp, const uint8_t gid[16], const uint8_t mac[6], uint8_t key,
	    struct urn_tmpl *t)
{
	struct urn_path path = {.ttl = 64, .sport = URN_ROCE_SPORT_MIN};

	memcpy(path.smac, tp->cfg.mac, 6);
	memcpy(path.dmac, mac, 6);
	memcpy(path.sgid, tp->cfg.gid[(key & URN_FLOW_KEY_OWN) >> URN_FLOW_KEY_OWN_SHIFT], 16);
	memcpy(path.dgid, gid, 16);
	urn_tmpl_init(t, &path);
}

/* Begin an answer. NULL: no room, or no buffer */
static struct urn_txd *
answer(struct urn_tp *tp, const uint8_t gid[16], const uint8_t mac[6], uint8_t key, uint8_t opcode,
       uint32_t payload, uint8_t **bth)
{
	struct urn_tmpl t;

	if (!urn_tp_tx_frames(tp))
		return NULL;
	memset(&t, 0, sizeof(t));
	answer_path(tp, gid, mac, key, &t);
	return urn_tp_frame(tp, &t, opcode, payload, urn_flow_qpn(key & URN_FLOW_KEY_ENGINE), 0, 0, false, bth);
}

/* Begin an acknowledgement of a flow, by the headers of its data if they lead to the same place. NULL: as answer() */
static struct urn_txd *
answer_in(struct urn_tp *tp, struct urn_flow *f, uint32_t payload, uint8_t **bth)
{
	if ((f->flags & URN_FLOWF_TX) && memcmp(f->tmpl.bytes, f->ack_mac, 6) == 0)
		return urn_tp_tx_frames(tp) ? urn_tp_frame(tp, &f->tmpl, URN_FLOW_ACK, payload,
							   urn_flow_qpn(f->key & URN_FLOW_KEY_ENGINE), 0, 0, false, bth)
					    : NULL;
	return answer(tp, f->gid, f->ack_mac, f->key, URN_FLOW_ACK, payload, bth);
}

/* Send one acknowledgement. returns: false: no room now */
static bool
tell_once(struct urn_tp *tp, struct urn_flow *f, struct urn_flow_said *s)
{
	struct urn_txd *d;
	uint8_t *bth;

	urn_flow_say(f, s);
	d = answer_in(tp, f,
		      (uint32_t)(sizeof(struct urn_flow_ack) +
				 s->n * sizeof(struct urn_flow_refused) +
				 sizeof(struct urn_flow_room)),
		      &bth);
	if (!d)
		return false;
	put_ack(tp, f, s, bth);
	urn_flow_emit(tp, d, memcmp(f->gid, urn_flow_own(tp, f), 16) == 0);
	f->flags &= (uint16_t)~URN_FLOWF_MARKED;
	URN_COUNT(tp, FLOW_ACKS_TX);
	return true;
}

/* Send the acknowledgement that is owed, more than one if new refusals need them. returns: false:
 * no room now */
static bool
tell(struct urn_tp *tp, struct urn_flow *f)
{
	struct urn_flow_said s;

	do { /* each tells of URN_FLOW_REFUSED_MAX new refusals, of URN_FLOW_WINDOW at most */
		if (!tell_once(tp, f, &s))
			return false;
	} while (unlikely(s.more));
	f->flags &= (uint16_t)~URN_FLOWF_ACK;
	return true;
}

/* ---- owed */

/* Put a flow behind those that owe an acknowledgement. */
static void
append(struct urn_tp *tp, struct urn_flow *f)
{
	struct urn_flows *fl = tp->flows;

	f->ack_next = NULL;
	if (tp->acks)
		fl->acks_last->ack_next = f;
	else
		tp->acks = f;
	fl->acks_last = f;
	fl->acks_n++;
}

void
urn_flow_owe(struct urn_tp *tp, struct urn_flow *f)
{
	if (f->flags & URN_FLOWF_ACK)
		return;
	f->flags = (uint16_t)((f->flags | URN_FLOWF_ACK) & ~(URN_FLOWF_SENT | URN_FLOWF_ACK_LATE));
	append(tp, f);
	urn_sched_add(&tp->sched, &tp->flows->teller.source);
}

/* True when the acknowledgement of a flow waits, because the priority of flows is stopped. */
static bool
waits(const struct urn_tp *tp, const struct urn_flow *f)
{
	return unlikely(tp->sched.stopped & 1u << tp->priority_of[0]) &&
	       memcmp(f->gid, urn_flow_own(tp, f), sizeof(f->gid)) != 0;
}

/* The acknowledgement of the first flow is sent. returns: false: no room now */
static bool
tell_first(struct urn_tp *tp)
{
	struct urn_flow *f = tp->acks;

	if (!tell(tp, f))
		return false;
	tp->acks = f->ack_next;
	tp->flows->acks_n--;
	return true;
}

void
urn_flows_tell(struct urn_tp *tp)
{
	struct urn_flows *fl = tp->flows;
	struct urn_flow *f;

	for (uint32_t n = fl->acks_n; n; n--) {
		f = tp->acks;
		if ((f->flags & (URN_FLOWF_SENT | URN_FLOWF_ACK_LATE)) == URN_FLOWF_SENT) {
			f->flags |= URN_FLOWF_ACK_LATE;
			tp->acks = f->ack_next;
			fl->acks_n--;
			append(tp, f);
		} else if (unlikely(tp->sched.stopped) && waits(tp, f)) {
			tp->acks = f->ack_next;
			fl->acks_n--;
			append(tp, f);
		} else if (!tell_first(tp)) {
			break;
		}
	}
	fl->acks_old = fl->acks_n;
	if (fl->acks_n)
		urn_sched_add(&tp->sched, &fl->teller.source);
}

/* A turn of acknowledgements that are owed since an earlier turn. returns: true when some are left
 */
static bool
serve(struct urn_tp *tp, struct urn_source *src)
{
	struct urn_flows *fl = tp->flows;

	(void)src;
	for (unsigned int i = 0; i < URN_FLOW_ACKS && fl->acks_old; i++) {
		if ((unlikely(tp->sched.stopped) && waits(tp, tp->acks)) || !tell_first(tp))
			return true;
		fl->acks_old--;
	}
	return fl->acks_old != 0;
}

void
urn_flows_init_acks(struct urn_flows *fl)
{
	static const struct urn_source_ops ops = {.serve = serve};

	fl->teller.source.kind = URN_SOURCE_OPS;
	fl->teller.source.share = &fl->telling;
	fl->teller.ops = &ops;
}

void
urn_flow_reset(struct urn_tp *tp, struct rte_mbuf *m, const uint8_t gid[16], uint8_t key,
	       uint32_t engine)
{
	const struct urn_eth *eth = rte_pktmbuf_mtod(m, const struct urn_eth *);
	const struct urn_flow_hdr *h = urn_pkt_ext(m, URN_EXT_FLOW);
	struct urn_txd *d;
	uint8_t *bth;

	d = answer(tp, gid, eth->src, key, URN_FLOW_RESET, 0, &bth);
	if (!d)
		return; /* the sender repeats its data, and is answered then */
	put_hdr(tp, bth, h->epoch, key, engine, 0);
	urn_flow_emit(tp, d, m->ol_flags & tp->flows->looped);
}

void
urn_flow_refuse(struct urn_tp *tp, struct rte_mbuf *m, const uint8_t gid[16], uint8_t key,
		uint32_t engine)
{
	const struct urn_eth *eth = rte_pktmbuf_mtod(m, const struct urn_eth *);
	const struct urn_flow_hdr *h = urn_pkt_ext(m, URN_EXT_FLOW);
	uint32_t una = rte_be_to_cpu_32(h->psn) & URN_PSN_MASK, psn = urn_pkt(m)->psn;
	int32_t ahead = urn_psn_diff(psn, una);
	struct urn_flow_refused *r;
	struct urn_flow_ack *a;
	struct urn_txd *d;
	uint8_t *bth;

	if (ahead < 0 || ahead >= URN_FLOW_WINDOW)
		return;
	d = answer(tp, gid, eth->src, key, URN_FLOW_ACK, sizeof(*a) + sizeof(*r), &bth);
	if (!d)
		return; /* the sender repeats its data */
	a = (struct urn_flow_ack *)(put_hdr(tp, bth, h->epoch, key, engine,
					    ahead ? una : (psn + 1) & URN_PSN_MASK) +
				    1);
	memset(a, 0, sizeof(*a));
	a->flags = ahead ? URN_FLOW_ACK_HOLES : 0;
	a->bitmap[psn % URN_FLOW_WINDOW / 8] = (uint8_t)(ahead ? 1u << psn % 8 : 0);
	a->age = age_now(tp);
	a->refused = 1;
	r = (struct urn_flow_refused *)(a + 1);
	r->psn = rte_cpu_to_be_32(psn);
	memset(r->code, URN_MSG_NO_QUEUE, sizeof(r->code));
	urn_flow_emit(tp, d, m->ol_flags & tp->flows->looped);
	URN_COUNT(tp, FLOW_ACKS_TX);
}

void
urn_flow_ask(struct urn_tp *tp, struct rte_mbuf *m, const uint8_t gid[16], uint8_t key,
	     uint32_t engine, uint32_t una)
{
	const struct urn_eth *eth = rte_pktmbuf_mtod(m, const struct urn_eth *);
	const struct urn_flow_hdr *h = urn_pkt_ext(m, URN_EXT_FLOW);
	struct urn_flow_ack *a;
	struct urn_txd *d;
	uint8_t *bth;

	d = answer(tp, gid, eth->src, key, URN_FLOW_ACK, (uint32_t)sizeof(*a), &bth);
	if (!d)
		return; /* the sender repeats its data, and is asked then */
	a = (struct urn_flow_ack *)(put_hdr(tp, bth, h->epoch, key, engine, una) + 1);
	memset(a, 0, sizeof(*a));
	a->age = age_now(tp);
	urn_flow_emit(tp, d, false);
	URN_COUNT(tp, FLOW_ACKS_TX);
}

/* ---- taken */

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

void
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
