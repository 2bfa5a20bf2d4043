/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * urnic-session-sim: two session machines (lib/session) over simulated adapters that die at named
 * points (FO-7 to FO-19). All choices come from a seed.
 *
 *   main.c   options, seeds, parallel processes
 *   run.c    one run: steps in random order, faults, healing
 *   net.c    queue pairs of four paths, memory, atomics, late packets
 *   shell.c  the shell of a machine: actions, completions, control messages
 *   heal.c   paths that each end makes anew and offers
 *   judge.c  programs and the oracle
 *
 * The oracle knows what programs posted and saw. No function of lib/session is called to find out
 * what is right.
 */
#ifndef URN_SESSIM_H
#define URN_SESSIM_H

#include "session/heal.h"
#include "session/wire.h"

#include "../rng.h"

#include <stdio.h>

enum {
	SS_PATHS = 4,	   /* P-P, P-S, S-P, S-S: adapter of end 0 is path / 2, of end 1 path % 2 */
	SS_WRS = 16,	   /* requests of an end without a completion */
	SS_RECVS = 6,	   /* receive buffers of an end */
	SS_OPS = 512,	   /* operations of a queue pair in its life */
	SS_POSTS = 40,	   /* requests of an end in a run */
	SS_SLOTS = 3,	   /* words that an end writes at the other */
	SS_BAG = 24,	   /* control messages on their way */
	SS_REST = 2000,	   /* messages until ends that are done are silent, at most */
	SS_FAULTS = 5,	   /* faults of a run */
	SS_STEPS = 400000, /* steps of a run: more is a stall */
};

/* X(name, text): points at which an adapter may die */
/* clang-format off */
#define SS_POINTS(X) \
	X(POSTED, "a request was posted, and nothing was sent") \
	X(SENT, "packets are on the wire") \
	X(BEGUN, "the first packet of a Send was placed") \
	X(PLACED, "after placing, before the receive completion") \
	X(RECEIVED, "after the receive completion, before it is polled") \
	X(WRITTEN, "between a write and its flush read") \
	X(FLUSHED, "the flush read was executed, and is not answered") \
	X(RESPONDED, "after the response, before the send completion") \
	X(COMPLETED, "after the send completion, before it is polled") \
	X(INTENT, "an atomic was recorded, and not stored") \
	X(STORED, "an atomic was stored, and not marked") \
	X(MARKED, "an atomic was marked, and not answered") \
	X(FENCE, "while the old queue pair is fenced") \
	X(DRAINED, "after the last drain, before REPORT") \
	X(REPORT, "in REPORT") \
	X(ANSWER, "in the answer to REPORT") \
	X(BIND, "while windows are bound on the new path") \
	X(MIGRATED, "in MIGRATED") \
	X(REPOST, "while requests are posted again") \
	X(AFTER, "after a migration") \
	X(OFFER, "an end of a path that is made anew was offered") \
	X(HEALING, "one side trusts the healed path, the other one not yet") \
	X(HEALED, "after healing, before traffic is there") \
	X(RETURNED, "after traffic returned to the healed path")

/* X(name, text): kinds of faults */
#define SS_KINDS(X) \
	X(LOCAL, "the adapter at the point dies") \
	X(REMOTE, "the peer's adapter dies") \
	X(BOTH, "both adapters die at once") \
	X(WIRE, "the path is cut") \
	X(ONE_WAY, "one direction of the path is cut") \
	X(FLAP, "the adapter dies, and is back soon")

