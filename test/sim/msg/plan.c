/* SPDX-License-Identifier: BSD-3-Clause */
/* The scenarios: each makes a plan of a seed. */
#include "msgsim.h"

#define GBPS 1000000000ull

/* A plan without faults; scenarios change what they are about. */
static void
usual(struct ms_plan *p, struct sim_rng *r)
{
	*p = (struct ms_plan){
		.nodes = sim_between(r, 2, 6),
		.sets = sim_between(r, 1, 8),
		.switches = sim_between(r, 1, 3),
		.messages = sim_between(r, 50, 600),
		.mtu = sim_one_in(r, 3) ? 2048 : 1024,
		.rate = 10 * GBPS,
		.delay = sim_between(r, 100, 5000),
		.queue = 4096,
		.len_max = sim_between(r, 16, 900),
		.entries = 1u << sim_rnd(r, 7),
		.think = sim_between(r, 1, 20000),
		.read_gap = sim_between(r, 1, 5000),
		.sleep_in = 3,
		.retry_in = 2,
		.bad_in = 20,
		.span = 60 * MS_S,
		.bound = 4 * MS_S,
	};
}

static void
lossy_wires(struct ms_plan *p, struct sim_rng *r)
{
	p->drop = sim_one_in(r, 3) ? 0 : sim_unit(r) * 0.1;
	p->dup = sim_one_in(r, 2) ? 0 : sim_unit(r) * 0.1;
	p->reorder = sim_one_in(r, 2) ? 0 : sim_unit(r) * 0.1;
	p->jitter = sim_one_in(r, 2) ? 0 : sim_rnd(r, 20000);
	p->queue = sim_one_in(r, 3) ? sim_between(r, 8, 64) : 4096;
	p->bound = 10 * MS_S;
}

static void
make_lossy(struct ms_plan *p, struct sim_rng *r)
{
	usual(p, r);
	lossy_wires(p, r);
}

static void
make_full(struct ms_plan *p, struct sim_rng *r)
{
	usual(p, r);
	p->entries = 1u << sim_rnd(r, 3);
	p->slow_in = 2;
	p->read_gap = sim_between(r, 1000, 100000);
	p->think = sim_between(r, 1, 2000);
	p->permit_in = 5;
	p->bad_in = 8;
	if (sim_one_in(r, 2))
		lossy_wires(p, r);
}

/* Hundreds of senders to a queue that is full most of the time, one packet a message; and messages
 * to other queues. */
static void
make_crowd(struct ms_plan *p, struct sim_rng *r)
{
	usual(p, r);
	p->nodes = sim_between(r, 2, 4);
	p->sets = 256;
	p->messages = sim_between(r, 2000, 6000);
	p->others_in = sim_between(r, 2, 10);
	p->mtu = 1024;
	p->len_max = sim_between(r, 500, 900);
	p->entries = 1u << sim_rnd(r, 3);
	p->read_gap = sim_between(r, 1000, 100000);
	p->think = sim_between(r, 1, 2000);
	p->retry_in = 0;
	p->bad_in = 0;
	p->bound = 20 * MS_MS;
	if (!sim_one_in(r, 3))
		return;
	p->drop = sim_unit(r) * 0.01;
	p->reorder = sim_unit(r) * 0.05;
	p->jitter = sim_rnd(r, 20000);
	p->bound = 2 * MS_S;
}

/* Clients that have room for a flow or two, and many nodes to send to: idle flows go to rest. */
static void
make_rest(struct ms_plan *p, struct sim_rng *r)
{
	usual(p, r);
	p->flows = sim_between(r, 1, 3);
	p->nodes = sim_between(r, 4, 12);
	p->sets = sim_between(r, 4, 16);
	p->messages = sim_between(r, 500, 3000);
	p->think = sim_between(r, 1, 200) * 1000;
	p->entries = 1u << sim_rnd(r, 4);
	if (sim_one_in(r, 4))
		return;
	lossy_wires(p, r);
	p->drop = sim_unit(r) * 0.1;
	p->dup = sim_unit(r) * 0.3;
	if (sim_one_in(r, 3)) {
		p->long_in = sim_between(r, 2, 10);
		p->long_max = sim_between(r, 2100, 20000);
	}
	if (sim_one_in(r, 4))
		p->close_gap = sim_between(r, 100000, 5000000);
	if (sim_one_in(r, 4))
		p->restart_gap = sim_between(r, 5, 50) * MS_MS;
	p->bound = 20 * MS_S;
}

