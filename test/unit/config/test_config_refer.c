/* SPDX-License-Identifier: BSD-3-Clause */
/* References of adapters: ports, switches, engines. */
#include "config_test.h"

#define P0 "[port p0]\ndevice = net_null0\n"
#define P0_UNUSED(line)                                                                           \
	line ": port p0 is used by nobody; give an adapter port = p0 or a switch ports = p0, or " \
	     "leave it out\n"

static void
adapters(void **state)
{
	static const struct config_case cases[] = {
		{"[adapter x]\n", "1: adapter x has neither a port nor a switch; give it port = "
				  "NAME of a [port NAME], "
				  "or switch = NAME of a [switch NAME]\n"},
		{"[adapter x]\nport = p0\nswitch = s\n" P0 "[switch s]\n",
		 "3: adapter x has a port and a switch; leave one of them out\n"},
		{"[adapter x]\nport = p1\n" P0,
		 "2: there is no [port p1]; did you mean p0?\n" P0_UNUSED("3")},
		{"[adapter x]\nport = eth\n",
		 "2: there is no [port eth]; write that section, or give the name of another\n"},
		{"[adapter x]\nswitch = wrie\n[adapter y]\nswitch = wire\n[switch wire]\n",
		 "2: there is no [switch wrie]; did you mean wire?\n"},
		{"[adapter x]\nport = s\n[adapter y]\nswitch = s\n[switch s]\n",
		 "2: s is a switch, and here stand ports; an adapter has switch = NAME, another "
		 "switch links = NAME\n"},
		{"[adapter x]\nswitch = p0\n[adapter y]\nport = p0\n" P0,
		 "2: p0 is a port, and here stand switches; an adapter has port = NAME, a switch "
		 "ports = NAME\n"},
		{"[adapter x]\nport = p0\n[adapter y]\nport = p0\n" P0,
		 "4: port p0 is that of adapter x already (line 2); give each adapter its own, or "
		 "plug both into a switch\n"},
		{"[adapter x]\nport = p0\npath_mtu = 1024\nmac = 02:00:00:00:00:01\nmbufs = "
		 "4k\n" P0,
		 "3: path_mtu belongs to the port of an adapter that has one; move it to [port "
		 "p0]\n"
		 "4: mac belongs to the port of an adapter that has one; move it to [port p0]\n"
		 "5: mbufs belongs to the port of an adapter that has one; move it to [port p0]\n"},
		/* A value that is no name gets one message, and no more. */
		{"[adapter x]\nport = p/0\n",
		 "2: port = p/0: p/0: a name has 1 to 15 letters, digits, _ or -\n"},
		{"[adapter x]\nswitch = p/0\n",
		 "2: switch = p/0: p/0: a name has 1 to 15 letters, digits, _ or -\n"},
	};

	(void)state;
	config_cases(cases, RTE_DIM(cases));
}

#define P1 "[port p1]\ndevice = net_null1\n"

/* An adapter with two ports, or on two switches (FO-5). */
static void
two_ports(void **state)
{
	struct urn_config *c = config_good("[adapter x]\nport = p1, p0\n" P0 P1
					   "[adapter y]\nswitch = s,t\nfailback = 20ms\n"
					   "mac = 02:00:00:00:00:07\n[switch s]\n[switch t]\n"
					   "[adapter z]\nswitch = t\n");
	const struct urn_config_adapter *x = &c->adapter[0], *y = &c->adapter[1];

	(void)state;
	assert_true(x->two && y->two && !c->adapter[2].two);
	assert_int_equal(x->port, 1);
	assert_int_equal(x->port2, 0);
	assert_int_equal(x->failback_ns, 5000000000);
	assert_int_equal(c->port[0].adapter, 0);
	assert_int_equal(y->port, -1);
	assert_int_equal(y->failback_ns, 20000000);
	assert_string_equal(c->sw[y->sw2].plug[y->plug2].port.name, "y");
	assert_true(c->sw[y->sw2].plug[y->plug2].second);
	assert_false(c->sw[y->sw].plug[y->plug].second);
	assert_string_equal(y->ring[0].name, "y.s");
	assert_string_equal(y->ring2[0].name, "y.t");
	assert_string_equal(y->ring2[1].name, "t.y");
	assert_memory_equal(y->ring2[0].mac, y->ring[0].mac, 6);
	assert_int_equal(y->ring2[1].mac[5], 0);
	assert_string_equal(c->adapter[2].ring[0].name, "z");
	urn_config_free(c);
}

