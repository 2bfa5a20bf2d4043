/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A simulated cluster: nodes, switches and wires in one thread under a virtual
 * clock, all chance from one seed.
 *
 *   program ── rings, doorbells ── transport + memory        the product's own
 *      │ model                          │ frames
 *   verdicts                     wires (impairments), switches
 *
 * A node is the product's transport (dataplane/transport) with its memory and
 * its ends of the queues; a wire's direction is one of its impairments. What
 * the simulation adds are programs that post, faults, the clock, and oracles:
 * the reference model (model.h), which is told all that programs do and see,
 * and what has to be there at the end of a run (node.c, "closing").
 */
#ifndef URN_SIM_SIM_H
#define URN_SIM_SIM_H

#include "faults.h"
#include "model.h"
#include "rng.h"

#include "host/doorbell.h"
#include "switch/switch.h"
#include "transport/tp.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
	SIM_NODES = 5,
	SIM_SWITCHES = 3,
	SIM_ENDS = 512,        /* QPs of a run */
	SIM_DIRS = 2 * (SIM_NODES + 2 * SIM_SWITCHES),
	SIM_RX = 8192,         /* frames that wait for a node */
	SIM_SLOTS = 32,        /* requests of a QP at a time, at most */
	SIM_BUFS = 64,         /* receives of a queue at a time, at most */
	SIM_TIMED = 96,        /* what comes at a time of its own */
	SIM_HANGS = 40,        /* times that engines are not run, at most */
	SIM_DYING = 64,
	SIM_GUARD = 32,        /* bytes around each buffer that are nobody's */
	SIM_WORDS = 4,         /* words for atomics, of each QP */
	SIM_SGES = 4,
	SIM_INLINE = 64,
	SIM_MBUFS = 2047,      /* packets of a node */
	SIM_ANSWERS = 4096,    /* answers to atomics that are remembered */
	SIM_EVENTS = 32,       /* types of events */
	SIM_SPACES = 2,        /* address spaces of other processes, of a node */
	SIM_PDS = 4,           /* protection domains of a node */
	SIM_WHY = 400,
};

#define SIM_VA 0x700000000000ull /* address of a node's first byte, as keys speak of it */

/* How lost packets are repeated between two adapters. */
enum sim_recovery { SIM_GBN, SIM_SELECTIVE, SIM_MIXED };

struct sim_range {
	uint32_t lo, hi;
};

struct sim_scenario {
	const char *name, *text;
	uint64_t always;               /* faults of every seed; bits of enum sim_fault */
	uint64_t may;                  /* faults of one seed in three */
	struct sim_range nodes, switches;
	struct sim_range pairs;        /* connected pairs of QPs */
	struct sim_range ops;          /* requests of a QP */
	uint32_t max_len;              /* bytes of a message */
	uint32_t slots;                /* requests of a QP at a time, at most */
	uint8_t weight[MODEL_OPS];     /* how often each operation */
	struct sim_range datagrams;    /* of a node */
	uint32_t srq_percent;          /* nodes with a shared receive queue */
	double drop, dup, reorder, corrupt; /* of a path; 0: a seed draws it, up to 0.1 */
	bool exact;                    /* they are just that, in every seed */
	struct sim_range clients;      /* of a node, well behaved; 0: no clients, a bare transport */
	struct sim_range rogues;       /* of a node, that misbehave and die */
	bool cm;                       /* pairs are connected by connection management */
	uint32_t late_polls;           /* memory that answers late does so after so many polls at most; 0: 20 */
	bool plain;                    /* nodes go by the standard alone, and by the measured round trip */
};

