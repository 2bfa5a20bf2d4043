/* SPDX-License-Identifier: BSD-3-Clause */
/* URNIC_SESSION_LOG: the log of steps (doc/reference/sessions.md). */
#ifndef URN_VERBS_SESSION_LOG_H
#define URN_VERBS_SESSION_LOG_H

#include "session/session.h"
#include "session/wire.h"

struct urn_sv_ctx;
struct urn_sv_qp;

/*
 * Open the log.
 *
 * text: the variable's value; NULL or empty: no log; "stderr", or a file that lines are appended to
 * fd: set to a descriptor of our own, or -1: no log
 * returns: 0; an errno value with its text: the file can't be opened
 */
int urn_sv_log_open(const char *text, int *fd);

/* ---- lines about a connection; the context's lock is held */

/* True when there is a log of steps. */
bool urn_sv_logs(const struct urn_sv_qp *q);
/* Write a line about a connection. */
__attribute__((format(printf, 2, 3))) void urn_sv_log(struct urn_sv_qp *q, const char *format, ...);
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
__attribute__((format(printf, 2, 3))) void urn_sv_log_device(const struct urn_sv_ctx *ctx,
							     const char *format, ...);

#endif
