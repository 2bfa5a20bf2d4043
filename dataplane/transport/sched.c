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
	 * Turns that the clients of one user give up in a turn of the engine. One of 256 frames
	 * with an MTU of 4096, each 16 of which cost less than 3 turns, gets by with 46; a step
	 * costs a small part of such a frame.
	 */
	PAID_CLIENTS = 48,
	/*
	 * ... and all users and clients together: 46 for users, 46 for clients with such frames,
	 * and all that the clients of one more user give up.
	 */
	PAID = 3 * PAID_CLIENTS,
	PLACES = 64, /* places where nobody waits any more, looked at for a source that goes on */
	OWED = 16 * URN_TURN_BYTES, /* bytes that a user, or a client, owes at most */
};

/* True when a user is in the schedule, and others are, too. */
static bool
is_among(const struct urn_sched *s, const struct urn_tp_user *user)
{
	return s->head && (s->head != user || user->next);
}

/* True when other users than this one have turns now, and so those that it gives up. */
static bool
has_rivals(const struct urn_sched *s, const struct urn_tp_user *user)
{
	if (is_among(s, user))
		return true;
	for (unsigned int may = s->waiting & ~s->stopped; may; may &= may - 1) {
		unsigned int p = (unsigned int)__builtin_ctz(may);
		const struct urn_tp_user *first = TAILQ_FIRST(&s->stop[p]);

		if (first != user || TAILQ_NEXT(first, stop[p].link))
			return true;
	}
	return false;
}

/* True when other clients of its user than this one have work in the schedule. */
static bool
is_among_clients(const struct urn_tp_user *user, const struct urn_tp_share *share)
{
	return user->head && (user->head != share || share->next);
}

/* True when other clients of its user than this one have turns now. */
static bool
has_sisters(const struct urn_sched *s, const struct urn_tp_user *user,
	    const struct urn_tp_share *share)
{
	if (is_among_clients(user, share))
		return true;
	for (unsigned int may = s->waiting & ~s->stopped; may; may &= may - 1) {
		unsigned int p = (unsigned int)__builtin_ctz(may);
		const struct urn_tp_share *first;

		if (!user->stop[p].placed)
			continue;
		first = TAILQ_FIRST(&user->stop[p].clients);
		if (first != share || TAILQ_NEXT(first, stop[p].link))
			return true;
	}
	return false;
}

/*
 * Nobody else wants a turn that is owed: the debt is over, unless others wait for the end of a
 * pause. One that is stopped next, too, would have had nothing for it, and has a competitor then.
 */
static void
forgive(const struct urn_sched *s, uint32_t *debt)
{
	if (!s->waiting)
		*debt = 0;
}

/* Let a user, who owes turns, give up one. returns: false: the engine's turn is over */
static bool
pay_user(struct urn_sched *s, struct urn_tp_user *user)
{
	if (s->paid >= PAID) {
		s->over = true;
		return false;
	}
	s->paid++;
	user->debt -= URN_TURN_BYTES;
	return true;
}

/*
 * Let a client, which owes turns, give up one. A user whose clients have given up all that they may
 * in this turn of the engine loses this turn alone. One whose clients gave up nothing yet, because
 * those of others did, is the first in the next turn of the engine. returns: false: the client has
 * not given up a turn
 */
static bool
pay_client(struct urn_sched *s, struct urn_tp_user *user, struct urn_tp_share *share)
{
	if (user->turn != s->turn) {
		user->turn = s->turn;
		user->paid = 0;
	}
	if (s->paid >= PAID || user->paid >= PAID_CLIENTS) {
		s->over |= !user->paid;
		return false;
	}
	s->paid++;
	user->paid++;
	share->debt -= URN_TURN_BYTES;
	return true;
}

/* The first user of the round goes behind the others. */
static void
pass_user(struct urn_sched *s, struct urn_tp_user *user)
{
	if (!user->next)
		return;
	s->head = user->next;
	urn_sched_append_user(s, user);
}

struct urn_tp_user *
urn_sched_pay_users(struct urn_sched *s)
{
	struct urn_tp_user *user;

	while ((user = s->head)->debt >= URN_TURN_BYTES) {
		if (!has_rivals(s, user)) {
			forgive(s, &user->debt);
			break;
		}
		if (!pay_user(s, user) || !user->next)
			return NULL;
		pass_user(s, user);
	}
	return user;
}

