/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attaching to an adapter that was lost, again and again. Each adapter has a thread of its own for
 * that, made at its first loss: an attempt may wait as long as URNIC_TIMEOUT says for a dataplane
 * that is stopped, and nobody else is to wait. For the same reason the thread closes an adapter
 * that came back and is of no use. The thread alone frees what it has, so that a device can be
 * closed in the middle of an attempt.
 */
#include "attach/thread.h"
#include "verbs/front.h"
#include "verbs/session/heal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
	URN_SV_AGAIN_LEAST_MS =
		100, /* pause behind the first attempt in vain; doubled behind each more */
	URN_SV_AGAIN_MOST_MS = 2000, /* the longest pause */
};

struct urn_sv_again {
	pthread_mutex_t lock; /* lock protects all below but the constants */
	pthread_cond_t cond;  /* wanted, rejected or stop has changed */
	bool wanted;	      /* the adapter is lost */
	bool stop;	      /* the device is gone; only the thread looks at this from then on */
	struct ibv_context *found; /* the adapter that came back; NULL: not yet, or taken */
	/* The adapter that came back and is of no use, to be closed before the next attempt, so
	 * there is one at most; c is NULL: none. */
	struct urn_sv_part rejected;
	struct urn_sv_place place; /* name of the adapter; constant */
	uint32_t pause;		   /* ms: in front of the next attempt; 0: none */
	uint32_t silence;	   /* ms: bound of each call; constant */
	int wake_fd;		   /* wakes the device's thread; own descriptor; constant */
};

static void
urn_sv_again_free(struct urn_sv_again *a)
{
	if (a->found != NULL)
		ibv_close_device(a->found);
	urn_sv_part_close(&a->rejected);
	if (a->wake_fd >= 0)
		close(a->wake_fd);
	pthread_cond_destroy(&a->cond);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

/* Wait until the adapter is wanted, or one is to be closed. returns: false: stop */
static bool
urn_sv_again_wait(struct urn_sv_again *a)
{
	bool stop;

	pthread_mutex_lock(&a->lock);
	while (!a->stop && !a->wanted && a->rejected.c == NULL)
		pthread_cond_wait(&a->cond, &a->lock);
	stop = a->stop;
	pthread_mutex_unlock(&a->lock);
	return !stop;
}

/* Close the adapter that is of no use, if there is one. returns: true: there was */
static bool
urn_sv_again_rid(struct urn_sv_again *a)
{
	struct urn_sv_part part;

	pthread_mutex_lock(&a->lock);
	part = a->rejected;
	a->rejected = (struct urn_sv_part){0};
	pthread_mutex_unlock(&a->lock);
	urn_sv_part_close(&part);
	return part.c != NULL;
}

/* The pause behind an attempt. pause: ms, in front of it */
static uint32_t
urn_sv_again_longer(uint32_t pause)
{
	if (pause == 0)
		return URN_SV_AGAIN_LEAST_MS;
	return 2 * pause < URN_SV_AGAIN_MOST_MS ? 2 * pause : URN_SV_AGAIN_MOST_MS;
}

/*
 * Wait for the pause in front of an attempt, or until the device is gone. Each attempt counts as
 * one in vain until urn_sv_again_well() says otherwise: an adapter that can be attached to, but
 * not used, is not to be attached to without end.
 */
static void
urn_sv_again_pause(struct urn_sv_again *a)
{
	struct timespec until;
	uint32_t ms;

	clock_gettime(CLOCK_MONOTONIC, &until);
	pthread_mutex_lock(&a->lock);
	ms = a->pause;
	a->pause = urn_sv_again_longer(ms);
	until.tv_nsec += (long)(ms % 1000) * 1000000;
	until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	while (ms != 0 && !a->stop &&
	       pthread_cond_clockwait(&a->cond, &a->lock, CLOCK_MONOTONIC, &until) == 0)
		;
	pthread_mutex_unlock(&a->lock);
}

/* True when the device is gone. */
static bool
urn_sv_again_stops(struct urn_sv_again *a)
{
	bool stop;

	pthread_mutex_lock(&a->lock);
	stop = a->stop;
	pthread_mutex_unlock(&a->lock);
	return stop;
}

/* The adapter is there: hand it over. */
static void
urn_sv_again_found(struct urn_sv_again *a, struct ibv_context *c)
{
	const uint64_t one = 1;

	pthread_mutex_lock(&a->lock);
	a->found = c;
	a->wanted = false;
	(void)!write(a->wake_fd, &one, sizeof(one));
	pthread_mutex_unlock(&a->lock);
}

static void *
urn_sv_again_run(void *arg)
{
	struct urn_sv_again *a = arg;

	while (urn_sv_again_wait(a)) {
		struct ibv_context *c;

		if (urn_sv_again_rid(a))
			continue;
		urn_sv_again_pause(a);
		if (urn_sv_again_stops(a))
			break;
		c = urn_sv_open_below(&a->place, a->silence);
		if (c != NULL)
			urn_sv_again_found(a, c);
	}
	urn_sv_again_free(a);
	return NULL;
}

/* returns: NULL: there is no memory, no descriptor or no thread */
static struct urn_sv_again *
urn_sv_again_make(const struct urn_sv_ctx *ctx, uint32_t adapter)
{
	struct urn_sv_again *a = calloc(1, sizeof(*a));
	pthread_t thread;

	if (a == NULL)
		return NULL;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->cond, NULL);
	a->place = ctx->place[adapter];
	a->silence = ctx->options.silence;
	a->wake_fd = fcntl(ctx->wake_fd, F_DUPFD_CLOEXEC, 0);
	if (a->wake_fd < 0 || urn_thread_start(&thread, urn_sv_again_run, a) != 0) {
		urn_sv_again_free(a);
		return NULL;
	}
	pthread_detach(thread);
	return a;
}

