/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/delay.h"

enum {
	ONE = 1 << 8,	   /* a packet, in units of struct urn_delay.window */
	CUT = ONE * 4 / 5, /* share of the excess by which the window falls (Swift's beta 0.8) */
	FIRST = 2, /* packets in flight at first: the first ones of many senders come together */
};

uint32_t
urn_delay_first(uint64_t limit, uint32_t window)
{
	return limit && window > FIRST ? FIRST : window;
}

void
urn_delay_init(struct urn_delay *d, uint64_t limit)
{
	*d = (struct urn_delay){.limit = limit, .window = FIRST * ONE};
}

/* Learn the smallest round trip; that of a way that became longer, too. */
static void
find_base(struct urn_delay *d, uint64_t rtt, uint64_t now)
{
	if (!d->base) {
		d->base = d->found = rtt;
		d->until = now + URN_DELAY_PERIOD_NS;
	}
	if (now >= d->until) {
		d->base = d->found;
		d->found = rtt;
		d->until = now + URN_DELAY_PERIOD_NS;
	}
	d->found = rtt < d->found ? rtt : d->found;
	d->base = rtt < d->base ? rtt : d->base;
}

uint32_t
urn_delay_measured(struct urn_delay *d, uint64_t rtt, uint64_t now, uint32_t most)
{
	uint64_t due = d->limit;

	find_base(d, rtt, now);
	if (d->base > URN_DELAY_FAR * d->limit)
		due += d->base;
	if (rtt > due) {
		uint64_t excess = (rtt - due) * CUT / rtt;

		d->window -= (uint32_t)(d->window * (excess < ONE / 2 ? excess : ONE / 2) / ONE);
		d->above = true;
	} else {
		d->window += d->above ? ONE : d->window;
	}
	if (d->window > most * ONE)
		d->window = most * ONE;
	if (d->window < ONE)
		d->window = ONE;
	return d->window / ONE;
}
