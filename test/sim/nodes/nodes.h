/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Simulated nodes, for urnic-msg-sim and urnic-am-sim: the product's transport, flows, register
 * sets and endpoints of remote memory, joined by the product's switches, in one thread under a
 * virtual clock. All choices come from a seed.
 *
 *   programs ─► sources of work ─► flows ─► NIC ─► wire ─► switches ─► wire ─► flows ─► programs
 *
 *   world.c    a run: plan, clock, chaos, end
 *   net.c      wires, switches, flow control between a NIC and its switch
 *   node.c     a node: its turns, its restart
 *   pauser.c   a node whose port sends hostile frames of flow control
 *   program.c  command line, seeds, figures
 *
 * A load (struct ms_load) is what runs on the nodes: programs with their sources of work, an
 * oracle, and scenarios. Each source has a place on its node, which is its doorbell.
 */
#ifndef URN_SIM_NODES_H
#define URN_SIM_NODES_H

#include "../rng.h"

#include "am/am.h"

#include "msg/msg.h"
#include "switch/switch.h"
#include "transport/flow_priv.h"
#include "transport/tp.h"

#include <setjmp.h>
#include <stdio.h>

enum {
	MS_NODES = 65,
	MS_SETS = 320, /* sources of work of a node at a time: places */
	MS_NIC = 64,   /* frames that wait in a node's NIC to be sent */
	MS_RX = 1024,  /* ... and those that came */
	MS_HELD = 512, /* frames to a node that the network holds */
	MS_SWITCHES = 5,
	MS_CROWD = 24, /* long messages that a node puts together at a time, from which on it may
			  answer BUSY */
	MS_MBUFS = 32767,
	MS_PORT_MORE = 256, /* bytes that ports carry beyond the path MTU, fewer than these */
	MS_FLOW_HEADERS =
		74,	/* bytes of a frame that are not payload: up to the flow header, ICRC */
	MS_ROOM = 2560, /* bytes of a packet of the pool: path MTU 2048, these, and room */
	MS_WHY = 400,
	MS_MORE = 32, /* figures of a load */
};

#define MS_US 1000ull
#define MS_MS 1000000ull
#define MS_S 1000000000ull
#define MS_NEVER UINT64_MAX
#define MS_WATCHDOG (5 * MS_MS) /* ns; switches of a ring, or with a pauser */

/* Aims of a hostile pauser. */
enum ms_pauser {
	MS_PAUSER_NONE,
	MS_PAUSER_EVER,	  /* pauses for ever */
	MS_PAUSER_BELOW,  /* lets a frame go whenever the watchdog is about to look */
	MS_PAUSER_ALL,	  /* pauses all priorities for ever */
	MS_PAUSER_BROKEN, /* malformed frames */
	MS_PAUSER_STORM,  /* pauses and ends of pauses, thousands a second */
	MS_PAUSERS,
};

/* Part of a plan about remote memory and active messages (urnic-am-sim). */
struct ms_am_plan {
	unsigned int ends;	/* endpoints of a node */
	unsigned int talkers;	/* programs of a node that send active messages */
	uint32_t entries;	/* slots of a ring, at most */
	uint32_t zone;		/* bytes of a region's memory, at most */
	uint32_t unread_in;	/* programs that leave their ring of events alone for long */
	uint32_t revoke_gap;	/* ns between two regions or memories that a program takes back; 0:
				   none */
	uint32_t no_handler_in; /* requests for handlers that are not registered */
	uint32_t answer_ms;	/* ms that a request waits for its answer */
	uint32_t atomic_in;	/* operations that are atomic */
	uint32_t fence_in;	/* operations with a fence */
	uint32_t tagged_from;	/* bytes from which AUTO is tagged */
	bool reads;		/* reads alone, many at a time */
};

