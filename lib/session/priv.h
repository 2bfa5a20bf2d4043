/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls between the files of the session machine. */
#ifndef URN_SESSION_PRIV_H
#define URN_SESSION_PRIV_H

#include "session/session.h"

static inline void
urn_sess_count(struct urn_sess_conn *c, enum urn_sess_counter what)
{
	c->counter[what]++;
}

static inline void
urn_sess_emit(struct urn_sess_conn *c, const struct urn_sess_action *a)
{
	c->cfg.act(c->cfg.arg, a);
}

static inline struct urn_sess_wr *
urn_sess_wr_at(const struct urn_sess_conn *c, uint64_t seq)
{
	return &c->cfg.wr[seq & (c->cfg.wrs - 1)];
}

static inline bool
urn_sess_is_message(const struct urn_sess_wr *w)
{
	return w->kind == URN_SESS_SEND || w->kind == URN_SESS_WRITE;
}

/* True when requests go to the queue pair as soon as they are posted. */
static inline bool
urn_sess_flows(const struct urn_sess_conn *c)
{
	return c->state == URN_SESS_CONNECTED || c->state == URN_SESS_MIGRATED;
}

/* Complete all requests that are done and have none before them that is not. */
void urn_sess_complete(struct urn_sess_conn *c);
/* Mark messages as delivered. id: the highest one, which was posted */
void urn_sess_mark(struct urn_sess_conn *c, uint64_t id);
/* Post all requests that are not done, in order. */
void urn_sess_repost(struct urn_sess_conn *c);
/* Post all receives that are not complete. */
void urn_sess_receive_again(struct urn_sess_conn *c);
/* End all requests. seq: one that gets the status `own` */
void urn_sess_end(struct urn_sess_conn *c, enum urn_sess_reason reason, uint64_t seq,
		  enum urn_sess_status own);
/* Be DEAD, and tell the peer. */
void urn_sess_bury(struct urn_sess_conn *c, enum urn_sess_reason reason);

/* True when the REPORT does not contradict what was sent and received here. Valid once drained. */
bool urn_sess_plausible(const struct urn_sess_conn *c, const struct urn_sess_report *r);
/* Draw the consequences of the peer's REPORT (FO-14, FO-15). returns: false: the connection is dead
 * now */
bool urn_sess_judge(struct urn_sess_conn *c);

#endif
