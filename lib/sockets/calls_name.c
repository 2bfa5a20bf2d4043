/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls in the C library's place that make, name, connect and set sockets. */
#include "sockets/call.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

URN_CALL int
socket(int domain, int type, int protocol)
{
	int fd = urn_real()->socket(domain, type, protocol);

	if (fd < 0 || urn_real_stranger())
		return fd;
	/* The descriptor may have been closed by fclose(), which the library does not see. */
	urn_twin_close(fd);
	if ((domain == AF_INET || domain == AF_INET6) &&
	    (type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_DGRAM &&
	    (protocol == 0 || protocol == IPPROTO_UDP))
		urn_twin_add(fd, domain, (type & SOCK_NONBLOCK) != 0);
	return fd;
}

/* Bind the urnic socket alone: the address is a urnic node's. returns: 0, or an errno value */
static int
urn_bind_urnic(struct urn_twin *t, const struct urn_addr *a)
{
	struct urn_sock *s = urn_twin_sock(t);

	return s != NULL ? urn_sock_bind(s, a) : errno;
}

/* Give the urnic socket the port that the kernel picked; another one will do when that is taken. */
static void
urn_bind_picked(struct urn_twin *t, int fd, struct urn_addr *a)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);

	if (urn_real()->getsockname(fd, (struct sockaddr *)&ss, &len) != 0 ||
	    urn_addr_get(a, (struct sockaddr *)&ss, len) != 0)
		return;
	if (urn_bind_urnic(t, a) != 0)
		urn_twin_unmake(t);
}

/* Bind both sockets to any address. returns: 0, or -1 with errno */
static int
urn_bind_any(struct urn_twin *t, int fd, const struct sockaddr *addr, socklen_t len,
	     struct urn_addr *a)
{
	int err = a->port != 0 && atomic_load(&t->sock) == NULL ? urn_bind_urnic(t, a) : 0;

	/* A server has an IPv6 socket beside the IPv4 socket that has the port: on urnic the first
	 * has all datagrams. */
	if (err == EADDRINUSE && t->family == AF_INET) {
		urn_twin_unmake(t);
		errno = err;
		return -1;
	}
	if (err != 0) /* no dataplane: the kernel's socket is all there is */
		urn_twin_unmake(t);
	if (urn_real()->bind(fd, addr, len) != 0) {
		err = errno;
		urn_twin_unmake(t);
		errno = err;
		return -1;
	}
	atomic_store(&t->kernel, true);
	if (a->port == 0)
		urn_bind_picked(t, fd, a);
	return 0;
}

URN_CALL int
bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct urn_twin *t = urn_twin_get(fd);
	struct urn_addr a;
	int err;

	if (t == NULL)
		return urn_real()->bind(fd, addr, len);
	if (urn_addr_get(&a, addr, len) != 0) {
		err = urn_real()->bind(fd, addr, len);
	} else if (urn_addr_is_any(a.gid)) {
		err = urn_bind_any(t, fd, addr, len, &a);
	} else if (urn_net_own(&a)) {
		errno = urn_bind_urnic(t, &a);
		err = errno == 0 ? 0 : -1;
	} else {
		err = urn_real()->bind(fd, addr, len);
		if (err == 0)
			atomic_store(&t->kernel, true);
	}
	urn_twin_put(t);
	return err;
}

/* Connect to a urnic node. returns: 0, or -1 with errno */
static int
urn_connect_urnic(struct urn_twin *t, int fd, const struct urn_addr *a)
{
	struct urn_sock *s = urn_twin_sock(t);

	if (s == NULL)
		return -1;
	errno = urn_sock_connect(s, a);
	if (errno != 0)
		return -1;
	/* A connected kernel socket would go on to take its peer's datagrams. */
	(void)urn_real()->connect(fd, &(struct sockaddr){.sa_family = AF_UNSPEC},
				  sizeof(struct sockaddr));
	atomic_store(&t->to_urnic, true);
	return 0;
}

/* Connect by the kernel, or end all connections. returns: 0, or -1 with errno */
static int
urn_connect_kernel(struct urn_twin *t, int fd, const struct sockaddr *addr, socklen_t len)
{
	struct urn_sock *s = atomic_load(&t->sock);
	bool was = atomic_load(&t->to_urnic);
	int err = urn_real()->connect(fd, addr, len);

	if (err != 0)
		return err;
	if (was && s != NULL)
		(void)urn_sock_connect(s, NULL);
	atomic_store(&t->to_urnic, false);
	if (addr->sa_family != AF_UNSPEC)
		atomic_store(&t->kernel, true);
	return 0;
}

