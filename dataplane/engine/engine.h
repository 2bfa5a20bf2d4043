/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An engine: one lcore's run-to-completion loop over its share of every
 * adapter. Nothing here is shared with another engine but the ring by which
 * others hand it packets and completions, and the mailbox for control calls.
 */
#ifndef URN_ENGINE_ENGINE_H
#define URN_ENGINE_ENGINE_H

#include "abi/control.h"
#include "cm/cm_agent.h"
#include "engine/run.h"
#include "host/doorbell.h"
#include "net/learn.h"
#include "pmd_glue/port.h"
#include "transport/tp.h"

#include <pthread.h>
#include <stdatomic.h>

#include <rte_ring.h>

struct urn_client_shard;
struct urn_engine;
struct urn_shard;

/*
 * What engines know of a client of an adapter, whatever else control does. Its queue pairs,
 * queues and address handles, and their events, point at it.
 */
struct urn_engine_client {
	struct urn_client_shard *shard[URN_ABI_MAX_ENGINES]; /* by vector; NULL: none. Each its engine's, from the start on */
	_Atomic int async_fd;          /* where its asynchronous events go, a write end; -1: nowhere */
};

/*
 * Queue pairs that control wants ended before their engine sends again, of an adapter. Any thread
 * sets a bit; the engine whose bit is set calls `end`, which clears it when none is left.
 */
struct urn_engine_ends {
	_Atomic uint32_t due;          /* a bit an engine: there are some */
	void (*end)(struct urn_engine_ends *e, struct urn_tp *tp); /* in the engine's thread: end some */
};

/* Asynchronous events that their reader had no room for, in their order. */
struct urn_late {
	struct urn_abi_event *ev;
	uint32_t n, cap;
	bool lost;                     /* there were more than URN_LATE_MAX, or no memory */
};

enum { URN_LATE_MAX = 65536 };

/*
 * Completions that the ring of their queue's engine had no room for, in their order. Each
 * is counted in its queue, which breaks when there are more of them, of all engines, than it has
 * entries; or says only how far a send queue is, and those are no more than the client's
 * send queues have entries. Claimed slots bound nothing: the client says how much it has read.
 */
struct urn_late_cqes {
	struct urn_late_chunk *head, *tail; /* owner; NULL: there are none (exchange.c) */
	uint32_t first;                /* of head: the oldest */
	uint32_t used;                 /* of tail: entries */
	uint32_t n, quiet;             /* how many there are, and how many of them are no completions */
};

/* One client's doorbells on one engine. Changed in the engine's thread only. */
struct urn_client_shard {
	struct urn_client_shard *next, *prev; /* of the shard's list */
	struct urn_engine_client *client; /* whose it is, for events */
	struct urn_shard *shard;       /* where it is */
	struct urn_db_scan scan;
	struct urn_qp **qp;            /* by doorbell id; NULL: none */
	uint32_t cap;                  /* entries of qp */
	uint32_t *free_id;             /* stack of ids given back */
	uint32_t free_n;
	uint32_t used;                 /* ids ever given out */
	struct urn_client_shard *hot_next, *hot_prev; /* of those looked at each turn */
	uint32_t quiet;                /* turns since it last rang, while hot */
	bool hot;                      /* looked at each turn */
	struct urn_tp_share share;     /* what its QPs hold of the pools */
	struct urn_late late;
	struct urn_client_shard *late_next, *late_prev; /* in the round of those with late events; NULL: it has none */
	struct urn_late_cqes late_cqes;
	struct urn_client_shard *cqes_next, *cqes_prev; /* in the round of those with late completions; likewise */
	uint32_t sq_entries;           /* of all its QPs here */
	bool broken;                   /* one of its CQs broke, and it is in the shard's list of those; any engine */
	struct urn_client_shard *broken_next; /* there */
	bool walked;                   /* its QPs are being looked at for that (broken.c) */
	uint32_t walk_at;              /* ... which is next, by doorbell id */
	struct urn_client_shard *walk_next; /* in the round of those */
};

/* What goes through an engine's ring. */
enum urn_xkind {
	URN_X_RX,  /* packet for a QP of this engine */
	URN_X_TX,  /* frame for a transmit queue of this engine */
	URN_X_CQE, /* completion for a queue of this engine */
};

struct urn_xmsg {
	uint32_t kind;         /* enum urn_xkind */
	uint32_t rsvd;
	struct urn_shard *shard; /* of the receiving engine */
	union {
		struct rte_mbuf *m;
		struct urn_tp_xcqe x;
	};
};
_Static_assert(sizeof(struct urn_xmsg) % 4 == 0, "element of an rte_ring");

