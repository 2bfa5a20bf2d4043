/* SPDX-License-Identifier: BSD-3-Clause */
/* Victims: programs whose bytes and objects must be theirs, whatever others do. */
#ifndef TEST_HOSTILE_VICTIM_H
#define TEST_HOSTILE_VICTIM_H

#include "foe.h"

/* Bounds of a run; the first that is reached ends it. */
struct victim_wish {
	uint64_t writes; /* operations; 0: no bound */
	double seconds;	 /* 0: no bound */
};

/* Times of a run, in ns. */
struct victim_times {
	uint64_t began, ended;	      /* times of CLOCK_MONOTONIC */
	uint64_t n;		      /* operations */
	uint64_t worst;		      /* the longest operation */
	uint64_t over_aim, over_must; /* operations longer than 2 ms, and than 10 ms */
};

uint64_t victim_now(void);
void victim_begin(struct victim_times *t);
/* Count an operation that began at `from`. returns: true when the run goes on */
bool victim_count(struct victim_times *t, const struct victim_wish *w, uint64_t from);
/* Print a run as an object of JSON. */
void victim_print(const struct victim_times *t, const char *kind);

/* WRITEs from node a to node b, one at a time, each checked. */
void victim_writes(const struct foe *f, const struct victim_wish *w);
/* Messages between register sets, and writes of an endpoint to remote memory, likewise. */
void victim_messages(const struct foe *f, const struct victim_wish *w);
/* Attach, and make objects of each kind, all at a time. */
void victim_limits(const struct foe *f);

#endif
