/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a queue pair with a shared receive queue: the event of its last receive (IBTA 11.6.3),
 * and its reset. */
#include "srq_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <poll.h>

enum { SENDS = 3 };

static int
to_state(struct urn_sv_qp *q, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	return urn_sv_modify_qp(&q->ibv, &attr, IBV_QP_STATE);
}

/* No event waits, and none is announced. */
static void
nothing(struct srq_rig *r)
{
	struct pollfd p = {.fd = r->ctx.front.vctx.context.async_fd, .events = POLLIN};
	struct ibv_async_event event;

	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(urn_sv_get_async_event(&r->ctx.front.vctx.context, &event), -1);
	assert_int_equal(errno, EAGAIN);
}

/* One event waits, of this queue pair. */
static void
one(struct srq_rig *r, struct urn_sv_qp *q)
{
	struct ibv_async_event event;
	uint32_t got = q->events_got;

	assert_int_equal(urn_sv_get_async_event(&r->ctx.front.vctx.context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_ptr_equal(event.element.qp, &q->ibv);
	assert_int_equal(q->events_got, got + 1);
	nothing(r);
}

/* The program ends a connection, which has a receive in hand: it is back before the event. */
static void
ended(void **state)
{
	struct urn_sess_header h = {.id = 1, .conn = SRQ_NUMBER + 1, .length = 1};
	struct srq_rig *r = *state;

	srq_begin(r, SRQ_CONNECTIONS);
	assert_true(srq_take(r, srq_used(r, 1), &h));
	nothing(r);
	r->q[1].told = true; /* the peer's answer to LEAVE is not waited for */
	assert_int_equal(to_state(&r->q[1], IBV_QPS_ERR), 0);
	nothing(r);
	assert_int_equal(r->srq->held, SRQ_RECEIVES);
	assert_int_equal(srq_waiting(r, 0), SRQ_RECEIVES - 1);
	urn_sv_settle(&r->ctx);
	srq_whole(r);
	one(r, &r->q[1]);
	assert_int_equal(to_state(&r->q[1], IBV_QPS_ERR), 0);
	srq_settle(r);
	nothing(r);
	srq_leave(r);
	srq_run(r, SENDS);
	srq_end(r);
}

/* A connection dies by itself: the event comes once, and again only behind RESET. */
static void
died(void **state)
{
	struct srq_rig *r = *state;

	srq_begin(r, SRQ_CONNECTIONS);
	urn_sv_kill(&r->q[0]);
	srq_settle(r);
	one(r, &r->q[0]);
	srq_settle(r);
	nothing(r);
	assert_int_equal(to_state(&r->q[0], IBV_QPS_RESET), 0);
	r->q[0].ibv.state = IBV_QPS_RESET;
	assert_int_equal(to_state(&r->q[0], IBV_QPS_INIT), 0);
	assert_int_equal(to_state(&r->q[0], IBV_QPS_ERR), 0);
	srq_settle(r);
	one(r, &r->q[0]);
	srq_end(r);
}

/* Each queue pair has an event when all adapters are lost. */
static void
all(void **state)
{
	struct srq_rig *r = *state;
	struct ibv_async_event event;
	struct ibv_wc wc;
	uint32_t n = 0;

	srq_begin(r, SRQ_CONNECTIONS);
	srq_kill(r, 0);
	srq_settle(r);
	nothing(r);
	srq_kill(r, 1);
	srq_settle(r);
	while (urn_sv_get_async_event(&r->ctx.front.vctx.context, &event) == 0)
		n += event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED;
	assert_int_equal(n, SRQ_CONNECTIONS);
	for (uint32_t i = 0; i < SRQ_CONNECTIONS; i++)
		assert_int_equal(r->q[i].events_got, 1);
	while (urn_sv_poll_cq(&r->cq.ibv, 1, &wc) == 1)
		r->posted[wc.wr_id] = false;
	srq_end(r);
}

/* An event that was not fetched goes with the queue pair's next life, or its end. */
static void
forgotten(void **state)
{
	struct srq_rig *r = *state;

	srq_begin(r, SRQ_CONNECTIONS);
	urn_sv_kill(&r->q[0]);
	urn_sv_kill(&r->q[1]);
	srq_settle(r);
	assert_int_equal(to_state(&r->q[0], IBV_QPS_RESET), 0);
	one(r, &r->q[1]);
	srq_end(r);
}

/* Without a session the adapter's event is shown; with one the adapter's tells nothing. */
static void
adapters(void **state)
{
	struct srq_rig *r = *state;
	uint32_t real;

	srq_begin(r, 1);
	urn_sv_last_reached(&r->ctx, 0, r->q[0].path[0].real->qp_num);
	urn_sv_last_reached(&r->ctx, 0, 0);
	srq_settle(r);
	nothing(r);
	r->q[0].mode = URN_SV_PLAIN;
	real = r->q[0].path[0].real->qp_num;
	for (int i = 0; i < 2; i++) {
		urn_sv_last_reached(&r->ctx, 0, real);
		urn_sv_last_reached(&r->ctx, 0, real);
		one(r, &r->q[0]);
	}
	r->q[0].mode = URN_SV_SESSION;
	srq_end(r);
}

/* Queue pairs with receives of their own have no such event. */
static void
own(void **state)
{
	struct srq_rig *r = *state;

	r->own = true;
	srq_begin(r, 1);
	urn_sv_kill(&r->q[0]);
	srq_settle(r);
	nothing(r);
	r->own = false;
	srq_end(r);
}

/* A queue pair can't be reset while the primary adapter is away: its connection goes on (FO-16). */
static void
reset_away(void **state)
{
	struct srq_rig *r = *state;

	srq_begin(r, SRQ_CONNECTIONS);
	srq_kill(r, 0);
	srq_settle(r);
	r->q[1].told = true; /* the peer's answer to LEAVE is not waited for */
	assert_int_equal(to_state(&r->q[1], IBV_QPS_RESET), EIO);
	srq_run(r, SENDS);
	srq_whole(r);
	srq_end(r);
}

int
main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, srq_setup, srq_teardown)
	const struct CMUnitTest tests[] = {
		T(ended), T(died), T(all), T(forgotten), T(adapters), T(own), T(reset_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
