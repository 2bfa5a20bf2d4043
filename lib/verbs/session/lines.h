/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many lines of a connection the log of steps takes. A peer causes lines as often as it likes,
 * by offers, by messages that are refused, by migrations; a disk has an end.
 */
#ifndef URN_VERBS_SESSION_LINES_H
#define URN_VERBS_SESSION_LINES_H

#include <stdbool.h>
#include <stdint.h>

enum {
	URN_SV_LINES = 1000,	    /* lines at a time: some 20 migrations with their healing */
	URN_SV_LINES_A_SECOND = 50, /* lines that come to be free again in a second */
};

/* The lines of one connection. All are the context's; its lock. */
struct urn_sv_lines {
	uint64_t at;   /* ms: time at which used was right */
	uint64_t used; /* thousandths of lines that are not free again */
	uint64_t out;  /* lines that were left out since the last one that was written */
};

/*
 * Take room for a line.
 *
 * now: ms, never less than before
 * returns: false: there is none, and the line is counted as left out
 */
bool urn_sv_lines_take(struct urn_sv_lines *l, uint64_t now);

#endif
