/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contents of messages, by which the receiver tells the right bytes from
 * stale, lost, duplicated or misplaced ones at little cost.
 *
 *   | stamp (8) | body ...                          | stamp (8) |
 *
 * The stamp identifies the QP and the message; the sender writes the stamp
 * for every message. The body is a piece of a fixed random text, from an
 * offset that depends on QP and source slot; the body is written once. Receivers
 * have another number of slots than senders, so that a slot gets another body
 * in each lap and bytes that were not written show.
 *
 * In messages under 16 bytes the stamps overlap; under 8 bytes a message holds the
 * top of one. The last byte of a message is always the low byte of its number.
 *
 * The cost of checking, measured between two cores as a share of the rate with
 * --no-check:
 *                      fast    full
 *   SEND 64 B           2 %     3 %
 *   SEND 4 KiB          6 %    11 %
 *   SEND 64 KiB         1 %    10 %
 *   WRITE 64 B          1 %    25 %
 *   WRITE 64 KiB        1 %    31 %
 *   READ 4 KiB          1 %     8 %
 * In ping-pong checking is in no figure: a side checks while the other side works.
 *
 * Rejected: a body rewritten for every message, which costs the sender as much
 * as the copy that is being measured; a checksum in the message, for the same reason.
 */
#ifndef URN_PERF_PATTERN_H
#define URN_PERF_PATTERN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The random text repeats after this many bytes: a prime, so no multiple of an MTU. */
#define PATTERN_PERIOD 65521u
#define PATTERN_STARTS 32768u /* bodies begin at 0..PATTERN_STARTS - 1 */
#define PATTERN_STAMPS 16u    /* bytes of both stamps */
/* XORed into the tail stamp to tell it from the head; keeps the top byte, the low byte of the number. */
#define PATTERN_TAIL 0x00a5c3965a3ca569ull
#define PATTERN_WINDOW 1024u  /* bytes of body that the fast check looks at in one message */

struct pattern {
	uint8_t text[PATTERN_PERIOD + PATTERN_STARTS + PATTERN_WINDOW]; /* repeats after PERIOD */
};

void pattern_init(struct pattern *p);

/* The stamp of a message: its QP's number and its place in the QP's sequence. */
static inline uint64_t
pattern_stamp(uint32_t qp, uint64_t seq)
{
	return (seq << 56) | ((uint64_t)(qp & 0xffff) << 40) | (seq & 0xffffffffffull);
}

/* Offset in the text at which the body of a source slot begins. */
static inline uint32_t
pattern_start(uint32_t qp, uint32_t slot)
{
	return (slot * 264u + qp * 40u) & (PATTERN_STARTS - 1u);
}

/* Write the body of a whole message of `size` bytes (stamps overwrite its ends). */
void pattern_fill(const struct pattern *p, uint8_t *data, uint64_t size, uint32_t start);
/* Write the stamps of a message under PATTERN_STAMPS bytes, where the stamps overlap or are cut. */
void pattern_put_short(uint8_t *data, uint64_t size, uint64_t stamp);
bool pattern_short_ok(const uint8_t *data, uint64_t size, uint64_t stamp);

/* Write the stamps of a message. */
static inline void
pattern_put_stamp(uint8_t *data, uint64_t size, uint64_t stamp)
{
	uint64_t tail = stamp ^ PATTERN_TAIL;

	if (size < PATTERN_STAMPS) {
		pattern_put_short(data, size, stamp);
		return;
	}
	memcpy(data, &stamp, sizeof(stamp));
	memcpy(data + size - sizeof(tail), &tail, sizeof(tail));
}

/* The number in a message of 8 bytes or more; valid only when the message's stamps are right. */
static inline uint64_t
pattern_number(const uint8_t *data, uint64_t size)
{
	uint64_t stamp;

	memcpy(&stamp, data + size - sizeof(stamp), sizeof(stamp));
	if (size > sizeof(stamp)) /* the tail */
		stamp ^= PATTERN_TAIL;
	return stamp & 0xffffffffffull;
}

/* True when the stamps are right. */
static inline bool
pattern_stamp_ok(const uint8_t *data, uint64_t size, uint64_t stamp)
{
	uint64_t head, tail;

	if (size < PATTERN_STAMPS)
		return pattern_short_ok(data, size, stamp);
	memcpy(&head, data, sizeof(head));
	memcpy(&tail, data + size - sizeof(tail), sizeof(tail));
	return head == stamp && tail == (stamp ^ PATTERN_TAIL);
}

/*
 * True when the body is right. Compares at most `most` bytes, from an offset that moves
 * with seq so that all offsets are compared in turn. *compared: bytes compared
 */
bool pattern_body_ok(const struct pattern *p, const uint8_t *data, uint64_t size, uint32_t start,
		     uint64_t seq, uint64_t most, uint64_t *compared);

/* Short messages, of up to PATTERN_SHORT bytes, are compared whole. */
#define PATTERN_SHORT 256u

/* True when 16 bytes or more are the same. Compares blocks; the last may overlap the one before. */
static inline bool
pattern_same(const uint8_t *a, const uint8_t *b, uint64_t size)
{
	typedef uint64_t block __attribute__((vector_size(16)));
	block x, y, diff = {0, 0};

	for (uint64_t at = 0; at < size; at += 16) {
		uint64_t from = at + 16 <= size ? at : size - 16;

		memcpy(&x, a + from, 16);
		memcpy(&y, b + from, 16);
		diff |= x ^ y;
	}
	return (diff[0] | diff[1]) == 0;
}

static inline bool
pattern_short_body_ok(const struct pattern *p, const uint8_t *data, uint64_t size, uint32_t start)
{
	if (size < 2 * PATTERN_STAMPS)
		return size <= PATTERN_STAMPS ||
		       memcmp(data + 8, p->text + start + 8, size - PATTERN_STAMPS) == 0;
	return pattern_same(data + 8, p->text + start + 8, size - PATTERN_STAMPS);
}

#endif
