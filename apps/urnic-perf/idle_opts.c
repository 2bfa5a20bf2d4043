/* SPDX-License-Identifier: BSD-3-Clause */
#include "idle.h"

#include "common/options.h"

#include <getopt.h>
#include <stdio.h>

#define MAX_CLIENTS 4096u
#define MAX_DURATION_NS (86400ull * 1000000000ull)

const char idle_help[] =
	"usage: urnic-perf idle --attach S [option...]\n"
	"\n"
	"Attaches clients to a dataplane that do nothing: each has a queue pair, and sleeps on a\n"
	"completion channel, until a signal or --duration ends it.\n"
	"\n"
	"  --attach S        the dataplane's socket; auto: where it usually is\n"
	"  --clients N       how many, 1..4096 (16)\n"
	"  --node NAME       their node or adapter (as URNIC_NODE says, or the first)\n"
	"  --duration T      for so long: 2, 0.5, 200ms (until a signal)\n"
	"  --json            print JSON\n"
	"  --help, --version\n";

enum opt_id {
	OPT_ATTACH = 256,
	OPT_CLIENTS,
	OPT_NODE,
	OPT_DURATION,
	OPT_JSON,
	OPT_HELP,
	OPT_VERSION
};

static const struct option long_options[] = {
	{"attach", required_argument, NULL, OPT_ATTACH},
	{"clients", required_argument, NULL, OPT_CLIENTS},
	{"node", required_argument, NULL, OPT_NODE},
	{"duration", required_argument, NULL, OPT_DURATION},
	{"json", no_argument, NULL, OPT_JSON},
	{"help", no_argument, NULL, OPT_HELP},
	{"version", no_argument, NULL, OPT_VERSION},
	{NULL, 0, NULL, 0},
};

static enum perf_parse
take_option(int id, char **argv, struct idle_opts *o, struct urn_err *err)
{
	int rc = 0;

	switch (id) {
	case OPT_ATTACH:
		o->attach = optarg;
		break;
	case OPT_CLIENTS:
		rc = urn_opt_u32("clients", optarg, 1, MAX_CLIENTS, &o->clients, err);
		break;
	case OPT_NODE:
		o->node = optarg;
		break;
	case OPT_DURATION:
		rc = urn_opt_time("duration", optarg, 1000000, MAX_DURATION_NS, &o->duration_ns,
				  err);
		break;
	case OPT_JSON:
		o->json = true;
		break;
	case OPT_HELP:
		fputs(idle_help, stdout);
		return PERF_EXIT_OK;
	case OPT_VERSION:
		puts("urnic-perf " URN_VERSION);
		return PERF_EXIT_OK;
	default:
		urn_opt_bad(id, argv[optind - 1], "idle --help", err);
		return PERF_EXIT_USAGE;
	}
	return rc == 0 ? PERF_RUN : PERF_EXIT_USAGE;
}

enum perf_parse
idle_options_parse(int argc, char **argv, struct idle_opts *o, struct urn_err *err)
{
	enum perf_parse rc;
	int id;

	*o = (struct idle_opts){.clients = 16};
	optind = 0; /* glibc: start over, for a caller that parses twice */
	opterr = 0;
	while ((id = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		rc = take_option(id, argv, o, err);
		if (rc != PERF_RUN)
			return rc;
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
