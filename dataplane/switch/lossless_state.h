/* SPDX-License-Identifier: BSD-3-Clause */
/* Accounts, pauses and the watchdog of a lossless switch: for the files of the switch only. */
#ifndef URN_SWITCH_LOSSLESS_STATE_H
#define URN_SWITCH_LOSSLESS_STATE_H

#include "switch/lossless.h"
#include "switch/queue.h"
#include "switch/storm.h"
#include "switch/switch.h"

struct urn_switch_port;

/* A port and one priority. */
struct urn_lossless_level {
	/* The port's part as an input. */
	uint64_t bytes;	 /* bytes of its frames that wait at outputs */
	uint64_t excess; /* the account: bytes above the outputs' shares */
	uint64_t peak;	 /* most of these so far */
	/* The port's part as an output. */
	uint64_t until;	   /* ns: end of the pause that a peer asked for; valid while `asked` */
	uint64_t progress; /* ns: end on the wire of the frame that went last, or when the first of
			      those that wait could go; valid while frames wait */
	struct urn_storm storm; /* pauses that end in time; its debt is valid while frames wait,
				   its restoring lasts while `restoring` */
};

/* A port of a lossless switch. */
struct urn_lossless_port {
	struct urn_lossless *ll; /* the switch's */
	struct urn_swq *queue;	 /* the port's */
	uint8_t stop;	     /* bit p: the account of the input is full: its sender is to stop */
	uint8_t full;	     /* bit p: even a credit is more than there is room for */
	uint8_t told;	     /* bit p: the peer was told to stop by the last frame sent */
	uint8_t asked;	     /* bit p: the peer asked for a pause that has not ended */
	uint8_t link_stop;   /* bit p: the other end of the link was full when looked at last */
	uint8_t restoring;   /* bit p: the watchdog dropped frames; pauses are ignored */
	uint16_t given;	     /* frames given to the wire since the last output */
	uint64_t quantum;    /* ns of a quantum of flow control, << 16 */
	uint64_t refresh_at; /* ns: when the peer is told again; valid while `told` */
	uint8_t mac[6];	     /* source of frames of flow control */
	bool credits;	     /* the input can leave frames with their sender, in this process */
	uint8_t pfc;	     /* enum urn_switch_pfc, never the default; the same for its life */
	uint32_t (*held)[URN_SWITCH_MAX_PORTS]; /* bytes that wait here, by priority and input */
	struct urn_lossless_level level[URN_SWQ_PRIORITIES];
};

/* A lossless switch. */
struct urn_lossless {
	struct urn_lossless_config cfg;
	struct urn_switch *sw; /* the owner */
	uint64_t most;	       /* bytes of an account above which a frame is dropped */
	uint64_t full_at;      /* bytes of an account from which no more credit is given */
	uint64_t due;	       /* ns: when urn_lossless_run() has something to do next */
	bool dirty;	       /* a sender is to be told something */
	uint16_t in;	       /* number of the port whose frames are being forwarded */
};

/* ---- lossless.c: making */

/* returns: NULL: no memory */
struct urn_lossless *urn_lossless_create(const struct urn_lossless_config *cfg,
					 struct urn_switch *sw);
/* Make the part of a port. q: its queues, which get their bounds. returns: NULL: no memory */
struct urn_lossless_port *urn_lossless_add_port(struct urn_lossless *ll,
						const struct urn_switch_port_config *cfg,
						uint16_t number, struct urn_swq *q);
/* NULL is allowed. */
void urn_lossless_remove_port(struct urn_lossless_port *p);

/* ---- account.c: accounts of inputs */

/*
 * True when there is room for a frame of len bytes in the queue of an output's priority. Counts a
 * frame that has none.
 */
bool urn_lossless_admits(struct urn_lossless_port *out, unsigned int priority, uint32_t len);
/*
 * Charge a frame, which an output has queued just now, to the input that it came from. start: ns,
 * when the wire has sent what it was given before, at least the present time
 */
void urn_lossless_charge(struct urn_lossless_port *out, unsigned int priority, struct rte_mbuf *m,
			 uint64_t start);
/* Take a frame, which leaves the queue of an output, off its input's account. */
void urn_lossless_release(struct urn_lossless_port *out, unsigned int priority,
			  const struct rte_mbuf *m);

/* ---- pause.c: pauses and the watchdog */

/* Take the frames of MAC control out of a burst that came in at a port. returns: frames that are
 * left in m */
unsigned int urn_lossless_control(struct urn_switch *sw, uint16_t port, struct rte_mbuf **m,
				  unsigned int n, uint64_t now);
/* Pause the priorities of a port that peers have stopped, and let the others go on. */
void urn_lossless_obey(struct urn_switch_port *p, uint64_t now);
/* Pause a lossless priority of an output until a time (ns), or, with 0, let it go on. */
void urn_lossless_pause(struct urn_switch_port *p, unsigned int priority, uint64_t until,
			uint64_t now);
/*
 * A frame of len bytes went from a queue to the wire, which has sent it at `end`, ns. took: ns of
 * the wire's time that the frame takes; 0: the wire has no rate, and the speed of the port counts
 */
void urn_lossless_went(struct urn_lossless_port *out, unsigned int priority, uint32_t len,
		       uint64_t took, uint64_t end);
/* Tell senders to stop or go on, end pauses that have lasted too long. */
void urn_lossless_run(struct urn_switch *sw, uint64_t now);
/* Time at which urn_lossless_run() or a port has something to do, ns; UINT64_MAX: never */
uint64_t urn_lossless_next(const struct urn_switch *sw);
/* Forget what the peer of a port that went down asked for, and was told. */
void urn_lossless_port_down(struct urn_switch_port *p);

#endif
