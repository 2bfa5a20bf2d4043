/* SPDX-License-Identifier: BSD-3-Clause */
/* Priorities of frames: the code point of a tag goes before the DSCP; maps can be changed. */
#include "frames.h"

#include "switch/classify.h"

/* Priority of a frame whose bytes from the type on are these, n of them. */
static unsigned int
priority(const struct urn_classify_map *map, const uint8_t *bytes, size_t n)
{
	struct rte_mbuf *m = frame_make(0, 60);
	unsigned int p;

	memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, 12), bytes, n);
	p = urn_classify(map, m);
	rte_pktmbuf_free(m);
	return p;
}

#define PRIORITY(map, ...) \
	priority(map, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void
test_fields(void **state)
{
	struct urn_classify_map map;

	(void)state;
	urn_classify_preset(&map);
	for (unsigned int dscp = 0; dscp < 64; dscp++) {
		/* The congestion bits below the DSCP do not matter. */
		uint8_t tos = (uint8_t)(dscp << 2 | (dscp & 3));

		assert_int_equal(PRIORITY(&map, 0x08, 0x00, 0x45, tos), dscp >> 3);
		assert_int_equal(PRIORITY(&map, 0x86, 0xdd, 0x60 | tos >> 4, (uint8_t)(tos << 4)),
				 dscp >> 3);
	}
	for (unsigned int pcp = 0; pcp < 8; pcp++) {
		/* A tagged frame has the tag's priority, whatever its DSCP; drop eligible or not.
		 */
		assert_int_equal(PRIORITY(&map, 0x81, 0x00, (uint8_t)(pcp << 5 | 0x1f), 1, 0x08, 0,
					  0x45, 0xff),
				 pcp);
		assert_int_equal(PRIORITY(&map, 0x88, 0xa8, (uint8_t)(pcp << 5), 1), pcp);
	}
	assert_int_equal(PRIORITY(&map, 0x08, 0x06, 0xff, 0xff), 0);
}

static void
test_map(void **state)
{
	struct urn_classify_map map;

	(void)state;
	urn_classify_preset(&map);
	map.dscp[26] = 5;
	map.dscp[63] = 1;
	map.pcp[6] = 2;
	map.other = 4;
	assert_int_equal(PRIORITY(&map, 0x08, 0x00, 0x45, 26 << 2), 5);
	assert_int_equal(PRIORITY(&map, 0x86, 0xdd, 0x66, 0x80), 5);
	assert_int_equal(PRIORITY(&map, 0x08, 0x00, 0x45, 0xfc), 1);
	assert_int_equal(PRIORITY(&map, 0x81, 0x00, 6 << 5, 0), 2);
	assert_int_equal(PRIORITY(&map, 0x08, 0x06, 0, 0), 4);
}

/* A frame that ends before the field has no such field: nothing behind its end is read. */
static void
test_short(void **state)
{
	struct urn_classify_map map;

	(void)state;
	urn_classify_preset(&map);
	map.other = 7;
	for (uint16_t len = 14; len < 16; len++) {
		struct rte_mbuf *m = frame_make(0, 60);

		m->data_len = len;
		m->pkt_len = len;
		assert_int_equal(urn_classify(&map, m), 7);
		rte_pktmbuf_mtod(m, uint8_t *)[12] = 0x81;
		assert_int_equal(urn_classify(&map, m), 7);
		rte_pktmbuf_free(m);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_fields, frames_setup, frames_teardown),
		cmocka_unit_test_setup_teardown(test_map, frames_setup, frames_teardown),
		cmocka_unit_test_setup_teardown(test_short, frames_setup, frames_teardown),
	};

	return cmocka_run_group_tests_name("switch_classify", tests, NULL, NULL);
}
