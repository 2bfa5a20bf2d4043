/* SPDX-License-Identifier: BSD-3-Clause */
/* The meeting of urnic-perf pingpong with its peer: the 52 bytes, and TCP that does not block. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "urnic-perf/pp.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/* A message written by ibv_rc_pingpong of rdma-core. */
static const char real[PP_MSG] = "0000:000011:8bb88a:00000000000000000000ffff0a4d000b";

static struct urn_err err;
static unsigned int turns;

static void
turn(void *arg)
{
	(void)arg;
	turns++;
}

static const struct pp_wait patient = {turn, NULL, 30000000000ull};
static const struct pp_wait hasty = {turn, NULL, 20000000ull};

static void
message_of_the_kernels_side(void **state)
{
	static const uint8_t gid[16] = {[10] = 0xff, 0xff, 10, 77, 0, 11};
	struct urn_ep_addr addr;
	char again[PP_MSG];

	(void)state;
	assert_int_equal(pp_msg_parse(real, &addr, &err), 0);
	assert_int_equal(addr.qpn, 0x11);
	assert_int_equal(addr.psn, 0x8bb88a);
	assert_int_equal(addr.mtu_code, 0);
	assert_memory_equal(addr.gid, gid, 16);
	memset(again, 'x', sizeof(again));
	pp_msg_make(again, &addr);
	assert_memory_equal(again, real, PP_MSG);
}

/* Every byte matters: a byte that does not belong makes the message invalid. */
static void
messages_that_are_none(void **state)
{
	struct urn_ep_addr addr;
	char msg[PP_MSG];

	(void)state;
	for (unsigned int i = 0; i < PP_MSG; i++) {
		memcpy(msg, real, PP_MSG);
		msg[i] = 'g';
		assert_int_equal(pp_msg_parse(msg, &addr, &err), -1);
		msg[i] = (char)0xff;
		assert_int_equal(pp_msg_parse(msg, &addr, &err), -1);
	}
	assert_non_null(strstr(err.text, "LID:QPN:PSN:GID"));
	/* Upper case is accepted, too. */
	memcpy(msg, real, PP_MSG);
	msg[12 + 1] = 'B';
	assert_int_equal(pp_msg_parse(msg, &addr, &err), 0);
	assert_int_equal(addr.psn, 0x8bb88a);
	/* ibv_rc_pingpong without -g */
	memset(msg + 19, '0', 32);
	assert_int_equal(pp_msg_parse(msg, &addr, &err), -1);
	assert_non_null(strstr(err.text, "-g"));
}

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
	listener = pp_oob_listen("127.0.0.1", "0", &err);
	assert_true(listener >= 0);
	free_port(listener, service);
	a = pp_oob_connect("127.0.0.1", service, &patient, &err);
	assert_true(a >= 0);
	b = pp_oob_accept(listener, &patient, &err);
	assert_true(b >= 0);
	assert_int_equal(pp_oob_write(a, "ab", 2, "x", &patient, &err), 0);
	assert_int_equal(pp_oob_read(b, got, 1, "x", &patient, &err), 0);
	assert_int_equal(pp_oob_read(b, got + 1, 1, "x", &patient, &err), 0);
	assert_string_equal(got, "ab");
	turns = 0;
	assert_int_equal(pp_oob_read(b, got, 1, "word", &hasty, &err), -1);
	assert_true(turns > 0);
	assert_non_null(strstr(err.text, "word"));
	assert_non_null(strstr(err.text, "--wait"));
	/* Half a message, then the end. */
	assert_int_equal(pp_oob_write(a, "c", 1, "x", &patient, &err), 0);
	close(a);
	assert_int_equal(pp_oob_read(b, got, 2, "word", &patient, &err), -1);
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
	listener = pp_oob_listen("127.0.0.1", "0", &err);
	assert_true(listener >= 0);
	free_port(listener, service);
	assert_int_equal(pp_oob_accept(listener, &hasty, &err), -1);
	assert_non_null(strstr(err.text, "--wait"));
	/*
	 * The same address can be taken again; with no listener nobody answers, and the
	 * connection is tried until the end.
	 */
	second = pp_oob_listen("127.0.0.1", service, &err);
	assert_int_equal(second, -1);
	assert_non_null(strstr(err.text, service));
	close(listener);
	turns = 0;
	assert_int_equal(pp_oob_connect("127.0.0.1", service, &hasty, &err), -1);
	assert_true(turns > 0);
	assert_non_null(strstr(err.text, "ibv_rc_pingpong"));
	assert_int_equal(pp_oob_connect("no host", service, &hasty, &err), -1);
	assert_non_null(strstr(err.text, "no host"));
}

/* Without a host both address families work. */
static void
all_addresses(void **state)
{
	char service[8];
	int listener, fd;

	(void)state;
	listener = pp_oob_listen("", "0", &err);
	assert_true(listener >= 0);
	free_port(listener, service);
	fd = pp_oob_connect("127.0.0.1", service, &patient, &err);
	assert_true(fd >= 0);
	close(fd);
	close(listener);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(message_of_the_kernels_side),
		cmocka_unit_test(messages_that_are_none),
		cmocka_unit_test(two_meet),
		cmocka_unit_test(nobody_there),
		cmocka_unit_test(all_addresses),
	};

	return cmocka_run_group_tests_name("pp_oob", tests, NULL, NULL);
}
