/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of urnic-perf crc. */
#include "crc.h"

#include "common/option_table.h"

#include <stdio.h>

static const char help[] = "usage: urnic-perf crc [option...]\n"
			   "\n"
			   "Measures the kernels that compute ICRCs, against the limit of the "
			   "processor's multiplier.\n"
			   "\n";

#define O(field) offsetof(struct crc_opts, field)
static const struct urn_option rows[] = {
	{"kernel", "NAME", "avx512, avx2, sse or isal (all that the processor has)", urn_take_text,
	 O(kernel)},
	{"size", "N", "bytes a packet, 1..9216 (several sizes)", urn_take_u32, O(size), .min = 1,
	 .max = CRC_LONGEST},
	URN_OPTION_JSON(struct crc_opts, json),
};

static const struct urn_options table = {rows, RTE_DIM(rows), 20, "crc --help"};

void
crc_options_help(void)
{
	fputs(help, stdout);
	urn_options_help(&table, stdout);
}

enum perf_parse
crc_options_parse(int argc, char **argv, struct crc_opts *o, struct urn_err *err)
{
	uint64_t given;

	*o = (struct crc_opts){0};
	switch (urn_options_parse(&table, argc, argv, o, &given, err)) {
	case URN_OPTIONS_HELP:
		crc_options_help();
		return PERF_EXIT_OK;
	case URN_OPTIONS_VERSION:
		puts("urnic-perf " URN_VERSION);
		return PERF_EXIT_OK;
	case URN_OPTIONS_BAD:
		return PERF_EXIT_USAGE;
	case URN_OPTIONS_RUN:
		break;
	}
	if (optind == argc)
		return PERF_RUN;
	urn_err_set(err, "%.32s is one word too many; crc --help lists the options", argv[optind]);
	return PERF_EXIT_USAGE;
}
