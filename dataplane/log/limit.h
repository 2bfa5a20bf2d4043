/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bounds of what one source may write to the log: a program gets some lines of each kind a second,
 * all programs of a user some more, and all programs together a page. Events beyond are counted,
 * and their number is due once the second is over. Pure: time is an argument.
 *
 * Cost: O(URN_LOG_SOURCES) an event.
 */
#ifndef URN_LOG_LIMIT_H
#define URN_LOG_LIMIT_H

#include "log/log.h"

enum {
	URN_LOG_SOURCES = 256,	     /* places of programs and users in a second */
	URN_LOG_PLACES_PER_USER = 8, /* places of single programs of a user */
	URN_LOG_NUMBERS = URN_LOG_SOURCES + 2 * URN_LOG_EVENT_COUNT, /* that may be due at once */
	URN_LOG_PER_SOURCE = 5,	     /* lines a second of one kind, of a program */
	URN_LOG_PER_USER = 20,	     /* lines a second of all kinds, of all programs of a user */
	URN_LOG_PER_SYSTEM = 64,     /* lines a second of one kind that no program made */
	URN_LOG_PER_SECOND = 200,    /* lines a second of all programs */
	URN_LOG_SECOND = 1000000000, /* ns */
};

/* A source and its present second. */
struct urn_log_source {
	struct urn_log_who who; /* the latest of it; valid with has_who */
	uint64_t until;		/* ns: the end of its second; 0: the place is free */
	uint32_t lines;		/* that it has had in this second */
	uint32_t more;		/* events that were only counted */
	uint32_t places;	/* single programs' places; valid at a user's place */
	uint8_t event;		/* enum urn_log_event; URN_LOG_EVENT_COUNT: of any kind */
	bool has_who;		/* a program, or a user's programs */
	bool user;		/* all programs of the user who.uid */
};

struct urn_log_limit {
	struct urn_log_source source[URN_LOG_SOURCES];
	/* Events of programs beyond that, by kind. */
	struct urn_log_source rest[URN_LOG_EVENT_COUNT];
	struct urn_log_source system[URN_LOG_EVENT_COUNT]; /* events of no program, by kind */
	uint64_t until; /* ns: the end of the present second of all */
	uint32_t lines; /* that all programs have had in it */
};

/* Events that were only counted. */
struct urn_log_more {
	enum urn_log_event event;
	bool has_who; /* a program, or a user, made them; else several did, or none
		       */
	bool user;    /* several programs of the user */
	struct urn_log_who who;
	uint32_t n;
};

/*
 * Ask for a line. who: NULL: no program made the event. now: ns, monotonic, from 1 on
 * returns: true: write it; false: it was counted
 */
bool urn_log_limit_pass(struct urn_log_limit *l, enum urn_log_event event,
			const struct urn_log_who *who, uint64_t now);
/* Count n events of a program that were not even asked for. who: NULL: nobody knows which */
void urn_log_limit_add(struct urn_log_limit *l, enum urn_log_event event,
		       const struct urn_log_who *who, uint32_t n, uint64_t now);
/*
 * Take one number that is due: its second is over by now. Call until there is none; UINT64_MAX:
 * all that are left. returns: false: none is due
 */
bool urn_log_limit_due(struct urn_log_limit *l, uint64_t now, struct urn_log_more *out);

#endif
