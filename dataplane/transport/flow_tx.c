/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows: packets of messages, first and repeated. */
#include "transport/flow_priv.h"

enum {
	OLDEST_TURN = 8, /* a power of two, more than 1: parts of the oldest message come at odd
			    numbers, too */
};

/* ---- work: one a packet, from the transport's pool */

static struct urn_work *
work_get(struct urn_tp *tp)
{
	struct urn_work *w = tp->work_free;

	if (unlikely(!urn_pool_has(tp->left.work, tp->nobodys.work)))
		return NULL;
	tp->work_free = w->next;
	if (unlikely(!tp->work_free))
		urn_work_more(tp);
	tp->left.work--;
	tp->nobodys.work++;
	w->ext = NULL;
	w->state = URN_WORK_SENT;
	return w;
}

void
urn_flow_work_put(struct urn_tp *tp, struct urn_work *w)
{
	w->next = tp->work_free;
	tp->work_free = w;
	tp->left.work++;
	tp->nobodys.work--;
}

/* ---- frames */

void
urn_flow_emit(struct urn_tp *tp, const struct urn_txd *d, bool loop)
{
	struct rte_mbuf *m = d->m;

	urn_build_icrc(rte_pktmbuf_mtod(m, uint8_t *), m->data_len - URN_ICRC_BYTES, d->ipv6,
		       tp->cfg.icrc);
	if (loop) {
		URN_COUNT(tp, LOOPBACK);
		m->ol_flags |= tp->flows->looped;
		tp->loop[tp->loop_n++] = m;
		return;
	}
	tp->tx[tp->tx_n++] = m;
}

/* Write a segment's header. returns: where its bytes go */
static uint8_t *
put_segment(uint8_t *at, const struct urn_flow_msg *m, uint32_t off, uint32_t bytes, uint8_t kind)
{
	struct urn_flow_seg *s = (struct urn_flow_seg *)at;

	memset(s, 0, sizeof(*s));
	s->kind = kind;
	s->qid = rte_cpu_to_be_64(m->qid);
	s->src_qid = rte_cpu_to_be_64(m->src_qid);
	s->len = rte_cpu_to_be_32(m->len);
	s->off = rte_cpu_to_be_32(off);
	s->id = rte_cpu_to_be_32(m->id);
	s->bytes = rte_cpu_to_be_16((uint16_t)bytes);
	return at + sizeof(*s);
}

/* Write a void segment. id: of the long message whose part it was; 0: a whole message. returns: the place behind */
static uint8_t *
put_void(uint8_t *at, uint32_t id)
{
	struct urn_flow_seg *s = (struct urn_flow_seg *)at;

	memset(s, 0, sizeof(*s));
	s->kind = URN_FLOW_VOID;
	s->id = rte_cpu_to_be_32(id);
	return at + sizeof(*s);
}

/* Copy a segment's bytes, and clear those behind up to a multiple of 4. returns: the place behind */
static uint8_t *
put_bytes(uint8_t *at, const uint8_t *data, uint32_t bytes)
{
	uint32_t pad = urn_flow_pad(bytes) - bytes, zero = 0;

	memcpy(at, data, bytes);
	memcpy(at + bytes, &zero, pad);
	return at + bytes + pad;
}

static uint32_t
seg_bytes(const struct urn_flow_msg *m)
{
	return (uint32_t)sizeof(struct urn_flow_seg) + urn_flow_pad(m->len);
}

/* Payload bytes of a packet. */
static uint32_t
payload_of(const struct urn_work *w)
{
	const struct urn_flow_msg *m = w->flow.msg;
	uint32_t bytes = w->flow.segs * (uint32_t)sizeof(struct urn_flow_seg);

	if (w->flow.part)
		return bytes + (m ? urn_flow_pad(w->flow.bytes) : 0);
	for (; m; m = m->next)
		bytes += urn_flow_pad(m->len);
	return bytes;
}

static void
put_payload(const struct urn_work *w, uint8_t *at)
{
	const struct urn_flow_msg *m = w->flow.msg;

	if (w->flow.part && !m) {
		put_void(at, w->flow.off);
		return;
	}
	if (w->flow.part) {
		at = put_segment(at, m, w->flow.off, w->flow.bytes, URN_FLOW_PART);
		put_bytes(at, m->data + w->flow.off, w->flow.bytes);
		return;
	}
	for (unsigned int i = 0; i < w->flow.segs; i++) {
		if (unlikely(!m || (w->flow.voids & 1u << i))) {
			at = put_void(at, 0);
			continue;
		}
		at = put_segment(at, m, 0, m->len, URN_FLOW_WHOLE);
		at = put_bytes(at, m->data, m->len);
		m = m->next;
	}
}

