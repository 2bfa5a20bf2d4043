/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion channels of the virtual device. The program's descriptor is an epoll set: of a
 * descriptor of the software queues, and of the channels of all adapters. An event of an adapter
 * may be of a flush READ: only a completion in the software queue is an event of the program.
 */
#include "verbs/front.h"
#include "verbs/session/sv.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

static int
urn_sv_watch(int set, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN, .data = {.fd = fd}};

	return epoll_ctl(set, EPOLL_CTL_ADD, fd, &ev);
}

static void
urn_sv_channel_free(struct urn_sv_channel *ch)
{
	for (int i = 0; i < URN_SV_ADAPTERS; i++)
		if (ch->below[i] != NULL)
			ibv_destroy_comp_channel(ch->below[i]);
	if (ch->event_fd >= 0)
		close(ch->event_fd);
	if (ch->ibv.fd >= 0)
		close(ch->ibv.fd);
}

static int
urn_sv_channel_make(struct urn_sv_channel *ch, struct urn_sv_ctx *ctx)
{
	ch->ibv.fd = epoll_create1(EPOLL_CLOEXEC);
	ch->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ch->ibv.fd < 0 || ch->event_fd < 0 || urn_sv_watch(ch->ibv.fd, ch->event_fd) != 0)
		return urn_fail(errno, "no descriptor for a channel: %s", strerror(errno));
	for (int i = 0; i < URN_SV_ADAPTERS; i++) {
		struct ibv_comp_channel *below = ibv_create_comp_channel(ctx->below[i]);

		ch->below[i] = below;
		if (below == NULL)
			return errno;
		(void)fcntl(below->fd, F_SETFL, fcntl(below->fd, F_GETFL) | O_NONBLOCK);
		if (urn_sv_watch(ch->ibv.fd, below->fd) != 0)
			return urn_fail(errno, "a channel can't be watched: %s", strerror(errno));
	}
	return 0;
}

struct ibv_comp_channel *
urn_sv_create_channel(struct ibv_context *c)
{
	struct urn_sv_channel *ch = urn_object_alloc(sizeof(*ch));
	int err;

	if (ch == NULL)
		return NULL;
	ch->ibv.fd = ch->event_fd = -1;
	err = urn_sv_channel_make(ch, urn_sv_ctx(c));
	if (err == 0)
		return &ch->ibv;
	urn_sv_channel_free(ch);
	free(ch);
	errno = err;
	return NULL;
}

int
urn_sv_destroy_channel(struct ibv_comp_channel *channel)
{
	urn_sv_channel_free((struct urn_sv_channel *)channel);
	return 0;
}

void
urn_sv_fire(struct urn_sv_cq *cq)
{
	const uint64_t one = 1;

	cq->armed = false;
	if (cq->channel == NULL)
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
		(void)ibv_req_notify_cq(cq->below[i], 0);
}

int
urn_sv_req_notify(struct ibv_cq *ibcq, int solicited_only)
{
	struct urn_sv_cq *cq = (struct urn_sv_cq *)ibcq;
	struct urn_sv_ctx *ctx = urn_sv_ctx(ibcq->context);

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

/* Take an event that is due. returns: NULL: there is none */
static struct urn_sv_cq *
urn_sv_channel_due(struct urn_sv_ctx *ctx, const struct urn_sv_channel *ch)
{
	struct urn_sv_cq *cq;

	LIST_FOREACH(cq, &ctx->cqs, link)
		if (cq->channel == ch && cq->due)
			break;
	if (cq == NULL)
		return NULL;
	cq->due = false;
	cq->got++;
	return cq;
}

/* No more events come from an adapter: look at each armed queue. */
static void
urn_sv_channel_over(struct urn_sv_ctx *ctx, struct urn_sv_channel *ch, int i)
{
	struct urn_sv_cq *cq;

	ch->over[i] = true;
	(void)epoll_ctl(ch->ibv.fd, EPOLL_CTL_DEL, ch->below[i]->fd, NULL);
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

	while (!ch->over[i]) {
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
	uint64_t n;

	for (int i = 0; i < URN_SV_ADAPTERS && cq == NULL; i++) {
		urn_sv_channel_read(ctx, ch, i);
		cq = urn_sv_channel_due(ctx, ch);
	}
	/* The descriptor stays readable as long as an event may be due. */
	if (cq == NULL)
		(void)!read(ch->event_fd, &n, sizeof(n));
	return cq;
}

int
urn_sv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **out)
{
	struct urn_sv_channel *ch = (struct urn_sv_channel *)channel;
	struct urn_sv_ctx *ctx = urn_sv_ctx(channel->context);
	struct pollfd p = {.fd = channel->fd, .events = POLLIN};

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
