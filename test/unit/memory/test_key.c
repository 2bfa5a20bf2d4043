/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem_test.h"

#include <malloc.h>

/* ---- allocations that fail on demand (the linker wraps these) */

static bool no_memory;

void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);

void *
__wrap_aligned_alloc(size_t align, size_t size)
{
	return no_memory ? NULL : __real_aligned_alloc(align, size);
}

void *
__wrap_calloc(size_t n, size_t size)
{
	return no_memory ? NULL : __real_calloc(n, size);
}

void *
__wrap_realloc(void *p, size_t size)
{
	return no_memory ? NULL : __real_realloc(p, size);
}

static uint8_t bytes[4096];

/* A table; draws: its keys are drawn, from a seed or, 0, by the kernel. */
static struct urn_mem *
table(uint32_t max_keys, uint32_t max_pds, bool draws, uint64_t seed)
{
	struct urn_mem *mem = urn_mem_create(max_keys, max_pds);

	assert_non_null(mem);
	if (draws)
		assert_int_equal(urn_mem_draw_keys(mem, seed), 0);
	return mem;
}

/* mem.h: index 0 is never given out; keys of live objects differ in the index */
static void
test_indices(void **state)
{
	(void)state;
	for (int draws = 0; draws < 2; draws++) {
		struct urn_mem *mem = table(2000, 4, draws, 0);
		uint32_t pd = test_pd(mem), extra;
		bool seen[2001] = {false};

		for (int i = 0; i < 2000; i++) {
			uint32_t key =
				i & 1 ? test_reg(mem, pd, bytes, 64, RIGHTS) : test_mw(mem, pd, 2);

			assert_in_range(key >> 8, 1, 2000);
			assert_false(seen[key >> 8]);
			seen[key >> 8] = true;
		}
		assert_int_equal(urn_mem_alloc_mw(mem, pd, 1, &extra), ENOMEM);
		urn_mem_destroy(mem);
	}
}

/* Keys of a table that draws them, in the order in which they are given out. */
static void
take_keys(struct urn_mem *mem, uint32_t *key, int n)
{
	uint32_t pd = test_pd(mem);

	for (int i = 0; i < n; i++)
		key[i] = test_reg(mem, pd, bytes, 64, RIGHTS);
}

/* The number of places at which two lists differ in the bits of a mask. */
static int
differ(const uint32_t *a, const uint32_t *b, int n, uint32_t mask)
{
	int d = 0;

	for (int i = 0; i < n; i++)
		d += ((a[i] ^ b[i]) & mask) != 0;
	return d;
}

/*
 * trust.md: keys are drawn: two tables have other orders of indices and other low bits, one key
 * does not tell the next. With a seed they are the same each time.
 */
static void
test_drawn(void **state)
{
	enum { KEYS = 1000, TABLES = 4 };
	static const uint64_t seed[TABLES] = {0, 0, 7, 7};
	static uint32_t key[TABLES][KEYS], again[TABLES][KEYS];
	int steps = 0;

	(void)state;
	for (int t = 0; t < TABLES; t++) {
		struct urn_mem *mem = table(65536, 4, true, seed[t]);

		take_keys(mem, key[t], KEYS);
		for (int i = 0; i < KEYS; i++)
			test_dereg(mem, key[t][i]);
		take_keys(mem, again[t], KEYS);
		urn_mem_destroy(mem);
	}
	/* By chance about one of 256 is the same. */
	assert_true(differ(key[0], key[1], KEYS, 0xff) > KEYS * 9 / 10);
	assert_true(differ(key[0], key[1], KEYS, ~0xffu) > KEYS * 9 / 10);
	assert_true(differ(again[0], again[1], KEYS, 0xff) > KEYS * 9 / 10);
	assert_true(differ(key[0], key[2], KEYS, ~0u) > KEYS * 9 / 10);
	assert_int_equal(differ(key[2], key[3], KEYS, ~0u), 0);
	assert_int_equal(differ(again[2], again[3], KEYS, ~0u), 0);
	for (int i = 1; i < KEYS; i++)
		steps += (key[0][i] >> 8) - (key[0][i - 1] >> 8) == 1;
	assert_in_range(steps, 0, KEYS / 20);
	steps = 0;
	for (int i = 0; i < KEYS;
	     i++) /* freed indices come again in their order, with another low byte */
		steps += ((key[0][i] + 1) & 0xff) == (again[0][i] & 0xff);
	assert_in_range(steps, 0, KEYS / 10);
}

