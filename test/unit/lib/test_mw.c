/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows: control, and the checks of verbs.h; test_send.c binds them. */
#include "test.h"

#include <errno.h>

static void
mw_life(void **state)
{
	struct env *e = *state;
	struct ibv_mw *mw = ibv_alloc_mw(e->pd, IBV_MW_TYPE_2);

	assert_non_null(mw);
	assert_int_equal(e->f->last.alloc_mw.pd, e->pd->handle);
	assert_int_equal(e->f->last.alloc_mw.type, 2);
	assert_int_equal(mw->rkey, e->f->next_key);
	assert_int_equal(mw->type, IBV_MW_TYPE_2);
	assert_ptr_equal(mw->pd, e->pd);
	fake_fail_next(e->f, URN_CTL_DEALLOC_MW, EBUSY, "x");
	assert_int_equal(ibv_dealloc_mw(mw), EBUSY);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(e->f->last.handle, e->f->next_key);
	fake_fail_next(e->f, URN_CTL_ALLOC_MW, ENOMEM, "x");
	assert_null(ibv_alloc_mw(e->pd, IBV_MW_TYPE_1));
	assert_int_equal(errno, ENOMEM);
}

static void
bind_wrong_type(void **state)
{
	struct env *e = *state;
	struct ibv_mw *mw = ibv_alloc_mw(e->pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind bind = {.wr_id = 1};

	assert_int_equal(ibv_bind_mw(e->qp, mw, &bind), EINVAL);
	assert_null(fake_send_wqe(e->f, e->qpn));
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(mw_life, env_setup, env_teardown),
		cmocka_unit_test_setup_teardown(bind_wrong_type, env_setup, env_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
