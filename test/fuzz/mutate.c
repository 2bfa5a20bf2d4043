/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer's changes of inputs made of records (record.h): whole records are left out,
 * duplicated, swapped, made anew or taken from another input; or the bytes within one
 * change. The target interprets the records' numbers by its own state, so the result is a
 * course of events, not noise.
 */
#include "fuzz.h"
#include "record.h"

#include <string.h>

enum { MAX = 512 }; /* records that are found in an input */

struct split {
	size_t at[MAX + 1]; /* beginning of each; at[n]: the end */
	unsigned int n;
};

static uint32_t
rnd(unsigned int *seed, uint32_t below)
{
	*seed = *seed * 1664525u + 1013904223u;
	return below ? (*seed >> 8) % below : 0;
}

static void
split(struct split *s, const uint8_t *data, size_t size)
{
	size_t at = RECORD_HEAD;

	s->n = 0;
	while (at < size && s->n < MAX) {
		s->at[s->n++] = at;
		at += record_size(data + at, size - at);
	}
	s->at[s->n] = at < size ? size : at;
}

/* Insert n bytes at a place. returns the new size, or the old one when there is no room */
static size_t
insert(uint8_t *data, size_t size, size_t max, size_t at, const uint8_t *from, size_t n)
{
	uint8_t copy[8192];

	if (n > sizeof(copy) || size + n > max)
		return size;
	memcpy(copy, from, n);
	memmove(data + at + n, data + at, size - at);
	memcpy(data + at, copy, n);
	return size + n;
}

static size_t
insert_new(uint8_t *data, size_t size, size_t max, size_t at, unsigned int *seed)
{
	uint8_t rec[64];
	uint8_t kind = (uint8_t)(rnd(seed, 16) | (RECORD_MORE && rnd(seed, 3) == 0 ? 0x80 : 0));
	size_t n = 1u + record_fixed[record_kind(kind)];

	for (size_t i = 0; i < n; i++)
		rec[i] = (uint8_t)rnd(seed, rnd(seed, 2) ? 256 : 16);
	rec[0] = kind;
	if (record_kind(kind) == RECORD_RAW)
		rec[4] = rec[5] = 0;
	if (record_kind(kind) == RECORD_FRAME) { /* usually one that is due */
		rec[1] &= rnd(seed, 8) ? 0x1f : 0xff;
		if (rnd(seed, 8) == 0)
			rec[1] = 0x7f; /* a selective acknowledgement */
		rec[2] &= rnd(seed, 4) ? 0x63 : 0xff;
		rec[3] = rnd(seed, 4) ? 0 : rec[3];
		rec[4] &= rnd(seed, 8) ? 0x03 : 0xff;
		rec[18] &= rnd(seed, 8) ? 0x7f : 0xff;
	}
	return insert(data, size, max, at, rec, n);
}

static size_t
cut_out(uint8_t *data, size_t size, const struct split *s, unsigned int i)
{
	memmove(data + s->at[i], data + s->at[i + 1], size - s->at[i + 1]);
	return size - (s->at[i + 1] - s->at[i]);
}

/* Change bytes of one record, and its length. */
static size_t
change(uint8_t *data, size_t size, size_t max, size_t from, size_t to)
{
	uint8_t copy[8192];
	size_t n = to - from, room = n + 16, now;

	if (n == 0 || room > sizeof(copy) || size + 16 > max)
		return size;
	memcpy(copy, data + from, n);
	now = LLVMFuzzerMutate(copy, n, room);
	memmove(data + from + now, data + to, size - to);
	memcpy(data + from, copy, now);
	return size - n + now;
}

static void
start_head(uint8_t *data, unsigned int *seed)
{
	for (unsigned int i = 0; i < RECORD_HEAD; i++)
		data[i] = (uint8_t)rnd(seed, 256);
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	static struct split s;
	unsigned int i, j;

	if (max < RECORD_HEAD + 64)
		return LLVMFuzzerMutate(data, size, max);
	if (size < RECORD_HEAD) {
		start_head(data, &seed);
		size = RECORD_HEAD;
	}
	split(&s, data, size);
	i = rnd(&seed, s.n);
	j = rnd(&seed, s.n + 1);
	switch (rnd(&seed, 12)) {
	case 0:
		return s.n > 1 ? cut_out(data, size, &s, i) : size;
	case 1: case 2:
		return s.n ? insert(data, size, max, s.at[j], data + s.at[i], s.at[i + 1] - s.at[i])
			   : size;
	case 3: case 4: case 5:
		return insert_new(data, size, max, s.n ? s.at[j] : size, &seed);
	case 6:
		data[rnd(&seed, RECORD_HEAD)] ^= (uint8_t)(1u << rnd(&seed, 8));
		return size;
	case 7:
		return LLVMFuzzerMutate(data, size, max);
	default:
		return s.n ? change(data, size, max, s.at[i], s.at[i + 1])
			   : insert_new(data, size, max, size, &seed);
	}
}

/* Join the beginning of one course of events and the end of another. */
size_t
LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len, uint8_t *out,
			  size_t max, unsigned int seed)
{
	static struct split sa, sb;
	size_t head, tail;

	if (a_len < RECORD_HEAD || b_len < RECORD_HEAD)
		return 0;
	split(&sa, a, a_len);
	split(&sb, b, b_len);
	head = sa.n ? sa.at[rnd(&seed, sa.n + 1)] : a_len;
	tail = sb.n ? sb.at[rnd(&seed, sb.n)] : b_len;
	if (head > max)
		return 0;
	memcpy(out, a, head);
	tail = b_len - tail < max - head ? tail : b_len - (max - head);
	memcpy(out + head, b + tail, b_len - tail);
	return head + b_len - tail;
}
