/* SPDX-License-Identifier: BSD-3-Clause */
/* A run: the plan is made of the seed, nodes and net get their turns by a virtual clock, and all is
 * looked at. */
#include "nodes.h"

#include "pmd_glue/eal.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdlib.h>

#define QUANTUM 200ull	     /* ns: the clock moves at least so far */
#define LOOK_NS (50 * MS_MS) /* between two looks for stalled messages */
#define AGE_NS (100 * MS_S)  /* after which flows have gone */
#define HALVES_NS (4 * MS_S) /* after which a flow repeated its packets, or has failed */

struct ms_world *
ms_world_new(const struct ms_load *load)
{
	struct urn_eal_config c = {.program = load->program, .memory_mb = 160, .lcores = 1};
	struct urn_err err = {{0}};
	struct ms_world *w;

	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	if (urn_eal_start(&c, &err) != 0) {
		fprintf(stderr, "%s: %s\n", load->program, err.text);
		return NULL;
	}
	atexit(urn_eal_stop);
	w = calloc(1, sizeof(*w));
	if (w)
		w->pool = rte_pktmbuf_pool_create("msgsim", MS_MBUFS, 256, URN_PKT_PRIV,
						  RTE_PKTMBUF_HEADROOM + MS_ROOM, SOCKET_ID_ANY);
	if (!w || !w->pool) {
		fprintf(stderr, "%s: no memory\n", load->program);
		free(w);
		return NULL;
	}
	w->load = load;
	return w;
}

void
ms_world_free(struct ms_world *w)
{
	free(w);
}

/* ---- words */

void
ms_fail(struct ms_world *w, const char *fmt, ...)
{
	int n = snprintf(w->why, sizeof(w->why), "at %.6f ms: ", (double)(w->now - w->start) / 1e6);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(w->why + n, sizeof(w->why) - (size_t)n, fmt, ap);
	va_end(ap);
	longjmp(w->failed, 1);
}

void
ms_trace(struct ms_world *w, const char *fmt, ...)
{
	va_list ap;

	if (!w->trace)
		return;
	fprintf(w->trace, "%14.6f ", (double)(w->now - w->start) / 1e6);
	va_start(ap, fmt);
	vfprintf(w->trace, fmt, ap);
	va_end(ap);
	fputc('\n', w->trace);
}

/* ---- making */

static uint64_t
soon(struct ms_world *w, uint64_t gap)
{
	return gap ? w->now + 1 + ms_upto(w, 2 * gap) : MS_NEVER;
}

static void
name_node(struct ms_world *w, unsigned int i)
{
	struct ms_node *n = &w->node[i];

	memset(n, 0, sizeof(*n));
	n->w = w;
	n->id = i;
	n->up_at = n->wake = MS_NEVER;
	memset(n->box, 0xff, sizeof(n->box));
	memcpy(n->mac, (const uint8_t[]){2, 0, 0, 0, 0, (uint8_t)(i + 1)}, 6);
	memcpy(n->gid + 10, (const uint8_t[]){0xff, 0xff, 10, 0, 0, (uint8_t)(i + 1)}, 6);
}

/* Ports of nodes carry more than the path MTU, not all of them the same, and the wires between
 * perhaps no more than that. */
static void
plan_ports(struct ms_world *w)
{
	struct sim_rng r = sim_rng_of(w->seed, 3);
	struct ms_plan *p = &w->plan;

	for (unsigned int i = 0; i < 2; i++)
		p->flow_mtu[i] = sim_one_in(&r, 3) ? 0 : p->mtu + 4 * sim_rnd(&r, MS_PORT_MORE / 4);
	if (sim_one_in(&r, 6))
		p->carries = p->mtu + MS_FLOW_HEADERS;
}

static void
open_world(struct ms_world *w)
{
	struct sim_rng r = sim_rng_of(w->seed, 1);

	memset(&w->plan, 0, sizeof(w->plan));
	w->sc->make(&w->plan, &r);
	plan_ports(w);
	w->rng = sim_rng_of(w->seed, 2);
	w->start = w->now = 1000 * MS_S;
	w->starts = 0; /* epochs of a run are not those of the run before: a seed alone makes all
			  frames */
	w->mails = w->pending = 0;
	w->into = w->out_of = w->broken = 0;
	w->lose = w->quiet = w->idle = w->pauser_off = false;
	w->pauser_at = w->now;
	w->load->open(w);
	for (unsigned int i = 0; i < w->plan.nodes; i++)
		name_node(w, i);
	ms_net_open(w);
	for (unsigned int i = 0; i < w->plan.nodes; i++)
		ms_node_start(&w->node[i]);
	w->close_at = soon(w, w->plan.close_gap);
	w->restart_at = soon(w, w->plan.restart_gap);
	w->cut_at = soon(w, w->plan.cut_gap);
}

