/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory to share with dataplanes: pieces, segments, and children of fork(). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "attach/alloc.h"

#include <urnic/attach.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t
rnd(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

/* Memory of urn_alloc() does not overlap, is zero, and can be given back. */
static void
test_alloc(void **state)
{
	enum { N = 64 };
	uint8_t *p[N];
	uint64_t rng = 3;

	(void)state;
	for (int round = 0; round < 3; round++) {
		size_t size[N];

		for (int i = 0; i < N; i++) {
			size[i] = 1 + rnd(&rng) % (200 << 10);
			p[i] = urn_alloc(size[i]);
			assert_non_null(p[i]);
			assert_int_equal((uintptr_t)p[i] % 4096, 0);
			for (size_t k = 0; k < size[i]; k += 1111)
				assert_int_equal(p[i][k], 0);
			memset(p[i], i + 1, size[i]);
		}
		for (int i = 0; i < N; i++) {
			for (size_t k = 0; k < size[i]; k += 1111)
				assert_int_equal(p[i][k], i + 1);
			assert_int_equal(p[i][size[i] - 1], i + 1);
		}
		for (int i = 0; i < N; i++)
			urn_free(p[(i * 37) % N]);
	}
	assert_null(urn_alloc(SIZE_MAX));
	assert_null(urn_alloc(SIZE_MAX / 2));
	urn_free(NULL);
}

/* A piece lies in one segment: a memfd that holds the bytes written, and can't shrink. */
static void
test_segment(void **state)
{
	uint8_t *p = urn_alloc(10000), *big = urn_alloc((size_t)40 << 20), there[5];
	struct urn_segment seg, seg2;
	struct stat st;

	(void)state;
	assert_true(urn_segment_find(p, 10000, &seg));
	assert_true(p >= seg.base && p + 10000 <= seg.base + seg.length);
	assert_int_equal(fcntl(seg.fd, F_GET_SEALS) & F_SEAL_SHRINK, F_SEAL_SHRINK);
	assert_int_equal(fstat(seg.fd, &st), 0);
	assert_int_equal(st.st_size, seg.length);
	memcpy(p + 77, "bytes", 5);
	assert_int_equal(pread(seg.fd, there, 5, p + 77 - seg.base), 5);
	assert_memory_equal(there, "bytes", 5);
	assert_true(urn_segment_find(big, (size_t)40 << 20, &seg2));
	assert_int_not_equal(seg.id, seg2.id);
	/* A range partly in a segment, outside it, or memory of another kind. */
	assert_false(urn_segment_find(seg.base + seg.length - 1, 2, &seg2));
	assert_true(urn_segment_find(seg.base + seg.length - 1, 1, &seg2));
	assert_false(urn_segment_find(seg.base - 1, 1, &seg2) && seg2.id == seg.id);
	assert_false(urn_segment_find(&seg, 1, &seg2));
	assert_false(urn_segment_find(p, SIZE_MAX, &seg2));
	urn_free(big);
	urn_free(p);
}

/* Memory that was given back is zero again, and joined with its neighbours. */
static void
test_again(void **state)
{
	uint8_t *p[8], *all;

	(void)state;
	for (int i = 0; i < 8; i++) {
		p[i] = urn_alloc(4096);
		memset(p[i], 0xff, 4096);
	}
	for (int i = 0; i < 8; i += 2)
		urn_free(p[i]);
	for (int i = 1; i < 8; i += 2)
		urn_free(p[i]);
	all = urn_alloc(8 * 4096);
	assert_ptr_equal(all, p[0]);
	for (int i = 0; i < 8 * 4096; i++)
		assert_int_equal(all[i], 0);
	urn_free(all);
	all = urn_alloc(0);
	assert_non_null(all);
	urn_free(all);
}

/* A child allocates none of its own memory from its parent's segments. */
static void
test_fork(void **state)
{
	uint8_t *p = urn_alloc(4096);
	struct urn_segment seg;
	int status;
	pid_t pid;

	(void)state;
	memset(p, 1, 4096);
	pid = fork();
	if (pid == 0) {
		uint8_t *mine = urn_alloc(4096);

		memset(mine, 2, 4096);
		_exit(urn_segment_find(p, 1, &seg) ? 1 : urn_segment_find(mine, 1, &seg) ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	for (int i = 0; i < 4096; i++)
		assert_int_equal(p[i], 1);
	urn_free(p);
}

static void
test_set(void **state)
{
	struct urn_segment_set s = {0};

	(void)state;
	assert_false(urn_segment_set_has(&s, 1));
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(urn_segment_set_add(&s, 3 * i), 0);
	for (uint32_t i = 0; i < 300; i++)
		assert_int_equal(urn_segment_set_has(&s, i), i % 3 == 0);
	urn_segment_set_free(&s);
	assert_false(urn_segment_set_has(&s, 0));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_again), cmocka_unit_test(test_alloc), cmocka_unit_test(test_segment),
		cmocka_unit_test(test_fork), cmocka_unit_test(test_set),
	};

	return cmocka_run_group_tests_name("alloc", tests, NULL, NULL);
}
