/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lane of words, which is no queue pair: the second user of a sequence of PSNs. A lane embeds
 * both ends (psn_tx.h, psn_rx.h) with the policy of acknowledgements (ack.h), its timer and retries
 * (psn_timer.h) on a timing wheel, and repairs losses by scoreboard and selective acknowledgements
 * (board.h, sack.h, psn_again.h).
 * Sender, receiver and a wire that may be bad are one object; a turn takes a tick of the wheel.
 */
#ifndef TEST_LANE_H
#define TEST_LANE_H

#include "transport/ack.h"
#include "transport/board.h"
#include "transport/psn_timer.h"

#define LANE_BASE 0xffff80u /* the PSN wraps soon */
#define LANE_TICK (1ull << URN_WHEEL_TICK_SHIFT) /* a turn takes one, ns */

enum {
	LANE_WORKS = 64,
	LANE_WINDOW = 48,
	LANE_WIRE = 256,
	LANE_WORDS = 20000,
	LANE_AHEAD = 64,  /* words ahead of their turn, and one, that a receiver keeps */
	LANE_TIMEOUT = 8, /* code: 256 turns */
	LANE_RETRIES = 7,
};

enum lane_kind { LANE_DATA, LANE_ACK, LANE_NAK, LANE_SACK };

struct lane_cell {
	enum lane_kind kind;
	uint32_t psn;
	uint32_t word;      /* LANE_DATA */
	bool asks;          /* LANE_DATA: for an acknowledgement */
	uint8_t syndrome;   /* LANE_NAK */
	struct urn_sack sack;
};

struct lane_wire {
	struct lane_cell cell[LANE_WIRE];
	unsigned int n;
};

/* Behaviour of a lane and of its wire. */
struct lane_way {
	bool bad;       /* the wire loses, duplicates and reorders */
	bool keeps;	/* the receiver keeps words ahead of their turn */
	bool selective; /* ... and losses are repaired packet by packet */
	bool early;     /* probes and early repeats */
	uint32_t rate;	/* words that the wire brings a turn; 0: all */
	uint32_t full_from;   /* from this turn on, the receiver has no room for the word due */
	uint32_t full_turns;  /* ... until this turn */
	uint32_t gate_turns;  /* until this turn, half of all turns drop words unseen */
	uint32_t dead_turns;  /* the wire takes nothing until this turn */
	uint32_t stand_turns; /* turns stand still from turn 2 on, so long */
};

struct lane {
	struct lane_way way;
	struct urn_psn_tx tx;
	struct urn_psn_rx rx;
	struct urn_board board;       /* words that the receiver has */
	struct urn_wheel wheel;
	struct urn_work work[LANE_WORKS];
	unsigned int posted, retired; /* works, free running */
	uint32_t given;               /* words given to work */
	uint32_t got;                 /* words that arrived, in order */
	struct lane_cell kept[LANE_AHEAD]; /* words ahead of their turn, by PSN */
	bool have[LANE_AHEAD];		   /* ... valid when true */
	unsigned int put_by;		   /* words that were kept */
	uint32_t turn;
	uint64_t stood_at;
	uint64_t rng;
	bool failed;                  /* retries were used up */
	uint32_t failed_turn;
	struct lane_wire there, back;
	unsigned int naks, rnr_naks;			/* sent: sequence NAKs, and RNR NAKs */
	unsigned int sacks;				/* sent */
	unsigned int repeats, probes, timeouts, mended; /* mended: words of gaps that went again */
};

/* Begin anew: nothing was sent. seed: of what the wire does */
void lane_start(struct lane *l, uint64_t seed, struct lane_way way);
/* Run until all words arrived and were acknowledged, or the lane failed. */
void lane_run(struct lane *l);

#endif
