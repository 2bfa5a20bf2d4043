/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/pmd_glue/harness.h"
#include "pmd_glue/family.h"
#include "pmd_glue/mtu.h"
#include "pmd_glue/pool.h"

#include <stdio.h>
#include <string.h>

static void
refused(const struct urn_port_config *cfg, const char *word)
{
	struct urn_err err = {""};

	check(urn_port_open(cfg, &err) == NULL);
	check_says(&err, "port p0");
	check_says(&err, word);
}

static void
refused_device(const char *device, const char *word)
{
	struct urn_port_config cfg = port_cfg("p0", device);

	refused(&cfg, word);
}

/* Errors are sentences that name the port and the mistake. */
static void
errors(void *arg)
{
	struct urn_port_config cfg = port_cfg("p0", "net_null0");
	struct urn_err err = {""};
	struct urn_port *port;

	(void)arg;
	refused(&cfg, "not running");
	eal_up();
	refused_device("", "no such kind of device");
	refused_device("eth0", "no such kind of device");
	refused_device("net_", "no such kind of device");
	refused_device("net_null0,shape=round", "shape");
	refused_device("net_null0,size", "key=value");
	refused_device("net_null0,", "key=value");
	refused_device("ffff:ff:1f.7", "no such PCI device");
	refused_device("ff:1f.7", "no such PCI device");
	cfg.roce_mtu = 1500;
	refused(&cfg, "path MTU of 1500");
	cfg.roce_mtu = 0;
	cfg.queues = 1000;
	refused(&cfg, "1000 queues");
	cfg.queues = 1;
	cfg.mbufs = UINT32_MAX;
	refused(&cfg, "packets");
	cfg.mbufs = 0;
	cfg.mac[0] = 1;
	refused(&cfg, "multicast");
	cfg.mac[0] = 0;
	memset(cfg.name, 'x', sizeof(cfg.name));
	check(urn_port_open(&cfg, &err) == NULL);
	check_says(&err, "needs a name");
	snprintf(cfg.name, sizeof(cfg.name), "p0");
	memset(cfg.device, 'x', sizeof(cfg.device));
	check(urn_port_open(&cfg, &err) == NULL);
	check_says(&err, "p0");
	/* A second open of a device fails; it succeeds when the device is free again. */
	cfg = port_cfg("p1", "net_null0");
	port = port_up(&cfg);
	refused_device("net_null0", "in use by another port");
	urn_port_close(port);
	urn_port_close(port_up(&cfg));
	urn_port_close(NULL);
}

/* The port grants as much of a request as it can. */
static void
grants(void *arg)
{
	struct urn_port_config cfg = port_cfg("p0", "net_pcap0,tx_pcap=/dev/null");
	struct urn_port *port;
	uint8_t mac[6] = {0x02, 1, 2, 3, 4, 5};

	(void)arg;
	eal_up();
	/* One file, one queue. */
	cfg.queues = 4;
	cfg.roce_mtu = 512;
	port = port_up(&cfg);
	check(port->caps.queues == 1 && port->caps.roce_mtu == 512);
	check(!port->caps.flow && !port->caps.rss && !port->caps.tx_ip_csum);
	urn_port_close(port);
	cfg = port_cfg("p0", "net_null0");
	cfg.queues = 4;
	cfg.mbufs = 999;
	cfg.rx_desc = 128;
	memcpy(cfg.mac, mac, 6);
	port = port_up(&cfg);
	check(port->caps.queues == 4 && !port->caps.rss);
	check(port->pool->size == 999 && port->cfg.rx_desc == 128 && port->cfg.tx_desc == 1024);
	check(memcmp(port->mac, mac, 6) == 0);
	urn_port_close(port);
	/* No queues asked for: one. */
	cfg.queues = 0;
	port = port_up(&cfg);
	check(port->caps.queues == 1);
	urn_port_close(port);
}

