/* SPDX-License-Identifier: BSD-3-Clause */
/* Configurations that are impossible: refused with a sentence that says why, and nothing is left. */
#include "control/dataplane.h"
#include "pmd_glue/eal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

static struct urn_port *port[2];
/* A good configuration; each test spoils a copy. */
static struct urn_adapter_config ac[2];
static struct urn_dp_config dc;

static int
setup_all(void **state)
{
	struct urn_eal_config eal = {.program = "test", .memory_mb = 128};
	struct urn_port_config pc[2] = {{.name = "p0", .mbufs = 2048},
					{.name = "p1", .mbufs = 2048}};
	struct urn_err err;

	(void)state;
	return urn_eal_start(&eal, &err) != 0 || urn_port_open_ring_pair(pc, port, &err) != 0;
}

static int
teardown_all(void **state)
{
	(void)state;
	urn_port_close(port[0]);
	urn_port_close(port[1]);
	urn_eal_stop();
	return 0;
}

static int
setup(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++)
		ac[i] = (struct urn_adapter_config){.node = "n",
						    .port = port[i],
						    .engines = 1,
						    .ipv4 = {10, 0, 0, (uint8_t)(i + 1)},
						    .max_qp = 16,
						    .max_mr = 16,
						    .work_in_flight = 64,
						    .area_size = 1 << 20};
	dc = (struct urn_dp_config){.engines = 1, .adapters = 2, .adapter = ac};
	return 0;
}

static void
refused(const char *words)
{
	struct urn_err err = {""};

	assert_null(urn_dp_create(&dc, &err));
	if (!strstr(err.text, words))
		fail_msg("\"%s\" is not in \"%s\"", words, err.text);
}

static void
test_good(void **state)
{
	struct urn_err err;
	struct urn_dp *dp;

	(void)state;
	dp = urn_dp_create(&dc, &err);
	assert_non_null(dp);
	urn_dp_destroy(dp);
}

static void
test_engines(void **state)
{
	(void)state;
	dc.engines = 0;
	refused("1 to 16 engines");
	dc.engines = URN_ABI_MAX_ENGINES + 1;
	refused("1 to 16 engines");
	dc.engines = 1;
	dc.engine[0].idle = URN_IDLE_SLEEP + 1;
	refused("engine 0: idle policy 3");
	dc.engine[0].idle = URN_IDLE_SPIN;
	ac[1].engines = 0;
	refused("urnic1: engines is 0x0");
	ac[1].engines = 2;
	refused("urnic1: engines is 0x2");
}

static void
test_ports(void **state)
{
	(void)state;
	ac[0].port = NULL;
	refused("urnic0: no port");
	ac[0].port = port[1];
	refused("urnic1: port p1 is that of urnic0");
}

static void
test_limits(void **state)
{
	(void)state;
	ac[0].max_qp = (1u << 20) - 1;
	refused("urnic0: at most 1048574 QPs");
	ac[0].max_qp = 16;
	ac[0].max_mr = 0xffffff;
	refused("16777214 regions");
	ac[0].max_mr = 16;
	ac[0].window = (1u << 20) + 1;
	refused("a window of 1048576");
}

static void
test_addresses(void **state)
{
	static const uint8_t v4[][4] = {
		{0, 0, 0, 1}, {127, 0, 0, 1}, {224, 0, 0, 1}, {255, 255, 255, 255}};
	static const uint8_t v6[][16] = {
		{[15] = 1}, {0xff, 2, [15] = 1}, {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1}};

	(void)state;
	for (unsigned int i = 0; i < sizeof(v4) / sizeof(v4[0]); i++) {
		memcpy(ac[1].ipv4, v4[i], 4);
		refused("urnic1: an address is no unicast");
	}
	memset(ac[1].ipv4, 0, 4);
	for (unsigned int i = 0; i < sizeof(v6) / sizeof(v6[0]); i++) {
		memcpy(ac[1].ipv6, v6[i], 16);
		refused("urnic1: an address is no unicast");
	}
	memset(ac[1].ipv6, 0, 16);
	test_good(state);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_good, setup),
		cmocka_unit_test_setup(test_engines, setup),
		cmocka_unit_test_setup(test_ports, setup),
		cmocka_unit_test_setup(test_limits, setup),
		cmocka_unit_test_setup(test_addresses, setup),
	};

	return cmocka_run_group_tests_name("config", tests, setup_all, teardown_all);
}
