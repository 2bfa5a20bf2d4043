/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A dataplane that dies between any two of its stores for a completion (lib/abi/queue.h):
 * each request completes once. The test makes the stores, then reports the death, as the
 * channel's thread would.
 */
#include "test.h"

#include "verbs/adapter/adapter.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void (*gone_died)(void *arg);
static void *gone_arg;
static int gone_forks;

static int
gone_watch(void *ctx, void (*died)(void *arg), void *arg)
{
	(void)ctx;
	gone_died = died;
	gone_arg = arg;
	return 0;
}

static char gone_steps[8]; /* steps of the library, a letter each */
static size_t gone_step;

static int
gone_given_up(void *ctx)
{
	const struct fake *f = ctx;

	gone_steps[gone_step++] = f->db->left ? 'L' : 'l';
	return 0;
}

static int
gone_still(void *ctx)
{
	(void)ctx;
	gone_steps[gone_step++] = 'S';
	return 0;
}

static void
gone_forked(void *ctx)
{
	(void)ctx;
	gone_forks++;
}

struct gone {
	struct fake *f;
	struct ibv_context *c;
	struct ibv_pd *pd;
	struct ibv_cq_ex *cq[2]; /* for sends, for receives */
	struct ibv_srq *srq;
	struct ibv_qp *qp, *shared; /* QP with receives of its own; QP on the SRQ */
};

static int
gone_setup(void **state)
{
	struct gone *g = calloc(1, sizeof(*g));
	struct ibv_cq_init_attr_ex attr = {.cqe = 4};
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_qp_init_attr init = {.cap = {8, 8, 1, 1, 0}, .qp_type = IBV_QPT_RC};

	assert_non_null(g);
	g->f = fake_new();
	g->f->channel.watch = gone_watch;
	g->f->channel.forked = gone_forked;
	g->c = urn_attach_open(&g->f->channel);
	assert_non_null(g->c);
	g->pd = ibv_alloc_pd(g->c);
	for (int i = 0; i < 2; i++)
		g->cq[i] = ibv_create_cq_ex(g->c, &attr);
	init.send_cq = ibv_cq_ex_to_cq(g->cq[0]);
	init.recv_cq = ibv_cq_ex_to_cq(g->cq[1]);
	g->srq = ibv_create_srq(g->pd, &srq);
	g->qp = ibv_create_qp(g->pd, &init);
	init.srq = g->srq;
	g->shared = ibv_create_qp(g->pd, &init);
	assert_non_null(g->shared);
	env_connect(g->qp);
	env_connect(g->shared);
	*state = g;
	return 0;
}

static int
gone_teardown(void **state)
{
	struct gone *g = *state;

	assert_int_equal(ibv_destroy_qp(g->qp), 0);
	assert_int_equal(ibv_destroy_qp(g->shared), 0);
	assert_int_equal(ibv_destroy_srq(g->srq), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(g->cq[i])), 0);
	assert_int_equal(ibv_dealloc_pd(g->pd), 0);
	assert_int_equal(ibv_close_device(g->c), 0);
	fake_free(g->f);
	free(g);
	return 0;
}

static void
die(void)
{
	gone_died(gone_arg);
}

static void
post(struct gone *g, uint64_t first, int n)
{
	for (int i = 0; i < n; i++) {
		struct ibv_send_wr wr = {.wr_id = first + (uint64_t)i, .opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED}, *bad;

		assert_int_equal(ibv_post_send(g->qp, &wr, &bad), 0);
	}
}

static void
post_recv(struct gone *g, uint64_t first, int n, bool srq)
{
	for (int i = 0; i < n; i++) {
		struct ibv_recv_wr wr = {.wr_id = first + (uint64_t)i}, *bad;

		assert_int_equal(srq ? ibv_post_srq_recv(g->srq, &wr, &bad) : ibv_post_recv(g->qp, &wr, &bad), 0);
	}
}

/* Write a completion up to a phase. */
static void
half(struct ibv_cq_ex *cq, const struct ibv_qp *qp, uint64_t wr_id, uint32_t index, uint8_t opcode,
	uint8_t phase)
{
	struct urn_adapter_cq *q = (struct urn_adapter_cq *)cq;
	struct urn_abi_cqe *e = &q->cqe[q->cons & q->mask];

	e->wr_id = wr_id;
	e->qp_num = qp->qp_num;
	e->wqe = (uint16_t)index;
	e->status = 0;
	e->opcode = opcode;
	atomic_store(&e->phase, phase);
}

