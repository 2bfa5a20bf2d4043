/* SPDX-License-Identifier: BSD-3-Clause */
/* Progress over time: samples of a count, and the rates between them. */
#ifndef URN_APPS_COMMON_SAMPLES_H
#define URN_APPS_COMMON_SAMPLES_H

#include <stdint.h>

/* Most samples that are kept: 18 hours of them are a second apart, and a minute's 1 ms. */
#define URN_SAMPLES_MAX 65536u

struct urn_sample {
	uint64_t ns;	/* time since the begin of the run */
	uint64_t units; /* count until then */
};

struct urn_samples {
	struct urn_sample *at; /* URN_SAMPLES_MAX of them; owner: this struct */
	uint32_t n;	       /* samples kept; times grow */
	uint64_t every_ns;     /* time between samples; doubles when there is no more room */
};

/* every_ns: time between two samples at first. returns: 0; -1: no memory */
int urn_samples_make(struct urn_samples *s, uint64_t every_ns);
void urn_samples_free(struct urn_samples *s);
/* Add a sample. A sample whose time or count is below the last one's is left out. */
void urn_samples_add(struct urn_samples *s, uint64_t ns, uint64_t units);

/* The count at a time, between samples by a straight line; before the first and after the last one
 * theirs. */
double urn_samples_units(const struct urn_samples *s, uint64_t ns);
/* Units a second from one time to another; 0 when there is no time between them. */
double urn_samples_rate(const struct urn_samples *s, uint64_t from_ns, uint64_t to_ns);
/* The longest time without progress that ends behind a time, or has no end; ns. */
uint64_t urn_samples_gap(const struct urn_samples *s, uint64_t from_ns);
/* Time of the last sample; 0: there is none. */
uint64_t urn_samples_end(const struct urn_samples *s);

#endif
