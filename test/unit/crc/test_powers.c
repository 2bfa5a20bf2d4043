/* SPDX-License-Identifier: BSD-3-Clause */
/* The powers of x that the kernels multiply by, each derived from the polynomial. */
#include "crc/kernels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* x^n mod 0x104c11db7, bits reflected, in the upper half of a word: multiplied by x, n times. */
static uint64_t
power(uint32_t n)
{
	uint32_t r = 0x80000000; /* 1, reflected */

	while (n--)
		r = r & 1 ? (r >> 1) ^ 0xedb88320 : r >> 1;
	return (uint64_t)r << 32;
}

static void
test_end(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < URN_CRC_END / 16; i++) {
		uint32_t behind = URN_CRC_END - 16 - 16 * i;

		assert_int_equal(urn_crc_end[2 * i], power(8 * behind + 95));
		assert_int_equal(urn_crc_end[2 * i + 1], power(8 * behind + 31));
	}
}

static void
test_by(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		assert_int_equal(urn_crc_by256[2 * i], power(8 * 256 + 63));
		assert_int_equal(urn_crc_by256[2 * i + 1], power(8 * 256 - 1));
		assert_int_equal(urn_crc_by128[2 * i], power(8 * 128 + 63));
		assert_int_equal(urn_crc_by128[2 * i + 1], power(8 * 128 - 1));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_end), cmocka_unit_test(test_by)};

	return cmocka_run_group_tests_name("crc_powers", tests, NULL, NULL);
}
