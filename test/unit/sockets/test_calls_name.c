/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that make, name, connect and set sockets (DB-11). */
#include "rig.h"

/* Names of a socket that is urnic's. */
static void
binds(void **state)
{
	struct rig *r = *state;
	struct sockaddr_in a, other = rig_in("10.0.0.2", 8), any = rig_in("0.0.0.0", 7),
			      zero = rig_in("10.0.0.1", 0);
	struct sockaddr_in6 in6 = rig_in6("fd00::1", 8);
	socklen_t len = sizeof(a);

	assert_int_equal(getsockname(r->t, SA(a), &len), 0);
	assert_int_equal(a.sin_port, 0);
	FAILS(bind(r->t, SA(r->a), sizeof(r->a)), EADDRINUSE);
	FAILS(bind(r->t, SA(any), sizeof(any)), EADDRINUSE);
	FAILS(bind(r->t, SA(other), sizeof(other)), EADDRNOTAVAIL);
	FAILS(bind(r->t, SA(in6), sizeof(in6)), EAFNOSUPPORT);
	FAILS(bind(r->t, SA(r->a), 7), EINVAL);
	FAILS(bind(r->s, SA(zero), sizeof(zero)), EINVAL);
	assert_int_equal(bind(r->t, SA(zero), sizeof(zero)), 0);
	assert_int_equal(getsockname(r->t, SA(a), &len), 0);
	assert_in_range(ntohs(a.sin_port), URN_PORT_FIRST, URN_PORT_END - 1);
	assert_int_equal(a.sin_addr.s_addr, r->a.sin_addr.s_addr);
}

/* A port that was closed is not the next one's: late answers would come to a stranger. */
static void
ports(void **state)
{
	struct rig *r = *state;
	struct sockaddr_in a, last = rig_in("10.0.0.1", 0);
	socklen_t len = sizeof(a);
	int i, same = 0;

	for (i = 0; i < 8; i++) {
		int u = socket(AF_INET, SOCK_DGRAM, 0);

		a = rig_in("10.0.0.1", 0);
		assert_int_equal(bind(u, SA(a), sizeof(a)), 0);
		assert_int_equal(getsockname(u, SA(a), &len), 0);
		same += a.sin_port == last.sin_port;
		last = a;
		close(u);
	}
	assert_in_range(same, 0, 2);
	(void)r;
}

/* Any address is both the kernel's and urnic's; the port is one. */
static void
any(void **state)
{
	struct rig *r = *state;
	struct sockaddr_in a = rig_in("0.0.0.0", 0), ka = rig_in("127.0.0.1", 0);
	socklen_t len = sizeof(a);
	int u = socket(AF_INET, SOCK_DGRAM, 0), v = socket(AF_INET, SOCK_DGRAM, 0);

	assert_int_equal(bind(u, SA(a), sizeof(a)), 0);
	assert_int_equal(getsockname(u, SA(a), &len), 0);
	assert_int_equal(rig_sock(u)->local.port, ntohs(a.sin_port));
	FAILS(bind(v, SA(a), sizeof(a)), EADDRINUSE);
	ka.sin_port = r->ka.sin_port; /* the kernel's alone has the port: urnic gives it back */
	ka.sin_addr.s_addr = 0;
	FAILS(bind(v, SA(ka), sizeof(ka)), EADDRINUSE);
	assert_null(rig_sock(v));
	ka = rig_in("127.0.0.1", 0);
	assert_int_equal(bind(v, SA(ka), sizeof(ka)), 0);
	assert_null(rig_sock(v));
	close(u);
	close(v);
}

/* The first of several sockets at a port of any address has urnic's datagrams; SO_REUSEADDR shares
 * nothing. */
