/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An adapter with two ports (FO-5): its addresses are announced on the port that takes over, its
 * port stays up for programs, and frames that come in at the other port are dropped and counted.
 */
#include "control/client.h"
#include "control/ctl.h"
#include "control/dataplane.h"
#include "control/objects.h"
#include "counters.h"
#include "pmd_glue/bond.h"
#include "pmd_glue/eal.h"
#include "pmd_glue/plug.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

#define PATIENCE 20000 /* turns of 1 ms until something must have come */

static struct urn_port *near[2], *far[2], *bond; /* two cables, and the adapter's ends as one */
static struct urn_dp *dp;
static unsigned int asked; /* times that the driver was asked for a link */

int __real_rte_eth_link_get_nowait(uint16_t id, struct rte_eth_link *link);
int __wrap_rte_eth_link_get_nowait(uint16_t id, struct rte_eth_link *link);

int
__wrap_rte_eth_link_get_nowait(uint16_t id, struct rte_eth_link *link)
{
	asked++;
	return __real_rte_eth_link_get_nowait(id, link);
}

static void
make(uint64_t failback_ns)
{
	struct urn_adapter_config ac = {.node = "n",
					.engines = 1,
					.ipv4 = {10, 0, 0, 1},
					.max_qp = 16,
					.max_mr = 16,
					.area_size = 1 << 20};
	struct urn_dp_config dc = {.engines = 1, .adapters = 1, .adapter = &ac};
	struct urn_err err = {{0}};

	for (unsigned int i = 0; i < 2; i++) {
		struct urn_port_config pc[2] = {
			{.queues = 1, .mbufs = 1024, .mac = {2, 0, 0, 0, 0, 9}},
			{.queues = 1, .mbufs = 1024}};
		struct urn_port *p[2];

		snprintf(pc[0].name, sizeof(pc[0].name), "near%u", i);
		snprintf(pc[1].name, sizeof(pc[1].name), "far%u", i);
		if (urn_port_open_ring_pair(pc, p, &err) != 0)
			fail_msg("%s", err.text);
		near[i] = p[0];
		far[i] = p[1];
	}
	bond = urn_bond_create(near, failback_ns, &err);
	if (!bond)
		fail_msg("%s", err.text);
	ac.port = bond;
	dp = urn_dp_create(&dc, &err);
	if (!dp)
		fail_msg("%s", err.text);
}

static int
teardown(void **state)
{
	(void)state;
	urn_dp_destroy(dp);
	urn_bond_destroy(bond);
	for (unsigned int i = 0; i < 2; i++) {
		urn_port_close(near[i]);
		urn_port_close(far[i]);
	}
	return 0;
}

static uint64_t
counted(enum urn_counter id)
{
	struct urn_counters c;

	urn_dp_counters(dp, 0, &c);
	return c.v[id];
}

/* Take the announcements that came out of cable i. returns: their number */
static unsigned int
take(unsigned int i)
{
	struct rte_mbuf *m[32];
	unsigned int n = urn_port_rx(far[i], 0, m, 32);

	for (unsigned int k = 0; k < n; k++) {
		const uint8_t *f = rte_pktmbuf_mtod(m[k], const uint8_t *);

		/* ARP, or a neighbour advertisement. */
		assert_true((f[12] == 0x08 && f[13] == 0x06) || f[54] == 136);
		rte_pktmbuf_free(m[k]);
	}
	return n;
}

/* Turn the engine until both addresses were announced out of cable i. */
static void
announced(unsigned int i)
{
	struct timespec tick = {0, 1000000};
	unsigned int n = 0;

	for (unsigned int t = 0; t < PATIENCE && n < 2; t++) {
		urn_engine_poll(urn_dp_engine(dp, 0));
		n += take(i);
		nanosleep(&tick, NULL);
	}
	assert_int_equal(n, 2); /* link-local and IPv4 */
	assert_int_equal(take(1 - i), 0);
}

static void
plug(unsigned int i, enum urn_port_plug how)
{
	struct urn_err err = {{0}};

	if (urn_port_plug(near[i], how, &err) != 0)
		fail_msg("%s", err.text);
}

/* Each move is announced and counted; the adapter's port never goes down. */
static void
test_announced(void **state)
{
	(void)state;
	make(0);
	announced(0);
	plug(0, URN_PORT_FAILED);
	announced(1);
	assert_int_equal(counted(URN_C_PORT_MOVES), 1);
	plug(0, URN_PORT_UP);
	plug(1, URN_PORT_FAILED); /* the first has not been looked at: it has no link yet */
	announced(0);
	assert_true(counted(URN_C_PORT_MOVES) == 2);
	assert_true(bond->link_up);
	assert_int_equal(dp->adapter[0]->shard[0]->link_up, true);
}

/* The adapter goes back to its first port by itself. */
static void
test_back(void **state)
{
	(void)state;
	make(1);
	announced(0);
	plug(0, URN_PORT_DOWN);
	announced(1);
	plug(0, URN_PORT_UP);
	announced(0);
	assert_int_equal(counted(URN_C_PORT_MOVES), 2);
	assert_int_equal(bond->link_changes, 1); /* that at the start */
}

/* Frames that a switch floods to the port that is not used are dropped there. */
static void
test_standby(void **state)
{
	struct timespec tick = {0, 1000000};
	struct rte_mbuf *m[10];

	(void)state;
	make(0);
	announced(0);
	assert_int_equal(rte_pktmbuf_alloc_bulk(far[1]->pool, m, 10), 0);
	for (unsigned int i = 0; i < 10; i++)
		memset(rte_pktmbuf_append(m[i], 64), 0xff, 64);
	assert_int_equal(urn_port_tx(far[1], 0, m, 10), 10);
	for (unsigned int t = 0; t < PATIENCE && counted(URN_C_DROP_STANDBY) < 10; t++) {
		urn_engine_poll(urn_dp_engine(dp, 0));
		nanosleep(&tick, NULL);
	}
	assert_int_equal(counted(URN_C_DROP_STANDBY), 10);
	assert_int_equal(counted(URN_C_RX_PACKETS), 0);
	assert_int_equal(rte_mempool_in_use_count(far[1]->pool), 0);
}

/* A program that asks for its port disturbs no driver, which may be busy on the engine's thread. */
static void
test_asks(void **state)
{
	struct urn_client client = {0};
	struct urn_abi_req req = {0};
	struct urn_abi_rep rep = {0};
	unsigned int before;

	(void)state;
	make(0);
	announced(0);
	client.adapter = dp->adapter[0];
	before = asked;
	assert_true(before > 0);
	assert_int_equal(urn_ctl_query_port(&client, &req, &rep), 0);
	assert_int_equal(asked, before);
	assert_int_equal(rep.port.state, 4);
	assert_int_equal(rep.port.speed, RTE_ETH_SPEED_NUM_10G * 1000000ull);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_announced, teardown),
		cmocka_unit_test_teardown(test_back, teardown),
		cmocka_unit_test_teardown(test_standby, teardown),
		cmocka_unit_test_teardown(test_asks, teardown),
	};

	struct urn_eal_config cfg = {.program = "test", .memory_mb = 128};
	struct urn_err err;
	int failed = 1;

	if (urn_eal_start(&cfg, &err) == 0)
		failed = cmocka_run_group_tests(tests, NULL, NULL);
	urn_eal_stop();
	return failed;
}
