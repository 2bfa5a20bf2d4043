/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/pmd_glue/harness.h"
#include "test/unit/pmd_glue/netns.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* True when this kernel has AF_XDP. */
static bool
kernel_has_xdp(void)
{
	int fd = socket(AF_XDP, SOCK_RAW, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0 || errno != EAFNOSUPPORT;
}

static void
refused(const char *device, const char *word)
{
	struct urn_port_config cfg = port_cfg("x9", device);
	struct urn_err err = {""};

	check(urn_port_open(&cfg, &err) == NULL);
	check_says(&err, "port x9 (net_af_xdp9)");
	check_says(&err, word);
}

/*
 * doc/reference/ports.md "Ports, one by one": a RoCE MTU of 2048 over veth, both ways; without AF_XDP
 * in the kernel, an error says so.
 */
static void
veth_both_ways(void *arg)
{
	struct urn_port_config cfg[2] = {port_cfg("x0", "net_af_xdp0,iface=urnv0"),
					 port_cfg("x1", "net_af_xdp1,iface=urnv1")};
	struct urn_port *p[2];

	(void)arg;
	netns_enter();
	netns_veth(3300);
	eal_up();
	if (!kernel_has_xdp()) {
		refused("net_af_xdp9,iface=urnv0", "no AF_XDP");
		return;
	}
	p[0] = port_up(&cfg[0]);
	p[1] = port_up(&cfg[1]);
	check(p[0]->caps.roce_mtu == 2048 && p[0]->caps.mtu == 3300);
	check(!p[0]->caps.link_interrupt && !p[0]->caps.memory);
	frames_cross(p[0], p[1], 0, frame_len(p[0]));
	frames_cross(p[1], p[0], 0, frame_len(p[1]));
	frames_cross(p[0], p[1], 0, 14 + 3300);
	frames_cross(p[1], p[0], 0, 60);
	/* The PMD would have changed the MTU. */
	run("ip link show urnv0 | grep -q 'mtu 3300'");
	refused("net_af_xdp9,iface=urnv0", "used by another XDP program");
	link_wait(p[0]);
	run("ip link set urnv1 down");
	link_down_wait(p[0]);
	urn_port_close(p[0]);
	urn_port_close(p[1]);
}

static void
veth_errors(void *arg)
{
	(void)arg;
	netns_enter();
	netns_veth(1500);
	eal_up();
	refused("net_af_xdp9", "iface=");
	refused("net_af_xdp9,iface=urnx", "no network interface urnx");
	refused("net_af_xdp9,iface=urnv0,turbo=1", "turbo");
	if (kernel_has_xdp())
		refused("net_af_xdp9,iface=urnv0,queue_count=5", "fewer queues");
}

static void
no_right(void *arg)
{
	(void)arg;
	become_user();
	eal_up();
	refused("net_af_xdp9,iface=lo", kernel_has_xdp() ? "CAP_NET_RAW" : "no AF_XDP");
}

ROOT_TEST(veth_both_ways)
ROOT_TEST(veth_errors)
CHILD_TEST(no_right)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_veth_both_ways),
		cmocka_unit_test(test_veth_errors),
		cmocka_unit_test(test_no_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
