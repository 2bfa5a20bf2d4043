/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of sockets. Options of TCP that mean nothing here are taken. */
#include "dropin/rdmacm/rsocket/rs.h"

#include <fcntl.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <string.h>

/* The whole number that an option is given as. returns: false: it has another size */
static bool
number(const void *val, socklen_t len, int *n)
{
	if (val == NULL || len < sizeof(*n))
		return false;
	memcpy(n, val, sizeof(*n));
	return true;
}

/* True when queues and buffers can still be chosen. */
static bool
unsized(const struct urn_rs *rs)
{
	return rs->mem == NULL && (rs->type == SOCK_STREAM || rs->state == URN_RS_NEW);
}

/* The kernel keeps twice of what is asked for, and so does rdma-core. */
static uint32_t
twice(int n)
{
	if (n < URN_RS_BUF_LEAST / 2)
		return URN_RS_BUF_LEAST;
	return n > URN_RS_BUF_MOST / 2 ? URN_RS_BUF_MOST : (uint32_t)n * 2;
}

/* Each of these sets one level's options. returns: 0, or an errno value */
static int
set_socket(struct urn_rs *rs, int opt, const void *val, socklen_t len)
{
	int n;

	if (opt == SO_LINGER) {
		if (val == NULL || len < sizeof(rs->linger))
			return EINVAL;
		memcpy(&rs->linger, val, sizeof(rs->linger));
		return 0;
	}
	if (opt == SO_RCVTIMEO || opt == SO_SNDTIMEO)
		return EOPNOTSUPP;
	if (!number(val, len, &n))
		return EINVAL;
	switch (opt) {
	case SO_REUSEADDR:
		rs->reuse = n != 0;
		return 0;
	case SO_RCVBUF:
		rs->rcvbuf = unsized(rs) ? twice(n) : rs->rcvbuf;
		return 0;
	case SO_SNDBUF:
		rs->sndbuf = unsized(rs) ? twice(n) : rs->sndbuf;
		return 0;
	case SO_OOBINLINE:
		rs->oobinline = n != 0;
		return 0;
	case SO_BROADCAST:
	case SO_REUSEPORT:
		return 0;
	default:
		return ENOPROTOOPT;
	}
}

static int
set_tcp(struct urn_rs *rs, int opt, const void *val, socklen_t len)
{
	int n;

	if (opt == TCP_CONGESTION)
		return 0;
	if (!number(val, len, &n))
		return EINVAL;
	switch (opt) {
	case TCP_NODELAY:
		rs->nodelay = n != 0;
		return 0;
	case TCP_KEEPIDLE:
		if (n <= 0 || n > SHRT_MAX)
			return EINVAL;
		rs->keep_idle = n;
		return 0;
	case TCP_KEEPCNT:
	case TCP_KEEPINTVL:
	case TCP_MAXSEG:
	case TCP_USER_TIMEOUT:
	case TCP_QUICKACK:
	case TCP_CORK:
		return 0;
	default:
		return ENOPROTOOPT;
	}
}

static int
set_ip(struct urn_rs *rs, int level, int opt, const void *val, socklen_t len)
{
	uint8_t tos;
	int n;

	if (!number(val, len, &n))
		return EINVAL;
	if (level == IPPROTO_IPV6 && opt == IPV6_V6ONLY) {
		rs->v6only = n != 0;
		return 0;
	}
	if (!(level == IPPROTO_IP && opt == IP_TOS) &&
	    !(level == IPPROTO_IPV6 && opt == IPV6_TCLASS))
		return ENOPROTOOPT;
	rs->tos = n & 0xff;
	tos = (uint8_t)rs->tos;
	if (rs->id != NULL)
		(void)rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos,
				      sizeof(tos));
	return 0;
}

static int
set_rdma(struct urn_rs *rs, int opt, const void *val, socklen_t len)
{
	int n;

	/* A path is the one that the adapter has. */
	if (opt == RDMA_ROUTE)
		return val == NULL ? EINVAL : 0;
	if (!number(val, len, &n) || n < 0 || rs->state >= URN_RS_CONNECTING)
		return EINVAL;
	switch (opt) {
	case RDMA_SQSIZE:
		rs->sq = (uint32_t)n;
		break;
	case RDMA_RQSIZE:
		rs->rq = (uint32_t)n;
		break;
	case RDMA_INLINE:
		rs->inl = (uint32_t)n;
		break;
	case RDMA_IOMAPSIZE:
		rs->iomaps = urn_rs_iomaps_round((uint32_t)n);
		break;
	default:
		return ENOPROTOOPT;
	}
	urn_rs_sizes(rs);
	return 0;
}

