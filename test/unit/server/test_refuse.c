/* SPDX-License-Identifier: BSD-3-Clause */
/* Turning clients away: each is told why, and unread bytes in a connection hold up nobody. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "abi/socket.h"
#include "server/refuse.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static void
nap(void)
{
	const struct timespec ms = {.tv_nsec = 1000000};

	(void)nanosleep(&ms, NULL);
}

/* A socket whose close blocks for an hour; *other: the end that reads nothing. */
static int
lingering(int *other)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct linger hour = {.l_onoff = 1, .l_linger = 3600};
	int from = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(addr);
	static char bytes[65536];

	assert_int_equal(bind(from, (void *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(from, 1), 0);
	assert_int_equal(getsockname(from, (void *)&addr, &len), 0);
	assert_int_equal(connect(fd, (void *)&addr, sizeof(addr)), 0);
	*other = accept(from, NULL, NULL);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &hour, sizeof(hour)), 0);
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	close(from);
	return fd;
}

static void
hand_over(int sock, int fd)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control = {{0}};
	struct iovec iov = {.iov_base = "x", .iov_len = 1};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			     .msg_controllen = sizeof(control.buf)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	assert_int_equal(sendmsg(sock, &msg, MSG_NOSIGNAL), 1);
	close(fd);
}

static void
test_told(void **state)
{
	struct urn_refuser *r = urn_refuser_start();
	struct urn_sock_answer a;
	int p[2];

	(void)state;
	assert_non_null(r);
	for (int i = 0; i < 200; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, p), 0);
		while (!urn_refuser_has_room(r))
			nap();
		urn_refuser_put(r, p[1], EUSERS, "too many");
		assert_int_equal(recv(p[0], &a, sizeof(a), 0), sizeof(a));
		assert_int_equal(a.head.magic, URN_SOCK_MAGIC);
		assert_int_equal(a.err, EUSERS);
		assert_string_equal(a.why, "too many");
		assert_int_equal(recv(p[0], &a, sizeof(a), 0), 0);
		close(p[0]);
	}
	urn_refuser_stop(r);
	urn_refuser_stop(NULL);
}

/* Twenty clients whose close blocks for an hour each, and one behind them. */
static void
test_lingering(void **state)
{
	enum { N = 20 };
	struct urn_refuser *r = urn_refuser_start();
	int other[N], theirs[N], p[2];
	time_t end = time(NULL) + 30;
	struct urn_sock_answer a;

	(void)state;
	assert_non_null(r);
	for (int i = 0; i < N; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, p), 0);
		hand_over(p[0], lingering(&other[i]));
		theirs[i] = p[0];
		urn_refuser_put(r, p[1], EUSERS, "too many");
	}
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, p), 0);
	urn_refuser_put(r, p[1], EMFILE, "none left");
	while (urn_refuser_tend(r) > 0 && time(NULL) < end)
		nap();
	assert_int_equal(recv(p[0], &a, sizeof(a), MSG_DONTWAIT), sizeof(a));
	assert_int_equal(a.err, EMFILE);
	urn_refuser_stop(r);
	close(p[0]);
	for (int i = 0; i < N; i++) {
		close(theirs[i]);
		close(other[i]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_told),
		cmocka_unit_test(test_lingering),
	};

	return cmocka_run_group_tests_name("refuse", tests, NULL, NULL);
}
