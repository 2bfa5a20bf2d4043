/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion events and asynchronous events, from the engine to the program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"
#include "attach/pipe.h"
#include "verbs/adapter/adapter.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE 60 /* seconds; only a broken program needs that long */

/* A rig, and at end 1 a queue pair whose receives go to a queue with a channel. */
struct ev {
	struct rig r;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp[2];
	uint64_t sent;
};

static void
ev_open(struct ev *t, const struct rig_config *cfg, int vector)
{
	struct rig_qp o = {.depth = 1024};

	memset(t, 0, sizeof(*t));
	rig_open(&t->r, cfg, NULL);
	t->channel = ibv_create_comp_channel(t->r.end[1].ctx);
	assert_non_null(t->channel);
	assert_int_equal(fcntl(t->channel->fd, F_SETFL, O_NONBLOCK), 0);
	t->cq = ibv_create_cq(t->r.end[1].ctx, 64, t, t->channel, vector);
	assert_non_null(t->cq);
	t->qp[0] = rig_make_qp(&t->r, 0, &o);
	o.recv_cq = t->cq;
	o.send_cq = t->r.end[1].cq;
	t->qp[1] = rig_make_qp(&t->r, 1, &o);
	for (int e = 0; e < 2; e++)
		rig_connect(&t->r, e, t->qp[e], 77, t->qp[!e]->qp_num, 77, &o);
}

