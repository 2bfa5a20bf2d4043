/* SPDX-License-Identifier: BSD-3-Clause */
/* Values that must fit together, and values that must differ. */
#include "config_test.h"

#include <unistd.h>

#define SWITCHED "[switch s]\n[adapter x]\nswitch = s\n"

static void
engines(void **state)
{
	static const struct config_case cases[] = {
		{"[engine 1]\n", "1: [engine 1], and there is no [engine 0]; number them from 0 on "
				 "without a gap\n"},
		{"[engine 0]\n[engine 5]\n[engine 2]\n",
		 "2: [engine 5], and there is no [engine 4]; number them from 0 on without a gap\n"
		 "3: [engine 2], and there is no [engine 1]; number them from 0 on without a "
		 "gap\n"},
		{"[engine 0]\nlcore = 2\n[engine 1]\nlcore = 2\n",
		 "4: lcore = 2 is that of engine 0 already (line 2); give each engine its own, or "
		 "leave lcore out\n"},
		{"[engine 0]\nlcore = 4\n[eal]\ncores = 0-3\n",
		 "2: lcore = 4 is not among the cores of [eal] (line 4); add it there, or choose "
		 "one "
		 "of those\n"},
	};
	struct urn_config *c = config_good("[engine 0]\nlcore = 3\n[engine 1]\n[engine 2]\n[eal]\n"
					   "cores = 3\n" CONFIG_REST);

	(void)state;
	assert_int_equal(c->engines, 3);
	urn_config_free(c);
	config_cases(cases, RTE_DIM(cases));
}

static void
ports(void **state)
{
	static const struct config_case cases[] = {
		{"[port p]\n[adapter x]\nport = p\n",
		 "1: port p has no device; give one, such as device = net_tap0,iface=urn0\n"},
		{"[port p]\ndevice = net_null0\n",
		 "1: port p is used by nobody; give an adapter port = p or a switch ports = p, or "
		 "leave it out\n"},
		{"[port p]\ndevice = net_null9,size=64\n[adapter x]\nport = p\n",
		 "6: device net_null9 is that of port p already (line 2); give each port its "
		 "own\n"},
		{"[port p]\ndevice = net_memif0,role=server,socket=/s\n"
		 "[port q]\ndevice = net_memif1,role=master,socket=/s,id=0x0\n"
		 "[port r]\ndevice = net_memif2,socket=/s\n"
		 "[port s]\ndevice = net_memif3,role=server,socket=/s,id=1\n"
		 "[port t]\ndevice = net_memif4,role=server,socket=/t\n"
		 "[port u]\ndevice = net_memif5,role=client,socket=/s\n"
		 "[adapter a]\nport = p\n[adapter b]\nport = q\n[adapter c]\nport = r\n"
		 "[adapter d]\nport = s\n[adapter e]\nport = t\n[adapter f]\nport = u\n",
		 "4: port p has role=server of the socket /s with id=0x0 already (line 2); give "
		 "one "
		 "of the two another role, id or socket\n"
		 "12: port r has role=client of the socket /s with id=0 already (line 6); give one "
		 "of the two another role, id or socket\n"},
		{"[port p]\ndevice = 3b:00.0\n[port q]\ndevice = 0000:3B:00.0\n"
		 "[adapter x]\nport = p\n[adapter y]\nport = q\n",
		 "4: device 0000:3b:00.0 is that of port p already (line 2); give each port its "
		 "own\n"},
	};

	(void)state;
	config_cases(cases, RTE_DIM(cases));
}

/* Ring ports count, too. */
static void
too_many_ports(void **state)
{
	char text[4096], *p = text;

	(void)state;
	p += sprintf(p, "[switch s]\n");
	for (int i = 0; i < 16; i++)
		p += sprintf(p, "[adapter a%d]\nswitch = s\n", i);
	urn_config_free(config_good(text));
	sprintf(p, CONFIG_REST);
	config_bad(text,
		   "1 ports, and two for each of 16 adapters on a switch, are more than the 32 "
		   "that DPDK has; leave some out\n");
}

