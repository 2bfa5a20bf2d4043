/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An adapter and the link of its port: addresses are announced when the link is
 * up and each time it comes up, never into a cable that is not plugged in.
 */
#include "control/dataplane.h"
#include "counters.h"
#include "pmd_glue/eal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>
#include <time.h>

static struct urn_port *port[2]; /* the adapter's port, and the other end of the cable */
static struct urn_dp *dp;

static int
setup_eal(void **state)
{
	struct urn_eal_config cfg = {.program = "test", .memory_mb = 128};
	struct urn_err err;

	(void)state;
	return urn_eal_start(&cfg, &err);
}

static int
teardown_eal(void **state)
{
	(void)state;
	urn_eal_stop();
	return 0;
}

static int
setup(void **state)
{
	struct urn_port_config pc[2] = {{.name = "near", .queues = 1, .mbufs = 1024},
					{.name = "far", .queues = 1, .mbufs = 1024}};
	struct urn_err err;

	(void)state;
	return urn_port_open_ring_pair(pc, port, &err);
}

static int
teardown(void **state)
{
	(void)state;
	urn_dp_destroy(dp);
	urn_port_close(port[0]);
	urn_port_close(port[1]);
	return 0;
}

static void
make_dp(void)
{
	struct urn_adapter_config ac = {.node = "n", .port = port[0], .engines = 1,
					.ipv4 = {10, 0, 0, 1}, .max_qp = 16, .max_mr = 16,
					.area_size = 1 << 20};
	struct urn_dp_config dc = {.engines = 1, .adapters = 1, .adapter = &ac};
	struct urn_err err = {{0}};

	dp = urn_dp_create(&dc, &err);
	if (dp == NULL)
		fail_msg("%s", err.text);
}

static void
plug(bool in)
{
	struct urn_err err = {{0}};

	if ((in ? urn_port_start(port[0], &err) : urn_port_stop(port[0], &err)) != 0)
		fail_msg("%s", err.text);
	/* Another thread may poll the link first. */
	urn_port_poll_link(port[0]);
	assert_int_equal(port[0]->link_up, in);
}

/* Count the frames that come out of the cable while the engine turns for a while. */
static unsigned int
frames(unsigned int ms)
{
	struct timespec tick = {0, 1000000};
	struct rte_mbuf *m[32];
	unsigned int sum = 0, n;

	for (unsigned int i = 0; i < ms; i++) {
		urn_engine_poll(urn_dp_engine(dp, 0));
		n = urn_port_rx(port[1], 0, m, 32);
		for (unsigned int k = 0; k < n; k++) {
			const uint8_t *f = rte_pktmbuf_mtod(m[k], const uint8_t *);

			/* ARP, or a neighbour advertisement. */
			assert_true((f[12] == 0x08 && f[13] == 0x06) || f[54] == 136);
			rte_pktmbuf_free(m[k]);
		}
		sum += n;
		nanosleep(&tick, NULL);
	}
	return sum;
}

static uint64_t
counted(enum urn_counter id)
{
	struct urn_counters c;

	urn_dp_counters(dp, 0, &c);
	return c.v[id];
}

static void
test_up_at_once(void **state)
{
	(void)state;
	make_dp();
	assert_int_equal(frames(50), 2); /* link-local and IPv4; there is no other IPv6 address */
	assert_int_equal(counted(URN_C_TX_PACKETS), 2);
}

static void
test_up_later(void **state)
{
	(void)state;
	plug(false);
	make_dp();
	/* Longer than a port may be stuck before frames are lost. */
	assert_int_equal(frames(300), 0);
	assert_int_equal(counted(URN_C_DROP_TX), 0);
	plug(true);
	assert_int_equal(frames(100), 2);
	plug(false);
	assert_int_equal(frames(50), 0);
	plug(true);
	assert_int_equal(frames(100), 2);
	assert_int_equal(counted(URN_C_DROP_TX), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_up_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_up_later, setup, teardown),
	};

	return cmocka_run_group_tests_name("carrier", tests, setup_eal, teardown_eal);
}
