/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion channels of the virtual device. An event of an adapter may be of a flush READ: only a
 * completion in the software queue is an event of the program. So the program's descriptor is
 * readable only while such an event is due, and the context's thread reads the channels of the
 * adapters. A thread of the program that waits in ibv_get_cq_event() reads them, too, and so need
 * not wait for the other thread.
 */
#include "verbs/front.h"
#include "verbs/session/heal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { URN_SV_CHANNELS_AT_A_TIME = 16 };

static int
urn_sv_watch(int set, int fd, struct urn_sv_channel *ch)
{
	struct epoll_event ev = {.events = EPOLLIN, .data = {.ptr = ch}};

	return epoll_ctl(set, EPOLL_CTL_ADD, fd, &ev);
}

struct ibv_comp_channel *
urn_sv_channel_take(struct urn_sv_channel *ch, struct urn_sv_ctx *ctx, uint32_t adapter)
{
	struct ibv_comp_channel *below = ch->below[adapter];

	/* A child of fork() may have a copy of the descriptor: closing alone does not do; and a
	 * child must leave the parent's sets alone. */
	if (below != NULL && !ctx->forked) {
		(void)epoll_ctl(ctx->channels_fd, EPOLL_CTL_DEL, below->fd, NULL);
		(void)epoll_ctl(ch->any_fd, EPOLL_CTL_DEL, below->fd, NULL);
	}
	ch->below[adapter] = NULL;
	return below;
}

void
urn_sv_channel_end(struct urn_sv_channel *ch, struct urn_sv_ctx *ctx, uint32_t adapter)
{
	struct ibv_comp_channel *below = urn_sv_channel_take(ch, ctx, adapter);

	if (below != NULL)
		ibv_destroy_comp_channel(below);
}

/* End what a channel is made of; the lock is held. */
static void
urn_sv_channel_free(struct urn_sv_channel *ch, struct urn_sv_ctx *ctx)
{
	const int fd[] = {ch->event_fd, ch->any_fd, ch->ibv.fd};

	for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++)
		urn_sv_channel_end(ch, ctx, i);
	for (unsigned int i = 0; i < sizeof(fd) / sizeof(fd[0]); i++)
		if (fd[i] >= 0)
			close(fd[i]);
}

int
urn_sv_channel_below(struct urn_sv_channel *ch, struct urn_sv_ctx *ctx, uint32_t adapter)
{
	struct ibv_comp_channel *below = ibv_create_comp_channel(ctx->below[adapter]);

	ch->below[adapter] = below;
	ch->over[adapter] = false;
	if (below == NULL)
		return errno;
	(void)fcntl(below->fd, F_SETFL, fcntl(below->fd, F_GETFL) | O_NONBLOCK);
	if (urn_sv_watch(ch->any_fd, below->fd, ch) != 0 ||
	    urn_sv_watch(ctx->channels_fd, below->fd, ch) != 0)
		return urn_fail(errno, "a channel can't be watched: %s", strerror(errno));
	return 0;
}

/* Make the channels of the adapters that are there, at least of one; the lock is held. returns: 0
 * or an errno value with its text */
static int
urn_sv_channel_make(struct urn_sv_channel *ch, struct urn_sv_ctx *ctx)
{
	int err = urn_fail(EIO, "both adapters of the virtual device are away");

	ch->ibv.fd = epoll_create1(EPOLL_CLOEXEC);
	ch->any_fd = epoll_create1(EPOLL_CLOEXEC);
	ch->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ch->ibv.fd < 0 || ch->any_fd < 0 || ch->event_fd < 0 ||
	    urn_sv_watch(ch->ibv.fd, ch->event_fd, ch) != 0 ||
	    urn_sv_watch(ch->any_fd, ch->event_fd, ch) != 0)
		return urn_fail(errno, "no descriptor for a channel: %s", strerror(errno));
	for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++) {
		int its = ctx->below[i] != NULL ? urn_sv_channel_below(ch, ctx, i) : EIO;

		if (its != 0 && its != EIO)
			return its;
		if (its == 0)
			err = 0;
	}
	return err;
}

struct ibv_comp_channel *
urn_sv_create_channel(struct ibv_context *c)
{
	struct urn_sv_channel *ch = urn_object_alloc(sizeof(*ch));
	struct urn_sv_ctx *ctx = urn_sv_ctx(c);
	int err;

	if (ch == NULL)
		return NULL;
	ch->ibv.fd = ch->any_fd = ch->event_fd = -1;
	err = urn_sv_thread_start(ctx);
	urn_sv_lock_first(ctx);
	if (err == 0)
		err = urn_sv_channel_make(ch, ctx);
	if (err != 0)
		urn_sv_channel_free(ch, ctx);
	else
		LIST_INSERT_HEAD(&ctx->channels, ch, link);
	urn_sv_unlock(ctx);
	if (err == 0)
		return &ch->ibv;
	free(ch);
	errno = err;
	return NULL;
}

int
urn_sv_destroy_channel(struct ibv_comp_channel *channel)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(channel->context);

	/* The thread looks at channels with the lock held. */
	urn_sv_lock_first(ctx);
	LIST_REMOVE((struct urn_sv_channel *)channel, link);
	urn_sv_channel_free((struct urn_sv_channel *)channel, ctx);
	urn_sv_unlock(ctx);
	return 0;
}

void
urn_sv_fire(struct urn_sv_cq *cq)
{
	const uint64_t one = 1;

	cq->armed = false;
	if (cq->channel == NULL || urn_sv_ctx(cq->ibv.context)->forked)
		return;
	cq->due = true;
	/* A full counter is readable already. */
	if (write(cq->channel->event_fd, &one, sizeof(one)) < 0)
		return;
}