/* What a seed makes of a scenario. */
struct sim_plan {
	uint64_t faults;               /* that are on */
	uint32_t nodes, switches, pairs, ops, max_len, slots, bufs;
	uint32_t datagrams;
	bool ipv6;
	uint8_t mtu_code;              /* path MTU */
	uint32_t window, kept, work;
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
	uint8_t rd_atomic, dest_rd_atomic;
	bool srq[SIM_NODES];
	uint64_t turn_ns[SIM_NODES];   /* shortest time between two turns */
	double drop, dup, reorder, corrupt; /* of a path */
	uint32_t clients, rogues;      /* of a node; 0 clients: a bare transport */
	uint32_t lives;                /* of a rogue, one after the other */
	bool cm;
	uint32_t gate;                 /* operations on foreign memory under way that close gates */
	uint32_t hang_node;            /* whose engine is not run; SIM_NODES: all */
	uint64_t hang_ns;              /* for how long at most */
	bool hang_fails;               /* its peers may give it up for that */
	uint64_t service_ns;           /* that a packet of a request takes at a node that is slow, or of its response */
	uint32_t full_node, full_entries; /* whose completion queue is too small, and how small it is */
	uint32_t away_node;            /* that vanishes or moves, and is to be back in time unless away_fails */
	uint64_t away_at, away_ns;     /* ns: from the start, for how long; of a node that moves: till others are told */
	uint64_t away_asks;            /* ns: so long its address is asked for; UINT64_MAX: it stays known */
	bool away_fails;
	bool away_told;                /* others are told that its address changed: else they find out */
	bool full_receives;            /* ... that of receives; else that of requests, and some receives */
	uint32_t hangs;                /* how often; more than three: with little between */
};

struct sim;
struct sim_host;
struct sim_client;
struct sim_node;
struct sim_end;

/* A receive queue as its program has it: of a QP, or shared. */
struct sim_rq {
	struct urn_abi_wq *hdr;
	uint32_t mask, stride;
	uint32_t off, len;             /* of the first buffer; bytes of each, with guards around */
	uint32_t bufs;
	uint64_t busy;                 /* bit: the buffer is posted */
	uint32_t posted;
	uint64_t due;                  /* ns: when the program looks at it next */
	int m;                         /* number of the model's QP or shared queue */
	uint32_t key;                  /* of the buffers; and the model's number of it */
	int m_key;
	uint32_t wrong_key;            /* of a domain that its receives are not of; 0: none */
	struct urn_abi_db *bells;      /* of its program */
	uint32_t db;                   /* doorbell of its QP */
	bool shared, ud;
	bool over;                     /* no more are posted */
};

/* What a QP's program knows of a window into its memory. */
enum sim_window { SIM_WIN_NONE, SIM_WIN_FREE, SIM_WIN_BINDING, SIM_WIN_BOUND, SIM_WIN_ENDING };

/* A program whose memory is another process's: a protection domain and an address space of its own. */
struct sim_space {
	struct urn_space *space;       /* NULL: there is none */
	uint32_t pd;
	uint32_t key_all;              /* all of the node's memory; and the model's number of it */
	int m_all;
	struct sim_rng rng;            /* its worker's */
	uint64_t due;                  /* ns: when its worker moves something next */
	bool stalled;                  /* the worker moves nothing */
	bool shut;                     /* the gate is closed, as it was seen last */
};

