/* SPDX-License-Identifier: BSD-3-Clause */
/* urnic-perf stream_bw, stream_lat: byte streams between two nodes of a dataplane (stream.c). */
#ifndef URN_PERF_STREAM_H
#define URN_PERF_STREAM_H

#include "options.h"

struct stream_opts {
	const char *attach;    /* socket of the dataplane, or "auto"; owner: argv */
	char node[2][32];      /* nodes or adapters A and B */
	uint64_t size;	       /* bytes of a send */
	uint64_t iters;	       /* sends that count; 0: by the size */
	uint64_t zero_copy;    /* bytes from which on sends do without a copy; 0: the default */
	unsigned int transfer; /* enum urn_stream_transfer */
	bool plain;	       /* memory is registered for each send, not for long */
	bool lat;	       /* stream_lat */
	bool json;
};

/* Print `urnic-perf stream_bw --help`. */
void stream_options_help(void);
/*
 * Read the command line, argv[0]: the operation. Prints help and version itself; a bad option gives
 * a message in *err. returns: whether the program runs on
 */
enum perf_parse stream_options_parse(int argc, char **argv, struct stream_opts *o,
				     struct urn_err *err);
/* Run `urnic-perf stream_bw` or `stream_lat`. returns: the exit code */
int stream_main(int argc, char **argv);

#endif
