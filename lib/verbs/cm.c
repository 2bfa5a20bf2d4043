/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection management: the public calls, up to the provider (provider/cm.h). */
#include "verbs/front.h"
#include "verbs/provider/cm.h"

#include <errno.h>

int
urn_cm_end_open(struct urn_cm_end **out, struct ibv_context *ctx)
{
	const struct urn_verbs_cm_ops *ops = urn_ops(ctx)->cm;

	*out = NULL;
	if (ops == NULL)
		return urn_unsupported("connection management on this kind of device");
	*out = ops->open(ctx);
	if (*out == NULL)
		return errno;
	(*out)->ops = ops;
	return 0;
}

int
urn_cm_end_fd(const struct urn_cm_end *c)
{
	return c->fd;
}

void
urn_cm_end_close(struct urn_cm_end *c)
{
	if (c != NULL)
		c->ops->close(c);
}

int
urn_cm_end_listen(struct urn_cm_end *c, uint64_t service, uint64_t cookie, uint32_t backlog,
		  uint32_t *id)
{
	uint32_t flags = backlog & ~URN_CM_BACKLOG_BITS;

	/* Other bits are those of a great number, such as INT_MAX. */
	if (flags != 0 && flags != URN_CM_SHARED && flags != (URN_CM_SHARED | URN_CM_HEIR))
		backlog = URN_CM_BACKLOG_BITS;
	return c->ops->listen(c, service, cookie, backlog, id);
}

int
urn_cm_end_take(struct urn_cm_end *c, uint32_t id, uint64_t cookie)
{
	uint32_t same;

	return c->ops->listen(c, id, cookie, URN_CM_TAKE, &same);
}

int
urn_cm_end_connect(struct urn_cm_end *c, struct urn_abi_cm_connect *p, uint32_t *id)
{
	return c->ops->connect(c, p, id);
}

int
urn_cm_end_resolve(struct urn_cm_end *c, struct urn_abi_cm_connect *p, uint32_t *id)
{
	return c->ops->resolve(c, p, id);
}

int
urn_cm_end_accept(struct urn_cm_end *c, uint32_t id, const struct urn_abi_cm_accept *p)
{
	return c->ops->accept(c, id, p);
}

int
urn_cm_end_reject(struct urn_cm_end *c, uint32_t id, const struct urn_abi_cm_reject *p)
{
	return c->ops->reject(c, id, p);
}

/* Check the length of private data. returns: 0, or EINVAL with its text */
static int
urn_cm_check_data(uint32_t len)
{
	return len <= URN_CM_DATA_MAX
		       ? 0
		       : urn_fail(EINVAL,
				  "%u bytes of private data are more than a message of "
				  "connection management takes (%d)",
				  len, URN_CM_DATA_MAX);
}

int
urn_cm_end_establish(struct urn_cm_end *c, uint32_t id, const void *data, uint32_t len)
{
	int err = urn_cm_check_data(len);

	return err != 0 ? err : c->ops->establish(c, id, data, len);
}

int
urn_cm_end_disconnect(struct urn_cm_end *c, uint32_t id, const void *data, uint32_t len)
{
	int err = urn_cm_check_data(len);

	return err != 0 ? err : c->ops->disconnect(c, id, data, len);
}

int
urn_cm_end_destroy(struct urn_cm_end *c, uint32_t id)
{
	return c->ops->destroy(c, id);
}

int
urn_cm_end_event(struct urn_cm_end *c, struct urn_abi_cm_event *ev)
{
	return c->ops->event(c, ev);
}
