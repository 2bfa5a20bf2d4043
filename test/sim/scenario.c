/* SPDX-License-Identifier: BSD-3-Clause */
/* The scenarios, and the plan that a seed makes of one. */
#include "sim.h"

#define WIRES (SIM_BIT(DROP) | SIM_BIT(DUP) | SIM_BIT(REORDER) | SIM_BIT(CORRUPT))
#define LINKS (SIM_BIT(DELAY) | SIM_BIT(RATE) | SIM_BIT(BLACKHOLE) | SIM_BIT(CUT) | SIM_BIT(FLAP))
#define MEMORY (sc->max_len > 65536 ? 32u << 20 : 4u << 20)
#define FOREIGN (SIM_BIT(FOREIGN) | SIM_BIT(STALL))
#define ALL_FAULTS (((UINT64_C(1) << SIM_FIRST_OF_CLIENTS) - 1) | FOREIGN)
#define ROGUES (SIM_BIT(DIE) | SIM_BIT(SCRIBBLE) | SIM_BIT(FLOOD) | SIM_BIT(MUTE) | SIM_BIT(GREEDY))

/* Frequency of each operation, in the order of enum model_op. */
#define USUAL {8, 4, 0, 10, 4, 8, 3, 3, 3, 0, 0}
#define EVERY {8, 4, 2, 10, 4, 8, 3, 3, 3, 3, 2}

