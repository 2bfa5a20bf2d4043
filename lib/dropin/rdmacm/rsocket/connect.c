/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections: connecting, listening, accepting, and the events of connection management. */
#include "dropin/rdmacm/rsocket/rs.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

bool
urn_rs_has_event(const struct urn_rs *rs)
{
	const struct urn_cma_channel *c = (const struct urn_cma_channel *)rs->channel;

	return c != NULL && __atomic_load_n(&c->queue.tqh_first, __ATOMIC_ACQUIRE) != NULL;
}

bool
urn_rs_has_request(struct urn_rs *rs)
{
	return urn_rs_has_event(rs) || rs->closed;
}

/* Take over a peer's private data. returns: 0, or an errno value */
static int
take_conn(struct urn_rs *rs, const struct rdma_conn_param *p)
{
	struct urn_rs_conn peer;
	int err = urn_rs_conn_read(p->private_data, p->private_data_len, &peer);

	if (err != 0)
		return err;
	urn_rs_tx_peer(&rs->tx, &peer);
	rs->peer_iomaps = peer.iomaps;
	return 0;
}

static void
fail(struct urn_rs *rs, int why)
{
	rs->state = URN_RS_FAILED;
	rs->why = why;
	rs->error = why;
}

static void
up(struct urn_rs *rs)
{
	rs->state = URN_RS_UP;
	rs->readable = rs->writable = true;
}

/* The peer's answer to a REQ. */
static void
on_answer(struct urn_rs *rs, const struct rdma_cm_event *e)
{
	int err;

	switch (e->event) {
	case RDMA_CM_EVENT_ESTABLISHED:
		err = take_conn(rs, &e->param.conn);
		if (err == 0)
			up(rs);
		else
			fail(rs, err);
		break;
	case RDMA_CM_EVENT_REJECTED:
		fail(rs, ECONNREFUSED);
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
		fail(rs, ETIMEDOUT);
		break;
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		break;
	default:
		fail(rs, e->status < 0 ? -e->status : ECONNABORTED);
		break;
	}
}

static void
on_event(struct urn_rs *rs, const struct rdma_cm_event *e)
{
	if (rs->state == URN_RS_CONNECTING) {
		on_answer(rs, e);
		return;
	}
	if (e->event == RDMA_CM_EVENT_ESTABLISHED) {
		if (rs->state == URN_RS_ACCEPTING)
			rs->state = URN_RS_UP;
		return;
	}
	if (e->event == RDMA_CM_EVENT_TIMEWAIT_EXIT)
		return;
	/* Messages that came before the end count. */
	if (rs->cq != NULL && e->event == RDMA_CM_EVENT_DISCONNECTED)
		(void)urn_rs_completions(rs);
	urn_rs_down(rs, e->event == RDMA_CM_EVENT_DEVICE_REMOVAL ? ENETDOWN : ECONNRESET);
}

bool
urn_rs_cm_event(struct urn_rs *rs)
{
	struct rdma_cm_event *e;

	if (!urn_rs_has_event(rs) || rdma_get_cm_event(rs->channel, &e) != 0)
		return false;
	on_event(rs, e);
	rdma_ack_cm_event(e);
	return true;
}

/* ---- connecting */

/* Find the peer; the events are there at once. returns: 0, or an errno value */
static int
resolve(struct urn_rs *rs, const struct sockaddr *addr)
{
	struct sockaddr_storage to;
	struct rdma_cm_event *e;

	memset(&to, 0, sizeof(to));
	memcpy(&to, addr, urn_cma_addr_len(addr));
	if (rdma_resolve_addr(rs->id, NULL, (struct sockaddr *)&to, 2000) != 0)
		return errno == EADDRNOTAVAIL ? ENETUNREACH : errno;
	if (rdma_get_cm_event(rs->channel, &e) == 0)
		rdma_ack_cm_event(e);
	if (rdma_resolve_route(rs->id, 2000) != 0)
		return errno;
	if (rdma_get_cm_event(rs->channel, &e) == 0)
		rdma_ack_cm_event(e);
	return 0;
}

/* returns: 0: the REQ is sent; or an errno value */
static int
ask(struct urn_rs *rs, const struct sockaddr *addr)
{
	struct rdma_conn_param p = {.flow_control = 1, .retry_count = 7, .rnr_retry_count = 7};
	struct urn_rs_conn_wire own;
	int err = resolve(rs, addr);

	if (err == 0)
		err = urn_rs_endpoint(rs, URN_RS_CONNECTING);
	if (err != 0)
		return err;
	urn_rs_own_conn(rs, &own);
	p.private_data = &own;
	p.private_data_len = sizeof(own);
	return rdma_connect(rs->id, &p) != 0 ? errno : 0;
}

