/* SPDX-License-Identifier: BSD-3-Clause */
#include "pattern.h"

#define STAMP_BYTES 8u

void
pattern_init(struct pattern *p)
{
	uint64_t x = 0x9e3779b97f4a7c15ull;

	for (uint32_t i = 0; i < PATTERN_PERIOD; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		p->text[i] = (uint8_t)(x >> 32);
	}
	memcpy(p->text + PATTERN_PERIOD, p->text, sizeof(p->text) - PATTERN_PERIOD);
}

void
pattern_fill(const struct pattern *p, uint8_t *data, uint64_t size, uint32_t start)
{
	uint64_t off = 0, n;

	while (off < size) {
		n = size - off < PATTERN_PERIOD ? size - off : PATTERN_PERIOD;
		memcpy(data + off, p->text + start, n);
		off += n;
	}
}

void
pattern_put_short(uint8_t *data, uint64_t size, uint64_t stamp)
{
	uint64_t tail = stamp ^ PATTERN_TAIL;

	if (size < STAMP_BYTES) {
		for (uint64_t i = 0; i < size; i++)
			data[i] = (uint8_t)(stamp >> (8 * (STAMP_BYTES - size + i)));
		return;
	}
	memcpy(data, &stamp, STAMP_BYTES);
	if (size > STAMP_BYTES)
		memcpy(data + size - STAMP_BYTES, &tail, STAMP_BYTES);
}

bool
pattern_short_ok(const uint8_t *data, uint64_t size, uint64_t stamp)
{
	uint8_t want[PATTERN_STAMPS];

	pattern_put_short(want, size, stamp);
	return memcmp(data, want, size) == 0;
}

/* True when len bytes at data + off equal the text; compares at least PATTERN_WINDOW at a time. */
static bool
range_ok(const struct pattern *p, const uint8_t *data, uint64_t off, uint64_t len, uint32_t start)
{
	uint64_t at, n;

	for (; len > 0; off += n, len -= n) {
		at = start + (off < PATTERN_PERIOD ? off : off % PATTERN_PERIOD);
		n = sizeof(p->text) - at < len ? sizeof(p->text) - at : len;
		if (memcmp(data + off, p->text + at, n) != 0)
			return false;
	}
	return true;
}

bool
pattern_body_ok(const struct pattern *p, const uint8_t *data, uint64_t size, uint32_t start,
		uint64_t seq, uint64_t most, uint64_t *compared)
{
	uint64_t body, off, n;

	*compared = 0;
	if (size <= PATTERN_STAMPS)
		return true;
	body = size - PATTERN_STAMPS;
	off = 0;
	n = body;
	if (n > most) {
		/* The last window may be short, but is compared as well. */
		off = (seq % ((body + most - 1) / most)) * most;
		n = body - off < most ? body - off : most;
	}
	*compared = n;
	return range_ok(p, data, STAMP_BYTES + off, n, start);
}