/* The run that a seed makes of a scenario. Probabilities are "one in N"; 0: never. */
struct ms_plan {
	unsigned int nodes, sets, switches; /* sets: of a node */
	bool ring;			    /* switches in a ring, else a tree */
	bool lossless, credits; /* the switches lose nothing; NICs are asked to wait by credits,
				   else by PFC */
	bool one_target;	/* all send to the first box of node 0 */
	bool dcqcn;		/* nodes obey marks of congestion */
	uint32_t others_in; /* messages to any box; the others go to the first box of node 0; 0: no
			       box is preferred */
	uint32_t messages;  /* to be sent, all together */
	uint32_t mtu;	    /* bytes */
	uint32_t flow_mtu[2]; /* bytes behind the flow header that ports of nodes with even and with
				 odd numbers carry; 0: mtu */
	uint32_t carries;     /* bytes of the longest frame that wires carry; 0: any */
	uint64_t rate;	    /* bits a second of each wire */
	double drop, dup, reorder; /* rates of each direction of a node's wire */
	uint64_t delay, jitter;	   /* ns of a node's wire */
	uint32_t queue;		   /* frames that wait at a port of a lossy switch */
	uint32_t flows;		   /* flows that a client of a node may make; 0: as many as usual */
	uint32_t len_max;	   /* bytes of a usual message */
	uint32_t long_in;	   /* messages that are longer, up to long_max */
	uint32_t long_max;
	uint32_t entries;  /* entries of a ring, at most */
	bool tight;	   /* accounts of lossless switches are small: senders stop soon */
	uint8_t pauser;	   /* enum ms_pauser: the last node's port is one */
	uint64_t bound_others; /* with a pauser: like bound, for messages that do not concern it */
	uint64_t think;	   /* ns between two messages of a box, at most */
	uint64_t read_gap; /* ns between two looks of a reader, at most */
	uint32_t slow_in;  /* readers that look much less often */
	uint32_t sleep_in; /* readers that sleep until ARM INTR wakes them */
	uint32_t retry_in; /* messages with a retry policy */
	uint32_t bad_in;   /* messages that can't arrive: no such node, no such queue, too long, bad
			      doorbell */
	uint32_t permit_in;   /* queues that take messages of some nodes only */
	uint32_t scribble_in; /* boxes that scribble over their registers */
	uint32_t young_in;    /* nodes that are young when the run begins */
	uint32_t hold_in; /* restarts right behind a packet, over which the network holds the frames
			     to the node */
	uint64_t close_gap, restart_gap,
		cut_gap; /* ns between two of these faults on average; 0: none */
	double most_p99; /* 99th percentile of the times of all answers, in times that the wire
			    needs for one message of each node; 0: not judged */
	uint64_t span;	 /* ns after which no message is sent any more */
	uint64_t bound;	 /* ns from a doorbell to its answer, without the tries of a retry policy */
	struct ms_am_plan am;
};

struct ms_world;
struct ms_node;
struct ms_stats;

struct ms_scenario {
	const char *name, *text;
	void (*make)(struct ms_plan *p, struct sim_rng *r);
};

/* The load of the nodes. */
struct ms_load {
	const char *program; /* its name */
	const char *help;    /* first lines of --help */
	const struct ms_scenario *scenarios;
	unsigned int scenario_count;
	bool am;		 /* nodes have endpoints of remote memory */
	const char *const *more; /* names of struct ms_stats.more, the last is NULL */
	/* Make tables for a run, after the plan. */
	void (*open)(struct ms_world *w);
	void (*close)(struct ms_world *w);
	/* Programs of a node begin, and end: the node comes up, or dies. */
	void (*up)(struct ms_node *n);
	void (*down)(struct ms_node *n);
	/* The source at a place; NULL: there is none now. */
	struct urn_source *(*source)(struct ms_node *n, unsigned int place);
	/* Let programs do what is due, and say when they are due again. */
	void (*step)(struct ms_node *n);
	/* An event of ARM INTR came. */
	void (*woken)(struct ms_node *n, uint64_t cookie);
	/* Close something, and open it again perhaps (plan.close_gap). */
	void (*close_one)(struct ms_world *w);
	/* Fail when something has had no answer for too long. */
	void (*look)(struct ms_world *w);
	/* All was sent and answered: look at the programs, which end then. */
	void (*settle)(struct ms_world *w);
	void (*finish)(struct ms_world *w);
	/* Flows have aged out: look at what a node has left. */
	void (*left)(struct ms_node *n);
	/* Things to break on purpose, by number from 1 on; NULL: there are none. returns: NULL: no
	 * more of them. text: set */
	const char *(*sabotage)(unsigned int i, const char **text);
};

