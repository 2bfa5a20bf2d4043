/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SO_KEEPALIVE: one thread sends an empty WRITE on each connection that has been asked for, once in
 * the idle time. A peer that is gone makes the WRITE fail, and the failure ends the connection.
 */
#include "dropin/rdmacm/rsocket/rs.h"

#include "attach/stop.h"

#include <signal.h>

static pthread_mutex_t keep_lock = PTHREAD_MUTEX_INITIALIZER; /* protects the list; taken before a
							       * socket's lock */
static pthread_cond_t changed;
static LIST_HEAD(, urn_rs) kept = LIST_HEAD_INITIALIZER(kept);
static bool started;

/* Send on one connection, if it is time. returns: ms until the next time */
static uint64_t
keep_alive(struct urn_rs *rs, uint64_t now)
{
	pthread_mutex_lock(&rs->lock);
	if (rs->keep_next <= now) {
		rs->keep_next = now + (uint64_t)rs->keep_idle * 1000;
		urn_rs_step(rs);
		if (rs->state == URN_RS_UP && rs->tx.ctrl != 0)
			(void)urn_rs_post_ctrl(rs, URN_RS_KEEPALIVE);
	}
	now = rs->keep_next - now;
	pthread_mutex_unlock(&rs->lock);
	return now;
}

static void *
run(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&keep_lock);
	for (;;) {
		uint64_t now = urn_rs_now_ms(), least = 3600 * 1000, left;
		struct timespec until;
		struct urn_rs *rs;

		LIST_FOREACH(rs, &kept, keep) {
			left = keep_alive(rs, now);
			least = left < least ? left : least;
		}
		now += least;
		until.tv_sec = (time_t)(now / 1000);
		until.tv_nsec = (long)(now % 1000) * 1000000;
		(void)pthread_cond_timedwait(&changed, &keep_lock, &until);
	}
	return NULL;
}

/* Start the thread, once, with all signals blocked. keep_lock is held. returns: 0, or an errno
 * value */
static int
start(void)
{
	pthread_condattr_t clock;
	sigset_t all, old;
	pthread_t thread;
	int err;

	if (started)
		return 0;
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&changed, &clock);
	pthread_condattr_destroy(&clock);
	urn_stop_mask(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err == 0)
		(void)pthread_detach(thread);
	started = err == 0;
	return err;
}

int
urn_rs_keepalive_set(struct urn_rs *rs, bool on)
{
	int err = 0;

	pthread_mutex_lock(&keep_lock);
	if (on && !rs->kept) {
		err = start();
		rs->keep_next = urn_rs_now_ms() + (uint64_t)rs->keep_idle * 1000;
		if (err == 0)
			LIST_INSERT_HEAD(&kept, rs, keep);
		rs->kept = err == 0;
	} else if (!on && rs->kept) {
		LIST_REMOVE(rs, keep);
		rs->kept = false;
	}
	if (started)
		pthread_cond_signal(&changed);
	pthread_mutex_unlock(&keep_lock);
	return err;
}

void
urn_rs_keepalive_changed(struct urn_rs *rs)
{
	pthread_mutex_lock(&keep_lock);
	rs->keep_next = urn_rs_now_ms() + (uint64_t)rs->keep_idle * 1000;
	if (started)
		pthread_cond_signal(&changed);
	pthread_mutex_unlock(&keep_lock);
}

void
urn_rs_keepalive_forked(void)
{
	pthread_mutex_init(&keep_lock, NULL);
	LIST_INIT(&kept);
	started = false;
}
