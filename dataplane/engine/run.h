/* SPDX-License-Identifier: BSD-3-Clause */
/* A program runs an engine from a loop of its own, or by urn_engine_run(). */
#ifndef URN_ENGINE_RUN_H
#define URN_ENGINE_RUN_H

#include <stdbool.h>
#include <stdint.h>

struct urn_engine;

enum urn_idle {
	URN_IDLE_SPIN,  /* poll on */
	URN_IDLE_PAUSE, /* yield every fourth empty poll, and pause after `empty_polls` empty polls */
	URN_IDLE_SLEEP, /* the same, but sleep `sleep_us` at a time after `empty_polls` empty polls */
};

struct urn_engine_config {
	enum urn_idle idle;
	uint32_t empty_polls; /* empty polls in a row; 0: 1024 */
	uint32_t sleep_us;    /* microseconds; 0: 100; at most 1000 */
	const uint64_t *clock; /* ns, from 1 on, of a caller that simulates time; NULL: the TSC counts */
};

/*
 * One turn of an engine: receive, doorbells, timers, transmit. A program that
 * embeds the dataplane calls this from its own lcore or thread; one thread at
 * a time. returns: packets and requests handled; 0 when idle
 */
unsigned int urn_engine_poll(struct urn_engine *e);

struct urn_engine_usage {
	uint64_t turns;	  /* turns since the engine was made */
	uint64_t busy_ns; /* time of turns that found something to do */
	uint64_t ns;	  /* ns that the engine's time has reached */
};

/* Load of an engine: call twice, and divide the differences. Any thread. */
void urn_engine_usage(const struct urn_engine *e, struct urn_engine_usage *out);
/*
 * The caller says that it polls this engine from now on. Control calls of other threads are handed
 * to that thread, and wait for its next poll; control calls of the polling thread itself run at
 * once. Before the first bind, and after an unbind, control calls run in the thread that makes
 * them.
 */
void urn_engine_bind(struct urn_engine *e);
void urn_engine_unbind(struct urn_engine *e);
/*
 * For a program with a loop of its own: after `empty` polls in a row that found nothing, pause,
 * yield or sleep as configured for the engine.
 */
void urn_engine_idle(struct urn_engine *e, unsigned int empty);
/* Bind, poll with the configured idle policy until *stop, unbind. */
void urn_engine_run(struct urn_engine *e, const volatile bool *stop);

#endif
