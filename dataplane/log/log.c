/* SPDX-License-Identifier: BSD-3-Clause */
#include "log/log_priv.h"

#include "abi/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct urn_log *
urn_log_create(unsigned int rings)
{
	struct urn_log *log = calloc(1, sizeof(*log));
	size_t bytes = rings * sizeof(*log->ring);
	uint8_t level[URN_LOG_AREA_COUNT];
	pthread_condattr_t attr;

	if (!log)
		return NULL;
	log->ring = rings ? aligned_alloc(_Alignof(struct urn_log_ring), bytes) : NULL;
	if (rings && !log->ring) {
		free(log);
		return NULL;
	}
	if (rings)
		memset(log->ring, 0, bytes);
	log->rings = rings;
	log->w.fd = -1;
	urn_log_defaults(level);
	for (unsigned int i = 0; i < URN_LOG_AREA_COUNT; i++)
		atomic_store(&log->level[i], level[i]);
	pthread_mutex_init(&log->lock, NULL);
	pthread_mutex_init(&log->tick_lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&log->some, &attr);
	pthread_condattr_destroy(&attr);
	return log;
}

void
urn_log_free(struct urn_log *log)
{
	if (!log || log->w.running) /* a writer that did not stop still uses the log */
		return;
	pthread_cond_destroy(&log->some);
	pthread_mutex_destroy(&log->tick_lock);
	pthread_mutex_destroy(&log->lock);
	free(log->ring);
	free(log);
}

struct urn_log_ring *
urn_log_ring_of(struct urn_log *log, unsigned int engine)
{
	return log && engine < log->rings ? &log->ring[engine] : NULL;
}

void
urn_log_set(struct urn_log *log, enum urn_log_area area, enum urn_log_level level)
{
	atomic_store_explicit(&log->level[area], (uint8_t)level, memory_order_relaxed);
}

enum urn_log_level
urn_log_level(const struct urn_log *log, enum urn_log_area area)
{
	return atomic_load_explicit(&log->level[area], memory_order_relaxed);
}

bool
urn_log_shows(const struct urn_log *log, enum urn_log_event event)
{
	return urn_log_level(log, urn_log_event_area(event)) >= urn_log_event_level(event);
}

/* Put an event into the queue, unless its source has said too much. */
static void
put(struct urn_log *log, const struct urn_log_entry *e)
{
	pthread_mutex_lock(&log->lock);
	if (!urn_log_limit_pass(&log->limit, e->event, e->has_who ? &e->who : NULL,
				urn_clock_ns())) {
		atomic_fetch_add_explicit(&log->more, 1, memory_order_relaxed);
	} else if (log->n == URN_LOG_QUEUE) {
		atomic_fetch_add_explicit(&log->lost, 1, memory_order_relaxed);
	} else {
		log->queue[(log->first + log->n++) % URN_LOG_QUEUE] = *e;
		pthread_cond_signal(&log->some);
	}
	pthread_mutex_unlock(&log->lock);
}

void
urn_log_say(struct urn_log *log, enum urn_log_event event, const struct urn_log_who *who,
	    const char *fmt, ...)
{
	struct urn_log_entry e;
	va_list ap;

	if (!log || !urn_log_shows(log, event))
		return;
	e.event = event;
	e.has_who = who != NULL;
	if (who)
		e.who = *who;
	else
		memset(&e.who, 0, sizeof(e.who));
	(void)clock_gettime(CLOCK_REALTIME, &e.at);
	va_start(ap, fmt);
	vsnprintf(e.text, sizeof(e.text), fmt, ap);
	va_end(ap);
	put(log, &e);
}

bool
urn_log_next(struct urn_log *log, struct urn_log_entry *e)
{
	bool some;

	pthread_mutex_lock(&log->lock);
	some = log->n > 0;
	if (some) {
		*e = log->queue[log->first];
		log->first = (log->first + 1) % URN_LOG_QUEUE;
		log->n--;
	}
	pthread_mutex_unlock(&log->lock);
	return some;
}

void
urn_log_counts(const struct urn_log *log, struct urn_log_counts *out)
{
	out->lines = atomic_load_explicit(&log->lines, memory_order_relaxed);
	out->more = atomic_load_explicit(&log->more, memory_order_relaxed);
	out->lost = atomic_load_explicit(&log->lost, memory_order_relaxed);
}
