/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A simulated cluster: nodes, switches and wires in one thread under a virtual
 * clock, all random numbers from one seed.
 *
 *   program ── rings, doorbells ── transport + memory        the product's own
 *      │ model                          │ frames
 *   verdicts                     wires (impairments), switches
 *
 * A node is the product's transport (dataplane/transport) with its memory and
 * its ends of the queues; a wire's direction is one of its impairments. The
 * simulation adds programs that post, faults, the clock, and oracles: the
 * reference model (model.h), which is told all that programs do and see, and
 * the checks at the end of a run (node.c, "closing").
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
	SIM_TIMED = 96,        /* faults that come at a time of their own */
	SIM_HANGS = 40,        /* times that engines are not run, at most */
	SIM_DYING = 64,
	SIM_GUARD = 32,        /* bytes around each buffer that nobody may write */
	SIM_WORDS = 4,         /* words for atomics of each QP */
	SIM_SGES = 4,
	SIM_INLINE = 64,
	SIM_MBUFS = 2047,      /* packets of a node */
	SIM_ANSWERS = 4096,    /* answers to atomics that are remembered */
	SIM_EVENTS = 32,       /* types of events */
	SIM_SPACES = 2,        /* address spaces of other processes at a node */
	SIM_PDS = 4,           /* protection domains of a node */
	SIM_WHY = 400,
};

#define SIM_VA 0x700000000000ull /* address of a node's first byte, by keys */

/* Ways to repeat lost packets between two adapters. */
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
	uint8_t weight[MODEL_OPS];     /* relative frequency of each operation */
	struct sim_range datagrams;    /* datagrams of a node */
	bool aligned;		       /* writes of some QPs go on cache lines; for scenarios whose
					* requests don't fail: those leave other bytes than a first part */
	uint32_t srq_percent;          /* percent of nodes with a shared receive queue */
	double drop, dup, reorder, corrupt; /* probabilities of a path; 0: random by seed, up to 0.1 */
	bool exact;                    /* the probabilities are exactly these in every seed */
	struct sim_range clients;      /* well-behaved clients of a node; 0: none, a bare transport */
	struct sim_range rogues;       /* clients of a node that misbehave and die */
	bool cm;                       /* pairs are connected by connection management */
	uint32_t late_polls;           /* memory that answers late does so after at most this many polls; 0: 20 */
	bool plain;                    /* nodes follow the standard only, and the measured round trip */
};

/* The run that a seed makes of a scenario. */
struct sim_plan {
	uint64_t faults;               /* faults that are on; bits of enum sim_fault */
	uint32_t nodes, switches, pairs, ops, max_len, slots, bufs;
	uint32_t datagrams;
	bool ipv6;
	uint8_t mtu_code;              /* path MTU */
	uint32_t window, kept, work;
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
	uint8_t rd_atomic, dest_rd_atomic;
	bool srq[SIM_NODES];
	uint64_t turn_ns[SIM_NODES];   /* shortest time between two turns */
	double drop, dup, reorder, corrupt; /* probabilities of a path */
	uint32_t clients, rogues;      /* number at each node; 0 clients: a bare transport */
	uint32_t lives;                /* lives of a rogue, one after the other */
	bool cm;
	uint32_t gate;                 /* number of operations in flight on foreign memory that closes gates */
	uint32_t hang_node;            /* node whose engine is not run; SIM_NODES: all */
	uint64_t hang_ns;              /* longest time without the engine */
	bool hang_fails;               /* the node's peers may fail because of the hang */
	uint64_t service_ns;           /* time that a slow node takes for a packet of a request or of its response */
	uint32_t full_node, full_entries; /* node whose completion queue is too small, and the queue's entries */
	uint32_t away_node;            /* node that vanishes or moves; back in time unless away_fails */
	uint64_t away_at, away_ns;     /* ns from the start; duration, or when moving time until others are told */
	uint64_t away_asks;            /* ns for which its address is asked for; UINT64_MAX: it stays known */
	bool away_fails;
	bool away_told;                /* others are told that the node's address changed: else they find out */
	bool full_receives;            /* the small queue is that of receives; else of requests, and some receives */
	uint32_t hangs;                /* number of hangs; more than three: shortly after one another */
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
	uint32_t off, len;             /* offset of the first buffer; bytes of each, with guards around */
	uint32_t bufs;
	uint64_t busy;                 /* bit: the buffer is posted */
	uint32_t posted;
	uint64_t due;                  /* ns: time at which the program looks at the queue next */
	int m;                         /* number of the model's QP or shared queue */
	uint32_t key;                  /* key of the buffers; below the model's number of it */
	int m_key;
	uint32_t wrong_key;            /* key of another domain than the queue's; 0: none */
	struct urn_abi_db *bells;      /* doorbells of its program */
	uint32_t db;                   /* doorbell of its QP */
	bool shared, ud;
	bool over;                     /* no more receives are posted */
};

