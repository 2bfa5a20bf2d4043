/* SPDX-License-Identifier: BSD-3-Clause */
/* Usage: tcp-calls server|client ADDRESS PORT */
#include "tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int tcp_listener = -1;
static const char *name = "start";
static struct sockaddr_in where;

long
tcp_say(const char *step, long r)
{
	int err = errno;

	printf("%s: %s: %ld%s%s\n", name, step, r, r < 0 ? " " : "",
	       r < 0 ? strerrorname_np(err) : "");
	fflush(stdout);
	return r;
}

void
tcp_say_bytes(const char *step, const char *data, long n)
{
	int err = errno;

	printf("%s: %s \"%.*s\"\n", name, step, n > 0 ? (int)n : 0, data);
	errno = err;
	(void)tcp_say(step, n);
}

static void
die(const char *why)
{
	printf("%s: cannot run: %s: %s\n", name, why, strerror(errno));
	exit(1);
}

void
tcp_meet(int fd)
{
	char c = '.';

	if (send(fd, &c, 1, MSG_NOSIGNAL) != 1 || recv(fd, &c, 1, MSG_WAITALL) != 1 || c != '.')
		die("the ends do not meet");
}

int
tcp_ready(int fd, short events, int ms)
{
	struct pollfd p = {.fd = fd, .events = events};
	int n = poll(&p, 1, ms);

	return n <= 0 ? n : p.revents;
}

void
tcp_block(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	if (fcntl(fd, F_SETFL, on ? flags & ~O_NONBLOCK : flags | O_NONBLOCK) != 0)
		die("fcntl");
}

int
tcp_open(int flags, bool *pending)
{
	int fd = socket(AF_INET, SOCK_STREAM | flags, 0), err;

	*pending = false;
	if (fd < 0)
		die("socket");
	err = connect(fd, (struct sockaddr *)&where, sizeof(where));
	if (err != 0 && errno == EINPROGRESS)
		*pending = true;
	else if (err != 0)
		die("connect");
	return fd;
}

static void
say_name(const char *step, int (*call)(int, struct sockaddr *, socklen_t *), int fd, bool port)
{
	struct sockaddr_in in = {0};
	socklen_t len = sizeof(in);

	if (tcp_say(step, call(fd, (struct sockaddr *)&in, &len)) == 0)
		printf("%s: %s: family %d, length %u, port %s\n", name, step, in.sin_family, len,
		       !port			       ? in.sin_port ? "some" : "none"
		       : in.sin_port == where.sin_port ? "the listener's"
						       : "another");
}

/* Names and options, of either end. */
static void
names(int fd, bool server)
{
	int v = 1;
	socklen_t len = sizeof(v);

	say_name("getsockname", getsockname, fd, server);
	say_name("getpeername", getpeername, fd, !server);
	(void)tcp_say("TCP_NODELAY", setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &v, sizeof(v)));
	(void)tcp_say("SO_KEEPALIVE", setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &v, sizeof(v)));
	(void)tcp_say("SO_ERROR", getsockopt(fd, SOL_SOCKET, SO_ERROR, &v, &len));
	(void)tcp_say("its value", v);
	(void)tcp_say("connect again", connect(fd, (struct sockaddr *)&where, sizeof(where)));
}

static void
server_names(int fd)
{
	names(fd, true);
	tcp_meet(fd);
}

static void
client_names(int fd)
{
	names(fd, false);
	tcp_meet(fd);
}

static const struct tcp_case name_cases[] = {{"names", server_names, client_names}, {NULL}};
static const struct tcp_case *const all[] = {name_cases, tcp_data_cases, tcp_wait_cases};

static int
listener(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0)
		die("socket");
	(void)tcp_say("bind", bind(fd, (struct sockaddr *)&where, sizeof(where)));
	(void)tcp_say("listen", listen(fd, 5));
	(void)tcp_say("accept, nobody there", accept(fd, NULL, NULL));
	(void)tcp_say("poll, nobody there", tcp_ready(fd, POLLIN, 0));
	puts("ready");
	fflush(stdout);
	return fd;
}

static void
serve(void (*run)(int fd))
{
	struct sockaddr_in from = {0};
	socklen_t len = sizeof(from);
	int fd;

	(void)tcp_say("poll of the listener", tcp_ready(tcp_listener, POLLIN, TCP_SECONDS * 1000));
	fd = accept4(tcp_listener, (struct sockaddr *)&from, &len, SOCK_CLOEXEC);
	(void)tcp_say("accepted", fd < 0 ? -1 : (long)len);
	if (fd < 0)
		exit(1);
	alarm(TCP_SECONDS);
	run(fd);
	(void)tcp_say("close", close(fd));
}

int
main(int argc, char **argv)
{
	bool is_server = argc > 1 && strcmp(argv[1], "server") == 0, pending;

	if (argc != 4)
		return 2;
	where = (struct sockaddr_in){.sin_family = AF_INET,
				     .sin_port = htons((uint16_t)atoi(argv[3]))};
	if (inet_pton(AF_INET, argv[2], &where.sin_addr) != 1)
		die(argv[2]);
	if (is_server)
		tcp_listener = listener();
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		for (const struct tcp_case *c = all[i]; c->name; c++) {
			int fd = -1;

			name = c->name;
			alarm(TCP_SECONDS);
			if (is_server) {
				serve(c->server);
				continue;
			}
			fd = tcp_open(0, &pending);
			c->client(fd);
			(void)tcp_say("close", close(fd));
		}
	puts("all");
	return 0;
}
