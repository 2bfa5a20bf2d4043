/* SPDX-License-Identifier: BSD-3-Clause */
/* One run: random steps, deaths, migrations, and programs that change their minds. */
#include "stsim.h"

#include <stdarg.h>

const struct st_scenario st_scenarios[] = {
	{"calm", "random sizes and thresholds", .tight = false},
	{"tight", "one BCopy buffer, and one message on its way", .tight = true},
	{"demand", "BCopy buffers on demand", .demand = true},
	{"blind", "ends that cannot read", .blind = true},
	{"resume", "BCopy that is left again", .resumes = true},
	{"moves", "programs set, freeze and force", .moves = true, .resumes = true},
	{"closes", "programs close early", .closes = true},
	{"migrate", "a session below that migrates", .migrates = true, .moves = true},
	{"death", "the connection breaks", .dies = true},
	{"standoff", "both write, and nobody reads until both are stuck", .standoff = true},
	{"pool", "eight streams over one wire in a standoff; the last one is not read",
	 .standoff = true, .pool = true},
	{"transact", "commands and answers", .transacts = true},
	{"turns", "both write as much as buffers hold, and read only then", .turns = true},
	{"rogue", "a peer that breaks the protocol", .rogue = true},
	{"storm", "all at once", .tight = true, .demand = true, .blind = true, .resumes = true,
	 .moves = true, .closes = true, .migrates = true, .dies = true, .fickle = true},
	{"fickle", "programs take receives back, stop reading, and abort", .fickle = true,
	 .resumes = true},
};
const unsigned int st_scenario_count = sizeof(st_scenarios) / sizeof(st_scenarios[0]);

void
st_fail(struct st_world *w, const char *text, ...)
{
	va_list ap;

	if (*w->error)
		return;
	va_start(ap, text);
	vsnprintf(w->error, sizeof(w->error), text, ap);
	va_end(ap);
}

void
st_trace(struct st_world *w, const char *text, ...)
{
	va_list ap;

	if (!w->trace)
		return;
	printf("%8llu [%s/%s %s/%s] ", (unsigned long long)w->step,
	       urn_st_tx_name(w->end[0][0].st.tx.state), urn_st_rx_name(w->end[0][0].st.rx.state),
	       urn_st_tx_name(w->end[0][1].st.tx.state), urn_st_rx_name(w->end[0][1].st.rx.state));
	va_start(ap, text);
	vprintf(text, ap);
	va_end(ap);
	putchar('\n');
}

bool
st_break(struct st_world *w, enum st_sabotage what)
{
	if (w->sabotage != what)
		return false;
	w->broken = true;
	return true;
}

/* ---- the plan */

static struct urn_st_threshold
threshold(struct st_world *w)
{
	struct urn_st_threshold t = {.floor = sim_between(&w->rng, 1, 100)};

	t.ceiling = t.floor + sim_rnd(&w->rng, ST_BYTES);
	t.value = sim_one_in(&w->rng, 8)
			  ? URN_ST_INFINITE
			  : t.floor + sim_rnd(&w->rng, (uint32_t)(t.ceiling - t.floor) + 1);
	t.frozen = sim_one_in(&w->rng, 4);
	return t;
}

/* True for a feature of the scenario: storms have each in some of their runs. */
static bool
has(struct st_world *w, bool feature)
{
	bool storm = w->sc->dies && w->sc->moves;

	return feature && (!storm || sim_one_in(&w->rng, 2));
}

static struct urn_st_hello
hello(struct st_world *w)
{
	bool tight = has(w, w->sc->tight);
	struct urn_st_hello h = {
		.buffers = tight ? 1 : sim_between(&w->rng, 1, ST_BUFFERS),
		.size = sim_between(&w->rng, 1, ST_SIZE),
	};

	if (!has(w, w->sc->blind))
		h.abilities |= URN_ST_CAN_READ;
	if (has(w, w->sc->demand))
		h.abilities |= URN_ST_ON_DEMAND;
	if (has(w, w->sc->resumes))
		h.abilities |= URN_ST_RESUMES;
	return h;
}

