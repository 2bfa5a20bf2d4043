/* SPDX-License-Identifier: BSD-3-Clause */
/* rdma_getaddrinfo(): the C library's, in the form of RDMA-CM. */
#include "dropin/rdmacm/rdmacm.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>

static const struct rdma_addrinfo no_hints = {.ai_qp_type = IBV_QPT_RC,
					      .ai_port_space = RDMA_PS_TCP};

void
rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	struct rdma_addrinfo *after;

	for (; res != NULL; res = after) {
		after = res->ai_next;
		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res->ai_route);
		free(res->ai_connect);
		free(res);
	}
}

/* The protocol makes the C library refuse a port space that the queue pair's type does not go with.
 */
static int
protocol_of(const struct rdma_addrinfo *h)
{
	switch (h->ai_port_space) {
	case RDMA_PS_TCP:
		return IPPROTO_TCP;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		return IPPROTO_UDP;
	default:
		return 0;
	}
}

/* True when the hints ask for datagrams. */
static bool
datagrams(const struct rdma_addrinfo *h)
{
	return h->ai_qp_type == IBV_QPT_UD || (h->ai_qp_type == 0 && protocol_of(h) == IPPROTO_UDP);
}

/* True when an address of the hints is absent, or as long as its family's addresses are. */
static bool
addr_whole(const struct sockaddr *a, socklen_t len)
{
	return a == NULL || len == 0 || (len >= sizeof(sa_family_t) && len >= urn_cma_addr_len(a));
}

static void
hints_convert(const struct rdma_addrinfo *h, struct addrinfo *ai)
{
	memset(ai, 0, sizeof(*ai));
	if (h->ai_flags & RAI_PASSIVE)
		ai->ai_flags |= AI_PASSIVE;
	if (h->ai_flags & RAI_NUMERICHOST)
		ai->ai_flags |= AI_NUMERICHOST;
	/* rdma-core takes the family without RAI_FAMILY as well, but for AF_IB. */
	if ((h->ai_flags & RAI_FAMILY) || h->ai_family != AF_IB)
		ai->ai_family = h->ai_family;
	ai->ai_socktype = datagrams(h) ? SOCK_DGRAM : SOCK_STREAM;
	ai->ai_protocol = protocol_of(h);
}

/* Copy an address. returns: EAI_MEMORY, or 0 */
static int
addr_copy(const struct sockaddr *a, socklen_t len, struct sockaddr **out, socklen_t *out_len)
{
	if (a == NULL || len == 0)
		return 0;
	*out = malloc(len);
	if (*out == NULL)
		return EAI_MEMORY;
	memcpy(*out, a, len);
	*out_len = len;
	return 0;
}

/* Fill in port space and queue pair type, from each other where one is not given. */
static int
kind_set(struct rdma_addrinfo *r, const struct rdma_addrinfo *h)
{
	r->ai_qp_type = h->ai_qp_type;
	r->ai_port_space = h->ai_port_space;
	if (r->ai_port_space == 0)
		r->ai_port_space = r->ai_qp_type == IBV_QPT_UD ? RDMA_PS_UDP : RDMA_PS_TCP;
	if (r->ai_qp_type == 0)
		r->ai_qp_type = datagrams(h) ? IBV_QPT_UD : IBV_QPT_RC;
	return 0;
}

/* The own address of a peer's, where a device has one of that family. */
static int
source_set(struct rdma_addrinfo *r)
{
	struct sockaddr_storage own;
	struct urn_cma_dev *dev;
	union ibv_gid gid;
	uint8_t index;

	if (r->ai_src_addr != NULL || r->ai_dst_addr == NULL || urn_cma_devices_open() != 0 ||
	    !urn_cma_addr_to_gid(r->ai_dst_addr, &gid))
		return 0;
	dev = urn_cma_dev_route(&gid, &index);
	if (dev == NULL)
		return 0;
	urn_cma_gid_to_addr(&dev->gid[index], 0, &own);
	return addr_copy((struct sockaddr *)&own, urn_cma_addr_len((struct sockaddr *)&own),
			 &r->ai_src_addr, &r->ai_src_len);
}

/* One result of the C library's. returns: 0, or EAI_MEMORY */
static int
convert(const struct addrinfo *ai, const struct rdma_addrinfo *h, struct rdma_addrinfo *r)
{
	int err;

	r->ai_flags = h->ai_flags;
	r->ai_family = ai->ai_family;
	(void)kind_set(r, h);
	if (h->ai_flags & RAI_PASSIVE)
		return addr_copy(ai->ai_addr, ai->ai_addrlen, &r->ai_src_addr, &r->ai_src_len);
	err = addr_copy(ai->ai_addr, ai->ai_addrlen, &r->ai_dst_addr, &r->ai_dst_len);
	if (err == 0)
		err = addr_copy(h->ai_src_addr, h->ai_src_len, &r->ai_src_addr, &r->ai_src_len);
	return err != 0 ? err : source_set(r);
}

/* Results from the addresses in the hints, without a name. */
static int
from_hints(const struct rdma_addrinfo *h, struct rdma_addrinfo *r)
{
	int err;

	if (h->ai_src_addr == NULL && h->ai_dst_addr == NULL)
		return EAI_NONAME;
	r->ai_flags = h->ai_flags;
	(void)kind_set(r, h);
	r->ai_family =
		h->ai_dst_addr != NULL ? h->ai_dst_addr->sa_family : h->ai_src_addr->sa_family;
	err = addr_copy(h->ai_src_addr, h->ai_src_len, &r->ai_src_addr, &r->ai_src_len);
	if (err == 0)
		err = addr_copy(h->ai_dst_addr, h->ai_dst_len, &r->ai_dst_addr, &r->ai_dst_len);
	return err != 0 ? err : source_set(r);
}

static int
from_name(const char *node, const char *service, const struct rdma_addrinfo *h,
	  struct rdma_addrinfo *r)
{
	struct addrinfo hints, *ai;
	int err;

	hints_convert(h, &hints);
	err = getaddrinfo(node, service, &hints, &ai);
	if (err != 0)
		return err;
	err = convert(ai, h, r);
	freeaddrinfo(ai);
	return err;
}

int
rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
		 struct rdma_addrinfo **res)
{
	const struct rdma_addrinfo *h = hints != NULL ? hints : &no_hints;
	struct rdma_addrinfo *r;
	int err;

	if (res == NULL || (node == NULL && service == NULL && hints == NULL))
		return urn_cma_result(EINVAL);
	if (!addr_whole(h->ai_src_addr, h->ai_src_len) ||
	    !addr_whole(h->ai_dst_addr, h->ai_dst_len))
		return urn_cma_result(EINVAL);
	r = calloc(1, sizeof(*r));
	if (r == NULL)
		return EAI_MEMORY;
	err = node != NULL || service != NULL ? from_name(node, service, h, r) : from_hints(h, r);
	if (err != 0) {
		rdma_freeaddrinfo(r);
		return err;
	}
	*res = r;
	return 0;
}
