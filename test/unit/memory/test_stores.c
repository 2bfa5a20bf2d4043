/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts of the stores of placements (memory/stores.h, AW-7). */
#include "memx_bench.h"

#include "base/rnd.h"
#include "memory/stores.h"

#include <errno.h>

enum { ENGINES = 2, ROOM = 65536, BURST = 4096 };

/* A region that is counted, and executors of two engines. */
struct counted {
	struct urn_mem *mem;
	struct urn_memx *x[ENGINES];
	struct urn_region *region;
	uint8_t *bytes, *frame;
	uint32_t pd, key;
};

static void
open_counted(struct counted *c, bool on)
{
	c->mem = urn_mem_create(16, 1);
	if (on)
		urn_mem_count_stores(c->mem);
	c->pd = test_pd(c->mem);
	c->bytes = aligned_alloc(4096, ROOM);
	c->frame = calloc(1, BURST);
	assert_true(c->bytes && c->frame);
	assert_int_equal(urn_mem_reg_mr(c->mem, c->pd, c->bytes, ROOM, IOVA, RIGHTS, &c->key), 0);
	assert_int_equal(urn_mem_check(c->mem, c->key, c->pd, 0, 0, 0, 0, 0, &c->region), 0);
	for (unsigned int e = 0; e < ENGINES; e++) {
		struct urn_memx_config cfg = {.engine = e, .count_stores = on, .max_pds = 1};

		c->x[e] = urn_memx_create(&cfg);
		assert_non_null(c->x[e]);
	}
}

static void
close_counted(struct counted *c)
{
	for (unsigned int e = 0; e < ENGINES; e++)
		urn_memx_destroy(c->x[e]);
	urn_mem_destroy(c->mem);
	free(c->bytes);
	free(c->frame);
}

static void
place(struct counted *c, unsigned int engine, uint64_t off, uint32_t len)
{
	struct urn_memop op = {.region = c->region,
			       .addr = IOVA + off,
			       .frame = c->frame,
			       .len = len,
			       .kind = URN_MEMOP_PLACE};

	assert_int_equal(urn_memx_execute(c->x[engine], &op, 1), 0);
}

/* Count by going over all lines. */
static void
by_hand(struct urn_abi_stores *s, uint64_t off, uint32_t len)
{
	for (unsigned int i = 0; i < URN_STORES_LINES; i++) {
		uint32_t line = 64u << i;

		for (uint64_t at = 0; at < ROOM; at += line) {
			if (off <= at && off + len >= at + line)
				s->full[i]++;
			else if (off < at + line && off + len > at)
				s->partial[i]++;
		}
	}
}

/* AW-7: every offset and many lengths, by two engines, as a count by hand has it. */
static void
counts(void **state)
{
	struct urn_abi_stores want = {0}, got;
	uint64_t rng = 5;
	struct counted c;

	(void)state;
	open_counted(&c, true);
	for (uint32_t off = 0; off < 512; off++) {
		uint32_t len = 1 + (uint32_t)(urn_rnd_next(&rng) % (off % 2 ? 300 : BURST));

		place(&c, off % ENGINES, off, len);
		by_hand(&want, off, len);
	}
	place(&c, 0, 5, 0); /* touches nothing */
	assert_int_equal(urn_stores_read(c.mem, c.key, &got), 0);
	assert_memory_equal(&got, &want, sizeof(want));
	close_counted(&c);
}

/* AW-7: 32 KiB at MTU 1024 onto lines of 256 bytes, off the line. */
static void
example(void **state)
{
	struct urn_abi_stores s;
	struct counted c;

	(void)state;
	open_counted(&c, true);
	for (uint32_t at = 0; at < 32768; at += 1024)
		place(&c, 0, 77 + at, 1024);
	assert_int_equal(urn_stores_read(c.mem, c.key, &s), 0);
	assert_int_equal(s.partial[2], 64);
	assert_int_equal(s.full[2], 96);
	close_counted(&c);
}

/* A new region begins with nothing; gathers do not count; there is nothing to read where nothing
 * counts. */
static void
edges(void **state)
{
	struct urn_region *region;
	struct urn_abi_stores s;
	struct urn_memop op;
	struct counted c;

	(void)state;
	open_counted(&c, true);
	op = (struct urn_memop){.region = c.region,
				.addr = IOVA,
				.frame = c.frame,
				.len = 64,
				.kind = URN_MEMOP_GATHER};
	assert_int_equal(urn_memx_execute(c.x[0], &op, 1), 0);
	assert_int_equal(urn_stores_read(c.mem, c.key, &s), 0);
	assert_int_equal(s.full[0] + s.partial[0], 0);
	assert_int_equal(urn_stores_read(c.mem, c.key + 1, &s), EINVAL);
	assert_int_equal(urn_stores_read(c.mem, 0xffff00, &s), EINVAL);
	place(&c, 0, 0, 64);
	assert_int_equal(urn_mem_kill_mr(c.mem, c.key, &region), 0);
	assert_int_equal(urn_stores_read(c.mem, c.key, &s), EINVAL);
	urn_mem_free_mr(c.mem, region);
	assert_int_equal(urn_mem_reg_mr(c.mem, c.pd, c.bytes, ROOM, IOVA, RIGHTS, &c.key), 0);
	assert_int_equal(urn_stores_read(c.mem, c.key, &s), 0);
	assert_int_equal(s.full[0], 0);
	close_counted(&c);

	open_counted(&c, false);
	place(&c, 0, 0, 64);
	assert_int_equal(urn_stores_read(c.mem, c.key, &s), EOPNOTSUPP);
	close_counted(&c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts),
		cmocka_unit_test(example),
		cmocka_unit_test(edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
