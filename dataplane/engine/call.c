/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control calls across threads.
 *
 * A call is a note on the caller's stack, queued under the engine's lock. The
 * engine's loop looks at one atomic count. While a thread waits for its note it
 * serves the engines that it polls itself, so two engines' threads that call
 * each other do not wait for ever.
 */
#include "engine/engine.h"

#include <sched.h>
#include <unistd.h>

struct urn_mail {
	struct urn_mail *next;
	void (*fn)(void *arg);
	void *arg;
	_Atomic bool done; /* set by the engine, with release */
};

/* Engines that this thread polls. */
enum { MINE = URN_ABI_MAX_ENGINES };
static __thread struct urn_engine *mine[MINE];

bool
urn_engine_is_mine(struct urn_engine *e)
{
	for (int i = 0; i < MINE; i++)
		if (mine[i] == e)
			return true;
	return false;
}

void
urn_engine_wait_turn(void)
{
	for (int i = 0; i < MINE; i++)
		if (mine[i])
			urn_engine_mail(mine[i]);
	sched_yield();
}

void
urn_engine_mail(struct urn_engine *e)
{
	struct urn_mail *m, *next;

	if (atomic_load_explicit(&e->mail, memory_order_acquire) == 0)
		return;
	pthread_mutex_lock(&e->lock);
	m = e->mail_head;
	e->mail_head = e->mail_tail = NULL;
	atomic_store(&e->mail, 0);
	pthread_mutex_unlock(&e->lock);
	for (; m; m = next) {
		next = m->next;
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
	if (!e->bound) { /* the lock keeps everybody else out */
		fn(arg);
		pthread_mutex_unlock(&e->lock);
		return;
	}
	if (e->mail_tail)
		e->mail_tail->next = &m;
	else
		e->mail_head = &m;
	e->mail_tail = &m;
	atomic_fetch_add(&e->mail, 1);
	pthread_mutex_unlock(&e->lock);
	if (write(e->wake_fd, &one, sizeof(one)) < 0) {
		/* Full means that it is being woken already. */
	}
	while (!atomic_load_explicit(&m.done, memory_order_acquire))
		urn_engine_wait_turn();
}

void
urn_engine_bind(struct urn_engine *e)
{
	pthread_mutex_lock(&e->lock);
	e->bound = true;
	e->owner = pthread_self();
	pthread_mutex_unlock(&e->lock);
	for (int i = 0; i < MINE; i++) {
		if (!mine[i] || mine[i] == e) {
			mine[i] = e;
			break;
		}
	}
}

void
urn_engine_unbind(struct urn_engine *e)
{
	bool done;

	/* From the moment the flag falls others run their calls themselves. */
	do {
		urn_engine_mail(e);
		pthread_mutex_lock(&e->lock);
		done = !e->mail_head;
		if (done)
			e->bound = false;
		pthread_mutex_unlock(&e->lock);
	} while (!done);
	for (int i = 0; i < MINE; i++)
		if (mine[i] == e)
			mine[i] = NULL;
}
