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

/* Unlink a user without work from the round. */
static void
unlink_user(struct urn_sched *s, struct urn_tp_user *user)
{
	if (s->head == user)
		s->head = user->next;
	else
		user->prev->next = user->next;
	if (user->next)
		user->next->prev = user->prev;
	if (s->tail == user)
		s->tail = s->head ? user->prev : NULL;
}

/* Unlink a client without work from the round. */
static void
unlink_client(struct urn_sched *s, struct urn_tp_share *share)
{
	struct urn_tp_user *user = urn_share_user(share);

	if (user->head == share)
		user->head = share->next;
	else
		share->prev->next = share->next;
	if (share->next)
		share->next->prev = share->prev;
	if (user->tail == share)
		user->tail = user->head ? share->prev : NULL;
	if (!user->head)
		unlink_user(s, user);
}

/* ---- bytes */

enum {
	PAID = 64, /* turns that users, or clients, give up at a time. A turn of 32 frames with an
		      MTU of 4096 costs 7, so others wait for no more steps than that for each long
		      turn */
	OWED = 16 * URN_TURN_BYTES, /* bytes that a user, or a client, owes at most */
};

struct urn_tp_user *
urn_sched_pay_users(struct urn_sched *s)
{
	struct urn_tp_user *user = s->head;

	for (unsigned int i = 0; i < PAID && user->next && user->debt >= URN_TURN_BYTES; i++) {
		user->debt -= URN_TURN_BYTES;
		s->head = user->next;
		urn_sched_append_user(s, user);
		user = s->head;
	}
	if (!user->next)
		user->debt = 0; /* nobody else wants a turn */
	return user->debt < URN_TURN_BYTES ? user : NULL;
}

struct urn_tp_share *
urn_sched_pay_clients(struct urn_tp_user *user)
{
	struct urn_tp_share *share = user->head;

	for (unsigned int i = 0; i < PAID && share->next && share->debt >= URN_TURN_BYTES; i++) {
		share->debt -= URN_TURN_BYTES;
		user->head = share->next;
		urn_sched_append(user, share);
		share = user->head;
	}
	if (!share->next)
		share->debt = 0;
	return share->debt < URN_TURN_BYTES ? share : NULL;
}

void
urn_sched_owe(struct urn_tp_share *share, uint64_t bytes)
{
	struct urn_tp_user *user = urn_share_user(share);
	uint32_t more = (uint32_t)RTE_MIN(bytes - URN_TURN_BYTES, (uint64_t)OWED);

	share->debt = RTE_MIN(share->debt + more, (uint32_t)OWED);
	user->debt = RTE_MIN(user->debt + more, (uint32_t)OWED);
}

/* ---- lists */

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
	urn_share_user(src->share)->stopped[p]--;
	src->flags &= ~(uint32_t)URN_SOURCE_STOPPED;
	if (!s->stop[p])
		s->waiting &= (uint8_t) ~(1u << p);
}

/* Put a source that waits at the begin of the list of its priority, or at the end. */
static void
put_stopped(struct urn_sched *s, struct urn_source *src, unsigned int p, bool first)
{
	bool others = s->waiting & 1u << p;

	src->next = others && first ? s->stop[p] : NULL;
	src->prev = others && !first ? s->stop_last[p] : NULL;
	if (src->next)
		src->next->prev = src;
	else
		s->stop_last[p] = src;
	if (src->prev)
		src->prev->next = src;
	else
		s->stop[p] = src;
	s->waiting |= (uint8_t)(1u << p);
}

/*
 * A source goes before the others when no other one of its user waits: so one of each user is among
 * the first that have turns again, and thousands of one user hold up nobody else.
 */
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
	put_stopped(s, src, p, !urn_share_user(src->share)->stopped[p]++);
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
