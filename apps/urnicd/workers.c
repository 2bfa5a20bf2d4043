/* SPDX-License-Identifier: BSD-3-Clause */
#include "workers.h"

#include "common/clock.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_launch.h>
#include <rte_lcore.h>

#include "pmd_glue/eal.h"

struct worker {
	struct nicd_workers *all;
	pthread_t thread;
	bool started;
	bool lcore;	    /* the thread is DPDK's, of lcore index + 1 */
	unsigned int index; /* index of the engine */
	_Atomic int state;  /* 0: not started yet, 1: polls, -1: could not start */
	char why[128];
};

struct nicd_workers {
	struct nicd_rig *rig;
	_Atomic bool stop;
	unsigned int n;
	struct worker worker[];
};

/* Set the CPUs that the engine's thread may use. returns: false with a message in why */
static bool
pin(struct worker *w)
{
	const struct urn_config *c = w->all->rig->cfg;
	int cpu = c->engine[w->index].lcore;
	cpu_set_t set = c->eal.cores;

	if (cpu >= 0) {
		CPU_ZERO(&set);
		CPU_SET((size_t)cpu, &set);
	}
	if (CPU_COUNT(&set) == 0 || sched_setaffinity(0, sizeof(set), &set) == 0)
		return true;
	snprintf(w->why, sizeof(w->why), "engine %u may not run on the CPUs it is given: %s", w->index,
		 strerror(errno));
	return false;
}

static void
loop(struct worker *w)
{
	struct urn_engine *e = urn_dp_engine(w->all->rig->base.dp, w->index);
	struct urn_fabric *fabric = w->all->rig->base.fabric[w->index];
	unsigned int empty = 0;

	urn_engine_bind(e);
	atomic_store(&w->state, 1);
	while (!atomic_load_explicit(&w->all->stop, memory_order_relaxed)) {
		unsigned int n = urn_engine_poll(e);

		if (fabric)
			n += urn_fabric_poll(fabric, urn_clock_ns());
		empty = n ? 0 : empty + 1;
		if (empty)
			urn_engine_idle(e, empty);
	}
	urn_engine_unbind(e);
}

static void *
worker_main(void *arg)
{
	struct worker *w = arg;

	char name[16];

	snprintf(name, sizeof(name), "urnic-engine%u", w->index);
	(void)pthread_setname_np(pthread_self(), name);
	if (!pin(w)) {
		atomic_store(&w->state, -1);
	} else if (!w->lcore && rte_thread_register() != 0) {
		snprintf(w->why, sizeof(w->why), "engine %u: DPDK takes no more threads", w->index);
		atomic_store(&w->state, -1);
	} else {
		loop(w);
		if (!w->lcore)
			rte_thread_unregister();
	}
	return NULL;
}

static int
lcore_main(void *arg)
{
	(void)worker_main(arg);
	return 0;
}

/* returns: 0 or an errno value */
static int
launch(struct worker *w)
{
	w->lcore = urn_eal_huge();
	if (w->lcore)
		return -rte_eal_remote_launch(lcore_main, w, w->index + 1);
	return pthread_create(&w->thread, NULL, worker_main, w);
}

static int
start_one(struct worker *w, struct urn_err *err)
{
	int rc = launch(w);

	if (rc != 0) {
		urn_err_set(err, "engine %u: no thread: %s", w->index, strerror(rc));
		return -1;
	}
	w->started = true;
	while (atomic_load(&w->state) == 0)
		sched_yield();
	if (atomic_load(&w->state) > 0)
		return 0;
	urn_err_set(err, "%s", w->why);
	return -1;
}

struct nicd_workers *
nicd_workers_start(struct nicd_rig *rig, struct urn_err *err)
{
	struct nicd_workers *all = calloc(1, sizeof(*all) + rig->cfg->engines * sizeof(all->worker[0]));
	sigset_t every, before;
	int rc = 0;

	if (all == NULL) {
		urn_err_set(err, "no memory for threads");
		return NULL;
	}
	all->rig = rig;
	all->n = rig->cfg->engines;
	/* Signals go to the first thread. */
	sigfillset(&every);
	pthread_sigmask(SIG_SETMASK, &every, &before);
	for (unsigned int i = 0; i < all->n && rc == 0; i++) {
		all->worker[i].all = all;
		all->worker[i].index = i;
		rc = start_one(&all->worker[i], err);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc == 0)
		return all;
	nicd_workers_stop(all);
	return NULL;
}

void
nicd_workers_stop(struct nicd_workers *all)
{
	if (all == NULL)
		return;
	atomic_store(&all->stop, true);
	for (unsigned int i = 0; i < all->n; i++)
		if (all->worker[i].started && all->worker[i].lcore)
			(void)rte_eal_wait_lcore(i + 1);
		else if (all->worker[i].started)
			pthread_join(all->worker[i].thread, NULL);
	free(all);
}
