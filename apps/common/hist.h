/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A latency histogram of fixed size: 128 buckets in each power of two, so a
 * quantile read back is less than 0.4 % off the value added; below 128 ns it is
 * exact. Adding costs a count of leading zeros and an increment; nothing is
 * allocated. One writer; merge the histograms of several threads afterwards.
 */
#ifndef URN_APPS_COMMON_HIST_H
#define URN_APPS_COMMON_HIST_H

#include <stdint.h>

#define URN_HIST_SUB_BITS 7u
#define URN_HIST_SUB (1u << URN_HIST_SUB_BITS)
/* Values below URN_HIST_SUB have a bucket each, then 57 powers of two have URN_HIST_SUB each. */
#define URN_HIST_BUCKETS ((64u - URN_HIST_SUB_BITS + 1u) * URN_HIST_SUB)

struct urn_hist {
	uint64_t count;                    /* values added */
	uint64_t min;                      /* smallest, ns; UINT64_MAX when empty */
	uint64_t max;                      /* largest, ns */
	uint64_t bucket[URN_HIST_BUCKETS]; /* values that fell into each */
};

/* Bucket of a value, 0..URN_HIST_BUCKETS - 1. */
static inline unsigned int
urn_hist_index(uint64_t ns)
{
	unsigned int top;

	if (ns < URN_HIST_SUB)
		return (unsigned int)ns;
	top = 63u - (unsigned int)__builtin_clzll(ns);
	return ((top - URN_HIST_SUB_BITS + 1u) << URN_HIST_SUB_BITS) +
	       (unsigned int)((ns >> (top - URN_HIST_SUB_BITS)) & (URN_HIST_SUB - 1u));
}

/* The value that stands for all values of a bucket: its middle, ns. */
uint64_t urn_hist_value(unsigned int index);

/* Forget everything. Needed before first use. */
void urn_hist_reset(struct urn_hist *h);

/* Add one value, in nanoseconds. */
static inline void
urn_hist_add(struct urn_hist *h, uint64_t ns)
{
	h->bucket[urn_hist_index(ns)]++;
	h->count++;
	if (ns < h->min)
		h->min = ns;
	if (ns > h->max)
		h->max = ns;
}

/*
 * The value that a share q (0..1) of all values does not exceed, in
 * nanoseconds; 0 when nothing was added. q out of range is taken as 0 or 1.
 */
uint64_t urn_hist_quantile(const struct urn_hist *h, double q);

/* Smallest and largest value added, exact; 0 when there is none. */
uint64_t urn_hist_min(const struct urn_hist *h);
uint64_t urn_hist_max(const struct urn_hist *h);
/* Number of values that were added. */
uint64_t urn_hist_count(const struct urn_hist *h);

/* Add all of src to dst. */
void urn_hist_merge(struct urn_hist *dst, const struct urn_hist *src);

#endif
