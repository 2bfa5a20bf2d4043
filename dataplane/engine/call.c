/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control calls across threads.
 *
 * A call is a note on the caller's stack, queued under the engine's lock. The engine's loop looks
 * at one atomic count. A thread that waits for its note serves the engines that it polls itself, so
 * two engines' threads that call each other do not wait for ever. One list has all engines that
 * threads poll: a separate list for each thread could still name an engine that another thread
 * takes down.
 */
#include "engine/engine.h"

#include <sched.h>
#include <unistd.h>

struct urn_mail {
	STAILQ_ENTRY(urn_mail) next; /* among the engine's */
	void (*fn)(void *arg);
	void *arg;
	_Atomic bool done; /* set by the engine, with release */
};

/* bound_lock guards the list of engines that threads poll. Slow path; taken before an engine's own lock. */
static pthread_mutex_t bound_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, urn_engine) bound_engines = LIST_HEAD_INITIALIZER(bound_engines);

bool
urn_engine_is_mine(struct urn_engine *e)
{
	bool mine;

	pthread_mutex_lock(&e->lock);
	mine = e->bound && pthread_equal(e->owner, pthread_self());
	pthread_mutex_unlock(&e->lock);
	return mine;
}

/* The first engine polled by this thread that has waiting calls. */
static struct urn_engine *
mine_with_mail(void)
{
	struct urn_engine *e;

	pthread_mutex_lock(&bound_lock);
	LIST_FOREACH(e, &bound_engines, bound_link)
		if (atomic_load_explicit(&e->mail, memory_order_relaxed) && urn_engine_is_mine(e))
			break;
	pthread_mutex_unlock(&bound_lock);
	return e;
}

void
urn_engine_wait_turn(void)
{
	struct urn_engine *e = mine_with_mail();

	if (e)
		urn_engine_mail(e);
	sched_yield();
}

URN_FAST void
urn_engine_mail(struct urn_engine *e)
{
	STAILQ_HEAD(, urn_mail) mails = STAILQ_HEAD_INITIALIZER(mails);
	struct urn_mail *m;

	if (atomic_load_explicit(&e->mail, memory_order_acquire) == 0)
		return;
	pthread_mutex_lock(&e->lock);
	STAILQ_CONCAT(&mails, &e->mails);
	atomic_store(&e->mail, 0);
	pthread_mutex_unlock(&e->lock);
	while ((m = STAILQ_FIRST(&mails))) {
		STAILQ_REMOVE_HEAD(&mails, next);
		m->fn(m->arg);
		/* The caller's stack goes away after this. */
		atomic_store_explicit(&m->done, true, memory_order_release);
	}
}

void
urn_engine_call(struct urn_engine *e, void (*fn)(void *arg), void *arg)
{
	struct urn_mail m = {.fn = fn, .arg = arg};
	uint64_t one = 1;

	if (urn_engine_is_mine(e)) {
		fn(arg);
		return;
	}
	pthread_mutex_lock(&e->lock);
	if (!e->bound) { /* the lock keeps every other thread out */
		fn(arg);
		pthread_mutex_unlock(&e->lock);
		return;
	}
	STAILQ_INSERT_TAIL(&e->mails, &m, next);
	atomic_fetch_add(&e->mail, 1);
	pthread_mutex_unlock(&e->lock);
	if (write(e->wake_fd, &one, sizeof(one)) < 0) {
		/* A full eventfd wakes the engine already. */
	}
	while (!atomic_load_explicit(&m.done, memory_order_acquire))
		urn_engine_wait_turn();
}

void
urn_engine_bind(struct urn_engine *e)
{
	pthread_mutex_lock(&bound_lock);
	pthread_mutex_lock(&e->lock);
	if (!e->bound)
		LIST_INSERT_HEAD(&bound_engines, e, bound_link);
	e->bound = true;
	e->owner = pthread_self();
	pthread_mutex_unlock(&e->lock);
	pthread_mutex_unlock(&bound_lock);
}

/* Unbind the engine, unless calls wait. returns: true when that is done */
static bool
unbind(struct urn_engine *e)
{
	bool done;

	pthread_mutex_lock(&bound_lock);
	pthread_mutex_lock(&e->lock);
	done = STAILQ_EMPTY(&e->mails);
	if (done && e->bound) {
		LIST_REMOVE(e, bound_link);
		e->bound = false;
	}
	pthread_mutex_unlock(&e->lock);
	pthread_mutex_unlock(&bound_lock);
	return done;
}

void
urn_engine_unbind(struct urn_engine *e)
{
	/* Once `bound` is false, other threads run their calls themselves. */
	do
		urn_engine_mail(e);
	while (!unbind(e));
}