/* ---- chaos */

struct ms_node *
ms_any_node(struct ms_world *w)
{
	return &w->node[ms_upto(w, w->plan.nodes)];
}

static void
restart_one(struct ms_world *w)
{
	struct ms_node *n = ms_any_node(w);

	if (!n->tp)
		return;
	n->dying = ms_one_in(w, w->plan.hold_in);
	if (!n->dying)
		ms_node_kill(n, false);
}

static void
cut_one(struct ms_world *w)
{
	struct ms_node *n = ms_any_node(w);

	n->cut_until = w->now + ms_upto(w, ms_one_in(w, 4) ? 4 * MS_S : 100 * MS_MS);
	ms_trace(w, "the wire of node %u is cut for %.3f ms", n->id,
		 (double)(n->cut_until - w->now) / 1e6);
}

static void
chaos(struct ms_world *w)
{
	if (w->close_at <= w->now) {
		w->load->close_one(w);
		w->close_at = soon(w, w->plan.close_gap);
	}
	if (w->restart_at <= w->now) {
		restart_one(w);
		w->restart_at = soon(w, w->plan.restart_gap);
	}
	if (w->cut_at <= w->now) {
		cut_one(w);
		w->cut_at = soon(w, w->plan.cut_gap);
	}
}

/* ---- the clock */

static uint64_t
next_event(const struct ms_world *w)
{
	uint64_t at = ms_net_next(w);

	for (unsigned int i = 0; i < w->plan.nodes; i++)
		at = RTE_MIN(at, RTE_MIN(w->node[i].wake, w->node[i].up_at));
	at = RTE_MIN(at, ms_pauser_next(w));
	if (!w->quiet)
		at = RTE_MIN(at, RTE_MIN(w->close_at, RTE_MIN(w->restart_at, w->cut_at)));
	return at;
}

/* Let all happen that is due until `end`, or until it is over. */
static void
run_until(struct ms_world *w, uint64_t end, bool (*over)(const struct ms_world *w))
{
	uint64_t look = w->now + LOOK_NS;

	while (w->now < end && !over(w)) {
		w->now = RTE_MIN(end, RTE_MAX(w->now + QUANTUM, next_event(w)));
		if (!w->quiet)
			chaos(w);
		ms_pauser_step(w);
		ms_net_step(w);
		for (unsigned int i = 0; i < w->plan.nodes; i++) {
			struct ms_node *n = &w->node[i];

			if (n->up_at <= w->now)
				ms_node_start(n);
			if (n->tp && n->wake <= w->now)
				ms_node_turn(n);
		}
		if (w->now < look)
			continue;
		w->load->look(w);
		look = w->now + LOOK_NS;
	}
}

static bool
is_sent(const struct ms_world *w)
{
	return w->mails == w->plan.messages &&
	       (w->pending == 0 || w->plan.restart_gap || w->plan.close_gap);
}

static bool
is_answered(const struct ms_world *w)
{
	return w->pending == 0;
}

static bool
never(const struct ms_world *w)
{
	(void)w;
	return false;
}

static bool
has_no_halves(const struct ms_world *w)
{
	for (unsigned int i = 0; i < w->plan.nodes; i++)
		if (w->node[i].tp && w->node[i].tp->flows->wholes)
			return false;
	return true;
}

/* ---- the end */

static void
check_node(struct ms_world *w, struct ms_node *n)
{
	if (urn_flow_count(n->tp))
		ms_fail(w, "node %u: %u flows did not age out", n->id, urn_flow_count(n->tp));
	if (n->tp->flows->rests || n->tp->flows->doubted)
		ms_fail(w, "node %u: %u flows rest, %u are in doubt, after all have aged out",
			n->id, n->tp->flows->rests, n->tp->flows->doubted);
	if (n->tp->nobodys.work || n->tp->sched.n || n->tp->wheel.count || n->tp->dry)
		ms_fail(w, "node %u: %u packets, %u sources, %u timers are left", n->id,
			n->tp->nobodys.work, n->tp->sched.n, n->tp->wheel.count);
	for (unsigned int i = 0; i < RTE_DIM(n->share); i++)
		if (n->share[i].work)
			ms_fail(w, "node %u: client %u has %u packets left", n->id, i,
				n->share[i].work);
	w->load->left(n);
}

