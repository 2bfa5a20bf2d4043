/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An engine: the run-to-completion loop of one thread over its shard of every adapter. Engines
 * share nothing but the ring by which others hand an engine packets and completions, and the
 * mailbox for control calls.
 */
#ifndef URN_ENGINE_ENGINE_H
#define URN_ENGINE_ENGINE_H

#include "abi/control.h"
#include "am/am.h"
#include "cm/cm_agent.h"
#include "engine/across.h"
#include "engine/obey.h"
#include "engine/vlan.h"
#include "engine/run.h"
#include "host/doorbell.h"
#include "log/who.h"
#include "msg/msg.h"
#include "net/learn.h"
#include "net/router.h"
#include "pmd_glue/port.h"
#include "switch/pfc.h"
#include "transport/tp.h"

#include <sys/queue.h>

#include <pthread.h>
#include <stdatomic.h>

#include <rte_ring.h>

struct urn_client_shard;
struct urn_engine;
struct urn_log_ring;
struct urn_shard;

/*
 * The part of an adapter's client that engines know, whatever else control does. The client's
 * address handles point at it; its queue pairs, queues and events point at one of its shares.
 */
struct urn_engine_client {
	/* By engine, which owns the share, each in a struct urn_client_shard; NULL: none. */
	struct urn_tp_share *share[URN_ABI_MAX_ENGINES];
	/*
	 * Write end that asynchronous events of the client go to; -1: none. One descriptor for all
	 * engines, which one store changes: so the descriptor is here, and not in each shard.
	 */
	_Atomic int async_fd;
	struct urn_log_who who; /* its program, for the log; set before engines know the client */
};

/*
 * Queue pairs of an adapter that control wants ended before their engine sends again. Any thread
 * sets a bit; the engine of that bit calls `end`, which clears the bit when none is left.
 */
struct urn_engine_ends {
	_Atomic uint32_t due;          /* one bit an engine: the engine has QPs to end */
	void (*end)(struct urn_engine_ends *e, struct urn_tp *tp); /* end some QPs, in the engine's thread */
};

/* True when engine number `engine` has queue pairs to end. Costs one load. */
static inline bool
urn_engine_ends_due(const struct urn_engine_ends *e, unsigned int engine)
{
	return atomic_load_explicit(&e->due, memory_order_relaxed) & 1u << engine;
}

/* Asynchronous events of one client that found no room in its pipe, in their order. */
struct urn_late {
	struct urn_abi_event *ev;
	uint32_t n, cap;
	bool lost;                     /* events were lost: more than URN_LATE_MAX, or no memory */
};

enum { URN_LATE_MAX = 65536 };

/*
 * Completions of one client that found no room in the ring of their queue's engine, in their order.
 * Each is counted in its queue, which breaks when all engines together have more of them than the
 * queue has entries. Entries that only move the index of a send queue are at most as many as the
 * client's send queues have entries. Claimed slots are no bound, because the client itself says how
 * much it has read.
 */
struct urn_late_cqes {
	TAILQ_HEAD(urn_late_chunks, urn_late_chunk) chunks; /* owner; empty: none is late */
	uint32_t first;		       /* index of the oldest in the first chunk */
	uint32_t used;		       /* entries used in the last chunk */
	uint32_t n, quiet;             /* entries, and how many of them are no completions */
};

/* The clients of one user on a shard. In the engine's thread only. (users.c) */
struct urn_shard_user {
	struct urn_shard_user *side[2]; /* users below it in the shard's tree, by a bit of their
					   numbers; NULL: none */
	uid_t uid;			/* fixed while it has clients */
	uint32_t clients;		/* its clients here, one at least */
	uint32_t hot;			/* hot ones of them */
	struct urn_tp_user user; /* the transport's part; shares of the clients point at it */
};

