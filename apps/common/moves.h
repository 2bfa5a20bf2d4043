/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The log of steps of a session (doc/reference/sessions.md), read after the loss of an adapter:
 * when the session noticed, and when its connections had moved. Pure: lines come in as text.
 */
#ifndef URN_APPS_COMMON_MOVES_H
#define URN_APPS_COMMON_MOVES_H

#include <stdbool.h>
#include <stdint.h>

/* A connection that left its path. */
struct urn_moves_conn {
	uint32_t number; /* conn= of the log */
	bool moved;	 /* it has migrated since */
};

struct urn_moves {
	int pid;	     /* lines of this process count */
	uint64_t since_us;   /* CLOCK_REALTIME; lines from then on count */
	uint64_t noticed_us; /* CLOCK_REALTIME of the first line of a loss; 0: none */
	uint64_t moved_us; /* CLOCK_REALTIME of the last first migration of a connection; 0: none */
	uint64_t slowest_us;	     /* longest of these migrations */
	uint32_t left, moved;	     /* connections that left their path, that have migrated */
	struct urn_moves_conn *conn; /* `left` of them; owner: this struct */
	uint32_t room;		     /* connections that conn has room for */
	char cause[96];		     /* first line of a loss in words; "": none */
	bool short_of_memory;	     /* a connection is missing */
};

/* since_us: CLOCK_REALTIME of the loss */
void urn_moves_begin(struct urn_moves *m, int pid, uint64_t since_us);
/* Take a line of the log, without its end. Lines that say nothing of moves are left out. */
void urn_moves_line(struct urn_moves *m, const char *line);
void urn_moves_end(struct urn_moves *m);

#endif
