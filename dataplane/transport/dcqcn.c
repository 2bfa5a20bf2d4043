/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/dcqcn.h"

enum { STEPS_AT_ONCE = 64 }; /* a channel that was idle for more has forgotten its congestion */

void
urn_dcqcn_defaults(struct urn_dcqcn_config *c, uint64_t line)
{
	*c = (struct urn_dcqcn_config){
		.line = line,
		.least = 1250000, /* 10 Mbit/s */
		.gain_shift = 8,
		.fast = 5,
		.alpha_ns = 55000,
		.raise_ns = 55000,
		.raise_bytes = 10 << 20,
		.additive = 5000000, /* 40 Mbit/s */
		.hyper = 50000000,   /* 400 Mbit/s */
		.cnp_ns = 50000,
	};
}

void
urn_dcqcn_complete(struct urn_dcqcn_config *c, uint64_t line)
{
	struct urn_dcqcn_config p;

	urn_dcqcn_defaults(&p, line);
	c->line = line;
	c->least = c->least ? c->least : p.least;
	c->gain_shift = c->gain_shift ? c->gain_shift : p.gain_shift;
	c->fast = c->fast ? c->fast : p.fast;
	c->alpha_ns = c->alpha_ns ? c->alpha_ns : p.alpha_ns;
	c->raise_ns = c->raise_ns ? c->raise_ns : p.raise_ns;
	c->raise_bytes = c->raise_bytes ? c->raise_bytes : p.raise_bytes;
	c->additive = c->additive ? c->additive : p.additive;
	c->hyper = c->hyper ? c->hyper : p.hyper;
	c->cnp_ns = c->cnp_ns ? c->cnp_ns : p.cnp_ns;
}

/* The rate falls, and steps count anew. */
static void
cut(struct urn_dcqcn *d, const struct urn_dcqcn_config *c, uint64_t now)
{
	d->target = d->rate;
	d->rate -= (d->rate >> 17) * d->alpha + (((d->rate & ((1u << 17) - 1)) * d->alpha) >> 17);
	if (d->rate < c->least)
		d->rate = c->least;
	d->alpha += (URN_DCQCN_ONE - d->alpha) >> c->gain_shift;
	d->alpha_due = now + c->alpha_ns;
	d->raise_due = now + c->raise_ns;
	d->bytes = 0;
	d->by_time = d->by_bytes = 0;
}

void
urn_dcqcn_begin(struct urn_dcqcn *d, const struct urn_dcqcn_config *c, uint64_t rate, uint64_t now)
{
	d->rate = rate < c->line ? rate : c->line;
	d->alpha = URN_DCQCN_ONE;
	cut(d, c, now);
}

void
urn_dcqcn_cnp(struct urn_dcqcn *d, const struct urn_dcqcn_config *c, uint64_t now)
{
	cut(d, c, now);
}

/* One step up, by time or by bytes; *count is the step's own counter. */
static void
step(struct urn_dcqcn *d, const struct urn_dcqcn_config *c, uint16_t *count)
{
	if (*count <= c->fast)
		++*count;
	if (d->by_time > c->fast && d->by_bytes > c->fast)
		d->target += c->hyper;
	else if (*count > c->fast)
		d->target += c->additive;
	if (d->target > c->line)
		d->target = c->line;
	d->rate = (d->rate + d->target + 1) / 2;
}

bool
urn_dcqcn_sent(struct urn_dcqcn *d, const struct urn_dcqcn_config *c, uint32_t bytes)
{
	bool rose = false;

	for (d->bytes += bytes; d->bytes >= c->raise_bytes; d->bytes -= c->raise_bytes) {
		step(d, c, &d->by_bytes);
		rose = true;
	}
	return rose;
}

bool
urn_dcqcn_advance(struct urn_dcqcn *d, const struct urn_dcqcn_config *c, uint64_t now)
{
	bool rose = false;

	for (int i = 0; i < STEPS_AT_ONCE && now >= d->alpha_due; i++) {
		d->alpha -= d->alpha >> c->gain_shift;
		d->alpha_due += c->alpha_ns;
	}
	for (int i = 0; i < STEPS_AT_ONCE && now >= d->raise_due; i++) {
		step(d, c, &d->by_time);
		d->raise_due += c->raise_ns;
		rose = true;
	}
	if (now >= d->alpha_due)
		d->alpha_due = now + c->alpha_ns;
	if (now >= d->raise_due)
		d->raise_due = now + c->raise_ns;
	return rose;
}
