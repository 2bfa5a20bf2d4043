/* SPDX-License-Identifier: BSD-3-Clause */
/* The scenarios: each makes a plan of a seed. */
#include "amsim.h"

#define GBPS 1000000000ull

/* A plan without faults; scenarios change what they are about. */
static void
usual(struct ms_plan *p, struct sim_rng *r)
{
	*p = (struct ms_plan){
		.nodes = sim_between(r, 1, 4),
		.switches = sim_between(r, 1, 2),
		.messages = sim_between(r, 100, 600),
		.mtu = sim_one_in(r, 3) ? 2048 : 1024,
		.rate = 10 * GBPS,
		.delay = sim_between(r, 100, 5000),
		.queue = 4096,
		.think = sim_between(r, 1, 30000),
		.read_gap = sim_between(r, 1, 5000),
		.bad_in = 20,
		.span = 60 * MS_S,
		.bound = 2 * MS_S,
		.am =
			{
				.ends = sim_between(r, 1, 3),
				.entries = 1u << sim_rnd(r, 7),
				.zone = sim_between(r, 500, 30000),
				.tagged_from = sim_between(r, 1, 40000),
				.atomic_in = 5,
				.fence_in = sim_one_in(r, 2) ? 0 : sim_between(r, 2, 50),
				.answer_ms = 10000,
			},
	};
	p->sets = AS_ENDS + AS_TALKERS * AS_TALKER_PLACES;
}

static void
lossy_wires(struct ms_plan *p, struct sim_rng *r)
{
	p->drop = sim_one_in(r, 4) ? 0 : sim_unit(r) * 0.1;
	p->dup = sim_one_in(r, 2) ? 0 : sim_unit(r) * 0.1;
	p->reorder = sim_one_in(r, 2) ? 0 : sim_unit(r) * 0.1;
	p->jitter = sim_one_in(r, 2) ? 0 : sim_rnd(r, 20000);
	p->queue = sim_one_in(r, 3) ? sim_between(r, 8, 64) : 4096;
	p->bound = 15 * MS_S;
}

static void
make_plain(struct ms_plan *p, struct sim_rng *r)
{
	usual(p, r);
}

static void
make_lossy(struct ms_plan *p, struct sim_rng *r)
{
	usual(p, r);
	lossy_wires(p, r);
}

static void
make_loss30(struct ms_plan *p, struct sim_rng *r)
{
	usual(p, r);
	lossy_wires(p, r);
	p->drop = 0.1 + sim_unit(r) * 0.2;
	p->messages = sim_between(r, 50, 200);
}

static void
make_wrong(struct ms_plan *p, struct sim_rng *r)
{
	usual(p, r);
	p->bad_in = 3;
	if (sim_one_in(r, 2))
		lossy_wires(p, r);
}

static void
make_large(struct ms_plan *p, struct sim_rng *r)
{
	usual(p, r);
	p->messages = sim_between(r, 20, 100);
	p->am.zone = sim_between(r, 50000, 500000);
	if (sim_one_in(r, 2))
		lossy_wires(p, r);
}

static void
make_revoke(struct ms_plan *p, struct sim_rng *r)
{
	usual(p, r);
	p->am.revoke_gap = sim_between(r, 2000, 200000);
	if (sim_one_in(r, 2))
		lossy_wires(p, r);
}

static void
make_close(struct ms_plan *p, struct sim_rng *r)
{
	usual(p, r);
	p->close_gap = sim_between(r, 10000, 500000);
	if (sim_one_in(r, 2))
		p->am.revoke_gap = sim_between(r, 10000, 500000);
	if (sim_one_in(r, 2))
		lossy_wires(p, r);
}

static void
make_restart(struct ms_plan *p, struct sim_rng *r)
{
	usual(p, r);
	p->nodes = sim_between(r, 2, 4);
	p->restart_gap = sim_between(r, 1, 100) * MS_MS;
	p->think = sim_one_in(r, 3) ? 100000000 : sim_between(r, 1, 3000) * 1000;
	if (sim_one_in(r, 2))
		lossy_wires(p, r);
	if (sim_one_in(r, 2))
		p->cut_gap = sim_between(r, 1, 100) * MS_MS;
	if (sim_one_in(r, 3))
		p->am.revoke_gap = sim_between(r, 1, 100) * MS_MS;
	if (sim_one_in(r, 3))
		p->close_gap = sim_between(r, 500000, 50000000);
	p->bound = 30 * MS_S;
}

static void
make_unread(struct ms_plan *p, struct sim_rng *r)
{
	usual(p, r);
	p->am.unread_in = 2;
	p->am.entries = 1u << sim_rnd(r, 4);
	p->read_gap = sim_between(r, 5000, 200000);
	p->think = sim_between(r, 1, 3000);
	if (sim_one_in(r, 3))
		lossy_wires(p, r);
}

/* More reads than a target has room for replies; wires that are cut keep the replies from leaving.
 */
static void
make_replies(struct ms_plan *p, struct sim_rng *r)
{
	usual(p, r);
	p->nodes = sim_between(r, 2, 3);
	p->am.ends = sim_between(r, 4, AS_ENDS);
	p->am.entries = 256;
	p->am.reads = true;
	p->am.zone = sim_between(r, 5000, 100000);
	p->one_target = true;
	p->think = sim_between(r, 1, 500);
	p->messages = sim_between(r, 500, 1500);
	p->bad_in = 50;
	lossy_wires(p, r);
	if (sim_one_in(r, 2))
		p->cut_gap = sim_between(r, 1, 20) * MS_MS;
	p->bound = 30 * MS_S;
}