static void
make_long(struct ms_plan *p, struct sim_rng *r)
{
	usual(p, r);
	p->messages = sim_between(r, 20, 120);
	p->long_in = sim_between(r, 2, 5);
	p->long_max = sim_one_in(r, 3) ? URN_MSG_MAX : sim_between(r, 2000, 200000);
	p->bound = 12 * MS_S;
	if (sim_one_in(r, 2)) {
		lossy_wires(p, r);
		p->drop /= 4;
	}
	if (sim_one_in(r, 3))
		p->close_gap = sim_between(r, 100000, 5000000);
}

/* Many messages of a few parts at the same time, on wires that are bad: as many half messages as
 * there can be. */
static void
make_halves(struct ms_plan *p, struct sim_rng *r)
{
	usual(p, r);
	lossy_wires(p, r);
	p->sets = sim_between(r, 8, 24);
	p->messages = sim_between(r, 500, 2000);
	p->long_in = 1;
	p->long_max = sim_between(r, 2100, 8000);
	p->think = sim_between(r, 1, 2000);
	p->one_target = sim_one_in(r, 3);
	if (sim_one_in(r, 3))
		p->close_gap = sim_between(r, 100000, 5000000);
	p->bound = 12 * MS_S;
}

static void
make_close(struct ms_plan *p, struct sim_rng *r)
{
	usual(p, r);
	p->close_gap = sim_between(r, 5000, 500000);
	p->permit_in = 10;
	if (sim_one_in(r, 2))
		lossy_wires(p, r);
	if (sim_one_in(r, 4)) {
		p->long_in = 4;
		p->long_max = sim_between(r, 2000, 50000);
	}
}

static void
make_restart(struct ms_plan *p, struct sim_rng *r)
{
	usual(p, r);
	p->restart_gap = sim_between(r, 1, 100) * MS_MS;
	p->think = sim_one_in(r, 3) ? 100000000 : sim_between(r, 1, 3000) * 1000;
	if (sim_one_in(r, 2))
		lossy_wires(p, r);
	if (sim_one_in(r, 2))
		p->cut_gap = sim_between(r, 1, 100) * MS_MS;
	if (sim_one_in(r, 3))
		p->close_gap = sim_between(r, 500000, 50000000);
	if (sim_one_in(r, 4)) {
		p->long_in = 4;
		p->long_max = sim_between(r, 2000, 50000);
	}
	p->bound = 20 * MS_S;
}

/* Restarts in the middle of first packets, with repeats that wait in the network for the node's
 * next life. */
static void
make_reborn(struct ms_plan *p, struct sim_rng *r)
{
	make_restart(p, r);
	p->restart_gap = sim_between(r, 1, 30) * MS_MS;
	p->cut_gap = 0;
	p->hold_in = sim_one_in(r, 4) ? 3 : 1;
	p->young_in = 3;
	p->think = sim_between(r, 1, 30) * MS_MS;
	p->bad_in = 0;
}

static void
make_scribble(struct ms_plan *p, struct sim_rng *r)
{
	usual(p, r);
	p->sets = sim_between(r, 2, 8);
	p->scribble_in = 3;
	p->messages = sim_between(r, 50, 300);
	p->bound = 6 * MS_S;
	if (sim_one_in(r, 3))
		lossy_wires(p, r);
	if (sim_one_in(r, 3))
		p->close_gap = sim_between(r, 50000, 500000);
}

static void
make_marks(struct ms_plan *p, struct sim_rng *r)
{
	usual(p, r);
	p->dcqcn = true;
	p->nodes = sim_between(r, 3, 9);
	p->rate = sim_one_in(r, 2) ? GBPS : 10 * GBPS;
	p->think = 100;
	p->messages = sim_between(r, 200, 1000);
	p->one_target = sim_one_in(r, 2);
	if (sim_one_in(r, 3)) {
		p->long_in = 3;
		p->long_max = 60000;
	}
	p->lossless = sim_one_in(r, 2);
	p->bound = 10 * MS_S;
}

/* Trees of switches that lose nothing, with accounts for all that senders have in flight. */
static void
lossless_tree(struct ms_plan *p, struct sim_rng *r)
{
	usual(p, r);
	p->lossless = true;
	p->credits = sim_one_in(r, 2);
	p->nodes = sim_between(r, 2, 16);
	p->think = 100;
	p->messages = sim_between(r, 200, 2000);
	p->one_target = sim_one_in(r, 3);
	p->dcqcn = sim_one_in(r, 4);
	p->switches = sim_between(r, 1, MS_SWITCHES);
	if (sim_one_in(r, 3)) {
		p->long_in = 3;
		p->long_max = 100000;
	}
}

/* Half of the runs have small accounts, and bursts of many boxes that go beyond them. */
static void
make_lossless(struct ms_plan *p, struct sim_rng *r)
{
	lossless_tree(p, r);
	p->tight = !sim_one_in(r, 2);
	if (!p->tight)
		return;
	p->sets = sim_between(r, 8, 24);
	p->len_max = sim_between(r, 600, 900);
	p->entries = 1u << sim_between(r, 5, 8);
	p->long_in = 3;
	p->long_max = 100000;
}

