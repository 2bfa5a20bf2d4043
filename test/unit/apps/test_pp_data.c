/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of urnic-pingpong: their content, and finding a wrong one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "urnic-pingpong/pp.h"

enum { SIZE = 70000 };

static uint8_t a[SIZE], b[SIZE];
static struct urn_err err;

/* A byte left in the receive buffer by the last message never passes for the next one's. */
static void
messages_differ_everywhere(void **state)
{
	(void)state;
	for (uint32_t n = 0; n < 600; n += n < 20 ? 1 : 97) {
		pp_data_make(a, SIZE, n);
		pp_data_make(b, SIZE, n + 1);
		for (uint32_t j = 0; j < SIZE; j++)
			assert_int_not_equal(a[j], b[j]);
	}
}

/* A packet in the place of another does not pass either. */
static void
packets_differ(void **state)
{
	(void)state;
	pp_data_make(a, SIZE, 5);
	for (uint32_t mtu = 256; mtu <= 4096; mtu *= 2) {
		for (uint32_t i = 0; i + 2 * mtu <= SIZE; i += mtu)
			assert_memory_not_equal(a, a + i + mtu, mtu);
	}
}

static void
fill_is_known(void **state)
{
	(void)state;
	memset(a, PP_FILL, SIZE);
	assert_true(pp_data_is_fill(a, SIZE));
	/* -c of ibv_rc_pingpong fills the pages with zeros */
	for (uint32_t j = 0; j < SIZE; j += PP_FILL_PAGE)
		a[j] = 0;
	assert_true(pp_data_is_fill(a, SIZE));
	a[1] = 0;
	assert_false(pp_data_is_fill(a, SIZE));
	a[1] = PP_FILL;
	a[SIZE - 1]++;
	assert_false(pp_data_is_fill(a, SIZE));
	/*
	 * Our first message, however short, does not pass for the fill: else both sides
	 * would make up messages.
	 */
	pp_data_make(a, SIZE, 0);
	assert_false(pp_data_is_fill(a, 1));
	assert_false(pp_data_is_fill(a, SIZE));
}

static void
comparing(void **state)
{
	(void)state;
	pp_data_make(a, SIZE, 9);
	memcpy(b, a, SIZE);
	assert_int_equal(pp_data_compare(b, a, SIZE, 9, &err), 0);
	b[4096] ^= 1;
	b[SIZE - 1] ^= 0x80;
	assert_int_equal(pp_data_compare(b, a, SIZE, 9, &err), -1);
	assert_non_null(strstr(err.text, "message 10 "));
	assert_non_null(strstr(err.text, "2 of 70000 bytes"));
	assert_non_null(strstr(err.text, "at 4096:"));
	assert_int_equal(pp_data_compare(b, a, 4096, 9, &err), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_differ_everywhere),
		cmocka_unit_test(packets_differ),
		cmocka_unit_test(fill_is_known),
		cmocka_unit_test(comparing),
	};

	return cmocka_run_group_tests_name("pp_data", tests, NULL, NULL);
}
