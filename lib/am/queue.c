/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queues of events. An operation keeps a place for its event before it is issued, so no event is
 * ever lost. The queue's descriptor is an epoll descriptor over those of its endpoints, and one of
 * its own for events that come from other threads, and a timer for what wakes nobody: answers of
 * flows, the time of parked messages, and that of requests.
 */
#include "am/lock.h"

#include "abi/clock.h"
#include "msg/pause.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { URN_AM_EVENTS = 256, URN_AM_EVENTS_MAX = 65536 };

struct urn_am_queue {
	pthread_mutex_t lock;	    /* lock protects the fields up to `armed` */
	struct urn_am_event *event; /* entries; owner */
	uint32_t entries;
	uint32_t head, n;		 /* first event, and number of them */
	uint32_t reserved;		 /* places that are kept or hold an event */
	bool armed;			 /* the bell is to be rung for the next event */
	bool timed;			 /* the timer is set */
	int epoll, bell, timer;		 /* descriptors; -1: none */
	uint32_t forks;			 /* generation of the process that made the queue */
	struct urn_am_endpoint *members; /* list */
};

/* Refuse a call on a queue of a parent of this process: the descriptors and the rings behind it are
 * the parent's. returns: 0; EPERM with its text and errno set */
static int
urn_am_queue_own(const struct urn_am_queue *q)
{
	if (q->forks == urn_am_forks())
		return 0;
	errno = urn_fail(EPERM, "the queue of events belongs to the parent of this process");
	return EPERM;
}

/* True when the calling thread is inside a handler, and another endpoint is in the queue, with the
 * sentence of EPERM, and errno. */
static bool
urn_am_queue_is_others(const struct urn_am_queue *q)
{
	const struct urn_am_endpoint *ep = urn_am_handling != NULL ? q->members : NULL;

	for (; ep != NULL; ep = ep->in_queue)
		if (urn_am_is_elsewhere(ep))
			return true;
	return false;
}

static void
urn_am_queue_free(struct urn_am_queue *q)
{
	if (q->epoll >= 0)
		close(q->epoll);
	if (q->bell >= 0)
		close(q->bell);
	if (q->timer >= 0)
		close(q->timer);
	pthread_mutex_destroy(&q->lock);
	free(q->event);
	free(q);
}

struct urn_am_queue *
urn_am_queue_create(uint32_t entries)
{
	struct epoll_event ev = {.events = EPOLLIN};
	struct urn_am_queue *q;

	entries = entries ? entries : URN_AM_EVENTS;
	if (entries > URN_AM_EVENTS_MAX) {
		urn_fail(EINVAL, "a queue has at most %d events", URN_AM_EVENTS_MAX);
		return NULL;
	}
	q = calloc(1, sizeof(*q));
	if (q == NULL) {
		urn_fail(ENOMEM, "no memory for a queue of events");
		return NULL;
	}
	pthread_mutex_init(&q->lock, NULL);
	q->entries = entries;
	q->forks = urn_am_forks();
	q->event = calloc(entries, sizeof(*q->event));
	q->epoll = epoll_create1(EPOLL_CLOEXEC);
	q->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	q->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (q->event != NULL && q->epoll >= 0 && q->bell >= 0 && q->timer >= 0 &&
	    epoll_ctl(q->epoll, EPOLL_CTL_ADD, q->bell, &ev) == 0 &&
	    epoll_ctl(q->epoll, EPOLL_CTL_ADD, q->timer, &ev) == 0)
		return q;
	urn_fail(q->event == NULL ? ENOMEM : errno, "cannot make a queue of events");
	urn_am_queue_free(q);
	return NULL;
}

int
urn_am_queue_destroy(struct urn_am_queue *q)
{
	if (q == NULL)
		return 0;
	if (urn_am_queue_own(q) != 0)
		return EPERM;
	if (q->members != NULL)
		return urn_fail(EBUSY, "endpoints are in the queue");
	urn_am_queue_free(q);
	return 0;
}

/* ---- endpoints */

