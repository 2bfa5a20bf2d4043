/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of urnic-perf stream_bw and stream_lat. */
#include "stream.h"

#include "common/option_table.h"

#include <stdio.h>
#include <string.h>

#define MAX_SIZE (1ull << 30)
#define MAX_ITERS (1ull << 32)
#define BW_SIZE (1ull << 20)
#define LAT_SIZE 8ull
#define BW_BYTES (1ull << 30) /* bytes that stream_bw moves by default */
#define BW_LEAST 200ull	      /* sends at least */
#define ITERS_MOST 100000ull  /* sends at most, by default */
#define LAT_ITERS 10000ull
#define ZERO_COPY_MIN (64ull << 10) /* bounds of struct urn_stream_options */
#define ZERO_COPY_MAX (4ull << 20)

static const char help[] =
	"usage: urnic-perf stream_bw --attach S [option...]\n"
	"       urnic-perf stream_lat --attach S [option...]\n"
	"\n"
	"Measures a byte stream between two nodes of a dataplane: the rate of sends of A that B\n"
	"receives whole, or half the round trip of a send that B sends back.\n"
	"\n";

static const char *const transfers[] = {"any", "copy", "read", "write", NULL};

#define O(field) offsetof(struct stream_opts, field)
static const struct urn_option rows[] = {
	{"attach", "S", "the dataplane's socket; auto: the usual one", urn_take_text, O(attach)},
	URN_OPTION_NODES(struct stream_opts, node, "a,b"),
	{"size", "N", "bytes of a send, 1..1G (stream_bw: 1M, stream_lat: 8)", urn_take_size,
	 O(size), .min = 1, .max = MAX_SIZE, .letter = 's'},
	{"iters", "N", "sends (stream_bw: 1 GiB in all, stream_lat: 10000)", urn_take_number,
	 O(iters), .min = 1, .max = MAX_ITERS, .letter = 'n'},
	{"transfer", "T", "any, copy, read or write (any)", urn_take_word, O(transfer),
	 .words = transfers},
	{"zero-copy", "N", "size from which on sends do without a copy, 64K..4M (256K, adapts)",
	 urn_take_size, O(zero_copy), .min = ZERO_COPY_MIN, .max = ZERO_COPY_MAX},
	{"plain", NULL, "register memory for each send, not for long", urn_take_flag, O(plain)},
	URN_OPTION_JSON(struct stream_opts, json),
};

static const struct urn_options table = {rows, RTE_DIM(rows), 20, "stream_bw --help"};

void
stream_options_help(void)
{
	fputs(help, stdout);
	urn_options_help(&table, stdout);
}

static void
defaults(struct stream_opts *o)
{
	if (!o->size)
		o->size = o->lat ? LAT_SIZE : BW_SIZE;
	if (!o->iters)
		o->iters = o->lat ? LAT_ITERS : BW_BYTES / o->size;
	else
		return;
	o->iters = o->iters < BW_LEAST ? BW_LEAST : o->iters;
	o->iters = o->iters > ITERS_MOST ? ITERS_MOST : o->iters;
}

enum perf_parse
stream_options_parse(int argc, char **argv, struct stream_opts *o, struct urn_err *err)
{
	uint64_t given;

	*o = (struct stream_opts){.node = {"a", "b"}, .lat = strcmp(argv[0], "stream_lat") == 0};
	switch (urn_options_parse(&table, argc, argv, o, &given, err)) {
	case URN_OPTIONS_HELP:
		stream_options_help();
		return PERF_EXIT_OK;
	case URN_OPTIONS_VERSION:
		puts("urnic-perf " URN_VERSION);
		return PERF_EXIT_OK;
	case URN_OPTIONS_BAD:
		return PERF_EXIT_USAGE;
	case URN_OPTIONS_RUN:
		break;
	}
	defaults(o);
	if (optind < argc)
		urn_err_set(err, "%.32s is one word too many; stream_bw --help lists the options",
			    argv[optind]);
	else if (o->attach == NULL)
		urn_err_set(
			err,
			"streams run between nodes of a dataplane; say where it is: --attach S");
	else
		return PERF_RUN;
	return PERF_EXIT_USAGE;
}
