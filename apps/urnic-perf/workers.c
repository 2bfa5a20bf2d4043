/* SPDX-License-Identifier: BSD-3-Clause */
/* The threads that run the two sides, and the state they share. */
#include "perf.h"

#include "stage.h"

#include "common/text.h"

#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <rte_branch_prediction.h>
#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_pause.h>

/* The idle policy: empty turns before it begins and from yield to yield, and the length of a sleep. */
#define IDLE_AFTER 1024u
#define IDLE_YIELD_EVERY 64u
#define IDLE_SLEEP_NS 100000
#define ATTACHED_YIELD_EVERY 16u /* empty turns from yield to yield, where others poll on the same cores */
#define ATTACHED_LET_GO_EVERY 256u
#define CLOCK_EVERY 8u /* empty turns from one look at the clock to the next */

struct worker {
	struct side *side[2];   /* NULL after the last */
	struct run *run;
	int core;
	enum urn_idle idle;
	pthread_t thread;
	bool started;
};

bool
run_fail(struct run *r, const char *fmt, ...)
{
	bool first = !atomic_exchange(&r->failed, true);
	va_list ap;

	if (first) {
		va_start(ap, fmt);
		vsnprintf(r->err.text, sizeof(r->err.text), fmt, ap);
		va_end(ap);
	}
	atomic_store(&r->stop, true);
	return first;
}

void
side_done(struct side *s)
{
	if (s->done)
		return;
	s->done = true;
	if (atomic_fetch_add(&s->run->done, 1) + 1 == 2)
		atomic_store(&s->run->stop, true);
}

/*
 * True when the other side's thread was run, too, while nothing moved, so that something could
 * have moved. The question arises only in the second half of the stall time, and being run
 * for half of that is enough; before, the other thread's cache line is not read.
 */
static bool
peer_was_run(struct side *s)
{
	uint64_t ran;

	if (s->peer == NULL) /* in another process: unknown, taken as run */
		return true;
	ran = __atomic_load_n(&s->peer->ran.cycles, __ATOMIC_RELAXED);
	if (!s->peer_noted) {
		s->peer_noted = true;
		s->peer_ran = ran;
	}
	return (double)(ran - s->peer_ran) * s->meter->ns_per_cycle > PERF_STALL_SECONDS * 1e9 / 4;
}

/* Fail the run when it has stalled. */
static void
watch_stall(struct side *s)
{
	const struct meter *m = s->meter;
	double waited = (double)meter_stalled(m) * m->ns_per_cycle;
	unsigned int limit = PERF_STALL_SECONDS;
	bool run;

	if (likely(waited <= PERF_STALL_SECONDS * 1e9 / 2)) {
		s->peer_noted = false;
		return;
	}
	run = peer_was_run(s);
	if (!run)
		limit = PERF_STARVED_SECONDS;
	if (waited > limit * 1e9)
		run_fail(s->run, "%s: nothing has moved for %u seconds%s, after %llu messages; "
				 "%llu more are on their way",
			 perf_op_name(s->o->op), limit,
			 run ? "" : ", in which the other side's thread was hardly run",
			 (unsigned long long)m->done, (unsigned long long)(m->posted - m->done));
}

void
side_watch(struct side *s, uint64_t now)
{
	struct meter *m = s->meter;

	meter_tick(m, now);
	if (urn_stop_requested() && m->phase != METER_OVER) {
		s->run->interrupted = true;
		meter_cut(m, now);
	}
	if (!s->done)
		watch_stall(s);
}

/* Idle after `empty` empty turns: by the engine's policy, or the same policy without an engine. */
static void
idle_turn(const struct worker *w, unsigned int empty)
{
	struct timespec ts = {.tv_nsec = IDLE_SLEEP_NS};

	if (w->side[0]->engine != NULL) {
		urn_engine_idle(w->side[0]->engine, empty);
		return;
	}
	/* The dataplane's thread may want this core. */
	if (w->side[0]->o->attach != NULL) {
		if (empty % ATTACHED_LET_GO_EVERY == 0)
			nanosleep(&(struct timespec){.tv_nsec = 1}, NULL); /* yielding alone may starve it */
		else if (empty % ATTACHED_YIELD_EVERY == 0)
			sched_yield();
		return;
	}
	if (w->idle == URN_IDLE_SPIN || empty < IDLE_AFTER)
		return;
	if (w->idle == URN_IDLE_SLEEP)
		nanosleep(&ts, NULL);
	else if (empty % IDLE_YIELD_EVERY == 0)
		sched_yield();
	else
		rte_pause();
}

