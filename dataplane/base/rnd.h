/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers from a seed: the sequence splitmix64. No secret: one value gives all others away.
 */
#ifndef URN_BASE_RND_H
#define URN_BASE_RND_H

#include <stdint.h>

/* The step of the sequence's state. */
#define URN_RND_STEP 0x9e3779b97f4a7c15u

/* The value of the sequence whose state is z. */
static inline uint64_t
urn_rnd_value(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* The next value of a sequence. state: the seed at first; only this function changes it */
static inline uint64_t
urn_rnd_next(uint64_t *state)
{
	return urn_rnd_value(*state += URN_RND_STEP);
}

/* The n-th value, from 0, of the sequence that starts at seed; any n, in any order. */
static inline uint64_t
urn_rnd_at(uint64_t seed, uint64_t n)
{
	return urn_rnd_value(seed + (n + 1) * URN_RND_STEP);
}

/* A random word mapped to 0..n-1, without a division. */
static inline uint64_t
urn_rnd_below(uint64_t r, uint64_t n)
{
	__extension__ typedef unsigned __int128 wide;

	return (uint64_t)(((wide)r * n) >> 64);
}

#endif
