/* SPDX-License-Identifier: BSD-3-Clause */
/* Words of the log (log/log.h), and the page of all events, doc/reference/log.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "log/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *project; /* folder of the source */
static uint8_t level[URN_LOG_AREA_COUNT];
static char why[200];

static int
parse(const char *text)
{
	return urn_log_parse(text, level, why, sizeof(why));
}

/* Levels of all areas and of one; the later word counts, and a mistake changes nothing. */
static void
levels(void **state)
{
	static const struct {
		const char *text, *word;
	} wrong[] = {
		{"", "give a level"},
		{" , ", "give a level"},
		{"loud", "'loud' is no level; there are off, error, warning, notice, info, debug"},
		{"eror", "did you mean error?"},
		{"qp:loud", "no level"},
		{"qp:", "no level"},
		{"vlan:info", "'vlan' is no area of the log"},
		{":info", "no area"},
		{"prot:info", "did you mean port?"},
		{"info, qp:debug x", "no level"},
		{"qp:info:debug", "no level"},
	};

	(void)state;
	assert_int_equal(parse("info"), 0);
	for (unsigned int i = 0; i < URN_LOG_AREA_COUNT; i++)
		assert_int_equal(level[i], URN_LOG_INFO);
	assert_int_equal(parse("qp:debug,port:off client:error"), 0);
	assert_int_equal(level[URN_LOG_QP], URN_LOG_DEBUG);
	assert_int_equal(level[URN_LOG_PORT], URN_LOG_OFF);
	assert_int_equal(level[URN_LOG_CLIENT], URN_LOG_ERROR);
	assert_int_equal(level[URN_LOG_DAEMON], URN_LOG_INFO);
	assert_int_equal(parse("qp:debug, warning"), 0);
	assert_int_equal(level[URN_LOG_QP], URN_LOG_WARNING);
	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(parse(wrong[i].text), -1);
		if (!strstr(why, wrong[i].word))
			fail_msg("'%s': no '%s' in '%s'", wrong[i].text, wrong[i].word, why);
		for (unsigned int k = 0; k < URN_LOG_AREA_COUNT; k++)
			assert_int_equal(level[k], URN_LOG_WARNING);
	}
}

/* An event has a word that no other of its area has. */
static void
events(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < URN_LOG_EVENT_COUNT; i++) {
		assert_in_range(urn_log_event_level(i), URN_LOG_ERROR, URN_LOG_DEBUG);
		for (unsigned int k = 0; k < i; k++)
			assert_false(urn_log_event_area(i) == urn_log_event_area(k) &&
				     strcmp(urn_log_event_word(i), urn_log_event_word(k)) == 0);
	}
}

/* The page has a row for each event, with its area, word, level and meaning. */
static void
page(void **state)
{
	char path[512], row[512], *text;
	FILE *f;
	size_t n;

	(void)state;
	snprintf(path, sizeof(path), "%s/doc/reference/log.md", project);
	f = fopen(path, "re");
	assert_non_null(f);
	text = calloc(1, 1 << 20);
	n = fread(text, 1, (1 << 20) - 1, f);
	fclose(f);
	assert_true(n > 0);
	for (unsigned int i = 0; i < URN_LOG_EVENT_COUNT; i++) {
		snprintf(row, sizeof(row), "| `%s` | `%s` | %s | %s |",
			 urn_log_area_word(urn_log_event_area(i)), urn_log_event_word(i),
			 urn_log_level_word(urn_log_event_level(i)), urn_log_event_text(i));
		if (!strstr(text, row))
			fail_msg("doc/reference/log.md has no row: %s", row);
	}
	free(text);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(levels),
		cmocka_unit_test(events),
		cmocka_unit_test(page),
	};

	project = argc == 2 ? argv[1] : ".";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
