/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues over sessions (FO-4, FO-7, FO-9, FO-14, FO-16, FO-18, FO-19): each Send
 * once and in order, and no receive lost, wherever an adapter dies. */
#include "srq_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <sys/eventfd.h>

enum { SENDS = 6, THEIRS_S = 0xa, MINE_P = 0x3, MINE_S = 0xc, EACH = 7 };

/* Without a failure: completions have the number of the connection, and two queues are below. */
static void
nothing(void **state)
{
	struct srq_rig *r = *state;

	srq_begin(r, SRQ_CONNECTIONS);
	assert_int_equal(srq_waiting(r, 0), SRQ_RECEIVES);
	assert_int_equal(srq_waiting(r, 1), 0);
	srq_run(r, SENDS);
	srq_whole(r);
	assert_int_equal(r->srq->home, 0);
	srq_end(r);
}

/* An adapter dies at a step. returns: false: the messages had come before */
static bool
dies(struct srq_rig *r, uint32_t adapter, uint32_t at)
{
	r->kill = adapter;
	r->kill_at = at;
	srq_begin(r, SRQ_CONNECTIONS);
	srq_run(r, SENDS);
	srq_whole(r);
	if (r->step > at)
		assert_int_equal(r->srq->home, adapter == 0);
	srq_run(r, SENDS);
	srq_whole(r);
	srq_end(r);
	return r->step > at;
}

static void
each_step(void **state)
{
	for (uint32_t adapter = 0; adapter < URN_SV_ADAPTERS; adapter++) {
		uint32_t at = 0;
		bool died;

		do {
			assert_int_equal(srq_teardown(state), 0);
			assert_int_equal(srq_setup(state), 0);
			died = dies(*state, adapter, at++);
		} while (died && at < SRQ_NEVER);
		assert_true(at > 4 * SENDS * SRQ_CONNECTIONS);
	}
}

/* A second death behind healing, FO-19. */
static void
twice(void **state)
{
	for (uint32_t first = 0; first < 60; first += 3)
		for (uint32_t more = 1; more < 50; more++) {
			struct srq_rig *r;

			assert_int_equal(srq_teardown(state), 0);
			assert_int_equal(srq_setup(state), 0);
			r = *state;
			r->kill_at = first;
			r->heal_at = first + EACH;
			r->again_at = r->heal_at + more;
			r->again = 1;
			srq_begin(r, SRQ_CONNECTIONS);
			srq_run(r, 3 * SENDS);
			assert_int_equal(r->srq->home, 0);
			srq_whole(r);
			srq_end(r);
		}
}

/* FO-14: at a remote-only failure the queue stays, and others go on undisturbed (FO-10). A receive
 * that the connection had in hand returns to the queue. */
static void
remote(void **state)
{
	struct srq_rig *r = *state;
	struct urn_sess_header h = {.id = 1, .conn = SRQ_NUMBER, .length = 1, .op = IBV_WC_RECV};

	srq_begin(r, SRQ_CONNECTIONS);
	assert_true(srq_take(r, srq_used(r, 0), &h));
	srq_tell(r, 0, THEIRS_S);
	r->peer[0].reported = r->q[0].c.epoch;
	srq_settle(r);
	assert_int_equal(r->srq->home, 0);
	assert_int_equal(urn_sv_used(&r->q[0])->mine, 0);
	assert_int_equal(urn_sv_used(&r->q[0])->theirs, 1);
	assert_int_equal(r->q[1].c.epoch, 0);
	srq_run(r, SENDS);
	srq_whole(r);
	srq_end(r);
}

/* The loss of one wire: the connection stays on the home adapter. */
static void
wire(void **state)
{
	struct srq_rig *r = *state;

	srq_begin(r, SRQ_CONNECTIONS);
	urn_sv_down(&r->q[0], 0);
	srq_settle(r);
	assert_int_equal(r->srq->home, 0);
	assert_int_equal(urn_sv_used(&r->q[0])->mine, 0);
	srq_run(r, SENDS);
	srq_whole(r);
	srq_end(r);
}

