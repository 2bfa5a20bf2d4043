/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that send and receive: each of the C library's names reaches urnic (DB-11). */
#include "rig.h"

#include "abi/clock.h"

#include <sys/syscall.h>
#include <sys/wait.h>

// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,clang-diagnostic-reserved-identifier)
ssize_t __recv_chk(int fd, void *data, size_t room, size_t size, int flags);
ssize_t __recvfrom_chk(int fd, void *data, size_t room, size_t size, int flags,
		       struct sockaddr *from, socklen_t *from_len);
ssize_t __read_chk(int fd, void *data, size_t room, size_t size);
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,clang-diagnostic-reserved-identifier)

static int
connected_setup(void **state)
{
	struct rig *r;

	(void)rig_setup(state);
	r = *state;
	return connect(r->t, SA(r->a), sizeof(r->a));
}

/* Each call that sends, on a connected socket. */
static void
sends(void **state)
{
	struct rig *r = *state;
	struct iovec iov[2] = {{"ab", 2}, {"c", 1}};
	struct mmsghdr many[2] = {{.msg_hdr = {.msg_iov = iov, .msg_iovlen = 1}},
				  {.msg_hdr = {.msg_iov = iov + 1, .msg_iovlen = 1}}};
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2};

	assert_int_equal(send(r->t, "send", 4, 0), 4);
	assert_int_equal(write(r->t, "write", 5), 5);
	assert_int_equal(writev(r->t, iov, 2), 3);
	assert_int_equal(sendmsg(r->t, &m, 0), 3);
	assert_int_equal(sendto(r->t, "to", 2, 0, NULL, 0), 2);
	assert_int_equal(sendmmsg(r->t, many, 2, 0), 2);
	assert_int_equal(many[0].msg_len + many[1].msg_len, 3);
	assert_int_equal(syscall(SYS_sendmmsg, r->t, many, 2, 0), 2);
	rig_gets(r->s, "send");
	rig_gets(r->s, "write");
	rig_gets(r->s, "abc");
	rig_gets(r->s, "abc");
	rig_gets(r->s, "to");
	rig_gets(r->s, "ab");
	rig_gets(r->s, "c");
	rig_gets(r->s, "ab");
	rig_gets(r->s, "c");
}

/* Each call that receives. */
static void
receives(void **state)
{
	struct rig *r = *state;
	char buf[8], more[8];
	struct iovec iov[2] = {{buf, 1}, {more, 8}};
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2};
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	int i;

	for (i = 0; i < 8; i++)
		rig_send(r, "abc");
	assert_int_equal(recv(r->s, buf, 8, 0), 3);
	assert_int_equal(read(r->s, buf, 8), 3);
	assert_int_equal(recvfrom(r->s, buf, 8, 0, SA(from), &len), 3);
	assert_int_equal(len, sizeof(from));
	assert_int_equal(from.sin_addr.s_addr, r->a.sin_addr.s_addr);
	assert_int_equal(readv(r->s, iov, 2), 3);
	assert_memory_equal(more, "bc", 2);
	assert_int_equal(recvmsg(r->s, &m, 0), 3);
	assert_int_equal(__recv_chk(r->s, buf, 8, 8, 0), 3);
	assert_int_equal(__recvfrom_chk(r->s, buf, 8, 8, 0, NULL, NULL), 3);
	assert_int_equal(__read_chk(r->s, buf, 8, 8), 3);
	rig_gets_none(r->s);
}

/* Short buffers, MSG_PEEK and MSG_TRUNC. */
static void
cuts(void **state)
{
	struct rig *r = *state;
	char buf[8] = "";

	rig_send(r, "abcdef");
	assert_int_equal(recv(r->s, buf, 3, MSG_PEEK), 3);
	assert_int_equal(recv(r->s, buf, 2, MSG_PEEK | MSG_TRUNC), 6);
	assert_int_equal(recv(r->s, buf, 4, 0), 4);
	assert_memory_equal(buf, "abcd", 4);
	rig_gets_none(r->s);
}

/* Vectors and reads that have no bytes move no datagram, and odd ones are the kernel's to refuse.
 */
