/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem_test.h"

struct region_fix {
	struct urn_mem *mem;
	uint32_t pd;
	uint8_t bytes[4096];
};

static int
setup(void **state)
{
	struct region_fix *f = calloc(1, sizeof(*f));

	f->mem = urn_mem_create(1000, 8);
	f->pd = test_pd(f->mem);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct region_fix *f = *state;

	urn_mem_destroy(f->mem);
	free(f);
	return 0;
}

/* IBTA 10.6.3.1, enum ibv_access_flags: the rights that a region may be given */
static void
test_access_rules(void **state)
{
	struct region_fix *f = *state;
	uint32_t key;

	for (uint32_t access = 0; access < 1u << 12; access++) {
		int want = access & ~0x3fu ? EINVAL : 0;

		if ((access & (URN_ACCESS_REMOTE_WRITE | URN_ACCESS_REMOTE_ATOMIC)) &&
		    !(access & URN_ACCESS_LOCAL_WRITE))
			want = EINVAL;
		assert_int_equal(urn_mem_reg_mr(f->mem, f->pd, f->bytes, 64, 4096, access, &key),
				 want);
		if (!want)
			test_dereg(f->mem, key);
	}
	for (uint32_t bit = 12; bit < 32; bit++) {
		int want = bit >= 20 && bit <= 29 ? 0 : EINVAL;

		assert_int_equal(urn_mem_reg_mr(f->mem, f->pd, f->bytes, 64, 0, 1u << bit, &key),
				 want);
	}
}

/* IBTA 10.6.3: accesses that a region does not allow are refused, bit for bit */
static void
test_rights(void **state)
{
	struct region_fix *f = *state;
	uint64_t addr = (uintptr_t)f->bytes;
	struct urn_region *r;

	for (uint32_t access = 0; access < 16; access++) {
		uint32_t key;

		if (urn_mem_reg_mr(f->mem, f->pd, f->bytes, 64, addr, access, &key))
			continue;
		for (uint32_t need = 0; need < 16; need++)
			assert_int_equal(urn_mem_check(f->mem, key, f->pd, 0, addr, 8, need,
						       need & 14 ? 1 : 0, &r),
					 need & ~access ? URN_MEM_ACCESS : URN_MEM_OK);
		test_dereg(f->mem, key);
	}
}

/* architecture rule 3: memory that can't be addressed is not registered */
static void
test_wrap(void **state)
{
	struct region_fix *f = *state;
	struct urn_mem *m = f->mem;
	uint8_t *top = (uint8_t *)(UINTPTR_MAX - 63);
	struct urn_region *r;
	uint32_t key;

	assert_int_equal(urn_mem_reg_mr(m, f->pd, top, 65, 0, 0, &key), EINVAL);
	assert_int_equal(urn_mem_reg_mr(m, f->pd, f->bytes, UINT64_MAX, 0, 0, &key), EINVAL);
	assert_int_equal(urn_mem_reg_mr(m, f->pd, NULL, 1, 0, 0, &key), EINVAL);
	assert_int_equal(urn_mem_reg_mr(m, f->pd, f->bytes, 64, UINT64_MAX - 62, 0, &key), EINVAL);
	/* The last byte of the address space is addressable. */
	assert_int_equal(urn_mem_reg_mr(m, f->pd, f->bytes, 64, UINT64_MAX - 63, 0, &key), 0);
	assert_int_equal(urn_mem_check(m, key, f->pd, 0, UINT64_MAX - 63, 64, 0, 0, &r), 0);
	assert_int_equal(urn_mem_check(m, key, f->pd, 0, UINT64_MAX, 1, 0, 0, &r), 0);
	assert_int_equal(urn_mem_check(m, key, f->pd, 0, UINT64_MAX, 2, 0, 0, &r), URN_MEM_RANGE);
	assert_int_equal(urn_mem_check(m, key, f->pd, 0, 0, 1, 0, 0, &r), URN_MEM_RANGE);
	assert_int_equal(urn_mem_check(m, key, f->pd, 0, UINT64_MAX - 64, 1, 0, 0, &r),
			 URN_MEM_RANGE);
}

/* mem.h: length 0 is allowed and reaches nothing */
static void
test_length_zero(void **state)
{
	struct region_fix *f = *state;
	struct urn_region *r;
	uint32_t key;

	assert_int_equal(urn_mem_reg_mr(f->mem, f->pd, NULL, 0, 4096, RIGHTS, &key), 0);
	assert_int_equal(urn_mem_check(f->mem, key, f->pd, 0, 4096, 0, 0, 0, &r), URN_MEM_OK);
	assert_int_equal(urn_mem_check(f->mem, key, f->pd, 0, 4096, 1, 0, 0, &r), URN_MEM_RANGE);
	assert_int_equal(urn_mem_check(f->mem, key, f->pd, 0, 4095, 1, 0, 0, &r), URN_MEM_RANGE);
	assert_int_equal(urn_mem_check(f->mem, key, f->pd, 0, 0, UINT64_MAX, 0, 0, &r),
			 URN_MEM_RANGE);
}

