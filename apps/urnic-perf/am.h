/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measurements of remote memory access and of active messages, by lib/am: an endpoint on each of
 * two nodes.
 *
 *   rma_...   A issues operations on memory of B's endpoint, in chains with one completion, as
 *             write_bw does; B's program sleeps
 *   am_...    A sends requests, B's handler checks and answers them
 *
 * Operations and requests end in any order. Each has a number, from 1 on, and is retired in the
 * order of numbers, so that a slot of the buffers is used anew only when all that used it before
 * has ended. A message's bytes are those of its number and slot (pattern.h).
 */
#ifndef URN_PERF_AM_H
#define URN_PERF_AM_H

#include "perf.h"

#include <urnic/am.h>

/* A message under way, in the slot of its number. */
struct am_slot {
	struct am_end *end; /* owner of the slot */
	uint64_t at;	    /* TSC when the message was issued; valid in the first of a chain */
	uint32_t count;	    /* messages of the chain that begins here; likewise */
	bool ended;	    /* but not yet retired */
};

/* One end of a measurement: struct side, and an endpoint. */
struct am_end {
	struct side side; /* first: steps get it */
	struct am_end *peer;
	struct urn_msg_dev *dev;       /* owner; NULL: not open */
	struct urn_am_endpoint *ep;    /* owner; NULL: not made */
	struct urn_am_address address; /* own, for the peer */
	struct urn_am_memory src, dst; /* the side's buffers; valid when their length is not 0 */
	uint64_t key;		       /* rma_..., B: key of the region that A reaches */
	uint64_t remote;	       /* rma_..., A: address of B's buffer */
	struct perf_qp *seq;	       /* the one sequence of messages; owner */
	struct am_slot *slot;	       /* A: as many as source slots; owner */
	uint64_t *seen; /* am_..., B: number of the request seen last, by slot; owner */
};

/* Handlers of active messages. */
enum { AM_SERVE = 1, AM_ANSWERED = 2 };

/* Messages of one step at most; not less than perf_opts.chain. */
enum { AM_BATCH = 32 };

/* Register handlers with a made endpoint. */
void am_handlers(struct am_end *e);
/* Steps of the sides (am_step.c). */
unsigned int am_issue_step(struct side *s, uint64_t now); /* A */
unsigned int am_serve_step(struct side *s, uint64_t now); /* am_..., B */

#endif
