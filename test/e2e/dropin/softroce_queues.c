/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs that end, completion queues, and many of them at once: things that projects skip, or
 * work around, on soft-RoCE (doc/reference/softroce.md). */
#include "rig.h"
#include "softroce.h"

#include <pthread.h>

enum { MANY = 8, ROUNDS = 100, FLIGHT = 16 };

/* SPDK: the event that a queue pair in the error state takes no more of an SRQ. */
void
last_wqe(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct rig_options o = {0};
	struct rig r;

	rig_open(&r);
	CHECK((o.srq = ibv_create_srq(r.b.pd, &init)) != NULL);
	rig_make(&r, &o);
	EQUAL(end_modify(&r.b, IBV_QPS_ERR), 0);
	EQUAL(end_event(&r.b), IBV_EVENT_QP_LAST_WQE_REACHED);
	rig_unmake(&r);
	EQUAL(ibv_destroy_srq(o.srq), 0);
	rig_close(&r);
}

/* SPDK: completions of a queue pair in the error state are errors, each request has one, and none
 * is left when the queue pair is destroyed. */
void
errors(void)
{
	const struct rig_options plain = {0};
	struct ibv_wc wc;
	struct rig r;
	int i;

	rig_open(&r);
	rig_make(&r, &plain);
	EQUAL(end_modify(&r.b, IBV_QPS_ERR), 0);
	for (i = 0; i < 8; i++) { /* nobody answers */
		EQUAL(end_send(&r.a, IBV_WR_RDMA_WRITE, 0, 0, 0, 0, 0), 0);
		EQUAL(end_recv(&r.a, 0, 0, 0), 0);
	}
	EQUAL(end_modify(&r.a, IBV_QPS_ERR), 0);
	for (i = 0; i < 16; i++) /* the first may have been given up before */
		CHECK(end_wait(&r.a, &wc) != IBV_WC_SUCCESS);
	EQUAL(ibv_poll_cq(r.a.cq, 1, &wc), 0);
	EQUAL(end_recv(&r.a, 0, 0, 0), 0);
	EQUAL(ibv_destroy_qp(r.a.qp), 0);
	EQUAL(ibv_poll_cq(r.a.cq, 1, &wc), 0);
	EQUAL(ibv_destroy_qp(r.b.qp), 0);
	EQUAL(ibv_destroy_cq(r.a.cq), 0);
	EQUAL(ibv_destroy_cq(r.b.cq), 0);
	rig_close(&r);
}

/* ruapc: a CQ of more entries than 32,767. */
void
big_cq(void)
{
	struct ibv_cq *cq;
	struct rig r;

	rig_open(&r);
	CHECK((cq = ibv_create_cq(r.a.c, 1 << 20, NULL, NULL, 0)) != NULL);
	CHECK(cq->cqe >= 1 << 20);
	EQUAL(ibv_destroy_cq(cq), 0);
	rig_close(&r);
}

/* rdma-core: a CQ that changes its size while completions come. */
void
resize(void)
{
	const struct rig_options plain = {.wr = 64, .cqe = 512};
	struct rig r;
	int i, k;

	rig_open(&r);
	rig_make(&r, &plain);
	for (i = 0; i < ROUNDS; i++) {
		for (k = 0; k < FLIGHT; k++)
			EQUAL(end_send(&r.a, IBV_WR_RDMA_WRITE, 0, 0, 0, 0, 0), 0);
		EQUAL(ibv_resize_cq(r.a.cq, i % 2 == 0 ? FLIGHT + 1 : 512), 0);
		for (k = 0; k < FLIGHT; k++)
			EQUAL(end_wait(&r.a, NULL), IBV_WC_SUCCESS);
	}
	rig_unmake(&r);
	rig_close(&r);
}

/* rpma: the completion that an event tells of is there. */
void
events(void)
{
	const struct rig_options plain = {0};
	struct ibv_cq *from;
	struct ibv_wc wc;
	void *context;
	struct rig r;
	int i;

	rig_open(&r);
	rig_make(&r, &plain);
	EQUAL(ibv_req_notify_cq(r.a.cq, 0), 0);
	for (i = 0; i < ROUNDS; i++) {
		EQUAL(end_send(&r.a, IBV_WR_RDMA_WRITE, 0, 0, 0, 0, 0), 0);
		EQUAL(ibv_get_cq_event(r.a.ch, &from, &context), 0);
		ibv_ack_cq_events(from, 1);
		EQUAL(ibv_req_notify_cq(from, 0), 0);
		EQUAL(ibv_poll_cq(from, 1, &wc), 1);
		EQUAL(wc.status, IBV_WC_SUCCESS);
	}
	rig_unmake(&r);
	rig_close(&r);
}

/* rust-ibverbs: several threads with devices and queue pairs of their own, all at once. */
static void *
one_of_many(void *arg)
{
	static char memory[MANY][2][64];
	const struct rig_options plain = {0};
	uintptr_t n = (uintptr_t)arg;
	char *from = memory[n][0], *to = memory[n][1];
	struct ibv_mr *a, *b;
	struct rig r;
	int i;

	rig_open(&r);
	rig_make(&r, &plain);
	a = reg(&r.a, from, 64);
	b = reg(&r.b, to, 64);
	for (i = 0; i < ROUNDS; i++) {
		memset(from, i + 1, 64);
		EQUAL(end_recv(&r.b, (uintptr_t)to, 64, b->lkey), 0);
		EQUAL(end_send(&r.a, IBV_WR_SEND, (uintptr_t)from, 64, a->lkey, 0, 0), 0);
		EQUAL(end_wait(&r.a, NULL), IBV_WC_SUCCESS);
		EQUAL(end_wait(&r.b, NULL), IBV_WC_SUCCESS);
		EQUAL(memcmp(from, to, 64), 0);
	}
	rig_unmake(&r);
	EQUAL(ibv_dereg_mr(a), 0);
	EQUAL(ibv_dereg_mr(b), 0);
	rig_close(&r);
	return NULL;
}

void
many(void)
{
	pthread_t t[MANY];
	uintptr_t i;

	for (i = 0; i < MANY; i++)
		EQUAL(pthread_create(&t[i], NULL, one_of_many, (void *)i), 0);
	for (i = 0; i < MANY; i++)
		EQUAL(pthread_join(t[i], NULL), 0);
}
