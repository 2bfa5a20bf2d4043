/* SPDX-License-Identifier: BSD-3-Clause */
/* A wait for the dataplane: spin, then yield the core, then sleep between looks. */
#ifndef URN_MSG_PAUSE_H
#define URN_MSG_PAUSE_H

#include <sched.h>
#include <stdint.h>
#include <time.h>

/* Rounds of each stage; a sleep lasts 50 us. */
enum { URN_MSG_SPINS = 500, URN_MSG_YIELDS = 2000, URN_MSG_SLEEP_NS = 50000 };

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

	if (p->rounds < URN_MSG_SPINS)
		urn_msg_relax();
	else if (p->rounds < URN_MSG_SPINS + URN_MSG_YIELDS)
		sched_yield();
	else
		nanosleep(&nap, NULL);
	if (p->rounds < URN_MSG_SPINS + URN_MSG_YIELDS)
		p->rounds++;
}

/* True when the wait is in its last stage, where a look at slower things costs nothing. */
static inline int
urn_msg_pause_sleeps(const struct urn_msg_pause *p)
{
	return p->rounds >= URN_MSG_SPINS + URN_MSG_YIELDS;
}

#endif
