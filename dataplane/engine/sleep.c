/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An idle engine: polls on, pauses, or sleeps until one of its eventfds is written.
 *
 * The eventfds are watched edge by edge: a write wakes, and nobody has to read. So a client that
 * reads its own eventfd, or fills it, disturbs nobody.
 *
 * The engine's epoll watches no file that a client has, because the kernel locks the watched file
 * whenever a watch begins or ends. A client can hold that lock for long: each write to its eventfd
 * runs the callbacks of all who watch it, under the lock. So each eventfd lies in an inner epoll
 * that only the dataplane has, and the engine watches that. The client's own thread makes and
 * closes the inner epoll.
 */
#include "engine/engine.h"

#include <errno.h>
#include <sched.h>
#include <sys/epoll.h>
#include <time.h>

#include <rte_pause.h>

int
urn_engine_watch(struct urn_engine *e, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};

	return epoll_ctl(e->sleep_fd, EPOLL_CTL_ADD, fd, &ev) == 0 ? 0 : errno;
}

int
urn_engine_watch_for(struct urn_engine *e, int fd, struct urn_client_shard *c)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET, .data.ptr = c};

	return epoll_ctl(e->sleep_fd, EPOLL_CTL_MOD, fd, &ev) == 0 ? 0 : errno;
}

void
urn_engine_unwatch(struct urn_engine *e, int fd)
{
	(void)epoll_ctl(e->sleep_fd, EPOLL_CTL_DEL, fd, NULL);
}

/*
 * Cold clients write their eventfds when they ring. A look costs a system call, and hears some of
 * them; the others stay ready for the next look.
 */
enum {
	HEAR_NS = 64000, /* ns between looks of an engine that is awake */
	HEARD = 64,	 /* eventfds a look */
};

static void
hear(const struct epoll_event *ev, int n)
{
	for (int i = 0; i < n; i++)
		if (ev[i].data.ptr)
			urn_client_shard_heard(ev[i].data.ptr);
}

static bool
any_cold(const struct urn_engine *e)
{
	for (unsigned int i = 0; i < e->shards_n; i++)
		if (e->shard[i]->cold_n)
			return true;
	return false;
}

void
urn_engine_hear(struct urn_engine *e, uint64_t now)
{
	struct epoll_event ev[HEARD];

	e->hear_due = now + HEAR_NS;
	if (any_cold(e))
		hear(ev, epoll_wait(e->sleep_fd, ev, HEARD, 0));
}

enum {
	YIELD_AFTER = 4, /* empty polls */
	YIELD_EVERY = 4,
	LET_GO_EVERY = 256,
	SLEEPS_A_LENGTH = 256, /* sleeps until the length doubles: at first some 25 ms */
	SLEEP_MAX_US = 1000,
};

static bool
anything(struct urn_engine *e)
{
	if (atomic_load(&e->mail) || !rte_ring_empty(e->ring))
		return true;
	for (unsigned int i = 0; i < e->shards_n; i++) {
		if (urn_tp_busy(e->shard[i]->tp))
			return true;
		/* Cold clients have been told that the engine sleeps: they write their eventfd. */
		for (struct urn_client_shard *c = LIST_FIRST(&e->shard[i]->hot); c; c = LIST_NEXT(c, hot_link))
			if (urn_db_any(&c->scan))
				return true;
	}
	return false;
}

/* The stores are unordered: sleep_a_little() orders them. */
static void
set_asleep(struct urn_engine *e, uint32_t on)
{
	for (unsigned int i = 0; i < e->shards_n; i++)
		for (struct urn_client_shard *c = LIST_FIRST(&e->shard[i]->hot); c; c = LIST_NEXT(c, hot_link))
			atomic_store_explicit(&c->scan.db->asleep, on, memory_order_relaxed);
}

/*
 * Sleep until woken, at most sleep_us: ports without a receive interrupt are polled. The time is
 * doubled now and then while nothing comes, up to a millisecond; slept: number of sleeps since
 * something came.
 */
static void
sleep_a_little(struct urn_engine *e, unsigned int slept)
{
	unsigned int doubled = slept / SLEEPS_A_LENGTH < 10 ? slept / SLEEPS_A_LENGTH : 10;
	uint64_t us = (uint64_t)e->cfg.sleep_us << doubled;
	struct timespec ts = {.tv_nsec = (us < SLEEP_MAX_US ? (long)us : SLEEP_MAX_US) * 1000};
	struct epoll_event ev[HEARD];
	int n = 0;

	set_asleep(e, 1);
	/* Stored before the doorbells are looked at again; the ringer uses the opposite order. */
	atomic_thread_fence(memory_order_seq_cst);
	if (!anything(e))
		n = epoll_pwait2(e->sleep_fd, ev, HEARD, &ts, NULL);
	set_asleep(e, 0);
	hear(ev, n);
}

void
urn_engine_idle(struct urn_engine *e, unsigned int empty)
{
	if (e->cfg.idle == URN_IDLE_SPIN)
		return;
	if (e->cfg.idle == URN_IDLE_SLEEP && empty >= e->cfg.empty_polls) {
		sleep_a_little(e, empty - e->cfg.empty_polls);
		return;
	}
	if (empty >= e->cfg.empty_polls)
		rte_pause();
	/*
	 * The thread that is to give the engine work may wait for this very core. Now and then the
	 * core must really be let go: Linux 6.18 was seen to leave a ready thread that was bound to
	 * the core waiting for seconds beside one that only yields.
	 */
	if (empty >= e->cfg.empty_polls && empty % LET_GO_EVERY == 0)
		nanosleep(&(struct timespec){.tv_nsec = 1}, NULL);
	else if (empty >= YIELD_AFTER && empty % YIELD_EVERY == 0)
		sched_yield();
}

void
urn_engine_run(struct urn_engine *e, const volatile bool *stop)
{
	unsigned int empty = 0;

	urn_engine_bind(e);
	while (!*stop) {
		if (urn_engine_poll(e)) {
			empty = 0;
		} else {
			urn_engine_idle(e, ++empty);
		}
	}
	urn_engine_unbind(e);
}
