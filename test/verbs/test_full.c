/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doc/reference/verbs.md "What programs rely on besides": a request holds its slot until its
 * completion, or that of a later request of its queue, is polled. So programs that post until
 * ENOMEM, and poll then, never overrun a completion queue that has as many entries as they have
 * requests.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"

#include <errno.h>
#include <sched.h>

enum { DEPTH = 16, ALL = 1 << 20, MANY = 70000 /* more than indices of 16 bits count */ };

/* A rig, and at end 0 a CQ with as many entries as the QPs that use it have slots. */
struct bench {
	struct rig r;
	struct ibv_cq_ex *ex;
	struct ibv_cq *cq;
	struct rig_qp o;
	struct ibv_qp *qp[2], *peer[2];
};

static void
bench_open(struct bench *b, const struct rig_config *cfg, unsigned int qps, struct ibv_srq *srq)
{
	struct ibv_cq_init_attr_ex init = {.cqe = DEPTH * qps, .wc_flags = IBV_WC_STANDARD_FLAGS};

	if (srq == NULL)
		rig_open(&b->r, cfg, &(struct rig_qp){0});
	b->ex = ibv_create_cq_ex(b->r.end[0].ctx, &init);
	assert_non_null(b->ex);
	b->cq = ibv_cq_ex_to_cq(b->ex);
	assert_int_equal(b->cq->cqe, DEPTH * qps);
	b->o = (struct rig_qp){
		.depth = DEPTH, .timeout = 18, .send_cq = b->cq, .recv_cq = b->cq, .srq = srq};
	for (unsigned int i = 0; i < 2; i++) {
		b->qp[i] = b->peer[i] = NULL;
		if (i >= qps)
			continue;
		b->qp[i] = rig_make_qp(&b->r, 0, &b->o);
		b->peer[i] = rig_make_qp(&b->r, 1, &(struct rig_qp){.depth = 256});
		rig_connect(&b->r, 0, b->qp[i], 9, b->peer[i]->qp_num, 9, &b->o);
		rig_connect(&b->r, 1, b->peer[i], 9, b->qp[i]->qp_num, 9, &b->o);
	}
}

static void
bench_close(struct bench *b)
{
	for (unsigned int i = 0; i < 2; i++) {
		if (b->qp[i] != NULL)
			assert_int_equal(ibv_destroy_qp(b->qp[i]), 0);
		if (b->peer[i] != NULL)
			assert_int_equal(ibv_destroy_qp(b->peer[i]), 0);
	}
	assert_int_equal(ibv_destroy_cq(b->cq), 0);
	if (b->o.srq != NULL)
		assert_int_equal(ibv_destroy_srq(b->o.srq), 0);
	rig_close(&b->r);
}

/* Post a WRITE of 8 bytes. returns: as ibv_post_send() */
static int
send_one(struct bench *b, struct ibv_qp *qp, unsigned int flags)
{
	struct ibv_sge sge = {(uintptr_t)b->r.end[0].buf, 8, b->r.end[0].mr->lkey};
	struct ibv_send_wr *bad,
		wr = {
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = flags,
			.sg_list = &sge,
			.num_sge = 1,
			.wr.rdma = {(uintptr_t)b->r.end[1].buf, b->r.end[1].mr->rkey},
		};

	return ibv_post_send(qp, &wr, &bad);
}

/* Post up to `most` WRITEs, and have the engines retire them in between. returns: number posted */
static unsigned int
send_all(struct bench *b, struct ibv_qp *qp, unsigned int most)
{
	unsigned int n = 0;

	for (unsigned int tries = 0; tries < 2 && n < most; tries++) {
		while (n < most && send_one(b, qp, IBV_SEND_SIGNALED) == 0)
			n++;
		rig_turns(&b->r, 500);
	}
	assert_true(n == most || send_one(b, qp, IBV_SEND_SIGNALED) == ENOMEM);
	return n;
}

