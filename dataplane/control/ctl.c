/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control requests: the one validator. A request is a fixed struct from an
 * untrusted client; every field is checked here or in the handler before it is
 * used. Calls on an adapter are serialised; objects that an engine owns are changed in the
 * engine's thread.
 */
#include "control/ctl.h"
#include "control/lock.h"

#include <stdio.h>

static urn_ctl_fn *const handlers[URN_CTL_OPS] = {
	[URN_CTL_HELLO] = urn_ctl_hello,
	[URN_CTL_QUERY_PORT] = urn_ctl_query_port,
	[URN_CTL_QUERY_GID] = urn_ctl_query_gid,
	[URN_CTL_ALLOC_PD] = urn_ctl_alloc_pd,
	[URN_CTL_DEALLOC_PD] = urn_ctl_dealloc_pd,
	[URN_CTL_REG_MR] = urn_ctl_reg_mr,
	[URN_CTL_DEREG_MR] = urn_ctl_dereg_mr,
	[URN_CTL_ALLOC_MW] = urn_ctl_alloc_mw,
	[URN_CTL_DEALLOC_MW] = urn_ctl_dealloc_mw,
	[URN_CTL_CREATE_CQ] = urn_ctl_create_cq,
	[URN_CTL_RESIZE_CQ] = urn_ctl_resize_cq,
	[URN_CTL_DESTROY_CQ] = urn_ctl_destroy_cq,
	[URN_CTL_CREATE_SRQ] = urn_ctl_create_srq,
	[URN_CTL_MODIFY_SRQ] = urn_ctl_modify_srq,
	[URN_CTL_QUERY_SRQ] = urn_ctl_query_srq,
	[URN_CTL_DESTROY_SRQ] = urn_ctl_destroy_srq,
	[URN_CTL_CREATE_QP] = urn_ctl_create_qp,
	[URN_CTL_MODIFY_QP] = urn_ctl_modify_qp,
	[URN_CTL_QUERY_QP] = urn_ctl_query_qp,
	[URN_CTL_DESTROY_QP] = urn_ctl_destroy_qp,
	[URN_CTL_CREATE_AH] = urn_ctl_create_ah,
	[URN_CTL_DESTROY_AH] = urn_ctl_destroy_ah,
	[URN_CTL_ASYNC_FD] = urn_ctl_async_fd,
	[URN_CTL_SHARE] = urn_ctl_share,
	[URN_CTL_UNSHARE] = urn_ctl_unshare,
	[URN_CTL_CREATE_CHANNEL] = urn_ctl_create_channel,
	[URN_CTL_DESTROY_CHANNEL] = urn_ctl_destroy_channel,
	[URN_CTL_CM_LISTEN] = urn_ctl_cm_listen,
	[URN_CTL_CM_CONNECT] = urn_ctl_cm_connect,
	[URN_CTL_CM_RESOLVE] = urn_ctl_cm_resolve,
	[URN_CTL_CM_ACCEPT] = urn_ctl_cm_accept,
	[URN_CTL_CM_REJECT] = urn_ctl_cm_reject,
	[URN_CTL_CM_ESTABLISH] = urn_ctl_cm_establish,
	[URN_CTL_CM_DISCONNECT] = urn_ctl_cm_disconnect,
	[URN_CTL_CM_DESTROY] = urn_ctl_cm_destroy,
	[URN_CTL_CM_EVENT] = urn_ctl_cm_event,
	[URN_CTL_CONNECT_QP] = urn_ctl_connect_qp,
};

enum { AREA_ALIGN = 4096 }; /* bytes; a mapping begins on a page at least */

