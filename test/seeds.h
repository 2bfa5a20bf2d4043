/* SPDX-License-Identifier: BSD-3-Clause */
/* Options that simulations share: the seeds to run, and the processes that share them. */
#ifndef URN_TEST_SEEDS_H
#define URN_TEST_SEEDS_H

#include "common/option_table.h"
#include "common/text.h"

#include <string.h>

#define SEEDS_MOST_JOBS 64u /* processes */

/* Seeds to run, both ends included. */
struct seeds {
	uint64_t first, last;
};

/* Read "A..B", or one seed, into a struct seeds. returns: 0, or -1 with *err */
static inline int
seeds_take(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	struct seeds *s = (struct seeds *)((char *)to + row->offset);
	char buf[48], *dots;

	snprintf(buf, sizeof(buf), "%s", arg);
	dots = strstr(buf, "..");
	if (dots)
		*dots = '\0';
	if (strlen(arg) < sizeof(buf) && urn_text_parse_uint(buf, &s->first) == 0 &&
	    urn_text_parse_uint(dots ? dots + 2 : buf, &s->last) == 0 && s->last >= s->first &&
	    s->last != UINT64_MAX)
		return 0;
	urn_err_set(err, "--%s %.48s: seeds are a number, or two and '..' between them", row->name,
		    arg);
	return -1;
}

/* Check the scenario that --scenario names. sc: that with the name; NULL: none. returns: 0: it is
 * there, or all are wanted; -1 with *err */
static inline int
seeds_scenario(const void *sc, const char *name, struct urn_err *err)
{
	if (sc || strcmp(name, "all") == 0)
		return 0;
	urn_err_set(err, "there is no scenario '%.64s'; --list has them", name);
	return -1;
}

/* Say on standard error why an option is refused, and which command lists the options. */
static inline void
seeds_refuse(const char *program, const struct urn_err *err)
{
	fprintf(stderr, "%s: %s%s\n", program, err->text,
		strstr(err->text, "--help") ? "" : "; see --help");
}

/* Rows of a table. type: of the program's struct; seeds: its struct seeds; the others: uint32_t,
 * bool */
#define SEEDS_OPTION(type, seeds)                                             \
	{                                                                     \
		"seeds", "A..B", "seeds to run, or one (1..100)", seeds_take, \
			offsetof(type, seeds)                                 \
	}
#define SEEDS_OPTION_JOBS(type, jobs)                                                   \
	{                                                                               \
		"jobs", "N", "processes that share the seeds, 1..64 (1)", urn_take_u32, \
			offsetof(type, jobs), .min = 1, .max = SEEDS_MOST_JOBS          \
	}
#define SEEDS_OPTION_KEEP_GOING(type, keep_going)                                       \
	{                                                                               \
		"keep-going", NULL, "go on after ten seeds have failed", urn_take_flag, \
			offsetof(type, keep_going)                                      \
	}

#endif
