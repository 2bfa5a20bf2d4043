/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP connections are asked for, and taken: of urnic, or of the kernel. No byte has gone when that
 * is decided, and it is decided once: a stream that was up never becomes the kernel's.
 */
#include "sockets/tcp.h"

#include "abi/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

/* Buffers of a stream: the room that a sender has while its peer's program does other work. */
enum { URN_TCP_BUFFERS = 32, URN_TCP_BUFFER = 16384 };

const struct urn_stream_options urn_tcp_options = {
	.buffers = URN_TCP_BUFFERS, .size = URN_TCP_BUFFER, .linger_ms = URN_TCP_LINGER_MS};
/* Ports that are told for ends that have none; a number that goes on. */
static _Atomic uint32_t urn_tcp_made_up;

static uint16_t
urn_tcp_port(void)
{
	uint32_t n = atomic_fetch_add(&urn_tcp_made_up, 1);

	return (uint16_t)(URN_PORT_FIRST + n % (URN_PORT_END - URN_PORT_FIRST));
}

/* The own address of a stream. */
static void
urn_tcp_own_gid(const struct urn_stream *s, uint8_t gid[16])
{
	union ibv_gid own = {{0}};

	(void)ibv_query_gid(s->node->ctx, URN_SH_PORT, s->sgid_index, &own);
	memcpy(gid, own.raw, sizeof(own.raw));
}

/* ---- connect() */

/* An address of urnic's networks that the kernel has no interface to would be another host's behind
 * a gateway: the kernel's connection goes without one. */
static void
urn_tcp_no_gateway(int fd)
{
	int on = 1;

	(void)urn_real()->setsockopt(fd, SOL_SOCKET, SO_DONTROUTE, &on, sizeof(on));
}

/*
 * Connect by the kernel. refused: the peer is a urnic node, so the wait of
 * a blocking call has a bound. returns: 0, or an errno value
 */
static int
urn_tcp_connect_kernel(struct urn_tcp *t, int fd, bool refused)
{
	const struct timeval bound = {.tv_sec = URN_TCP_REFUSED_MS / 1000};
	uint64_t ns = atomic_load(&t->sndtimeo_ns);
	struct timeval before = {(time_t)(ns / 1000000000), (suseconds_t)(ns % 1000000000 / 1000)};
	bool bounded = refused && !atomic_load(&t->nonblock);
	int err;

	urn_tcp_no_gateway(fd);
	if (bounded)
		(void)urn_real()->setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof(bound));
	err = urn_real()->connect(fd, (const struct sockaddr *)&t->to, t->to_len) == 0 ? 0 : errno;
	if (bounded)
		(void)urn_real()->setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &before, sizeof(before));
	return bounded && err == EINPROGRESS ? ECONNREFUSED : err;
}

/* Make a hidden descriptor for the socket. The program may have closed the number that a wait
 * remembers, and have another socket there by now. returns: -1: it has */
static int
urn_tcp_copy(const struct urn_tcp *t, int fd)
{
	int copy = urn_real_copy(fd);

	if (copy >= 0 && t->cookie != 0 && urn_twin_cookie(copy) != t->cookie) {
		urn_real_end(copy);
		copy = -1;
	}
	return copy;
}

/* A connection that urnic could not make goes to the kernel. The lock is held. err: why; refused:
 * nobody listens at the peer, which is a urnic node. returns: 0 or an errno value */
static int
urn_tcp_fall(struct urn_tcp *t, int fd, int err)
{
	int got, copy;

	atomic_store(&t->state, URN_TCP_KERNEL);
	/* Another thread may poll the stream: its memory stays with the socket. */
	(void)urn_stream_abort(t->s);
	if (err == EPROTO) /* the listener was closed while the request waited */
		err = ECONNREFUSED;
	/* The kernel has not the address that the socket is bound to. */
	copy = t->own ? -1 : urn_tcp_copy(t, fd);
	if (copy < 0) {
		atomic_store(&t->err, err);
		return err;
	}
	got = urn_tcp_connect_kernel(t, copy, err == ECONNREFUSED);
	urn_real_end(copy);
	if (got == 0)
		return 0;
	/* A peer of urnic's network that the kernel knows no way to has refused by urnic. */
	if (got != EINPROGRESS && got != EINTR) {
		got = err == ECONNREFUSED ? err : got;
		atomic_store(&t->err, got);
	}
	return got;
}

/* The state of a stream that was asked for. why: set when it is not made. returns: URN_SH_UP,
 * URN_SH_ASKED or URN_SH_BROKEN */
