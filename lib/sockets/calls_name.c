/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls in the C library's place that make, name, connect and set sockets. */
#include "sockets/call.h"

#include "sockets/tcp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/time.h>

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
	else if ((domain == AF_INET || domain == AF_INET6) &&
		 (type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_STREAM &&
		 (protocol == 0 || protocol == IPPROTO_TCP))
		(void)urn_tcp_add(fd, domain, (type & SOCK_NONBLOCK) != 0);
	return fd;
}

/* Bind the urnic socket alone: the address is a urnic node's. returns: 0, or an errno value */
static int
urn_bind_urnic(struct urn_twin *t, const struct urn_addr *a)
{
	struct urn_sock *s;

	urn_twin_claim(a->port);
	s = urn_twin_sock(t);
	return s != NULL ? urn_twin_bind(s, a) : errno;
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

/* True when an option of the kernel's socket is on. */
static bool
urn_bind_option(int fd, int level, int option)
{
	int on = 0;
	socklen_t len = sizeof(on);

	return urn_real()->getsockopt(fd, level, option, &on, &len) == 0 && on != 0;
}

/* The urnic socket gives up what bind() has done. made: bind() has made it */
static void
urn_bind_undo(struct urn_twin *t, bool made)
{
	struct urn_sock *s = atomic_load(&t->sock);

	if (made)
		urn_twin_unmake(t);
	else if (s != NULL)
		urn_sock_unbind(s);
}

/* Bind the urnic socket to a port of any address. returns: 0, or an errno value */
static int
urn_bind_any_urnic(struct urn_twin *t, int fd, const struct urn_addr *a)
{
	int err;

	atomic_store(&t->v6only,
		     t->family == AF_INET6 && urn_bind_option(fd, IPPROTO_IPV6, IPV6_V6ONLY));
	if (a->port == 0)
		return 0; /* the kernel picks it */
	err = urn_bind_urnic(t, a);
	if (err == EADDRINUSE && t->family == AF_INET && urn_twin_yield(a->port))
		err = urn_bind_urnic(t, a);
	return err;
}

/* Bind both sockets to any address. returns: 0, or -1 with errno */
static int
urn_bind_any(struct urn_twin *t, int fd, const struct sockaddr *addr, socklen_t len,
	     struct urn_addr *a)
{
	bool made = atomic_load(&t->sock) == NULL;
	int err = urn_bind_any_urnic(t, fd, a);

	/* A server has an IPv6 socket beside the IPv4 socket that has the port, or several sockets
	 * at the port by SO_REUSEPORT: on urnic the first one has all datagrams. */
	if ((err == EADDRINUSE && t->family == AF_INET &&
	     !urn_bind_option(fd, SOL_SOCKET, SO_REUSEPORT)) ||
	    urn_twin_is_full(err)) {
		if (made)
			urn_twin_unmake(t);
		errno = err;
		return -1;
	}
	if (err != 0 && made) /* no dataplane: the kernel's socket is all there is */
		urn_twin_unmake(t);
	if (urn_real()->bind(fd, addr, len) != 0) {
		int why = errno;

		if (err == 0 && a->port != 0)
			urn_bind_undo(t, made);
		errno = why;
		return -1;
	}
	atomic_store(&t->kernel, true);
	if (a->port == 0)
		urn_bind_picked(t, fd, a);
	return 0;
}

/* Bind the urnic socket to an own address of the node. returns: 0, or -1 with errno */
static int
urn_bind_own(struct urn_twin *t, const struct urn_addr *a)
{
	int err = urn_bind_urnic(t, a);

	if (err == EADDRINUSE && t->family == AF_INET && urn_twin_yield(a->port))
		err = urn_bind_urnic(t, a);
	errno = err;
	return err == 0 ? 0 : -1;
}

URN_CALL int
bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct urn_twin *t = urn_twin_get(fd);
	struct urn_addr a;
	int err;

	if (t == NULL)
		return urn_tcp_bind(fd, addr, len, &err) ? err : urn_real()->bind(fd, addr, len);
	if (urn_addr_get(&a, addr, len) == 0 && addr->sa_family == t->family &&
	    urn_addr_is_any(a.gid)) {
		err = urn_bind_any(t, fd, addr, len, &a);
	} else if (urn_addr_get(&a, addr, len) == 0 && addr->sa_family == t->family &&
		   urn_net_own(&a)) {
		err = urn_bind_own(t, &a);
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
	return 0;
}

/* Connect by the kernel, or end all connections. returns: 0, or -1 with errno */
static int
urn_connect_kernel(struct urn_twin *t, int fd, const struct sockaddr *addr, socklen_t len)
{
	struct urn_sock *s = atomic_load(&t->sock);
	int err = urn_real()->connect(fd, addr, len);

	if (err != 0)
		return err;
	if (s != NULL && atomic_load(&s->connected))
		(void)urn_sock_connect(s, NULL);
	if (addr->sa_family != AF_UNSPEC)
		atomic_store(&t->kernel, true);
	return 0;
}

URN_CALL int
connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	/* A child of vfork() makes no connection in its parent's memory. */
	struct urn_tcp *tcp = urn_real_stranger() ? NULL : urn_tcp_get(fd);
	struct urn_twin *t = tcp == NULL ? urn_twin_get(fd) : NULL;
	struct urn_addr a;
	int err;

	if (tcp != NULL) {
		err = urn_tcp_connect(tcp, fd, addr, len);
		urn_tcp_put(tcp);
		return err;
	}
	if (t == NULL)
		return urn_real()->connect(fd, addr, len);
	err = urn_twin_target(t, &a, addr, len) ? urn_connect_urnic(t, fd, &a)
						: urn_connect_kernel(t, fd, addr, len);
	urn_twin_put(t);
	return err;
}

