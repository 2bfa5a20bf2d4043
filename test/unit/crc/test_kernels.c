/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every kernel that this processor has against ISA-L: lengths, alignments, splits, masks, golden
 * frames. Source and copy end at a page that nobody may touch, or begin behind one: an access
 * outside ends the test.
 */
#include "crc/kernels.h"

#include "common/test_pcap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>
#include <isa-l/crc.h>

#define PAGE 4096u
#define BYTES (3u * PAGE) /* a buffer between two such pages */
#define LONGEST 9300u	  /* bytes: more than the longest frame */

static uint8_t *src, *dst;

static uint8_t *
fenced(void)
{
	uint8_t *p = mmap(NULL, BYTES + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + PAGE, BYTES, PROT_READ | PROT_WRITE) != 0)
		return NULL;
	return p + PAGE;
}

static int
setup(void **state)
{
	uint32_t r = 1;

	(void)state;
	src = fenced();
	dst = fenced();
	for (uint32_t i = 0; src && i < BYTES; i++) {
		r = r * 1664525 + 1013904223;
		src[i] = (uint8_t)(r >> 24);
	}
	return src && dst ? 0 : -1;
}

static int
teardown(void **state)
{
	(void)state;
	munmap(src - PAGE, BYTES + 2 * PAGE);
	munmap(dst - PAGE, BYTES + 2 * PAGE);
	return 0;
}

/* The oracle. */
static uint32_t
right(uint32_t seed, const uint8_t *p, size_t len)
{
	return crc32_gzip_refl(seed, (unsigned char *)(uintptr_t)p, len);
}

/* All lengths to 1100, which has each path and each rest; beyond, a sample that changes rest and
 * alignment. */
static uint32_t
after(uint32_t len)
{
	return len < 1100 ? len + 1 : len + 37;
}

/* Compute, and copy with, the CRC of bytes between borders: dst before and behind stays as it is.
 */
static void
check(const struct urn_crc_kernel *k, const uint8_t *p, uint8_t *to, uint32_t len)
{
	uint32_t seed = len * 2654435761u, want = right(seed, p, len);

	assert_int_equal(k->crc(seed, p, len, NULL), want);
	memset(dst, 0x5a, BYTES);
	assert_int_equal(k->copy(seed, to, p, len), want);
	assert_memory_equal(to, p, len);
	for (const uint8_t *q = to - 64 < dst ? dst : to - 64; q < to; q++)
		assert_int_equal(*q, 0x5a);
	for (const uint8_t *q = to + len; q < to + len + 64 && q < dst + BYTES; q++)
		assert_int_equal(*q, 0x5a);
}

static void
check_lengths(const struct urn_crc_kernel *k)
{
	for (uint32_t len = 0; len <= LONGEST; len = after(len)) {
		check(k, src, dst, len);			     /* behind a border */
		check(k, src + BYTES - len, dst + BYTES - len, len); /* in front of one */
		check(k, src + 64 + len % 61, dst + 64 + len % 53, len);
	}
}

static void
check_alignments(const struct urn_crc_kernel *k)
{
	static const uint32_t len[] = {3, 15, 16, 17, 40, 63, 64, 65, 255, 257, 600, 1064, 4160};

	for (uint32_t from = 0; from < 64; from++)
		for (unsigned int i = 0; i < sizeof(len) / sizeof(len[0]); i++)
			check(k, src + 64 + from, dst + 64 + from * 7 % 64, len[i]);
}

/* The CRC of a part is the seed of the next: any split gives the CRC of the whole. */
static void
check_splits(const struct urn_crc_kernel *k)
{
	static const uint32_t len[] = {5, 47, 104, 700, 1500};

	for (unsigned int i = 0; i < sizeof(len) / sizeof(len[0]); i++)
		for (uint32_t at = 0; at <= len[i]; at++) {
			uint32_t crc = k->crc(77, src, at, NULL);

			assert_int_equal(k->copy(crc, dst, src + at, len[i] - at),
					 right(77, src, len[i]));
		}
}

/* Mask the first bytes: every length, over a mask without any order. */
static void
check_masks(const struct urn_crc_kernel *k)
{
	uint8_t mask[URN_CRC_MASK_BYTES] = {0}, was[URN_CRC_MASKED];
	static uint8_t masked[LONGEST];

	memcpy(mask, src + PAGE, URN_CRC_MASKED);
	for (uint32_t len = 0; len <= 1200; len++) {
		uint8_t *p = src + BYTES - len;

		memcpy(masked, p, len);
		memcpy(was, p, len < sizeof(was) ? len : sizeof(was));
		for (uint32_t i = 0; i < len && i < URN_CRC_MASKED; i++)
			masked[i] |= mask[i];
		assert_int_equal(k->crc(len, p, len, mask), right(len, masked, len));
		assert_memory_equal(p, was, len < sizeof(was) ? len : sizeof(was));
	}
}

static void
check_golden(const struct urn_crc_kernel *k, const struct test_pcap *golden)
{
	for (unsigned int i = 0; i < golden->frames; i++) {
		const uint8_t *f = golden->frame[i].data;
		uint32_t len = golden->frame[i].len;

		assert_int_equal(k->crc(0, f, len, NULL), right(0, f, len));
		assert_int_equal(k->copy(0, dst, f, len), right(0, f, len));
		assert_memory_equal(dst, f, len);
	}
}

/* Run a check for every kernel that the processor has. */
static void
each(void (*check_kernel)(const struct urn_crc_kernel *k))
{
	unsigned int n = 0;

	for (const struct urn_crc_kernel *const *k = urn_crc_kernels; *k; k++)
		if ((*k)->usable()) {
			check_kernel(*k);
			n++;
		}
	assert_true(n > 0);
}

static void
test_lengths(void **state)
{
	(void)state;
	each(check_lengths);
}

static void
test_alignments(void **state)
{
	(void)state;
	each(check_alignments);
}

static void
test_splits(void **state)
{
	(void)state;
	each(check_splits);
}

static void
test_masks(void **state)
{
	(void)state;
	each(check_masks);
}

static void
test_golden(void **state)
{
	struct test_pcap golden;

	(void)state;
	assert_int_equal(test_pcap_load(&golden, "rxe_golden.pcap"), 0);
	assert_int_equal(golden.frames, 1225);
	for (const struct urn_crc_kernel *const *k = urn_crc_kernels; *k; k++)
		if ((*k)->usable())
			check_golden(*k, &golden);
	test_pcap_free(&golden);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lengths), cmocka_unit_test(test_alignments),
		cmocka_unit_test(test_splits),	cmocka_unit_test(test_masks),
		cmocka_unit_test(test_golden),
	};

	return cmocka_run_group_tests_name("crc_kernels", tests, setup, teardown);
}
