/* SPDX-License-Identifier: BSD-3-Clause */
/* One end of a session connection whose actions are kept. */
#ifndef URN_TEST_SESSION_RIG_H
#define URN_TEST_SESSION_RIG_H

#include "session/session.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

enum { RIG_WRS = 16, RIG_RECVS = 8, RIG_LOG = 256 };

/* An action that was taken. */
struct rig_taken {
	struct urn_sess_action a;
	struct urn_sess_report report; /* the one of TELL */
};

struct rig {
	struct urn_sess_conn c;
	struct urn_sess_group group;
	struct urn_sess_wr wr[RIG_WRS];
	struct urn_sess_recv recv[RIG_RECVS];
	struct rig_taken taken[RIG_LOG];
	unsigned int n;	   /* actions taken */
	unsigned int read; /* ... and looked at */
};

static void
rig_act(void *arg, const struct urn_sess_action *a)
{
	struct rig *r = arg;

	assert_true(r->n < RIG_LOG);
	r->taken[r->n].a = *a;
	if (a->message)
		r->taken[r->n].report = *a->message;
	r->n++;
}

static inline struct urn_sess_config
rig_config(struct rig *r)
{
	return (struct urn_sess_config){
		.group = &r->group,
		.wr = r->wr,
		.wrs = RIG_WRS,
		.recv = r->recv,
		.recvs = RIG_RECVS,
		.number = 7,
		.paths = 0xf,
		.act = rig_act,
		.arg = r,
	};
}

static inline void
rig_open(struct rig *r)
{
	struct urn_sess_config cfg;

	memset(r, 0, sizeof(*r));
	cfg = rig_config(r);
	assert_true(urn_sess_init(&r->c, &cfg));
}

/* The next action, which must be of this kind. */
static inline const struct rig_taken *
rig_next(struct rig *r, enum urn_sess_act want)
{
	assert_true(r->read < r->n);
	assert_int_equal(r->taken[r->read].a.act, want);
	return &r->taken[r->read++];
}

static inline void
rig_quiet(const struct rig *r)
{
	assert_int_equal(r->read, r->n);
}

/* Post requests: S Send, W write, R READ, A atomic, B bind. */
static inline void
rig_post(struct rig *r, const char *kinds)
{
	static const char letters[] = "SWRAB";
	uint64_t seq;

	for (; *kinds; kinds++)
		assert_int_equal(
			urn_sess_post(&r->c,
				      (enum urn_sess_kind)(strchr(letters, *kinds) - letters),
				      &seq),
			1);
}

static inline void
rig_complete(struct rig *r, uint64_t seq, enum urn_sess_status status)
{
	const struct rig_taken *t = rig_next(r, URN_SESS_COMPLETE);

	assert_int_equal(t->a.seq, seq);
	assert_int_equal(t->a.status, status);
}

static inline bool
rig_receive(struct rig *r, uint64_t id, uint64_t acked)
{
	return urn_sess_received(&r->c, r->c.used,
				 &(struct urn_sess_header){.id = id, .acked = acked, .conn = 7});
}

/* A header as it is found in a receive buffer. */
static inline void
rig_found(struct rig *r, uint32_t index, uint64_t id)
{
	struct urn_sess_header h = {.id = id, .conn = 7, .epoch = (uint16_t)r->c.used};

	assert_true(urn_sess_found(&r->c, index, id ? &h : NULL));
}

/* From the failure of the path in use to DRAINING. */
static inline void
rig_fail(struct rig *r)
{
	urn_sess_down(&r->c, r->c.path);
	rig_next(r, URN_SESS_FENCE);
	assert_int_equal(r->c.state, URN_SESS_SLEEPING);
	urn_sess_fenced(&r->c, r->c.used);
	rig_next(r, URN_SESS_DRAIN);
	assert_int_equal(r->c.state, URN_SESS_DRAINING);
}

static inline void
rig_drained(struct rig *r)
{
	urn_sess_drained(&r->c, r->c.used, &(struct urn_sess_record){.log = true});
}

/* From the failure of the path in use to REPORTED. */
static inline void
rig_reported(struct rig *r)
{
	rig_fail(r);
	rig_drained(r);
	rig_next(r, URN_SESS_TELL);
	assert_int_equal(r->c.state, URN_SESS_REPORTED);
}

/* A REPORT of the peer in our epoch. */
static inline struct urn_sess_report
rig_report(const struct rig *r, uint64_t sent, uint64_t sends, uint64_t received)
{
	return (struct urn_sess_report){
		.epoch = r->c.epoch,
		.flags = URN_SESS_R_LOG,
		.paths = 0xe,
		.sent = sent,
		.sends = sends,
		.received = received,
	};
}

static inline void
rig_hear(struct rig *r, struct urn_sess_report report, uint32_t flags)
{
	report.flags |= flags;
	urn_sess_report(&r->c, &report);
}

#endif
