/* SPDX-License-Identifier: BSD-3-Clause */
/* Helpers of the configuration's tests: text in, the exact sentences out. */
#ifndef URN_TEST_CONFIG_H
#define URN_TEST_CONFIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "config/config_priv.h"

/* All sentences, a line each, without the file's name in front ("t.ini"). */
static inline char *
config_sentences(const struct urn_config_errors *errors)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	for (unsigned int i = 0; i < errors->n; i++) {
		const char *s = errors->error[i].text;

		assert_int_equal(strncmp(s, "t.ini:", 6), 0);
		s += 6 + (s[6] == ' ');
		fprintf(f, "%s\n", s);
	}
	fclose(f);
	return text;
}

/* Read a configuration that must be good. */
static inline struct urn_config *
config_good(const char *text)
{
	struct urn_config_errors errors = {0};
	struct urn_config *cfg = urn_config_parse(text, strlen(text), "t.ini", &errors);

	if (!cfg || errors.n > 0)
		fail_msg("refused: %s", errors.n > 0 ? errors.error[0].text : "without a word");
	return cfg;
}

/*
 * Read a configuration that must fail with exactly these sentences ("LINE: sentence
 * " each).
 */
static inline void
config_bad(const char *text, const char *want)
{
	struct urn_config_errors errors = {0};
	char *got;

	assert_null(urn_config_parse(text, strlen(text), "t.ini", &errors));
	got = config_sentences(&errors);
	if (strcmp(got, want) != 0)
		fail_msg("of\n%s\nit is said\n%s\nand not\n%s", text, got, want);
	free(got);
	urn_config_errors_free(&errors);
}

/* The rest of a file whose first part has the mistakes: complete and good by itself. */
#define CONFIG_REST "[port rest]\ndevice = net_null9\n[adapter rest]\nport = rest\n"

/* Cases in a table: a part of a file, and the sentences about it. */
struct config_case {
	const char *text; /* CONFIG_REST is appended to it */
	const char *want;
};

static inline void
config_cases(const struct config_case *c, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char text[4096];

		snprintf(text, sizeof(text), "%s%s", c[i].text, CONFIG_REST);
		config_bad(text, c[i].want);
	}
}

#endif
