/* SPDX-License-Identifier: BSD-3-Clause */
/* Prefixes on the link, gateways and routes that a file names (doc/reference/urnicd.md "Routes").
 */
#include "config_test.h"

#include "control/dataplane.h"
#include "net/neigh.h"

#define PLAIN "[switch s]\n[adapter x]\nswitch = s\n"
#define ADAPTER PLAIN "ipv4 = 10.0.0.1/24\nipv6 = fd00::1/64\n"

static void
addresses(void **state)
{
	struct urn_config *c = config_good(
		PLAIN "ipv4 = 10.0.0.1/24\nipv6 = fd00::1/127\n"
		      "[adapter y]\nswitch = s\nipv4 = 10.0.0.2\nipv6 = fd00::2\n"
		      "[adapter z]\nswitch = s\nipv4 = 10.0.0.4/31\nipv6 = fd00::8/127\n");

	(void)state;
	assert_int_equal(c->adapter[0].adapter.ipv4_bits, 24);
	assert_memory_equal(c->adapter[0].adapter.ipv4, "\12\0\0\1", 4);
	assert_int_equal(c->adapter[0].adapter.ipv6_bits, 127);
	assert_int_equal(c->adapter[0].adapter.ipv6[15], 1);
	assert_int_equal(c->adapter[1].adapter.ipv4_bits, 0);
	assert_int_equal(c->adapter[1].adapter.ipv6_bits, 0);
	assert_int_equal(c->adapter[2].adapter.ipv4_bits, 31); /* RFC 3021: no network's address */
	assert_int_equal(c->adapter[0].adapter.routes, 0);
	urn_config_free(c);
}

static void
expect(const struct urn_neigh_route *r, unsigned int kind, unsigned int len,
       const uint8_t prefix[16], const uint8_t via[16])
{
	assert_int_equal(r->kind, kind);
	assert_int_equal(r->len, len);
	assert_memory_equal(r->prefix, prefix, 16);
	assert_memory_equal(r->via, via, 16);
}

static void
taken(void **state)
{
	static const uint8_t all4[16] = {[10] = 0xff, [11] = 0xff}, all6[16] = {0};
	static const uint8_t fe4[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 254};
	static const uint8_t ll[16] = {0xfe, 0x80, [15] = 0xfe}, fd[16] = {0xfd, [15] = 0xfd};
	static const uint8_t net4[16] = {[10] = 0xff, [11] = 0xff, 10, 1}, net6[16] = {0xfd, 1};
	struct urn_config *c = config_good(ADAPTER "gateway = 10.0.0.254, fe80::fe\n"
						   "route 10.1.0.0/16 = 10.0.0.254\n"
						   "route fd01::/48 = fd00::fd\n"
						   "route 10.0.0.128/25 = 10.0.0.254\n");
	const struct urn_adapter_config *a = &c->adapter[0].adapter;

	(void)state;
	assert_int_equal(a->routes, 5);
	expect(&a->route[0], URN_NEIGH_ROUTE_GATEWAY, 96, all4, fe4);
	expect(&a->route[1], URN_NEIGH_ROUTE_GATEWAY, 0, all6, ll);
	expect(&a->route[2], URN_NEIGH_ROUTE_STATIC, 96 + 16, net4, fe4);
	expect(&a->route[3], URN_NEIGH_ROUTE_STATIC, 48, net6, fd);
	assert_int_equal(a->route[4].len, 96 + 25); /* a part of the own prefix is elsewhere */
	urn_config_free(c);
}

#define WRITE "; write route 10.1.0.0/16 = 10.0.0.254, or route fd01::/48 = fd00::fe\n"
#define OUTSIDE ", so it can't be asked; give a router on the link\n"
#define NO_STATION                                                                                 \
	" is no address of a router, but that of the network itself or of all its stations; give " \
	"the router's\n"

