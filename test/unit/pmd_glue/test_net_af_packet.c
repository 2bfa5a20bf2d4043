/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/pmd_glue/harness.h"
#include "test/unit/pmd_glue/netns.h"

#include <linux/capability.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static void
refused(const char *device, const char *word)
{
	struct urn_port_config cfg = port_cfg("a9", device);
	struct urn_err err = {""};

	check(urn_port_open(&cfg, &err) == NULL);
	check_says(&err, "port a9 (net_af_packet9)");
	check_says(&err, word);
}

static struct urn_port *
end_open(const char *name, const char *device, uint16_t queues)
{
	struct urn_port_config cfg = port_cfg(name, device);

	cfg.queues = queues;
	return port_up(&cfg);
}

/* doc/reference/ports.md: a RoCE MTU of 4096 where the interface's MTU allows, both ways. */
static void
veth_both_ways(void *arg)
{
	struct urn_port *p[2];
	uint8_t frame[5000];
	int fd;

	(void)arg;
	netns_enter();
	netns_veth(4200);
	eal_up();
	p[0] = end_open("a0", "net_af_packet0,iface=urnv0", 1);
	p[1] = end_open("a1", "net_af_packet1,iface=urnv1", 1);
	check(p[0]->caps.roce_mtu == 4096 && p[0]->caps.mtu == 4200);
	check(!p[0]->caps.link_interrupt && !p[0]->caps.rx_interrupt && !p[0]->caps.memory);
	frames_cross(p[0], p[1], 0, frame_len(p[0]));
	frames_cross(p[1], p[0], 0, frame_len(p[1]));
	frames_cross(p[0], p[1], 0, 14 + 4200);
	frames_cross(p[1], p[0], 0, 60);
	/* A frame larger than a slot comes over the interface: it is none of ours, and does no harm. */
	run("ip link set urnv0 mtu 9000 && ip link set urnv1 mtu 9000");
	memset(frame, 0x55, sizeof(frame));
	fd = packet_open("urnv1");
	packet_send(fd, frame, sizeof(frame));
	close(fd);
	frames_cross(p[1], p[0], 0, 300);
	urn_port_close(p[0]);
	urn_port_close(p[1]);
}

/* The path MTU follows the interface; the device's own arguments stay the user's. */
static void
veth_small_mtu(void *arg)
{
	struct urn_port *p[2];

	(void)arg;
	netns_enter();
	netns_veth(1500);
	eal_up();
	p[0] = end_open("a0", "net_af_packet0,iface=urnv0", 2);
	p[1] = end_open("a1", "net_af_packet1,iface=urnv1,framesz=8192,blocksz=65536,framecnt=64",
			2);
	check(p[0]->caps.roce_mtu == 1024 && p[1]->caps.roce_mtu == 1024);
	check(p[0]->caps.queues == 2 && p[1]->caps.queues == 2);
	check(p[1]->room >= 8192);
	/* The kernel spreads frames over the queues by a hash that changes with each boot. */
	frames_cross(p[0], p[1], ANY_QUEUE, frame_len(p[0]));
	urn_port_close(p[0]);
	urn_port_close(p[1]);
}

/* doc/reference/ports.md: no link interrupt; the link is polled, and its state is true (the PMD says "up" always). */
static void
veth_link(void *arg)
{
	struct urn_port *port;

	(void)arg;
	netns_enter();
	netns_veth(1500);
	eal_up();
	port = end_open("a0", "net_af_packet0,iface=urnv0", 1);
	link_wait(port);
	run("ip link set urnv1 down");
	link_down_wait(port);
	run("ip link set urnv1 up");
	link_wait(port);
	urn_port_close(port);
}

