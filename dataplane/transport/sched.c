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
	/*
	 * Turns that users and clients give up in a turn of the engine, all together. One of 256
	 * frames with an MTU of 4096, each 16 of which cost less than 3 turns, gets by with 46 for
	 * users; a step costs a small part of such a frame.
	 */
	PAID = 64,
	PLACES = 64, /* places where nobody waits any more, looked at for a source that goes on */
	OWED = 16 * URN_TURN_BYTES, /* bytes that a user, or a client, owes at most */
};

/* Let one who owes turns give up one. returns: false: the engine's turn has had all that it may */
static bool
give_up(struct urn_sched *s, uint32_t *debt)
{
	if (s->paid >= PAID) {
		s->paid = 0;
		return false;
	}
	s->paid++;
	*debt -= URN_TURN_BYTES;
	return true;
}

struct urn_tp_user *
urn_sched_pay_users(struct urn_sched *s)
{
	struct urn_tp_user *user = s->head;

	while (user->next && user->debt >= URN_TURN_BYTES) {
		if (!give_up(s, &user->debt))
			return NULL;
		s->head = user->next;
		urn_sched_append_user(s, user);
		user = s->head;
	}
	if (!user->next)
		user->debt = 0; /* nobody else wants a turn */
	return user;
}

struct urn_tp_share *
urn_sched_pay_clients(struct urn_sched *s, struct urn_tp_user *user)
{
	struct urn_tp_share *share = user->head;

	while (share->next && share->debt >= URN_TURN_BYTES) {
		if (!give_up(s, &share->debt))
			return NULL;
		user->head = share->next;
		urn_sched_append(user, share);
		share = user->head;
	}
	if (!share->next)
		share->debt = 0;
	return share;
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
		urn_sched_unstop(src);
	if (!(src->flags & URN_SOURCE_SCHED))
		return;
	urn_source_unlink(&share->head, &share->tail, src);
	if (!share->head)
		unlink_client(s, share);
	src->flags &= ~(uint32_t)URN_SOURCE_SCHED;
	s->n--;
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

/* ---- sources whose priority is stopped */

/*
 * Give a client, and its user, places behind the others if they have none. So users go on by turns,
 * and so do the clients of a user, whatever the number of their sources: nobody comes before one
 * who has waited for longer.
 */
static void
give_places(struct urn_sched *s, struct urn_tp_share *share, unsigned int p)
{
	struct urn_tp_user *user = urn_share_user(share);
	struct urn_stop_user *u = &user->stop[p];

	if (share->stop[p].placed)
		return;
	share->stop[p].placed = true;
	if (!u->placed) {
		u->placed = true;
		TAILQ_INIT(&u->clients);
		if (!(s->waiting & 1u << p))
			TAILQ_INIT(&s->stop[p]);
		TAILQ_INSERT_TAIL(&s->stop[p], user, stop[p].link);
		s->waiting |= (uint8_t)(1u << p);
	}
	TAILQ_INSERT_TAIL(&u->clients, share, stop[p].link);
}

/* Take a client's place, in which no source waits, and with the last one its user's. */
static void
take_place(struct urn_sched *s, struct urn_tp_share *share, unsigned int p)
{
	struct urn_tp_user *user = urn_share_user(share);

	share->stop[p].placed = false;
	TAILQ_REMOVE(&user->stop[p].clients, share, stop[p].link);
	if (!TAILQ_EMPTY(&user->stop[p].clients))
		return;
	user->stop[p].placed = false;
	TAILQ_REMOVE(&s->stop[p], user, stop[p].link);
	if (TAILQ_EMPTY(&s->stop[p]))
		s->waiting &= (uint8_t) ~(1u << p);
}

void
urn_sched_leave(struct urn_sched *s, struct urn_tp_share *share)
{
	for (unsigned int p = 0; p < URN_SCHED_PRIORITIES; p++)
		if (share->stop[p].placed)
			take_place(s, share, p);
}

void
urn_sched_unstop(struct urn_source *src)
{
	unsigned int p = (src->flags & URN_SOURCE_PRIORITY) >> URN_SOURCE_PRIORITY_SHIFT;
	struct urn_stop_client *c = &src->share->stop[p];

	src->flags &= ~(uint32_t)URN_SOURCE_STOPPED;
	urn_source_unlink(&c->head, &c->tail, src);
}

/* Put a source behind the others of its client that wait. */
static void
put_stopped(struct urn_sched *s, struct urn_source *src, unsigned int p)
{
	struct urn_stop_client *c = &src->share->stop[p];

	src->next = NULL;
	src->prev = c->tail;
	if (c->head)
		c->tail->next = src;
	else
		c->head = src;
	c->tail = src;
	give_places(s, src->share, p);
}

bool
urn_sched_stops(struct urn_tp *tp, struct urn_source *src, const struct urn_tmpl *t)
{
	unsigned int p;

	if (!urn_tmpl_stopped(tp, t))
		return false;
	p = urn_tmpl_priority(tp, t);
	src->flags &= ~(uint32_t)URN_SOURCE_PRIORITY;
	src->flags |= URN_SOURCE_STOPPED | p << URN_SOURCE_PRIORITY_SHIFT;
	put_stopped(&tp->sched, src, p);
	return true;
}

/*
 * Look at the first place: take the first source that waits there, and put client and user behind
 * the others if they have more. A place where nobody waits any more is taken. returns: NULL: that
 */
static struct urn_source *
go_on(struct urn_sched *s, unsigned int p)
{
	struct urn_tp_user *user = TAILQ_FIRST(&s->stop[p]);
	struct urn_stop_user *u = &user->stop[p];
	struct urn_tp_share *share = TAILQ_FIRST(&u->clients);
	struct urn_source *src = share->stop[p].head;

	if (src)
		urn_sched_unstop(src);
	if (!share->stop[p].head) {
		take_place(s, share, p);
	} else {
		TAILQ_REMOVE(&u->clients, share, stop[p].link);
		TAILQ_INSERT_TAIL(&u->clients, share, stop[p].link);
	}
	/* A place that was left costs the user nothing: its next client is looked at. */
	if (!src || !u->placed)
		return src;
	TAILQ_REMOVE(&s->stop[p], user, stop[p].link);
	TAILQ_INSERT_TAIL(&s->stop[p], user, stop[p].link);
	return src;
}

struct urn_source *
urn_sched_resume(struct urn_sched *s)
{
	struct urn_source *src = NULL;
	unsigned int may;

	s->resumed = !s->resumed;
	if (!s->resumed && s->head)
		return NULL;
	for (unsigned int i = 0; !src && i < PLACES && (may = s->waiting & ~s->stopped); i++) {
		unsigned int behind = may >> s->resume_at << s->resume_at;
		unsigned int p = (unsigned int)__builtin_ctz(behind ? behind : may);

		src = go_on(s, p);
		if (src)
			s->resume_at = (p + 1) % URN_SCHED_PRIORITIES;
	}
	return src;
}

/* ---- sources with a time */

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
