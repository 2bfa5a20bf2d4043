/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Litmus tests of store-load fences, on two threads that share memory.
 *
 * A fence between a store and a load is needed where each of two sides stores a word, then loads
 * the word of the other: without the fence both may load the old value. In a round both sides do
 * so at the same moment, and bad() is true when the fence forbids the outcome. A good program
 * never fails such a test, however busy the machine is; a program without the fence fails within
 * some thousand rounds where two cores run at the same time. x86-64 reorders a store with a
 * later load as every other processor does.
 */
#ifndef URN_TEST_LITMUS_H
#define URN_TEST_LITMUS_H

#include <stdbool.h>
#include <stdint.h>

struct litmus {
	/* First side, alone: make everything ready for a round. */
	void (*ready)(void *arg);
	/* Both sides, at the same moment. */
	void (*first)(void *arg);
	void (*second)(void *arg);
	/* First side, when both are done. returns: true when the outcome is forbidden */
	bool (*bad)(void *arg);
	void *arg;
	uint32_t rounds; /* rounds at most; fewer when the time is up */
};

/*
 * Run the rounds, for a second at most, and none after the first forbidden outcome.
 * returns: rounds with a forbidden outcome
 */
uint32_t litmus_run(const struct litmus *l);

/* Second side only, within litmus.first(). returns: true when second() of this round has returned */
bool litmus_second_done(void);

#endif
