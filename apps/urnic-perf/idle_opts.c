/* SPDX-License-Identifier: BSD-3-Clause */
#include "idle.h"

#include "common/option_table.h"

#include <stdio.h>

#define MAX_CLIENTS 4096u
#define MAX_DURATION_NS (86400ull * 1000000000ull)

static const char help[] =
	"usage: urnic-perf idle --attach S [option...]\n"
	"\n"
	"Attaches clients to a dataplane that do nothing: each has a queue pair, and sleeps on a\n"
	"completion channel, until a signal or --duration ends it.\n"
	"\n";

#define O(field) offsetof(struct idle_opts, field)
static const struct urn_option rows[] = {
	{"attach", "S", "the dataplane's socket; auto: the usual one", urn_take_text, O(attach)},
	{"clients", "N", "number of clients, 1..4096 (16)", urn_take_u32, O(clients), .min = 1,
	 .max = MAX_CLIENTS},
	{"node", "NAME", "node or adapter of the clients (as URNIC_NODE says, or the first)",
	 urn_take_text, O(node)},
	URN_OPTION_DURATION(struct idle_opts, duration_ns, MAX_DURATION_NS, "for so long",
			    "until a signal"),
	URN_OPTION_JSON(struct idle_opts, json),
};

static const struct urn_options table = {rows, RTE_DIM(rows), 20, "idle --help"};

void
idle_options_help(void)
{
	fputs(help, stdout);
	urn_options_help(&table, stdout);
}

enum perf_parse
idle_options_parse(int argc, char **argv, struct idle_opts *o, struct urn_err *err)
{
	uint64_t given;

	*o = (struct idle_opts){.clients = 16};
	switch (urn_options_parse(&table, argc, argv, o, &given, err)) {
	case URN_OPTIONS_HELP:
		idle_options_help();
		return PERF_EXIT_OK;
	case URN_OPTIONS_VERSION:
		puts("urnic-perf " URN_VERSION);
		return PERF_EXIT_OK;
	case URN_OPTIONS_BAD:
		return PERF_EXIT_USAGE;
	case URN_OPTIONS_RUN:
		break;
	}
	if (optind < argc)
		urn_err_set(err, "%.32s is one word too many; idle --help lists the options",
			    argv[optind]);
	else if (o->attach == NULL)
		urn_err_set(err, "idle is for clients of a dataplane; say where it is: --attach S");
	else
		return PERF_RUN;
	return PERF_EXIT_USAGE;
}
