/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem_test.h"

enum { QPN = 0x11, OTHER_QPN = 0x12 };

struct window_fix {
	struct urn_mem *mem;
	uint32_t pd, other_pd;
	uint32_t mr;   /* region of bytes[], all rights */
	uint64_t addr; /* address of bytes[] */
	uint8_t bytes[4096];
};

static int
setup(void **state)
{
	struct window_fix *f = calloc(1, sizeof(*f));

	f->mem = urn_mem_create(1000, 8);
	f->pd = test_pd(f->mem);
	f->other_pd = test_pd(f->mem);
	f->mr = test_reg(f->mem, f->pd, f->bytes, sizeof(f->bytes), RIGHTS);
	f->addr = (uintptr_t)f->bytes;
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct window_fix *f = *state;

	urn_mem_destroy(f->mem);
	free(f);
	return 0;
}

/* Bind 64 bytes of bytes[] at 128 for reading. */
static enum urn_mem_error
bind_mw(struct window_fix *f, int type, uint32_t mw, uint32_t new_rkey)
{
	return urn_mem_bind(f->mem, type, mw, new_rkey, f->mr, f->addr + 128, 64,
			    URN_ACCESS_REMOTE_READ, f->pd, QPN, NULL);
}

/* Check that the peer may read 8 bytes at offset 128 of bytes[]. */
static enum urn_mem_error
reach(struct window_fix *f, uint32_t rkey, uint32_t qpn)
{
	struct urn_region *r;

	return urn_mem_check(f->mem, rkey, f->pd, qpn, f->addr + 128, 8, URN_ACCESS_REMOTE_READ, 1,
			     &r);
}

static void
expect_bound(struct window_fix *f, int windows)
{
	struct urn_region *r;

	if (windows) {
		assert_int_equal(urn_mem_kill_mr(f->mem, f->mr, &r), EBUSY);
		return;
	}
	assert_int_equal(urn_mem_kill_mr(f->mem, f->mr, &r), 0);
	urn_mem_free_mr(f->mem, r);
	f->mr = test_reg(f->mem, f->pd, f->bytes, sizeof(f->bytes), RIGHTS);
}

/* mem.h: the key of a fresh window reaches nothing */
static void
test_fresh(void **state)
{
	struct window_fix *f = *state;
	uint32_t key;

	assert_int_equal(urn_mem_alloc_mw(f->mem, f->pd, 0, &key), EINVAL);
	assert_int_equal(urn_mem_alloc_mw(f->mem, f->pd, 3, &key), EINVAL);
	for (int type = 1; type <= 2; type++) {
		struct urn_region *r;

		key = test_mw(f->mem, f->pd, type);
		assert_int_equal(reach(f, key, QPN), URN_MEM_BAD_KEY);
		assert_int_equal(reach(f, key, 0), URN_MEM_BAD_KEY);
		assert_int_equal(urn_mem_check(f->mem, key, f->pd, 0, 0, 0, 0, 1, &r),
				 URN_MEM_BAD_KEY);
	}
}

/* IBTA 10.6.7.2.1: a type 1 window is bound to a PD, and bound again at will */
static void
test_type1(void **state)
{
	struct window_fix *f = *state;
	uint32_t mw = test_mw(f->mem, f->pd, 1), a = test_next_key(mw, 1), b = test_next_key(mw, 2);

	assert_int_equal(bind_mw(f, 1, mw, a), URN_MEM_OK);
	assert_int_equal(reach(f, mw, QPN), URN_MEM_BAD_KEY);
	assert_int_equal(reach(f, a, QPN), URN_MEM_OK);
	assert_int_equal(reach(f, a, OTHER_QPN), URN_MEM_OK);
	expect_bound(f, 1);
	/* The window can't be bound by the old key any more. */
	assert_int_equal(bind_mw(f, 1, mw, b), URN_MEM_BAD_KEY);
	assert_int_equal(bind_mw(f, 1, a, b), URN_MEM_OK);
	assert_int_equal(reach(f, a, QPN), URN_MEM_BAD_KEY);
	assert_int_equal(reach(f, b, QPN), URN_MEM_OK);
	expect_bound(f, 1);
	/* Length 0 unbinds, whichever region is named, and the key changes. */
	assert_int_equal(
		urn_mem_bind(f->mem, 1, b, a, 0, 1, 0, ~0u & ~URN_ACCESS_ZERO_BASED, f->pd, QPN, NULL),
		URN_MEM_OK);
	assert_int_equal(reach(f, b, QPN), URN_MEM_BAD_KEY);
	assert_int_equal(reach(f, a, QPN), URN_MEM_BAD_KEY);
	expect_bound(f, 0);
	assert_int_equal(bind_mw(f, 1, a, b), URN_MEM_OK);
	assert_int_equal(reach(f, b, QPN), URN_MEM_OK);
}

