/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that the library refuses: each fails with an errno value, as a symbol and as an inline of verbs.h. */
#include "test.h"

#include <errno.h>
#include <string.h>

#define REFUSED(call) \
	do { \
		assert_int_equal(call, EOPNOTSUPP); \
	} while (0)
#define REFUSED_PTR(call) \
	do { \
		errno = 0; \
		assert_null(call); \
		assert_int_equal(errno, EOPNOTSUPP); \
	} while (0)

static void
refused_on_context(void **state)
{
	struct env *e = *state;
	struct ibv_xrcd xrcd = {.context = e->c};
	struct ibv_td_init_attr td = {.comp_mask = 1};
	struct ibv_values_ex values = {.comp_mask = 2};

	REFUSED_PTR(ibv_open_xrcd(e->c, &(struct ibv_xrcd_init_attr){0}));
	REFUSED(ibv_close_xrcd(&xrcd));
	REFUSED_PTR(ibv_alloc_td(e->c, &td));
	REFUSED_PTR(ibv_alloc_parent_domain(
		e->c, &(struct ibv_parent_domain_init_attr){.pd = e->pd, .comp_mask = 1}));
	REFUSED(ibv_query_rt_values_ex(e->c, &values));
	REFUSED_PTR(ibv_alloc_dm(e->c, &(struct ibv_alloc_dm_attr){0}));
	REFUSED_PTR(ibv_create_wq(e->c, &(struct ibv_wq_init_attr){0}));
	REFUSED_PTR(ibv_create_rwq_ind_table(e->c, &(struct ibv_rwq_ind_table_init_attr){0}));
	REFUSED_PTR(ibv_create_counters(e->c, &(struct ibv_counters_init_attr){0}));
	REFUSED_PTR(ibv_create_flow_action_esp(e->c, &(struct ibv_flow_action_esp_attr){0}));
	REFUSED_PTR(ibv_open_qp(e->c, &(struct ibv_qp_open_attr){0}));
	REFUSED_PTR(ibv_import_dm(e->c, 1));
	ibv_unimport_pd(NULL);
	ibv_unimport_mr(NULL);
	ibv_unimport_dm(NULL);
}

static void
refused_on_objects(void **state)
{
	struct env *e = *state;
	struct ibv_ah_attr ah = {0};
	struct ibv_modify_cq_attr moderation = {.attr_mask = IBV_CQ_ATTR_MODERATE};
	union ibv_gid gid = {.raw = {0}};
	struct ibv_ece ece = {.vendor_id = 7};
	uint8_t mac[6];
	uint16_t vid;

	REFUSED(ibv_modify_cq(e->cq, &moderation));
	/* The queue pair is of type RC. */
	assert_int_equal(ibv_attach_mcast(e->qp, &gid, 0), EINVAL);
	assert_int_equal(ibv_detach_mcast(e->qp, &gid, 0), EINVAL);
	REFUSED(ibv_resolve_eth_l2_from_gid(e->c, &ah, mac, &vid));
	REFUSED(ibv_set_ece(e->qp, &ece));
	REFUSED(ibv_query_ece(e->qp, &ece));
	assert_int_equal(ece.vendor_id, 0);
	REFUSED_PTR(ibv_create_flow(e->qp, &(struct ibv_flow_attr){0}));
	REFUSED(ibv_modify_qp_rate_limit(e->qp, &(struct ibv_qp_rate_limit_attr){0}));
	REFUSED(ibv_modify_cq(e->cq, &(struct ibv_modify_cq_attr){0}));
	REFUSED_PTR(ibv_alloc_null_mr(e->pd));
	REFUSED(ibv_advise_mr(e->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, NULL, 0));
}

static void
fork_needs_nothing(void **state)
{
	(void)state;
	assert_int_equal(ibv_fork_init(), 0);
	assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(refused_on_context, ctx_setup, ctx_teardown),
		cmocka_unit_test_setup_teardown(refused_on_objects, env_setup, env_teardown),
		cmocka_unit_test(fork_needs_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