/* Sent packets stay in the rings of the adapter's other port too, after a move away from it. */
static void
pool_sizes(void *arg)
{
	struct urn_port_config cfg = port_cfg("p0", "net_null0");
	struct urn_port_config card = port_cfg("p1", "0000:ff:1f.7");
	struct urn_port *port;

	(void)arg;
	card.queues = 4;
	check(urn_port_mbufs(&card) == 16383); /* 2048 and 4 times 1024 and 1024 */
	card.queues = 3;
	check(urn_port_mbufs(&card) == 8191);
	card.other_tx_desc = urn_port_tx_desc(&card);
	check(card.other_tx_desc == 1024 && urn_port_mbufs(&card) == 16383);
	card.rx_desc = card.tx_desc = 128;
	check(urn_port_tx_desc(&card) == 128 && urn_port_mbufs(&card) == 8191);
	eal_up();
	cfg.queues = 2;
	for (unsigned int i = 0; i < 2; i++) {
		port = port_up(&cfg);
		check(port->pool->size == (i == 0 ? 4095 : 8191));
		check(port->pool->size == urn_port_mbufs(&cfg));
		urn_port_close(port);
		cfg.other_tx_desc = 1024;
	}
}

/* A stopped port moves no frames and reports it; a restarted one moves them. */
static void
stops(void *arg)
{
	struct urn_port_config cfg = port_cfg("p0", "net_null0");
	struct urn_err err = {""};
	struct urn_port *port;
	struct rte_mbuf *m;

	(void)arg;
	eal_up();
	port = port_up(&cfg);
	check(port->link_up && urn_port_poll_link(port) == 0);
	check_ok(urn_port_stop(port, &err), &err);
	check_ok(urn_port_stop(port, &err), &err);
	check(urn_port_poll_link(port) == 1 && !port->link_up);
	m = frame_make(port, 100, 1);
	check(urn_port_tx(port, 0, &m, 1) == 0);
	check_ok(urn_port_start(port, &err), &err);
	check_ok(urn_port_start(port, &err), &err);
	check(urn_port_tx(port, 0, &m, 1) == 1);
	check(urn_port_poll_link(port) == 1 && port->link_up);
	urn_port_close(port);
	check(urn_pool_count() == 0);
}

/* The program exits while ports are open: no crash, nothing left. */
static void
exits_open(void *arg)
{
	struct urn_port_config cfg = port_cfg("p0", "net_null0");
	static struct urn_port *port; /* not a leak: still in use at exit */

	(void)arg;
	eal_up();
	port = port_up(&cfg);
	urn_eal_stop();
	frame_send(port, 0, frame_make(port, 100, 1));
}

CHILD_TEST(errors)
CHILD_TEST(grants)
CHILD_TEST(pool_sizes)
CHILD_TEST(stops)
CHILD_TEST(exits_open)

/* Lengths that fit an Ethernet MTU: 4 KiB with all headers of an active message in one packet,
 * where the port carries that; no more than a path MTU that was asked for. */
static void
test_lengths(void **state)
{
	static const uint16_t row[][4] = {
		/* MTU, path MTU of the port, path MTU in use, flow */
		{1500, 1024, 1024, 1420}, {1500, 1024, 512, 512},   {4200, 4096, 4096, 4120},
		{4392, 4096, 4096, 4312}, {4392, 4096, 1024, 1024}, {4187, 2048, 2048, 4104},
		{348, 256, 256, 268},
	};

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(row); i++) {
		assert_int_equal(urn_port_roce_mtu(row[i][0]), row[i][1]);
		assert_int_equal(urn_port_flow_mtu(row[i][0], row[i][2]), row[i][3]);
	}
	assert_int_equal(urn_port_roce_mtu(347), 0);
	assert_true(URN_PORT_MTU_MAX >= 4096 + 24 + 64 + 32 + URN_PORT_FLOW_HEADERS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errors),	   cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_grants),	   cmocka_unit_test(test_stops),
		cmocka_unit_test(test_exits_open), cmocka_unit_test(test_pool_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
