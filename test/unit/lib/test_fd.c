/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/abi/fd.h: memfds of a fixed size, and descriptors through a socket. */
#include "abi/fd.h"

#include "test.h"

#include <sys/stat.h>

enum { SENT = 3 };

/* Send a byte and the descriptors fd[0..n). */
static void
put(int to, const int *fd, size_t n)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(SENT * sizeof(int))];
	} control;
	char byte = 'x';
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	urn_fd_put(&msg, &control, fd, n);
	assert_int_equal(sendmsg(to, &msg, 0), 1);
}

/* Receive them into fd[*n] and on, with room for `kernel` descriptors in the message and `max` in fd. */
static bool
take(int from, size_t kernel, int *fd, unsigned int max, unsigned int *n)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(SENT * sizeof(int))];
	} control;
	char byte;
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			     .msg_controllen = kernel ? CMSG_LEN(kernel * sizeof(int)) : 0};

	assert_int_equal(recvmsg(from, &msg, MSG_CMSG_CLOEXEC), 1);
	return urn_fd_take(&msg, fd, max, n);
}

static ino_t
inode(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

static void
size_is_fixed(void **state)
{
	int fd = urn_fd_memory("urnic-test", 8192);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(lseek(fd, 0, SEEK_END), 8192);
	assert_int_equal(ftruncate(fd, 4096), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(fd, 16384), -1);
	assert_int_equal(fcntl(fd, F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
			 F_SEAL_SHRINK | F_SEAL_GROW);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	/* More than a file can be: no descriptor is left open. */
	assert_int_equal(urn_fd_memory("urnic-test", UINT64_MAX), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(dup(0), fd);
	close(fd);
}

static void
descriptors_arrive(void **state)
{
	int pair[2], fd[SENT], got[SENT];
	unsigned int n = 0;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	for (unsigned int i = 0; i < SENT; i++)
		fd[i] = urn_fd_memory("urnic-test", 4096);
	put(pair[0], fd, SENT);
	assert_false(take(pair[1], SENT, got, SENT, &n));
	assert_int_equal(n, SENT);
	for (unsigned int i = 0; i < SENT; i++) {
		assert_int_equal(inode(got[i]), inode(fd[i]));
		assert_int_equal(fcntl(got[i], F_GETFD), FD_CLOEXEC);
		close(got[i]);
	}
	/* A message without any. */
	n = 0;
	put(pair[0], fd, 0);
	assert_false(take(pair[1], SENT, got, SENT, &n));
	assert_int_equal(n, 0);
	for (unsigned int i = 0; i < SENT; i++)
		close(fd[i]);
	close(pair[0]);
	close(pair[1]);
}

/* More than there is room for, in the caller's array or in the kernel's: told, and none stays open. */
static void
too_many_are_closed(void **state)
{
	int pair[2], fd[SENT], got[SENT], next;
	unsigned int n = 0;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	for (unsigned int i = 0; i < SENT; i++)
		fd[i] = urn_fd_memory("urnic-test", 4096);
	next = dup(0);
	close(next);
	put(pair[0], fd, SENT);
	assert_true(take(pair[1], SENT, got, 1, &n));
	assert_int_equal(n, 1);
	assert_int_equal(got[0], next);
	assert_int_equal(inode(got[0]), inode(fd[0]));
	put(pair[0], fd, SENT);
	assert_true(take(pair[1], SENT, got, 1, &n));
	assert_int_equal(n, 1);
	close(got[0]);
	assert_int_equal(dup(0), next);
	close(next);
	n = 0;
	put(pair[0], fd, SENT);
	assert_true(take(pair[1], 1, got, SENT, &n));
	assert_true(n < SENT);
	while (n > 0)
		close(got[--n]);
	assert_int_equal(dup(0), next);
	close(next);
	for (unsigned int i = 0; i < SENT; i++)
		close(fd[i]);
	close(pair[0]);
	close(pair[1]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(size_is_fixed),
		cmocka_unit_test(descriptors_arrive),
		cmocka_unit_test(too_many_are_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
