/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening the virtual device, and the table of what can be done with it. */
#include "attach/remote.h"
#include "verbs/adapter/adapter.h"
#include "verbs/front.h"
#include "verbs/session/parse.h"
#include "verbs/session/session.h"
#include "verbs/session/sv.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define URN_SV_NAME_OF "urnic0"

/* The contexts below, between make() and open() or identify(). */
struct urn_sv_made {
	struct ibv_context *below[URN_SV_ADAPTERS];
};

void
urn_sv_lock(struct urn_sv_ctx *ctx)
{
	/* A program that polls in a loop would take the lock again and again. */
	while (atomic_load_explicit(&ctx->waiting, memory_order_relaxed) != 0)
		sched_yield();
	pthread_mutex_lock(&ctx->lock);
}

void
urn_sv_lock_first(struct urn_sv_ctx *ctx)
{
	atomic_fetch_add(&ctx->waiting, 1);
	pthread_mutex_lock(&ctx->lock);
	atomic_fetch_sub(&ctx->waiting, 1);
}

void
urn_sv_unlock(struct urn_sv_ctx *ctx)
{
	pthread_mutex_unlock(&ctx->lock);
}

bool
urn_session_wanted(void)
{
	const char *text = secure_getenv("URNIC_SESSION");

	return text != NULL && text[0] != '\0';
}

static void
urn_sv_made_close(struct urn_sv_made *m)
{
	for (int i = 0; i < URN_SV_ADAPTERS; i++)
		if (m->below[i] != NULL)
			ibv_close_device(m->below[i]);
	free(m);
}

static struct ibv_context *
urn_sv_open_below(const struct urn_sv_place *p)
{
	struct urn_abi_channel *channel =
		urn_remote_attach(p->socket, p->adapter[0] != '\0' ? p->adapter : NULL);

	return channel != NULL ? urn_verbs_open(&urn_adapter_ops, channel) : NULL;
}

static void *
urn_sv_make(const struct urn_verbs_origin *from)
{
	struct urn_sv_place place[URN_SV_ADAPTERS];
	const char *text = secure_getenv("URNIC_SESSION"), *why;
	struct urn_sv_made *m;

	(void)from;
	if (text == NULL) {
		urn_fail(EINVAL, "URNIC_SESSION is not set any more");
		return NULL;
	}
	if (urn_sv_parse(text, place, &why) != 0) {
		urn_fail(EINVAL, "URNIC_SESSION: %s", why);
		return NULL;
	}
	m = calloc(1, sizeof(*m));
	if (m == NULL) {
		urn_fail(ENOMEM, "no memory for a virtual device");
		return NULL;
	}
	for (int i = 0; i < URN_SV_ADAPTERS; i++) {
		m->below[i] = urn_sv_open_below(&place[i]);
		if (m->below[i] == NULL) {
			int err = errno;

			urn_sv_made_close(m);
			errno = err;
			return NULL;
		}
	}
	return m;
}

static pthread_mutex_t urn_sv_offer_lock = PTHREAD_MUTEX_INITIALIZER;
static bool urn_sv_offered; /* urnic0 is on offer; urn_sv_offer_lock */

static int
urn_sv_discover(void)
{
	struct urn_verbs_origin from = {.ops = &urn_session_ops};
	int err = 0;

	pthread_mutex_lock(&urn_sv_offer_lock);
	if (!urn_sv_offered && urn_session_wanted()) {
		err = urn_verbs_offer(&from);
		urn_sv_offered = err == 0;
	}
	pthread_mutex_unlock(&urn_sv_offer_lock);
	return err;
}

static void
urn_sv_discover_forked(void)
{
	pthread_mutex_init(&urn_sv_offer_lock, NULL);
}

static void
urn_sv_tell(const struct urn_sv_made *m, struct urn_verbs_id *id)
{
	snprintf(id->name, sizeof(id->name), "%s", URN_SV_NAME_OF);
	id->guid = urn_verbs_ctx(m->below[0])->id.guid;
}

static int
urn_sv_identify(void *arg, struct urn_verbs_id *id)
{
	urn_sv_tell(arg, id);
	urn_sv_made_close(arg);
	return 0;
}