/* One QP of a connected pair, and its program. */
struct sim_end {
	struct sim_node *node;
	struct sim_end *peer;
	struct sim_end *next;          /* of the node */
	unsigned int id;               /* index in struct sim; parity tells the ends of a pair */
	int m;                         /* the model's number */
	struct sim_client *client;     /* NULL: bare transport */
	struct sim_space *space;       /* NULL: its memory is mapped */
	struct sim_call *call;         /* that connects it; NULL: it is, from the start */
	struct urn_qp *qp;             /* NULL: not made, or destroyed */
	struct urn_abi_db *bells;      /* of its program */
	uint32_t key_all;              /* its program's key of all of the node's memory */
	int m_all;
	struct urn_abi_wq *sq;
	uint32_t sq_mask, sq_stride;
	struct sim_rq rq;              /* unless the node's is shared */
	struct sim_rng rng;
	/* memory of the node that is this QP's */
	uint32_t slot_off;             /* where requests take from or bring to; max_len each */
	uint32_t win_off, win_len;     /* what the peer reads and writes */
	uint32_t word_off;             /* the peer's atomics: SIM_WORDS of them */
	uint32_t key, local_key;       /* keys of those */
	int m_key, m_local;            /* the model's numbers of them */
	bool key_dead, local_dead;
	/* requests */
	uint32_t left;                 /* still to be posted */
	uint32_t posted, done;
	uint64_t posted_at[SIM_SLOTS]; /* ns: when each of those was that are under way; by its number */
	uint64_t due;                  /* ns: when the program posts next */
	bool failed;                   /* its program was told */
	uint64_t end_at;               /* ns: when it hears that its peer failed, and ends; 0: it has not */
	bool draining;
	/* events of the QP, and what they are judged by */
	uint16_t told[SIM_EVENTS];     /* by type */
	uint64_t drained_at;           /* ns: when draining began; valid while draining */
	uint16_t told_before;          /* SQ_DRAINED that came until then */
	uint16_t drains;               /* of which it is to be told */
	bool refused;                  /* its peer had a request refused for the key */
	bool overrun;                  /* a completion queue of its has overflowed */
	bool deaf;                     /* ... that of its requests */
	bool told_fatal;               /* ... and it is to be told that it ends for that */
	bool ended_itself;             /* its program ended it, or something of its own failed */
	/* a window into this QP's memory, for the peer */
	enum sim_window window;
	uint32_t mw_rkey;              /* as it is now */
	int mw_type;
	uint32_t mw_len;               /* bytes from win_off on that it reaches */
	int m_win;                     /* the model's number of that binding */
	int m_before;                  /* ... and of the one that it replaces while BINDING, or MODEL_NO_KEY */
	uint32_t bind_seq;             /* request that binds or invalidates */
	uint32_t gone_seq;             /* number behind the last of them that was seen to be complete */
};

/* A QP for datagrams, and its program. */
struct sim_ud {
	struct urn_qp *qp;             /* NULL: none */
	uint32_t key;                  /* of its memory */
	struct urn_abi_wq *sq;
	struct sim_rq rq;
	struct sim_rng rng;
	uint32_t slot_off;
	uint32_t left, posted, done;
	uint64_t due;
	bool over;                     /* it failed: no more */
	uint32_t came;
};

struct sim_cq {
	struct urn_cq cq;              /* of a client only hdr and mask, as the client has them */
	uint32_t seen;                 /* completions polled */
	bool broken;                   /* its program was told that it has overflowed */
};

struct sim_node {
	struct sim *s;
	unsigned int id;
	struct urn_tp *tp;
	struct urn_mem *mem;
	struct urn_memx *memx;
	struct sim_host *host;         /* NULL: a bare transport; else all around it is the product's */
	struct rte_mempool *pool;      /* the process's, kept from run to run */
	struct rte_mempool *bare_pool; /* that of bare transports */
	struct rte_mbuf *hog[SIM_MBUFS]; /* taken away from the node */
	uint32_t hogged;
	uint8_t mac[6], gid[16];
	uint8_t *ram;
	uint8_t *bare_ram;             /* that of bare transports, kept from run to run */
	uint32_t ram_cap;              /* bytes of it */
	uint32_t ram_size, ram_used;   /* of this run */
	uint32_t pd;
	uint32_t key_all;              /* all of the memory; of receives, and of what is never taken away */
	int m_all;
	uint32_t counter_off;
	struct sim_space space[SIM_SPACES];
	struct urn_abi_db *db;
	struct urn_db_scan scan;
	struct urn_qp *by_db[SIM_ENDS + 1];
	uint32_t dbs;
	struct sim_end *ends;          /* those of this node, by next */
	struct sim_end *by_qpn[URN_TP_QP_CHUNK]; /* by slot */
	struct sim_cq scq, rcq;
	struct urn_srq srq;            /* valid when srq_q.hdr */
	struct sim_rq srq_q;
	struct sim_space *srq_space;   /* whose memory it is of; NULL: mapped */
	uint32_t srq_pd, srq_key;      /* a domain of its own, and all of the memory there; 0: none */
	struct urn_ah ah[SIM_NODES];
	struct sim_ud ud;
	struct {
		struct urn_region *region;
		int m;                 /* the model's number of its key */
	} dying[SIM_DYING];            /* regions killed and not freed yet */
	unsigned int dying_n;
	struct rte_mbuf *rx[SIM_RX];   /* ring */
	uint32_t rx_in, rx_out;
	unsigned int came;             /* frames received in the last turn */
	uint64_t due, last;            /* ns: next and last turn */
	uint64_t prog_due;             /* ns: when its programs run next */
	uint64_t poll_due;             /* ns: ... and poll, where they do so late (overrun.c) */
	uint64_t walk_at;              /* ns: when QPs of a queue that has overflowed are looked for; UINT64_MAX: never */
	uint64_t asleep_until;         /* ns: it stands still */
	bool hung;                     /* it stood still since its last turn */
	uint64_t unknown_until;        /* ns: nobody knows its address */
	struct {
		struct rte_mbuf *m;
		uint64_t at;           /* ns: when it is executed */
	} slow[SIM_RX];                /* requests that wait for that; a ring, in order (service.c) */
	uint32_t slow_in, slow_out;
	/* what it can besides RoCEv2, and when it hears that a peer can, too (and that no more) */
	bool selective;
	struct {
		uint64_t from, to;     /* ns; UINT64_MAX: never */
	} link[SIM_NODES];
};

