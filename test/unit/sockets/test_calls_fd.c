/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that copy, close and control descriptors (DB-11). */
#include "rig.h"

#include <limits.h>
#include <sys/ioctl.h>

// NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,clang-diagnostic-reserved-identifier)
int __wrap_socket(int domain, int type, int protocol);

/* Every way to copy a descriptor leads to one socket, and the last close ends it. */
static void
copies(void **state)
{
	struct rig *r = *state;
	int d[5], i;

	d[0] = dup(r->s);
	d[1] = dup2(r->s, 70);
	d[2] = dup3(r->s, 71, O_CLOEXEC);
	d[3] = fcntl(r->s, F_DUPFD, 72);
	d[4] = fcntl(r->s, F_DUPFD_CLOEXEC, 73);
	FAILS(dup(1000), EBADF);
	FAILS(dup2(1000, 70), EBADF);
	FAILS(dup3(r->s, r->s, 0), EINVAL);
	assert_int_equal(dup2(r->s, r->s), r->s);
	assert_int_equal(close(r->s), 0);
	for (i = 0; i < 5; i++) {
		rig_send(r, "x");
		rig_gets(d[i], "x");
		assert_int_equal(close(d[i]), 0);
	}
	FAILS(close(d[0]), EBADF);
	assert_int_equal(msg_fake_open_sets(r->f), 1);
}

/* A copy over a socket ends that one. */
static void
over(void **state)
{
	struct rig *r = *state;
	struct sockaddr_in a = rig_in("10.0.0.1", 8);
	int u = socket(AF_INET, SOCK_DGRAM, 0);

	assert_int_equal(bind(u, SA(a), sizeof(a)), 0);
	assert_int_equal(dup2(r->s, u), u);
	rig_send(r, "x");
	rig_gets(u, "x");
	FAILS(sendto(r->t, "x", 1, 0, SA(a), sizeof(a)), ECONNREFUSED);
	assert_int_equal(dup2(1, u), u);
	assert_null(urn_twin_get(u));
	close(u);
}

/* The program can neither close the library's own descriptors nor copy over them. */
static void
own(void **state)
{
	int fd = __wrap_socket(AF_UNIX, SOCK_STREAM, 0), far = fcntl(1, F_DUPFD, 900);

	(void)state;
	assert_true(far >= 900 && fd < 900);
	FAILS(close(fd), EBADF);
	FAILS(dup2(1, fd), EBADF);
	FAILS(dup3(1, fd, 0), EBADF);
	assert_int_equal(close_range((unsigned int)fd, UINT_MAX, 0), 0);
	assert_int_equal(urn_real()->fcntl(fd, F_GETFD), FD_CLOEXEC);
	FAILS(fcntl(far, F_GETFD), EBADF);
	far = fcntl(1, F_DUPFD, 900);
	closefrom(fd - 1);
	assert_int_equal(urn_real()->fcntl(fd, F_GETFD), FD_CLOEXEC);
	FAILS(fcntl(far, F_GETFD), EBADF);
	FAILS(close_range(5, 4, 0), EINVAL);
	urn_real()->close(fd);
}

/* A range of descriptors that is closed ends the twins in it. */
static void
ranges(void **state)
{
	struct rig *r = *state;
	int d = dup2(r->s, 300);

	assert_int_equal(close(r->s), 0);
	assert_int_equal(msg_fake_open_sets(r->f), 1);
	assert_int_equal(close_range(299, 301, 0), 0);
	assert_null(urn_twin_get(d));
	assert_int_equal(msg_fake_open_sets(r->f), 0);
}

/* O_NONBLOCK, however it is set. */
static void
nonblock(void **state)
{
	struct rig *r = *state;
	int on = 1, off = 0, u = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct timeval tv = {.tv_usec = 20000};
	struct urn_twin *t = urn_twin_get(r->s), *n = urn_twin_get(u);
	char buf[4];

	assert_true(n->nonblock);
	assert_int_equal(fcntl(u, F_GETFD), FD_CLOEXEC);
	assert_false(t->nonblock);
	assert_int_equal(fcntl(r->s, F_SETFL, O_NONBLOCK), 0);
	assert_true(t->nonblock);
	FAILS(recv(r->s, buf, 4, 0), EAGAIN);
	assert_int_equal(fcntl64(r->s, F_SETFL, 0), 0);
	assert_false(t->nonblock);
	assert_int_equal(ioctl(r->s, FIONBIO, &on), 0);
	assert_true(t->nonblock && fcntl(r->s, F_GETFL) & O_NONBLOCK);
	assert_int_equal(ioctl(r->s, FIONBIO, &off), 0);
	assert_false(t->nonblock);
	assert_int_equal(setsockopt(r->s, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
	FAILS(recv(r->s, buf, 4, 0), EAGAIN);
	urn_twin_put(t);
	urn_twin_put(n);
	close(u);
}

/* FIONREAD tells the length of the next datagram. */
static void
length(void **state)
{
	struct rig *r = *state;
	int n = -1;

	assert_int_equal(ioctl(r->s, FIONREAD, &n), 0);
	assert_int_equal(n, 0);
	rig_send(r, "abc");
	rig_send(r, "abcdef");
	assert_int_equal(ioctl(r->s, FIONREAD, &n), 0);
	assert_int_equal(n, 3);
	rig_gets(r->s, "abc");
	assert_int_equal(ioctl(r->s, FIONREAD, &n), 0);
	assert_int_equal(n, 6);
	FAILS(ioctl(1000, FIONREAD, &n), EBADF);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(copies, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(over, rig_setup, rig_teardown),
		cmocka_unit_test(own),
		cmocka_unit_test_setup_teardown(ranges, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(nonblock, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(length, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