/* A window bound to another region no longer counts at the first one. */
static void
test_type1_moves(void **state)
{
	struct window_fix *f = *state;
	uint32_t mw = test_mw(f->mem, f->pd, 1), a = test_next_key(mw, 1), b = test_next_key(mw, 2);
	uint32_t second = test_reg(f->mem, f->pd, f->bytes, 4096, RIGHTS);
	struct urn_region *r;

	assert_int_equal(bind_mw(f, 1, mw, a), URN_MEM_OK);
	assert_int_equal(urn_mem_bind(f->mem, 1, a, b, second, f->addr, 8, URN_ACCESS_REMOTE_READ,
				      f->pd, QPN, NULL),
			 URN_MEM_OK);
	expect_bound(f, 0);
	assert_int_equal(urn_mem_kill_mr(f->mem, second, &r), EBUSY);
	assert_int_equal(test_dealloc_mw(f->mem, b), 0);
	test_dereg(f->mem, second);
}

/* IBTA 10.6.7.2.2, type 2B: bound to QP and PD, once, freed by invalidation */
static void
test_type2(void **state)
{
	struct window_fix *f = *state;
	uint32_t mw = test_mw(f->mem, f->pd, 2), a = test_next_key(mw, 1), b = test_next_key(mw, 2);

	assert_int_equal(bind_mw(f, 2, mw, a), URN_MEM_OK);
	assert_int_equal(reach(f, mw, QPN), URN_MEM_BAD_KEY);
	assert_int_equal(reach(f, a, OTHER_QPN), URN_MEM_BAD_KEY);
	assert_int_equal(reach(f, a, QPN), URN_MEM_OK);
	expect_bound(f, 1);
	assert_int_equal(bind_mw(f, 2, a, b), URN_MEM_WINDOW);
	/* Length 0 does not free the window (o10-37.2.40). */
	assert_int_equal(urn_mem_bind(f->mem, 2, a, b, f->mr, f->addr, 0, 0, f->pd, QPN, NULL),
			 URN_MEM_WINDOW);
	assert_int_equal(reach(f, a, QPN), URN_MEM_OK);
	assert_int_equal(urn_mem_invalidate(f->mem, a, f->pd, QPN, NULL), URN_MEM_OK);
	assert_int_equal(reach(f, a, QPN), URN_MEM_BAD_KEY);
	expect_bound(f, 0);
	assert_int_equal(urn_mem_bind(f->mem, 2, a, b, f->mr, f->addr, 0, 0, f->pd, QPN, NULL),
			 URN_MEM_WINDOW);
	/* The library may still have the former key: the index counts. */
	assert_int_equal(bind_mw(f, 2, mw, b), URN_MEM_OK);
	assert_int_equal(reach(f, b, QPN), URN_MEM_OK);
}

