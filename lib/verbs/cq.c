/* SPDX-License-Identifier: BSD-3-Clause */
/* Making, resizing and destroying completion queues; poll.c reads them. */
#include "verbs/verbs_priv.h"

#include "attach/pipe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Common form of the two calls that create a queue. */
struct urn_cq_want {
	uint32_t cqe;
	uint32_t vector;
	void *cq_context;
	struct ibv_comp_channel *channel;
	bool single;
};

/* Count a queue of the channel, and keep room in the pipe for one or two unread events of each. */
static void
urn_channel_use(struct ibv_comp_channel *channel)
{
	if (channel == NULL)
		return;
	pthread_mutex_lock(&channel->context->mutex);
	channel->refcnt++;
	urn_pipe_reserve(((struct urn_channel *)channel)->way.write_fd, 2 * (unsigned int)channel->refcnt);
	pthread_mutex_unlock(&channel->context->mutex);
}

static void
urn_channel_unuse(struct ibv_comp_channel *channel)
{
	if (channel == NULL)
		return;
	pthread_mutex_lock(&channel->context->mutex);
	channel->refcnt--;
	pthread_mutex_unlock(&channel->context->mutex);
}

static int
urn_cq_ask(struct urn_cq *cq, struct urn_dev *dev, const struct urn_cq_want *want)
{
	struct urn_abi_req req = {.op = URN_CTL_CREATE_CQ};
	struct urn_abi_rep rep;
	int err;

	req.create_cq.cqe = want->cqe;
	req.create_cq.comp_vector = want->vector;
	req.create_cq.channel_fd = want->channel ? ((struct urn_channel *)want->channel)->handle : -1;
	req.create_cq.cookie = cq->ticket;
	err = urn_dev_call(dev, &req, &rep);
	if (err != 0)
		return err;
	cq->ibv.handle = rep.handle;
	cq->ibv.cqe = (int)rep.queue.entries;
	urn_cq_map(cq, dev, rep.queue.off, rep.queue.entries);
	return 0;
}

static struct urn_cq *
urn_cq_create(struct ibv_context *c, const struct urn_cq_want *want)
{
	struct urn_ctx *ctx = urn_ctx(c);
	struct urn_cq *cq = urn_object_alloc(sizeof(*cq));

	if (cq == NULL)
		return NULL;
	cq->ibv.context = c;
	cq->ibv.channel = want->channel;
	cq->ibv.cq_context = want->cq_context;
	cq->single = want->single;
	cq->ticket = urn_objs_put(&ctx->objs, URN_OBJ_CQ, cq);
	if (cq->ticket == 0)
		goto err_free;
	if (urn_cq_ask(cq, &ctx->dev, want) != 0)
		goto err_take;
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	urn_channel_use(want->channel);
	return cq;

err_take:
	urn_objs_take(&ctx->objs, cq->ticket);
err_free:
	free(cq);
	return NULL;
}

/* Checks that need no answer of the dataplane. */
static int
urn_cq_check(struct ibv_context *c, int64_t cqe, int64_t vector)
{
	const struct urn_abi_device *d = &urn_ctx_dev(c)->info;

	if (cqe < 1 || cqe > d->max_cqe)
		return urn_fail(EINVAL, "a completion queue of %lld entries; 1 to %u can be had",
			(long long)cqe, d->max_cqe);
	if (vector < 0 || vector >= c->num_comp_vectors)
		return urn_fail(EINVAL, "completion vector %lld; the device has 0 to %d",
			(long long)vector, c->num_comp_vectors - 1);
	return 0;
}

struct ibv_cq *
ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
	struct ibv_comp_channel *channel, int comp_vector)
{
	struct urn_cq_want want = {
		.cqe = (uint32_t)cqe,
		.vector = (uint32_t)comp_vector,
		.cq_context = cq_context,
		.channel = channel,
	};
	struct urn_cq *cq;

	if (urn_cq_check(context, cqe, comp_vector) != 0)
		return NULL;
	cq = urn_cq_create(context, &want);
	return cq == NULL ? NULL : &cq->ibv;
}

struct ibv_cq_ex *
urn_create_cq_ex(struct ibv_context *c, struct ibv_cq_init_attr_ex *attr)
{
	struct urn_cq_want want = {
		.cqe = attr->cqe,
		.vector = attr->comp_vector,
		.cq_context = attr->cq_context,
		.channel = attr->channel,
	};
	struct urn_cq *cq;

	if (attr->comp_mask & ~(uint32_t)IBV_CQ_INIT_ATTR_MASK_FLAGS) {
		urn_unsupported("a completion queue in a parent domain");
		return NULL;
	}
	if (attr->wc_flags & ~(uint64_t)IBV_WC_STANDARD_FLAGS) {
		urn_unsupported("completion fields beyond the standard ones (timestamps, VLAN, tags)");
		return NULL;
	}
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) {
		if (attr->flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED) {
			urn_unsupported("a completion queue that ignores overruns");
			return NULL;
		}
		want.single = attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	}
	if (urn_cq_check(c, attr->cqe, attr->comp_vector) != 0)
		return NULL;
	cq = urn_cq_create(c, &want);
	if (cq == NULL)
		return NULL;
	urn_cq_init_poll(cq);
	return &cq->ex;
}

int
ibv_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct urn_abi_req req = {.op = URN_CTL_RESIZE_CQ, .handle = ibcq->handle};
	struct urn_dev *dev = urn_ctx_dev(ibcq->context);
	struct urn_cq *cq = urn_cq(ibcq);
	struct urn_abi_rep rep;
	uint64_t off;
	uint32_t entries;
	int err = urn_cq_check(ibcq->context, cqe, 0);

	if (err != 0)
		return err;
	if (urn_cq_resize_begin(cq) != 0)
		return urn_fail(EBUSY, "another thread is resizing this completion queue");
	req.resize_cq.cqe = (uint32_t)cqe;
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
ibv_destroy_cq(struct ibv_cq *ibcq)
{
	struct urn_ctx *ctx = urn_ctx(ibcq->context);
	struct urn_cq *cq = urn_cq(ibcq);
	int err = urn_dev_call_handle(&ctx->dev, URN_CTL_DESTROY_CQ, ibcq->handle);

	if (err != 0)
		return err;
	urn_objs_take(&ctx->objs, cq->ticket);
	urn_events_wait(&ctx->dev, &ibcq->mutex, &ibcq->cond, &ibcq->comp_events_completed, cq->comp_got);
	urn_events_wait(&ctx->dev, &ibcq->mutex, &ibcq->cond, &ibcq->async_events_completed, cq->async_got);
	urn_channel_unuse(ibcq->channel);
	pthread_cond_destroy(&ibcq->cond);
	pthread_mutex_destroy(&ibcq->mutex);
	free(cq->dead);
	free(cq->made_up);
	free(cq);
	return 0;
}
