/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries of an adapter and its port. */
#include "verbs/adapter/adapter.h"

#include <endian.h>
#include <string.h>

/* "\2ur": an OUI with the bit for locally made ones set. */
#define URN_VENDOR_ID 0x027572u

/* The dataplane's value, cut to the largest int. */
static int
urn_int(uint64_t v)
{
	return v > INT32_MAX ? INT32_MAX : (int)v;
}

static void
urn_fill_device(const struct urn_abi_device *d, struct ibv_device_attr *a)
{
	memcpy(a->fw_ver, d->fw_ver, sizeof(a->fw_ver));
	a->node_guid = htobe64(d->node_guid);
	a->sys_image_guid = a->node_guid;
	a->max_mr_size = d->max_mr_size;
	a->page_size_cap = ~0xfffull;
	a->vendor_id = URN_VENDOR_ID;
	a->max_qp = urn_int(d->max_qp);
	a->max_qp_wr = urn_int(d->max_wr);
	a->device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT |
		IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_MEM_WINDOW |
		IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
	a->max_sge = urn_int(d->max_sge);
	a->max_sge_rd = a->max_sge;
	a->max_cq = urn_int(d->max_cq);
	a->max_cqe = urn_int(d->max_cqe);
	a->max_mr = urn_int(d->max_mr);
	a->max_pd = urn_int(d->max_pd);
	a->max_qp_rd_atom = urn_int(d->max_rd_atomic);
	a->max_res_rd_atom = urn_int((uint64_t)d->max_rd_atomic * d->max_qp);
	a->max_qp_init_rd_atom = a->max_qp_rd_atom;
	/* Atomic among the QPs of this device; not against the CPU's stores. */
	a->atomic_cap = IBV_ATOMIC_HCA;
	a->max_mw = urn_int(d->max_mw);
	a->max_ah = urn_int(d->max_ah);
	a->max_srq = urn_int(d->max_srq);
	a->max_srq_wr = urn_int(d->max_wr);
	a->max_srq_sge = a->max_sge;
	a->max_pkeys = 1;
	a->phys_port_cnt = 1;
	if (!(d->features & URN_ABI_FEATURE_MCAST))
		return;
	a->max_mcast_grp = URN_ABI_MCAST_GROUPS;
	a->max_mcast_qp_attach = URN_ABI_MCAST_CLIENT;
	a->max_total_mcast_qp_attach = URN_ABI_MCAST_GROUPS * URN_ABI_MCAST_CLIENT;
}

int
urn_query_device(struct ibv_context *c, struct ibv_device_attr_ex *attr)
{
	urn_fill_device(&urn_ctx_dev(c)->info, &attr->orig_attr);
	attr->device_cap_flags_ex = attr->orig_attr.device_cap_flags;
	attr->phys_port_cnt_ex = 1;
	/* Completions have times of urn_clock_ns(). */
	attr->completion_timestamp_mask = UINT64_MAX;
	attr->hca_core_clock = 1000000; /* kHz */
	return 0;
}

/* IBTA codes of link width and speed that come nearest to a port's speed, bits per second. */
static void
urn_port_speed(uint64_t bps, struct ibv_port_attr *a)
{
	static const struct {
		uint64_t gbps;
		uint8_t width, speed;
	} rate[] = {
		{400, 2, 128}, {200, 2, 64}, {100, 2, 32}, {50, 1, 64}, {40, 2, 4}, {25, 1, 32}, {10, 1, 4},
		{5, 1, 2},
	};
	size_t i;

	a->active_width = 1; /* one lane of 2.5 Gb/s, the least */
	a->active_speed = 1;
	for (i = 0; i < sizeof(rate) / sizeof(rate[0]); i++) {
		if (bps >= rate[i].gbps * 1000000000u) {
			a->active_width = rate[i].width;
			a->active_speed = rate[i].speed;
			return;
		}
	}
}

int
urn_query_port(struct ibv_context *c, struct ibv_port_attr *attr)
{
	struct urn_abi_req req = {.op = URN_CTL_QUERY_PORT};
	struct urn_abi_rep rep;
	int err = urn_dev_call(urn_ctx_dev(c), &req, &rep);

	if (err != 0)
		return err;
	attr->state = rep.port.state;
	attr->max_mtu = rep.port.max_mtu;
	attr->active_mtu = rep.port.active_mtu;
	attr->gid_tbl_len = (int)urn_ctx_dev(c)->info.gids;
	attr->port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
	attr->max_msg_sz = URN_ABI_MAX_MSG;
	attr->pkey_tbl_len = 1;
	attr->max_vl_num = 1;
	attr->phys_state = attr->state == IBV_PORT_ACTIVE ? 5 : 3; /* LinkUp, Disabled */
	attr->link_layer = IBV_LINK_LAYER_ETHERNET;
	attr->flags = IBV_QPF_GRH_REQUIRED;
	urn_port_speed(rep.port.speed, attr);
	return 0;
}

int
urn_query_gid(struct ibv_context *c, uint32_t index, union ibv_gid *gid)
{
	struct urn_abi_req req = {.op = URN_CTL_QUERY_GID, .gid.index = index};
	struct urn_abi_rep rep;
	int err = urn_dev_call(urn_ctx_dev(c), &req, &rep);

	if (err == 0)
		memcpy(gid->raw, rep.gid.gid, sizeof(gid->raw));
	return err;
}