/* returns: 0, or an errno value */
static int
connect_stream(struct urn_rs *rs, const struct sockaddr *addr)
{
	int err;

	if (rs->state == URN_RS_CONNECTING)
		return EALREADY;
	if (rs->state == URN_RS_UP || rs->state == URN_RS_ACCEPTING)
		return EISCONN;
	if (rs->state != URN_RS_NEW && rs->state != URN_RS_BOUND)
		return rs->state == URN_RS_LISTENING ? EOPNOTSUPP : ENOTCONN;
	err = ask(rs, addr);
	if (err != 0) {
		fail(rs, err);
		rs->error = 0; /* the call tells it */
		return err;
	}
	if (urn_rs_nonblocking(rs, 0))
		return EINPROGRESS;
	err = urn_rs_wait(rs, urn_rs_is_settled, -1);
	if (err != 0 || rs->state == URN_RS_UP)
		return err;
	rs->error = 0;
	return rs->why;
}

/* returns: 0, or the errno value of an address that the socket can't have */
static int
addr_error(const struct urn_rs *rs, const struct sockaddr *addr, socklen_t len)
{
	if (addr == NULL || len < sizeof(sa_family_t))
		return EINVAL;
	if (urn_cma_addr_len(addr) == 0 || len < urn_cma_addr_len(addr) ||
	    (addr->sa_family != rs->domain && addr->sa_family != AF_INET))
		return EAFNOSUPPORT;
	return 0;
}

int
rconnect(int socket, const struct sockaddr *addr, socklen_t len)
{
	struct urn_rs *rs = urn_rs_get(socket);
	int err;

	if (rs == NULL)
		return -1;
	pthread_mutex_lock(&rs->lock);
	err = addr_error(rs, addr, len);
	if (err == 0)
		err = rs->type == SOCK_DGRAM ? urn_rs_dgram_connect(rs, addr)
					     : connect_stream(rs, addr);
	pthread_mutex_unlock(&rs->lock);
	urn_rs_put(rs);
	return urn_cma_result(err);
}

/* ---- sockets */

/* Give a socket its channel, whose descriptor is the socket's number. returns: 0, or an errno
 * value */
static int
channel_open(struct urn_rs *rs)
{
	rs->channel = rdma_create_event_channel();
	if (rs->channel == NULL)
		return errno;
	rs->fd = rs->channel->fd;
	return fcntl(rs->fd, F_SETFL, O_RDWR | O_NONBLOCK) < 0 ? errno : 0;
}

static int
open_stream(struct urn_rs *rs)
{
	int err = channel_open(rs);

	if (err != 0)
		return err;
	return rdma_create_id(rs->channel, &rs->id, rs, RDMA_PS_TCP) != 0 ? errno : 0;
}

static int
open_dgram(struct urn_rs *rs)
{
	int err = channel_open(rs);

	return err != 0 ? err : urn_rs_dgram_new(rs);
}

int
rsocket(int domain, int type, int protocol)
{
	int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct urn_rs *rs;
	int err, fd;

	if (domain != AF_INET && domain != AF_INET6)
		return urn_cma_result(EAFNOSUPPORT);
	if ((kind != SOCK_STREAM && kind != SOCK_DGRAM) ||
	    (kind == SOCK_STREAM && protocol != 0 && protocol != IPPROTO_TCP) ||
	    (kind == SOCK_DGRAM && protocol != 0 && protocol != IPPROTO_UDP))
		return urn_cma_result(EPROTONOSUPPORT);
	rs = urn_rs_new(domain, kind);
	if (rs == NULL)
		return -1;
	rs->flags |= type & SOCK_NONBLOCK ? O_NONBLOCK : 0;
	err = kind == SOCK_STREAM ? open_stream(rs) : open_dgram(rs);
	fd = rs->fd;
	if (err == 0)
		err = urn_rs_insert(rs);
	if (err == 0)
		return fd;
	urn_rs_put(rs);
	return urn_cma_result(err);
}

static int
bind_stream(struct urn_rs *rs, const struct sockaddr *addr)
{
	struct sockaddr_storage own;
	int reuse = rs->reuse;

	if (rs->state != URN_RS_NEW)
		return EINVAL;
	memset(&own, 0, sizeof(own));
	memcpy(&own, addr, urn_cma_addr_len(addr));
	(void)rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &reuse,
			      sizeof(reuse));
	if (rdma_bind_addr(rs->id, (struct sockaddr *)&own) != 0)
		return errno == ENODEV ? EADDRNOTAVAIL : errno;
	rs->state = URN_RS_BOUND;
	return 0;
}

