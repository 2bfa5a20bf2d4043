/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Text between a program and a person: numbers on the command
 * line (units.h), sizes and rates in print, a progress bar, and Ctrl-C.
 */
#ifndef URN_APPS_COMMON_TEXT_H
#define URN_APPS_COMMON_TEXT_H

#include "units.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Print a size: "0 B", "1000 B", "64 KiB", "1.5 MiB". returns buf */
const char *urn_text_size(char *buf, size_t n, uint64_t bytes);
/* Print a time: "850 ns", "12.3 us", "4.56 ms", "7.89 s". returns buf */
const char *urn_text_time(char *buf, size_t n, uint64_t ns);
/* Print a rate of events: "950 /s", "12.3 k/s", "4.56 M/s". returns buf */
const char *urn_text_rate(char *buf, size_t n, double per_second);

/*
 * A progress bar on standard error, redrawn in place. Draws nothing unless
 * standard error is a terminal; costs a clock read a call and draws at most
 * ten times a second.
 */
struct urn_progress {
	const char *label;   /* owner: the caller */
	uint64_t total;      /* number of units to be done, as a rule bytes */
	uint64_t started_ns; /* CLOCK_MONOTONIC */
	uint64_t drawn_ns;   /* CLOCK_MONOTONIC of the last drawing */
	bool on;             /* standard error is a terminal */
	bool dirty;          /* something is on the line */
};

/* label is kept by pointer. total 0 draws no bar, only the count. */
void urn_progress_begin(struct urn_progress *p, const char *label, uint64_t total);
/* done: units of total done so far. */
void urn_progress_update(struct urn_progress *p, uint64_t done);
/* Clear the line, so that the next print starts at its beginning. */
void urn_progress_end(struct urn_progress *p);

/*
 * Turn SIGINT, SIGTERM and SIGHUP into a flag; not SIGHUP where it is ignored,
 * as under nohup. A second signal ends the program at once, in case the orderly
 * exit hangs; but not within a second of the first, because timeout(1) and a closed
 * terminal send two. returns: 0 or -1 with errno
 */
int urn_stop_install(void);
/* Call before urn_stop_install(). ms after the first signal, and later, a second ends the program at once.
 */
void urn_stop_again(unsigned int ms);
/* Number of the signal that asked the program to stop; 0: none yet. */
int urn_stop_requested(void);
/* The flag itself, true once a signal came, for loops that poll a flag. */
const volatile bool *urn_stop_flag(void);

#endif
