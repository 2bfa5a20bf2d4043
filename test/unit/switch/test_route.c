/* SPDX-License-Identifier: BSD-3-Clause */
/* Routes by target node: look-up, replacement, bounds; frames to unknown MAC addresses take them.
 */
#include "frames.h"

#include "switch/route.h"
#include "switch/switch.h"

#include <errno.h>

static void
gid_of(uint8_t gid[16], uint32_t node)
{
	memset(gid, 0, 16);
	gid[10] = gid[11] = 0xff;
	memcpy(gid + 12, &node, 4);
}

static void
test_table(void **state)
{
	enum { N = 1000 };
	struct urn_route *r = urn_route_create(N, 7);
	uint8_t gid[16];

	(void)state;
	assert_non_null(r);
	for (uint32_t i = 0; i < N; i++) {
		gid_of(gid, i);
		assert_int_equal(urn_route_set(r, gid, (uint16_t)(i % 250)), 0);
	}
	gid_of(gid, N);
	assert_int_equal(urn_route_set(r, gid, 1), -ENOSPC);
	assert_int_equal(urn_route_lookup(r, gid), -1);
	gid_of(gid, 500);
	assert_int_equal(urn_route_set(r, gid, 9), 0);
	assert_int_equal(urn_route_count(r), N);
	for (uint32_t i = 0; i < N; i++) {
		gid_of(gid, i);
		assert_int_equal(urn_route_lookup(r, gid), i == 500 ? 9 : (int)(i % 250));
	}
	urn_route_destroy(r);
	assert_null(urn_route_create(0, 1));
	assert_null(urn_route_create(URN_ROUTE_MAX + 1, 1));
}

/* A frame between hosts whose MAC addresses nobody knows, to an IPv4 address; a tag in front or
 * not. */
static struct rte_mbuf *
frame_to(uint32_t node, bool tagged)
{
	struct rte_mbuf *m = frame_make(1, 100);
	uint8_t *f = rte_pktmbuf_mtod(m, uint8_t *);
	unsigned int at = 14;

	f[0] = f[6] = 2;
	f[11] = 1;
	f[5] = 2;
	if (tagged) {
		f[12] = 0x81;
		f[16] = 0x08;
		f[17] = 0;
		at = 18;
	}
	memcpy(f + at + 16, &node, 4);
	return m;
}

static unsigned int
count(struct urn_switch *sw, uint16_t port)
{
	struct rte_mbuf *m[8];
	unsigned int n = urn_switch_output(sw, port, m, 8, 0);

	rte_pktmbuf_free_bulk(m, n);
	return n;
}

static void
test_switch(void **state)
{
	struct urn_switch_config cfg = {
		.copies = test_eal_pool(), .routes = 8, .no_learning = true};
	struct urn_switch *sw = urn_switch_create(&cfg);
	struct urn_switch_port_config port = {0};
	struct rte_mbuf *m;
	uint8_t gid[16];

	(void)state;
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(urn_switch_add_port(sw, &port), i);
	gid_of(gid, 55);
	assert_int_equal(urn_switch_route(sw, gid, 3), 0);
	assert_int_equal(urn_switch_route(sw, gid, 4), -EINVAL);
	for (unsigned int tagged = 0; tagged < 2; tagged++) {
		m = frame_to(55, tagged);
		urn_switch_input(sw, 0, &m, 1, 0);
		assert_int_equal(count(sw, 1) + count(sw, 2), 0);
		assert_int_equal(count(sw, 3), 1);
	}
	/* Two frames of a burst to the same MAC address can be for different nodes. */
	assert_int_equal(urn_switch_counters(sw, 0)->v[URN_SWITCH_RX_ROUTED], 2);
	/* No route: flooded, like without routes. */
	m = frame_to(56, false);
	urn_switch_input(sw, 0, &m, 1, 0);
	assert_int_equal(count(sw, 1) + count(sw, 2) + count(sw, 3), 3);
	assert_int_equal(urn_switch_counters(sw, 0)->v[URN_SWITCH_RX_UNKNOWN], 3);
	/* A route back to the port that the frame came from goes nowhere. */
	m = frame_to(55, false);
	urn_switch_input(sw, 3, &m, 1, 0);
	assert_int_equal(urn_switch_counters(sw, 3)->v[URN_SWITCH_DROP_SAME_PORT], 1);
	urn_switch_destroy(sw);
}

/* A frame of another kind, or one that ends before the address, has no route. */
static void
test_no_address(void **state)
{
	struct urn_route *r = urn_route_create(4, 1);
	uint8_t gid[16] = {[0] = 0xfe, [1] = 0x80, [15] = 5};
	struct rte_mbuf *m = frame_make(0, 60);
	uint8_t *f = rte_pktmbuf_mtod(m, uint8_t *);

	(void)state;
	assert_int_equal(urn_route_set(r, gid, 2), 0);
	f[12] = 0x86;
	f[13] = 0xdd;
	memcpy(f + 38, gid, 16);
	assert_int_equal(urn_route_frame(r, m), 2);
	m->data_len = 53;
	assert_int_equal(urn_route_frame(r, m), -1);
	m->data_len = 14;
	assert_int_equal(urn_route_frame(r, m), -1);
	m->data_len = 60;
	f[12] = 0x08;
	f[13] = 0x06;
	assert_int_equal(urn_route_frame(r, m), -1);
	rte_pktmbuf_free(m);
	urn_route_destroy(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_switch),
		cmocka_unit_test(test_no_address),
	};

	return cmocka_run_group_tests_name("switch_route", tests, NULL, NULL);
}
