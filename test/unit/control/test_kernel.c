/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An adapter and the kernel's own network stack, over net_tap: each finds the
 * other's MAC by ARP and neighbour discovery, and the adapter answers to ping.
 */
#include "control/dataplane.h"
#include "counters.h"

#include "test/unit/pmd_glue/harness.h"
#include "test/unit/pmd_glue/netns.h"

#include <arpa/inet.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { ID = 0x1234, DATA = 48, ECHO = 8 + DATA };

/* Ones' complement sum of an even number of bytes. The kernel computes ICMPv6's itself. */
static uint16_t
checksum(const uint8_t *p, unsigned int len)
{
	uint32_t sum = 0;

	for (unsigned int i = 0; i < len; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t) ~(sum + (sum >> 16)));
}

static void
echo_make(uint8_t *p, int v6, uint8_t seq)
{
	uint16_t csum;

	memset(p, 0, ECHO);
	p[0] = v6 ? ICMP6_ECHO_REQUEST : ICMP_ECHO;
	p[4] = ID >> 8;
	p[5] = ID & 0xff;
	p[7] = seq;
	for (unsigned int i = 8; i < ECHO; i++)
		p[i] = (uint8_t)(i * seq);
	csum = v6 ? 0 : checksum(p, ECHO);
	memcpy(p + 2, &csum, 2);
}

/* True when a packet is the answer to that request. IPv4 comes with its header. */
static int
echo_is(const uint8_t *got, ssize_t n, const uint8_t *sent, int v6)
{
	unsigned int ip = v6 ? 0 : 20;

	return n == (ssize_t)(ip + ECHO) && got[ip] == (v6 ? ICMP6_ECHO_REPLY : ICMP_ECHOREPLY) &&
	       memcmp(got + ip + 4, sent + 4, ECHO - 4) == 0;
}

/*
 * Three echoes to an address, while the engine is polled. The kernel has forgotten the
 * MAC each time, so it asks; it gives up after three seconds, which a busy machine may
 * take, so a request is repeated.
 */
static void
ping(struct urn_engine *e, int v6, const struct sockaddr *to, socklen_t len)
{
	int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_RAW, v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP);
	time_t limit = time(NULL) + 30, again;
	uint8_t sent[ECHO], got[2048];

	check(fd >= 0);
	for (uint8_t seq = 1; seq <= 3; seq++) {
		run("ip neigh flush dev urnt0");
		echo_make(sent, v6, seq);
		again = 0;
		do {
			if (time(NULL) > again) {
				check(sendto(fd, sent, ECHO, 0, to, len) == ECHO);
				again = time(NULL) + 4;
			}
			urn_engine_poll(e);
			check(time(NULL) < limit);
		} while (!echo_is(got, recv(fd, got, sizeof(got), MSG_DONTWAIT), sent, v6));
	}
	close(fd);
}

static uint64_t
counter(struct urn_dp *dp, enum urn_counter c)
{
	struct urn_counters all;

	urn_dp_counters(dp, 0, &all);
	return all.v[c];
}

static void
kernel_pings(void *arg)
{
	struct urn_port_config pc = port_cfg("t0", "net_tap0,iface=urnt0");
	struct urn_adapter_config ac = {.node = "a", .engines = 1, .ipv4 = {10, 0, 0, 2}};
	struct urn_dp_config dc = {.engines = 1, .adapters = 1, .adapter = &ac};
	struct sockaddr_in v4 = {.sin_family = AF_INET};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
	struct urn_engine *e;
	struct urn_err err;
	struct urn_dp *dp;

	(void)arg;
	netns_enter();
	eal_up();
	ac.port = port_up(&pc);
	run("ip link set urnt0 up && ip addr add 10.0.0.1/24 dev urnt0");
	check(inet_pton(AF_INET, "10.0.0.2", &v4.sin_addr) == 1);
	check(inet_pton(AF_INET6, "fd00::2", &v6.sin6_addr) == 1);
	memcpy(ac.ipv6, &v6.sin6_addr, 16);
	dp = urn_dp_create(&dc, &err);
	check_ok(dp ? 0 : -1, &err);
	e = urn_dp_engine(dp, 0);
	ping(e, 0, (struct sockaddr *)&v4, sizeof(v4));
	check(counter(dp, URN_C_ECHO_RX) >= 3 && counter(dp, URN_C_ARP_RX) >= 3);
	if (access("/proc/sys/net/ipv6", F_OK) == 0) { /* the kernel has IPv6 */
		run("ip addr add fd00::1/64 dev urnt0 nodad");
		ping(e, 1, (struct sockaddr *)&v6, sizeof(v6));
		check(counter(dp, URN_C_ECHO_RX) >= 6 && counter(dp, URN_C_ND_RX) >= 3);
	}
	check(counter(dp, URN_C_DROP_NEIGH) == 0);
	urn_dp_destroy(dp);
	urn_port_close(ac.port);
}

ROOT_TEST(kernel_pings)

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_kernel_pings)};

	return cmocka_run_group_tests_name("kernel", tests, NULL, NULL);
}