static void
refused(void **state)
{
	static const struct config_case cases[] = {
		{ADAPTER "gateway = 10.0.1.254\n",
		 "6: 10.0.1.254 is outside of 10.0.0.0/24, the prefix of ipv4 (line 4)" OUTSIDE},
		{ADAPTER "gateway = fd00:0:0:1::fe\n",
		 "6: fd00:0:0:1::fe is outside of fd00::/64, the prefix of ipv6 (line 5)" OUTSIDE},
		{ADAPTER "route 10.1.0.0/16 = 10.1.0.254\n",
		 "6: 10.1.0.254 is outside of 10.0.0.0/24, the prefix of ipv4 (line 4)" OUTSIDE},
		{PLAIN "ipv4 = 10.0.0.1\ngateway = 10.0.0.254\n",
		 "5: the router 10.0.0.254 is of use only with a prefix on the link: write ipv4 = "
		 "10.0.0.1/24, with the adapter's own address\n"},
		{PLAIN "gateway = fe80::1\n",
		 "4: the router fe80::1 is of use only with a prefix on the link: write ipv6 = "
		 "fd00::1/64, with the adapter's own address\n"},
		{ADAPTER "gateway = 10.0.0.1\n",
		 "6: 10.0.0.1 is the adapter's own address; give the router's\n"},
		{ADAPTER "gateway = ff02::2\n",
		 "6: ff02::2 is no address of a router; give one in the prefix of ipv6\n"},
		{ADAPTER "gateway = 10.0.0.0\n", "6: 10.0.0.0" NO_STATION},
		{ADAPTER "route 10.1.0.0/16 = 10.0.0.255\n", "6: 10.0.0.255" NO_STATION},
		{ADAPTER "gateway = 10.0.0.254, 10.0.0.253\n",
		 "6: 0.0.0.0/0 has a router already (line 6); leave one out\n"},
		{ADAPTER "gateway = 10.0.0.254\nroute 0.0.0.0/0 = 10.0.0.253\n",
		 "7: 0.0.0.0/0 has a router already (line 6); leave one out\n"},
		{ADAPTER "route fd01::/48 = fe80::1\nroute fd01:0::/48 = fe80::2\n",
		 "7: fd01::/48 has a router already (line 6); leave one out\n"},
		{ADAPTER "route 10.0.0.0/24 = 10.0.0.254\n",
		 "6: 10.0.0.0/24 is the prefix of ipv4 (line 4), and on the link; leave the route "
		 "out\n"},
		{ADAPTER "route fe80::/64 = fe80::1\n",
		 "6: fe80::/64 is always on the link; leave the route out\n"},
		{ADAPTER "route 10.1.0.1/16 = 10.0.0.254\n",
		 "6: 10.1.0.1/16 has bits behind its length; did you mean 10.1.0.0/16?\n"},
		{ADAPTER "route fd01::/48 = 10.0.0.254\n",
		 "6: fd01::/48 and its router 10.0.0.254 are not both IPv4 or IPv6\n"},
		{ADAPTER "route 10.1.0.0 = 10.0.0.254\n",
		 "6: 10.1.0.0 is no prefix of a network" WRITE},
		{ADAPTER "route 10.1.0.0/33 = 10.0.0.254\n",
		 "6: 10.1.0.0/33 is no prefix of a network" WRITE},
		{ADAPTER "route 10.1/16 = 10.0.0.254\n",
		 "6: 10.1/16 is no prefix of a network" WRITE},
		{ADAPTER "route = 10.1.0.0/16 via 10.0.0.254\n",
		 "6: route = 10.1.0.0/16 via 10.0.0.254: give the address of one router on the "
		 "link, such as route 10.1.0.0/16 = 10.0.0.254\n"},
		{ADAPTER "gateway = router\n",
		 "6: gateway = router: give IP addresses, such as 10.0.0.1, fe80::1\n"},
	};

	(void)state;
	config_cases(cases, RTE_DIM(cases));
}

/* Router advertisements: off unless asked for, of use with a prefix, and none where the kernel
 * keeps them. */