static void
expect(struct ibv_cq_ex *cq, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc), 1);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.status, status);
}

static void
expect_none(struct ibv_cq_ex *cq)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc), 0);
}

/* Nothing begun; a completion of old bytes; a whole one; a whole one counted in cons. */
static void
test_steps(void **state)
{
	for (int step = 0; step < 4; step++) {
		struct gone *g;
		struct urn_adapter_sq *sq;
		bool whole = step >= 2;

		gone_setup(state);
		g = *state;
		sq = &urn_qp(g->qp)->sq;
		/* Indices whose low bits wrap. */
		atomic_store(&sq->hdr->prod, 0x1ffff);
		atomic_store(&sq->hdr->cons, 0x1ffff);
		sq->prod = sq->cons = 0x1ffff;
		post(g, 70, 3);
		if (step > 0)
			half(g->cq[0], g->qp, 70, 0x1ffff, URN_WCO_SEND, whole ? URN_CQE_WHOLE : 0);
		if (step == 3)
			atomic_store(&sq->hdr->cons, 0x20000);
		expect_none(g->cq[0]);
		die();
		expect(g->cq[0], 70, whole ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR);
		expect(g->cq[0], 71, IBV_WC_WR_FLUSH_ERR);
		expect(g->cq[0], 72, IBV_WC_WR_FLUSH_ERR);
		expect_none(g->cq[0]);
		expect_none(g->cq[0]);
		gone_teardown(state);
	}
}

/* Completions written before come first; more requests are flushed than the queue had room for. */
static void
test_order(void **state)
{
	struct gone *g = *state;

	post(g, 1, 8);
	fake_retire(g->f, g->qp->qp_num, 2);
	for (uint64_t i = 1; i <= 2; i++)
		fake_complete(g->f, ibv_cq_ex_to_cq(g->cq[0])->handle, &(struct fake_wc){.wr_id = i,
			.qpn = g->qp->qp_num});
	die();
	expect(g->cq[0], 1, IBV_WC_SUCCESS);
	expect(g->cq[0], 2, IBV_WC_SUCCESS);
	for (uint64_t i = 3; i <= 8; i++)
		expect(g->cq[0], i, IBV_WC_WR_FLUSH_ERR);
	expect_none(g->cq[0]);
}

/* A receive is open until it is completed, not just until it is taken; its slot is not reused before. */
static void
test_receives(void **state)
{
	struct gone *g = *state;
	struct urn_adapter_rq *rq = &urn_qp(g->qp)->rq;
	struct ibv_recv_wr wr = {0}, *bad;

	post_recv(g, 10, 8, false);
	atomic_store(&rq->hdr->cons, 5);
	assert_int_equal(ibv_post_recv(g->qp, &wr, &bad), ENOMEM);
	atomic_store(&rq->hdr->done, 2);
	fake_complete(g->f, ibv_cq_ex_to_cq(g->cq[1])->handle,
		      &(struct fake_wc){.wr_id = 11, .qpn = g->qp->qp_num, .opcode = URN_WCO_RECV});
	expect(g->cq[1], 11, IBV_WC_SUCCESS);
	post_recv(g, 18, 2, false);
	half(g->cq[1], g->qp, 12, 2, URN_WCO_RECV, URN_CQE_WHOLE);
	die();
	expect(g->cq[1], 12, IBV_WC_SUCCESS);
	for (uint64_t i = 13; i < 20; i++)
		expect(g->cq[1], i, IBV_WC_WR_FLUSH_ERR);
	expect_none(g->cq[1]);
}