/* A connection that has no other way takes the queue and its other connections along; the real
 * queue of an adapter that lives is given up, with its queue pairs. */
static void
along(void **state)
{
	struct srq_rig *r = *state;
	struct urn_sess_header h = {
		.id = 1, .conn = SRQ_NUMBER + 1, .length = 1, .op = IBV_WC_RECV};

	srq_begin(r, SRQ_CONNECTIONS);
	assert_true(srq_take(r, srq_used(r, 1), &h));
	r->peer[0].paths = MINE_S;
	urn_sv_down(&r->q[0], 0);
	srq_settle(r);
	assert_int_equal(r->srq->home, 1);
	assert_null(r->srq->shared[0]);
	for (uint32_t n = 0; n < SRQ_CONNECTIONS; n++) {
		assert_int_equal(urn_sv_used(&r->q[n])->mine, 1);
		for (uint32_t i = 0; i < URN_SV_PATHS; i++) {
			const struct urn_sv_path *p = &r->q[n].path[i];

			assert_int_equal(urn_sv_srq_stale(p), p->mine == 0);
			assert_int_equal(((struct srq_below_qp *)p->real)->state,
					 p->mine == 0 ? IBV_QPS_ERR : IBV_QPS_RTS);
			assert_int_equal((r->q[n].c.alive & 1u << i) != 0, p->mine == 1);
		}
	}
	srq_run(r, SENDS);
	srq_whole(r);
	srq_end(r);
}

/* FO-14: the receives go to the backup's queue when the last of the connections was drained, and
 * no earlier; until then none of them is ready for its peer. */
static void
last(void **state)
{
	struct srq_rig *r = *state;
	uint32_t todo;

	srq_begin(r, SRQ_CONNECTIONS);
	srq_kill(r, 0);
	todo = r->q[1].todo;
	assert_true(todo != 0);
	r->q[1].todo = 0;
	srq_settle(r);
	assert_int_equal(r->q[0].c.state, URN_SESS_BINDING);
	assert_true(r->q[0].bound);
	assert_int_equal(r->srq->home, 0);
	assert_int_equal(srq_waiting(r, 1), 0);
	r->q[1].todo = todo;
	srq_settle(r);
	assert_int_equal(r->srq->home, 1);
	assert_int_equal(srq_waiting(r, 1), SRQ_RECEIVES);
	assert_int_equal(r->q[0].c.state, URN_SESS_CONNECTED);
	srq_run(r, SENDS);
	srq_whole(r);
	srq_end(r);
}

/* The same when that one dies instead of moving. */
static void
last_dies(void **state)
{
	struct srq_rig *r = *state;

	srq_begin(r, SRQ_CONNECTIONS);
	srq_kill(r, 0);
	r->q[1].todo = 0;
	srq_settle(r);
	assert_int_equal(r->srq->home, 0);
	urn_sv_kill(&r->q[1]);
	srq_settle(r);
	assert_int_equal(r->srq->home, 1);
	assert_int_equal(srq_waiting(r, 1), SRQ_RECEIVES);
	srq_leave(r);
	srq_run(r, SENDS);
	srq_whole(r);
	srq_end(r);
}

/* An adapter that does not answer keeps its receives until it counts as lost. */
static void
silent(void **state)
{
	struct srq_rig *r = *state;

	srq_begin(r, 1);
	r->silent[0] = true;
	r->peer[0].paths = MINE_S;
	urn_sv_down(&r->q[0], 0);
	srq_settle(r);
	assert_int_equal(r->srq->home, 0);
	assert_int_equal(srq_waiting(r, 1), 0);
	srq_kill(r, 0);
	srq_settle(r);
	assert_int_equal(r->srq->home, 1);
	srq_run(r, SENDS);
	srq_whole(r);
	srq_end(r);
}

