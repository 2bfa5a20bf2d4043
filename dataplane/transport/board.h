/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A scoreboard: what of a stretch of PSNs has come, and what to do about the
 * rest. It is kept as the gaps in it, so that a stretch of any length - one
 * READ takes up to 2^23 PSNs - costs by what is missing of it only.
 *
 *     base          gap 0        gap 1              high
 *       │ came      [    ) came  [  )   came          │ nothing is known
 *       ▼                                             ▼
 *
 * A gap is first only seen: what is missing may be late. It is lost once
 * enough came from behind it, or enough time went by; then it is asked for, and
 * lost again when that did not help. Pure: PSNs and the time come in.
 */
#ifndef URN_TRANSPORT_BOARD_H
#define URN_TRANSPORT_BOARD_H

#include <stdbool.h>
#include <stdint.h>

enum { URN_BOARD_GAPS = 48 };

enum urn_gap_state {
	URN_GAP_SEEN,  /* missing, maybe late */
	URN_GAP_LOST,  /* to be asked for, or sent, again: from cur on */
	URN_GAP_ASKED, /* was, all of it */
	URN_GAP_STATES,
};

struct urn_gap {
	uint32_t first, end; /* PSNs, end exclusive */
	uint32_t cur;        /* LOST: the next to deal with, first..end */
	uint8_t state;       /* enum urn_gap_state */
	uint8_t tries;       /* times it was asked for; stays at 255 */
	uint64_t at;         /* ns: when it was seen, or asked for last */
};

struct urn_board {
	uint32_t base;       /* everything before it is settled */
	uint32_t high;       /* one past the newest that came, or was missed; base: none did */
	uint32_t n;          /* of gap[] in use */
	struct urn_gap gap[URN_BOARD_GAPS]; /* in PSN order, none empty; they touch where responses were missed */
};

/* What urn_board_came() found out about the wire, for the thresholds. */
struct urn_board_news {
	uint32_t late_by;    /* PSNs that overtook one that was late only; 0: none was */
	uint64_t late_ns;    /* ... and for how long it had been missing */
	uint64_t again_ns;   /* shortest time from asking until it came; UINT64_MAX: nothing asked for came */
	bool any;            /* something came that had not before */
};

/* When a gap counts as lost. */
struct urn_board_limits {
	uint32_t distance;   /* PSNs that came from behind it */
	uint64_t seen_ns;    /* since it was seen */
	uint64_t asked_ns;   /* since it was asked for; doubled with each try */
};

/* Nothing is known from PSN `base` on. */
void urn_board_reset(struct urn_board *b, uint32_t base);
/* Everything before `psn` is settled. Going back is ignored. */
void urn_board_advance(struct urn_board *b, uint32_t psn);
/*
 * first..end-1 came. What lies between the newest so far and first is a gap
 * from now on. With all gaps in use nothing new is taken down behind them
 * (then it is learnt later, when some are closed). *news is added to; the
 * caller clears it.
 */
void urn_board_came(struct urn_board *b, uint32_t first, uint32_t end, uint64_t now,
		    struct urn_board_news *news);
/*
 * psn was there and could not be taken: it is missing from now on, with what is
 * unknown before it. What came before stays so. returns: is that noted? Not when
 * all gaps are in use.
 */
bool urn_board_missed(struct urn_board *b, uint32_t psn, uint64_t now);
/* Gaps that are lost by now become so. returns: is any LOST? */
bool urn_board_judge(struct urn_board *b, const struct urn_board_limits *l, uint64_t now);
/* A LOST gap was dealt with up to `cur`; at its end it becomes ASKED. */
void urn_board_asked(struct urn_gap *g, uint32_t cur, uint64_t now);
/* When is the next gap lost by time alone? UINT64_MAX: never, there is none. */
uint64_t urn_board_due(const struct urn_board *b, const struct urn_board_limits *l);

/* Is anything missing before the newest that came? */
static inline bool
urn_board_open(const struct urn_board *b)
{
	return b->n != 0;
}

/* Name of a gap's state, for people. */
const char *urn_gap_state_name(unsigned int state);

#endif
