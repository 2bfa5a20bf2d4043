/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of programs to the dataplane, made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "hostile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

bool hostile_attacking;

static void
must(bool ok, const char *what)
{
	if (!ok && hostile_attacking) {
		fprintf(stderr, "an attacker: %s: %s\n", what, strerror(errno));
		_exit(9);
	}
	if (!ok)
		fail_msg("%s: %s", what, strerror(errno));
}

int
hostile_dial(const struct rig *r)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	const struct timeval tv = {.tv_sec = 10};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", r->path);
	must(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) == 0 &&
	     connect(fd, (void *)&addr, sizeof(addr)) == 0, "connect");
	return fd;
}

struct urn_sock_ask
hostile_question(uint16_t kind)
{
	return (struct urn_sock_ask){
		.head = {
			.magic = URN_SOCK_MAGIC,
			.version = URN_SOCK_VERSION,
			.kind = kind,
			.serial = 77,
			.bytes = urn_sock_ask_bytes(kind),
		},
	};
}

void
hostile_post(int fd, const void *p, size_t n, const int *fds, unsigned int count)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(8 * sizeof(int))];
	} control = {{0}};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)p, .iov_len = n};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (count) {
		struct cmsghdr *c;

		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	}
	must(sendmsg(fd, &msg, MSG_NOSIGNAL) == (ssize_t)n, "ask");
}

struct urn_sock_answer
hostile_take(int fd)
{
	struct urn_sock_answer a;

	must(recv(fd, &a, sizeof(a), 0) == (ssize_t)sizeof(a), "answer");
	return a;
}

struct urn_sock_answer
hostile_ask(int fd, const struct urn_sock_ask *q)
{
	struct urn_sock_answer a;

	hostile_post(fd, q, q->head.bytes, NULL, 0);
	a = hostile_take(fd);
	must(a.head.serial == q->head.serial, "serial");
	return a;
}

void
hostile_hello(int fd)
{
	struct urn_sock_ask q = hostile_question(URN_SOCK_HELLO);
	struct urn_sock_answer a;

	q.hello.oldest = URN_ABI_VERSION;
	a = hostile_ask(fd, &q);
	must(a.err == 0 && a.hello.abi == URN_ABI_VERSION && a.hello.adapters == 2, "hello");
}

struct urn_sock_answer
hostile_open(int fd, const char *name, const int *fds, unsigned int count)
{
	struct urn_sock_ask q = hostile_question(URN_SOCK_OPEN);

	snprintf(q.open.name, sizeof(q.open.name), "%s", name);
	hostile_post(fd, &q, q.head.bytes, fds, count);
	return hostile_take(fd);
}

void
hostile_hung_up(int fd)
{
	char buf[1024];
	ssize_t n;

	while ((n = recv(fd, buf, sizeof(buf), 0)) > 0)
		;
	must(n == 0 || errno == ECONNRESET, "hang up");
	close(fd);
}

bool
hostile_serves(const struct rig *r)
{
	struct urn_sock_ask q = hostile_question(URN_SOCK_HELLO);
	struct urn_sock_answer a;
	int fd = hostile_dial(r);
	bool ok;

	q.hello.oldest = URN_ABI_VERSION;
	hostile_post(fd, &q, q.head.bytes, NULL, 0);
	ok = recv(fd, &a, sizeof(a), 0) == (ssize_t)sizeof(a);
	close(fd);
	return ok;
}
