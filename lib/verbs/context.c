/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs/copy.h"
#include "verbs/verbs_priv.h"

#include "attach/pipe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(offsetof(struct verbs_context, context) + sizeof(struct ibv_context) ==
	sizeof(struct verbs_context), "verbs.h finds the extended operations before the context");

void *
urn_object_alloc(size_t size)
{
	void *p;

	size = (size + URN_ABI_CACHE_LINE - 1) & ~(size_t)(URN_ABI_CACHE_LINE - 1);
	p = aligned_alloc(URN_ABI_CACHE_LINE, size);
	if (p == NULL)
		urn_fail(ENOMEM, "no memory for an object of %zu bytes", size);
	else
		memset(p, 0, size);
	return p;
}

int
urn_unsupported(const char *what)
{
	return urn_fail(EOPNOTSUPP, "%s: urnic has no such thing", what);
}

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
urn_context_ops(struct verbs_context *v)
{
	v->query_port = urn_query_port;
	v->query_device_ex = urn_query_device_ex;
	v->create_cq_ex = urn_create_cq_ex;
	v->create_qp_ex = urn_create_qp_ex;
	v->create_srq_ex = urn_create_srq_ex;
	v->close_xrcd = urn_close_xrcd;
	v->sz = sizeof(*v);
	v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	v->context.ops.poll_cq = urn_poll_cq;
	v->context.ops.req_notify_cq = urn_req_notify_cq;
	v->context.ops.post_send = urn_post_send;
	v->context.ops.post_recv = urn_post_recv;
	v->context.ops.post_srq_recv = urn_post_srq_recv;
	v->context.ops.alloc_mw = urn_alloc_mw;
	v->context.ops.dealloc_mw = urn_dealloc_mw;
	v->context.ops.bind_mw = urn_bind_mw;
}

/* Make the async pipe, and hand it to the dataplane. */
static int
urn_context_async(struct urn_ctx *ctx)
{
	struct urn_abi_req req = {.op = URN_CTL_ASYNC_FD};
	struct urn_abi_rep rep;
	int32_t handle;
	int err = urn_pipe_make(&ctx->dev, URN_CTL_ASYNC_FD, &ctx->vctx.context.async_fd,
		&ctx->async_write_fd, &handle);

	if (err != 0 || ctx->dev.channel->pipe != NULL)
		return err;
	req.async_fd.fd = ctx->async_write_fd;
	err = urn_dev_call(&ctx->dev, &req, &rep);
	if (err != 0) {
		close(ctx->vctx.context.async_fd);
		close(ctx->async_write_fd);
	}
	return err;
}

struct ibv_context *
urn_context_open(struct urn_abi_channel *channel, struct urn_device *device)
{
	struct urn_ctx *ctx = urn_object_alloc(sizeof(*ctx));

	if (ctx == NULL) {
		channel->close(channel->ctx);
		goto err_put;
	}
	if (urn_dev_open(&ctx->dev, channel) != 0)
		goto err_free;
	if (device == NULL)
		device = urn_device_make(&ctx->dev.info);
	if (device == NULL)
		goto err_close;
	ctx->device = device;
	if (urn_context_async(ctx) != 0)
		goto err_close;
	urn_objs_init(&ctx->objs);
	urn_context_ops(&ctx->vctx);
	ctx->vctx.context.device = &device->ibv;
	ctx->vctx.context.cmd_fd = -1;
	ctx->vctx.context.num_comp_vectors = (int)ctx->dev.info.engines;
	pthread_mutex_init(&ctx->vctx.context.mutex, NULL);
	if (urn_copy_open(ctx) != 0)
		goto err_watch;
	if (urn_gone_watch(ctx) != 0)
		goto err_copy;
	return &ctx->vctx.context;

err_copy:
	urn_copy_close(ctx);
err_watch:
	close(ctx->vctx.context.async_fd);
	close(ctx->async_write_fd);
	urn_objs_fini(&ctx->objs);
err_close:
	urn_dev_close(&ctx->dev);
err_free:
	free(ctx);
err_put:
	if (device != NULL)
		urn_device_put(device);
	return NULL;
}

struct ibv_context *
urn_attach_open(struct urn_abi_channel *channel)
{
	if (channel == NULL) {
		urn_fail(EINVAL, "no channel to open a context on");
		return NULL;
	}
	return urn_context_open(channel, NULL);
}

int
ibv_close_device(struct ibv_context *context)
{
	struct urn_ctx *ctx = urn_ctx(context);

	urn_gone_unwatch(ctx);
	/* The dataplane goes first, because it writes to the pipe. */
	urn_dev_close(&ctx->dev);
	urn_gone_leave_all(ctx);
	close(context->async_fd);
	close(ctx->async_write_fd);
	urn_objs_fini(&ctx->objs);
	urn_copy_close(ctx);
	pthread_mutex_destroy(&context->mutex);
	urn_device_put(ctx->device);
	free(ctx);
	return 0;
}
