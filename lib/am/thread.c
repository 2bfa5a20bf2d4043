/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The helper thread of an endpoint. Each endpoint has its own, so that a function of the program
 * that does not return holds up this endpoint alone. The thread drives the progress under the
 * endpoint's lock, lets others have the lock in between, and sleeps on the endpoint's descriptors.
 */
#include "am/lock.h"

#include "attach/stop.h"

#include "msg/pause.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

static pthread_once_t urn_am_once = PTHREAD_ONCE_INIT;
uint32_t urn_am_fork_count;

static void
urn_am_fork_child(void)
{
	urn_am_fork_count++;
}

static void
urn_am_fork_register(void)
{
	(void)pthread_atfork(NULL, NULL, urn_am_fork_child);
}

uint32_t
urn_am_forks(void)
{
	(void)pthread_once(&urn_am_once, urn_am_fork_register);
	return urn_am_fork_count;
}

int
urn_am_refuse_child(void)
{
	return urn_fail(EPERM, "the endpoint belongs to the parent of this process");
}

/* ---- lock */

_Thread_local const struct urn_am_endpoint *urn_am_handling;

bool
urn_am_is_elsewhere(const struct urn_am_endpoint *ep)
{
	if (urn_am_handling == NULL || urn_am_handling == ep)
		return false;
	urn_fail(EPERM, "inside a handler only the handler's own endpoint may be called");
	return true;
}

void
urn_am_returned(const struct urn_am_endpoint *ep)
{
	if (urn_am_is_parents(ep))
		_exit(0); /* no stream of the parent's is written twice */
}

void
urn_am_lock(const struct urn_am_endpoint *ep)
{
	struct urn_am_thread *t = ep->thread;

	atomic_fetch_add_explicit(&t->waiters, 1, memory_order_relaxed);
	pthread_mutex_lock(&t->lock);
	atomic_fetch_sub_explicit(&t->waiters, 1, memory_order_relaxed);
}

bool
urn_am_is_inside(const struct urn_am_endpoint *ep)
{
	bool inside;

	if (ep->thread == NULL)
		return ep->inside != URN_AM_OUTSIDE;
	if (pthread_mutex_trylock(&ep->thread->lock) != 0)
		return false; /* another thread has the lock, which is recursive */
	inside = ep->inside != URN_AM_OUTSIDE;
	pthread_mutex_unlock(&ep->thread->lock);
	return inside;
}

/* Let the thread look. */
static void
urn_am_ring(const struct urn_am_thread *t)
{
	const uint64_t one = 1;

	(void)!write(t->bell, &one, sizeof(one)); /* a counter that is full is readable, too */
}

void
urn_am_unlock(const struct urn_am_endpoint *ep)
{
	struct urn_am_thread *t = ep->thread;
	/* Something was sent whose answer wakes nobody: the thread is to look before it would by
	 * itself. */
	int doze = t->doze != 0 ? urn_am_doze(ep) : -1;
	bool ring = doze >= 0 && (t->doze < 0 || doze < t->doze);

	if (ring)
		t->doze = 0;
	pthread_mutex_unlock(&t->lock);
	if (ring)
		urn_am_ring(t);
}

/* ---- the thread */

/* Drive the progress once. *doze: milliseconds that a sleep may last; valid with false. returns:
 * true: there may be more to do now */
static bool
urn_am_turn(struct urn_am_endpoint *ep, struct urn_msg_pause *pause, int *doze)
{
	struct urn_am_thread *t = ep->thread;
	unsigned int calls;
	bool waits;

	pthread_mutex_lock(&t->lock);
	t->doze = 0;
	if (!urn_am_drain(ep)) /* for ever readable */
		(void)urn_am_watch(ep, t->epoll, false);
	calls = urn_am_progress(ep);
	waits = calls == 0 && urn_am_arm(ep);
	*doze = urn_am_doze(ep);
	t->doze = calls == 0 && !waits ? *doze : 0;
	pthread_mutex_unlock(&t->lock);
	if (calls != 0) {
		*pause = (struct urn_msg_pause){0};
		/* A mutex is not fair: this thread would take it again at once. */
		if (atomic_load_explicit(&t->waiters, memory_order_relaxed) != 0)
			sched_yield();
	} else if (waits) {
		urn_msg_pause(pause); /* a request waits until an answer's set is idle */
	}
	return calls != 0 || waits;
}

