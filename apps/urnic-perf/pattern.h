/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What messages are filled with, so that the receiver can tell the right
 * bytes from stale, lost, doubled or misplaced ones at little cost.
 *
 *   | stamp (8) | body ...                          | stamp (8) |
 *
 * The stamp says which QP and which message of it; the sender writes it anew
 * for every message. The body is a piece of a fixed random text that begins at
 * a place that depends on QP and source slot; it is written once. Receivers
 * have another number of slots than senders, so that a slot sees another body
 * at each lap and what was not written shows.
 *
 * Messages under 16 bytes overlap the stamps; under 8 bytes they hold the top
 * of one. The last byte of a message is always the low byte of its number.
 *
 * Rejected: a body rewritten for every message, which costs the sender as much
 * as the copy that is being measured; a checksum in the message, likewise.
 */
#ifndef URN_PERF_PATTERN_H
#define URN_PERF_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

/* The random text repeats after this many bytes: a prime, so no multiple of an MTU. */
#define PATTERN_PERIOD 65521u
#define PATTERN_STARTS 32768u /* bodies begin at 0..PATTERN_STARTS - 1 */
#define PATTERN_WINDOW 4096u  /* bytes of body that the fast check looks at in one message */

struct pattern {
	uint8_t text[PATTERN_PERIOD + PATTERN_STARTS + PATTERN_WINDOW]; /* repeats after PERIOD */
};

void pattern_init(struct pattern *p);

/* Which message: its QP's number and its place in the QP's sequence. */
static inline uint64_t
pattern_stamp(uint32_t qp, uint64_t seq)
{
	return (seq << 56) | ((uint64_t)(qp & 0xffff) << 40) | (seq & 0xffffffffffull);
}

/* Where the body of a source slot begins in the text. */
static inline uint32_t
pattern_start(uint32_t qp, uint32_t slot)
{
	return (slot * 264u + qp * 40u) & (PATTERN_STARTS - 1u);
}

/* Write the body of a whole message of `size` bytes (stamps overwrite its ends). */
void pattern_fill(const struct pattern *p, uint8_t *data, uint64_t size, uint32_t start);
/* Write the stamps of a message. */
void pattern_put_stamp(uint8_t *data, uint64_t size, uint64_t stamp);

/* Are the stamps right? */
bool pattern_stamp_ok(const uint8_t *data, uint64_t size, uint64_t stamp);
/*
 * Is the body right? Compares at most `most` bytes, from a place that moves on
 * with seq so that all places get their turn. *compared: bytes looked at
 */
bool pattern_body_ok(const struct pattern *p, const uint8_t *data, uint64_t size, uint32_t start,
		     uint64_t seq, uint64_t most, uint64_t *compared);

#endif
