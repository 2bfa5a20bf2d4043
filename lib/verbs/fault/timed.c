/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events and ends of peers on demand, by a thread of the process: after a time, or after so many
 * completions. The thread makes calls without the lock; `acts` keeps contexts and queues meanwhile.
 */
#include "verbs/fault/state.h"

#include "abi/clock.h"
#include "attach/thread.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define NS_PER_S 1000000000u

/* True when a fault is the thread's. */
static bool
is_timed(const struct urn_fault *f)
{
	return f->spec.site >= URN_FAULT_EVENT;
}

void
urn_fault_start(enum urn_fault_site site)
{
	struct urn_fault_state *s = &urn_fault_state;
	uint64_t now = urn_clock_ns();
	uint32_t i;

	for (i = 0; i < s->n; i++)
		if (s->fault[i].spec.site == site && s->fault[i].spec.when == URN_FAULT_AFTER)
			s->fault[i].due = now + s->fault[i].spec.n;
	if (s->timed != 0)
		pthread_cond_broadcast(&s->cond);
}

void
urn_fault_counted(uint64_t before)
{
	struct urn_fault_state *s = &urn_fault_state;
	uint32_t i;

	if (s->timed == 0)
		return;
	for (i = 0; i < s->n; i++)
		if (is_timed(&s->fault[i]) && s->fault[i].spec.when == URN_FAULT_NTH &&
		    before + 1 == s->fault[i].spec.n) {
			s->fault[i].due = 1; /* long ago */
			pthread_cond_broadcast(&s->cond);
		}
}

/* ---- events */

static void
tell(struct urn_fault_ctx *f, enum ibv_event_type type, void *queue)
{
	int err = f->real->raise_event != NULL ? f->real->raise_event(f->context, type, queue)
					       : EOPNOTSUPP;

	if (err != 0)
		fprintf(stderr, "urnic: the event %s on demand can't be told: %s\n",
			urn_fault_event_word(type), strerror(err));
}

/* The state that a queue pair gets to with an event, as on hardware. The lock is not held. */
static void
break_with(struct urn_fault_obj *o, enum ibv_event_type type)
{
	if (type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR ||
	    type == IBV_EVENT_QP_ACCESS_ERR)
		urn_fault_break(o);
}

/* Break all queue pairs that complete in a queue. */
static void
break_all(const struct urn_fault_obj *cq)
{
	struct urn_fault_obj *o;
	unsigned int i;

	pthread_mutex_lock(&urn_fault_state.lock);
	for (i = 0; i < URN_FAULT_LISTS; i++)
		LIST_FOREACH(o, &urn_fault_state.objs[i], link) {
			if (o->dying || o->kind != URN_FAULT_QP ||
			    (o->cq[0] != cq->queue && o->cq[1] != cq->queue))
				continue;
			/* A queue in use stays in its list. */
			o->users++;
			pthread_mutex_unlock(&urn_fault_state.lock);
			urn_fault_break(o);
			pthread_mutex_lock(&urn_fault_state.lock);
			if (--o->users == 0)
				pthread_cond_broadcast(&urn_fault_state.cond);
		}
	pthread_mutex_unlock(&urn_fault_state.lock);
}

static void
queue_event(const struct urn_fault_spec *spec)
{
	enum ibv_event_type type = (enum ibv_event_type)spec->what;
	struct urn_fault_obj *o;

	pthread_mutex_lock(&urn_fault_state.lock);
	o = urn_fault_obj_first(spec->queue, spec->number);
	if (o != NULL)
		o->users++;
	pthread_mutex_unlock(&urn_fault_state.lock);
	if (o == NULL) {
		fprintf(stderr,
			"urnic: the event %s on demand: the program has no such queue now\n",
			urn_fault_event_word(type));
		return;
	}
	break_with(o, type);
	if (o->kind == URN_FAULT_CQ)
		break_all(o);
	tell(urn_fault_ctx(o->context), type, o->queue);
	urn_fault_obj_leave(o);
}

/* An event of the device or its port, in each context. The thread acts, so contexts stay. */
static void
device_event(const struct urn_fault_spec *spec)
{
	enum ibv_event_type type = (enum ibv_event_type)spec->what;
	struct urn_fault_ctx *f;

	pthread_mutex_lock(&urn_fault_state.lock);
	LIST_FOREACH(f, &urn_fault_state.contexts, link) {
		if (type == IBV_EVENT_PORT_ERR || type == IBV_EVENT_PORT_ACTIVE)
			f->port_down = type == IBV_EVENT_PORT_ERR;
		pthread_mutex_unlock(&urn_fault_state.lock);
		tell(f, type, NULL);
		pthread_mutex_lock(&urn_fault_state.lock);
	}
	pthread_mutex_unlock(&urn_fault_state.lock);
}