static enum urn_sh_phase
urn_tcp_phase(struct urn_tcp *t, int *why)
{
	enum urn_sh_phase phase;

	pthread_mutex_lock(&t->s->lock);
	(void)urn_sh_progress(t->s);
	phase = t->s->phase;
	*why = t->s->err;
	pthread_mutex_unlock(&t->s->lock);
	if (phase == URN_SH_ASKED && urn_sh_now() >= t->deadline) {
		*why = ETIMEDOUT;
		return URN_SH_BROKEN;
	}
	return phase;
}

/* The same as urn_tcp_settle(), with the lock. err: set when the state is not ASKED any more: 0, or
 * the errno value of the connection */
static uint32_t
urn_tcp_settle_locked(struct urn_tcp *t, int fd, int *err)
{
	enum urn_sh_phase phase;
	int why;

	urn_sh_hub_look(t->s->node);
	phase = urn_tcp_phase(t, &why);
	*err = 0;
	if (phase == URN_SH_ASKED)
		return URN_TCP_ASKED;
	if (phase == URN_SH_UP)
		atomic_store(&t->state, URN_TCP_STREAM);
	else
		*err = urn_tcp_fall(t, fd, why);
	return atomic_load(&t->state);
}

uint32_t
urn_tcp_settle(struct urn_tcp *t, int fd)
{
	uint32_t state = atomic_load(&t->state);
	int err;

	if (state == URN_TCP_HEIR && !urn_real_stranger())
		state = urn_tcp_heir_settle(t);
	else if (state == URN_TCP_HELD && !urn_real_stranger())
		state = urn_tcp_held_settle(t);
	if (state == URN_TCP_LISTEN && t->kernel && atomic_load(&t->l->node->dead))
		atomic_store(&t->state, URN_TCP_KERNEL);
	if (state != URN_TCP_ASKED)
		return atomic_load(&t->state);
	pthread_mutex_lock(&t->lock);
	state = atomic_load(&t->state);
	if (state == URN_TCP_ASKED)
		state = urn_tcp_settle_locked(t, fd, &err);
	pthread_mutex_unlock(&t->lock);
	if (state != URN_TCP_ASKED)
		urn_tcp_epoll_moved(t);
	return state;
}

int
urn_tcp_patience(struct urn_tcp *t, int left)
{
	uint64_t now;
	int ms;

	if (atomic_load(&t->state) != URN_TCP_ASKED)
		return left;
	now = urn_sh_now();
	ms = t->deadline > now ? (int)(t->deadline - now) : 0;
	return left < 0 || ms < left ? ms : left;
}

/* Ask for a stream. The lock is held. returns: 0; or an errno value: there is none */
static int
urn_tcp_ask(struct urn_tcp *t, const struct sockaddr *to, socklen_t len,
	    const struct urn_addr *peer)
{
	struct urn_stream_node *n = urn_tcp_node();
	struct sockaddr_storage plain = {0};
	socklen_t plain_len = sizeof(plain);
	struct urn_stream *s;
	int family = urn_addr_is_v4(peer->gid) ? AF_INET : AF_INET6, err;

	urn_addr_put(peer, family, (struct sockaddr *)&plain, &plain_len);
	err = n == NULL ? ENETDOWN
			: urn_stream_connect(&s, n, (struct sockaddr *)&plain, plain_len,
					     &urn_tcp_options, URN_STREAM_DONTWAIT);
	if (err != 0)
		return err;
	memcpy(&t->to, to, len);
	t->to_len = len;
	t->peer = *peer;
	if (!t->own) {
		t->local.port = t->local.port ? t->local.port : urn_tcp_port();
		urn_tcp_own_gid(s, t->local.gid);
	}
	t->deadline = urn_sh_now() + URN_TCP_ASK_MS;
	t->s = s;
	atomic_store(&t->state, URN_TCP_ASKED);
	return 0;
}

/* Wait until it is decided whose the connection is. returns: 0, or an errno value */
static int
urn_tcp_await(struct urn_tcp *t, int fd)
{
	uint64_t timeo = atomic_load(&t->sndtimeo_ns);
	uint64_t end = timeo ? urn_sock_end_of((int64_t)timeo) : 0;
	uint32_t state = URN_TCP_ASKED;
	int err = 0;

	while (err == 0 && state == URN_TCP_ASKED) {
		err = urn_tcp_wait(t, POLLOUT, end, -1);
		pthread_mutex_lock(&t->lock);
		state = atomic_load(&t->state);
		if (state == URN_TCP_ASKED) {
			int why;

			state = urn_tcp_settle_locked(t, fd, &why);
			err = state == URN_TCP_ASKED ? err : why;
		}
		pthread_mutex_unlock(&t->lock);
	}
	if (state != URN_TCP_ASKED) {
		(void)atomic_exchange(&t->err, 0); /* the call tells it */
		urn_tcp_epoll_moved(t);
	}
	return err == EAGAIN ? EINPROGRESS : err;
}

