/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles: the destination of a datagram, and the sender of a received one. */
#include "verbs/front.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A UD receive puts 40 bytes before the payload: an IPv6 header, or 20 unused and an IPv4 header. */
#define URN_GRH_IPV4 20
#define URN_HOP_LIMIT 255

int
urn_ah_check(const struct ibv_ah_attr *attr)
{
	if (!attr->is_global)
		return urn_fail(EINVAL, "an address on Ethernet needs a GID: set is_global and grh.dgid");
	return 0;
}

struct ibv_ah *
ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct ibv_ah *ah;

	if (urn_ah_check(attr) != 0)
		return NULL;
	ah = urn_ops(pd->context)->create_ah(urn_pd_use(pd), attr);
	if (ah == NULL) {
		urn_pd_leave(pd);
		return NULL;
	}
	ah->context = pd->context;
	ah->pd = pd;
	return ah;
}

int
ibv_destroy_ah(struct ibv_ah *ah)
{
	struct ibv_pd *pd = ah->pd;
	int err = urn_ops(ah->context)->destroy_ah(ah);

	if (err != 0)
		return err;
	urn_pd_leave(pd);
	free(ah);
	return 0;
}

/* True when the 20 bytes are an IPv4 header without options whose checksum is right. */
static bool
urn_is_ipv4(const uint8_t *h)
{
	uint32_t sum = 0;
	int i;

	if (h[0] != 0x45)
		return false;
	for (i = 0; i < 20; i += 2)
		sum += (uint32_t)h[i] << 8 | h[i + 1];
	while (sum > 0xffff)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

/* Write an IPv4 address as its GID: ::ffff:a.b.c.d. */
static void
urn_gid_ipv4(union ibv_gid *gid, const uint8_t *addr)
{
	memset(gid, 0, sizeof(*gid));
	gid->raw[10] = 0xff;
	gid->raw[11] = 0xff;
	memcpy(gid->raw + 12, addr, 4);
}

/* True for the GID of a multicast group: ff00::/8, or ::ffff:224.0.0.0 to ::ffff:239.255.255.255.
 */
static bool
urn_gid_is_group(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return gid->raw[0] == 0xff ||
	       (memcmp(gid->raw, mapped, 12) == 0 && (gid->raw[12] & 0xf0) == 0xe0);
}

/*
 * True when a datagram to `to` came in at our GID: they are the same, or `to` is a group, and the
 * GID, which is used, is of its family.
 */
static bool
urn_gid_came_to(const union ibv_gid *ours, const union ibv_gid *to)
{
	static const union ibv_gid none;

	if (!urn_gid_is_group(to))
		return memcmp(ours, to, sizeof(*to)) == 0;
	return memcmp(ours, &none, sizeof(none)) != 0 &&
	       (ours->raw[10] == 0xff && ours->raw[0] == 0) == (to->raw[0] == 0);
}

/*
 * Find the GID that a datagram came to in the adapter's table; of a group's datagram the first one
 * that can answer. returns: its index, or -1 with errno set
 */
static int
urn_gid_index(struct ibv_context *c, uint8_t port, const union ibv_gid *gid)
{
	uint32_t i, n = urn_verbs_ctx(c)->gids;
	union ibv_gid ours;

	for (i = 0; i < n; i++) {
		if (ibv_query_gid(c, port, (int)i, &ours) != 0)
			return -1;
		if (urn_gid_came_to(&ours, gid))
			return (int)i;
	}
	urn_fail(ENOENT, "the datagram was sent to an address that is not in the GID table");
	return -1;
}

int
ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
	struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	const uint8_t *h = (const uint8_t *)grh;
	union ibv_gid to;
	uint32_t flow;
	int index;

	memset(attr, 0, sizeof(*attr));
	attr->port_num = port_num;
	if (!(wc->wc_flags & IBV_WC_GRH)) {
		urn_fail(EINVAL, "the completion has no header of the datagram (IBV_WC_GRH)");
		return -1;
	}
	if (urn_is_ipv4(h + URN_GRH_IPV4)) {
		h += URN_GRH_IPV4;
		attr->grh.traffic_class = h[1];
		urn_gid_ipv4(&attr->grh.dgid, h + 12);
		urn_gid_ipv4(&to, h + 16);
	} else if (h[0] >> 4 == 6) {
		flow = (uint32_t)h[0] << 24 | (uint32_t)h[1] << 16 | (uint32_t)h[2] << 8 | h[3];
		attr->grh.traffic_class = (uint8_t)(flow >> 20);
		attr->grh.flow_label = flow & IB_GRH_FLOWLABEL_MASK;
		memcpy(attr->grh.dgid.raw, h + 8, 16);
		memcpy(to.raw, h + 24, 16);
	} else {
		urn_fail(EINVAL, "the 40 bytes before the datagram hold neither an IPv4 nor an IPv6 header");
		return -1;
	}
	index = urn_gid_index(context, port_num, &to);
	if (index < 0)
		return -1;
	attr->grh.sgid_index = (uint8_t)index;
	attr->grh.hop_limit = URN_HOP_LIMIT;
	attr->is_global = 1;
	return 0;
}

struct ibv_ah *
ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port_num)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr) != 0)
		return NULL;
	return ibv_create_ah(pd, &attr);
}