static void *
urn_am_run(void *arg)
{
	struct urn_am_endpoint *ep = arg;
	struct urn_am_thread *t = ep->thread;
	struct urn_msg_pause pause = {0};
	struct epoll_event ev;
	uint64_t rings;
	int doze;

	while (!atomic_load(&t->stop)) {
		if (urn_am_turn(ep, &pause, &doze))
			continue;
		(void)epoll_wait(t->epoll, &ev, 1, doze);
		(void)!read(t->bell, &rings, sizeof(rings));
		pause = (struct urn_msg_pause){0};
	}
	return NULL;
}

/* ---- start and stop */

static void
urn_am_thread_free(struct urn_am_thread *t)
{
	if (t->epoll >= 0)
		close(t->epoll);
	if (t->bell >= 0)
		close(t->bell);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* Make everything but the thread itself. NULL: with errno set */
static struct urn_am_thread *
urn_am_thread_make(struct urn_am_endpoint *ep)
{
	struct urn_am_thread *t = calloc(1, sizeof(*t));
	struct epoll_event ev = {.events = EPOLLIN};
	pthread_mutexattr_t attr;

	if (t == NULL)
		return NULL;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&t->lock, &attr);
	pthread_mutexattr_destroy(&attr);
	t->epoll = epoll_create1(EPOLL_CLOEXEC);
	t->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (t->epoll >= 0 && t->bell >= 0 &&
	    epoll_ctl(t->epoll, EPOLL_CTL_ADD, t->bell, &ev) == 0 &&
	    urn_am_watch(ep, t->epoll, true) == 0)
		return t;
	urn_am_thread_free(t);
	return NULL;
}

/* Create the thread with all signals blocked. returns: 0, or an errno value */
static int
urn_am_thread_create(struct urn_am_endpoint *ep)
{
	sigset_t all, old;
	int err;

	urn_stop_mask(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&ep->thread->id, NULL, urn_am_run, ep);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

int
urn_am_thread_start(struct urn_am_endpoint *ep)
{
	int err;

	if (urn_am_is_elsewhere(ep))
		return EPERM;
	if (urn_am_is_parents(ep))
		return urn_am_refuse_child();
	if (ep->thread != NULL)
		return urn_fail(EALREADY, "the endpoint has a thread");
	if (urn_am_is_inside(ep))
		return urn_fail(EPERM, "a thread may not be started inside a handler");
	if (!ep->attr.wakes)
		return urn_fail(EINVAL, "the endpoint was made without `wakes`");
	ep->thread = urn_am_thread_make(ep);
	if (ep->thread == NULL)
		return urn_fail(errno, "cannot prepare a thread");
	urn_am_queue_watch(ep, false);
	err = urn_am_thread_create(ep);
	if (err == 0)
		return 0;
	urn_am_thread_free(ep->thread);
	ep->thread = NULL;
	urn_am_queue_watch(ep, true);
	return urn_fail(err, "cannot create a thread");
}

/* Wait for the end of the thread, as long as a request waits for its answer. returns: 0, or EBUSY
 * with its text */
static int
urn_am_thread_join(const struct urn_am_endpoint *ep)
{
	uint32_t ms = ep->attr.answer_ms;
	struct timespec end;
	int number;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += ms / 1000;
	end.tv_nsec += (long)(ms % 1000) * 1000000;
	if (end.tv_nsec >= 1000000000) {
		end.tv_nsec -= 1000000000;
		end.tv_sec++;
	}
	if (pthread_clockjoin_np(ep->thread->id, NULL, CLOCK_MONOTONIC, &end) == 0)
		return 0;
	number = urn_am_running(ep);
	if (number < 0)
		return urn_fail(EBUSY, "a function of the program has not returned for %u ms", ms);
	return urn_fail(EBUSY, "handler %d has not returned for %u ms", number, ms);
}

int
urn_am_thread_stop(struct urn_am_endpoint *ep)
{
	struct urn_am_thread *t = ep->thread;
	int err;

	if (urn_am_is_parents(ep))
		return urn_am_refuse_child();
	if (t == NULL)
		return urn_fail(EINVAL, "the endpoint has no thread");
	if (pthread_equal(t->id, pthread_self()))
		return urn_fail(EDEADLK, "a thread cannot wait for its own end");
	if (urn_am_is_inside(ep) || urn_am_is_elsewhere(ep))
		return urn_fail(EDEADLK, "a handler cannot wait for a thread that waits for it");
	atomic_store(&t->stop, true);
	urn_am_ring(t);
	err = urn_am_thread_join(ep);
	if (err != 0)
		return err;
	ep->thread = NULL;
	urn_am_thread_free(t);
	urn_am_queue_watch(ep, true);
	return 0;
}
