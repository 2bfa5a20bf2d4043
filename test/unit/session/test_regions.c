/* SPDX-License-Identifier: BSD-3-Clause */
/* The program's regions, found by key and by address. */
#include "verbs/session/regions.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

enum { READS = 1, WRITES = 2 };

static uint8_t bytes[256];

static void
finds(void **state)
{
	struct urn_sv_region a = {
		.base = bytes, .start = 0x1000, .length = 64, .access = READS | WRITES, .lkey = 5};
	struct urn_sv_region b = {
		.base = bytes + 64, .start = 0x2000, .length = 64, .access = READS, .lkey = 6};
	struct urn_sv_regions list = LIST_HEAD_INITIALIZER(list);

	(void)state;
	assert_null(urn_sv_regions_find(&list, 0x1000, 8, 0));
	LIST_INSERT_HEAD(&list, &a, link);
	LIST_INSERT_HEAD(&list, &b, link);
	assert_ptr_equal(urn_sv_regions_find(&list, 0x1000, 64, READS), bytes);
	assert_ptr_equal(urn_sv_regions_find(&list, 0x2038, 8, READS), bytes + 120);
	assert_null(urn_sv_regions_find(&list, 0x2039, 8, READS));
	assert_null(urn_sv_regions_find(&list, 0xfff, 8, READS));
	assert_null(urn_sv_regions_find(&list, 0x1000, 65, READS));
	assert_null(urn_sv_regions_find(&list, 0x2000, 8, WRITES));
	assert_null(urn_sv_regions_find(&list, UINT64_MAX - 3, 8, READS));
	assert_ptr_equal(urn_sv_regions_local(&list, 5, 0x1008, 8, WRITES), bytes + 8);
	assert_null(urn_sv_regions_local(&list, 6, 0x1008, 8, 0));
	assert_null(urn_sv_regions_local(&list, 6, 0x2000, 8, WRITES));
	assert_null(urn_sv_regions_local(&list, 7, 0x1008, 8, 0));
	LIST_REMOVE(&a, link);
	assert_null(urn_sv_regions_find(&list, 0x1000, 8, READS));
}

/* Two regions with the same addresses: only if both lead to the same byte is it known. */
static void
several(void **state)
{
	struct urn_sv_region a = {
		.base = bytes, .start = 0, .length = 64, .access = READS, .lkey = 5};
	struct urn_sv_region same = {
		.base = bytes + 32, .start = 32, .length = 64, .access = READS, .lkey = 6};
	struct urn_sv_region other = {
		.base = bytes + 128, .start = 0, .length = 32, .access = READS, .lkey = 7};
	struct urn_sv_regions list = LIST_HEAD_INITIALIZER(list);

	(void)state;
	LIST_INSERT_HEAD(&list, &a, link);
	LIST_INSERT_HEAD(&list, &same, link);
	LIST_INSERT_HEAD(&list, &other, link);
	assert_ptr_equal(urn_sv_regions_find(&list, 40, 8, READS), bytes + 40);
	assert_null(urn_sv_regions_find(&list, 8, 8, READS));
	assert_ptr_equal(urn_sv_regions_local(&list, 7, 8, 8, READS), bytes + 136);
	other.access = WRITES;
	assert_ptr_equal(urn_sv_regions_find(&list, 8, 8, READS), bytes + 8);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds),
		cmocka_unit_test(several),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