/* State of a window into a QP's memory, as its program knows it. */
enum sim_window { SIM_WIN_NONE, SIM_WIN_FREE, SIM_WIN_BINDING, SIM_WIN_BOUND, SIM_WIN_ENDING };

/* A program with foreign memory: a protection domain and an address space of its own. */
struct sim_space {
	struct urn_space *space;       /* NULL: none */
	uint32_t pd;
	uint32_t key_all;              /* key for all of the node's memory; below the model's number of it */
	int m_all;
	struct sim_rng rng;            /* random numbers of the worker */
	uint64_t due;                  /* ns: time at which the worker copies next */
	bool stalled;                  /* the worker copies nothing */
	bool shut;                     /* the gate was closed at the last look */
};

/* One QP of a connected pair, and its program. */
struct sim_end {
	struct sim_node *node;
	struct sim_end *peer;
	struct sim_end *next;          /* next end of the node */
	unsigned int id;               /* index in struct sim; parity tells the ends of a pair */
	int m;                         /* the model's number */
	struct sim_client *client;     /* NULL: bare transport */
	struct sim_space *space;       /* NULL: the memory is mapped */
	struct sim_call *call;         /* call that connects the QP; NULL: connected from the start */
	struct urn_qp *qp;             /* NULL: not made, or destroyed */
	struct urn_abi_db *bells;      /* doorbells of its program */
	uint32_t key_all;              /* the program's key for all of the node's memory */
	int m_all;
	struct urn_abi_wq *sq;
	uint32_t sq_mask, sq_stride;
	struct sim_rq rq;              /* unless the node's is shared */
	struct sim_rng rng;
	/* memory of the node that is this QP's */
	uint32_t slot_off;             /* local buffers of requests; max_len each */
	uint32_t win_off, win_len;     /* memory that the peer reads and writes */
	uint32_t word_off;             /* words of the peer's atomics: SIM_WORDS */
	uint32_t key, local_key;       /* keys of the window, of the slots */
	int m_key, m_local;            /* the model's numbers of these keys */
	bool key_dead, local_dead;
	/* requests */
	uint32_t left;                 /* requests still to be posted */
	uint32_t posted, done;
	uint64_t posted_at[SIM_SLOTS]; /* ns: time at which each incomplete request was posted; by its number */
	uint64_t due;                  /* ns: time at which the program posts next */
	bool failed;                   /* the program was told of a failure */
	uint64_t end_at;               /* ns: time at which it ends, as its peer failed; 0: the peer has not */
	bool draining;
	/* events of the QP, and the state that they are judged by */
	uint16_t told[SIM_EVENTS];     /* number of events, by type */
	uint64_t drained_at;           /* ns: time at which draining began; valid while draining */
	uint16_t told_before;          /* SQ_DRAINED events that came until then */
	uint16_t drains;               /* drainings of which the program must be told */
	bool refused;                  /* a request of its peer was refused for the key */
	bool overrun;                  /* one of its completion queues has overflowed */
	bool deaf;                     /* the one of its requests has overflowed */
	bool told_fatal;               /* the program must be told that the QP ends for the overflow */
	bool ended_itself;             /* its program ended the QP, or an operation of its own failed */
	/* a window into this QP's memory, for the peer */
	enum sim_window window;
	uint32_t mw_rkey;              /* the window's present R_Key */
	int mw_type;
	uint32_t mw_len;               /* bytes of the window, from win_off on */
	int m_win;                     /* the model's number of the binding */
	int m_before;                  /* that of the binding it replaces, while BINDING, or MODEL_NO_KEY */
	uint32_t bind_seq;             /* request that binds or invalidates */
	uint32_t gone_seq;             /* number behind the last such request that was seen to be complete */
};

/* A QP for datagrams, and its program. */
struct sim_ud {
	struct urn_qp *qp;             /* NULL: none */
	uint32_t key;                  /* key of its memory */
	struct urn_abi_wq *sq;
	struct sim_rq rq;
	struct sim_rng rng;
	uint32_t slot_off;
	uint32_t left, posted, done;
	uint64_t due;
	bool over;                     /* the QP failed: no more datagrams */
	uint32_t came;
};