/* An adapter on an engine. */
struct urn_shard {
	struct urn_engine *engine;
	struct urn_tp *tp;
	struct urn_memx *memx;
	struct urn_port *port;         /* owner: the program */
	int queue;                     /* of the port; -1: another engine sends for us */
	struct urn_shard *sender;      /* the shard that sends for us, when queue < 0 */
	struct urn_shard *const *peer; /* shards of this adapter by engine; NULL entries */
	struct urn_neigh *neigh;       /* of the adapter */
	uint32_t neigh_gen;            /* generation seen last */
	struct urn_learn *peers;       /* what they can, of the adapter; NULL: nobody asks */
	struct urn_cm_agent *cm;       /* connection management, of the adapter; NULL: none */
	struct urn_engine_ends *ends;  /* QPs that are to end, of the adapter; NULL: nobody asks */
	uint32_t peers_seen;           /* generation of it seen last */
	uint64_t link_due;             /* ns: when to look at the link next; the first engine does */
	uint64_t neigh_due;            /* ns: when to poll it next; the first engine does */
	unsigned int came;             /* frames received in the last turn */
	uint64_t stuck_since;          /* ns: since when the port takes nothing; 0: it does */
	struct urn_client_shard *clients;
	struct urn_client_shard *hot;  /* of them, those looked at each turn */
	uint32_t hot_n, cold_n;	       /* of those, and of the others */
	struct urn_client_shard *late_cqes; /* the last in the round of clients with late completions; NULL: none */
	struct urn_client_shard *broken; /* clients whose CQ broke, pushed by any engine, atomically; NULL: none */
	struct urn_client_shard *walk; /* ... whose QPs are being looked at: the last in the round; NULL: none */
	struct urn_cq *untold;         /* queues whose event found its pipe full, oldest first, both ways (notify.c) */
	struct urn_cq *untold_last;    /* the newest of those, if there are any */
	uint64_t untold_due;           /* ns: when to try those again */
	struct urn_client_shard *late_events; /* the last in the round of clients with late events; NULL: none */
	uint64_t late_due;             /* ns: when to try those again */
	bool first;                    /* the adapter's first engine: tends the neighbour table */
	bool link_up;                  /* what clients were told last; the first engine's */
};

enum { URN_ENGINE_RING = 4096, URN_MAX_SHARDS = 64 };

struct urn_engine {
	/* ---- the loop */
	unsigned int index;
	unsigned int shards_n;
	struct urn_shard *shard[URN_MAX_SHARDS];
	struct rte_ring *ring;         /* struct urn_xmsg from other engines */
	uint64_t tsc;                  /* TSC, of the last turn; read by others */
	uint64_t tsc_base;             /* TSC at which its time began, ns 1; read by others, behind tsc */
	uint64_t tsc_mult;             /* ns per cycle, 32 fractional bits */
	uint64_t loops;		       /* turns; read by others */
	uint64_t turned;	       /* ns: when the last turn began; read by others */
	uint64_t busy_ns;	       /* time of turns that found something; read by others */
	bool worked;		       /* the last turn did */
	uint32_t waited;               /* empty turns since the last look for workers */
	struct urn_engine_config cfg;
	int wake_fd;                   /* eventfd */
	int sleep_fd;                  /* epoll: all eventfds that wake it */
	uint64_t hear_due; /* ns: when to look, awake, whether one of them was written */

	/* ---- control calls of other threads */
	_Atomic uint32_t mail;         /* calls that wait */
	pthread_mutex_t lock;          /* guards what follows */
	struct urn_mail *mail_head, *mail_tail;
	bool bound;                    /* a thread polls this engine */
	pthread_t owner;               /* which one, when bound */
	struct urn_engine *next_bound; /* in the list of engines that threads poll (call.c) */
};

/* Make an engine without shards. NULL: no memory. */
struct urn_engine *urn_engine_create(unsigned int index, const struct urn_engine_config *cfg,
				     const char *name);
void urn_engine_destroy(struct urn_engine *e);

/*
 * The engine's time, ns, from its start, for whoever is not the engine. Whatever the
 * TSC of the caller's core says, it is not before the engine's last turn, and no more
 * than 10 ms later unless the engine itself says so: may wait for it, as
 * urn_engine_call() does.
 */
uint64_t urn_engine_now(struct urn_engine *e);
/* urn_engine_poll() at a time of the caller's own clock, ns, which never goes back. */
unsigned int urn_engine_turn(struct urn_engine *e, uint64_t now);

