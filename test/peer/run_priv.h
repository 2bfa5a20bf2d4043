/* SPDX-License-Identifier: BSD-3-Clause */
/* The inside of a run, for run.c and run_open.c. */
#ifndef PEER_RUN_PRIV_H
#define PEER_RUN_PRIV_H

#include "run.h"

#include "line.h"

enum { TO_DUT, TO_PEER };

/* One connection: a peer of its own, and a flow each way. */
struct joint {
	struct run *r;
	unsigned int i;
	struct peer peer;
	struct flow flow[2];	      /* by direction: TO_DUT, TO_PEER */
	struct flow_side side[2];     /* the product's side, the peer's */
	uint8_t *ram;		      /* the peer's memory */
	uint32_t top;		      /* PSN after the newest request of the product */
	bool silent;		      /* that request did not ask for an ACK */
	uint32_t nak_psn;	      /* the gap of the product's last NAK */
	bool nak_open;		      /* ... and that PSN has not come since */
	uint32_t rnr_psn;	      /* the request that the product must delay */
	uint64_t rnr_from, rnr_until; /* ns */
	uint64_t timeout, retries;    /* settings of the product; timeout in ns */
	uint64_t asked_of, answers;   /* frames that the product may answer with; those it sent */
	uint64_t acks_due, acks;      /* the same for ACKs and NAKs */
	uint32_t most;	     /* largest count of one PSN's packets since the wire was cut */
	uint16_t sent[1024]; /* the count for each PSN, by its low bits */
	char name[2][32];
};

struct run {
	struct dut *dut;
	struct joint joint[DUT_CONNS];
	unsigned int joints;
	struct line line[2]; /* by direction */
	enum run_scenario sc;
	uint64_t seed, now;
	uint64_t asked, repeated, asks;
	uint64_t fired[FLOW_ERRORS];
	bool calm; /* the wire loses nothing */
	bool failed;
	char why[RUN_WHY];
	FILE *trace;
};

/* A scenario's parameters, from the seed. */
struct plan {
	struct rnd rng;
	uint32_t mtu, max_len, ops;
	bool v6, perfect;
	bool reads; /* the product reads large messages from a slow peer */
	struct line_faults faults;
	struct pw_addr dut, peer;
	enum flow_error error; /* the flow of the error */
	int error_way;
};

/* The first check that fails ends the run. ctx: struct run; of run_peer_wrong(): struct joint */
void run_wrong(void *ctx, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void run_peer_wrong(void *ctx, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A peer sends a frame. ctx: its struct joint */
void run_peer_emits(void *ctx, const uint8_t *frame, size_t len);

/* Draw the parameters of a run, and open all that takes part by them (run_open.c). */
void run_draw_plan(struct run *r, struct plan *p);
void run_open_lines(struct run *r, struct plan *p);
void run_open_dut(struct run *r, struct plan *p);
void run_open_joint(struct joint *j, struct plan *p);

#endif