struct ms_node {
	struct ms_world *w;
	uint32_t id;
	struct urn_tp *tp; /* NULL: down */
	struct urn_msg_regs *regs;
	struct urn_am *am; /* NULL: no endpoints of remote memory */
	struct urn_mem *mem;
	struct urn_memx *memx;
	struct urn_tp_share share[4]; /* clients */
	uint8_t mac[6], gid[16];
	uint32_t box[MS_SETS]; /* the load's: boxes by place; UINT32_MAX: none */
	uint8_t rung[MS_SETS]; /* doorbells, by place */
	unsigned int hand;     /* place whose doorbell is looked at next, modulo plan.sets */
	uint64_t wake;	       /* ns: next turn */
	uint64_t up_at;	       /* ns: a node that is down starts then */
	uint64_t neigh_at;     /* ns: addresses of others are known from then on */
	uint64_t gone_at;      /* ns: when it went down or came up last; 0: never went down */
	/* The NIC. */
	struct rte_mbuf *nic[MS_NIC];
	unsigned int nic_n;
	struct rte_mbuf *rx[MS_RX];
	unsigned int rx_n;
	uint64_t nic_free; /* ns: the wire takes the next frame */
	uint64_t paused;   /* ns: end of the pause that the switch asked for */
	struct urn_switch *sw;
	uint16_t port;
	uint64_t cut_until; /* ns: the wire carries nothing until then */
	/* Frames to the node that wait in the network, as in a switch whose port is paused. */
	struct rte_mbuf *held[MS_HELD];
	unsigned int held_n, held_room;
	bool held_lossy; /* frames beyond held_room are lost; else they come before the others */
	uint64_t held_until; /* ns: frames come again from then on */
	bool dying;	     /* dies when the next packets came, before they are answered */
	uint64_t crowded_at; /* ns: many long messages were being put together; 0: never */
};

struct ms_stats {
	uint64_t messages, done, errors, may_be, bytes, frames, lost, marked, pauses, watchdogs;
	uint64_t code[URN_MSG_CODES]; /* answers */
	uint64_t rests;		      /* flows that went to rest */
	uint64_t closes, restarts, held,
		ns;		/* held: frames that came to a later life of their node */
	uint64_t pfc;		/* frames of a hostile pauser */
	uint64_t pauser_lost;	/* frames of `lost` that were lost at its port */
	uint64_t p99_ppm;	/* largest ratio of plan.most_p99 that was found, in millionths */
	uint64_t more[MS_MORE]; /* figures of the load */
	uint64_t hash;		/* hash of all frames and answers, in order */
};

