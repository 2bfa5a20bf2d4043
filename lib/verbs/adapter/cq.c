/* SPDX-License-Identifier: BSD-3-Clause */
/* Making, resizing and destroying completion queues; poll.c reads them. */
#include "verbs/adapter/adapter.h"

#include "attach/pipe.h"

#include <stdlib.h>

/* Keep room in the channel's pipe for one or two unread events of each of its queues. */
static void
urn_channel_reserve(struct ibv_comp_channel *channel)
{
	if (channel == NULL)
		return;
	pthread_mutex_lock(&channel->context->mutex);
	urn_pipe_reserve(((struct urn_channel *)channel)->way.write_fd, 2 * (unsigned int)channel->refcnt);
	pthread_mutex_unlock(&channel->context->mutex);
}

static int
urn_cq_ask(struct urn_adapter_cq *cq, struct urn_ctx *ctx, const struct ibv_cq_init_attr_ex *attr)
{
	struct urn_abi_req req = {.op = URN_CTL_CREATE_CQ};
	struct urn_dev *dev = &ctx->dev;
	struct urn_abi_rep rep;
	int err;

	req.create_cq.cqe = attr->cqe;
	req.create_cq.comp_vector = attr->comp_vector;
	req.create_cq.channel_fd = attr->channel ? ((struct urn_channel *)attr->channel)->handle : -1;
	req.create_cq.cookie = cq->ticket;
	req.create_cq.beside = urn_dev_has(dev, URN_ABI_FEATURE_BESIDE);
	err = urn_dev_call(dev, &req, &rep);
	if (err != 0)
		return err;
	cq->ibv.handle = rep.handle;
	cq->ibv.cqe = (int)rep.queue.entries;
	urn_cq_map(cq, dev, rep.queue.off, rep.queue.entries);
	if (req.create_cq.beside && rep.queue.beside) {
		/* Other threads find the queue in the table. */
		pthread_mutex_lock(&ctx->objs.lock);
		cq->beside = urn_cq_beside(cq);
		pthread_mutex_unlock(&ctx->objs.lock);
		atomic_store(&ctx->has_beside, true);
	}
	return 0;
}

struct ibv_cq_ex *
urn_create_cq(struct ibv_context *c, const struct ibv_cq_init_attr_ex *attr)
{
	struct urn_ctx *ctx = urn_ctx(c);
	struct urn_adapter_cq *cq = urn_object_alloc(sizeof(*cq));

	if (cq == NULL)
		return NULL;
	cq->single = (attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0;
	cq->ticket = urn_objs_put(&ctx->objs, URN_OBJ_CQ, cq);
	if (cq->ticket == 0)
		goto err_free;
	if (urn_cq_ask(cq, ctx, attr) != 0)
		goto err_take;
	urn_cq_init_poll(cq, attr->wc_flags);
	urn_channel_reserve(attr->channel);
	return &cq->ex;

err_take:
	urn_objs_take(&ctx->objs, cq->ticket);
err_free:
	free(cq);
	return NULL;
}

int
urn_resize_cq(struct ibv_cq *ibcq, uint32_t cqe)
{
	struct urn_abi_req req = {.op = URN_CTL_RESIZE_CQ, .handle = ibcq->handle};
	struct urn_dev *dev = urn_ctx_dev(ibcq->context);
	struct urn_adapter_cq *cq = urn_cq(ibcq);
	struct urn_abi_rep rep;
	uint64_t off;
	uint32_t entries;
	int err;

	if (urn_cq_resize_begin(cq) != 0)
		return urn_fail(EBUSY, "another thread is resizing this completion queue");
	req.resize_cq.cqe = cqe;
	err = urn_dev_call(dev, &req, &rep);
	if (err == 0) {
		off = rep.queue.off;
		entries = rep.queue.entries;
	} else {
		off = (uint64_t)((uint8_t *)cq->hdr - dev->area);
		entries = cq->entries;
		/* The resize was done, and the dataplane died before it answered. */
		if (err == EIO && atomic_load(&cq->hdr->moved_entries) != 0) {
			entries = atomic_load(&cq->hdr->moved_entries);
			off = cq->hdr->moved_off;
		}
	}
	urn_cq_resize_end(cq, dev, off, entries);
	return err;
}

int
urn_destroy_cq(struct ibv_cq *ibcq)
{
	struct urn_ctx *ctx = urn_ctx(ibcq->context);
	struct urn_adapter_cq *cq = urn_cq(ibcq);
	int err = urn_dev_call_handle(&ctx->dev, URN_CTL_DESTROY_CQ, ibcq->handle);

	if (err != 0)
		return err;
	urn_objs_take(&ctx->objs, cq->ticket);
	urn_events_wait(&ctx->dev, &ibcq->mutex, &ibcq->cond, &ibcq->comp_events_completed, cq->comp_got);
	urn_events_wait(&ctx->dev, &ibcq->mutex, &ibcq->cond, &ibcq->async_events_completed, cq->async_got);
	free(cq->dead);
	free(cq->made_up);
	return 0;
}