/*
 * Run turns until the run stops. The clock is read after turns that did something
 * and at every CLOCK_EVERY-th empty one: a read costs as much as an empty poll of a port.
 */
static void
worker_loop(struct worker *w)
{
	unsigned int work = 1, empty = 0;
	uint64_t now = 0;

	while (!atomic_load_explicit(&w->run->stop, memory_order_relaxed)) {
		if (work > 0 || empty % CLOCK_EVERY == 0)
			now = rte_rdtsc();
		work = 0;
		for (unsigned int i = 0; i < 2 && w->side[i] != NULL; i++) {
			struct side *s = w->side[i];

			URN_STAGE(PROGRAM);
			if (s->meter == NULL)
				meter_ran(&s->ran, now);
			work += s->step(s, now);
			if (s->engine != NULL)
				work += urn_engine_poll(s->engine);
			if (s->wire != NULL)
				work += perf_wire_poll(s->wire);
		}
		URN_STAGE_TURN(work > 0);
		empty = work > 0 ? 0 : empty + 1;
		if (empty > 0)
			idle_turn(w, empty);
	}
}

static void
bind_engines(struct worker *w, bool on)
{
	for (unsigned int i = 0; i < 2 && w->side[i] != NULL; i++) {
		if (w->side[i]->engine == NULL)
			continue;
		if (on)
			urn_engine_bind(w->side[i]->engine);
		else
			urn_engine_unbind(w->side[i]->engine);
	}
}

static void *
worker_main(void *arg)
{
	struct worker *w = arg;
	cpu_set_t set;
	int rc;

	CPU_ZERO(&set);
	if (w->core >= 0)
		CPU_SET((size_t)w->core, &set);
	rc = w->core >= 0 ? pthread_setaffinity_np(pthread_self(), sizeof(set), &set) : 0;
	if (rc != 0) {
		run_fail(w->run, "cannot run on core %d: %s; give other --lcores", w->core,
			 strerror(rc));
		return NULL;
	}
	if (w->side[0]->o->attach == NULL && rte_thread_register() != 0) {
		run_fail(w->run, "DPDK does not take the thread on core %d: %s", w->core,
			 rte_strerror(rte_errno));
		return NULL;
	}
	bind_engines(w, true);
	for (unsigned int i = 0; i < 2 && w->side[i] != NULL; i++)
		if (w->side[i]->peer != NULL && w->side[i]->peer->meter != NULL)
			w->side[i]->ran.most = w->side[i]->peer->meter->ran.most;
	worker_loop(w);
	urn_stages_get(&w->run->stages[w->side[0]->index]);
	bind_engines(w, false);
	if (w->side[0]->o->attach == NULL)
		rte_thread_unregister();
	return NULL;
}

static void
worker_start(struct worker *w)
{
	int rc = pthread_create(&w->thread, NULL, worker_main, w);

	if (rc == 0)
		w->started = true;
	else
		run_fail(w->run, "cannot start a thread: %s", strerror(rc));
}

/* The core of a side; none with others on the same cores: the best core changes, and the kernel knows it. */
static int
core_of(const struct perf_opts *o, unsigned int side)
{
	return o->attach != NULL && !o->pinned ? -1 : o->core[side];
}

int
worker_run(struct side *s, struct run *run, void (*meanwhile)(void *arg), void *arg)
{
	struct worker w = {.side = {s}, .run = run, .core = core_of(s->o, s->index),
			   .idle = s->o->idle};

	worker_start(&w);
	while (!atomic_load(&run->stop))
		meanwhile(arg);
	if (w.started)
		pthread_join(w.thread, NULL);
	return atomic_load(&run->failed) ? -1 : 0;
}

int
workers_run(struct side *a, struct side *b, struct run *run)
{
	const struct perf_opts *o = a->o;
	struct worker w[2] = {
		{.side = {a}, .run = run, .core = core_of(o, 0), .idle = o->idle},
		{.side = {b}, .run = run, .core = core_of(o, 1), .idle = o->idle},
	};
	unsigned int n = 2;

	if (o->core[0] == o->core[1]) {
		w[0].side[1] = b;
		n = 1;
	}
	for (unsigned int i = 0; i < n; i++)
		worker_start(&w[i]);
	for (unsigned int i = 0; i < n; i++) {
		if (w[i].started)
			pthread_join(w[i].thread, NULL);
	}
	return atomic_load(&run->failed) ? -1 : 0;
}
