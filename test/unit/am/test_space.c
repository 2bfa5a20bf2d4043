/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The check of a request against the ranges of a region (AM-9): true for every byte, and in a time
 * that grows with the logarithm of the ranges, also when all of them touch.
 */
#include "rig.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MANY = URN_AM_RANGES_MAX, SIZE = 64, PAGES_MOST = 10 };

/* An endpoint with room for many ranges, of two memory regions over the same memory in turn. */
struct wide {
	struct urn_am_ep *ep;
	struct urn_abi_am_ep *regs;
	uint32_t lkey[2];
	uint64_t key;
	uintptr_t at; /* first byte of the first range */
};

static void
wide_open(struct wide *w)
{
	struct urn_am_config cfg = {.share = rig.client[0],
				    .db = ENDS,
				    .entries = ENTRIES,
				    .ranges = MANY,
				    .pd = rig.pd,
				    .channel_fd = -1};
	size_t bytes = (urn_am_ep_bytes(ENTRIES, MANY) + 63) & ~63ull;

	memset(w, 0, sizeof(*w));
	w->regs = cfg.regs = aligned_alloc(64, bytes);
	assert_non_null(w->regs);
	memset(w->regs, 0, bytes);
	w->at = (uintptr_t)rig.end[0].mem;
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(urn_mem_reg_mr(rig.urn_mem, rig.pd, rig.end[0].mem, MEM, w->at,
						URN_ACCESS_LOCAL_WRITE, &w->lkey[i]),
				 0);
	assert_int_equal(urn_am_ep_open(rig.am, &cfg, &w->ep), 0);
}

/* Make a region of n ranges. gap: true: a byte is missing before each range whose number is a
 * multiple of 5 */
static void
wide_region(struct wide *w, unsigned int n, bool gap)
{
	struct urn_am_region_config c = {.access = URN_AM_ACCESS_ALL, .n = n, .random = 12345678};
	struct urn_abi_am_range *l = urn_am_ranges(w->regs, ENTRIES);

	for (unsigned int i = 0; i < n; i++) {
		unsigned int less = gap && i % 5 == 0;

		l[i] = (struct urn_abi_am_range){.addr = w->at + (uint64_t)i * SIZE + less,
						 .len = SIZE - less,
						 .lkey = w->lkey[i % 2]};
	}
	assert_int_equal(urn_am_region_add(rig.tp, w->ep, &c), 0);
	w->key = c.key;
}

static void
wide_close(struct wide *w)
{
	assert_true(urn_am_ep_ops.end(rig.tp, urn_am_ep_source(w->ep)));
	free(w->regs);
}

/* True when the region of wide_region() with gaps has these bytes, one by one. */
static bool
has(unsigned int n, uint64_t off, uint32_t len)
{
	for (uint64_t i = off; i < off + len; i++)
		if (i >= (uint64_t)n * SIZE || i % (5 * SIZE) == 0)
			return false;
	return true;
}

/* Each start and each length about the ends of ranges. */
static void
every_byte_counts(void **state)
{
	static const uint32_t lens[] = {1,	  2,	     SIZE - 1,	   SIZE,
					SIZE + 1, 4 * SIZE,  5 * SIZE - 1, 5 * SIZE,
					1 << 20,  UINT32_MAX};
	enum { N = 17 };
	struct wide w;

	(void)state;
	wide_open(&w);
	wide_region(&w, N, true);
	for (uint64_t off = 0; off < N * SIZE + 2; off++)
		for (unsigned int k = 0; k < sizeof(lens) / sizeof(lens[0]); k++) {
			uint32_t len = lens[k];
			bool want = len <= N * SIZE && has(N, off, len);

			assert_int_equal(
				urn_am_covers(w.ep, w.key, w.at + off, len, URN_AM_ACCESS_WRITE),
				want ? URN_AM_DONE : URN_AM_RANGE);
		}
	assert_int_equal(urn_am_covers(w.ep, w.key, w.at - 1, 2, URN_AM_ACCESS_WRITE),
			 URN_AM_RANGE);
	assert_int_equal(urn_am_covers(w.ep, w.key, UINT64_MAX, 1, URN_AM_ACCESS_WRITE),
			 URN_AM_RANGE);
	wide_close(&w);
}