const struct sim_scenario sim_scenarios[] = {
	{.name = "small",
	 .text = "two or three nodes, good wires, no faults",
	 .aligned = true,
	 .nodes = {2, 3},
	 .switches = {0, 1},
	 .pairs = {1, 3},
	 .ops = {4, 24},
	 .max_len = 4096,
	 .slots = 8,
	 .weight = USUAL,
	 .datagrams = {0, 4},
	 .srq_percent = 30},
	{.name = "mixed",
	 .text = "every operation on good wires; memory may answer late",
	 .may = SIM_BIT(LATE) | SIM_BIT(DRAIN) | SIM_BIT(DELAY),
	 .aligned = true,
	 .nodes = {2, 4},
	 .switches = {0, 2},
	 .pairs = {1, 8},
	 .ops = {8, 40},
	 .max_len = 16384,
	 .slots = 16,
	 .weight = EVERY,
	 .datagrams = {0, 16},
	 .srq_percent = 40},
	{.name = "lossy",
	 .text = "wires lose, duplicate, reorder and corrupt, up to 10 % each",
	 .always = WIRES,
	 .may = SIM_BIT(LATE) | SIM_BIT(DELAY),
	 .aligned = true,
	 .nodes = {2, 3},
	 .switches = {0, 2},
	 .pairs = {1, 3},
	 .ops = {4, 24},
	 .max_len = 8192,
	 .slots = 8,
	 .weight = USUAL,
	 .datagrams = {0, 8},
	 .srq_percent = 30},
	{.name = "loss30",
	 .text = "30 % loss, with duplication, reordering and corruption",
	 .always = WIRES,
	 .nodes = {2, 3},
	 .switches = {0, 1},
	 .pairs = {1, 2},
	 .ops = {4, 16},
	 .max_len = 8192,
	 .slots = 8,
	 .weight = USUAL,
	 .datagrams = {0, 4},
	 .srq_percent = 30,
	 .drop = 0.30,
	 .dup = 0.10,
	 .reorder = 0.20,
	 .corrupt = 0.05,
	 .exact = true},
	{.name = "storm",
	 .text = "receives come late: RNR, now and then until retries end",
	 .always = SIM_BIT(RNR),
	 .may = WIRES | SIM_BIT(LATE),
	 .nodes = {2, 3},
	 .switches = {0, 1},
	 .pairs = {1, 4},
	 .ops = {4, 24},
	 .max_len = 4096,
	 .slots = 8,
	 .weight = {10, 6, 0, 3, 6, 3, 1, 1, 1, 0, 0},
	 .srq_percent = 40},
	{.name = "windows",
	 .text = "memory windows: bind, use, invalidate; now and then too late",
	 .may = SIM_BIT(STALE) | SIM_BIT(BADKEY) | SIM_BIT(LATE) | SIM_BIT(DROP) | SIM_BIT(REORDER),
	 .nodes = {2, 3},
	 .switches = {0, 1},
	 .pairs = {1, 4},
	 .ops = {8, 40},
	 .max_len = 4096,
	 .slots = 8,
	 .weight = {4, 2, 6, 8, 3, 8, 3, 3, 2, 8, 6},
	 .srq_percent = 30},
	{.name = "invalid",
	 .text = "windows are invalidated and bound anew while WRITEs through them are under way",
	 .always = SIM_BIT(STALE) | SIM_BIT(LATE),
	 .may = SIM_BIT(DROP) | SIM_BIT(DELAY) | FOREIGN,
	 .nodes = {2, 2},
	 .switches = {0, 1},
	 .pairs = {8, 24},
	 .ops = {16, 48},
	 .max_len = 8192,
	 .slots = 16,
	 .weight = {1, 1, 1, 24, 1, 2, 0, 0, 0, 6, 6},
	 .srq_percent = 30,
	 .late_polls = 400},
	{.name = "dereg",
	 .text = "regions are deregistered while in use",
	 .always = SIM_BIT(DEREG),
	 .may = WIRES | SIM_BIT(LATE),
	 .nodes = {2, 3},
	 .switches = {0, 1},
	 .pairs = {1, 4},
	 .ops = {8, 32},
	 .max_len = 16384,
	 .slots = 8,
	 .weight = EVERY,
	 .srq_percent = 30},
	{.name = "exhaust",
	 .text = "packets and places for work run out",
	 .always = SIM_BIT(EXHAUST),
	 .may = WIRES | SIM_BIT(LATE),
	 .nodes = {2, 3},
	 .switches = {0, 1},
	 .pairs = {1, 6},
	 .ops = {8, 32},
	 .max_len = 32768,
	 .slots = 16,
	 .weight = USUAL,
	 .datagrams = {0, 8},
	 .srq_percent = 30},
	{.name = "ud",
	 .text = "datagrams above all",
	 .may = WIRES | SIM_BIT(LATE) | SIM_BIT(DELAY),
	 .nodes = {2, 5},
	 .switches = {0, 3},
	 .pairs = {0, 1},
	 .ops = {2, 8},
	 .max_len = 4096,
	 .slots = 8,
	 .weight = USUAL,
	 .datagrams = {16, 64}},
	{.name = "big",
	 .text = "messages of up to 1 MiB",
	 .may = WIRES | SIM_BIT(LATE),
	 .nodes = {2, 2},
	 .switches = {0, 1},
	 .pairs = {1, 2},
	 .ops = {2, 6},
	 .max_len = 1 << 20,
	 .slots = 4,
	 .weight = {5, 2, 0, 8, 2, 8, 1, 1, 0, 0, 0}},
	{.name = "atomics",
	 .text = "atomics over bad wires",
	 .always = WIRES,
	 .may = SIM_BIT(LATE),
	 .nodes = {2, 4},
	 .switches = {0, 1},
	 .pairs = {1, 6},
	 .ops = {8, 48},
	 .max_len = 1024,
	 .slots = 16,
	 .weight = {1, 0, 0, 2, 0, 2, 8, 8, 8, 0, 0}},
	{.name = "errors",
	 .text = "programs err and end QPs, memory fails",
	 .may = SIM_BIT(QPERR) | SIM_BIT(BADKEY) | SIM_BIT(SHORT) | SIM_BIT(FAIL) | SIM_BIT(LATE) |
		SIM_BIT(STALE) | SIM_BIT(DROP),
	 .nodes = {2, 3},
	 .switches = {0, 1},
	 .pairs = {2, 6},
	 .ops = {8, 32},
	 .max_len = 8192,
	 .slots = 8,
	 .weight = EVERY,
	 .datagrams = {0, 8},
	 .srq_percent = 30},
	{.name = "links",
	 .text = "links that are slow, thin, cut, dead or flapping; nodes that stand still",
	 .may = LINKS | SIM_BIT(PAUSE) | SIM_BIT(NEIGH),
	 .nodes = {2, 5},
	 .switches = {1, 3},
	 .pairs = {1, 6},
	 .ops = {4, 32},
	 .max_len = 8192,
	 .slots = 8,
	 .weight = USUAL,
	 .datagrams = {0, 16},
	 .srq_percent = 30},
	{.name = "many",
	 .text = "many QPs",
	 .may = WIRES | SIM_BIT(LATE),
	 .nodes = {2, 4},
	 .switches = {0, 2},
	 .pairs = {64, 200},
	 .ops = {2, 6},
	 .max_len = 1024,
	 .slots = 4,
	 .weight = EVERY,
	 .srq_percent = 50},
	{.name = "foreign",
	 .text = "memory of other processes, and gates that close before it",
	 .always = SIM_BIT(FOREIGN),
	 .may = SIM_BIT(STALL) | WIRES | SIM_BIT(LATE) | SIM_BIT(FAIL) | SIM_BIT(DEREG) |
		SIM_BIT(QPERR) | SIM_BIT(DRAIN) | SIM_BIT(RNR),
	 .nodes = {2, 3},
	 .switches = {0, 1},
	 .pairs = {1, 6},
	 .ops = {4, 32},
	 .max_len = 16384,
	 .slots = 16,
	 .weight = EVERY,
	 .datagrams = {0, 16},
	 .srq_percent = 30},
	{.name = "chaos",
	 .text = "everything at once",
	 .may = ALL_FAULTS,
	 .nodes = {2, 5},
	 .switches = {0, 3},
	 .pairs = {1, 12},
	 .ops = {8, 40},
	 .max_len = 32768,
	 .slots = 16,
	 .weight = EVERY,
	 .datagrams = {0, 24},
	 .srq_percent = 40},
	{.name = "still",
	 .text = "engines that are not run for long, on wires that lose nothing",
	 .always = SIM_BIT(HANG),
	 .may = SIM_BIT(DUP) | SIM_BIT(DELAY) | SIM_BIT(LATE) | SIM_BIT(DRAIN) | SIM_BIT(RNR),
	 .nodes = {2, 3},
	 .switches = {0, 1},
	 .pairs = {1, 6},
	 .ops = {8, 48},
	 .max_len = 16384,
	 .slots = 16,
	 .weight = EVERY,
	 .datagrams = {0, 8},
	 .srq_percent = 30,
	 .clients = {0, 1}},
	{.name = "domains",
	 .text = "shared receive queues in other protection domains than their QPs",
	 .always = SIM_BIT(APART),
	 .may = SIM_BIT(BADKEY) | SIM_BIT(LATE) | SIM_BIT(RNR) | SIM_BIT(DROP) | FOREIGN,
	 .nodes = {2, 3},
	 .switches = {0, 1},
	 .pairs = {1, 6},
	 .ops = {4, 32},
	 .max_len = 8192,
	 .slots = 8,
	 .weight = {10, 6, 0, 3, 4, 3, 1, 1, 1, 0, 0},
	 .srq_percent = 100},
	{.name = "overrun",
	 .text = "completion queues that are too small, and programs that poll late",
	 .always = SIM_BIT(OVERRUN),
	 .may = SIM_BIT(LATE) | SIM_BIT(DUP) | SIM_BIT(DELAY),
	 .nodes = {2, 3},
	 .switches = {0, 1},
	 .pairs = {1, 8},
	 .ops = {16, 64},
	 .max_len = 4096,
	 .slots = 16,
	 .weight = {8, 4, 0, 6, 6, 4, 1, 1, 1, 0, 0}},
	{.name = "neighbours",
	 .text = "nodes that vanish and come back, and nodes whose MAC address moves",
	 .may = SIM_BIT(VANISH) | SIM_BIT(MOVE) | SIM_BIT(LATE) | SIM_BIT(DUP),
	 .nodes = {2, 3},
	 .switches = {0, 1},
	 .pairs = {1, 6},
	 .ops = {16, 64},
	 .max_len = 8192,
	 .slots = 16,
	 .weight = USUAL,
	 .srq_percent = 30},
	{.name = "slow",
	 .text = "a node that is slow, and goes by the standard alone as all do",
	 .always = SIM_BIT(SERVICE),
	 .may = WIRES,
	 .nodes = {2, 3},
	 .switches = {0, 1},
	 .pairs = {1, 4},
	 .ops = {16, 64},
	 .max_len = 16384,
	 .slots = 16,
	 .weight = {0, 0, 0, 8, 0, 12, 1, 1, 1, 0, 0},
	 .plain = true},
	{.name = "clients",
	 .text = "clients that die and misbehave, beside others that don't",
	 .always = ROGUES,
	 .may = WIRES | SIM_BIT(LATE) | SIM_BIT(DELAY),
	 .nodes = {2, 3},
	 .switches = {0, 1},
	 .pairs = {1, 4},
	 .ops = {8, 40},
	 .max_len = 8192,
	 .slots = 8,
	 .weight = EVERY,
	 .clients = {1, 3},
	 .rogues = {1, 3}},
	{.name = "cm",
	 .text = "connections by connection management, over bad wires and with bad clients",
	 .may = WIRES | SIM_BIT(LATE) | SIM_BIT(DELAY) | ROGUES | SIM_BIT(REFUSE) | SIM_BIT(SLOW) |
		SIM_BIT(FORGET),
	 .nodes = {2, 3},
	 .switches = {0, 1},
	 .pairs = {1, 4},
	 .ops = {1, 8},
	 .max_len = 2048,
	 .slots = 4,
	 .weight = USUAL,
	 .clients = {1, 3},
	 .rogues = {0, 2},
	 .cm = true},
};
const unsigned int sim_scenario_count = sizeof(sim_scenarios) / sizeof(sim_scenarios[0]);

