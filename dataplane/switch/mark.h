/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Congestion marks for frames that wait in a queue of a switch (Zhu et al., "Congestion Control for
 * Large-Scale RDMA Deployments", SIGCOMM 2015, section 5.1, figure 5; RFC 3168):
 *
 *   probability
 *     1 ┤                ┌─────────
 *       │                │
 *  pmax ┤              ╱
 *       │          ╱
 *     0 ┼────┬─────────┬──────────► bytes that wait
 *          kmin      kmax
 *
 * A frame is marked when it leaves the queue, by the bytes that wait there at that time: the mark
 * of a frame that comes into the queue would reach its sender only after the whole queue, and that
 * delay makes rates swing (Zhu et al., "ECN or Delay", CoNEXT 2016).
 *
 * Only frames whose sender says that its transport obeys marks (ECT) can be marked; the others
 * stay as they are. Random decisions come from the seed alone: the n-th frame's fate is a function
 * of the seed, n, and the bytes that wait.
 *
 * One thread at a time; no clock, no device.
 */
#ifndef URN_SWITCH_MARK_H
#define URN_SWITCH_MARK_H

#include "counter_scope.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_mbuf.h>

#define URN_MARK_MAX_BYTES (1ull << 32) /* largest kmin, kmax */

/* The published thresholds, for a port of 40 Gbit/s (section 5.1, table 14). */
#define URN_MARK_KMIN 5000u
#define URN_MARK_KMAX 200000u
#define URN_MARK_PMAX 0.01

/* All zero: no marks. */
struct urn_mark_config {
	uint64_t kmin; /* bytes, the new frame's included, up to which no frame is marked */
	uint64_t kmax; /* bytes above which each frame is marked; 0: none ever is */
	double pmax;   /* probability of a mark at kmax, 0..1 */
	uint64_t seed; /* seed of the random decisions */
};

/* X(index, "name", "description") */
#define URN_MARK_COUNTERS(X)                                                                \
	X(MARKED, "ecn_marked", "frames that had to wait, and left with a congestion mark") \
	X(UNABLE, "ecn_unable",                                                             \
	  "frames that would have got a congestion mark, and whose sender obeys none")

enum urn_mark_counter {
#define X(id, name, text) URN_MARK_C_##id,
	URN_MARK_COUNTERS(X)
#undef X
		URN_MARK_COUNTER_COUNT,
};

struct urn_mark_counters {
	uint64_t v[URN_MARK_COUNTER_COUNT];
};

/* The scope "switch_mark": these counters. */
extern const struct urn_counter_scope urn_mark_scope;
/* Name of a counter; NULL past the end. */
const char *urn_mark_counter_name(unsigned int id);

/* Marks of one port. */
struct urn_mark {
	struct urn_mark_config cfg;
	uint64_t slope; /* probability a byte above kmin, units of 2^-48; valid with kmax above kmin
			 */
	uint64_t state; /* state of the random sequence */
	struct urn_mark_counters c; /* since urn_mark_init() */
};

/*
 * Check a configuration. returns: 0, or -EINVAL with a sentence in why (len bytes, NUL included;
 * why may be NULL)
 */
int urn_mark_check(const struct urn_mark_config *cfg, char *why, size_t len);
/*
 * Begin to mark, with a configuration that is right. cfg all zero: never; number: the port's, so
 * that ports with one configuration have random sequences of their own
 */
void urn_mark_init(struct urn_mark *k, const struct urn_mark_config *cfg, unsigned int number);
/*
 * Mark a frame, or not. m: a frame in memory of the switch's own, which leaves the queue; bytes:
 * the bytes that wait there, this frame included
 */
void urn_mark_waiting(struct urn_mark *k, struct rte_mbuf *m, uint64_t bytes);

/* The same, where most ports mark nothing. */
static inline void
urn_mark_frame(struct urn_mark *k, struct rte_mbuf *m, uint64_t bytes)
{
	if (k->cfg.kmax && bytes > k->cfg.kmin)
		urn_mark_waiting(k, m, bytes);
}

#endif
