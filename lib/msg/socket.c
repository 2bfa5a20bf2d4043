/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of urnic/socket.h: descriptors, flags and POSIX's errors around lib/msg/sock.h. */
#include <urnic/socket.h>

#include "msg/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert((int)URN_DATAGRAM_MAX == (int)URN_SOCK_DATAGRAM, "datagrams");

/* Descriptors that can be sockets. */
enum { URN_SOCKET_FDS = 65536 };

/* The socket of each descriptor. */
static struct urn_sock *_Atomic urn_socket_table[URN_SOCKET_FDS];

/* returns: NULL with errno: EBADF, ENOTSOCK */
static struct urn_sock *
urn_socket_of(int fd)
{
	struct urn_sock *s =
		fd >= 0 && fd < URN_SOCKET_FDS ? atomic_load(&urn_socket_table[fd]) : NULL;

	if (s == NULL)
		errno = fd >= 0 && fcntl(fd, F_GETFD) >= 0 ? ENOTSOCK : EBADF;
	return s;
}

/* returns: 0, or -1 with errno */
static int
urn_socket_ret(int err)
{
	if (err == 0)
		return 0;
	errno = err;
	return -1;
}

int
urn_socket_use(struct urn_msg_dev *dev)
{
	return urn_socks_use(dev);
}

int
urn_socket(int domain, int type, int protocol)
{
	struct urn_sock *s;
	int err, fd;

	if (domain != AF_INET && domain != AF_INET6)
		return urn_socket_ret(EAFNOSUPPORT);
	if ((type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) != SOCK_DGRAM ||
	    (protocol != 0 && protocol != IPPROTO_UDP))
		return urn_socket_ret(EPROTONOSUPPORT);
	err = urn_sock_make(&s, domain);
	if (err != 0)
		return urn_socket_ret(err);
	fd = urn_sock_fd(s);
	if (fd >= URN_SOCKET_FDS) {
		urn_sock_drop(s);
		return urn_socket_ret(EMFILE);
	}
	atomic_store(&s->nonblock, (type & SOCK_NONBLOCK) != 0);
	atomic_store(&urn_socket_table[fd], s);
	return fd;
}

int
urn_close(int fd)
{
	struct urn_sock *s = urn_socket_of(fd);

	if (s == NULL)
		return -1;
	atomic_store(&urn_socket_table[fd], NULL);
	urn_sock_drop(s);
	return 0;
}

/* Read an address for a socket's family. returns: 0, or an errno value */
static int
urn_socket_addr(const struct urn_sock *s, struct urn_addr *a, const struct sockaddr *sa,
		socklen_t len)
{
	int err = urn_addr_get(a, sa, len);

	return err == 0 && sa != NULL && sa->sa_family != s->family ? EAFNOSUPPORT : err;
}

int
urn_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct urn_sock *s = urn_socket_of(fd);
	struct urn_addr a;
	int err;

	if (s == NULL)
		return -1;
	err = urn_socket_addr(s, &a, addr, len);
	return urn_socket_ret(err != 0 ? err : urn_sock_bind(s, &a));
}

int
urn_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct urn_sock *s = urn_socket_of(fd);
	struct urn_addr a;
	int err;

	if (s == NULL)
		return -1;
	if (addr != NULL && len >= (socklen_t)sizeof(addr->sa_family) &&
	    addr->sa_family == AF_UNSPEC)
		return urn_socket_ret(urn_sock_connect(s, NULL));
	err = urn_socket_addr(s, &a, addr, len);
	return urn_socket_ret(err != 0 ? err : urn_sock_connect(s, &a));
}

int
urn_getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	struct urn_sock *s = urn_socket_of(fd);
	struct urn_addr a;

	if (s == NULL)
		return -1;
	urn_sock_name(s, &a);
	urn_addr_put(&a, s->family, addr, len);
	return 0;
}

int
urn_getpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
	struct urn_sock *s = urn_socket_of(fd);

	if (s == NULL)
		return -1;
	if (!s->connected)
		return urn_socket_ret(ENOTCONN);
	urn_addr_put(&s->peer, s->family, addr, len);
	return 0;
}

