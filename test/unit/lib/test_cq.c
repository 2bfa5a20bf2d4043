/* SPDX-License-Identifier: BSD-3-Clause */
/* Making, resizing and destroying completion queues. */
#include "test.h"

#include <errno.h>
#include <string.h>

static void
create_limits(void **state)
{
	struct env *e = *state;
	struct ibv_cq *cq = ibv_create_cq(e->c, 5, e, NULL, 0);

	assert_non_null(cq);
	assert_true(cq->cqe >= 5);
	assert_ptr_equal(cq->cq_context, e);
	assert_int_equal(e->f->last.create_cq.channel_fd, -1);
	assert_int_equal(ibv_destroy_cq(cq), 0);

	errno = 0;
	assert_null(ibv_create_cq(e->c, 0, NULL, NULL, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_create_cq(e->c, -1, NULL, NULL, 0));
	assert_null(ibv_create_cq(e->c, URN_ABI_MAX_CQE + 1, NULL, NULL, 0));
	assert_null(ibv_create_cq(e->c, 1, NULL, NULL, -1));
	assert_null(ibv_create_cq(e->c, 1, NULL, NULL, 1));
	assert_string_equal(urn_attach_error(), "completion vector 1; the device has 0 to 0");
}

/* Control call errors give errno and urn_attach_error(). */
static void
create_fails(void **state)
{
	struct env *e = *state;

	fake_fail_next(e->f, URN_CTL_CREATE_CQ, ENOSPC, "the area is full");
	errno = 0;
	assert_null(ibv_create_cq(e->c, 5, NULL, NULL, 0));
	assert_int_equal(errno, ENOSPC);
	assert_string_equal(urn_attach_error(), "the area is full");
}

static void
complete_some(struct env *e, uint64_t from, uint64_t to)
{
	for (; from < to; from++) {
		struct fake_wc wc = {.wr_id = from, .qpn = e->qpn};

		fake_complete(e->f, e->cq->handle, &wc);
	}
}

static void
expect_some(struct env *e, uint64_t from, uint64_t to)
{
	struct ibv_wc wc;

	for (; from < to; from++) {
		assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), 1);
		assert_int_equal(wc.wr_id, from);
	}
	assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), 0);
}

/* Unread completions survive in a larger and a smaller queue, and the queue goes on working. */
static void
resize_keeps_unread(void **state)
{
	struct env *e = *state;

	complete_some(e, 0, 16);
	expect_some(e, 0, 16);
	complete_some(e, 16, 26);
	assert_int_equal(ibv_resize_cq(e->cq, 64), 0);
	assert_int_equal(e->cq->cqe, 64);
	complete_some(e, 26, 80);
	expect_some(e, 16, 80);
	complete_some(e, 80, 83);
	assert_int_equal(ibv_resize_cq(e->cq, 4), 0);
	complete_some(e, 83, 84);
	expect_some(e, 80, 84);
}

static void
resize_fails(void **state)
{
	struct env *e = *state;

	complete_some(e, 0, 3);
	fake_fail_next(e->f, URN_CTL_RESIZE_CQ, ENOMEM, "no room");
	assert_int_equal(ibv_resize_cq(e->cq, 64), ENOMEM);
	assert_int_equal(e->cq->cqe, 16);
	complete_some(e, 3, 5);
	expect_some(e, 0, 5);
	assert_int_equal(ibv_resize_cq(e->cq, 0), EINVAL);
	assert_int_equal(ibv_resize_cq(e->cq, -1), EINVAL);
}

struct resizing {
	struct env *e;
	struct ibv_comp_channel *ch;
	struct ibv_qp *other;
	struct ibv_cq *cq;
};

/*
 * Calls that the thread which polls the engine may make while another thread waits for
 * its resize: none of them may block, or the two wait for each other.
 */
static void
during_resize(struct fake *f, void *arg)
{
	struct resizing *r = arg;
	struct ibv_wc wc;

	f->in_resize = NULL;
	pthread_mutex_unlock(&f->lock); /* let in as the dataplane's own thread would be */
	assert_int_equal(ibv_poll_cq(r->cq, 1, &wc), 0);
	assert_int_equal(ibv_req_notify_cq(r->cq, 0), 0);
	assert_int_equal(ibv_resize_cq(r->cq, 8), EBUSY);
	assert_int_equal(ibv_destroy_qp(r->other), 0);
	pthread_mutex_lock(&f->lock);
}

static void
resize_does_not_block_others(void **state)
{
	struct env *e = *state;
	struct resizing r = {.e = e, .ch = ibv_create_comp_channel(e->c)};
	struct ibv_qp_init_attr qi = {.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	struct fake_wc wc = {.wr_id = 1};
	struct ibv_cq *cq;
	struct ibv_wc out;
	void *ctx;

	assert_non_null(r.ch);
	r.cq = ibv_create_cq(e->c, 4, NULL, r.ch, 0);
	assert_non_null(r.cq);
	qi.send_cq = qi.recv_cq = r.cq;
	r.other = ibv_create_qp(e->pd, &qi);
	assert_non_null(r.other);
	wc.qpn = r.other->qp_num;
	fake_complete(e->f, r.cq->handle, &wc);
	wc.qpn = e->qpn;
	wc.wr_id = 2;
	fake_complete(e->f, r.cq->handle, &wc);
	e->f->in_resize = during_resize;
	e->f->in_resize_arg = &r;
	assert_int_equal(ibv_resize_cq(r.cq, 32), 0);

	/* The resize made up for the arming, with a completion waiting; the dead QP's is gone. */
	assert_int_equal(ibv_get_cq_event(r.ch, &cq, &ctx), 0);
	assert_ptr_equal(cq, r.cq);
	ibv_ack_cq_events(cq, 1);
	assert_int_equal(ibv_poll_cq(r.cq, 1, &out), 1);
	assert_int_equal(out.wr_id, 2);
	assert_int_equal(ibv_poll_cq(r.cq, 1, &out), 0);
	assert_int_equal(ibv_destroy_cq(r.cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(r.ch), 0);
}

/* An armed queue stays armed through a resize. */
static void
resize_keeps_arming(void **state)
{
	struct env *e = *state;
	struct ibv_comp_channel *ch = ibv_create_comp_channel(e->c);
	struct ibv_cq *cq = ibv_create_cq(e->c, 4, NULL, ch, 0), *got;
	struct fake_wc wc = {.wr_id = 1, .qpn = 1};
	void *ctx;

	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	assert_int_equal(ibv_resize_cq(cq, 32), 0);
	fake_complete(e->f, cq->handle, &wc);
	assert_int_equal(ibv_get_cq_event(ch, &got, &ctx), 0);
	assert_ptr_equal(got, cq);
	ibv_ack_cq_events(cq, 1);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(ch), 0);
}

/* A queue that the dataplane keeps as it is in use goes on working. */
static void
destroy_busy(void **state)
{
	struct env *e = *state;

	fake_fail_next(e->f, URN_CTL_DESTROY_CQ, EBUSY, "1 queue pair uses it");
	assert_int_equal(ibv_destroy_cq(e->cq), EBUSY);
	assert_string_equal(urn_attach_error(), "1 queue pair uses it");
	complete_some(e, 0, 3);
	expect_some(e, 0, 3);
}

#define RC(fn) cmocka_unit_test_setup_teardown(fn, env_setup, env_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		RC(create_limits), RC(create_fails), RC(resize_keeps_unread), RC(resize_fails),
		RC(resize_does_not_block_others), RC(resize_keeps_arming), RC(destroy_busy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
