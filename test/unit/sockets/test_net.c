/* SPDX-License-Identifier: BSD-3-Clause */
/* The addresses of urnic's nodes (DB-11). The networks are learnt once, so each check has its
 * process. */
#include "rig.h"

#include <arpa/inet.h>
#include <stdlib.h>

/* An address by its text. */
static struct urn_addr
addr(const char *text)
{
	struct urn_addr a = {.gid = {[10] = 0xff, [11] = 0xff}, .port = 7};

	if (inet_pton(AF_INET, text, a.gid + 12) != 1)
		CHILD_CHECK(inet_pton(AF_INET6, text, a.gid) == 1);
	return a;
}

static bool
has(const char *text)
{
	struct urn_addr a = addr(text);

	return urn_net_has(&a);
}

/* Without a word the networks are those of the adapter's addresses. */
static void
guess(struct rig *r)
{
	struct urn_addr own = addr("10.0.0.1"), own6 = addr("fd00::1"), other = addr("10.0.0.2");

	(void)r;
	CHILD_CHECK(unsetenv("URNIC_SOCKETS_NET") == 0);
	CHILD_CHECK(urn_net_some());
	CHILD_CHECK(has("10.0.0.1") && has("10.0.0.254") && !has("10.0.1.1"));
	CHILD_CHECK(has("fd00::77:1") && !has("fd00:0:0:1::1"));
	CHILD_CHECK(urn_net_own(&own) && urn_net_own(&own6) && !urn_net_own(&other));
}

/* URNIC_SOCKETS_NET alone says which networks there are. */
static void
told(struct rig *r)
{
	(void)r;
	CHILD_CHECK(setenv("URNIC_SOCKETS_NET",
			   "10.8.0.0/13, fd00:8::/33,192.0.2.9,1.2.3.4/33,nonsense,5.6.7.8/x",
			   1) == 0);
	CHILD_CHECK(has("10.8.0.1") && has("10.15.255.254") && !has("10.16.0.1") &&
		    !has("10.0.0.1"));
	CHILD_CHECK(has("fd00:8:7fff::1") && !has("fd00:8:8000::1"));
	CHILD_CHECK(has("192.0.2.9") && !has("192.0.2.8"));
	CHILD_CHECK(!has("1.2.3.4") && !has("5.6.7.8"));
}

/* Loopback, multicast, broadcast and no address at all are never a node's. */
static void
never(struct rig *r)
{
	(void)r;
	CHILD_CHECK(setenv("URNIC_SOCKETS_NET", "0.0.0.0/0,::/0,10.0.0.0/24", 1) == 0);
	CHILD_CHECK(has("10.0.0.77") && has("10.0.1.255") && has("2001::1"));
	CHILD_CHECK(!has("127.0.0.1") && !has("224.0.0.1") && !has("255.255.255.255") &&
		    !has("0.0.0.0"));
	CHILD_CHECK(!has("::1") && !has("ff02::1") && !has("::"));
}

static void
broadcast(struct rig *r)
{
	(void)r;
	CHILD_CHECK(setenv("URNIC_SOCKETS_NET", "10.0.0.0/24,10.1.0.0/16,10.9.9.2/31,10.9.9.255/32",
			   1) == 0);
	CHILD_CHECK(!has("10.0.0.255") && has("10.1.0.255") && !has("10.1.255.255"));
	CHILD_CHECK(has("10.9.9.3") && has("10.9.9.255"));
}

static bool
near(const char *own, const char *text)
{
	struct urn_addr a = addr(text), o = addr(own);

	return urn_net_near(o.gid, &a);
}

/* The network of an address of a virtual device, which may be no adapter's now. */
static void
session(struct rig *r)
{
	(void)r;
	CHILD_CHECK(near("10.7.0.1", "10.7.0.1") && near("10.7.0.1", "10.7.0.254"));
	CHILD_CHECK(!near("10.7.0.1", "10.7.1.1") && !near("10.7.0.1", "10.7.0.255"));
	CHILD_CHECK(near("fd00:7::1", "fd00:7::2:1") && !near("fd00:7::1", "fd00:7:0:1::1"));
	CHILD_CHECK(!near("10.7.0.1", "fd00:7::1") && !near("fd00:7::1", "10.7.0.1"));
	CHILD_CHECK(!near("fe80::1", "fe80::2") && !near("::", "::2"));
	CHILD_CHECK(!near("127.0.0.1", "127.0.0.2") && !near("0.0.0.0", "0.0.0.1"));
}

/* A socket takes addresses of its own families only. */
static void
target(struct rig *r)
{
	struct sockaddr_in in = rig_in("10.0.0.2", 7);
	struct sockaddr_in6 in6 = rig_in6("fd00::2", 7), mapped = rig_in6("::ffff:10.0.0.2", 7);
	struct urn_twin four = {.family = AF_INET}, six = {.family = AF_INET6},
			only = {.family = AF_INET6, .v6only = true};
	struct urn_addr a;

	(void)r;
	CHILD_CHECK(urn_twin_target(&four, &a, SA(in), sizeof(in)) && a.port == 7);
	CHILD_CHECK(!urn_twin_target(&four, &a, SA(in), 7));
	CHILD_CHECK(!urn_twin_target(&four, &a, SA(in6), sizeof(in6)));
	CHILD_CHECK(urn_twin_target(&six, &a, SA(in6), sizeof(in6)));
	CHILD_CHECK(urn_twin_target(&six, &a, SA(mapped), sizeof(mapped)));
	CHILD_CHECK(urn_twin_target(&six, &a, SA(in), sizeof(in)));
	CHILD_CHECK(urn_twin_target(&only, &a, SA(in6), sizeof(in6)));
	CHILD_CHECK(!urn_twin_target(&only, &a, SA(mapped), sizeof(mapped)));
}

/* Without a dataplane no address is urnic's, and the next look for one waits a second. */
static void
alone(struct rig *r)
{
	(void)r;
	CHILD_CHECK(setenv("URNIC_SOCKET", "/nowhere/at.all", 1) == 0);
	CHILD_CHECK(unsetenv("URNIC_SOCKETS_NET") == 0);
	CHILD_CHECK(urn_socket_use(NULL) == 0);
	CHILD_CHECK(!has("10.0.0.1") && !urn_net_some());
	CHILD_CHECK(urn_socket_use(r->dev) == 0);
	CHILD_CHECK(!has("10.0.0.1"));
	usleep(1100000);
	CHILD_CHECK(has("10.0.0.1"));
}

static void (*const checks[])(struct rig *r) = {guess,	 told,	 never, broadcast,
						session, target, alone};

/* Run a check before the process has learnt any network. */
static void
networks(void **state)
{
	struct rig r = {.f = msg_fake_new()};
	size_t i;

	(void)state;
	r.dev = urn_msg_dev_open(&r.f->channel);
	assert_int_equal(urn_socket_use(r.dev), 0);
	for (i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		rig_in_child(checks[i], &r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(networks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