/* The start of the node, or the age of the epoch while no start is known; host order. */
static uint32_t
start_or_age(const struct urn_tp *tp, struct urn_flow *f)
{
	uint32_t born;
	int32_t age;
	uint64_t ms;

	if (likely(f->tx_start))
		return f->tx_start;
	if (!f->tx_born) { /* the turn may have begun long before this packet goes out */
		born = (uint32_t)(urn_flow_clock(tp) >> URN_FLOW_AGE_SHIFT);
		f->tx_born = born ? born : UINT32_MAX;
	}
	age = (int32_t)((uint32_t)(tp->now >> URN_FLOW_AGE_SHIFT) - f->tx_born);
	ms = age > 0 ? ((age - 1ull) << URN_FLOW_AGE_SHIFT) / 1000000
		     : 0; /* both times were rounded down */
	return (uint32_t)RTE_MIN(ms, (uint64_t)URN_FLOW_AGE_MAX);
}

/* Send a packet, for the first time or again. returns: false: no buffer */
static bool
send_packet(struct urn_tp *tp, struct urn_flow *f, struct urn_work *w)
{
	bool first = f->key & URN_FLOW_KEY_TO_FIRST;
	uint32_t dqpn = first ? URN_FLOW_SLOT_FIRST : urn_flow_qpn(f->key & URN_FLOW_KEY_ENGINE);
	uint32_t payload = payload_of(w), top = tp->cfg.engine | (first ? URN_FLOW_KEY_VIA_FIRST : 0);
	struct urn_flow_hdr *h;
	struct urn_txd *d;
	uint8_t *bth;

	d = urn_tp_frame_inline(tp, &f->tmpl, URN_FLOW_DATA, payload, dqpn, w->first_psn, 0, true, &bth);
	if (unlikely(!d))
		return false;
	h = (struct urn_flow_hdr *)(bth + sizeof(struct urn_bth));
	h->epoch = rte_cpu_to_be_64(f->tx_epoch);
	h->start = rte_cpu_to_be_32(start_or_age(tp, f));
	h->psn = rte_cpu_to_be_32(top << 24 | f->tx.una);
	put_payload(w, (uint8_t *)(h + 1));
	urn_flow_emit(tp, d, f->flags & URN_FLOWF_LOOP);
	w->flow.sent_no = ++f->sent_no;
	w->flow.state = URN_FLOW_OUT;
	f->out++;
	f->tx_at = tp->now;
	urn_congestion_sent_source(tp, &f->congestion, payload);
	URN_COUNT(tp, FLOW_TX);
	return true;
}

/* ---- new packets */

/* Put short messages into a packet, as many as fit. */
static void
fill_whole(struct urn_tp *tp, struct urn_flow *f, struct urn_work *w)
{
	struct urn_flow_msg *m, **tail = &w->flow.msg;
	uint32_t room = tp->cfg.mtu;

	w->flow.part = 0;
	while ((m = f->shorts.head) && seg_bytes(m) <= room && w->flow.segs < URN_FLOW_SEGMENTS) {
		room -= seg_bytes(m);
		urn_flow_take(&f->shorts, m);
		urn_flow_not_waiting(tp, f, m);
		m->state = URN_FLOW_MSG_SENT;
		m->work = w;
		m->sent = m->len;
		m->next = NULL;
		*tail = m;
		tail = &m->next;
		w->flow.segs++;
	}
	w->flow.bytes = tp->cfg.mtu - room;
}

/*
 * The long message whose part is sent next: the one with the fewest bytes left, so that a message
 * that began ends soon, and short ones wait for little. The oldest has one turn in OLDEST_TURN:
 * those behind it can't hold it up for ever.
 */
static struct urn_flow_msg *
next_long(const struct urn_flow *f)
{
	struct urn_flow_msg *best = f->active.head;

	if ((f->sent_no & (OLDEST_TURN - 1)) == OLDEST_TURN - 1)
		return best;
	for (struct urn_flow_msg *m = best->next; m; m = m->next)
		if (m->len - m->sent < best->len - best->sent)
			best = m;
	return best;
}

