/* SPDX-License-Identifier: BSD-3-Clause */
/* Values written in the form that a file has them, for help and for sentences about mistakes. */
#include "config/config_priv.h"

#include <inttypes.h>

/* Append a word of a list to n bytes of text. returns: bytes of it all, perhaps more than size */
static size_t
add_word(char *out, size_t size, size_t n, const char *word, bool first, bool last)
{
	const char *before = first ? "" : last ? " or " : ", ";

	return n < size ? n + (size_t)snprintf(out + n, size - n, "%s%s", before, word) : n;
}

void
urn_config_words_text(const char *const *words, char *out, size_t size)
{
	size_t n = 0;

	out[0] = '\0';
	for (unsigned int i = 0; words[i]; i++)
		n = add_word(out, size, n, words[i], i == 0, !words[i + 1]);
}

void
urn_config_features_text(const struct urn_features *list, char *out, size_t size)
{
	size_t n = 0;

	out[0] = '\0';
	for (unsigned int i = 0; i < list->n; i++)
		n = add_word(out, size, n, list->at[i].word, i == 0, i + 1 == list->n);
}

const char *
urn_config_number_text(uint64_t n, char out[32])
{
	static const char letters[] = "\0kMG";
	unsigned int unit = 0;

	while (n != 0 && n % 1024 == 0 && unit < 3) {
		n /= 1024;
		unit++;
	}
	snprintf(out, 32, "%" PRIu64 "%.1s", n, &letters[unit]);
	return out;
}

const char *
urn_config_time_text(uint64_t ns, char out[32])
{
	if (ns % 1000000000 == 0)
		snprintf(out, 32, "%" PRIu64 "s", ns / 1000000000);
	else if (ns % 1000000 == 0)
		snprintf(out, 32, "%" PRIu64 "ms", ns / 1000000);
	else
		snprintf(out, 32, "%" PRIu64 "us", ns / 1000);
	return out;
}

const char *
urn_config_rate_text(uint64_t bps, char out[32])
{
	static const char letters[] = "\0kMG";
	unsigned int unit = 0;

	while (bps != 0 && bps % 1000 == 0 && unit < 3) {
		bps /= 1000;
		unit++;
	}
	snprintf(out, 32, "%" PRIu64 "%.1s", bps, &letters[unit]);
	return out;
}
