/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing contexts. */
#include "verbs/fault/fault.h"
#include "verbs/front.h"
#include "verbs/polled_errors.h"
#include "verbs/provider/registry.h"

#include <errno.h>
#include <unistd.h>

_Static_assert(offsetof(struct verbs_context, context) + sizeof(struct ibv_context) ==
	sizeof(struct verbs_context), "verbs.h finds the extended operations before the context");

static int
urn_close_xrcd(struct ibv_xrcd *xrcd)
{
	(void)xrcd;
	return urn_unsupported("XRC domains");
}

/*
 * verbs.h itself answers EOPNOTSUPP for operations that are NULL, except close_xrcd, which it
 * calls without a check.
 */
static void
urn_context_ops(struct verbs_context *v, const struct urn_verbs_ops *ops)
{
	v->query_port = urn_verbs_query_port;
	v->query_device_ex = urn_verbs_query_device_ex;
	v->create_cq_ex = urn_verbs_create_cq_ex;
	v->create_qp_ex = urn_verbs_create_qp_ex;
	v->create_srq_ex = urn_verbs_create_srq_ex;
	v->close_xrcd = urn_close_xrcd;
	v->alloc_td = urn_verbs_alloc_td;
	v->dealloc_td = urn_verbs_dealloc_td;
	v->alloc_parent_domain = urn_verbs_alloc_parent_domain;
	v->query_rt_values = urn_verbs_query_rt_values;
	v->sz = sizeof(*v);
	v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	v->context.ops.poll_cq =
		urn_polled_errors_wanted() ? urn_polled_errors_poll_cq : ops->poll_cq;
	v->context.ops.req_notify_cq = ops->req_notify_cq;
	v->context.ops.post_send = ops->post_send;
	v->context.ops.post_recv = ops->post_recv;
	v->context.ops.post_srq_recv = ops->post_srq_recv;
	v->context.ops.alloc_mw = urn_verbs_alloc_mw;
	v->context.ops.dealloc_mw = urn_verbs_dealloc_mw;
	v->context.ops.bind_mw = ops->bind_mw;
}

struct ibv_context *
urn_verbs_open_device(const struct urn_verbs_ops *ops, void *arg, struct urn_device *device)
{
	struct urn_verbs_ctx *v;

	urn_registry_forks();
	v = ops->open(arg);
	if (v == NULL)
		goto err_put;
	if (device == NULL)
		device = urn_device_make(&v->id);
	if (device == NULL) {
		ops->close(&v->vctx.context);
		return NULL;
	}
	v->ops = ops;
	v->device = device;
	if (urn_faults_above(v) != 0) {
		int err = errno;

		ops->close(&v->vctx.context);
		urn_device_put(device);
		errno = err;
		return NULL;
	}
	urn_context_ops(&v->vctx, v->ops);
	v->vctx.context.device = &device->ibv;
	v->vctx.context.cmd_fd = v->ops->cmd_fd != NULL ? v->ops->cmd_fd(&v->vctx.context) : -1;
	pthread_mutex_init(&v->vctx.context.mutex, NULL);
	return &v->vctx.context;

err_put:
	if (device != NULL)
		urn_device_put(device);
	return NULL;
}

struct ibv_context *
urn_verbs_open(const struct urn_verbs_ops *ops, void *arg)
{
	return urn_verbs_open_device(ops, arg, NULL);
}

int
ibv_close_device(struct ibv_context *context)
{
	struct urn_verbs_ctx *v = urn_verbs_ctx(context);
	struct urn_device *device = v->device;
	int fd = v->imported ? context->cmd_fd : -1;

	pthread_mutex_destroy(&context->mutex);
	v->ops->close(context);
	urn_device_put(device);
	if (fd >= 0)
		close(fd);
	return 0;
}
