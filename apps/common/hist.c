/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/hist.h"

#include <string.h>

void
urn_hist_reset(struct urn_hist *h)
{
	memset(h, 0, sizeof(*h));
	h->min = UINT64_MAX;
}

uint64_t
urn_hist_value(unsigned int index)
{
	unsigned int shift;
	uint64_t low;

	if (index < URN_HIST_SUB)
		return index;
	shift = (index >> URN_HIST_SUB_BITS) - 1u;
	low = (uint64_t)(URN_HIST_SUB + (index & (URN_HIST_SUB - 1u))) << shift;
	return low + ((1ull << shift) >> 1);
}

/* Number of the values, sorted, that lie at or before quantile q: 1..count. */
static uint64_t
rank_of(const struct urn_hist *h, double q)
{
	double exact = q * (double)h->count;
	uint64_t rank;

	if (!(exact > 1.0))
		return 1;
	rank = exact >= (double)h->count ? h->count : (uint64_t)exact;
	return rank < h->count && (double)rank < exact ? rank + 1 : rank;
}

uint64_t
urn_hist_quantile(const struct urn_hist *h, double q)
{
	uint64_t rank, seen = 0, v;

	if (h->count == 0)
		return 0;
	if (q >= 1.0)
		return h->max;
	rank = rank_of(h, q);
	for (unsigned int i = 0; i < URN_HIST_BUCKETS; i++) {
		seen += h->bucket[i];
		if (seen < rank)
			continue;
		v = urn_hist_value(i);
		return v < h->min ? h->min : v > h->max ? h->max : v;
	}
	return h->max;
}

uint64_t
urn_hist_min(const struct urn_hist *h)
{
	return h->count ? h->min : 0;
}

uint64_t
urn_hist_max(const struct urn_hist *h)
{
	return h->max;
}

uint64_t
urn_hist_count(const struct urn_hist *h)
{
	return h->count;
}

void
urn_hist_merge(struct urn_hist *dst, const struct urn_hist *src)
{
	for (unsigned int i = 0; i < URN_HIST_BUCKETS; i++)
		dst->bucket[i] += src->bucket[i];
	dst->count += src->count;
	if (src->min < dst->min)
		dst->min = src->min;
	if (src->max > dst->max)
		dst->max = src->max;
}
