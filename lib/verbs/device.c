/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries of a device, its port and its tables. */
#include "abi/clock.h"
#include "verbs/front.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#define URN_PKEY 0xffffu
#define URN_PORT 1u

int
ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	struct ibv_device_attr_ex a;
	int err;

	memset(&a, 0, sizeof(a));
	err = urn_ops(context)->query_device(context, &a);
	if (err == 0)
		*attr = a.orig_attr;
	return err;
}

int
urn_verbs_query_device_ex(struct ibv_context *c, const struct ibv_query_device_ex_input *input,
	struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct ibv_device_attr_ex a;
	int err;

	if (input != NULL && input->comp_mask != 0)
		return urn_fail(EINVAL, "query_device_ex: unknown input fields 0x%x", input->comp_mask);
	if (attr_size < sizeof(a.orig_attr))
		return urn_fail(EINVAL, "query_device_ex: %zu bytes do not hold the attributes", attr_size);
	memset(&a, 0, sizeof(a));
	err = urn_ops(c)->query_device(c, &a);
	if (err != 0)
		return err;
	/* Callers that were built earlier have a shorter struct. */
	memcpy(attr, &a, attr_size < sizeof(a) ? attr_size : sizeof(a));
	if (attr_size > sizeof(a))
		memset((uint8_t *)attr + sizeof(a), 0, attr_size - sizeof(a));
	return 0;
}

int
urn_verbs_query_rt_values(struct ibv_context *c, struct ibv_values_ex *values)
{
	const uint32_t asked = values->comp_mask;

	if (!(urn_verbs_ctx(c)->wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP))
		return urn_unsupported("a clock of the device");
	if (asked & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return urn_unsupported("values of the device other than its clock");
	if (asked & IBV_VALUES_MASK_RAW_CLOCK) {
		/* Ticks, as other devices tell them: not split into seconds. */
		values->raw_clock.tv_sec = 0;
		values->raw_clock.tv_nsec = (long)urn_clock_ns();
	}
	return 0;
}

static int
urn_check_port(unsigned int port)
{
	if (port == URN_PORT)
		return 0;
	return urn_fail(EINVAL, "the device has no port %u, only port 1", port);
}

int
urn_verbs_query_port(struct ibv_context *c, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
	struct ibv_port_attr a;
	int err = urn_check_port(port);

	if (err != 0)
		return err;
	memset(&a, 0, sizeof(a));
	err = urn_ops(c)->query_port(c, &a);
	if (err != 0)
		return err;
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
	return urn_verbs_query_port(context, port_num, (struct ibv_port_attr *)attr,
		offsetof(struct ibv_port_attr, port_cap_flags2));
}

static int
urn_get_gid(struct ibv_context *c, uint32_t port, uint32_t index, union ibv_gid *gid)
{
	uint32_t gids = urn_verbs_ctx(c)->gids;
	int err = urn_check_port(port);

	if (err != 0)
		return err;
	if (index >= gids)
		return urn_fail(EINVAL, "the GID table has %u entries, no entry %u", gids, index);
	return urn_ops(c)->query_gid(c, index, gid);
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
	uint32_t i, gids = urn_verbs_ctx(context)->gids;
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
