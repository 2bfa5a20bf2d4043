/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection management of an adapter: the control calls of abi/cm.h, and a pipe that becomes
 * readable when an event waits.
 *
 * The dataplane keeps the events of all ends of a context in one list. The only end of a context
 * takes from it whatever is there, several events with one question. Where there are more ends,
 * such as a program's and that of the session layer below it, each takes the events of the ids in
 * its own notices, one by one: an event that another end took would be lost.
 */
#include "verbs/adapter/cm_end.h"

#include "verbs/adapter/adapter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

static struct urn_adapter_cm_end *
urn_adapter_cm(struct urn_cm_end *end)
{
	return (struct urn_adapter_cm_end *)end;
}

static struct urn_cm_end *
urn_adapter_cm_open(struct ibv_context *ctx)
{
	struct urn_adapter_cm_end *c = calloc(1, sizeof(*c));
	int err;

	if (c == NULL) {
		urn_fail(ENOMEM, "no memory for connection management");
		return NULL;
	}
	err = urn_dev_need(urn_ctx_dev(ctx), URN_ABI_FEATURE_CM);
	if (err == 0)
		err = urn_pipe_make(urn_ctx_dev(ctx), URN_CTL_CREATE_CHANNEL, &c->front.fd,
				    &c->way.write_fd, &c->handle);
	if (err != 0) {
		free(c);
		errno = err;
		return NULL;
	}
	c->ctx = ctx;
	pthread_mutex_init(&c->lock, NULL);
	(void)fcntl(c->front.fd, F_SETFL, fcntl(c->front.fd, F_GETFL) | O_NONBLOCK);
	urn_gone_join(urn_ctx(ctx), &c->way);
	pthread_mutex_lock(&urn_ctx(ctx)->cm_lock);
	urn_ctx(ctx)->cm_ends++;
	pthread_mutex_unlock(&urn_ctx(ctx)->cm_lock);
	return &c->front;
}

