/* SPDX-License-Identifier: BSD-3-Clause */
/* A parsed command line of urnic-perf, for tests of its options. */
#ifndef TEST_UNIT_APPS_PERF_LINE_H
#define TEST_UNIT_APPS_PERF_LINE_H

#include "urnic-perf/perf.h"

#include <string.h>

static struct perf_opts o;
static struct urn_err err;

/* Parse a command line given as one string. */
static enum perf_parse
parse(const char *line)
{
	static char copy[256]; /* options point into it */
	char *argv[24] = {"urnic-perf"}, *save = NULL;
	int argc = 1;

	strncpy(copy, line, sizeof(copy) - 1);
	copy[sizeof(copy) - 1] = '\0';
	for (char *w = strtok_r(copy, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	err.text[0] = '\0';
	return perf_options_parse(argc, argv, &o, &err);
}

#endif
