/* SPDX-License-Identifier: BSD-3-Clause */
/* Every family: two ports at once, closed in either order, and opened again, in one process. */
#include "test/unit/pmd_glue/harness.h"
#include "test/unit/pmd_glue/netns.h"
#include "pmd_glue/pool.h"

#include <errno.h>
#include <rte_ethdev.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

/* Up, used, down: three times, in both orders. */
static void
again(const char *first, const char *second)
{
	struct urn_port_config cfg[2] = {port_cfg("a", first), port_cfg("b", second)};
	struct urn_err err = {""};
	unsigned int i, k;

	for (i = 0; i < 3; i++) {
		struct urn_port *p[2] = {port_up(&cfg[0]), port_up(&cfg[1])};

		check(p[0]->id != p[1]->id && p[0]->pool != p[1]->pool);
		check(urn_port_open(&cfg[0], &err) == NULL);
		check_says(&err, "port a");
		for (k = 0; k < 2; k++) {
			check_ok(urn_port_stop(p[k], &err), &err);
			check_ok(urn_port_start(p[k], &err), &err);
		}
		urn_port_close(p[i & 1]);
		urn_port_poll_link(p[!(i & 1)]);
		urn_port_close(p[!(i & 1)]);
		check(urn_pool_count() == 0 && rte_eth_dev_count_avail() == 0);
	}
}

static void
unprivileged(void *arg)
{
	char dir[] = "/tmp/urn-again-XXXXXX", a[128], b[128];

	(void)arg;
	eal_up();
	again("net_null0", "net_null1");
	again("net_pcap0,tx_pcap=/dev/null", "net_pcap1,tx_pcap=/dev/null");
	check(mkdtemp(dir) != NULL);
	snprintf(a, sizeof(a), "net_memif0,role=server,socket=%s/s", dir);
	snprintf(b, sizeof(b), "net_memif1,role=client,socket=%s/none", dir);
	again(a, b);
	snprintf(b, sizeof(b), "net_memif1,role=server,id=1,socket=%s/s", dir);
	again(a, b);
	check(rmdir(dir) == 0);
}

static void
privileged(void *arg)
{
	int fd;

	(void)arg;
	netns_enter();
	netns_veth(1500);
	eal_up();
	again("net_tap0,iface=urnt0", "net_tap1,iface=urnt1");
	again("net_af_packet0,iface=urnv0", "net_af_packet1,iface=urnv1");
	again("net_pcap0,iface=urnv0", "net_pcap1,iface=urnv1");
	fd = socket(AF_XDP, SOCK_RAW, 0);
	if (fd < 0 && errno == EAFNOSUPPORT)
		return;
	close(fd);
	again("net_af_xdp0,iface=urnv0", "net_af_xdp1,iface=urnv1");
}

CHILD_TEST(unprivileged)
ROOT_TEST(privileged)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unprivileged),
		cmocka_unit_test(test_privileged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
