/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random numbers from a seed. Each random decision has a stream of its own,
 * named by a number, so that leaving one decision out changes no other.
 */
#ifndef URN_SIM_RNG_H
#define URN_SIM_RNG_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct sim_rng {
	uint64_t state;
};

/* splitmix64 */
static inline uint64_t
sim_rng_next(struct sim_rng *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* The stream `stream` of a seed. */
static inline struct sim_rng
sim_rng_of(uint64_t seed, uint64_t stream)
{
	struct sim_rng r = {seed * 0x2545f4914f6cdd1du + stream * 0xd6e8feb86659fd93u};

	sim_rng_next(&r);
	return r;
}

/* 0 to n - 1; n 0: 0 */
static inline uint32_t
sim_rnd(struct sim_rng *r, uint32_t n)
{
	return n ? (uint32_t)((sim_rng_next(r) >> 32) * n >> 32) : 0;
}

/* lo to hi, both included */
static inline uint32_t
sim_between(struct sim_rng *r, uint32_t lo, uint32_t hi)
{
	return lo + sim_rnd(r, hi - lo + 1);
}

/* True when a random number says so: in one of n cases. */
static inline bool
sim_one_in(struct sim_rng *r, uint32_t n)
{
	return sim_rnd(r, n) == 0;
}

/* 0 to 1, 1 excluded */
static inline double
sim_unit(struct sim_rng *r)
{
	return (double)(sim_rng_next(r) >> 11) * 0x1p-53;
}

/* ---- bytes of a message: a function of a seed and the offset in the message */

static inline uint64_t
sim_word(uint32_t seed, uint32_t i)
{
	uint64_t x = ((uint64_t)seed << 32 | i) * 0x9e3779b97f4a7c15u;

	return x ^ x >> 29;
}

static inline uint8_t
sim_byte(uint32_t seed, uint32_t at)
{
	return (uint8_t)(sim_word(seed, at / 8) >> at % 8 * 8);
}

/* Bytes from .. from + len of a message. */
static inline void
sim_fill(uint8_t *to, uint32_t seed, uint32_t from, uint32_t len)
{
	uint32_t i = 0;

	for (; i < len && (from + i) % 8; i++)
		to[i] = sim_byte(seed, from + i);
	for (; i + 8 <= len; i += 8) {
		uint64_t w = sim_word(seed, (from + i) / 8);

		memcpy(to + i, &w, 8);
	}
	for (; i < len; i++)
		to[i] = sim_byte(seed, from + i);
}

#endif