/*
 * Run fn(arg) in the thread that polls the engine, and wait for it; at once
 * when that is the caller, or nobody. Slow path. (engine/call.c)
 */
void urn_engine_call(struct urn_engine *e, void (*fn)(void *arg), void *arg);
/* Run the calls that wait. In the engine's thread. */
void urn_engine_mail(struct urn_engine *e);
/* Does the calling thread poll this engine? */
bool urn_engine_is_mine(struct urn_engine *e);
/* Give the others a chance while waiting: serve the engines that the caller polls. */
void urn_engine_wait_turn(void);

/*
 * Wake from sleep when this eventfd is written, whatever else its other holders
 * do with it, until urn_engine_unwatch(). c: a client of a shard of the engine's
 * that is to be heard then; NULL: none. returns: 0 or an errno value (sleep.c)
 */
int urn_engine_watch(struct urn_engine *e, int fd, struct urn_client_shard *c);
/* With a client: in the engine's thread, which knows of it otherwise. */
void urn_engine_unwatch(struct urn_engine *e, int fd);
/* Hear the cold clients that wrote their eventfds, now and then. */
void urn_engine_hear(struct urn_engine *e, uint64_t now);

/* Add an adapter's share. The shard stays the caller's. (engine.c) */
int urn_engine_add(struct urn_engine *e, struct urn_shard *s);
void urn_engine_remove(struct urn_engine *e, struct urn_shard *s);

/* Join and leave the clients of a shard, in its engine's thread; however many there are. (doorbells.c) */
void urn_shard_add_client(struct urn_shard *s, struct urn_client_shard *c);
void urn_shard_remove_client(struct urn_shard *s, struct urn_client_shard *c);
/* It wrote its eventfd: a cold one that rang is looked at each turn from now on. */
void urn_client_shard_heard(struct urn_client_shard *c);
/* Take doorbells that were rung. returns: how many */
unsigned int urn_shard_doorbells(struct urn_shard *s);

/* Have a QP looked at again when its client's turn comes; struct urn_tp_config.ring_again. */
void urn_shard_ring_again(void *ctx, const struct urn_qp *qp);

/* Give a completion to the owner of its queue; struct urn_tp_config.give_cqe. (exchange.c) */
void urn_shard_give_cqe(void *ctx, const struct urn_tp_xcqe *x);
/* Put a message into another engine's ring. returns: was there room? */
bool urn_engine_put(struct urn_engine *to, const struct urn_xmsg *x);
/* Take what other engines handed over. returns: messages */
unsigned int urn_engine_take(struct urn_engine *e);
/* Hand packets of other engines over, and frames that another engine sends. */
void urn_shard_hand_over(struct urn_shard *s);
/* Tell the link this adapter's addresses; its first shard. */
void urn_shard_announce(struct urn_shard *s);
/* Try again to give completions that found no room: of each client that has some its share. */
void urn_shard_give_late(struct urn_shard *s);
/* Only one client's, max of them at most, as many as there is room for. returns: how many */
uint32_t urn_shard_give_late_of(struct urn_shard *s, struct urn_client_shard *c, uint32_t max);
/* A client goes, all of whose queues have gone. */
void urn_shard_forget_late(struct urn_shard *s, struct urn_client_shard *c);

/* A queue broke: its client's QPs that use it end, on all engines; struct urn_tp_config.cq_broken. (broken.c) */
void urn_shard_cq_broken(void *ctx, const struct urn_cq *cq);
/* Look at some QPs of clients with broken queues. returns: how many */
unsigned int urn_shard_walk_broken(struct urn_shard *s);
/* A client goes, all of whose queues have gone. */
void urn_shard_forget_broken(struct urn_shard *s, struct urn_client_shard *c);

/* A client's share of this shard. NULL: it has none, or there is no client (notify.c) */
struct urn_client_shard *urn_shard_share_of(const struct urn_shard *s, const struct urn_engine_client *c);
/* Look at the armed completion queues and events of this turn. */
void urn_shard_notify(struct urn_shard *s);
/* The events only; struct urn_tp_config.take_events. */
void urn_shard_tell_events(void *ctx);
/* A client goes: forget its late events. */
void urn_shard_forget_events(struct urn_shard *s, struct urn_client_shard *c);
/* A completion queue goes: forget it. However many others there are. */
void urn_shard_forget_cq(struct urn_shard *s, struct urn_cq *cq);

#endif
