/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A meter decides when measuring begins and ends, and counts: a warm-up that does
 * not count, then a number of messages or a time. Owner: one thread; a meter reads
 * no clock itself.
 */
#ifndef URN_PERF_METER_H
#define URN_PERF_METER_H

#include "common/hist.h"

#include <stdbool.h>

/*
 * Time for which a thread was run, as far as it can tell from the clock: between two looks
 * at most METER_GAP_NS counts, for during the rest the thread waited for its core, or the
 * machine stood still. Owner: the thread; cycles may be read by others.
 */
struct meter_ran {
	uint64_t at;     /* TSC of the last look; 0: none yet */
	uint64_t cycles; /* cycles that the thread was run until then */
	uint64_t most;   /* cycles of a gap that count at most */
};

#define METER_GAP_NS 10000000ull

enum meter_phase { METER_WARM, METER_RUN, METER_OVER };

struct meter {
	enum meter_phase phase; /* may be read by others */
	uint64_t started;     /* TSC of the first tick; 0: none yet */
	uint64_t begin, end;  /* TSC where measuring began and ended */
	uint64_t warm_cycles; /* warm-up by time; 0: by messages */
	uint64_t run_cycles;  /* measured time; 0: by messages */
	uint64_t total;       /* messages to be moved in all; UINT64_MAX: by time */
	uint64_t mark;        /* value of done where the phase changes; UINT64_MAX: by time */
	uint64_t posted;      /* messages posted, warm-up included */
	uint64_t done;        /* messages completed, warm-up included */
	uint64_t base;        /* value of done where measuring began */
	uint64_t measured;    /* messages completed while measuring */
	uint64_t moved_at;    /* ran.cycles at the last tick at which done had grown */
	uint64_t seen;	      /* done at that tick; may be read by others */
	double ns_per_cycle;
	struct meter_ran ran; /* running time of the thread that counts, from tick to tick */
	struct urn_hist hist; /* latencies while measuring, ns */
};

/*
 * iters: messages to measure, or 0 for duration_ns. warm_iters: messages of
 * the warm-up when iters is given. tsc_hz: cycles a second.
 */
void meter_init(struct meter *m, uint64_t iters, uint64_t warm_iters, uint64_t duration_ns,
		uint64_t tsc_hz);

/* Count n messages that reach the mark or exceed it. */
void meter_cross(struct meter *m, uint64_t n, uint64_t now);
/* Call once a loop; now: TSC. Begins and ends phases that go by time. */
void meter_tick(struct meter *m, uint64_t now);
/* End measuring here, as when a person interrupts it. */
void meter_cut(struct meter *m, uint64_t now);

/* Number of n wanted messages that may be posted; 0 once measuring is over. */
static inline uint64_t
meter_allow(const struct meter *m, uint64_t n)
{
	if (m->phase == METER_OVER)
		return 0;
	return m->total - m->posted < n ? m->total - m->posted : n;
}

/* n messages completed, at TSC now. */
static inline void
meter_count(struct meter *m, uint64_t n, uint64_t now)
{
	if (m->mark - m->done <= n)
		meter_cross(m, n, now);
	else
		m->done += n;
}

/* Add the latency of a message, in cycles. */
static inline void
meter_latency(struct meter *m, uint64_t cycles)
{
	if (m->phase == METER_RUN)
		urn_hist_add(&m->hist, (uint64_t)((double)cycles * m->ns_per_cycle));
}

/* Note that the thread looked at the clock; now: TSC. A clock that goes back counts nothing. */
static inline void
meter_ran(struct meter_ran *r, uint64_t now)
{
	uint64_t gap = now - r->at;

	if (r->at != 0 && (int64_t)gap > 0)
		__atomic_store_n(&r->cycles, r->cycles + (gap < r->most ? gap : r->most),
				 __ATOMIC_RELAXED);
	r->at = now;
}

/* Cycles that the counting thread was run since the last message completed. */
static inline uint64_t
meter_stalled(const struct meter *m)
{
	return m->ran.cycles - m->moved_at;
}

/* Messages completed until the last tick, and the phase, for another thread. */
static inline enum meter_phase
meter_look(const struct meter *m, uint64_t *done)
{
	*done = __atomic_load_n(&m->seen, __ATOMIC_RELAXED);
	return __atomic_load_n(&m->phase, __ATOMIC_RELAXED);
}

/* Measured time in seconds; 0 when nothing was. */
double meter_seconds(const struct meter *m);

#endif
