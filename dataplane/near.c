/* SPDX-License-Identifier: BSD-3-Clause */
#include "near.h"

#include <stdio.h>
#include <stdio.h>
#include <string.h>

#define NEAR_MAX 32u /* bytes of words that are compared */

static char
plain(char c)
{
	if (c == '-' || c == ' ')
		return '_';
	/* Not tolower(), which depends on the locale. */
	return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static unsigned int
least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/* Number of edits that make b of a, both shorter than NEAR_MAX; swapped neighbours are one edit. */
static unsigned int
distance(const char *a, const char *b)
{
	unsigned int row[3][NEAR_MAX + 1];
	size_t la = strlen(a), lb = strlen(b);

	for (unsigned int j = 0; j <= lb; j++)
		row[0][j] = j;
	for (unsigned int i = 1; i <= la; i++) {
		unsigned int *now = row[i % 3], *last = row[(i - 1) % 3];
		unsigned int *before = row[(i + 1) % 3];

		now[0] = i;
		for (unsigned int j = 1; j <= lb; j++) {
			char ca = plain(a[i - 1]), cb = plain(b[j - 1]);

			now[j] = least(last[j - 1] + (ca != cb), least(last[j], now[j - 1]) + 1);
			if (i > 1 && j > 1 && ca == plain(b[j - 2]) && plain(a[i - 2]) == cb)
				now[j] = least(now[j], before[j - 2] + 1);
		}
	}
	return row[la % 3][lb];
}

void
urn_near_begin(struct urn_near *near, const char *word)
{
	size_t n = strlen(word);

	near->word = n < NEAR_MAX ? word : "";
	near->best = NULL;
	/* At most one edit and one more in three letters, but never all of a word. */
	near->cost = least((unsigned int)n / 3 + 2, (unsigned int)n);
}

void
urn_near_try(struct urn_near *near, const char *candidate)
{
	size_t n = strlen(near->word), m = strlen(candidate);
	unsigned int cost;

	if (n == 0 || m == 0 || m >= NEAR_MAX)
		return;
	cost = distance(near->word, candidate);
	if (n >= 3 && m >= 3 && (strstr(candidate, near->word) || strstr(near->word, candidate)))
		cost = least(cost, (unsigned int)n / 3 + 1);
	if (cost >= near->cost)
		return;
	near->cost = cost;
	near->best = candidate;
}

const char *
urn_near_mean(const struct urn_near *near, char out[URN_NEAR_HINT])
{
	out[0] = '\0';
	if (near->best)
		snprintf(out, URN_NEAR_HINT, "did you mean %.40s? ", near->best);
	return out;
}

void
urn_near_hint(const struct urn_near *near, const char *lists, char out[URN_NEAR_HINT])
{
	char mean[URN_NEAR_HINT];

	snprintf(out, URN_NEAR_HINT, "%.60s'%.30s' lists them", urn_near_mean(near, mean), lists);
}