/* A receive taken from an SRQ: recorded, and not in both places when the dataplane died in between. */
static void
test_shared(void **state)
{
	for (int told = 0; told < 2; told++) {
		struct gone *g;
		struct urn_abi_wq *own, *srq;
		uint64_t *slot;

		gone_setup(state);
		g = *state;
		own = urn_qp(g->shared)->taken;
		srq = urn_srq(g->srq)->rq.hdr;
		slot = (uint64_t *)((uint8_t *)own + URN_ABI_WQ_SLOTS);
		post_recv(g, 20, 4, true);
		for (uint32_t i = 0; i < 3; i++)
			slot[i] = 20 + i;
		atomic_store(&srq->cons, 2);
		/* Two others of the SRQ are polled. */
		atomic_store(&urn_srq(g->srq)->polled, 2);
		post_recv(g, 24, 2, true); /* into the slots of 20 and 21 */
		atomic_store(&own->last, 2);
		atomic_store(&own->cons, 3);
		atomic_store(&own->done, 1); /* 20 is completed */
		if (told)
			atomic_store(&srq->cons, 3);
		die();
		for (uint64_t i = 21; i < 26; i++)
			expect(g->cq[1], i, IBV_WC_WR_FLUSH_ERR);
		expect_none(g->cq[1]);
		expect_none(g->cq[0]);
		gone_teardown(state);
	}
}

/* The extended poll gives the same completions. */
static void
test_extended(void **state)
{
	struct gone *g = *state;
	struct ibv_poll_cq_attr attr = {0};

	post(g, 5, 2);
	die();
	assert_int_equal(ibv_start_poll(g->cq[0], &attr), 0);
	assert_int_equal(g->cq[0]->wr_id, 5);
	assert_int_equal(g->cq[0]->status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ibv_wc_read_qp_num(g->cq[0]), g->qp->qp_num);
	assert_int_equal(ibv_next_poll(g->cq[0]), 0);
	assert_int_equal(g->cq[0]->wr_id, 6);
	assert_int_equal(ibv_next_poll(g->cq[0]), ENOENT);
	ibv_end_poll(g->cq[0]);
	assert_int_equal(ibv_start_poll(g->cq[0], &attr), ENOENT);
}

/* A queue that was resized by a dataplane that died before its answer. */
static void
test_resized(void **state)
{
	struct gone *g = *state;
	struct ibv_cq *cq = ibv_cq_ex_to_cq(g->cq[0]);
	uint64_t off = g->f->used;
	struct urn_abi_cqe *e = fake_at(g->f, off + URN_ABI_CQ_SLOTS);

	post(g, 1, 2);
	urn_cq(cq)->hdr->moved_off = off;
	atomic_store(&urn_cq(cq)->hdr->moved_entries, 8);
	e->wr_id = 1;
	e->qp_num = g->qp->qp_num;
	atomic_store(&e->phase, 1);
	fake_retire(g->f, g->qp->qp_num, 1);
	fake_fail_next(g->f, URN_CTL_RESIZE_CQ, ENODEV, NULL);
	assert_int_equal(ibv_resize_cq(cq, 8), EIO);
	die();
	expect(g->cq[0], 1, IBV_WC_SUCCESS);
	expect(g->cq[0], 2, IBV_WC_WR_FLUSH_ERR);
	expect_none(g->cq[0]);
}

