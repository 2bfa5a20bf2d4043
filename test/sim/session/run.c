/* SPDX-License-Identifier: BSD-3-Clause */
/* One run: random steps, the faults of the plan, and what comes back. */
#include "sess.h"

#include <stdarg.h>

const struct ss_scenario ss_scenarios[] = {
	{"calm", "no faults", .faults = 0},
	{"one", "one fault", .faults = 1},
	{"two", "two faults, and nothing is healed", .faults = 2},
	{"heal", "faults, adapters come back, and traffic returns to them", .faults = 4,
	 .heal = true},
	{"storm", "five faults with healing", .faults = 5, .heal = true},
	{"unsure", "others change words of atomics", .faults = 3, .heal = true, .foreign = true},
	{"doom", "faults until perhaps no path is left", .faults = 4, .doom = true},
};
const unsigned int ss_scenario_count = sizeof(ss_scenarios) / sizeof(ss_scenarios[0]);

void
ss_fail(struct ss_world *w, const char *text, ...)
{
	va_list ap;

	if (*w->error)
		return;
	va_start(ap, text);
	vsnprintf(w->error, sizeof(w->error), text, ap);
	va_end(ap);
}

void
ss_trace(struct ss_world *w, const char *text, ...)
{
	va_list ap;

	if (!w->trace)
		return;
	printf("%8llu [%-9s %-9s] ", (unsigned long long)w->step,
	       urn_sess_state_name(w->end[0].c.state), urn_sess_state_name(w->end[1].c.state));
	va_start(ap, text);
	vprintf(text, ap);
	va_end(ap);
	putchar('\n');
}

bool
ss_break(struct ss_world *w, enum ss_sabotage what)
{
	if (w->sabotage != what)
		return false;
	w->broken = true;
	return true;
}

/* ---- faults */

/* True when a path could carry everything if all others died now. */
static bool
spare(const struct ss_world *w, uint32_t p)
{
	const struct ss_path *path = &w->path[p];

	for (uint32_t n = 0; n < 2; n++) {
		const struct ss_end *e = &w->end[n];

		if (!ss_alive(w, n, p) || path->cut[n] || path->qp[n].error ||
		    !(e->c.alive >> p & 1) || e->noticed[p] || !ss_joined(w, p))
			return false;
		/* Where a REPORT was sent, its set of paths holds for the epoch. */
		if (e->c.state >= URN_SESS_REPORTED && e->c.state <= URN_SESS_ANSWERED &&
		    !(e->c.told >> p & 1))
			return false;
		/* A queue pair that one side has left, or will leave when it joins the other. */
		if (e->c.open && e->c.path == p && w->end[!n].c.path != p)
			return false;
	}
	return !(w->end[0].fence >= 0 && w->end[0].c.path == p) &&
	       !(w->end[1].fence >= 0 && w->end[1].c.path == p);
}

static void
apply(struct ss_world *w, enum ss_kind kind, uint32_t end, uint32_t path)
{
	uint32_t other = !end;

	if (kind == SS_WIRE || kind == SS_ONE_WAY) {
		w->path[path].cut[end] = true;
		w->path[path].cut[other] |= kind == SS_WIRE;
		/* Frames on the wire are lost with it; a switch keeps those that it has. */
		return;
	}
	if (kind != SS_REMOTE)
		w->end[end].dead[ss_adapter(end, path)] = true;
	if (kind == SS_REMOTE || kind == SS_BOTH)
		w->end[other].dead[ss_adapter(other, path)] = true;
}

/* A fault has happened: set when what it took comes back. */
static void
lasts(struct ss_world *w, enum ss_kind kind, uint32_t path)
{
	if (kind == SS_WIRE || kind == SS_ONE_WAY) {
		w->path[path].back_at = w->step + 1500;
		return;
	}
	for (uint32_t n = 0; n < 2; n++)
		for (uint32_t a = 0; a < 2; a++)
			w->end[n].back_at[a] = w->step + (kind == SS_FLAP ? 50 : 1500);
}

void
ss_point(struct ss_world *w, enum ss_point at, uint32_t end, uint32_t path)
{
	struct ss_fault *f = &w->fault[w->next_fault];
	bool left = false, dead[2][2], cut[2];

	if (w->next_fault == w->faults || f->at != at)
		return;
	if (f->times) {
		f->times--;
		return;
	}
	for (uint32_t n = 0; n < 2; n++) {
		memcpy(dead[n], w->end[n].dead, sizeof(dead[n]));
		cut[n] = w->path[path].cut[n];
	}
	apply(w, f->kind, end, path);
	for (uint32_t p = 0; p < SS_PATHS; p++)
		left |= spare(w, p) && p != w->end[0].c.path && p != w->end[1].c.path;
	if (!left && !w->sc->doom) { /* put it back; the next pass may do */
		for (uint32_t n = 0; n < 2; n++) {
			memcpy(w->end[n].dead, dead[n], sizeof(dead[n]));
			w->path[path].cut[n] = cut[n];
		}
		return;
	}
	lasts(w, f->kind, path);
	w->hopeless |= !left;
	w->fired[at]++;
	w->next_fault++;
	ss_trace(w, "fault: point %u at end %u, path %u, kind %u", at, end, path, f->kind);
}

