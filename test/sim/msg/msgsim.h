/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Simulated nodes that send messages (doorbell.md DB-1 to DB-9): the product's transport, flows and register
 * sets, joined by the product's switches, in one thread under a virtual clock. All choices come from a seed.
 *
 *   boxes ─► register sets ─► flows ─► NIC ─► wire ─► switches ─► wire ─► flows ─► rings ─► boxes
 *
 *   world.c   a run: plan, clock, chaos, end
 *   net.c     wires, switches, flow control between a NIC and its switch
 *   node.c    a node: its turns, its restart
 *   box.c     a box is one life of a register set with its program: it sends, reads, sleeps, closes
 *   judge.c   the oracle: each message has its answer, and the answer tells the truth
 *   plan.c    the scenarios
 */
#ifndef URN_MSGSIM_H
#define URN_MSGSIM_H

#include "../rng.h"

#include "msg/msg.h"
#include "switch/switch.h"
#include "transport/flow_priv.h"
#include "transport/tp.h"

#include <setjmp.h>
#include <stdio.h>

enum {
	MS_NODES = 65,
	MS_SETS = 256, /* register sets of a node at a time */
	MS_NIC = 64,   /* frames that wait in a node's NIC to be sent */
	MS_RX = 1024,  /* ... and those that came */
	MS_HELD = 512, /* frames to a node that the network holds */
	MS_SWITCHES = 5,
	MS_CROWD = 24, /* long messages that a node puts together at a time, from which on it may
			  answer BUSY */
	MS_MBUFS = 32767,
	MS_HEAD = 16,	/* bytes at the start of a message: number of the mail, twice */
	MS_GUARD = 256, /* bytes behind an arena that nobody writes */
	MS_WHY = 400,
};

#define MS_US 1000ull
#define MS_MS 1000000ull
#define MS_S 1000000000ull
#define MS_NEVER UINT64_MAX

/* The run that a seed makes of a scenario. Probabilities are "one in N"; 0: never. */
struct ms_plan {
	unsigned int nodes, sets, switches; /* sets: of a node */
	bool ring;                /* switches in a ring, else a tree */
	bool lossless, credits;   /* the switches lose nothing; NICs are asked to wait by credits, else by PFC */
	bool one_target;          /* all send to the first box of node 0 */
	bool dcqcn;               /* nodes obey marks of congestion */
	uint32_t others_in;       /* messages to any box; the others go to the first box of node 0; 0: no box is preferred */
	uint32_t messages;        /* to be sent, all together */
	uint32_t mtu;             /* bytes */
	uint64_t rate;            /* bits a second of each wire */
	double drop, dup, reorder; /* rates of each direction of a node's wire */
	uint64_t delay, jitter;   /* ns of a node's wire */
	uint32_t queue;           /* frames that wait at a port of a lossy switch */
	uint32_t len_max;         /* bytes of a usual message */
	uint32_t long_in;         /* messages that are longer, up to long_max */
	uint32_t long_max;
	uint32_t entries;         /* entries of a ring, at most */
	uint64_t think;           /* ns between two messages of a box, at most */
	uint64_t read_gap;        /* ns between two looks of a reader, at most */
	uint32_t slow_in;         /* readers that look much less often */
	uint32_t sleep_in;        /* readers that sleep until ARM INTR wakes them */
	uint32_t retry_in;        /* messages with a retry policy */
	uint32_t bad_in;          /* messages that can't arrive: no such node, no such queue, too long, bad doorbell */
	uint32_t permit_in;       /* queues that take messages of some nodes only */
	uint32_t scribble_in;     /* boxes that scribble over their registers */
	uint32_t young_in;	  /* nodes that are young when the run begins */
	uint32_t hold_in; /* restarts right behind a packet, over which the network holds the frames
			     to the node */
	uint64_t close_gap, restart_gap, cut_gap; /* ns between two of these faults on average; 0: none */
	double most_p99;          /* 99th percentile of the times of all answers, in times that the wire needs for one message of each node; 0: not judged */
	uint64_t span;            /* ns after which no message is sent any more */
	uint64_t bound;           /* ns from a doorbell to its answer, without the tries of a retry policy */
};

struct ms_scenario {
	const char *name, *text;
	void (*make)(struct ms_plan *p, struct sim_rng *r);
};

extern const struct ms_scenario ms_scenarios[];
extern const unsigned int ms_scenario_count;

/* A message. */
struct ms_mail {
	uint32_t from;        /* box */
	uint32_t to;          /* box that was meant; UINT32_MAX: none */
	uint8_t node[16];     /* target node */
	uint64_t qid;         /* target queue */
	uint32_t len, seq;
	uint16_t retries;
	uint8_t kinds;        /* kinds of the retry policy */
	uint8_t code;         /* answer; 0: none yet */
	bool bad;             /* a doorbell that makes no sense */
	bool orphan;          /* its box ended before the answer */
	uint8_t came;         /* times that it was delivered */
	uint64_t rung, bound; /* ns: when; and until when it is to be answered */
	uint64_t answered;    /* ns; valid with code */
	uint64_t refused;     /* refusals of the target box when it was rung */
};