/* One direction of a wire. */
struct sim_dir {
	struct urn_impair *imp;        /* a switch's, or its own when there is none */
	struct urn_impair_config cfg;
	bool access;                   /* to or from a node, not between switches */
};

struct sim_net {
	struct sim_dir dir[SIM_DIRS];  /* two of each wire */
	unsigned int dirs;
	struct urn_switch *sw[SIM_SWITCHES];
	unsigned int home[SIM_NODES];  /* the switch that each node hangs on */
	uint16_t port[SIM_NODES];      /* ... and the port there */
	struct rte_mempool *copies;    /* for frames that wires double and switches flood */
	uint64_t lost;                 /* no room at a node */
};

/* A fault that comes at its time. */
struct sim_timed {
	uint64_t at;                   /* ns */
	uint8_t fault;                 /* enum sim_fault */
	bool ends;                     /* undoes one that came before */
	uint32_t a, b;                 /* which, how */
};

struct sim_stats {
	uint64_t requests, completions, errors, frames, dropped, events, ns, datagrams;
	uint64_t lost_pairs;           /* that failed for wires that lose by chance; as expected at most, */
	uint64_t lost_ppm;             /* ... in millionths */
	uint64_t sent, repeats;        /* request packets; those of them sent again */
	uint64_t refused;              /* packets that came and did no good: out of order, broken, without a receive */
	uint64_t good_sent, good_repeats; /* in runs with good wires */
	uint64_t others;               /* requests that named another QP's window */
	uint64_t fired[SIM_FAULT_COUNT]; /* how often each fault came */
};

struct sim {
	const struct sim_scenario *sc;
	uint64_t seed;
	uint64_t without;              /* faults left out; as the next two, the caller's to set */
	enum sim_recovery recovery;
	struct sim_plan plan;
	struct sim_rng rng;            /* of what is neither a program's nor a fault's */
	uint64_t now;                  /* ns */
	uint64_t start;
	uint64_t moved;                /* ns: when something was completed last */
	unsigned int fds;              /* descriptors that the process had before; of clients */
	uint64_t stall_ns;             /* nothing completes for so long: a stall */
	uint64_t idle_events;          /* since then */
	struct model *model;
	struct sim_node node[SIM_NODES];
	struct sim_net net;
	struct sim_end end[SIM_ENDS];
	unsigned int ends;
	struct sim_timed timed[SIM_TIMED]; /* by time */
	unsigned int timed_n, timed_next;
	enum sim_sabotage sabotage;    /* what is broken on purpose; the caller's to set */
	bool broken;                   /* ... was, in this run */
	struct rte_mbuf *leaked;
	uint64_t answered[SIM_ANSWERS]; /* of ANSWER: destination and PSN of atomics that were answered */
	bool away;                     /* the node that is to vanish has */
	bool winding_up;               /* programs are done; QPs are ended */
	FILE *trace;                   /* NULL: none */
	FILE *capture;                 /* what nodes send; NULL: none; the caller's to set */
	uint64_t hash;                 /* of all that happened */
	char why[SIM_WHY];             /* what went wrong first; empty: nothing */
	struct sim_stats stats;
};