/* ---- pages that a check reads */

static struct {
	uint8_t *at;
	size_t bytes, page;
	volatile sig_atomic_t touched;
} watched;

static void
touch(int sig, siginfo_t *info, void *ctx)
{
	uint8_t *at = info->si_addr;

	(void)sig;
	(void)ctx;
	if (at < watched.at || at >= watched.at + watched.bytes)
		abort();
	at -= (size_t)(at - watched.at) % watched.page;
	if (mprotect(at, watched.page, PROT_READ) != 0)
		abort();
	watched.touched++;
}

static void
watch(void)
{
	watched.touched = 0;
	assert_int_equal(mprotect(watched.at, watched.bytes, PROT_NONE), 0);
}

/* Put a copy of the region where the pages that are read can be counted. returns: the original */
static struct urn_am_region *
move_region(struct wide *w)
{
	struct urn_am_region *r = w->ep->region[w->key % URN_AM_REGIONS_MAX];
	size_t used = sizeof(*r) + r->n * sizeof(r->range[0]);

	watched.page = (size_t)sysconf(_SC_PAGESIZE);
	watched.bytes = (used + watched.page - 1) / watched.page * watched.page;
	watched.at = mmap(NULL, watched.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	assert_true(watched.at != MAP_FAILED);
	assert_true(watched.bytes / watched.page > 2 * PAGES_MOST);
	memcpy(watched.at, r, used);
	w->ep->region[w->key % URN_AM_REGIONS_MAX] = (struct urn_am_region *)(void *)watched.at;
	return r;
}

/* The check of a request for all bytes of as many ranges as there may be, which touch, reads as few
 * of them as one for a byte, and so does that of a packet. */
static void
few_ranges_are_read(void **state)
{
	struct sigaction act = {.sa_sigaction = touch, .sa_flags = SA_SIGINFO}, old;
	struct urn_am_piece piece[URN_AM_PIECES];
	struct urn_am_region *r;
	unsigned int n;
	struct wide w;

	(void)state;
	wide_open(&w);
	wide_region(&w, MANY, false);
	r = move_region(&w);
	assert_int_equal(r->n, MANY);
	assert_int_equal(sigaction(SIGSEGV, &act, &old), 0);
	for (uint64_t i = 0; i < MANY; i += 97) {
		uint64_t off = i * SIZE + 1;

		watch();
		assert_int_equal(urn_am_covers(w.ep, w.key, w.at + off,
					       (uint32_t)(MANY * SIZE - off), URN_AM_ACCESS_WRITE),
				 URN_AM_DONE);
		assert_in_range(watched.touched, 1, PAGES_MOST);
		watch();
		assert_int_equal(urn_am_covers(w.ep, w.key, w.at + off,
					       (uint32_t)(MANY * SIZE - off + 1),
					       URN_AM_ACCESS_WRITE),
				 URN_AM_RANGE);
		assert_in_range(watched.touched, 1, PAGES_MOST);
		watch();
		assert_int_equal(urn_am_reach(rig.tp, w.ep, w.key, w.at + off, MANY * SIZE,
					      URN_AM_ACCESS_WRITE, piece, &n),
				 URN_AM_RANGE);
		assert_in_range(watched.touched, 1, PAGES_MOST);
	}
	assert_int_equal(sigaction(SIGSEGV, &old, NULL), 0);
	w.ep->region[w.key % URN_AM_REGIONS_MAX] = r;
	munmap(watched.at, watched.bytes);
	wide_close(&w);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {T(every_byte_counts), T(few_ranges_are_read)};

	return cmocka_run_group_tests_name("am_space", tests, NULL, NULL);
}
