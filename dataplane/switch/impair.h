/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The effects of one direction of a bad wire on frames: a state machine without
 * device or clock. Frames go in with the time, and come out when they are due:
 *
 *           blackhole  drop  duplicate  corrupt     rate, delay, jitter    reorder
 *   push ─►   flap   ─────────────────────────► [ FIFO, by due time ] ─► [ held ] ─► pop
 *
 * A frame that a NIC would drop on a real wire does not come out here: a frame with a
 * flipped bit that is neither IPv4 nor IPv6 (ARP, for example) is dropped. Only Ethernet's
 * checksum protects such a frame, and it is not carried here. Users of IP have checksums of their
 * own.
 *
 * Random decisions come from the seed and the number of a stream alone. The n-th frame's fate under
 * each impairment is a function of these, n and the impairment's name, so
 * switching one impairment off changes nothing of the others' effects on the same frames.
 * Frames come out in the same order and for the same reasons, no matter how often
 * pop is called, and only `reorder` changes their order.
 *
 * One thread at a time. Time is in ns, from any origin, and never runs back.
 */
#ifndef URN_SWITCH_IMPAIR_H
#define URN_SWITCH_IMPAIR_H

#include "counter_scope.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_mbuf.h>

#define URN_IMPAIR_MAX_PASS 32u	       /* largest reorder_max */
#define URN_IMPAIR_MAX_NS 60000000000u /* longest delay, jitter, reorder_ns, 60 s */
#define URN_IMPAIR_MIN_BPS 1000u
#define URN_IMPAIR_MAX_BPS 1000000000000u
#define URN_IMPAIR_MAX_QUEUE 1048576u
/* Bytes that Ethernet adds to a frame: preamble, FCS, gap; and the shortest frame without FCS. */
#define URN_IMPAIR_WIRE_EXTRA 24u
#define URN_IMPAIR_WIRE_MIN 60u

/* All zero: no impairment. */
struct urn_impair_config {
	uint64_t seed;
	double drop, dup, corrupt,
		reorder; /* probabilities for each frame, 0..1, in steps of 2^-32 */
	/*
	 * A reordered frame is held until so many later frames have passed it,
	 * uniform from min to max (0, 0: 1 to 8), or until reorder_ns after it was
	 * due (0: 100 us), so that the last frame of a train is not stuck.
	 */
	uint32_t reorder_min, reorder_max;
	uint64_t reorder_ns;
	uint64_t delay_ns;
	uint64_t jitter_ns; /* added to the delay, uniform from 0; keeps the order */
	uint64_t rate_bps;  /* bits a second on the wire, preamble, FCS and gap included; 0: any */
	uint64_t flap_up_ns,
		flap_down_ns; /* ns up, then ns down, and so on, from the first push on */
	bool blackhole;	      /* nothing passes */
	uint32_t queue;	      /* frames inside at a time; 0: 4096 */
};

/* X(index, "name", "description") */
#define URN_IMPAIR_COUNTERS(X)                                                                 \
	X(PUSHED, "pushed", "frames that came")                                                \
	X(POPPED, "popped", "frames that went on")                                             \
	X(DROPPED, "drop_random", "frames dropped at random")                                  \
	X(BLACKHOLE, "drop_blackhole", "frames dropped because nothing passes")                \
	X(FLAP, "drop_flap", "frames dropped while the link was down")                         \
	X(FCS, "drop_fcs", "frames with a flipped bit that only Ethernet's checksum protects") \
	X(QUEUE, "drop_queue", "frames dropped because the queue was full")                    \
	X(NO_MBUF, "drop_no_mbuf", "frames lost because there was no packet for a copy")       \
	X(DUPLICATED, "duplicated", "copies added")                                            \
	X(DUP_NO_MBUF, "dup_no_mbuf", "copies not added because there was no packet")          \
	X(CORRUPTED, "corrupted", "frames with a flipped bit")                                 \
	X(REORDERED, "reordered", "frames held back to let others pass")                       \
	X(REORDER_LATE, "reorder_timeout", "of these, released by time, not by frames")        \
	X(DELAYED, "delayed", "frames that had to wait, by rate, delay or jitter")             \
	X(COPIED, "copied", "frames of foreign memory copied before they were kept or changed")