/* ---- scenario.c */

extern const struct sim_scenario sim_scenarios[];
extern const unsigned int sim_scenario_count;
const struct sim_scenario *sim_scenario_find(const char *name);
const char *sim_fault_name(unsigned int f);
const char *sim_fault_text(unsigned int f);
const char *sim_recovery_name(unsigned int r);
/* What the seed makes of it. without: faults to leave out; nothing else changes by that. */
void sim_plan_make(struct sim_plan *p, const struct sim_scenario *sc, uint64_t seed,
		   uint64_t without);

/* ---- run.c */

/* Start the EAL and make the pools. Once a process. returns 0, or -1 and a sentence on stderr */
int sim_init(const char *program);
/* One run. returns true when every oracle held; else s->why. */
bool sim_run(struct sim *s, const struct sim_scenario *sc, uint64_t seed, FILE *trace);
struct sim *sim_new(void);
void sim_free(struct sim *s);

/* Something is wrong: the first is kept, and ends the run. */
void sim_fail(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Put down what happens. node -1: none. */
void sim_note(struct sim *s, int node, const char *what, uint64_t a, uint64_t b, uint64_t c);
void sim_note_frame(struct sim *s, unsigned int node, const char *what, const struct rte_mbuf *m);

/* ---- programs.c */

/* Programs of a node poll and post; says when they want to again. */
void sim_programs_run(struct sim_node *n);

/* ---- capture.c */

/* Start a pcap file. returns NULL with errno. The caller asks ferror() and closes it. */
FILE *sim_capture_open(const char *path);
/* Write frames that a node sends, if that is asked for. They stay the caller's. */
void sim_capture(struct sim *s, struct rte_mbuf **m, unsigned int n);

/* ---- sabotage.c */

const char *sim_sabotage_name(unsigned int i);
const char *sim_sabotage_text(unsigned int i);
/* Break what is to be broken, when its time has come. returns: is the completion to be seen? */
bool sim_sabotage(struct sim_node *n, struct urn_abi_cqe *c, bool *twice);
/* The same for n frames that a node sends. returns: how many are left */
unsigned int sim_sabotage_frames(struct sim *s, struct rte_mbuf **m, unsigned int n);

/* ---- net.c */

void sim_net_open(struct sim *s);
void sim_net_close(struct sim *s);
/* Frames that a node sends. */
void sim_net_send(struct sim *s, unsigned int node, struct rte_mbuf **m, unsigned int n);
/* When a frame may be due next. */
uint64_t sim_net_next(const struct sim *s);
void sim_net_step(struct sim *s);
/* A link's directions carry nothing, or again what they did. which: 1, 2 or both ways */
void sim_net_cut(struct sim *s, unsigned int link, unsigned int which, bool cut);

/* ---- node.c */

void sim_node_open(struct sim *s, unsigned int id, uint32_t ram);
void sim_node_turn(struct sim_node *n);
void sim_node_wake(struct sim_node *n, uint64_t at);
/* Take down; sim_fail() when anything is not given back. */
void sim_node_close(struct sim_node *n);
/* Bytes of the node's memory, with guards around. returns: offset */
uint32_t sim_node_alloc(struct sim_node *n, uint32_t len, uint32_t align);
struct urn_abi_wq *sim_queue(uint32_t entries, uint32_t stride);
/* A region of the node and the model's number of it. */
uint32_t sim_node_region(struct sim_node *n, struct sim_client *c, uint32_t off, uint32_t len,
			 uint32_t access, int *m);
/* m: the model's number of it. returns: false: it can't be now */
bool sim_node_kill(struct sim_node *n, uint32_t key, int m);
void sim_node_deregister(struct sim_node *n, uint32_t key, int m);
/* Free those regions that were deregistered and nothing is under way on. */
void sim_node_bury(struct sim_node *n);
/* The model's number of a key for such a region. */
int sim_model_key(struct sim_node *n, uint32_t off, uint32_t len, uint32_t access);
/* Everything that a transport owns is where it was when it was made; noise: clients may err (close.c). */
void sim_node_check_pools(struct sim_node *n, bool noise);
/* Give the node its bytes of memory. */
void sim_node_ram(struct sim_node *n, uint32_t bytes);
/* Is there a completion to poll? */
bool sim_cq_waits(const struct sim_cq *cq);
void sim_modify(struct sim_node *n, struct urn_qp *qp, uint8_t state, uint32_t mask,
		struct urn_abi_qp_attr *a);
/* Poll one completion. returns: was there one? */
bool sim_cq_poll(struct sim_cq *cq, struct urn_abi_cqe *out);
/* Make a receive queue and its buffers; without hdr, mask and stride of a client's. */
void sim_rq_open(struct sim_node *n, struct sim_rq *rq, uint32_t bufs, uint32_t len, bool bare);
/* Post what receives are free, as the program's mood is. */
void sim_rq_post(struct sim_node *n, struct sim_rq *rq, struct sim_rng *rng, bool all);

/* ---- foreign.c */

/* Make the node's address spaces, if the plan has any. */
void sim_spaces_open(struct sim_node *n);
/* Give them back; sim_fail() when anything is left of them. */
void sim_spaces_close(struct sim_node *n);
/* One of them, or none, as a stream of the seed has it. */
struct sim_space *sim_space_draw(struct sim_node *n, uint64_t stream);
/* As sim_node_region(). */
uint32_t sim_space_region(struct sim_node *n, struct sim_space *sp, uint32_t off, uint32_t len,
			  uint32_t access, int *m);
/* The workers move what is due by now. */
void sim_spaces_work(struct sim_node *n);
/* When the node must be looked at for their sake; UINT64_MAX: it need not. */
uint64_t sim_spaces_next(const struct sim_node *n);
/* Operations under way. */
uint32_t sim_spaces_hold(const struct sim_node *n);
/* A worker stands still from now on, or goes on. */
void sim_space_stall(struct sim_node *n, unsigned int space, bool ends);
/* All memory answers that can. returns: is there more under way? */
bool sim_node_poll(struct sim_node *n);
/* Stop a QP and wait for its memory. returns: false: that does not come to an end */
bool sim_qp_stop(struct sim_node *n, struct urn_qp *qp);

/* ---- service.c */

/* Is it a request that has to wait until the node executes it? Takes it then. */
bool sim_service_take(struct sim_node *n, struct rte_mbuf *m);
/* When the next of them is executed; UINT64_MAX: none waits. */
uint64_t sim_service_next(const struct sim_node *n);
/* The next that is executed by now; NULL: none. */
struct rte_mbuf *sim_service_pop(struct sim_node *n);

/* ---- link.c */

/* Draw what the node can and when it hears of its peers; before its transport is made. */
void sim_link_open(struct sim_node *n);
/* For struct urn_tp_config: features, link (ctx: the node) and rto_floor. */
uint32_t sim_link_offer(const struct sim_node *n);
uint32_t sim_link_features(void *ctx, const uint8_t gid[16]);
uint64_t sim_link_rto_floor(const struct sim *s);
/* Tell the transport what came up since its last turn, at `last` ns. */
void sim_link_turn(struct sim_node *n, uint64_t last);

/* ---- end.c, post.c: programs of connected QPs */

/* Returns the first of the two ends, not connected; of clients when the nodes have them. */
struct sim_end *sim_pair_make(struct sim *s, struct sim_node *a, struct sim_node *b);
/* Draws their first PSNs: psn[i] is that with which end i sends. */
void sim_pair_psn(struct sim_end *e, uint32_t psn[2]);
void sim_pair_open(struct sim *s, struct sim_node *a, struct sim_node *b);
/* Bring it up as far as a state. dest_qpn: its peer's */
void sim_end_up(struct sim_end *e, uint8_t state, uint32_t dest_qpn, uint32_t rq_psn, uint32_t sq_psn);
void sim_end_close(struct sim_end *e);
void sim_end_ended(struct sim_end *e);
/* Its program gives up, after a few more requests that are to be flushed, and tells its peer. */
void sim_end_gives_up(struct sim_end *e);
/* After a turn: windows whose end can be seen from now on let nothing in any more. */
void sim_windows_judge(struct sim_node *n);
/* Post what there is to post now. */
void sim_end_post(struct sim_end *e);
void sim_end_sent(struct sim_end *e, const struct urn_abi_cqe *c);
void sim_end_received(struct sim_end *e, const struct urn_abi_cqe *c);

/* ---- event.c */

/* An event of a bare transport. */
void sim_event(struct sim_node *n, uint32_t type, uint32_t handle);
/* A request of e failed: its peer may have had to be told. */
void sim_event_refused(struct sim_end *e, const struct urn_abi_cqe *c);
/* A send queue that was to be drained goes on. */
void sim_event_drained(struct sim_end *e);
/* All QPs have ended: was each that used a shared queue told that it takes no more of it? */
bool sim_events_came(const struct sim *s);
/* At the end: has what was due come? */
void sim_event_close(const struct sim_end *e);

/* ---- overrun.c */

/* The queues of a bare transport were made. */
void sim_cqs_open(struct sim_node *n);
/* How large to make one of its queues, that usually has so many entries. */
uint32_t sim_cq_entries(const struct sim_node *n, bool receives, uint32_t usual);
/* Do the node's programs not poll now? */
bool sim_polls_late(struct sim_node *n);
/* For struct urn_tp_config. ctx: the node */
void sim_cq_broken(void *ctx, const struct urn_cq *cq);
/* In a turn: QPs of a queue that has overflowed end, idle ones too, when it is time. */
void sim_cqs_walk(struct sim_node *n);
/* A queue is said to have overflowed. */
void sim_event_cq(struct sim_node *n, uint32_t handle);
/* Have those QPs ended, and programs seen what their queues have? */
bool sim_cqs_settled(const struct sim *s);
/* Programs are done: has the QP ended for its queue, and was its program told? */
void sim_overrun_judge(struct sim_end *e);

/* ---- neighbour.c */

/* Which node vanishes or moves, and when. */
void sim_neigh_draw(struct sim_plan *p, const struct sim_scenario *sc, uint64_t seed);
/* As struct urn_tp_config.neigh, of a node that may have vanished or have done so itself. */
int sim_neigh_asked(const struct sim_node *n, const struct sim_node *to);
/* Is a frame that comes to the node for the MAC address that it has now? */
bool sim_neigh_take(const struct sim_node *n, struct rte_mbuf *m);
void sim_neigh_vanish(struct sim *s, bool ends);
/* It moves; told: the others are told so. */
void sim_neigh_move(struct sim *s, bool told);
/* A request failed: not too early? */
void sim_neigh_judge(const struct sim_end *e, const struct urn_abi_cqe *c);

/* ---- ud.c */

void sim_ud_open(struct sim_node *n);
void sim_ud_post(struct sim_node *n);
void sim_ud_sent(struct sim_node *n, const struct urn_abi_cqe *c);
void sim_ud_received(struct sim_node *n, const struct urn_abi_cqe *c);

/* ---- fault.c */

void sim_faults_open(struct sim *s);
uint64_t sim_faults_next(const struct sim *s);
void sim_faults_step(struct sim *s);

static inline void
sim_soonest(uint64_t *due, uint64_t at)
{
	if (at < *due)
		*due = at;
}

static inline bool
sim_on(const struct sim *s, enum sim_fault f)
{
	return s->plan.faults >> f & 1;
}

#endif
