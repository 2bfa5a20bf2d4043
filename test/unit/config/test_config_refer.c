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
		 "2: port = p/0: a name has 1 to 15 letters, digits, _ or -\n"},
		{"[adapter x]\nswitch = p/0\n",
		 "2: switch = p/0: a name has 1 to 15 letters, digits, _ or -\n"},
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
		cmocka_unit_test(engines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
