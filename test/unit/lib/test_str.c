/* SPDX-License-Identifier: BSD-3-Clause */
/* Names for people to read, and the codes of rates. */
#include "test.h"

#include <string.h>

static void
names(void **state)
{
	int i;

	(void)state;
	assert_string_equal(ibv_wc_status_str(IBV_WC_SUCCESS), "success");
	assert_string_equal(ibv_wc_status_str(IBV_WC_RETRY_EXC_ERR), "transport retry counter exceeded");
	for (i = IBV_WC_SUCCESS; i <= IBV_WC_TM_RNDV_INCOMPLETE; i++)
		assert_string_not_equal(ibv_wc_status_str((enum ibv_wc_status)i), "unknown");
	for (i = IBV_EVENT_CQ_ERR; i <= IBV_EVENT_WQ_FATAL; i++)
		assert_string_not_equal(ibv_event_type_str((enum ibv_event_type)i), "unknown");
	for (i = IBV_NODE_CA; i <= IBV_NODE_UNSPECIFIED; i++)
		assert_string_not_equal(ibv_node_type_str((enum ibv_node_type)i), "unknown");
	for (i = IBV_PORT_NOP; i <= IBV_PORT_ACTIVE_DEFER; i++)
		assert_string_not_equal(ibv_port_state_str((enum ibv_port_state)i), "unknown");
	for (i = -1; i <= 1000; i += 1001) {
		assert_string_equal(ibv_wc_status_str((enum ibv_wc_status)i), "unknown");
		assert_string_equal(ibv_event_type_str((enum ibv_event_type)i), "unknown");
		assert_string_equal(ibv_node_type_str((enum ibv_node_type)i), "unknown");
		assert_string_equal(ibv_port_state_str((enum ibv_port_state)i), "unknown");
	}
}

static void
rates(void **state)
{
	int r;

	(void)state;
	for (r = IBV_RATE_2_5_GBPS; r <= IBV_RATE_1200_GBPS; r++) {
		enum ibv_rate rate = (enum ibv_rate)r;

		assert_true(ibv_rate_to_mult(rate) > 0);
		assert_int_equal(mult_to_ibv_rate(ibv_rate_to_mult(rate)), rate);
		assert_int_equal(mbps_to_ibv_rate(ibv_rate_to_mbps(rate)), rate);
		/* A multiple of 2.5 Gb/s, up to rounding and 64b/66b coding. */
		assert_in_range(ibv_rate_to_mbps(rate), ibv_rate_to_mult(rate) * 2343,
			ibv_rate_to_mult(rate) * 2660);
	}
	assert_int_equal(ibv_rate_to_mult(IBV_RATE_40_GBPS), 16);
	assert_int_equal(ibv_rate_to_mult((enum ibv_rate)99), -1);
	assert_int_equal(ibv_rate_to_mbps((enum ibv_rate)99), -1);
	assert_int_equal(mult_to_ibv_rate(7), IBV_RATE_MAX);
	assert_int_equal(mbps_to_ibv_rate(7), IBV_RATE_MAX);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(rates)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