/* True when the kernel has not bound the socket to an address of its own, or connected it by a
 * send. The lock is held. */
static bool
urn_tcp_is_free(struct urn_tcp *t, int fd)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	struct urn_addr a;

	if (t->own)
		return true;
	if (urn_real()->getsockname(fd, (struct sockaddr *)&ss, &len) != 0 ||
	    urn_addr_get(&a, (struct sockaddr *)&ss, len) != 0)
		return false;
	t->local.port = a.port;
	return urn_addr_is_any(a.gid) || (urn_tcp_net_own(&a) && a.port != 0);
}

/* Connect a socket of which nothing is decided. The lock is held. returns: 0; an errno value; -1:
 * the kernel connects */
static int
urn_tcp_connect_plain(struct urn_tcp *t, int fd, const struct sockaddr *to, socklen_t len)
{
	struct urn_addr peer;
	bool is = len <= (socklen_t)sizeof(t->to) && urn_addr_get(&peer, to, len) == 0 &&
		  peer.port != 0 && to->sa_family == t->family &&
		  !(t->v6only && urn_addr_is_v4(peer.gid)) && urn_tcp_net_has(&peer) &&
		  urn_tcp_is_free(t, fd);

	if (is && urn_tcp_ask(t, to, len, &peer) == 0)
		return 0;
	if (t->own)
		return is ? ENETDOWN : ENETUNREACH;
	if (is)
		urn_tcp_no_gateway(fd);
	atomic_store(&t->state, URN_TCP_KERNEL);
	return -1;
}

/* The answer for a socket that is connected, or listens. returns: as above */
static int
urn_tcp_connect_again(struct urn_tcp *t, int fd)
{
	switch (urn_tcp_settle(t, fd)) {
	case URN_TCP_STREAM:
		return EISCONN;
	case URN_TCP_ASKED:
		return EALREADY;
	case URN_TCP_LOST:
		return ENOTCONN;
	case URN_TCP_LISTEN:
		return t->kernel ? -1 : EISCONN;
	default:
		return t->own ? ENETUNREACH : -1;
	}
}

int
urn_tcp_connect(struct urn_tcp *t, int fd, const struct sockaddr *to, socklen_t len)
{
	int err = 0;
	bool plain;

	pthread_mutex_lock(&t->lock);
	plain = atomic_load(&t->state) == URN_TCP_PLAIN;
	if (plain)
		err = urn_tcp_connect_plain(t, fd, to, len);
	pthread_mutex_unlock(&t->lock);
	if (plain)
		urn_tcp_epoll_moved(t);
	else
		err = urn_tcp_connect_again(t, fd);
	if (err == 0)
		err = atomic_load(&t->nonblock) ? EINPROGRESS : urn_tcp_await(t, fd);
	if (err < 0)
		return urn_real()->connect(fd, to, len);
	errno = err;
	return err == 0 ? 0 : -1;
}

/* ---- listen(), accept() */

/* Requests that may wait. Each takes memory, so a peer could have all of it if a program's wish had
 * no bound. */
static uint32_t
urn_tcp_backlog(int wish)
{
	return wish <= 0 ? 1 : wish < URN_TCP_BACKLOG ? (uint32_t)wish : URN_TCP_BACKLOG;
}

/* True when the socket is bound where urnic's peers may come in; `local` is set. The lock is held.
 */
static bool
urn_tcp_is_open(struct urn_tcp *t, int fd)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);

	if (t->own)
		return true;
	return urn_real()->getsockname(fd, (struct sockaddr *)&ss, &len) == 0 &&
	       urn_addr_get(&t->local, (struct sockaddr *)&ss, len) == 0 && t->local.port != 0 &&
	       (urn_addr_is_any(t->local.gid) || urn_tcp_net_own(&t->local));
}

/* Listen for streams beside the kernel, which listens already; or alone. The lock is held. returns:
 * 0, or an errno value */
static int
urn_tcp_listen_both(struct urn_tcp *t, int fd, int backlog)
{
	int err = urn_tcp_is_open(t, fd) ? 0 : ENETUNREACH;

	t->backlog = urn_tcp_backlog(backlog);
	if (err == 0)
		err = urn_tcp_heir_listen(t, false);
	if (err == 0) {
		t->kernel = !t->own;
		atomic_store(&t->state, URN_TCP_LISTEN);
		return 0;
	}
	/* Without urnic the kernel's side is all there is. */
	if (!t->own)
		atomic_store(&t->state, URN_TCP_KERNEL);
	return t->own ? err : 0;
}

