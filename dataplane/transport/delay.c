/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/delay.h"

enum {
	ONE = 1 << 8,	   /* a packet, in units of struct urn_delay.window */
	CUT = ONE * 4 / 5, /* share of the excess by which the window falls (Swift's beta 0.8) */
};

void
urn_delay_init(struct urn_delay *d, uint64_t limit, uint32_t window)
{
	*d = (struct urn_delay){.limit = limit, .found = UINT64_MAX, .window = window * ONE};
}

/* Learn the way's own round trip. returns: true when the packet was the only one in flight */
static bool
find_base(struct urn_delay *d, uint64_t rtt, uint64_t now)
{
	bool alone = d->alone;

	if (rtt < d->found)
		d->found = rtt;
	if (!d->base)
		d->until = now + URN_DELAY_PERIOD_NS;
	if (!d->base || rtt < d->base)
		d->base = rtt;
	if (alone) {
		d->base = d->found;
		d->found = UINT64_MAX;
		d->until = now + URN_DELAY_PERIOD_NS;
	}
	d->alone = !alone && now >= d->until;
	return alone;
}

uint32_t
urn_delay_measured(struct urn_delay *d, uint64_t rtt, uint64_t now, uint32_t most)
{
	uint64_t due;

	if (find_base(d, rtt, now))
		return d->window / ONE;
	due = d->base + d->limit;
	if (rtt <= due) {
		d->window += ONE;
	} else {
		uint64_t excess = (rtt - due) * CUT / rtt; /* below ONE: due is above 0 */

		d->window -= (uint32_t)(d->window * (excess < ONE / 2 ? excess : ONE / 2) / ONE);
	}
	if (d->window > most * ONE)
		d->window = most * ONE;
	if (d->window < ONE)
		d->window = ONE;
	return d->alone ? 1 : d->window / ONE;
}