/* ---- healing */

/* An adapter comes back, whose loss its own end has noticed, or a wire. */
static void
come_back(struct ss_world *w, struct ss_end *e, uint32_t p)
{
	uint32_t a = ss_adapter(e->id, p);

	if (w->step >= w->path[p].back_at)
		w->path[p].cut[0] = w->path[p].cut[1] = false;
	if (!e->dead[a] || w->step < e->back_at[a])
		return;
	for (uint32_t i = 0; i < SS_PATHS; i++)
		if (ss_adapter(e->id, i) == a && (!e->noticed[i] || (e->c.open && e->c.path == i)))
			return;
	/* The queue pairs of the adapter are gone. */
	for (uint32_t i = 0; i < SS_PATHS; i++)
		if (ss_adapter(e->id, i) == a)
			e->heal[i].fresh = false;
	e->dead[a] = false;
	ss_trace(w, "end %u: adapter %u is back", e->id, a);
}

static void
step_heal(struct ss_world *w)
{
	struct ss_end *e = &w->end[sim_rnd(&w->rng, 2)];

	if (!w->sc->heal)
		return;
	come_back(w, e, sim_rnd(&w->rng, SS_PATHS));
	ss_heal_step(e);
}

/* Others change the word of an atomic, between its intent and its mark. */
static void
step_foreign(struct ss_world *w)
{
	struct ss_end *e = &w->end[sim_rnd(&w->rng, 2)];

	if (w->sc->foreign && e->log_state == 1 && sim_one_in(&w->rng, 20))
		e->counter += 1000;
}

/* ---- the run */

static void
plan(struct ss_world *w, const struct ss_scenario *sc)
{
	w->faults = sc->faults ? sim_between(&w->rng, sc->faults > 1 ? 2 : 1, sc->faults) : 0;
	for (uint32_t i = 0; i < w->faults; i++)
		w->fault[i] = (struct ss_fault){
			.at = sim_rnd(&w->rng, SS_POINT_COUNT),
			.kind = sim_rnd(&w->rng, SS_KIND_COUNT),
			.times = sim_rnd(&w->rng, sim_one_in(&w->rng, 2) ? 3 : 12),
		};
	/* Points of a migration are reached after a fault. */
	if (w->faults && w->fault[0].at >= SS_AT_FENCE)
		w->fault[0].at = sim_rnd(&w->rng, SS_AT_FENCE);
	w->flush_every = sim_between(&w->rng, 1, 4);
}

static void
step(struct ss_world *w)
{
	uint32_t what = sim_rnd(&w->rng, 16), end = sim_rnd(&w->rng, 2);

	if (what < 9)
		ss_net_step(w, end,
			    sim_one_in(&w->rng, 4) ? sim_rnd(&w->rng, SS_PATHS)
						   : w->end[end].c.path,
			    what);
	else if (what < 13)
		ss_shell_step(w, end);
	else if (what < 15)
		ss_program_step(&w->end[end]);
	else if (sim_one_in(&w->rng, 2))
		step_heal(w);
	else
		step_foreign(w);
	ss_judge_memory(w);
}

bool
ss_run(struct ss_world *w, const struct ss_scenario *sc, uint64_t seed)
{
	bool trace = w->trace;
	enum ss_sabotage sabotage = w->sabotage;

	memset(w, 0, sizeof(*w));
	w->trace = trace;
	w->sabotage = sabotage;
	w->sc = sc;
	w->seed = seed;
	w->rng = sim_rng_of(seed, (uint64_t)(sc - ss_scenarios));
	ss_shell_open(w, 0);
	ss_shell_open(w, 1);
	plan(w, sc);
	while (!*w->error && !(ss_judge_over(w) && (!sc->heal || ss_heal_over(w)))) {
		step(w);
		if (++w->step == SS_STEPS)
			ss_fail(w,
				"no progress: %s and %s, %llu of %u and %llu of %u requests "
				"complete",
				urn_sess_state_name(w->end[0].c.state),
				urn_sess_state_name(w->end[1].c.state),
				(unsigned long long)w->end[0].completed, w->end[0].target,
				(unsigned long long)w->end[1].completed, w->end[1].target);
	}
	if (!*w->error)
		ss_judge_end(w);
	if (!*w->error && sc->heal && !w->hopeless)
		ss_shell_rest(w);
	return !*w->error;
}