/* A peer that names another connection is cut off; the receive is the queue's again, and nobody
 * gets the message. */
static void
forged(void **state)
{
	struct srq_rig *r = *state;
	struct urn_sess_header h = {
		.id = 1, .conn = SRQ_NUMBER + 1, .length = 1, .op = IBV_WC_RECV};

	for (int lost = 0; lost < 2; lost++) {
		assert_int_equal(srq_teardown(state), 0);
		assert_int_equal(srq_setup(state), 0);
		r = *state;
		srq_begin(r, SRQ_CONNECTIONS);
		assert_true(srq_take(r, srq_used(r, 0), &h));
		if (lost) { /* the other one's peer has a Send that seems to be this one */
			r->peer[1].all = r->peer[1].flushed = 1;
			srq_kill(r, 0);
			srq_settle(r);
			assert_int_equal(r->q[1].c.reason, URN_SESS_NO_HEADER);
			assert_int_equal(r->q[0].c.state, URN_SESS_CONNECTED);
		} else {
			srq_complete(srq_used(r, 0), IBV_WC_SUCCESS);
			srq_poll(r);
			assert_int_equal(r->q[0].c.state, URN_SESS_DEAD);
			assert_int_equal(r->q[1].c.state, URN_SESS_CONNECTED);
		}
		assert_int_equal(r->got[0] + r->got[1], 0);
		srq_whole(r);
		srq_end(r);
	}
}

/* FO-16: a receive that a stale queue pair completes, or gives back, returns to the queue. */
static void
stale(void **state)
{
	struct srq_rig *r = *state;
	struct urn_sess_header h = {.id = 1, .conn = SRQ_NUMBER, .length = 1, .op = IBV_WC_RECV};
	struct srq_below_qp *backup;

	srq_begin(r, 1);
	backup = (struct srq_below_qp *)r->q[0].path[1].real;
	assert_true(srq_take(r, backup, &h));
	srq_complete(backup, IBV_WC_SUCCESS);
	assert_true(srq_take(r, backup, &h));
	srq_complete(backup, IBV_WC_WR_FLUSH_ERR);
	srq_poll(r);
	assert_int_equal(r->got[0], 0);
	srq_whole(r);
	srq_run(r, SENDS);
	srq_whole(r);
	srq_end(r);
}

/* FO-9: receives are rebuilt in the order of ids, whatever slots they have. */
static void
order(void **state)
{
	struct srq_rig *r = *state;
	struct urn_sess_header h = {.conn = SRQ_NUMBER, .op = IBV_WC_RECV};

	srq_begin(r, 1);
	srq_run(r, SRQ_RECEIVES -
			   1); /* the next one has the last slot, and those behind it the first */
	for (h.id = SRQ_RECEIVES; h.id <= SRQ_RECEIVES + 2; h.id++) {
		h.length = (uint32_t)h.id;
		assert_true(srq_take(r, srq_used(r, 0), &h));
	}
	r->peer[0].all = r->peer[0].flushed = SRQ_RECEIVES + 2;
	srq_kill(r, 0);
	srq_settle(r);
	srq_poll(r);
	assert_int_equal(r->got[0], SRQ_RECEIVES + 2);
	srq_run(r, SENDS);
	srq_whole(r);
	srq_end(r);
}

/* A completion that is late, of a receive that was posted again meanwhile, changes nothing. */
static void
late(void **state)
{
	struct srq_rig *r = *state;
	struct urn_sess_header h = {.id = 1, .conn = SRQ_NUMBER, .length = 1, .op = IBV_WC_RECV};
	struct srq_below_qp *left;
	uint64_t wr_id;

	srq_begin(r, 1);
	left = srq_used(r, 0);
	assert_true(srq_take(r, left, &h));
	wr_id = left->taken[0];
	srq_tell(r, 0, THEIRS_S);
	r->peer[0].reported = r->q[0].c.epoch;
	srq_settle(r);
	srq_whole(r);
	left->taken[left->has++] = wr_id;
	srq_complete(left, IBV_WC_WR_FLUSH_ERR);
	srq_poll(r);
	srq_whole(r);
	srq_run(r, SENDS);
	srq_whole(r);
	srq_end(r);
}

