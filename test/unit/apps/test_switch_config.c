/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration that urnic-switch makes of its options. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "urnic-switch/rig.h"

static struct sw_opts o;
static struct urn_err err;

/* Switches a and b, a device on each, one link. */
static void
two_switches(void)
{
	o = (struct sw_opts){
		.sw = {"a", "b"}, .sws = 2, .ports = 4, .devices = 2, .links = 1, .mbufs = 2048};
	o.every.sw.fdb.age_ns = 5;
	o.port[0] = (struct sw_port_opts){.name = "left", .device = "net_null0", .sw = 0};
	o.port[1] = (struct sw_port_opts){.name = "right", .device = "0000:01:00.0", .sw = 1};
	o.port[2] = (struct sw_port_opts){.name = "a-b", .sw = 0};
	o.port[3] = (struct sw_port_opts){.name = "b-a", .sw = 1};
	o.link[0] = (struct sw_link_opts){{2, 3}};
}

static void
plugs_and_links(void **state)
{
	uint16_t number[4];
	struct urn_config *c;

	(void)state;
	two_switches();
	o.fixeds = 1;
	o.routes = 1;
	o.route[0] = (struct sw_route_opts){.port = 1, .gid = {[15] = 9}};
	o.fixed[0] = (struct sw_static_opts){.port = 1, .mac = {2, 0, 0, 0, 0, 7}};
	c = sw_config(&o, number, &err);
	assert_non_null(c);
	assert_int_equal(c->switches, 2);
	assert_int_equal(c->ports, 2);
	assert_false(c->port[0].pci);
	assert_true(c->port[1].pci);
	assert_string_equal(c->port[1].port.device, "0000:01:00.0");
	assert_int_equal(number[3], 1);
	assert_int_equal(c->sw[0].plugs, 2);
	assert_int_equal(c->sw[0].plug[0].kind, URN_CONFIG_PLUG_PORT);
	assert_int_equal(c->sw[0].plug[1].kind, URN_CONFIG_PLUG_LINK);
	assert_int_equal(c->sw[0].plug[1].index, 1);
	assert_int_equal(c->sw[0].plug[1].peer, 1);
	assert_int_equal(c->sw[1].plug[1].index, 0);
	assert_int_equal(c->sw[1].statics, 1);
	assert_int_equal(c->sw[1].fixed[0].plug, 0);
	assert_int_equal(c->sw[1].fixed[0].mac[5], 7);
	assert_int_equal(c->sw[1].sw.fdb.age_ns, 5);
	assert_int_equal(c->sw[1].sw.routes, 1);
	assert_int_equal(c->sw[1].route[0].plug, 0);
	assert_int_equal(c->sw[1].route[0].gid[15], 9);
	urn_config_free(c);
}

static void
loops_are_refused(void **state)
{
	uint16_t number[6];

	(void)state;
	two_switches();
	o.port[4] = o.port[2];
	o.port[5] = o.port[3];
	o.ports = 6;
	o.links = 2;
	o.link[1] = (struct sw_link_opts){{5, 4}};
	assert_null(sw_config(&o, number, &err));
	assert_non_null(strstr(err.text, "--link b,a"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plugs_and_links),
		cmocka_unit_test(loops_are_refused),
	};

	return cmocka_run_group_tests_name("switch_config", tests, NULL, NULL);
}
