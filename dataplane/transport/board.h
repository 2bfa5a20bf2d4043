/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A scoreboard: which PSNs of a stretch have come, and what to do about the missing ones. Only
 * the gaps are kept, so that the cost of a stretch depends on what is missing, not on its
 * length: one READ takes up to 2^23 PSNs.
 *
 *     base          gap 0        gap 1              high
 *       │ came      [    ) came  [  )   came          │ nothing is known
 *       ▼                                             ▼
 *
 * A gap is first only seen: the missing packets may be late. A gap is lost once enough packets
 * from behind it came, or enough time went by; a lost gap is asked for, and lost again when
 * asking did not help. The scoreboard is pure: PSNs and the time come in as arguments.
 */
#ifndef URN_TRANSPORT_BOARD_H
#define URN_TRANSPORT_BOARD_H

#include <stdbool.h>
#include <stdint.h>

enum { URN_BOARD_GAPS = 48 };

enum urn_gap_state {
	URN_GAP_SEEN,  /* missing, maybe late */
	URN_GAP_LOST,  /* PSNs from cur on are to be asked for, or sent, again */
	URN_GAP_ASKED, /* the whole gap was asked for */
	URN_GAP_STATES,
};

struct urn_gap {
	uint32_t first, end; /* PSNs missing, end exclusive */
	uint32_t cur;        /* LOST: the next PSN to deal with, first..end */
	uint8_t state;       /* enum urn_gap_state */
	uint8_t tries;       /* times that the gap was asked for; stays at 255 */
	uint64_t at;         /* ns: when the gap was seen, or last asked for */
};

struct urn_board {
	uint32_t base;       /* all PSNs before it are settled */
	uint32_t high;       /* one past the newest PSN that came or was missed; base: none did */
	uint32_t n;          /* gaps in use, in gap[] */
	struct urn_gap gap[URN_BOARD_GAPS]; /* in PSN order, none empty; gaps touch where responses were missed */
};

/* News about the wire from urn_board_came(): input for the thresholds. */
struct urn_board_news {
	uint32_t late_by;    /* PSNs that overtook a packet that was only late; 0: none was */
	uint64_t late_ns;    /* ... and for how long that packet had been missing */
	uint64_t again_ns;   /* shortest time from asking for a PSN until it came; UINT64_MAX: nothing asked for came */
	bool any;            /* a PSN came that had not come before */
};

/* Limits: a gap is lost when one of them is reached. */
struct urn_board_limits {
	uint32_t distance;   /* PSNs that came from behind the gap */
	uint64_t seen_ns;    /* ns since the gap was seen */
	uint64_t asked_ns;   /* ns since the gap was asked for; doubled with each try */
};

/* Forget everything: nothing is known from PSN `base` on. */
void urn_board_reset(struct urn_board *b, uint32_t base);
/* All PSNs before `psn` are settled. A PSN before base is ignored. */
void urn_board_advance(struct urn_board *b, uint32_t psn);
/*
 * PSNs first..end-1 came. PSNs between the newest so far and first are a gap from now on. With all
 * gaps in use, packets that would need another gap are not noted; they are learnt of later, when
 * some gaps are closed. The call adds to *news; the caller clears *news before.
 */
void urn_board_came(struct urn_board *b, uint32_t first, uint32_t end, uint64_t now,
		    struct urn_board_news *news);
/*
 * A packet with this PSN was there and could not be taken: the PSN is missing from now on, with all
 * unknown PSNs before it. PSNs that came before stay so. returns: true when the miss is noted;
 * false when all gaps are in use
 */
bool urn_board_missed(struct urn_board *b, uint32_t psn, uint64_t now);
/* Mark gaps that are lost by now. returns: true when any gap is LOST */
bool urn_board_judge(struct urn_board *b, const struct urn_board_limits *l, uint64_t now);
/* A LOST gap was dealt with up to `cur`; with its end reached the gap becomes ASKED. */
void urn_board_asked(struct urn_gap *g, uint32_t cur, uint64_t now);
/* Time in ns at which the next gap is lost by time alone. UINT64_MAX: never, there is none. */
uint64_t urn_board_due(const struct urn_board *b, const struct urn_board_limits *l);

/* True when a PSN before the newest that came is missing. */
static inline bool
urn_board_open(const struct urn_board *b)
{
	return b->n != 0;
}

#endif
