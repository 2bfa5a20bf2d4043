/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual devices in a child of fork(). The adapters are the parent's, and so are the descriptors
 * behind channels. The child has no thread of the device, and no thread that could hold a lock. So
 * the locks are held across fork(), for whole objects, and made anew in the child, where calls fail
 * with EIO, polls with -1, and objects can be destroyed.
 */
#include "verbs/session/heal.h"
#include "verbs/session/session.h"

#include <errno.h>

/* urn_sv_fork_lock protects the list of contexts; taken before the lock of a context. */
static pthread_mutex_t urn_sv_fork_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, urn_sv_ctx) urn_sv_fork_list; /* all contexts; urn_sv_fork_lock */
static pthread_once_t urn_sv_fork_once = PTHREAD_ONCE_INIT;

static void
urn_sv_fork_hold(void)
{
	struct urn_sv_ctx *ctx;

	pthread_mutex_lock(&urn_sv_fork_lock);
	LIST_FOREACH(ctx, &urn_sv_fork_list, forks)
		urn_sv_lock_first(ctx);
}

static void
urn_sv_fork_parent(void)
{
	struct urn_sv_ctx *ctx;

	LIST_FOREACH(ctx, &urn_sv_fork_list, forks)
		urn_sv_unlock(ctx);
	pthread_mutex_unlock(&urn_sv_fork_lock);
}

/* Threads of the parent may have held these locks, which nobody gives back here. */
static void
urn_sv_fork_objects(struct urn_sv_ctx *ctx)
{
	struct urn_sv_qp *q;
	struct urn_sv_cq *cq;

	LIST_FOREACH(q, &ctx->qps, link)
		urn_sv_wr_forked(q);
	LIST_FOREACH(cq, &ctx->cqs, link)
		pthread_mutex_init(&cq->polling, NULL);
	urn_sv_ends_forked(ctx);
}

static void
urn_sv_fork_child(void)
{
	struct urn_sv_ctx *ctx;

	pthread_mutex_init(&urn_sv_fork_lock, NULL);
	LIST_FOREACH(ctx, &urn_sv_fork_list, forks) {
		pthread_mutex_init(&ctx->lock, NULL);
		pthread_cond_init(&ctx->cond, NULL);
		pthread_mutex_init(&ctx->front.vctx.context.mutex, NULL);
		atomic_store(&ctx->waiting, 0);
		ctx->forked = true;
		ctx->replacing = false;
		ctx->calls = 0;
		for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++)
			ctx->dead[i] = ctx->over[i] = true;
		urn_sv_fork_objects(ctx);
	}
}

static void
urn_sv_fork_start(void)
{
	(void)pthread_atfork(urn_sv_fork_hold, urn_sv_fork_parent, urn_sv_fork_child);
}

void
urn_session_forks(void)
{
	(void)pthread_once(&urn_sv_fork_once, urn_sv_fork_start);
}

void
urn_sv_fork_join(struct urn_sv_ctx *ctx)
{
	urn_session_forks();
	pthread_mutex_lock(&urn_sv_fork_lock);
	LIST_INSERT_HEAD(&urn_sv_fork_list, ctx, forks);
	pthread_mutex_unlock(&urn_sv_fork_lock);
}

void
urn_sv_fork_leave(struct urn_sv_ctx *ctx)
{
	pthread_mutex_lock(&urn_sv_fork_lock);
	LIST_REMOVE(ctx, forks);
	pthread_mutex_unlock(&urn_sv_fork_lock);
}

int
urn_sv_forked(const struct urn_sv_ctx *ctx)
{
	return !ctx->forked ? 0
			    : urn_fail(EIO, "the device was opened before fork(), and is the "
					    "parent's: open it in this process");
}