/* The receives of a connection that dies behind its fence return to the queue. */
static void
dead(void **state)
{
	struct srq_rig *r = *state;
	struct urn_sess_header h = {.id = 1, .conn = SRQ_NUMBER, .length = 1, .op = IBV_WC_RECV};

	srq_begin(r, SRQ_CONNECTIONS);
	assert_true(srq_take(r, srq_used(r, 0), &h));
	srq_complete(srq_used(r, 0), IBV_WC_WR_FLUSH_ERR);
	srq_poll(r);
	assert_int_equal(srq_waiting(r, 0), SRQ_RECEIVES - 1);
	urn_sv_kill(&r->q[0]);
	srq_whole(r);
	srq_end(r);
}

/* A receive that a queue pair had in hand when it was destroyed or reset goes back, whatever
 * connection its header names: the peer wrote that (FO-14, FO-16). */
static void
destroyed(void **state)
{
	struct urn_sess_header h = {.id = 1, .length = 1, .op = IBV_WC_RECV};
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	struct srq_rig *r;

	for (uint32_t conn = 0; conn < SRQ_CONNECTIONS; conn++)
		for (int resets = 0; resets < 2; resets++) {
			assert_int_equal(srq_teardown(state), 0);
			assert_int_equal(srq_setup(state), 0);
			r = *state;
			srq_begin(r, SRQ_CONNECTIONS);
			h.conn = SRQ_NUMBER + conn;
			assert_true(srq_take(r, srq_used(r, 1), &h));
			r->q[1].told = true; /* the peer's answer to LEAVE is not waited for */
			if (resets)
				assert_int_equal(
					urn_sv_modify_qp(&r->q[1].ibv, &reset, IBV_QP_STATE), 0);
			srq_leave(r);
			srq_whole(r);
			srq_run(r, SENDS);
			srq_whole(r);
			srq_end(r);
		}
}

