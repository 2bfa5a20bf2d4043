/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire between the two nodes when it is a switch: options, setup,
 * and counts.
 *
 *     A ══ port ── [in: impairments] switch [in: impairments] ── port ══ B
 *
 * Frames of A are impaired on their way into the switch, and so are frames of B, by
 * a sequence of their own (seed and seed + 1). The thread of node B polls the switch.
 */
#ifndef URN_PERF_WIRE_H
#define URN_PERF_WIRE_H

#include "common/json.h"
#include "common/option_table.h"
#include "common/rig.h"

/* ---- options */

/* Rows of a table; offset: of the struct perf_wire_opts in the table's struct */
/* clang-format off */
#define PERF_WIRE_OPTIONS(offset)                                                                       \
	{"switch", NULL, "join the nodes by a switch, polled by the thread of node B",                  \
	 perf_wire_take, (offset), .id = PERF_WIRE_SWITCH},                                             \
	{"loss", "P", "... which loses P percent of the packets, each way: 0.1, 5",                     \
	 perf_wire_take, (offset), .id = PERF_WIRE_LOSS},                                               \
	{"dup", "P", "... duplicates P percent", perf_wire_take, (offset), .id = PERF_WIRE_DUP},        \
	{"reorder", "P", "... lets others pass P percent",                                              \
	 perf_wire_take, (offset), .id = PERF_WIRE_REORDER},                                            \
	{"reorder-depth", "N", "... as many as 1..N others, 1..32 (8)",                                 \
	 perf_wire_take, (offset), .id = PERF_WIRE_DEPTH},                                              \
	{"corrupt", "P", "... flips a bit in P percent",                                                \
	 perf_wire_take, (offset), .id = PERF_WIRE_CORRUPT},                                            \
	{"delay", "US", "... and delivers each so many microseconds later",                             \
	 perf_wire_take, (offset), .id = PERF_WIRE_DELAY},                                              \
	{"seed", "N", "seed of these random choices (0)", perf_wire_take, (offset), .id = PERF_WIRE_SEED}
/* clang-format on */

enum {
	PERF_WIRE_SWITCH,
	PERF_WIRE_LOSS,
	PERF_WIRE_DUP,
	PERF_WIRE_REORDER,
	PERF_WIRE_DEPTH,
	PERF_WIRE_CORRUPT,
	PERF_WIRE_DELAY,
	PERF_WIRE_SEED,
};

/* The wire that was asked for. */
struct perf_wire_opts {
	bool on;       /* the wire is a switch */
	bool impaired; /* the switch impairs frames */
	bool seeded;   /* --seed or --reorder-depth was given */
	struct urn_impair_config cfg;
};

/* Take one option of PERF_WIRE_OPTIONS(). returns: 0, or -1 with *err */
int perf_wire_take(const struct urn_option *row, const char *arg, void *to, struct urn_err *err);
/* Check that the options fit each other. returns: 0, or -1 with *err */
int perf_wire_check(const struct perf_wire_opts *w, struct urn_err *err);

/* ---- the wire itself */

struct perf_wire {
	struct urn_fabric *fabric; /* owner: the rig; NULL: the ports are joined directly */
	struct urn_switch *sw;	   /* owner: the fabric */
	unsigned int plugs;	   /* ports of the switch; the last leads to B */
	uint64_t tsc_mult;	   /* ns per cycle, 32 fractional bits */
};

/* The switch's counts, by direction: 0 is A, and other nodes that send, to B. */
struct perf_wire_result {
	bool on;
	struct urn_impair_counters dir[2];
	uint64_t queue_drops[2]; /* frames dropped because the node's port took too few */
};

/*
 * Configure the switch, for a rig whose ports 1, 3, ... are the switch's ends towards its nodes.
 * The engine of the last node polls it. plug: `plugs` of them, filled in; owner: the caller, as
 * long as *sw is used.
 */
void perf_wire_config(struct urn_config_switch *sw, struct urn_config_plug *plug,
		      unsigned int plugs, const struct perf_wire_opts *o);
/* Use the switch of an open rig; without one, polling does nothing. rig: outlives the wire */
void perf_wire_open(struct perf_wire *w, const struct urn_rig *rig);
/* Forward the frames that are there; one thread at a time. returns: frames moved */
unsigned int perf_wire_poll(struct perf_wire *w);
void perf_wire_get(const struct perf_wire *w, struct perf_wire_result *out);

void perf_wire_json(struct urn_json *j, const struct perf_wire_opts *o,
		    const struct perf_wire_result *r);
void perf_wire_print(const struct perf_wire_result *r);

#endif