static int
urn_am_queue_enter(struct urn_am_queue *q, struct urn_am_endpoint *ep)
{
	int err;

	if (!ep->attr.wakes)
		return urn_fail(EINVAL, "the endpoint was made without `wakes`");
	if (ep->queue != NULL)
		return urn_fail(EBUSY, "the endpoint is in a queue");
	/* The endpoint's thread watches its descriptors. */
	err = ep->thread == NULL ? urn_am_watch(ep, q->epoll, true) : 0;
	if (err != 0) {
		(void)urn_am_watch(ep, q->epoll, false);
		return err;
	}
	ep->queue = q;
	ep->in_queue = q->members;
	q->members = ep;
	return 0;
}

int
urn_am_queue_add(struct urn_am_queue *q, struct urn_am_endpoint *ep)
{
	int err = urn_am_queue_own(q);

	if (err == 0)
		err = urn_am_enter(ep);
	if (err != 0)
		return err;
	err = urn_am_queue_enter(q, ep);
	urn_am_leave(ep);
	return err;
}

void
urn_am_queue_watch(struct urn_am_endpoint *ep, bool on)
{
	if (ep->queue != NULL)
		(void)urn_am_watch(ep, ep->queue->epoll, on);
}

static void
urn_am_queue_take(struct urn_am_endpoint *ep)
{
	struct urn_am_queue *q = ep->queue;
	struct urn_am_endpoint **at = &q->members;

	while (*at != ep)
		at = &(*at)->in_queue;
	*at = ep->in_queue;
	ep->queue = NULL;
	(void)urn_am_watch(ep, q->epoll, false);
}

int
urn_am_queue_remove(struct urn_am_queue *q, struct urn_am_endpoint *ep)
{
	int err = urn_am_queue_own(q);

	if (err == 0)
		err = urn_am_enter(ep);
	if (err != 0)
		return err;
	if (ep->queue != q)
		err = urn_fail(EINVAL, "the endpoint is not in the queue");
	else if (ep->evented != 0)
		err = urn_fail(EBUSY, "%u operations of the endpoint will be events", ep->evented);
	else
		urn_am_queue_take(ep);
	urn_am_leave(ep);
	return err;
}

void
urn_am_queue_forget(struct urn_am_endpoint *ep)
{
	struct urn_am_queue *q = ep->queue;
	uint32_t i, n = 0;

	if (q == NULL || urn_am_queue_own(q) != 0)
		return;
	urn_am_queue_take(ep);
	pthread_mutex_lock(&q->lock);
	for (i = 0; i < q->n; i++) {
		const struct urn_am_event *e = &q->event[(q->head + i) % q->entries];

		if (e->ep != ep)
			q->event[(q->head + n++) % q->entries] = *e;
	}
	q->reserved -= ep->evented + (q->n - n);
	q->n = n;
	pthread_mutex_unlock(&q->lock);
}

/* ---- events */

bool
urn_am_queue_reserve(struct urn_am_queue *q)
{
	bool room;

	pthread_mutex_lock(&q->lock);
	room = q->reserved < q->entries;
	q->reserved += room;
	pthread_mutex_unlock(&q->lock);
	return room;
}

void
urn_am_queue_put(struct urn_am_queue *q, const struct urn_am_event *e)
{
	const uint64_t one = 1;
	bool ring;

	pthread_mutex_lock(&q->lock);
	q->event[(q->head + q->n++) % q->entries] = *e;
	ring = q->armed;
	q->armed = false;
	pthread_mutex_unlock(&q->lock);
	if (ring && write(q->bell, &one, sizeof(one)) < 0)
		return; /* the counter is full: the descriptor is readable */
}

/* Take events out. returns: their number */
static uint32_t
urn_am_queue_read(struct urn_am_queue *q, struct urn_am_event *events, uint32_t n)
{
	uint32_t i;

	pthread_mutex_lock(&q->lock);
	for (i = 0; i < n && q->n != 0; i++, q->n--) {
		events[i] = q->event[q->head];
		q->head = (q->head + 1) % q->entries;
	}
	q->reserved -= i;
	pthread_mutex_unlock(&q->lock);
	return i;
}

/* Set the timer. ms: from now on; 0: never */
static void
urn_am_queue_time(struct urn_am_queue *q, int ms)
{
	struct itimerspec t = {
		.it_value = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * INT64_C(1000000)}};

	if (ms == 0 && !q->timed)
		return;
	q->timed = ms != 0;
	(void)timerfd_settime(q->timer, 0, &t, NULL); /* takes any past expiry away, too */
}

