/* SPDX-License-Identifier: BSD-3-Clause */
/* Names, options and ends of TCP sockets that are urnic's. */
#include "sockets/tcp.h"

#include "abi/clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

/* ---- bind() */

/* A port for a socket at an address of urnic's own. */
static uint16_t
urn_tcp_random_port(void)
{
	uint32_t n = (uint32_t)urn_clock_ns();

	return (uint16_t)(URN_PORT_FIRST + n / 64 % (URN_PORT_END - URN_PORT_FIRST));
}

/* Bind to an address of a urnic node that the kernel has not. The lock is held. returns: 0, or an
 * errno value */
static int
urn_tcp_bind_own(struct urn_tcp *t, const struct urn_addr *a)
{
	if (t->own)
		return EINVAL;
	t->own = true;
	t->local = *a;
	if (a->port == 0)
		t->local.port = urn_tcp_random_port();
	return 0;
}

bool
urn_tcp_bind(int fd, const struct sockaddr *addr, socklen_t len, int *err)
{
	struct urn_tcp *t = urn_tcp_get(fd);
	struct urn_addr a;
	bool done = false;

	if (urn_tcp_state(t) == URN_TCP_PLAIN && urn_addr_get(&a, addr, len) == 0 &&
	    addr->sa_family == t->family && !urn_addr_is_any(a.gid) && urn_tcp_net_own(&a)) {
		pthread_mutex_lock(&t->lock);
		*err = t->own ? -1 : urn_real()->bind(fd, addr, len);
		if (*err != 0 && (t->own || errno == EADDRNOTAVAIL)) {
			errno = urn_tcp_bind_own(t, &a);
			*err = errno == 0 ? 0 : -1;
		}
		pthread_mutex_unlock(&t->lock);
		done = true;
	}
	urn_tcp_put(t);
	return done;
}

/* ---- names */

bool
urn_tcp_name(int fd, struct sockaddr *addr, socklen_t *len, bool peer, int *err)
{
	struct urn_tcp *t = urn_tcp_get(fd);
	uint32_t state = urn_tcp_state(t);
	bool stream = state == URN_TCP_STREAM || state == URN_TCP_HELD ||
		      (state == URN_TCP_ASKED && !peer);
	bool done = stream || (t != NULL && t->own && !peer);

	if (done) {
		urn_addr_put(peer ? &t->peer : &t->local, t->family, addr, len);
		*err = 0;
	}
	urn_tcp_put(t);
	return done;
}

bool
urn_tcp_shutdown(int fd, int how, int *err)
{
	struct urn_tcp *t = urn_tcp_get(fd);
	bool stream = t != NULL && urn_tcp_settle(t, fd) == URN_TCP_STREAM;

	if (stream) {
		*err = urn_stream_shutdown(t->s, how);
		if (*err != 0) {
			errno = *err;
			*err = -1;
		}
	}
	urn_tcp_put(t);
	return stream;
}

/* ---- options */

static void
urn_tcp_put_int(void *value, const socklen_t *len, int v)
{
	if (*len >= (socklen_t)sizeof(v))
		memcpy(value, &v, sizeof(v));
}

/* The error of a stream, which is told once. returns: 0: none */
static int
urn_tcp_take_error(struct urn_tcp *t)
{
	int err;

	pthread_mutex_lock(&t->s->lock);
	err = urn_tcp_errno(urn_sh_error(t->s));
	pthread_mutex_unlock(&t->s->lock);
	return err != 0 && !atomic_exchange(&t->told, true) ? err : 0;
}

void
urn_tcp_option(int fd, int level, int option, void *value, const socklen_t *len)
{
	struct urn_tcp *t = urn_tcp_get(fd);
	struct tcp_info *info = value;
	uint32_t state = urn_tcp_state(t);
	int err;

	/* A question about a socket that came by fork() is no use of it. */
	if (state == URN_TCP_ASKED)
		state = urn_tcp_settle(t, fd);

	if (t != NULL && level == SOL_SOCKET && option == SO_ERROR) {
		err = atomic_exchange(&t->err, 0);
		if (err == 0 && state == URN_TCP_STREAM)
			err = urn_tcp_take_error(t);
		if (err != 0)
			urn_tcp_put_int(value, len, err);
	} else if ((state == URN_TCP_LISTEN || state == URN_TCP_HEIR) && level == SOL_SOCKET &&
		   option == SO_ACCEPTCONN) {
		urn_tcp_put_int(value, len, 1);
	} else if ((state == URN_TCP_STREAM || state == URN_TCP_HELD) && level == IPPROTO_TCP &&
		   option == TCP_INFO && *len >= (socklen_t)sizeof(info->tcpi_state)) {
		info->tcpi_state = TCP_ESTABLISHED;
	}
	urn_tcp_put(t);
}

/* Nanoseconds of a time-out. */
static uint64_t
urn_tcp_timeo(const void *value)
{
	struct timeval tv;

	memcpy(&tv, value, sizeof(tv));
	return (uint64_t)tv.tv_sec * 1000000000u + (uint64_t)tv.tv_usec * 1000u;
}

bool
urn_tcp_refuses(int fd, int level, int option, const void *value, socklen_t len)
{
	struct urn_tcp *t = NULL;
	uint32_t state;
	int v = 0;

	if (level != SOL_SOCKET || option != SO_ZEROCOPY || len < (socklen_t)sizeof(v))
		return false;
	memcpy(&v, value, sizeof(v));
	t = v != 0 ? urn_tcp_get(fd) : NULL;
	state = urn_tcp_state(t);
	urn_tcp_put(t);
	return state == URN_TCP_STREAM || state == URN_TCP_HELD;
}

void
urn_tcp_note(int fd, int level, int option, const void *value, socklen_t len)
{
	struct urn_tcp *t = urn_tcp_get(fd);
	struct linger linger;
	int v = 0;

	if (t == NULL)
		return;
	memcpy(&v, value, len < (socklen_t)sizeof(v) ? len : (socklen_t)sizeof(v));
	if (level == SOL_SOCKET && option == SO_RCVTIMEO &&
	    len >= (socklen_t)sizeof(struct timeval)) {
		atomic_store(&t->rcvtimeo_ns, urn_tcp_timeo(value));
	} else if (level == SOL_SOCKET && option == SO_SNDTIMEO &&
		   len >= (socklen_t)sizeof(struct timeval)) {
		atomic_store(&t->sndtimeo_ns, urn_tcp_timeo(value));
	} else if (level == SOL_SOCKET && option == SO_LINGER && len >= (socklen_t)sizeof(linger)) {
		memcpy(&linger, value, sizeof(linger));
		t->reset = linger.l_onoff != 0 && linger.l_linger == 0;
	} else if (level == SOL_SOCKET && option == SO_ZEROCOPY) {
		atomic_store(&t->zerocopy, v != 0);
	} else if (level == IPPROTO_IPV6 && option == IPV6_V6ONLY) {
		t->v6only = v != 0;
	}
	urn_tcp_put(t);
}