static const struct {
	const char *name, *text;
} faults[SIM_FAULT_COUNT] = {
#define X(id, name, text) {name, text},
	SIM_FAULTS(X)
#undef X
};

const char *
sim_fault_name(unsigned int f)
{
	return f < SIM_FAULT_COUNT ? faults[f].name : NULL;
}

const char *
sim_fault_text(unsigned int f)
{
	return f < SIM_FAULT_COUNT ? faults[f].text : NULL;
}

const char *
sim_recovery_name(unsigned int r)
{
	static const char *const names[] = {"gbn", "selective", "mixed"};

	return r < sizeof(names) / sizeof(names[0]) ? names[r] : NULL;
}

const struct sim_scenario *
sim_scenario_find(const char *name)
{
	for (unsigned int i = 0; i < sim_scenario_count; i++)
		if (strcmp(sim_scenarios[i].name, name) == 0)
			return &sim_scenarios[i];
	return NULL;
}

static uint32_t
in(struct sim_rng *r, struct sim_range range)
{
	return sim_between(r, range.lo, range.hi);
}

static double
rate(struct sim_rng *r, const struct sim_scenario *sc, double of)
{
	double drawn = sim_unit(r) * (of > 0 ? of : 0.1);

	return sc->exact ? of : drawn;
}