int
urn_tcp_listen(struct urn_tcp *t, int fd, int backlog)
{
	uint32_t state = atomic_load(&t->state);
	int err = 0;

	if (state != URN_TCP_PLAIN)
		return (state == URN_TCP_LISTEN || state == URN_TCP_HEIR) && !t->kernel
			       ? 0
			       : urn_real()->listen(fd, backlog);
	pthread_mutex_lock(&t->lock);
	if (!t->own && urn_real()->listen(fd, backlog) != 0)
		err = errno;
	else
		err = urn_tcp_listen_both(t, fd, backlog);
	pthread_mutex_unlock(&t->lock);
	urn_tcp_epoll_moved(t);
	errno = err;
	return err == 0 ? 0 : -1;
}

/* Make a descriptor for a request that was taken. returns: -1 with errno; ECONNABORTED: the peer
 * has given up */
static int
urn_tcp_taken(struct urn_tcp *l, struct urn_sh_request *r, struct sockaddr *from, socklen_t *len,
	      int flags)
{
	int fd = urn_real()->socket(l->family, SOCK_STREAM | flags, 0), err;
	struct urn_abi_cm_event *ev = &r->ev;
	struct urn_tcp *t = NULL;

	if (fd >= 0) {
		urn_twin_close(fd); /* a descriptor that fclose() closed */
		t = urn_tcp_add(fd, l->family, (flags & SOCK_NONBLOCK) != 0);
	}
	if (t != NULL) {
		memcpy(t->local.gid, ev->own_gid, sizeof(ev->own_gid));
		t->local.port = l->local.port;
		atomic_store(&t->zerocopy, atomic_load(&l->zerocopy));
		memcpy(t->peer.gid, ev->gid, sizeof(ev->gid));
		t->peer.port = urn_tcp_port();
		if (from != NULL && len != NULL)
			urn_addr_put(&t->peer, t->family, from, len);
	}
	if (t != NULL && urn_tcp_held_begin(t, l, r)) {
		/* Processes hand on nothing of a session's. */
		if (!urn_tcp_in_session() || urn_tcp_held_settle(t) == URN_TCP_STREAM)
			return fd;
		err = ECONNABORTED;
	} else {
		err = fd < 0 ? errno : ENFILE;
		urn_sh_refuse(l->l->node, ev->id, "the listening end has no room");
		free(r);
	}
	if (fd >= 0) {
		urn_twin_close(fd);
		(void)urn_real()->close(fd);
	}
	errno = err;
	return -1;
}

/* Take a connection of the kernel's, if one is there. returns: -1 with errno, EAGAIN: none */
static int
urn_tcp_accept_kernel(struct urn_tcp *t, int fd, struct sockaddr *from, socklen_t *len, int flags)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int got;

	errno = EAGAIN;
	if (!t->kernel || urn_real()->poll(&p, 1, 0) <= 0)
		return -1;
	got = urn_real()->accept4(fd, from, len, flags);
	if (got >= 0)
		urn_twin_close(got);
	return got;
}

int
urn_tcp_accept(struct urn_tcp *t, int fd, struct sockaddr *from, socklen_t *len, int flags)
{
	uint64_t timeo = atomic_load(&t->rcvtimeo_ns);
	uint64_t end = timeo ? urn_sock_end_of((int64_t)timeo) : 0;
	struct urn_sh_request *r;
	int got, err;

	urn_tcp_held_all();
	urn_tcp_tidy();
	for (;;) {
		if (urn_tcp_settle(t, fd) == URN_TCP_KERNEL)
			return urn_real()->accept4(fd, from, len, flags);
		err = urn_sh_next(&r, t->l);
		got = err == 0 ? urn_tcp_taken(t, r, from, len, flags) : -1;
		if (err == 0 && got < 0 && errno == ECONNABORTED)
			continue;
		if (err == 0)
			return got;
		got = urn_tcp_accept_kernel(t, fd, from, len, flags);
		if (got >= 0 || errno != EAGAIN)
			return got;
		if (err == EAGAIN && !atomic_load(&t->nonblock))
			err = urn_tcp_wait(t, POLLIN, end, t->kernel ? fd : -1);
		/* Without the dataplane the kernel's side goes on. */
		if (err != 0 && !(err == EIO && t->kernel)) {
			/* Nobody comes any more: waits are told of that no second time. */
			atomic_store(&t->told, err == EIO && atomic_load(&t->l->node->dead));
			errno = err;
			return -1;
		}
	}
}