/* Put the next part of the long message whose turn it is into a packet. */
static void
fill_part(struct urn_tp *tp, struct urn_flow *f, struct urn_work *w)
{
	uint32_t most = (tp->cfg.mtu - (uint32_t)sizeof(struct urn_flow_seg)) & ~3u;
	struct urn_flow_msg *m = next_long(f);

	if (!m->sent) { /* ids are in the order in which messages begin: a receiver counts on it */
		f->next_id += f->next_id == UINT32_MAX ? 2 : 1; /* 0 is no id */
		m->id = f->next_id;
	}
	w->flow.part = 1;
	w->flow.segs = 1;
	w->flow.msg = m;
	w->flow.off = m->sent;
	w->flow.bytes = RTE_MIN(m->len - m->sent, most);
	m->sent += w->flow.bytes;
	m->out++;
	if (m->sent < m->len)
		return;
	urn_flow_take(&f->active, m);
	m->state = URN_FLOW_MSG_PARTS;
	f->active_n--;
	urn_flow_not_waiting(tp, f, m);
}

/* Let more long messages take turns. */
static void
activate(struct urn_flow *f)
{
	struct urn_flow_msg *m;

	while (f->active_n < URN_FLOW_ACTIVE && (m = f->longs.head)) {
		urn_flow_take(&f->longs, m);
		urn_flow_put(&f->active, m, URN_FLOW_MSG_ACTIVE);
		f->active_n++;
	}
}

/* Make a packet that says of a long message, which was let go midway, that no part follows. */
static void
fill_gone(struct urn_flow *f, struct urn_work *w)
{
	w->flow.part = 1;
	w->flow.segs = 1;
	w->flow.voids = 1;
	w->flow.off = f->gone[--f->gone_n];
}

/*
 * Make and send a new packet. Messages that were let go come first: no further one begins before the node can drop them,
 * and so gone has room. Short messages and parts of long ones take turns. returns: false: no room
 */
static bool
send_new(struct urn_tp *tp, struct urn_flow *f)
{
	struct urn_work *w = work_get(tp);
	bool was_idle = urn_psn_tx_idle(&f->tx);

	if (unlikely(!w))
		return false;
	if (unlikely(f->longs.head))
		activate(f);
	memset(&w->flow, 0, sizeof(w->flow));
	if (unlikely(f->gone_n))
		fill_gone(f, w);
	else if (f->active.head && (!f->shorts.head || f->sent_no & 1))
		fill_part(tp, f, w);
	else
		fill_whole(tp, f, w);
	urn_psn_tx_append(&f->tx, w, 1);
	urn_psn_tx_sent(&f->tx, &f->tx.cur, 1, true);
	if (was_idle)
		urn_flow_arm(tp, f);
	if (unlikely(!send_packet(tp, f, w))) { /* the packet is as good as lost */
		w->flow.state = URN_FLOW_OUT;
		f->out++;
		urn_flow_lose(f, w);
		return false;
	}
	urn_peer_time(tp, &f->tx, w->first_psn);
	return true;
}

void
urn_flow_lose(struct urn_flow *f, struct urn_work *w)
{
	w->flow.state = URN_FLOW_LOST;
	f->out--;
	f->lost++;
}

/* Send lost packets again, oldest first. returns: false: no room */
static bool
send_lost(struct urn_tp *tp, struct urn_flow *f, unsigned int *budget)
{
	for (struct urn_work *w = f->tx.head; w && f->lost && *budget; w = w->next) {
		if (w->flow.state != URN_FLOW_LOST)
			continue;
		if (!urn_tp_tx_frames(tp) || !send_packet(tp, f, w))
			return false;
		f->lost--;
		(*budget)--;
		urn_peer_untime(tp, &f->tx);
		URN_COUNT(tp, FLOW_RETRANSMITS);
	}
	return true;
}

/*
 * True when a MAC address was waited for as long as a node may take to tell it. The table of addresses
 * forgets those that it asks for when more are asked for than it has room for, and gives no verdict then.
 */
static bool
asked_in_vain(const struct urn_tp *tp, struct urn_flow *f)
{
	uint16_t now = (uint16_t)(tp->now >> 20);

	if (!(f->flags & URN_FLOWF_ASKS)) {
		f->flags |= URN_FLOWF_ASKS;
		f->asked_at = now;
	}
	return (uint16_t)(now - f->asked_at) > URN_FLOW_ASK_NS >> 20;
}