/* Active messages alone. */
static void
usual_talk(struct ms_plan *p, struct sim_rng *r)
{
	usual(p, r);
	p->am.ends = 0;
	p->am.talkers = sim_between(r, 1, AS_TALKERS);
	p->am.no_handler_in = 20;
	p->len_max = sim_one_in(r, 3) ? sim_between(r, 2000, 20000) : sim_between(r, 1, 900);
}

static void
make_talk(struct ms_plan *p, struct sim_rng *r)
{
	usual_talk(p, r);
	if (sim_one_in(r, 2))
		lossy_wires(p, r);
}

static void
make_talk30(struct ms_plan *p, struct sim_rng *r)
{
	usual_talk(p, r);
	lossy_wires(p, r);
	p->drop = 0.1 + sim_unit(r) * 0.2;
	p->messages = sim_between(r, 50, 200);
}

/* Programs that seldom run their handlers: queues are full, and requests fail. */
static void
make_slow(struct ms_plan *p, struct sim_rng *r)
{
	usual_talk(p, r);
	p->slow_in = 2;
	p->messages = sim_between(r, 50, 150);
	p->read_gap =
		sim_one_in(r, 2) ? sim_between(r, 2, 50) * MS_MS : sim_between(r, 10, 500) * MS_US;
	p->am.answer_ms = sim_one_in(r, 4) ? 10000 : sim_between(r, 50, 1000);
	if (sim_one_in(r, 3))
		lossy_wires(p, r);
}

/* Talkers that are closed and opened, nodes that restart, wires that are cut. */
static void
make_leave(struct ms_plan *p, struct sim_rng *r)
{
	usual_talk(p, r);
	p->nodes = sim_between(r, 2, 4);
	p->think = sim_between(r, 1, 3000) * 1000;
	p->close_gap = sim_one_in(r, 2) ? sim_between(r, 100000, 5000000) : 0;
	if (!p->close_gap || sim_one_in(r, 2))
		p->restart_gap = sim_between(r, 5, 100) * MS_MS;
	if (sim_one_in(r, 3))
		p->cut_gap = sim_between(r, 5, 100) * MS_MS;
	if (sim_one_in(r, 2))
		lossy_wires(p, r);
	p->bound = 30 * MS_S;
}

/* Ends and talkers on the same nodes and flows. */
static void
make_mixed(struct ms_plan *p, struct sim_rng *r)
{
	usual(p, r);
	p->am.talkers = 1;
	p->am.no_handler_in = 20;
	p->len_max = sim_between(r, 1, 3000);
	p->am.revoke_gap = sim_between(r, 2000, 200000);
	p->am.unread_in = 4;
	p->close_gap = sim_one_in(r, 3) ? sim_between(r, 50000, 500000) : 0;
	lossy_wires(p, r);
}

/*
 * Wires that lose 30 % of the frames between two nodes, or up to 30 % on the wire of each, while
 * nodes restart, programs take regions and memory back, or both. The plans are small, so that
 * 100,000 seeds take ten minutes of processor time.
 */
static void
make_storm(struct ms_plan *p, struct sim_rng *r)
{
	uint64_t what = sim_rnd(r, 4);

	usual(p, r);
	lossy_wires(p, r);
	p->nodes = sim_between(r, 2, 3);
	p->messages = sim_between(r, 30, 100);
	p->drop = sim_one_in(r, 2) ? 0.1634 : 0.1634 + sim_unit(r) * 0.1366; /* (1 - p)^2 = 0.7 */
	p->think = sim_between(r, 10, 1500) * MS_US * (sim_one_in(r, 2) ? 1 : 30);
	p->am.ends = sim_between(r, 1, 2);
	p->am.talkers = 1;
	p->am.no_handler_in = 20;
	p->am.zone = sim_between(r, 500, 30000);
	p->am.tagged_from = sim_between(r, 1, 8000);
	p->len_max = sim_between(r, 1, 3000);
	if (sim_one_in(r, 20)) { /* payloads of many packets, and few of them */
		p->len_max = sim_between(r, 4096, 100000);
		p->messages /= 3;
	}
	if (what != 0)
		p->restart_gap = sim_between(r, 2, 100) * MS_MS;
	if (what != 1)
		p->am.revoke_gap = p->think / 10 + sim_between(r, 10, 1000) * MS_US;
	if (sim_one_in(r, 4))
		p->close_gap = p->think / 2 + sim_between(r, 500, 15000) * MS_US;
	p->hold_in = sim_one_in(r, 3) ? 2 : 0;
	p->bound = 30 * MS_S;
}

const struct ms_scenario as_scenarios[] = {
	{"plain", "writes and reads, few of them wrong, on good wires", make_plain},
	{"lossy", "wires that lose, duplicate and reorder", make_lossy},
	{"loss30", "wires that lose up to 30 %", make_loss30},
	{"wrong", "commands that make no sense, wrong keys, rights and ranges", make_wrong},
	{"large", "operations of hundreds of packets", make_large},
	{"revoke", "regions and memory that are taken back in mid-transfer", make_revoke},
	{"close", "endpoints that are closed and opened while operations are under way",
	 make_close},
	{"restart", "nodes that restart, wires that are cut", make_restart},
	{"unread", "rings of events that are not read for a while", make_unread},
	{"replies", "more reads than a target has room for replies", make_replies},
	{"talk", "active messages, half of the time on bad wires", make_talk},
	{"talk30", "active messages on wires that lose up to 30 %", make_talk30},
	{"slow", "programs that seldom run their handlers", make_slow},
	{"leave", "active messages while endpoints and nodes come and go", make_leave},
	{"mixed", "remote memory and active messages with most of these faults", make_mixed},
	{"storm", "both on wires that lose 30 %, while nodes restart and programs revoke",
	 make_storm},
};
const unsigned int as_scenario_count = RTE_DIM(as_scenarios);
