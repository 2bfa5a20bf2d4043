/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of verbs.h that have little or nothing to do here. The dataplane reaches memory
 * without pinning pages, so a fork takes nothing away and needs no preparation.
 */
#include "verbs/front.h"

#include <errno.h>
#include <string.h>

enum ibv_fork_status
ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

/* Attach a queue pair to a group, or detach it. */
static int
urn_mcast(struct ibv_qp *qp, const union ibv_gid *gid, bool attach)
{
	if (qp->qp_type != IBV_QPT_UD)
		return urn_fail(EINVAL, "only a UD queue pair can be in a multicast group");
	return urn_ops(qp->context)->mcast(qp, gid, attach);
}

int
ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)lid; /* Ethernet has none: the MAC follows from the GID */
	return urn_mcast(qp, gid, true);
}

int
ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)lid;
	return urn_mcast(qp, gid, false);
}

int
ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
	uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	(void)context, (void)attr, (void)eth_mac, (void)vid;
	return urn_unsupported("asking for a neighbour's MAC address");
}

int
ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp, (void)ece;
	return urn_unsupported("enhanced connection establishment (ECE)");
}

int
ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	memset(ece, 0, sizeof(*ece));
	return urn_unsupported("enhanced connection establishment (ECE)");
}

struct ibv_dm *
ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
	(void)context, (void)dm_handle;
	urn_unsupported("device memory");
	return NULL;
}

void
ibv_unimport_dm(struct ibv_dm *dm)
{
	(void)dm; /* none can have been imported */
}
