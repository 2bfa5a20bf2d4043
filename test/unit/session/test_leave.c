/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue pair that ends tells the peer LEAVE over each path that it has, or gets, meanwhile; and
 * waits for the acknowledgement of LEAVE, for a bounded time. */
#include "verbs/session/heal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER = 7, PEER = 8, CTL = 20, CONTROLS_MASK = (1 << URN_SV_CONTROLS) - 1, TURNS = 100 };

/* A connection above queue pairs that are the test's. */
struct leave_rig {
	struct urn_sv_ctx ctx;
	struct urn_sv_qp q;
	struct urn_sv_cq cq;
	struct ibv_mr mr;
	struct ibv_cq ctl_cq[URN_SV_ADAPTERS];
	struct ibv_qp ctl[URN_SV_PATHS];
	unsigned int sent[URN_SV_PATHS];	/* messages of each path */
	uint64_t ids[URN_SV_PATHS];		/* wr_id of the newest one of each */
	unsigned int waits;			/* times that the end has waited */
	void (*meanwhile)(struct leave_rig *r); /* happens while the end waits */
};

static struct leave_rig *rig;
static struct ibv_context below;
static struct ibv_wc done; /* the completion that the next poll finds; qp_num 0: none */

int __wrap_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *lock, clockid_t clock,
				  const struct timespec *until);
void __wrap_urn_sv_cq_drain(struct urn_sv_cq *cq, uint32_t adapter);
void __wrap_urn_sv_after(struct urn_sv_qp *q);

int
__wrap_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *lock, clockid_t clock,
			      const struct timespec *until)
{
	(void)cond, (void)lock, (void)clock, (void)until;
	if (rig->waits++ == TURNS)
		return ETIMEDOUT;
	if (rig->meanwhile != NULL)
		rig->meanwhile(rig);
	return 0;
}

void
__wrap_urn_sv_cq_drain(struct urn_sv_cq *cq, uint32_t adapter)
{
	(void)cq, (void)adapter;
}

void
__wrap_urn_sv_after(struct urn_sv_qp *q)
{
	(void)q;
}

static int
post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	uint32_t path = qp->qp_num - CTL;
	struct urn_sess_msg m;

	*bad = wr;
	assert_int_equal(urn_sess_wire_get((void *)(uintptr_t)wr->sg_list->addr,
					   wr->sg_list->length, PEER, &m),
			 URN_SESS_V_OK);
	assert_int_equal(m.kind, URN_SESS_WIRE_LEAVE);
	rig->sent[path]++;
	rig->ids[path] = wr->wr_id;
	return 0;
}

static int
poll_one(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	(void)cq, (void)n;
	*wc = done;
	done.qp_num = 0;
	return wc->qp_num != 0 ? 1 : 0;
}

/* A Send of a path is acknowledged. */
static void
acknowledge(struct leave_rig *r, uint32_t path, uint64_t id)
{
	done = (struct ibv_wc){.wr_id = id, .qp_num = CTL + path};
	urn_sv_control_poll(&r->ctx, r->q.path[path].mine);
}

static int
setup(void **state)
{
	struct leave_rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	rig = r;
	below.ops.post_send = post_send;
	below.ops.poll_cq = poll_one;
	r->ctx.log_fd = -1;
	r->q.ctx = &r->ctx;
	r->q.mode = URN_SV_SESSION;
	r->q.lower = true;
	r->q.ibv.qp_num = NUMBER;
	r->q.ibv.recv_cq = &r->cq.ibv;
	r->q.peer.number = PEER;
	r->q.c.state = URN_SESS_CONNECTED;
	r->q.memory = calloc(1, URN_SV_AT_REST);
	assert_non_null(r->q.memory);
	for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++) {
		r->q.memory_mr[i] = &r->mr;
		r->ctl_cq[i].context = &below;
		r->ctx.ctl_cq[i] = &r->ctl_cq[i];
	}
	for (uint32_t i = 0; i < URN_SV_PATHS; i++) {
		struct urn_sv_path *p = &r->q.path[i];

		r->ctl[i] = (struct ibv_qp){.context = &below, .qp_num = CTL + i};
		p->qp = &r->q;
		p->mine = i / URN_SV_ADAPTERS;
		p->theirs = i % URN_SV_ADAPTERS;
		p->ctl = &r->ctl[i];
		LIST_INSERT_HEAD(&r->ctx.ctl_bucket[(CTL + i) % URN_SV_BUCKETS], p, ctl_link);
	}
	*state = r;
	return 0;
}