/* Arm the queues below; false: completions that came meanwhile have fired the event. */
static void
urn_sv_arm_below(struct urn_sv_cq *cq)
{
	for (int i = 0; i < URN_SV_ADAPTERS; i++)
		if (cq->below[i] != NULL)
			(void)ibv_req_notify_cq(cq->below[i], 0);
}

int
urn_sv_req_notify(struct ibv_cq *ibcq, int solicited_only)
{
	struct urn_sv_cq *cq = (struct urn_sv_cq *)ibcq;
	struct urn_sv_ctx *ctx = urn_sv_ctx(ibcq->context);

	if (urn_sv_forked(ctx) != 0)
		return EIO;
	if (cq->channel == NULL)
		return 0;
	urn_sv_lock(ctx);
	/* Asking for solicited completions does not take back asking for any. */
	cq->solicited = solicited_only && (cq->solicited || !cq->armed);
	cq->armed = true;
	if (cq->head != cq->tail)
		urn_sv_fire(cq);
	else
		urn_sv_arm_below(cq);
	urn_sv_unlock(ctx);
	return 0;
}

/* The first queue with an event that is due. NULL: there is none */
static struct urn_sv_cq *
urn_sv_channel_first(struct urn_sv_ctx *ctx, const struct urn_sv_channel *ch)
{
	struct urn_sv_cq *cq;

	LIST_FOREACH(cq, &ctx->cqs, link)
		if (cq->channel == ch && cq->due)
			break;
	return cq;
}

void
urn_sv_channel_calm(struct urn_sv_ctx *ctx, const struct urn_sv_channel *ch)
{
	uint64_t n;

	if (!ctx->forked && urn_sv_channel_first(ctx, ch) == NULL)
		(void)!read(ch->event_fd, &n, sizeof(n));
}

/* Take an event that is due. returns: NULL: there is none */
static struct urn_sv_cq *
urn_sv_channel_due(struct urn_sv_ctx *ctx, const struct urn_sv_channel *ch)
{
	struct urn_sv_cq *cq = urn_sv_channel_first(ctx, ch);

	if (cq == NULL)
		return NULL;
	cq->due = false;
	cq->got++;
	urn_sv_channel_calm(ctx, ch);
	return cq;
}

/* No more events come from an adapter: look at each armed queue. */
static void
urn_sv_channel_over(struct urn_sv_ctx *ctx, struct urn_sv_channel *ch, int i)
{
	struct urn_sv_cq *cq;

	ch->over[i] = true;
	(void)epoll_ctl(ch->any_fd, EPOLL_CTL_DEL, ch->below[i]->fd, NULL);
	(void)epoll_ctl(ctx->channels_fd, EPOLL_CTL_DEL, ch->below[i]->fd, NULL);
	LIST_FOREACH(cq, &ctx->cqs, link)
		if (cq->channel == ch)
			urn_sv_progress(cq);
}

/* Read the events of an adapter's channel. */
static void
urn_sv_channel_read(struct urn_sv_ctx *ctx, struct urn_sv_channel *ch, int i)
{
	struct ibv_cq *below;
	void *arg;

	while (ch->below[i] != NULL && !ch->over[i]) {
		struct urn_sv_cq *cq;

		if (ibv_get_cq_event(ch->below[i], &below, &arg) != 0) {
			if (errno != EAGAIN && errno != EINTR)
				urn_sv_channel_over(ctx, ch, i);
			return;
		}
		ibv_ack_cq_events(below, 1);
		cq = arg;
		urn_sv_progress(cq);
		if (!cq->armed)
			continue;
		urn_sv_arm_below(cq);
		urn_sv_progress(cq);
	}
}

/* The lock is held. returns: the queue of an event; NULL: there is none */
static struct urn_sv_cq *
urn_sv_channel_look(struct urn_sv_ctx *ctx, struct urn_sv_channel *ch)
{
	struct urn_sv_cq *cq = urn_sv_channel_due(ctx, ch);

	for (int i = 0; i < URN_SV_ADAPTERS && cq == NULL; i++) {
		urn_sv_channel_read(ctx, ch, i);
		cq = urn_sv_channel_due(ctx, ch);
	}
	return cq;
}

void
urn_sv_channel_events(struct urn_sv_ctx *ctx)
{
	struct epoll_event ev[URN_SV_CHANNELS_AT_A_TIME];
	int n = epoll_wait(ctx->channels_fd, ev, URN_SV_CHANNELS_AT_A_TIME, 0);

	for (int k = 0; k < n; k++)
		for (int i = 0; i < URN_SV_ADAPTERS; i++)
			urn_sv_channel_read(ctx, ev[k].data.ptr, i);
}

int
urn_sv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **out)
{
	struct urn_sv_channel *ch = (struct urn_sv_channel *)channel;
	struct urn_sv_ctx *ctx = urn_sv_ctx(channel->context);
	struct pollfd p = {.fd = ch->any_fd, .events = POLLIN};

	if (urn_sv_forked(ctx) != 0)
		return -1;
	for (;;) {
		struct urn_sv_cq *cq;

		urn_sv_lock(ctx);
		cq = urn_sv_channel_look(ctx, ch);
		urn_sv_unlock(ctx);
		if (cq != NULL) {
			*out = &cq->ibv;
			return 0;
		}
		if (fcntl(channel->fd, F_GETFL) & O_NONBLOCK) {
			errno = EAGAIN;
			return -1;
		}
		if (poll(&p, 1, -1) < 0)
			return -1;
	}
}