/*
 * A message of which parts came, but not all, though its sender has its answer. A message whose
 * bytes are not there any more has its answer at once: its node is told by a packet, which may be
 * repeated after a timeout.
 */
static void
check_halves(struct ms_world *w)
{
	const struct ms_plan *p = &w->plan;

	if (p->close_gap || p->restart_gap || p->cut_gap) /* senders ended midway */
		return;
	run_until(w, w->now + HALVES_NS, has_no_halves);
	for (unsigned int i = 0; i < p->nodes; i++)
		if (w->node[i].tp->flows->wholes)
			ms_fail(w, "node %u: %u half messages are left", i,
				w->node[i].tp->flows->wholes);
}

/* Let a node that is down come up soon. No node dies and is up again within 3 ms
 * (doc/inside/messages.md). */
static void
raise_node(const struct ms_world *w, struct ms_node *n)
{
	n->up_at = n->tp ? MS_NEVER : RTE_MIN(n->up_at, RTE_MAX(w->now, n->gone_at + 5 * MS_MS));
}

/* Switches that lose nothing lost nothing, by their counters and by the frames that came out. */
static void
check_lossless(struct ms_world *w)
{
	/* A pauser's watchdog drops frames there; on a link to another switch, too, perhaps. */
	uint64_t lost = w->stats.lost - w->stats.pauser_lost;

	if (!w->plan.lossless || w->plan.ring || (w->plan.pauser && w->plan.switches > 1))
		return;
	if (lost)
		ms_fail(w, "switches that lose nothing lost %llu frames", (unsigned long long)lost);
	if (!w->plan.pauser && w->into != w->out_of)
		ms_fail(w, "%llu frames went into switches that lose nothing, %llu came out",
			(unsigned long long)w->into, (unsigned long long)w->out_of);
}

static void
end_run(struct ms_world *w)
{

	w->quiet = true;
	for (unsigned int i = 0; i < w->plan.nodes; i++) {
		raise_node(w, &w->node[i]);
		w->node[i].cut_until = RTE_MIN(w->node[i].cut_until, w->now);
		w->node[i].held_until = RTE_MIN(w->node[i].held_until, w->now);
		w->node[i].dying = false;
	}
	run_until(w, MS_NEVER, is_answered);
	run_until(w, w->now + 20 * MS_MS, never);
	w->load->settle(w);
	check_halves(w);
	w->stats.ns += w->now - w->start;
	w->load->finish(w);
	w->idle = true;
	run_until(w, w->now + AGE_NS, never);
	for (unsigned int i = 0; i < w->plan.nodes; i++)
		check_node(w, &w->node[i]);
	ms_net_count(w);
	check_lossless(w);
}

static void
close_world(struct ms_world *w)
{
	for (unsigned int i = 0; i < w->plan.nodes; i++) {
		ms_node_stop(&w->node[i]);
		ms_net_drop_held(&w->node[i]);
	}
	ms_net_close(w);
	w->load->close(w);
}

/* Print the counters of all nodes, for whoever looks for a fault. */
static void
trace_counters(struct ms_world *w)
{
	for (unsigned int i = 0; w->trace && i < w->plan.nodes; i++)
		for (unsigned int c = 0; w->node[i].tp && c < URN_COUNTER_COUNT; c++)
			if (w->node[i].tp->c.v[c])
				ms_trace(w, "node %u: %s %llu", i, urn_counter_name(c),
					 (unsigned long long)w->node[i].tp->c.v[c]);
}

bool
ms_run(struct ms_world *w, const struct ms_scenario *sc, uint64_t seed, FILE *trace)
{
	w->sc = sc;
	w->seed = seed;
	w->trace = trace;
	w->why[0] = '\0';
	w->mbufs = rte_mempool_avail_count(w->pool); /* a run that failed keeps some */
	memset(&w->stats, 0, sizeof(w->stats));
	w->stats.hash = 0xcbf29ce484222325u;
	if (setjmp(w->failed)) {
		trace_counters(w); /* memory of the run is not freed: the fault may be in it */
		return false;
	}
	open_world(w);
	run_until(w, w->start + w->plan.span, is_sent);
	end_run(w);
	close_world(w);
	if (rte_mempool_avail_count(w->pool) < w->mbufs)
		ms_fail(w, "%u packets are lost", w->mbufs - rte_mempool_avail_count(w->pool));
	return true;
}
