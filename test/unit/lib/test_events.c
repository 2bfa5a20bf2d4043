/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion channels and asynchronous events; objects wait for acknowledgements. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>

static void
nonblocking(int fd)
{
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
}

/* The program's end blocks by default; the dataplane's end never does. */
static void
channel_ends(void **state)
{
	struct env *e = *state;
	struct ibv_comp_channel *ch = ibv_create_comp_channel(e->c);
	struct ibv_cq *cq;

	assert_non_null(ch);
	assert_int_equal(fcntl(ch->fd, F_GETFL) & O_NONBLOCK, 0);
	cq = ibv_create_cq(e->c, 4, NULL, ch, 0);
	assert_non_null(cq);
	assert_int_equal(fcntl(e->f->last.create_cq.channel_fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	assert_int_equal(ibv_destroy_comp_channel(ch), EBUSY);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(ch), 0);
}

/* Events of a destroyed queue are skipped, even when a new queue took its place. */
static void
channel_stale_event(void **state)
{
	struct env *e = *state;
	struct ibv_comp_channel *ch = ibv_create_comp_channel(e->c);
	struct ibv_cq *a = ibv_create_cq(e->c, 4, NULL, ch, 0), *b, *got;
	struct fake_wc wc = {.qpn = 1};
	void *ctx;

	nonblocking(ch->fd);
	assert_int_equal(ibv_req_notify_cq(a, 0), 0);
	fake_complete(e->f, a->handle, &wc);
	assert_int_equal(ibv_destroy_cq(a), 0); /* does not wait: the program did not get the event */
	b = ibv_create_cq(e->c, 4, e, ch, 0);
	assert_non_null(b);
	errno = 0;
	assert_int_equal(ibv_get_cq_event(ch, &got, &ctx), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(ibv_req_notify_cq(b, 0), 0);
	fake_complete(e->f, b->handle, &wc);
	assert_int_equal(ibv_get_cq_event(ch, &got, &ctx), 0);
	assert_ptr_equal(got, b);
	assert_ptr_equal(ctx, e);
	ibv_ack_cq_events(b, 1);
	assert_int_equal(ibv_destroy_cq(b), 0);
	assert_int_equal(ibv_destroy_comp_channel(ch), 0);
}

/*
 * Arming a queue that has completions writes the event itself; where the pipe is full, the
 * event is owed until there is room: no arming fails, and no event is lost.
 */
static void
channel_full(void **state)
{
	enum { CQS = 8 };
	struct env *e = *state;
	struct ibv_comp_channel *ch = ibv_create_comp_channel(e->c);
	struct fake_wc wc = {.qpn = 1};
	struct ibv_cq *cq[CQS], *got;
	unsigned int sent[CQS] = {0}, room, n = 0;
	void *ctx;

	nonblocking(ch->fd);
	for (uintptr_t i = 0; i < CQS; i++) {
		cq[i] = ibv_create_cq(e->c, 4, (void *)i, ch, 0);
		assert_non_null(cq[i]);
		/* With two waiting, an event that was taken does not keep the next arming quiet. */
		fake_complete(e->f, cq[i]->handle, &wc);
		fake_complete(e->f, cq[i]->handle, &wc);
	}
	room = (unsigned int)fcntl(e->f->last.create_cq.channel_fd, F_GETPIPE_SZ) / sizeof(struct urn_abi_event);
	/* Twice as many events as the pipe holds, with some being read in between. */
	for (unsigned int i = 0; i < 2 * room; i++) {
		assert_int_equal(ibv_req_notify_cq(cq[i % CQS], i & 1), 0);
		sent[i % CQS]++;
		if (i % 5 == 4 && ibv_get_cq_event(ch, &got, &ctx) == 0)
			sent[(uintptr_t)ctx]--;
	}
	/* A queue is destroyed meanwhile: its owed events are skipped. */
	ibv_ack_cq_events(cq[0], 2 * room / CQS - sent[0]);
	assert_int_equal(ibv_destroy_cq(cq[0]), 0);
	while (ibv_get_cq_event(ch, &got, &ctx) == 0) {
		sent[(uintptr_t)ctx]--;
		n++;
	}
	assert_int_equal(errno, EAGAIN);
	assert_true(n > room);
	for (unsigned int i = 1; i < CQS; i++) {
		assert_int_equal(sent[i], 0);
		ibv_ack_cq_events(cq[i], 2 * room / CQS);
		assert_int_equal(ibv_destroy_cq(cq[i]), 0);
	}
	assert_int_equal(ibv_destroy_comp_channel(ch), 0);
}

struct waiter {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	_Atomic int done;
};

static void *
destroyer(void *arg)
{
	struct waiter *w = arg;

	if (w->qp != NULL)
		ibv_destroy_qp(w->qp);
	else
		ibv_destroy_cq(w->cq);
	atomic_store(&w->done, 1);
	return NULL;
}

/* verbs: ibv_destroy_cq() waits until every event handed out is acknowledged. */
static void
destroy_cq_waits(void **state)
{
	struct env *e = *state;
	struct ibv_comp_channel *ch = ibv_create_comp_channel(e->c);
	struct waiter w = {.cq = ibv_create_cq(e->c, 4, NULL, ch, 0)};
	struct fake_wc wc = {.qpn = 1};
	struct ibv_cq *got;
	uint32_t handle = w.cq->handle;
	struct ibv_wc out;
	pthread_t t;
	void *ctx;
	int i;

	for (i = 0; i < 2; i++) {
		assert_int_equal(ibv_req_notify_cq(w.cq, 0), 0);
		fake_complete(e->f, w.cq->handle, &wc);
		assert_int_equal(ibv_poll_cq(w.cq, 1, &out), 1);
		assert_int_equal(ibv_get_cq_event(ch, &got, &ctx), 0);
	}
	assert_int_equal(pthread_create(&t, NULL, destroyer, &w), 0);
	ibv_ack_cq_events(w.cq, 1);
	/* The control call has been made; one acknowledgement is still missing. */
	while (!fake_cq_gone(e->f, handle))
		sched_yield();
	poll(NULL, 0, 20);
	assert_int_equal(atomic_load(&w.done), 0);
	ibv_ack_cq_events(w.cq, 1);
	assert_int_equal(pthread_join(t, NULL), 0);
	assert_int_equal(atomic_load(&w.done), 1);
	assert_int_equal(ibv_destroy_comp_channel(ch), 0);
}

static void
async_elements(void **state)
{
	struct env *e = *state;
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(e->pd, &init);
	uint64_t qp = fake_qp(e->f, e->qpn)->cookie, cq = fake_cq(e->f, e->cq->handle)->cookie;
	uint64_t shared = fake_srq(e->f, srq->handle)->cookie;
	static const uint32_t of_qp[] = {URN_EVENT_QP_FATAL, URN_EVENT_QP_REQ_ERR, URN_EVENT_QP_ACCESS_ERR,
		URN_EVENT_COMM_EST, URN_EVENT_SQ_DRAINED, URN_EVENT_LAST_WQE};
	struct ibv_async_event ev;
	size_t i;

	/* doc/reference/verbs.md: a real descriptor, with flags that the program may change. */
	nonblocking(e->c->async_fd);
	assert_int_equal(ibv_get_async_event(e->c, &ev), -1);
	assert_int_equal(errno, EAGAIN);
	for (i = 0; i < sizeof(of_qp) / sizeof(of_qp[0]); i++) {
		fake_async(e->f, of_qp[i], e->qpn, qp);
		assert_int_equal(ibv_get_async_event(e->c, &ev), 0);
		assert_int_equal(ev.event_type, of_qp[i]);
		assert_ptr_equal(ev.element.qp, e->qp);
		ibv_ack_async_event(&ev);
	}
	fake_async(e->f, URN_EVENT_CQ_ERR, e->cq->handle, cq);
	assert_int_equal(ibv_get_async_event(e->c, &ev), 0);
	assert_ptr_equal(ev.element.cq, e->cq);
	ibv_ack_async_event(&ev);
	for (i = 0; i < 2; i++) {
		fake_async(e->f, i ? URN_EVENT_SRQ_LIMIT : URN_EVENT_SRQ_ERR, srq->handle, shared);
		assert_int_equal(ibv_get_async_event(e->c, &ev), 0);
		assert_ptr_equal(ev.element.srq, srq);
		ibv_ack_async_event(&ev);
	}
	for (i = 0; i < 2; i++) {
		fake_async(e->f, i ? URN_EVENT_PORT_ERR : URN_EVENT_PORT_ACTIVE, 0, 0);
		assert_int_equal(ibv_get_async_event(e->c, &ev), 0);
		assert_int_equal(ev.element.port_num, 1);
		ibv_ack_async_event(&ev);
	}
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

/* Unknown types, destroyed objects and tickets of another kind are skipped. */
static void
async_stale(void **state)
{
	struct env *e = *state;
	struct ibv_async_event ev;

	nonblocking(e->c->async_fd);
	fake_async(e->f, 777, 0, 0);
	fake_async(e->f, URN_EVENT_QP_FATAL, 0, 0);
	fake_async(e->f, URN_EVENT_QP_FATAL, 0, UINT64_MAX);
	fake_async(e->f, URN_EVENT_QP_FATAL, 0, fake_cq(e->f, e->cq->handle)->cookie);
	assert_int_equal(ibv_get_async_event(e->c, &ev), -1);
	assert_int_equal(errno, EAGAIN);
}

static void
destroy_qp_waits(void **state)
{
	struct env *e = *state;
	struct ibv_qp_init_attr qi = {.send_cq = e->cq, .recv_cq = e->cq, .qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	struct waiter w = {.qp = ibv_create_qp(e->pd, &qi)};
	struct ibv_async_event ev;
	uint32_t qpn;
	pthread_t t;

	assert_non_null(w.qp);
	qpn = w.qp->qp_num;
	fake_async(e->f, URN_EVENT_LAST_WQE, qpn, fake_qp(e->f, qpn)->cookie);
	assert_int_equal(ibv_get_async_event(e->c, &ev), 0);
	assert_int_equal(pthread_create(&t, NULL, destroyer, &w), 0);
	while (!fake_qp_gone(e->f, qpn))
		sched_yield();
	poll(NULL, 0, 20);
	assert_int_equal(atomic_load(&w.done), 0);
	ibv_ack_async_event(&ev);
	assert_int_equal(pthread_join(t, NULL), 0);
}

#define RC(fn) cmocka_unit_test_setup_teardown(fn, env_setup, env_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		RC(channel_ends), RC(channel_stale_event), RC(channel_full), RC(destroy_cq_waits), RC(async_elements),
		RC(async_stale),
		RC(destroy_qp_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
