/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion channels and events, and the acknowledgement of events by programs. */
#include "verbs/front.h"

#include <errno.h>
#include <stdlib.h>

struct ibv_comp_channel *
ibv_create_comp_channel(struct ibv_context *context)
{
	struct ibv_comp_channel *channel = urn_ops(context)->create_comp_channel(context);

	if (channel != NULL)
		channel->context = context;
	return channel;
}

int
ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	int users, err;

	pthread_mutex_lock(&channel->context->mutex);
	users = channel->refcnt;
	pthread_mutex_unlock(&channel->context->mutex);
	if (users != 0)
		return urn_fail(EBUSY, "%d completion queues still use this channel", users);
	err = urn_ops(channel->context)->destroy_comp_channel(channel);
	if (err == 0)
		free(channel);
	return err;
}

int
ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	int err = urn_ops(channel->context)->get_cq_event(channel, cq);

	if (err == 0)
		*cq_context = (*cq)->cq_context;
	return err;
}

int
ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	return urn_ops(context)->get_async_event(context, event);
}

static void
urn_events_ack(pthread_mutex_t *lock, pthread_cond_t *cond, uint32_t *acked, uint32_t n)
{
	pthread_mutex_lock(lock);
	*acked += n;
	pthread_cond_broadcast(cond);
	pthread_mutex_unlock(lock);
}

void
ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	urn_events_ack(&cq->mutex, &cq->cond, &cq->comp_events_completed, nevents);
}

void
ibv_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_srq *srq = event->element.srq;
	struct ibv_cq *cq = event->element.cq;
	struct ibv_qp *qp = event->element.qp;

	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		urn_events_ack(&cq->mutex, &cq->cond, &cq->async_events_completed, 1);
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		urn_events_ack(&qp->mutex, &qp->cond, &qp->events_completed, 1);
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		urn_events_ack(&srq->mutex, &srq->cond, &srq->events_completed, 1);
		break;
	default: /* a port's events have no object that waits for acknowledgement */
		break;
	}
}
