/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers from a seed. */
#ifndef URN_SWITCH_RND_H
#define URN_SWITCH_RND_H

#include <stdint.h>

/* The n-th value of the splitmix64 sequence that starts at seed; any n, in any order. */
static inline uint64_t
urn_rnd_at(uint64_t seed, uint64_t n)
{
	uint64_t z = seed + (n + 1) * 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* A random word mapped to 0..n-1, without a division. */
static inline uint64_t
urn_rnd_below(uint64_t r, uint64_t n)
{
	__extension__ typedef unsigned __int128 wide;

	return (uint64_t)(((wide)r * n) >> 64);
}

#endif
