/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues over sessions: peers that are fast, that have no session layer, or that
 * mean ill, take nothing from other connections of the queue (FO-1, FO-14). */
#include "srq_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Paths of our two adapters; ms: how long a queue stays on a home that lives. */
enum { SENDS = 6, MINE_P = 0x3, MINE_S = 0xc, STAY = 5000 };

/* A message for a queue pair that is not connected finds no receive. */
static void
early(struct srq_rig *r)
{
	struct urn_sv_qp *q = LIST_FIRST(&r->ctx.qps);
	struct srq_below_qp *qp = (struct srq_below_qp *)q->path[0].real;
	struct urn_sess_header h = {.id = 1, .conn = q->ibv.qp_num, .length = 1, .op = IBV_WC_RECV};

	if (srq_take(r, qp, &h))
		srq_complete(qp, IBV_WC_SUCCESS);
	srq_poll(r);
	srq_whole(r);
}

/* A peer that is faster sends while this end asks: the receives of the queue stay until both ends
 * agree, and the message comes when it is repeated. */
static void
meets(void **state)
{
	struct srq_rig *r = *state;

	srq_begin(r, 1);
	r->window = early;
	assert_int_equal(srq_connect(srq_init(r)), 0);
	assert_int_equal(((struct srq_below_qp *)r->q[1].path[0].real)->state, IBV_QPS_RTS);
	srq_run(r, SENDS);
	srq_whole(r);
	srq_end(r);
}

/* FO-1: a peer without a session layer gets no receive of a queue whose connections have sessions,
 * however often it tries; its queue pair can try again. */
static void
strangers(void **state)
{
	struct srq_rig *r = *state;
	struct urn_sv_qp *q;

	srq_begin(r, 1);
	r->window = early;
	q = srq_init(r);
	r->plain = true;
	for (int i = 0; i < 2; i++)
		assert_int_equal(srq_connect(q), EOPNOTSUPP);
	assert_int_equal(((struct srq_below_qp *)q->path[0].real)->state, IBV_QPS_INIT);
	r->plain = false;
	assert_int_equal(srq_connect(q), 0);
	srq_run(r, SENDS);
	srq_whole(r);
	srq_end(r);
}

/* The log tells which kind of queue pairs a queue is for, once. */
static void
told(struct srq_rig *r, bool session)
{
	char text[256] = "", want[80];

	srq_begin(r, 0);
	r->ctx.log_fd = memfd_create("log", MFD_CLOEXEC);
	r->ctx.options.log = URN_LOG_INFO;
	assert_true(r->ctx.log_fd >= 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(urn_sv_srq_decide(r->srq, session), 0);
	assert_int_equal(urn_sv_srq_decide(r->srq, !session), EOPNOTSUPP);
	assert_true(pread(r->ctx.log_fd, text, sizeof(text) - 1, 0) > 0);
	snprintf(want, sizeof(want), "shared receive queue %u is for queue pairs %s a session\n",
		 r->srq->ibv.handle, session ? "with" : "without");
	assert_non_null(strstr(text, want));
	assert_ptr_equal(strchr(text, '\n') + 1, text + strlen(text));
	close(r->ctx.log_fd);
	r->ctx.log_fd = -1;
	srq_end(r);
}

/* The first queue pair decides the kind of its queue, and the log tells of it (FO-1). */
static void
kinds(void **state)
{
	told(*state, true);
}

static void
kinds_plain(void **state)
{
	told(*state, false);
}

/* A completion of a queue pair that is not connected is not the program's: its receive returns. */
static void
unconnected(void **state)
{
	struct srq_rig *r = *state;
	struct srq_below_qp *qp;

	srq_begin(r, 1);
	qp = (struct srq_below_qp *)srq_init(r)->path[0].real;
	qp->state = IBV_QPS_RTR;
	early(r);
	assert_int_equal(srq_real(r, 0)->head, 1);
	assert_int_equal(srq_connect(&r->q[1]), 0);
	srq_run(r, SENDS);
	srq_whole(r);
	srq_end(r);
}

/* The home moves while a connection asks, and the others end: its queue pair was of the old home.
 */
static void
leaves_home(struct srq_rig *r)
{
	r->peer[0].paths = MINE_S;
	urn_sv_down(&r->q[0], 0);
	urn_sv_down(&r->q[0], 1);
	srq_settle(r);
	assert_int_equal(r->srq->home, 1);
	urn_sv_kill(&r->q[0]);
}

static void
behind(void **state)
{
	struct srq_rig *r = *state;

	srq_begin(r, 1);
	r->window = leaves_home;
	assert_int_equal(srq_connect(srq_init(r)), EIO);
	assert_int_equal(r->srq->home, 1);
	srq_whole(r);
	srq_end(r);
}

/* The peer of the second connection says that only paths of the backup are left. */
static void
lure(struct srq_rig *r, uint32_t paths)
{
	srq_tell(r, 1, paths);
	r->peer[1].reported = r->q[1].c.epoch;
	srq_settle(r);
}

/* That moves nobody who can't follow: the first connection has no path there, and goes on; the
 * second one gives the paths up, and is the only one that ends. */
static void
lures(void **state)
{
	struct srq_rig *r = *state;

	srq_begin(r, SRQ_CONNECTIONS);
	r->q[0].c.alive &= ~(uint32_t)MINE_S;
	lure(r, MINE_S);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(r->srq->home, 0);
		assert_int_equal(r->q[1].c.state, URN_SESS_BINDING);
		assert_int_equal(r->q[0].c.state, URN_SESS_CONNECTED);
		assert_int_equal(r->q[0].c.epoch, 0);
		r->now += i == 0 ? STAY - 1 : 1;
		srq_settle(r);
	}
	assert_int_equal(r->srq->home, 0);
	assert_int_equal(r->q[1].c.state, URN_SESS_DEAD);
	assert_int_equal(r->q[1].c.reason, URN_SESS_NO_PATH);
	assert_int_equal(r->q[0].c.epoch, 0);
	srq_leave(r);
	srq_run(r, SENDS);
	srq_whole(r);
	srq_end(r);
}

