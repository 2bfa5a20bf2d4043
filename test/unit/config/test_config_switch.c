/* SPDX-License-Identifier: BSD-3-Clause */
/* The plugs of switches: ports, adapters, other switches; impairments. */
#include "config_test.h"

/* A switch w with an adapter x (lines 1 to 3), and more of the switch from line 4 on. */
#define SWITCH "[adapter x]\nswitch = w\n[switch w]\n"
#define P(name, n) "[port " name "]\ndevice = net_null" n "\n"

static void
plugs(void **state)
{
	struct urn_config *c = config_good(
		"[switch w]\nports = q, p\nlinks = v\nlearning = no\nage = 10s\naddresses = 100\n"
		"static x = 02:00:00:00:00:01, 02:00:00:00:00:02\nstatic v = 02:00:00:00:00:03\n"
		"[switch v]\nlinks = w u\n[switch u]\n" P("p", "0")
			P("q", "1") "[adapter x]\nswitch = w\n[adapter y]\nswitch = w\n[adapter "
				    "z]\nswitch = v\n");
	const struct urn_config_plug *p = c->sw[0].plug;

	(void)state;
	assert_int_equal(c->switches, 3);
	assert_string_equal(c->sw[0].sw.name, "w");
	assert_true(c->sw[0].sw.no_learning);
	assert_true(c->sw[0].sw.fdb.age_ns == 10000000000);
	assert_int_equal(c->sw[0].sw.fdb.max, 100);
	assert_int_equal(c->sw[0].plugs, 5);
	assert_int_equal(p[0].kind, URN_CONFIG_PLUG_PORT);
	assert_string_equal(p[0].port.name, "q");
	assert_int_equal(p[0].index, 1);
	assert_int_equal(p[1].index, 0);
	assert_int_equal(p[2].kind, URN_CONFIG_PLUG_ADAPTER);
	assert_string_equal(p[2].port.name, "x");
	assert_string_equal(p[3].port.name, "y");
	assert_int_equal(p[3].index, 1);
	assert_int_equal(p[4].kind, URN_CONFIG_PLUG_LINK);
	assert_string_equal(p[4].port.name, "v");
	assert_int_equal(p[4].index, 1);
	assert_int_equal(p[4].peer, 1);
	/* One link that both sides name, and another. */
	assert_int_equal(c->sw[1].plugs, 3);
	assert_int_equal(c->sw[1].plug[1].index, 0);
	assert_int_equal(c->sw[1].plug[1].peer, 4);
	assert_int_equal(c->sw[1].plug[2].index, 2);
	assert_int_equal(c->sw[2].plug[0].peer, 2);
	assert_int_equal(c->port[0].sw, 0);
	assert_int_equal(c->port[0].plug, 1);
	assert_int_equal(c->port[0].port.queues, 1);
	assert_int_equal(c->adapter[1].sw, 0);
	assert_int_equal(c->adapter[1].plug, 3);
	assert_int_equal(c->sw[0].statics, 3);
	assert_int_equal(c->sw[0].fixed[1].plug, 2);
	assert_memory_equal(c->sw[0].fixed[1].mac, "\2\0\0\0\0\2", 6);
	assert_int_equal(c->sw[0].fixed[2].plug, 4);
	urn_config_free(c);
}

static void
impairments(void **state)
{
	struct urn_config *c = config_good(SWITCH "impair x = drop=1%, delay=200us\n"
						  "impair x.in = seed=7,drop=0\n"
						  "impair x.out = rate=1G\n");
	const struct urn_impair_config *in = &c->sw[0].plug[0].port.impair[URN_SWITCH_IN];
	const struct urn_impair_config *out = &c->sw[0].plug[0].port.impair[URN_SWITCH_OUT];

	(void)state;
	assert_int_equal(in->delay_ns, 200000);
	assert_int_equal(in->seed, 7);
	assert_true(in->drop == 0 && in->rate_bps == 0);
	assert_int_equal(out->delay_ns, 200000);
	assert_int_equal(out->seed, 0);
	assert_true(out->drop == 0.01 && out->rate_bps == 1000000000);
	urn_config_free(c);
}

