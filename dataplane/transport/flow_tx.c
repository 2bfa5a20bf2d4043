/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows: packets of messages, first and repeated. */
#include "transport/flow_priv.h"

enum {
	AGE_SHIFT = 20,	 /* ns to units of urn_flow.tx_born */
	OLDEST_TURN = 8, /* a power of two, more than 1: parts of the oldest message come at odd
			    numbers, too */
};

/* ---- work: one a packet, from the transport's pool */

/* Take work for a packet of a strand. NULL: none for the strand's owner now */
static struct urn_work *
work_get(struct urn_tp *tp, struct urn_flow_strand *l)
{
	struct urn_tp_share *share = l->user.source.share;
	struct urn_work *w = tp->work_free;

	if (unlikely(tp->left.work <= share->work) && !urn_flow_may_take(tp, l))
		return NULL;
	tp->work_free = w->next;
	if (unlikely(!tp->work_free))
		urn_work_more(tp);
	tp->left.work--;
	share->work++;
	l->packets++;
	w->ext = NULL;
	w->state = URN_WORK_SENT;
	memset(&w->flow, 0, sizeof(w->flow));
	w->flow.strand = l;
	return w;
}

void
urn_flow_work_put(struct urn_tp *tp, struct urn_work *w)
{
	w->next = tp->work_free;
	tp->work_free = w;
	tp->left.work++;
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
	uint32_t now = (uint32_t)(tp->now >> AGE_SHIFT), age;
	uint64_t ms;

	if (likely(f->tx_start))
		return f->tx_start;
	if (!f->tx_born)
		f->tx_born = now ? now : UINT32_MAX;
	age = now - f->tx_born;
	ms = age ? ((age - 1ull) << AGE_SHIFT) / 1000000 : 0; /* both times were rounded down */
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
	f->flags |= URN_FLOWF_SENT;
	f->tx_at = tp->now;
	urn_congestion_sent_source(tp, &f->congestion, payload);
	URN_COUNT(tp, FLOW_TX);
	return true;
}

/* ---- new packets */

/* Put short messages of a strand into a packet, as many as fit. tail: link behind the packet's last
 * one. returns: bytes left */
static uint32_t
fill(struct urn_flow_strand *l, struct urn_work *w, uint32_t room, struct urn_flow_msg ***tail)
{
	struct urn_flow_msg *m;

	while ((m = l->shorts.head) && seg_bytes(m) <= room && w->flow.segs < URN_FLOW_SEGMENTS) {
		room -= seg_bytes(m);
		urn_flow_take(&l->shorts, m);
		m->state = URN_FLOW_MSG_SENT;
		m->work = w;
		m->sent = m->len;
		m->next = NULL;
		**tail = m;
		*tail = &m->next;
		w->flow.segs++;
	}
	return room;
}

/* Messages of the other strands share the room that a packet of a strand has left. returns: bytes
 * left */
static uint32_t
fill_up(struct urn_tp *tp, struct urn_flow_strand *l, struct urn_work *w, uint32_t room,
	struct urn_flow_msg **tail)
{
	struct urn_flow_strand *other = TAILQ_FIRST(&l->flow->ready), *next;

	for (unsigned int i = 0; other && i < URN_FLOW_LOOK; i++, other = next) {
		next = TAILQ_NEXT(other, ready);
		if (other == l || !other->shorts.head)
			continue;
		room = fill(other, w, room, &tail);
		urn_flow_strand_settle(tp, other);
	}
	return room;
}

/* True when other strands than this one have something to send. */
static bool
has_others(const struct urn_flow_strand *l)
{
	return TAILQ_FIRST(&l->flow->ready) != l || TAILQ_NEXT(l, ready);
}

static void
fill_whole(struct urn_tp *tp, struct urn_flow_strand *l, struct urn_work *w)
{
	struct urn_flow_msg **tail = &w->flow.msg;
	uint32_t room = fill(l, w, tp->cfg.mtu, &tail);

	if (unlikely(has_others(l)) && !l->shorts.head)
		room = fill_up(tp, l, w, room, tail);
	w->flow.bytes = tp->cfg.mtu - room;
}

