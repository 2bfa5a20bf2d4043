/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bell wakes a thread that sleeps on an eventfd, and costs one write however often it is rung
 * before that thread has woken.
 *
 * A ringer publishes its news, then calls urn_bell_ring():
 *
 *   R1  news are stored
 *   R2  rung is exchanged for true
 *   R3  the eventfd is written, when R2 found false
 *
 * A sleeper that wakes calls urn_bell_take(), looks for news, and may sleep again:
 *
 *   S1  the eventfd is read, which makes it not readable
 *   S2  rung is exchanged for false
 *   S3  the sleeper looks for news
 *   S4  the sleeper sleeps until the eventfd is readable
 *
 * No wake-up is lost. Exchanges of `rung` have one order, and R2 is before S2, or behind it:
 *
 *   R2 before S2   S3 sees the news: S2 reads `rung` from R2, or from an exchange behind R2, so S2
 *                  acquires what R2 released. R3 may come as late as behind S4: the sleep ends
 *                  once for nothing, and the next S1 and S2 put all right.
 *   R2 behind S2   Either R2 finds false, and R3 ends the sleep. Or R2 finds true, which another
 *                  ringer's R2 behind S2 has left: that one's R3 ends the sleep.
 *
 * So S1 to S3 must keep their order. With S2 before S1, a ringer between the two writes the
 * eventfd, S1 takes that away, and `rung` stays true: nobody writes any more. With S3 before S2,
 * news between the two are not written, and not seen. test/unit/stream/test_bell.c runs all
 * interleavings of this code, and finds both faults.
 *
 * Several threads may take a bell. The one that reads the eventfd has to look for all, or to wake
 * the others: they may have had the same notice in view, and sleep on.
 */
#ifndef URN_STREAM_SHELL_BELL_H
#define URN_STREAM_SHELL_BELL_H

#include <stdatomic.h>
#include <stdbool.h>

/* All fields are shared by ringers and sleepers. */
struct urn_bell {
	int fd; /* eventfd that does not block, to sleep on; -1: not made; set for life */
	_Atomic bool rung; /* the eventfd is readable, or its writer is on the way there, or a
			      sleeper is between S1 and S2 */
};

/* Make a bell. returns: 0, or an errno value (EMFILE, ENFILE, ENOMEM) */
int urn_bell_make(struct urn_bell *b);
/* Close the descriptor of a bell; one that was not made has fd == -1. */
void urn_bell_end(struct urn_bell *b);
/* Wake the thread that sleeps on the bell, or will. The news are stored before. */
void urn_bell_ring(struct urn_bell *b);
/* Take the notice away. The caller looks for news behind this call, and not only before. */
void urn_bell_take(struct urn_bell *b);

#endif