/* Draw the configuration of the transport. */
static void
draw_transport(struct sim_plan *p, struct sim_rng *r)
{
	static const uint32_t windows[] = {1, 2, 3, 5, 16, 64, 256, 256};
	static const uint8_t rds[] = {1, 2, 4, 4, 8, 16, 128};

	p->ipv6 = sim_one_in(r, 3);
	p->mtu_code = (uint8_t)sim_between(r, 1, 5);
	p->window = windows[sim_rnd(r, 8)];
	p->kept = sim_one_in(r, 3) ? sim_between(r, 1, 16) : 256;
	p->work = 512;
	p->timeout = (uint8_t)sim_between(r, 9, 11);
	p->retry_cnt = 7;
	p->rnr_retry = 7;
	p->min_rnr_timer = (uint8_t)sim_between(r, 1, 14);
	p->rd_atomic = rds[sim_rnd(r, 7)];
	p->dest_rd_atomic = sim_one_in(r, 2) ? p->rd_atomic : 128;
}

/* Draw from a random stream of its own, like the clients' faults: earlier draws do not change. */
static void
draw_clients(struct sim_plan *p, const struct sim_scenario *sc, uint64_t seed)
{
	struct sim_rng r = sim_rng_of(seed, 3);

	if (!sc->clients.hi)
		return;
	for (unsigned int f = SIM_FIRST_OF_CLIENTS; f < SIM_FIRST_OF_FOREIGN; f++)
		if (sim_one_in(&r, 2))
			p->faults |= sc->may & UINT64_C(1) << f;
	p->clients = in(&r, sc->clients);
	p->rogues = in(&r, sc->rogues);
	p->lives = sim_between(&r, 1, 4);
	p->cm = sc->cm;
	if (p->clients)
		p->datagrams = 0;
}

/* Draw from a random stream of its own, likewise. */
static void
draw_foreign(struct sim_plan *p, const struct sim_scenario *sc, uint64_t seed)
{
	static const uint32_t gates[] = {4, 8, 8, 16, 32, 64, 256, 1024};
	struct sim_rng r = sim_rng_of(seed, 4);

	p->gate = gates[sim_rnd(&r, 8)];
	if (sim_one_in(&r, 3))
		p->faults |= sc->may & SIM_BIT(FOREIGN);
	if (sim_one_in(&r, 3))
		p->faults |= sc->may & SIM_BIT(STALL);
}

/*
 * Draw hangs, likewise. All engines together may hang for any time, repeatedly: time in which
 * no engine ran is no peer's fault. A single engine must be back before its peers' retries are
 * used up, or the peers may fail.
 */
