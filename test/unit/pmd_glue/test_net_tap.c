/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/pmd_glue/harness.h"
#include "test/unit/pmd_glue/netns.h"

#include <string.h>
#include <unistd.h>

static const uint8_t kernel_mac[6] = {0x02, 0, 0, 0, 0, 1};

static void
refused(const char *device, const char *word)
{
	struct urn_port_config cfg = port_cfg("t9", device);
	struct urn_err err = {""};

	check(urn_port_open(&cfg, &err) == NULL);
	check_says(&err, "port t9 (net_tap9)");
	check_says(&err, word);
}

/* doc/reference/ports.md: a RoCE MTU of 1024, both ways between the port and the kernel. */
static void
tap_both_ways(void *arg)
{
	struct urn_port_config cfg = port_cfg("t0", "net_tap0,iface=urnt0");
	struct rte_mbuf *m;
	struct urn_port *port;
	uint8_t frame[1600];
	uint32_t i, len;
	int fd;

	(void)arg;
	netns_enter();
	eal_up();
	port = port_up(&cfg);
	check(port->caps.roce_mtu == 1024 && port->caps.mtu == 1500);
	check(port->caps.link_interrupt && port->caps.rx_interrupt && !port->caps.memory);
	fd = packet_open("urnt0");
	for (i = 0; i < 50; i++) {
		len = i & 1 ? frame_len(port) : 1514;
		frame_send(port, 0, frame_make(port, len, i));
		packet_expect(fd, port->mac, len, i);
		frame_fill(frame, port->mac, len, i + 1000);
		packet_send(fd, frame, len);
		frame_expect(port, 0, port, len, i + 1000);
	}
	/* A cut of the kernel's side shows at the port, by interrupt. */
	link_wait(port);
	run("ip link set urnt0 down");
	link_down_wait(port);
	run("ip link set urnt0 up");
	link_wait(port);
	m = frame_make(port, 100, 1);
	frame_send(port, 0, m);
	packet_expect(fd, port->mac, 100, 1);
	close(fd);
	refused("net_tap9,iface=urnt0", "urnt0");
	refused("net_tap9,nodev=1", "nodev");
	urn_port_close(port);
	check(access("/sys/class/net/urnt0", F_OK) != 0);
}

/* The kernel keeps the device's MAC; the port's is another, and a given one is used. */
static void
tap_mac(void *arg)
{
	struct urn_port_config cfg = port_cfg("t0", "net_tap0,iface=urnt0,mac=02:00:00:00:00:01");
	struct urn_port *port;

	(void)arg;
	netns_enter();
	eal_up();
	port = port_up(&cfg);
	check(memcmp(port->mac, kernel_mac, 6) != 0 && (port->mac[0] & 3) == 2);
	run("ip link show urnt0 | grep -q 02:00:00:00:00:01");
	urn_port_close(port);
	memset(cfg.mac, 0x0a, 6);
	port = port_up(&cfg);
	check(memcmp(port->mac, cfg.mac, 6) == 0);
	run("ip link show urnt0 | grep -q 02:00:00:00:00:01");
	urn_port_close(port);
}

static void
tap_no_right(void *arg)
{
	(void)arg;
	become_user();
	eal_up();
	refused("net_tap9",
		access("/dev/net/tun", R_OK | W_OK) == 0 ? "CAP_NET_ADMIN" : "/dev/net/tun");
}

ROOT_TEST(tap_both_ways)
ROOT_TEST(tap_mac)
CHILD_TEST(tap_no_right)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tap_both_ways),
		cmocka_unit_test(test_tap_mac),
		cmocka_unit_test(test_tap_no_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