/*
 * The long message whose part is sent next: of those of the strand the one with the fewest bytes
 * left, so that a message that began ends soon, and short ones wait for little. The oldest has one
 * turn in OLDEST_TURN: those behind it can't hold it up for ever. A strand whose messages wait
 * until others end helps these.
 */
static struct urn_flow_msg *
next_long(const struct urn_flow_strand *l)
{
	bool oldest = (l->flow->sent_no & (OLDEST_TURN - 1)) == OLDEST_TURN - 1;
	struct urn_flow_msg *best = NULL;

	for (struct urn_flow_msg *m = l->flow->active.head; m; m = m->next) {
		if (l->active && m->strand != l)
			continue;
		if (oldest)
			return m;
		if (!best || m->len - m->sent < best->len - best->sent)
			best = m;
	}
	return best;
}

/* Put the next part of the long message whose turn it is into a packet. */
static void
fill_part(struct urn_tp *tp, struct urn_flow_strand *l, struct urn_work *w)
{
	uint32_t most = (tp->cfg.mtu - (uint32_t)sizeof(struct urn_flow_seg)) & ~3u;
	struct urn_flow_msg *m = next_long(l);
	struct urn_flow *f = l->flow;

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
	urn_flow_unqueue(tp, m);
	m->state = URN_FLOW_MSG_PARTS;
	if (m->strand != l)
		urn_flow_strand_settle(tp, m->strand);
}

/*
 * Let more long messages of a strand take turns. The last place is for strands that have no other,
 * so that the messages of one owner do not keep out those of the next.
 */