/* Small accounts, and more bytes for one node than they hold: senders stop all the time. */
static void
make_tight(struct ms_plan *p, struct sim_rng *r)
{
	lossless_tree(p, r);
	p->tight = true;
	p->one_target = true;
	p->nodes = sim_between(r, 4, 16);
	p->sets = sim_between(r, 16, 32);
	p->len_max = sim_between(r, 600, 900);
	p->entries = 1u << sim_between(r, 6, 10);
	p->messages = sim_between(r, 500, 1500);
	p->long_in = 2;
	p->long_max = 100000;
}

static void
make_ring(struct ms_plan *p, struct sim_rng *r)
{
	lossless_tree(p, r);
	p->ring = true;
	p->switches = sim_between(r, 3, MS_SWITCHES);
	p->bound = 10 * MS_S;
}

/* The frames of all nodes go to all others, so that switches wait for each other in a circle. */
static void
make_jam(struct ms_plan *p, struct sim_rng *r)
{
	make_tight(p, r);
	p->one_target = false;
	p->ring = true;
	p->switches = sim_between(r, 3, MS_SWITCHES);
	p->bound = 10 * MS_S;
}

/* A hostile pauser among nodes that do not know of it; half of the time one switch is all there is.
 */
static void
make_pauser(struct ms_plan *p, struct sim_rng *r)
{
	lossless_tree(p, r);
	p->pauser = (uint8_t)sim_between(r, MS_PAUSER_EVER, MS_PAUSERS - 1);
	p->nodes = sim_between(r, 3, 12);
	p->switches = sim_one_in(r, 2) ? 1 : sim_between(r, 1, 3);
	p->sets = sim_between(r, 2, 16);
	p->messages = sim_between(r, 1000, 4000);
	p->one_target = false;
	p->think = sim_one_in(r, 3) ? 20000 : sim_between(r, 100, 2000) * 1000;
	p->long_in = sim_one_in(r, 3) ? 3 : 0;
	p->long_max = 100000;
	p->bound = 20 * MS_S;
	p->tight = sim_one_in(r, 2);
	p->bound_others = 100 * MS_MS;
}

static void
make_incast(struct ms_plan *p, struct sim_rng *r)
{
	usual(p, r);
	p->nodes = 65;
	p->sets = 1;
	p->switches = 1;
	p->lossless = true;
	p->credits = sim_one_in(r, 2);
	p->one_target = true;
	p->len_max = 1024;
	p->mtu = 2048;
	p->entries = 4096;
	p->messages = 64 * 16;
	p->think = 0;
	p->read_gap = 100;
	p->bad_in = 0;
	p->sleep_in = 0;
	p->most_p99 = 3;
}

static void
make_thousand(struct ms_plan *p, struct sim_rng *r)
{
	make_incast(p, r);
	p->most_p99 = 0;
	p->nodes = 64;
	p->sets = 16;
	p->entries = 1u << sim_between(r, 4, 10);
	p->len_max = sim_between(r, 16, 1024);
	p->messages = 4000;
	p->switches = sim_between(r, 1, MS_SWITCHES);
	p->tight = sim_one_in(r, 2);
}

const struct ms_scenario ms_scenarios[] = {
	{"lossy", "wires that lose, duplicate and reorder", make_lossy},
	{"full", "small queues, slow readers, permissions, bad doorbells", make_full},
	{"crowd", "hundreds of senders to a full queue, one packet a message", make_crowd},
	{"rest", "clients with room for a flow or two, whose idle flows go to rest", make_rest},
	{"long", "messages up to 1 MiB", make_long},
	{"halves", "many messages of a few parts on bad wires", make_halves},
	{"close", "register sets that are closed and opened while messages are on their way",
	 make_close},
	{"restart", "nodes that restart, wires that are cut", make_restart},
	{"reborn", "nodes that restart before they answer, while frames to them wait", make_reborn},
	{"scribble", "programs that scribble over their registers", make_scribble},
	{"marks", "marks of congestion, and nodes that obey them", make_marks},
	{"lossless", "trees of switches that lose nothing", make_lossless},
	{"tight", "the same with small accounts, and more than they hold", make_tight},
	{"jam", "rings of such switches", make_jam},
	{"ring", "rings of switches that lose nothing but to a deadlock", make_ring},
	{"pauser", "trees of switches that lose nothing, and a port that pauses without end",
	 make_pauser},
	{"incast", "64 nodes send to one queue", make_incast},
	{"thousand", "1,000 senders on 64 nodes, one queue", make_thousand},
};
const unsigned int ms_scenario_count = RTE_DIM(ms_scenarios);
