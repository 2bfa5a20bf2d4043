/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows: strands. A strand has the messages of one owner, a client, that wait in a flow, and the
 * owner's packets in flight. The strand is the source of their turns, in the owner's share of the
 * schedule.
 *
 *   client 1 ── sets, and strands ──┐             ┌── flow ── window, PSNs ──► node
 *                 strand ───────────┼─ schedule ──┤
 *   client 2 ── strand, strand, strand ─┘             └── flow ── ...
 *
 * The schedule goes round the clients first. So between two turns of one client another client has
 * one, and sends URN_FLOW_FRAMES packets, whatever number of nodes its messages go to. A flow is
 * reached from each client that has messages in it: a message waits for those of its own client.
 *
 * Strands of a flow share the flow's window. A strand that finds the window closed leaves the
 * schedule, and keeps its place in urn_flow.ready; the strand that sent longest ago has its turn
 * first when there is room. A turn in which packets of one strand leave room takes messages of the
 * others along.
 *
 * Two other designs were not taken. A flow in the share of the client whose message is the first in
 * a common queue: the message of another client behind it waits for all flows of that client. A
 * credit of messages by client, over all flows: a silent node uses it up, and then holds those to
 * other nodes.
 */
#include "transport/flow_priv.h"

#include <stdlib.h>

static const struct urn_source_ops strand_ops;

/* ---- the lists that a strand is in */

static struct urn_flow_strand **
bucket_of(const struct urn_flows *fl, const struct urn_flow *f, const struct urn_tp_share *owner)
{
	uint64_t h = ((uint64_t)(uintptr_t)f * 0x9e3779b97f4a7c15u ^ (uint64_t)(uintptr_t)owner) *
		     0xd6e8feb86659fd93u;

	return &fl->strand_bucket[h >> 50];
}
_Static_assert(URN_FLOW_STRAND_BUCKETS == 16384, "fourteen bits of a hash");

URN_FAST void
urn_flow_strand_leave(struct urn_tp *tp, struct urn_flow_strand *l)
{
	struct urn_source *src = &l->user.source;

	urn_sched_remove(&tp->sched, src);
	if (src->flags & URN_STRAND_DRY)
		urn_flow_dry_end(tp, l);
	if (!(src->flags & URN_STRAND_GATHERS))
		return;
	urn_source_unlink(&tp->gathered, &tp->gathered_last, src);
	src->flags &= ~(uint32_t)(URN_STRAND_GATHERS | URN_SOURCE_AWAY);
}

URN_FAST void
urn_flow_strand_ready(struct urn_flow_strand *l, bool first)
{
	struct urn_flow *f = l->flow;

	if (unlikely(urn_flow_strand_fails(l)))
		return; /* until its turns of answers are over */
	if (l->user.source.flags & URN_STRAND_READY) {
		if (!first)
			return;
		TAILQ_REMOVE(&f->ready, l, ready);
	}
	l->user.source.flags |= URN_STRAND_READY;
	if (first)
		TAILQ_INSERT_HEAD(&f->ready, l, ready);
	else
		TAILQ_INSERT_TAIL(&f->ready, l, ready);
}

void
urn_flow_wake(struct urn_tp *tp, struct urn_flow *f)
{
	uint32_t room = urn_flow_has_work(f) ? urn_flow_room(tp, f) : 0;
	struct urn_flow_strand *l;

	TAILQ_FOREACH(l, &f->ready, ready) {
		bool dry = l->user.source.flags & URN_STRAND_DRY;

		/* A repeat needs neither room in the window nor work. */
		if (unlikely(l->lost && dry))
			urn_flow_dry_end(tp, l);
		else if (unlikely(dry))
			continue;
		if (likely(!l->lost) && !room--)
			return;
		if (unlikely(l->lost && (l->user.source.flags & URN_STRAND_SHARED)))
			urn_sched_add_first(&tp->sched, &l->user.source);
		else
			urn_sched_add(&tp->sched, &l->user.source);
	}
}

/* ---- strands come and go */

/*
 * True when nothing is in a strand. An empty one stays while it is the one that its flow found
 * last: a client with one message at a time would have a strand made for each. The address of its
 * share is compared, and not followed: the client may have gone. A client whose share has the same
 * address gets the strand, and finds it empty.
 */