int
rbind(int socket, const struct sockaddr *addr, socklen_t len)
{
	struct urn_rs *rs = urn_rs_get(socket);
	int err;

	if (rs == NULL)
		return -1;
	pthread_mutex_lock(&rs->lock);
	err = addr_error(rs, addr, len);
	if (err == 0)
		err = rs->type == SOCK_DGRAM ? urn_rs_dgram_bind(rs, addr) : bind_stream(rs, addr);
	pthread_mutex_unlock(&rs->lock);
	urn_rs_put(rs);
	return urn_cma_result(err);
}

/* ---- listening */

int
rlisten(int socket, int backlog)
{
	struct urn_rs *rs = urn_rs_get(socket);
	int err = 0;

	if (rs == NULL)
		return -1;
	pthread_mutex_lock(&rs->lock);
	if (rs->type != SOCK_STREAM)
		err = EOPNOTSUPP;
	else if (rs->state != URN_RS_NEW && rs->state != URN_RS_BOUND)
		err = rs->state == URN_RS_LISTENING ? 0 : EINVAL;
	else if (rdma_listen(rs->id, backlog) != 0)
		err = errno;
	else
		rs->state = URN_RS_LISTENING;
	pthread_mutex_unlock(&rs->lock);
	urn_rs_put(rs);
	return urn_cma_result(err);
}

/* The options that a listener's connections begin with; SO_KEEPALIVE follows in raccept(). */
static void
inherit(struct urn_rs *rs, const struct urn_rs *from)
{
	rs->sndbuf = from->sndbuf;
	rs->rcvbuf = from->rcvbuf;
	rs->sq = from->sq;
	rs->rq = from->rq;
	rs->inl = from->inl;
	rs->iomaps = from->iomaps;
	rs->reuse = from->reuse;
	rs->v6only = from->v6only;
	rs->nodelay = from->nodelay;
	rs->oobinline = from->oobinline;
	rs->linger = from->linger;
	rs->tos = from->tos;
	rs->keep_idle = from->keep_idle;
	rs->flags = from->flags;
}

/* Make the connection of a request. returns: 0, or an errno value */
static int
answer(struct urn_rs *rs, struct rdma_conn_param *p)
{
	struct urn_rs_conn_wire own;
	struct urn_rs_conn peer;
	int err = urn_rs_conn_read(p->private_data, p->private_data_len, &peer);

	if (err == 0)
		err = urn_rs_endpoint(rs, URN_RS_ACCEPTING);
	if (err != 0)
		return err;
	urn_rs_tx_peer(&rs->tx, &peer);
	rs->peer_iomaps = peer.iomaps;
	urn_rs_own_conn(rs, &own);
	p->private_data = &own;
	p->private_data_len = sizeof(own);
	if (rdma_accept(rs->id, p) != 0)
		return errno;
	rs->readable = rs->writable = true;
	return 0;
}

/* True when a listener for IPv6 only has a request over IPv4. */
static bool
unwanted(const struct urn_rs *listener, const struct rdma_cm_id *id)
{
	return listener->v6only && listener->domain == AF_INET6 &&
	       id->route.addr.dst_addr.sa_family == AF_INET;
}

/* Make a socket of a request. *p: with the private data. returns: NULL: the request is refused */
static struct urn_rs *
accept_one(const struct urn_rs *listener, struct rdma_cm_id *id, struct rdma_conn_param *p)
{
	struct urn_rs *rs =
		unwanted(listener, id) ? NULL : urn_rs_new(listener->domain, SOCK_STREAM);
	int err = rs == NULL ? ENOMEM : 0;

	if (err == 0) {
		inherit(rs, listener);
		err = channel_open(rs);
	}
	if (err == 0 && rdma_migrate_id(id, rs->channel) != 0)
		err = errno;
	if (err == 0) {
		rs->id = id;
		err = answer(rs, p);
	}
	if (err == 0)
		err = urn_rs_insert(rs);
	if (err == 0)
		return rs;
	(void)rdma_reject(id, NULL, 0);
	if (rs == NULL || rs->id == NULL)
		rdma_destroy_id(id);
	if (rs != NULL)
		urn_rs_put(rs);
	return NULL;
}

