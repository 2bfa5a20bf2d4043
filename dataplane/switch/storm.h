/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pauses of a peer that are a storm, though each of them ends in time. The peer has a debt: the
 * time for which its pauses held frames, less URN_STORM_PART times the time for which it took some,
 * and never less than 0. A debt of URN_STORM_WATCHDOGS times the watchdog's time is a storm.
 *
 * After a storm, pauses are ignored until none has come for the restoring time. That time is twice
 * as long after each storm that comes before the last one is forgotten, so that a peer that begins
 * anew each time stops its senders for a small part of the time only.
 *
 * The owner has one state for each priority of a port, and knows which pauses hold frames. All
 * times are ns of the owner's clock. Each function costs O(1).
 */
#ifndef URN_SWITCH_STORM_H
#define URN_SWITCH_STORM_H

#include <stdint.h>

#include <rte_common.h>

enum {
	/* Watchdog times of pauses until a peer that takes few frames is stuck. */
	URN_STORM_WATCHDOGS = 4,
	/* A peer that takes this part of what its wire carries is slow only. */
	URN_STORM_PART = 1024,
	/* Times that restoring gets longer; a storm is forgotten 1 << so many of its times later.
	 */
	URN_STORM_DOUBLES = 6,
};

/* A priority of a port. Owner: the switch or the adapter's shard that obeys pauses. */
struct urn_storm {
	uint64_t stop_at; /* ns: when the pause began to hold frames; valid while one does */
	uint64_t debt;	  /* ns; without the present pause */
	uint64_t restore; /* ns: until when pauses are ignored; valid from urn_storm_begin() to
			     urn_storm_end() */
	uint64_t calm;	  /* ns: when storms so far are forgotten; 0: there was none; not valid from
			     urn_storm_begin() to urn_storm_end() */
	uint8_t storms; /* storms that came before others were forgotten, at most URN_STORM_DOUBLES
			 */
};

/* ns: when the present pause is a storm, if it goes on. watchdog: ns */
static inline uint64_t
urn_storm_at(const struct urn_storm *s, uint64_t watchdog)
{
	uint64_t most = URN_STORM_WATCHDOGS * watchdog;

	return s->stop_at + most - RTE_MIN(s->debt, most);
}

/* A pause, which held frames, ended at `end`, ns. */
static inline void
urn_storm_held(struct urn_storm *s, uint64_t end)
{
	if (end > s->stop_at)
		s->debt += end - s->stop_at;
}

/* The peer took frames for `took`, ns. */
static inline void
urn_storm_took(struct urn_storm *s, uint64_t took)
{
	/* Nothing overflows: a longer time pays any debt. */
	took = RTE_MIN(took, UINT64_MAX / URN_STORM_PART) * URN_STORM_PART;
	s->debt -= RTE_MIN(s->debt, took);
}

/* Pauses are ignored from `now` on. restore: ns that the first restoring lasts */
static inline void
urn_storm_begin(struct urn_storm *s, uint64_t restore, uint64_t now)
{
	s->storms = now < s->calm ? (uint8_t)RTE_MIN(s->storms + 1, URN_STORM_DOUBLES) : 0;
	s->restore = now + (restore << s->storms);
	s->debt = 0;
}

/* A pause came at `now` and was ignored. */
static inline void
urn_storm_go_on(struct urn_storm *s, uint64_t restore, uint64_t now)
{
	s->restore = RTE_MAX(s->restore, now + restore);
}

/* Pauses are obeyed again from `now` on. */
static inline void
urn_storm_end(struct urn_storm *s, uint64_t restore, uint64_t now)
{
	s->calm = now + (restore << (s->storms + URN_STORM_DOUBLES));
}

#endif
