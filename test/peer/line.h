/* SPDX-License-Identifier: BSD-3-Clause */
/* One direction of a wire between the product and its peers, with its faults. */
#ifndef PEER_LINE_H
#define PEER_LINE_H

#include "peer_wire.h"
#include "rnd.h"

enum { LINE_FRAMES = 4096 };

struct line_faults {
	uint32_t drop, dup, reorder, spoil; /* each: of a million frames */
};

struct line_frame {
	uint64_t at, seq; /* ns; order of frames of the same time */
	size_t len;
	bool spoilt;
	uint8_t bytes[PW_ROOM];
};

struct line {
	struct line_faults f;
	struct rnd rng;
	uint64_t delay, jitter; /* ns */
	uint64_t ps_byte;       /* ps that a byte takes */
	bool dead;              /* the wire is cut */
	uint64_t busy_until;    /* ns: the last frame is on the wire until then */
	uint64_t last_at;       /* ns: arrival of the last frame that was not delayed */
	uint64_t seq, lost, carried;
	uint32_t n;
	struct line_frame *heap[LINE_FRAMES]; /* ordered by time */
	struct line_frame *spare[LINE_FRAMES];
	uint32_t spares;
};

/* line: keeps its spare frames from run to run */
void line_open(struct line *l, const struct line_faults *f, uint64_t delay, uint64_t jitter,
	       uint64_t ps_byte, struct rnd rng);
void line_put(struct line *l, uint64_t now, const uint8_t *bytes, size_t len);
/* returns: ns: arrival of the next frame; UINT64_MAX: none */
uint64_t line_due(const struct line *l);
/* returns: the next frame that has arrived, valid until the next call; NULL: none */
const struct line_frame *line_take(struct line *l, uint64_t now);
void line_free(struct line *l);

#endif