static void
activate(struct urn_flow_strand *l)
{
	struct urn_flow *f = l->flow;
	struct urn_flow_msg *m;

	while (f->active_n + (l->active ? 1 : 0) < URN_FLOW_ACTIVE && (m = l->longs.head)) {
		urn_flow_take(&l->longs, m);
		urn_flow_put(&f->active, m, URN_FLOW_MSG_ACTIVE);
		f->active_n++;
		l->active++;
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
 * Choose the contents of a new packet. Messages that were let go come first: no further one begins
 * before the node can drop them, and so gone has room. Short messages and parts of long ones take
 * turns.
 */
static void
fill_new(struct urn_tp *tp, struct urn_flow_strand *l, struct urn_work *w)
{
	struct urn_flow *f = l->flow;

	if (unlikely(l->longs.head))
		activate(l);
	if (unlikely(f->gone_n))
		fill_gone(f, w);
	else if ((l->active || l->longs.head) && (!l->shorts.head || f->sent_no & 1))
		fill_part(tp, l, w);
	else
		fill_whole(tp, l, w);
}

/* Send a new packet, which has its work. returns: false: no buffer */
static bool
send_new(struct urn_tp *tp, struct urn_flow_strand *l, struct urn_work *w)
{
	struct urn_flow *f = l->flow;
	bool was_idle = urn_psn_tx_idle(&f->tx);

	fill_new(tp, l, w);
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
	struct urn_flow_strand *l = w->flow.strand;

	w->flow.state = URN_FLOW_LOST;
	f->out--;
	f->lost++;
	l->lost++;
	urn_flow_strand_ready(l, true);
}

/* Send lost packets of a strand again, oldest first. returns: false: no room */
static bool
send_lost(struct urn_tp *tp, struct urn_flow_strand *l, unsigned int *budget)
{
	struct urn_flow *f = l->flow;

	for (struct urn_work *w = f->tx.head; w && l->lost && *budget; w = w->next) {
		if (w->flow.state != URN_FLOW_LOST || w->flow.strand != l)
			continue;
		if (!urn_tp_tx_frames(tp) || !send_packet(tp, f, w))
			return false;
		f->lost--;
		l->lost--;
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
 * The window. A node that may not be there gets few packets: all of them are repeated at each
 * timeout, in turns that other strands of the client wait for.
 */
static inline uint32_t
most_out(const struct urn_flow *f)
{
	return likely(f->tx_start) ? URN_FLOW_WINDOW - 1u : URN_FLOW_FIRST;
}

uint32_t
urn_flow_room(const struct urn_tp *tp, const struct urn_flow *f)
{
	uint32_t most = most_out(f), out = urn_psn_tx_out(&f->tx),
		 window = urn_psn_peer(tp, &f->tx)->window;

	if (out >= most || f->out >= window)
		return 0;
	return RTE_MIN(most - out, window - f->out);
}

static bool
window_open(const struct urn_tp *tp, const struct urn_flow *f)
{
	return urn_psn_tx_out(&f->tx) < most_out(f) && f->out < urn_psn_peer(tp, &f->tx)->window;
}

/* Send data of a strand. returns: true when there is more to send, and nothing to wait for but room
 */
static bool
send_data(struct urn_tp *tp, struct urn_flow_strand *l)
{
	struct urn_flow *f = l->flow;
	unsigned int budget = URN_FLOW_FRAMES;
	struct urn_work *w;

	if (f->congestion) {
		if (!urn_congestion_open_source(tp, &f->congestion))
			return false;
		budget = URN_PACED_FRAMES;
	}
	if (unlikely(l->lost) && !send_lost(tp, l, &budget))
		return true;
	while (urn_flow_strand_has_new(l) && window_open(tp, f)) {
		if (!budget-- || !urn_tp_tx_frames(tp))
			return true;
		w = work_get(tp, l);
		if (unlikely(!w)) {
			if (l->lost)
				return true;
			URN_COUNT(tp, FLOW_DRY);
			urn_flow_dry(tp, l);
			urn_flow_wake(
				tp,
				f); /* another strand may have waited for the turn of this one */
			return false;
		}
		if (!send_new(tp, l, w))
			return true;
	}
	return l->lost != 0;
}

void
urn_flow_gather(struct urn_tp *tp, struct urn_flow_strand *l)
{
	struct urn_source *src = &l->user.source;

	if (src->flags & URN_SOURCE_HELD)
		return;
	src->flags |= URN_STRAND_GATHERS | URN_SOURCE_AWAY;
	src->next = NULL;
	src->prev = tp->gathered_last;
	if (tp->gathered)
		tp->gathered_last->next = src;
	else
		tp->gathered = src;
	tp->gathered_last = src;
}

/* A strand that sent something has its next turn in the flow's window behind the others. */
static void
step_back(struct urn_flow_strand *l)
{
	if (likely(!TAILQ_NEXT(l, ready)) || l->lost)
		return;
	TAILQ_REMOVE(&l->flow->ready, l, ready);
	TAILQ_INSERT_TAIL(&l->flow->ready, l, ready);
}

/* Use a share of the turn; the strand is ready. returns: true when there is more to do */
static bool
serve(struct urn_tp *tp, struct urn_flow_strand *l)
{
	uint32_t sent_no = l->flow->sent_no;
	bool more;

	l->gathered_n = 0;
	if (unlikely(
		    !reachable(tp, l->flow))) /* the flow may have failed, and the strand be gone */
		return false;
	more = send_data(tp, l);
	if (l->flow->sent_no != sent_no)
		step_back(l);
	if (more) /* the next turn comes in its order: the strand need not wait for messages, nor
		     for frames of others */
		l->gathered_n = URN_FLOW_SEGMENTS;
	else if (!(l->user.source.flags & URN_STRAND_DRY))
		urn_flow_strand_settle(tp, l);
	return more;
}

bool
urn_flow_serve(struct urn_tp *tp, struct urn_source *src)
{
	struct urn_flow_strand *l = urn_flow_strand_of(src);

	if (tp->gathers && l->gathered_n < URN_FLOW_SEGMENTS) {
		urn_flow_gather(tp, l);
		return false;
	}
	return serve(tp, l);
}

void
urn_flows_send(struct urn_tp *tp)
{
	struct urn_source *src;

	while ((src = tp->gathered)) {
		tp->gathered = src->next;
		src->flags &= ~(uint32_t)(URN_STRAND_GATHERS | URN_SOURCE_AWAY);
		if (serve(tp, urn_flow_strand_of(src)))
			urn_sched_add(&tp->sched, src);
	}
}
