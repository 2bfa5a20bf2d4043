/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP that does not block: pieces, waits that end, both address families. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "common/tcp.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static struct urn_err err;
static unsigned int turns;

static void
turn(void *arg)
{
	(void)arg;
	turns++;
}

static const struct urn_tcp_wait patient = {turn, NULL, 30000000000ull, "somebody"};
static const struct urn_tcp_wait hasty = {turn, NULL, 20000000ull, "somebody"};

static void
free_port(int fd, char service[8])
{
	struct sockaddr_storage at;
	socklen_t len = sizeof(at);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	snprintf(service, 8, "%u",
		 ntohs(at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port
						: ((struct sockaddr_in *)&at)->sin_port));
}

/* Bytes pass both ways, in pieces; the engine turns meanwhile. */
static void
two_meet(void **state)
{
	char service[8], got[8] = "";
	int listener, a, b;

	(void)state;
	listener = urn_tcp_listen("127.0.0.1", "0", &err);
	assert_true(listener >= 0);
	free_port(listener, service);
	a = urn_tcp_connect("127.0.0.1", service, &patient, &err);
	assert_true(a >= 0);
	b = urn_tcp_accept(listener, &patient, &err);
	assert_true(b >= 0);
	assert_int_equal(urn_tcp_write(a, "ab", 2, "x", &patient, &err), 0);
	assert_int_equal(urn_tcp_read(b, got, 1, "x", &patient, &err), 0);
	assert_int_equal(urn_tcp_read(b, got + 1, 1, "x", &patient, &err), 0);
	assert_string_equal(got, "ab");
	turns = 0;
	assert_int_equal(urn_tcp_read(b, got, 1, "word", &hasty, &err), -1);
	assert_true(turns > 0);
	assert_non_null(strstr(err.text, "word"));
	assert_non_null(strstr(err.text, "--wait"));
	/* Half a message, then the end. */
	assert_int_equal(urn_tcp_write(a, "c", 1, "x", &patient, &err), 0);
	close(a);
	assert_int_equal(urn_tcp_read(b, got, 2, "word", &patient, &err), -1);
	assert_non_null(strstr(err.text, "closed"));
	close(b);
	close(listener);
}

static void
nobody_there(void **state)
{
	char service[8];
	int listener, second;

	(void)state;
	listener = urn_tcp_listen("127.0.0.1", "0", &err);
	assert_true(listener >= 0);
	free_port(listener, service);
	assert_int_equal(urn_tcp_accept(listener, &hasty, &err), -1);
	assert_non_null(strstr(err.text, "--wait"));
	/*
	 * The same address can be taken again; with no listener nobody answers, and the
	 * connection is tried until the end.
	 */
	second = urn_tcp_listen("127.0.0.1", service, &err);
	assert_int_equal(second, -1);
	assert_non_null(strstr(err.text, service));
	close(listener);
	turns = 0;
	assert_int_equal(urn_tcp_connect("127.0.0.1", service, &hasty, &err), -1);
	assert_true(turns > 0);
	assert_non_null(strstr(err.text, "is somebody running there?"));
	assert_int_equal(urn_tcp_connect("no host", service, &hasty, &err), -1);
	assert_non_null(strstr(err.text, "no host"));
}

/* Without a host both address families work. */
static void
all_addresses(void **state)
{
	char service[8];
	int listener, fd;

	(void)state;
	listener = urn_tcp_listen("", "0", &err);
	assert_true(listener >= 0);
	free_port(listener, service);
	fd = urn_tcp_connect("127.0.0.1", service, &patient, &err);
	assert_true(fd >= 0);
	close(fd);
	close(listener);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_meet),
		cmocka_unit_test(nobody_there),
		cmocka_unit_test(all_addresses),
	};

	return cmocka_run_group_tests_name("common_tcp", tests, NULL, NULL);
}
