/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains, memory regions; all three ways to register. */
#include "test.h"

#include <errno.h>
#include <string.h>

static void
expect_reg(struct env *e, struct ibv_mr *mr, void *addr, uint64_t length, uint64_t iova, uint32_t access)
{
	const struct urn_abi_req *r = &e->f->last;

	assert_non_null(mr);
	assert_int_equal(r->op, URN_CTL_REG_MR);
	assert_int_equal(r->reg_mr.pd, e->pd->handle);
	assert_int_equal(r->reg_mr.addr, (uintptr_t)addr);
	assert_int_equal(r->reg_mr.length, length);
	assert_int_equal(r->reg_mr.iova, iova);
	assert_int_equal(r->reg_mr.access, access);
	assert_ptr_equal(mr->addr, addr);
	assert_int_equal(mr->length, length);
	assert_ptr_equal(mr->pd, e->pd);
	assert_ptr_equal(mr->context, e->c);
	assert_int_equal(mr->lkey, e->f->next_key);
	assert_int_equal(mr->rkey, e->f->next_key);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(e->f->last.handle, e->f->next_key);
}

static void
reg_three_ways(void **state)
{
	struct env *e = *state;
	volatile int flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING;
	uint8_t buf[100];
	uintptr_t at = (uintptr_t)buf;

	/* A constant, a variable, a value with an optional flag: verbs.h passes them in different ways. */
	expect_reg(e, ibv_reg_mr(e->pd, buf, 100, IBV_ACCESS_REMOTE_WRITE), buf, 100, at, URN_ACCESS_REMOTE_WRITE);
	expect_reg(e, ibv_reg_mr(e->pd, buf, 50, flags), buf, 50, at, URN_ACCESS_LOCAL_WRITE | URN_ACCESS_RELAXED);
	expect_reg(e, ibv_reg_mr_iova(e->pd, buf, 50, 0x123, 1), buf, 50, 0x123, URN_ACCESS_LOCAL_WRITE);
	expect_reg(e, ibv_reg_mr_iova(e->pd, buf, 50, 0x124, flags), buf, 50, 0x124,
		URN_ACCESS_LOCAL_WRITE | URN_ACCESS_RELAXED);
	expect_reg(e, ibv_reg_mr_iova2(e->pd, buf, 50, 0x125, 1), buf, 50, 0x125, URN_ACCESS_LOCAL_WRITE);
	/* Zero-based: keys address offsets. Optional flags that we do not know are dropped. */
	expect_reg(e, ibv_reg_mr(e->pd, buf, 100, IBV_ACCESS_ZERO_BASED), buf, 100, 0, URN_ACCESS_ZERO_BASED);
	expect_reg(e, ibv_reg_mr(e->pd, buf, 100, 1 << 29), buf, 100, at, 0);
}

static void
reg_fails(void **state)
{
	struct env *e = *state;
	struct ibv_mr *mr;
	char b;

	fake_fail_next(e->f, URN_CTL_REG_MR, EFAULT, "page 0x1000 is not mapped");
	assert_null(ibv_reg_mr(e->pd, &b, 1, 0));
	assert_int_equal(errno, EFAULT);
	assert_string_equal(urn_attach_error(), "page 0x1000 is not mapped");
	errno = 0;
	assert_null(ibv_reg_mr(e->pd, &b, 1, IBV_ACCESS_ON_DEMAND));
	assert_int_equal(errno, EOPNOTSUPP);
	errno = 0;
	assert_null(ibv_reg_mr(e->pd, &b, 1, 1 << 8)); /* IBV_ACCESS_FLUSH_GLOBAL */
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(ibv_reg_mr(e->pd, &b, 1, 1 << 19));
	assert_int_equal(errno, EINVAL);
	errno = 0;
	assert_null(ibv_reg_dmabuf_mr(e->pd, 0, 1, 0, 3, 0));
	assert_int_equal(errno, EOPNOTSUPP);
	mr = ibv_reg_mr(e->pd, &b, 1, 0);
	assert_non_null(mr);
	errno = 0;
	assert_int_equal(
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_ON_DEMAND),
		IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EOPNOTSUPP);
	fake_fail_next(e->f, URN_CTL_DEREG_MR, EBUSY, "a window is bound to it");
	assert_int_equal(ibv_dereg_mr(mr), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* A region changes its memory, its domain or its rights, keeps its keys, and stays as it was when
 * that fails. */
static void
rereg(void **state)
{
	const int all = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD |
			IBV_REREG_MR_CHANGE_ACCESS;
	struct env *e = *state;
	struct ibv_pd *pd = ibv_alloc_pd(e->c);
	char a[64], b[32];
	struct ibv_mr *mr = ibv_reg_mr(e->pd, a, sizeof(a), IBV_ACCESS_LOCAL_WRITE);
	uint32_t old = mr->handle;

	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, b, sizeof(b), 0),
			 0);
	assert_int_equal(mr->lkey, old);
	assert_int_equal(mr->rkey, old);
	assert_ptr_equal(mr->addr, b);
	assert_int_equal(mr->length, sizeof(b));
	assert_int_equal(e->f->last.op, URN_CTL_REPLACE_MR);
	assert_int_equal(e->f->last.handle, old);
	assert_int_equal(e->f->last.replace_mr.by, e->f->next_key);
	fake_fail_next(e->f, URN_CTL_REG_MR, ENOMEM, "x");
	old = mr->lkey;
	assert_int_equal(ibv_rereg_mr(mr, all, pd, a, sizeof(a), 0), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(mr->lkey, old);
	assert_ptr_equal(mr->addr, b);
	assert_ptr_equal(mr->pd, e->pd);
	assert_int_equal(e->f->last.reg_mr.addr, (uintptr_t)a);
	assert_int_equal(e->f->last.reg_mr.iova, (uintptr_t)a);
	assert_int_equal(e->f->last.reg_mr.pd, pd->handle);
	assert_int_equal(e->f->last.reg_mr.access, 0);
	fake_fail_next(e->f, URN_CTL_REPLACE_MR, EBUSY, "a window is bound to it");
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EBUSY);
	assert_int_equal(mr->lkey, old);
	assert_ptr_equal(mr->pd, e->pd);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0), 0);
	assert_ptr_equal(mr->pd, pd);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* Requests that make no sense leave the region as it was, with the error codes of the manual page.
 */