/* The user's turn is given up, as its clients are to pay. */
static struct urn_tp_share *
no_client(struct urn_sched *s, struct urn_tp_user *user)
{
	if (s->over) /* the next turn of the engine goes on here */
		return NULL;
	if (!user->next && !urn_sched_resumes(s))
		s->over = true;
	pass_user(s, user);
	return NULL;
}

struct urn_tp_share *
urn_sched_pay_clients(struct urn_sched *s, struct urn_tp_user *user)
{
	struct urn_tp_share *share;

	while ((share = user->head)->debt >= URN_TURN_BYTES) {
		if (!has_sisters(s, user, share)) {
			forgive(s, &share->debt);
			break;
		}
		if (!pay_client(s, user, share) || !share->next)
			return no_client(s, user);
		user->head = share->next;
		urn_sched_append(user, share);
	}
	return share;
}

bool
urn_sched_owes_others(const struct urn_sched *s, struct urn_tp_share *share)
{
	const struct urn_tp_user *user = urn_share_user(share);

	return (user->debt >= URN_TURN_BYTES && is_among(s, user)) ||
	       (share->debt >= URN_TURN_BYTES && is_among_clients(user, share));
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
		if (!(s->placed & 1u << p))
			TAILQ_INIT(&s->stop[p]);
		TAILQ_INSERT_TAIL(&s->stop[p], user, stop[p].link);
		s->placed |= (uint8_t)(1u << p);
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
		s->placed &= (uint8_t) ~(1u << p);
}

void
urn_sched_leave(struct urn_sched *s, struct urn_tp_share *share)
{
	for (unsigned int p = 0; p < URN_SCHED_PRIORITIES; p++)
		if (share->stop[p].placed)
			take_place(s, share, p);
}

void
urn_sched_unstop(struct urn_sched *s, struct urn_source *src)
{
	unsigned int p = (src->flags & URN_SOURCE_PRIORITY) >> URN_SOURCE_PRIORITY_SHIFT;
	struct urn_stop_client *c = &src->share->stop[p];

	src->flags &= ~(uint32_t)URN_SOURCE_STOPPED;
	urn_source_unlink(&c->head, &c->tail, src);
	if (!--s->waiting_n[p])
		s->waiting &= (uint8_t) ~(1u << p);
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
	s->waiting_n[p]++;
	s->waiting |= (uint8_t)(1u << p);
	give_places(s, src->share, p);
}

bool
urn_sched_stops(struct urn_tp *tp, struct urn_source *src, const struct urn_tmpl *t)
{
	unsigned int p;

	if (!urn_tmpl_stopped(tp, t))
		return false;
	p = urn_tmpl_priority(tp, t);
	urn_sched_remove(&tp->sched, src); /* a failed gather may have scheduled it meanwhile */
	src->flags &= ~(uint32_t)URN_SOURCE_PRIORITY;
	src->flags |= URN_SOURCE_STOPPED | p << URN_SOURCE_PRIORITY_SHIFT;
	put_stopped(&tp->sched, src, p);
	return true;
}

/* The user at the first place goes behind the others that have places. */
static void
pass_place(struct urn_sched *s, struct urn_tp_user *user, unsigned int p)
{
	TAILQ_REMOVE(&s->stop[p], user, stop[p].link);
	TAILQ_INSERT_TAIL(&s->stop[p], user, stop[p].link);
}

/* Likewise the client at the first place of its user. */
static void
pass_client_place(struct urn_stop_user *u, struct urn_tp_share *share, unsigned int p)
{
	TAILQ_REMOVE(&u->clients, share, stop[p].link);
	TAILQ_INSERT_TAIL(&u->clients, share, stop[p].link);
}

/* Results of a look at the first place. */
enum look {
	LOOK_ON,     /* a place behind it is the first now */
	LOOK_FOUND,  /* a source, which goes on */
	LOOK_OTHERS, /* nothing: the turn is that of another priority, or of the schedule */
};

/* The user at the first place gives up the turn that it owes. */
static enum look
user_pays(struct urn_sched *s, struct urn_tp_user *user, unsigned int p)
{
	bool last = !TAILQ_NEXT(user, stop[p].link);

	if (!pay_user(s, user))
		return LOOK_OTHERS;
	pass_place(s, user, p);
	return last ? LOOK_OTHERS : LOOK_ON;
}

/* Likewise its client there. If no other client of the user waits there, the turn is the user's
 * loss. */
