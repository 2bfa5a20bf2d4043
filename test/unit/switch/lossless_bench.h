/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lossless switch with a station at each port, for its tests, under a clock of steps. A step is
 * as long as one frame takes on a wire. A station sends at most one frame a step, keeps to the flow
 * control frames that it gets, and counts the frames that come.
 */
#ifndef URN_TEST_SWITCH_LOSSLESS_BENCH_H
#define URN_TEST_SWITCH_LOSSLESS_BENCH_H

#include "frames.h"

#include "switch/pfc.h"
#include "switch/switch.h"

enum {
	BENCH_PORTS = 20,
	BENCH_LEN = 1000,   /* bytes of a frame */
	BENCH_STEP = 1024,  /* ns: time of a frame on the wire at BENCH_BPS */
	BENCH_PRIORITY = 3, /* the lossless one */
	BENCH_DSCP = 26,    /* a DSCP of that priority */
};
#define BENCH_BPS 8000000000ull

/* A station. */
struct bench_station {
	struct urn_pfc last;	    /* the flow control frame that came last */
	uint64_t until[8];	    /* ns: end of the pause of a priority */
	uint32_t frames_pfc;	    /* flow control frames that came */
	uint32_t sent, came;	    /* frames, without flow control */
	uint32_t from[BENCH_PORTS]; /* those that came, by sender */
	uint32_t next[BENCH_PORTS]; /* number of the last frame of a sender: the order is kept */
	uint32_t out[BENCH_PORTS];  /* frames sent to a station */
	bool deaf;		    /* ignores flow control */
};

struct bench {
	struct urn_switch *sw;
	uint64_t now; /* ns */
	unsigned int ports;
	uint64_t most; /* bytes: most that waited at a time */
	struct bench_station st[BENCH_PORTS];
};

/* A configuration with small numbers: 4 KiB of share, 16 KiB to xoff, 16 KiB of headroom. */
struct urn_lossless_config bench_config(void);
/* Make a switch in which station i, behind port i, has MAC address 02:00:00:00:01:i. */
void bench_open(struct bench *b, unsigned int ports, const struct urn_lossless_config *cfg);
void bench_close(struct bench *b);
/* Add a port, whose wire has a rate unless bps is 0. returns: its number */
uint16_t bench_add_port(struct urn_switch *sw, uint64_t bps, bool credits);
/* A frame of a DSCP with a number. */
struct rte_mbuf *bench_frame(unsigned int dst, unsigned int src, unsigned int dscp,
			     uint32_t number);
/* Fix the port of station i's address. */
void bench_fix(struct urn_switch *sw, unsigned int i, uint16_t port);
/* Let a station send a frame to another, unless its priority is paused. returns: true when it was
 * sent */
bool bench_send(struct bench *b, unsigned int src, unsigned int dst);
/* The same for a frame of priority 0, which has no number, as priorities overtake each other. */
void bench_send_lossy(struct bench *b, unsigned int src, unsigned int dst);
/* Let a frame come in at a port now, and free what the switch does not keep. */
void bench_input(struct bench *b, unsigned int port, struct rte_mbuf *m);
/* Send a flow control frame of the lossless priority into a port. */
void bench_pfc(struct bench *b, unsigned int port, uint16_t quanta);
/* Take what comes out at all ports, and go on by one step. */
void bench_step(struct bench *b);
/* Sum of a counter of the lossless priority over all ports. */
uint64_t bench_sum(const struct bench *b, enum urn_swq_counter c);
/* Frames dropped at all ports, for any reason. */
uint64_t bench_drops(const struct bench *b);
/* Bytes of frames that wait in the queues of all ports. */
uint64_t bench_waiting(const struct urn_switch *sw);
/* Take one frame that came out at a port into a station's account, and free it. */
void bench_take(struct bench *b, unsigned int port, struct rte_mbuf *m);

#endif
