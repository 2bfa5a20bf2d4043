/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/samples.h"

#include <stdlib.h>
#include <string.h>

int
urn_samples_make(struct urn_samples *s, uint64_t every_ns)
{
	s->n = 0;
	s->every_ns = every_ns;
	s->at = malloc(URN_SAMPLES_MAX * sizeof(*s->at));
	return s->at != NULL ? 0 : -1;
}

void
urn_samples_free(struct urn_samples *s)
{
	free(s->at);
	memset(s, 0, sizeof(*s));
}

/* Keep every second sample, and take them half as often from now on. */
static void
thin_out(struct urn_samples *s)
{
	for (uint32_t i = 0; i < s->n / 2; i++)
		s->at[i] = s->at[2 * i];
	s->n /= 2;
	s->every_ns *= 2;
}

void
urn_samples_add(struct urn_samples *s, uint64_t ns, uint64_t units)
{
	if (s->n > 0 && (ns <= s->at[s->n - 1].ns || units < s->at[s->n - 1].units))
		return;
	if (s->n == URN_SAMPLES_MAX)
		thin_out(s);
	s->at[s->n++] = (struct urn_sample){ns, units};
}

/* Index of the first sample at a time or behind it; s->n: there is none. */
static uint32_t
first_at(const struct urn_samples *s, uint64_t ns)
{
	uint32_t low = 0, high = s->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (s->at[middle].ns < ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

double
urn_samples_units(const struct urn_samples *s, uint64_t ns)
{
	uint32_t i = first_at(s, ns);
	const struct urn_sample *a, *b;

	if (s->n == 0)
		return 0;
	if (i == 0)
		return (double)s->at[0].units;
	if (i == s->n)
		return (double)s->at[s->n - 1].units;
	a = &s->at[i - 1];
	b = &s->at[i];
	return (double)a->units +
	       (double)(b->units - a->units) * (double)(ns - a->ns) / (double)(b->ns - a->ns);
}

double
urn_samples_rate(const struct urn_samples *s, uint64_t from_ns, uint64_t to_ns)
{
	if (to_ns <= from_ns)
		return 0;
	return (urn_samples_units(s, to_ns) - urn_samples_units(s, from_ns)) * 1e9 /
	       (double)(to_ns - from_ns);
}

uint64_t
urn_samples_gap(const struct urn_samples *s, uint64_t from_ns)
{
	uint64_t moved_ns = s->n > 0 ? s->at[0].ns : 0, longest = 0;

	for (uint32_t i = 1; i < s->n; i++) {
		const struct urn_sample *a = &s->at[i];
		uint64_t gap = a->ns - moved_ns;

		if (a->ns > from_ns && gap > longest)
			longest = gap;
		if (a->units != a[-1].units)
			moved_ns = a->ns;
	}
	return longest;
}

uint64_t
urn_samples_end(const struct urn_samples *s)
{
	return s->n > 0 ? s->at[s->n - 1].ns : 0;
}
