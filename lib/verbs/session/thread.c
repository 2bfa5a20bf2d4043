/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread of a virtual device: learns of dead adapters, answers look-ups, reads control
 * messages and the channels of adapters, and carries migrations out. The thread runs from the first
 * domain, completion queue or channel on.
 */
#include "attach/thread.h"
#include "verbs/front.h"
#include "verbs/session/heal.h"
#include "verbs/session/log.h"
#include "verbs/session/srq.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum {
	URN_SV_TICK_MS = 50, /* between repeats of a REPORT */
	URN_SV_CTL_CQE = 64, /* entries of a queue of control paths in the beginning */
	URN_SV_FDS = 3 + 2 * URN_SV_ADAPTERS,
};

void
urn_sv_kick(struct urn_sv_ctx *ctx)
{
	const uint64_t one = 1;

	if (ctx->forked)
		return;
	/* A full counter is readable already. */
	(void)!write(ctx->wake_fd, &one, sizeof(one));
}

/* ---- events */

static void
urn_sv_adapter_dead(struct urn_sv_ctx *ctx, uint32_t adapter)
{
	struct urn_sv_qp *q;

	if (ctx->dead[adapter])
		return;
	ctx->dead[adapter] = ctx->over[adapter] = true;
	urn_sv_log_device(ctx, URN_SV_E_ADAPTER_LOST, "adapter %s is lost",
			  urn_verbs_ctx(ctx->below[adapter])->id.name);
	LIST_FOREACH(q, &ctx->qps, link)
		if (q->mode == URN_SV_SESSION)
			urn_sv_lost(q, adapter);
	if (adapter == 0)
		urn_sv_ends_lost(ctx);
	pthread_cond_broadcast(&ctx->cond);
	urn_sv_again_want(ctx, adapter);
	if (!ctx->dead[0] || !ctx->dead[1] || ctx->fatal)
		return; /* one word for each event */
	ctx->fatal = true;
	urn_sv_event_tell(ctx);
}

/* The limit of a shared receive queue. */
static void
urn_sv_low(struct urn_sv_ctx *ctx, const struct ibv_srq *below)
{
	if (urn_sv_srq_limit(ctx, below))
		urn_sv_event_tell(ctx);
}

