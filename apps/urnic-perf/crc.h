/* SPDX-License-Identifier: BSD-3-Clause */
/* urnic-perf crc: the speed of the CRC kernels (crc.c). */
#ifndef URN_PERF_CRC_H
#define URN_PERF_CRC_H

#include "options.h"

/* Bytes of the longest packet that is measured. */
#define CRC_LONGEST 9216u

struct crc_opts {
	const char *kernel; /* measure this one; NULL: all that the processor has; owner: argv */
	uint32_t size;	    /* bytes a packet; 0: several sizes */
	bool json;
};

/* Print `urnic-perf crc --help`. */
void crc_options_help(void);
/* Read the command line, argv[0]: "crc". Prints help and version itself; a bad option gives a
 * message in *err. */
enum perf_parse crc_options_parse(int argc, char **argv, struct crc_opts *o, struct urn_err *err);

/* Run `urnic-perf crc`, argv[0]: "crc". Prints help and results itself. returns: the exit code */
int crc_main(int argc, char **argv);

#endif
