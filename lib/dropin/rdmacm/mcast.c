/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multicast groups of ids. The group's GID is the address itself: ::ffff:a.b.c.d for IPv4. A join
 * attaches the id's queue pair, if it has one then, and its event tells how to send to the group.
 * A join for sending alone attaches nothing.
 */
#include "dropin/rdmacm/rdmacm.h"

#include <stdlib.h>
#include <string.h>

/* Destination of datagrams to a group (IBTA 10.5.2.1). */
#define QPN_MULTICAST 0xffffffu

struct urn_cma_group {
	LIST_ENTRY(urn_cma_group) next;
	struct sockaddr_storage addr; /* the program's */
	union ibv_gid gid;
	struct ibv_qp *qp; /* the queue pair that is attached; NULL: none */
	void *context;	   /* the program's, for the event */
};

static bool
is_group(const union ibv_gid *gid)
{
	const struct in6_addr *a = (const struct in6_addr *)gid->raw;

	return IN6_IS_ADDR_MULTICAST(a) ||
	       (IN6_IS_ADDR_V4MAPPED(a) && (gid->raw[12] & 0xf0) == 0xe0);
}

static struct urn_cma_group *
group_new(const struct sockaddr *addr, void *context)
{
	struct urn_cma_group *g = calloc(1, sizeof(*g));

	if (g == NULL)
		return NULL;
	memcpy(&g->addr, addr, urn_cma_addr_len(addr));
	(void)urn_cma_addr_to_gid(addr, &g->gid);
	g->context = context;
	return g;
}

static void
group_free(struct urn_cma_group *g)
{
	if (g->qp != NULL)
		(void)ibv_detach_mcast(g->qp, &g->gid, 0);
	LIST_REMOVE(g, next);
	free(g);
}

/* Give the event of a join. err: 0, or the errno value that attaching failed with */
static int
tell(struct urn_cma_id *id, const struct urn_cma_group *g, int err)
{
	struct urn_cma_event *e = urn_cma_post(
		id, err == 0 ? RDMA_CM_EVENT_MULTICAST_JOIN : RDMA_CM_EVENT_MULTICAST_ERROR, -err,
		NULL, 0);

	if (e == NULL)
		return ENOMEM;
	e->pub.param.ud.private_data = g->context;
	urn_cma_ah_attr(id, g->gid.raw, &e->pub.param.ud.ah_attr);
	e->pub.param.ud.qp_num = QPN_MULTICAST;
	e->pub.param.ud.qkey = RDMA_UDP_QKEY;
	return 0;
}

/* The lock is held. returns: 0, or an errno value */
static int
join(struct urn_cma_id *id, const struct sockaddr *addr, bool attach, void *context)
{
	struct urn_cma_group *g;
	int err = 0;

	if (id->dev == NULL || !urn_cma_datagrams(id))
		return EINVAL;
	g = group_new(addr, context);
	if (g == NULL)
		return ENOMEM;
	LIST_INSERT_HEAD(&id->groups, g, next);
	if (!is_group(&g->gid))
		err = EINVAL;
	else if (attach && id->pub.qp != NULL)
		err = ibv_attach_mcast(id->pub.qp, &g->gid, 0);
	if (err == 0 && attach)
		g->qp = id->pub.qp;
	err = tell(id, g, err);
	if (err != 0)
		group_free(g);
	return err;
}

int
rdma_join_multicast_ex(struct rdma_cm_id *pub, struct rdma_cm_join_mc_attr_ex *attr, void *context)
{
	const uint32_t both = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	struct urn_cma_id *id = urn_cma_of(pub);
	int err;

	if (id == NULL || urn_cma_foreign(id) || attr == NULL || attr->comp_mask != both ||
	    attr->addr == NULL || attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return urn_cma_result(EINVAL);
	if (urn_cma_addr_len(attr->addr) == 0)
		return urn_cma_result(EAFNOSUPPORT);
	pthread_mutex_lock(&urn_cma_lock);
	err = join(id, attr->addr, attr->join_flags == RDMA_MC_JOIN_FLAG_FULLMEMBER, context);
	pthread_mutex_unlock(&urn_cma_lock);
	return err != 0 ? urn_cma_result(err) : urn_cma_complete(id);
}

int
rdma_join_multicast(struct rdma_cm_id *pub, struct sockaddr *addr, void *context)
{
	struct rdma_cm_join_mc_attr_ex attr = {.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS |
							    RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
					       .join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER,
					       .addr = addr};

	return rdma_join_multicast_ex(pub, &attr, context);
}

int
rdma_leave_multicast(struct rdma_cm_id *pub, struct sockaddr *addr)
{
	struct urn_cma_id *id = urn_cma_of(pub);
	struct urn_cma_group *g = NULL;
	socklen_t len;

	if (id == NULL || urn_cma_foreign(id) || addr == NULL)
		return urn_cma_result(EINVAL);
	len = urn_cma_addr_len(addr);
	pthread_mutex_lock(&urn_cma_lock);
	LIST_FOREACH(g, &id->groups, next)
		if (len != 0 && memcmp(&g->addr, addr, len) == 0)
			break;
	if (g != NULL)
		group_free(g);
	pthread_mutex_unlock(&urn_cma_lock);
	return urn_cma_result(g != NULL ? 0 : EADDRNOTAVAIL);
}

void
urn_cma_groups_detach(struct urn_cma_id *id)
{
	struct urn_cma_group *g;

	LIST_FOREACH(g, &id->groups, next) {
		if (g->qp != NULL)
			(void)ibv_detach_mcast(g->qp, &g->gid, 0);
		g->qp = NULL;
	}
}

void
urn_cma_groups_end(struct urn_cma_id *id)
{
	struct urn_cma_group *g, *after;

	for (g = LIST_FIRST(&id->groups); g != NULL; g = after) {
		after = LIST_NEXT(g, next);
		group_free(g);
	}
}
