/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The clock of what waits outside an engine's loop: programs, the library, reports. The header is
 * for both sides of the channel, and links nothing.
 */
#ifndef URN_ABI_CLOCK_H
#define URN_ABI_CLOCK_H

#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC in nanoseconds; for messages and rounds, never per packet. */
static inline uint64_t
urn_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/*
 * The same as of the last tick of the kernel, up to 10 ms ago, in a sixth of the time: for spans of
 * 100 ms and more that are looked at in each round.
 */
static inline uint64_t
urn_clock_coarse_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* CLOCK_MONOTONIC in milliseconds. */
static inline uint64_t
urn_clock_ms(void)
{
	return urn_clock_ns() / 1000000u;
}

#endif
