/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/pmd_glue/harness.h"
#include "test/unit/pmd_glue/netns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES 20u

static char dir[] = "/tmp/urn-pcap-XXXXXX";

static void
refused(const char *device, const char *word)
{
	struct urn_port_config cfg = port_cfg("c9", device);
	struct urn_err err = {""};

	check(urn_port_open(&cfg, &err) == NULL);
	check_says(&err, "port c9 (net_pcap9)");
	check_says(&err, word);
}

/* Frames of the largest RoCE MTU are written to a file, and read from it. */
static void
file_both_ways(void *arg)
{
	struct urn_port_config cfg = port_cfg("c0", "");
	struct urn_port *port;
	struct rte_mbuf *m;
	uint8_t mac[6];
	uint32_t i;

	(void)arg;
	eal_up();
	snprintf(cfg.device, sizeof(cfg.device), "net_pcap0,tx_pcap=%s/f", dir);
	port = port_up(&cfg);
	memcpy(mac, port->mac, 6);
	check(port->caps.roce_mtu == 4096);
	for (i = 0; i < FRAMES; i++)
		frame_send(port, 0, frame_make(port, i & 1 ? frame_len(port) : 60, i));
	check(urn_port_rx(port, 0, &m, 1) == 0);
	urn_port_close(port);

	snprintf(cfg.device, sizeof(cfg.device), "net_pcap0,rx_pcap=%s/f", dir);
	memcpy(cfg.mac, mac, 6);
	port = port_up(&cfg);
	check(memcmp(port->mac, mac, 6) == 0);
	for (i = 0; i < FRAMES; i++) {
		check(urn_port_rx(port, 0, &m, 1) == 1);
		check(frame_is(m, port, i & 1 ? frame_len(port) : 60, i));
		rte_pktmbuf_free(m);
	}
	check(urn_port_rx(port, 0, &m, 1) == 0);
	frame_send(port, 0, frame_make(port, 100, 1));
	urn_port_close(port);
	snprintf(cfg.device, sizeof(cfg.device), "%s/f", dir);
	check(remove(cfg.device) == 0);
}

static void
errors(void *arg)
{
	char device[256];

	(void)arg;
	eal_up();
	refused("net_pcap9", "rx_pcap=");
	refused("net_pcap9,rx_pcap=/nowhere/file", "cannot read /nowhere/file");
	refused("net_pcap9,tx_pcap=/nowhere/file", "cannot write /nowhere/file");
	refused("net_pcap9,iface=urnx", "no network interface urnx");
	refused("net_pcap9,file=x", "\"file=x\"");
	/* A file that is no capture: the driver's own reason is passed on. */
	snprintf(device, sizeof(device), "net_pcap9,rx_pcap=/bin/sh");
	refused(device, "its driver says");
}

/* Through libpcap on an interface. */
static void
veth_both_ways(void *arg)
{
	struct urn_port_config cfg = port_cfg("c0", "net_pcap0,iface=urnv0");
	struct urn_port *port;
	uint8_t frame[2048];
	uint32_t i, len;
	int fd;

	(void)arg;
	netns_enter();
	netns_veth(1500);
	eal_up();
	port = port_up(&cfg);
	check(port->caps.roce_mtu == 1024);
	len = frame_len(port);
	fd = packet_open("urnv1");
	for (i = 0; i < 10; i++) {
		frame_send(port, 0, frame_make(port, len, i));
		packet_expect(fd, port->mac, len, i);
		frame_fill(frame, port->mac, len, i + 100);
		packet_send(fd, frame, len);
		frame_expect(port, 0, port, len, i + 100);
	}
	close(fd);
	urn_port_close(port);
}

CHILD_TEST(file_both_ways)
CHILD_TEST(errors)
ROOT_TEST(veth_both_ways)

static int
setup(void **state)
{
	(void)state;
	return mkdtemp(dir) == NULL;
}

static int
teardown(void **state)
{
	(void)state;
	return remove(dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file_both_ways),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_veth_both_ways),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
