/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of rsockets: each one that doc/reference/rsockets.md names, its bounds and its errors
 * (RS-1). */
#include "rig.h"

#include "dropin/rdmacm/rsocket/rs.h"

#include <linux/in6.h>
#include <netinet/tcp.h>
#include <string.h>

static int
put(int fd, int level, int opt, int n)
{
	return rsetsockopt(fd, level, opt, &n, sizeof(n));
}

static int
get(int fd, int level, int opt)
{
	socklen_t len = sizeof(int);
	int n = -7;

	assert_int_equal(rgetsockopt(fd, level, opt, &n, &len), 0);
	assert_int_equal(len, sizeof(int));
	return n;
}

static int
open_one(int domain, int type)
{
	int fd = rsocket(domain, type, 0);

	assert_true(fd >= 0);
	return fd;
}

/* A number that is set, and the one that is then given back. */
struct number {
	int level, opt, set, got;
};

static void
try_numbers(int fd, const struct number *n, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (put(fd, n[i].level, n[i].opt, n[i].set) != 0 ||
		    get(fd, n[i].level, n[i].opt) != n[i].got)
			fail_msg("level %d option %d set to %d: %d instead of %d", n[i].level,
				 n[i].opt, n[i].set, get(fd, n[i].level, n[i].opt), n[i].got);
	}
}

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Numbers within their bounds are given back; beyond them the bound is. */
static void
test_numbers(void **state)
{
	static const struct number stream[] = {
		{SOL_SOCKET, SO_REUSEADDR, 5, 1},
		{SOL_SOCKET, SO_REUSEADDR, 0, 0},
		{SOL_SOCKET, SO_OOBINLINE, 1, 1},
		{SOL_SOCKET, SO_OOBINLINE, 0, 0},
		{SOL_SOCKET, SO_KEEPALIVE, 9, 1},
		{SOL_SOCKET, SO_KEEPALIVE, 0, 0},
		{SOL_SOCKET, SO_SNDBUF, 10000, 20000},
		{SOL_SOCKET, SO_SNDBUF, 0, 4096},
		{SOL_SOCKET, SO_SNDBUF, INT32_MAX, 256 << 20},
		{SOL_SOCKET, SO_RCVBUF, 10000, 20000},
		{SOL_SOCKET, SO_RCVBUF, -1, 4096},
		{SOL_SOCKET, SO_RCVBUF, INT32_MAX, 256 << 20},
		{IPPROTO_TCP, TCP_NODELAY, 2, 1},
		{IPPROTO_TCP, TCP_NODELAY, 0, 0},
		{IPPROTO_TCP, TCP_KEEPIDLE, 1, 1},
		{IPPROTO_TCP, TCP_KEEPIDLE, 32767, 32767},
		{IPPROTO_IP, IP_TOS, 0x68, 0x68},
		{SOL_RDMA, RDMA_SQSIZE, 100, 100},
		{SOL_RDMA, RDMA_SQSIZE, 1, 16},
		{SOL_RDMA, RDMA_SQSIZE, 20000, 16384},
		{SOL_RDMA, RDMA_RQSIZE, 200, 200},
		{SOL_RDMA, RDMA_RQSIZE, 0, 16},
		{SOL_RDMA, RDMA_RQSIZE, 20000, 16384},
		{SOL_RDMA, RDMA_INLINE, 0, 0},
		{SOL_RDMA, RDMA_INLINE, 9999, 256},
		{SOL_RDMA, RDMA_IOMAPSIZE, 100, 100},
		{SOL_RDMA, RDMA_IOMAPSIZE, 200, 128},
		{SOL_RDMA, RDMA_IOMAPSIZE, 1000, 768},
		{SOL_RDMA, RDMA_IOMAPSIZE, 0, 0},
	};
	static const struct number v6[] = {
		{IPPROTO_IPV6, IPV6_V6ONLY, 3, 1},
		{IPPROTO_IPV6, IPV6_V6ONLY, 0, 0},
		{IPPROTO_IPV6, IPV6_TCLASS, 0x20, 0x20},
	};
	int fd = open_one(AF_INET, SOCK_STREAM), six = open_one(AF_INET6, SOCK_STREAM);
	struct urn_rs *rs;

	(void)state;
	try_numbers(fd, stream, COUNT(stream));
	try_numbers(six, v6, COUNT(v6));
	/* The connection's id has the type of service, because the id makes the queue pair's path.
	 */
	rs = urn_rs_get(fd);
	assert_int_equal(urn_cma_of(rs->id)->tos, 0x68);
	urn_rs_put(rs);
	assert_int_equal(rclose(fd), 0);
	assert_int_equal(rclose(six), 0);
}