URN_CALL int
listen(int fd, int backlog)
{
	struct urn_tcp *t = urn_real_stranger() ? NULL : urn_tcp_get(fd);
	int err = t != NULL ? urn_tcp_listen(t, fd, backlog) : urn_real()->listen(fd, backlog);

	urn_tcp_put(t);
	return err;
}

URN_CALL int
accept4(int fd, struct sockaddr *restrict addr, socklen_t *restrict len, int flags)
{
	struct urn_tcp *t = urn_real_stranger() ? NULL : urn_tcp_get(fd);
	int got;

	if (t != NULL && urn_tcp_settle(t, fd) == URN_TCP_LISTEN &&
	    (flags & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == 0) {
		got = urn_tcp_accept(t, fd, addr, len, flags);
	} else {
		got = urn_real()->accept4(fd, addr, len, flags);
		/* The descriptor may have been closed by fclose(), which the library does not see.
		 */
		if (got >= 0 && !urn_real_stranger())
			urn_twin_close(got);
	}
	urn_tcp_put(t);
	return got;
}

URN_CALL int
accept(int fd, struct sockaddr *restrict addr, socklen_t *restrict len)
{
	return accept4(fd, addr, len, 0);
}

URN_CALL int
getsockname(int fd, struct sockaddr *restrict addr, socklen_t *restrict len)
{
	struct urn_twin *t = urn_twin_peek(fd);
	bool pending = t != NULL && atomic_load(&t->pending);
	struct urn_sock *s = t != NULL ? atomic_load(&t->sock) : NULL;
	struct urn_addr a = {0};
	bool peer = t != NULL && (pending ? t->heir_connected : urn_twin_to_urnic(t));
	int err = 0;

	if (t == NULL && urn_tcp_name(fd, addr, len, false, &err))
		return err;
	/* The address that a connected socket sends from is known by the adapter only. */
	if (pending && peer && urn_addr_is_any(t->local.gid) && urn_twin_settle(t) == 0)
		s = atomic_load(&t->sock);
	if (s == NULL && pending && t->heir_bound)
		a = t->local;
	else if (s != NULL)
		urn_sock_name(s, &a);
	/* A socket that the kernel knows too has the kernel's name, unless its peer is a urnic
	 * node. */
	if (a.port == 0 || (atomic_load(&t->kernel) && !peer))
		err = urn_real()->getsockname(fd, addr, len);
	else
		urn_addr_put(&a, t->family, addr, len);
	urn_twin_put(t);
	return err;
}

URN_CALL int
getpeername(int fd, struct sockaddr *restrict addr, socklen_t *restrict len)
{
	struct urn_twin *t = urn_twin_peek(fd);
	struct urn_sock *s = t != NULL && urn_twin_to_urnic(t) ? atomic_load(&t->sock) : NULL;
	int err = 0;

	if (t == NULL && urn_tcp_name(fd, addr, len, true, &err))
		return err;
	if (t != NULL && atomic_load(&t->pending) && t->heir_connected)
		urn_addr_put(&t->peer, t->family, addr, len);
	else if (s == NULL)
		err = urn_real()->getpeername(fd, addr, len);
	else
		urn_addr_put(&s->peer, t->family, addr, len);
	urn_twin_put(t);
	return err;
}

URN_CALL int
getsockopt(int fd, int level, int option, void *restrict value, socklen_t *restrict len)
{
	struct urn_twin *t = urn_twin_peek(fd);
	struct urn_sock *s = t != NULL ? atomic_load(&t->sock) : NULL;
	int err = urn_real()->getsockopt(fd, level, option, value, len), v;

	if (err == 0)
		urn_tcp_option(fd, level, option, value, len);
	if (err == 0 && s != NULL && level == SOL_SOCKET && option == SO_ERROR &&
	    *len == (socklen_t)sizeof(v)) {
		(void)urn_sock_expects(s); /* looks at answers */
		v = (int)atomic_exchange(&s->error, 0);
		if (v != 0)
			memcpy(value, &v, sizeof(v));
	}
	urn_twin_put(t);
	return err;
}

/* Keep in mind an option that the kernel's socket has taken, and that urnic minds, too. */
static void
urn_option_note(struct urn_twin *t, int level, int option, const void *value, socklen_t len)
{
	struct urn_sock *s = atomic_load(&t->sock);
	struct timeval tv;
	int v = 0;

	memcpy(&v, value, len < (socklen_t)sizeof(v) ? len : (socklen_t)sizeof(v));
	if (level == IPPROTO_IP && option == IP_PKTINFO)
		atomic_store(&t->info4, v != 0);
	else if (level == IPPROTO_IPV6 && option == IPV6_RECVPKTINFO)
		atomic_store(&t->info6, v != 0);
	else if (level == IPPROTO_UDP && option == UDP_SEGMENT)
		atomic_store(&t->segment, (uint32_t)v);
	else if (level == IPPROTO_UDP && option == UDP_CORK)
		atomic_store(&t->cork, v != 0);
	else if (level == SOL_SOCKET && option == SO_SNDTIMEO && len >= (socklen_t)sizeof(tv)) {
		memcpy(&tv, value, sizeof(tv));
		atomic_store(&t->sndtimeo_ns,
			     (uint64_t)tv.tv_sec * 1000000000u + (uint64_t)tv.tv_usec * 1000u);
		if (s != NULL)
			s->sndtimeo_ns = atomic_load(&t->sndtimeo_ns);
	}
}

URN_CALL int
setsockopt(int fd, int level, int option, const void *value, socklen_t len)
{
	struct urn_twin *t;
	int err;

	if (value != NULL && urn_tcp_refuses(fd, level, option, value, len)) {
		errno = EOPNOTSUPP;
		return -1;
	}
	t = urn_twin_peek(fd);
	err = urn_real()->setsockopt(fd, level, option, value, len);
	if (t != NULL && err == 0 && value != NULL)
		urn_option_note(t, level, option, value, len);
	else if (err == 0 && value != NULL)
		urn_tcp_note(fd, level, option, value, len);
	urn_twin_put(t);
	return err;
}

URN_CALL int
shutdown(int fd, int how)
{
	static const uint32_t bits[] = {
		[SHUT_RD] = URN_TWIN_SHUT_RD,
		[SHUT_WR] = URN_TWIN_SHUT_WR,
		[SHUT_RDWR] = URN_TWIN_SHUT_RD | URN_TWIN_SHUT_WR,
	};
	struct urn_twin *t;
	int err;

	if (urn_tcp_shutdown(fd, how, &err))
		return err;
	t = urn_twin_get(fd);
	if (t != NULL && how >= SHUT_RD && how <= SHUT_RDWR)
		atomic_fetch_or(&t->shut, bits[how]);
	/* The kernel's socket wakes those who wait. Without a peer the answer is ENOTCONN, and the
	 * socket is shut down all the same. */
	err = urn_real()->shutdown(fd, how);
	if (err != 0 && errno == ENOTCONN && t != NULL && urn_twin_to_urnic(t))
		err = 0;
	urn_twin_put(t);
	return err;
}