static enum look
client_pays(struct urn_sched *s, struct urn_tp_share *share, unsigned int p)
{
	struct urn_tp_user *user = urn_share_user(share);
	struct urn_stop_user *u = &user->stop[p];
	bool paid = pay_client(s, user, share), last = !TAILQ_NEXT(user, stop[p].link);

	if (s->over)
		return LOOK_OTHERS;
	if (paid && TAILQ_NEXT(share, stop[p].link)) {
		pass_client_place(u, share, p);
		return LOOK_ON;
	}
	pass_place(s, user, p);
	return last ? LOOK_OTHERS : LOOK_ON;
}

/*
 * Look at the first place: take the first source that waits there, and put client and user behind
 * the others if they have more. A place where nobody waits any more is taken. *src: the source
 */
static enum look
look(struct urn_sched *s, unsigned int p, struct urn_source **src)
{
	struct urn_tp_user *user = TAILQ_FIRST(&s->stop[p]);
	struct urn_stop_user *u = &user->stop[p];
	struct urn_tp_share *share = TAILQ_FIRST(&u->clients);

	*src = share->stop[p].head;
	if (!*src) { /* costs the user nothing: its next client is looked at */
		take_place(s, share, p);
		return LOOK_ON;
	}
	if (user->debt >= URN_TURN_BYTES && has_rivals(s, user))
		return user_pays(s, user, p);
	if (share->debt >= URN_TURN_BYTES && has_sisters(s, user, share))
		return client_pays(s, share, p);
	urn_sched_unstop(s, *src);
	user->went_on = s->turn;
	if (share->stop[p].head)
		pass_client_place(u, share, p);
	else
		take_place(s, share, p);
	if (u->placed)
		pass_place(s, user, p);
	return LOOK_FOUND;
}

uint32_t
urn_sched_resuming(const struct urn_sched *s)
{
	uint32_t n = 0;

	for (unsigned int may = s->waiting & ~s->stopped; may; may &= may - 1)
		n += s->waiting_n[__builtin_ctz(may)];
	return n;
}

/* Priority whose sources go on next. may: bits of those that may, not 0 */
static unsigned int
next_priority(const struct urn_sched *s, unsigned int may)
{
	unsigned int behind = may >> s->resume_at << s->resume_at;

	return (unsigned int)__builtin_ctz(behind ? behind : may);
}

/* True when nobody but one client, the first of its user, has work in the schedule, or waits with a
 * priority. */
static bool
is_alone(const struct urn_sched *s, const struct urn_tp_user *user, unsigned int p)
{
	const struct urn_tp_share *share = user->head;

	return !user->next && !share->next && share->stop[p].placed &&
	       TAILQ_FIRST(&s->stop[p]) == user && !TAILQ_NEXT(user, stop[p].link) &&
	       TAILQ_FIRST(&user->stop[p].clients) == share && !TAILQ_NEXT(share, stop[p].link);
}

/*
 * True when a turn is the schedule's, though sources that waited may go on: each second one. If all
 * are one client's, a source that waits still comes before the one that went on just now: then each
 * third turn is the schedule's. *user: the client's user; NULL: else
 */
static bool
is_turn_of_schedule(struct urn_sched *s, struct urn_tp_user **user)
{
	struct urn_tp_user *first = s->head;

	*user = NULL;
	s->resumed = !s->resumed || !first;
	if (s->resumed)
		return false;
	if (first->went_on != s->turn ||
	    !is_alone(s, first, next_priority(s, s->waiting & ~(unsigned int)s->stopped)))
		return true;
	*user = first;
	s->resumed = true;
	return false;
}

struct urn_source *
urn_sched_resume(struct urn_sched *s)
{
	struct urn_source *src = NULL;
	enum look got = LOOK_ON;
	struct urn_tp_user *same;
	unsigned int may, p, i;

	if (is_turn_of_schedule(s, &same))
		return NULL;
	for (i = 0; got == LOOK_ON && i < PLACES && (may = s->waiting & ~s->stopped); i++) {
		p = next_priority(s, may);
		got = look(s, p, &src);
		if (got != LOOK_ON)
			s->resume_at = (uint8_t)((p + 1) % URN_SCHED_PRIORITIES);
	}
	if (same) /* the schedule's turn comes next */
		same->went_on = s->turn - 1;
	if (got == LOOK_FOUND)
		return src;
	s->over |= i == PLACES && !s->head;
	return NULL;
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