static int
set_option(struct urn_rs *rs, int level, int opt, const void *val, socklen_t len)
{
	switch (level) {
	case SOL_SOCKET:
		return set_socket(rs, opt, val, len);
	case IPPROTO_TCP:
		return rs->type == SOCK_STREAM ? set_tcp(rs, opt, val, len) : ENOPROTOOPT;
	case IPPROTO_IP:
	case IPPROTO_IPV6:
		return set_ip(rs, level, opt, val, len);
	case SOL_RDMA:
		return set_rdma(rs, opt, val, len);
	default:
		return ENOPROTOOPT;
	}
}

/* SO_KEEPALIVE; without the socket's lock. */
static int
set_keepalive(struct urn_rs *rs, const void *val, socklen_t len)
{
	int n, err;

	if (!number(val, len, &n))
		return EINVAL;
	err = rs->type == SOCK_STREAM ? urn_rs_keepalive_set(rs, n != 0) : 0;
	if (err == 0)
		rs->keepalive = n != 0;
	return err;
}

int
rsetsockopt(int socket, int level, int name, const void *val, socklen_t len)
{
	struct urn_rs *rs = urn_rs_get(socket);
	int err;

	if (rs == NULL)
		return -1;
	if (level == SOL_SOCKET && name == SO_KEEPALIVE) {
		err = set_keepalive(rs, val, len);
	} else {
		pthread_mutex_lock(&rs->lock);
		err = set_option(rs, level, name, val, len);
		pthread_mutex_unlock(&rs->lock);
	}
	if (err == 0 && level == IPPROTO_TCP && name == TCP_KEEPIDLE && rs->kept)
		urn_rs_keepalive_changed(rs);
	urn_rs_put(rs);
	return urn_cma_result(err);
}

/* ---- asking */

/* Each of these gives one level's numbers. returns: 0, or an errno value */
static int
get_socket(struct urn_rs *rs, int opt, int *n)
{
	switch (opt) {
	case SO_ERROR:
		urn_rs_step(rs);
		*n = rs->error;
		rs->error = 0;
		return 0;
	case SO_TYPE:
		*n = rs->type;
		return 0;
	case SO_DOMAIN:
		*n = rs->domain;
		return 0;
	case SO_PROTOCOL:
		*n = rs->type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP;
		return 0;
	case SO_ACCEPTCONN:
		*n = rs->state == URN_RS_LISTENING;
		return 0;
	case SO_REUSEADDR:
		*n = rs->reuse;
		return 0;
	case SO_KEEPALIVE:
		*n = rs->keepalive;
		return 0;
	case SO_OOBINLINE:
		*n = rs->oobinline;
		return 0;
	case SO_RCVBUF:
		*n = (int)rs->rcvbuf;
		return 0;
	case SO_SNDBUF:
		*n = (int)rs->sndbuf;
		return 0;
	case SO_BROADCAST:
	case SO_REUSEPORT:
		*n = 0;
		return 0;
	default:
		return ENOPROTOOPT;
	}
}

static int
get_tcp(const struct urn_rs *rs, int opt, int *n)
{
	switch (opt) {
	case TCP_NODELAY:
		*n = rs->nodelay;
		return 0;
	case TCP_KEEPIDLE:
		*n = rs->keep_idle;
		return 0;
	case TCP_KEEPCNT:
	case TCP_KEEPINTVL:
		*n = 1;
		return 0;
	case TCP_MAXSEG:
		*n = rs->id->route.num_paths != 0 ? 1 << (7 + rs->id->route.path_rec->mtu) : 1024;
		return 0;
	case TCP_USER_TIMEOUT:
	case TCP_QUICKACK:
	case TCP_CORK:
		*n = 0;
		return 0;
	default:
		return ENOPROTOOPT;
	}
}

static int
get_rdma(const struct urn_rs *rs, int opt, int *n)
{
	switch (opt) {
	case RDMA_SQSIZE:
		*n = (int)rs->sq;
		return 0;
	case RDMA_RQSIZE:
		*n = (int)rs->rq;
		return 0;
	case RDMA_INLINE:
		*n = (int)rs->inl;
		return 0;
	case RDMA_IOMAPSIZE:
		*n = (int)rs->iomaps;
		return 0;
	default:
		return ENOPROTOOPT;
	}
}

