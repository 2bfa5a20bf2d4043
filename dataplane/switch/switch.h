/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An Ethernet switch without device or clock: frames come in at a port and go
 * out at others, by learnt and static MAC addresses; broadcast, multicast and
 * unknown addresses go to all other ports. Each port has an impairment
 * (impair.h) for each direction.
 *
 *   input ─► [impairment in] ─► look-up, copies ─► [queues] ─► [impairment out] ─► output
 *                                                                   └► link ─► another switch's
 * input
 *
 * Frames pass the queues (queue.h) of a port only while its wire has a rate, its device takes no
 * more, a priority is paused, or a classifier gives them priorities.
 *
 * How to use a switch, with one `now` (ns) for all calls:
 *
 *     urn_switch_input() for each port that has frames
 *     urn_switch_run(), or urn_switch_run_all() with links: moves what is due
 *     urn_switch_output() for each port that is not a link
 *     ... again, at the latest at urn_switch_next()
 *
 * VLAN tags are carried, and looked at only for the priority of a frame. Linked switches form a
 * tree: urn_switch_link() refuses a loop. All switches of a tree belong to one thread.
 */
#ifndef URN_SWITCH_SWITCH_H
#define URN_SWITCH_SWITCH_H

#include "counter_scope.h"
#include "switch/fdb.h"
#include "switch/impair.h"
#include "switch/mark.h"
#include "switch/lossless.h"
#include "switch/queue.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_mbuf.h>

#define URN_SWITCH_MAX_PORTS 256u
#define URN_SWITCH_BURST 32u

/* X(index, "name", "description") */
#define URN_SWITCH_COUNTERS(X)                                                                     \
	X(RX_PACKETS, "rx_packets", "frames that came in at the port")                             \
	X(RX_BYTES, "rx_bytes", "bytes of these")                                                  \
	X(TX_PACKETS, "tx_packets", "frames that went out at the port")                            \
	X(TX_BYTES, "tx_bytes", "bytes of these")                                                  \
	X(RX_BROADCAST, "rx_broadcast", "broadcast frames that came in")                           \
	X(RX_MULTICAST, "rx_multicast", "multicast frames that came in")                           \
	X(RX_UNKNOWN, "rx_unknown", "frames to an address that was not known")                     \
	X(COPIES, "copies", "copies made of frames that came in, to flood them")                   \
	X(LEARNED, "learned", "addresses learnt")                                                  \
	X(MOVED, "moved", "addresses learnt that were behind another port before")                 \
	X(LEARN_FULL, "learn_full", "frames whose source was not learnt: the table is full")       \
	X(LEARN_STATIC, "learn_static", "frames from an address fixed behind another port")        \
	X(DROP_RUNT, "drop_runt", "frames shorter than an Ethernet header")                        \
	X(DROP_SOURCE, "drop_source", "frames whose source is a group address")                    \
	X(DROP_RESERVED, "drop_reserved", "frames to 01-80-C2-00-00-0x, which end at a bridge")    \
	X(DROP_SAME_PORT, "drop_same_port", "frames to an address behind the port they came from") \
	X(DROP_NO_PORT, "drop_no_port", "frames to be flooded with no other port up")              \
	X(DROP_PORT_DOWN, "drop_port_down",                                                        \
	  "frames that came in at, or were to go out at, a port that is down")                     \
	X(DROP_TOO_LONG, "drop_too_long",                                                          \
	  "frames longer than the port they were to go out at takes")                              \
	X(DROP_PFC, "drop_pfc",                                                                    \
	  "frames of MAC control dropped: malformed, or not of priority-based flow control")       \
	X(DROP_COPY, "drop_copy", "copies for a port not made: no packet")                         \
	X(RX_ROUTED, "rx_routed", "of rx_unknown, frames that a route by IP address sent on")      \
	X(PFC_NO_MBUF, "pfc_no_mbuf", "frames of flow control not sent at once: no packet")

enum urn_switch_counter {
#define X(id, name, text) URN_SWITCH_##id,
	URN_SWITCH_COUNTERS(X)
#undef X
		URN_SWITCH_COUNTER_COUNT,
};

struct urn_switch_counters {
	uint64_t v[URN_SWITCH_COUNTER_COUNT];
};

