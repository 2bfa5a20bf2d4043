/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows: failures. A flow may have a message of each register set of its clients when it fails, and
 * each answer is a store to the memory of a client: all of them in one turn would hold up
 * everybody. So the failure itself moves packets and queues alone, and the strands answer their
 * messages in turns of the schedule, URN_FLOW_FAILS in each.
 *
 *   urn_flow_fail()  packets in flight ─► failed of the strand that sent them
 *                    shorts, longs     ─► failing of the strand, in one step
 *                    parts, active     ─► failing of the message's strand
 *   a turn           failed, failing   ─► answered(), URN_FLOW_FAILS at most
 *
 * A message that fails stays in its strand until it is answered, and can be let go of like any
 * other. The flow is in its next epoch meanwhile. The strand stays with the flow, which is
 * therefore not forgotten; a message that comes to the strand waits until those before it are
 * answered, and is then sent in the epoch of that time. If the flow fails again before, this
 * message stays: nothing of it was sent. Other strands of the flow send at once.
 *
 * A strand that fails has no packet in flight: all packets of the flow were moved, and its turns
 * send nothing. So one code, that of the failure, holds for all its packets and queues; long
 * messages of which parts were sent in turns of other strands have codes of their own.
 */
#include "transport/flow_priv.h"

/* The answer to a message whose flow fails. */
static uint8_t
code_of(const struct urn_flow_msg *m, uint8_t code)
{
	/* A long message without its last part can't be in its queue. */
	bool maybe = m->state == URN_FLOW_MSG_SENT || m->state == URN_FLOW_MSG_PARTS;

	if (m->code)
		return m->code;
	return maybe ? code | URN_MSG_MAY_BE_THERE : code;
}

/* ---- a failure */

/* From now on a strand has turns to answer messages, unless it has them already. */
static void
begin(struct urn_tp *tp, struct urn_flow_strand *l, uint8_t code)
{
	struct urn_source *src = &l->user.source;
	struct urn_flow *f = l->flow;

	if (src->flags & URN_STRAND_FAILS)
		return;
	urn_flow_strand_leave(tp, l);
	if (src->flags & URN_STRAND_READY)
		TAILQ_REMOVE(&f->ready, l, ready);
	src->flags &= ~(uint32_t)(URN_STRAND_READY | URN_STRAND_SHARED);
	src->flags |= URN_STRAND_FAILS;
	src->rest = code;
	l->failing = NULL;
	l->failed = NULL;
	TAILQ_INSERT_TAIL(&f->failing, l, ready);
	urn_sched_add(&tp->sched, src);
}

/* Put messages in front of those that a strand is to answer. last: link behind the last of them */
static void
push(struct urn_flow_strand *l, struct urn_flow_msg *m, struct urn_flow_msg **last)
{
	*last = l->failing;
	if (l->failing)
		l->failing->pprev = last;
	m->pprev = &l->failing;
	l->failing = m;
}

/* A long message, which is in no queue and no packet any more, fails. */
static void
fail_long(struct urn_tp *tp, struct urn_flow_msg *m, uint8_t code)
{
	struct urn_flow_strand *l = m->strand;

	m->code = code_of(m, code);
	m->state = URN_FLOW_MSG_QUEUED;
	begin(tp, l, code);
	push(l, m, &m->next);
}

/* The messages of a strand of which nothing was sent fail, in a step for each queue. */
static void
fail_queues(struct urn_tp *tp, struct urn_flow_strand *l, uint8_t code)
{
	struct urn_flow_queue *q[] = {&l->longs, &l->shorts};

	begin(tp, l, code);
	for (unsigned int i = 0; i < RTE_DIM(q); i++) {
		if (!q[i]->head)
			continue;
		push(l, q[i]->head, q[i]->tail);
		urn_flow_queue_init(q[i]);
	}
}

/* All messages of a flow of which nothing was sent fail, but for those that came after an earlier
 * failure. */
static void
fail_all(struct urn_tp *tp, struct urn_flow *f, uint8_t code)
{
	struct urn_flow_strand *l, *next;

	for (l = TAILQ_FIRST(&f->ready); l; l = next) {
		next = TAILQ_NEXT(l, ready);
		if (l->shorts.head || l->longs.head)
			fail_queues(tp, l, code);
	}
}