static void
ev_close(struct ev *t)
{
	for (int e = 0; e < 2; e++)
		assert_int_equal(ibv_destroy_qp(t->qp[e]), 0);
	assert_int_equal(ibv_destroy_cq(t->cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(t->channel), 0);
	rig_close(&t->r);
}

/* Send one message to the queue with the channel; the sender's completion has this status. */
static void
ev_send_to(struct ev *t, unsigned int flags, enum ibv_wc_status status)
{
	struct rig_end *from = &t->r.end[0], *to = &t->r.end[1];
	struct ibv_sge sge = {(uintptr_t)from->buf, 8, from->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = ++t->sent, .opcode = IBV_WR_SEND, .sg_list = &sge,
				 .num_sge = 1, .send_flags = flags | IBV_SEND_SIGNALED};

	rig_recv_on(t->qp[1], to->buf, 64, to->mr->lkey, t->sent);
	rig_send_on(t->qp[0], &wr);
	assert_int_equal(rig_expect(&t->r, 0, status).wr_id, t->sent);
	rig_turns(&t->r, 50); /* completions that are handed over come, too */
}

/* Send one message; its completion is there when this returns. */
static void
ev_send(struct ev *t, unsigned int flags)
{
	ev_send_to(t, flags, IBV_WC_SUCCESS);
}

/* An engine of another thread may hand completions over a while after their sender's. */
static void
ev_poll(struct ev *t, int n)
{
	time_t start = time(NULL);
	struct ibv_wc wc[8];
	int got = ibv_poll_cq(t->cq, 8, wc);

	while (got >= 0 && got < n && t->r.cfg.remote && time(NULL) - start < PATIENCE) {
		rig_turn(&t->r);
		got += ibv_poll_cq(t->cq, 8 - got, wc);
	}
	assert_int_equal(got, n);
}

static bool
has_event(struct ev *t)
{
	struct pollfd p = {.fd = t->channel->fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static void
ev_take(struct ev *t)
{
	time_t start = time(NULL);
	struct ibv_cq *cq = NULL;
	void *context = NULL;

	while (!has_event(t) && t->r.cfg.remote && time(NULL) - start < PATIENCE)
		rig_turn(&t->r);
	assert_true(has_event(t));
	assert_int_equal(ibv_get_cq_event(t->channel, &cq, &context), 0);
	assert_ptr_equal(cq, t->cq);
	assert_ptr_equal(context, t);
	ibv_ack_cq_events(cq, 1);
}

/* One event for each time the queue is armed, not before and not twice. */
static void
armed(const struct rig_config *cfg, int vector)
{
	struct ev t;

	ev_open(&t, cfg, vector);
	ev_send(&t, 0);
	assert_false(has_event(&t));
	ev_poll(&t, 1);
	assert_int_equal(ibv_req_notify_cq(t.cq, 0), 0);
	assert_false(has_event(&t));
	ev_send(&t, 0);
	ev_send(&t, 0);
	ev_take(&t);
	assert_false(has_event(&t));
	ev_poll(&t, 2);
	/* Completions are there: a queue armed after them fires at once (doc/reference/verbs.md). */
	ev_send(&t, 0);
	assert_false(has_event(&t));
	assert_int_equal(ibv_req_notify_cq(t.cq, 0), 0);
	ev_take(&t);
	ev_poll(&t, 1);
	assert_false(has_event(&t));
	ev_close(&t);
}

static void
test_armed(void **state)
{
	struct rig_config four = {.engines = 4};

	(void)state;
	armed(NULL, 0);
	/* The queue belongs to another engine than the one that most packets come to. */
	armed(&four, 0);
	armed(&four, 1);
}

/* Solicited only: other completions cause no event, unless they failed. */
static void
test_solicited(void **state)
{
	struct ev t;

	(void)state;
	ev_open(&t, NULL, 0);
	assert_int_equal(ibv_req_notify_cq(t.cq, 1), 0);
	ev_send(&t, 0);
	assert_false(has_event(&t));
	ev_send(&t, IBV_SEND_SOLICITED);
	ev_take(&t);
	ev_poll(&t, 2);
	/* A solicited completion that came while the queue was not armed causes no later event. */
	ev_send(&t, IBV_SEND_SOLICITED);
	ev_poll(&t, 1);
	assert_int_equal(ibv_req_notify_cq(t.cq, 1), 0);
	ev_send(&t, 0);
	assert_false(has_event(&t));
	/* Arming for the next solicited one does not revoke arming for any. */
	ev_poll(&t, 1);
	assert_int_equal(ibv_req_notify_cq(t.cq, 0), 0);
	assert_int_equal(ibv_req_notify_cq(t.cq, 1), 0);
	ev_send(&t, 0);
	ev_take(&t);
	ev_poll(&t, 1);
	/* A completion with an error counts as solicited. */
	assert_int_equal(ibv_req_notify_cq(t.cq, 1), 0);
	rig_recv_on(t.qp[1], t.r.end[1].buf, 64, t.r.end[1].mr->lkey, 1);
	rig_to(t.qp[1], IBV_QPS_ERR);
	rig_turns(&t.r, 50);
	ev_take(&t);
	ev_close(&t);
}

/* A queue stays armed, and keeps its completions, when it is resized. */
static void
test_resized(void **state)
{
	struct ibv_wc wc[8];
	struct ev t;

	(void)state;
	ev_open(&t, NULL, 0);
	assert_int_equal(ibv_req_notify_cq(t.cq, 0), 0);
	assert_int_equal(ibv_resize_cq(t.cq, 1000), 0);
	assert_int_equal(t.cq->cqe, 1024);
	assert_false(has_event(&t));
	ev_send(&t, 0);
	ev_take(&t);
	ev_send(&t, 0);
	ev_send(&t, 0);
	assert_int_equal(ibv_resize_cq(t.cq, 2), EINVAL);
	assert_int_equal(ibv_resize_cq(t.cq, 3), 0);
	assert_int_equal(t.cq->cqe, 4);
	ev_send(&t, 0);
	assert_int_equal(ibv_poll_cq(t.cq, 8, wc), 4);
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(wc[i].wr_id, i + 1);
	assert_int_equal(ibv_resize_cq(t.cq, 0), EINVAL);
	assert_int_equal(ibv_resize_cq(t.cq, INT32_MAX), EINVAL);
	ev_close(&t);
}

/* More completions than an engine carries over in one go: all arrive, in order. */
static void
test_resized_full(void **state)
{
	enum { MANY = 700 };
	struct ibv_wc wc;
	struct ev t;

	(void)state;
	ev_open(&t, NULL, 0);
	assert_int_equal(ibv_resize_cq(t.cq, 1024), 0);
	for (int i = 0; i < MANY; i++)
		ev_send(&t, 0);
	assert_int_equal(ibv_resize_cq(t.cq, 512), EINVAL);
	assert_int_equal(ibv_resize_cq(t.cq, 2048), 0);
	ev_send(&t, 0);
	for (uint64_t i = 1; i <= MANY + 1; i++) {
		assert_int_equal(ibv_poll_cq(t.cq, 1, &wc), 1);
		assert_int_equal(wc.wr_id, i);
	}
	assert_int_equal(ibv_poll_cq(t.cq, 1, &wc), 0);
	ev_close(&t);
}

/* n events found no room, unless a teller took so few; an engine of another thread may be slow. */
static void
wait_late(struct rig *r, int node, uint64_t n)
{
	time_t end = time(NULL) + (r->cfg.remote ? PATIENCE : 0);

	if (r->cfg.remote && n <= URN_TELLER_QUEUE)
		return;
	while (rig_counter(r, node, URN_C_EVENT_LATE) < n && time(NULL) < end)
		rig_turn(r);
	assert_true(rig_counter(r, node, URN_C_EVENT_LATE) >= n);
}

/* A full pipe: the event is late and not lost, though no completion follows. */
static void
test_full_pipe(void **state)
{
	struct urn_abi_event junk = {.cookie = UINT64_MAX};
	struct timespec a_bit = {.tv_nsec = 3000000};
	struct ibv_cq *cq;
	struct ev t;
	void *context;
	int fd;

	(void)state;
	ev_open(&t, NULL, 0);
	fd = ((struct urn_channel *)t.channel)->way.write_fd;
	while (urn_pipe_write(fd, &junk) == 0)
		;
	assert_int_equal(ibv_req_notify_cq(t.cq, 0), 0);
	ev_send(&t, 0);
	nanosleep(&a_bit, NULL);
	rig_turns(&t.r, 50);
	wait_late(&t.r, 1, 1);
	assert_int_equal(rig_counter(&t.r, 1, URN_C_EVENT_LOST), 0);
	/* Events of destroyed queues are skipped. */
	if (ibv_get_cq_event(t.channel, &cq, &context) == 0) {
		/* An engine that turns by itself may have sent the event as soon as there was room. */
		assert_ptr_equal(cq, t.cq);
		ibv_ack_cq_events(cq, 1);
	} else {
		assert_int_equal(errno, EAGAIN);
		nanosleep(&a_bit, NULL);
		rig_turns(&t.r, 50);
		ev_take(&t);
	}
	assert_false(has_event(&t));
	ev_poll(&t, 1);
	/* Again, and the queue is destroyed while its event waits. */
	while (urn_pipe_write(fd, &junk) == 0)
		;
	assert_int_equal(ibv_req_notify_cq(t.cq, 0), 0);
	ev_send(&t, 0);
	ev_close(&t);
}

/*
 * Many queues whose channel nobody reads: an engine retries a few of them at a time, and all events
 * come in the end.
 */
static void
test_many_late(void **state)
{
	enum { CQS = 200, FEW = 100 };
	struct urn_abi_event junk = {.cookie = UINT64_MAX};
	struct timespec a_bit = {.tv_nsec = 3000000};
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};
	struct rig_qp o = {.depth = 1, .sge = 1};
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq[CQS], *got;
	struct ibv_qp *qp[CQS];
	uint64_t late;
	struct rig r;
	void *context;
	int fd, told = 0;

	(void)state;
	rig_open(&r, NULL, NULL);
	ch = ibv_create_comp_channel(r.end[0].ctx);
	fcntl(ch->fd, F_SETFL, fcntl(ch->fd, F_GETFL) | O_NONBLOCK);
	for (int i = 0; i < CQS; i++) {
		cq[i] = o.recv_cq = ibv_create_cq(r.end[0].ctx, 4, NULL, ch, 0);
		qp[i] = rig_make_qp(&r, 0, &o);
		rig_connect(&r, 0, qp[i], 5, r.end[1].qp->qp_num, 5, &o);
		rig_recv_on(qp[i], r.end[0].buf, 4, r.end[0].mr->lkey, 1);
		assert_int_equal(ibv_req_notify_cq(cq[i], 0), 0);
	}
	fd = ((struct urn_channel *)ch)->way.write_fd;
	while (urn_pipe_write(fd, &junk) == 0)
		;
	for (int i = 0; i < CQS; i++)
		assert_int_equal(ibv_modify_qp(qp[i], &err, IBV_QP_STATE), 0);
	rig_turns(&r, 50);
	nanosleep(&a_bit, NULL);
	wait_late(&r, 0, CQS);
	late = rig_counter(&r, 0, URN_C_EVENT_LATE);
	rig_turn(&r);
	if (!r.cfg.remote) /* otherwise an engine turns by itself */
		assert_in_range(rig_counter(&r, 0, URN_C_EVENT_LATE) - late, 1, FEW);
	for (time_t start = time(NULL); told < CQS && time(NULL) - start < 60;) {
		while (ibv_get_cq_event(ch, &got, &context) == 0) {
			ibv_ack_cq_events(got, 1);
			told++;
		}
		rig_turns(&r, 10);
	}
	assert_int_equal(told, CQS);
	for (int i = 0; i < CQS; i++) {
		assert_int_equal(ibv_destroy_qp(qp[i]), 0);
		assert_int_equal(ibv_destroy_cq(cq[i]), 0);
	}
	assert_int_equal(ibv_destroy_comp_channel(ch), 0);
	rig_close(&r);
}

/*
 * A queue that is full: an event reports it, and the queue takes no more. A message without
 * room there is not acknowledged, and every QP that uses the queue goes to the error state,
 * an idle one as well.
 */
static void
test_overrun(void **state)
{
	struct rig_qp o = {0};
	struct ibv_qp *idle, *other;
	struct ibv_cq *free_cq;
	uint64_t lost;
	time_t start;
	struct ev t;

	(void)state;
	ev_open(&t, NULL, 0);
	o.send_cq = o.recv_cq = t.cq;
	idle = rig_make_qp(&t.r, 1, &o);
	rig_connect(&t.r, 1, idle, 1, t.r.end[0].qp->qp_num, 1, &o);
	free_cq = ibv_create_cq(t.r.end[1].ctx, 4, NULL, NULL, 0);
	assert_non_null(free_cq);
	o.send_cq = o.recv_cq = free_cq;
	other = rig_make_qp(&t.r, 1, &o);
	rig_connect(&t.r, 1, other, 1, t.r.end[0].qp->qp_num, 1, &o);
	assert_int_equal(ibv_resize_cq(t.cq, 4), 0);
	for (int i = 0; i < 4; i++)
		ev_send(&t, 0);
	rig_no_event(&t.r, 1);
	assert_int_equal(rig_state(idle), IBV_QPS_RTS);
	ev_send_to(&t, 0, IBV_WC_REM_OP_ERR);
	rig_event(&t.r, 1, IBV_EVENT_CQ_ERR);
	rig_event(&t.r, 1, IBV_EVENT_QP_FATAL);
	rig_event(&t.r, 1, IBV_EVENT_QP_FATAL);
	rig_no_event(&t.r, 1);
	assert_int_equal(rig_state(t.qp[1]), IBV_QPS_ERR);
	assert_int_equal(rig_state(idle), IBV_QPS_ERR);
	assert_int_equal(rig_state(other), IBV_QPS_RTS);
	lost = rig_counter(&t.r, 1, URN_C_CQ_OVERRUN) + 1;
	assert_in_range(lost, 2, 17);
	ev_poll(&t, 4);
	/* There is room now, but the queue takes no more, and gives no second event. */
	rig_recv_on(idle, t.r.end[1].buf, 64, t.r.end[1].mr->lkey, 99);
	start = time(NULL);
	while (rig_counter(&t.r, 1, URN_C_CQ_OVERRUN) != lost && time(NULL) - start < PATIENCE)
		rig_turn(&t.r);
	assert_int_equal(rig_counter(&t.r, 1, URN_C_CQ_OVERRUN), lost);
	ev_poll(&t, 0);
	rig_no_event(&t.r, 1);
	assert_int_equal(ibv_destroy_qp(idle), 0);
	assert_int_equal(ibv_destroy_qp(other), 0);
	assert_int_equal(ibv_destroy_cq(free_cq), 0);
	ev_close(&t);
}

/* ---- asynchronous events */

/* SRQ limit: one event when fewer are left than the limit, and none again until it is armed. */
static void
test_srq_limit(void **state)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 16, .max_sge = 1}};
	struct ibv_srq_attr a = {.srq_limit = 3};
	struct ibv_recv_wr wr = {.num_sge = 0}, *bad;
	struct rig_qp o = {0};
	struct ibv_qp *qp[2];
	struct rig r;

	(void)state;
	rig_open(&r, NULL, NULL);
	o.srq = ibv_create_srq(r.end[1].pd, &init);
	assert_non_null(o.srq);
	qp[1] = rig_make_qp(&r, 1, &o);
	struct ibv_srq *srq = o.srq;
	o.srq = NULL;
	qp[0] = rig_make_qp(&r, 0, &o);
	for (int e = 0; e < 2; e++)
		rig_connect(&r, e, qp[e], 5, qp[!e]->qp_num, 5, &o);
	for (int i = 0; i < 6; i++)
		assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
	a.srq_limit = 17;
	assert_int_equal(ibv_modify_srq(srq, &a, IBV_SRQ_LIMIT), EINVAL);
	a.srq_limit = 3;
	assert_int_equal(ibv_modify_srq(srq, &a, IBV_SRQ_LIMIT), 0);
	for (int i = 0; i < 6; i++) {
		struct ibv_send_wr s = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};

		rig_send_on(qp[0], &s);
		rig_expect(&r, 0, IBV_WC_SUCCESS);
		rig_expect(&r, 1, IBV_WC_SUCCESS);
		assert_int_equal(ibv_query_srq(srq, &a), 0);
		assert_int_equal(a.srq_limit, i < 3 ? 3 : 0);
		if (i == 3) /* two receives are left */
			rig_event(&r, 1, IBV_EVENT_SRQ_LIMIT_REACHED);
		else
			rig_no_event(&r, 1);
	}
	for (int e = 0; e < 2; e++)
		assert_int_equal(ibv_destroy_qp(qp[e]), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	rig_close(&r);
}