/* Set what a context is to the front. */
static void
urn_sv_front(struct urn_sv_ctx *ctx, const struct urn_sv_made *m)
{
	const struct urn_verbs_ctx *first = urn_verbs_ctx(m->below[0]);
	const struct urn_verbs_ctx *second = urn_verbs_ctx(m->below[1]);

	urn_sv_tell(m, &ctx->front.id);
	ctx->front.gids = first->gids < URN_SV_GIDS ? first->gids : URN_SV_GIDS;
	ctx->front.max_cqe = first->max_cqe < second->max_cqe ? first->max_cqe : second->max_cqe;
	ctx->front.vctx.context.num_comp_vectors = first->vctx.context.num_comp_vectors;
}

static struct urn_verbs_ctx *
urn_sv_open(void *arg)
{
	struct urn_sv_ctx *ctx = urn_object_alloc(sizeof(*ctx));
	struct urn_sv_made *m = arg;

	if (ctx == NULL)
		goto err_close;
	memcpy(ctx->below, m->below, sizeof(ctx->below));
	urn_sv_front(ctx, m);
	ctx->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ctx->front.vctx.context.async_fd = eventfd(0, EFD_CLOEXEC);
	if (ctx->wake_fd < 0 || ctx->front.vctx.context.async_fd < 0) {
		urn_fail(errno, "no descriptor for a virtual device: %s", strerror(errno));
		goto err_fd;
	}
	if (urn_sv_remember(ctx) != 0)
		goto err_fd;
	pthread_mutex_init(&ctx->lock, NULL);
	pthread_cond_init(&ctx->cond, NULL);
	free(m);
	return &ctx->front;

err_fd:
	if (ctx->wake_fd >= 0)
		close(ctx->wake_fd);
	if (ctx->front.vctx.context.async_fd >= 0)
		close(ctx->front.vctx.context.async_fd);
	free(ctx);
err_close:
	urn_sv_made_close(m);
	return NULL;
}

static void
urn_sv_close(struct ibv_context *c)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(c);

	urn_sv_thread_end(ctx);
	for (int i = 0; i < URN_SV_ADAPTERS; i++)
		ibv_close_device(ctx->below[i]);
	close(ctx->wake_fd);
	close(c->async_fd);
	pthread_cond_destroy(&ctx->cond);
	pthread_mutex_destroy(&ctx->lock);
	free(ctx);
}

/* Windows stay on one adapter, so there are none. */
static int
urn_sv_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	(void)qp, (void)mw, (void)bind;
	return EOPNOTSUPP;
}

const struct urn_verbs_ops urn_session_ops = {
	.discover = urn_sv_discover,
	.discover_forked = urn_sv_discover_forked,
	.make = urn_sv_make,
	.identify = urn_sv_identify,
	.open = urn_sv_open,
	.close = urn_sv_close,
	.query_device = urn_sv_query_device,
	.query_port = urn_sv_query_port,
	.query_gid = urn_sv_query_gid,
	.get_async_event = urn_sv_get_async_event,
	.alloc_pd = urn_sv_alloc_pd,
	.dealloc_pd = urn_sv_dealloc_pd,
	.reg_mr = urn_sv_reg_mr,
	.dereg_mr = urn_sv_dereg_mr,
	.alloc_mw = urn_sv_alloc_mw,
	.dealloc_mw = urn_sv_dealloc_mw,
	.create_ah = urn_sv_create_ah,
	.destroy_ah = urn_sv_destroy_ah,
	.create_comp_channel = urn_sv_create_channel,
	.destroy_comp_channel = urn_sv_destroy_channel,
	.get_cq_event = urn_sv_get_cq_event,
	.create_cq = urn_sv_create_cq,
	.resize_cq = urn_sv_resize_cq,
	.destroy_cq = urn_sv_destroy_cq,
	.create_srq = urn_sv_create_srq,
	.modify_srq = urn_sv_modify_srq,
	.query_srq = urn_sv_query_srq,
	.destroy_srq = urn_sv_destroy_srq,
	.create_qp = urn_sv_create_qp,
	.modify_qp = urn_sv_modify_qp,
	.connect_qp = urn_sv_connect_qp,
	.query_qp = urn_sv_query_qp,
	.destroy_qp = urn_sv_destroy_qp,
	.mcast = urn_sv_mcast,
	.post_send = urn_sv_post_send,
	.post_recv = urn_sv_post_recv,
	.post_srq_recv = urn_sv_post_srq_recv,
	.bind_mw = urn_sv_bind_mw,
	.poll_cq = urn_sv_poll_cq,
	.req_notify_cq = urn_sv_req_notify,
	.cm = &urn_sv_cm,
};
