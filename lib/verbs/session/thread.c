/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread of a virtual device: learns of dead adapters, answers look-ups, reads control
 * messages, and carries migrations out. The thread runs from the first queue pair on that may have
 * a session.
 */
#include "attach/thread.h"
#include "verbs/front.h"
#include "verbs/session/sv.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	URN_SV_TICK_MS = 50, /* between repeats of a REPORT */
	URN_SV_CTL_CQE = 64, /* entries of a queue of control paths in the beginning */
	URN_SV_FDS = 2 + 2 * URN_SV_ADAPTERS,
};

void
urn_sv_kick(struct urn_sv_ctx *ctx)
{
	const uint64_t one = 1;

	/* A full counter is readable already. */
	(void)!write(ctx->wake_fd, &one, sizeof(one));
}

/* ---- events */

static void
urn_sv_adapter_dead(struct urn_sv_ctx *ctx, uint32_t adapter)
{
	const uint64_t one = 1;
	struct urn_sv_qp *q;

	if (ctx->dead[adapter])
		return;
	ctx->dead[adapter] = ctx->over[adapter] = true;
	LIST_FOREACH(q, &ctx->qps, link)
		for (uint32_t i = 0; i < URN_SV_PATHS && q->mode == URN_SV_SESSION; i++)
			if (q->path[i].mine == adapter)
				urn_sv_down(q, urn_sv_bit(q, i));
	pthread_cond_broadcast(&ctx->cond);
	if (ctx->dead[0] && ctx->dead[1])
		(void)!write(ctx->front.vctx.context.async_fd, &one, sizeof(one));
}

/* The events of an adapter are not shown (FO-1). */
static void
urn_sv_async(struct urn_sv_ctx *ctx, uint32_t adapter)
{
	struct ibv_async_event ev;

	while (ibv_get_async_event(ctx->below[adapter], &ev) == 0) {
		if (ev.event_type == IBV_EVENT_DEVICE_FATAL)
			urn_sv_adapter_dead(ctx, adapter);
		ibv_ack_async_event(&ev);
	}
	if (errno == EIO)
		urn_sv_adapter_dead(ctx, adapter);
}

static void
urn_sv_cm_events(struct urn_sv_ctx *ctx)
{
	struct urn_abi_cm_event ev;

	while (urn_cm_end_event(ctx->cm, &ev) == 0)
		urn_sv_cm_event(ctx, &ev);
}

static void
urn_sv_control_events(struct urn_sv_ctx *ctx, uint32_t adapter)
{
	struct ibv_cq *cq;
	void *arg;

	while (ibv_get_cq_event(ctx->ctl_channel[adapter], &cq, &arg) == 0)
		ibv_ack_cq_events(cq, 1);
	(void)ibv_req_notify_cq(ctx->ctl_cq[adapter], 0);
	urn_sv_control_poll(ctx, adapter);
}

/* ---- the loop */

/* True when a connection waits for the peer. */
static bool
urn_sv_waits(const struct urn_sv_ctx *ctx)
{
	return ctx->group.moving != 0;
}

static void
urn_sv_tick(struct urn_sv_ctx *ctx)
{
	struct urn_sv_qp *q;

	LIST_FOREACH(q, &ctx->qps, link)
		if (q->mode == URN_SV_SESSION) {
			urn_sess_tick(&q->c);
			urn_sv_after(q);
		}
}

/* Fill in the descriptors; those of an adapter that is over are left out. */
static void
urn_sv_fds(const struct urn_sv_ctx *ctx, struct pollfd p[URN_SV_FDS])
{
	p[0] = (struct pollfd){.fd = ctx->wake_fd, .events = POLLIN};
	p[1] = (struct pollfd){.fd = ctx->over[0] ? -1 : urn_cm_end_fd(ctx->cm), .events = POLLIN};
	for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++) {
		bool over = ctx->over[i];

		p[2 + 2 * i] = (struct pollfd){.fd = over ? -1 : ctx->below[i]->async_fd,
					       .events = POLLIN};
		p[3 + 2 * i] = (struct pollfd){.fd = over ? -1 : ctx->ctl_channel[i]->fd,
					       .events = POLLIN};
	}
}