/* More events in one turn than the engine keeps: every QP of the SRQ gets its last-WQE event. */
static void
test_many_events(void **state)
{
	enum { QPS = 1000 }; /* a pipe, and a teller with its sockets, hold some hundreds */
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 16, .max_sge = 1}};
	struct rig_qp o = {.depth = 1, .sge = 1};
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};
	struct ibv_qp *qp[QPS];
	struct rig r;

	(void)state;
	rig_open(&r, NULL, NULL);
	o.srq = ibv_create_srq(r.end[0].pd, &init);
	assert_non_null(o.srq);
	for (int i = 0; i < QPS; i++) {
		qp[i] = rig_make_qp(&r, 0, &o);
		assert_int_equal(ibv_modify_qp(qp[i], &err, IBV_QP_STATE), 0);
	}
	rig_turn(&r); /* this thread polls: nothing has turned until now */
	for (int i = 0; i < QPS; i++)
		rig_event(&r, 0, IBV_EVENT_QP_LAST_WQE_REACHED);
	rig_no_event(&r, 0);
	assert_int_equal(rig_counter(&r, 0, URN_C_EVENT_LOST), 0);
	for (int i = 0; i < QPS; i++)
		assert_int_equal(ibv_destroy_qp(qp[i]), 0);
	assert_int_equal(ibv_destroy_srq(o.srq), 0);
	rig_close(&r);
}

