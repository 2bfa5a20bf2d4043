/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of priority-based flow control (IEEE 802.1Qbb, 802.3 annex 31D): written, read, refused.
 */
#include "frames.h"

#include "switch/pfc.h"

#include <errno.h>

static const uint8_t source[6] = {2, 0, 0, 0, 0, 9};

static struct rte_mbuf *
make(const struct urn_pfc *pfc)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_eal_pool());

	assert_non_null(m);
	assert_int_equal(urn_pfc_write(m, source, pfc), 0);
	return m;
}

/* The bytes are those of the standard, not only those that our own reader expects. */
static void
test_bytes(void **state)
{
	static const uint8_t expect[URN_PFC_BYTES] = {
		0x01, 0x80, 0xc2, 0, 0, 1, 2, 0,    0,	  0, 0, 9, 0x88, 0x08, 0x01, 0x01, 0x00,
		0x88, 0,    0,	  0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0,	 0,    0,    0x12, 0x34};
	struct urn_pfc pfc = {.enable = 0x88, .quanta = {[1] = 7, [3] = 0xffff, [7] = 0x1234}};
	struct rte_mbuf *m = make(&pfc);
	struct urn_pfc back;

	(void)state;
	assert_int_equal(m->pkt_len, URN_PFC_BYTES);
	/* The time of a priority that is not named is 0. */
	assert_memory_equal(rte_pktmbuf_mtod(m, void *), expect, sizeof(expect));
	assert_true(urn_pfc_is_control(m));
	assert_int_equal(urn_pfc_read(m, &back), 0);
	assert_int_equal(back.enable, 0x88);
	assert_int_equal(back.quanta[3], 0xffff);
	assert_int_equal(back.quanta[7], 0x1234);
	rte_pktmbuf_free(m);
}

/* Each frame of this list differs from a good one in one place. */
static void
test_malformed(void **state)
{
	static const struct {
		unsigned int at;
		uint8_t byte;
	} wrong[] = {{5, 0}, {0, 0x03}, {12, 0x08}, {14, 0x00}, {15, 0x02}, {16, 0x01}};
	struct urn_pfc pfc = {.enable = 1, .quanta = {1}}, back;

	(void)state;
	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct rte_mbuf *m = make(&pfc);

		rte_pktmbuf_mtod(m, uint8_t *)[wrong[i].at] = wrong[i].byte;
		assert_int_equal(urn_pfc_read(m, &back), -EBADMSG);
		rte_pktmbuf_free(m);
	}
	for (uint16_t len = 14; len <= URN_PFC_LEAST; len++) {
		struct rte_mbuf *m = make(&pfc);

		m->data_len = len;
		m->pkt_len = len;
		assert_int_equal(urn_pfc_read(m, &back), len < URN_PFC_LEAST ? -EBADMSG : 0);
		rte_pktmbuf_free(m);
	}
}

static void
test_no_room(void **state)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_eal_pool());
	struct urn_pfc pfc = {.enable = 1};

	(void)state;
	assert_non_null(m);
	assert_non_null(rte_pktmbuf_append(m, (uint16_t)(rte_pktmbuf_tailroom(m) - 59)));
	assert_int_equal(urn_pfc_write(m, source, &pfc), -ENOBUFS);
	rte_pktmbuf_free(m);
}

/* A quantum is as long as 512 bits: 51.2 ns at 10 Gb/s. */
static void
test_time(void **state)
{
	(void)state;
	assert_int_equal(urn_pfc_ns(10, urn_pfc_quantum(10000000000ull)), 511);
	assert_int_equal(urn_pfc_ns(0xffff, urn_pfc_quantum(1000000000ull)), 33553920);
	assert_int_equal(urn_pfc_ns(0xffff, urn_pfc_quantum(1000)), 33553920000000ull);
	assert_int_equal(urn_pfc_ns(0, urn_pfc_quantum(1000)), 0);
	assert_in_range(urn_pfc_ns(0xffff, urn_pfc_quantum(1000000000000ull)), 33500, 33554);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_time),
	};

	return cmocka_run_group_tests_name("switch_pfc", tests, NULL, NULL);
}
