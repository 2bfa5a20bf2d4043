/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A limit of the packets in flight by their round trip, for ways whose switches mark nothing
 * (after TIMELY, SIGCOMM 2015, and Swift, SIGCOMM 2020):
 *
 *   never above the limit     twice as many packets in flight as before
 *   round trip ≤ limit        one packet more
 *   round trip > limit        fewer by the share of the excess, at most by half; one at least
 *
 * One measurement comes in a round trip (peer.h). The limit is a round trip, and not a time on top
 * of the smallest round trip seen: a sender that comes later would take the queue of the others for
 * the length of the way, and would get a larger share than these. A way whose smallest round trip
 * is above FAR limits is a long one, however: there the limit is a time on top of it.
 *
 * The functions are pure: they read no clock and send nothing.
 */
#ifndef URN_TRANSPORT_DELAY_H
#define URN_TRANSPORT_DELAY_H

#include <stdbool.h>
#include <stdint.h>

#define URN_DELAY_FAR 8u /* limits; queues of senders that obey do not become so long */
#define URN_DELAY_PERIOD_NS \
	10000000000ull /* ns after which the smallest round trip is that of this time */

struct urn_delay {
	uint64_t limit;	 /* ns that a round trip may take; 0: any time, and nothing below is used */
	uint64_t base;	 /* ns: smallest round trip known; 0: none was measured */
	uint64_t found;	 /* ns: smallest round trip of this period; valid with base */
	uint64_t until;	 /* ns: when the period ends; valid with base */
	uint32_t window; /* packets in flight, 8 fractional bits; from 1 on */
	bool above;	 /* a round trip was above the limit */
};

/* No measurement yet. limit: ns, 0: none */
void urn_delay_init(struct urn_delay *d, uint64_t limit);
/*
 * A round trip was measured. rtt, now: ns; most: packets in flight, at most. returns: packets that
 * may be in flight, 1 .. most
 */
uint32_t urn_delay_measured(struct urn_delay *d, uint64_t rtt, uint64_t now, uint32_t most);
/* Packets that may be in flight before the first measurement. limit: ns; window: without limit */
uint32_t urn_delay_first(uint64_t limit, uint32_t window);

#endif