/* The scope "switch": these counters. */
extern const struct urn_counter_scope urn_switch_scope;
/* Name of a counter; NULL past the end. */
const char *urn_switch_counter_name(unsigned int id);

struct urn_switch;

struct urn_switch_config {
	char name[32];
	struct rte_mempool *copies; /* for floods, duplicates, private copies; the caller's */
	struct urn_fdb_config fdb;  /* max 0: 4096 entries; age_ns 0: aged after 300 s */
	bool no_learning;	    /* static entries only */
	/* Congestion marks of frames that wait to go out, by the bytes of their port and priority.
	 */
	struct urn_mark_config mark;
	uint32_t routes;	    /* most routes by IP address; 0: none */
	struct urn_lossless_config
		lossless; /* priorities 0: the switch is lossy, without priorities */
};

/* returns: NULL when the tables cannot be made, or the numbers of marks (urn_mark_check()) or of
 * the lossless part contradict each other */
struct urn_switch *urn_switch_create(const struct urn_switch_config *cfg);
/* Frees the frames inside and undoes its links. NULL is allowed. */
void urn_switch_destroy(struct urn_switch *sw);
const char *urn_switch_name(const struct urn_switch *sw);

/* Direction, from the switch's view. */
enum urn_switch_dir {
	URN_SWITCH_IN,	/* from the port into the switch */
	URN_SWITCH_OUT, /* from the switch to the port */
};

/* Use of frames of priority-based flow control (IEEE 802.1Qbb) at a port of a lossless switch. */
enum urn_switch_pfc {
	URN_SWITCH_PFC_DEFAULT, /* the switch's (struct urn_lossless_config.no_pfc) */
	URN_SWITCH_PFC_YES,	/* sent, and obeyed */
	URN_SWITCH_PFC_OBEY,	/* obeyed only: the default of a switch with no_pfc */
	URN_SWITCH_PFC_NO, /* the port carries none: those that come are counted and ignored, and a
			      sender that can't be stopped loses the frames there is no room for */
};

struct urn_switch_port_config {
	char name[32];
	struct urn_impair_config impair[2]; /* by enum urn_switch_dir */
	uint32_t max_frame;		    /* bytes, without FCS, that may go out; 0: any */
	/*
	 * Priority of a frame that goes out, below URN_SWQ_PRIORITIES. NULL: all frames have
	 * priority 0, and one bound, the impairment's, holds for the queue and the wire together.
	 */
	unsigned int (*classify)(const struct rte_mbuf *m);
	/*
	 * Frames that wait to go out: bounds by priority. With a classifier, a priority whose bound
	 * in frames is 0 has that of impair[URN_SWITCH_OUT], also when the impairment is changed.
	 */
	struct urn_swq_bound bound[URN_SWQ_PRIORITIES];
	/* The fields from here on are for a lossless switch. */
	uint64_t speed; /* bits a second, for quanta; 0: the rate of impair[URN_SWITCH_OUT], or 10
			   Gb/s */
	uint8_t mac[6]; /* source of frames of flow control; all 0: one of our own making */
	bool credits;	/* frames can stay with their sender: urn_switch_takes() is asked before */
	enum urn_switch_pfc pfc;
};

/*
 * Add a port, up. returns: its number, from 0 on, or -EINVAL (impairment), -ENOSPC
 * (URN_SWITCH_MAX_PORTS), -ENOMEM
 */
int urn_switch_add_port(struct urn_switch *sw, const struct urn_switch_port_config *cfg);
unsigned int urn_switch_ports(const struct urn_switch *sw);
const char *urn_switch_port_name(const struct urn_switch *sw, uint16_t port);
/*
 * Set a port up or down. Down: nothing passes, and addresses learnt behind the port are
 * forgotten. Frames in its queues and impairments stay there.
 */
void urn_switch_port_set_up(struct urn_switch *sw, uint16_t port, bool up);
bool urn_switch_port_is_up(const struct urn_switch *sw, uint16_t port);
/* The port's impairment of a direction: to change it (urn_impair_set), and for its counters. */
struct urn_impair *urn_switch_impair(struct urn_switch *sw, uint16_t port, enum urn_switch_dir dir);
/*
 * Hold the frames of a port back because its device takes no more, or let them go on. Held frames
 * wait in the port's queues; those on the wire already (in the impairment) stay there.
 */
