/* SPDX-License-Identifier: BSD-3-Clause */
/* One run: the product and its peers, joined by a wire, all from a seed. */
#ifndef PEER_RUN_H
#define PEER_RUN_H

#include "dut.h"

#include <stdio.h>

enum { RUN_WHY = 400, RUN_TURNS = 4000000 };

/* X(index, "name", "description") */
#define RUN_SCENARIOS(X)                                                                \
	X(PERFECT, "perfect", "the wire loses nothing: nothing is repeated or refused") \
	X(LOSS, "loss", "the wire loses frames")                                        \
	X(MESS, "mess", "the wire loses, duplicates, reorders and spoils frames")       \
	X(RNR, "rnr", "receives are posted late; some frames are lost")                 \
	X(LATE, "late", "the product's memory is late, or another process's")           \
	X(SLOW, "slow", "the peer serves slowly; some frames are lost")                 \
	X(ERRORS, "errors", "a request is refused, no receive comes, or the wire is cut")

enum run_scenario {
#define X(id, name, text) RUN_##id,
	RUN_SCENARIOS(X)
#undef X
	RUN_COUNT,
};

/* All fields are uint64_t: totals add them up as such. */
struct run_stats {
	uint64_t runs, failed;
	uint64_t requests, messages; /* requests posted; those among them that take a receive */
	uint64_t frames, lost;       /* frames put on the wire; lost or corrupted by it */
	uint64_t asked, repeated;    /* requests that the product sent; retries among them */
	uint64_t refused;            /* refused of them: ahead of their turn, no receive, no room */
	uint64_t calm_asked, calm_repeated; /* counts of asked and repeated on wires that lose nothing */
	uint64_t seq_naks, rnr_naks, timeouts; /* met by the peers' requesters */
	uint64_t errors;             /* completions with an error */
	uint64_t ns;                 /* virtual time, ns */
	uint64_t fired[FLOW_ERRORS]; /* runs with this deliberate error */
};

struct run;

struct run *run_new(void);
void run_free(struct run *r);
/* trace: may be NULL. returns: true when all checks held; else `why` has a sentence */
bool run_seed(struct run *r, enum run_scenario sc, uint64_t seed, FILE *trace, struct run_stats *st,
	      char why[RUN_WHY]);
const char *run_scenario_name(unsigned int i);
const char *run_scenario_text(unsigned int i);

#endif
