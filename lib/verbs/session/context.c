/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening the virtual device, and the table of what can be done with it. */
#include "attach/remote.h"
#include "verbs/adapter/adapter.h"
#include "verbs/front.h"
#include "verbs/session/heal.h"
#include "verbs/session/log.h"
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
	struct urn_sv_place place[URN_SV_ADAPTERS]; /* their names */
	struct urn_sv_options options;		    /* settings by the environment */
	int log_fd;				    /* log of steps; -1: none */
	bool log_journal;			    /* ... is the journal */
};

static _Atomic uint32_t urn_sv_opened; /* devices that the program has opened */

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
	if (m->log_fd >= 0)
		close(m->log_fd);
	free(m);
}

struct ibv_context *
urn_sv_open_below(const struct urn_sv_place *p, uint32_t silence)
{
	struct urn_abi_channel *channel =
		urn_remote_attach(p->socket, p->adapter[0] != '\0' ? p->adapter : NULL);
	struct ibv_context *ctx;

	if (channel == NULL)
		return NULL;
	urn_remote_bound(channel, silence);
	ctx = urn_verbs_open(&urn_adapter_ops, channel);
	/* A dataplane that does not know that it was given up would go on writing when it wakes. */
	if (ctx != NULL && urn_dev_need(urn_ctx_dev(ctx), URN_ABI_FEATURE_LEAVE) != 0) {
		ibv_close_device(ctx);
		errno = EOPNOTSUPP;
		return NULL;
	}
	return ctx;
}

/* Read what the environment says. returns: 0; EINVAL with its text */
static int
urn_sv_environment(struct urn_sv_made *m)
{
	const char *text = secure_getenv("URNIC_SESSION"), *why;
	int err;

	if (text == NULL)
		return urn_fail(EINVAL, "URNIC_SESSION is not set any more");
	err = urn_sv_options(&m->options);
	if (err == 0 && urn_sv_parse(text, m->options.instance, m->place, &why) != 0)
		err = urn_fail(EINVAL, "URNIC_SESSION: %s", why);
	return err;
}

/*
 * Check that the two names lead to two adapters: names of adapters are unique in a dataplane.
 * returns: 0 or EINVAL with its text
 */
static int
urn_sv_differ(const struct urn_sv_made *m)
{
	const char *first = urn_verbs_ctx(m->below[0])->id.name;

	if (!urn_sv_same_socket(m->place[0].socket, m->place[1].socket) ||
	    strcmp(first, urn_verbs_ctx(m->below[1])->id.name) != 0)
		return 0;
	return urn_fail(
		EINVAL,
		"URNIC_SESSION: both adapters are the same one, %s of %s: a session needs two",
		first, m->place[0].socket);
}

/* Open the adapters that the environment names. returns: 0 or an errno value with its text */
static int
urn_sv_made_open(struct urn_sv_made *m)
{
	int err = urn_sv_environment(m);

	if (err == 0)
		err = urn_sv_log_open(secure_getenv("URNIC_SESSION_LOG"), &m->log_fd,
				      &m->log_journal);
	for (int i = 0; i < URN_SV_ADAPTERS && err == 0; i++) {
		m->below[i] = urn_sv_open_below(&m->place[i], m->options.silence);
		if (m->below[i] == NULL)
			return errno;
	}
	return err == 0 ? urn_sv_differ(m) : err;
}

static void *
urn_sv_make(const struct urn_verbs_origin *from)
{
	struct urn_sv_made *m = calloc(1, sizeof(*m));
	int err;

	(void)from;
	if (m == NULL) {
		urn_fail(ENOMEM, "no memory for a virtual device");
		return NULL;
	}
	m->log_fd = -1;
	err = urn_sv_made_open(m);
	if (err == 0)
		return m;
	urn_sv_made_close(m);
	errno = err;
	return NULL;
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
	memcpy(ctx->place, m->place, sizeof(ctx->place));
	ctx->options = m->options;
	ctx->log_fd = m->log_fd;
	ctx->log_journal = m->log_journal;
	ctx->log_number = atomic_fetch_add(&urn_sv_opened, 1) + 1;
	urn_sv_front(ctx, m);
	ctx->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ctx->front.vctx.context.async_fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	if (ctx->wake_fd < 0 || ctx->front.vctx.context.async_fd < 0) {
		urn_fail(errno, "no descriptor for a virtual device: %s", strerror(errno));
		goto err_fd;
	}
	if (urn_sv_remember(ctx) != 0)
		goto err_fd;
	ctx->life = urn_sv_life_begin();
	if (ctx->life == NULL)
		goto err_fd;
	pthread_mutex_init(&ctx->lock, NULL);
	pthread_cond_init(&ctx->cond, NULL);
	urn_sv_fork_join(ctx);
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
	urn_sv_fork_leave(ctx);
	urn_sv_ends_closed(ctx);
	for (int i = 0; i < URN_SV_ADAPTERS; i++)
		if (ctx->below[i] != NULL)
			ibv_close_device(ctx->below[i]);
	urn_sv_wrecks_close(ctx);
	urn_sv_life_leave(ctx->life);
	close(ctx->wake_fd);
	close(c->async_fd);
	if (ctx->log_fd >= 0)
		close(ctx->log_fd);
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
	.query_port = urn_sv_in_query_port,
	.query_gid = urn_sv_in_query_gid,
	.get_async_event = urn_sv_get_async_event,
	.alloc_pd = urn_sv_in_alloc_pd,
	.dealloc_pd = urn_sv_in_dealloc_pd,
	.reg_mr = urn_sv_in_reg_mr,
	.dereg_mr = urn_sv_in_dereg_mr,
	.alloc_mw = urn_sv_alloc_mw,
	.dealloc_mw = urn_sv_dealloc_mw,
	.create_ah = urn_sv_in_create_ah,
	.destroy_ah = urn_sv_in_destroy_ah,
	.create_comp_channel = urn_sv_in_create_channel,
	.destroy_comp_channel = urn_sv_in_destroy_channel,
	.get_cq_event = urn_sv_get_cq_event,
	.create_cq = urn_sv_in_create_cq,
	.resize_cq = urn_sv_in_resize_cq,
	.destroy_cq = urn_sv_destroy_cq,
	.create_srq = urn_sv_in_create_srq,
	.modify_srq = urn_sv_modify_srq,
	.query_srq = urn_sv_query_srq,
	.destroy_srq = urn_sv_in_destroy_srq,
	.create_qp = urn_sv_in_create_qp,
	.modify_qp = urn_sv_in_modify_qp,
	.connect_qp = urn_sv_connect_qp,
	.query_qp = urn_sv_in_query_qp,
	.destroy_qp = urn_sv_in_destroy_qp,
	.mcast = urn_sv_mcast,
	.explain = urn_sv_explain,
	.post_send = urn_sv_post_send,
	.post_recv = urn_sv_post_recv,
	.post_srq_recv = urn_sv_post_srq_recv,
	.bind_mw = urn_sv_bind_mw,
	.poll_cq = urn_sv_poll_cq,
	.req_notify_cq = urn_sv_req_notify,
	.cm = &urn_sv_cm,
};
