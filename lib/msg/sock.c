/* SPDX-License-Identifier: BSD-3-Clause */
/* Making, naming and ending sockets. */
#include "msg/sock.h"

#include "abi/clock.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Make one outlet's register set. returns: 0, or an errno value */
static int
urn_sock_outlet(struct urn_sock *s, uint32_t k)
{
	const struct urn_msg_attr attr = {
		.send_size = URN_SOCK_DATAGRAM,
		.recv_size = URN_SOCK_DATAGRAM,
		.entries = k == 0 ? URN_SOCK_ENTRIES : 0,
		.named = 1,
		.wakes = k == 0,
	};
	struct urn_outlet *l = &s->outlet[k];
	int err = urn_msg_set_init(&l->set, urn_socks_dev(s->socks), &attr);

	l->open = err == 0;
	return err;
}

int
urn_sock_make(struct urn_sock **out, int family)
{
	struct urn_socks *t = urn_socks_get();
	struct urn_sock *s;
	uint32_t k;
	int err;

	if (t == NULL)
		return errno;
	s = urn_socks_take(t);
	if (s == NULL && urn_socks_reap(t) > 0)
		s = urn_socks_take(t);
	if (s == NULL)
		return errno;
	urn_msg_mutex_init(&s->lock);
	for (k = 0; k < URN_PORT_OUTLETS; k++)
		urn_msg_mutex_init(&s->outlet[k].lock);
	s->family = family;
	err = urn_sock_outlet(s, 0);
	if (err != 0 && urn_socks_reap(t) > 0)
		err = urn_sock_outlet(s, 0);
	if (err != 0) {
		(void)urn_socks_let_go(s);
		urn_socks_free(s);
		return err;
	}
	*out = s;
	return 0;
}

void
urn_sock_end(struct urn_sock *s)
{
	uint32_t k;

	for (k = 0; k < URN_PORT_OUTLETS; k++)
		if (s->outlet[k].open)
			urn_msg_set_fini(&s->outlet[k].set);
}

void
urn_sock_drop(struct urn_sock *s)
{
	int fd = urn_sock_fd(s);

	urn_sock_flush(s);
	if (urn_socks_let_go(s)) {
		urn_sock_end(s);
		urn_socks_free(s);
	} else if (fd >= 0) {
		close(fd);
	}
}

bool
urn_sock_own(struct urn_sock *s, const uint8_t gid[16])
{
	struct urn_msg_dev *dev = urn_socks_dev(s->socks);
	uint8_t own[16];
	uint32_t i;

	for (i = 0; urn_msg_dev_gid(dev, i, own) == 0; i++)
		if (memcmp(own, gid, 16) == 0 && !urn_addr_is_any(own))
			return true;
	return false;
}

/* Bind outlet 0 to the port's name, or to any free one. returns: 0, or an errno value; *port: the
 * port */
static int
urn_sock_bind_port(struct urn_sock *s, uint16_t *port)
{
	uint32_t name, start;
	int err;

	if (*port != 0) {
		err = urn_msg_set_bind(&s->outlet[0].set, urn_addr_name(*port, 0));
		/* The port may be that of a socket whose last process ended without a word. */
		if (err == EADDRINUSE && urn_socks_reap(s->socks) > 0)
			err = urn_msg_set_bind(&s->outlet[0].set, urn_addr_name(*port, 0));
		return err;
	}
	/* A port that was closed a moment ago may still get answers: begin anywhere, like UDP. */
	start = URN_PORT_FIRST + (uint32_t)((urn_clock_ns() * 0x9e3779b97f4a7c15ull) >> 32) %
					 (URN_PORT_END - URN_PORT_FIRST);
	err = urn_msg_set_bind_any(&s->outlet[0].set, urn_addr_name((uint16_t)start, 0),
				   urn_addr_name(URN_PORT_END, 0), &name);
	if (err == EADDRINUSE && start > URN_PORT_FIRST)
		err = urn_msg_set_bind_any(&s->outlet[0].set, urn_addr_name(URN_PORT_FIRST, 0),
					   urn_addr_name((uint16_t)start, 0), &name);
	if (err == 0)
		*port = (uint16_t)name;
	return err;
}

/* The socket's lock is held. a: NULL: any port of any address */
static int
urn_sock_bind_locked(struct urn_sock *s, const struct urn_addr *a)
{
	struct urn_addr local = {0};
	int err;

	if (a != NULL)
		local = *a;
	if (s->bound)
		return EINVAL;
	if (!urn_addr_is_any(local.gid) && !urn_sock_own(s, local.gid))
		return EADDRNOTAVAIL;
	err = urn_sock_bind_port(s, &local.port);
	if (err != 0)
		return err;
	s->local = local;
	s->bound = 1;
	return 0;
}

int
urn_sock_bind(struct urn_sock *s, const struct urn_addr *a)
{
	int err;

	(void)urn_msg_mutex_take(&s->lock);
	err = s->bound && a == NULL ? 0 : urn_sock_bind_locked(s, a);
	pthread_mutex_unlock(&s->lock);
	return err;
}

void
urn_sock_unbind(struct urn_sock *s)
{
	uint32_t k;

	(void)urn_msg_mutex_take(&s->lock);
	for (k = 0; s->bound && k < URN_PORT_OUTLETS; k++) {
		struct urn_outlet *l = &s->outlet[k];

		(void)urn_msg_mutex_take(&l->lock);
		if (k == 0)
			(void)urn_msg_set_bind(&l->set, 0);
		else if (l->open)
			urn_msg_set_fini(&l->set);
		l->open &= k == 0;
		pthread_mutex_unlock(&l->lock);
	}
	s->bound = 0;
	pthread_mutex_unlock(&s->lock);
}

/* The adapter's address that datagrams to a family come from: the last one. gid: stays when there
 * is none */
static void
urn_sock_self(struct urn_sock *s, bool v4, uint8_t gid[16])
{
	uint8_t own[16];
	uint32_t i;

	for (i = 0; urn_msg_dev_gid(urn_socks_dev(s->socks), i, own) == 0; i++)
		if (urn_addr_is_v4(own) == v4 && !urn_addr_is_any(own))
			memcpy(gid, own, sizeof(own));
}

int
urn_sock_connect(struct urn_sock *s, const struct urn_addr *a)
{
	int err = 0;

	(void)urn_msg_mutex_take(&s->lock);
	if (a == NULL) {
		s->connected = 0;
	} else {
		if (!s->bound)
			err = urn_sock_bind_locked(s, NULL);
		if (err == 0) {
			s->peer = *a;
			s->connected = 1;
			/* The own node by its wildcard address, like UDP. */
			if (urn_addr_is_any(a->gid))
				urn_sock_self(s, s->family == AF_INET, s->peer.gid);
		}
	}
	atomic_store(&s->error, 0);
	pthread_mutex_unlock(&s->lock);
	return err;
}

void
urn_sock_name(struct urn_sock *s, struct urn_addr *a)
{
	(void)urn_msg_mutex_take(&s->lock);
	memset(a, 0, sizeof(*a));
	if (s->bound)
		*a = s->local;
	/* A connected socket names the address that it sends from. */
	if (s->connected && urn_addr_is_any(a->gid))
		urn_sock_self(s, urn_addr_is_v4(s->peer.gid), a->gid);
	pthread_mutex_unlock(&s->lock);
}
