/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attaches the nodes of urnic-perf, and settles their path MTU.
 */
#include "perf.h"

#include <string.h>

#include <urnic/attach.h>

#include "common/node.h"
#include "common/session.h"

/*
 * Contexts of node A and B that were asked for their MTU, until perf_attach() hands
 * them out; owner: the main thread. A node attaches once, so that a dataplane counts
 * one client for the node.
 */
static struct ibv_context *asked[2];

struct ibv_context *
perf_attach_other(const char *attach, const char *name, struct urn_err *err)
{
	struct ibv_context *ctx = urn_node_context(NULL, 0, attach, name, err);

	if (ctx == NULL)
		urn_err_set(err, "cannot attach to the dataplane: %s", urn_attach_error());
	return ctx;
}

struct ibv_context *
perf_attach(const struct perf_opts *o, struct urn_dp *dp, unsigned int index, struct urn_err *err)
{
	const char *name = o->node[index][0] != '\0' ? o->node[index] : NULL;
	struct ibv_context *ctx;

	if (dp == NULL && asked[index] != NULL) {
		ctx = asked[index];
		asked[index] = NULL;
		return ctx;
	}
	if (o->session != NULL)
		return urn_session_open(err);
	return dp != NULL ? urn_node_context(dp, index, NULL, name, err)
			  : perf_attach_other(o->attach, name, err);
}

int
perf_settle_mtu(struct perf_opts *o, struct urn_err *err)
{
	unsigned int first = o->role == PERF_LISTENS ? 1 : 0, last = o->role == PERF_ASKS ? 0 : 1;

	for (unsigned int i = first; i <= last; i++) {
		struct ibv_context *ctx = perf_attach(o, NULL, i, err);
		struct ibv_port_attr port;
		const char *name;
		int rc;

		if (ctx == NULL)
			return -1;
		asked[i] = ctx;
		name = ibv_get_device_name(ctx->device);
		rc = ibv_query_port(ctx, 1, &port);
		if (rc != 0)
			urn_err_set(err, "cannot ask %s for its port: %s", name, strerror(rc));
		if (rc != 0 || perf_options_mtu(o, 128u << port.active_mtu, name, err) != 0)
			return -1;
	}
	return 0;
}
