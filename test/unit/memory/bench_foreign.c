/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cost of an operation on another process's memory, from its submission to the executor
 * to its answer; and of mapped memory for comparison. Not a test: run by hand.
 */
#include "foreign_child.h"

#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

enum { LEN = 1 << 20, BYTES = 256 << 20 };

static double
seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* `total` operations of `len` bytes one behind the other, `burst` of them in flight at a time. */
static void
bench(struct ft *f, const char *what, struct urn_region *region, uint64_t base, int kind,
      uint32_t len, uint32_t burst)
{
	uint32_t total = BYTES / len < 100000 ? BYTES / len : 100000, done = 0;
	struct urn_memop op[64], got[64];
	uint64_t off = 0;
	double t;

	total -= total % burst;
	t = seconds();
	while (done < total) {
		unsigned int left = burst;

		for (uint32_t i = 0; i < burst; i++) {
			op[i] = ft_op(f, kind, i, 0, len);
			op[i].region = region;
			op[i].addr = base + off;
			off = off + 2 * len > LEN ? 0 : off + len;
		}
		left = urn_memx_execute(f->x, op, burst);
		while (left)
			left -= urn_memx_poll(f->x, got, 64);
		done += burst;
	}
	t = seconds() - t;
	printf("%-8s %-6s %6u bytes, %2u at once: %8.0f ns an operation, %8.0f ns the burst, %6.2f "
	       "GB/s\n",
	       what, kind == URN_MEMOP_PLACE ? "write" : "read", len, burst, t / total * 1e9,
	       t / total * burst * 1e9, (double)total * len / t * 1e-9);
}

static const struct {
	uint32_t len, burst;
} cases[] = {{8, 1}, {64, 1}, {4096, 1}, {64, 16}, {1024, 16}, {4096, 2}, {4096, 16}, {4096, 32}};

/* at: an address like the heap's and stack's, or the start of a page */
static void
bench_all(struct ft *f, const char *what, uint64_t at)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int kind = URN_MEMOP_GATHER; kind <= URN_MEMOP_PLACE; kind++)
			bench(f, what, f->region, at, kind, cases[i].len, cases[i].burst);
}

int
main(void)
{
	uint8_t *mapped = aligned_alloc(4096, LEN);
	struct urn_region *own;
	struct ft f;
	uint32_t key;

	setlinebuf(stdout);
	ft_open(&f, LEN + 4096);
	memset(mapped, 1, LEN);
	if (child_do(&f.child, CHILD_MAP, CHILD_AT, LEN + 4096, PROT_READ | PROT_WRITE) != 0)
		return 1;
	child_write(&f.child, CHILD_AT, mapped, LEN);
	ft_reg(&f, RIGHTS);
	urn_mem_reg_mr(f.mem, f.pd, mapped, LEN, CHILD_AT, RIGHTS, &key);
	urn_mem_check(f.mem, key, f.pd, 0, 0, 0, 0, 0, &own);
	bench_all(&f, "by fd", CHILD_AT);
	bench_all(&f, "+16", CHILD_AT + 16);
	ft_share(&f, CHILD_AT + LEN + 4096);
	bench_all(&f, "direct", CHILD_AT);
	bench_all(&f, "+16", CHILD_AT + 16);
	for (int kind = URN_MEMOP_GATHER; kind <= URN_MEMOP_PLACE; kind++)
		bench(&f, "mapped", own, CHILD_AT, kind, 4096, 16);
	test_dereg(f.mem, key);
	ft_close(&f);
	free(mapped);
	return 0;
}
