/* SPDX-License-Identifier: BSD-3-Clause */
/* Thread domains and parent domains. */
#include "test.h"

#include <errno.h>

/* Objects of a parent domain are the protection domain's; everything ends in the order of its uses.
 */
static void
parent_life(void **state)
{
	struct env *e = *state;
	struct ibv_td_init_attr none = {0};
	struct ibv_td *td = ibv_alloc_td(e->c, &none);
	struct ibv_pd *pd = ibv_alloc_pd(e->c);
	struct ibv_parent_domain_init_attr attr = {.pd = pd,
						   .td = td,
						   .comp_mask =
							   IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
						   .pd_context = e};
	struct ibv_pd *parent = ibv_alloc_parent_domain(e->c, &attr);
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = e->cq, .recv_cq = e->cq, .cap = {1, 1, 1, 1, 0}};
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char byte;

	assert_non_null(td);
	assert_non_null(parent);
	assert_ptr_equal(parent->context, e->c);
	assert_int_equal(ibv_dealloc_td(td), EBUSY);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	qp = ibv_create_qp(parent, &init);
	assert_non_null(qp);
	assert_ptr_equal(qp->pd, parent);
	assert_int_equal(e->f->last.create_qp.pd, pd->handle);
	mr = ibv_reg_mr(parent, &byte, 1, 0);
	assert_non_null(mr);
	assert_ptr_equal(mr->pd, parent);
	assert_int_equal(e->f->last.reg_mr.pd, pd->handle);
	assert_int_equal(ibv_dealloc_pd(parent), EBUSY);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, e->pd, NULL, 0, 0), 0);
	assert_int_equal(ibv_dealloc_pd(parent), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	assert_int_equal(ibv_dealloc_td(td), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void
parent_bad(void **state)
{
	struct env *e = *state;
	struct ibv_parent_domain_init_attr attr = {.pd = e->pd};
	struct ibv_pd *parent = ibv_alloc_parent_domain(e->c, &attr);
	struct ibv_parent_domain_init_attr above = {.pd = parent}, empty = {.pd = NULL};
	struct ibv_cq_init_attr_ex cq = {
		.cqe = 1, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = parent};
	struct ibv_cq_ex *made;

	assert_non_null(parent);
	assert_null(ibv_alloc_parent_domain(e->c, &above));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_alloc_parent_domain(e->c, &empty));
	assert_int_equal(errno, EINVAL);
	made = ibv_create_cq_ex(e->c, &cq);
	assert_non_null(made);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(made)), 0);
	cq.parent_domain = e->pd;
	assert_null(ibv_create_cq_ex(e->c, &cq));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
}

/* Completions have the time at which the program found them, which the device's clock tells, too.
 */
static void
times(void **state)
{
	struct env *e = *state;
	struct ibv_cq_init_attr_ex attr = {.cqe = 4,
					   .wc_flags =
						   IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
						   IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(e->c, &attr);
	struct ibv_values_ex before = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK}, after = before;
	struct ibv_poll_cq_attr poll = {0};
	struct ibv_device_attr_ex dev;
	struct fake_wc wc = {.qpn = e->qpn};
	uint64_t ts;

	assert_non_null(cq);
	assert_int_equal(ibv_query_device_ex(e->c, NULL, &dev), 0);
	assert_true(dev.completion_timestamp_mask == UINT64_MAX);
	assert_int_equal(dev.hca_core_clock, 1000000);
	fake_complete(e->f, cq->handle, &wc);
	fake_complete(e->f, cq->handle, &wc);
	assert_int_equal(ibv_query_rt_values_ex(e->c, &before), 0);
	assert_int_equal(ibv_start_poll(cq, &poll), 0);
	ts = ibv_wc_read_completion_ts(cq);
	assert_true(ibv_wc_read_completion_wallclock_ns(cq) > 1500000000000000000u);
	assert_int_equal(ibv_query_rt_values_ex(e->c, &after), 0);
	assert_int_equal(before.raw_clock.tv_sec, 0);
	assert_true(ts >= (uint64_t)before.raw_clock.tv_nsec &&
		    ts <= (uint64_t)after.raw_clock.tv_nsec);
	assert_int_equal(ibv_next_poll(cq), 0);
	assert_true(ibv_wc_read_completion_ts(cq) >= ts);
	ibv_end_poll(cq);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	attr.wc_flags = IBV_WC_EX_WITH_CVLAN;
	assert_null(ibv_create_cq_ex(e->c, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(parent_life, env_setup, env_teardown),
		cmocka_unit_test_setup_teardown(parent_bad, env_setup, env_teardown),
		cmocka_unit_test_setup_teardown(times, env_setup, env_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