static int
get_number(struct urn_rs *rs, int level, int opt, int *n)
{
	switch (level) {
	case SOL_SOCKET:
		return get_socket(rs, opt, n);
	case IPPROTO_TCP:
		return rs->type == SOCK_STREAM ? get_tcp(rs, opt, n) : ENOPROTOOPT;
	case IPPROTO_IP:
	case IPPROTO_IPV6:
		if (level == IPPROTO_IPV6 && opt == IPV6_V6ONLY)
			*n = rs->v6only;
		else if (opt == IP_TOS || (level == IPPROTO_IPV6 && opt == IPV6_TCLASS))
			*n = rs->tos;
		else
			return ENOPROTOOPT;
		return 0;
	case SOL_RDMA:
		return get_rdma(rs, opt, n);
	default:
		return ENOPROTOOPT;
	}
}

/* The facts of a connection that programs print; all else is 0. */
static void
tcp_info(const struct urn_rs *rs, struct tcp_info *i)
{
	memset(i, 0, sizeof(*i));
	i->tcpi_state = rs->state == URN_RS_UP ? TCP_ESTABLISHED : TCP_CLOSE;
	i->tcpi_snd_cwnd = rs->sq;
	i->tcpi_snd_mss = i->tcpi_rcv_mss = 1024;
}

/* The path, as rdma_getaddrinfo() gives it: one. *len: room. returns: 0, or an errno value */
static int
get_route(const struct urn_rs *rs, struct ibv_path_data *out, socklen_t *len)
{
	const struct ibv_sa_path_rec *p = rs->id != NULL ? rs->id->route.path_rec : NULL;

	if (*len < sizeof(*out))
		return EINVAL;
	*len = 0;
	if (p == NULL)
		return 0;
	memset(out, 0, sizeof(*out));
	out->path.dgid = p->dgid;
	out->path.sgid = p->sgid;
	out->path.flowlabel_hoplimit = htobe32(p->hop_limit);
	out->path.tclass = p->traffic_class;
	out->path.reversible_numpath = 1 << 7 | 1;
	out->path.pkey = p->pkey;
	out->path.mtu = p->mtu | 2 << 6; /* exactly */
	out->path.packetlifetime = p->packet_life_time | 2 << 6;
	*len = sizeof(*out);
	return 0;
}

/* Give a value, cut off where there is less room. */
static int
give(const void *value, socklen_t size, void *val, socklen_t *len)
{
	if (*len > size)
		*len = size;
	memcpy(val, value, *len);
	return 0;
}

static int
get_option(struct urn_rs *rs, int level, int opt, void *val, socklen_t *len)
{
	struct tcp_info info;
	int n, err;

	if (level == SOL_SOCKET && opt == SO_LINGER)
		return give(&rs->linger, sizeof(rs->linger), val, len);
	if (level == IPPROTO_TCP && opt == TCP_CONGESTION)
		return give("rdma", sizeof("rdma"), val, len);
	if (level == IPPROTO_TCP && opt == TCP_INFO && rs->type == SOCK_STREAM) {
		tcp_info(rs, &info);
		return give(&info, sizeof(info), val, len);
	}
	if (level == SOL_RDMA && opt == RDMA_ROUTE)
		return get_route(rs, val, len);
	err = get_number(rs, level, opt, &n);
	return err != 0 ? err : give(&n, sizeof(n), val, len);
}

int
rgetsockopt(int socket, int level, int name, void *val, socklen_t *len)
{
	struct urn_rs *rs = urn_rs_get(socket);
	int err = EINVAL;

	if (rs == NULL)
		return -1;
	if (val != NULL && len != NULL) {
		pthread_mutex_lock(&rs->lock);
		err = get_option(rs, level, name, val, len);
		pthread_mutex_unlock(&rs->lock);
	}
	urn_rs_put(rs);
	return urn_cma_result(err);
}

int
rfcntl(int socket, int cmd, ...)
{
	struct urn_rs *rs = urn_rs_get(socket);
	int rc = 0, arg;
	va_list args;

	if (rs == NULL)
		return -1;
	va_start(args, cmd);
	arg = cmd == F_SETFL || cmd == F_SETFD ? va_arg(args, int) : 0;
	va_end(args);
	pthread_mutex_lock(&rs->lock);
	switch (cmd) {
	case F_GETFL:
		rc = rs->flags;
		break;
	case F_SETFL:
		rs->flags = O_RDWR | (arg & O_NONBLOCK);
		break;
	case F_GETFD:
		rc = rs->fd_flags;
		break;
	case F_SETFD:
		rs->fd_flags = arg;
		break;
	default:
		rc = urn_cma_result(EINVAL);
		break;
	}
	pthread_mutex_unlock(&rs->lock);
	urn_rs_put(rs);
	return rc;
}
