/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of the log. */
#ifndef URN_LOG_LINE_H
#define URN_LOG_LINE_H

#include "log/limit.h"

#include <time.h>

enum {
	URN_LOG_LINE = URN_LOG_TEXT + 256, /* bytes of a line, NUL included */
	URN_LOG_USERS = 8,		   /* names of users that are kept */
};

/* Names of users that were looked up last. All zero: none. */
struct urn_log_users {
	unsigned int n; /* names ever looked up; the newest is at (n - 1) % URN_LOG_USERS */
	struct {
		uid_t uid;
		char name[33]; /* the number in digits where the system knows no name */
	} user[URN_LOG_USERS];
};

/* An event that is to be a line. */
struct urn_log_entry {
	struct timespec at; /* UTC */
	enum urn_log_event event;
	bool has_who;		/* the text goes on from this program */
	struct urn_log_who who; /* valid with has_who */
	char text[URN_LOG_TEXT];
};

/*
 * Write the line of an event, with its end:
 *
 *     2026-11-30T04:42:22.123Z urnicd[77] warning qp error: program ...
 *
 * Text that programs chose gets no control character, no escape and no second line in.
 *
 * priority: begin with the level's number of syslog, "<4>", as journals read it
 * name: of this program
 * users: names that are kept
 * returns: bytes, without the NUL
 */
size_t urn_log_line(const struct urn_log_entry *e, bool priority, const char *name,
		    struct urn_log_users *users, char out[URN_LOG_LINE]);
/* Make the event that tells of others which were only counted. */
void urn_log_line_more(const struct urn_log_more *more, struct urn_log_users *users,
		       struct urn_log_entry *e);

#endif
