/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers from a seed (xorshift64*), and the bytes of messages. */
#ifndef PEER_RND_H
#define PEER_RND_H

#include <stdbool.h>
#include <stdint.h>

struct rnd {
	uint64_t x;
};

static inline uint64_t
rnd_next(struct rnd *r)
{
	r->x ^= r->x >> 12;
	r->x ^= r->x << 25;
	r->x ^= r->x >> 27;
	return r->x * 0x2545f4914f6cdd1du;
}

/* A separate stream of numbers for each use of a seed. */
static inline struct rnd
rnd_of(uint64_t seed, uint64_t stream)
{
	struct rnd r = {(seed + 1) * 0x9e3779b97f4a7c15u ^ (stream + 1) * 0xd1b54a32d192ed03u};

	r.x |= 1;
	for (int i = 0; i < 4; i++)
		rnd_next(&r);
	return r;
}

/* 0 to n - 1; n 0: 0 */
static inline uint32_t
rnd(struct rnd *r, uint32_t n)
{
	return n ? (uint32_t)((rnd_next(r) >> 32) * n >> 32) : 0;
}

static inline uint32_t
rnd_from(struct rnd *r, uint32_t lo, uint32_t hi)
{
	return lo + rnd(r, hi - lo + 1);
}

/* True when a random number says so: in `ppm` of a million cases. */
static inline bool
rnd_ppm(struct rnd *r, uint32_t ppm)
{
	return rnd(r, 1000000) < ppm;
}

/* Byte `at` of the message of a seed. */
static inline uint8_t
rnd_byte(uint32_t seed, uint32_t at)
{
	uint32_t x = (seed ^ at >> 2) * 0x9e3779b1u;

	x ^= x >> 15;
	x *= 0x85ebca6bu;
	return (uint8_t)((x ^ x >> 13) >> (at & 3) * 8);
}

#endif