/* A connection whose path is trusted meanwhile follows. */
static void
follows(void **state)
{
	struct srq_rig *r = *state;

	srq_begin(r, SRQ_CONNECTIONS);
	r->q[0].c.alive &= ~(uint32_t)MINE_S;
	lure(r, MINE_S);
	r->now += STAY - 1;
	urn_sess_up(&r->q[0].c, 2);
	srq_settle(r);
	assert_int_equal(r->srq->home, 1);
	srq_run(r, SENDS);
	srq_whole(r);
	srq_end(r);
}

/* Homes that live are left seldom, however often a peer asks for it. */
static void
seldom(void **state)
{
	struct srq_rig *r = *state;

	srq_begin(r, SRQ_CONNECTIONS);
	lure(r, MINE_S);
	assert_int_equal(r->srq->home, 1);
	srq_back(r, 0); /* healed */
	lure(r, MINE_P);
	r->now += STAY - 1;
	srq_settle(r);
	assert_int_equal(r->srq->home, 1);
	assert_int_equal(r->q[0].c.state, URN_SESS_CONNECTED);
	r->now++;
	srq_settle(r);
	assert_int_equal(r->srq->home, 0);
	srq_run(r, SENDS);
	srq_whole(r);
	srq_end(r);
}

/* A peer begins a long message on a backup path, which takes a receive, and offers the path anew.
 * The queue pair goes when the receive is back, or when its adapter has said nothing for a second.
 */
static void
offers(void **state)
{
	struct urn_sess_header h = {.id = 1, .conn = SRQ_NUMBER + 1, .length = 1};
	const struct urn_sess_offer o = {.path = 1, .round = 2};
	struct srq_rig *r = *state;

	for (int says = 0; says < 2; says++) {
		struct ibv_qp *was;

		assert_int_equal(srq_teardown(state), 0);
		assert_int_equal(srq_setup(state), 0);
		r = *state;
		r->ctx.options.probe = 100;
		srq_begin(r, SRQ_CONNECTIONS);
		was = r->q[0].path[1].real;
		assert_true(srq_take(r, (struct srq_below_qp *)was, &h));
		r->late = true;
		urn_sv_heal_heard(&r->q[0], &o);
		r->now += 998;
		(void)urn_sv_heal_tick(&r->ctx, r->now);
		assert_ptr_equal(r->q[0].path[1].real, was);
		srq_give((struct srq_below_qp *)was);
		if (says)
			urn_sv_last_reached(&r->ctx, 0, was->qp_num);
		r->now += says ? 1 : 2;
		(void)urn_sv_heal_tick(&r->ctx, r->now);
		assert_int_equal(r->q[0].path[1].heal.end.own, 2);
		assert_true(r->q[0].path[1].heal.fresh);
		srq_whole(r);
		srq_run(r, SENDS);
		srq_whole(r);
		srq_end(r);
	}
}

