/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows, which a virtual device does not have, and says so (FO-12). */
#include "adapters.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>

/* Attributes of the device promise none, though the adapters have them. */
static void
promised(void **state)
{
	struct ibv_device_attr_ex ex = {0};
	struct ibv_device_attr attr;

	assert_int_equal(ibv_query_device(*state, &attr), 0);
	assert_int_equal(attr.max_mw, 0);
	assert_int_equal(attr.device_cap_flags & ADAPTERS_WINDOWS, 0);
	assert_int_equal(ibv_query_device_ex(*state, NULL, &ex), 0);
	assert_int_equal(ex.orig_attr.max_mw, 0);
	assert_int_equal(ex.device_cap_flags_ex & ADAPTERS_WINDOWS, 0);
}

/* None can be made, of either type. */
static void
made(void **state)
{
	struct ibv_pd *pd = ibv_alloc_pd(*state);

	assert_non_null(pd);
	for (int type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++) {
		errno = 0;
		assert_null(ibv_alloc_mw(pd, (enum ibv_mw_type)type));
		assert_int_equal(errno, EOPNOTSUPP);
	}
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* Requests of windows are refused by a session, and others are not for that reason. */
static void
posted(void **state)
{
	static const enum ibv_wr_opcode of_windows[] = {IBV_WR_BIND_MW, IBV_WR_LOCAL_INV,
							IBV_WR_SEND_WITH_INV};
	struct urn_sv_qp qp = {.ctx = urn_sv_ctx(*state), .mode = URN_SV_SESSION};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .num_sge = 1};

	for (unsigned int i = 0; i < sizeof(of_windows) / sizeof(of_windows[0]); i++) {
		struct ibv_send_wr one = {.opcode = of_windows[i]};

		assert_int_equal(urn_sv_send_one(&qp, &one), EOPNOTSUPP);
	}
	assert_int_equal(urn_sv_send_one(&qp, &wr), EINVAL); /* more elements than it takes */
}

int
main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, adapters_setup, adapters_teardown)
	const struct CMUnitTest tests[] = {T(promised), T(made), T(posted)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