static bool
is_empty(const struct urn_flow_strand *l)
{
	return !l->msgs && !l->packets &&
	       !(l->user.source.flags & (URN_STRAND_READY | URN_STRAND_FAILS));
}

void
urn_flow_strand_drop_empty(struct urn_tp *tp, struct urn_flow *f)
{
	if (f->strand && is_empty(f->strand))
		urn_flow_strand_free(tp, f->strand);
}

static struct urn_flow_strand *
make(struct urn_flows *fl, struct urn_flow *f, struct urn_tp_share *share)
{
	struct urn_flow_strand *l = fl->spare_strands, **bucket = bucket_of(fl, f, share);

	if (likely(l != NULL)) {
		fl->spare_strands = l->hash_next;
		fl->spare_strands_n--;
	} else {
		l = malloc(sizeof(*l));
		if (!l)
			return NULL;
	}
	memset(l, 0, sizeof(*l));
	l->user.source.share = share;
	l->user.source.kind = URN_SOURCE_OPS;
	l->user.ops = &strand_ops;
	l->flow = f;
	urn_flow_queue_init(&l->shorts);
	urn_flow_queue_init(&l->longs);
	l->hash_next = *bucket;
	*bucket = l;
	f->strands++;
	return l;
}

URN_FAST struct urn_flow_strand *
urn_flow_strand_get(struct urn_tp *tp, struct urn_flow *f, struct urn_tp_share *owner)
{
	struct urn_tp_share *share = likely(owner != NULL) ? owner : &tp->nobodys;
	struct urn_flow_strand *l = f->strand;

	if (likely(l && l->user.source.share == share))
		return l;
	urn_flow_strand_drop_empty(tp, f);
	l = *bucket_of(tp->flows, f, share);
	while (l && (l->flow != f || l->user.source.share != share))
		l = l->hash_next;
	if (!l)
		l = make(tp->flows, f, share);
	f->strand = l;
	return l;
}

/* Nobody finds the strand any more. */
static void
unhash(const struct urn_flows *fl, struct urn_flow_strand *l)
{
	struct urn_flow_strand **at = bucket_of(fl, l->flow, l->user.source.share);

	while (*at != l)
		at = &(*at)->hash_next;
	*at = l->hash_next;
	if (l->flow->strand == l)
		l->flow->strand = NULL;
}

/* Spare strands that are kept. */
static uint32_t
spare_most(const struct urn_flows *fl)
{
	return fl->n / URN_FLOW_SPARE_FLOWS + URN_FLOW_SPARE_STRANDS;
}

void
urn_flow_strand_free(struct urn_tp *tp, struct urn_flow_strand *l)
{
	struct urn_flows *fl = tp->flows;

	if (!(l->user.source.flags & URN_STRAND_ORPHAN))
		unhash(fl, l);
	l->flow->strands--;
	if (fl->spare_strands_n >= spare_most(fl)) {
		free(l);
		return;
	}
	l->hash_next = fl->spare_strands;
	fl->spare_strands = l;
	fl->spare_strands_n++;
}

void
urn_flows_trim_strands(struct urn_flows *fl)
{
	struct urn_flow_strand *l;

	while (fl->spare_strands_n > spare_most(fl)) {
		l = fl->spare_strands;
		fl->spare_strands = l->hash_next;
		fl->spare_strands_n--;
		free(l);
	}
}

static void
free_list(struct urn_flow_strand *l)
{
	struct urn_flow_strand *next;

	for (; l; l = next) {
		next = l->hash_next;
		free(l);
	}
}

void
urn_flows_free_strands(struct urn_flows *fl)
{
	for (uint32_t i = 0; fl->strand_bucket && i < URN_FLOW_STRAND_BUCKETS; i++)
		free_list(fl->strand_bucket[i]);
	free_list(fl->spare_strands);
	free(fl->strand_bucket);
}

/* The owner has no message in the strand any more, and may be gone before the packets are. */
static void
orphan(struct urn_tp *tp, struct urn_flow_strand *l)
{
	struct urn_source *src = &l->user.source;

	urn_flow_strand_leave(tp, l);
	unhash(tp->flows, l);
	urn_work_count(src->share, -(int32_t)l->packets);
	src->share->orphans = RTE_MIN(src->share->orphans, tp->nobodys.work) + l->packets;
	urn_work_count(&tp->nobodys, (int32_t)l->packets);
	src->share = &tp->nobodys;
	src->flags |= URN_STRAND_ORPHAN;
	if (src->flags & (URN_STRAND_READY | URN_STRAND_FAILS))
		urn_sched_add(&tp->sched, src);
}