/* P-P's queue pair is reset, and waited for anew the next time. */
static void
offers_again(void **state)
{
	struct urn_sess_header h = {.id = 1, .conn = SRQ_NUMBER + 1, .length = 1};
	struct srq_rig *r = *state;
	struct srq_below_qp *pp;

	r->ctx.options.probe = 100;
	srq_begin(r, SRQ_CONNECTIONS);
	r->peer[0].paths = 0xe;
	pp = (struct srq_below_qp *)r->q[0].path[0].real;
	urn_sv_down(&r->q[0], 0);
	srq_settle(r);
	r->late = true;
	(void)urn_sv_heal_tick(&r->ctx, r->now);
	urn_sv_last_reached(&r->ctx, 0, pp->ibv.qp_num);
	r->now++;
	(void)urn_sv_heal_tick(&r->ctx, r->now);
	assert_int_equal(pp->state, IBV_QPS_INIT);
	pp->state = IBV_QPS_RTR; /* connected, and lost */
	assert_true(srq_take(r, pp, &h));
	r->q[0].path[0].heal.fresh = false;
	r->now += 100;
	(void)urn_sv_heal_tick(&r->ctx, r->now);
	assert_int_equal(pp->has, 1);
	srq_give(pp);
	urn_sv_last_reached(&r->ctx, 0, pp->ibv.qp_num);
	r->now += 1;
	(void)urn_sv_heal_tick(&r->ctx, r->now);
	assert_int_equal(pp->state, IBV_QPS_INIT);
	srq_whole(r);
	srq_end(r);
}

/* A header that claims more, or fewer, bytes than came ends the connection, and the receive, whose
 * buffer has what others sent before, returns. */
static void
claims(void **state)
{
	static const uint8_t ops[] = {IBV_WC_RECV, IBV_WC_RECV_RDMA_WITH_IMM};
	struct srq_rig *r = *state;

	for (unsigned int i = 0; i < 4; i++) {
		struct urn_sess_header h = {
			.id = 1, .conn = SRQ_NUMBER, .length = 4096, .op = ops[i % 2]};

		assert_int_equal(srq_teardown(state), 0);
		assert_int_equal(srq_setup(state), 0);
		r = *state;
		srq_begin(r, SRQ_CONNECTIONS);
		assert_true(srq_take(r, srq_used(r, 0), &h));
		srq_used(r, 0)->bytes[0] += i < 2 ? 1 : UINT32_MAX;
		srq_complete(srq_used(r, 0), IBV_WC_SUCCESS);
		srq_poll(r);
		assert_int_equal(r->q[0].c.state, URN_SESS_DEAD);
		assert_int_equal(r->q[1].c.state, URN_SESS_CONNECTED);
		srq_whole(r);
		srq_end(r);
	}
}

/* The same of a queue pair with receives of its own. */
static void
claims_own(void **state)
{
	struct urn_sess_header h = {.length = 9, .op = IBV_WC_RECV};
	struct ibv_recv_wr *bad, wr = {.num_sge = 1};
	struct ibv_sge sge = {.length = 4096};
	struct srq_rig *r = *state;
	struct urn_sess_wire *area;
	struct urn_sv_qp *q = r->q;
	struct ibv_wc wc;

	wr.sg_list = &sge;
	r->own = true;
	srq_begin(r, 1);
	area = (struct urn_sess_wire *)(q->memory + q->receives_at);
	for (h.id = 1; h.id <= 2; h.id++) {
		assert_int_equal(urn_sv_post_recv(&q->ibv, &wr, &bad), 0);
		urn_sess_header_put(&area[h.id - 1], &h);
		srq_used(r, 0)->taken[0] = URN_SV_ID_RECV | (h.id - 1);
		srq_used(r, 0)->bytes[0] = (uint32_t)sizeof(*area) + (h.id == 1 ? 9 : 8);
		srq_used(r, 0)->has = 1;
		srq_complete(srq_used(r, 0), IBV_WC_SUCCESS);
		assert_int_equal(urn_sv_poll_cq(&r->cq.ibv, 1, &wc), 1);
		assert_int_equal(wc.status, h.id == 1 ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR);
	}
	assert_int_equal(q->c.state, URN_SESS_DEAD);
	srq_end(r);
}

int
main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, srq_setup, srq_teardown)
	const struct CMUnitTest tests[] = {
		T(meets),	 T(strangers), T(kinds),      T(kinds_plain), T(unconnected),
		T(behind),	 T(lures),     T(follows),    T(seldom),      T(offers),
		T(offers_again), T(claims),    T(claims_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