/* A packet under way fails. */
static void
fail_packet(struct urn_tp *tp, struct urn_flow *f, struct urn_work *w, uint8_t code)
{
	struct urn_flow_strand *l = w->flow.strand;
	struct urn_flow_msg *m = w->flow.msg;

	if (w->flow.state == URN_FLOW_ACKED) {
		urn_flow_work_put(tp, w);
		return;
	}
	if (w->flow.part && m && !--m->out && m->state != URN_FLOW_MSG_ACTIVE)
		fail_long(tp, m, code);
	if (w->flow.part || !m) {
		urn_flow_strand_done(tp, f, w);
		urn_flow_work_put(tp, w);
		return;
	}
	l->lost -= w->flow.state == URN_FLOW_LOST;
	begin(tp, l, code);
	w->next = l->failed ? l->failed->next : w;
	if (l->failed)
		l->failed->next = w;
	l->failed = w;
}

/* Long messages that are being sent fail. all: those of which nothing was sent, too */
static void
fail_active(struct urn_tp *tp, struct urn_flow *f, uint8_t code, bool all)
{
	struct urn_flow_msg *m, *next;

	for (m = f->active.head; m; m = next) {
		next = m->next;
		if (!all && !m->sent)
			continue;
		urn_flow_unqueue(m);
		fail_long(tp, m, code);
	}
}

/* Strands may have lost all that they had to send. */
static void
settle(struct urn_tp *tp, struct urn_flow *f)
{
	struct urn_flow_strand *l, *next;

	f->gone_n = 0; /* the node forgets messages of the epoch before */
	for (l = TAILQ_FIRST(&f->ready); l; l = next) {
		next = TAILQ_NEXT(l, ready);
		urn_flow_strand_settle(tp, l);
	}
}

void
urn_flow_fail(struct urn_tp *tp, struct urn_flow *f, uint8_t code, bool all)
{
	struct urn_work *w;

	if (all)
		fail_all(tp, f, code);
	while ((w = f->tx.head)) {
		urn_psn_tx_pop(&f->tx);
		fail_packet(tp, f, w, code);
	}
	fail_active(tp, f, code, all);
	settle(tp, f);
	urn_peer_untime(tp, &f->tx);
	urn_congestion_end_source(tp, &f->congestion);
	urn_flow_renew(tp, f);
	urn_flow_age(tp, f);
	urn_flow_wake(tp, f); /* messages that stay are sent in the new epoch */
}

/* ---- answers */

/* Answer a message of the first packet of a strand; a packet without messages goes back to the
 * pool. */
static void
answer_packet(struct urn_tp *tp, struct urn_flow_strand *l, uint8_t code)
{
	struct urn_work *w = l->failed->next;
	struct urn_flow_msg *m = w->flow.msg;

	if (m) {
		w->flow.msg = m->next;
		urn_flow_answer(tp, m, code_of(m, code));
		return;
	}
	if (w == l->failed)
		l->failed = NULL;
	else
		l->failed->next = w->next;
	l->packets--;
	urn_work_count(l->user.source.share, -1);
	urn_flow_work_put(tp, w);
}

/* Answer a message of a strand that is in no packet. */
static void
answer_message(struct urn_tp *tp, struct urn_flow_strand *l, uint8_t code)
{
	struct urn_flow_msg *m = l->failing;

	l->failing = m->next;
	if (m->next)
		m->next->pprev = &l->failing;
	urn_flow_answer(tp, m, code_of(m, code));
}

bool
urn_flow_fail_turn(struct urn_tp *tp, struct urn_flow_strand *l)
{
	uint8_t code = (uint8_t)l->user.source.rest;
	struct urn_flow *f = l->flow;
	unsigned int n = 0;
	bool more;

	l->msgs++; /* the turn holds the strand */
	for (; n < URN_FLOW_FAILS && (l->failed || l->failing); n++) {
		if (l->failed)
			answer_packet(tp, l, code);
		else
			answer_message(tp, l, code);
	}
	tp->fails += n;
	l->msgs--;
	more = l->failed || l->failing;
	urn_flow_strand_settle(tp, l);
	/* The flow was kept for these answers alone. */
	if (urn_psn_tx_idle(&f->tx) && !urn_flow_has_work(f) && !urn_timer_started(&f->tx.timer))
		urn_flow_age(tp, f);
	return more;
}
