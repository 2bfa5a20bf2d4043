/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/pmd_glue/harness.h"

#include <string.h>

/* doc/reference/ports.md "Ports, one by one": drops frames of the largest RoCE MTU, and makes none up. */
static void
null_swallows(void *arg)
{
	struct urn_port_config cfg = port_cfg("n0", "net_null0");
	struct urn_port *port;
	struct rte_mbuf *m[4];
	unsigned int i;

	(void)arg;
	eal_up();
	cfg.queues = 2;
	port = port_up(&cfg);
	check(port->caps.queues == 2);
	check(port->caps.roce_mtu == 4096);
	check(port->caps.memory && port->link_up);
	check(port->mac[0] != 0 && (port->mac[0] & 1) == 0);
	for (i = 0; i < 100; i++) {
		check(urn_port_rx(port, 0, m, 4) == 0);
		frame_send(port, i & 1, frame_make(port, frame_len(port), i));
	}
	check(rte_mempool_in_use_count(port->pool) == 0);
	urn_port_close(port);
}

/* The user's arguments override the family's: frames made up on request. */
static void
null_user_args(void *arg)
{
	struct urn_port_config cfg = port_cfg("n0", "net_null0,size=128,no-rx=0");
	struct urn_port *port;
	struct rte_mbuf *m;

	(void)arg;
	eal_up();
	port = port_up(&cfg);
	check(urn_port_rx(port, 0, &m, 1) == 1);
	check(m->pkt_len == 128);
	rte_pktmbuf_free(m);
	urn_port_close(port);
}

CHILD_TEST(null_swallows)
CHILD_TEST(null_user_args)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_null_swallows),
		cmocka_unit_test(test_null_user_args),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
