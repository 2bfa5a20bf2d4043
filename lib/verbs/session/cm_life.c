/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends of connection management while the primary adapter is lost and comes back (FO-19). */
#include "verbs/front.h"
#include "verbs/session/cm_end.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

int
urn_sv_end_watch(const struct urn_sv_end *e, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN};

	return epoll_ctl(e->front.fd, EPOLL_CTL_ADD, fd, &ev) == 0
		       ? 0
		       : urn_fail(errno, "events can't be watched: %s", strerror(errno));
}

void
urn_sv_end_over(const struct urn_sv_end *e, const struct urn_sv_ctx *ctx)
{
	if (e->below != NULL && !ctx->forked)
		(void)epoll_ctl(e->front.fd, EPOLL_CTL_DEL, urn_cm_end_fd(e->below), NULL);
}

void
urn_sv_end_fire(struct urn_sv_end *e)
{
	uint64_t n = 1;

	/* A full counter is readable already. */
	if (!TAILQ_EMPTY(&e->ids.due))
		(void)!write(e->event_fd, &n, sizeof(n));
	else
		(void)!read(e->event_fd, &n, sizeof(n));
}

int
urn_sv_end_make(struct urn_sv_end *e)
{
	int err = e->ctx->below[0] == NULL
			  ? urn_fail(EIO, "the primary adapter of the virtual device is away")
			  : urn_cm_end_open(&e->below, e->ctx->below[0]);

	if (err == 0)
		err = urn_sv_end_watch(e, urn_cm_end_fd(e->below));
	if (err != 0) {
		urn_cm_end_close(e->below);
		e->below = NULL;
	}
	return err;
}

/* ---- the primary adapter goes and comes; the lock of the device is held */

/* True when the connection of a queue pair outlives the adapter. */
static bool
urn_sv_end_lives(const struct urn_sv_qp *q)
{
	return q->mode == URN_SV_SESSION && q->c.state != URN_SESS_DEAD && !q->left;
}

void
urn_sv_end_lost(struct urn_sv_end *e)
{
	const struct urn_sv_qp *q;

	LIST_FOREACH(q, &e->ctx->qps, link)
		if (urn_sv_end_lives(q))
			urn_sv_cm_lives(&e->ids, q->ibv.qp_num);
	urn_sv_cm_lost(&e->ids);
	urn_sv_end_fire(e);
}

void
urn_sv_ends_lost(struct urn_sv_ctx *ctx)
{
	struct urn_sv_end *e;

	LIST_FOREACH(e, &ctx->ends, link) {
		urn_sv_end_over(e, ctx);
		pthread_mutex_lock(&e->lock);
		urn_sv_end_lost(e);
		pthread_mutex_unlock(&e->lock);
	}
}

void
urn_sv_ends_over(struct urn_sv_qp *q)
{
	struct urn_sv_end *e;

	if (q->ctx->forked) /* ids and descriptors are the parent's */
		return;
	LIST_FOREACH(e, &q->ctx->ends, link) {
		pthread_mutex_lock(&e->lock);
		/* A peer that has moved may have no id any more to say so. */
		urn_sv_cm_ended(&e->ids, q->ibv.qp_num, q->c.epoch != 0);
		urn_sv_end_fire(e);
		pthread_mutex_unlock(&e->lock);
	}
}

void
urn_sv_ends_strip(struct urn_sv_ctx *ctx)
{
	struct urn_sv_end *e;

	LIST_FOREACH(e, &ctx->ends, link) {
		urn_sv_end_over(e, ctx);
		urn_cm_end_close(e->below);
		e->below = NULL;
	}
}

/* Listen anew. returns: 0 or an errno value with its text */
static int
urn_sv_end_listen_anew(struct urn_sv_end *e, struct urn_sv_cm_id *id)
{
	uint32_t given;
	int err = urn_cm_end_listen(e->below, id->service, id->cookie, id->backlog, &given);

	if (err == 0)
		urn_sv_cm_below(&e->ids, id, given);
	return err;
}

/* The listeners of an end. No call of the program is in progress, so the ids stay as they are. */
static int
urn_sv_end_listeners_anew(struct urn_sv_end *e)
{
	struct urn_sv_ctx *ctx = e->ctx;
	struct urn_sv_cm_id *id;
	int err = 0;

	for (uint32_t i = 0; i < URN_SV_CM_BUCKETS; i++)
		LIST_FOREACH(id, &e->ids.front[i], by_front)
			if (err == 0 && id->state == URN_SV_CM_LISTENER && id->below == 0 &&
			    urn_sv_rest_due(ctx, 0, &id->tried))
				err = urn_sv_rest_left_out(ctx, 0, "listener", id->front,
							   urn_sv_end_listen_anew(e, id));
	return err;
}

int
urn_sv_ends_anew(struct urn_sv_ctx *ctx)
{
	struct urn_sv_end *e;
	int err = 0;

	LIST_FOREACH(e, &ctx->ends, link) {
		if (err == 0 && e->below == NULL && urn_sv_rest_due(ctx, 0, &e->tried[0]))
			err = urn_sv_rest_left_out(ctx, 0, "connection management",
						   (uint32_t)e->front.fd, urn_sv_end_make(e));
		if (err == 0 && e->below != NULL)
			err = urn_sv_end_listeners_anew(e);
	}
	return err;
}

void
urn_sv_ends_closed(struct urn_sv_ctx *ctx)
{
	struct urn_sv_end *e;

	LIST_FOREACH(e, &ctx->ends, link) {
		urn_sv_end_over(e, ctx);
		e->ctx = NULL;
	}
	LIST_INIT(&ctx->ends);
}

void
urn_sv_ends_forked(struct urn_sv_ctx *ctx)
{
	struct urn_sv_end *e;

	LIST_FOREACH(e, &ctx->ends, link) {
		pthread_mutex_init(&e->lock, NULL);
		pthread_mutex_init(&e->making, NULL);
		e->forked = true;
	}
}