enum urn_impair_counter {
#define X(id, name, text) URN_IMPAIR_##id,
	URN_IMPAIR_COUNTERS(X)
#undef X
		URN_IMPAIR_COUNTER_COUNT,
};

struct urn_impair_counters {
	uint64_t v[URN_IMPAIR_COUNTER_COUNT];
};

/* The scope "switch_impair": these counters. */
extern const struct urn_counter_scope urn_impair_scope;
/* Name of a counter; NULL past the end. */
const char *urn_impair_counter_name(unsigned int id);

struct urn_impair;

/*
 * Check a configuration. returns: 0, or -EINVAL with a sentence in
 * why (len bytes, NUL included; why may be NULL)
 */
int urn_impair_check(const struct urn_impair_config *cfg, char *why, size_t len);

/*
 * stream: impairments of one seed and different streams decide independently of each other.
 * copies: pool that duplicates and private copies come from; the caller's,
 * used from the thread that pushes. NULL: no copies can be made; a frame that would need one
 * counts as drop_no_mbuf or dup_no_mbuf. returns: NULL when the configuration is bad or when out of
 * memory
 */
struct urn_impair *urn_impair_create(const struct urn_impair_config *cfg, uint64_t stream,
				     struct rte_mempool *copies);
/* Frees the frames that are inside. NULL is allowed. */
void urn_impair_destroy(struct urn_impair *imp);

/*
 * Change the configuration. Frames that are inside keep their times. With the same seed
 * the random sequence goes on, with another seed it starts anew; the
 * flap begins again, up. returns: 0, -EINVAL or -ENOMEM (then nothing changed)
 */
int urn_impair_set(struct urn_impair *imp, const struct urn_impair_config *cfg);
const struct urn_impair_config *urn_impair_config(const struct urn_impair *imp);

/*
 * Take n frames, chains too, which belong to the impairment from here on. A caller that
 * pops with the same `now` before the memory behind a frame changes may push
 * frames in others' memory (refcnt above 1, indirect or external buffers):
 * frames that are kept longer, or changed, are copied first.
 */
void urn_impair_push(struct urn_impair *imp, struct rte_mbuf **m, unsigned int n, uint64_t now);
/* Take out the frames that are due, at most max, in order. returns: how many */
unsigned int urn_impair_pop(struct urn_impair *imp, struct rte_mbuf **m, unsigned int max,
			    uint64_t now);
/*
 * The caller can't pop for now, for example because a port takes no more: frames in others'
 * memory that are inside or come from here on are copied even without delay.
 */
void urn_impair_keep(struct urn_impair *imp, bool keep);
/*
 * Time at which the next frame may be due, without further pushes; UINT64_MAX: none is
 * inside. (At that time pop can find that the frame must be held longer.)
 */
uint64_t urn_impair_next(const struct urn_impair *imp);

/*
 * Make a frame fit to wait for this impairment. returns: the frame, or its copy if it was in
 * others' memory; NULL: no copy; the frame was counted as one that came and was lost, and freed
 */
struct rte_mbuf *urn_impair_own(struct urn_impair *imp, struct rte_mbuf *m);
/* Drop a frame for which the queue in front of this impairment has no room; counted as drop_queue.
 */
void urn_impair_refuse(struct urn_impair *imp, struct rte_mbuf *m);
/* True when the wire has a rate: frames that it can't send yet belong into a queue in front of it. */
bool urn_impair_paced(const struct urn_impair *imp);
/* Time at which the wire has sent what it was given, ns; 0: the wire has no rate. */
uint64_t urn_impair_wire_free(const struct urn_impair *imp);

/* Frames inside. */
unsigned int urn_impair_queued(const struct urn_impair *imp);
/*
 * True when a frame pushed now would just pass (nothing configured, nothing inside):
 * then a caller may leave push and pop out.
 */
bool urn_impair_clear(const struct urn_impair *imp);
/* The counters. pushed + duplicated = popped + urn_impair_queued() + all that begin with drop_. */
const struct urn_impair_counters *urn_impair_counters(const struct urn_impair *imp);

#endif
