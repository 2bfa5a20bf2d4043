/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames to QP1: made by doc/inside/link.md, and recognised as MADs, or not. */
#include "wire/mad.h"

#include "common/test_eal.h"
#include "common/test_link_mad.h"
#include "common/test_mbuf.h"
#include "frames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const uint8_t *mad;
static uint32_t sqpn;

static int
find(const struct link_spec *s, int ipv6)
{
	struct urn_path path = frame_path(ipv6);
	uint8_t f[LINK_FRAME_ROOM];
	uint32_t len = link_frame(f, s, path.dmac, path.dgid, path.smac, path.sgid);
	struct rte_mbuf *m = test_mbuf_wrap(f, len);
	int rc;

	assert_int_equal(urn_wire_parse(m), URN_FRAME_ROCE);
	assert_int_equal(urn_pkt(m)->dqpn, URN_QPN_GSI);
	rc = urn_mad_find(m, &mad, &sqpn);
	if (rc == 0)
		assert_ptr_equal(mad, urn_pkt_payload(m));
	return rc;
}

static void
test_find(void **state)
{
	(void)state;
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		struct link_spec s = link_good(0, 5);

		s.sqpn = 0xabcdef;
		assert_int_equal(find(&s, ipv6), 0);
		assert_int_equal(sqpn, 0xabcdef);
		s.opcode = 0x65; /* with immediate data, which means nothing here */
		assert_int_equal(find(&s, ipv6), 0);
		s.opcode = 0x04; /* RC SEND only */
		assert_int_equal(find(&s, ipv6), URN_C_DROP_QP_TYPE);
		s = link_good(0, 5);
		s.qkey ^= 1;
		assert_int_equal(find(&s, ipv6), URN_C_DROP_QKEY);
		s = link_good(0, 5);
		s.base_version = 2;
		assert_int_equal(find(&s, ipv6), URN_C_DROP_MAD_VERSION);
		for (uint32_t bytes = 0; bytes < 300; bytes++) {
			s = link_good(0, 5);
			s.bytes = bytes;
			assert_int_equal(find(&s, ipv6), bytes == 256 ? 0 : URN_C_DROP_MAD_LENGTH);
		}
	}
}

/* Our frame is a peer's frame, but for fields without meaning. */
static void
test_frame(void **state)
{
	(void)state;
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		struct link_spec s = link_good(1, 5);
		struct urn_path path = frame_path(ipv6);
		struct rte_mbuf *m = rte_pktmbuf_alloc(test_eal_pool());
		uint8_t want[LINK_FRAME_ROOM], bytes[LINK_MAD], *got;
		uint32_t len = link_frame(want, &s, path.smac, path.sgid, path.dmac, path.dgid);

		path.sport = 0xc123;
		path.tos = 0;
		path.ttl = 64;
		path.flow_label = 0;
		link_mad(bytes, &s);
		assert_non_null(m);
		assert_int_equal(urn_mad_frame(m, &path, bytes, 0, 0), 0);
		assert_int_equal(rte_pktmbuf_data_len(m), len);
		assert_int_equal(rte_pktmbuf_pkt_len(m), len);
		got = rte_pktmbuf_mtod(m, uint8_t *);
		assert_memory_equal(got, want, len);
		/* PSN and ICRC. */
		assert_int_equal(urn_mad_frame(m, &path, bytes, 0x1abcdef, 1), 0);
		assert_int_equal(urn_wire_parse(m), URN_FRAME_ROCE);
		assert_true(urn_wire_icrc_ok(m));
		assert_int_equal(urn_pkt(m)->psn, 0xabcdef);
		rte_pktmbuf_free(m);
	}
}

/* In place of a received frame, its own MAD or another; and with too little room. */
static void
test_frame_over(void **state)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_eal_pool());
	struct urn_path path = frame_path(0);
	struct link_spec s = link_good(0, 5);
	uint8_t bytes[LINK_MAD];
	uint16_t room;

	(void)state;
	assert_non_null(m);
	link_mad(bytes, &s);
	for (int ipv6 = 1; ipv6 >= 0; ipv6--) { /* the MAD moves to the front */
		path = frame_path(ipv6);
		assert_int_equal(urn_mad_frame(m, &path, ipv6 ? bytes : mad, 0, 1), 0);
		assert_int_equal(urn_wire_parse(m), URN_FRAME_ROCE);
		assert_int_equal(urn_mad_find(m, &mad, &sqpn), 0);
		assert_int_equal(sqpn, 1);
		assert_memory_equal(mad, bytes, LINK_MAD);
	}
	room = m->buf_len;
	m->buf_len = (uint16_t)(m->data_off + m->data_len);
	assert_int_equal(urn_mad_frame(m, &path, bytes, 0, 1), 0);
	m->buf_len--;
	assert_int_equal(urn_mad_frame(m, &path, bytes, 0, 1), -1);
	m->buf_len = room;
	rte_pktmbuf_free(m);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_frame),
		cmocka_unit_test(test_frame_over),
	};

	return cmocka_run_group_tests_name("mad", tests, NULL, NULL);
}
