/* SPDX-License-Identifier: BSD-3-Clause */
/* A port's packets lie on the NUMA node of the device behind it, also where that is another port's. */
#include "test/unit/pmd_glue/harness.h"
#include "test/unit/pmd_glue/netns.h"
#include "pmd_glue/numa.h"

#include <stdio.h>
#include <string.h>

static char asked[64];
static int mapped_on = -1;

int __wrap_urn_numa_of_device(const char *name);
void *__real_urn_numa_map(size_t bytes, int node, size_t *mapped);
void *__wrap_urn_numa_map(size_t bytes, int node, size_t *mapped);

int
__wrap_urn_numa_of_device(const char *name)
{
	snprintf(asked, sizeof(asked), "%s", name);
	return 3;
}

void *
__wrap_urn_numa_map(size_t bytes, int node, size_t *mapped)
{
	mapped_on = node;
	return __real_urn_numa_map(bytes, 0, mapped);
}

static void
node_of(const char *device, const char *behind, int node)
{
	struct urn_port_config cfg = port_cfg("p", device);
	struct urn_port *port;

	asked[0] = '\0';
	mapped_on = -1;
	port = port_up(&cfg);
	check(strcmp(asked, behind) == 0);
	check(port->caps.socket == node && mapped_on == node);
	urn_port_close(port);
}

static void
memory_has_none(void *arg)
{
	(void)arg;
	eal_up();
	node_of("net_null0", "", 0);
	node_of("net_pcap0,tx_pcap=/dev/null", "", 0);
}

static void
follows_interface(void *arg)
{
	(void)arg;
	netns_enter();
	netns_veth(1500);
	eal_up();
	node_of("net_af_packet0,iface=urnv0", "urnv0", 3);
	node_of("net_pcap0,iface=urnv1", "urnv1", 3);
}

CHILD_TEST(memory_has_none)
ROOT_TEST(follows_interface)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_has_none),
		cmocka_unit_test(test_follows_interface),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
