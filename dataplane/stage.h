/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Time of a thread by stage of its loop, in cycles of the TSC. Made for scripts/bench.sh, which
 * builds a second urnic-perf with -Dstages=true; in any other build the macros do nothing.
 *
 *   URN_STAGE(X)        stage X begins here
 *   URN_STAGE_IN(X)     the same, inside another stage ...
 *   URN_STAGE_OUT()     ... which goes on here. One level.
 *   URN_STAGE_TURN(w)   a turn of the thread's loop ends; w: it found something to do
 *
 * A switch reads the TSC, so switches stand where a burst goes from stage to stage and nowhere
 * else: not per packet. The cost of the reads is measured at the end and subtracted
 * (urn_stages_finish()).
 *
 *   | PROGRAM LIBRARY | ENGINE DOORBELL REQUEST MEMORY EMIT PORT_TX PORT_RX PARSE RESPOND ...
 *
 * Rejected: a pair of reads around each ICRC. A clock read for each packet costs as much as the
 * ICRC of a short packet; the bench runs with and without the ICRC instead.
 */
#ifndef URN_STAGE_H
#define URN_STAGE_H

#include <stdbool.h>
#include <stdint.h>

/* X(index, "name", "what is done in it") */
#define URN_STAGES(X)                                                                  \
	X(PROGRAM, "program", "the program's own: fill, stamp, compare")               \
	X(LIBRARY, "library", "post and poll")                                         \
	X(ENGINE, "engine", "the loop: calls, timers, neighbours, events")             \
	X(DOORBELL, "doorbell", "which QPs were rung")                                 \
	X(REQUEST, "request", "fetch, check, segment, headers, key check; responses")  \
	X(MEMORY, "memory", "memory operations: the copies")                           \
	X(EMIT, "emit", "finish frames to send: ICRC")                                 \
	X(PORT_TX, "port_tx", "burst to the port")                                     \
	X(PORT_RX, "port_rx", "burst from the port")                                   \
	X(PARSE, "parse", "parse, find the QP")                                        \
	X(RESPOND, "respond", "ICRC check, order, rights; acknowledgements received")  \
	X(COMPLETE, "complete", "finish received packets: completions, acknowledgements") \
	X(IDLE, "idle", "turns that found nothing to do")

enum urn_stage {
#define X(index, name, what) URN_STAGE_##index,
	URN_STAGES(X)
#undef X
	URN_STAGE_COUNT
};

/* Stages of one thread, which alone writes them. */
struct urn_stages {
	uint64_t cycles[URN_STAGE_COUNT]; /* TSC cycles, in turns that are over */
	uint64_t reads[URN_STAGE_COUNT];  /* times that the stage ended, each with a TSC read */
	uint64_t turn_cycles[URN_STAGE_COUNT], turn_reads[URN_STAGE_COUNT]; /* the same, in this turn */
	uint64_t last;                    /* TSC of the last switch; 0: none yet */
	enum urn_stage now, outer;        /* outer: stage that URN_STAGE_OUT() returns to */
};

/* Name of a stage in JSON. s: below URN_STAGE_COUNT */
static inline const char *
urn_stage_name(unsigned int s)
{
	static const char *const names[URN_STAGE_COUNT] = {
#define X(index, name, what) name,
		URN_STAGES(X)
#undef X
	};

	return names[s];
}

/* End a turn: the cycles of a turn that found nothing count as idle, whatever stages it had. */
static inline void
urn_stages_turn(struct urn_stages *st, bool worked)
{
	for (unsigned int i = 0; i < URN_STAGE_COUNT; i++) {
		unsigned int to = worked ? i : URN_STAGE_IDLE;

		st->cycles[to] += st->turn_cycles[i];
		st->reads[to] += st->turn_reads[i];
		st->turn_cycles[i] = st->turn_reads[i] = 0;
	}
}

/* Switch at TSC `tsc`. */
static inline void
urn_stages_switch(struct urn_stages *st, enum urn_stage to, uint64_t tsc)
{
	if (st->last != 0) {
		st->turn_cycles[st->now] += tsc - st->last;
		st->turn_reads[st->now]++;
	}
	st->last = tsc;
	st->now = to;
}

/* Subtract the cost of the reads: `cost` cycles a read. The result is never negative. */
static inline void
urn_stages_finish(struct urn_stages *st, double cost)
{
	for (unsigned int i = 0; i < URN_STAGE_COUNT; i++) {
		double own = (double)st->cycles[i] - (double)st->reads[i] * cost;

		st->cycles[i] = own > 0 ? (uint64_t)own : 0;
	}
}

#ifdef URN_STAGES_ON

#include <rte_cycles.h>

/* The calling thread's stages. */
extern __thread struct urn_stages urn_stages_self;

static inline void
urn_stages_in(enum urn_stage to)
{
	urn_stages_self.outer = urn_stages_self.now;
	urn_stages_switch(&urn_stages_self, to, rte_rdtsc());
}

#define URN_STAGE(to) urn_stages_switch(&urn_stages_self, URN_STAGE_##to, rte_rdtsc())
#define URN_STAGE_IN(to) urn_stages_in(URN_STAGE_##to)
#define URN_STAGE_OUT() urn_stages_switch(&urn_stages_self, urn_stages_self.outer, rte_rdtsc())
#define URN_STAGE_TURN(worked) urn_stages_turn(&urn_stages_self, worked)

#else

/* No code, but a stage that does not exist is an error here, too. */
#define URN_STAGE(to) ((void)URN_STAGE_##to)
#define URN_STAGE_IN(to) ((void)URN_STAGE_##to)
#define URN_STAGE_OUT() ((void)0)
#define URN_STAGE_TURN(worked) ((void)0)

#endif

/*
 * Get the calling thread's stages so far, reads subtracted. returns: false, with all zero, in a
 * build without stages
 */
bool urn_stages_get(struct urn_stages *out);

#endif