void
urn_sv_again_want(struct urn_sv_ctx *ctx, uint32_t adapter)
{
	struct urn_sv_again *a = ctx->again[adapter];

	if (ctx->options.probe == 0 || ctx->forked)
		return;
	if (a == NULL)
		a = ctx->again[adapter] = urn_sv_again_make(ctx, adapter);
	if (a == NULL)
		return; /* the thread of the context asks again */
	pthread_mutex_lock(&a->lock);
	a->wanted = a->found == NULL;
	pthread_cond_signal(&a->cond);
	pthread_mutex_unlock(&a->lock);
}

void
urn_sv_again_well(struct urn_sv_ctx *ctx, uint32_t adapter)
{
	struct urn_sv_again *a = ctx->again[adapter];

	if (a == NULL)
		return;
	pthread_mutex_lock(&a->lock);
	a->pause = 0;
	pthread_mutex_unlock(&a->lock);
}

bool
urn_sv_again_there(struct urn_sv_ctx *ctx, uint32_t adapter)
{
	struct urn_sv_again *a = ctx->again[adapter];
	bool there;

	if (a == NULL)
		return false;
	pthread_mutex_lock(&a->lock);
	there = a->found != NULL;
	pthread_mutex_unlock(&a->lock);
	return there;
}

struct ibv_context *
urn_sv_again_take(struct urn_sv_ctx *ctx, uint32_t adapter)
{
	struct urn_sv_again *a = ctx->again[adapter];
	struct ibv_context *c;

	if (a == NULL)
		return NULL;
	pthread_mutex_lock(&a->lock);
	c = a->found;
	a->found = NULL;
	pthread_mutex_unlock(&a->lock);
	return c;
}

void
urn_sv_again_reject(struct urn_sv_ctx *ctx, uint32_t adapter, const struct urn_sv_part *part)
{
	struct urn_sv_again *a = ctx->again[adapter]; /* which has given the adapter */

	pthread_mutex_lock(&a->lock);
	a->rejected = *part;
	pthread_cond_signal(&a->cond);
	pthread_mutex_unlock(&a->lock);
}

void
urn_sv_again_end(struct urn_sv_ctx *ctx)
{
	for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++) {
		struct urn_sv_again *a = ctx->again[i];

		if (a == NULL)
			continue;
		ctx->again[i] = NULL;
		if (ctx->forked) /* the thread is the parent's */
			continue;
		pthread_mutex_lock(&a->lock);
		a->stop = true;
		pthread_cond_signal(&a->cond);
		pthread_mutex_unlock(&a->lock);
	}
}