/* All messages of a failure were answered, or let go of: the strand sends what came meanwhile. */
static __attribute__((cold, noinline)) void
end_failure(struct urn_tp *tp, struct urn_flow_strand *l)
{
	TAILQ_REMOVE(&l->flow->failing, l, ready);
	l->user.source.flags &= ~(uint32_t)URN_STRAND_FAILS;
	urn_flow_strand_leave(tp, l);
	if (!urn_flow_strand_has_new(l))
		return;
	urn_flow_strand_ready(l, false);
	urn_sched_add(&tp->sched, &l->user.source);
}

URN_FAST void
urn_flow_strand_settle(struct urn_tp *tp, struct urn_flow_strand *l)
{
	uint32_t flags = l->user.source.flags;

	if ((flags & URN_STRAND_READY) && !l->lost && !urn_flow_strand_has_new(l)) {
		TAILQ_REMOVE(&l->flow->ready, l, ready);
		l->user.source.flags &= ~(uint32_t)URN_STRAND_READY;
		urn_flow_strand_leave(tp, l);
	}
	if (unlikely((flags & URN_STRAND_FAILS) && !l->failing && !l->failed))
		end_failure(tp, l);
	if (likely(l->msgs))
		return;
	if (l->packets || (l->user.source.flags & URN_STRAND_READY)) {
		if (!(flags & URN_STRAND_ORPHAN))
			orphan(tp, l);
	} else if (likely(l->flow->strand == l)) {
		l->gathered_n = 0;
		l->gone = 0;
	} else {
		urn_flow_strand_free(tp, l);
	}
}

URN_FAST void
urn_flow_strand_done(struct urn_tp *tp, struct urn_flow *f, struct urn_work *w)
{
	struct urn_flow_strand *l = w->flow.strand;
	bool lost = w->flow.state == URN_FLOW_LOST;

	w->flow.strand = NULL;
	w->flow.state = URN_FLOW_ACKED;
	urn_work_count(l->user.source.share, -1);
	l->packets--;
	if (likely(!lost)) {
		f->out--;
	} else {
		f->lost--;
		l->lost--;
	}
	if (unlikely(lost || !l->msgs))
		urn_flow_strand_settle(tp, l);
}

/* ---- messages */

/* True when a message, which has its strand, does not fit a packet. */
static bool
is_long(const struct urn_flow_msg *m)
{
	return urn_flow_seg_bytes(m) > m->strand->flow->mtu;
}

URN_FAST void
urn_flow_queue(struct urn_flow_msg *m)
{
	struct urn_flow_strand *l = m->strand;

	if (unlikely(is_long(m))) {
		urn_flow_put(&l->longs, m, URN_FLOW_MSG_LONG);
		urn_flow_mtu_want(l->flow);
	} else {
		urn_flow_put(&l->shorts, m, URN_FLOW_MSG_QUEUED);
	}
	urn_flow_strand_ready(l, false);
}

void
urn_flow_unqueue(struct urn_flow_msg *m)
{
	struct urn_flow_strand *l = m->strand;
	struct urn_flow_queue *q;

	if (m->state == URN_FLOW_MSG_ACTIVE) {
		urn_flow_take(&l->flow->active, m);
		l->flow->active_n--;
		l->active--;
		return;
	}
	q = m->state == URN_FLOW_MSG_LONG ? &l->longs : &l->shorts;
	if (unlikely(!m->next && q->tail != &m->next))
		*m->pprev = NULL; /* the last one of those that fail: the list has no tail */
	else
		urn_flow_take(q, m);
}

/* ---- the schedule */

/* A strand has no doorbell, no timer, and ends by itself. */
static void
rung(struct urn_tp *tp, struct urn_source *src)
{
	(void)tp;
	(void)src;
}

static bool
end(struct urn_tp *tp, struct urn_source *src)
{
	(void)tp;
	(void)src;
	return true;
}

static const struct urn_source_ops strand_ops = {.rung = rung, .serve = urn_flow_serve, .end = end};