static void
addresses(void **state)
{
	static const struct config_case cases[] = {
		{SWITCHED "ipv4 = 10.0.0.1\n[adapter y]\nswitch = s\nipv4 = 10.0.0.1\n",
		 "7: 10.0.0.1 is the address of adapter x already (line 4); give each its own\n"},
		{SWITCHED "ipv6 = fd00::1\n[adapter y]\nswitch = s\nipv6 = fd00:0::1\n",
		 "7: fd00::1 is the address of adapter x already (line 4); give each its own\n"},
		{SWITCHED
		 "mac = 02:00:00:00:00:0a\n[adapter y]\nswitch = s\nmac = 02:00:00:00:00:0A\n",
		 "7: 02:00:00:00:00:0a is the MAC address of adapter x already (line 4); give each "
		 "its "
		 "own\n"},
		{SWITCHED "mac = 02:00:00:00:00:0a\n[port p]\ndevice = net_null0\n"
			  "mac = 02:00:00:00:00:0a\n[adapter y]\nport = p\n",
		 "4: 02:00:00:00:00:0a is the MAC address of port p already (line 7); give each "
		 "its "
		 "own\n"},
	};

	(void)state;
	config_cases(cases, RTE_DIM(cases));
}

static void
nodes(void **state)
{
	static const struct config_case cases[] = {
		{"[urnicd]\nnode = hsot\n", "2: node hsot has no adapter; did you mean host?\n"},
		{"[urnicd]\nnode = c\n", "2: node c has no adapter; give one of them node = c\n"},
	};
	struct urn_config *c = config_good("[urnicd]\nnode = b\n" SWITCHED "node = a\n"
					   "[adapter y]\nswitch = s\nnode = b\n");

	(void)state;
	assert_string_equal(c->urnicd.node, "b");
	assert_int_equal(c->nodes, 2);
	urn_config_free(c);
	c = config_good(SWITCHED "node = a\n");
	assert_string_equal(c->urnicd.node, "a");
	urn_config_free(c);
	config_cases(cases, RTE_DIM(cases));
}

/* 102 bytes: with a / in front and .ctl behind the longest path of a socket */
#define LONG                                                \
	"0123456789012345678901234567890123456789012345678" \
	"01234567890123456789012345678901234567890123456789012"

static void
paths(void **state)
{
	static const struct config_case cases[] = {
		{"[urnicd]\nsocket = /s\ncontrol = /s\n",
		 "3: /s is the path of socket as well as of control; give each its own\n"},
		{"[urnicd]\ncontrol = /s.lock\nsocket = /s\n",
		 "2: /s.lock is the path of the lock beside the socket as well as of control; give "
		 "each its "
		 "own\n"},
		{"[urnicd]\nsocket = /s\npid_file = /s\n",
		 "3: /s is the path of socket as well as of pid_file; give each its own\n"},
		{"[urnicd]\npid_file = /s.ctl\nsocket = /s\n",
		 "2: /s.ctl is the path of the control socket beside the socket as well as of "
		 "pid_file; give each "
		 "its own\n"},
		{"[urnicd]\ncontrol = /c\npid_file = /c.lock\n",
		 "3: /c.lock is the path of the lock beside the control socket as well as of pid_file; give each its "
		 "own\n"},
		{"[urnicd]\nsocket = /s\npid_file = /s.ctl.lock\n",
		 "3: /s.ctl.lock is the path of the lock beside the control socket as well as of pid_file; give each "
		 "its own\n"},
		{"[urnicd]\nsocket = /c.lock\ncontrol = /c\n",
		 "3: /c.lock is the path of socket as well as of the lock beside the control socket; give each its own\n"},
		{"[urnicd]\npid_file = /c\ncontrol = /c\n",
		 "2: /c is the path of control as well as of pid_file; give each its own\n"},
		{"[urnicd]\nsocket = /" LONG "x\n",
		 "2: socket is too long for the control socket beside it, /" LONG
		 "x.ctl, which has 108 bytes; 107 are "
		 "the most; give control = PATH, or a shorter socket\n"},
	};

	(void)state;
	urn_config_free(config_good("[urnicd]\nsocket = /" LONG "\n" CONFIG_REST));
	urn_config_free(config_good("[urnicd]\nsocket = /" LONG "x\ncontrol = /c\n" CONFIG_REST));
	config_cases(cases, RTE_DIM(cases));
	urn_config_free(config_good("[urnicd]\nsocket = /s\ncontrol = /c\npid_file = /s.ctl\n" CONFIG_REST));
	urn_config_free(config_good("[urnicd]\npid_file = /p\n" CONFIG_REST));
}