/* architecture rule 6: a table without free keys gives ENOMEM, and recovers */
static void
test_exhaustion(void **state)
{
	struct urn_mem *mem = urn_mem_create(700, 4);
	uint32_t pd = test_pd(mem), key[700], extra;

	(void)state;
	for (int i = 0; i < 700; i++)
		key[i] = test_reg(mem, pd, bytes, 64, RIGHTS);
	assert_int_equal(urn_mem_reg_mr(mem, pd, bytes, 64, 0, RIGHTS, &extra), ENOMEM);
	assert_int_equal(urn_mem_alloc_mw(mem, pd, 1, &extra), ENOMEM);
	test_dereg(mem, key[33]);
	extra = test_mw(mem, pd, 1);
	assert_int_equal(extra >> 8, key[33] >> 8);
	assert_int_equal(urn_mem_alloc_mw(mem, pd, 1, &extra), ENOMEM);
	urn_mem_destroy(mem);

	mem = urn_mem_create(0, 1);
	assert_int_equal(urn_mem_alloc_mw(mem, test_pd(mem), 1, &extra), ENOMEM);
	urn_mem_destroy(mem);
}

/* The largest index of a table is given out, and no higher one is looked up. */
static void
test_largest_table(void **state)
{
	struct urn_mem *mem = urn_mem_create((1u << 24) - 1, 1);
	struct urn_region *r;

	(void)state;
	assert_non_null(mem);
	assert_int_equal(urn_mem_check(mem, 0xffffffff, 1, 0, 0, 0, 0, 0, &r), URN_MEM_BAD_KEY);
	urn_mem_destroy(mem);
	assert_null(urn_mem_create(1u << 24, 1));
	assert_null(urn_mem_create(UINT32_MAX, 1));
}

/* FO-2: an old key of an index is refused until the 8 bits have wrapped */
static void
test_stale_keys(void **state)
{
	struct urn_region *r;

	(void)state;
	for (int draws = 0; draws < 2; draws++) {
		struct urn_mem *mem = table(1, 1, draws, 0);
		uint32_t pd = test_pd(mem), stale[256];

		for (int i = 0; i < 256; i++) {
			stale[i] = test_reg(mem, pd, bytes, 64, RIGHTS);
			for (int j = 0; j < i; j++) {
				assert_int_equal(urn_mem_check(mem, stale[j], pd, 0,
							       (uintptr_t)bytes, 1, 0, 0, &r),
						 URN_MEM_BAD_KEY);
				assert_int_equal(urn_mem_kill_mr(mem, stale[j], &r), EINVAL);
			}
			assert_int_equal(
				urn_mem_check(mem, stale[i], pd, 0, (uintptr_t)bytes, 1, 0, 0, &r),
				0);
			test_dereg(mem, stale[i]);
		}
		urn_mem_destroy(mem);
	}
}

/* A window's last key, chosen by the consumer, is stale for the next object of the index. */
static void
test_stale_window_key(void **state)
{
	struct urn_mem *mem = urn_mem_create(2, 1);
	uint32_t pd = test_pd(mem), mr, mw, key;

	(void)state;
	mr = test_reg(mem, pd, bytes, 64, RIGHTS);
	for (uint32_t step = 1; step < 600; step += 7) {
		mw = test_mw(mem, pd, 2);
		key = test_next_key(mw, step);
		assert_int_equal(urn_mem_bind(mem, 2, mw, key, mr, (uintptr_t)bytes, 8,
					      URN_ACCESS_REMOTE_READ, pd, 5, NULL),
				 URN_MEM_OK);
		assert_int_equal(test_dealloc_mw(mem, key), 0);
		mw = test_mw(mem, pd, 1);
		assert_int_equal(mw >> 8, key >> 8);
		assert_int_not_equal(mw, key);
		assert_int_equal(test_dealloc_mw(mem, mw), 0);
	}
	urn_mem_destroy(mem);
}

