/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues: control; test_recv.c posts to them. */
#include "test.h"

#include <errno.h>

static void
srq_life(void **state)
{
	struct env *e = *state;
	struct ibv_srq_init_attr init = {.srq_context = e, .attr = {.max_wr = 5, .max_sge = 3, .srq_limit = 2}};
	struct ibv_srq *srq = ibv_create_srq(e->pd, &init);
	struct ibv_srq_attr a = {0};

	assert_non_null(srq);
	assert_ptr_equal(srq->srq_context, e);
	assert_ptr_equal(srq->pd, e->pd);
	assert_int_equal(init.attr.max_wr, 8); /* granted */
	assert_int_equal(e->f->last.create_srq.max_wr, 5);
	assert_int_equal(e->f->last.create_srq.limit, 0); /* verbs: not armed by creation */
	assert_int_equal(e->f->last.create_srq.cq_hint, 0);
	a.srq_limit = 3;
	assert_int_equal(ibv_modify_srq(srq, &a, IBV_SRQ_LIMIT), 0);
	assert_int_equal(ibv_query_srq(srq, &a), 0);
	assert_int_equal(a.srq_limit, 3);
	assert_int_equal(a.max_wr, 8);
	assert_int_equal(a.max_sge, 3);
	assert_int_equal(ibv_modify_srq(srq, &a, IBV_SRQ_MAX_WR), EOPNOTSUPP);
	fake_fail_next(e->f, URN_CTL_QUERY_SRQ, EIO, "x");
	assert_int_equal(ibv_query_srq(srq, &a), EIO);
	fake_fail_next(e->f, URN_CTL_DESTROY_SRQ, EBUSY, "x");
	assert_int_equal(ibv_destroy_srq(srq), EBUSY);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	fake_fail_next(e->f, URN_CTL_CREATE_SRQ, ENOSPC, "x");
	assert_null(ibv_create_srq(e->pd, &init));
	assert_int_equal(errno, ENOSPC);
}

static void
srq_extended(void **state)
{
	struct env *e = *state;
	struct ibv_srq_init_attr_ex a = {.attr = {.max_wr = 5, .max_sge = 1}, .pd = e->pd, .cq = e->cq,
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ};
	struct ibv_srq *srq = ibv_create_srq_ex(e->c, &a);

	assert_non_null(srq);
	assert_int_equal(e->f->last.create_srq.cq_hint, e->cq->handle);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	a.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE;
	srq = ibv_create_srq_ex(e->c, &a);
	assert_non_null(srq);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	a.srq_type = IBV_SRQT_XRC;
	errno = 0;
	assert_null(ibv_create_srq_ex(e->c, &a));
	assert_int_equal(errno, EOPNOTSUPP);
	a.srq_type = IBV_SRQT_BASIC;
	a.comp_mask = IBV_SRQ_INIT_ATTR_CQ;
	assert_null(ibv_create_srq_ex(e->c, &a));
	assert_int_equal(errno, EINVAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(srq_life, env_setup, env_teardown),
		cmocka_unit_test_setup_teardown(srq_extended, env_setup, env_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
