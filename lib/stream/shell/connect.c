/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections are asked for, and taken. */
#include "stream/shell/shell.h"

#include "attach/fail.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
	BACKLOG = 128,
	ASK_TIMEOUT = 18, /* code: a second, then a request is repeated */
	ASK_REPEATS = 15, /* largest value of a REQ (IBTA 12.6.5) */
	PACKET_TIMEOUT = 14,
	RETRIES = 7,
};

/* ---- listeners */

/* returns: 0 or an errno value */
static int
start_listening(struct urn_stream_listener *l, uint16_t port, const struct urn_sh_share *share)
{
	struct urn_stream_node *n = l->node;
	int err;

	l->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (l->wake < 0)
		return urn_fail(errno, "no descriptor for a listener");
	/* No event of the listener is taken before it is in the list. */
	pthread_mutex_lock(&n->lock);
	err = urn_cm_end_listen(n->cm, URN_SH_SERVICE | port, share ? share->key : 0,
				(l->backlog & URN_CM_BACKLOG_BITS) | (share ? URN_CM_SHARED : 0) |
					(share && share->heir ? URN_CM_HEIR : 0),
				&l->id);
	if (err)
		(void)close(l->wake);
	else
		TAILQ_INSERT_TAIL(&n->listeners, l, entry);
	pthread_mutex_unlock(&n->lock);
	return err;
}

int
urn_sh_listen(struct urn_stream_listener **out, struct urn_stream_node *n, uint16_t port,
	      uint32_t backlog, const struct urn_stream_options *o,
	      const struct urn_sh_share *share)
{
	struct urn_stream_options all;
	struct urn_stream_listener *l;
	int err = urn_sh_options(&all, o);

	*out = NULL;
	if (!err && port == 0)
		err = urn_fail(EINVAL, "0 is no port to listen at");
	if (err)
		return err;
	l = calloc(1, sizeof(*l));
	if (!l)
		return urn_fail(ENOMEM, "no memory for a listener");
	l->node = n;
	l->o = all;
	l->backlog = backlog ? backlog : BACKLOG;
	STAILQ_INIT(&l->requests);
	err = start_listening(l, port, share);
	if (err) {
		free(l);
		errno = err;
		return err;
	}
	*out = l;
	return 0;
}

int
urn_stream_listen(struct urn_stream_listener **out, struct urn_stream_node *n, uint16_t port,
		  uint32_t backlog, const struct urn_stream_options *o)
{
	return urn_sh_listen(out, n, port, backlog, o, NULL);
}

/* The oldest request; NULL: none. The node's lock is held. */
static struct urn_sh_request *
pop(struct urn_stream_listener *l)
{
	struct urn_sh_request *r = STAILQ_FIRST(&l->requests);

	if (!r)
		return NULL;
	STAILQ_REMOVE_HEAD(&l->requests, entry);
	if (--l->waiting == 0 && !l->node->dead)
		urn_sh_lower(l->wake);
	return r;
}

int
urn_stream_listener_close(struct urn_stream_listener *l)
{
	struct urn_sh_request *r;

	if (!l)
		return 0;
	pthread_mutex_lock(&l->node->lock);
	urn_sh_hub_look_locked(l->node);
	TAILQ_REMOVE(&l->node->listeners, l, entry);
	while ((r = pop(l)) != NULL) {
		urn_sh_refuse(l->node, r->ev.id, "the listener was closed");
		free(r);
	}
	(void)urn_cm_end_destroy(l->node->cm, l->id);
	pthread_mutex_unlock(&l->node->lock);
	(void)close(l->wake);
	free(l);
	return 0;
}

/* ---- taking */

/* Send the reply. The stream is in the list before any event of it can come. returns: 0 or an
 * errno value */
static int
reply(struct urn_stream *s, uint32_t id)
{
	struct urn_stream_node *n = s->node;
	struct urn_abi_cm_accept a = {.qpn = s->qp->qp_num,
				      .psn = s->psn,
				      .responder_resources = n->rd_atomic,
				      .initiator_depth = n->rd_atomic,
				      .rnr_retry = RETRIES,
				      .data_len = URN_SH_GREETING};
	int err;

	urn_sh_greet(s, a.data);
	s->phase = URN_SH_ANSWERED;
	pthread_mutex_lock(&n->lock);
	s->id = id;
	err = n->dead ? EIO : urn_cm_end_accept(n->cm, id, &a);
	if (!err)
		TAILQ_INSERT_TAIL(&n->streams, s, entry);
	pthread_mutex_unlock(&n->lock);
	return err;
}

int
urn_sh_take(struct urn_stream **out, struct urn_stream_node *n, const struct urn_stream_options *o,
	    const struct urn_abi_cm_event *ev)
{
	struct urn_stream_options all;
	struct urn_st_hello peer;
	struct urn_stream *s = NULL;
	uint16_t line;
	char why[URN_SH_WHY] = "the listening end has no room";
	int err = urn_sh_greeted(ev->data, ev->data_len, &peer, &line, why), index;

	if (!err)
		err = urn_sh_options(&all, o);
	if (!err)
		err = urn_sh_make(&s, n, &all);
	if (err) {
		urn_sh_refuse(n, ev->id, why);
		return err;
	}
	index = urn_sh_find_gid(n, ev->own_gid, true);
	if (index < 0)
		index = urn_sh_find_gid(n, ev->gid, false);
	s->sgid_index = (uint8_t)(index < 0 ? 0 : index);
	err = urn_sh_begin(s, ev, &peer, line, why);
	if (!err)
		err = reply(s, ev->id);
	if (!err) {
		*out = s;
		return 0;
	}
	s->id = 0;
	urn_sh_refuse(n, ev->id, why);
	urn_sh_free(s);
	/* A peer that took its request back is no error of this end; neither is one whose request
	 * goes to an heir. */
	return err == ENOTCONN ? EPROTO : err;
}