/* Freed indices are reused late, the oldest first. */
static void
test_reused_late(void **state)
{
	struct urn_mem *mem = urn_mem_create(65536, 1);
	uint32_t pd = test_pd(mem), first, key;
	unsigned int others = 0;

	(void)state;
	first = test_reg(mem, pd, bytes, 64, RIGHTS);
	test_dereg(mem, first);
	do {
		key = test_reg(mem, pd, bytes, 64, RIGHTS);
		if (key >> 8 == first >> 8)
			break;
		test_dereg(mem, key);
	} while (++others < 65536);
	assert_in_range(others, 512, 2000);
	/* Endless registrations and deregistrations stay within few indices: memory does not grow. */
	for (int i = 0; i < 5000; i++) {
		key = test_reg(mem, pd, bytes, 64, RIGHTS);
		assert_in_range(key >> 8, 1, 2000);
		test_dereg(mem, key);
	}
	urn_mem_destroy(mem);

	mem = urn_mem_create(3, 1);
	pd = test_pd(mem);
	uint32_t k[3] = {test_mw(mem, pd, 1), test_mw(mem, pd, 1), test_mw(mem, pd, 1)};
	static const int order[] = {1, 2, 0};

	for (int i = 0; i < 3; i++)
		assert_int_equal(test_dealloc_mw(mem, k[order[i]]), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(test_mw(mem, pd, 1) >> 8, k[order[i]] >> 8);
	urn_mem_destroy(mem);
}

/* architecture rule 5: an idle adapter needs little memory whatever its max_keys */
static void
test_idle_is_small(void **state)
{
	struct mallinfo2 before = mallinfo2(), after;
	struct urn_mem *mem = urn_mem_create(65536, 65536);

	(void)state;
	after = mallinfo2();
	assert_in_range(after.uordblks + after.hblkhd - before.uordblks - before.hblkhd, 0, 8192);
	urn_mem_destroy(mem);
}

/* Every allocation that fails gives ENOMEM or NULL, and later calls work. */
static void
test_no_memory(void **state)
{
	struct urn_mem *mem;
	uint32_t pd = 0, key;
	int err;

	(void)state;
	no_memory = true;
	mem = urn_mem_create(16, 16);
	no_memory = false;
	assert_null(mem);
	mem = urn_mem_create(16, 16);
	no_memory = true;
	err = urn_mem_alloc_pd(mem, &pd);
	no_memory = false;
	assert_int_equal(err, ENOMEM);
	pd = test_pd(mem);
	no_memory = true;
	err = urn_mem_reg_mr(mem, pd, bytes, 64, 0, 0, &key);
	no_memory = false;
	assert_int_equal(err, ENOMEM);
	no_memory = true;
	err = urn_mem_alloc_mw(mem, pd, 1, &key);
	no_memory = false;
	assert_int_equal(err, ENOMEM);
	key = test_reg(mem, pd, bytes, 64, RIGHTS);
	test_dereg(mem, key);
	assert_int_equal(urn_mem_dealloc_pd(mem, pd), 0);
	urn_mem_destroy(mem);
	urn_mem_destroy(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_indices),	    cmocka_unit_test(test_exhaustion),
		cmocka_unit_test(test_drawn),	    cmocka_unit_test(test_largest_table),
		cmocka_unit_test(test_stale_keys),  cmocka_unit_test(test_stale_window_key),
		cmocka_unit_test(test_reused_late), cmocka_unit_test(test_idle_is_small),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
