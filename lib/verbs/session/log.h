/* SPDX-License-Identifier: BSD-3-Clause */
/* URNIC_SESSION_LOG: the log of steps (doc/reference/sessions.md). */
#ifndef URN_VERBS_SESSION_LOG_H
#define URN_VERBS_SESSION_LOG_H

#include "session/session.h"
#include "session/wire.h"

struct urn_sv_ctx;
struct urn_sv_qp;

/* X(id, level, word, text): events, for people who were not there */
#define URN_SV_EVENTS(X)                                                                         \
	X(DEAD, ERROR, "dead", "a connection has no path left, or can't know an outcome")        \
	X(FAILED, ERROR, "fail", "a request failed for a reason of its own, and so do others")   \
	X(LOST, WARNING, "lost", "a path of a connection is lost, and why")                      \
	X(STOPS, WARNING, "stop", "a connection stops, to move to another path, and why")        \
	X(LEFT_OUT, WARNING, "left-out", "lines of a connection that were too many")             \
	X(ADAPTER_LOST, WARNING, "adapter-lost", "an adapter's dataplane ended, or is silent")   \
	X(ADAPTER_BAD, WARNING, "adapter-bad", "an adapter is back, and is of no or little use") \
	X(PLAIN, WARNING, "plain", "a connection has no session, and ends with its adapter")     \
	X(LINK_DOWN, WARNING, "link-down", "an adapter's port has no link")                      \
	X(MOVED, NOTICE, "move", "a connection goes on by another path, and after how long")     \
	X(TRUSTED, NOTICE, "trust", "a path that was made anew counts as one again")             \
	X(ADAPTER_BACK, NOTICE, "adapter-back", "an adapter is attached to again")               \
	X(LINK_UP, NOTICE, "link-up", "an adapter's port has a link again")                      \
	X(BEGIN, INFO, "begin", "a connection has a session")                                    \
	X(END, INFO, "end", "the program ends a connection")                                     \
	X(QUEUE, INFO, "queue", "a shared receive queue has a kind, or another adapter")         \
	X(REFUSED, INFO, "refuse", "a message of the peer made no sense, and was dropped")       \
	X(STEP, DEBUG, "step", "a connection is at another state of its move")                   \
	X(MESSAGE, DEBUG, "message", "a message to the peer, or of it")                          \
	X(ATOMICS, DEBUG, "atomics", "atomics of the peer, as the adapter's own log has them")   \
	X(COUNTS, DEBUG, "counts", "counters of a connection after its move")

enum urn_sv_event {
#define X(id, level, word, text) URN_SV_E_##id,
	URN_SV_EVENTS(X)
#undef X
		URN_SV_EVENT_COUNT,
};

/*
 * Open the log.
 *
 * text: the variable's value; NULL or empty: no log; "stderr", or a file that lines are appended to
 * fd: set to a descriptor of our own, or -1: no log
 * journal: set to true when that is the journal, whose lines begin with a priority
 * returns: 0; an errno value with its text: the file can't be opened
 */
int urn_sv_log_open(const char *text, int *fd, bool *journal);

/* ---- lines about a connection; the context's lock is held */

/* True when there is a log of steps. */
bool urn_sv_logs(const struct urn_sv_qp *q);
/* Write a line about a connection. format: goes on from its name; behind a tab, the numbers */
__attribute__((format(printf, 3, 4))) void urn_sv_log(struct urn_sv_qp *q, enum urn_sv_event event,
						      const char *format, ...);
/* A connection has a session: log its steps from now on. */
void urn_sv_log_begin(struct urn_sv_qp *q);
/* A connection ends: log its counters. */
void urn_sv_log_end(struct urn_sv_qp *q);
/* A control message. way: "tell" or "hear"; kind: URN_SESS_WIRE_REPORT and so on */
void urn_sv_log_message(struct urn_sv_qp *q, const char *way, uint32_t kind,
			const struct urn_sess_report *r);
/* An OFFER. way: "tell" or "hear"; epoch: of the message */
void urn_sv_log_offer(struct urn_sv_qp *q, const char *way, uint32_t epoch,
		      const struct urn_sess_offer *o);
/* A path dies, for the reason q->why. */
void urn_sv_log_down(struct urn_sv_qp *q, uint32_t bit);
/* A path is trusted again. */
void urn_sv_log_up(struct urn_sv_qp *q, uint32_t bit);

/* Write a line about the device and its adapters; the context's lock is held. */
__attribute__((format(printf, 3, 4))) void
urn_sv_log_device(const struct urn_sv_ctx *ctx, enum urn_sv_event event, const char *format, ...);

#endif
