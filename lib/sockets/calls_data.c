/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls in the C library's place that send and receive. */
#include "sockets/call.h"

#include "abi/clock.h"
#include "sockets/tcp.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <unistd.h>

/* True when a vector has bytes. The kernel refuses numbers of parts that make no sense, and moves
 * no datagram for a vector without bytes. */
static bool
urn_call_bytes(const struct iovec *iov, int count)
{
	int i;

	for (i = 0; count <= IOV_MAX && i < count; i++)
		if (iov[i].iov_len > 0)
			return true;
	return false;
}

/* ---- sending */

/* Send through a descriptor that has a twin. returns: true when it has one; *n: the call's answer
 */
static bool
urn_call_send(int fd, const struct msghdr *msg, int flags, ssize_t *n)
{
	struct urn_twin *t;

	if (urn_tcp_send(fd, msg, flags, n))
		return true;
	t = urn_twin_get(fd);
	if (t == NULL)
		return false;
	*n = urn_twin_send(t, fd, msg, flags);
	urn_twin_put(t);
	return true;
}

URN_CALL ssize_t
sendto(int fd, const void *data, size_t len, int flags, const struct sockaddr *to, socklen_t to_len)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = len};
	struct msghdr msg = {
		.msg_name = (void *)(uintptr_t)to,
		.msg_namelen = to != NULL ? to_len : 0,
		.msg_iov = &iov,
		.msg_iovlen = 1,
	};
	ssize_t n;

	/* An address without a length is none that sendmsg() knows; streams look at none. */
	if ((to == NULL || to_len != 0) ? urn_call_send(fd, &msg, flags, &n)
					: urn_tcp_send(fd, &msg, flags, &n))
		return n;
	return urn_real()->sendto(fd, data, len, flags, to, to_len);
}

URN_CALL ssize_t
send(int fd, const void *data, size_t len, int flags)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	return urn_call_send(fd, &msg, flags, &n) ? n : urn_real()->send(fd, data, len, flags);
}

URN_CALL ssize_t
sendmsg(int fd, const struct msghdr *msg, int flags)
{
	ssize_t n;

	return urn_call_send(fd, msg, flags, &n) ? n : urn_real()->sendmsg(fd, msg, flags);
}

URN_CALL int
sendmmsg(int fd, struct mmsghdr *msgs, unsigned int count, int flags)
{
	unsigned int i;
	ssize_t n = 0;

	for (i = 0; i < count && n >= 0; i++) {
		if (!urn_call_send(fd, &msgs[i].msg_hdr, flags, &n))
			return urn_real()->sendmmsg(fd, msgs, count, flags);
		if (n < 0)
			break;
		msgs[i].msg_len = (unsigned int)n;
	}
	return i > 0 || count == 0 ? (int)i : -1;
}

URN_CALL ssize_t
write(int fd, const void *data, size_t len)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	return urn_call_send(fd, &msg, 0, &n) ? n : urn_real()->write(fd, data, len);
}

URN_CALL ssize_t
writev(int fd, const struct iovec *iov, int count)
{
	struct msghdr msg = {.msg_iov = (struct iovec *)(uintptr_t)iov,
			     .msg_iovlen = count > 0 ? (size_t)count : 0};
	ssize_t n;

	if (urn_call_bytes(iov, count) ? urn_call_send(fd, &msg, 0, &n)
				       : count >= 0 && urn_tcp_send(fd, &msg, 0, &n))
		return n;
	return urn_real()->writev(fd, iov, count);
}

/* ---- receiving */

/* Receive through a descriptor whose twin has a urnic socket. returns: true when it has; *n: the
 * call's answer */
static bool
urn_call_recv(int fd, struct msghdr *msg, int flags, ssize_t *n)
{
	struct urn_twin *t;
	bool urnic;
	int err;

	if (urn_tcp_recv(fd, msg, flags, n))
		return true;
	t = urn_twin_get(fd);
	err = t != NULL && !atomic_load(&t->kernel) ? urn_twin_unsettled(t) : 0;
	if (err != 0) { /* nothing can come */
		urn_twin_put(t);
		errno = err;
		*n = -1;
		return true;
	}
	if (!(flags & MSG_DONTWAIT))
		urn_twin_early(t);
	urnic = t != NULL && atomic_load(&t->sock) != NULL && !(flags & (MSG_ERRQUEUE | MSG_OOB));
	if (urnic)
		*n = urn_twin_recv(t, fd, msg, flags);
	urn_twin_put(t);
	return urnic;
}

URN_CALL ssize_t
recvfrom(int fd, void *restrict data, size_t room, int flags, struct sockaddr *restrict from,
	 socklen_t *restrict from_len)
{
	struct iovec iov = {.iov_base = data, .iov_len = room};
	struct msghdr msg = {
		.msg_name = from_len != NULL ? from : NULL,
		.msg_namelen = from != NULL && from_len != NULL ? *from_len : 0,
		.msg_iov = &iov,
		.msg_iovlen = 1,
	};
	ssize_t n;

	if (!urn_call_recv(fd, &msg, flags, &n))
		return urn_real()->recvfrom(fd, data, room, flags, from, from_len);
	if (n >= 0 && from_len != NULL)
		*from_len = msg.msg_namelen;
	return n;
}

URN_CALL ssize_t
recv(int fd, void *data, size_t room, int flags)
{
	struct iovec iov = {.iov_base = data, .iov_len = room};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	return urn_call_recv(fd, &msg, flags, &n) ? n : urn_real()->recv(fd, data, room, flags);
}

