/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A wait for the dataplane: spin and yield the core in turn, then sleep between looks. The yields
 * come early, because the other side of a conversation may wait for this very core.
 */
#ifndef URN_MSG_PAUSE_H
#define URN_MSG_PAUSE_H

#include <sched.h>
#include <stdint.h>
#include <time.h>

/* Rounds until the first sleep, rounds from yield to yield; nanoseconds of a sleep. */
enum { URN_MSG_SPINS = 8192, URN_MSG_YIELD = 8, URN_MSG_SLEEP_NS = 50000 };

struct urn_msg_pause {
	uint32_t rounds;
};

static inline void
urn_msg_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Pass a little time, more of it the longer the wait lasts. */
static inline void
urn_msg_pause(struct urn_msg_pause *p)
{
	const struct timespec nap = {.tv_nsec = URN_MSG_SLEEP_NS};

	if (p->rounds >= URN_MSG_SPINS) {
		nanosleep(&nap, NULL);
		return;
	}
	if (++p->rounds % URN_MSG_YIELD == 0)
		sched_yield();
	else
		urn_msg_relax();
}

/* True when the wait is in its last stage, where a look at slower things costs nothing. */
static inline int
urn_msg_pause_sleeps(const struct urn_msg_pause *p)
{
	return p->rounds >= URN_MSG_SPINS;
}

#endif
