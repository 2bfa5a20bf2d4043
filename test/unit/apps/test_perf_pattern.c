/* SPDX-License-Identifier: BSD-3-Clause */
/* The content of urnic-perf's messages: every wrong byte shows, sooner or later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "urnic-perf/pattern.h"

static struct pattern p;

static uint8_t *
make(uint64_t size, uint32_t qp, uint32_t slot, uint64_t seq)
{
	uint8_t *data = malloc(size + 1);

	assert_non_null(data);
	pattern_fill(&p, data, size, pattern_start(qp, slot));
	pattern_put_stamp(data, size, pattern_stamp(qp, seq));
	return data;
}

static bool
ok(const uint8_t *data, uint64_t size, uint32_t qp, uint32_t slot, uint64_t seq, uint64_t most)
{
	uint64_t compared;

	return pattern_stamp_ok(data, size, pattern_stamp(qp, seq)) &&
	       pattern_body_ok(&p, data, size, pattern_start(qp, slot), seq, most, &compared);
}

/* What was made passes; any one byte that is changed does not. */
static void
each_byte_counts(void **state)
{
	static const uint64_t sizes[] = {1, 2, 7, 8, 9, 15, 16, 17, 64, 300, 5000};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint64_t size = sizes[i];
		uint8_t *data = make(size, 3, 5, 77);

		assert_true(ok(data, size, 3, 5, 77, UINT64_MAX));
		for (uint64_t at = 0; at < size; at++) {
			data[at] ^= 0x10;
			assert_false(ok(data, size, 3, 5, 77, UINT64_MAX));
			data[at] ^= 0x10;
		}
		free(data);
	}
}

/* A datagram says which one it is, whatever its length. */
static void
number_is_read_back(void **state)
{
	static const uint64_t sizes[] = {8, 9, 15, 16, 17, 4096};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint8_t *data = make(sizes[i], 3, 5, 0x123456789aull);

		assert_true(pattern_number(data, sizes[i]) == 0x123456789aull);
		free(data);
	}
}

/* The window of the fast check passes over all of a long message. */
static void
window_visits_everything(void **state)
{
	uint64_t size = 200000, at, compared, seen;
	uint8_t *data = make(size, 0, 0, 0);
	static const uint64_t places[] = {8, 1031, 1032, 65521, 65529, 131042, 199990, 199991};

	(void)state;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		at = places[i];
		seen = 0;
		data[at] ^= 1;
		for (uint64_t seq = 0; seq < 196; seq++) {
			seen += !pattern_body_ok(&p, data, size, 0, seq, PATTERN_WINDOW, &compared);
			assert_true(compared > 0 && compared <= PATTERN_WINDOW);
		}
		assert_int_equal(seen, 1);
		data[at] ^= 1;
	}
	free(data);
}

/* A message in another's place, or one that is stale, shows in stamp and body. */
static void
messages_differ(void **state)
{
	uint8_t *data = make(64, 1, 2, 10);

	(void)state;
	assert_false(pattern_stamp_ok(data, 64, pattern_stamp(1, 11)));
	assert_false(pattern_stamp_ok(data, 64, pattern_stamp(2, 10)));
	pattern_put_stamp(data, 64, pattern_stamp(1, 11));
	assert_true(ok(data, 64, 1, 2, 11, UINT64_MAX));
	assert_false(ok(data, 64, 1, 3, 11, UINT64_MAX));
	free(data);
}

/* The last byte is the low byte of the message's number: WRITE ping-pong waits for it. */
static void
last_byte_is_the_number(void **state)
{
	(void)state;
	for (uint64_t size = 1; size < 40; size++) {
		for (uint64_t seq = 1; seq < 600; seq += 7) {
			uint8_t *data = make(size, 0xabcd, 4, seq);

			assert_int_equal(data[size - 1], seq & 0xff);
			free(data);
		}
	}
}

/* Messages longer than the text keep to it, from any start. */
static void
text_repeats(void **state)
{
	uint64_t size = 3 * (uint64_t)PATTERN_PERIOD + 100;
	uint8_t *data = make(size, 40000, 4000, 9);

	(void)state;
	assert_true(ok(data, size, 40000, 4000, 9, UINT64_MAX));
	assert_memory_equal(data + 8, data + 8 + PATTERN_PERIOD, PATTERN_PERIOD);
	data[2 * PATTERN_PERIOD] ^= 1;
	assert_false(ok(data, size, 40000, 4000, 9, UINT64_MAX));
	free(data);
}

static int
setup(void **state)
{
	(void)state;
	pattern_init(&p);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_byte_counts),	    cmocka_unit_test(number_is_read_back),
		cmocka_unit_test(window_visits_everything), cmocka_unit_test(messages_differ),
		cmocka_unit_test(last_byte_is_the_number),  cmocka_unit_test(text_repeats),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