/* Poll n completions of success, one by one. */
static void
poll_n(struct bench *b, unsigned int n)
{
	struct ibv_wc wc;

	for (; n != 0; n--) {
		assert_int_equal(ibv_poll_cq(b->cq, 1, &wc), 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	}
}

/* Send n messages to a queue pair of end 0. */
static void
send_to(struct bench *b, struct ibv_qp *peer, unsigned int n)
{
	struct ibv_sge sge = {(uintptr_t)b->r.end[1].buf, 8, b->r.end[1].mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED,
				 .sg_list = &sge,
				 .num_sge = 1};

	for (; n != 0; n--) {
		rig_send_on(peer, &wr);
		rig_expect(&b->r, 1, IBV_WC_SUCCESS);
	}
}

/* Post receives until there is no slot. returns: number posted */
static unsigned int
recv_all(struct bench *b, struct ibv_qp *qp)
{
	struct ibv_sge sge = {(uintptr_t)b->r.end[0].buf, 64, b->r.end[0].mr->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
	unsigned int n = 0;
	int err;

	rig_turns(&b->r, 500);
	do
		err = b->o.srq != NULL ? ibv_post_srq_recv(b->o.srq, &wr, &bad)
				       : ibv_post_recv(qp, &wr, &bad);
	while (err == 0 && ++n < ALL);
	assert_int_equal(err, ENOMEM);
	return n;
}

static void
sends(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, &(struct rig_config){0}, 1, NULL);
	assert_int_equal(send_all(&b, b.qp[0], ALL), DEPTH);
	assert_int_equal(send_all(&b, b.qp[0], ALL), 0);
	for (unsigned int k = 1; k <= DEPTH; k++) {
		poll_n(&b, k);
		assert_int_equal(send_all(&b, b.qp[0], ALL), k);
	}
	assert_int_equal(rig_state(b.qp[0]), IBV_QPS_RTS);
	bench_close(&b);
}

/* Requests without a completion wait for one that has one. */
static void
unsignalled(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, &(struct rig_config){0}, 1, NULL);
	for (unsigned int i = 0; i < DEPTH; i++)
		assert_int_equal(send_one(&b, b.qp[0], i == 6 || i == 10 ? IBV_SEND_SIGNALED : 0),
				 0);
	assert_int_equal(send_all(&b, b.qp[0], ALL), 0);
	poll_n(&b, 1);
	assert_int_equal(send_all(&b, b.qp[0], 4), 4);
	poll_n(&b, 1);
	/* 7 and 4 were free, and 4 of those are used. */
	assert_int_equal(send_all(&b, b.qp[0], ALL), 7);
	bench_close(&b);
}

static void
receives(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, &(struct rig_config){0}, 1, NULL);
	assert_int_equal(recv_all(&b, b.qp[0]), DEPTH);
	for (unsigned int k = 1; k < DEPTH; k += 3) {
		send_to(&b, b.peer[0], k);
		assert_int_equal(recv_all(&b, b.qp[0]), 0);
		poll_n(&b, k);
		assert_int_equal(recv_all(&b, b.qp[0]), k);
	}
	bench_close(&b);
}

/* An SRQ of two queue pairs, one of which is reset, the other destroyed, with receives unpolled. */
static void
shared(void **state)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = DEPTH, .max_sge = 1}};
	struct bench b;

	(void)state;
	rig_open(&b.r, &(struct rig_config){0}, &(struct rig_qp){0});
	bench_open(&b, NULL, 2, ibv_create_srq(b.r.end[0].pd, &init));
	assert_non_null(b.o.srq);
	assert_int_equal(recv_all(&b, NULL), DEPTH);
	send_to(&b, b.peer[1], 3);
	send_to(&b, b.peer[0], 4);
	assert_int_equal(recv_all(&b, NULL), 0);
	poll_n(&b, 5);
	assert_int_equal(recv_all(&b, NULL), 5);
	rig_to(b.qp[0], IBV_QPS_RESET);
	assert_int_equal(recv_all(&b, NULL), 2);
	send_to(&b, b.peer[1], 6);
	assert_int_equal(ibv_destroy_qp(b.qp[1]), 0);
	assert_int_equal(recv_all(&b, NULL), 6);
	b.qp[1] = NULL;
	bench_close(&b);
}

/* Each completion frees a slot of its own queue: two QPs, sends and receives, in one CQ. */
static void
mixed(void **state)
{
	unsigned int want[2] = {0, 0};
	struct ibv_wc wc[7];
	struct bench b;

	(void)state;
	bench_open(&b, &(struct rig_config){0}, 2, NULL);
	assert_int_equal(recv_all(&b, b.qp[0]), DEPTH);
	for (unsigned int i = 0; i < DEPTH; i++) {
		assert_int_equal(send_all(&b, b.qp[i % 2], 1), 1);
		if (i % 3 == 0)
			send_to(&b, b.peer[0], 1);
	}
	assert_int_equal(send_all(&b, b.qp[0], ALL), DEPTH / 2);
	assert_int_equal(ibv_poll_cq(b.cq, 7, wc), 7);
	for (unsigned int i = 0; i < 7; i++)
		want[wc[i].opcode == IBV_WC_RECV] += wc[i].qp_num == b.qp[0]->qp_num;
	assert_true(want[0] > 0 && want[1] > 0);
	assert_int_equal(send_all(&b, b.qp[0], ALL), want[0]);
	assert_int_equal(recv_all(&b, b.qp[0]), want[1]);
	bench_close(&b);
}

/* An extended poll frees the slot of the completion that it shows, and room for another one. */
static void
extended(void **state)
{
	struct ibv_poll_cq_attr attr = {0};
	struct bench b;

	(void)state;
	bench_open(&b, &(struct rig_config){0}, 1, NULL);
	assert_int_equal(send_all(&b, b.qp[0], ALL), DEPTH);
	assert_int_equal(ibv_start_poll(b.ex, &attr), 0);
	for (unsigned int i = 0; i < 5 * DEPTH; i++) {
		assert_int_equal(send_all(&b, b.qp[0], ALL), 1);
		assert_int_equal(b.ex->status, IBV_WC_SUCCESS);
		assert_int_equal(ibv_wc_read_qp_num(b.ex), b.qp[0]->qp_num);
		assert_int_equal(ibv_next_poll(b.ex), 0);
	}
	ibv_end_poll(b.ex);
	assert_int_equal(rig_state(b.qp[0]), IBV_QPS_RTS);
	assert_int_equal(send_all(&b, b.qp[0], ALL), 1);
	bench_close(&b);
}

