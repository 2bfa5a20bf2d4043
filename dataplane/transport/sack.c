/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading a selective acknowledgement (sack.h). */
#include "transport/sack.h"

#include <rte_byteorder.h>

static uint32_t
psn_of(rte_be32_t v)
{
	return rte_be_to_cpu_32(v) & URN_PSN_MASK;
}

uint32_t
urn_sack_expected(const struct urn_sack *s)
{
	return psn_of(s->expected);
}

static inline bool
bit(const struct urn_sack *s, uint32_t i)
{
	return s->bitmap[i / 8] >> (i % 8) & 1;
}

/* Read the next run of ones in the bitmap. returns: false when there is none */
static bool
next_bits(const struct urn_sack *s, struct urn_sack_run *run)
{
	uint32_t i = run->at, base = urn_psn_add(psn_of(s->expected), 1);

	while (i < URN_SACK_BITS && !bit(s, i))
		i += i % 8 == 0 && !s->bitmap[i / 8] ? 8 : 1;
	run->at = i;
	if (i == URN_SACK_BITS)
		return false;
	run->first = urn_psn_add(base, i);
	while (i < URN_SACK_BITS && bit(s, i))
		i++;
	run->end = urn_psn_add(base, i);
	run->at = i;
	return true;
}

bool
urn_sack_next(const struct urn_sack *s, struct urn_sack_run *run)
{
	uint32_t i;

	if (run->at < URN_SACK_BITS && next_bits(s, run))
		return true;
	i = run->at - URN_SACK_BITS;
	if (i >= s->ranges || i >= URN_SACK_RANGES)
		return false;
	run->first = psn_of(s->range[i].first);
	run->end = psn_of(s->range[i].end);
	run->at++;
	return true;
}

bool
urn_sack_sound(const struct urn_sack *s, uint32_t next)
{
	uint32_t last = psn_of(s->expected);
	struct urn_sack_run run = {0};

	if (s->version < URN_SACK_VERSION || s->ranges > URN_SACK_RANGES || urn_psn_diff(last, next) > 0)
		return false;
	while (urn_sack_next(s, &run)) {
		/* Each run is checked alone: differences over many steps would wrap. */
		if (urn_psn_diff(run.first, last) < 0 || urn_psn_diff(run.end, run.first) <= 0 ||
		    urn_psn_diff(run.first, next) >= 0 || urn_psn_diff(run.end, next) > 0)
			return false;
		last = run.end;
	}
	return true;
}