void
urn_ctl_call(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct urn_adapter *a = c->adapter;
	struct urn_charge charge;

	memset(rep, 0, sizeof(*rep));
	if (req->op >= URN_CTL_OPS || !handlers[req->op]) {
		rep->err = urn_ctl_fail(rep, EINVAL, "no control request has the number %u", req->op);
		return;
	}
	urn_ctl_enter(c);
	rep->err = urn_quota_begin(c, req, rep, &charge);
	if (rep->err == 0) {
		rep->err = handlers[req->op](c, req, rep);
		urn_quota_end(c, req, rep, &charge);
	}
	urn_ctl_leave(c);
	if (rep->err && !rep->why[0])
		urn_ctl_fail(rep, rep->err, "%s: control request %u: %s", a->cfg.name, req->op,
			     strerror(rep->err));
}

/*
 * The client tells the address of its area: a number at that address proves that reads of the
 * client's memory are really of its memory (memory/direct.c). The address need not be true.
 */
static int
mark_space(struct urn_client *c, uint64_t area, struct urn_abi_rep *rep)
{
	if (area & (AREA_ALIGN - 1) || area > UINT64_MAX - c->area.size)
		return urn_ctl_fail(rep, EINVAL, "%s: an area of %llu bytes can't lie at 0x%llx",
				    c->adapter->cfg.name, (unsigned long long)c->area.size,
				    (unsigned long long)area);
	if (!area || !c->space || c->mark_off)
		return 0;
	/* Without the mark reads are only slower. */
	if (urn_area_alloc(&c->area, URN_ABI_CACHE_LINE, &c->mark_off) == 0)
		urn_space_mark(c->space, (uint64_t *)(void *)(c->area.base + c->mark_off),
			       area + c->mark_off);
	return 0;
}

int
urn_ctl_hello(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct urn_adapter *a = c->adapter;
	struct urn_abi_device *d = &rep->device;

	if (req->hello.version != URN_ABI_VERSION)
		return urn_ctl_fail(rep, EPROTO,
				    "%s speaks version %u of the interface, the program's library %u",
				    a->cfg.name, URN_ABI_VERSION, req->hello.version);
	if (mark_space(c, req->hello.area, rep) != 0)
		return EINVAL;
	d->version = URN_ABI_VERSION;
	d->engines = a->vectors;
	d->node_guid = urn_adapter_guid(a);
	d->max_mr_size = UINT64_MAX >> 1;
	d->max_qp = a->cfg.max_qp;
	d->max_cq = URN_ADAPTER_MAX_CQ;
	d->max_mr = d->max_mw = a->cfg.max_mr;
	d->max_pd = URN_ADAPTER_MAX_PD;
	d->max_ah = URN_ADAPTER_MAX_AH;
	d->max_srq = URN_ADAPTER_MAX_SRQ;
	d->max_wr = URN_ABI_MAX_WR;
	d->max_sge = URN_ABI_MAX_SGE;
	d->max_cqe = URN_ABI_MAX_CQE;
	d->max_rd_atomic = URN_ABI_MAX_RD_ATOMIC;
	d->max_inline = URN_ABI_MAX_INLINE;
	d->gids = URN_GIDS;
	d->area_size = c->area.size;
	memcpy(d->db_off, c->db_off, sizeof(d->db_off));
	snprintf(d->name, sizeof(d->name), "%s", a->cfg.name);
	snprintf(d->fw_ver, sizeof(d->fw_ver), "%s", URN_VERSION);
	return 0;
}

int
urn_ctl_query_port(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	const struct urn_port *p = c->adapter->cfg.port;
	struct rte_eth_link link = {0};

	(void)req;
	rep->port.state = p->link_up ? 4 : 1;
	rep->port.max_mtu = rep->port.active_mtu = urn_adapter_mtu_code(c->adapter);
	rep->port.mtu_bytes = p->caps.mtu;
	if (rte_eth_link_get_nowait(p->id, &link) == 0 && link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN)
		rep->port.speed = link.link_speed * 1000000ull;
	return 0;
}

int
urn_ctl_query_gid(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	if (req->gid.index >= URN_GIDS)
		return urn_ctl_fail(rep, EINVAL, "%s has %u GIDs, and none with index %u",
				    c->adapter->cfg.name, URN_GIDS, req->gid.index);
	memcpy(rep->gid.gid, c->adapter->gid[req->gid.index], 16);
	return 0;
}
