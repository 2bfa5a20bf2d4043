/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues. */
#include "verbs/front.h"
#include "verbs/polled_errors.h"

#include <errno.h>
#include <stdlib.h>

/* Count a queue of the channel, or with -1 one less. */
static void
urn_channel_use(struct ibv_comp_channel *channel, int n)
{
	if (channel == NULL)
		return;
	pthread_mutex_lock(&channel->context->mutex);
	channel->refcnt += n;
	pthread_mutex_unlock(&channel->context->mutex);
}

/* Check numbers against what the context has. */
static int
urn_cq_check(struct ibv_context *c, int64_t cqe, int64_t vector)
{
	uint32_t most = urn_verbs_ctx(c)->max_cqe;

	if (cqe < 1 || cqe > most)
		return urn_fail(EINVAL, "a completion queue of %lld entries; 1 to %u can be had",
			(long long)cqe, most);
	if (vector < 0 || vector >= c->num_comp_vectors)
		return urn_fail(EINVAL, "completion vector %lld; the device has 0 to %d",
			(long long)vector, c->num_comp_vectors - 1);
	return 0;
}

/* want: in range, and possible. */
static struct ibv_cq_ex *
urn_verbs_create_cq(struct ibv_context *c, const struct ibv_cq_init_attr_ex *want)
{
	struct ibv_cq_ex *cq;

	urn_channel_use(want->channel, 1);
	cq = urn_ops(c)->create_cq(c, want);
	if (cq == NULL) {
		urn_channel_use(want->channel, -1);
		return NULL;
	}
	cq->context = c;
	cq->channel = want->channel;
	cq->cq_context = want->cq_context;
	pthread_mutex_init(&cq->mutex, NULL);
	pthread_cond_init(&cq->cond, NULL);
	if (urn_polled_errors_wanted())
		urn_polled_errors_add(cq);
	return cq;
}

struct ibv_cq *
ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
	struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_cq_init_attr_ex want = {
		.cqe = (uint32_t)cqe,
		.comp_vector = (uint32_t)comp_vector,
		.cq_context = cq_context,
		.channel = channel,
	};

	if (urn_cq_check(context, cqe, comp_vector) != 0)
		return NULL;
	/* The extended queue begins like the plain one. */
	return (struct ibv_cq *)urn_verbs_create_cq(context, &want);
}

struct ibv_cq_ex *
urn_verbs_create_cq_ex(struct ibv_context *c, struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_cq_init_attr_ex want = {
		.cqe = attr->cqe,
		.comp_vector = attr->comp_vector,
		.cq_context = attr->cq_context,
		.channel = attr->channel,
		.wc_flags = attr->wc_flags,
	};

	if (attr->comp_mask & ~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)) {
		urn_unsupported("a completion queue with unknown attributes");
		return NULL;
	}
	if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) &&
	    !urn_pd_is_parent(attr->parent_domain)) {
		urn_fail(EINVAL, "a completion queue can be in a parent domain only");
		return NULL;
	}
	if (attr->wc_flags & ~((uint64_t)IBV_WC_STANDARD_FLAGS | urn_verbs_ctx(c)->wc_flags)) {
		urn_unsupported(
			"completion fields beyond the standard ones and timestamps (VLAN, tags)");
		return NULL;
	}
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) {
		if (attr->flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED) {
			urn_unsupported("a completion queue that ignores overruns");
			return NULL;
		}
		want.flags = attr->flags;
	}
	if (urn_cq_check(c, attr->cqe, attr->comp_vector) != 0)
		return NULL;
	return urn_verbs_create_cq(c, &want);
}

int
ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	int err = urn_cq_check(cq->context, cqe, 0);

	return err != 0 ? err : urn_ops(cq->context)->resize_cq(cq, (uint32_t)cqe);
}

int
ibv_destroy_cq(struct ibv_cq *cq)
{
	int err = urn_ops(cq->context)->destroy_cq(cq);

	if (err != 0)
		return err;
	urn_channel_use(cq->channel, -1);
	pthread_cond_destroy(&cq->cond);
	pthread_mutex_destroy(&cq->mutex);
	if (urn_polled_errors_wanted())
		urn_polled_errors_remove((struct ibv_cq_ex *)cq);
	free(cq);
	return 0;
}