static void
rereg_bad(void **state)
{
	struct env *e = *state;
	char a[64];
	struct ibv_mr *mr = ibv_reg_mr(e->pd, a, sizeof(a), 0);
	const struct {
		int flags;
		struct ibv_pd *pd;
		void *addr;
		size_t length;
		int access, err;
	} bad[] = {
		{0, NULL, NULL, 0, 0, EINVAL},
		{1 << 8, NULL, NULL, 0, 0, EINVAL},
		{IBV_REREG_MR_CHANGE_TRANSLATION, NULL, NULL, 64, 0, EINVAL},
		{IBV_REREG_MR_CHANGE_TRANSLATION, NULL, a, 0, 0, EINVAL},
		{IBV_REREG_MR_CHANGE_TRANSLATION, NULL, (void *)8, 64, 0, EFAULT},
		{IBV_REREG_MR_CHANGE_TRANSLATION, NULL, a, 64, IBV_ACCESS_LOCAL_WRITE, EINVAL},
		{IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0, EINVAL},
	};
	unsigned int i, calls = e->f->calls[URN_CTL_REG_MR];

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		errno = 0;
		assert_int_equal(ibv_rereg_mr(mr, bad[i].flags, bad[i].pd, bad[i].addr,
					      bad[i].length, bad[i].access),
				 IBV_REREG_MR_ERR_INPUT);
		assert_int_equal(errno, bad[i].err);
	}
	assert_int_equal(e->f->calls[URN_CTL_REG_MR], calls);
	assert_ptr_equal(mr->addr, a);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void
pd_fails(void **state)
{
	struct env *e = *state;

	fake_fail_next(e->f, URN_CTL_ALLOC_PD, ENOMEM, "x");
	assert_null(ibv_alloc_pd(e->c));
	assert_int_equal(errno, ENOMEM);
	fake_fail_next(e->f, URN_CTL_DEALLOC_PD, EBUSY, "x");
	assert_int_equal(ibv_dealloc_pd(e->pd), EBUSY);
}

/* The error text belongs to the thread. */
static void *
other_thread(void *arg)
{
	(void)arg;
	return (void *)(uintptr_t)(strcmp(urn_attach_error(), "") == 0);
}

static void
error_is_per_thread(void **state)
{
	struct env *e = *state;
	pthread_t t;
	void *empty;

	fake_fail_next(e->f, URN_CTL_ALLOC_PD, ENOMEM, "mine");
	assert_null(ibv_alloc_pd(e->c));
	assert_int_equal(pthread_create(&t, NULL, other_thread, NULL), 0);
	assert_int_equal(pthread_join(t, &empty), 0);
	assert_non_null(empty);
	assert_string_equal(urn_attach_error(), "mine");
}

#define RC(fn) cmocka_unit_test_setup_teardown(fn, env_setup, env_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		RC(reg_three_ways), RC(reg_fails), RC(rereg),
		RC(rereg_bad),	    RC(pd_fails),  RC(error_is_per_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
