/* SPDX-License-Identifier: BSD-3-Clause */
#include "rig.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/wait.h>

struct sockaddr_in
rig_in(const char *text, uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

	assert_int_equal(inet_pton(AF_INET, text, &in.sin_addr), 1);
	return in;
}

struct sockaddr_in6
rig_in6(const char *text, uint16_t port)
{
	struct sockaddr_in6 in = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

	assert_int_equal(inet_pton(AF_INET6, text, &in.sin6_addr), 1);
	return in;
}

int
rig_setup(void **state)
{
	static struct rig r;
	socklen_t len = sizeof(r.ka);

	r = (struct rig){
		.f = msg_fake_new(), .a = rig_in("10.0.0.1", 7), .ka = rig_in("127.0.0.1", 0)};
	r.dev = urn_msg_dev_open(&r.f->channel);
	assert_non_null(r.dev);
	assert_int_equal(urn_socket_use(r.dev), 0);
	r.s = socket(AF_INET, SOCK_DGRAM, 0);
	r.t = socket(AF_INET, SOCK_DGRAM, IPPROTO_UDP);
	assert_int_equal(bind(r.s, SA(r.a), sizeof(r.a)), 0);
	r.k = urn_real()->socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(urn_real()->bind(r.k, SA(r.ka), sizeof(r.ka)), 0);
	assert_int_equal(urn_real()->getsockname(r.k, SA(r.ka), &len), 0);
	*state = &r;
	return 0;
}

int
rig_teardown(void **state)
{
	struct rig *r = *state;

	(void)close(r->s);
	(void)close(r->t);
	(void)urn_real()->close(r->k);
	assert_int_equal(msg_fake_open_sets(r->f), 0);
	/* The table of sockets keeps the device. */
	return 0;
}

struct urn_sock *
rig_sock(int fd)
{
	struct urn_twin *t = urn_twin_get(fd);
	struct urn_sock *s = t != NULL ? atomic_load(&t->sock) : NULL;

	urn_twin_put(t);
	return s;
}

void
rig_send(struct rig *r, const char *text)
{
	ssize_t len = (ssize_t)strlen(text);

	assert_int_equal(sendto(r->t, text, (size_t)len, 0, SA(r->a), sizeof(r->a)), len);
}

void
rig_gets(int fd, const char *text)
{
	struct timeval tv = {.tv_sec = 60}, none = {0};
	char buf[256] = "";

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
	assert_int_equal(recv(fd, buf, sizeof(buf) - 1, 0), strlen(text));
	assert_string_equal(buf, text);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none)), 0);
}

void
rig_gets_none(int fd)
{
	char buf[8];

	FAILS(recv(fd, buf, sizeof(buf), MSG_DONTWAIT), EAGAIN);
}

void
rig_in_child(void (*check)(struct rig *r), struct rig *r)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		check(r);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}
