/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The log of events, for people who were not there: one line an event (doc/reference/log.md).
 *
 *     control threads ── urn_log_say() ──► bounded queue ──┐
 *                                                          ├──► writer's thread ──► stderr or file
 *     engines ──► a bounded ring each (ring.h) ────────────┘
 *
 * A caller never waits for the reader of the log. The queue and the rings lose events when they
 * are full, and the log says how many. A program, and a user, get so many lines a second
 * (limit.h); the log then says how many more there were.
 */
#ifndef URN_LOG_LOG_H
#define URN_LOG_LOG_H

#include "abi/log_level.h"
#include "log/who.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(id, word, text) */
#define URN_LOG_AREAS(X)                                                  \
	X(DAEMON, "daemon", "start, end and configuration of urnicd")     \
	X(CLIENT, "client", "programs that attach, leave or are refused") \
	X(LIMIT, "limit", "limits that programs reach")                   \
	X(PORT, "port", "links of ports")                                 \
	X(ROUTE, "route", "routers that advertise themselves")            \
	X(QP, "qp", "errors of queue pairs and their requests")           \
	X(SESSION, "session", "sessions that move away from urnicd")      \
	X(CAPTURE, "capture", "captures of frames")                       \
	X(COMMAND, "command", "commands that change something")           \
	X(LOG, "log", "the log itself")

enum urn_log_area {
#define X(id, word, text) URN_LOG_##id,
	URN_LOG_AREAS(X)
#undef X
		URN_LOG_AREA_COUNT,
};

/* X(id, area, level, word, text) */
#define URN_LOG_EVENTS(X)                                                                         \
	X(STARTED, DAEMON, NOTICE, "start", "urnicd serves programs from now on")                 \
	X(STOPPED, DAEMON, NOTICE, "stop", "urnicd ends, and why")                                \
	X(STOOD, DAEMON, WARNING, "stood", "urnicd or its log stood still, and for how long")     \
	X(RELOADED, DAEMON, NOTICE, "reload",                                                     \
	  "the configuration was read again: a value changed, or changes with the next start")    \
	X(NOT_RELOADED, DAEMON, ERROR, "no-reload",                                               \
	  "the configuration was read again and has a mistake: nothing changed")                  \
	X(ATTACHED, CLIENT, INFO, "attach", "a program uses an adapter from now on")              \
	X(LEFT, CLIENT, INFO, "leave", "a program has gone, and why; all it had is taken back")   \
	X(REFUSED, CLIENT, WARNING, "refuse", "a program was turned away, and why")               \
	X(NONSENSE, CLIENT, WARNING, "nonsense",                                                  \
	  "a program sent a message that makes no sense, and loses its connection")               \
	X(REACHED, LIMIT, WARNING, "limit", "a call of a program was refused by a limit")         \
	X(PORT_UP, PORT, NOTICE, "up", "a port has a link")                                       \
	X(PORT_DOWN, PORT, WARNING, "down", "a port has no link, and why")                        \
	X(PORT_MOVED, PORT, WARNING, "moved", "an adapter goes over its other port, and why")     \
	X(ROUTER_CAME, ROUTE, NOTICE, "come",                                                     \
	  "a router advertises itself to an adapter, or a prefix that is on the link")            \
	X(ROUTER_USED, ROUTE, NOTICE, "use", "an adapter uses a router from now on")              \
	X(ROUTER_GONE, ROUTE, WARNING, "go",                                                      \
	  "a router, or a prefix on the link, is advertised no more, and why")                    \
	X(QP_ERROR, QP, WARNING, "error", "a request, a receive or a queue pair failed, and why") \
	X(SESSION_LEFT, SESSION, WARNING, "move",                                                 \
	  "a program gave its queue pairs up, because urnicd was silent: its session moves")      \
	X(CAPTURE_BEGAN, CAPTURE, INFO, "begin", "a capture of frames runs")                      \
	X(CAPTURE_ENDED, CAPTURE, INFO, "end", "a capture is whole")                              \
	X(CAPTURE_FAILED, CAPTURE, ERROR, "fail", "a capture ended before its time, and why")     \
	X(COMMANDED, COMMAND, NOTICE, "command",                                                  \
	  "somebody changed something, by urnicctl or at the console")                            \
	X(LOST, LOG, WARNING, "lost", "events or lines that found no room")

enum urn_log_event {
#define X(id, area, level, word, text) URN_LOG_##id,
	URN_LOG_EVENTS(X)
#undef X
		URN_LOG_EVENT_COUNT,
};

enum {
	URN_LOG_TEXT = 640,  /* bytes of an event's sentence, NUL included; a longer one is cut */
	URN_LOG_QUEUE = 512, /* events of control threads that wait for the writer */
	URN_LOG_WORDS = 192, /* bytes of a list of levels, NUL included */
};

struct urn_log;
struct urn_log_ring;

/* ---- words (words.c) */

const char *urn_log_area_word(enum urn_log_area area);
const char *urn_log_event_word(enum urn_log_event event);
/* Meaning of an event, for the reference. */
const char *urn_log_event_text(enum urn_log_event event);
enum urn_log_area urn_log_event_area(enum urn_log_event event);
enum urn_log_level urn_log_event_level(enum urn_log_event event);
/* Set the levels of a log that nobody configured: info. */
void urn_log_defaults(uint8_t level[URN_LOG_AREA_COUNT]);
/*
 * Parse a list of levels: "info" is the level of all areas, "qp:debug" that of one; the later word
 * counts.
 *
 * text: at most URN_LOG_WORDS - 1 bytes
 * level: by area; changed as far as the list says so, and only if it has no mistake
 * why, size: set to a sentence about a mistake
 * returns: 0, or -1 with the sentence
 */
int urn_log_parse(const char *text, uint8_t level[URN_LOG_AREA_COUNT], char *why, size_t size);

/* ---- the log (log.c) */

/* Make a log that nobody writes yet. rings: number of engines. returns: NULL: no memory */
struct urn_log *urn_log_create(unsigned int rings);
/* Free a log whose writer has stopped, and that nobody uses any more. NULL is allowed. */
void urn_log_free(struct urn_log *log);
/* The ring of an engine; owner: the log. log: NULL: none */
struct urn_log_ring *urn_log_ring_of(struct urn_log *log, unsigned int engine);
/* Set the level of an area; any thread. */
void urn_log_set(struct urn_log *log, enum urn_log_area area, enum urn_log_level level);
enum urn_log_level urn_log_level(const struct urn_log *log, enum urn_log_area area);
/* True when the level of the event's area shows it. */
bool urn_log_shows(const struct urn_log *log, enum urn_log_event event);
/*
 * Say that something happened. Any thread but an engine's; waits for no reader. Does nothing when
 * the area's level leaves the event out, or when its source has said too much.
 *
 * log: NULL: there is none
 * fmt: goes on from the name of the program `who` that the event happened to or came from (NULL:
 *        none), with which the line begins; without a full stop
 */
void urn_log_say(struct urn_log *log, enum urn_log_event event, const struct urn_log_who *who,
		 const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Counts since the start. */
struct urn_log_counts {
	uint64_t lines; /* lines written */
	uint64_t more;	/* events that were only counted, in a line "N more like this" */
	uint64_t lost;	/* events and lines that found no room */
};
/* Any thread. */
void urn_log_counts(const struct urn_log *log, struct urn_log_counts *out);

#endif
