/* SPDX-License-Identifier: BSD-3-Clause */
/* Selective acknowledgements made and read by hand, from doc/inside/recovery.md alone. */
#ifndef URN_TEST_SACK_H
#define URN_TEST_SACK_H

#include "probe.h"

enum { SACK_BYTES = 72, SACK_BITMAP = 40 };

static inline void
sack_put(uint8_t *p, uint32_t v)
{
	for (int i = 3; i >= 0; i--, v >>= 8)
		p[i] = (uint8_t)v;
}

static inline uint32_t
sack_get(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* A frame that acknowledges up to `done` and expects `expected`; nothing kept yet. */
static inline struct frame
sack_of(uint32_t done, uint32_t expected)
{
	struct frame f = frame_of(SACK, done);

	f.syn = SYN_ACK;
	f.len = SACK_BYTES;
	f.data[0] = 1;
	sack_put(f.data + 4, expected);
	return f;
}

/* The PSN n behind the expected one is kept. */
static inline void
sack_bit(struct frame *f, uint32_t n)
{
	f->data[SACK_BITMAP + (n - 1) / 8] |= (uint8_t)(1u << (n - 1) % 8);
}

static inline bool
sack_has(const struct frame *f, uint32_t n)
{
	return f->data[SACK_BITMAP + (n - 1) / 8] >> (n - 1) % 8 & 1;
}

static inline void
sack_range(struct frame *f, uint32_t first, uint32_t end)
{
	uint8_t *p = f->data + 8 + 8 * f->data[1]++;

	sack_put(p, first);
	sack_put(p + 4, end);
}

/* Up to `done` done, then all of from..to-1 but the one expected. */
static inline void
sack_send(struct probe *p, uint32_t expected, uint32_t from, uint32_t to)
{
	struct frame f = sack_of(PSN(expected, -1), expected);

	for (uint32_t psn = from; psn != to; psn = PSN(psn, 1))
		sack_bit(&f, PSN(psn, -expected));
	probe_put(p, &f);
}

#endif
