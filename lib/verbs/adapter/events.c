/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion channels and asynchronous events: reading events, and seeing that
 * each event handed out is acknowledged before its object goes.
 */
#include "verbs/adapter/adapter.h"

#include "attach/pipe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void
urn_events_wait(const struct urn_dev *dev, pthread_mutex_t *lock, pthread_cond_t *cond, const uint32_t *acked, uint32_t got)
{
	if (urn_dev_gone(dev) != URN_DEV_FORKED)
		urn_acks_wait(lock, cond, acked, got);
}

/* Read an event. returns: 0, or an errno value with errno set; EIO: there are no more events */
static int
urn_events_read(struct ibv_context *c, int fd, struct urn_abi_event *ev)
{
	/* A child that took its parent's events would leave the parent waiting. */
	if (urn_dev_gone(urn_ctx_dev(c)) == URN_DEV_FORKED)
		return EIO;
	return urn_pipe_read(fd, ev);
}

/* Fail for want of events. returns: -1, like verbs that hand out events */
static int
urn_events_none(struct ibv_context *c)
{
	urn_fail(EIO, "%s", urn_dev_gone(urn_ctx_dev(c)) == URN_DEV_FORKED
		? "the device was opened before fork(), and is the parent's: its events are, too"
		: "the dataplane is gone, and there are no more events: close the device");
	return -1;
}

/* ---- events of the library's own: for a queue that was armed and had completions in it */

/* Write events that a channel owes, as far as there is room. */
static void
urn_channel_settle(struct urn_channel *ch)
{
	int err = 0;

	pthread_mutex_lock(&ch->owed_lock);
	while (err == 0 && ch->owed_n > 0) {
		err = urn_pipe_write(ch->way.write_fd, &ch->owed[ch->owed_n - 1]);
		ch->owed_n -= err == 0;
	}
	if (err == EPIPE)
		ch->owed_n = 0; /* the dataplane is gone, and the reader gets EIO */
	atomic_store(&ch->owes, ch->owed_n != 0);
	pthread_mutex_unlock(&ch->owed_lock);
}

static int
urn_channel_owe(struct urn_channel *ch, const struct urn_abi_event *ev)
{
	uint32_t cap = ch->owed_cap ? 2 * ch->owed_cap : 64;
	struct urn_abi_event *owed = ch->owed;

	if (ch->owed_n == ch->owed_cap) {
		owed = reallocarray(owed, cap, sizeof(*owed));
		if (owed == NULL)
			return ENOMEM;
		ch->owed = owed;
		ch->owed_cap = cap;
	}
	owed[ch->owed_n++] = *ev;
	atomic_store(&ch->owes, true);
	return 0;
}

int
urn_channel_tell(struct urn_channel *ch, const struct urn_abi_event *ev)
{
	int err = urn_pipe_write(ch->way.write_fd, ev);

	if (err != EAGAIN)
		return err;
	/* The pipe is full, so its reader has events to read, and makes room. */
	pthread_mutex_lock(&ch->owed_lock);
	err = urn_channel_owe(ch, ev);
	pthread_mutex_unlock(&ch->owed_lock);
	if (err == 0)
		urn_channel_settle(ch); /* the reader may have read all meanwhile, and not come back */
	return err;
}

/* ---- completion channels */

struct ibv_comp_channel *
urn_create_comp_channel(struct ibv_context *context)
{
	struct urn_channel *ch = urn_object_alloc(sizeof(*ch));

	if (ch == NULL)
		return NULL;
	if (urn_pipe_make(urn_ctx_dev(context), URN_CTL_CREATE_CHANNEL, &ch->ibv.fd, &ch->way.write_fd,
			&ch->handle) != 0) {
		free(ch);
		return NULL;
	}
	pthread_mutex_init(&ch->owed_lock, NULL);
	urn_gone_join(urn_ctx(context), &ch->way);
	return &ch->ibv;
}

int
urn_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	struct urn_channel *ch = (struct urn_channel *)channel;

	if (urn_ctx_dev(channel->context)->channel->pipe != NULL)
		(void)urn_dev_call_handle(urn_ctx_dev(channel->context), URN_CTL_DESTROY_CHANNEL,
			(uint32_t)ch->handle);
	urn_gone_leave(urn_ctx(channel->context), &ch->way);
	close(ch->ibv.fd);
	close(ch->way.write_fd);
	pthread_mutex_destroy(&ch->owed_lock);
	free(ch->owed);
	return 0;
}

