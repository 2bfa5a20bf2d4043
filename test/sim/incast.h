/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many senders into one port: each sender is a node with one RC queue pair to the one receiver, and
 * posts RDMA WRITEs without end; or it has a flow to the receiver's node, and sends messages. All
 * ports of the switch have one rate, so the receiver's port is the bottleneck.
 *
 *   sender 0 ── port ┐
 *   sender 1 ── port ┼── the product's switch ── port ── receiver
 *   ...              ┘        queue, marks
 *
 * Nodes are the product's transport with its memory, under a virtual clock; each polls once in
 * turn_ns. All random choices come from the seed.
 */
#ifndef URN_SIM_INCAST_H
#define URN_SIM_INCAST_H

#include "switch/mark.h"
#include "transport/dcqcn.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { INCAST_SENDERS = 64 };

struct incast_config {
	uint32_t senders;	       /* from 1 to INCAST_SENDERS */
	uint64_t rate_bps;	       /* bits a second of each port, frame gaps included */
	uint64_t delay_ns;	       /* ns of each wire, one way */
	uint32_t mtu;		       /* path MTU, bytes */
	uint32_t window;	       /* packets in flight of a queue pair or a flow, at most */
	uint32_t queue;		       /* frames that may wait for a port */
	uint32_t message;	       /* bytes of a WRITE, or of a message */
	bool over_msg;		       /* senders send messages, over flows */
	bool young;		       /* ... between nodes that were just made */
	struct urn_mark_config mark;   /* all zero: the switch marks nothing */
	bool dcqcn;		       /* senders obey notifications, with... */
	struct urn_dcqcn_config param; /* ...these parameters; 0: the published ones */
	uint64_t delay_limit;	       /* ns; see struct urn_tp_config */
	uint64_t turn_ns;	       /* from turn to turn of a node */
	uint64_t warm_ns;	       /* before the measurement */
	uint64_t run_ns;	       /* ns that are measured */
	uint64_t start_ns;	       /* senders begin at random within this time */
	uint64_t seed;
	uint64_t sample_ns; /* from line to line of the plot; valid with plot */
	FILE *plot; /* NULL: none. Lines: time in us, queue in bytes, Mbit/s of each sender */
};

struct incast_result {
	double jain;	/* fairness of the senders' goodputs, 1/senders .. 1 */
	double goodput; /* payload that was written, all senders, as a share of the port's rate */
	double least, most; /* share of the slowest and the fastest sender of a fair share */
	uint64_t drops;	    /* frames that the bottleneck dropped: from the start */
	uint64_t marks;	    /* ... and marked */
	uint64_t frames;    /* ... and sent */
	uint64_t cnps;	    /* notifications that senders got */
	uint64_t repeats;   /* packets that senders sent again */
	uint64_t queue_mean, queue_p99, queue_max; /* bytes that waited, in the time measured */
	char why[200];				   /* failure; "": none */
};

/* 16 senders at 10 Gbit/s, published parameters and thresholds, a queue of 512 frames. */
void incast_defaults(struct incast_config *c);
/* Run once. The EAL is up (test_eal_pool()). returns: false: r->why says what failed */
bool incast_run(const struct incast_config *c, struct incast_result *r);

#endif
