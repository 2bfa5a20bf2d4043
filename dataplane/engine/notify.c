/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events to programs: of armed completion queues, and asynchronous ones. No other place of the
 * loop makes system calls, and this one only when a program sleeps on the other side.
 */
#include "engine/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define RETRY_NS 1000000ull /* ns between looks at a pipe that was full */

/*
 * Bounds of a look, so that clients that do not read their events cost an engine little, and other
 * clients nothing.
 */
enum {
	RETRY_LOOKS = 64,   /* full pipes, of queues and of clients, that a look tries */
	RETRY_EVENTS = 256, /* late events of a client */
};

enum told { TOLD, NO_ROOM, NOBODY };

/* Write one record to a pipe, without blocking. */
static enum told
tell(struct urn_tp *tp, int fd, const struct urn_abi_event *ev)
{
	ssize_t n;

	/* Another process shares the socket: its flags do not decide whether this call waits. */
	do {
		n = send(fd, ev, sizeof(*ev), MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno == ENOTSOCK) /* this program's own pipe */
			n = write(fd, ev, sizeof(*ev));
	} while (n < 0 && errno == EINTR);
	if (n == (ssize_t)sizeof(*ev))
		return TOLD;
	if (n < 0 && errno != EAGAIN && errno != ENOBUFS && errno != ENOMEM) {
		URN_COUNT(tp, EVENT_LOST);
		return NOBODY; /* the other end is shut */
	}
	URN_COUNT(tp, EVENT_LATE);
	return NO_ROOM;
}

/* Put a queue behind the others that are late. */
static void
put_untold(struct urn_shard *s, struct urn_cq *cq)
{
	cq->late = true;
	TAILQ_INSERT_TAIL(&s->untold, cq, untold);
}

static void
take_untold(struct urn_shard *s, struct urn_cq *cq)
{
	TAILQ_REMOVE(&s->untold, cq, untold);
	cq->late = false;
	cq->touched = false;
}

/* An event is due and its pipe full: the event is late, not lost. */
static void
look_again(struct urn_shard *s, struct urn_cq *cq, uint32_t arm)
{
	uint32_t none = URN_CQ_ARM_NONE;

	/* The program may have armed the queue anew: then the program's value stands. */
	atomic_compare_exchange_strong(&cq->hdr->arm, &none, arm);
	cq->solicited = true;
	cq->touched = true;
	if (TAILQ_EMPTY(&s->untold))
		s->untold_due = s->tp->now + RETRY_NS;
	put_untold(s, cq);
}

static void
look(struct urn_shard *s, struct urn_cq *cq)
{
	uint32_t arm = atomic_load_explicit(&cq->hdr->arm, memory_order_relaxed);
	struct urn_abi_event ev = {.handle = cq->handle, .cookie = cq->cookie};
	bool fires = arm == URN_CQ_ARM_NEXT || (arm == URN_CQ_ARM_SOLICITED && cq->solicited);

	cq->solicited = false;
	if (!fires)
		return;
	/* Either side may take the arm word, once: see ibv_req_notify_cq() in lib/verbs. */
	arm = atomic_exchange(&cq->hdr->arm, URN_CQ_ARM_NONE);
	if (arm == URN_CQ_ARM_NONE)
		return;
	switch (tell(s->tp, cq->channel_fd, &ev)) {
	case TOLD:
		cq->events++;
		break;
	case NO_ROOM:
		look_again(s, cq, arm);
		break;
	case NOBODY: /* nobody will ever read there */
		break;
	}
}

static void
look_at_touched(struct urn_shard *s)
{
	struct urn_cq *cq = s->tp->touched, *next;

	/* The phases are visible before the arm words are read: the program arms, then looks at the phases. */
	atomic_thread_fence(memory_order_seq_cst);
	s->tp->touched = NULL;
	for (; cq; cq = next) {
		next = cq->next;
		cq->touched = false;
		look(s, cq);
	}
}

/* Try the oldest first; a queue that finds no room again goes behind the others. */
static void
look_at_untold(struct urn_shard *s)
{
	struct urn_cq *cq, *last = TAILQ_LAST(&s->untold, urn_cq_list);

	atomic_thread_fence(memory_order_seq_cst);
	s->untold_due = s->tp->now + RETRY_NS;
	for (unsigned int i = 0; i < RETRY_LOOKS && (cq = TAILQ_FIRST(&s->untold)); i++) {
		take_untold(s, cq);
		look(s, cq);
		if (cq == last)
			break;
	}
}

/* ---- asynchronous events: those that find no room wait, separately for each client */

/* returns: -1 when the client wants no events */
static int
async_fd(const struct urn_client_shard *c)
{
	return atomic_load_explicit(&c->client->async_fd, memory_order_relaxed);
}