/* Events without room come when there is room, though nothing else happens then. */
static void
test_late_events(void **state)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 16, .max_sge = 1}};
	struct rig_qp o = {.depth = 1, .sge = 1};
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};
	struct urn_abi_event junk = {.cookie = UINT64_MAX};
	struct timespec a_bit = {.tv_nsec = 3000000};
	struct pollfd p = {.events = POLLIN};
	struct ibv_qp *qp[2];
	struct rig r;

	(void)state;
	rig_open(&r, NULL, NULL);
	o.srq = ibv_create_srq(r.end[0].pd, &init);
	for (int i = 0; i < 2; i++)
		qp[i] = rig_make_qp(&r, 0, &o);
	while (urn_pipe_write(urn_ctx(r.end[0].ctx)->async_write_fd, &junk) == 0)
		;
	for (int i = 0; i < 2; i++)
		assert_int_equal(ibv_modify_qp(qp[i], &err, IBV_QP_STATE), 0);
	rig_turns(&r, 50);
	nanosleep(&a_bit, NULL);
	wait_late(&r, 0, 1);
	p.fd = r.end[0].ctx->async_fd;
	while (poll(&p, 1, 0) == 1 && read(p.fd, &junk, sizeof(junk)) == (ssize_t)sizeof(junk) &&
	       junk.cookie == UINT64_MAX)
		;
	/* An engine that turns by itself may have sent one event as soon as there was room. */
	for (int i = junk.cookie != UINT64_MAX; i < 2; i++) {
		nanosleep(&a_bit, NULL);
		rig_event(&r, 0, IBV_EVENT_QP_LAST_WQE_REACHED);
	}
	assert_int_equal(rig_counter(&r, 0, URN_C_EVENT_LOST), 0);
	for (int i = 0; i < 2; i++) {
		urn_qp(qp[i])->async_got = 0; /* the event read above must not be waited for */
		qp[i]->events_completed = 0;
		assert_int_equal(ibv_destroy_qp(qp[i]), 0);
	}
	assert_int_equal(ibv_destroy_srq(o.srq), 0);
	rig_close(&r);
}

