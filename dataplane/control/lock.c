/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/lock.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

enum {
	WAIT_TURNS = 64,    /* turns of a wait without a sleep, */
	WAIT_STEP_US = 100, /* then each sleep is so many microseconds longer, up to */
	WAIT_MOST_US = 20000,
};

/* The process ends: the thread lets others have the lock, and touches nothing any more. */
static void __attribute__((noreturn)) stand_still(struct urn_adapter *a)
{
	pthread_mutex_unlock(&a->lock);
	for (;;)
		pause();
}

void
urn_ctl_lock(struct urn_adapter *a, bool remote)
{
	if (remote) { /* a thread of the server, which polls no engine */
		pthread_mutex_lock(&a->lock);
		if (urn_ctl_frozen(a))
			stand_still(a);
		return;
	}
	/* The lock's holder may be waiting for an engine that this thread polls. */
	while (pthread_mutex_trylock(&a->lock) != 0)
		urn_engine_wait_turn();
}

void
urn_ctl_enter(struct urn_client *c)
{
	urn_ctl_lock(c->adapter, c->remote);
	while (c->busy) { /* another call of the client waits for its memory */
		pthread_mutex_unlock(&c->adapter->lock);
		urn_engine_wait_turn();
		urn_ctl_lock(c->adapter, c->remote);
	}
	c->busy = true;
	c->waits = 0;
}

void
urn_ctl_leave(struct urn_client *c)
{
	c->busy = false;
	pthread_mutex_unlock(&c->adapter->lock);
}

void
urn_ctl_unlock(struct urn_client *c)
{
	pthread_mutex_unlock(&c->adapter->lock);
}

void
urn_ctl_relock(struct urn_client *c)
{
	urn_ctl_lock(c->adapter, c->remote);
}

/* Tell the client that its call waits, and is not forgotten. */
static void
tell_waiting(const struct urn_client *c)
{
	const struct urn_client_shard *cs = c->adapter->vectors ? urn_client_shard(c, 0) : NULL;

	if (cs)
		atomic_fetch_add_explicit(&cs->scan.db->waits, 1, memory_order_relaxed);
}

void
urn_ctl_wait(struct urn_client *c)
{
	unsigned int us = c->waits < WAIT_TURNS ? 0 : (c->waits - WAIT_TURNS) * WAIT_STEP_US;

	c->waits += us < WAIT_MOST_US;
	tell_waiting(c);
	urn_ctl_unlock(c);
	/* Memory may take for ever: a wait for it must cost other clients nothing. */
	if (c->remote && us)
		usleep(us);
	else
		urn_engine_wait_turn();
	urn_ctl_relock(c);
}

int
urn_ctl_fail(struct urn_abi_rep *rep, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(rep->why, sizeof(rep->why), fmt, ap);
	va_end(ap);
	return err;
}