/* One client's doorbells on one engine. Changed in the engine's thread only. */
struct urn_client_shard {
	LIST_ENTRY(urn_client_shard) link; /* in the shard's list of clients */
	struct urn_engine_client *client;  /* the client; fixed, so that any thread may read it */
	struct urn_shard *shard;       /* the shard that this belongs to */
	struct urn_shard_user *user;   /* its user; NULL: the client stands for a user of its own */
	struct urn_db_scan scan;
	struct urn_source **source;    /* by doorbell id; NULL: none */
	uint32_t cap;                  /* entries of source */
	uint32_t *free_id;             /* stack of ids given back */
	uint32_t free_n;
	uint32_t used;                 /* ids ever given out */
	LIST_ENTRY(urn_client_shard) hot_link; /* in the list of clients that each turn looks at; valid while hot */
	uint32_t quiet;                /* turns since the last doorbell, while hot */
	bool hot;                      /* each turn looks at it */
	bool left;    /* the client gave this process up, and its QPs here were ended (left.c) */
	bool leaving; /* something of these QPs may wait for memory still */
	uint32_t leave_at; /* doorbell id of the first QP that may; valid while leaving */
	TAILQ_ENTRY(urn_client_shard) leave_link; /* in the shard's list; valid while leaving */
	struct urn_tp_share share;     /* entries that its QPs hold; objects point at it */
	struct urn_late late;
	TAILQ_ENTRY(urn_client_shard) late_events; /* in the shard's list; valid while there are late events */
	struct urn_late_cqes late_cqes;
	TAILQ_ENTRY(urn_client_shard) cqes_link; /* in the list of clients with late completions; valid while it has some */
	uint32_t sq_entries;           /* entries of the send queues of all its QPs here */
	bool broken;                   /* a CQ of the client broke, and this is in the shard's list; any engine */
	struct urn_client_shard *broken_next; /* next in that list */
	bool walked;                   /* its QPs are being searched for broken CQs (broken.c) */
	uint32_t walk_at;              /* ... doorbell id of the next QP to look at */
	TAILQ_ENTRY(urn_client_shard) walk_link; /* in the list of clients being searched; valid while walked */
};

/* The client's shard that a share is in. The share has a client (urn_share_has_client()). */
static inline struct urn_client_shard *
urn_client_shard_of(const struct urn_tp_share *share)
{
	uintptr_t at = (uintptr_t)share;

	return (struct urn_client_shard *)(at - offsetof(struct urn_client_shard, share));
}

/* The client of a share, in any thread. NULL: the share has no client, or is NULL */
static inline struct urn_engine_client *
urn_share_client(const struct urn_tp_share *share)
{
	return urn_share_has_client(share) ? urn_client_shard_of(share)->client : NULL;
}

/* Kinds of messages in an engine's ring. */
enum urn_xkind {
	URN_X_RX,    /* packet for a QP of this engine */
	URN_X_TX,    /* frame for a transmit queue of this engine */
	URN_X_CQE,   /* completion for a queue of this engine */
	URN_X_PAUSE, /* message of flow control that came at another queue of the port */
};

struct urn_xmsg {
	uint32_t kind;         /* enum urn_xkind */
	uint32_t rsvd;
	struct urn_shard *shard; /* the receiving engine's shard */
	union {
		struct rte_mbuf *m;
		struct urn_tp_xcqe x;
		struct urn_pfc pfc;
	};
};
_Static_assert(sizeof(struct urn_xmsg) % 4 == 0, "element of an rte_ring");