static void
wait_port_event(struct rig *r, struct ibv_context *ctx, enum ibv_event_type type)
{
	struct pollfd p = {.fd = ctx->async_fd, .events = POLLIN};
	struct ibv_async_event ev;
	time_t start = time(NULL);

	while (poll(&p, 1, 0) == 0 && time(NULL) - start < 60)
		rig_turns(r, 100);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(ibv_get_async_event(ctx, &ev), 0);
	assert_int_equal(ev.event_type, type);
	assert_int_equal(ev.element.port_num, 1);
	ibv_ack_async_event(&ev);
}

/* Every client of both adapters hears of the cable; the port's state agrees. */
static void
test_cable(void **state)
{
	struct ibv_context *more[100];
	struct ibv_port_attr a;
	struct urn_err err;
	struct rig r;

	(void)state;
	rig_open(&r, NULL, NULL);
	for (int i = 0; i < 100; i++)
		more[i] = rig_attach(&r, 1);
	for (int up = 0; up < 2; up++) {
		assert_int_equal(up ? urn_port_start(r.port[0], &err) : urn_port_stop(r.port[0], &err), 0);
		for (int e = 0; e < 2; e++) {
			wait_port_event(&r, r.end[e].ctx, up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
			assert_int_equal(ibv_query_port(r.end[e].ctx, 1, &a), 0);
			assert_int_equal(a.state, up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN);
		}
		for (int i = 0; i < 100; i++)
			wait_port_event(&r, more[i], up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
	}
	for (int i = 0; i < 100; i++)
		assert_int_equal(ibv_close_device(more[i]), 0);
	rig_post(&r, 0, IBV_WR_RDMA_WRITE, 0, 5000, 0, 1);
	rig_expect(&r, 0, IBV_WC_SUCCESS);
	rig_close(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_armed),     cmocka_unit_test(test_solicited),
		cmocka_unit_test(test_resized), cmocka_unit_test(test_resized_full),   cmocka_unit_test(test_full_pipe),
		cmocka_unit_test(test_many_late), cmocka_unit_test(test_overrun),   cmocka_unit_test(test_srq_limit),
		cmocka_unit_test(test_many_events), cmocka_unit_test(test_late_events), cmocka_unit_test(test_cable),
	};

	return cmocka_run_group_tests_name("events", tests, NULL, NULL);
}