/* True when the node's MAC address is known. If not, the flow waits for it, or fails. */
static bool
reachable(struct urn_tp *tp, struct urn_flow *f)
{
	uint8_t mac[6];
	int rc;

	if (likely((f->flags & URN_FLOWF_MAC) &&
		   ((f->flags & URN_FLOWF_LOOP) || f->mac_gen == tp->mac_gen)) || !tp->cfg.neigh)
		return true;
	rc = tp->cfg.neigh(tp->cfg.neigh_ctx, f->gid, mac);
	if (rc == 0) {
		memcpy(f->tmpl.bytes, mac, 6);
		f->mac_gen = tp->mac_gen;
		f->flags = (uint16_t)((f->flags | URN_FLOWF_MAC) & ~URN_FLOWF_ASKS);
		return true;
	}
	f->flags &= (uint16_t)~URN_FLOWF_MAC;
	if (urn_psn_tx_idle(&f->tx) && (rc != -1 || asked_in_vain(tp, f))) {
		f->flags &= (uint16_t)~URN_FLOWF_ASKS;
		urn_flow_fail(tp, f, URN_MSG_NO_NODE, true);
	} else {
		urn_psn_wake_at(&tp->wheel, &f->tx, tp->now + URN_TP_NEIGH_NS);
	}
	return false;
}

/*
 * True when the window has room for one more packet. A node that may not be there gets few: all of them are
 * repeated at each timeout, in turns that other flows wait for.
 */
static bool
window_open(const struct urn_tp *tp, const struct urn_flow *f)
{
	uint32_t most = likely(f->tx_start) ? URN_FLOW_WINDOW - 1u : URN_FLOW_FIRST;

	return urn_psn_tx_out(&f->tx) < most && f->out < urn_psn_peer(tp, &f->tx)->window;
}

/* Send data. returns: true when there is more to send, and nothing to wait for but room */
static bool
send_data(struct urn_tp *tp, struct urn_flow *f)
{
	unsigned int budget = URN_FLOW_FRAMES;

	if (f->congestion) {
		if (!urn_congestion_open_source(tp, &f->congestion))
			return false;
		budget = URN_PACED_FRAMES;
	}
	if (unlikely(f->lost) && !send_lost(tp, f, &budget))
		return true;
	while (urn_flow_has_new(f) && window_open(tp, f)) {
		if (!budget-- || !urn_tp_tx_frames(tp) || !send_new(tp, f))
			return true;
	}
	return f->lost != 0;
}

void
urn_flow_gather(struct urn_tp *tp, struct urn_flow *f)
{
	if (f->flags & URN_FLOWF_GATHERS)
		return;
	f->flags |= URN_FLOWF_GATHERS;
	f->gathered_next = tp->gathered;
	tp->gathered = f;
}

/*
 * An acknowledgement is owed. Data goes first, for a turn at most: a program that answers a message waits for the
 * answer's way, and the sender of the message for both. sent: the flow sent data in this share of the turn.
 * returns: true when there is nothing more to do now
 */
static bool
acknowledge(struct urn_tp *tp, struct urn_flow *f, bool sent)
{
	bool paced = f->user.source.flags & URN_SOURCE_PARKED; /* data has no turn for long: do not wait for it */

	if (!paced && !(f->flags & URN_FLOWF_ACK_LATE)) {
		if (tp->gathers) {
			urn_flow_gather(tp, f);
			return true;
		}
		if (sent) {
			f->flags |= URN_FLOWF_ACK_LATE;
			return false;
		}
	}
	f->flags &= (uint16_t)~URN_FLOWF_ACK_LATE;
	return urn_flow_tell(tp, f);
}

/* Use a share of the turn. returns: true when there is more to do */
static bool
serve(struct urn_tp *tp, struct urn_flow *f)
{
	uint32_t sent_no = f->sent_no;
	bool more = false;

	f->gathered_n = 0;
	if ((f->flags & URN_FLOWF_TX) && (urn_flow_has_new(f) || f->lost) && reachable(tp, f))
		more = send_data(tp, f);
	if ((f->flags & URN_FLOWF_ACK) && !acknowledge(tp, f, f->sent_no != sent_no))
		more = true;
	return more;
}

bool
urn_flow_serve(struct urn_tp *tp, struct urn_source *src)
{
	struct urn_flow *f = urn_flow_of(src);

	if (tp->gathers && f->gathered_n < URN_FLOW_SEGMENTS) {
		urn_flow_gather(tp, f);
		return false;
	}
	return serve(tp, f);
}

void
urn_flows_send(struct urn_tp *tp)
{
	struct urn_flow *f;

	while ((f = tp->gathered)) {
		struct urn_source *src = &f->user.source;

		tp->gathered = f->gathered_next;
		f->flags &= (uint16_t)~URN_FLOWF_GATHERS;
		/* A paced flow has its turn at its time. One that a source without room scheduled anew has its turn here. */
		if (src->flags & URN_SOURCE_PARKED)
			continue;
		urn_sched_remove(&tp->sched, src);
		if (!serve(tp, f))
			continue;
		/* The next turn comes in its order: frames of others might leave no room again and again. */
		f->gathered_n = URN_FLOW_SEGMENTS;
		urn_sched_add(&tp->sched, src);
	}
}
