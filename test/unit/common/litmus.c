/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/litmus.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_pause.h>

enum {
	SLOW_LINES = 40,     /* cache lines that each side stores to first, last held by the other */
	JITTER = 512,	     /* cycles: the longest delay of one side's beginning behind the other's */
	AHEAD = 600,	     /* cycles between the announcement of a round and its beginning */
	SPINS = 200000,      /* looks, until the thread yields its core. Many: rounds count while both sides have one */
	TIME_S = 1,
};

struct line {
	_Atomic uint64_t word;
	uint8_t pad[120];
};

static struct {
	struct line go;	  /* the next round; UINT64_MAX: no more */
	struct line at;	  /* TSC at which it begins */
	struct line done; /* rounds that the second side has ended */
	struct line slow[2][SLOW_LINES];
} shared __attribute__((aligned(128)));

static uint64_t round_now; /* the first side's */

static uint64_t
next(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

static void
wait_at_least(_Atomic uint64_t *word, uint64_t value)
{
	for (unsigned int i = 0; atomic_load_explicit(word, memory_order_acquire) < value; i++) {
		rte_pause();
		if (i >= SPINS)
			sched_yield();
	}
}

/* Own the lines that the other side is about to store to, so that each of its stores takes long. */
static void
take_lines(unsigned int side)
{
	for (unsigned int i = 0; i < SLOW_LINES; i++)
		atomic_fetch_add_explicit(&shared.slow[side ^ 1][i].word, 1, memory_order_relaxed);
}

/*
 * Wait for the moment, then fill the store buffer, more or less: the other side sees a later
 * store of the test late, unless a fence waits for the buffer. A fast side and a slow one come
 * together in one round of four.
 */
static void
begin(unsigned int side, uint64_t at, uint64_t chance)
{
	unsigned int lines = chance & 1 ? SLOW_LINES : 0;
	uint64_t later = (chance >> 8) % JITTER;

	while ((int64_t)(rte_rdtsc() - (at + later)) < 0)
		;
	for (unsigned int i = 0; i < lines; i++)
		atomic_store_explicit(&shared.slow[side][i].word, later, memory_order_relaxed);
}

static void *
second_side(void *arg)
{
	const struct litmus *l = arg;
	uint64_t chance = 0x9e3779b97f4a7c15;

	for (uint64_t n = 1;; n++) {
		take_lines(1);
		wait_at_least(&shared.go.word, n);
		if (atomic_load(&shared.go.word) == UINT64_MAX)
			return NULL;
		begin(1, atomic_load(&shared.at.word), next(&chance));
		l->second(l->arg);
		atomic_store_explicit(&shared.done.word, n, memory_order_release);
	}
}

bool
litmus_second_done(void)
{
	return atomic_load_explicit(&shared.done.word, memory_order_acquire) >= round_now;
}

static double
seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

uint32_t
litmus_run(const struct litmus *l)
{
	uint64_t chance = 0x2545f4914f6cdd1d;
	double until = seconds() + TIME_S;
	pthread_t other;
	uint32_t bad = 0;

	atomic_store(&shared.go.word, 0);
	atomic_store(&shared.done.word, 0);
	if (pthread_create(&other, NULL, second_side, (void *)(uintptr_t)l) != 0)
		abort();
	for (round_now = 1; !bad && round_now <= l->rounds; round_now++) {
		if (round_now % 16 == 0 && seconds() > until)
			break;
		l->ready(l->arg);
		take_lines(0);
		atomic_store(&shared.at.word, rte_rdtsc() + AHEAD);
		atomic_store_explicit(&shared.go.word, round_now, memory_order_release);
		begin(0, atomic_load(&shared.at.word), next(&chance));
		l->first(l->arg);
		wait_at_least(&shared.done.word, round_now);
		bad += l->bad(l->arg);
	}
	atomic_store(&shared.go.word, UINT64_MAX);
	pthread_join(other, NULL);
	printf("%llu rounds, %u of them with an outcome that is forbidden\n",
	       (unsigned long long)round_now - 1, bad);
	return bad;
}
