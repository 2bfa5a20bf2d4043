/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queues of one port of a switch: frames that can't go out yet wait here, by priority.
 * Priority 7 goes first, 0 last; frames of one priority stay in order. A priority has bounds in
 * frames and bytes, a threshold for congestion marks, and watermarks at which flow control may
 * ask senders to stop; a paused priority keeps its frames while the others go on.
 *
 * One thread at a time; no clock, no device.
 */
#ifndef URN_SWITCH_QUEUE_H
#define URN_SWITCH_QUEUE_H

#include "counter_scope.h"

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#define URN_SWQ_PRIORITIES 8u

/* The decision about a frame. The caller keeps a frame that was dropped, and counts its reason. */
enum urn_swq_verdict {
	URN_SWQ_QUEUED,
	URN_SWQ_MARK,	     /* queued, above the threshold: the caller marks the frame */
	URN_SWQ_DROP_FRAMES, /* the bound in frames is reached */
	URN_SWQ_DROP_BYTES,  /* the bytes that wait leave no room for the frame */
	URN_SWQ_DROP_MEMORY, /* the queue could not grow */
	URN_SWQ_VERDICTS,
};

/*
 * Counters of one priority: X(index, "name", "description"). The first are those of verdicts, in
 * the order of enum urn_swq_verdict.
 */
#define URN_SWQ_COUNTERS(X)                                                              \
	X(WAITED, "waited", "frames that had to wait, without those of `marked`")        \
	X(MARKED, "marked",                                                              \
	  "frames that had to wait, and found more bytes than the "                      \
	  "threshold for congestion marks")                                              \
	X(DROP_FRAMES, "drop_frames", "frames dropped because as many waited as may")    \
	X(DROP_BYTES, "drop_bytes",                                                      \
	  "frames dropped because the bytes that wait left them "                        \
	  "no room")                                                                     \
	X(DROP_MEMORY, "drop_memory", "frames dropped because the queue could not grow") \
	X(CROWDS, "crowds", "times the bytes that wait reached the high watermark")      \
	X(PAUSES, "pauses", "times the priority was paused")                             \
	X(XOFFS, "xoffs",                                                                \
	  "times the account of frames that came in here was full: "                     \
	  "their sender was to stop")                                                    \
	X(HOLDS, "holds", "times the account gave no credit any more, either")           \
	X(PAUSE_TX, "pause_tx", "pauses sent by flow control")                           \
	X(RESUME_TX, "resume_tx", "ends of pauses sent by flow control")                 \
	X(PAUSE_RX, "pause_rx", "pauses received by flow control")                       \
	X(RESUME_RX, "resume_rx", "ends of pauses received by flow control")             \
	X(PAUSE_IGNORED, "pause_ignored",                                                \
	  "pauses received and ignored: the priority is not "                            \
	  "lossless, the port carries no flow control, or the "                          \
	  "watchdog has ended a pause")                                                  \
	X(DROP_HEADROOM, "drop_headroom",                                                \
	  "frames dropped because their input's account had no "                         \
	  "room above its limit, either")                                                \
	X(WATCHDOG, "watchdogs",                                                         \
	  "times the watchdog ended a stop of the priority that "                        \
	  "lasted too long")                                                             \
	X(DROP_WATCHDOG, "drop_watchdog", "frames dropped by the watchdog")

enum urn_swq_counter {
#define X(id, name, text) URN_SWQ_C_##id,
	URN_SWQ_COUNTERS(X)
#undef X
		URN_SWQ_COUNTER_COUNT,
};
_Static_assert((int)URN_SWQ_C_WAITED == (int)URN_SWQ_QUEUED &&
		       (int)URN_SWQ_C_DROP_MEMORY == (int)URN_SWQ_DROP_MEMORY &&
		       (int)URN_SWQ_C_CROWDS == (int)URN_SWQ_VERDICTS,
	       "a verdict is the index of its counter");

struct urn_swq_counters {
	uint64_t v[URN_SWQ_COUNTER_COUNT];
};

/* The scope "switch_queue": these counters. */
extern const struct urn_counter_scope urn_swq_scope;
/* Name of a counter; NULL past the end. */
const char *urn_swq_counter_name(unsigned int id);