/* ---- data */

static ssize_t
urn_socket_send(int fd, const struct iovec *iov, size_t n, int flags, const struct sockaddr *to,
		socklen_t to_len)
{
	struct urn_sock *s = urn_socket_of(fd);
	struct urn_addr a;
	size_t i, len = 0;
	int err = 0;

	if (s == NULL)
		return -1;
	if (flags & ~(MSG_DONTWAIT | MSG_NOSIGNAL | MSG_CONFIRM | MSG_DONTROUTE))
		return urn_socket_ret(EOPNOTSUPP);
	if (to != NULL)
		err = urn_socket_addr(s, &a, to, to_len);
	if (err == 0)
		err = urn_sock_send(s, iov, n, to != NULL ? &a : NULL,
				    !(flags & MSG_DONTWAIT) && !atomic_load(&s->nonblock));
	if (err != 0)
		return urn_socket_ret(err);
	for (i = 0; i < n; i++)
		len += iov[i].iov_len;
	return (ssize_t)len;
}

ssize_t
urn_sendto(int fd, const void *data, size_t len, int flags, const struct sockaddr *to,
	   socklen_t to_len)
{
	const struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = len};

	return urn_socket_send(fd, &iov, 1, flags, to, to_len);
}

ssize_t
urn_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return urn_socket_send(fd, msg->msg_iov, msg->msg_iovlen, flags, msg->msg_name,
			       msg->msg_namelen);
}

/* returns: 0, or an errno value */
static int
urn_socket_recv(struct urn_sock *s, const struct iovec *iov, size_t n, int flags,
		struct urn_sock_got *got)
{
	bool wait = !(flags & MSG_DONTWAIT) && !atomic_load(&s->nonblock);
	uint64_t end = s->rcvtimeo_ns ? urn_sock_end_of((int64_t)s->rcvtimeo_ns) : 0;
	int err;

	while ((err = urn_sock_recv(s, iov, n, (flags & MSG_PEEK) != 0, got)) == EAGAIN && wait) {
		err = urn_sock_wait(s, end, -1);
		if (err != 0 && !(err == EINTR && end == 0 && urn_sock_restarts()))
			return err;
	}
	if (err == EAGAIN && urn_sock_show(s) != 0)
		err = EIO;
	return err;
}

ssize_t
urn_recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct urn_sock *s = urn_socket_of(fd);
	struct urn_sock_got got;
	int err;

	if (s == NULL)
		return -1;
	if (flags & ~(MSG_DONTWAIT | MSG_PEEK | MSG_TRUNC | MSG_WAITALL | MSG_CMSG_CLOEXEC))
		return urn_socket_ret(EOPNOTSUPP);
	err = urn_socket_recv(s, msg->msg_iov, msg->msg_iovlen, flags, &got);
	if (err != 0)
		return urn_socket_ret(err);
	if (msg->msg_name != NULL)
		urn_addr_put(&got.from, s->family, msg->msg_name, &msg->msg_namelen);
	msg->msg_controllen = 0;
	msg->msg_flags = got.copied < got.len ? MSG_TRUNC : 0;
	return (ssize_t)(flags & MSG_TRUNC ? got.len : got.copied);
}

ssize_t
urn_recvfrom(int fd, void *data, size_t room, int flags, struct sockaddr *from, socklen_t *from_len)
{
	struct iovec iov = {.iov_base = data, .iov_len = room};
	struct msghdr msg = {
		.msg_name = from,
		.msg_namelen = from != NULL && from_len != NULL ? *from_len : 0,
		.msg_iov = &iov,
		.msg_iovlen = 1,
	};
	ssize_t n = urn_recvmsg(fd, &msg, flags);

	if (n >= 0 && from != NULL && from_len != NULL)
		*from_len = msg.msg_namelen;
	return n;
}

