/* SPDX-License-Identifier: BSD-3-Clause */
/* Configuration of an impairment: checks it, and computes the numbers that random words are compared with. */
#include "switch/impair_state.h"

#include "base/rnd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static bool
is_probability(double p)
{
	return p >= 0 && p <= 1; /* false for NaN */
}

/* The mistake in a configuration; NULL: none. */
static const char *
complaint(const struct urn_impair_config *c)
{
	if (!is_probability(c->drop) || !is_probability(c->dup) || !is_probability(c->corrupt) ||
	    !is_probability(c->reorder))
		return "probabilities of drop, dup, corrupt and reorder go from 0 to 1";
	if (c->reorder_max > URN_IMPAIR_MAX_PASS || c->reorder_min > c->reorder_max ||
	    (c->reorder_max && !c->reorder_min))
		return "packets held back are let pass by 1 to 32 others, min not above max";
	if (c->delay_ns > URN_IMPAIR_MAX_NS || c->jitter_ns > URN_IMPAIR_MAX_NS ||
	    c->reorder_ns > URN_IMPAIR_MAX_NS)
		return "delay, jitter and the bound of reordering go up to 60 s";
	if (c->rate_bps && (c->rate_bps < URN_IMPAIR_MIN_BPS || c->rate_bps > URN_IMPAIR_MAX_BPS))
		return "the rate goes from 1 kb/s to 1 Tb/s, or 0 for any";
	if (!c->flap_up_ns != !c->flap_down_ns || c->flap_up_ns > INT64_MAX / 2 ||
	    c->flap_down_ns > INT64_MAX / 2)
		return "a flap wants both times, up and down";
	if (c->queue > URN_IMPAIR_MAX_QUEUE)
		return "the queue holds up to 1048576 packets";
	return NULL;
}

int
urn_impair_check(const struct urn_impair_config *cfg, char *why, size_t len)
{
	const char *text = complaint(cfg);

	if (text && why && len)
		snprintf(why, len, "%s", text);
	return text ? -EINVAL : 0;
}

static void
set_chance(struct urn_impair *imp, const struct urn_impair_config *c, bool restart)
{
	const double p[URN_IMPAIR_DRAW_KINDS] = {
		[URN_IMPAIR_DRAW_DROP] = c->drop,
		[URN_IMPAIR_DRAW_DUP] = c->dup,
		[URN_IMPAIR_DRAW_CORRUPT] = c->corrupt,
		[URN_IMPAIR_DRAW_REORDER] = c->reorder,
	};

	uint64_t seed = c->seed ^ urn_rnd_value(imp->stream);

	for (unsigned int k = 0; k < URN_IMPAIR_DRAW_KINDS; k++) {
		imp->limit[k] = (uint64_t)(p[k] * 4294967296.0);
		imp->seed[0][k] = urn_rnd_at(seed, 2 * k);
		imp->seed[1][k] = urn_rnd_at(seed, 2 * k + 1);
	}
	if (restart)
		imp->frames = 0;
}

/* Make a ring for as many frames as asked, with the frames of the old ring. returns 0 or -ENOMEM */
static int
resize(struct urn_impair *imp, uint32_t queue)
{
	uint32_t size = 64, n = imp->ring ? (uint32_t)(imp->tail - imp->head) : 0;
	struct urn_impair_entry *ring;

	while (size < queue || size < n)
		size *= 2;
	if (imp->ring && size <= imp->mask + 1)
		return 0;
	ring = calloc(size, sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		ring[i] = imp->ring[(imp->head + i) & imp->mask];
	free(imp->ring);
	imp->ring = ring;
	imp->mask = size - 1;
	imp->head = 0;
	imp->tail = n;
	return 0;
}

static void
defaults(struct urn_impair_config *c)
{
	if (!c->queue)
		c->queue = URN_IMPAIR_DEFAULT_QUEUE;
	if (!c->reorder_ns)
		c->reorder_ns = URN_IMPAIR_DEFAULT_REORDER_NS;
	if (!c->reorder_max) {
		c->reorder_min = 1;
		c->reorder_max = URN_IMPAIR_DEFAULT_PASS;
	}
}

int
urn_impair_set(struct urn_impair *imp, const struct urn_impair_config *cfg)
{
	struct urn_impair_config c = *cfg;

	if (urn_impair_check(cfg, NULL, 0))
		return -EINVAL;
	defaults(&c);
	if (resize(imp, c.queue))
		return -ENOMEM;
	set_chance(imp, &c, c.seed != imp->cfg.seed);
	imp->ns_byte = c.rate_bps ? (8000000000ull << URN_IMPAIR_RATE_SHIFT) / c.rate_bps : 0;
	imp->flap_start = UINT64_MAX;
	imp->down = false;
	imp->prompt = !(c.dup > 0 || c.corrupt > 0 || c.delay_ns || c.jitter_ns || c.rate_bps ||
			c.blackhole || c.flap_up_ns);
	imp->plain = imp->prompt && !(c.drop > 0 || c.reorder > 0);
	imp->cfg = c;
	return 0;
}

const struct urn_impair_config *
urn_impair_config(const struct urn_impair *imp)
{
	return &imp->cfg;
}

struct urn_impair *
urn_impair_create(const struct urn_impair_config *cfg, uint64_t stream, struct rte_mempool *copies)
{
	struct urn_impair *imp = calloc(1, sizeof(*imp));

	if (!imp)
		return NULL;
	imp->copies = copies;
	imp->stream = stream;
	if (urn_impair_set(imp, cfg)) {
		free(imp);
		return NULL;
	}
	return imp;
}

void
urn_impair_destroy(struct urn_impair *imp)
{
	if (!imp)
		return;
	for (; imp->head != imp->tail; imp->head++)
		rte_pktmbuf_free(imp->ring[imp->head & imp->mask].m);
	for (uint32_t i = 0; i < imp->held_n; i++)
		rte_pktmbuf_free(imp->held[i].m);
	free(imp->ring);
	free(imp);
}
