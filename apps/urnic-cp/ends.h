/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The objects that a transfer uses, and the steps of both sides in every round:
 * turn the engine, look at the control socket now and then, notice Ctrl-C.
 */
#ifndef URN_CP_ENDS_H
#define URN_CP_ENDS_H

#include "io.h"
#include "oob.h"
#include "rail.h"

struct cp_ends {
	struct cp_rail *rail;
	struct cp_oob *oob;
	struct cp_io *io;
	enum cp_frame_type due; /* frame that the peer may send on the control socket now */
	bool heard;		/* the frame came and is in body */
	union cp_body body;
	uint64_t looked_ns; /* CLOCK_MONOTONIC of the last look at the control socket */
};

/* Hash in pieces of this many bytes, so that the engine is polled in between. */
#define CP_HASH_PIECE 65536u

/*
 * Begin a round. returns: amount of work that the engine did, or -1 with *err when
 * the peer has gone or the program is to stop
 */
int cp_ends_round(struct cp_ends *e, struct urn_err *err);
/* Next event of the queue pair, like cp_rail_poll(), but *err has the peer's own reason if it gave
 * one. */
int cp_ends_event(struct cp_ends *e, struct cp_event *ev, struct urn_err *err);

#endif