/* X(name, text): bugs that are imitated, so that the oracle is seen to notice */
#define SS_SABOTAGES(X) \
	X(FENCE, "fence", "an old queue pair is not fenced") \
	X(TORN, "torn", "a receive is complete before the last packet of its Send") \
	X(EARLY, "early", "a message is complete when it was sent") \
	X(HEADER, "header", "headers in receives are not found") \
	X(RECORD, "record", "the record misses the newest atomic") \
	X(LOST, "lost", "a request is not posted again") \
	X(TWICE, "twice", "a completion is given to the program twice") \
	X(SILENT, "silent", "nothing is repeated") \
	X(ONCE, "once", "an end of a path is offered once, and not again") \
	X(ROUND, "round", "an end stays what it is when the peer's end was made anew") \
	X(PROBE, "probe", "a path is trusted whether it carries probes or not") \
	X(STALE, "stale", "offers of ends that are gone count") \
	X(OVERTAKEN, "overtaken", "offers of before an end was connected count") \
	X(TO_ANY, "to-any", "an end connects to one that is connected to an earlier end") \
	X(IN_USE, "in-use", "an end is made anew while the machine uses it") \
	X(UNSAID, "unsaid", "an older offer undoes the word of a loss") \
	X(ANSWERS, "answers", "an end that trusts a path answers each offer of it")
/* clang-format on */

enum ss_point {
#define X(name, text) SS_AT_##name,
	SS_POINTS(X)
#undef X
		SS_POINT_COUNT,
};

enum ss_kind {
#define X(name, text) SS_##name,
	SS_KINDS(X)
#undef X
		SS_KIND_COUNT,
};

enum ss_sabotage {
	SS_BREAK_NOTHING,
#define X(name, word, text) SS_BREAK_##name,
	SS_SABOTAGES(X)
#undef X
		SS_BREAKS,
};

/* One scenario. */
struct ss_scenario {
	const char *name, *text;
	uint32_t faults; /* at most */
	bool heal;	 /* adapters come back */
	bool foreign;	 /* others change words of atomics */
	bool doom;	 /* faults may leave no path */
};

/* An operation of a send queue. */
struct ss_op {
	uint64_t
		seq; /* number of the machine's request; a flush read has the last message before */
	uint8_t kind;	/* enum urn_sess_kind */
	bool flush;	/* a flush read */
	bool begun;	/* its first packet was placed */
	uint8_t atomic; /* steps of an atomic that are over */
	uint64_t value; /* result */
};

/* A queue pair: one side of a path. Counters run over op[], and each is at most the one before. */
struct ss_qp {
	bool error;		     /* fenced */
	uint32_t epoch;		     /* in which it came into use */
	struct ss_op op[SS_OPS];     /* send queue */
	uint32_t posted, sent;	     /* by this side */
	uint32_t executed, answered; /* by the peer */
	uint32_t completed;	     /* by this side */
	uint32_t rq[SS_OPS];	     /* receive queue: buffers */
	uint32_t rq_posted, rq_taken, rq_done;
};

/* A path. */
struct ss_path {
	bool cut[2];	    /* packets of this end do not arrive */
	uint64_t back_at;   /* step at which a path that was cut is whole again */
	struct ss_qp qp[2]; /* by end */
};

/* How far an end is with making its part of a path anew. */
struct ss_heal {
	struct urn_sess_heal end; /* rounds */
	bool fresh;		  /* made anew, and not used yet */
	bool peer_trusts;	  /* the peer counts the path as alive */
	bool peer_lost;		  /* the peer's end is never trusted again, whatever it said */
	bool told;		  /* an offer was sent since the end was made */
	uint32_t carried;	  /* probes */
};

/* The peer's end of a path, as offers told it; the oracle's. */
struct ss_heard {
	uint32_t round; /* the newest round */
	uint32_t to;	/* round of this end that the newest one is connected to; 0: none */
	bool lost;	/* the newest one is never trusted again */
};

/* A receive buffer: memory of the program. */
struct ss_buf {
	struct urn_sess_wire wire; /* header area */
	uint64_t payload;	   /* number of the Send; ~0: the last packet is missing */
	bool held;		   /* the program has it */
};

/* A completion in a queue, which outlives its adapter. */
struct ss_cqe {
	bool recv;
	uint32_t path, epoch, buf;
	struct ss_op op;
};

/* A control message on its way, as it travels. */
struct ss_msg {
	uint32_t length; /* bytes in use */
	uint8_t bytes[URN_SESS_WIRE_MAX];
};