/* Look at what is readable; the lock is held. */
static void
urn_sv_look(struct urn_sv_ctx *ctx, const struct pollfd p[URN_SV_FDS], bool tick)
{
	uint64_t n;

	(void)!read(ctx->wake_fd, &n, sizeof(n));
	for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++)
		if (p[2 + 2 * i].revents)
			urn_sv_async(ctx, i);
	if (p[1].revents)
		urn_sv_cm_events(ctx);
	for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++)
		if (p[3 + 2 * i].revents)
			urn_sv_control_events(ctx, i);
	if (tick)
		urn_sv_tick(ctx);
	urn_sv_settle(ctx);
}

static uint64_t
urn_sv_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void *
urn_sv_thread(void *arg)
{
	struct pollfd p[URN_SV_FDS];
	struct urn_sv_ctx *ctx = arg;
	bool stop = false, waits = false;
	uint64_t due = 0; /* ms: when messages are repeated; valid with waits */

	while (!stop) {
		uint64_t now = urn_sv_now_ms();
		bool tick;

		urn_sv_fds(ctx, p);
		(void)poll(p, URN_SV_FDS, !waits ? -1 : now < due ? (int)(due - now) : 0);
		urn_sv_lock_first(ctx);
		now = urn_sv_now_ms();
		tick = waits && now >= due;
		urn_sv_look(ctx, p, tick);
		if (tick || !waits)
			due = now + URN_SV_TICK_MS;
		waits = urn_sv_waits(ctx);
		stop = ctx->stop;
		urn_sv_unlock(ctx);
	}
	return NULL;
}

/* ---- beginning and end */

static void
urn_sv_nonblocking(int fd)
{
	(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/* Make what the thread needs. returns: 0 or an errno value with its text */
static int
urn_sv_thread_make(struct urn_sv_ctx *ctx)
{
	int err = urn_cm_end_open(&ctx->cm, ctx->below[0]);

	for (uint32_t i = 0; i < URN_SV_ADAPTERS && err == 0; i++) {
		ctx->ctl_channel[i] = ibv_create_comp_channel(ctx->below[i]);
		if (ctx->ctl_channel[i] == NULL)
			return errno;
		ctx->ctl_cq[i] =
			ibv_create_cq(ctx->below[i], URN_SV_CTL_CQE, NULL, ctx->ctl_channel[i], 0);
		if (ctx->ctl_cq[i] == NULL)
			return errno;
		urn_sv_nonblocking(ctx->ctl_channel[i]->fd);
		urn_sv_nonblocking(ctx->below[i]->async_fd);
		err = ibv_req_notify_cq(ctx->ctl_cq[i], 0);
	}
	return err;
}

static void
urn_sv_thread_unmake(struct urn_sv_ctx *ctx)
{
	for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++) {
		if (ctx->ctl_cq[i] != NULL)
			(void)ibv_destroy_cq(ctx->ctl_cq[i]);
		if (ctx->ctl_channel[i] != NULL)
			(void)ibv_destroy_comp_channel(ctx->ctl_channel[i]);
		ctx->ctl_cq[i] = NULL;
		ctx->ctl_channel[i] = NULL;
	}
	urn_cm_end_close(ctx->cm);
	ctx->cm = NULL;
}

int
urn_sv_thread_start(struct urn_sv_ctx *ctx)
{
	int err = 0;

	urn_sv_lock_first(ctx);
	if (!ctx->runs) {
		err = urn_sv_thread_make(ctx);
		if (err == 0)
			err = urn_thread_start(&ctx->thread, urn_sv_thread, ctx);
		if (err != 0)
			urn_sv_thread_unmake(ctx);
		ctx->runs = err == 0;
	}
	urn_sv_unlock(ctx);
	return err;
}

void
urn_sv_thread_end(struct urn_sv_ctx *ctx)
{
	if (!ctx->runs)
		return;
	urn_sv_lock_first(ctx);
	ctx->stop = true;
	urn_sv_unlock(ctx);
	urn_sv_kick(ctx);
	pthread_join(ctx->thread, NULL);
	urn_sv_thread_unmake(ctx);
}
