/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows: packets of messages, first and repeated. */
#include "transport/flow_priv.h"
#include "transport/part.h"

enum {
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

	/* So many entries are enough for a packet to any node (urn_flow_may_take()). */
	if (unlikely(tp->left.work <=
		     tp->fair_work.kept + urn_share_user(share)->work + share->orphans) &&
	    !urn_flow_may_take(tp, l))
		return NULL;
	tp->work_free = w->next;
	if (unlikely(!tp->work_free))
		urn_work_more(tp);
	if (likely(tp->work_free != NULL)) /* long packets left little of it in the cache */
		urn_prefetch_write(tp->work_free);
	tp->left.work--;
	urn_work_count(share, 1);
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

/* ---- new packets */

/* Put short messages of a strand into a packet, as many as fit. tail: link behind the packet's last
 * one. returns: bytes left */
static uint32_t
fill(struct urn_flow_strand *l, struct urn_work *w, uint32_t room, struct urn_flow_msg ***tail)
{
	struct urn_flow_msg *m;

	while ((m = l->shorts.head) && urn_flow_seg_bytes(m) <= room &&
	       w->flow.segs < URN_FLOW_SEGMENTS) {
		room -= urn_flow_seg_bytes(m);
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
		w->flow.shared = true;
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
	uint32_t mtu = l->flow->mtu, room = fill(l, w, mtu, &tail);

	if (unlikely(has_others(l)) && !l->shorts.head)
		room = fill_up(tp, l, w, room, tail);
	w->flow.bytes = mtu - room;
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
	struct urn_flow_msg *m = next_long(l);
	struct urn_flow *f = l->flow;
	uint32_t most = f->mtu - (uint32_t)sizeof(struct urn_flow_part);

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
	urn_flow_unqueue(m);
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
 * True when the first short message of a strand fits a packet. One that does not, because packets
 * are shorter since it was queued, is sent in parts. One message a packet is moved: a node that
 * tells ever other lengths does not make a turn long.
 */
static bool
first_fits(struct urn_flow_strand *l)
{
	struct urn_flow_msg *m = l->shorts.head;

	if (!m || likely(urn_flow_seg_bytes(m) <= l->flow->mtu))
		return m != NULL;
	urn_flow_take(&l->shorts, m);
	urn_flow_put(&l->longs, m, URN_FLOW_MSG_LONG);
	return false;
}

/*
 * Choose the contents of a new packet. Messages that were let go come first: no further one begins
 * before the node can drop them, and so gone has room. A probe lets the messages that follow have
 * longer packets. Short messages and parts of long ones take turns.
 */
static void
fill_new(struct urn_tp *tp, struct urn_flow_strand *l, struct urn_work *w)
{
	struct urn_flow *f = l->flow;
	bool fits = first_fits(l);

	if (unlikely(l->longs.head))
		activate(l);
	if (unlikely(f->gone_n))
		fill_gone(f, w);
	else if (unlikely(f->flags & URN_FLOWF_PROBE))
		urn_flow_mtu_fill(f, w);
	else if ((l->active || l->longs.head) && (!fits || f->sent_no & 1))
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
	if (unlikely(!urn_flow_send_packet(tp, f, w, false))) { /* the packet is as good as lost */
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
	if (unlikely(w->flow.shared))
		l->user.source.flags |= URN_STRAND_SHARED;
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
		if (!urn_tp_tx_frames(tp) || !urn_flow_send_packet(tp, f, w, true))
			return false;
		f->lost--;
		l->lost--;
		(*budget)--;
		urn_peer_untime(tp, &f->tx);
		URN_COUNT(tp, FLOW_RETRANSMITS);
	}
	if (!l->lost)
		l->user.source.flags &= ~(uint32_t)URN_STRAND_SHARED;
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
static URN_FAST bool
send_data(struct urn_tp *tp, struct urn_flow_strand *l)
{
	struct urn_flow *f = l->flow;
	unsigned int budget = RTE_MIN((unsigned int)URN_FLOW_FRAMES, tp->turn_frames);
	struct urn_work *w;

	if (f->congestion) {
		if (!urn_congestion_open_source(tp, &f->congestion))
			return false;
		budget = urn_congestion_frames(tp, &f->congestion, f->mtu, budget);
	}
	if (unlikely(l->lost) && !send_lost(tp, l, &budget))
		return true;
	while (urn_flow_strand_has_new(l) && window_open(tp, f)) {
		if (!budget-- || !urn_tp_tx_frames(tp) || urn_part_ends(tp))
			return true;
		w = work_get(tp, l);
		if (unlikely(!w)) {
			if (l->lost)
				return true;
			URN_COUNT(tp, FLOW_DRY);
			urn_flow_strand_leave(tp, l); /* an answer may have put it into a list */
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

URN_FAST void
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

/* A strand that sent something has its next turn in the flow's window behind the others. A strand
 * whose messages have gone meanwhile, with their bytes, is not ready any more. */
static void
step_back(struct urn_flow_strand *l)
{
	if (unlikely(!(l->user.source.flags & URN_STRAND_READY)))
		return;
	if (likely(!TAILQ_NEXT(l, ready)) || l->lost)
		return;
	TAILQ_REMOVE(&l->flow->ready, l, ready);
	TAILQ_INSERT_TAIL(&l->flow->ready, l, ready);
}

/* Use a share of the turn; the strand is ready. returns: true when there is more to do */
static URN_FAST bool
serve(struct urn_tp *tp, struct urn_flow_strand *l)
{
	uint32_t sent_no = l->flow->sent_no;
	bool more;

	l->gathered_n = 0;
	l->user.source.flags &= ~(uint32_t)URN_STRAND_AT_ONCE;
	if (unlikely(
		    !reachable(tp, l->flow))) /* the flow may have failed, and the strand be gone */
		return false;
	if (unlikely(tp->sched.stopped) && !(l->flow->flags & URN_FLOWF_LOOP) &&
	    urn_sched_stops(tp, &l->user.source, &l->flow->tmpl)) {
		l->user.source.flags |= URN_STRAND_AT_ONCE;
		return false;
	}
	urn_flow_renew_old(tp, l->flow); /* messages may have waited since the last packet */
	l->msgs++; /* the turn holds the strand: messages that are answered meanwhile do not free it
		    */
	more = send_data(tp, l);
	l->msgs--;
	if (l->flow->sent_no != sent_no)
		step_back(l);
	if (more) /* the next turn comes in its order: the strand need not wait for messages, nor
		     for frames of others */
		l->gathered_n = URN_FLOW_SEGMENTS;
	if (unlikely(!l->msgs) || (!more && !(l->user.source.flags & URN_STRAND_DRY)))
		urn_flow_strand_settle(tp, l);
	return more;
}

bool
urn_flow_serve(struct urn_tp *tp, struct urn_source *src)
{
	struct urn_flow_strand *l = urn_flow_strand_of(src);

	if (unlikely(urn_flow_strand_fails(l)))
		return urn_flow_fail_turn(tp, l);
	/* Repeats wait for no messages that could share their packets. */
	if (tp->gathers && l->gathered_n < URN_FLOW_SEGMENTS && likely(!l->lost) &&
	    likely(!(src->flags & URN_STRAND_AT_ONCE))) {
		urn_flow_gather(tp, l);
		return false;
	}
	return serve(tp, l);
}

/* The turn of a strand that gathered. returns: true when there is more to do */
static inline __attribute__((always_inline)) bool
send_gathered(struct urn_tp *tp, struct urn_source *src)
{
	/* A strand whose messages fail has turns of the schedule alone. */
	return unlikely(src->flags & URN_STRAND_FAILS) || serve(tp, urn_flow_strand_of(src));
}

URN_FAST void
urn_flows_send(struct urn_tp *tp)
{
	struct urn_tp_share *share;
	struct urn_source *src;

	while ((src = tp->gathered)) {
		tp->gathered = src->next;
		src->flags &= ~(uint32_t)(URN_STRAND_GATHERS | URN_SOURCE_AWAY);
		share = src->share;
		/* Turns that gathered are charged here: those whose client owes some by now come
		 * later. */
		if (unlikely(urn_sched_owes(&tp->sched, share))) {
			src->flags |= URN_STRAND_AT_ONCE;
			urn_sched_add(&tp->sched, src);
			continue;
		}
		urn_part_serve(tp, src, send_gathered);
	}
}