int
urn_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq)
{
	struct urn_objs *objs = &urn_ctx(channel->context)->objs;
	struct urn_abi_event ev;
	struct urn_adapter_cq *found;

	/* Events of queues that have been destroyed are skipped. */
	do {
		int err = urn_events_read(channel->context, channel->fd, &ev);

		if (err == EIO) {
			/* No more events come; let the reader look at each armed queue. */
			found = urn_gone_event((struct urn_channel *)channel);
			if (found == NULL)
				return urn_events_none(channel->context);
			break;
		}
		if (err != 0)
			return -1;
		if (atomic_load(&((struct urn_channel *)channel)->owes))
			urn_channel_settle((struct urn_channel *)channel);
		found = urn_objs_find(objs, URN_OBJ_CQ, ev.cookie,
				      offsetof(struct urn_adapter_cq, comp_got));
	} while (found == NULL);
	atomic_store_explicit(&found->expects, false, memory_order_relaxed);
	urn_cq_tell(found);
	*cq = &found->ibv;
	return 0;
}

/* ---- asynchronous events */

/* Find the object of an event; false when the object is gone, or the event unknown. */
static bool
urn_async_find(struct urn_objs *objs, const struct urn_abi_event *ev, struct ibv_async_event *out)
{
	void *obj;

	out->event_type = (enum ibv_event_type)ev->type;
	switch (ev->type) {
	case URN_EVENT_CQ_ERR:
		obj = urn_objs_find(objs, URN_OBJ_CQ, ev->cookie,
				    offsetof(struct urn_adapter_cq, async_got));
		out->element.cq = obj;
		return obj != NULL;
	case URN_EVENT_QP_FATAL:
	case URN_EVENT_QP_REQ_ERR:
	case URN_EVENT_QP_ACCESS_ERR:
	case URN_EVENT_COMM_EST:
	case URN_EVENT_SQ_DRAINED:
	case URN_EVENT_LAST_WQE:
		obj = urn_objs_find(objs, URN_OBJ_QP, ev->cookie,
				    offsetof(struct urn_adapter_qp, async_got));
		out->element.qp = obj;
		return obj != NULL;
	case URN_EVENT_SRQ_ERR:
	case URN_EVENT_SRQ_LIMIT:
		obj = urn_objs_find(objs, URN_OBJ_SRQ, ev->cookie,
				    offsetof(struct urn_adapter_srq, async_got));
		out->element.srq = obj;
		return obj != NULL;
	case URN_EVENT_PORT_ACTIVE:
	case URN_EVENT_PORT_ERR:
	case URN_EVENT_LOST:
	case IBV_EVENT_DEVICE_FATAL: /* this and those below come from urn_raise_event() only */
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
	case IBV_EVENT_SM_CHANGE:
	case IBV_EVENT_GID_CHANGE:
		out->element.port_num = 1;
		return true;
	default:
		return false;
	}
}

/* The dataplane is gone: the first call gives an event, further ones fail. */
static int
urn_async_fatal(struct ibv_context *c, struct ibv_async_event *event)
{
	if (urn_dev_gone(urn_ctx_dev(c)) != URN_DEV_DIED ||
	    atomic_exchange(&urn_ctx(c)->told_fatal, true))
		return urn_events_none(c);
	memset(event, 0, sizeof(*event));
	event->event_type = IBV_EVENT_DEVICE_FATAL;
	return 0;
}

int
urn_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct urn_abi_event ev;

	do {
		int err = urn_events_read(context, context->async_fd, &ev);

		if (err == EIO)
			return urn_async_fatal(context, event);
		if (err != 0)
			return -1;
	} while (!urn_async_find(&urn_ctx(context)->objs, &ev, event));
	if (ev.type == URN_EVENT_PORT_ACTIVE || ev.type == URN_EVENT_PORT_ERR)
		atomic_store(&urn_verbs_ctx(context)->port_seen, ev.cookie);
	return 0;
}

int
urn_raise_event(struct ibv_context *context, enum ibv_event_type type, void *queue)
{
	const struct urn_abi_channel *channel = urn_ctx_dev(context)->channel;
	struct urn_abi_event ev = {.type = (uint32_t)type};

	switch (type) {
	case IBV_EVENT_CQ_ERR:
		ev.cookie = urn_cq(queue)->ticket;
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		ev.cookie = urn_srq(queue)->ticket;
		break;
	case IBV_EVENT_DEVICE_FATAL:
		if (channel->hang_up == NULL)
			break;
		/* The dataplane takes everything back, and hangs up as well: from there on as if it
		 * had died. */
		channel->hang_up(channel->ctx);
		return 0;
	default:
		if (queue != NULL)
			ev.cookie = urn_qp(queue)->ticket;
		break;
	}
	return urn_pipe_write(urn_ctx(context)->async_write_fd, &ev);
}
