/* SPDX-License-Identifier: BSD-3-Clause */
/* A client's area and the tables of handles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "control/area.h"
#include "control/handles.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES = 400, SIZE = 4 << 20 };

struct piece {
	uint64_t off, bytes;
	uint8_t mark;
};

static void
check_mark(const struct urn_area *a, const struct piece *p)
{
	for (uint64_t i = 0; i < p->bytes; i++)
		if (a->base[p->off + i] != p->mark)
			fail_msg("a piece of %llu bytes at %llu was written over",
				 (unsigned long long)p->bytes, (unsigned long long)p->off);
}

/* Pieces come zeroed, on a cache line, and never overlap, in whatever order they are given back. */
static void
test_pieces(void **state)
{
	static struct piece p[PIECES];
	unsigned int seed = 1;
	struct urn_area a;

	(void)state;
	assert_int_equal(urn_area_init(&a, SIZE, false), 0);
	for (int round = 0; round < 20000; round++) {
		struct piece *x = &p[rand_r(&seed) % PIECES];
		uint64_t bytes = 1ull + (uint64_t)rand_r(&seed) % (1u << (rand_r(&seed) % 15));

		if (x->bytes) {
			check_mark(&a, x);
			urn_area_free(&a, x->off, x->bytes);
			x->bytes = 0;
			continue;
		}
		if (urn_area_alloc(&a, bytes, &x->off) != 0)
			continue;
		assert_int_equal(x->off % 64, 0);
		assert_true(x->off + bytes <= SIZE);
		x->bytes = bytes;
		x->mark = 0;
		check_mark(&a, x);
		x->mark = (uint8_t)(1 + rand_r(&seed) % 255);
		memset(a.base + x->off, x->mark, bytes);
	}
	urn_area_fini(&a);
}

/* The bytes that an allocation takes of those never given out are known before. */
static void
test_grows(void **state)
{
	static struct piece p[PIECES];
	uint64_t grows, next, told = 0;
	unsigned int seed = 3;
	struct urn_area a;

	(void)state;
	assert_int_equal(urn_area_init(&a, SIZE, false), 0);
	for (int round = 0; round < 20000; round++) {
		struct piece *x = &p[rand_r(&seed) % PIECES];
		uint64_t bytes = 1ull + (uint64_t)rand_r(&seed) % (1u << (rand_r(&seed) % 17));

		if (x->bytes) {
			urn_area_free(&a, x->off, x->bytes);
			x->bytes = 0;
			continue;
		}
		grows = urn_area_grows(&a, bytes);
		next = a.next;
		x->bytes = urn_area_alloc(&a, bytes, &x->off) == 0 ? bytes : 0;
		assert_int_equal(a.next - next, grows);
		told += grows;
	}
	assert_int_equal(told, a.next);
	assert_true(told > SIZE / 2);
	assert_int_equal(urn_area_grows(&a, SIZE + 1), 0);
	assert_int_equal(urn_area_grows(&a, UINT64_MAX), 0);
	urn_area_fini(&a);
}

/* A piece that does not fit is refused and takes nothing away; pieces that are given back serve again. */
static void
test_full(void **state)
{
	uint64_t off, first = 0, n = 0;
	struct urn_area a;

	(void)state;
	assert_int_equal(urn_area_init(&a, 1 << 20, false), 0);
	assert_int_equal(urn_area_alloc(&a, (1 << 20) + 1, &off), ENOMEM);
	assert_int_equal(urn_area_alloc(&a, UINT64_MAX, &off), ENOMEM);
	while (urn_area_alloc(&a, 10000, &off) == 0)
		if (n++ == 0)
			first = off;
	assert_in_range(n, 60, 105);
	assert_int_equal(urn_area_alloc(&a, 10000, &off), ENOMEM);
	urn_area_free(&a, first, 10000);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(urn_area_alloc(&a, 10000, &off), 0);
		assert_int_equal(off, first);
		assert_int_equal(urn_area_alloc(&a, 10000, &off), ENOMEM);
		urn_area_free(&a, first, 10000);
	}
	urn_area_fini(&a);
}

/* An area used up by pieces of one size and all given back: pieces of any other size fit. */
static void
test_other_sizes(void **state)
{
	static const uint64_t sizes[] = {64, 100000, 64, 3 << 20, 5000, 1 << 20, 320};
	static uint64_t off[SIZE / 64];
	struct urn_area a;
	uint64_t whole = 0;

	(void)state;
	assert_int_equal(urn_area_init(&a, SIZE, false), 0);
	for (unsigned int k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		unsigned int n = 0;

		while (urn_area_alloc(&a, sizes[k], &off[n]) == 0) {
			for (uint64_t i = 0; i < sizes[k]; i += 61)
				assert_int_equal(a.base[off[n] + i], 0);
			memset(a.base + off[n], 0x77, sizes[k]);
			n++;
		}
		/* Classes waste a fifth of the area at most, and pages some bytes at their ends. */
		assert_true(n > 0 && n * sizes[k] > SIZE / 2);
		whole = k == 0 ? n : whole;
		assert_true(k != 2 || n == whole);
		for (unsigned int i = 0; i < n; i++)
			urn_area_free(&a, off[(i * 7919ull) % n], sizes[k]);
	}
	urn_area_fini(&a);
}

