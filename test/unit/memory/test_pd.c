/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem_test.h"

/* mem.h: handles start at 1 and are distinct, also over growth of the table */
static void
test_handles(void **state)
{
	struct urn_mem *mem = urn_mem_create(16, 1000);

	(void)state;
	for (uint32_t i = 1; i <= 1000; i++)
		assert_int_equal(test_pd(mem), i);
	for (uint32_t i = 1; i <= 1000; i++)
		assert_int_equal(urn_mem_dealloc_pd(mem, i), 0);
	urn_mem_destroy(mem);
}

/* architecture rule 6: a full table is reported, and recovers */
static void
test_exhaustion(void **state)
{
	struct urn_mem *mem = urn_mem_create(16, 3);
	uint32_t a, b, c, d;

	(void)state;
	a = test_pd(mem);
	b = test_pd(mem);
	c = test_pd(mem);
	assert_int_equal(urn_mem_alloc_pd(mem, &d), ENOMEM);
	assert_int_equal(urn_mem_dealloc_pd(mem, b), 0);
	assert_int_equal(urn_mem_dealloc_pd(mem, a), 0);
	/* Freed handles come again in the order they were freed. */
	assert_int_equal(test_pd(mem), b);
	assert_int_equal(test_pd(mem), a);
	assert_int_equal(urn_mem_alloc_pd(mem, &d), ENOMEM);
	assert_int_equal(urn_mem_dealloc_pd(mem, c), 0);
	assert_int_equal(test_pd(mem), c);
	urn_mem_destroy(mem);
}

/* architecture rule 3: handles that never were or are no longer valid name nothing */
static void
test_unknown(void **state)
{
	struct urn_mem *mem = urn_mem_create(16, 8);
	uint32_t pd, key;

	(void)state;
	assert_int_equal(urn_mem_dealloc_pd(mem, 1), EINVAL);
	pd = test_pd(mem);
	assert_int_equal(urn_mem_dealloc_pd(mem, 0), EINVAL);
	assert_int_equal(urn_mem_dealloc_pd(mem, pd + 1), EINVAL);
	assert_int_equal(urn_mem_dealloc_pd(mem, UINT32_MAX), EINVAL);
	assert_int_equal(urn_mem_pd_hold(mem, pd + 1), EINVAL);
	urn_mem_pd_release(mem, pd + 1);
	urn_mem_pd_release(mem, 0);
	assert_int_equal(urn_mem_dealloc_pd(mem, pd), 0);
	assert_int_equal(urn_mem_dealloc_pd(mem, pd), EINVAL);
	assert_int_equal(urn_mem_pd_hold(mem, pd), EINVAL);
	assert_int_equal(urn_mem_reg_mr(mem, pd, &key, 4, 0, 0, &key), EINVAL);
	assert_int_equal(urn_mem_alloc_mw(mem, pd, 1, &key), EINVAL);
	urn_mem_destroy(mem);
}

/* IBTA 11.2.1.6: a PD in use is not taken away */
static void
test_busy(void **state)
{
	struct urn_mem *mem = urn_mem_create(16, 8);
	uint32_t pd = test_pd(mem), mr, mw;
	struct urn_region *region;
	uint8_t bytes[64];

	(void)state;
	assert_int_equal(urn_mem_pd_hold(mem, pd), 0);
	assert_int_equal(urn_mem_pd_hold(mem, pd), 0);
	assert_int_equal(urn_mem_dealloc_pd(mem, pd), EBUSY);
	urn_mem_pd_release(mem, pd);
	assert_int_equal(urn_mem_dealloc_pd(mem, pd), EBUSY);
	mr = test_reg(mem, pd, bytes, sizeof(bytes), RIGHTS);
	urn_mem_pd_release(mem, pd);
	assert_int_equal(urn_mem_dealloc_pd(mem, pd), EBUSY);
	mw = test_mw(mem, pd, 2);
	assert_int_equal(urn_mem_kill_mr(mem, mr, &region), 0);
	urn_mem_free_mr(mem, region);
	assert_int_equal(urn_mem_dealloc_pd(mem, pd), EBUSY);
	assert_int_equal(test_dealloc_mw(mem, mw), 0);
	mr = test_reg(mem, pd, bytes, sizeof(bytes), RIGHTS);
	/* A killed region uses its PD until it is free. */
	assert_int_equal(urn_mem_kill_mr(mem, mr, &region), 0);
	assert_int_equal(urn_mem_dealloc_pd(mem, pd), EBUSY);
	urn_mem_free_mr(mem, region);
	assert_int_equal(urn_mem_dealloc_pd(mem, pd), 0);
	urn_mem_destroy(mem);
}

/* A refused registration does not hold its PD. */
static void
test_refused_holds_nothing(void **state)
{
	struct urn_mem *mem = urn_mem_create(1, 8);
	uint32_t pd = test_pd(mem), key, other;
	uint8_t bytes[64];

	(void)state;
	assert_int_equal(urn_mem_reg_mr(mem, pd, bytes, 64, 0, URN_ACCESS_REMOTE_WRITE, &key),
			 EINVAL);
	assert_int_equal(urn_mem_alloc_mw(mem, pd, 3, &key), EINVAL);
	key = test_mw(mem, pd, 1);
	assert_int_equal(urn_mem_reg_mr(mem, pd, bytes, 64, 0, 0, &other), ENOMEM);
	assert_int_equal(urn_mem_alloc_mw(mem, pd, 1, &other), ENOMEM);
	assert_int_equal(test_dealloc_mw(mem, key), 0);
	assert_int_equal(urn_mem_dealloc_pd(mem, pd), 0);
	urn_mem_destroy(mem);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_handles),
		cmocka_unit_test(test_exhaustion),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_refused_holds_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