/* The part of an adapter that one engine has. */
struct urn_shard {
	struct urn_engine *engine;
	struct urn_tp *tp;
	struct urn_memx *memx;
	struct urn_msg_regs *msg; /* register sets of messages; owner: the adapter; NULL: none */
	struct urn_am *am;	  /* endpoints of remote memory access; owner: the adapter */
	const uint32_t *msg_untold, *am_untold; /* number of these whose event is to be looked at */
	const char *name;			/* the adapter's; owner: the adapter */
	struct urn_port *port;         /* owner: the program */
	struct urn_tag tag;	       /* tag that its frames have on the wire */
	int queue;                     /* queue of the port; -1: another engine sends for us */
	struct urn_port *across; /* the port at the other end of the wire, of an adapter that this
				    engine has, too (across.h); owner: the program; NULL: none */
	struct urn_shard *sender;      /* the shard that sends for us, when queue < 0 */
	struct urn_obey
		*obey; /* pauses of the port; owner: the shard; NULL: flow control is not obeyed */
	struct urn_shard *const *sibling; /* shards of this adapter by engine; NULL entries */
	struct urn_neigh *neigh;       /* the adapter's neighbours */
	uint32_t neigh_gen;            /* generation seen last */
	struct urn_learn *learn;       /* features of peers, learnt by the adapter; NULL: not asked for */
	struct urn_cm_agent *cm;       /* connection management of the adapter; NULL: none */
	struct urn_engine_ends *ends;  /* the adapter's QPs that must end; NULL: none ever */
	uint32_t learn_seen;           /* generation of `learn` seen last */
	uint64_t link_due;             /* ns: when the first engine looks at the link next */
	uint64_t link_seen; /* ns of CLOCK_MONOTONIC: the last look at the link; 0: none */
	uint32_t moves; /* port->moves when the adapter's addresses were announced last; the first
			   engine's */
	uint64_t standby_due; /* ns: when the port that the adapter does not use is drained next;
				 UINT64_MAX: there is none, or no queue of it */
	uint64_t neigh_due;            /* ns: when the first engine polls the neighbour table next */
	unsigned int came;	       /* frames received in the last turn */
	uint64_t stuck_since;          /* ns: since when the port takes nothing; 0: it takes frames */
	LIST_HEAD(urn_shard_clients, urn_client_shard) clients;
	LIST_HEAD(urn_hot_clients, urn_client_shard) hot; /* those of them that each turn looks at */
	uint32_t hot_n, cold_n;	       /* number of hot clients, and of the others */
	uint32_t hot_users;	       /* number of users with hot clients */
	struct urn_shard_user
		*users; /* tree of the users with clients (users.c); owner; NULL: none */
	TAILQ_HEAD(urn_late_cqe_clients, urn_client_shard) late_cqes; /* clients with late completions; next turn first */
	struct urn_client_shard *broken; /* clients whose CQ broke, pushed by any engine, atomically; NULL: none */
	TAILQ_HEAD(urn_leaving_clients, urn_client_shard)
	leaving; /* clients that left, and have not been told yet that nothing of theirs is written
		    (left.c) */
	TAILQ_HEAD(urn_walked_clients, urn_client_shard) walk; /* clients whose QPs are being searched; next step first */
	TAILQ_HEAD(urn_cq_list, urn_cq) untold; /* queues whose event found the pipe full, oldest first (notify.c) */
	uint64_t untold_due;           /* ns: when these events are tried again */
	TAILQ_HEAD(urn_late_clients, urn_client_shard) late_events; /* clients with late events; next to try first */
	uint64_t late_due;             /* ns: when these events are tried again */
	bool first;                    /* the adapter's first engine: tends the neighbour table */
	bool link_up;                  /* state that clients were told last; the first engine's */
};

enum { URN_ENGINE_RING = 4096, URN_MAX_SHARDS = 64 };

struct urn_engine {
	/* ---- the loop */
	unsigned int index;
	unsigned int shards_n;
	struct urn_shard *shard[URN_MAX_SHARDS];
	struct rte_ring *ring;         /* struct urn_xmsg from other engines */
	uint64_t tsc;                  /* TSC of the last turn; read by others */
	uint64_t tsc_base;             /* TSC at which the engine's time began, at 1 ns; read by others, after tsc */
	uint64_t tsc_mult;             /* ns per cycle, 32 fractional bits */
	uint64_t loops;		       /* number of turns; read by others */
	uint64_t turned;	       /* ns: when the last turn began; read by others */
	uint64_t busy_ns;	       /* time of turns that found something; read by others */
	bool worked;		       /* the last turn found something */
	uint32_t waited;               /* empty turns since the last look for workers */
	struct urn_engine_config cfg;
	struct urn_log_ring *log; /* takes errors of clients; owner: the log; NULL: none. Constant
				     once programs attach */
	int wake_fd;                   /* eventfd */
	int sleep_fd; /* epoll of its own eventfd, and of each client's inner epoll (sleep.c) */
	uint64_t hear_due; /* ns: when an engine that is awake looks for written eventfds */

	/* ---- control calls of other threads */
	_Atomic uint32_t mail;         /* calls that wait */
	pthread_mutex_t lock;          /* guards the fields that follow */
	STAILQ_HEAD(, urn_mail) mails; /* calls that wait, in their order */
	bool bound;                    /* a thread polls this engine */
	pthread_t owner;               /* that thread, when bound */
	LIST_ENTRY(urn_engine) bound_link; /* in the list of bound engines (call.c) */
};

