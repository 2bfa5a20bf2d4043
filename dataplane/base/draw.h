/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers that go out on the wire and must not be guessed: from one that a peer has seen, it learns
 * nothing about those that others get. The kernel makes them (getrandom()), 256 bytes at a time.
 * With a seed they are a sequence instead, for tests that must run the same again.
 */
#ifndef URN_BASE_DRAW_H
#define URN_BASE_DRAW_H

#include <stdbool.h>
#include <stdint.h>

/* Words that the kernel is asked for at once: up to 256 bytes come whole, whatever signal comes. */
enum { URN_DRAW_WORDS = 32 };

/* A source of numbers. One thread at a time uses a source. */
struct urn_draw {
	uint64_t word[URN_DRAW_WORDS]; /* not given out yet: the first `left` */
	uint64_t state;		       /* the sequence's (base/rnd.h); valid with `seeded` */
	uint8_t left;		       /* words */
	bool seeded;		       /* numbers are a sequence */
};

/*
 * Set a source up.
 *
 * seed: 0: the kernel makes the numbers, a word of which is drawn at once; else the sequence's
 * returns: 0, or an errno value: the kernel has no random numbers
 */
int urn_draw_init(struct urn_draw *d, uint64_t seed);

/*
 * Draw a number. A system call for each 32 numbers, so not for every packet: for connections,
 * look-ups and restarts.
 */
uint64_t urn_draw(struct urn_draw *d);

#endif
