/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every allocation fails once: the caller gets an errno value and a sentence, objects
 * made before are given back, and the next try succeeds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static long left = -1; /* allocations until one fails; -1: none fails */
static bool failed;

static bool
fails(void)
{
	if (left < 0 || left-- > 0)
		return false;
	failed = true;
	errno = ENOMEM;
	return true;
}

#define WRAP(name, params, args)                     \
	void *__real_##name params;                  \
	void *__wrap_##name params;                  \
	void *__wrap_##name params                   \
	{                                            \
		return fails() ? NULL : __real_##name args; \
	}

WRAP(malloc, (size_t n), (n))
WRAP(calloc, (size_t n, size_t m), (n, m))
WRAP(realloc, (void *p, size_t n), (p, n))
WRAP(reallocarray, (void *p, size_t n, size_t m), (p, n, m))
WRAP(aligned_alloc, (size_t a, size_t n), (a, n))

/* True when a call that makes an object succeeded. A failure must be for want of memory, and have a message. */
static bool
made(const void *p)
{
	int err = errno;

	if (p)
		return true;
	assert_true(failed);
	assert_int_equal(err, ENOMEM);
	assert_int_not_equal(urn_attach_error()[0], 0);
	return false;
}

static bool
done(int rc)
{
	if (rc == 0)
		return true;
	assert_true(failed);
	assert_int_equal(rc, ENOMEM);
	assert_int_not_equal(urn_attach_error()[0], 0);
	return false;
}

struct objects {
	struct ibv_pd *pd;
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq;
	struct ibv_cq_ex *cqx;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_ah *ah;
	struct ibv_qp *qp[70]; /* more than the first table of doorbells has room for */
};

static uint8_t buf[4096];

static bool
make_qps(struct objects *o)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .path_mtu = IBV_MTU_1024,
				.max_dest_rd_atomic = 16, .min_rnr_timer = 1,
				.ah_attr = {.is_global = 1, .port_num = 1, .grh.sgid_index = 1}};

	init.send_cq = init.recv_cq = o->cq;
	for (int i = 0; i < 70; i++) {
		init.srq = i & 1 ? o->srq : NULL;
		o->qp[i] = ibv_create_qp(o->pd, &init);
		if (!made(o->qp[i]))
			return false;
	}
	if (!done(ibv_modify_qp(o->qp[0], &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						      IBV_QP_ACCESS_FLAGS)))
		return false;
	a.qp_state = IBV_QPS_RTR;
	memcpy(a.ah_attr.grh.dgid.raw, (uint8_t[16]){[10] = 0xff, 0xff, 10, 0, 0, 2}, 16);
	return done(ibv_modify_qp(o->qp[0], &a,
				  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					  IBV_QP_MIN_RNR_TIMER));
}

static bool
make_objects(struct ibv_context *ctx, struct objects *o)
{
	struct ibv_srq_init_attr si = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_cq_init_attr_ex ci = {.cqe = 4};
	struct ibv_ah_attr ai = {.is_global = 1, .port_num = 1, .grh.sgid_index = 1};

	memcpy(ai.grh.dgid.raw, (uint8_t[16]){[10] = 0xff, 0xff, 10, 0, 0, 9}, 16);
	return made(o->pd = ibv_alloc_pd(ctx)) && made(o->ch = ibv_create_comp_channel(ctx)) &&
	       made(o->cq = ibv_create_cq(ctx, 16, NULL, o->ch, 0)) &&
	       made(o->cqx = ibv_create_cq_ex(ctx, &ci)) && made(o->srq = ibv_create_srq(o->pd, &si)) &&
	       made(o->mr = ibv_reg_mr(o->pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE)) &&
	       made(o->mw = ibv_alloc_mw(o->pd, IBV_MW_TYPE_1)) &&
	       made(o->ah = ibv_create_ah(o->pd, &ai)) && done(ibv_resize_cq(o->cq, 100)) && make_qps(o);
}

static void
destroy_objects(struct objects *o)
{
	for (int i = 0; i < 70; i++)
		if (o->qp[i])
			assert_int_equal(ibv_destroy_qp(o->qp[i]), 0);
	if (o->ah)
		assert_int_equal(ibv_destroy_ah(o->ah), 0);
	if (o->mw)
		assert_int_equal(ibv_dealloc_mw(o->mw), 0);
	if (o->mr)
		assert_int_equal(ibv_dereg_mr(o->mr), 0);
	if (o->srq)
		assert_int_equal(ibv_destroy_srq(o->srq), 0);
	if (o->cqx)
		assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(o->cqx)), 0);
	if (o->cq)
		assert_int_equal(ibv_destroy_cq(o->cq), 0);
	if (o->ch)
		assert_int_equal(ibv_destroy_comp_channel(o->ch), 0);
	if (o->pd)
		assert_int_equal(ibv_dealloc_pd(o->pd), 0);
}

/* A whole life with one allocation failing. returns: true when one did */
static bool
life(struct urn_port *const port[2], long fail_at)
{
	struct urn_adapter_config ac = {.port = port[0], .engines = 3, .ipv4 = {10, 0, 0, 1}, .max_qp = 128,
					.max_mr = 16, .work_in_flight = 64, .area_size = 16 << 20};
	struct urn_dp_config dc = {.engines = 2, .adapters = 1, .adapter = &ac};
	struct ibv_context *ctx = NULL;
	struct objects o = {0};
	struct urn_err err = {{0}};
	struct urn_abi_channel *ch;
	struct urn_dp *dp;

	failed = false;
	left = fail_at;
	dp = urn_dp_create(&dc, &err);
	if (!dp) {
		left = -1;
		assert_true(failed);
		assert_int_not_equal(err.text[0], 0);
		return true;
	}
	ch = urn_dp_attach(dp, 0, &err);
	if (ch)
		ctx = urn_attach_open(ch);
	if (!ctx) {
		assert_true(failed);
		assert_true(err.text[0] || urn_attach_error()[0]);
	} else if (make_objects(ctx, &o)) {
		/* Turns need no memory, or cope without. */
		for (int i = 0; i < 100; i++)
			for (unsigned int e = 0; e < 2; e++)
				urn_engine_poll(urn_dp_engine(dp, e));
		destroy_objects(&o);
		memset(&o, 0, sizeof(o));
	}
	left = -1;
	if (ctx) {
		destroy_objects(&o);
		memset(&o, 0, sizeof(o));
		/* Nothing is broken: now all objects can be made. */
		assert_true(make_objects(ctx, &o));
		destroy_objects(&o);
		assert_int_equal(ibv_close_device(ctx), 0);
	}
	urn_dp_destroy(dp);
	return failed;
}

static void
test_each(void **state)
{
	struct urn_port_config pc[2] = {{.name = "a", .mbufs = 2048}, {.name = "b", .mbufs = 2048}};
	struct urn_eal_config ec = {.program = "test", .memory_mb = 128};
	struct urn_port *port[2];
	struct urn_err err;
	long n = 0;

	(void)state;
	assert_int_equal(urn_eal_start(&ec, &err), 0);
	assert_int_equal(urn_port_open_ring_pair(pc, port, &err), 0);
	while (life(port, n))
		n++;
	/* There are at least that many allocations, or the test no longer catches them. */
	assert_true(n > 100);
	urn_port_close(port[0]);
	urn_port_close(port[1]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_each)};

	return cmocka_run_group_tests_name("oom", tests, NULL, NULL);
}