static void
accept_ra(void **state)
{
	static const struct config_case cases[] = {
		{PLAIN "ipv6 = fd00::1\naccept_ra = yes\n",
		 "5: accept_ra = yes is of use only with a prefix on the link: write ipv6 = "
		 "fd00::1/64, with the adapter's own address\n"},
		{PLAIN "ipv4 = 10.0.0.1/24\naccept_ra = yes\n",
		 "5: accept_ra = yes is of use only with a prefix on the link: write ipv6 = "
		 "fd00::1/64, with the adapter's own address\n"},
		{ADAPTER "accept_ra = perhaps\n", "6: accept_ra = perhaps: give yes or no\n"},
		{"[port p]\ndevice = net_af_xdp0,iface=x\n"
		 "[adapter x]\nport = p\nipv6 = fd00::1/64\naccept_ra = yes\n",
		 "6: accept_ra = yes can't work on port p (line 1): the filter of net_af_xdp "
		 "leaves router advertisements to the kernel; give a gateway, or filter = no in "
		 "the port\n"},
		{"[port p]\ndevice = net_null0\nsteer = yes\n"
		 "[adapter x]\nport = p\nipv6 = fd00::1/64\naccept_ra = yes\n",
		 "7: steer = yes of port p (line 3) lets no router advertisement in; leave out "
		 "steer, or accept_ra\n"},
	};
	struct urn_config *c = config_good(ADAPTER "[adapter y]\nswitch = s\nipv6 = fd00::2/64\n"
						   "gateway = fd00::fe\naccept_ra = yes\n");

	(void)state;
	assert_false(c->adapter[0].adapter.accept_ra);
	assert_true(c->adapter[1].adapter.accept_ra);
	urn_config_free(c);
	c = config_good("[port p]\ndevice = net_af_xdp0,iface=x\nfilter = no\n"
			"[adapter x]\nport = p\nipv6 = fd00::1/64\naccept_ra = yes\n");
	assert_true(c->adapter[0].adapter.accept_ra);
	urn_config_free(c);
	config_cases(cases, RTE_DIM(cases));
}

/* An adapter's table takes all that the file may have. */
static void
room(void **state)
{
	unsigned int most = URN_NEIGH_ROUTES - 2;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	struct urn_config *c;

	(void)state;
	assert_non_null(f);
	fputs(ADAPTER, f);
	for (unsigned int i = 0; i < most; i++)
		fprintf(f, "route 10.1.%u.0/24 = 10.0.0.254\n", i);
	fflush(f);
	c = config_good(text);
	assert_int_equal(c->adapter[0].adapter.routes, most);
	urn_config_free(c);
	fputs("route 10.2.0.0/24 = 10.0.0.254\n", f);
	fclose(f);
	config_bad(text, "132: an adapter has room for 126 routes; leave some out\n");
	free(text);
}

/* VLANs and priorities; rules of a port for untagged frames do not go with a VLAN. */
static void
vlans(void **state)
{
	static const struct config_case cases[] = {
		{PLAIN "vlan = 0\n", "4: vlan = 0: give a number from 1 to 4094\n"},
		{PLAIN "vlan = 4095\n", "4: vlan = 4095: give a number from 1 to 4094\n"},
		{PLAIN "priority = 8\n", "4: priority = 8: give a number from 0 to 7\n"},
		{"[port p]\ndevice = net_null0\nsteer = yes\n[adapter x]\nport = p\nvlan = 5\n",
		 "6: steer = yes of port p (line 3) lets untagged frames in alone; leave out "
		 "steer, or vlan and priority\n"},
		{"[port p]\ndevice = net_null0\nsteer = yes\n[adapter x]\nport = p\npriority = "
		 "1\n",
		 "6: steer = yes of port p (line 3) lets untagged frames in alone; leave out "
		 "steer, or vlan and priority\n"},
	};
	struct urn_config *c = config_good(PLAIN "vlan = 4094\npriority = 7\n");

	(void)state;
	assert_int_equal(c->adapter[0].adapter.vlan, 4094);
	assert_int_equal(c->adapter[0].adapter.priority, 7);
	urn_config_free(c);
	config_cases(cases, RTE_DIM(cases));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses), cmocka_unit_test(taken), cmocka_unit_test(refused),
		cmocka_unit_test(room),	     cmocka_unit_test(vlans), cmocka_unit_test(accept_ra),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