/* A request as the program posted it. */
struct ss_req {
	uint8_t kind;	 /* enum urn_sess_kind */
	uint64_t number; /* number of the Send, write or atomic among its kind, from 1 on */
	uint64_t id;	 /* message id */
	uint64_t writes[SS_SLOTS]; /* newest write to each word before this request */
	uint64_t result;	   /* result of an atomic */
	bool posted;		   /* a queue pair has had it */
	bool arrived;		   /* a Send or write: the peer's adapter has placed all of it */
};

/* One end. */
struct ss_end {
	struct ss_world *w;
	uint32_t id;
	struct urn_sess_conn c;
	struct urn_sess_group group;
	struct urn_sess_wr wr[SS_WRS];
	struct urn_sess_recv recv[SS_RECVS];
	bool dead[2];		  /* adapters */
	uint64_t back_at[2];	  /* step at which a dead adapter comes back */
	struct ss_cqe cq[SS_OPS]; /* ring */
	uint32_t cq_head, cq_tail;
	struct ss_buf buf[SS_RECVS];
	struct ss_msg bag[SS_BAG]; /* to this end */
	uint32_t bagged;
	struct ss_msg old; /* one that may come much later */
	bool has_old;
	int32_t fence, drain, bind; /* actions to be answered: epoch; -1: none */
	bool wake;
	uint32_t bound;		/* epoch whose path has the windows */
	bool noticed[SS_PATHS]; /* the death of the path was told to the machine */
	struct ss_heal heal[SS_PATHS];
	struct ss_heard heard[SS_PATHS];
	/* the program */
	struct ss_req req[SS_POSTS];
	uint32_t posts, target;		 /* requests posted; to be posted */
	uint64_t completed;		 /* requests that are complete */
	uint64_t sends, writes, atomics; /* posted */
	uint64_t got;			 /* number of the newest Send that came */
	uint64_t last_write[SS_SLOTS];
	uint64_t word[SS_SLOTS];  /* written by the peer */
	uint64_t floor[SS_SLOTS]; /* word[] must not be below */
	uint64_t ack;		  /* LAST ACKED for headers */
	/* atomics of the peer: the word, the log and the number of those that were stored */
	uint64_t counter, log_old[URN_SESS_ATOMICS], logged, stored;
	uint64_t foreign;  /* changes of the word by others */
	uint8_t log_state; /* state of the newest entry: 0 none, 1 intent, 2 done */
	uint64_t intent_old;
	uint32_t since_flush;
};

/* A fault of the plan. */
struct ss_fault {
	enum ss_point at;
	enum ss_kind kind;
	uint32_t times; /* the point is passed so often before */
};

struct ss_world {
	const struct ss_scenario *sc;
	uint64_t seed;
	struct sim_rng rng;
	enum ss_sabotage sabotage;
	bool broken; /* the sabotage took place */
	bool trace;
	uint64_t step;
	struct ss_end end[2];
	struct ss_path path[SS_PATHS];
	struct ss_fault fault[SS_FAULTS];
	uint32_t faults, next_fault;
	uint32_t flush_every; /* messages between flush reads, at most */
	bool unsure;	      /* an outcome cannot be known */
	bool hopeless;	      /* no path may be left */
	bool returned;	      /* traffic was asked to return */
	char error[200];      /* the oracle's verdict */
	uint32_t fired[SS_POINT_COUNT];
	uint64_t hash;
	/* Sends and writes that were sent again, and those of them that had not arrived */
	uint64_t again, lost;
	uint64_t known, unknown; /* atomics that completed with an outcome, and without */
};

/* ---- run.c */

extern const struct ss_scenario ss_scenarios[];
extern const unsigned int ss_scenario_count;
/* One run. returns: true: the oracle has nothing against it */
bool ss_run(struct ss_world *w, const struct ss_scenario *sc, uint64_t seed);
/* A point is passed, at this end and path: a fault may happen. */
void ss_point(struct ss_world *w, enum ss_point at, uint32_t end, uint32_t path);
void ss_fail(struct ss_world *w, const char *text, ...) __attribute__((format(printf, 2, 3)));
void ss_trace(struct ss_world *w, const char *text, ...) __attribute__((format(printf, 2, 3)));
/* True when the sabotage is on; the run is then broken. */
bool ss_break(struct ss_world *w, enum ss_sabotage what);

