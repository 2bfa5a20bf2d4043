/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Links (FO-10, FO-11). The loss of an adapter's link counts as the loss of the adapter:
 * connections leave its paths at once, and do not wait until retries are used up. The dataplane
 * lives on, so nothing is made anew but the queue pairs of paths, once the link is up.
 *
 * A connection stays where it is when no other adapter could carry it: a link that is back within
 * the time of the retries costs nothing then, and a switch that takes all links down for a moment
 * ends no connection.
 */
#include "abi/clock.h"
#include "verbs/front.h"
#include "verbs/session/heal.h"
#include "verbs/session/log.h"

bool
urn_sv_link_up(const struct urn_sv_ctx *ctx, uint32_t adapter)
{
	struct ibv_context *c = ctx->below[adapter];
	struct ibv_port_attr attr = {0};

	return urn_ops(c)->query_port(c, &attr) != 0 || attr.state != IBV_PORT_DOWN;
}

/* True when a connection has a path alive on an adapter whose link is up. */
static bool
urn_sv_link_spare(struct urn_sv_qp *q)
{
	for (uint32_t i = 0; i < URN_SV_PATHS; i++)
		if ((q->c.alive & 1u << urn_sv_bit(q, i)) && !q->ctx->dead[q->path[i].mine] &&
		    !q->ctx->down[q->path[i].mine])
			return true;
	return false;
}

void
urn_sv_link_leave(struct urn_sv_qp *q)
{
	for (uint32_t i = 0; i < URN_SV_PATHS && urn_sv_link_spare(q); i++) {
		const uint32_t bit = urn_sv_bit(q, i), mine = q->path[i].mine;

		if (!q->ctx->down[mine] || q->ctx->dead[mine] || !(q->c.alive & 1u << bit))
			continue;
		q->why = mine == 0 ? "the link of the primary adapter is down"
				   : "the link of the backup adapter is down";
		urn_sv_down(q, bit);
	}
}

void
urn_sv_link(struct urn_sv_ctx *ctx, uint32_t adapter, bool up)
{
	const struct urn_verbs_ctx *c = urn_verbs_ctx(ctx->below[adapter]);
	uint64_t seen = atomic_load(&c->port_seen), now = urn_clock_ns();
	struct urn_sv_qp *q;

	if (ctx->dead[adapter] || ctx->down[adapter] == !up)
		return;
	ctx->down[adapter] = !up;
	urn_sv_log_device(ctx, up ? URN_SV_E_LINK_UP : URN_SV_E_LINK_DOWN,
			  "adapter %s has its link %s, noticed after us=%llu at most", c->id.name,
			  up ? "up" : "down",
			  (unsigned long long)(seen != 0 && seen <= now ? (now - seen) / 1000 : 0));
	LIST_FOREACH(q, &ctx->qps, link)
		if (q->mode == URN_SV_SESSION)
			urn_sv_link_leave(q);
}
