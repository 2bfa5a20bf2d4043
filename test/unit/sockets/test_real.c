/* SPDX-License-Identifier: BSD-3-Clause */
/* The C library's own functions, and descriptors that the program does not see (DB-11). */
#include "rig.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,clang-diagnostic-reserved-identifier)
int __wrap_socket(int domain, int type, int protocol);
int __wrap_close(int fd);
int __wrap_memfd_create(const char *name, unsigned int flags);
int __wrap_epoll_create1(int flags);
int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int __wrap_epoll_wait(int epfd, struct epoll_event *events, int room, int timeout);
int __wrap_pipe2(int fd[2], int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags);
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,clang-diagnostic-reserved-identifier)

/* The table has the C library's functions, not those that stand in their place. */
static void
functions(void **state)
{
	const struct urn_real *real = urn_real();

	(void)state;
#define X(ret, name, params) \
	assert_true(real->name != NULL && (void *)real->name != (void *)(name));
	URN_REAL_LIST(X)
#undef X
}

/* Descriptors that the library makes for itself lie high and are hidden. */
static void
hidden(void **state)
{
	int fd = __wrap_socket(AF_UNIX, SOCK_STREAM, 0), memory = __wrap_memfd_create("x", 0);

	(void)state;
	assert_true(fd >= 128 && memory >= 128);
	assert_true(urn_real_hidden(fd) && urn_real_hidden(memory));
	assert_false(urn_real_hidden(0) || urn_real_hidden(-1) || urn_real_hidden(1 << 20));
	assert_int_equal(urn_real_next_hidden(fd), fd);
	assert_int_equal(urn_real_next_hidden(-5), urn_real_next_hidden(3));
	assert_true(urn_real_next_hidden(3) <= fd);
	assert_int_equal(urn_real_next_hidden(65536), -1);
	FAILS(close(fd), EBADF); /* the program can't close it */
	assert_int_equal(__wrap_close(memory), 0);
	assert_false(urn_real_hidden(memory));
	assert_int_equal(__wrap_close(fd), 0);
	assert_false(urn_real_hidden(fd));
	FAILS(urn_real()->fcntl(fd, F_GETFD), EBADF);
}

/* The session layer below streams waits by epolls of its own, for pipes among others. */
static void
waits(void **state)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = 7};
	int epoll = __wrap_epoll_create1(EPOLL_CLOEXEC), way[2];

	(void)state;
	assert_int_equal(__wrap_pipe2(way, O_CLOEXEC | O_NONBLOCK), 0);
	assert_true(epoll >= 128 && way[0] >= 128 && way[1] >= 128);
	assert_true(urn_real_hidden(epoll) && urn_real_hidden(way[0]) && urn_real_hidden(way[1]));
	assert_int_equal(urn_real()->fcntl(way[0], F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	assert_int_equal(urn_real()->fcntl(epoll, F_GETFD), FD_CLOEXEC);
	assert_int_equal(__wrap_epoll_ctl(epoll, EPOLL_CTL_ADD, way[0], &ev), 0);
	assert_int_equal(__wrap_epoll_wait(epoll, &ev, 1, 0), 0);
	assert_int_equal(urn_real()->write(way[1], "x", 1), 1);
	ev.data.u32 = 0;
	assert_int_equal(__wrap_epoll_wait(epoll, &ev, 1, 0), 1);
	assert_int_equal(ev.data.u32, 7);
	for (int i = 0; i < 2; i++)
		assert_int_equal(__wrap_close(way[i]), 0);
	assert_int_equal(__wrap_close(epoll), 0);
	assert_false(urn_real_hidden(epoll) || urn_real_hidden(way[0]));
}

/* Descriptors that come with the dataplane's messages are hidden, too. */
static void
passed(void **state)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec iov = {"x", 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int way[2], fd = 0;
	char buf[4];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, way), 0);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	assert_int_equal(sendmsg(way[0], &m, 0), 1);
	iov = (struct iovec){buf, sizeof(buf)};
	m.msg_controllen = sizeof(control.bytes);
	assert_int_equal(__wrap_recvmsg(way[1], &m, MSG_CMSG_CLOEXEC), 1);
	c = CMSG_FIRSTHDR(&m);
	if (c == NULL)
		fail();
	else
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	assert_true(fd >= 128);
	assert_true(urn_real_hidden(fd));
	assert_int_equal(urn_real()->fcntl(fd, F_GETFD), FD_CLOEXEC);
	FAILS(close(fd), EBADF); /* the program can't close it */
	close(way[0]);
	close(way[1]);
}

static void
settled(struct rig *r)
{
	(void)r;
	CHILD_CHECK(!urn_real_stranger());
}

/* A child of vfork() runs in its parent's memory, a child of fork() in its own. */
static void
strangers(void **state)
{
	struct rig *r = *state;
	static volatile int was;
	int status;
	pid_t pid;

	assert_false(urn_real_stranger());
	rig_in_child(settled, r);
	was = -1;
	pid = vfork(); // NOLINT(clang-analyzer-security.insecureAPI.vfork)
	if (pid == 0) {
		/* NOLINTNEXTLINE(clang-analyzer-unix.Vfork): this is what is tested */
		was = urn_real_stranger();
		(void)close(r->s); /* NOLINT(clang-analyzer-unix.Vfork): the child's alone */
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(was, 1);
	assert_false(urn_real_stranger());
	rig_send(r, "still there");
	rig_gets(r->s, "still there");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions),
		cmocka_unit_test(hidden),
		cmocka_unit_test(waits),
		cmocka_unit_test(passed),
		cmocka_unit_test_setup_teardown(strangers, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
