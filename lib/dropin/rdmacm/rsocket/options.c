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
set_tos(struct urn_rs *rs, int n)
{
	uint8_t tos = (uint8_t)n;

	rs->tos = tos;
	if (rs->id != NULL)
		(void)rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos,
				      sizeof(tos));
	return 0;
}

static int
set_ip(struct urn_rs *rs, int opt, const void *val, socklen_t len)
{
	int n;

	if (!number(val, len, &n))
		return EINVAL;
	return opt == IP_TOS ? set_tos(rs, n) : ENOPROTOOPT;
}

static int
set_ipv6(struct urn_rs *rs, int opt, const void *val, socklen_t len)
{
	int n;

	if (!number(val, len, &n))
		return EINVAL;
	if (opt == IPV6_TCLASS)
		return set_tos(rs, n);
	if (opt != IPV6_V6ONLY)
		return ENOPROTOOPT;
	rs->v6only = n != 0;
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

/* ---- asking */

/* Each of these gives the number of one level's option; NONE: there is no such option. */
enum { NONE = -1 };

static int
get_socket(struct urn_rs *rs, int opt)
{
	int err;

	switch (opt) {
	case SO_ERROR:
		urn_rs_step(rs);
		err = rs->error;
		rs->error = 0;
		return err;
	case SO_TYPE:
		return rs->type;
	case SO_DOMAIN:
		return rs->domain;
	case SO_PROTOCOL:
		return rs->type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP;
	case SO_ACCEPTCONN:
		return rs->state == URN_RS_LISTENING;
	case SO_REUSEADDR:
		return rs->reuse;
	case SO_KEEPALIVE:
		return rs->keepalive;
	case SO_OOBINLINE:
		return rs->oobinline;
	case SO_RCVBUF:
		return (int)rs->rcvbuf;
	case SO_SNDBUF:
		return (int)rs->sndbuf;
	case SO_BROADCAST:
	case SO_REUSEPORT:
		return 0;
	default:
		return NONE;
	}
}

static int
get_tcp(struct urn_rs *rs, int opt)
{
	switch (opt) {
	case TCP_NODELAY:
		return rs->nodelay;
	case TCP_KEEPIDLE:
		return rs->keep_idle;
	case TCP_KEEPCNT:
	case TCP_KEEPINTVL:
		return 1;
	case TCP_MAXSEG:
		return rs->id->route.num_paths != 0 ? 1 << (7 + rs->id->route.path_rec->mtu) : 1024;
	case TCP_USER_TIMEOUT:
	case TCP_QUICKACK:
	case TCP_CORK:
		return 0;
	default:
		return NONE;
	}
}

static int
get_ip(struct urn_rs *rs, int opt)
{
	return opt == IP_TOS ? rs->tos : NONE;
}

static int
get_ipv6(struct urn_rs *rs, int opt)
{
	if (opt == IPV6_V6ONLY)
		return rs->v6only;
	return opt == IPV6_TCLASS ? rs->tos : NONE;
}

static int
get_rdma(struct urn_rs *rs, int opt)
{
	switch (opt) {
	case RDMA_SQSIZE:
		return (int)rs->sq;
	case RDMA_RQSIZE:
		return (int)rs->rq;
	case RDMA_INLINE:
		return (int)rs->inl;
	case RDMA_IOMAPSIZE:
		return (int)rs->iomaps;
	default:
		return NONE;
	}
}

/* ---- calls */

/* The options of a level. */
struct level {
	int level;
	bool stream; /* true when a socket of datagrams has none of them */
	int (*set)(struct urn_rs *rs, int opt, const void *val, socklen_t len);
	int (*get)(struct urn_rs *rs, int opt);
};

/* returns: NULL: the socket has no such level */
static const struct level *
level_of(const struct urn_rs *rs, int level)
{
	static const struct level levels[] = {
		{SOL_SOCKET, false, set_socket, get_socket},
		{IPPROTO_TCP, true, set_tcp, get_tcp},
		{IPPROTO_IP, false, set_ip, get_ip},
		{IPPROTO_IPV6, false, set_ipv6, get_ipv6},
		{SOL_RDMA, false, set_rdma, get_rdma},
	};
	size_t i;

	for (i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (levels[i].level == level && (rs->type == SOCK_STREAM || !levels[i].stream))
			return &levels[i];
	return NULL;
}

int
rsetsockopt(int socket, int level, int name, const void *val, socklen_t len)
{
	struct urn_rs *rs = urn_rs_get(socket);
	const struct level *of;
	int err;

	if (rs == NULL)
		return -1;
	if (level == SOL_SOCKET && name == SO_KEEPALIVE) {
		err = set_keepalive(rs, val, len);
	} else {
		pthread_mutex_lock(&rs->lock);
		of = level_of(rs, level);
		err = of != NULL ? of->set(rs, name, val, len) : ENOPROTOOPT;
		pthread_mutex_unlock(&rs->lock);
	}
	if (err == 0 && level == IPPROTO_TCP && name == TCP_KEEPIDLE && rs->kept)
		urn_rs_keepalive_changed(rs);
	urn_rs_put(rs);
	return urn_cma_result(err);
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
	const struct level *of = level_of(rs, level);
	struct tcp_info info;
	int n;

	if (level == SOL_SOCKET && opt == SO_LINGER)
		return give(&rs->linger, sizeof(rs->linger), val, len);
	if (level == IPPROTO_TCP && of != NULL && opt == TCP_CONGESTION)
		return give("rdma", sizeof("rdma"), val, len);
	if (level == IPPROTO_TCP && of != NULL && opt == TCP_INFO) {
		tcp_info(rs, &info);
		return give(&info, sizeof(info), val, len);
	}
	if (level == SOL_RDMA && opt == RDMA_ROUTE)
		return get_route(rs, val, len);
	n = of != NULL ? of->get(rs, opt) : NONE;
	return n == NONE ? ENOPROTOOPT : give(&n, sizeof(n), val, len);
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
