/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion channels and asynchronous events: reading them, and counting that
 * each one handed out is acknowledged before its object goes.
 */
#include "verbs/verbs_priv.h"

#include "attach/pipe.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

void
urn_events_wait(pthread_mutex_t *lock, pthread_cond_t *cond, const uint32_t *acked, uint32_t got)
{
	pthread_mutex_lock(lock);
	while (*acked != got)
		pthread_cond_wait(cond, lock);
	pthread_mutex_unlock(lock);
}

static void
urn_events_ack(pthread_mutex_t *lock, pthread_cond_t *cond, uint32_t *acked, uint32_t n)
{
	pthread_mutex_lock(lock);
	*acked += n;
	pthread_cond_broadcast(cond);
	pthread_mutex_unlock(lock);
}

/* ---- completion channels */

struct ibv_comp_channel *
ibv_create_comp_channel(struct ibv_context *context)
{
	struct urn_channel *ch = urn_object_alloc(sizeof(*ch));

	if (ch == NULL)
		return NULL;
	if (urn_pipe_make(urn_ctx_dev(context), URN_CTL_CREATE_CHANNEL, &ch->ibv.fd, &ch->write_fd,
			&ch->handle) != 0) {
		free(ch);
		return NULL;
	}
	ch->ibv.context = context;
	return &ch->ibv;
}

int
ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	struct urn_channel *ch = (struct urn_channel *)channel;
	int users;

	pthread_mutex_lock(&channel->context->mutex);
	users = channel->refcnt;
	pthread_mutex_unlock(&channel->context->mutex);
	if (users != 0)
		return urn_fail(EBUSY, "%d completion queues still use this channel", users);
	if (urn_ctx_dev(channel->context)->channel->pipe != NULL)
		(void)urn_dev_call_handle(urn_ctx_dev(channel->context), URN_CTL_DESTROY_CHANNEL,
			(uint32_t)ch->handle);
	close(ch->ibv.fd);
	close(ch->write_fd);
	free(ch);
	return 0;
}

int
ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	struct urn_objs *objs = &urn_ctx(channel->context)->objs;
	struct urn_abi_event ev;
	struct urn_cq *found;

	/* Events of queues that have been destroyed since are passed over. */
	do {
		if (urn_pipe_read(channel->fd, &ev) != 0)
			return -1;
		found = urn_objs_find(objs, URN_OBJ_CQ, ev.cookie, offsetof(struct urn_cq, comp_got));
	} while (found == NULL);
	*cq = &found->ibv;
	*cq_context = found->ibv.cq_context;
	return 0;
}

void
ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	urn_events_ack(&cq->mutex, &cq->cond, &cq->comp_events_completed, nevents);
}

/* ---- asynchronous events */

/* What an event is about; false when that is gone, or the event unknown. */
static bool
urn_async_find(struct urn_objs *objs, const struct urn_abi_event *ev, struct ibv_async_event *out)
{
	void *obj;

	out->event_type = (enum ibv_event_type)ev->type;
	switch (ev->type) {
	case URN_EVENT_CQ_ERR:
		obj = urn_objs_find(objs, URN_OBJ_CQ, ev->cookie, offsetof(struct urn_cq, async_got));
		out->element.cq = obj;
		return obj != NULL;
	case URN_EVENT_QP_FATAL:
	case URN_EVENT_QP_REQ_ERR:
	case URN_EVENT_QP_ACCESS_ERR:
	case URN_EVENT_COMM_EST:
	case URN_EVENT_SQ_DRAINED:
	case URN_EVENT_LAST_WQE:
		obj = urn_objs_find(objs, URN_OBJ_QP, ev->cookie, offsetof(struct urn_qp, async_got));
		out->element.qp = obj;
		return obj != NULL;
	case URN_EVENT_SRQ_ERR:
	case URN_EVENT_SRQ_LIMIT:
		obj = urn_objs_find(objs, URN_OBJ_SRQ, ev->cookie, offsetof(struct urn_srq, async_got));
		out->element.srq = obj;
		return obj != NULL;
	case URN_EVENT_PORT_ACTIVE:
	case URN_EVENT_PORT_ERR:
		out->element.port_num = 1;
		return true;
	default:
		return false;
	}
}

int
ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct urn_abi_event ev;

	do {
		if (urn_pipe_read(context->async_fd, &ev) != 0)
			return -1;
	} while (!urn_async_find(&urn_ctx(context)->objs, &ev, event));
	return 0;
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
	default: /* a port's events have no object to hold back */
		break;
	}
}