static void
open_stream(struct st_world *w, uint32_t stream)
{
	struct urn_st_hello h[2] = {hello(w), hello(w)};

	for (uint32_t n = 0; n < 2; n++) {
		struct st_end *e = &w->end[stream][n];
		struct urn_st_config cfg = {
			.self = h[n],
			.peer = h[!n],
			.slots = w->sc->tight ? 1 : sim_between(&w->rng, 1, 6),
			.inlined = sim_one_in(&w->rng, 2) ? 0 : sim_rnd(&w->rng, ST_SIZE),
			.patience = sim_between(&w->rng, 1, 4),
			.tx = threshold(w),
			.rx = threshold(w),
		};

		e->w = w;
		e->stream = stream;
		e->id = n;
		e->target = sim_rnd(&w->rng, 4000);
		e->largest = sim_one_in(&w->rng, 2) ? ST_BYTES : sim_between(&w->rng, 1, ST_BYTES);
		e->lazy = w->sc->standoff;
		st_shell_open(e, &cfg);
	}
	if (w->sc->turns) {
		for (uint32_t n = 0; n < 2; n++) {
			/* Half the buffers may be free and not told yet, and bytes inline take one.
			 */
			uint32_t holds = h[n].buffers / 2 * h[n].size;

			w->command = holds && holds < w->command ? holds : w->command;
		}
		for (uint32_t n = 0; n < 2; n++)
			w->end[stream][n].target =
				h[0].buffers > 1 && h[1].buffers > 1 ? 10 * w->command : 0;
	}
	if (w->sc->transacts) {
		uint32_t times = sim_between(&w->rng, 1, 12);

		w->end[stream][0].target = times * w->command;
		w->end[stream][1].target = times * w->answer;
	}
}

static void
plan(struct st_world *w)
{
	w->streams = w->sc->pool ? ST_STREAMS : 1;
	w->command = sim_between(&w->rng, 1, w->sc->turns ? ST_SIZE * ST_BUFFERS / 2 : 100);
	w->answer = sim_between(&w->rng, 1, ST_BYTES);
	if (w->sc->rogue) {
		w->mischief = (enum st_mischief)sim_between(&w->rng, 1, ST_BADS - 1);
		w->mischief_at = sim_rnd(&w->rng, 1500);
	}
	for (uint32_t i = 0; i < w->streams; i++)
		open_stream(w, i);
	w->fickle = has(w, w->sc->fickle);
	if (has(w, w->sc->dies))
		w->dies_at = sim_between(&w->rng, 1, 3000);
}

/* ---- steps */

static bool
is_over(const struct st_end *e)
{
	bool read = e->drained || e->eof || e->close_called;

	return e->closed || (e->st.state == URN_ST_S_DEAD && read && e->recvs == 0);
}

static bool
all_over(const struct st_world *w, uint32_t streams)
{
	for (uint32_t i = 0; i < streams * 2; i++)
		if (!is_over(&w->end[i / 2][i % 2]))
			return false;
	return true;
}

/* Readers begin when all writers are stuck; the last stream of a pool waits for the others. */
static void
wake_readers(struct st_world *w)
{
	bool stuck = w->step - w->progress > ST_STUCK;

	for (uint32_t i = 0; w->sc->standoff && i < w->streams * 2; i++) {
		struct st_end *e = &w->end[i / 2][i % 2];
		bool last = w->sc->pool && e->stream + 1 == w->streams;

		if (e->lazy && (last ? all_over(w, w->streams - 1) : stuck))
			e->lazy = false;
	}
}

/* The program changes a threshold, or forces a kind of transfer. */
static void
move(struct st_end *e)
{
	struct urn_st_threshold t = threshold(e->w);

	if (sim_one_in(&e->w->rng, 2))
		urn_st_set_threshold(&e->st, sim_one_in(&e->w->rng, 2), &t);
	else
		urn_st_set_force(&e->st, (enum urn_st_force)sim_rnd(&e->w->rng, URN_ST_FORCES));
}

static void
rare(struct st_end *e)
{
	struct st_world *w = e->w;

	if (!sim_one_in(&w->rng, 6) || e->st.state != URN_ST_S_OPEN)
		return;
	if (w->sc->migrates && sim_one_in(&w->rng, 4))
		st_net_migrate(e);
	else if (w->sc->moves)
		move(e);
	else if (sim_one_in(&w->rng, 10))
		e->stalled = w->step + sim_rnd(&w->rng, 300);
}