/* Messages beside a completion that was valid, and beside one that was whole and not valid yet. */
static void
test_beside(void **state)
{
	struct gone *g = *state;
	struct ibv_cq_init_attr_ex attr = {.cqe = 4};
	struct ibv_cq_ex *cq;
	struct urn_adapter_cq *q;
	struct ibv_qp *qp;
	struct ibv_qp_init_attr init = {.cap = {8, 8, 1, 1, 0},
					.qp_type = IBV_QPT_RC,
					.send_cq = ibv_cq_ex_to_cq(g->cq[0])};
	struct ibv_recv_wr *bad;
	char at[2][8] = {"", ""};

	g->f->beside = true;
	cq = ibv_create_cq_ex(g->c, &attr);
	init.recv_cq = ibv_cq_ex_to_cq(cq);
	qp = ibv_create_qp(g->pd, &init);
	env_connect(qp);
	for (uint64_t i = 0; i < 3; i++) {
		struct ibv_recv_wr wr = {.wr_id = i};

		assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
	}
	fake_complete(g->f, ibv_cq_ex_to_cq(cq)->handle,
		      &(struct fake_wc){.qpn = qp->qp_num,
					.byte_len = 5,
					.opcode = URN_WCO_RECV,
					.flags = URN_WCF_BESIDE,
					.bytes = "first",
					.to = at[0]});
	atomic_store(&urn_qp(qp)->rq.hdr->done, 1);
	q = (struct urn_adapter_cq *)cq;
	assert_non_null(q->beside);
	q->beside[1] =
		(struct urn_abi_beside){.addr = (uintptr_t)at[1], .length = 6, .data = "second"};
	half(cq, qp, 0, 0, URN_WCO_RECV, 1);
	q->cqe[1] = (struct urn_abi_cqe){.wr_id = 1,
					 .qp_num = qp->qp_num,
					 .wqe = 1,
					 .opcode = URN_WCO_RECV,
					 .wc_flags = URN_WCF_BESIDE,
					 .phase = URN_CQE_WHOLE};
	die();
	expect(cq, 0, IBV_WC_SUCCESS);
	assert_string_equal(at[0], "first");
	assert_string_equal(at[1], "");
	expect(cq, 1, IBV_WC_SUCCESS);
	assert_string_equal(at[1], "second");
	expect(cq, 2, IBV_WC_WR_FLUSH_ERR);
	expect_none(cq);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

/* Completions of a QP that is destroyed are neither made up nor kept. */
static void
test_destroyed(void **state)
{
	struct gone *g = *state;
	struct ibv_qp_init_attr init = {.cap = {8, 8, 1, 1, 0}, .qp_type = IBV_QPT_RC,
		.send_cq = ibv_cq_ex_to_cq(g->cq[0]), .recv_cq = ibv_cq_ex_to_cq(g->cq[1])};
	struct ibv_qp *other = ibv_create_qp(g->pd, &init);
	struct ibv_send_wr wr = {.wr_id = 9, .opcode = IBV_WR_SEND}, *bad;

	env_connect(other);
	assert_int_equal(ibv_post_send(other, &wr, &bad), 0);
	post(g, 1, 2);
	die();
	assert_int_equal(ibv_post_send(other, &wr, &bad), EIO);
	assert_int_equal(env_modify(other, IBV_QPS_ERR), EIO);
	expect(g->cq[0], 1, IBV_WC_WR_FLUSH_ERR); /* all are made up now */
	assert_int_equal(ibv_destroy_qp(other), 0);
	expect(g->cq[0], 2, IBV_WC_WR_FLUSH_ERR);
	expect_none(g->cq[0]);
}

/* A child may only give objects back; the parent's queues stay as they are. */
static void
test_forked(void **state)
{
	struct gone *g = *state;
	int status;
	pid_t pid;

	post(g, 1, 2);
	pid = fork();
	if (pid == 0) {
		struct ibv_send_wr wr = {.wr_id = 9, .opcode = IBV_WR_SEND}, *bad;
		struct ibv_wc wc;
		bool ok = gone_forks == 1 && ibv_post_send(g->qp, &wr, &bad) == EIO &&
			ibv_poll_cq(ibv_cq_ex_to_cq(g->cq[0]), 1, &wc) == -1 && errno == EIO &&
			ibv_alloc_pd(g->c) == NULL && errno == EIO;

		_exit(ok ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(gone_forks, 0);
	post(g, 3, 1);
	assert_int_equal(fake_send_wqe(g->f, g->qp->qp_num)->wr_id, 1);
}

/* The dataplane is told before its memory is copied, and the copy comes before anything is read. */
static void
test_leaves(void **state)
{
	struct gone *g = *state;
	struct ibv_wc wc;

	gone_step = 0;
	g->f->channel.given_up = gone_given_up;
	g->f->channel.still = gone_still;
	post(g, 1, 1);
	die();
	assert_memory_equal(gone_steps, "LS", 2);
	assert_int_equal(ibv_poll_cq(ibv_cq_ex_to_cq(g->cq[0]), 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
}

int
main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, gone_setup, gone_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps),
		T(test_order),
		T(test_leaves),
		T(test_beside),
		T(test_receives),
		cmocka_unit_test(test_shared),
		T(test_extended),
		T(test_resized),
		T(test_destroyed),
		T(test_forked),
	};

	return cmocka_run_group_tests_name("gone", tests, NULL, NULL);
}