static void
veth_errors(void *arg)
{
	(void)arg;
	netns_enter();
	netns_veth(1500);
	eal_up();
	refused("net_af_packet9", "iface=");
	refused("net_af_packet9,iface=urnx", "no network interface urnx");
	refused("net_af_packet9,iface=urnv0,speed=10", "speed");
	refused("net_af_packet9,iface=urnv0,framesz=100", "its driver says");
	run("ip link set urnv0 mtu 300");
	refused("net_af_packet9,iface=urnv0", "MTU of 300");
}

/*
 * The PMD numbers a fanout group by process and interface. When another program's group on
 * another interface has the number, the port's error gives advice; without that group the
 * port comes up.
 */
static void
group_taken(void *arg)
{
	uint32_t group, kind = PACKET_FANOUT_HASH | PACKET_FANOUT_FLAG_DEFRAG;
	int fd;

	(void)arg;
	netns_enter();
	netns_veth(1500);
	eal_up();
	group = ((uint32_t)getpid() ^ if_nametoindex("urnv0")) & 0xffffu;
	group |= kind << 16;
	fd = packet_open("urnv1");
	check(setsockopt(fd, SOL_PACKET, PACKET_FANOUT, &group, sizeof(group)) == 0);
	refused("net_af_packet9,iface=urnv0", "is taken by another process with another interface");
	refused("net_af_packet9,iface=urnv0", "start this program again");
	close(fd);
	urn_port_close(end_open("a0", "net_af_packet0,iface=urnv0", 1));
}

static void
no_right(void *arg)
{
	(void)arg;
	become_user();
	eal_up();
	refused("net_af_packet9,iface=lo", "CAP_NET_RAW");
	refused("net_af_packet9,iface=lo", "CAP_NET_ADMIN");
}

/* Become an ordinary user with these capabilities and no other. */
static void
user_with(uint64_t caps)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	check(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0);
	become_user();
	memset(data, 0, sizeof(data));
	data[0].effective = data[0].permitted = (uint32_t)caps;
	check(syscall(SYS_capset, &head, data) == 0);
}

/* doc/reference/ports.md: CAP_NET_RAW alone is too little, and so is CAP_NET_ADMIN alone; the two are enough. */
static void
raw_alone(void *arg)
{
	(void)arg;
	netns_enter();
	netns_veth(1500);
	user_with(1u << CAP_NET_RAW);
	eal_up();
	refused("net_af_packet9,iface=urnv0", "CAP_NET_ADMIN");
}

static void
admin_alone(void *arg)
{
	(void)arg;
	netns_enter();
	netns_veth(1500);
	user_with(1u << CAP_NET_ADMIN);
	eal_up();
	refused("net_af_packet9,iface=urnv0", "CAP_NET_RAW");
}

static void
raw_and_admin(void *arg)
{
	struct urn_port *p[2];

	(void)arg;
	netns_enter();
	netns_veth(1500);
	user_with(1u << CAP_NET_RAW | 1u << CAP_NET_ADMIN);
	eal_up();
	p[0] = end_open("a0", "net_af_packet0,iface=urnv0", 1);
	p[1] = end_open("a1", "net_af_packet1,iface=urnv1", 1);
	frames_cross(p[0], p[1], 0, 300);
	urn_port_close(p[0]);
	urn_port_close(p[1]);
}

ROOT_TEST(veth_both_ways)
ROOT_TEST(veth_small_mtu)
ROOT_TEST(veth_link)
ROOT_TEST(veth_errors)
ROOT_TEST(raw_alone)
ROOT_TEST(admin_alone)
ROOT_TEST(raw_and_admin)
ROOT_TEST(group_taken)
CHILD_TEST(no_right)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_veth_both_ways), cmocka_unit_test(test_veth_small_mtu),
		cmocka_unit_test(test_veth_link),      cmocka_unit_test(test_veth_errors),
		cmocka_unit_test(test_no_right),       cmocka_unit_test(test_raw_alone),
		cmocka_unit_test(test_admin_alone),    cmocka_unit_test(test_raw_and_admin),
		cmocka_unit_test(test_group_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