static void
limits(void **state)
{
	static const struct config_case cases[] = {
		{"[limits]\nqp_per_client = 2k\nqp_per_uid = 1k\n",
		 "2: qp_per_client = 2k is more than qp_per_uid = 1k (line 3), so nobody could "
		 "reach "
		 "it; lower the one or raise the other\n"},
		{"[limits]\nclients = 10\nclients_per_uid = unlimited\n",
		 "3: clients_per_uid = unlimited is more than clients = 10 (line 2), so nobody "
		 "could "
		 "reach it; lower the one or raise the other\n"},
		{"[limits]\narea_per_client = 2G\narea_per_uid = 1G\n",
		 "2: area_per_client = 2G is more than area_per_uid = 1G (line 3), so nobody could "
		 "reach it; lower the one or raise the other\n"},
		{"[limits]\narea_per_client = 512M\n",
		 "2: area_per_client = 512M is less than area_size = 1G of adapter rest, so no program "
		 "could attach; raise the one or lower the other\n"},
		{"[limits]\narea_per_uid = 1M\n[adapter a]\nport = p\narea_size = 2M\n"
		 "[adapter b]\nswitch = s\narea_size = 1M\n[switch s]\n[port p]\ndevice = net_null0\n",
		 "2: area_per_uid = 1M is less than area_size = 2M of adapter a, so no program could "
		 "attach; raise the one or lower the other\n"
		 "2: area_per_uid = 1M is less than area_size = 1G of adapter rest, so no program could "
		 "attach; raise the one or lower the other\n"},
	};
	struct urn_config *c = config_good("[limits]\nmr_per_uid = 5\npinned_per_client = 1G\n"
					   "pinned_per_uid = 1G\narea_per_uid = 1G\n" CONFIG_REST);

	(void)state;
	assert_int_equal(c->limits.per_uid.mr, 5);
	assert_true(c->limits.per_uid.area == 1ull << 30);
	assert_true(c->limits.per_client.area == URN_CONFIG_UNLIMITED);
	/* Memory for queues: a quarter of the machine's, unless the file says something else. */
	assert_true(c->limits.per_uid.queue ==
		    (uint64_t)sysconf(_SC_PHYS_PAGES) / 4 * (uint64_t)sysconf(_SC_PAGESIZE));
	assert_true(c->limits.per_client.queue == URN_CONFIG_UNLIMITED);
	urn_config_free(c);
	c = config_good("[limits]\nqueues_per_uid = 1G\nqueues_per_client = 64M\n" CONFIG_REST);
	assert_true(c->limits.per_uid.queue == 1ull << 30);
	assert_true(c->limits.per_client.queue == 64ull << 20);
	urn_config_free(c);
	c = config_good("[limits]\nqueues_per_uid = unlimited\n" CONFIG_REST);
	assert_true(c->limits.per_uid.queue == URN_CONFIG_UNLIMITED);
	urn_config_free(c);
	config_cases(cases, RTE_DIM(cases));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(engines),	  cmocka_unit_test(ports),
		cmocka_unit_test(too_many_ports), cmocka_unit_test(addresses),
		cmocka_unit_test(nodes),	  cmocka_unit_test(limits), cmocka_unit_test(paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
