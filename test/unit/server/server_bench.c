/* SPDX-License-Identifier: BSD-3-Clause */
#include "server_bench.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len);

_Atomic bool server_old_kernel;

int
__wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	if (!server_old_kernel || level != SOL_SOCKET || name != SO_PEERPIDFD)
		return __real_getsockopt(fd, level, name, value, len);
	errno = ENOPROTOOPT;
	return -1;
}

char server_dir[] = "/tmp/urnic-test.XXXXXX", server_path[64];
struct urn_dp server_dp;
struct urn_server *server;
static unsigned int fds_before;

static unsigned int
server_open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

void
server_start(unsigned int clients, unsigned int per_uid)
{
	const struct urn_server_config cfg = {.path = server_path,
					      .gid = (gid_t)-1,
					      .clients = clients,
					      .clients_per_uid = per_uid};
	struct urn_err err = {""};

	fds_before = server_open_fds();
	server_dp.speaks = URN_ABI_OFFER;
	server = urn_server_open(&server_dp, &cfg, &err);
	if (!server)
		fail_msg("%s", err.text);
}

int
server_setup(void **state)
{
	(void)state;
	server_start(4, 3);
	return 0;
}

int
server_teardown(void **state)
{
	(void)state;
	assert_int_equal(urn_server_close(server), 0);
	assert_int_equal(access(server_path, F_OK), -1);
	assert_int_equal(server_open_fds(), fds_before);
	server = NULL;
	return 0;
}

int
server_dial(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	const struct timeval tv = {.tv_sec = 20};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", server_path);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
	assert_int_equal(connect(fd, (void *)&addr, sizeof(addr)), 0);
	return fd;
}

struct urn_sock_ask
server_question(uint16_t kind)
{
	return (struct urn_sock_ask){
		.head = {URN_SOCK_MAGIC, URN_SOCK_VERSION, kind, 5, urn_sock_ask_bytes(kind)},
		.hello = {.oldest = kind == URN_SOCK_HELLO ? URN_ABI_VERSION : 0},
	};
}

struct urn_sock_answer
server_take(int fd)
{
	struct urn_sock_answer a;

	assert_int_equal(recv(fd, &a, sizeof(a), 0), sizeof(a));
	return a;
}

struct urn_sock_answer
server_ask(int fd, const struct urn_sock_ask *q)
{
	assert_int_equal(send(fd, q, q->head.bytes, MSG_NOSIGNAL), q->head.bytes);
	return server_take(fd);
}

int
server_comes(void)
{
	const struct urn_sock_ask q = server_question(URN_SOCK_HELLO);
	int fd = server_dial();

	assert_int_equal(server_ask(fd, &q).err, 0);
	return fd;
}

void
server_hung_up_on(int fd)
{
	char byte;

	assert_int_equal(recv(fd, &byte, 1, 0), 0);
	close(fd);
}

struct urn_server_counters
server_counts(void)
{
	struct urn_server_counters c;

	urn_server_counters(server, &c);
	return c;
}

void
server_clients(uint64_t n)
{
	const struct timespec ms = {.tv_nsec = 1000000};

	for (int i = 0; i < 20000 && server_counts().clients != n; i++)
		nanosleep(&ms, NULL);
	assert_int_equal(server_counts().clients, n);
}
