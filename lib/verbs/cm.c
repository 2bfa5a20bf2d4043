/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs/cm.h"

#include "attach/pipe.h"
#include "verbs/verbs_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int
urn_cm_end_open(struct urn_cm_end *c, struct ibv_context *ctx)
{
	int err = urn_pipe_make(urn_ctx_dev(ctx), URN_CTL_CREATE_CHANNEL, &c->fd,
		&c->way.write_fd, &c->handle);

	if (err != 0)
		return err;
	c->ctx = ctx;
	c->due = 0;
	(void)fcntl(c->fd, F_SETFL, fcntl(c->fd, F_GETFL) | O_NONBLOCK);
	urn_gone_join(urn_ctx(ctx), &c->way);
	return 0;
}

void
urn_cm_end_close(struct urn_cm_end *c)
{
	if (c->way.at != NULL) {
		struct urn_dev *dev = urn_ctx_dev(c->ctx);

		if (dev->channel->pipe != NULL)
			(void)urn_dev_call_handle(dev, URN_CTL_DESTROY_CHANNEL, (uint32_t)c->handle);
		urn_gone_leave(urn_ctx(c->ctx), &c->way);
	}
	close(c->fd);
	close(c->way.write_fd);
	c->fd = c->way.write_fd = -1;
}

static int
urn_cm_end_call(struct urn_cm_end *c, enum urn_ctl_op op, struct urn_abi_req *req, uint32_t *id)
{
	struct urn_abi_rep rep;
	int err;

	req->op = op;
	err = urn_dev_call(urn_ctx_dev(c->ctx), req, &rep);
	if (err == 0 && id != NULL)
		*id = rep.handle;
	return err;
}

int
urn_cm_end_listen(struct urn_cm_end *c, uint64_t service, uint64_t cookie, uint32_t backlog,
	uint32_t *id)
{
	struct urn_abi_req req = {.cm_listen = {
		.service_id = service, .cookie = cookie, .channel_fd = c->handle, .backlog = backlog}};

	return urn_cm_end_call(c, URN_CTL_CM_LISTEN, &req, id);
}

static int
urn_cm_end_ask(struct urn_cm_end *c, enum urn_ctl_op op, struct urn_abi_cm_connect *p, uint32_t *id)
{
	struct urn_abi_req req;

	p->channel_fd = c->handle;
	req.handle = 0;
	req.cm_connect = *p;
	return urn_cm_end_call(c, op, &req, id);
}

int
urn_cm_end_connect(struct urn_cm_end *c, struct urn_abi_cm_connect *p, uint32_t *id)
{
	return urn_cm_end_ask(c, URN_CTL_CM_CONNECT, p, id);
}

int
urn_cm_end_resolve(struct urn_cm_end *c, struct urn_abi_cm_connect *p, uint32_t *id)
{
	return urn_cm_end_ask(c, URN_CTL_CM_RESOLVE, p, id);
}

int
urn_cm_end_accept(struct urn_cm_end *c, uint32_t id, const struct urn_abi_cm_accept *p)
{
	struct urn_abi_req req = {.handle = id, .cm_accept = *p};

	return urn_cm_end_call(c, URN_CTL_CM_ACCEPT, &req, NULL);
}

int
urn_cm_end_reject(struct urn_cm_end *c, uint32_t id, const struct urn_abi_cm_reject *p)
{
	struct urn_abi_req req = {.handle = id, .cm_reject = *p};

	return urn_cm_end_call(c, URN_CTL_CM_REJECT, &req, NULL);
}

static int
urn_cm_end_say(struct urn_cm_end *c, enum urn_ctl_op op, uint32_t id, const void *data, uint32_t len)
{
	struct urn_abi_req req = {.handle = id, .cm_data = {.data_len = len}};

	if (len > sizeof(req.cm_data.data))
		return urn_fail(EINVAL, "%u bytes of private data are more than a message of "
			"connection management takes (%zu)", len, sizeof(req.cm_data.data));
	if (len != 0)
		memcpy(req.cm_data.data, data, len);
	return urn_cm_end_call(c, op, &req, NULL);
}

int
urn_cm_end_establish(struct urn_cm_end *c, uint32_t id, const void *data, uint32_t len)
{
	return urn_cm_end_say(c, URN_CTL_CM_ESTABLISH, id, data, len);
}

int
urn_cm_end_disconnect(struct urn_cm_end *c, uint32_t id, const void *data, uint32_t len)
{
	return urn_cm_end_say(c, URN_CTL_CM_DISCONNECT, id, data, len);
}

int
urn_cm_end_destroy(struct urn_cm_end *c, uint32_t id)
{
	return urn_dev_call_handle(urn_ctx_dev(c->ctx), URN_CTL_CM_DESTROY, id);
}

/* Read the notices that there are, if none is left. returns: 0, or an errno value */
static int
urn_cm_end_notices(struct urn_cm_end *c)
{
	struct urn_abi_event note[64];
	ssize_t n;

	if (c->due > 0)
		return 0;
	/* A child that took its parent's notices would leave it waiting. */
	if (urn_dev_gone(urn_ctx_dev(c->ctx)) == URN_DEV_FORKED)
		return urn_fail(EIO, "the device was opened before fork(), and is the parent's: its events "
			"are, too");
	n = read(c->fd, note, sizeof(note));
	if (n < 0)
		return errno == EAGAIN || errno == EINTR
			? EAGAIN
			: urn_fail(errno, "events can't be read: %s", strerror(errno));
	if (n == 0)
		return urn_fail(EIO, "the dataplane is gone, and there are no more events: close the device");
	/* Each is written whole, and 64 are read whole. */
	c->due = (uint32_t)((size_t)n / sizeof(note[0]));
	return 0;
}

int
urn_cm_end_event(struct urn_cm_end *c, struct urn_abi_cm_event *ev)
{
	struct urn_abi_req req = {.op = URN_CTL_CM_EVENT};
	struct urn_abi_rep rep;
	int err = urn_cm_end_notices(c);

	while (err == 0 && c->due > 0) {
		c->due--;
		err = urn_dev_call(urn_ctx_dev(c->ctx), &req, &rep);
		if (err == 0) {
			*ev = rep.cm_event;
			return 0;
		}
		/* An id that was destroyed took its events along, but not their notices. */
		if (err == EAGAIN)
			err = urn_cm_end_notices(c);
	}
	return err != 0 ? err : EAGAIN;
}