/* mem.h: refusals of an invalidation */
static void
test_invalidate(void **state)
{
	struct window_fix *f = *state;
	uint32_t mw1 = test_mw(f->mem, f->pd, 1), mw2 = test_mw(f->mem, f->pd, 2);
	uint32_t key = test_next_key(mw2, 9);

	assert_int_equal(urn_mem_invalidate(f->mem, f->mr, f->pd, QPN, NULL), URN_MEM_WINDOW);
	assert_int_equal(urn_mem_invalidate(f->mem, mw1, f->pd, QPN, NULL), URN_MEM_WINDOW);
	assert_int_equal(urn_mem_invalidate(f->mem, mw2, f->pd, QPN, NULL), URN_MEM_BAD_KEY);
	assert_int_equal(urn_mem_invalidate(f->mem, 0, 0, 0, NULL), URN_MEM_BAD_KEY);
	assert_int_equal(urn_mem_invalidate(f->mem, 99 << 8, f->pd, QPN, NULL), URN_MEM_BAD_KEY);
	assert_int_equal(urn_mem_invalidate(f->mem, UINT32_MAX, f->pd, QPN, NULL), URN_MEM_BAD_KEY);
	assert_int_equal(bind_mw(f, 2, mw2, key), URN_MEM_OK);
	assert_int_equal(urn_mem_invalidate(f->mem, mw2, f->pd, QPN, NULL), URN_MEM_BAD_KEY);
	assert_int_equal(urn_mem_invalidate(f->mem, key, f->other_pd, QPN, NULL), URN_MEM_BAD_KEY);
	assert_int_equal(urn_mem_invalidate(f->mem, key, f->pd, OTHER_QPN, NULL), URN_MEM_BAD_KEY);
	assert_int_equal(reach(f, key, QPN), URN_MEM_OK);
	assert_int_equal(urn_mem_invalidate(f->mem, key, f->pd, QPN, NULL), URN_MEM_OK);
	assert_int_equal(urn_mem_invalidate(f->mem, key, f->pd, QPN, NULL), URN_MEM_BAD_KEY);
	/* A refused invalidation of a type 1 window leaves it bound. */
	key = test_next_key(mw1, 1);
	assert_int_equal(bind_mw(f, 1, mw1, key), URN_MEM_OK);
	assert_int_equal(urn_mem_invalidate(f->mem, key, f->pd, QPN, NULL), URN_MEM_WINDOW);
	assert_int_equal(reach(f, key, QPN), URN_MEM_OK);
}

/* IBTA C10-72 to C10-75 and mem.h: refusals of a bind, which then changes nothing */
static void
test_bind_refusals(void **state)
{
	struct window_fix *f = *state;
	struct urn_mem *m = f->mem;
	uint32_t rd = URN_ACCESS_REMOTE_READ, wr = URN_ACCESS_REMOTE_WRITE;
	uint32_t at = URN_ACCESS_REMOTE_ATOMIC, zero = URN_ACCESS_ZERO_BASED, zb;
	uint32_t mw = test_mw(m, f->pd, 2), mw1 = test_mw(m, f->pd, 1), nk = test_next_key(mw, 1);
	uint32_t ro = test_reg(m, f->pd, f->bytes, 4096, rd | URN_ACCESS_MW_BIND);
	uint32_t unbindable = test_reg(m, f->pd, f->bytes, 4096, RIGHTS & ~URN_ACCESS_MW_BIND);
	uint32_t foreign = test_reg(m, f->other_pd, f->bytes, 4096, RIGHTS);
	uint64_t a = f->addr;

	assert_int_equal(urn_mem_reg_mr(m, f->pd, f->bytes, 4096, 0, RIGHTS | zero, &zb), 0);
	const struct {
		int type;
		uint32_t mw, new_rkey, lkey;
		uint64_t addr, length;
		uint32_t access, pd;
		enum urn_mem_error want;
	} t[] = {
		{2, 0, 0, f->mr, a, 8, rd, f->pd, URN_MEM_BAD_KEY},
		{2, 900 << 8, 900 << 8, f->mr, a, 8, rd, f->pd, URN_MEM_BAD_KEY},
		{2, f->mr, f->mr, f->mr, a, 8, rd, f->pd, URN_MEM_BAD_KEY}, /* not a window */
		{2, mw, nk, f->mr, a, 8, rd, f->other_pd, URN_MEM_BAD_KEY}, /* C10-72 */
		{2, mw, nk, foreign, a, 8, rd, f->pd, URN_MEM_BAD_KEY},
		{2, mw, nk, test_next_key(f->mr, 1), a, 8, rd, f->pd, URN_MEM_BAD_KEY},
		{2, mw, nk, 0, a, 8, rd, f->pd, URN_MEM_BAD_KEY},
		{2, mw, nk, UINT32_MAX, a, 8, rd, f->pd, URN_MEM_BAD_KEY},
		{2, mw, nk, mw1, a, 8, rd, f->pd, URN_MEM_BAD_KEY}, /* not a region */
		{2, mw, nk, mw, a, 8, rd, f->pd, URN_MEM_BAD_KEY},
		{1, mw, nk, f->mr, a, 8, rd, f->pd, URN_MEM_WINDOW},
		{2, mw1, mw1, f->mr, a, 8, rd, f->pd, URN_MEM_WINDOW},
		{3, mw, nk, f->mr, a, 8, rd, f->pd, URN_MEM_WINDOW},
		{0, mw1, mw1, f->mr, a, 8, rd, f->pd, URN_MEM_WINDOW},
		{2, mw, nk + 256, f->mr, a, 8, rd, f->pd, URN_MEM_WINDOW},
		{2, mw, 0, f->mr, a, 8, rd, f->pd, URN_MEM_WINDOW},
		{2, mw, nk, f->mr, 0, 8, rd | zero, f->pd, URN_MEM_WINDOW},
		{1, mw1, mw1, f->mr, 0, 8, rd | zero, f->pd, URN_MEM_WINDOW}, /* o10-36.2.2 */
		{2, mw, nk, zb, 0, 8, rd, f->pd, URN_MEM_WINDOW},
		{2, mw, nk, unbindable, a, 8, rd, f->pd, URN_MEM_ACCESS}, /* C10-73 */
		{2, mw, nk, ro, a, 8, wr, f->pd, URN_MEM_ACCESS},	  /* C10-74 */
		{2, mw, nk, ro, a, 8, at | rd, f->pd, URN_MEM_ACCESS},
		{2, mw, nk, f->mr, a - 1, 8, rd, f->pd, URN_MEM_RANGE}, /* C10-75 */
		{2, mw, nk, f->mr, a, 4097, rd, f->pd, URN_MEM_RANGE},
		{2, mw, nk, f->mr, a + 4096, 1, rd, f->pd, URN_MEM_RANGE},
		{2, mw, nk, f->mr, a + 8, UINT64_MAX - 4, rd, f->pd, URN_MEM_RANGE},
		{1, mw1, mw1, f->mr, a + 8, UINT64_MAX - 4, rd, f->pd, URN_MEM_RANGE},
	};
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		assert_int_equal(urn_mem_bind(m, t[i].type, t[i].mw, t[i].new_rkey, t[i].lkey,
					      t[i].addr, t[i].length, t[i].access, t[i].pd, QPN, NULL),
				 t[i].want);
		assert_int_equal(reach(f, nk, QPN), URN_MEM_BAD_KEY);
	}
	expect_bound(f, 0);
	/* The window is unharmed. The whole region can be bound. */
	assert_int_equal(urn_mem_bind(m, 2, mw, nk, ro, a, 4096, rd, f->pd, QPN, NULL), URN_MEM_OK);
	assert_int_equal(reach(f, nk, QPN), URN_MEM_OK);
}

