/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/tcp.h"

#include "common/clock.h"
#include "common/text.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define AGAIN_NS 50000000ull /* between two attempts to connect */

uint64_t
urn_tcp_now_ns(void)
{
	return urn_clock_ns();
}

/* ---- waiting */

/* Run one turn while a socket is not ready. returns: 0, or -1 with *err when the time is over */
static int
wait_turn(const struct urn_tcp_wait *w, uint64_t since, const char *what, struct urn_err *err)
{
	if (urn_stop_requested()) {
		urn_err_set(err, "interrupted while waiting for %s", what);
		return -1;
	}
	if (urn_tcp_now_ns() - since > w->limit_ns) {
		urn_err_set(err, "waited %.1f s for %s in vain (--wait)", (double)w->limit_ns / 1e9,
			    what);
		return -1;
	}
	if (w->turn != NULL)
		w->turn(w->arg);
	return 0;
}

/* Wait until a socket has one of the events. returns: 0, or -1 with *err */
static int
wait_for(int fd, short events, const char *what, const struct urn_tcp_wait *w, struct urn_err *err)
{
	struct pollfd p = {.fd = fd, .events = events};
	uint64_t since = urn_tcp_now_ns();

	/* Sleep when there is nothing else to do; else poll and run a turn. */
	while (poll(&p, 1, w->turn == NULL ? 10 : 0) <= 0) {
		if (wait_turn(w, since, what, err))
			return -1;
	}
	return 0;
}

/* ---- sockets */

static struct addrinfo *
look_up(const char *host, const char *service, int flags, struct urn_err *err)
{
	struct addrinfo hints = {
		.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
	struct addrinfo *list = NULL;
	int rc = getaddrinfo(host[0] != '\0' ? host : NULL, service, &hints, &list);

	if (rc == 0)
		return list;
	urn_err_set(err, "cannot find the host '%.100s': %s", host, gai_strerror(rc));
	return NULL;
}

static int
open_socket(const struct addrinfo *ai)
{
	return socket(ai->ai_family, ai->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
		      ai->ai_protocol);
}

/* returns: descriptor, or -1 with errno */
static int
listen_at(const struct addrinfo *ai)
{
	int fd = open_socket(ai), one = 1, zero = 0, why;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (ai->ai_family == AF_INET6) /* takes IPv4 as well then */
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
	if (bind(fd, ai->ai_addr, ai->ai_addrlen) == 0 && listen(fd, 1) == 0)
		return fd;
	why = errno;
	close(fd);
	errno = why;
	return -1;
}

int
urn_tcp_listen(const char *host, const char *service, struct urn_err *err)
{
	struct addrinfo *list = look_up(host, service, AI_PASSIVE, err);
	int fd = -1, why = 0;

	if (list == NULL)
		return -1;
	/* Without a host listen for both families: IPv6 first, if there is any. */
	for (struct addrinfo *ai = list; ai != NULL && fd < 0; ai = ai->ai_next) {
		if (host[0] == '\0' && ai->ai_family == AF_INET6)
			fd = listen_at(ai);
	}
	for (struct addrinfo *ai = list; ai != NULL && fd < 0; ai = ai->ai_next) {
		fd = listen_at(ai);
		why = errno;
	}
	freeaddrinfo(list);
	if (fd < 0)
		urn_err_set(err, "cannot listen on %.100s%sport %s: %s; give --listen another one",
			    host, host[0] != '\0' ? " " : "", service, strerror(why));
	return fd;
}

int
urn_tcp_accept(int fd, const struct urn_tcp_wait *w, struct urn_err *err)
{
	for (;;) {
		int peer;

		if (wait_for(fd, POLLIN, "a peer", w, err))
			return -1;
		peer = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (peer >= 0)
			return peer;
		if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
			urn_err_set(err, "cannot take the peer's connection: %s", strerror(errno));
			return -1;
		}
	}
}

/*
 * Try one address once. returns: descriptor; -1 with *err when the time is over,
 * else with errno
 */
static int
try_connect(const struct addrinfo *ai, const struct urn_tcp_wait *w, struct urn_err *err)
{
	int fd = open_socket(ai), why = 0;
	socklen_t len = sizeof(why);

	if (fd < 0)
		return -1;
	if (connect(fd, ai->ai_addr, ai->ai_addrlen) == 0)
		return fd;
	if (errno != EINPROGRESS) {
		why = errno;
	} else if (wait_for(fd, POLLOUT, "the peer to take our connection", w, err)) {
		why = ETIMEDOUT;
	} else {
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &len);
		if (why == 0)
			return fd;
	}
	close(fd);
	errno = why;
	return -1;
}

int
urn_tcp_connect(const char *host, const char *service, const struct urn_tcp_wait *w,
		struct urn_err *err)
{
	struct addrinfo *list = look_up(host, service, 0, err);
	uint64_t since = urn_tcp_now_ns(), tried;
	int fd = -1, why = 0;

	if (list == NULL)
		return -1;
	while (fd < 0) {
		tried = urn_tcp_now_ns();
		for (struct addrinfo *ai = list; ai != NULL && fd < 0; ai = ai->ai_next) {
			fd = try_connect(ai, w, err);
			why = errno;
		}
		while (fd < 0 && urn_tcp_now_ns() - tried < AGAIN_NS) {
			if (wait_turn(w, since, "the peer", err)) {
				if (!urn_stop_requested())
					urn_err_set(err,
						    "cannot connect to %.100s port %s: %s; is "
						    "%s running there?",
						    host, service, strerror(why), w->listener);
				freeaddrinfo(list);
				return -1;
			}
		}
	}
	freeaddrinfo(list);
	return fd;
}

static int
broken(const char *what, ssize_t rc, struct urn_err *err)
{
	urn_err_set(err,
		    "the peer's connection ended before %s: %s; the peer's own output says why",
		    what, rc == 0 ? "closed by the peer" : strerror(errno));
	return -1;
}

int
urn_tcp_read(int fd, void *buf, size_t n, const char *what, const struct urn_tcp_wait *w,
	     struct urn_err *err)
{
	for (size_t got = 0; got < n;) {
		ssize_t rc;

		if (wait_for(fd, POLLIN, what, w, err))
			return -1;
		rc = read(fd, (char *)buf + got, n - got);
		if (rc > 0)
			got += (size_t)rc;
		else if (rc == 0 || (errno != EAGAIN && errno != EINTR))
			return broken(what, rc, err);
	}
	return 0;
}

int
urn_tcp_write(int fd, const void *buf, size_t n, const char *what, const struct urn_tcp_wait *w,
	      struct urn_err *err)
{
	for (size_t done = 0; done < n;) {
		ssize_t rc;

		if (wait_for(fd, POLLOUT, what, w, err))
			return -1;
		rc = send(fd, (const char *)buf + done, n - done, MSG_NOSIGNAL);
		if (rc > 0)
			done += (size_t)rc;
		else if (errno != EAGAIN && errno != EINTR)
			return broken(what, -1, err);
	}
	return 0;
}