/* Nobody sleeps on the queue any more. */
static void
urn_am_queue_awake(struct urn_am_queue *q)
{
	uint64_t rings;

	pthread_mutex_lock(&q->lock);
	q->armed = false;
	pthread_mutex_unlock(&q->lock);
	(void)!read(q->bell, &rings, sizeof(rings));
	urn_am_queue_time(q, 0);
}

uint32_t
urn_am_queue_poll(struct urn_am_queue *q, struct urn_am_event *events, uint32_t n)
{
	struct urn_am_endpoint *ep;

	if (urn_am_queue_own(q) != 0 || urn_am_queue_is_others(q))
		return 0;
	urn_am_queue_awake(q);
	for (ep = q->members; ep != NULL; ep = ep->in_queue) {
		if (ep->thread != NULL)
			continue;      /* the thread drives the progress, and rings the bell */
		if (!urn_am_drain(ep)) /* for ever readable */
			(void)urn_am_watch(ep, q->epoll, false);
		(void)urn_am_progress(ep);
	}
	return urn_am_queue_read(q, events, n);
}

int
urn_am_queue_fd(const struct urn_am_queue *q)
{
	return q->epoll;
}

/* Milliseconds that a sleep on the queue may last, because not all wakes; 0: without bound */
static int
urn_am_queue_doze(const struct urn_am_queue *q)
{
	const struct urn_am_endpoint *ep;
	int least = 0;

	for (ep = q->members; ep != NULL; ep = ep->in_queue) {
		int doze = ep->thread == NULL ? urn_am_doze(ep) : -1;

		if (doze >= 0 && (least == 0 || doze < least))
			least = doze;
	}
	return least;
}

int
urn_am_queue_arm(struct urn_am_queue *q)
{
	struct urn_am_endpoint *ep;
	bool waits;

	if (urn_am_queue_own(q) != 0 || urn_am_queue_is_others(q))
		return -1;
	pthread_mutex_lock(&q->lock);
	q->armed = true;
	waits = q->n != 0;
	pthread_mutex_unlock(&q->lock);
	for (ep = q->members; ep != NULL; ep = ep->in_queue)
		if (ep->thread == NULL)
			waits |= urn_am_arm(ep);
	urn_am_queue_time(q, waits ? 0 : urn_am_queue_doze(q));
	return waits;
}

/* Refuse to wait inside a handler, and inside a function that an endpoint of the queue called: that
 * endpoint moves on when the function has returned. returns: 0; EPERM with its text and errno set
 */
static int
urn_am_queue_outside(const struct urn_am_queue *q)
{
	const struct urn_am_endpoint *ep;

	if (urn_am_handling != NULL) {
		errno = urn_fail(EPERM,
				 "a handler may not wait for events, not even of its own endpoint");
		return EPERM;
	}
	for (ep = q->members; ep != NULL; ep = ep->in_queue)
		if (urn_am_is_inside(ep)) {
			errno = urn_fail(EPERM, "a function of an endpoint may not wait for "
						"events of that endpoint");
			return EPERM;
		}
	return 0;
}

uint32_t
urn_am_queue_wait(struct urn_am_queue *q, struct urn_am_event *events, uint32_t n, int timeout_ms)
{
	uint64_t start = urn_clock_ms();
	struct pollfd p = {.fd = q->epoll, .events = POLLIN};
	struct urn_msg_pause pause = {0};

	if (urn_am_queue_own(q) != 0)
		return 0;
	for (;;) {
		uint32_t got = urn_am_queue_poll(q, events, n);
		int64_t left = timeout_ms < 0 ? -1 : timeout_ms - (int64_t)(urn_clock_ms() - start);

		if (got != 0 || (timeout_ms >= 0 && left <= 0) || urn_am_queue_outside(q) != 0)
			return got;
		if (urn_am_queue_arm(q))
			urn_msg_pause(&pause); /* for a message that can't be taken yet, too */
		else
			(void)poll(&p, 1, left > INT32_MAX ? INT32_MAX : (int)left);
	}
}