int
urn_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	enum { FEW = 32 };
	struct urn_poll_ent few[FEW], *ent = n <= FEW ? few : calloc(n, sizeof(*ent));
	uint64_t end = urn_sock_end_of(timeout_ms < 0 ? -1 : (int64_t)timeout_ms * 1000000);
	int got, err;
	nfds_t i;

	if (ent == NULL)
		return urn_socket_ret(ENOMEM);
	for (i = 0; i < n; i++) {
		int fd = fds[i].fd;

		ent[i].sock =
			fd >= 0 && fd < URN_SOCKET_FDS ? atomic_load(&urn_socket_table[fd]) : NULL;
		ent[i].kernel = ent[i].sock == NULL;
	}
	got = urn_sock_poll(fds, n, ent, end, NULL);
	err = errno;
	if (ent != few)
		free(ent);
	errno = err;
	return got;
}

/* ---- options */

int
urn_set_nonblock(int fd, int on)
{
	struct urn_sock *s = urn_socket_of(fd);

	if (s == NULL)
		return -1;
	atomic_store(&s->nonblock, on != 0);
	return 0;
}

int
urn_setsockopt(int fd, int level, int option, const void *value, socklen_t len)
{
	struct urn_sock *s = urn_socket_of(fd);
	struct timeval tv;
	uint64_t ns;

	if (s == NULL)
		return -1;
	if (level != SOL_SOCKET)
		return urn_socket_ret(ENOPROTOOPT);
	switch (option) {
	case SO_RCVTIMEO:
	case SO_SNDTIMEO:
		if (len < (socklen_t)sizeof(tv))
			return urn_socket_ret(EINVAL);
		memcpy(&tv, value, sizeof(tv));
		if (tv.tv_sec < 0 || tv.tv_usec < 0 || tv.tv_usec >= 1000000)
			return urn_socket_ret(EDOM);
		ns = (uint64_t)tv.tv_sec * 1000000000u + (uint64_t)tv.tv_usec * 1000u;
		*(option == SO_RCVTIMEO ? &s->rcvtimeo_ns : &s->sndtimeo_ns) = ns;
		return 0;
	case SO_RCVBUF:
	case SO_SNDBUF:
	case SO_REUSEADDR:
	case SO_REUSEPORT:
	case SO_BROADCAST:
		return len < (socklen_t)sizeof(int) ? urn_socket_ret(EINVAL) : 0;
	default:
		return urn_socket_ret(ENOPROTOOPT);
	}
}

/* The value of an option that is a number. returns: 0, or an errno value */
static int
urn_socket_number(struct urn_sock *s, int option, int *v)
{
	switch (option) {
	case SO_ERROR:
		*v = (int)atomic_exchange(&s->error, 0);
		return 0;
	case SO_TYPE:
		*v = SOCK_DGRAM;
		return 0;
	case SO_DOMAIN:
		*v = s->family;
		return 0;
	case SO_PROTOCOL:
		*v = IPPROTO_UDP;
		return 0;
	case SO_RCVBUF:
		*v = URN_SOCK_ENTRIES * URN_SOCK_DATAGRAM;
		return 0;
	case SO_SNDBUF:
		*v = URN_PORT_OUTLETS * URN_SOCK_DATAGRAM;
		return 0;
	case SO_REUSEADDR:
	case SO_REUSEPORT:
	case SO_BROADCAST:
		*v = 0;
		return 0;
	default:
		return ENOPROTOOPT;
	}
}

int
urn_getsockopt(int fd, int level, int option, void *value, socklen_t *len)
{
	struct urn_sock *s = urn_socket_of(fd);
	struct timeval tv;
	const void *from = &tv;
	socklen_t size = sizeof(tv);
	uint64_t ns;
	int v, err;

	if (s == NULL)
		return -1;
	if (level != SOL_SOCKET)
		return urn_socket_ret(ENOPROTOOPT);
	if (option == SO_RCVTIMEO || option == SO_SNDTIMEO) {
		ns = option == SO_RCVTIMEO ? s->rcvtimeo_ns : s->sndtimeo_ns;
		tv = (struct timeval){(time_t)(ns / 1000000000u),
				      (suseconds_t)(ns % 1000000000u / 1000u)};
	} else {
		err = urn_socket_number(s, option, &v);
		if (err != 0)
			return urn_socket_ret(err);
		from = &v;
		size = sizeof(v);
	}
	*len = *len < size ? *len : size;
	memcpy(value, from, *len);
	return 0;
}
