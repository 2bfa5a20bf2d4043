/* SPDX-License-Identifier: BSD-3-Clause */
/* Words of the log: areas, levels, events. */
#include "log/log.h"

#include "near.h"

#include <stdio.h>
#include <string.h>

static const char *const area_words[URN_LOG_AREA_COUNT] = {
#define X(id, word, text) [URN_LOG_##id] = (word),
	URN_LOG_AREAS(X)
#undef X
};

static const char *const level_words[URN_LOG_LEVELS] = {
#define X(id, word, priority) [URN_LOG_##id] = (word),
	URN_LOG_LEVEL_LIST(X)
#undef X
};

static const struct {
	enum urn_log_area area;
	enum urn_log_level level;
	const char *word, *text;
} events[URN_LOG_EVENT_COUNT] = {
#define X(id, area, level, word, text) \
	[URN_LOG_##id] = {URN_LOG_##area, URN_LOG_##level, (word), (text)},
	URN_LOG_EVENTS(X)
#undef X
};

const char *
urn_log_area_word(enum urn_log_area area)
{
	return area_words[area];
}

const char *
urn_log_event_word(enum urn_log_event event)
{
	return events[event].word;
}

const char *
urn_log_event_text(enum urn_log_event event)
{
	return events[event].text;
}

enum urn_log_area
urn_log_event_area(enum urn_log_event event)
{
	return events[event].area;
}

enum urn_log_level
urn_log_event_level(enum urn_log_event event)
{
	return events[event].level;
}

/* Index of a word of n bytes in a list, or -1. */
static int
find(const char *const *list, unsigned int count, const char *word, size_t n)
{
	for (unsigned int i = 0; i < count; i++)
		if (strlen(list[i]) == n && strncmp(list[i], word, n) == 0)
			return (int)i;
	return -1;
}

/* Say that a word is not in a list, which is whole in the sentence. returns: -1 */
static int
not_in(const char *const *list, unsigned int count, const char *what, const char *word, size_t n,
       char *why, size_t size)
{
	char copy[32], all[160] = "";
	struct urn_near near;

	snprintf(copy, sizeof(copy), "%.*s", n < sizeof(copy) ? (int)n : (int)sizeof(copy) - 1,
		 word);
	urn_near_begin(&near, copy);
	for (unsigned int i = 0; i < count; i++) {
		size_t used = strlen(all);

		urn_near_try(&near, list[i]);
		snprintf(all + used, sizeof(all) - used, "%s%s", i ? ", " : "", list[i]);
	}
	if (near.best)
		snprintf(why, size, "'%s' is no %s; did you mean %s?", copy, what, near.best);
	else
		snprintf(why, size, "'%s' is no %s; there are %s", copy, what, all);
	return -1;
}

/* Take one word, "info" or "qp:info". returns: 0, or -1 with the sentence */
static int
take(const char *word, size_t n, uint8_t level[URN_LOG_AREA_COUNT], char *why, size_t size)
{
	const char *colon = memchr(word, ':', n);
	const char *last = colon ? colon + 1 : word;
	size_t last_n = n - (size_t)(last - word);
	int area = -1, l = find(level_words, URN_LOG_LEVELS, last, last_n);

	if (colon)
		area = find(area_words, URN_LOG_AREA_COUNT, word, (size_t)(colon - word));
	if (colon && area < 0)
		return not_in(area_words, URN_LOG_AREA_COUNT, "area of the log", word,
			      (size_t)(colon - word), why, size);
	if (l < 0)
		return not_in(level_words, URN_LOG_LEVELS, "level", last, last_n, why, size);
	for (int i = 0; i < URN_LOG_AREA_COUNT; i++)
		if (area < 0 || area == i)
			level[i] = (uint8_t)l;
	return 0;
}

void
urn_log_defaults(uint8_t level[URN_LOG_AREA_COUNT])
{
	memset(level, URN_LOG_INFO, URN_LOG_AREA_COUNT);
}

int
urn_log_parse(const char *text, uint8_t level[URN_LOG_AREA_COUNT], char *why, size_t size)
{
	uint8_t got[URN_LOG_AREA_COUNT];
	unsigned int words = 0;

	memcpy(got, level, sizeof(got));
	for (const char *at = text + strspn(text, ", \t"); *at; at += strspn(at, ", \t"), words++) {
		size_t n = strcspn(at, ", \t");

		if (take(at, n, got, why, size) != 0)
			return -1;
		at += n;
	}
	if (words == 0) {
		snprintf(why, size,
			 "give a level, such as info, or levels of areas, such as "
			 "info, qp:off");
		return -1;
	}
	memcpy(level, got, sizeof(got));
	return 0;
}
