/* SPDX-License-Identifier: BSD-3-Clause */
/* Socket addresses and GIDs: an IPv4 address is the GID ::ffff:a.b.c.d. */
#include "dropin/rdmacm/rdmacm.h"

#include <arpa/inet.h>
#include <string.h>

socklen_t
urn_cma_addr_len(const struct sockaddr *a)
{
	if (a->sa_family == AF_INET)
		return sizeof(struct sockaddr_in);
	return a->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : 0;
}

bool
urn_cma_addr_to_gid(const struct sockaddr *a, union ibv_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	if (a->sa_family == AF_INET) {
		gid->raw[10] = gid->raw[11] = 0xff;
		memcpy(gid->raw + 12, &((const struct sockaddr_in *)a)->sin_addr, 4);
		return true;
	}
	if (a->sa_family != AF_INET6)
		return false;
	memcpy(gid->raw, &((const struct sockaddr_in6 *)a)->sin6_addr, 16);
	return true;
}

void
urn_cma_gid_to_addr(const union ibv_gid *gid, uint16_t port, struct sockaddr_storage *out)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)out;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof(*out));
	if (IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)gid->raw)) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		memcpy(&v4->sin_addr, gid->raw + 12, 4);
	} else {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(port);
		memcpy(&v6->sin6_addr, gid->raw, 16);
	}
}

bool
urn_cma_addr_any(const struct sockaddr *a)
{
	const struct in6_addr *v6 = &((const struct sockaddr_in6 *)a)->sin6_addr;
	in_addr_t v4 = ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr);

	if (a->sa_family == AF_INET)
		return v4 == INADDR_ANY || v4 >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
	return a->sa_family == AF_INET6 &&
	       (IN6_IS_ADDR_UNSPECIFIED(v6) || IN6_IS_ADDR_LOOPBACK(v6));
}

/* The port stands at the same place in both families' addresses. */
_Static_assert(offsetof(struct sockaddr_in, sin_port) == offsetof(struct sockaddr_in6, sin6_port),
	       "port");

uint16_t
urn_cma_addr_port(const struct sockaddr *a)
{
	return urn_cma_addr_len(a) == 0 ? 0 : ntohs(((const struct sockaddr_in *)a)->sin_port);
}

void
urn_cma_addr_set_port(struct sockaddr *a, uint16_t port)
{
	((struct sockaddr_in *)a)->sin_port = htons(port);
}

__be16
rdma_get_src_port(struct rdma_cm_id *id)
{
	return id == NULL ? 0 : htons(urn_cma_addr_port(&id->route.addr.src_addr));
}

__be16
rdma_get_dst_port(struct rdma_cm_id *id)
{
	return id == NULL ? 0 : htons(urn_cma_addr_port(&id->route.addr.dst_addr));
}
