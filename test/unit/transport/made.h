/* SPDX-License-Identifier: BSD-3-Clause */
/* Made-up clients of the schedule, for tests of its fairness. */
#ifndef URN_TEST_MADE_H
#define URN_TEST_MADE_H

#include "transport/sched.h"

enum {
	SOURCES = 64,		 /* sources of a client */
	LONG = 32 * (4096 + 60), /* bytes of the longest turn of a queue pair */
	SHORT = 16 * (64 + 28),	 /* bytes of a turn with short frames */
};

/* A made-up client, and what it got. */
struct made {
	struct urn_tp_share share; /* first */
	struct urn_source source[SOURCES];
	uint32_t turns;
	uint32_t stops; /* turns in which its priority was stopped */
	uint64_t bytes;
	uint32_t long_turn; /* bytes of its turns */
};

/* Headers of frames of a priority that is stopped. */
static const struct urn_tmpl made_tmpl = {.len = 42, .bytes = {[12] = 0x08, [14] = 0x45}};

/* A source had its turn, and has more to do. returns: its client */
static inline struct made *
made_served(struct urn_sched *s, struct urn_source *src)
{
	struct made *m = (struct made *)src->share;

	urn_sched_add(s, src);
	urn_sched_charge(src->share, m->long_turn);
	m->turns++;
	m->bytes += m->long_turn;
	return m;
}

#endif
