/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending datagrams: an outlet for each that is under way. */
#include "msg/sock.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

/*
 * Microseconds that the dataplane tries for at a full queue: a sender that waits, unless
 * SO_SNDTIMEO says less or more, and one that does not wait, which keeps an outlet busy meanwhile.
 * The longest wait for answers when a socket is closed.
 */
enum {
	URN_SOCK_TRY_US = 1000000,
	URN_SOCK_TRY_ASYNC_US = 10000,
	URN_SOCK_RETRY_US = 100,
	URN_SOCK_TRIES_MAX = 65534, /* one less than "without end" */
	URN_SOCK_FLUSH_US = 100000
};

/* The errno value of an answer. returns: 0: DONE, or nothing was sent yet */
static int
urn_sock_errno(uint8_t code)
{
	switch (code & ~URN_MSG_MAY_BE_THERE) {
	case URN_MSG_IDLE:
	case URN_MSG_DONE:
		return 0;
	case URN_MSG_QUEUE_FULL:
	case URN_MSG_BUSY:
		return ENOBUFS;
	case URN_MSG_NO_QUEUE:
		return ECONNREFUSED;
	case URN_MSG_TOO_LONG:
		return EMSGSIZE;
	case URN_MSG_NOT_PERMITTED:
		return EACCES;
	case URN_MSG_BAD_DOORBELL:
		return EINVAL;
	case URN_MSG_PENDING:
		return EAGAIN;
	default:
		return EHOSTUNREACH;
	}
}

/* Look at the answer to a datagram whose sender did not wait. The outlet's lock is held. returns:
 * true: the outlet is free */
static bool
urn_outlet_settle(struct urn_sock *s, struct urn_outlet *l)
{
	uint32_t flying = atomic_load_explicit(&l->flying, memory_order_relaxed);
	uint8_t code;
	int err;

	if (flying == URN_OUTLET_IDLE)
		return true;
	code = urn_msg_set_status(&l->set);
	if (code == URN_MSG_PENDING)
		return false;
	atomic_store_explicit(&l->flying, URN_OUTLET_IDLE, memory_order_relaxed);
	err = urn_sock_errno(code);
	if (err != 0 && flying == URN_OUTLET_TO_PEER && atomic_load(&s->connected))
		atomic_store(&s->error, (uint32_t)err);
	return true;
}

/* Open outlet k of a bound socket. returns: true when there is one */
static bool
urn_outlet_open(struct urn_sock *s, uint32_t k)
{
	const struct urn_msg_attr attr = {.send_size = URN_SOCK_DATAGRAM, .named = 1};
	struct urn_outlet *l = &s->outlet[k];

	if (l->open)
		return true;
	if (urn_msg_set_init(&l->set, urn_socks_dev(s->socks), &attr) != 0)
		return false;
	if (urn_msg_set_bind(&l->set, urn_addr_name(s->local.port, k)) != 0) {
		urn_msg_set_fini(&l->set);
		return false;
	}
	l->open = 1;
	return true;
}

/*
 * Take an outlet that is free, with its lock. wait: for outlet 0, if need be, so that datagrams of
 * a sender that waits stay in order. returns: NULL: all are busy
 */
static struct urn_outlet *
urn_sock_outlet_take(struct urn_sock *s, bool wait)
{
	uint32_t k;

	if (wait) {
		(void)urn_msg_mutex_take(&s->outlet[0].lock);
		(void)urn_msg_set_wait(&s->outlet[0].set, -1);
		(void)urn_outlet_settle(s, &s->outlet[0]);
		return &s->outlet[0];
	}
	for (k = 0; k < URN_PORT_OUTLETS; k++) {
		struct urn_outlet *l = &s->outlet[k];

		if (!urn_msg_mutex_try(&l->lock))
			continue;
		if (urn_outlet_open(s, k) && urn_outlet_settle(s, l))
			return l;
		pthread_mutex_unlock(&l->lock);
	}
	return NULL;
}

void
urn_sock_flush(struct urn_sock *s)
{
	uint32_t k;

	for (k = 0; k < URN_PORT_OUTLETS; k++) {
		struct urn_outlet *l = &s->outlet[k];

		if (!l->open || !urn_msg_mutex_try(&l->lock))
			continue;
		if (l->flying)
			(void)urn_msg_set_wait(&l->set, URN_SOCK_FLUSH_US);
		pthread_mutex_unlock(&l->lock);
	}
}

bool
urn_sock_expects(struct urn_sock *s)
{
	bool some = false;
	uint32_t k;

	for (k = 0; k < URN_PORT_OUTLETS && atomic_load(&s->connected); k++) {
		struct urn_outlet *l = &s->outlet[k];

		if (atomic_load_explicit(&l->flying, memory_order_relaxed) != URN_OUTLET_TO_PEER ||
		    !urn_msg_mutex_try(&l->lock))
			continue;
		some |= !urn_outlet_settle(s, l);
		pthread_mutex_unlock(&l->lock);
	}
	return some;
}