/* The queue holds as many receives as the program asked for, until their completions are polled. */
static void
full(void **state)
{
	struct srq_rig *r = *state;
	struct ibv_recv_wr *bad, wr = {.wr_id = SRQ_RECEIVES};
	struct ibv_wc wc;

	srq_begin(r, 1);
	assert_int_equal(urn_sv_post_srq_recv(&r->srq->ibv, &wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr);
	r->peer[0].all = 1;
	assert_true(srq_send(r, 0));
	assert_int_equal(urn_sv_post_srq_recv(&r->srq->ibv, &wr, &bad), ENOMEM);
	assert_int_equal(urn_sv_poll_cq(&r->cq.ibv, 1, &wc), 1);
	assert_int_equal(urn_sv_post_srq_recv(&r->srq->ibv, &wr, &bad), 0);
	wr.num_sge = 2;
	assert_int_equal(urn_sv_post_srq_recv(&r->srq->ibv, &wr, &bad), EINVAL);
	srq_whole(r);
	srq_end(r);
}

/* The limit moves with the receives, and its event is the program's, once. */
static void
limit(void **state)
{
	struct srq_rig *r = *state;
	struct ibv_srq_attr attr = {.srq_limit = SRQ_RECEIVES + 1};
	struct ibv_async_event event;

	srq_begin(r, 1);
	assert_int_equal(urn_sv_modify_srq(&r->srq->ibv, &attr, IBV_SRQ_LIMIT), EINVAL);
	attr.srq_limit = 2;
	assert_int_equal(urn_sv_modify_srq(&r->srq->ibv, &attr, IBV_SRQ_LIMIT), 0);
	assert_int_equal(srq_real(r, 0)->limit, 2);
	assert_int_equal(urn_sv_query_srq(&r->srq->ibv, &attr), 0);
	assert_int_equal(attr.srq_limit, 2);
	assert_int_equal(attr.max_wr, SRQ_RECEIVES);
	assert_int_equal(attr.max_sge, 1);
	assert_false(urn_sv_srq_limit(&r->ctx, r->srq->shared[1]->ibv));
	srq_kill(r, 0);
	srq_settle(r);
	assert_int_equal(srq_real(r, 1)->limit, 2);
	assert_true(urn_sv_srq_limit(&r->ctx, r->srq->shared[1]->ibv));
	assert_false(urn_sv_srq_limit(&r->ctx, r->srq->shared[1]->ibv));
	assert_int_equal(eventfd_write(r->ctx.front.vctx.context.async_fd, 1), 0);
	assert_int_equal(urn_sv_get_async_event(&r->ctx.front.vctx.context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_ptr_equal(event.element.srq, &r->srq->ibv);
	r->srq->ibv.events_completed = 1; /* acknowledged */
	pthread_mutex_init(&r->srq->ibv.mutex, NULL);
	pthread_cond_init(&r->srq->ibv.cond, NULL);
	assert_int_equal(urn_sv_query_srq(&r->srq->ibv, &attr), 0);
	assert_int_equal(attr.srq_limit, 0);
	srq_end(r);
}

/* A limit that was armed before the first connection is there when the queue becomes plain. */
static void
limit_plain(void **state)
{
	struct srq_rig *r = *state;
	struct ibv_srq_attr attr = {.srq_limit = 2};

	srq_begin(r, 0);
	assert_int_equal(urn_sv_modify_srq(&r->srq->ibv, &attr, IBV_SRQ_LIMIT), 0);
	assert_int_equal(srq_real(r, 0)->limit, 0);
	assert_int_equal(urn_sv_srq_decide(r->srq, false), 0);
	assert_int_equal(srq_real(r, 0)->limit, 2);
	assert_true(urn_sv_srq_limit(&r->ctx, r->srq->shared[0]->ibv));
	srq_end(r);
}

/* A limit that is armed again before its event was fetched is armed on the adapter behind that. */
static void
limit_again(void **state)
{
	struct srq_rig *r = *state;
	struct ibv_srq_attr attr = {.srq_limit = 2};
	struct ibv_async_event event;

	srq_begin(r, 1);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(urn_sv_modify_srq(&r->srq->ibv, &attr, IBV_SRQ_LIMIT), 0);
		assert_int_equal(urn_sv_srq_limit(&r->ctx, r->srq->shared[0]->ibv), i == 0);
		srq_real(r, 0)->limit = 0; /* an adapter tells it once */
	}
	assert_int_equal(eventfd_write(r->ctx.front.vctx.context.async_fd, 1), 0);
	assert_int_equal(urn_sv_get_async_event(&r->ctx.front.vctx.context, &event), 0);
	assert_int_equal(srq_real(r, 0)->limit, 2);
	assert_true(urn_sv_srq_limit(&r->ctx, r->srq->shared[0]->ibv));
	pthread_mutex_init(&r->srq->ibv.mutex, NULL);
	pthread_cond_init(&r->srq->ibv.cond, NULL);
	r->srq->ibv.events_completed = 1; /* acknowledged */
	srq_end(r);
}

/* A child of fork() that ends its queue takes no event of the parent's. */
static void
limit_forked(void **state)
{
	struct srq_rig *r = *state;
	struct ibv_srq_attr attr = {.srq_limit = 2};
	eventfd_t n;

	srq_begin(r, 1);
	assert_int_equal(urn_sv_modify_srq(&r->srq->ibv, &attr, IBV_SRQ_LIMIT), 0);
	assert_true(urn_sv_srq_limit(&r->ctx, r->srq->shared[0]->ibv));
	assert_int_equal(eventfd_write(r->ctx.front.vctx.context.async_fd, 2), 0);
	r->ctx.forked = true;
	srq_end(r);
	for (int i = 0; i < 2; i++)
		assert_int_equal(eventfd_read(r->ctx.front.vctx.context.async_fd, &n), 0);
}

/* The home was lost and is back before a connection has chosen its path: its new real queue gets
 * the receives. */
static void
renewed(void **state)
{
	struct srq_rig *r = *state;

	srq_begin(r, 1);
	srq_kill(r, 0);
	urn_sv_settle(&r->ctx);
	assert_int_equal(r->q[0].c.state, URN_SESS_REPORTED);
	srq_back(r, 0);
	srq_tell(r, 0, MINE_P | MINE_S);
	r->peer[0].reported = r->q[0].c.epoch;
	srq_settle(r);
	assert_int_equal(r->srq->home, 0);
	srq_whole(r);
	srq_run(r, SENDS);
	srq_whole(r);
	srq_end(r);
}

/* FO-19: without an adapter all receives fail, each once. */
static void
fatal(void **state)
{
	struct srq_rig *r = *state;
	uint32_t failed = 0;
	struct ibv_wc wc;

	srq_begin(r, SRQ_CONNECTIONS);
	srq_kill(r, 0);
	srq_settle(r);
	srq_kill(r, 1);
	srq_settle(r);
	while (urn_sv_poll_cq(&r->cq.ibv, 1, &wc) == 1) {
		assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
		assert_true(r->posted[wc.wr_id]);
		r->posted[wc.wr_id] = false;
		failed++;
	}
	assert_int_equal(failed, SRQ_RECEIVES);
	assert_int_equal(r->srq->held, 0);
	srq_end(r);
}

/* Receives with headers are of no use to a peer without a session layer. */
static void
kinds(void **state)
{
	struct srq_rig *r = *state;

	srq_begin(r, 1);
	assert_int_equal(urn_sv_srq_decide(r->srq, true), 0);
	assert_int_equal(urn_sv_srq_decide(r->srq, false), EOPNOTSUPP);
	srq_end(r);
}

/* The queue returns to the primary adapter with all its connections, or stays: while one of them
 * has no path there, none is told to return, and none goes by another failure (FO-14). */
static void
returns(void **state)
{
	struct srq_rig *r = *state;

	r->ctx.options.fail_back = true;
	srq_begin(r, SRQ_CONNECTIONS);
	srq_kill(r, 0);
	srq_settle(r);
	srq_heal(r, 0);
	for (uint32_t bit = 0; bit < 2; bit++)
		r->q[1].c.alive &= ~(1u << bit);
	urn_sv_srq_shun(&r->q[0]);
	assert_int_equal(r->q[0].c.shun, 3);
	urn_sv_down(&r->q[0], r->q[0].c.path);
	srq_settle(r);
	assert_int_equal(r->srq->home, 1);
	assert_int_equal(urn_sv_used(&r->q[0])->mine, 1);
	urn_sess_up(&r->q[1].c, 0);
	urn_sv_srq_shun(&r->q[0]);
	assert_int_equal(r->q[0].c.shun, 0);
	urn_sess_fail_back(&r->q[0].c);
	srq_settle(r);
	assert_int_equal(r->srq->home, 0);
	for (uint32_t n = 0; n < SRQ_CONNECTIONS; n++)
		assert_int_equal(urn_sv_used(&r->q[n])->mine, 0);
	srq_run(r, SENDS);
	srq_whole(r);
	srq_end(r);
}

int
main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, srq_setup, srq_teardown)
	const struct CMUnitTest tests[] = {
		T(nothing),	T(each_step),	 T(twice),     T(remote), T(wire),  T(along),
		T(last),	T(last_dies),	 T(silent),    T(forged), T(stale), T(order),
		T(late),	T(dead),	 T(destroyed), T(full),	  T(limit), T(limit_plain),
		T(limit_again), T(limit_forked), T(renewed),   T(fatal),  T(kinds), T(returns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