/* IBTA 10.6.2: a zero-based region is addressed from 0, whatever iova says */
static void
test_zero_based(void **state)
{
	struct region_fix *f = *state;
	uint32_t access = RIGHTS | URN_ACCESS_ZERO_BASED, key;
	struct urn_region *r;

	assert_int_equal(urn_mem_reg_mr(f->mem, f->pd, f->bytes, 64, UINT64_MAX, access, &key), 0);
	assert_int_equal(urn_mem_check(f->mem, key, f->pd, 0, 0, 64, 0, 0, &r), URN_MEM_OK);
	assert_int_equal(urn_mem_check(f->mem, key, f->pd, 0, 64, 1, 0, 0, &r), URN_MEM_RANGE);
	assert_int_equal(urn_mem_check(f->mem, key, f->pd, 0, (uintptr_t)f->bytes, 1, 0, 0, &r),
			 URN_MEM_RANGE);
}

/* mem.h: kill makes checks fail; free gives the index back, once */
static void
test_kill_and_free(void **state)
{
	struct region_fix *f = *state;
	uint32_t key = test_reg(f->mem, f->pd, f->bytes, 64, RIGHTS), mw, next;
	struct urn_region *r, *killed, *again;

	assert_int_equal(urn_mem_check(f->mem, key, f->pd, 0, (uintptr_t)f->bytes, 1, 0, 0, &r), 0);
	assert_int_equal(urn_mem_kill_mr(f->mem, key, &killed), 0);
	assert_ptr_equal(killed, r);
	assert_int_equal(urn_mem_check(f->mem, key, f->pd, 0, (uintptr_t)f->bytes, 1, 0, 0, &r),
			 URN_MEM_BAD_KEY);
	assert_int_equal(urn_mem_kill_mr(f->mem, key, &again), EINVAL);
	urn_mem_free_mr(f->mem, killed);
	urn_mem_free_mr(f->mem, killed); /* already freed */
	assert_int_equal(urn_mem_kill_mr(f->mem, key, &again), EINVAL);
	/* The second free queued nothing: two registrations have two indices. */
	for (int i = 0; i < 999; i++)
		next = test_reg(f->mem, f->pd, f->bytes, 64, RIGHTS);
	assert_int_equal(urn_mem_dealloc_pd(f->mem, f->pd), EBUSY);
	test_dereg(f->mem, next);
	mw = test_mw(f->mem, f->pd, 1);
	assert_int_equal(urn_mem_kill_mr(f->mem, mw, &r), EINVAL);
	assert_int_equal(urn_mem_kill_mr(f->mem, 0, &r), EINVAL);
	assert_int_equal(urn_mem_kill_mr(f->mem, UINT32_MAX, &r), EINVAL);
}

/* mem.h: a region gets the memory, domain and rights of another one under its own key */
static void
test_replace(void **state)
{
	struct region_fix *f = *state;
	uint32_t pd = test_pd(f->mem), key = test_reg(f->mem, f->pd, f->bytes, 64, RIGHTS);
	uint32_t by = test_reg(f->mem, pd, f->bytes + 32, 16, 0);
	uint64_t old = (uintptr_t)f->bytes, now = old + 32;
	struct urn_region *r, *killed, *other;

	assert_int_equal(urn_mem_kill_mr(f->mem, by, &other), 0);
	urn_mem_revive_mr(f->mem, other, by);
	assert_int_equal(urn_mem_check(f->mem, by, pd, 0, now, 16, 0, 0, &r), URN_MEM_OK);
	assert_int_equal(urn_mem_kill_mr(f->mem, by, &other), 0);
	assert_int_equal(urn_mem_kill_mr(f->mem, key, &killed), 0);
	urn_mem_replace_mr(f->mem, killed, key, other);
	assert_int_equal(urn_mem_check(f->mem, key, f->pd, 0, old, 1, 0, 0, &r), URN_MEM_BAD_KEY);
	assert_int_equal(urn_mem_check(f->mem, key, pd, 0, old, 1, 0, 0, &r), URN_MEM_RANGE);
	assert_int_equal(urn_mem_check(f->mem, key, pd, 0, now, 16, 0, 0, &r), URN_MEM_OK);
	assert_int_equal(urn_mem_check(f->mem, key, pd, 0, now, 17, 0, 0, &r), URN_MEM_RANGE);
	assert_int_equal(urn_mem_check(f->mem, key, pd, 0, now, 1, URN_ACCESS_LOCAL_WRITE, 0, &r),
			 URN_MEM_ACCESS);
	assert_int_equal(urn_mem_check(f->mem, by, pd, 0, now, 1, 0, 0, &r), URN_MEM_BAD_KEY);
	/* The domain of before is free, the other one is in use as long as the region is there. */
	assert_int_equal(urn_mem_dealloc_pd(f->mem, f->pd), 0);
	assert_int_equal(urn_mem_dealloc_pd(f->mem, pd), EBUSY);
	test_dereg(f->mem, key);
	assert_int_equal(urn_mem_dealloc_pd(f->mem, pd), 0);
	f->pd = test_pd(f->mem);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_access_rules, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rights, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wrap, setup, teardown),
		cmocka_unit_test_setup_teardown(test_length_zero, setup, teardown),
		cmocka_unit_test_setup_teardown(test_zero_based, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kill_and_free, setup, teardown),
		cmocka_unit_test_setup_teardown(test_replace, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