bool
urn_sock_writable(struct urn_sock *s)
{
	bool free = false;
	uint32_t k;

	for (k = 0; k < URN_PORT_OUTLETS && !free; k++) {
		if (!urn_msg_mutex_try(&s->outlet[k].lock))
			continue;
		free = !s->outlet[k].open || urn_outlet_settle(s, &s->outlet[k]);
		pthread_mutex_unlock(&s->outlet[k].lock);
	}
	return free;
}

/* Copy a datagram to the send buffer, which has room. */
static void
urn_sock_gather(uint8_t *to, const struct iovec *iov, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (iov[i].iov_len > 0)
			memcpy(to, iov[i].iov_base, iov[i].iov_len);
		to += iov[i].iov_len;
	}
}

/* Ring the doorbell of an outlet for a datagram in its send buffer. */
static int
urn_outlet_ring(struct urn_outlet *l, const struct urn_addr *to, size_t len, uint64_t try_us)
{
	/* Tries are counted in 16 bits: for a long time they are made more rarely, at least each second. */
	uint64_t each_us = try_us / URN_SOCK_TRIES_MAX < URN_SOCK_RETRY_US ? URN_SOCK_RETRY_US
									   : try_us / URN_SOCK_TRIES_MAX + 1;
	uint32_t retry_us = (uint32_t)(each_us < 1000000 ? each_us : 1000000);
	uint64_t tries = try_us / retry_us;
	struct urn_msg_to target = {
		.qid = URN_MSG_NAME(urn_addr_name(to->port, 0)),
		.retry_us = retry_us,
		.retries = (uint16_t)(tries < URN_SOCK_TRIES_MAX ? tries : URN_SOCK_TRIES_MAX),
		.retry_kinds =
			URN_MSG_RETRY_QUEUE_FULL | URN_MSG_RETRY_BUSY | URN_MSG_RETRY_RESTARTED,
	};

	memcpy(target.node, to->gid, sizeof(target.node));
	return urn_msg_set_send(&l->set, &target, urn_msg_set_buffer(&l->set), (uint32_t)len);
}

/* Sum of the parts. returns: 0; EMSGSIZE: more than a datagram has */
static int
urn_sock_length(const struct iovec *iov, size_t n, size_t *len)
{
	size_t i;

	*len = 0;
	for (i = 0; i < n; i++) {
		if (iov[i].iov_len > URN_SOCK_DATAGRAM - *len)
			return EMSGSIZE;
		*len += iov[i].iov_len;
	}
	return 0;
}

/* The target of a datagram. returns: 0, or an errno value */
static int
urn_sock_target(struct urn_sock *s, const struct urn_addr *to, struct urn_addr *out)
{
	int err = 0;

	(void)urn_msg_mutex_take(&s->lock);
	if (to == NULL && !s->connected)
		err = EDESTADDRREQ;
	else
		*out = to != NULL ? *to : s->peer;
	pthread_mutex_unlock(&s->lock);
	if (err == 0 && out->port == 0)
		err = EINVAL;
	return err;
}

/* Send by an outlet that is taken. flying: IDLE: wait for the answer; returns: 0, or an errno value
 */
static int
urn_outlet_send(struct urn_outlet *l, const struct iovec *iov, size_t n, size_t len,
		const struct urn_addr *to, uint64_t try_us, enum urn_outlet_flying flying)
{
	bool wait = flying == URN_OUTLET_IDLE;
	int err;

	urn_sock_gather(urn_msg_set_buffer(&l->set), iov, n);
	err = urn_outlet_ring(l, to, len, try_us);
	if (err == 0 && wait)
		err = urn_sock_errno(urn_msg_set_wait(&l->set, -1));
	else
		atomic_store_explicit(&l->flying, err != 0 ? URN_OUTLET_IDLE : flying,
				      memory_order_relaxed);
	return err;
}

int
urn_sock_send(struct urn_sock *s, const struct iovec *iov, size_t n, const struct urn_addr *to,
	      bool wait)
{
	uint64_t try_us = s->sndtimeo_ns ? s->sndtimeo_ns / 1000 : URN_SOCK_TRY_US;
	enum urn_outlet_flying flying = wait	     ? URN_OUTLET_IDLE
					: to != NULL ? URN_OUTLET_NAMED
						     : URN_OUTLET_TO_PEER;
	struct urn_addr target;
	struct urn_outlet *l;
	size_t len;
	int err = urn_sock_length(iov, n, &len);

	if (err == 0)
		err = urn_sock_target(s, to, &target);
	(void)urn_sock_expects(s);
	if (err == 0)
		err = (int)atomic_exchange(&s->error, 0);
	if (err == 0 && !s->bound)
		err = urn_sock_bind(s, NULL);
	if (err == 0) {
		l = urn_sock_outlet_take(s, wait);
		if (l == NULL)
			return EAGAIN;
		err = urn_outlet_send(l, iov, n, len, &target,
				      wait ? try_us : URN_SOCK_TRY_ASYNC_US, flying);
		pthread_mutex_unlock(&l->lock);
	}
	if (err != 0 && urn_dev_gone(&urn_socks_dev(s->socks)->dev) != URN_DEV_THERE)
		return EIO;
	return err == EBUSY ? EAGAIN : err;
}