/* The events of an adapter are not shown (FO-1), but for those of shared receive queues. */
static void
urn_sv_async(struct urn_sv_ctx *ctx, uint32_t adapter)
{
	struct ibv_async_event ev;

	while (ibv_get_async_event(ctx->below[adapter], &ev) == 0) {
		if (ev.event_type == IBV_EVENT_DEVICE_FATAL)
			urn_sv_adapter_dead(ctx, adapter);
		else if (ev.event_type == IBV_EVENT_PORT_ERR)
			urn_sv_link(ctx, adapter, false);
		else if (ev.event_type == IBV_EVENT_PORT_ACTIVE)
			urn_sv_link(ctx, adapter, true);
		else if (ev.event_type == IBV_EVENT_SRQ_LIMIT_REACHED)
			urn_sv_low(ctx, ev.element.srq);
		else if (ev.event_type == IBV_EVENT_QP_LAST_WQE_REACHED)
			urn_sv_last_reached(ctx, adapter, ev.element.qp->qp_num);
		else if (ev.event_type == IBV_EVENT_CLIENT_REREGISTER) /* events were lost */
			urn_sv_link(ctx, adapter, urn_sv_link_up(ctx, adapter));
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
	p[URN_SV_FDS - 1] = (struct pollfd){.fd = ctx->channels_fd, .events = POLLIN};
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
	if (p[URN_SV_FDS - 1].revents)
		urn_sv_channel_events(ctx);
	if (tick)
		urn_sv_tick(ctx);
	urn_sv_settle(ctx);
}

uint64_t
urn_sv_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Wait for events, until messages are to be repeated; ms, UINT64_MAX: they are not. */
static void
urn_sv_wait(const struct urn_sv_ctx *ctx, struct pollfd p[URN_SV_FDS], uint64_t until)
{
	uint64_t now = urn_sv_now_ms();
	int ms = until == UINT64_MAX ? -1 : now < until ? (int)(until - now) : 0;

	urn_sv_fds(ctx, p);
	(void)poll(p, URN_SV_FDS, ms);
}

/* Times of the thread, ms. */
struct urn_sv_times {
	uint64_t repeat; /* messages are repeated; valid with waits */
	uint64_t heal;	 /* something of paths that are made anew is due */
	bool waits;	 /* a connection waits for the peer */
};

/* The next time at which something is to be done. */
static uint64_t
urn_sv_next(const struct urn_sv_times *t)
{
	return t->waits && t->repeat < t->heal ? t->repeat : t->heal;
}

/* One turn: look at what is readable and what is due. returns: false: stop */
static bool
urn_sv_turn(struct urn_sv_ctx *ctx, const struct pollfd p[URN_SV_FDS], struct urn_sv_times *t)
{
	uint64_t now, rest;
	bool tick, stop;

	urn_sv_lock_first(ctx);
	now = urn_sv_now_ms();
	tick = t->waits && now >= t->repeat;
	urn_sv_look(ctx, p, tick);
	rest = urn_sv_anew(ctx, now);
	t->heal = urn_sv_heal_tick(ctx, now);
	t->heal = rest < t->heal ? rest : t->heal;
	urn_sv_settle(ctx);
	if (tick || !t->waits)
		t->repeat = now + URN_SV_TICK_MS;
	t->waits = urn_sv_waits(ctx);
	stop = ctx->stop;
	/* A turn that took longer than the pause after it gives the lock away all the same. */
	now = urn_sv_now_ms();
	if (t->heal <= now)
		t->heal = now + URN_SV_TURN_MS;
	urn_sv_unlock(ctx);
	return !stop;
}

static void *
urn_sv_thread(void *arg)
{
	struct pollfd p[URN_SV_FDS];
	struct urn_sv_ctx *ctx = arg;
	struct urn_sv_times t = {.heal = UINT64_MAX};

	do {
		urn_sv_wait(ctx, p, urn_sv_next(&t));
	} while (urn_sv_turn(ctx, p, &t));
	return NULL;
}

/* ---- beginning and end */

static void
urn_sv_nonblocking(int fd)
{
	(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

int
urn_sv_thread_make(struct urn_sv_ctx *ctx, uint32_t adapter)
{
	struct ibv_context *c = ctx->below[adapter];
	int err = adapter == 0 ? urn_cm_end_open(&ctx->cm, c) : 0;

	if (err != 0)
		return err;
	ctx->ctl_channel[adapter] = ibv_create_comp_channel(c);
	if (ctx->ctl_channel[adapter] == NULL)
		return errno;
	ctx->ctl_cq[adapter] = ibv_create_cq(c, URN_SV_CTL_CQE, NULL, ctx->ctl_channel[adapter], 0);
	if (ctx->ctl_cq[adapter] == NULL)
		return errno;
	ctx->ctl_load[adapter] = 0;
	urn_sv_nonblocking(ctx->ctl_channel[adapter]->fd);
	urn_sv_nonblocking(c->async_fd);
	ctx->down[adapter] = !urn_sv_link_up(ctx, adapter);
	return ibv_req_notify_cq(ctx->ctl_cq[adapter], 0);
}

struct urn_sv_part
urn_sv_thread_take(struct urn_sv_ctx *ctx, uint32_t adapter)
{
	struct urn_sv_part part = {.channel = ctx->ctl_channel[adapter],
				   .cq = ctx->ctl_cq[adapter],
				   .cm = adapter == 0 ? ctx->cm : NULL};

	ctx->ctl_cq[adapter] = NULL;
	ctx->ctl_channel[adapter] = NULL;
	if (adapter == 0)
		ctx->cm = NULL;
	return part;
}

void
urn_sv_part_close(const struct urn_sv_part *part)
{
	if (part->cq != NULL)
		(void)ibv_destroy_cq(part->cq);
	if (part->channel != NULL)
		(void)ibv_destroy_comp_channel(part->channel);
	if (part->cm != NULL)
		urn_cm_end_close(part->cm);
	if (part->c != NULL)
		(void)ibv_close_device(part->c);
}

void
urn_sv_thread_unmake(struct urn_sv_ctx *ctx, uint32_t adapter)
{
	const struct urn_sv_part part = urn_sv_thread_take(ctx, adapter);

	urn_sv_part_close(&part);
}

/*
 * Make what the thread needs of the adapters that are there. The thread runs from here on, so a
 * loss before it is noticed only now. The thread runs without any adapter, too, and makes those
 * usable that come back. returns: 0 or an errno value with its text
 */
static int
urn_sv_thread_make_all(struct urn_sv_ctx *ctx)
{
	ctx->channels_fd = epoll_create1(EPOLL_CLOEXEC);
	if (ctx->channels_fd < 0)
		return urn_fail(errno, "no descriptor for channels: %s", strerror(errno));
	for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++) {
		int its = ctx->dead[i] ? EIO : urn_sv_thread_make(ctx, i);

		if (its != 0 && its != EIO)
			return its;
		if (its == 0)
			continue;
		urn_sv_thread_unmake(ctx, i);
		urn_sv_adapter_dead(ctx, i);
	}
	return 0;
}

static void
urn_sv_thread_unmake_all(struct urn_sv_ctx *ctx)
{
	for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++)
		urn_sv_thread_unmake(ctx, i);
	if (ctx->channels_fd >= 0)
		close(ctx->channels_fd);
	ctx->channels_fd = -1;
}

int
urn_sv_thread_start(struct urn_sv_ctx *ctx)
{
	int err = urn_sv_forked(ctx);

	if (err != 0)
		return err;
	urn_sv_lock_first(ctx);
	if (!ctx->runs) {
		err = urn_sv_thread_make_all(ctx);
		if (err == 0)
			err = urn_thread_start(&ctx->thread, urn_sv_thread, ctx);
		if (err != 0)
			urn_sv_thread_unmake_all(ctx);
		ctx->runs = err == 0;
	}
	urn_sv_unlock(ctx);
	return err;
}

void
urn_sv_thread_end(struct urn_sv_ctx *ctx)
{
	if (!ctx->runs) {
		urn_sv_again_end(ctx); /* adapters may be looked for before there is an object */
		return;
	}
	urn_sv_lock_first(ctx);
	ctx->stop = true;
	urn_sv_unlock(ctx);
	if (!ctx->forked) { /* the thread is the parent's */
		urn_sv_kick(ctx);
		pthread_join(ctx->thread, NULL);
	}
	urn_sv_again_end(ctx);
	urn_sv_thread_unmake_all(ctx);
}
