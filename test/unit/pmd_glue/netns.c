/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/unit/pmd_glue/netns.h"
#include "test/unit/pmd_glue/harness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

void
run(const char *fmt, ...)
{
	char cmd[512];
	va_list ap;
	int ret;

	va_start(ap, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	ret = system(cmd);
	if (ret != 0) {
		fprintf(stderr, "\"%s\" ended with %d\n", cmd, ret);
		exit(1);
	}
}

void
netns_enter(void)
{
	check(unshare(CLONE_NEWNET | CLONE_NEWNS) == 0);
	/* /sys shows the interfaces of the namespace in which it was mounted. */
	check(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	(void)mount("sysfs", "/sys", "sysfs", 0, NULL);
	run("ip link set lo up");
}

void
netns_veth(unsigned int mtu)
{
	/*
	 * net_af_packet's fanout groups are numbered pid ^ index, and processes that start
	 * together have close pids: indexes so far apart don't collide.
	 */
	run("ip link add urnv0 index %u mtu %u type veth peer name urnv1 index %u mtu %u", 0x100u, mtu,
	    0x100u + 0x4000u, mtu);
	run("echo 1 >/proc/sys/net/ipv6/conf/urnv0/disable_ipv6 2>/dev/null || true");
	run("echo 1 >/proc/sys/net/ipv6/conf/urnv1/disable_ipv6 2>/dev/null || true");
	run("ip link set urnv0 up && ip link set urnv1 up");
}

int
packet_open(const char *iface)
{
	struct sockaddr_ll ll = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
	const struct timeval limit = {.tv_sec = 10};
	int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));

	check(fd >= 0);
	ll.sll_ifindex = (int)if_nametoindex(iface);
	check(ll.sll_ifindex > 0);
	check(bind(fd, (struct sockaddr *)&ll, sizeof(ll)) == 0);
	check(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0);
	return fd;
}

void
packet_send(int fd, const void *frame, uint32_t len)
{
	check(send(fd, frame, len, 0) == (ssize_t)len);
}

void
packet_expect(int fd, const uint8_t src[6], uint32_t len, uint32_t seed)
{
	uint8_t got[16384], want[16384];
	ssize_t n;

	frame_fill(want, src, len, seed);
	do {
		n = recv(fd, got, sizeof(got), 0);
		/* The interface was down for a moment: the socket reports it once. */
		check(n >= 0 || errno == ENETDOWN);
	} while (n != (ssize_t)len || memcmp(got, want, len) != 0);
}
