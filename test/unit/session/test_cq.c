/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring of a software completion queue (FO-3). */
#include "verbs/session/cq.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static struct urn_sv_cq cq;
static struct urn_sv_qp a, b;

static int
fresh(void **state)
{
	(void)state;
	memset(&cq, 0, sizeof(cq));
	a = (struct urn_sv_qp){.send_held = 9, .recv_held = 9};
	a.ibv.qp_num = 1;
	b = a;
	b.ibv.qp_num = 2;
	return 0;
}

static int
end(void **state)
{
	(void)state;
	free(cq.ring);
	return 0;
}

static void
push(uint64_t id, struct urn_sv_qp *qp, bool send)
{
	struct ibv_wc wc = {.wr_id = id, .qp_num = qp->ibv.qp_num};

	urn_sv_push(&cq, &wc, qp, send, false);
}

static void
pops(uint64_t id)
{
	struct urn_sv_wc got;

	assert_true(urn_sv_pop(&cq, &got));
	assert_int_equal(got.wc.wr_id, id);
}

/* The order stays over laps of the ring, and when the ring grows. */
static void
order(void **state)
{
	struct urn_sv_wc got;
	uint64_t in = 0, out = 0;

	(void)state;
	assert_false(urn_sv_pop(&cq, &got));
	for (uint32_t step = 1; step < 40; step++) {
		for (uint32_t i = 0; i < step; i++)
			push(in++, &a, true);
		for (uint32_t i = 0; i < step - 1; i++)
			pops(out++);
	}
	while (out < in)
		pops(out++);
	assert_false(urn_sv_pop(&cq, &got));
}

/* A slot of the queue pair is free when the program has polled the completion. */
static void
held(void **state)
{
	(void)state;
	push(1, &a, true);
	push(2, &a, false);
	push(3, &b, false);
	assert_int_equal(a.send_held, 9);
	pops(1);
	assert_int_equal(a.send_held, 8);
	assert_int_equal(a.recv_held, 9);
	pops(2);
	assert_int_equal(a.recv_held, 8);
	pops(3);
	assert_int_equal(b.recv_held, 8);
}

/* The completions of a queue pair go with it, all others stay in order. */
static void
cleans(void **state)
{
	struct urn_sv_wc got;

	(void)state;
	for (uint64_t i = 0; i < 10; i++)
		push(i, i % 2 ? &a : &b, true);
	pops(0);
	urn_sv_cq_clean(&cq, &a);
	for (uint64_t i = 2; i < 10; i += 2)
		pops(i);
	assert_false(urn_sv_pop(&cq, &got));
}

/* An armed queue fires once: for any completion, or for solicited ones and failures. */
static void
arms(void **state)
{
	struct ibv_wc wc = {.status = IBV_WC_SUCCESS};

	(void)state;
	cq.armed = cq.solicited = true;
	urn_sv_push(&cq, &wc, NULL, false, false);
	assert_true(cq.armed);
	urn_sv_push(&cq, &wc, NULL, false, true);
	assert_false(cq.armed);
	cq.armed = true;
	wc.status = IBV_WC_WR_FLUSH_ERR;
	urn_sv_push(&cq, &wc, NULL, false, false);
	assert_false(cq.armed);
	cq.armed = true;
	cq.solicited = false;
	wc.status = IBV_WC_SUCCESS;
	urn_sv_push(&cq, &wc, NULL, false, false);
	assert_false(cq.armed);
}

static bool memory_is_short;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *
__wrap_calloc(size_t n, size_t size)
{
	return memory_is_short ? NULL : __real_calloc(n, size);
}

/* An adapter's queue that has one completion after the other. */
static uint64_t below_next;

static int
below_poll(struct ibv_cq *below, int n, struct ibv_wc *wc)
{
	(void)below;
	for (int i = 0; i < n; i++)
		wc[i] = (struct ibv_wc){.wr_id = below_next++, .qp_num = 5};
	return n;
}

/* Without memory for a larger ring, completions stay in the queue below: none is lost. */
static void
short_of_memory(void **state)
{
	static struct urn_sv_ctx ctx;
	struct ibv_context c = {.ops = {.poll_cq = below_poll}};
	struct ibv_cq below = {.context = &c, .cqe = 1024};
	struct ibv_qp real = {.qp_num = 5};
	struct urn_sv_path *p = &a.path[0];
	struct urn_sv_wc got;
	uint64_t out = 0;

	(void)state;
	memset(&ctx, 0, sizeof(ctx));
	below_next = 0;
	cq.ibv.context = &ctx.front.vctx.context;
	cq.below[0] = cq.below[1] = &below;
	a.mode = URN_SV_PLAIN;
	a.ibv.send_cq = &cq.ibv;
	*p = (struct urn_sv_path){.qp = &a, .real = &real};
	LIST_INSERT_HEAD(&ctx.bucket[5], p, link);
	assert_int_equal(urn_sv_cq_load(&cq, 8, 0), 0);
	memory_is_short = true;
	for (int i = 0; i < 20; i++)
		urn_sv_cq_drain(&cq, 0);
	assert_true(below_next >= URN_SV_BATCH);
	for (int i = 0; i < 20; i++) {
		while (urn_sv_pop(&cq, &got))
			assert_int_equal(got.wc.wr_id, out++);
		assert_int_equal(out, below_next);
		assert_int_equal(cq.plain, 0);
		urn_sv_cq_drain(&cq, 0);
		assert_true(below_next > out);
		/* Completions of sessions fit all the same. */
		for (int k = 0; k < 8; k++)
			push(1000, &b, true);
		for (uint32_t n = (uint32_t)(below_next - out); n != 0; n--) {
			assert_true(urn_sv_pop(&cq, &got));
			assert_int_equal(got.wc.wr_id, out++);
		}
		for (int k = 0; k < 8; k++)
			pops(1000);
	}
	memory_is_short = false;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(order, fresh, end),
		cmocka_unit_test_setup_teardown(held, fresh, end),
		cmocka_unit_test_setup_teardown(cleans, fresh, end),
		cmocka_unit_test_setup_teardown(arms, fresh, end),
		cmocka_unit_test_setup_teardown(short_of_memory, fresh, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