/* IBTA 10.6.7: a window has rights and a range of its own, and the region's memory */
static void
test_rights_and_range(void **state)
{
	struct window_fix *f = *state;
	uint32_t mw = test_mw(f->mem, f->pd, 2), wr = URN_ACCESS_REMOTE_WRITE;
	/* The region itself gives a peer no rights. */
	uint32_t mr = test_reg(f->mem, f->pd, f->bytes, 4096,
			       URN_ACCESS_LOCAL_WRITE | URN_ACCESS_MW_BIND);
	struct urn_region *r, *region;

	assert_int_equal(urn_mem_bind(f->mem, 2, mw, mw, mr, f->addr + 100, 50,
				      wr | URN_ACCESS_LOCAL_WRITE, f->pd, QPN, NULL),
			 URN_MEM_OK);
	assert_int_equal(urn_mem_check(f->mem, mr, f->pd, QPN, f->addr + 100, 1, wr, 1, &r),
			 URN_MEM_ACCESS);
	assert_int_equal(urn_mem_check(f->mem, mr, f->pd, QPN, f->addr, 1, 0, 0, &region), 0);
	assert_int_equal(urn_mem_check(f->mem, mw, f->pd, QPN, f->addr + 100, 50, wr, 1, &r), 0);
	assert_ptr_equal(r, region);
	assert_int_equal(urn_mem_check(f->mem, mw, f->pd, QPN, f->addr + 100, 51, wr, 1, &r),
			 URN_MEM_RANGE);
	assert_int_equal(urn_mem_check(f->mem, mw, f->pd, QPN, f->addr + 99, 1, wr, 1, &r),
			 URN_MEM_RANGE);
	for (uint32_t bit = 0; bit < 6; bit++)
		assert_int_equal(
			urn_mem_check(f->mem, mw, f->pd, QPN, f->addr + 100, 1, 1u << bit, 1, &r),
			1u << bit == wr ? 0 : URN_MEM_ACCESS);
	/* A window is no lkey, not even one that allows local writes. */
	assert_int_equal(urn_mem_check(f->mem, mw, f->pd, QPN, f->addr + 100, 1, 0, 0, &r),
			 URN_MEM_BAD_KEY);
	assert_int_equal(urn_mem_check(f->mem, mw, f->other_pd, QPN, f->addr + 100, 1, wr, 1, &r),
			 URN_MEM_BAD_KEY);
}