/* A new socket's numbers, and those that are only to be asked for. */
static void
test_at_first(void **state)
{
	static const struct number first[] = {
		{SOL_SOCKET, SO_TYPE, 0, SOCK_STREAM},	   {SOL_SOCKET, SO_DOMAIN, 0, AF_INET},
		{SOL_SOCKET, SO_PROTOCOL, 0, IPPROTO_TCP}, {SOL_SOCKET, SO_ERROR, 0, 0},
		{SOL_SOCKET, SO_ACCEPTCONN, 0, 0},	   {SOL_SOCKET, SO_SNDBUF, 0, 1 << 17},
		{SOL_SOCKET, SO_KEEPALIVE, 0, 0},	   {IPPROTO_TCP, TCP_KEEPIDLE, 0, 7200},
		{IPPROTO_TCP, TCP_MAXSEG, 0, 1024},	   {SOL_RDMA, RDMA_SQSIZE, 0, 384},
		{SOL_RDMA, RDMA_RQSIZE, 0, 384},	   {SOL_RDMA, RDMA_INLINE, 0, 64},
		{SOL_RDMA, RDMA_IOMAPSIZE, 0, 0},
	};
	int fd = open_one(AF_INET, SOCK_STREAM), six = open_one(AF_INET6, SOCK_DGRAM);

	(void)state;
	for (size_t i = 0; i < COUNT(first); i++)
		if (get(fd, first[i].level, first[i].opt) != first[i].got)
			fail_msg("level %d option %d: %d instead of %d", first[i].level,
				 first[i].opt, get(fd, first[i].level, first[i].opt), first[i].got);
	assert_int_equal(get(six, SOL_SOCKET, SO_TYPE), SOCK_DGRAM);
	assert_int_equal(get(six, SOL_SOCKET, SO_DOMAIN), AF_INET6);
	assert_int_equal(get(six, SOL_SOCKET, SO_PROTOCOL), IPPROTO_UDP);
	own.sin_port = 0;
	assert_int_equal(rbind(fd, (struct sockaddr *)&own, sizeof(own)), 0);
	assert_int_equal(rlisten(fd, 1), 0);
	assert_int_equal(get(fd, SOL_SOCKET, SO_ACCEPTCONN), 1);
	for (size_t i = 0; i < 5; i++) /* those that are only to be asked for */
		fails(put(fd, SOL_SOCKET, first[i].opt, 1), ENOPROTOOPT);
	assert_int_equal(rclose(fd), 0);
	assert_int_equal(rclose(six), 0);
}

/* Options that mean nothing here are taken, so that programs of TCP go on. */
static void
test_without_effect(void **state)
{
	static const struct number taken[] = {
		{SOL_SOCKET, SO_BROADCAST, 1, 0},     {SOL_SOCKET, SO_REUSEPORT, 1, 0},
		{IPPROTO_TCP, TCP_KEEPCNT, 9, 1},     {IPPROTO_TCP, TCP_KEEPINTVL, 9, 1},
		{IPPROTO_TCP, TCP_MAXSEG, 500, 1024}, {IPPROTO_TCP, TCP_USER_TIMEOUT, 9, 0},
		{IPPROTO_TCP, TCP_QUICKACK, 1, 0},    {IPPROTO_TCP, TCP_CORK, 1, 0},
	};
	int fd = open_one(AF_INET, SOCK_STREAM);
	char name[16] = "";
	socklen_t len = sizeof(name);

	(void)state;
	try_numbers(fd, taken, COUNT(taken));
	assert_int_equal(rsetsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 6), 0);
	assert_int_equal(rgetsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len), 0);
	assert_string_equal(name, "rdma");
	assert_int_equal(len, sizeof("rdma"));
	assert_int_equal(rclose(fd), 0);
}

/* Options that are more than a number: SO_LINGER, TCP_INFO, RDMA_ROUTE; cut off where there is less
 * room. */