int
urn_sh_next(struct urn_sh_request **out, struct urn_stream_listener *l)
{
	bool dead;

	pthread_mutex_lock(&l->node->lock);
	/* A peer may have taken back a request that waits. */
	urn_sh_hub_look_locked(l->node);
	*out = pop(l);
	dead = l->node->dead;
	pthread_mutex_unlock(&l->node->lock);
	if (*out)
		return 0;
	return dead ? urn_fail(EIO, "the dataplane is gone")
		    : urn_fail(EAGAIN, "no connection waits");
}

int
urn_stream_accept(struct urn_stream **out, struct urn_stream_listener *l, uint32_t flags)
{
	struct urn_sh_request *r;
	int err;

	*out = NULL;
	if (flags & ~(uint32_t)URN_STREAM_DONTWAIT)
		return urn_fail(EINVAL, "no such flag of urn_stream_accept()");
	for (;;) {
		struct pollfd fds[] = {{.fd = l->wake, .events = POLLIN},
				       {.fd = urn_cm_end_fd(l->node->cm), .events = POLLIN}};

		err = urn_sh_next(&r, l);
		if (err == EAGAIN && !(flags & URN_STREAM_DONTWAIT)) {
			(void)poll(fds, 2, -1);
			continue;
		}
		if (err)
			return err;
		err = urn_sh_take(out, l->node, &l->o, &r->ev);
		free(r);
		if (err && err != EPROTO)
			errno = err;
		if (err != EPROTO)
			return err;
	}
}

/* ---- asking */

/* The address of a peer. returns: 0, or an errno value */
static int
take_address(struct urn_abi_cm_connect *p, const struct sockaddr *to, socklen_t len)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	uint16_t port;

	if (len >= sizeof(v4) && to->sa_family == AF_INET) {
		memcpy(&v4, to, sizeof(v4));
		memset(p->dgid + 10, 0xff, 2);
		memcpy(p->dgid + 12, &v4.sin_addr, 4);
		port = ntohs(v4.sin_port);
	} else if (len >= sizeof(v6) && to->sa_family == AF_INET6) {
		memcpy(&v6, to, sizeof(v6));
		memcpy(p->dgid, &v6.sin6_addr, 16);
		port = ntohs(v6.sin6_port);
	} else {
		return urn_fail(EAFNOSUPPORT, "not an IPv4 or IPv6 address");
	}
	if (port == 0)
		return urn_fail(EINVAL, "0 is no port to connect to");
	p->service_id = URN_SH_SERVICE | port;
	return 0;
}

/* Send the request. The stream is in the list before any event of it can come. returns: 0 or an
 * errno value */
static int
ask(struct urn_stream *s, struct urn_abi_cm_connect *p)
{
	struct urn_stream_node *n = s->node;
	int err;

	p->qpn = s->qp->qp_num;
	p->psn = s->psn;
	p->sgid_index = s->sgid_index;
	p->responder_resources = p->initiator_depth = n->rd_atomic;
	p->retry_count = p->rnr_retry = RETRIES;
	p->mtu = (uint8_t)n->port.active_mtu;
	p->timeout = ASK_TIMEOUT;
	p->max_retries = ASK_REPEATS;
	p->ack_timeout = PACKET_TIMEOUT;
	p->data_len = URN_SH_GREETING;
	urn_sh_greet(s, p->data);
	pthread_mutex_lock(&n->lock);
	err = n->dead ? EIO : urn_cm_end_connect(n->cm, p, &s->id);
	if (!err)
		TAILQ_INSERT_TAIL(&n->streams, s, entry);
	pthread_mutex_unlock(&n->lock);
	return err;
}

/* Wait until the connection is up. returns: 0, or the errno value with its text */
static int
wait_up(struct urn_stream *s)
{
	int err;

	pthread_mutex_lock(&s->lock);
	(void)urn_sh_progress(s);
	while (s->phase == URN_SH_ASKED)
		urn_sh_wait(s, -1);
	err = s->phase == URN_SH_BROKEN ? urn_fail(s->err, "%s", s->why) : 0;
	pthread_mutex_unlock(&s->lock);
	return err;
}

int
urn_stream_connect(struct urn_stream **out, struct urn_stream_node *n, const struct sockaddr *to,
		   socklen_t len, const struct urn_stream_options *o, uint32_t flags)
{
	struct urn_abi_cm_connect p = {0};
	struct urn_stream_options all;
	struct urn_stream *s;
	int err = urn_sh_options(&all, o), index;

	*out = NULL;
	if (!err && flags & ~(uint32_t)URN_STREAM_DONTWAIT)
		err = urn_fail(EINVAL, "no such flag of urn_stream_connect()");
	if (!err)
		err = take_address(&p, to, len);
	if (err)
		return err;
	index = urn_sh_find_gid(n, p.dgid, false);
	if (index < 0)
		return urn_fail(EADDRNOTAVAIL, "the device has no address of the peer's family");
	err = urn_sh_make(&s, n, &all);
	if (err)
		return err;
	s->sgid_index = (uint8_t)index;
	err = ask(s, &p);
	if (err) {
		urn_sh_free(s);
		errno = err;
		return err;
	}
	*out = s;
	if (flags & URN_STREAM_DONTWAIT || (err = wait_up(s)) == 0)
		return 0;
	*out = NULL;
	(void)urn_stream_close(s);
	errno = err; /* closing may have changed it */
	return err;
}