static void
draw_hang(struct sim_plan *p, uint64_t seed)
{
	enum { SLACK_NS = 1700000 }; /* part of that for all other delays of the path */
	struct sim_rng r = sim_rng_of(seed, 5);
	uint64_t budget;

	if (!(p->faults & SIM_BIT(HANG)))
		return;
	p->retry_cnt = sim_one_in(&r, 2) ? 0 : (uint8_t)sim_between(&r, 1, 7);
	budget = (p->retry_cnt + 1u) * (4096ull << p->timeout);
	p->hang_node = sim_one_in(&r, 4) ? sim_rnd(&r, p->nodes) : SIM_NODES;
	p->hang_fails = p->hang_node != SIM_NODES && sim_one_in(&r, 3);
	p->hang_ns = p->hang_node != SIM_NODES && !p->hang_fails ? budget - SLACK_NS
								 : budget << sim_rnd(&r, 5);
	p->hangs = p->hang_node != SIM_NODES ? 1 : sim_one_in(&r, 2) ? sim_between(&r, 1, 3)
								   : sim_between(&r, 10, SIM_HANGS);
}

/*
 * Draw a slow node: the requests that programs have in flight take the node a quarter of a
 * timeout at least, and one timeout at most.
 */
static void
draw_service(struct sim_plan *p, uint64_t seed)
{
	struct sim_rng r = sim_rng_of(seed, 6);
	uint64_t packets = p->pairs * p->slots * (uint64_t)((p->max_len >> (p->mtu_code + 7)) + 1);

	if (p->faults & SIM_BIT(SERVICE))
		p->service_ns = (4096ull << p->timeout) * sim_between(&r, 1, 4) / 4 / packets;
}

/* Draw, likewise, a completion queue that is too small. */
static void
draw_overrun(struct sim_plan *p, uint64_t seed)
{
	struct sim_rng r = sim_rng_of(seed, 7);

	p->full_node = sim_rnd(&r, p->nodes);
	p->full_entries = 4u << sim_rnd(&r, 5);
	p->full_receives = sim_one_in(&r, 2);
}

void
sim_plan_make(struct sim_plan *p, const struct sim_scenario *sc, uint64_t seed, uint64_t without)
{
	struct sim_rng r = sim_rng_of(seed, 1);
	bool few, untimed;
	uint32_t work;

	memset(p, 0, sizeof(*p));
	p->faults = sc->always;
	for (unsigned int f = 0; f < SIM_FIRST_OF_CLIENTS; f++)
		if (sim_one_in(&r, 3))
			p->faults |= sc->may & UINT64_C(1) << f;
	p->nodes = in(&r, sc->nodes);
	p->switches = in(&r, sc->switches);
	if (p->nodes > 2 && p->switches == 0)
		p->switches = 1;
	p->pairs = in(&r, sc->pairs);
	p->ops = in(&r, sc->ops);
	p->max_len = sim_one_in(&r, 4) ? sc->max_len / 16 : sim_one_in(&r, 3) ? sc->max_len / 4
									      : sc->max_len;
	p->slots = 1u << sim_between(&r, 1, (uint32_t)__builtin_ctz(sc->slots));
	p->bufs = sim_between(&r, 2, 16);
	p->datagrams = in(&r, sc->datagrams);
	draw_transport(p, &r);
	for (unsigned int i = 0; i < SIM_NODES; i++) {
		p->srq[i] = sim_rnd(&r, 100) < sc->srq_percent;
		p->turn_ns[i] = sim_between(&r, 200, 2000);
	}
	p->drop = rate(&r, sc, sc->drop);
	p->dup = rate(&r, sc, sc->dup);
	p->reorder = rate(&r, sc, sc->reorder);
	p->corrupt = rate(&r, sc, sc->corrupt);
	draw_clients(p, sc, seed);
	draw_foreign(p, sc, seed);
	draw_hang(p, seed);
	draw_overrun(p, seed);
	sim_neigh_draw(p, sc, seed);
	few = sim_one_in(&r, 2);
	untimed = sim_one_in(&r, 2);
	work = sim_between(&r, 4, 24);
	if (!(p->faults & ~(SIM_BIT(LATE) | SIM_BIT(DUP) | SIM_BIT(DRAIN) | SIM_BIT(DELAY) | FOREIGN)) &&
	    untimed)
		p->timeout = 0; /* where nothing is lost, QPs must go on without the timer */
	/* All memory of a run, within bounds. */
	while (p->pairs * 2 * (p->slots + p->bufs + 3) * (uint64_t)p->max_len > MEMORY) {
		if (p->slots > 2)
			p->slots /= 2;
		else if (p->bufs > 2)
			p->bufs /= 2;
		else
			p->max_len /= 2;
	}
	p->faults &= ~without;
	draw_service(p, seed);
	if (!(p->faults & SIM_BIT(FOREIGN)))
		p->faults &= ~SIM_BIT(STALL);
	if (few && (p->faults & SIM_BIT(RNR)))
		p->rnr_retry = (uint8_t)sim_between(&r, 1, 6);
	if (p->faults & SIM_BIT(EXHAUST))
		p->work = work;
}