/* Seldom called, and never for a packet: allocates from the heap. */
static bool
late_room(struct urn_late *l)
{
	uint32_t cap = l->cap ? 2 * l->cap : 64;
	struct urn_abi_event *ev;

	if (l->n < l->cap)
		return true;
	if (cap > URN_LATE_MAX)
		return false;
	ev = realloc(l->ev, cap * sizeof(*ev));
	if (!ev)
		return false;
	l->ev = ev;
	l->cap = cap;
	return true;
}

static bool
is_late(const struct urn_client_shard *c)
{
	return c->late.n || c->late.lost;
}

static void
put_late(struct urn_shard *s, struct urn_client_shard *c, const struct urn_abi_event *ev)
{
	if (!is_late(c)) {
		if (TAILQ_EMPTY(&s->late_events))
			s->late_due = s->tp->now + RETRY_NS;
		TAILQ_INSERT_TAIL(&s->late_events, c, late_events);
	}
	if (c->late.lost || !late_room(&c->late)) {
		c->late.lost = true; /* a last event will report the loss */
		URN_COUNT(s->tp, EVENT_LOST);
	} else {
		c->late.ev[c->late.n++] = *ev;
	}
}

/* Give a client as many late events as there is room for. */
static void
tell_late(struct urn_shard *s, struct urn_client_shard *c)
{
	const struct urn_abi_event lost = {.type = URN_EVENT_LOST};
	int fd = async_fd(c);
	uint32_t n = 0;

	while (n < c->late.n && n < RETRY_EVENTS && (fd < 0 || tell(s->tp, fd, &c->late.ev[n]) != NO_ROOM))
		n++;
	c->late.n -= n;
	memmove(c->late.ev, c->late.ev + n, c->late.n * sizeof(*c->late.ev));
	if (!c->late.n && c->late.lost)
		c->late.lost = fd >= 0 && tell(s->tp, fd, &lost) == NO_ROOM;
}

static void
tell_all_late(struct urn_shard *s)
{
	struct urn_client_shard *c, *last = TAILQ_LAST(&s->late_events, urn_late_clients);

	s->late_due = s->tp->now + RETRY_NS;
	for (unsigned int i = 0; i < RETRY_LOOKS && (c = TAILQ_FIRST(&s->late_events)); i++) {
		tell_late(s, c);
		TAILQ_REMOVE(&s->late_events, c, late_events);
		if (is_late(c))
			TAILQ_INSERT_TAIL(&s->late_events, c, late_events); /* its next turn comes last */
		if (c == last)
			break;
	}
}

void
urn_shard_forget_events(struct urn_shard *s, struct urn_client_shard *c)
{
	if (is_late(c))
		TAILQ_REMOVE(&s->late_events, c, late_events);
	free(c->late.ev);
	c->late = (struct urn_late){0};
}

void
urn_shard_tell_events(void *ctx)
{
	struct urn_shard *s = ctx;
	struct urn_tp *tp = s->tp;

	for (unsigned int i = 0; i < tp->event_n; i++) {
		const struct urn_tp_event *e = &tp->event[i];
		struct urn_client_shard *c;
		int fd;

		if (!urn_share_has_client(e->owner))
			continue;
		c = urn_client_shard_of(e->owner);
		fd = async_fd(c);
		if (fd >= 0 && (is_late(c) || tell(tp, fd, &e->ev) == NO_ROOM))
			put_late(s, c, &e->ev);
	}
	tp->event_n = 0;
}

/* Events of register sets and endpoints; struct urn_shard is the context. */
static bool
tell_msg(void *ctx, int fd, const struct urn_abi_event *ev)
{
	const struct urn_shard *s = ctx;

	return tell(s->tp, fd, ev) != NO_ROOM;
}

URN_FAST void
urn_shard_notify(struct urn_shard *s)
{
	if (unlikely(!TAILQ_EMPTY(&s->untold) && s->tp->now >= s->untold_due))
		look_at_untold(s);
	if (s->tp->touched)
		look_at_touched(s);
	if (*s->msg_untold)
		urn_msg_tell(s->msg, s->tp->now, tell_msg, s);
	if (*s->am_untold)
		urn_am_tell(s->am, s->tp->now, tell_msg, s);
	urn_shard_tell_events(s);
	if (unlikely(!TAILQ_EMPTY(&s->late_events) && s->tp->now >= s->late_due))
		tell_all_late(s);
}

void
urn_shard_forget_cq(struct urn_shard *s, struct urn_cq *cq)
{
	/* Queues touched since the last turn: the end of this turn would look at them anyway. */
	if (cq->touched && !cq->late)
		look_at_touched(s);
	if (cq->late)
		take_untold(s, cq);
}