void urn_switch_hold(struct urn_switch *sw, uint16_t port, bool hold);
/*
 * Pause a priority (below URN_SWQ_PRIORITIES) of a port from `now` (ns) on, or let it go on. A
 * lossless switch does so itself, by frames of flow control and credits; its watchdog ends this
 * pause, too.
 */
void urn_switch_pause(struct urn_switch *sw, uint16_t port, unsigned int priority, bool pause,
		      uint64_t now);
/* The port's queues, for tests to read their state and counters; NULL: no such port. */
const struct urn_swq *urn_switch_queues(const struct urn_switch *sw, uint16_t port);
/* The port's congestion marks, for their configuration and counters; NULL: no such port. */
const struct urn_mark *urn_switch_marks(const struct urn_switch *sw, uint16_t port);
/*
 * True when the switch has room for a burst of frames from a port. A caller that can leave frames
 * with their sender (a ring inside the process) asks before it takes them, so that none is lost.
 */
bool urn_switch_takes(const struct urn_switch *sw, uint16_t port);
/*
 * Priorities (bit p) of which the switch has no room for a burst of frames from a port: frames of
 * others need not wait behind theirs. 0: all have room, or the switch is not lossless
 */
uint8_t urn_switch_full(const struct urn_switch *sw, uint16_t port);
/* The priority of a frame at a lossless switch. */
unsigned int urn_switch_priority(const struct urn_switch *sw, const struct rte_mbuf *m);
/* Use of flow control at a port. returns: DEFAULT: the switch is lossy, or the port is a link or
 * none */
enum urn_switch_pfc urn_switch_port_pfc(const struct urn_switch *sw, uint16_t port);
/* State of a port and priority of a lossless switch, for reports. */
struct urn_switch_account {
	uint64_t bytes,
		peak; /* bytes of frames that came in here and wait at outputs; most so far */
	bool stopped; /* the sender is to stop */
	bool paused; /* the peer, or a full account at the other end of a link, stops this output */
	bool restoring; /* the watchdog dropped frames; pauses are ignored */
};
/* returns: false, and all zero: the switch is lossy, or there is no such port or priority */
bool urn_switch_account(const struct urn_switch *sw, uint16_t port, unsigned int priority,
			struct urn_switch_account *out);
/* Put an IP address (16 bytes; IPv4 as ::ffff:a.b.c.d) behind a port. returns: 0, -EINVAL (no such
 * port), -ENOSPC */
int urn_switch_route(struct urn_switch *sw, const uint8_t gid[16], uint16_t port);
const struct urn_switch_counters *urn_switch_counters(const struct urn_switch *sw, uint16_t port);
/* The table of addresses: to set static ones, and to list it. */
struct urn_fdb *urn_switch_fdb(struct urn_switch *sw);

/*
 * Join a port of one switch with a port of another by a wire. The two ports'
 * impairments stay in force. returns: 0, -EINVAL (no such port), -EBUSY (linked
 * already), -ELOOP (the switches are joined already, directly or by way of others)
 */
int urn_switch_link(struct urn_switch *a, uint16_t pa, struct urn_switch *b, uint16_t pb);
bool urn_switch_port_is_linked(const struct urn_switch *sw, uint16_t port);

/* Take n frames that came in at a port, which belong to the switch from here on. */
void urn_switch_input(struct urn_switch *sw, uint16_t port, struct rte_mbuf **m, unsigned int n,
		      uint64_t now);
/*
 * Move on the frames that are due in the impairments of ports' IN direction,
 * and hand frames that are due at linked ports to the other switch; tend the table.
 * returns: how many frames moved
 */
unsigned int urn_switch_run(struct urn_switch *sw, uint64_t now);
/* Run n switches until no frame moves any more at this time. returns: how many frames moved */
unsigned int urn_switch_run_all(struct urn_switch *const *sw, unsigned int n, uint64_t now);
/* Take frames that are due to go out at a port, at most max. returns: how many */
unsigned int urn_switch_output(struct urn_switch *sw, uint16_t port, struct rte_mbuf **m,
			       unsigned int max, uint64_t now);
/* Time at which a frame may be due next, ns; in the past: now. UINT64_MAX: nothing is inside. */
uint64_t urn_switch_next(const struct urn_switch *sw);
/* Frames inside. */
unsigned int urn_switch_queued(const struct urn_switch *sw);

#endif