/* Bounds of one priority; 0: no such bound, threshold or watermark. */
struct urn_swq_bound {
	uint32_t frames; /* frames that may wait */
	uint64_t bytes;	 /* bytes of frames, without FCS, that may wait */
	uint64_t mark;	 /* bytes, the new frame's included, above which it is marked */
	uint64_t high;	 /* bytes from which the priority is crowded */
	uint64_t low;	 /* bytes at or below which it is crowded no more; below `high` */
};

/* A frame that waits. */
struct urn_swq_entry {
	struct rte_mbuf *m; /* the queue's, in memory of our own */
	uint64_t since;	    /* ns: time at which the frame came */
};

/* One priority. */
struct urn_swq_level {
	struct urn_swq_entry *ring; /* the queue's; NULL until the first frame */
	uint32_t size;		    /* entries of the ring: 0 or a power of two */
	uint32_t head, tail;	    /* entries taken, put; free running */
	uint64_t bytes;		    /* bytes that wait */
	uint64_t peak;		    /* most bytes that have waited at a time */
	struct urn_swq_bound bound; /* the configuration's */
	struct urn_swq_counters c;  /* since urn_swq_init() */
};

struct urn_swq {
	uint32_t frames; /* frames that wait, all priorities */
	/*
	 * The caller's, who may change the number before any frame: frames that may wait in a
	 * priority whose own bound in frames is 0; 0: any number.
	 */
	uint32_t room;
	uint8_t waiting; /* bit p: frames of priority p wait */
	uint8_t paused;	 /* bit p: priority p must not go out */
	uint8_t crowded; /* bit p: between reaching the high watermark and falling to the low one */
	struct urn_swq_level level[URN_SWQ_PRIORITIES];
};

/* Make empty queues in *q, without pauses. bound: URN_SWQ_PRIORITIES of them, or NULL: none has a
 * bound */
void urn_swq_init(struct urn_swq *q, const struct urn_swq_bound *bound);
/* Free the frames that wait, and the queue's memory. */
void urn_swq_finish(struct urn_swq *q);
/*
 * Put a frame, which came at `since` (ns), into the queue of a priority (below
 * URN_SWQ_PRIORITIES). returns: the verdict; the frame is the queue's if it is
 * URN_SWQ_QUEUED or URN_SWQ_MARK
 */
enum urn_swq_verdict urn_swq_put(struct urn_swq *q, unsigned int priority, struct rte_mbuf *m,
				 uint64_t since);
/* Count a frame of a priority that a bound in frames of the caller's keeps out of the queue. */
void urn_swq_refuse(struct urn_swq *q, unsigned int priority);
/*
 * Take the first frame of the highest priority that is not paused, the caller's from here on.
 * *since: ns, the time at which it came. returns: NULL: none may go
 */
struct rte_mbuf *urn_swq_take(struct urn_swq *q, uint64_t *since);
/* Take the first frame of a priority (below URN_SWQ_PRIORITIES), paused or not; like
 * urn_swq_take(). */
struct rte_mbuf *urn_swq_take_of(struct urn_swq *q, unsigned int priority, uint64_t *since);
/* The priority whose frame urn_swq_take() takes. A frame is ready. */
static inline unsigned int
urn_swq_first(const struct urn_swq *q)
{
	return 31u - (unsigned int)__builtin_clz(q->waiting & ~(unsigned int)q->paused);
}
/* Pause a priority (below URN_SWQ_PRIORITIES), or let it go on. */
void urn_swq_pause(struct urn_swq *q, unsigned int priority, bool pause);

/* True when nothing was counted for the priority (below URN_SWQ_PRIORITIES). */
static inline bool
urn_swq_unused(const struct urn_swq *q, unsigned int priority)
{
	uint64_t any = 0;

	for (unsigned int i = 0; i < URN_SWQ_COUNTER_COUNT; i++)
		any |= q->level[priority].c.v[i];
	return any == 0;
}

/* True when a frame waits that may go out. */
static inline bool
urn_swq_ready(const struct urn_swq *q)
{
	return (q->waiting & ~q->paused) != 0;
}

#endif