URN_CALL int
connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct urn_twin *t = urn_twin_get(fd);
	struct urn_addr a;
	int err;

	if (t == NULL)
		return urn_real()->connect(fd, addr, len);
	err = urn_addr_get(&a, addr, len) == 0 && urn_net_has(&a)
		      ? urn_connect_urnic(t, fd, &a)
		      : urn_connect_kernel(t, fd, addr, len);
	urn_twin_put(t);
	return err;
}

URN_CALL int
getsockname(int fd, struct sockaddr *restrict addr, socklen_t *restrict len)
{
	struct urn_twin *t = urn_twin_get(fd);
	struct urn_sock *s = t != NULL ? atomic_load(&t->sock) : NULL;
	struct urn_addr a = {0};
	int err = 0;

	if (s != NULL)
		urn_sock_name(s, &a);
	/* A socket that the kernel knows too has the kernel's name, unless its peer is a urnic
	 * node. */
	if (s == NULL || a.port == 0 || (atomic_load(&t->kernel) && !atomic_load(&t->to_urnic)))
		err = urn_real()->getsockname(fd, addr, len);
	else
		urn_addr_put(&a, t->family, addr, len);
	urn_twin_put(t);
	return err;
}

URN_CALL int
getpeername(int fd, struct sockaddr *restrict addr, socklen_t *restrict len)
{
	struct urn_twin *t = urn_twin_get(fd);
	struct urn_sock *s = t != NULL && atomic_load(&t->to_urnic) ? atomic_load(&t->sock) : NULL;
	int err = 0;

	if (s == NULL)
		err = urn_real()->getpeername(fd, addr, len);
	else
		urn_addr_put(&s->peer, t->family, addr, len);
	urn_twin_put(t);
	return err;
}

URN_CALL int
getsockopt(int fd, int level, int option, void *restrict value, socklen_t *restrict len)
{
	struct urn_twin *t = urn_twin_get(fd);
	struct urn_sock *s = t != NULL ? atomic_load(&t->sock) : NULL;
	int err = urn_real()->getsockopt(fd, level, option, value, len), v;

	if (err == 0 && s != NULL && level == SOL_SOCKET && option == SO_ERROR &&
	    *len == (socklen_t)sizeof(v)) {
		(void)urn_sock_writable(s); /* looks at answers */
		v = (int)atomic_exchange(&s->error, 0);
		if (v != 0)
			memcpy(value, &v, sizeof(v));
	}
	urn_twin_put(t);
	return err;
}

URN_CALL int
setsockopt(int fd, int level, int option, const void *value, socklen_t len)
{
	struct urn_twin *t = urn_twin_get(fd);
	int err = urn_real()->setsockopt(fd, level, option, value, len);
	bool on = false;
	size_t i;

	for (i = 0; value != NULL && i < len; i++)
		on |= ((const char *)value)[i] != 0;
	if (t != NULL && err == 0 && level == IPPROTO_IP && option == IP_PKTINFO)
		atomic_store(&t->info4, on);
	if (t != NULL && err == 0 && level == IPPROTO_IPV6 && option == IPV6_RECVPKTINFO)
		atomic_store(&t->info6, on);
	if (t != NULL && err == 0 && value != NULL && level == SOL_SOCKET &&
	    option == SO_SNDTIMEO && len >= (socklen_t)sizeof(struct timeval) &&
	    atomic_load(&t->sock) != NULL) {
		struct timeval tv;

		memcpy(&tv, value, sizeof(tv));
		atomic_load(&t->sock)->sndtimeo_ns =
			(uint64_t)tv.tv_sec * 1000000000u + (uint64_t)tv.tv_usec * 1000u;
	}
	urn_twin_put(t);
	return err;
}

URN_CALL int
shutdown(int fd, int how)
{
	struct urn_twin *t = urn_twin_get(fd);
	int err = t != NULL && atomic_load(&t->to_urnic) ? 0 : urn_real()->shutdown(fd, how);

	urn_twin_put(t);
	return err;
}