/* Lossless priorities: numbers, the map, routes by IP address. */
static void
lossless(void **state)
{
	static const struct config_case cases[] = {
		{SWITCH "xoff = 1M\npfc = no\ndscp 3 = 26\n",
		 "4: xoff does nothing without lossless; give lossless = PRIORITIES, or leave it "
		 "out\n"
		 "5: pfc does nothing without lossless; give lossless = PRIORITIES, or leave it "
		 "out\n"
		 "6: dscp does nothing without lossless; give lossless = PRIORITIES, or leave it "
		 "out\n"},
		{SWITCH "lossless = 8\n",
		 "4: lossless = 8: give numbers from 0 to 7, such as 3 or 0,4-6\n"},
		{SWITCH "lossless = 3\nxoff = 100k\n",
		 "3: xon is more than xoff, so a sender would stop and go on at the same time; "
		 "give less, or raise xoff\n"},
		{SWITCH "lossless = 3\ndscp 8 = 26\npcp = 1\ndscp 1 = 64\n",
		 "5: dscp 8 wants a priority from 0 to 7 behind its name, such as dscp 3 = 26\n"
		 "6: pcp wants a priority from 0 to 7 behind its name, such as pcp 3 = 3\n"
		 "7: dscp 1 = 64: give numbers from 0 to 63, such as 3 or 0,4-6\n"},
		{SWITCH "route x = 10.0.0.7, 10.0.0.x\n",
		 "4: route x = 10.0.0.7, 10.0.0.x: give IP addresses, such as 10.0.0.1, fe80::1\n"},
		{SWITCH "route x = 10.0.0.7, 10.0.0.7\n",
		 "4: an address has a route to x already; leave one out\n"},
		{SWITCH "route y = 10.0.0.7\n", "4: nothing called y is plugged into switch w; "
						"give the name of a port, adapter or "
						"switch that is\n"},
	};
	struct urn_config *c = config_good(SWITCH "lossless = 0,3\ndscp 3 = 26, 40-41\npcp 0 = 7\n"
						  "queue = 64k\nroute x = 10.0.0.7 fe80::1\n"
						  "[switch v]\n[adapter y]\nswitch = v\n");
	const struct urn_lossless_config *l = &c->sw[0].sw.lossless;

	(void)state;
	assert_int_equal(l->priorities, 9);
	assert_int_equal(l->map.dscp[41], 3);
	assert_int_equal(l->map.dscp[42], 5);
	assert_int_equal(l->map.pcp[7], 0);
	assert_int_equal(l->queue, 65536);
	assert_int_equal(l->xoff, 262144);
	assert_int_equal(l->watchdog_ns, 200000000);
	assert_false(l->no_pfc);
	assert_int_equal(c->sw[0].sw.routes, 2);
	assert_int_equal(c->sw[0].route[0].gid[15], 7);
	assert_int_equal(c->sw[0].route[1].gid[0], 0xfe);
	assert_int_equal(c->sw[1].sw.lossless.priorities, 0);
	urn_config_free(c);
	config_cases(cases, RTE_DIM(cases));
}

/* A port says whether its wire carries flow control; by default the switch does. */
static void
flow_control_by_port(void **state)
{
	static const struct config_case cases[] = {
		{"[port q]\ndevice = net_null8\npfc = no\n[switch w]\nports = q\n[adapter "
		 "x]\nswitch = w\n",
		 "3: pfc of port q does nothing, because it is not on a lossless switch; give the "
		 "switch lossless = PRIORITIES, or leave it out\n"},
		{"[port q]\ndevice = net_null8\npfc = yes\n[adapter x]\nport = q\n",
		 "3: pfc of port q does nothing, because it is not on a lossless switch; move it "
		 "to its adapter\n"},
	};
	struct urn_config *c = config_good("[port p]\ndevice = net_null0\npfc = no\n"
					   "[port q]\ndevice = net_null1\npfc = yes\n"
					   "[port r]\ndevice = net_null2\n"
					   "[switch w]\nports = p, q, r\nlossless = 3\n"
					   "[adapter x]\nswitch = w\n");

	(void)state;
	assert_int_equal(c->sw[0].plug[c->port[0].plug].port.pfc, URN_SWITCH_PFC_NO);
	assert_int_equal(c->sw[0].plug[c->port[1].plug].port.pfc, URN_SWITCH_PFC_YES);
	assert_int_equal(c->sw[0].plug[c->port[2].plug].port.pfc, URN_SWITCH_PFC_DEFAULT);
	urn_config_free(c);
	config_cases(cases, RTE_DIM(cases));
}