static void
two_ports_wrong(void **state)
{
	static const struct config_case cases[] = {
		{"[adapter x]\nport = p0, p0\n" P0,
		 "2: port p0 is in the list twice; name two ports, or one once\n"},
		{"[adapter x]\nport = p0, p2\n" P0 "[adapter y]\nport = p1\n" P1,
		 "2: there is no [port p2]; did you mean p0?\n"},
		{"[adapter x]\nport = p0\n" P0 "[adapter y]\nport = p1, p0\n" P1,
		 "6: port p0 is that of adapter x already (line 2); give each adapter its own, or "
		 "plug both into a switch\n"},
		{"[adapter x]\nport = p0, p1, p2\n" P0 P1
		 "[adapter y]\nport = p2\n[port p2]\ndevice = net_null2\n",
		 "2: adapter x would have more than two ports; leave p2 out\n"},
		{"[adapter x]\nport = p0, p1\n" P0 "path_mtu = 1024\n" P1 "path_mtu = 2048\n",
		 "8: ports p0 and p1 of adapter x have two values of path_mtu; give both the same, "
		 "for either carries all of the adapter's packets\n"},
		{"[adapter x]\nport = p0, p1\n" P0 P1 "queues = 2\n",
		 "7: ports p0 and p1 of adapter x have two values of queues; give both the same\n"},
		{"[adapter x]\nport = p0, p1\n" P0 "mbufs = 64K\n" P1,
		 "6: ports p0 and p1 of adapter x have two values of mbufs; give both the same, "
		 "for either receives all of the adapter's packets\n"},
		{"[adapter x]\nport = p0, p1\n" P0 P1 "mac = 02:00:00:00:00:01\n",
		 "7: port p1 has the MAC address of port p0, for adapter x has both; leave mac out "
		 "here\n"},
		{"[adapter x]\nport = p0, p1\nvlan = 7\n" P0 P1 "steer = yes\n",
		 "3: steer = yes of port p1 (line 8) lets untagged frames in alone; leave out "
		 "steer, or vlan and priority\n"},
		{"[adapter x]\nport = p0, p1\nmac = 02:00:00:00:00:01\n" P0 P1,
		 "3: mac belongs to the port of an adapter that has one; move it to [port p0]\n"},
		{"[adapter x]\nport = p0\nfailback = 1s\n" P0,
		 "3: failback is for adapters with two ports, and adapter x has one; leave it out, "
		 "or write port = NAME, NAME or switch = NAME, NAME\n"},
		{"[adapter x]\nswitch = s, s\n[switch s]\n",
		 "2: switch s is in the list twice; name two switches, or one once\n"},
		{"[adapter x]\nswitch = wire, wrie\n[switch wire]\n",
		 "2: there is no [switch wrie]; did you mean wire?\n"},
		{"[adapter x]\nswitch = s, t\n[switch s]\nlossless = 3\n[switch t]\n",
		 "2: switches s and t of adapter x have other lossless priorities, or sort frames "
		 "otherwise; give both the same\n"},
		{"[adapter x]\nswitch = s, p/0\n[switch s]\n",
		 "2: switch = s, p/0: p/0: a name has 1 to 15 letters, digits, _ or -\n"},
	};

	(void)state;
	config_cases(cases, RTE_DIM(cases));
}

static void
engines(void **state)
{
	static const struct config_case cases[] = {
		{"[adapter x]\nport = p0\nengines = 0,1\n" P0,
		 "3: there is no engine 1, of which adapter x speaks; the last one is engine 0. "
		 "Write "
		 "a section [engine 1], or leave it out\n"},
		{"[engine 0]\n[engine 1]\n[adapter x]\nport = p0\nengines = 1-15\n" P0,
		 "5: there is no engine 2, of which adapter x speaks; the last one is engine 1. "
		 "Write "
		 "a section [engine 2], or leave it out\n"},
	};
	char text[512] = "", *p = text;
	struct urn_config *c;

	(void)state;
	config_cases(cases, RTE_DIM(cases));
	for (int i = 0; i < 16; i++)
		p += sprintf(p, "[engine %d]\n", i);
	sprintf(p, "[adapter x]\nport = p0\n[adapter y]\nswitch = s\nengines = 15,0-1\n[switch "
		   "s]\n" P0);
	c = config_good(text);
	assert_int_equal(c->engines, 16);
	assert_int_equal(c->adapter[0].adapter.engines, 0xffff);
	assert_int_equal(c->adapter[1].adapter.engines, 0x8003);
	assert_int_equal(c->port[0].port.queues, 16);
	urn_config_free(c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(adapters),
		cmocka_unit_test(two_ports),
		cmocka_unit_test(two_ports_wrong),
		cmocka_unit_test(engines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