static void
nothing(void **state)
{
	struct rig *r = *state;
	static volatile int minus = -1, many = 5000;
	char buf[8];
	struct iovec iov[2] = {{buf, 0}, {buf, 0}};

	assert_int_equal(writev(r->t, iov, 2), 0);
	FAILS(writev(r->t, iov, minus), EINVAL);
	FAILS(readv(r->s, iov, many), EINVAL);
	rig_gets_none(r->s);
	rig_send(r, "x");
	assert_int_equal(read(r->s, buf, 0), 0);
	assert_int_equal(readv(r->s, iov, 2), 0);
	rig_gets(r->s, "x");
	assert_int_equal(write(r->t, buf, 0), 0); /* a datagram without bytes */
	assert_int_equal(recv(r->s, buf, 8, 0), 0);
	FAILS(sendto(r->t, "x", 1, 0, SA(r->a), 0), EINVAL);
}

/* recvmmsg(): as many as there are, one if need be, and the time is looked at behind each. */
static void
many(void **state)
{
	struct rig *r = *state;
	char bytes[4][4];
	struct iovec iov[4];
	struct mmsghdr m[4] = {{{0}}};
	struct timespec wait = {.tv_sec = 5}, bad = {.tv_nsec = -1};
	int i;

	for (i = 0; i < 4; i++) {
		iov[i] = (struct iovec){bytes[i], 4};
		m[i].msg_hdr = (struct msghdr){.msg_iov = &iov[i], .msg_iovlen = 1};
	}
	for (i = 0; i < 5; i++)
		rig_send(r, "ab");
	assert_int_equal(recvmmsg(r->s, m, 2, 0, &wait), 2);
	assert_int_equal(m[0].msg_len, 2);
	assert_int_equal(wait.tv_sec, 4); /* the time that is left */
	assert_int_equal(recvmmsg(r->s, m, 4, MSG_WAITFORONE, NULL), 3);
	FAILS(recvmmsg(r->s, m, 4, MSG_DONTWAIT, NULL), EAGAIN);
	FAILS(recvmmsg(r->s, m, 4, 0, &bad), EINVAL);
	assert_int_equal(recvmmsg(r->s, m, 0, 0, NULL), 0);
	rig_send(r, "c");
	wait = (struct timespec){0};
	assert_int_equal(recvmmsg(r->s, m, 4, 0, &wait), 1);
	rig_send(r, "d");
	assert_int_equal(syscall(SYS_recvmmsg, r->s, m, 4, MSG_WAITFORONE, NULL), 1);
	assert_int_equal(syscall(SYS_getpid), getpid());
}

/* Descriptors without a twin, and those that are not open, are the kernel's. */
static void
others(void **state)
{
	struct rig *r = *state;
	int way[2];
	char buf[8];

	assert_int_equal(pipe(way), 0);
	assert_int_equal(write(way[1], "pipe", 4), 4);
	assert_int_equal(read(way[0], buf, sizeof(buf)), 4);
	FAILS(send(way[1], "x", 1, 0), ENOTSOCK);
	FAILS(recv(1000, buf, 1, 0), EBADF);
	FAILS(sendto(r->s, "x", 1, 0, NULL, 0), EDESTADDRREQ);
	FAILS(sendmmsg(r->s, &(struct mmsghdr){0}, 1, 0), EDESTADDRREQ);
	FAILS(recv(r->s, buf, 1, MSG_ERRQUEUE), EAGAIN);
	close(way[0]);
	close(way[1]);
}

/* A reader of a socket without a name waits for urnic, too: another thread may send meanwhile. */
static void
early(void **state)
{
	struct rig *r = *state;
	struct timeval tv = {.tv_usec = 20000};
	int u = socket(AF_INET, SOCK_DGRAM, 0);
	char buf[4];

	FAILS(recv(u, buf, 4, MSG_DONTWAIT), EAGAIN);
	assert_null(rig_sock(u));
	assert_int_equal(setsockopt(u, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
	FAILS(recv(u, buf, 4, 0), EAGAIN);
	assert_non_null(rig_sock(u));
	close(u);
	(void)r;
}

static void
overruns(struct rig *r)
{
	char buf[4];

	signal(SIGABRT, SIG_DFL);
	(void)__recv_chk(r->s, buf, 5, 4, MSG_DONTWAIT);
}

/* A buffer that is too short ends the program, like in the C library. */
static void
checked(void **state)
{
	struct rig *r = *state;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		overruns(r);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(sends, connected_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(receives, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(cuts, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(nothing, connected_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(many, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(others, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(early, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(checked, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
