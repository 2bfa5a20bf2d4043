/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries of the virtual device, which outlive the primary adapter. */
#include "verbs/front.h"
#include "verbs/session/heal.h"
#include "verbs/session/srq.h"

#include <urnic/verbs.h>

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* Bytes in front of an IPv4 address in a GID: ::ffff:a.b.c.d */
static const uint8_t urn_sv_mapped[12] = {[10] = 0xff, [11] = 0xff};

/* True when an address is to be taken instead of `best`: that of before, else the first IPv4 one,
 * else the first. has: best is an address */
static bool
urn_sv_better(const union ibv_gid *gid, const union ibv_gid *best, bool has,
	      const union ibv_gid *before)
{
	if (memcmp(gid, before, sizeof(*gid)) == 0)
		return true;
	if (!has)
		return true;
	return memcmp(gid->raw, urn_sv_mapped, sizeof(urn_sv_mapped)) == 0 &&
	       memcmp(best->raw, urn_sv_mapped, sizeof(urn_sv_mapped)) != 0 &&
	       memcmp(best, before, sizeof(*best)) != 0;
}

int
urn_sv_choose(struct urn_sv_ctx *ctx, uint32_t adapter)
{
	const union ibv_gid before = ctx->gid[adapter];
	struct ibv_context *c = ctx->below[adapter];
	union ibv_gid gid, best = {0};
	bool found = false;

	for (uint32_t n = 0; n < urn_verbs_ctx(c)->gids && n <= UINT8_MAX; n++) {
		if (urn_ops(c)->query_gid(c, n, &gid) != 0)
			continue;
		if (gid.global.interface_id == 0 && gid.global.subnet_prefix == 0)
			continue;
		if (!urn_sv_better(&gid, &best, found, &before))
			continue;
		best = gid;
		ctx->gid_index[adapter] = (uint8_t)n;
		found = true;
	}
	ctx->gid[adapter] = best;
	return found ? 0
		     : urn_fail(ENODATA, "adapter %s has no address", urn_verbs_ctx(c)->id.name);
}

/* One element of a list is the header's, and a request may need two and a flush READ (FO-1). */
static void
urn_sv_hide(struct ibv_device_attr *a)
{
	a->max_sge--;
	a->max_sge_rd--;
	a->max_srq_sge--;
	a->max_srq /= URN_SV_ADAPTERS; /* one that was spoiled may be there still */
	a->max_qp_wr = a->max_qp_wr / 2 - URN_SV_SPARE;
	a->max_qp /= 2 * URN_SV_ADAPTERS;
	a->max_mw = 0;
	a->device_cap_flags &=
		~(unsigned int)(IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2A |
				IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS);
}

int
urn_sv_remember(struct urn_sv_ctx *ctx)
{
	struct ibv_context *c = ctx->below[0];
	int err = urn_ops(c)->query_device(c, &ctx->device);

	if (err == 0)
		err = urn_ops(c)->query_port(c, &ctx->port);
	for (uint32_t i = 0; i < URN_SV_ADAPTERS && err == 0; i++)
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

	/* The port of a primary adapter that is away, or has its link down, is as that of the
	 * backup, which carries its traffic. */
	if (ctx->below[0] == NULL || urn_ops(ctx->below[0])->query_port(ctx->below[0], attr) != 0) {
		*attr = ctx->port;
		attr->state = IBV_PORT_DOWN;
	}
	if (attr->state == IBV_PORT_DOWN) {
		bool up = !ctx->dead[1] && !ctx->down[1];

		attr->state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
		attr->phys_state = up ? 5 : 3; /* LinkUp, Disabled */
	}
	attr->gid_tbl_len = (int)ctx->front.gids;
	return 0;
}

int
urn_sv_query_gid(struct ibv_context *c, uint32_t index, union ibv_gid *gid)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(c);
	int err = EIO;

	if (ctx->below[0] != NULL)
		err = urn_ops(ctx->below[0])->query_gid(ctx->below[0], index, gid);
	if (err == EIO)
		*gid = ctx->gids[index];
	return err == EIO ? 0 : err;
}

void
urn_sv_event_tell(struct urn_sv_ctx *ctx)
{
	const uint64_t one = 1;

	(void)!write(ctx->front.vctx.context.async_fd, &one, sizeof(one));
}

void
urn_sv_event_hush(struct urn_sv_ctx *ctx)
{
	uint64_t one;
	struct iovec to = {&one, sizeof(one)};

	/* The descriptor is the parent's, too, whose event it is. */
	if (!ctx->forked)
		(void)!preadv2(ctx->front.vctx.context.async_fd, &to, 1, -1, RWF_NOWAIT);
}

/* Take an event: the loss of all adapters, the limit of a shared receive queue, or the last receive
 * that a queue pair had of one. returns: false: there is none */
static bool
urn_sv_event_take(struct urn_sv_ctx *ctx, struct ibv_async_event *event)
{
	struct urn_sv_srq *s;
	struct urn_sv_qp *q;

	memset(event, 0, sizeof(*event));
	if (ctx->fatal) {
		ctx->fatal = false;
		event->event_type = IBV_EVENT_DEVICE_FATAL;
		return true;
	}
	LIST_FOREACH(s, &ctx->srqs, link) {
		if (!s->due)
			continue;
		s->due = false;
		s->got++;
		/* Armed again before this event was fetched: the adapter's was of no use then. */
		if (s->limit != 0)
			(void)urn_sv_srq_arm(s);
		event->event_type = IBV_EVENT_SRQ_LIMIT_REACHED;
		event->element.srq = &s->ibv;
		return true;
	}
	LIST_FOREACH(q, &ctx->qps, link)
		if (urn_sv_last_take(q)) {
			event->event_type = IBV_EVENT_QP_LAST_WQE_REACHED;
			event->element.qp = &q->ibv;
			return true;
		}
	return false;
}

int
urn_sv_get_async_event(struct ibv_context *c, struct ibv_async_event *event)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(c);
	bool got;
	uint64_t n;

	if (urn_sv_forked(ctx) != 0)
		return -1;
	do {
		if (read(c->async_fd, &n, sizeof(n)) != (ssize_t)sizeof(n))
			return -1;
		urn_sv_lock(ctx);
		got = urn_sv_event_take(ctx, event);
		urn_sv_unlock(ctx);
	} while (!got); /* its queue was destroyed meanwhile */
	return 0;
}

/* ---- queue pairs */

int
urn_sv_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		struct ibv_qp_init_attr *init)
{
	struct urn_sv_qp *q = (struct urn_sv_qp *)ibqp;
	struct urn_sv_path *p;
	int err;

	urn_sv_lock(q->ctx);
	p = q->mode == URN_SV_SESSION ? urn_sv_used(q) : &q->path[0];
	for (uint32_t i = 0; p->real == NULL && i < URN_SV_PATHS; i++)
		p = &q->path[i]; /* the path in use is being made anew */
	err = p->real != NULL ? ibv_query_qp(p->real, attr, mask, init) : urn_sv_gone(q);
	if (err == 0 && q->can) {
		attr->cap = init->cap = q->cap;
		attr->max_dest_rd_atomic = q->peer_reads;
		init->sq_sig_all = q->sig_all;
	}
	if (err == 0 && q->mode == URN_SV_SESSION) {
		/* The queue pair lives as long as the connection does. */
		attr->qp_state = attr->cur_qp_state =
			q->c.state == URN_SESS_DEAD ? IBV_QPS_ERR : ibqp->state;
		attr->dest_qp_num = q->peer.number;
	}
	urn_sv_unlock(q->ctx);
	return err;
}
