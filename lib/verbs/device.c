/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries of a device, its port and its tables. */
#include "verbs/verbs_priv.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

/* "\2ur": an OUI with the bit for locally made ones set. */
#define URN_VENDOR_ID 0x027572u
#define URN_PKEY 0xffffu
#define URN_PORT 1u

/* The dataplane's value, cut to the largest int. */
static int
urn_int(uint64_t v)
{
	return v > INT32_MAX ? INT32_MAX : (int)v;
}

static void
urn_fill_device(struct ibv_context *c, struct ibv_device_attr *a)
{
	const struct urn_abi_device *d = &urn_ctx_dev(c)->info;

	memset(a, 0, sizeof(*a));
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
}

int
ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	urn_fill_device(context, attr);
	return 0;
}

int
urn_query_device_ex(struct ibv_context *c, const struct ibv_query_device_ex_input *input,
	struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct ibv_device_attr_ex a;

	if (input != NULL && input->comp_mask != 0)
		return urn_fail(EINVAL, "query_device_ex: unknown input fields 0x%x", input->comp_mask);
	if (attr_size < sizeof(a.orig_attr))
		return urn_fail(EINVAL, "query_device_ex: %zu bytes do not hold the attributes", attr_size);
	memset(&a, 0, sizeof(a));
	urn_fill_device(c, &a.orig_attr);
	a.device_cap_flags_ex = a.orig_attr.device_cap_flags;
	a.phys_port_cnt_ex = 1;
	/* Callers that were built earlier have a shorter struct. */
	memcpy(attr, &a, attr_size < sizeof(a) ? attr_size : sizeof(a));
	if (attr_size > sizeof(a))
		memset((uint8_t *)attr + sizeof(a), 0, attr_size - sizeof(a));
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

static int
urn_check_port(unsigned int port)
{
	if (port == URN_PORT)
		return 0;
	return urn_fail(EINVAL, "the device has no port %u, only port 1", port);
}

int
urn_query_port(struct ibv_context *c, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
	struct urn_abi_req req = {.op = URN_CTL_QUERY_PORT};
	struct ibv_port_attr a;
	struct urn_abi_rep rep;
	int err = urn_check_port(port);

	if (err == 0)
		err = urn_dev_call(urn_ctx_dev(c), &req, &rep);
	if (err != 0)
		return err;
	memset(&a, 0, sizeof(a));
	a.state = rep.port.state;
	a.max_mtu = rep.port.max_mtu;
	a.active_mtu = rep.port.active_mtu;
	a.gid_tbl_len = (int)urn_ctx_dev(c)->info.gids;
	a.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
	a.max_msg_sz = URN_ABI_MAX_MSG;
	a.pkey_tbl_len = 1;
	a.max_vl_num = 1;
	a.phys_state = a.state == IBV_PORT_ACTIVE ? 5 : 3; /* LinkUp, Disabled */
	a.link_layer = IBV_LINK_LAYER_ETHERNET;
	a.flags = IBV_QPF_GRH_REQUIRED;
	urn_port_speed(rep.port.speed, &a);
	if (size > sizeof(a))
		memset((uint8_t *)attr + sizeof(a), 0, size - sizeof(a));
	memcpy(attr, &a, size < sizeof(a) ? size : sizeof(a));
	return 0;
}

#undef ibv_query_port
/* Called by programs that were built before ibv_port_attr got its last field. */
int
ibv_query_port(struct ibv_context *context, uint8_t port_num, struct _compat_ibv_port_attr *attr)
{
	return urn_query_port(context, port_num, (struct ibv_port_attr *)attr,
		offsetof(struct ibv_port_attr, port_cap_flags2));
}

static int
urn_get_gid(struct ibv_context *c, uint32_t port, uint32_t index, union ibv_gid *gid)
{
	struct urn_abi_req req = {.op = URN_CTL_QUERY_GID, .gid.index = index};
	struct urn_dev *dev = urn_ctx_dev(c);
	struct urn_abi_rep rep;
	int err = urn_check_port(port);

	if (err != 0)
		return err;
	if (index >= dev->info.gids)
		return urn_fail(EINVAL, "the GID table has %u entries, no entry %u", dev->info.gids, index);
	err = urn_dev_call(dev, &req, &rep);
	if (err == 0)
		memcpy(gid->raw, rep.gid.gid, sizeof(gid->raw));
	return err;
}

int
ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
	int err = urn_get_gid(context, port_num, (uint32_t)index, gid);

	/* An empty entry reads as zeros here; only query_gid_ex tells that it is empty. */
	if (err == ENODATA || err == ENOENT) {
		memset(gid, 0, sizeof(*gid));
		err = 0;
	}
	return err == 0 ? 0 : -1;
}

static bool
urn_gid_empty(const union ibv_gid *gid)
{
	static const union ibv_gid none;

	return memcmp(gid, &none, sizeof(none)) == 0;
}

int
_ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
	struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	struct ibv_gid_entry e;
	int err;

	if (flags != 0)
		return urn_fail(EOPNOTSUPP, "query_gid_ex: unknown flags 0x%x", flags);
	memset(&e, 0, sizeof(e));
	err = urn_get_gid(context, port_num, gid_index, &e.gid);
	if (err == 0 && urn_gid_empty(&e.gid))
		err = urn_fail(ENODATA, "entry %u of the GID table is empty", gid_index);
	if (err != 0)
		return err;
	e.gid_index = gid_index;
	e.port_num = port_num;
	e.gid_type = IBV_GID_TYPE_ROCE_V2;
	if (entry_size > sizeof(e))
		memset((uint8_t *)entry + sizeof(e), 0, entry_size - sizeof(e));
	memcpy(entry, &e, entry_size < sizeof(e) ? entry_size : sizeof(e));
	return 0;
}

ssize_t
_ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
	size_t max_entries, uint32_t flags, size_t entry_size)
{
	uint32_t i, gids = urn_ctx_dev(context)->info.gids;
	size_t n = 0;
	int err;

	if (flags != 0)
		return -urn_fail(EOPNOTSUPP, "query_gid_table: unknown flags 0x%x", flags);
	for (i = 0; i < gids; i++) {
		struct ibv_gid_entry e;

		err = _ibv_query_gid_ex(context, URN_PORT, i, &e, 0, sizeof(e));
		if (err == ENODATA || err == ENOENT)
			continue;
		if (err != 0)
			return -err;
		if (n == max_entries)
			return -urn_fail(EINVAL, "the GID table has more than %zu entries", max_entries);
		memcpy((uint8_t *)entries + n * entry_size, &e,
			entry_size < sizeof(e) ? entry_size : sizeof(e));
		n++;
	}
	return (ssize_t)n;
}

int
ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
	(void)context;
	if (urn_check_port(port_num) != 0)
		return -1;
	if (index != 0) {
		urn_fail(EINVAL, "the P_Key table has one entry, no entry %d", index);
		return -1;
	}
	*pkey = htons(URN_PKEY);
	return 0;
}

int
ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
	(void)context;
	if (urn_check_port(port_num) != 0)
		return -1;
	if (pkey != htons(URN_PKEY)) {
		urn_fail(EINVAL, "P_Key 0x%04x is not in the table; only 0xffff is", ntohs(pkey));
		return -1;
	}
	return 0;
}