/* Adapters obey the lossless switch they are on, by its map, unless the file says otherwise. */
static void
obedience(void **state)
{
	struct urn_config *c =
		config_good(SWITCH "lossless = 3\ndscp 3 = 0\nwatchdog = 1s\nrestore = 2s\n"
				   "[adapter y]\nswitch = w\npfc = no\n"
				   "[switch v]\n[adapter z]\nswitch = v\n[adapter u]\nswitch = v\n"
				   "pfc = yes\n");

	(void)state;
	assert_true(c->adapter[0].adapter.obey.on);
	assert_int_equal(c->adapter[0].adapter.obey.map.dscp[0], 3);
	assert_int_equal(c->adapter[0].adapter.obey.watchdog_ns, 1000000000);
	assert_int_equal(c->adapter[0].adapter.obey.restore_ns, 2000000000);
	assert_false(c->adapter[1].adapter.obey.on);
	assert_false(c->adapter[2].adapter.obey.on);
	assert_true(c->adapter[3].adapter.obey.on);
	assert_int_equal(c->adapter[3].adapter.obey.map.dscp[24], 3);
	assert_int_equal(c->adapter[3].adapter.obey.watchdog_ns, 0);
	urn_config_free(c);
}

static void
engines(void **state)
{
	struct urn_config *c = config_good("[engine 0]\n[engine 1]\n[switch w]\nlinks = v\n"
					   "[switch v]\nengine = 1\n[switch u]\n[adapter x]\n"
					   "switch = w\n[adapter y]\nswitch = u\n");

	(void)state;
	assert_int_equal(c->sw[0].engine, 1);
	assert_int_equal(c->sw[1].engine, 1);
	assert_int_equal(c->sw[2].engine, 0);
	urn_config_free(c);
}

static void
bad_plugs(void **state)
{
	static const struct config_case cases[] = {
		{"[switch w]\n", "1: nothing is plugged into switch w; give it ports = NAME, or an "
				 "adapter switch = w\n"},
		{SWITCH "ports = p\n",
		 "4: there is no [port p]; write that section, or give the name of another\n"},
		{SWITCH "ports = w\n", "4: w is a switch, and here stand ports; an adapter has "
				       "switch = NAME, another switch "
				       "links = NAME\n"},
		{SWITCH "ports = p,p\n" P("p", "0"), "4: port p is plugged into switch w already "
						     "(line 4); leave it out here or there\n"},
		{SWITCH "ports = p\n[switch v]\nports = p\n" P("p", "0"),
		 "5: nothing is plugged into switch v; give it ports = NAME, or an adapter switch "
		 "= v\n"
		 "6: port p is plugged into switch w already (line 4); leave it out here or "
		 "there\n"},
		{SWITCH "ports = rest\n", "4: port rest is that of adapter rest (line 8); to have "
					  "both on the switch, give the "
					  "adapter switch = w instead\n"},
		{SWITCH "ports = x\n" P("x", "0"), "2: switch w would have two ports called x: "
						   "[port x] and [adapter x]; rename one\n"},
		{SWITCH "engine = 1\n", "4: there is no engine 1; the last one is engine 0. Write "
					"a section [engine 1], or "
					"give another\n"},
	};

	(void)state;
	config_cases(cases, RTE_DIM(cases));
}