/*
 * Slow calls are known beforehand: clearing a large piece that was given back, and looking
 * for room when all was given out.
 */
static void
test_quick(void **state)
{
	uint64_t small, large, off, n = 0;
	struct urn_area a;

	(void)state;
	assert_int_equal(urn_area_init(&a, SIZE, true), 0);
	assert_int_equal(urn_area_resident(&a), 0);
	assert_true(urn_area_is_quick(&a, SIZE));     /* never given out */
	assert_true(urn_area_is_quick(&a, SIZE + 1)); /* fails at once */
	assert_int_equal(urn_area_alloc(&a, 8192, &small), 0);
	assert_int_equal(urn_area_alloc(&a, 1 << 20, &large), 0);
	memset(a.base + large, 1, 1 << 20);
	assert_true(urn_area_resident(&a) >= 1 << 20);
	urn_area_free(&a, small, 8192);
	urn_area_free(&a, large, 1 << 20);
	assert_true(urn_area_is_quick(&a, 8192));
	assert_false(urn_area_is_quick(&a, 1 << 20));
	assert_true(urn_area_is_quick(&a, 2 << 20)); /* another class, and there is fresh room */
	while (urn_area_alloc(&a, 100000, &off) == 0)
		n++;
	assert_true(n > 10);
	assert_false(urn_area_is_quick(&a, 100000));
	urn_area_fini(&a);
}

/* The kernel's flags of the mapping that an address lies in, as /proc/self/smaps has them. */
static bool
has_flag(const void *p, const char *flag)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	unsigned long from, to;
	bool in = false, found = false;
	char line[512];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			in = (uintptr_t)p >= from && (uintptr_t)p < to;
		if (in && strncmp(line, "VmFlags:", 8) == 0)
			found = strstr(line, flag) != NULL;
	}
	fclose(f);
	return found;
}

/* A core dump of the dataplane has no client's queues in it. */
static void
test_dump(void **state)
{
	struct urn_area a;

	(void)state;
	assert_int_equal(urn_area_init(&a, SIZE, true), 0);
	assert_true(has_flag(a.base, " dd"));
	urn_area_fini(&a);
}

/* Every size has a class, and the class is not smaller than the size. */
static void
test_sizes(void **state)
{
	struct urn_area a;
	uint64_t off, last = 0;

	(void)state;
	assert_int_equal(urn_area_init(&a, 1ull << 40, false), 0);
	for (uint64_t bytes = 1; bytes < 1ull << 33; bytes += 1 + bytes / 50) {
		assert_int_equal(urn_area_alloc(&a, bytes, &off), 0);
		assert_true(off >= last);
		last = off + bytes;
		if (bytes > 100000)
			continue;
		/* The next piece of the class is as long. */
		urn_area_free(&a, off, bytes);
		assert_int_equal(urn_area_alloc(&a, bytes, &off), 0);
		assert_int_equal(off + bytes, last);
	}
	urn_area_fini(&a);
}

static void
test_table(void **state)
{
	struct urn_handles t = {0};
	uint32_t handle = 0, again = 0;
	int obj[100];

	(void)state;
	assert_null(urn_handles_get(&t, 0));
	assert_null(urn_handles_get(&t, 1));
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(urn_handles_put(&t, &obj[i], 100, &handle), 0);
		assert_int_equal(handle, i + 1);
	}
	assert_int_equal(urn_handles_put(&t, obj, 100, &handle), ENOSPC);
	assert_ptr_equal(urn_handles_get(&t, 37), &obj[36]);
	assert_null(urn_handles_get(&t, 101));
	assert_null(urn_handles_get(&t, UINT32_MAX));
	urn_handles_remove(&t, 37);
	urn_handles_remove(&t, 5);
	assert_null(urn_handles_get(&t, 37));
	assert_int_equal(urn_handles_put(&t, &obj[1], 100, &handle), 0);
	assert_int_equal(urn_handles_put(&t, &obj[2], 100, &again), 0);
	assert_int_equal(handle + again, 42);
	assert_int_equal(urn_handles_put(&t, obj, 100, &handle), ENOSPC);
	urn_handles_fini(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pieces),	    cmocka_unit_test(test_full),
		cmocka_unit_test(test_other_sizes), cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_quick),	    cmocka_unit_test(test_dump),
		cmocka_unit_test(test_table),	    cmocka_unit_test(test_grows),
	};

	return cmocka_run_group_tests_name("area", tests, NULL, NULL);
}
