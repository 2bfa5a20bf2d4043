/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries of the virtual device, which outlive the primary adapter. */
#include "verbs/front.h"
#include "verbs/session/sv.h"

#include <urnic/verbs.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Bytes in front of an IPv4 address in a GID: ::ffff:a.b.c.d */
static const uint8_t urn_sv_mapped[12] = {[10] = 0xff, [11] = 0xff};

/* Choose the address of an adapter's paths: the first IPv4 one, else the first. */
static int
urn_sv_choose(struct urn_sv_ctx *ctx, int i)
{
	struct ibv_context *c = ctx->below[i];
	union ibv_gid gid;
	bool found = false;

	for (uint32_t n = 0; n < urn_verbs_ctx(c)->gids && n <= UINT8_MAX; n++) {
		bool v4;

		if (urn_ops(c)->query_gid(c, n, &gid) != 0)
			continue;
		if (gid.global.interface_id == 0 && gid.global.subnet_prefix == 0)
			continue;
		v4 = memcmp(gid.raw, urn_sv_mapped, sizeof(urn_sv_mapped)) == 0;
		if (!found || v4) {
			ctx->gid[i] = gid;
			ctx->gid_index[i] = (uint8_t)n;
		}
		found = true;
		if (v4)
			break;
	}
	return found ? 0
		     : urn_fail(ENODATA, "adapter %s has no address", urn_verbs_ctx(c)->id.name);
}

/* One element of a list is the header's, and a request may need two and a flush READ (FO-1). */
static void
urn_sv_hide(struct ibv_device_attr *a)
{
	a->max_sge--;
	a->max_sge_rd--;
	a->max_qp_wr = a->max_qp_wr / 2 - URN_SV_SPARE;
	a->max_qp /= 2 * URN_SV_ADAPTERS;
	a->max_mw = 0;
	a->device_cap_flags &=
		~(unsigned int)(IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
				IBV_DEVICE_MEM_MGT_EXTENSIONS);
}

int
urn_sv_remember(struct urn_sv_ctx *ctx)
{
	struct ibv_context *c = ctx->below[0];
	int err = urn_ops(c)->query_device(c, &ctx->device);

	if (err == 0)
		err = urn_ops(c)->query_port(c, &ctx->port);
	for (int i = 0; i < URN_SV_ADAPTERS && err == 0; i++)
		err = urn_sv_choose(ctx, i);
	if (err != 0)
		return err;
	for (uint32_t n = 0; n < ctx->front.gids; n++)
		if (urn_ops(c)->query_gid(c, n, &ctx->gids[n]) != 0)
			memset(&ctx->gids[n], 0, sizeof(ctx->gids[n]));
	urn_sv_hide(&ctx->device.orig_attr);
	ctx->device.device_cap_flags_ex = ctx->device.orig_attr.device_cap_flags;
	ctx->device.completion_timestamp_mask = 0;
	ctx->device.hca_core_clock = 0;
	return 0;
}

int
urn_sv_query_device(struct ibv_context *c, struct ibv_device_attr_ex *attr)
{
	*attr = urn_sv_ctx(c)->device;
	return 0;
}

int
urn_sv_query_port(struct ibv_context *c, struct ibv_port_attr *attr)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(c);

	/* The port of a dead primary adapter is as it was: the backup carries its traffic. */
	if (urn_ops(ctx->below[0])->query_port(ctx->below[0], attr) != 0)
		*attr = ctx->port;
	attr->gid_tbl_len = (int)ctx->front.gids;
	return 0;
}

int
urn_sv_query_gid(struct ibv_context *c, uint32_t index, union ibv_gid *gid)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(c);
	int err = urn_ops(ctx->below[0])->query_gid(ctx->below[0], index, gid);

	if (err != EIO)
		return err;
	*gid = ctx->gids[index];
	return 0;
}

/* The only event of the virtual device: all adapters are lost. */
int
urn_sv_get_async_event(struct ibv_context *c, struct ibv_async_event *event)
{
	uint64_t n;

	if (read(c->async_fd, &n, sizeof(n)) != (ssize_t)sizeof(n))
		return -1;
	memset(event, 0, sizeof(*event));
	event->event_type = IBV_EVENT_DEVICE_FATAL;
	return 0;
}
