/* SPDX-License-Identifier: BSD-3-Clause */
#include "mem_test.h"
#include "memory/copy.h"

/* Every length and alignment: all bytes are copied, and none beside them. */
static void
test_every_length(void **state)
{
	uint8_t src[512], dst[512];

	(void)state;
	for (size_t i = 0; i < sizeof(src); i++)
		src[i] = (uint8_t)(i * 7 + 1) | 1;
	for (uint32_t len = 0; len <= 300; len++) {
		for (uint32_t at = 0; at < 64; at += 3) {
			uint32_t from = at * 5 % 64;

			memset(dst, 0, sizeof(dst));
			urn_copy(dst + at, src + from, len);
			assert_memory_equal(dst + at, src + from, len);
			for (uint32_t i = 0; i < sizeof(dst); i++)
				if (i < at || i >= at + len)
					assert_int_equal(dst[i], 0);
		}
	}
}

/* The source is not read outside its bounds: the address sanitizer checks. */
static void
test_source_bounds(void **state)
{
	(void)state;
	for (uint32_t len = 1; len <= 130; len++) {
		uint8_t *src = malloc(len), *dst = malloc(len);

		memset(src, (int)len, len);
		urn_copy(dst, src, len);
		assert_memory_equal(dst, src, len);
		free(src);
		free(dst);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_length),
		cmocka_unit_test(test_source_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