static void
reuse(void **state)
{
	struct rig *r = *state;
	struct sockaddr_in a = rig_in("0.0.0.0", 0);
	socklen_t len = sizeof(a);
	int u = socket(AF_INET, SOCK_DGRAM, 0), v = socket(AF_INET, SOCK_DGRAM, 0),
	    w = socket(AF_INET, SOCK_DGRAM, 0), one = 1;

	assert_int_equal(setsockopt(u, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)), 0);
	assert_int_equal(setsockopt(v, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)), 0);
	assert_int_equal(setsockopt(w, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
	assert_int_equal(bind(u, SA(a), sizeof(a)), 0);
	assert_int_equal(getsockname(u, SA(a), &len), 0);
	assert_int_equal(bind(v, SA(a), sizeof(a)), 0);
	assert_null(rig_sock(v));
	FAILS(bind(w, SA(a), sizeof(a)), EADDRINUSE);
	a.sin_addr = r->a.sin_addr;
	assert_int_equal(sendto(r->t, "x", 1, 0, SA(a), sizeof(a)), 1);
	rig_gets_none(v);
	rig_gets(u, "x");
	FAILS(bind(w, SA(a), sizeof(a)), EADDRINUSE);
	close(u);
	close(v);
	close(w);
}

/* An IPv6 socket that takes no IPv4 leaves its port to an IPv4 socket, in either order. */
static void
families(void **state)
{
	struct rig *r = *state;
	struct sockaddr_in6 in6 = rig_in6("::", 0);
	struct sockaddr_in in = rig_in("0.0.0.0", 0);
	socklen_t len = sizeof(in6);
	int six = socket(AF_INET6, SOCK_DGRAM, 0), four = socket(AF_INET, SOCK_DGRAM, 0), one = 1;

	assert_int_equal(setsockopt(six, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)), 0);
	assert_int_equal(bind(six, SA(in6), sizeof(in6)), 0);
	assert_int_equal(getsockname(six, SA(in6), &len), 0);
	in.sin_port = in6.sin6_port;
	assert_int_equal(bind(four, SA(in), sizeof(in)), 0);
	assert_int_equal(rig_sock(four)->bound, 1);
	assert_int_equal(rig_sock(six)->bound, 0);
	assert_int_equal(close(six), 0);
	six = socket(AF_INET6, SOCK_DGRAM, 0);
	assert_int_equal(setsockopt(six, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)), 0);
	assert_int_equal(bind(six, SA(in6), sizeof(in6)), 0);
	assert_null(rig_sock(six));
	in.sin_addr = r->a.sin_addr;
	assert_int_equal(sendto(r->t, "x", 1, 0, SA(in), sizeof(in)), 1);
	rig_gets(four, "x");
	close(six);
	close(four);
}

/* Peers of both kinds, one after the other. */
static void
peers(void **state)
{
	struct rig *r = *state;
	struct sockaddr_in a = {0};
	struct sockaddr_in6 in6 = rig_in6("fd00::1", 8);
	struct sockaddr un = {.sa_family = AF_UNSPEC};
	socklen_t len = sizeof(a);
	char buf[8];

	FAILS(getpeername(r->t, SA(a), &len), ENOTCONN);
	FAILS(connect(r->t, SA(in6), sizeof(in6)), EAFNOSUPPORT);
	FAILS(connect(r->t, SA(r->a), 7), EINVAL);
	assert_int_equal(connect(r->t, SA(r->a), sizeof(r->a)), 0);
	assert_int_equal(getpeername(r->t, SA(a), &len), 0);
	assert_memory_equal(&a, &r->a, sizeof(a));
	assert_int_equal(getsockname(r->t, SA(a), &len), 0);
	assert_int_equal(a.sin_addr.s_addr, r->a.sin_addr.s_addr);
	assert_int_equal(send(r->t, "urnic", 5, 0), 5);
	rig_gets(r->s, "urnic");
	assert_int_equal(connect(r->t, SA(r->ka), sizeof(r->ka)), 0);
	assert_int_equal(getpeername(r->t, SA(a), &len), 0);
	assert_memory_equal(&a, &r->ka, sizeof(a));
	assert_int_equal(send(r->t, "kernel", 6, 0), 6);
	assert_int_equal(urn_real()->recv(r->k, buf, sizeof(buf), 0), 6);
	assert_int_equal(connect(r->t, SA(r->a), sizeof(r->a)), 0);
	assert_int_equal(connect(r->t, &un, sizeof(un)), 0);
	FAILS(getpeername(r->t, SA(a), &len), ENOTCONN);
	FAILS(send(r->t, "x", 1, 0), EDESTADDRREQ);
}