/* A window on a region whose iova is not its address. */
static void
test_iova(void **state)
{
	struct window_fix *f = *state;
	uint32_t mw = test_mw(f->mem, f->pd, 1), mr;
	struct urn_region *r;

	assert_int_equal(
		urn_mem_reg_mr(f->mem, f->pd, f->bytes, 4096, UINT64_MAX - 4095, RIGHTS, &mr), 0);
	assert_int_equal(urn_mem_bind(f->mem, 1, mw, mw, mr, 0, 1, 0, f->pd, QPN, NULL), URN_MEM_RANGE);
	assert_int_equal(urn_mem_bind(f->mem, 1, mw, mw, mr, UINT64_MAX - 7, 9, 0, f->pd, QPN, NULL),
			 URN_MEM_RANGE);
	assert_int_equal(urn_mem_bind(f->mem, 1, mw, mw, mr, UINT64_MAX - 7, 8,
				      URN_ACCESS_REMOTE_READ, f->pd, QPN, NULL),
			 URN_MEM_OK);
	assert_int_equal(urn_mem_check(f->mem, mw, f->pd, QPN, UINT64_MAX - 7, 8,
				       URN_ACCESS_REMOTE_READ, 1, &r),
			 URN_MEM_OK);
	assert_int_equal(urn_mem_check(f->mem, mw, f->pd, QPN, UINT64_MAX - 8, 8,
				       URN_ACCESS_REMOTE_READ, 1, &r),
			 URN_MEM_RANGE);
}

/* ibv_dereg_mr(3): EBUSY while windows are bound; ibv_dealloc_mw(3) unbinds */
static void
test_bound_count(void **state)
{
	struct window_fix *f = *state;
	uint32_t mw[4];

	for (int i = 0; i < 4; i++) {
		mw[i] = test_mw(f->mem, f->pd, 1 + i % 2);
		assert_int_equal(bind_mw(f, 1 + i % 2, mw[i], mw[i]), URN_MEM_OK);
	}
	expect_bound(f, 4);
	assert_int_equal(urn_mem_invalidate(f->mem, mw[1], f->pd, QPN, NULL), URN_MEM_OK);
	assert_int_equal(test_dealloc_mw(f->mem, mw[1]), 0); /* not bound: counts nothing */
	assert_int_equal(test_dealloc_mw(f->mem, mw[0]), 0);
	expect_bound(f, 2);
	/* By any key of the index. */
	assert_int_equal(test_dealloc_mw(f->mem, test_next_key(mw[3], 77)), 0);
	expect_bound(f, 1);
	assert_int_equal(urn_mem_bind(f->mem, 1, mw[2], mw[2], 0, 0, 0, 0, f->pd, QPN, NULL), 0);
	expect_bound(f, 0);
	assert_int_equal(test_dealloc_mw(f->mem, mw[2]), 0);
	assert_int_equal(test_dealloc_mw(f->mem, mw[2]), EINVAL);
	assert_int_equal(test_dealloc_mw(f->mem, f->mr), EINVAL);
	assert_int_equal(test_dealloc_mw(f->mem, 0), EINVAL);
	assert_int_equal(test_dealloc_mw(f->mem, UINT32_MAX), EINVAL);
	expect_bound(f, 0);
}

/* A killed region accepts no window. */
static void
test_bind_to_killed(void **state)
{
	struct window_fix *f = *state;
	uint32_t mw = test_mw(f->mem, f->pd, 2);
	struct urn_region *r;

	assert_int_equal(urn_mem_kill_mr(f->mem, f->mr, &r), 0);
	assert_int_equal(bind_mw(f, 2, mw, mw), URN_MEM_BAD_KEY);
	urn_mem_free_mr(f->mem, r);
	assert_int_equal(bind_mw(f, 2, mw, mw), URN_MEM_BAD_KEY);
}

int
main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_fresh),
		T(test_type1),
		T(test_type1_moves),
		T(test_type2),
		T(test_invalidate),
		T(test_bind_refusals),
		T(test_rights_and_range),
		T(test_iova),
		T(test_bound_count),
		T(test_bind_to_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