static void
test_structs(void **state)
{
	const struct linger want = {.l_onoff = 1, .l_linger = 3};
	int fd = open_one(AF_INET, SOCK_STREAM), six = -1;
	struct ibv_path_data path;
	struct linger linger = {0};
	struct tcp_info info;
	socklen_t len = sizeof(linger);

	(void)state;
	assert_int_equal(rsetsockopt(fd, SOL_SOCKET, SO_LINGER, &want, sizeof(want)), 0);
	assert_int_equal(rgetsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &len), 0);
	assert_int_equal(len, sizeof(linger));
	assert_memory_equal(&linger, &want, sizeof(want));
	fails(put(fd, SOL_SOCKET, SO_LINGER, 1), EINVAL); /* half of the struct */
	memset(&info, 0xff, sizeof(info));
	len = sizeof(info);
	assert_int_equal(rgetsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len), 0);
	assert_int_equal(len, sizeof(info));
	assert_int_equal(info.tcpi_state, TCP_CLOSE);
	assert_int_equal(info.tcpi_snd_cwnd, 384);
	len = 1;
	assert_int_equal(rgetsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len), 0);
	assert_int_equal(len, 1);
	len = sizeof(path);
	assert_int_equal(rsetsockopt(fd, SOL_RDMA, RDMA_ROUTE, &path, sizeof(path)), 0);
	assert_int_equal(rgetsockopt(fd, SOL_RDMA, RDMA_ROUTE, &path, &len), 0);
	assert_int_equal(len, 0); /* no path yet */
	fails(rsetsockopt(fd, SOL_RDMA, RDMA_ROUTE, NULL, 0), EINVAL);
	fails(rgetsockopt(fd, SOL_RDMA, RDMA_ROUTE, &path, &len), EINVAL);
	/* A socket of datagrams has no options of TCP. */
	six = open_one(AF_INET, SOCK_DGRAM);
	len = sizeof(info);
	fails(rgetsockopt(six, IPPROTO_TCP, TCP_INFO, &info, &len), ENOPROTOOPT);
	fails(rgetsockopt(six, IPPROTO_TCP, TCP_CONGESTION, &info, &len), ENOPROTOOPT);
	fails(rgetsockopt(six, IPPROTO_TCP, TCP_NODELAY, &info, &len), ENOPROTOOPT);
	fails(put(six, IPPROTO_TCP, TCP_NODELAY, 1), ENOPROTOOPT);
	assert_int_equal(rclose(fd), 0);
	assert_int_equal(rclose(six), 0);
}

/* Options that there are not, values that are none, descriptors that are no sockets. */
static void
test_errors(void **state)
{
	static const int levels[] = {SOL_SOCKET, IPPROTO_TCP, IPPROTO_IP, IPPROTO_IPV6, SOL_RDMA};
	int fd = open_one(AF_INET, SOCK_STREAM), n = 1;
	const struct timeval second = {.tv_sec = 1};
	socklen_t len = sizeof(n);

	(void)state;
	for (size_t i = 0; i < COUNT(levels); i++) {
		fails(put(fd, levels[i], 9999, 1), ENOPROTOOPT);
		fails(rgetsockopt(fd, levels[i], 9999, &n, &len), ENOPROTOOPT);
		fails(rsetsockopt(fd, levels[i], SO_REUSEADDR, NULL, sizeof(n)), EINVAL);
		fails(rsetsockopt(fd, levels[i], SO_REUSEADDR, &n, 3), EINVAL);
	}
	fails(put(fd, 77, 1, 1), ENOPROTOOPT);
	fails(rgetsockopt(fd, 77, 1, &n, &len), ENOPROTOOPT);
	fails(rgetsockopt(fd, SOL_SOCKET, SO_TYPE, NULL, &len), EINVAL);
	fails(rgetsockopt(fd, SOL_SOCKET, SO_TYPE, &n, NULL), EINVAL);
	fails(put(fd, IPPROTO_TCP, TCP_KEEPIDLE, 0), EINVAL);
	fails(put(fd, IPPROTO_TCP, TCP_KEEPIDLE, 32768), EINVAL);
	fails(put(fd, SOL_RDMA, RDMA_SQSIZE, -1), EINVAL);
	fails(rsetsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second)), EOPNOTSUPP);
	fails(rsetsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof(second)), EOPNOTSUPP);
	fails(rsetsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &n, 3), EINVAL);
	assert_int_equal(get(fd, SOL_SOCKET, SO_KEEPALIVE), 0);
	assert_int_equal(rclose(fd), 0);
	fails(put(fd, SOL_SOCKET, SO_REUSEADDR, 1), EBADF);
	fails(rgetsockopt(fd, SOL_SOCKET, SO_TYPE, &n, &len), EBADF);
}

int
main(void)
{
#define t(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
	const struct CMUnitTest tests[] = {
		t(numbers), t(at_first), t(without_effect), t(structs), t(errors),
	};

	return cmocka_run_group_tests_name("rsocket_options", tests, NULL, NULL);
}