static void
connects(struct rig *r)
{
	CHILD_CHECK(connect(r->t, SA(r->a), sizeof(r->a)) == 0);
}

/* A peer that another process gave to the socket is the socket's. */
static void
shared_peer(void **state)
{
	struct rig *r = *state;

	rig_send(r, "x");
	rig_gets(r->s, "x");
	rig_in_child(connects, r);
	assert_int_equal(send(r->t, "y", 1, 0), 1);
	rig_gets(r->s, "y");
}

/* Options are the kernel's, but those that urnic minds, too. */
static void
options(void **state)
{
	struct rig *r = *state;
	struct timeval tv = {.tv_sec = 1, .tv_usec = 5};
	struct sockaddr_in nobody = rig_in("10.0.0.1", 99);
	int v = -1;
	socklen_t len = sizeof(v);

	assert_int_equal(setsockopt(r->t, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)), 0);
	rig_send(r, "x"); /* the urnic socket is made after the option was set */
	assert_int_equal(rig_sock(r->t)->sndtimeo_ns, 1000005000u);
	tv.tv_sec = 2;
	assert_int_equal(setsockopt(r->t, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)), 0);
	assert_int_equal(rig_sock(r->t)->sndtimeo_ns, 2000005000u);
	FAILS(setsockopt(r->t, SOL_SOCKET, 9999, &v, sizeof(v)), ENOPROTOOPT);
	assert_int_equal(getsockopt(r->t, SOL_SOCKET, SO_TYPE, &v, &len), 0);
	assert_int_equal(v, SOCK_DGRAM);
	assert_int_equal(connect(r->t, SA(nobody), sizeof(nobody)), 0);
	assert_int_equal(send(r->t, "x", 1, MSG_DONTWAIT), 1);
	usleep(20000);
	assert_int_equal(getsockopt(r->t, SOL_SOCKET, SO_ERROR, &v, &len), 0);
	assert_int_equal(v, ECONNREFUSED);
	assert_int_equal(getsockopt(r->t, SOL_SOCKET, SO_ERROR, &v, &len), 0);
	assert_int_equal(v, 0);
}

/* shutdown() is answered as by the kernel, and holds without a peer, too. */
static void
shuts(void **state)
{
	struct rig *r = *state;

	FAILS(shutdown(r->s, SHUT_RD), ENOTCONN);
	FAILS(shutdown(r->s, 77), EINVAL);
	FAILS(shutdown(1000, SHUT_RD), EBADF);
	assert_int_equal(connect(r->t, SA(r->a), sizeof(r->a)), 0);
	assert_int_equal(shutdown(r->t, SHUT_WR), 0);
	FAILS(send(r->t, "x", 1, 0), EPIPE);
}

/* Sockets of other kinds have no twin. One of TCP may have the name of a urnic node, which the
 * kernel does not know. */
static void
others(void **state)
{
	struct rig *r = *state;
	struct sockaddr_in name;
	socklen_t len = sizeof(name);
	int tcp = socket(AF_INET, SOCK_STREAM, 0), local = socket(AF_UNIX, SOCK_DGRAM, 0);

	assert_null(urn_twin_get(tcp));
	assert_null(urn_twin_get(local));
	FAILS(socket(AF_INET, SOCK_DGRAM, IPPROTO_TCP), EPROTONOSUPPORT);
	assert_int_equal(bind(tcp, SA(r->a), sizeof(r->a)), 0);
	assert_int_equal(getsockname(tcp, SA(name), &len), 0);
	assert_memory_equal(&name, &r->a, sizeof(name));
	FAILS(bind(tcp, SA(r->a), sizeof(r->a)), EINVAL);
	FAILS(bind(local, SA(r->a), sizeof(r->a)), EINVAL);
	close(tcp);
	close(local);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(binds, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(ports, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(any, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(reuse, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(families, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(peers, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(shared_peer, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(options, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(shuts, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(others, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
