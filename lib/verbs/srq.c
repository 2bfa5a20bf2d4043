/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues. */
#include "verbs/front.h"

#include <errno.h>
#include <stdlib.h>

static struct ibv_srq *
urn_verbs_create_srq(struct ibv_pd *pd, void *context, struct ibv_srq_attr *attr, const struct ibv_cq *cq)
{
	struct ibv_srq *srq = urn_ops(pd->context)->create_srq(urn_pd_use(pd), attr, cq);

	if (srq == NULL) {
		urn_pd_leave(pd);
		return NULL;
	}
	srq->context = pd->context;
	srq->srq_context = context;
	srq->pd = pd;
	pthread_mutex_init(&srq->mutex, NULL);
	pthread_cond_init(&srq->cond, NULL);
	return srq;
}

struct ibv_srq *
ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	return urn_verbs_create_srq(pd, attr->srq_context, &attr->attr, NULL);
}

struct ibv_srq *
urn_verbs_create_srq_ex(struct ibv_context *c, struct ibv_srq_init_attr_ex *attr)
{
	const uint32_t known = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ;
	const struct ibv_cq *cq = attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ ? attr->cq : NULL;

	(void)c;
	if ((attr->comp_mask & ~known) != 0 ||
	    ((attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) && attr->srq_type != IBV_SRQT_BASIC)) {
		urn_unsupported("a shared receive queue other than the basic kind (XRC, tag matching)");
		return NULL;
	}
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || attr->pd == NULL) {
		urn_fail(EINVAL, "a shared receive queue needs a protection domain");
		return NULL;
	}
	return urn_verbs_create_srq(attr->pd, attr->srq_context, &attr->attr, cq);
}

int
ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	if (mask & IBV_SRQ_MAX_WR)
		return urn_unsupported("changing the size of a shared receive queue");
	if (mask & ~IBV_SRQ_LIMIT)
		return urn_fail(EINVAL,
				"mask 0x%x names attributes that a shared receive queue has not",
				(unsigned int)mask);
	return urn_ops(srq->context)->modify_srq(srq, attr, mask);
}

int
ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	return urn_ops(srq->context)->query_srq(srq, attr);
}

int
ibv_destroy_srq(struct ibv_srq *srq)
{
	int err = urn_ops(srq->context)->destroy_srq(srq);

	if (err != 0)
		return err;
	urn_pd_leave(srq->pd);
	pthread_cond_destroy(&srq->cond);
	pthread_mutex_destroy(&srq->mutex);
	free(srq);
	return 0;
}