struct sim_cq {
	struct urn_cq cq;              /* a client's has only hdr and mask, its own view */
	uint32_t seen;                 /* completions polled */
	bool broken;                   /* the program was told that the queue has overflowed */
};

struct sim_node {
	struct sim *s;
	unsigned int id;
	struct urn_tp *tp;
	struct urn_mem *mem;
	struct urn_memx *memx;
	struct sim_host *host;         /* NULL: a bare transport; else the product's adapter and engine */
	struct rte_mempool *pool;      /* owner: the process; kept from run to run */
	struct rte_mempool *bare_pool; /* pool for bare transports */
	struct rte_mbuf *hog[SIM_MBUFS]; /* packets taken away from the node */
	uint32_t hogged;
	uint8_t mac[6], gid[16];
	uint8_t *ram;
	uint8_t *bare_ram;             /* memory for bare transports, kept from run to run */
	uint32_t ram_cap;              /* bytes of bare_ram */
	uint32_t ram_size, ram_used;   /* bytes in this run */
	uint32_t pd;
	uint32_t key_all;              /* key for all of the memory, for receives and other uses; never deregistered */
	int m_all;
	uint32_t counter_off;
	struct sim_space space[SIM_SPACES];
	struct urn_abi_db *db;
	struct urn_db_scan scan;
	struct urn_qp *by_db[SIM_ENDS + 1];
	uint32_t dbs;
	struct sim_end *ends;          /* ends of this node, linked by next */
	struct sim_end *by_qpn[URN_TP_QP_CHUNK]; /* ends by slot of their QPN */
	struct sim_cq scq, rcq;
	struct urn_srq srq;            /* valid when srq_q.hdr */
	struct sim_rq srq_q;
	struct sim_space *srq_space;   /* space of the queue's memory; NULL: mapped */
	uint32_t srq_pd, srq_key;      /* domain of its own, and key for all of the memory there; 0: none */
	struct urn_ah ah[SIM_NODES];
	struct sim_ud ud;
	struct {
		struct urn_region *region;
		int m;                 /* the model's number of the region's key */
	} dying[SIM_DYING];            /* regions deregistered and not freed yet */
	unsigned int dying_n;
	struct rte_mbuf *rx[SIM_RX];   /* ring of received frames */
	uint32_t rx_in, rx_out;
	unsigned int came;             /* frames received in the last turn */
	uint64_t due, last;            /* ns: times of the next and the last turn */
	uint64_t prog_due;             /* ns: time at which its programs run next */
	uint64_t poll_due;             /* ns: time at which they poll next, where they poll late (overrun.c) */
	uint64_t walk_at;              /* ns: time to look for QPs of a queue that has overflowed; UINT64_MAX: never */
	uint64_t asleep_until;         /* ns: the engine is not run until then */
	bool hung;                     /* the engine was not run since its last turn */
	uint64_t unknown_until;        /* ns: nobody knows the node's address until then */
	struct {
		struct rte_mbuf *m;
		uint64_t at;           /* ns: time at which the request is executed */
	} slow[SIM_RX];                /* requests that wait to be executed; a ring, in order (service.c) */
	uint32_t slow_in, slow_out;
	/* features beyond RoCEv2, and the times from and to which the node takes a peer to have them */
	bool selective;
	struct {
		uint64_t from, to;     /* ns; UINT64_MAX: never */
	} link[SIM_NODES];
};

/* One direction of a wire. */
struct sim_dir {
	struct urn_impair *imp;        /* a switch's, or the wire's own without a switch */
	struct urn_impair_config cfg;
	bool access;                   /* the wire goes to or from a node, not between switches */
};

struct sim_net {
	struct sim_dir dir[SIM_DIRS];  /* two directions of each wire */
	unsigned int dirs;
	struct urn_switch *sw[SIM_SWITCHES];
	unsigned int home[SIM_NODES];  /* switch that each node is connected to */
	uint16_t port[SIM_NODES];      /* port there of each node */
	struct rte_mempool *copies;    /* for frames that wires duplicate and switches flood */
	uint64_t lost;                 /* frames dropped without room at a node */
};

/* A fault that comes at its time. */
struct sim_timed {
	uint64_t at;                   /* ns */
	uint8_t fault;                 /* enum sim_fault */
	bool ends;                     /* undoes an earlier fault */
	uint32_t a, b;                 /* object, parameter */
};