static void
step(struct st_world *w)
{
	struct st_end *e = &w->end[sim_rnd(&w->rng, w->streams)][sim_rnd(&w->rng, 2)];
	uint32_t what = sim_rnd(&w->rng, 20);

	if (w->dies_at && w->step == w->dies_at)
		w->cut = true;
	if (what < 6)
		st_net_execute(e);
	else if (what < 10)
		st_net_complete(e);
	else if (what < 15)
		st_shell_step(e);
	else if (what < 18)
		st_program_step(e);
	else if (what < 19 && sim_one_in(&w->rng, 5) && !st_break(w, ST_BREAK_SILENT))
		urn_st_tick(&e->st);
	else
		rare(e);
	st_mischief_step(e);
}

/* The victim says why: the reasons that a mischief may end in. */
static void
judge_mischief(struct st_world *w)
{
#define R(name) (1u << URN_ST_R_##name)
	static const uint32_t reasons[ST_BADS] = {
		[ST_BAD_GARBAGE] = R(FORM),
		[ST_BAD_ANNOUNCE] = R(REFUSED) | R(SHORT) | R(PEER) | R(DOWN),
		[ST_BAD_UNNAMED] = R(REFUSED),
		[ST_BAD_RD_COMPL] = R(STALE_RD_COMPL) | R(OFFSET),
		[ST_BAD_SEND_SM] = R(STALE_SEND_SM) | R(OFFSET),
		[ST_BAD_WR_COMPL] = R(STALE_WR_COMPL) | R(OFFSET) | R(EXCESS),
		[ST_BAD_TWO_OFFERS] = R(TWO_OFFERS) | R(REFUSED) | R(PLACE) | R(SHORT) | R(PEER) |
				      R(DOWN) | R(OFFSET),
		[ST_BAD_TWO_ADVERTS] = R(TWO_ADVERTS) | R(REFUSED) | R(OFFSET) | R(PEER) | R(DOWN),
		[ST_BAD_CREDIT] = R(BAD_CREDIT),
		[ST_BAD_OVERRUN] =
			R(OVERRUN) | R(OFFSET) | R(PLACE) | R(STALE_WR_COMPL) | R(PEER) | R(DOWN),
		[ST_BAD_PLACE] = R(OFFSET) | R(PLACE),
		[ST_BAD_EARLY_FIN] =
			R(SHORT) | R(PLACE) | R(TWO_OFFERS) | R(OFFSET) | R(PEER) | R(DOWN),
	};
	/* Memory that nobody touches does no harm. */
	const uint32_t harmless =
		1u << ST_BAD_ANNOUNCE | 1u << ST_BAD_UNNAMED | 1u << ST_BAD_TWO_ADVERTS;
	const struct urn_st *s = &w->end[0][0].st;
	char why[200];

	if (!w->mischief_done)
		return;
	w->bad[w->mischief]++;
	w->bad_died[w->mischief] += s->reason != URN_ST_R_ALIVE;
	if (s->reason == URN_ST_R_ALIVE ? harmless >> w->mischief & 1
					: reasons[w->mischief] >> s->reason & 1)
		return;
	urn_st_error(s, why, sizeof(why));
	st_fail(w, "mischief %u ends with: %s", w->mischief, why);
#undef R
}

bool
st_run(struct st_world *w, const struct st_scenario *sc, uint64_t seed)
{
	bool trace = w->trace;
	enum st_sabotage sabotage = w->sabotage;

	/* Streams that the run before did not have are clean. */
	memset(w, 0, sizeof(*w));
	w->trace = trace;
	w->sabotage = sabotage;
	w->sc = sc;
	w->seed = seed;
	w->rng = sim_rng_of(seed, (uint64_t)(sc - st_scenarios));
	plan(w);
	while (!*w->error && !all_over(w, w->streams)) {
		step(w);
		wake_readers(w);
		w->step++;
		if (w->step == ST_STEPS || w->step - w->progress > 20 * ST_STUCK)
			st_fail(w, "no progress: %llu of %u and %llu of %u bytes came",
				(unsigned long long)w->end[0][1].got, w->end[0][0].target,
				(unsigned long long)w->end[0][0].got, w->end[0][1].target);
	}
	if (!*w->error)
		st_judge_end(w);
	if (!*w->error)
		judge_mischief(w);
	return !*w->error;
}
