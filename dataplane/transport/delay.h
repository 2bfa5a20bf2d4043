/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A limit of the packets in flight by their round trip, for ways whose switches mark nothing
 * (after TIMELY, SIGCOMM 2015, and Swift, SIGCOMM 2020). A round trip is the way itself, plus the
 * time in queues:
 *
 *   round trip ≤ smallest + limit   one packet more in flight
 *   round trip > smallest + limit   fewer by the share of the excess, at most by half
 *
 * One measurement comes in a round trip (peer.h). Each PERIOD the window falls to one packet for
 * one round trip, so that a way that became longer is found out, and queues of our own are not
 * taken for the way.
 *
 * The functions are pure: they read no clock and send nothing.
 */
#ifndef URN_TRANSPORT_DELAY_H
#define URN_TRANSPORT_DELAY_H

#include <stdbool.h>
#include <stdint.h>

#define URN_DELAY_PERIOD_NS \
	10000000000ull /* ns from one search for the smallest round trip to the next */

struct urn_delay {
	uint64_t limit;	 /* ns that packets may wait on the way; 0: no limit, and nothing below is
			    used */
	uint64_t base;	 /* ns: smallest round trip known; 0: none was measured */
	uint64_t found;	 /* ns: smallest round trip of this period; UINT64_MAX: none yet */
	uint64_t until;	 /* ns: when the period ends; valid with base */
	uint32_t window; /* packets in flight, 8 fractional bits; from 1 on */
	bool alone;	 /* the window is down to one packet for a measurement */
};

/* No measurement yet. limit: ns, 0: none; window: packets in flight until the first measurement */
void urn_delay_init(struct urn_delay *d, uint64_t limit, uint32_t window);
/*
 * A round trip was measured. rtt, now: ns; most: packets in flight, at most. returns: packets that
 * may be in flight, 1 .. most
 */
uint32_t urn_delay_measured(struct urn_delay *d, uint64_t rtt, uint64_t now, uint32_t most);

#endif
