/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an engine does when there is nothing to do: poll on, pause, or sleep
 * until somebody writes one of its eventfds.
 *
 * Those are watched edge by edge: a write wakes, and nobody has to read. So a
 * client that reads its own, or fills it, changes nothing for anybody.
 */
#include "engine/engine.h"

#include <errno.h>
#include <sched.h>
#include <sys/epoll.h>
#include <time.h>

#include <rte_pause.h>

int
urn_engine_watch(struct urn_engine *e, int fd, struct urn_client_shard *c)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET, .data.ptr = c};

	return epoll_ctl(e->sleep_fd, EPOLL_CTL_ADD, fd, &ev) == 0 ? 0 : errno;
}

void
urn_engine_unwatch(struct urn_engine *e, int fd)
{
	(void)epoll_ctl(e->sleep_fd, EPOLL_CTL_DEL, fd, NULL);
}

/*
 * The cold write their eventfds when they ring. A look costs a system call, and hears
 * some of them; the others stay ready for the next.
 */
enum {
	HEAR_NS = 64000, /* between looks of an engine that is awake */
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
	SLEEPS_A_LENGTH = 256, /* sleeps, until they get longer: at first some 25 ms */
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
		/* The cold have been told that it sleeps: they write their eventfd. */
		for (struct urn_client_shard *c = e->shard[i]->hot; c; c = c->hot_next)
			if (urn_db_any(&c->scan))
				return true;
	}
	return false;
}

/* Unordered: sleep_a_little() says what has to come before and after. */
static void
set_asleep(struct urn_engine *e, uint32_t on)
{
	for (unsigned int i = 0; i < e->shards_n; i++)
		for (struct urn_client_shard *c = e->shard[i]->hot; c; c = c->hot_next)
			atomic_store_explicit(&c->scan.db->asleep, on, memory_order_relaxed);
}

/*
 * Sleep until woken, at most sleep_us: ports without a receive interrupt are
 * polled. Where nothing comes for long that is doubled now and then, up to a
 * millisecond; slept: times it slept since there was something.
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
	/* Stored before the doorbells are looked at again; the ringer does it the other way. */
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
	 * Whoever is to give it work may wait for this very core. Now and then it must
	 * be let go of for real: Linux 6.18 was seen to leave a thread that was ready,
	 * and bound to the core, waiting for seconds beside one that only yields.
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