static inline uint32_t
ss_adapter(uint32_t end, uint32_t path)
{
	return end ? path % 2 : path / 2;
}

/* True when the adapter of the path is alive at this end. */
static inline bool
ss_alive(const struct ss_world *w, uint32_t end, uint32_t path)
{
	return !w->end[end].dead[ss_adapter(end, path)];
}

/* True when the queue pairs of a path's two ends are connected to each other. */
static inline bool
ss_joined(const struct ss_world *w, uint32_t path)
{
	const struct urn_sess_heal *a = &w->end[0].heal[path].end, *b = &w->end[1].heal[path].end;

	return a->to == b->own && b->to == a->own;
}

/* True when a path carries packets both ways. */
static inline bool
ss_carries(const struct ss_world *w, uint32_t path)
{
	return ss_alive(w, 0, path) && ss_alive(w, 1, path) && !w->path[path].cut[0] &&
	       !w->path[path].cut[1] && ss_joined(w, path);
}

/* True when requests go to the queue pair at once. */
static inline bool
ss_flows(const struct ss_end *e)
{
	return e->c.state == URN_SESS_CONNECTED || e->c.state == URN_SESS_MIGRATED;
}

/* ---- net.c */

/* Make an end's queue pair of a path. */
void ss_net_make(struct ss_world *w, uint32_t end, uint32_t path);
void ss_net_post(struct ss_world *w, uint32_t end, uint32_t path, const struct ss_op *op);
void ss_net_receive(struct ss_world *w, uint32_t end, uint32_t path, uint32_t buf);
/* One step of one queue pair, if there is any. which: a random number */
void ss_net_step(struct ss_world *w, uint32_t end, uint32_t path, uint32_t which);

/* ---- shell.c */

void ss_shell_open(struct ss_world *w, uint32_t end);
void ss_shell_step(struct ss_world *w, uint32_t end);
/* Post a request of the program, which the machine lets go now. */
void ss_shell_post(struct ss_end *e, uint64_t seq, uint32_t path, uint32_t epoch);

/* Bring what is on its way, and all that comes of it: ends that are done come to rest. */
void ss_shell_rest(struct ss_world *w);
/* A control message sets out. */
void ss_shell_put(struct ss_world *w, uint32_t to, const struct ss_msg *m);

/* ---- heal.c */

/* All paths are as they were made. */
void ss_heal_open(struct ss_end *e);
/* Look at one path, and return traffic to a better one. */
void ss_heal_step(struct ss_end *e);
/* The peer's OFFER. */
void ss_heal_hear(struct ss_end *e, const struct urn_sess_offer *o);
/* The end has noticed that a path is lost: it tells the peer, which may not notice by itself. */
void ss_heal_lost(struct ss_end *e, uint32_t p);
/* The peer's REPORT told which paths are alive for it. */
void ss_heal_reported(struct ss_end *e, uint32_t paths);
/* True when each end that is not dead trusts all paths. */
bool ss_heal_over(const struct ss_world *w);

/* ---- judge.c */

void ss_program_step(struct ss_end *e);
void ss_judge_complete(struct ss_end *e, const struct urn_sess_action *a, uint64_t result);
void ss_judge_receive(struct ss_end *e, uint32_t buf);
void ss_judge_repost(struct ss_end *e, uint64_t seq);
void ss_judge_memory(struct ss_world *w);
/* True when both programs have all they waited for. */
bool ss_judge_over(const struct ss_world *w);
void ss_judge_end(struct ss_world *w);
/* An end judged an offer, and asks for this step: not yet taken. */
void ss_judge_offer(struct ss_end *e, const struct urn_sess_offer *o, enum urn_sess_heal_step step);
/* An end has heard an offer, and done what it asks for. */
void ss_judge_heard(struct ss_end *e, const struct urn_sess_offer *o);

#endif
