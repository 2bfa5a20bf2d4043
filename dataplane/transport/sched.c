/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/sched.h"

void
urn_source_unlink(struct urn_source **head, struct urn_source **tail, struct urn_source *src)
{
	if (*head == src)
		*head = src->next;
	else
		src->prev->next = src->next;
	if (src->next)
		src->next->prev = src->prev;
	if (*tail == src)
		*tail = *head ? src->prev : NULL;
}

/* Unlink a client without work from the round. */
static void
unlink_client(struct urn_sched *s, struct urn_tp_share *share)
{
	if (s->head == share)
		s->head = share->next;
	else
		share->prev->next = share->next;
	if (share->next)
		share->next->prev = share->prev;
	if (s->tail == share)
		s->tail = s->head ? share->prev : NULL;
}

URN_FAST void
urn_sched_remove(struct urn_sched *s, struct urn_source *src)
{
	struct urn_tp_share *share = src->share;

	if (unlikely(src->flags & URN_SOURCE_STOPPED))
		urn_sched_unstop(s, src);
	if (!(src->flags & URN_SOURCE_SCHED))
		return;
	urn_source_unlink(&share->head, &share->tail, src);
	if (!share->head)
		unlink_client(s, share);
	src->flags &= ~(uint32_t)URN_SOURCE_SCHED;
	s->n--;
}

void
urn_sched_unstop(struct urn_sched *s, struct urn_source *src)
{
	unsigned int p = (src->flags & URN_SOURCE_PRIORITY) >> URN_SOURCE_PRIORITY_SHIFT;

	urn_source_unlink(&s->stop[p], &s->stop_last[p], src);
	src->flags &= ~(uint32_t)URN_SOURCE_STOPPED;
	if (!s->stop[p])
		s->waiting &= (uint8_t) ~(1u << p);
}

bool
urn_sched_stops(struct urn_tp *tp, struct urn_source *src, const struct urn_tmpl *t)
{
	struct urn_sched *s = &tp->sched;
	unsigned int p;

	if (!urn_tmpl_stopped(tp, t))
		return false;
	p = urn_tmpl_priority(tp, t);
	src->flags &= ~(uint32_t)URN_SOURCE_PRIORITY;
	src->flags |= URN_SOURCE_STOPPED | p << URN_SOURCE_PRIORITY_SHIFT;
	src->next = NULL;
	src->prev = s->stop_last[p];
	if (s->waiting & 1u << p)
		s->stop_last[p]->next = src;
	else
		s->stop[p] = src;
	s->stop_last[p] = src;
	s->waiting |= (uint8_t)(1u << p);
	return true;
}

void
urn_sched_go(struct urn_sched *s, unsigned int priority, unsigned int n)
{
	for (; n && s->waiting & 1u << priority; n--)
		urn_sched_add(s, s->stop[priority]);
}

void
urn_sched_add_first(struct urn_sched *s, struct urn_source *src)
{
	struct urn_tp_share *share = src->share;

	urn_sched_remove(s, src);
	if (src->flags & URN_SOURCE_HELD)
		return;
	if (!share->head) {
		urn_sched_add(s, src);
		return;
	}
	src->flags |= URN_SOURCE_SCHED;
	src->next = share->head;
	src->prev = NULL;
	share->head->prev = src;
	share->head = src;
	s->n++;
}

void
urn_sched_park(struct urn_tp *tp, struct urn_pace *pace, uint64_t not_before)
{
	struct urn_source *src = pace->source;

	if (src->flags & (URN_SOURCE_AWAY | URN_SOURCE_CLOSED))
		return;
	urn_sched_unpark(tp, pace);
	if (not_before <= tp->now) {
		urn_sched_add(&tp->sched, src);
		return;
	}
	urn_sched_remove(&tp->sched, src);
	src->flags |= URN_SOURCE_PARKED;
	pace->not_before = not_before;
	pace->timer.kind = URN_TIMER_PACE;
	urn_wheel_start(&tp->wheel, &pace->timer, not_before);
}

void
urn_sched_unpark(struct urn_tp *tp, struct urn_pace *pace)
{
	urn_wheel_stop(&tp->wheel, &pace->timer);
	pace->source->flags &= ~(uint32_t)URN_SOURCE_PARKED;
}

void
urn_sched_wake(struct urn_tp *tp, struct urn_pace *pace)
{
	if (urn_timer_started(&pace->timer))
		return;
	pace->timer.kind = URN_TIMER_PACE;
	urn_wheel_start(&tp->wheel, &pace->timer, pace->not_before);
}

void
urn_sched_due(struct urn_tp *tp, struct urn_timer *timer)
{
	struct urn_pace *pace = (struct urn_pace *)((char *)timer - offsetof(struct urn_pace, timer));
	struct urn_source *src = pace->source;

	if (src->kind == URN_SOURCE_OPS && urn_source_ops(src)->due) {
		urn_sched_unpark(tp, pace);
		if (pace->not_before > tp->now)
			urn_sched_wake(tp, pace);
		else
			urn_source_ops(src)->due(tp, src);
		return;
	}
	/* The wheel does not reach as far as the time: the source is parked again. */
	urn_sched_park(tp, pace, pace->not_before);
}