URN_CALL ssize_t
recvmsg(int fd, struct msghdr *msg, int flags)
{
	ssize_t n;

	return urn_call_recv(fd, msg, flags, &n) ? n : urn_real()->recvmsg(fd, msg, flags);
}

/* Receive several datagrams, until a time if there is one; the time is looked at behind each. */
static int
urn_call_recv_many(int fd, struct mmsghdr *msgs, unsigned int count, int flags, uint64_t end)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		ssize_t n;

		if (i > 0 && end != 0 && urn_clock_ns() >= end)
			break;
		if (!urn_call_recv(fd, &msgs[i].msg_hdr, flags & ~MSG_WAITFORONE, &n))
			n = urn_real()->recvmsg(fd, &msgs[i].msg_hdr, flags & ~MSG_WAITFORONE);
		if (n < 0)
			break;
		msgs[i].msg_len = (unsigned int)n;
		if (flags & MSG_WAITFORONE)
			flags |= MSG_DONTWAIT;
	}
	return i > 0 || count == 0 ? (int)i : -1;
}

URN_CALL int
recvmmsg(int fd, struct mmsghdr *msgs, unsigned int count, int flags, struct timespec *timeout)
{
	struct urn_twin *t = urn_twin_get(fd);
	bool urnic = t != NULL && atomic_load(&t->sock) != NULL;
	uint64_t end = 0, now;
	int got;

	urn_twin_put(t);
	if (!urnic || (timeout != NULL && (timeout->tv_sec < 0 || timeout->tv_nsec < 0 ||
					   timeout->tv_nsec >= 1000000000)))
		return urn_real()->recvmmsg(fd, msgs, count, flags, timeout);
	if (timeout != NULL && timeout->tv_sec < 1000000000)
		end = urn_sock_end_of((int64_t)timeout->tv_sec * 1000000000 + timeout->tv_nsec);
	got = urn_call_recv_many(fd, msgs, count, flags, end);
	if (got > 0 && end != 0) {
		now = urn_clock_ns();
		now = end > now ? end - now : 0;
		*timeout = (struct timespec){(time_t)(now / 1000000000), (long)(now % 1000000000)};
	}
	return got;
}

URN_CALL ssize_t
read(int fd, void *data, size_t room)
{
	struct iovec iov = {.iov_base = data, .iov_len = room};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	/* A read of nothing takes no datagram away, by the kernel. */
	if (room > 0 ? urn_call_recv(fd, &msg, 0, &n) : urn_tcp_recv(fd, &msg, 0, &n))
		return n;
	return urn_real()->read(fd, data, room);
}

URN_CALL ssize_t
readv(int fd, const struct iovec *iov, int count)
{
	struct msghdr msg = {.msg_iov = (struct iovec *)(uintptr_t)iov,
			     .msg_iovlen = count > 0 ? (size_t)count : 0};
	ssize_t n;

	if (urn_call_bytes(iov, count) ? urn_call_recv(fd, &msg, 0, &n)
				       : count >= 0 && urn_tcp_recv(fd, &msg, 0, &n))
		return n;
	return urn_real()->readv(fd, iov, count);
}

/* ---- files */

URN_CALL ssize_t
sendfile(int to, int from, off_t *at, size_t len)
{
	ssize_t n;

	return urn_tcp_sendfile(to, from, at, len, &n) ? n
						       : urn_real()->sendfile(to, from, at, len);
}

/* Places in files have 64 bits here under both names. */
_Static_assert(sizeof(off_t) == sizeof(off64_t), "one type of places in files");

URN_CALL ssize_t
sendfile64(int to, int from, off64_t *at, size_t len)
{
	return sendfile(to, from, at, len);
}

/*
 * System calls by number: libuv sends and receives several datagrams that way. All six arguments
 * are handed on, whether the program gave them or not.
 */
URN_CALL long
syscall(long number, ...)
{
	long a[6];
	va_list ap;
	int i;

	va_start(ap, number);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	switch (number) {
	case SYS_sendmmsg:
		return sendmmsg((int)a[0], (struct mmsghdr *)a[1], (unsigned int)a[2], (int)a[3]);
	case SYS_recvmmsg:
		return recvmmsg((int)a[0], (struct mmsghdr *)a[1], (unsigned int)a[2], (int)a[3],
				(struct timespec *)a[4]);
	default:
		return urn_real()->syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	}
}

/* ---- the names that programs with -D_FORTIFY_SOURCE call */

// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,clang-diagnostic-reserved-identifier)
ssize_t __recv_chk(int fd, void *data, size_t room, size_t size, int flags);
ssize_t __recvfrom_chk(int fd, void *restrict data, size_t room, size_t size, int flags,
		       struct sockaddr *restrict from, socklen_t *restrict from_len);
ssize_t __read_chk(int fd, void *data, size_t room, size_t size);

/* The program would overrun its buffer, like in the C library. */
static void
urn_call_check(size_t room, size_t size)
{
	if (room > size)
		abort();
}

URN_CALL ssize_t
__recv_chk(int fd, void *data, size_t room, size_t size, int flags)
{
	urn_call_check(room, size);
	return recv(fd, data, room, flags);
}

URN_CALL ssize_t
__recvfrom_chk(int fd, void *restrict data, size_t room, size_t size, int flags,
	       struct sockaddr *restrict from, socklen_t *restrict from_len)
{
	urn_call_check(room, size);
	return recvfrom(fd, data, room, flags, from, from_len);
}

URN_CALL ssize_t
__read_chk(int fd, void *data, size_t room, size_t size)
{
	urn_call_check(room, size);
	return read(fd, data, room);
}
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,clang-diagnostic-reserved-identifier)