/* Take the next event of a listener. returns: a socket; NULL: the event gave none */
static struct urn_rs *
take_request(struct urn_rs *rs)
{
	uint8_t data[sizeof(struct urn_rs_conn_wire)] = {0};
	struct rdma_conn_param p;
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;
	bool request;

	if (rdma_get_cm_event(rs->channel, &e) != 0)
		return NULL;
	request = e->event == RDMA_CM_EVENT_CONNECT_REQUEST;
	id = e->id;
	p = e->param.conn;
	if (p.private_data != NULL && p.private_data_len >= sizeof(data))
		memcpy(data, p.private_data, sizeof(data));
	p.private_data = data;
	p.private_data_len = sizeof(data);
	rdma_ack_cm_event(e);
	return request ? accept_one(rs, id, &p) : NULL;
}

int
raccept(int socket, struct sockaddr *addr, socklen_t *len)
{
	struct urn_rs *rs = urn_rs_get(socket), *made = NULL;
	bool keepalive = false;
	int err = 0, fd = -1;

	if (rs == NULL)
		return -1;
	pthread_mutex_lock(&rs->lock);
	if (rs->state != URN_RS_LISTENING)
		err = rs->type == SOCK_STREAM ? EINVAL : EOPNOTSUPP;
	while (err == 0 && made == NULL) {
		err = urn_rs_wait(rs, urn_rs_has_request, urn_rs_nonblocking(rs, 0) ? 0 : -1);
		if (err == 0 && rs->closed)
			err = EBADF;
		if (err == 0)
			made = take_request(rs);
	}
	if (made != NULL) {
		fd = made->fd;
		urn_rs_addr_out(made, &made->id->route.addr.dst_addr, addr, len);
		keepalive = rs->keepalive;
	}
	pthread_mutex_unlock(&rs->lock);
	/* Without the listener's lock, because keepalive's lock is taken before a socket's. */
	if (keepalive)
		(void)rsetsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
	urn_rs_put(rs);
	return err != 0 ? urn_cma_result(err) : fd;
}

/* ---- names */

void
urn_rs_addr_out(const struct urn_rs *rs, const struct sockaddr *from, struct sockaddr *to,
		socklen_t *len)
{
	struct sockaddr_in6 mapped = {.sin6_family = AF_INET6};
	const void *what = from;
	struct sockaddr_in v4;
	socklen_t n = urn_cma_addr_len(from);

	if (len == NULL)
		return;
	/* An IPv4 peer of an IPv6 socket, as the kernel shows it; an address not known yet is any.
	 */
	if (rs->domain == AF_INET6 && from->sa_family == AF_INET) {
		memcpy(&v4, from, sizeof(v4));
		mapped.sin6_port = v4.sin_port;
		if (v4.sin_addr.s_addr != 0) {
			mapped.sin6_addr.s6_addr[10] = mapped.sin6_addr.s6_addr[11] = 0xff;
			memcpy(mapped.sin6_addr.s6_addr + 12, &v4.sin_addr, 4);
		}
		what = &mapped;
		n = sizeof(mapped);
	}
	if (to != NULL)
		memcpy(to, what, n < *len ? n : *len);
	*len = n;
}

static int
name(int socket, bool peer, struct sockaddr *addr, socklen_t *len)
{
	struct urn_rs *rs = urn_rs_get(socket);
	struct sockaddr_storage a = {0};
	int err = 0;

	if (rs == NULL)
		return -1;
	if (len == NULL) {
		urn_rs_put(rs);
		return urn_cma_result(EINVAL);
	}
	a.ss_family = (sa_family_t)rs->domain;
	pthread_mutex_lock(&rs->lock);
	if (rs->type == SOCK_DGRAM) {
		if (!urn_rs_dgram_name(rs, peer, &a))
			err = ENOTCONN;
	} else if (peer) {
		if (rs->state != URN_RS_UP && rs->state != URN_RS_ACCEPTING &&
		    rs->state != URN_RS_DOWN)
			err = ENOTCONN;
		a = rs->id->route.addr.dst_storage;
	} else if (rs->id->route.addr.src_addr.sa_family != 0) {
		a = rs->id->route.addr.src_storage;
	}
	if (err == 0)
		urn_rs_addr_out(rs, (struct sockaddr *)&a, addr, len);
	pthread_mutex_unlock(&rs->lock);
	urn_rs_put(rs);
	return urn_cma_result(err);
}

int
rgetpeername(int socket, struct sockaddr *addr, socklen_t *len)
{
	return name(socket, true, addr, len);
}

int
rgetsockname(int socket, struct sockaddr *addr, socklen_t *len)
{
	return name(socket, false, addr, len);
}