struct ms_world {
	const struct ms_load *load;
	unsigned int sabotage; /* number of the bug that the load imitates; 0: none */
	struct ms_plan plan;
	const struct ms_scenario *sc;
	uint64_t seed, now, start;
	struct sim_rng rng; /* choices of programs */
	struct ms_node node[MS_NODES];
	struct urn_switch *sw[MS_SWITCHES];
	uint16_t next[MS_SWITCHES], before[MS_SWITCHES]; /* ports of a ring of switches */
	/* Messages and boxes of urnic-msg-sim; tables of urnic-am-sim. */
	struct ms_mail *mail; /* plan.messages */
	struct ms_box *box;
	uint32_t boxes, box_room;
	struct as_sim *as;
	uint32_t mails;	  /* messages or operations that were begun */
	uint32_t pending; /* ... and have no answer */
	uint64_t close_at, restart_at, cut_at;
	uint64_t last_answer; /* ns */
	uint64_t pauser_at;   /* ns: the pauser's next frame */
	bool pauser_off;      /* the pauser lets frames go now */
	uint64_t into,
		out_of;	 /* frames that nodes gave to switches, and that switches gave to nodes */
	uint32_t broken; /* the load's number of the thing that it broke; 0: nothing yet */
	bool lose;	 /* the next frame out of a switch is lost, uncounted; net.c ends it */
	bool quiet;	      /* no new messages, no chaos: the run ends */
	bool idle;	      /* readers look no more, either */
	struct ms_stats stats;
	FILE *trace; /* NULL: none */
	jmp_buf failed;
	char why[MS_WHY];
	struct rte_mempool *pool;
	uint32_t starts; /* starts of nodes, so far */
	uint32_t mbufs;	 /* free packets of the pool when the run began */
};

/* ---- world.c */

/* Start the EAL and make a world for many runs. NULL: said on standard error */
struct ms_world *ms_world_new(const struct ms_load *load);
void ms_world_free(struct ms_world *w);
/* Run a seed. returns: true when all was well; else why says what was wrong */
bool ms_run(struct ms_world *w, const struct ms_scenario *sc, uint64_t seed, FILE *trace);
/* Something is wrong: the run ends. */
_Noreturn void ms_fail(struct ms_world *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void ms_trace(struct ms_world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Note an event of the run in its hash. */
static inline void
ms_note(struct ms_world *w, uint64_t v)
{
	w->stats.hash = (w->stats.hash ^ v) * 0x100000001b3u;
	w->stats.hash ^= w->stats.hash >> 29;
}
/* True in one of n cases; n 0: never. */
static inline bool
ms_one_in(struct ms_world *w, uint32_t n)
{
	return n && sim_one_in(&w->rng, n);
}
/* A number up to n, which may exceed 32 bits a little. */
static inline uint64_t
ms_upto(struct ms_world *w, uint64_t n)
{
	return n ? sim_rng_next(&w->rng) % n : 0;
}

struct ms_node *ms_any_node(struct ms_world *w);
/* Bytes behind the flow header that a node's port carries. */
static inline uint32_t
ms_flow_mtu(const struct ms_world *w, uint32_t node)
{
	uint32_t mtu = w->plan.flow_mtu[node % 2];

	return mtu ? mtu : w->plan.mtu;
}

/* ---- program.c */

/* The main function of a program with a load. */
int ms_main(const struct ms_load *load, int argc, char **argv);

/* ---- net.c */

void ms_net_open(struct ms_world *w);
void ms_net_close(struct ms_world *w);
/* Move frames: out of NICs, through switches, to nodes. */
void ms_net_step(struct ms_world *w);
/* The frames that the network holds for a node are lost. */
void ms_net_drop_held(struct ms_node *n);
/* Time of the next thing that happens in the net, ns. */
uint64_t ms_net_next(const struct ms_world *w);
/* Count what was lost in the switches, into the statistics. */
void ms_net_count(struct ms_world *w);

/* ---- pauser.c */

/* The node that pauses. NULL: none does */
struct ms_node *ms_pauser(struct ms_world *w);
void ms_pauser_step(struct ms_world *w);
/* Time of the pauser's next frame, ns. */
uint64_t ms_pauser_next(const struct ms_world *w);

/* ---- node.c */

void ms_node_start(struct ms_node *n);
/* The node dies, with all its boxes. */
void ms_node_stop(struct ms_node *n);
/* The node dies for a while; the network holds frames to it meanwhile, or not. */
void ms_node_kill(struct ms_node *n, bool hold);
void ms_node_turn(struct ms_node *n);
/* A frame came; the node owns it from here. */
void ms_node_rx(struct ms_node *n, struct rte_mbuf *m);
static inline void
ms_node_wake(struct ms_node *n, uint64_t at)
{
	if (at < n->wake)
		n->wake = at;
}

#endif