/* Make an engine without shards. NULL: no memory. */
struct urn_engine *urn_engine_create(unsigned int index, const struct urn_engine_config *cfg,
				     const char *name);
void urn_engine_destroy(struct urn_engine *e);

/*
 * The engine's time for other threads, ns, from its start. This time is not before the engine's
 * last turn, and at most 10 ms later unless the engine itself says so, even if the TSC of the
 * caller's core differs: the call may wait for the engine, like urn_engine_call().
 */
uint64_t urn_engine_now(struct urn_engine *e);
/* The time now, ns, in the middle of a turn; urn_tp_config.clock. e: engine, in its own thread */
uint64_t urn_engine_clock(void *e);
/* urn_engine_poll() with a time of the caller's own clock, ns, which never goes back. */
unsigned int urn_engine_turn(struct urn_engine *e, uint64_t now);

/*
 * Run fn(arg) in the thread that polls the engine, and wait for it; fn runs at once when that
 * thread is the caller, or none polls. Slow path. (engine/call.c)
 */
void urn_engine_call(struct urn_engine *e, void (*fn)(void *arg), void *arg);
/* Run the calls that wait. In the engine's thread. */
void urn_engine_mail(struct urn_engine *e);
/* True when the calling thread polls this engine. */
bool urn_engine_is_mine(struct urn_engine *e);
/* While waiting, serve the engines that the caller polls, so that their callers can go on. */
void urn_engine_wait_turn(void);

/*
 * Wake from sleep when this eventfd is written, or an eventfd in this epoll, whatever their other
 * holders do with them, until urn_engine_unwatch() or until fd is closed. The call may wait for
 * the kernel's lock of all epolls within epolls, so the caller holds no lock that others need.
 * fd: a file that only the dataplane has. returns: 0 or an errno value (sleep.c)
 */
int urn_engine_watch(struct urn_engine *e, int fd);
/* Hear a client from now on when fd wakes the engine. fd: watched; c: a client of one of the
 * engine's shards. returns: 0 or an errno value */
int urn_engine_watch_for(struct urn_engine *e, int fd, struct urn_client_shard *c);
/* With a client: in the engine's thread, which may be using the client. */
void urn_engine_unwatch(struct urn_engine *e, int fd);
/* Hear the cold clients that wrote their eventfds; to be called now and then. */
void urn_engine_hear(struct urn_engine *e, uint64_t now);

/* Add the engine's shard of an adapter. The caller still owns the shard. (engine.c) */
int urn_engine_add(struct urn_engine *e, struct urn_shard *s);
void urn_engine_remove(struct urn_engine *e, struct urn_shard *s);
/*
 * Send the frames of a shard that may be sent now; those that the port does not take are the first
 * of the next turn. (engine.c)
 */
void urn_shard_flush(struct urn_shard *s);

/*
 * Add and remove a client of a shard, in its engine's thread, in time that does not depend on the
 * number of clients. (doorbells.c)
 */
void urn_shard_add_client(struct urn_shard *s, struct urn_client_shard *c);
void urn_shard_remove_client(struct urn_shard *s, struct urn_client_shard *c);
/*
 * Let a client be one of a user's, before urn_shard_add_client(). In the engine's thread. spare:
 * zeroed memory from the heap, which the shard takes if the user has no client yet. returns: the
 * spare that the shard did not take; NULL: it did (users.c)
 */
struct urn_shard_user *urn_shard_join(struct urn_shard *s, struct urn_client_shard *c, uid_t uid,
				      struct urn_shard_user *spare);
/* The client is its user's no longer: it has no work and holds nothing of the pools. (users.c) */
void urn_shard_part(struct urn_client_shard *c);
/* The client wrote its eventfd: a cold client that rang becomes hot. */
void urn_client_shard_heard(struct urn_client_shard *c);
/* Take doorbells that were rung. returns: their number */
unsigned int urn_shard_doorbells(struct urn_shard *s);

/* Let a source be looked at again when its client's turn comes; struct urn_tp_config.ring_again. */
void urn_shard_ring_again(void *ctx, const struct urn_source *src);