struct sim_stats {
	uint64_t requests, completions, errors, frames, dropped, events, ns, datagrams;
	uint64_t lost_pairs;           /* pairs that failed because wires lose at random */
	uint64_t lost_ppm;             /* largest expected number of such pairs, millionths */
	uint64_t sent, repeats;        /* request packets; retransmitted ones among them */
	uint64_t refused;              /* received packets of no use: out of order, broken, without a receive */
	uint64_t good_sent, good_repeats; /* sent and repeats in runs with good wires */
	uint64_t others;               /* requests that named another QP's window */
	uint64_t fired[SIM_FAULT_COUNT]; /* number of occurrences of each fault */
};

struct sim {
	const struct sim_scenario *sc;
	uint64_t seed;
	uint64_t without;              /* faults left out; set by the caller, like the next field */
	enum sim_recovery recovery;
	struct sim_plan plan;
	struct sim_rng rng;            /* random numbers of neither programs nor faults */
	uint64_t now;                  /* ns */
	uint64_t start;
	uint64_t moved;                /* ns: time of the last completion */
	unsigned int fds;              /* descriptors that the process had before the run; for clients */
	uint64_t stall_ns;             /* time without a completion that counts as a stall */
	uint64_t idle_events;          /* events since the last completion */
	struct model *model;
	struct sim_node node[SIM_NODES];
	struct sim_net net;
	struct sim_end end[SIM_ENDS];
	unsigned int ends;
	struct sim_timed timed[SIM_TIMED]; /* by time */
	unsigned int timed_n, timed_next;
	enum sim_sabotage sabotage;    /* sabotage to be done; set by the caller */
	bool broken;                   /* the sabotage was done in this run */
	struct rte_mbuf *leaked;
	uint64_t answered[SIM_ANSWERS]; /* sabotage ANSWER: destination and PSN of atomics that were answered */
	bool away;                     /* the node that must vanish has vanished */
	bool winding_up;               /* programs are done; QPs are ended */
	FILE *trace;                   /* NULL: none */
	FILE *capture;                 /* frames that nodes send; NULL: none; set by the caller */
	uint64_t hash;                 /* hash of all events */
	char why[SIM_WHY];             /* first failure; empty: none */
	struct sim_stats stats;
};

/* ---- scenario.c */

extern const struct sim_scenario sim_scenarios[];
extern const unsigned int sim_scenario_count;
const struct sim_scenario *sim_scenario_find(const char *name);
const char *sim_fault_name(unsigned int f);
const char *sim_fault_text(unsigned int f);
const char *sim_recovery_name(unsigned int r);
/* Make the plan of a scenario and a seed. without: faults to leave out, which changes nothing else. */
void sim_plan_make(struct sim_plan *p, const struct sim_scenario *sc, uint64_t seed,
		   uint64_t without);

/* ---- run.c */

/* Start the EAL and make the pools. Once a process. returns 0, or -1 with a message on stderr */
int sim_init(const char *program);
/* Do one run. returns true when every oracle held; else s->why is set. */
bool sim_run(struct sim *s, const struct sim_scenario *sc, uint64_t seed, FILE *trace);
struct sim *sim_new(void);
void sim_free(struct sim *s);

