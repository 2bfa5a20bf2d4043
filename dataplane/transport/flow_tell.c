/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows: acknowledgements and resets that this end sends. */
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

static URN_FAST void
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
	return urn_tp_frame(tp, &t, opcode, payload, urn_flow_qpn(key & URN_FLOW_KEY_ENGINE), 0, 0,
			    false, bth);
}

/* Begin an acknowledgement of a flow, by the headers of its data if they lead to the same place.
 * NULL: as answer() */
static struct urn_txd *
answer_in(struct urn_tp *tp, struct urn_flow *f, uint32_t payload, uint8_t **bth)
{
	if ((f->flags & URN_FLOWF_TX) && memcmp(f->tmpl.bytes, f->ack_mac, 6) == 0)
		return urn_tp_tx_frames(tp)
			       ? urn_tp_frame(tp, &f->tmpl, URN_FLOW_ACK, payload,
					      urn_flow_qpn(f->key & URN_FLOW_KEY_ENGINE), 0, 0,
					      false, bth)
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

URN_FAST void
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

URN_FAST void
urn_flows_tell(struct urn_tp *tp)
{
	struct urn_flows *fl = tp->flows;
	unsigned int waiting = 0;
	struct urn_flow *f;

	for (uint32_t n = fl->acks_n; n && waiting < URN_FLOW_ACKS; n--) {
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
			waiting++;
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