static void
urn_adapter_cm_close(struct urn_cm_end *end)
{
	struct urn_adapter_cm_end *c = urn_adapter_cm(end);

	if (c->way.at != NULL) {
		struct urn_dev *dev = urn_ctx_dev(c->ctx);

		if (dev->channel->pipe != NULL)
			(void)urn_dev_call_handle(dev, URN_CTL_DESTROY_CHANNEL,
						  (uint32_t)c->handle);
		urn_gone_leave(urn_ctx(c->ctx), &c->way);
	}
	close(c->front.fd);
	close(c->way.write_fd);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static int
urn_adapter_cm_call(struct urn_cm_end *end, enum urn_ctl_op op, struct urn_abi_req *req,
		    uint32_t *id)
{
	struct urn_abi_rep rep;
	int err;

	req->op = op;
	err = urn_dev_call(urn_ctx_dev(urn_adapter_cm(end)->ctx), req, &rep);
	if (err == 0 && id != NULL)
		*id = rep.handle;
	return err;
}

static int
urn_adapter_cm_listen(struct urn_cm_end *end, uint64_t service, uint64_t cookie, uint32_t backlog,
		      uint32_t *id)
{
	struct urn_abi_req req = {.cm_listen = {.service_id = service,
						.cookie = cookie,
						.channel_fd = urn_adapter_cm(end)->handle,
						.backlog = backlog}};

	if (!urn_dev_has(urn_ctx_dev(urn_adapter_cm(end)->ctx), URN_ABI_FEATURE_HEIRS)) {
		if (backlog & URN_CM_TAKE)
			return urn_unsupported("taking over a request of another process");
		req.cm_listen.backlog &= URN_CM_BACKLOG_BITS;
	}
	return urn_adapter_cm_call(end, URN_CTL_CM_LISTEN, &req, id);
}

static int
urn_adapter_cm_ask(struct urn_cm_end *end, enum urn_ctl_op op, struct urn_abi_cm_connect *p,
		   uint32_t *id)
{
	struct urn_abi_req req;

	p->channel_fd = urn_adapter_cm(end)->handle;
	req.handle = 0;
	req.cm_connect = *p;
	return urn_adapter_cm_call(end, op, &req, id);
}

static int
urn_adapter_cm_connect(struct urn_cm_end *end, struct urn_abi_cm_connect *p, uint32_t *id)
{
	return urn_adapter_cm_ask(end, URN_CTL_CM_CONNECT, p, id);
}

static int
urn_adapter_cm_resolve(struct urn_cm_end *end, struct urn_abi_cm_connect *p, uint32_t *id)
{
	return urn_adapter_cm_ask(end, URN_CTL_CM_RESOLVE, p, id);
}

static int
urn_adapter_cm_accept(struct urn_cm_end *end, uint32_t id, const struct urn_abi_cm_accept *p)
{
	struct urn_abi_req req = {.handle = id, .cm_accept = *p};

	return urn_adapter_cm_call(end, URN_CTL_CM_ACCEPT, &req, NULL);
}

static int
urn_adapter_cm_reject(struct urn_cm_end *end, uint32_t id, const struct urn_abi_cm_reject *p)
{
	struct urn_abi_req req = {.handle = id, .cm_reject = *p};

	return urn_adapter_cm_call(end, URN_CTL_CM_REJECT, &req, NULL);
}

static int
urn_adapter_cm_say(struct urn_cm_end *end, enum urn_ctl_op op, uint32_t id, const void *data,
		   uint32_t len)
{
	struct urn_abi_req req = {.handle = id, .cm_data = {.data_len = len}};

	if (len != 0)
		memcpy(req.cm_data.data, data, len);
	return urn_adapter_cm_call(end, op, &req, NULL);
}

static int
urn_adapter_cm_establish(struct urn_cm_end *end, uint32_t id, const void *data, uint32_t len)
{
	return urn_adapter_cm_say(end, URN_CTL_CM_ESTABLISH, id, data, len);
}

static int
urn_adapter_cm_disconnect(struct urn_cm_end *end, uint32_t id, const void *data, uint32_t len)
{
	return urn_adapter_cm_say(end, URN_CTL_CM_DISCONNECT, id, data, len);
}

static bool
urn_adapter_cm_is_one_of(uint32_t id, const uint32_t *ids, uint32_t n)
{
	while (n > 0 && ids[n - 1] != id)
		n--;
	return n > 0;
}

/*
 * An id is destroyed: drop its events that were fetched already. returns: how many of those were
 * requests to it, which the program does not know of; came[]: their ids
 */
static uint32_t
urn_adapter_cm_drop(struct urn_adapter_cm_end *c, uint32_t id, uint32_t came[URN_CM_END_EVENTS])
{
	uint32_t i, kept, n = 0;

	pthread_mutex_lock(&c->lock);
	for (i = kept = c->first; i < c->end; i++) {
		const struct urn_abi_cm_event *ev = &c->ev[i];
		bool request =
			ev->type == URN_CM_EVENT_REQUEST || ev->type == URN_CM_EVENT_SIDR_REQUEST;

		if (request && ev->listen_id == id)
			came[n++] = ev->id;
		else if (ev->id != id && !urn_adapter_cm_is_one_of(ev->id, came, n))
			c->ev[kept++] = *ev;
	}
	c->end = kept;
	pthread_mutex_unlock(&c->lock);
	return n;
}

static int
urn_adapter_cm_destroy(struct urn_cm_end *end, uint32_t id)
{
	struct urn_adapter_cm_end *c = urn_adapter_cm(end);
	struct urn_dev *dev = urn_ctx_dev(c->ctx);
	int err = urn_dev_call_handle(dev, URN_CTL_CM_DESTROY, id);
	uint32_t came[URN_CM_END_EVENTS], n;

	/* In a child of fork() the lock's holder may be a thread that is not there. */
	if (!urn_dev_has_cm_events(dev) || urn_dev_gone(dev) == URN_DEV_FORKED)
		return err;
	for (n = urn_adapter_cm_drop(c, id, came); n > 0; n--)
		(void)urn_dev_call_handle(dev, URN_CTL_CM_DESTROY, came[n - 1]);
	return err;
}

/* Read the notices in the pipe, when none is due. returns: 0, or an errno value */
static int
urn_adapter_cm_notices(struct urn_adapter_cm_end *c)
{
	struct urn_abi_event note[URN_CM_END_NOTICES];
	ssize_t n;

	if (c->due > 0)
		return 0;
	n = read(c->front.fd, note, sizeof(note));
	if (n < 0)
		return errno == EAGAIN || errno == EINTR
			       ? EAGAIN
			       : urn_fail(errno, "events can't be read: %s", strerror(errno));
	if (n == 0)
		return urn_fail(EIO, "the dataplane is gone, and there are no more events: "
				     "close the device");
	/* Each notice is written whole, so up to 64 of them are read whole. */
	c->due = c->notices = (uint32_t)((size_t)n / sizeof(note[0]));
	for (uint32_t i = 0; i < c->notices; i++)
		c->notice[i] = note[i].handle;
	return 0;
}

/* Fetch one event with a call, by the id of its notice. returns: 0, or an errno value */
static int
urn_adapter_cm_one(struct urn_adapter_cm_end *c, struct urn_abi_cm_event *ev)
{
	struct urn_abi_req req = {.op = URN_CTL_CM_EVENT};
	struct urn_abi_rep rep;
	int err = urn_adapter_cm_notices(c);

	while (err == 0) {
		req.handle = c->notice[c->notices - c->due--];
		err = urn_dev_call(urn_ctx_dev(c->ctx), &req, &rep);
		if (err == 0) {
			*ev = rep.cm_event;
			return 0;
		}
		/* An id that was destroyed took its events along, but not their notices. */
		if (err == EAGAIN)
			err = urn_adapter_cm_notices(c);
	}
	return err;
}

/*
 * Fetch an event for each notice with one question, if this is the context's only end: an end that
 * is opened meanwhile has no event before that is done. Under c->lock.
 *
 * returns: false: there are more ends; *err: 0, or an errno value
 */
static bool
urn_adapter_cm_batch(struct urn_adapter_cm_end *c, int *err)
{
	uint32_t n = c->due < URN_CM_END_EVENTS ? c->due : URN_CM_END_EVENTS;
	struct urn_ctx *ctx = urn_ctx(c->ctx);
	bool alone;

	pthread_mutex_lock(&ctx->cm_lock);
	alone = ctx->cm_ends == 1;
	if (alone) {
		/* Fewer may come: a destroyed id took its events along, but not their notices. */
		c->due -= n;
		*err = urn_dev_cm_events(&ctx->dev, c->ev, n, &c->end);
	}
	pthread_mutex_unlock(&ctx->cm_lock);
	return alone;
}

/*
 * Fetch the events of notices from a dataplane in another process. Under c->lock.
 * returns: 0: ev[first, end) has some; or an errno value
 */
static int
urn_adapter_cm_fetch(struct urn_adapter_cm_end *c)
{
	int err = 0;

	while (err == 0 && c->first == c->end) {
		err = urn_adapter_cm_notices(c);
		if (err != 0)
			return err;
		c->first = c->end = 0;
		if (urn_adapter_cm_batch(c, &err))
			continue;
		err = urn_adapter_cm_one(c, &c->ev[0]);
		c->end = err == 0;
	}
	return err;
}

static int
urn_adapter_cm_event(struct urn_cm_end *end, struct urn_abi_cm_event *ev)
{
	struct urn_adapter_cm_end *c = urn_adapter_cm(end);
	const struct urn_dev *dev = urn_ctx_dev(c->ctx);
	int err;

	/* A child that took its parent's events would leave the parent waiting. */
	if (urn_dev_gone(dev) == URN_DEV_FORKED)
		return urn_fail(EIO, "the device was opened before fork(), and is the parent's: "
				     "its events are, too");
	if (!urn_dev_has_cm_events(dev))
		return urn_adapter_cm_one(c, ev);
	pthread_mutex_lock(&c->lock);
	err = urn_adapter_cm_fetch(c);
	if (err == 0)
		*ev = c->ev[c->first++];
	pthread_mutex_unlock(&c->lock);
	return err;
}

const struct urn_verbs_cm_ops urn_adapter_cm_ops = {
	.open = urn_adapter_cm_open,
	.close = urn_adapter_cm_close,
	.listen = urn_adapter_cm_listen,
	.connect = urn_adapter_cm_connect,
	.resolve = urn_adapter_cm_resolve,
	.accept = urn_adapter_cm_accept,
	.reject = urn_adapter_cm_reject,
	.establish = urn_adapter_cm_establish,
	.disconnect = urn_adapter_cm_disconnect,
	.destroy = urn_adapter_cm_destroy,
	.event = urn_adapter_cm_event,
};