/* ---- peers */

/* Find a connected queue pair. returns: false: there is none */
static bool
find_pair(struct urn_fault_pair *pair)
{
	struct urn_fault_obj *o, *first = NULL;
	const struct urn_verbs_ctx *v;
	unsigned int i;

	pthread_mutex_lock(&urn_fault_state.lock);
	for (i = 0; i < URN_FAULT_LISTS; i++)
		LIST_FOREACH(o, &urn_fault_state.objs[i], link)
			if (o->connected && !o->dying &&
			    (first == NULL || o->number < first->number))
				first = o;
	if (first != NULL)
		first->users++;
	pthread_mutex_unlock(&urn_fault_state.lock);
	if (first == NULL)
		return false;
	v = urn_verbs_ctx(first->context);
	snprintf(pair->adapter, sizeof(pair->adapter), "%s", v->id.name);
	pair->qpn = first->handle;
	for (i = 0, pair->gids = 0;
	     i < v->gids && pair->gids < sizeof(pair->gid) / sizeof(pair->gid[0]); i++)
		if (urn_fault_ctx(first->context)
			    ->real->query_gid(first->context, i, &pair->gid[pair->gids]) == 0)
			pair->gids++;
	urn_fault_obj_leave(first);
	return true;
}

static void
kill_peer(void)
{
	struct urn_fault_pair pair;
	char why[URN_ERROR_TEXT];

	if (!find_pair(&pair))
		snprintf(why, sizeof(why), "no queue pair is connected");
	else if (urn_fault_kill_peer(&pair, why, sizeof(why)) == 0)
		return;
	fprintf(stderr, "urnic: kill-peer: %s\n", why);
}

/* ---- the thread */

static void
act(const struct urn_fault_spec *spec)
{
	if (spec->site == URN_FAULT_KILL_PEER)
		kill_peer();
	else if (spec->queue != 0)
		queue_event(spec);
	else
		device_event(spec);
}

/* The fault that is due next. returns: NULL: none has a time yet */
static struct urn_fault *
next_due(void)
{
	struct urn_fault *f, *next = NULL;
	uint32_t i;

	for (i = 0; i < urn_fault_state.n; i++) {
		f = &urn_fault_state.fault[i];
		if (is_timed(f) && !f->done && f->due != 0 && (next == NULL || f->due < next->due))
			next = f;
	}
	return next;
}

static void *
urn_fault_run(void *turn)
{
	struct urn_fault_state *s = &urn_fault_state;

	pthread_mutex_lock(&s->lock);
	while (s->turn == (uintptr_t)turn) {
		struct urn_fault *f = next_due();

		if (f == NULL) {
			pthread_cond_wait(&s->cond, &s->lock);
		} else if (f->due > urn_clock_ns()) {
			struct timespec ts = {.tv_sec = (time_t)(f->due / NS_PER_S),
					      .tv_nsec = (long)(f->due % NS_PER_S)};

			(void)pthread_cond_timedwait(&s->cond, &s->lock, &ts);
		} else {
			f->done = true;
			s->acts = true;
			pthread_mutex_unlock(&s->lock);
			act(&f->spec);
			pthread_mutex_lock(&s->lock);
			s->acts = false;
			pthread_cond_broadcast(&s->cond);
		}
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

void
urn_fault_thread_start(void)
{
	struct urn_fault_state *s = &urn_fault_state;

	if (s->timed == 0 || s->runs)
		return;
	s->runs = urn_thread_start(&s->thread, urn_fault_run, (void *)s->turn) == 0;
	if (!s->runs)
		fputs("urnic: no thread for events on demand\n", stderr);
}

void
urn_fault_thread_join(void)
{
	struct urn_fault_state *s = &urn_fault_state;
	pthread_t thread;
	bool runs;

	pthread_mutex_lock(&s->lock);
	runs = s->runs && LIST_EMPTY(&s->contexts);
	thread = s->thread;
	if (runs) {
		s->turn++;
		s->runs = false;
		pthread_cond_broadcast(&s->cond);
	}
	pthread_mutex_unlock(&s->lock);
	if (runs)
		pthread_join(thread, NULL);
}