/* Give a completion to the owner of its queue; struct urn_tp_config.give_cqe. (exchange.c) */
void urn_shard_give_cqe(void *ctx, const struct urn_tp_xcqe *x);
/* Put a message into another engine's ring. returns: false when there was no room */
bool urn_engine_put(struct urn_engine *to, const struct urn_xmsg *x);
/* Take messages that other engines handed over. returns: their number */
unsigned int urn_engine_take(struct urn_engine *e);
/* Hand over packets for other engines, and frames that another engine sends. */
void urn_shard_hand_over(struct urn_shard *s);
/* Announce this adapter's addresses on the link; called for its first shard. */
void urn_shard_announce(struct urn_shard *s);
/* Begin to look at the port of a shard, whose port and queue are set. (link.c) */
void urn_shard_init_link(struct urn_shard *s);
/* Look at the link of the port, and whether an adapter with two ports has moved; called for its
 * first shard. (link.c) */
void urn_shard_look_at_link(struct urn_shard *s);
/* Drop what came in at the port that an adapter with two ports does not use now. (link.c) */
void urn_shard_drain_standby(struct urn_shard *s);
/* Try again to give completions that found no room: a share for each client that has some. */
void urn_shard_give_late(struct urn_shard *s);
/* The same for one client only, max completions at most, as far as there is room. returns: how many */
uint32_t urn_shard_give_late_of(struct urn_shard *s, struct urn_client_shard *c, uint32_t max);
/* A client goes away; all of its queues are gone. */
void urn_shard_forget_late(struct urn_shard *s, struct urn_client_shard *c);

/* A queue broke: QPs of its client that use it end, on all engines; struct urn_tp_config.cq_broken. (broken.c) */
void urn_shard_cq_broken(void *ctx, const struct urn_cq *cq);
/* Look at some QPs of clients with broken queues. returns: how many */
unsigned int urn_shard_walk_broken(struct urn_shard *s);
/* A client goes away; all of its queues are gone. */
void urn_shard_forget_broken(struct urn_shard *s, struct urn_client_shard *c);

/*
 * The client gave this process up (urn_abi_db.left): end its QPs here, before anything else is
 * received. The cost is proportional to the QPs that the client has here, once. (left.c)
 */
void urn_client_shard_left(struct urn_client_shard *c);
/* True when the client has said so: one load. */
static inline bool
urn_client_shard_says_left(const struct urn_client_shard *c)
{
	return atomic_load_explicit(&c->scan.db->left, memory_order_relaxed) != 0;
}
/* The engine stood still for so many ns before this turn: look for clients that gave it up. */
void urn_shard_stood(struct urn_shard *s, uint64_t ns);
/* Tell clients that left once nothing of theirs is written any more: some looks a turn. */
void urn_shard_tell_left(struct urn_shard *s);
/* A client goes away. */
void urn_shard_forget_left(struct urn_shard *s, struct urn_client_shard *c);
/* True when the client with this share has left; struct urn_tp_config.has_left. */
bool urn_shard_has_left(void *ctx, const struct urn_tp_share *share);
/* The obstacle between a shard and the wire; struct urn_tp_config.obstacle. (obstacle.c) */
uint8_t urn_shard_obstacle(void *ctx);
/* Put an error of a client into the engine's ring of the log; struct urn_tp_config.failed.
 * (failed.c) */
void urn_shard_failed(void *ctx, struct urn_tp_share *share, const struct urn_failure *f);
/* Put a client's leaving into the engine's ring of the log. qps: queue pairs that were ended for it
 * in this shard; none are not worth a line. (failed.c) */
void urn_shard_log_left(const struct urn_shard *s, const struct urn_engine_client *c, uint32_t qps);
/* Make the lists of a shard, before anything else is done with it; its other fields are zero. (doorbells.c) */
void urn_shard_init_lists(struct urn_shard *s);
/* Give events of this turn: of armed completion queues, and asynchronous ones. */
void urn_shard_notify(struct urn_shard *s);
/* Give asynchronous events only; struct urn_tp_config.take_events. */
void urn_shard_tell_events(void *ctx);
/* A client goes away: forget its late events. */
void urn_shard_forget_events(struct urn_shard *s, struct urn_client_shard *c);
/* A completion queue goes away: forget it, in time that does not depend on the number of queues. */
void urn_shard_forget_cq(struct urn_shard *s, struct urn_cq *cq);

#endif
