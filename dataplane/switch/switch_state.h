/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a switch and its ports: for the files switch*.c only. */
#ifndef URN_SWITCH_SWITCH_STATE_H
#define URN_SWITCH_SWITCH_STATE_H

#include "switch/lossless_state.h"
#include "switch/route.h"
#include "switch/switch.h"

struct urn_switch_port {
	struct urn_impair *impair[2]; /* by enum urn_switch_dir */
	struct urn_switch *other;     /* the switch at the other end of a link; NULL: no link */
	uint16_t other_port;	      /* index of that switch's port; valid while there is a link */
	bool up;
	bool waits; /* frames that go out pass the queues: held, paused, classified, or others wait
		     */
	bool held;  /* the device takes no frames */
	uint64_t resumed; /* ns: when a pause last ended; frames that waited go no earlier */
	uint64_t sent;    /* ns: time of the frame that the queues gave the wire last */
	bool sorts;	  /* frames have priorities of their own: there is a classifier, or ll */
	unsigned int (*classify)(const struct rte_mbuf *m); /* the configuration's; NULL: all 0 */
	struct urn_lossless_port *ll; /* the port's part in a lossless switch; owner; NULL: lossy */
	uint32_t max_frame;
	struct urn_switch_counters c;
	char name[32];
	struct urn_mark mark; /* congestion marks of frames that wait */
	struct urn_swq queue; /* frames that wait to go out */
};

/* Frames that go out at the same port one after the other. */
struct urn_switch_batch {
	struct rte_mbuf *m[URN_SWITCH_BURST];
	unsigned int n;
	uint16_t port;
};

struct urn_switch {
	uint16_t ports;
	bool learning;
	struct urn_switch_port *port[URN_SWITCH_MAX_PORTS];
	struct urn_fdb *fdb;
	struct rte_mempool *copies;
	struct urn_mark_config mark;   /* for all ports; each has a seed of its own */
	struct urn_lossless *ll;       /* owner; NULL: no priority is lossless */
	struct urn_route *routes;      /* by IP address; owner; NULL: none */
	struct urn_switch_batch batch; /* the present call's */
	uint64_t tend_at;	       /* ns: when the table is tended next */
	struct urn_switch *from,
		*todo; /* the present search for a loop: the switch before, the next to visit */
	char name[32];
};

/* Give the wire the waiting frames that may go at `now` (ns) or could have gone before. */
void urn_switch_port_drain(struct urn_switch_port *p, uint64_t now);
/* Send n frames at `now` (ns) by way of the queues; a frame passes at once when it need not wait.
 */
void urn_switch_port_send(struct urn_switch_port *p, struct rte_mbuf **m, unsigned int n,
			  uint64_t now);
/* Time at which a waiting frame of the port may go, ns; UINT64_MAX: none may. */
uint64_t urn_switch_port_next(const struct urn_switch_port *p);

#endif
