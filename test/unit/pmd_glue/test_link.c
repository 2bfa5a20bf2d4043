/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver is asked for the link by looks alone; others read what a look noted. */
#include "test/unit/pmd_glue/harness.h"

#include "pmd_glue/bond.h"
#include "pmd_glue/plug.h"

#include <errno.h>
#include <string.h>

static struct {
	unsigned int asked; /* times */
	uint32_t speed;	    /* Mbit/s that the driver says */
	int ret;
} driver = {.speed = RTE_ETH_SPEED_NUM_25G};

int __wrap_rte_eth_link_get_nowait(uint16_t id, struct rte_eth_link *link);

int
__wrap_rte_eth_link_get_nowait(uint16_t id, struct rte_eth_link *link)
{
	(void)id;
	driver.asked++;
	link->link_speed = driver.speed;
	link->link_status = RTE_ETH_LINK_UP;
	return driver.ret;
}

#define GBIT 1000000000ull

static void
noted(void *arg)
{
	struct urn_port_config cfg = port_cfg("p0", "net_null0");
	struct urn_port *port;
	unsigned int before;

	(void)arg;
	eal_up();
	port = port_up(&cfg);
	before = driver.asked;
	driver.speed = RTE_ETH_SPEED_NUM_10G;
	check(urn_port_speed(port) == 25 * GBIT && driver.asked == before);
	check(urn_port_poll_link(port) == 0 && driver.asked == before + 1);
	check(urn_port_speed(port) == 10 * GBIT);
	driver.speed = RTE_ETH_SPEED_NUM_UNKNOWN;
	check(urn_port_poll_link(port) == 0 && urn_port_speed(port) == 0);
	driver.speed = RTE_ETH_SPEED_NUM_1G;
	driver.ret = -EIO; /* nothing is known then */
	check(urn_port_poll_link(port) == 1 && !port->link_up && urn_port_speed(port) == 0);
	urn_port_close(port);
}

/* A bond has the speed of the member in use, also of one whose family knows the link itself. */
static void
of_two(void *arg)
{
	struct urn_port *near[2], *far[2], *bond;
	struct urn_err err = {""};
	unsigned int before;

	(void)arg;
	eal_up();
	for (unsigned int i = 0; i < 2; i++) {
		struct urn_port_config cfg[2] = {port_cfg(i ? "a1" : "a0", ""),
						 port_cfg(i ? "b1" : "b0", "")};
		struct urn_port *p[2];

		memset(cfg[0].mac, 2, 6);
		check_ok(urn_port_open_ring_pair(cfg, p, &err), &err);
		near[i] = p[0];
		far[i] = p[1];
	}
	bond = urn_bond_create(near, 0, &err);
	check_ok(bond ? 0 : -1, &err);
	driver.speed = RTE_ETH_SPEED_NUM_10G;
	(void)urn_port_poll_link(near[1]);
	before = driver.asked;
	check(urn_port_speed(bond) == 25 * GBIT);
	check_ok(urn_port_plug(near[0], URN_PORT_FAILED, &err), &err);
	check(urn_port_speed(bond) == 10 * GBIT && driver.asked == before);
	urn_bond_destroy(bond);
	for (unsigned int i = 0; i < 2; i++) {
		urn_port_close(near[i]);
		urn_port_close(far[i]);
	}
}

CHILD_TEST(noted)
CHILD_TEST(of_two)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_noted),
		cmocka_unit_test(test_of_two),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
