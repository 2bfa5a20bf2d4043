/* SPDX-License-Identifier: BSD-3-Clause */
/* urnic-perf idle: clients that sleep (idle.c). */
#ifndef URN_PERF_IDLE_H
#define URN_PERF_IDLE_H

#include "options.h"

struct idle_opts {
	const char *attach; /* socket of the dataplane, or "auto"; owner: argv */
	const char *node;   /* node or adapter, or NULL: the default one; owner: argv */
	uint32_t clients;
	uint64_t duration_ns; /* 0: until a signal */
	bool json;
};

/* Print `urnic-perf idle --help`. */
void idle_options_help(void);

/* Read the command line, argv[0]: "idle". Prints help and version itself; a bad option gives a message in *err. */
enum perf_parse idle_options_parse(int argc, char **argv, struct idle_opts *o, struct urn_err *err);
/* Run `urnic-perf idle`. returns: the exit code */
int idle_main(int argc, char **argv);

#endif
