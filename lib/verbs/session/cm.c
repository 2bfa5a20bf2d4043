/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection management of the virtual device is the primary adapter's: there queue pairs have the
 * numbers that the program knows. */
#include "verbs/provider/cm.h"
#include "verbs/session/heal.h"

#include <errno.h>
#include <stdlib.h>

/* An end, which owns one of the primary adapter's. */
struct urn_sv_end {
	struct urn_cm_end front;  /* first */
	struct urn_cm_end *below; /* its fd is the front's */
	struct urn_sv_life *life; /* the adapter's life to which it belongs; constant */
};

static struct urn_cm_end *
urn_sv_end_below(struct urn_cm_end *end)
{
	return ((struct urn_sv_end *)end)->below;
}

static struct urn_cm_end *
urn_sv_end_open(struct ibv_context *c)
{
	struct urn_sv_end *e = urn_object_alloc(sizeof(*e));
	struct urn_sv_ctx *ctx = urn_sv_ctx(c);
	int err = EIO;

	if (e == NULL)
		return NULL;
	urn_sv_enter(ctx);
	if (ctx->below[0] != NULL)
		err = urn_cm_end_open(&e->below, ctx->below[0]);
	if (err == 0)
		e->life = urn_sv_life_use(ctx);
	urn_sv_exit(ctx);
	if (err != 0) {
		free(e);
		errno = err;
		return NULL;
	}
	e->front.fd = urn_cm_end_fd(e->below);
	return &e->front;
}

static void
urn_sv_end_close(struct urn_cm_end *end)
{
	/* The device may be closed already; the adapter is not, before its life is left. */
	urn_cm_end_close(urn_sv_end_below(end));
	urn_sv_life_leave(((struct urn_sv_end *)end)->life);
	free(end);
}

static int
urn_sv_end_listen(struct urn_cm_end *end, uint64_t service, uint64_t cookie, uint32_t backlog,
		  uint32_t *id)
{
	return urn_cm_end_listen(urn_sv_end_below(end), service, cookie, backlog, id);
}

static int
urn_sv_end_connect(struct urn_cm_end *end, struct urn_abi_cm_connect *p, uint32_t *id)
{
	return urn_cm_end_connect(urn_sv_end_below(end), p, id);
}

static int
urn_sv_end_resolve(struct urn_cm_end *end, struct urn_abi_cm_connect *p, uint32_t *id)
{
	return urn_cm_end_resolve(urn_sv_end_below(end), p, id);
}

static int
urn_sv_end_accept(struct urn_cm_end *end, uint32_t id, const struct urn_abi_cm_accept *p)
{
	return urn_cm_end_accept(urn_sv_end_below(end), id, p);
}

static int
urn_sv_end_reject(struct urn_cm_end *end, uint32_t id, const struct urn_abi_cm_reject *p)
{
	return urn_cm_end_reject(urn_sv_end_below(end), id, p);
}

static int
urn_sv_end_establish(struct urn_cm_end *end, uint32_t id, const void *data, uint32_t len)
{
	return urn_cm_end_establish(urn_sv_end_below(end), id, data, len);
}

static int
urn_sv_end_disconnect(struct urn_cm_end *end, uint32_t id, const void *data, uint32_t len)
{
	return urn_cm_end_disconnect(urn_sv_end_below(end), id, data, len);
}

static int
urn_sv_end_destroy(struct urn_cm_end *end, uint32_t id)
{
	return urn_cm_end_destroy(urn_sv_end_below(end), id);
}

static int
urn_sv_end_event(struct urn_cm_end *end, struct urn_abi_cm_event *ev)
{
	return urn_cm_end_event(urn_sv_end_below(end), ev);
}

const struct urn_verbs_cm_ops urn_sv_cm = {
	.open = urn_sv_end_open,
	.close = urn_sv_end_close,
	.listen = urn_sv_end_listen,
	.connect = urn_sv_end_connect,
	.resolve = urn_sv_end_resolve,
	.accept = urn_sv_end_accept,
	.reject = urn_sv_end_reject,
	.establish = urn_sv_end_establish,
	.disconnect = urn_sv_end_disconnect,
	.destroy = urn_sv_end_destroy,
	.event = urn_sv_end_event,
};