/* One life of a register set, with its program. */
struct ms_box {
	struct urn_msg_rset *set;      /* NULL: closed */
	struct urn_abi_msg_set *regs; /* owner; NULL after it was closed */
	struct urn_tp_share *share;   /* share of its client */
	uint32_t id, node;            /* index of the box; of its node */
	uint32_t arena, ring, buffer; /* bytes; offset of the ring; bytes of the send buffer before it */
	uint64_t qid;
	uint32_t name;                /* 0: none */
	uint32_t entries, entry_size;
	uint32_t head, seq;
	uint32_t mail;                /* on its way; UINT32_MAX: none */
	uint64_t answer;              /* value of sstat that was seen last */
	uint64_t refused;             /* refusals when it was closed */
	uint64_t opened, closed;      /* ns; MS_NEVER: not yet */
	uint64_t send_at, read_at;    /* ns: next actions */
	uint64_t gap;                 /* ns between looks, at most */
	uint8_t permit_bits;
	uint8_t permit;               /* last byte of the GID that is permitted, with permit_bits */
	bool own_only, sleeps, armed, scribbles, receives;
};

struct ms_node {
	struct ms_world *w;
	uint32_t id;
	struct urn_tp *tp;            /* NULL: down */
	struct urn_msg_regs *regs;
	struct urn_mem *mem;
	struct urn_memx *memx;
	struct urn_tp_share share[4]; /* clients */
	uint8_t mac[6], gid[16];
	uint32_t box[MS_SETS];        /* boxes by place; UINT32_MAX: none */
	uint8_t rung[MS_SETS];        /* doorbells, by place */
	unsigned int hand;            /* place whose doorbell is looked at next, modulo plan.sets */
	uint64_t wake;                /* ns: next turn */
	uint64_t up_at;               /* ns: a node that is down starts then */
	uint64_t neigh_at;            /* ns: addresses of others are known from then on */
	uint64_t gone_at;             /* ns: when it went down or came up last; 0: never went down */
	/* The NIC. */
	struct rte_mbuf *nic[MS_NIC];
	unsigned int nic_n;
	struct rte_mbuf *rx[MS_RX];
	unsigned int rx_n;
	uint64_t nic_free;            /* ns: the wire takes the next frame */
	uint64_t paused;              /* ns: end of the pause that the switch asked for */
	struct urn_switch *sw;
	uint16_t port;
	uint64_t cut_until;           /* ns: the wire carries nothing until then */
	/* Frames to the node that wait in the network, as in a switch whose port is paused. */
	struct rte_mbuf *held[MS_HELD];
	unsigned int held_n, held_room;
	bool held_lossy; /* frames beyond held_room are lost; else they come before the others */
	uint64_t held_until; /* ns: frames come again from then on */
	bool dying;	     /* dies when the next packets came, before they are answered */
	uint64_t crowded_at;	      /* ns: many long messages were being put together; 0: never */
};

struct ms_stats {
	uint64_t messages, done, errors, may_be, bytes, frames, lost, marked, pauses, watchdogs;
	uint64_t code[URN_MSG_CODES]; /* answers */
	uint64_t closes, restarts, held,
		ns;		      /* held: frames that came to a later life of their node */
	uint64_t p99_ppm;             /* largest ratio of plan.most_p99 that was found, in millionths */
	uint64_t hash;		      /* hash of all frames and answers, in order */
};

struct ms_world {
	struct ms_plan plan;
	const struct ms_scenario *sc;
	uint64_t seed, now, start;
	struct sim_rng rng;           /* choices of programs */
	struct ms_node node[MS_NODES];
	struct urn_switch *sw[MS_SWITCHES];
	uint16_t next[MS_SWITCHES], before[MS_SWITCHES]; /* ports of a ring of switches */
	struct ms_mail *mail;         /* plan.messages */
	uint32_t mails;
	struct ms_box *box;
	uint32_t boxes, box_room;
	uint32_t pending;             /* messages without an answer */
	uint64_t close_at, restart_at, cut_at;
	uint64_t last_answer;         /* ns */
	bool quiet;                   /* no new messages, no chaos: the run ends */
	bool idle;                    /* readers look no more, either */
	uint32_t oldest;              /* mails before have their answers */
	struct ms_stats stats;
	FILE *trace;                  /* NULL: none */
	jmp_buf failed;
	char why[MS_WHY];
	struct rte_mempool *pool;
	uint32_t starts;              /* starts of nodes, so far */
};

/* ---- world.c */

/* Start the EAL and make a world for many runs. NULL: said on standard error */
struct ms_world *ms_world_new(const char *program);
void ms_world_free(struct ms_world *w);
/* Run a seed. returns: true when all was well; else why says what was wrong */
bool ms_run(struct ms_world *w, const struct ms_scenario *sc, uint64_t seed, FILE *trace);
/* Something is wrong: the run ends. */
_Noreturn void ms_fail(struct ms_world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
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

/* ---- box.c */

/* Open a box in a free place of a node. */
void ms_box_open(struct ms_node *n, unsigned int place);
/* Close a box; messages in its ring are judged before. place: of the box among those of its node */
void ms_box_close(struct ms_node *n, unsigned int place);
/* Let the programs of a node do what is due. */
void ms_boxes_step(struct ms_node *n);
/* An event of ARM INTR came for the set in a slot. */
void ms_box_woken(struct ms_node *n, uint64_t cookie);
static inline struct ms_box *
ms_box_at(const struct ms_node *n, unsigned int place)
{
	return n->box[place] == UINT32_MAX ? NULL : &n->w->box[n->box[place]];
}

/* ---- judge.c */

/* The bytes of a mail. */
void ms_mail_fill(uint8_t *to, uint32_t mail, uint32_t len);
/* An entry of a ring is read. */
void ms_judge_entry(struct ms_world *w, struct ms_box *b, const uint8_t *entry);
/* A mail was answered. */
void ms_judge_answer(struct ms_world *w, struct ms_box *b, uint32_t mail, uint8_t code);
/* Messages that are too old without an answer are a failure. */
void ms_judge_stalls(struct ms_world *w);
/* All boxes are closed: look at every mail. */
void ms_judge_end(struct ms_world *w);

#endif