/* Report a failure: the first is kept, and ends the run. */
void sim_fail(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Note an event in the hash and the trace. node -1: none. */
void sim_note(struct sim *s, int node, const char *what, uint64_t a, uint64_t b, uint64_t c);
void sim_note_frame(struct sim *s, unsigned int node, const char *what, const struct rte_mbuf *m);

/* ---- programs.c */

/* Let a node's programs poll and post; sets the time of their next run. */
void sim_programs_run(struct sim_node *n);

/* ---- capture.c */

/* Start a pcap file. returns NULL with errno. The caller checks ferror() and closes the file. */
FILE *sim_capture_open(const char *path);
/* Write frames that a node sends, if there is a capture. The frames stay the caller's. */
void sim_capture(struct sim *s, struct rte_mbuf **m, unsigned int n);

/* ---- sabotage.c */

const char *sim_sabotage_name(unsigned int i);
const char *sim_sabotage_text(unsigned int i);
/* Do the sabotage to a completion, when its time has come. returns: true when the program may see the completion */
bool sim_sabotage(struct sim_node *n, struct urn_abi_cqe *c, bool *twice);
/* Do the sabotage to n frames that a node sends. returns: how many are left */
unsigned int sim_sabotage_frames(struct sim *s, struct rte_mbuf **m, unsigned int n);

/* ---- net.c */

void sim_net_open(struct sim *s);
void sim_net_close(struct sim *s);
/* Put frames that a node sends on its wire. */
void sim_net_send(struct sim *s, unsigned int node, struct rte_mbuf **m, unsigned int n);
/* Time at which the next frame may be due, ns. */
uint64_t sim_net_next(const struct sim *s);
void sim_net_step(struct sim *s);
/* Cut a link's directions, or mend them. which: bits 1 and 2, one for each direction */
void sim_net_cut(struct sim *s, unsigned int link, unsigned int which, bool cut);

/* ---- node.c */

void sim_node_open(struct sim *s, unsigned int id, uint32_t ram);
void sim_node_turn(struct sim_node *n);
void sim_node_wake(struct sim_node *n, uint64_t at);
/* Take a node down; sim_fail() when anything is not given back. */
void sim_node_close(struct sim_node *n);
/* Allocate bytes of the node's memory, with guards around. returns: offset */
uint32_t sim_node_alloc(struct sim_node *n, uint32_t len, uint32_t align);
struct urn_abi_wq *sim_queue(uint32_t entries, uint32_t stride);
/* Register a region of the node; *m: the model's number of it. returns: key */
uint32_t sim_node_region(struct sim_node *n, struct sim_client *c, uint32_t off, uint32_t len,
			 uint32_t access, int *m);
/* Deregister a region. m: the model's number of it. returns: false when that is not possible now */
bool sim_node_kill(struct sim_node *n, uint32_t key, int m);
void sim_node_deregister(struct sim_node *n, uint32_t key, int m);
/* Free regions that were deregistered and have no operation left. */
void sim_node_bury(struct sim_node *n);
/* The model's number of a key for such a region. */
int sim_model_key(struct sim_node *n, uint32_t off, uint32_t len, uint32_t access);
/* Check that a transport's pools are as full as when it was made; noise: clients may err (close.c). */
void sim_node_check_pools(struct sim_node *n, bool noise);
/* Give the node its bytes of memory. */
void sim_node_ram(struct sim_node *n, uint32_t bytes);
/* True when there is a completion to poll. */
bool sim_cq_waits(const struct sim_cq *cq);
void sim_modify(struct sim_node *n, struct urn_qp *qp, uint8_t state, uint32_t mask,
		struct urn_abi_qp_attr *a);
/* Poll one completion. returns: true when there was one */
bool sim_cq_poll(struct sim_cq *cq, struct urn_abi_cqe *out);
/* Make a receive queue and its buffers; without hdr, mask and stride of a client's. */
void sim_rq_open(struct sim_node *n, struct sim_rq *rq, uint32_t bufs, uint32_t len, bool bare);
/* Post a random number of the free receives. */
void sim_rq_post(struct sim_node *n, struct sim_rq *rq, struct sim_rng *rng, bool all);

/* ---- foreign.c */

/* Make the node's address spaces, if the plan has any. */
void sim_spaces_open(struct sim_node *n);
/* Free the node's address spaces; sim_fail() when anything is left in them. */
void sim_spaces_close(struct sim_node *n);
/* One of the node's address spaces, or none, by a random stream of the seed. */
struct sim_space *sim_space_draw(struct sim_node *n, uint64_t stream);
/* sim_node_region() for an address space. */
uint32_t sim_space_region(struct sim_node *n, struct sim_space *sp, uint32_t off, uint32_t len,
			  uint32_t access, int *m);
/* Let the workers do the copies that are due by now. */
void sim_spaces_work(struct sim_node *n);
/* Time at which the node needs a turn because of its workers, ns; UINT64_MAX: never. */
uint64_t sim_spaces_next(const struct sim_node *n);
/* Number of operations in flight in the node's address spaces. */
uint32_t sim_spaces_hold(const struct sim_node *n);
/* Stop a worker, or let it go on. */
void sim_space_stall(struct sim_node *n, unsigned int space, bool ends);
/* Complete all memory operations that can be completed. returns: true when more are in flight */
bool sim_node_poll(struct sim_node *n);
/* Stop a QP and wait for its memory operations. returns: false when they do not end */
bool sim_qp_stop(struct sim_node *n, struct urn_qp *qp);

/* ---- service.c */

/* True when the packet is a request that must wait until the slow node executes it. Takes the packet then. */
bool sim_service_take(struct sim_node *n, struct rte_mbuf *m);
/* Time at which the next waiting request is executed, ns; UINT64_MAX: none waits. */
uint64_t sim_service_next(const struct sim_node *n);
/* The next waiting request that is due by now; NULL: none. */
struct rte_mbuf *sim_service_pop(struct sim_node *n);

/* ---- link.c */

/* Draw the node's features, and when it hears of its peers' features; before its transport is made. */
void sim_link_open(struct sim_node *n);
/* For struct urn_tp_config: features, link (ctx: the node) and rto_floor. */
uint32_t sim_link_offer(const struct sim_node *n);
uint32_t sim_link_features(void *ctx, const uint8_t gid[16]);
uint64_t sim_link_rto_floor(const struct sim *s);
/* Tell the transport of peers' features that became known since its last turn, at `last` ns. */
void sim_link_turn(struct sim_node *n, uint64_t last);

/* ---- end.c, post.c: programs of connected QPs */

/* Make a pair of QPs, not connected; of clients when the nodes have them. returns: the first of the two ends */
struct sim_end *sim_pair_make(struct sim *s, struct sim_node *a, struct sim_node *b);
/* Draw a pair's first PSNs: end i sends from psn[i] on. */
void sim_pair_psn(struct sim_end *e, uint32_t psn[2]);
void sim_pair_open(struct sim *s, struct sim_node *a, struct sim_node *b);
/* Bring an end's QP up to a state. dest_qpn: the peer's QPN */
void sim_end_up(struct sim_end *e, uint8_t state, uint32_t dest_qpn, uint32_t rq_psn, uint32_t sq_psn);
void sim_end_close(struct sim_end *e);
void sim_end_ended(struct sim_end *e);
/* Let the program give its QP up, after a few more requests that must be flushed, and tell its peer. */
void sim_end_gives_up(struct sim_end *e);
/* After a turn: tell the model of windows that were seen to end, which must let nothing in any more. */
void sim_windows_judge(struct sim_node *n);
/* Post the requests that are due now. */
void sim_end_post(struct sim_end *e);
void sim_end_sent(struct sim_end *e, const struct urn_abi_cqe *c);
void sim_end_received(struct sim_end *e, const struct urn_abi_cqe *c);

/* ---- event.c */

/* Take an event of a bare transport. */
void sim_event(struct sim_node *n, uint32_t type, uint32_t handle);
/* A request of e failed: its peer may have had to be told. */
void sim_event_refused(struct sim_end *e, const struct urn_abi_cqe *c);
/* A send queue goes on after it had to be drained. */
void sim_event_drained(struct sim_end *e);
/* True when, after the end of all QPs, each that used a shared queue was told that it takes no more
 * receives of it. */
bool sim_events_came(const struct sim *s);
/* At the end: fail the run when an event that was due has not come. */
void sim_event_close(const struct sim_end *e);

/* ---- overrun.c */

/* Note the queues of a bare transport once they are made. */
void sim_cqs_open(struct sim_node *n);
/* Entries of one of the node's completion queues, which usually has `usual`. */
uint32_t sim_cq_entries(const struct sim_node *n, bool receives, uint32_t usual);
/* True when the node's programs do not poll now. */
bool sim_polls_late(struct sim_node *n);
/* For struct urn_tp_config. ctx: the node */
void sim_cq_broken(void *ctx, const struct urn_cq *cq);
/* In a turn: end the QPs of a queue that has overflowed, idle ones too, when it is time. */
void sim_cqs_walk(struct sim_node *n);
/* Take the event that a queue has overflowed. */
void sim_event_cq(struct sim_node *n, uint32_t handle);
/* True when the QPs of overflowed queues have ended, and programs have polled all completions. */
bool sim_cqs_settled(const struct sim *s);
/* After programs are done: fail the run unless the QP ended for its queue, and its program was told. */
void sim_overrun_judge(struct sim_end *e);

/* ---- neighbour.c */

/* Draw the node that vanishes or moves, and when. */
void sim_neigh_draw(struct sim_plan *p, const struct sim_scenario *sc, uint64_t seed);
/* The answer of struct urn_tp_config.neigh, where either node may have vanished. */
int sim_neigh_asked(const struct sim_node *n, const struct sim_node *to);
/* True when a frame that comes to the node is for the node's present MAC address. */
bool sim_neigh_take(const struct sim_node *n, struct rte_mbuf *m);
void sim_neigh_vanish(struct sim *s, bool ends);
/* Move the node; told: the others are told. */
void sim_neigh_move(struct sim *s, bool told);
/* A request failed: fail the run when that was too early. */
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