static int
teardown(void **state)
{
	struct leave_rig *r = *state;

	free(r->q.memory);
	free(r);
	return 0;
}

/* The path's oldest message is acknowledged, then LEAVE. */
static void
drain(struct leave_rig *r)
{
	struct urn_sv_path *p = &r->q.path[0];

	if (p->ctl_busy == CONTROLS_MASK && r->sent[0] == 0)
		acknowledge(r, 0, 3);
	else if (r->sent[0] == 1)
		acknowledge(r, 0, r->ids[0]);
}

/* A path whose slots are full gets LEAVE when one is free; and the acknowledgement of other
 * messages is not that of LEAVE. */
static void
full(void **state)
{
	struct leave_rig *r = *state;

	r->q.path[0].ctl_ok = true;
	r->q.path[0].ctl_busy = CONTROLS_MASK;
	r->meanwhile = drain;
	urn_sv_leave(&r->q);
	assert_int_equal(r->sent[0], 1);
	assert_int_equal(r->waits, 2);
	assert_true(r->q.told);
	assert_int_equal(r->q.path[0].ctl_busy, CONTROLS_MASK & ~(1 << 3));
}

/* All other messages of the path are acknowledged, and LEAVE is not. */
static void
all_but_leave(struct leave_rig *r)
{
	for (uint32_t slot = 0; slot < URN_SV_CONTROLS; slot++)
		if (r->q.path[0].ctl_busy & 1u << slot &&
		    (r->sent[0] == 0 || slot != r->ids[0] % URN_SV_CONTROLS))
			acknowledge(r, 0, slot);
}

/* An end waits for a bounded time, and sends no more than it must. */
static void
bounded(void **state)
{
	struct leave_rig *r = *state;

	r->q.path[0].ctl_ok = true;
	r->q.path[0].ctl_busy = CONTROLS_MASK;
	r->meanwhile = all_but_leave;
	urn_sv_leave(&r->q);
	assert_int_equal(r->sent[0], 1);
	assert_int_equal(r->waits, TURNS + 1);
	assert_true(r->q.told);
	/* Once told the end says no more. */
	urn_sv_leave(&r->q);
	assert_int_equal(r->sent[0], 1);
}

/* Another path is agreed, and the first one fails: the new one carries LEAVE. */
static void
agree(struct leave_rig *r)
{
	if (r->waits == 1) {
		r->q.path[3].ctl_ok = true;
		r->q.path[0].ctl_ok = false;
	} else {
		acknowledge(r, 3, r->ids[3]);
	}
}

static void
agreed(void **state)
{
	struct leave_rig *r = *state;

	r->q.path[0].ctl_ok = true;
	r->meanwhile = agree;
	urn_sv_leave(&r->q);
	assert_int_equal(r->sent[0], 1);
	assert_int_equal(r->sent[3], 1);
	assert_int_equal(r->waits, 2);
}

/* A path that is made anew meanwhile has a queue pair that was not given LEAVE. */
static void
anew(struct leave_rig *r)
{
	struct urn_sv_path *p = &r->q.path[1];

	if (r->waits == 1) {
		p->leaves = true;
		r->ctl_cq[0].cqe = 0;
		LIST_REMOVE(p, ctl_link);
		p->ctl = NULL;
		urn_sv_path_end(p, false);
		assert_false(p->ctl_ok || p->leaves);
		p->ctl = &r->ctl[1];
		p->ctl_busy = 0;
		p->ctl_ok = true;
		LIST_INSERT_HEAD(&r->ctx.ctl_bucket[(CTL + 1) % URN_SV_BUCKETS], p, ctl_link);
	} else {
		acknowledge(r, 1, r->ids[1]);
	}
}

static void
made_anew(void **state)
{
	struct leave_rig *r = *state;

	r->q.path[1].ctl_ok = true;
	r->meanwhile = anew;
	urn_sv_leave(&r->q);
	assert_int_equal(r->sent[1], 2);
	assert_int_equal(r->waits, 2);
}

/* Without a path, and to a peer that has left, nothing is told. */
static void
nobody(void **state)
{
	struct leave_rig *r = *state;

	urn_sv_leave(&r->q);
	r->q.told = false;
	r->q.left = r->q.path[0].ctl_ok = true;
	urn_sv_leave(&r->q);
	assert_int_equal(r->sent[0], 0);
	assert_int_equal(r->waits, 0);
}

int
main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {T(full), T(bounded), T(agreed), T(made_anew), T(nobody)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
