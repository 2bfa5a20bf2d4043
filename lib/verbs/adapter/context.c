/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing an adapter, and the table of what can be done with it. */
#include "verbs/adapter/adapter.h"
#include "verbs/adapter/copy.h"

#include "attach/pipe.h"
#include "attach/remote.h"
#include "attach/share/share.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Make the async pipe, and hand it to the dataplane. */
static int
urn_context_async(struct urn_ctx *ctx)
{
	struct urn_abi_req req = {.op = URN_CTL_ASYNC_FD};
	struct urn_abi_rep rep;
	int32_t handle;
	int err = urn_pipe_make(&ctx->dev, URN_CTL_ASYNC_FD, &ctx->front.vctx.context.async_fd,
		&ctx->async_write_fd, &handle);

	if (err != 0 || ctx->dev.channel->pipe != NULL)
		return err;
	req.async_fd.fd = ctx->async_write_fd;
	err = urn_dev_call(&ctx->dev, &req, &rep);
	if (err != 0) {
		close(ctx->front.vctx.context.async_fd);
		close(ctx->async_write_fd);
	}
	return err;
}

/* Tell the front the facts of an adapter. */
static void
urn_context_tell(const struct urn_dev *dev, struct urn_verbs_ctx *front)
{
	memcpy(front->id.name, dev->info.name, sizeof(front->id.name));
	front->id.guid = dev->info.node_guid;
	front->gids = dev->info.gids;
	front->max_cqe = dev->info.max_cqe;
	front->wc_flags = URN_WC_EXTRA;
	front->vctx.context.num_comp_vectors = (int)dev->info.engines;
}

/* arg: struct urn_abi_channel */
static struct urn_verbs_ctx *
urn_context_open(void *arg)
{
	struct urn_ctx *ctx = urn_object_alloc(sizeof(*ctx));
	struct urn_abi_channel *channel = arg;

	if (ctx == NULL) {
		channel->close(channel->ctx);
		return NULL;
	}
	if (urn_dev_open(&ctx->dev, channel) != 0)
		goto err_free;
	if (urn_context_async(ctx) != 0)
		goto err_close;
	urn_objs_init(&ctx->objs);
	pthread_mutex_init(&ctx->cm_lock, NULL);
	ctx->pid = getpid();
	urn_context_tell(&ctx->dev, &ctx->front);
	if (urn_copy_open(ctx) != 0)
		goto err_watch;
	if (urn_gone_watch(ctx) != 0)
		goto err_copy;
	return &ctx->front;

err_copy:
	urn_copy_close(ctx);
err_watch:
	close(ctx->front.vctx.context.async_fd);
	close(ctx->async_write_fd);
	pthread_mutex_destroy(&ctx->cm_lock);
	urn_objs_fini(&ctx->objs);
err_close:
	urn_dev_close(&ctx->dev);
err_free:
	free(ctx);
	return NULL;
}

static void
urn_context_close(struct ibv_context *context)
{
	struct urn_ctx *ctx = urn_ctx(context);

	urn_gone_unwatch(ctx);
	urn_share_part(&ctx->dev);
	/* The dataplane goes first, because it writes to the pipe, and to shared pages. */
	urn_dev_close(&ctx->dev);
	urn_share_leave(&ctx->dev);
	urn_gone_leave_all(ctx);
	close(context->async_fd);
	close(ctx->async_write_fd);
	pthread_mutex_destroy(&ctx->cm_lock);
	urn_objs_fini(&ctx->objs);
	urn_polled_close(&ctx->polled);
	urn_copy_close(ctx);
	free(ctx);
}

/* arg: struct urn_abi_channel */
static int
urn_context_identify(void *arg, struct urn_verbs_id *id)
{
	struct urn_verbs_ctx told;
	struct urn_dev dev;
	int err = urn_dev_open(&dev, arg);

	if (err != 0)
		return err;
	urn_dev_close(&dev);
	urn_context_tell(&dev, &told);
	*id = told.id;
	return 0;
}

/* A channel of a device on offer. */
static void *
urn_context_make(const struct urn_verbs_origin *from)
{
	return ((urn_attach_make_fn)from->make)(from->arg);
}

const struct urn_verbs_ops urn_adapter_ops = {
	.discover = urn_discover,
	.discover_forked = urn_discover_forked,
	.make = urn_context_make,
	.identify = urn_context_identify,
	.open = urn_context_open,
	.close = urn_context_close,
	.query_device = urn_query_device,
	.query_port = urn_query_port,
	.query_gid = urn_query_gid,
	.get_async_event = urn_get_async_event,
	.raise_event = urn_raise_event,
	.cmd_fd = urn_context_proof,
	.join = urn_context_join,
	.import_pd = urn_import_pd,
	.import_mr = urn_import_mr,
	.alloc_pd = urn_alloc_pd,
	.dealloc_pd = urn_dealloc_pd,
	.reg_mr = urn_reg_mr,
	.dereg_mr = urn_dereg_mr,
	.rereg_mr = urn_rereg_mr,
	.alloc_mw = urn_alloc_mw,
	.dealloc_mw = urn_dealloc_mw,
	.create_ah = urn_create_ah,
	.destroy_ah = urn_destroy_ah,
	.create_comp_channel = urn_create_comp_channel,
	.destroy_comp_channel = urn_destroy_comp_channel,
	.get_cq_event = urn_get_cq_event,
	.create_cq = urn_create_cq,
	.resize_cq = urn_resize_cq,
	.destroy_cq = urn_destroy_cq,
	.create_srq = urn_create_srq,
	.modify_srq = urn_modify_srq,
	.query_srq = urn_query_srq,
	.destroy_srq = urn_destroy_srq,
	.create_qp = urn_create_qp,
	.modify_qp = urn_modify_qp,
	.connect_qp = urn_connect_qp,
	.query_qp = urn_query_qp,
	.destroy_qp = urn_destroy_qp,
	.mcast = urn_qp_mcast,
	.align_qp = urn_align_qp,
	.explain = urn_explain_error,
	.query_stores = urn_query_stores,
	.post_send = urn_post_send,
	.post_recv = urn_post_recv,
	.post_srq_recv = urn_post_srq_recv,
	.bind_mw = urn_bind_mw,
	.poll_cq = urn_poll_cq,
	.req_notify_cq = urn_req_notify_cq,
	.cm = &urn_adapter_cm_ops,
};

struct urn_verbs_origin
urn_adapter_origin(urn_attach_make_fn make, void *arg)
{
	return (struct urn_verbs_origin){&urn_adapter_ops, (void (*)(void))make, arg};
}