static void
bad_links(void **state)
{
	static const struct config_case cases[] = {
		{SWITCH "links = w\n", "4: switch w is linked with itself; leave it out\n"},
		{SWITCH "links = v\n",
		 "4: there is no [switch v]; write that section, or give the name of another\n"},
		{SWITCH "links = rest\n",
		 "4: rest is a port, and here stand switches; an adapter has port = NAME, a switch "
		 "ports = NAME\n"},
		{SWITCH "links = v v\n[switch v]\n",
		 "4: switch v is in the list twice; one link is all there is between two\n"},
		{SWITCH "links = v\n[switch v]\nlinks = u\n[switch u]\nlinks = w\n",
		 "8: switches u and w are joined already by other links, and frames would go round "
		 "for "
		 "ever; leave this one out\n"},
		{SWITCH "links = x\n[switch x]\n", "4: switch w would have two ports called x: "
						   "[adapter x] and [switch x]; rename one\n"},
		{"[engine 0]\n[engine 1]\n" SWITCH
		 "links = v\nengine = 0\n[switch v]\nengine = 1\n",
		 "9: switch v is linked with switch w, which engine 0 runs (line 7); linked "
		 "switches "
		 "share an engine\n"},
	};

	(void)state;
	config_cases(cases, RTE_DIM(cases));
}

static void
bad_words(void **state)
{
	static const struct config_case cases[] = {
		{SWITCH "impair x = drop=101%\n",
		 "4: impair x: drop=101%: give percent from 0 to 100, such as 0.1 or 5%\n"},
		{SWITCH "impair x = drpo=1%\n",
		 "4: impair x: drpo is no impairment; did you mean drop? there are drop, dup, "
		 "corrupt, reorder, hold, "
		 "hold-time, delay, jitter, rate, queue, flap, blackhole and seed\n"},
		{SWITCH "impair x.up = drop=1%\n", "4: .up is no direction; write impair x.in for "
						   "frames from it, .out for frames to it, "
						   "or neither for both\n"},
		{SWITCH "impair y = drop=1%\n", "4: nothing called y is plugged into switch w; "
						"give the name of a port, adapter or "
						"switch that is\n"},
		{SWITCH "impair rset.in = drop=1%\nports = rest2\n" P("rest2", "0"),
		 "4: nothing called rset is plugged into switch w; did you mean rest2?\n"},
		{SWITCH "impair = drop=1%\n", "4: impair wants the name of a port, adapter or "
					      "switch that is plugged into switch w "
					      "behind it\n"},
		{SWITCH "impair x = drop=1%\nimpair x.in = drop=1%\nimpair  x = dup=1%\n",
		 "6: impair x is given in line 4 already; put both lists on one line\n"},
		{SWITCH "static x = 02:00:00:00:00:01\nstatic x = 02:00:00:00:00:01\n",
		 "5: 02:00:00:00:00:01 is a static address behind x already; leave one out\n"},
		{SWITCH "static x = 02:00:00:00:00:01, 03:00:00:00:00:01\n",
		 "4: static x = 02:00:00:00:00:01, 03:00:00:00:00:01: 03:00:00:00:00:01: give the "
		 "MAC "
		 "address of one station, six bytes with colons, such as 02:00:00:00:00:01\n"},
		{SWITCH "static y = 02:00:00:00:00:01\n",
		 "4: nothing called y is plugged into switch w; give the name of a port, adapter "
		 "or "
		 "switch that is\n"},
		{SWITCH "addresses = 1\nstatic x = 02:00:00:00:00:01 02:00:00:00:00:02\n",
		 "5: switch w has room for 1 static addresses; leave some out, or raise "
		 "addresses\n"},
	};

	(void)state;
	config_cases(cases, RTE_DIM(cases));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plugs),
		cmocka_unit_test(impairments),
		cmocka_unit_test(lossless),
		cmocka_unit_test(obedience),
		cmocka_unit_test(flow_control_by_port),
		cmocka_unit_test(engines),
		cmocka_unit_test(bad_plugs),
		cmocka_unit_test(bad_links),
		cmocka_unit_test(bad_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