/* A resize carries the count over; a QP that begins anew has all its slots, and so has a new one.
 */
static void
anew(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, &(struct rig_config){0}, 1, NULL);
	assert_int_equal(send_all(&b, b.qp[0], ALL), DEPTH);
	assert_int_equal(ibv_resize_cq(b.cq, 4 * DEPTH), 0);
	assert_int_equal(send_all(&b, b.qp[0], ALL), 0);
	poll_n(&b, 3);
	assert_int_equal(send_all(&b, b.qp[0], ALL), 3);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(recv_all(&b, b.qp[0]), DEPTH);
		rig_to(b.peer[0], IBV_QPS_RESET);
		if (i == 0) {
			rig_to(b.qp[0], IBV_QPS_RESET);
		} else {
			assert_int_equal(ibv_destroy_qp(b.qp[0]), 0);
			b.qp[0] = rig_make_qp(&b.r, 0, &b.o);
		}
		rig_connect(&b.r, 0, b.qp[0], 9, b.peer[0]->qp_num, 9, &b.o);
		rig_connect(&b.r, 1, b.peer[0], 9, b.qp[0]->qp_num, 9, &b.o);
		assert_int_equal(send_all(&b, b.qp[0], ALL), DEPTH);
	}
	poll_n(&b, DEPTH);
	bench_close(&b);
}

/* In the error state requests are flushed, and hold their slots until that is polled. */
static void
flushed(void **state)
{
	struct ibv_wc wc[3];
	struct bench b;

	(void)state;
	bench_open(&b, &(struct rig_config){0}, 1, NULL);
	rig_to(b.qp[0], IBV_QPS_ERR);
	assert_int_equal(send_all(&b, b.qp[0], ALL), DEPTH);
	assert_int_equal(ibv_poll_cq(b.cq, 3, wc), 3);
	assert_int_equal(wc[2].status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(send_all(&b, b.qp[0], ALL), 3);
	bench_close(&b);
}

/* Indices wrap beyond the 16 bits that a completion has of them. */
static void
wraps(void **state)
{
	unsigned int posted = 0, polled = 0;
	struct ibv_wc wc[DEPTH];
	struct bench b;
	int n;

	(void)state;
	bench_open(&b, &(struct rig_config){0}, 1, NULL);
	while (polled < MANY) {
		while (send_one(&b, b.qp[0], IBV_SEND_SIGNALED) == 0)
			posted++;
		assert_in_range(posted - polled, 1, DEPTH);
		rig_turn(&b.r);
		n = ibv_poll_cq(b.cq, 5, wc);
		assert_true(n >= 0);
		for (int i = 0; i < n; i++)
			assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
		polled += (unsigned int)n;
	}
	bench_close(&b);
}

/* ---- two posters and two pollers, held back by nothing but ENOMEM */

enum { EACH = 5000 };

struct crowd {
	struct bench b;
	_Atomic unsigned int polled, bad;
};

static void *
poster(void *arg)
{
	struct crowd *c = arg;
	int err;

	for (unsigned int i = 0; i < EACH; i++) {
		while ((err = send_one(&c->b, c->b.qp[0], IBV_SEND_SIGNALED)) == ENOMEM &&
		       c->bad == 0)
			sched_yield();
		if (err != 0)
			c->bad++;
	}
	return NULL;
}

static void *
poller(void *arg)
{
	struct crowd *c = arg;
	struct ibv_wc wc;
	int n;

	while (c->polled < 2 * EACH && c->bad == 0) {
		n = ibv_poll_cq(c->b.cq, 1, &wc);
		if (n < 0 || (n == 1 && wc.status != IBV_WC_SUCCESS))
			c->bad++;
		c->polled += n == 1;
	}
	return NULL;
}

static void
crowd(void **state)
{
	pthread_t t[4];
	static struct crowd c;

	(void)state;
	bench_open(&c.b, &(struct rig_config){.remote = true}, 1, NULL);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, i < 2 ? poster : poller, &c), 0);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(pthread_join(t[i], NULL), 0);
	assert_int_equal(c.bad, 0);
	assert_int_equal(c.polled, 2 * EACH);
	bench_close(&c.b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sends),  cmocka_unit_test(unsignalled), cmocka_unit_test(receives),
		cmocka_unit_test(shared), cmocka_unit_test(mixed),	 cmocka_unit_test(extended),
		cmocka_unit_test(anew),	  cmocka_unit_test(flushed),	 cmocka_unit_test(wraps),
		cmocka_unit_test(crowd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
