/* SPDX-License-Identifier: BSD-3-Clause */
/* The ends of life of clients, adapters and dataplanes, in every order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- ends of life */

/* All kinds of objects, made on a context, with work under way. */
struct all {
	struct ibv_context *ctx;
	void *obj[16];
	int n;
	uint8_t *buf;
};

static void *
keep(struct all *a, void *p)
{
	assert_non_null(p);
	return a->obj[a->n++] = p;
}

static void
make_all(struct rig *r, struct all *a)
{
	struct ibv_srq_init_attr si = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_ah_attr ai = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1}};
	struct rig_qp o = {.mtu = IBV_MTU_256};
	struct ibv_mr *mr;
	struct ibv_qp *qp;

	memset(a, 0, sizeof(*a));
	a->ctx = rig_attach(r, 0);
	a->buf = calloc(1, 1 << 16);
	o.pd = keep(a, ibv_alloc_pd(a->ctx));
	o.send_cq = keep(a, ibv_create_cq(a->ctx, 10, NULL, NULL, 0));
	o.recv_cq = keep(a, ibv_create_cq(a->ctx, 10, NULL, NULL, a->ctx->num_comp_vectors - 1));
	mr = keep(a, ibv_reg_mr(o.pd, a->buf, 1 << 16, ALL_ACCESS));
	keep(a, ibv_alloc_mw(o.pd, IBV_MW_TYPE_2));
	rig_gid(r, 1, &ai.grh.dgid);
	keep(a, ibv_create_ah(o.pd, &ai));
	qp = keep(a, rig_make_qp(r, 0, &o));
	rig_connect(r, 0, qp, 1, 0xabcde, 1, &o); /* nobody answers at this QP number */
	for (int i = 0; i < 5; i++) {
		struct ibv_sge sge = {(uintptr_t)a->buf, 1 << 16, mr->lkey};
		struct ibv_send_wr wr = {
			.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1};

		rig_send_on(qp, &wr);
	}
	rig_recv_on(qp, a->buf, 100, mr->lkey, 1);
	o.srq = keep(a, ibv_create_srq(o.pd, &si));
	keep(a, rig_make_qp(r, 0, &o));
}

static void
free_all(struct all *a)
{
	for (int i = 0; i < a->n; i++)
		free(a->obj[i]);
	free(a->buf);
}

/* No object of clients is left: the test can have all that there ever was. */
static void
check_whole(struct rig *r)
{
	static void *obj[MAX_AH + 1];
	struct ibv_ah_attr ai = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1}};
	struct ibv_context *ctx = rig_attach(r, 0);
	struct rig_end end = {.ctx = ctx, .buf = r->end[0].buf};
	unsigned int n;

	rig_gid(r, 1, &ai.grh.dgid);
	for (n = 0; (obj[n] = ibv_alloc_pd(ctx)); n++)
		;
	assert_int_equal(n, MAX_PD - 1);
	while (--n)
		assert_int_equal(ibv_dealloc_pd(obj[n]), 0);
	end.pd = obj[0];
	for (n = 0; (obj[n] = ibv_reg_mr(end.pd, end.buf, 1, 0)); n++)
		;
	assert_int_equal(n, 1024 - 1);
	while (n--)
		assert_int_equal(ibv_dereg_mr(obj[n]), 0);
	for (n = 0; (obj[n] = ibv_create_ah(end.pd, &ai)); n++)
		;
	assert_int_equal(n, MAX_AH);
	while (n--)
		assert_int_equal(ibv_destroy_ah(obj[n]), 0);
	end.cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
	for (n = 0; (obj[n] = control_small_qp(&end, 1)); n++)
		;
	assert_int_equal(n, 1024 - 1);
	while (n--)
		assert_int_equal(ibv_destroy_qp(obj[n]), 0);
	assert_int_equal(ibv_destroy_cq(end.cq), 0);
	assert_int_equal(ibv_dealloc_pd(end.pd), 0);
	assert_int_equal(ibv_close_device(ctx), 0);
}

/* A context closes with all objects still there: everything is taken back, nobody else notices. */
static void
test_detach(void **state)
{
	static const unsigned int engines[] = {1, 2, 4};
	struct all a;
	struct rig r;

	(void)state;
	for (int i = 0; i < 6; i++) {
		struct rig_config cfg = {.engines = engines[i % 3], .delay_seed = i < 3 ? 0 : 9};

		rig_open(&r, &cfg, NULL);
		for (int round = 0; round < 50; round++) {
			uint64_t regions = 0;

			make_all(&r, &a);
			rig_turns(&r, (unsigned int)round);
			assert_int_equal(ibv_close_device(a.ctx), 0);
			memset(a.buf, 0xa5, 1 << 16);
			rig_turns(&r, 30);
			/* The engine writes to no buffer that is the program's again. */
			for (int k = 0; k < 1 << 16; k++)
				regions += a.buf[k] != 0xa5;
			assert_int_equal(regions, 0);
			free_all(&a);
		}
		rig_post(&r, 0, IBV_WR_RDMA_WRITE, 0, 50000, 0, 1);
		rig_expect(&r, 0, IBV_WC_SUCCESS);
		assert_memory_equal(r.end[0].buf, r.end[1].buf, 50000);
		if (cfg.engines != 4) /* vector 0 holds as many QPs as the adapter may have */
			check_whole(&r);
		rig_close(&r);
	}
}

/* A dataplane goes before its clients: their calls fail, and closing works. */
static void
test_taken_down(void **state)
{
	struct ibv_device_attr da;
	struct ibv_port_attr pa;
	struct ibv_cq *cq;
	struct all a;
	struct rig r;

	(void)state;
	rig_open(&r, NULL, NULL);
	make_all(&r, &a);
	rig_turns(&r, 10);
	/* The engines are still bound to this thread. */
	urn_dp_destroy(r.dp);
	assert_null(ibv_alloc_pd(a.ctx));
	control_refused(errno, ENODEV, "taken down");
	control_refused(ibv_query_port(a.ctx, 1, &pa), ENODEV, "taken down");
	assert_int_equal(ibv_query_device(a.ctx, &da), 0);
	assert_null(ibv_create_cq(a.ctx, 1, NULL, NULL, 0));
	/* Posted requests go nowhere. */
	rig_recv_on(a.obj[6], a.buf, 100, 1, 1);
	/* The objects are gone: giving them back succeeds. */
	cq = r.end[0].cq;
	assert_int_equal(ibv_destroy_qp(r.end[0].qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dereg_mr(r.end[0].mr), 0);
	assert_int_equal(ibv_dealloc_pd(r.end[0].pd), 0);
	assert_int_equal(ibv_close_device(a.ctx), 0);
	free_all(&a);
	assert_int_equal(ibv_close_device(r.end[0].ctx), 0);
	assert_int_equal(ibv_destroy_qp(r.end[1].qp), 0);
	assert_int_equal(ibv_destroy_cq(r.end[1].cq), 0);
	assert_int_equal(ibv_dereg_mr(r.end[1].mr), 0);
	assert_int_equal(ibv_dealloc_pd(r.end[1].pd), 0);
	assert_int_equal(ibv_close_device(r.end[1].ctx), 0);
	for (int i = 0; i < 2; i++) {
		free(r.end[i].buf);
		urn_port_close(r.port[i]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_detach),
		cmocka_unit_test(test_taken_down),
	};

	return cmocka_run_group_tests_name("control_end", tests, NULL, NULL);
}
