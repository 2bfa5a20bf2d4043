/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared receive queues of a virtual device (doc/inside/failover.md). The receives are kept here
 * until they are complete, with room for a header in front of each. Each adapter has a real queue;
 * that of the home adapter has the receives, and all queue pairs with a session use the home
 * adapter. The home moves when its last queue pair has left it (FO-14).
 */
#ifndef URN_VERBS_SESSION_SRQ_H
#define URN_VERBS_SESSION_SRQ_H

#include "verbs/session/sv.h"

/* Kinds of a queue: the first connection decides, because receives for a session have a header. */
enum urn_sv_srq_kind {
	URN_SV_SRQ_OPEN,    /* no queue pair is connected: receives are kept */
	URN_SV_SRQ_PLAIN,   /* the primary adapter's as it is: no connection has a session */
	URN_SV_SRQ_SESSION, /* all connections have sessions */
};

/* States of a receive's slot. */
enum urn_sv_slot_state {
	URN_SV_SLOT_FREE, /* no receive is in it; in the list of free ones */
	URN_SV_SLOT_KEPT, /* waits for the home adapter; in the list of kept ones */
	URN_SV_SLOT_ON,	  /* an adapter's real queue has it, or one of its queue pairs */
	URN_SV_SLOT_LEFT, /* a queue pair that was fenced had it, with a header; until the drain */
	URN_SV_SLOT_TOLD, /* the machine knows of it, and decides (FO-14) */
};

#define URN_SV_SLOT_NONE UINT32_MAX /* no slot: the end of a list */

/* The slot of a receive. Context's lock. */
struct urn_sv_slot {
	uint64_t wr_id;		      /* the program's; valid unless FREE, as all below */
	const struct urn_sv_qp *left; /* the queue pair; valid: LEFT, TOLD */
	uint32_t num_sge;	      /* elements in urn_sv_srq.sge */
	uint32_t room;		      /* bytes of the elements */
	uint32_t next;		      /* next slot of its list; valid: FREE, KEPT */
	uint32_t posts;		      /* times that the slot was posted; low 24 bits are in wr_id */
	uint32_t on;		      /* adapter; valid: ON */
	enum urn_sv_slot_state state;
};

/* A real queue of an adapter. Context's lock. */
struct urn_sv_shared {
	struct ibv_srq *ibv;
	uint32_t users; /* real queue pairs on it */
	bool spoiled;	/* has receives that went elsewhere: its last user destroys it */
};

struct urn_sv_srq {
	struct ibv_srq ibv;
	LIST_ENTRY(urn_sv_srq) link; /* in the context; its lock, as all below */
	struct urn_sv_pd *pd;	     /* constant */
	struct urn_sv_life *life;    /* life of the primary adapter it is of; NULL: not plain */
	_Atomic enum urn_sv_srq_kind kind; /* changed once, with the lock */
	uint32_t home;			   /* adapter that has the receives; valid: SESSION */
	struct urn_sv_shared *shared[URN_SV_ADAPTERS]; /* NULL: not on that adapter */
	uint64_t moved_at;		/* ms: when it last left a home that lives; 0: never */
	bool leaving;			/* its connections were told to leave the home */
	uint32_t users;			/* the program's queue pairs on it */
	uint32_t held;			/* receives whose completions the program has not polled */
	uint32_t size;			/* slots, a power of two; constant */
	uint32_t max_sge;		/* elements of a receive; constant */
	uint32_t limit;			/* the program is told of fewer receives; 0: not armed */
	uint32_t got;			/* events handed out */
	bool due;			/* an event waits to be handed out */
	uint32_t free, kept, kept_last; /* lists of slots; kept_last valid with kept */
	struct urn_sv_slot *slot;
	struct ibv_sge *sge;			 /* max_sge elements for each slot */
	struct urn_sess_wire *area;		 /* headers of the slots, urn_alloc() */
	struct ibv_mr *area_mr[URN_SV_ADAPTERS]; /* NULL: not on that adapter */
};

/* True when a queue pair of a queue has a connection that lives. */
static inline bool
urn_sv_srq_lives(const struct urn_sv_qp *q, const struct urn_sv_srq *s)
{
	return q->srq == s && q->mode == URN_SV_SESSION && q->c.state != URN_SESS_DEAD;
}

/* ---- srq.c; the lock is held */

/* The real queue of an adapter for one more real queue pair; made if it is missing. returns: NULL
 * with errno and its text set */
struct urn_sv_shared *urn_sv_srq_use(struct urn_sv_srq *s, uint32_t adapter);
/* That queue pair is gone. */
void urn_sv_srq_leave(struct urn_sv_shared *on);
/* Give up an adapter's real queue, whose receives went elsewhere. */
void urn_sv_srq_spoil(struct urn_sv_srq *s, uint32_t adapter);
/* A lost adapter is about to be closed, and its queue pairs are gone. */
void urn_sv_srq_lost(struct urn_sv_srq *s, uint32_t adapter);
/* A connection has a session, or not: the first one decides. returns: 0; EOPNOTSUPP with its text:
 * others of the queue are of the other kind */
int urn_sv_srq_decide(struct urn_sv_srq *s, bool session);
/* True when a queue pair is the only one of its shared receive queue on a completion queue. */
bool urn_sv_srq_first(const struct urn_sv_qp *q, const struct ibv_cq *cq);
/* Arm the program's limit on the home adapter. returns: 0 or an errno value with its text */
int urn_sv_srq_arm(struct urn_sv_srq *s);
/* An adapter has fewer receives than a limit. returns: false: the event is of no use */
bool urn_sv_srq_limit(struct urn_sv_ctx *ctx, const struct ibv_srq *below);

/* ---- srq_run.c; the lock is held */

/* Free a slot. */
void urn_sv_srq_free(struct urn_sv_srq *s, uint32_t at);
/* A slot's receive waits for the home adapter, or goes there. */
void urn_sv_srq_back(struct urn_sv_srq *s, uint32_t at);
/* Post the receives that wait, if the home adapter is there. */
void urn_sv_srq_go(struct urn_sv_srq *s);
/* Take a receive completion of a queue pair with a session. */
void urn_sv_srq_take(struct urn_sv_path *p, const struct ibv_wc *wc);
/* Complete a receive by its header. at: its slot */
void urn_sv_srq_done(struct urn_sv_qp *q, uint32_t at, const struct urn_sess_header *h);
/* A queue pair is drained: tell the machine of the receives that it had. */
void urn_sv_srq_found(struct urn_sv_qp *q);
/* A connection is dead: the receives that it had go back. */
void urn_sv_srq_dead(struct urn_sv_qp *q);
/* The real queue pairs of a queue pair are gone, or reset. */
void urn_sv_srq_quit(struct urn_sv_qp *q);

/* ---- srq_move.c; the lock is held */

/* A connection begins. */
void urn_sv_srq_join(struct urn_sv_qp *q);
/* Note for the machine which paths the queue keeps a connection from. */
void urn_sv_srq_shun(struct urn_sv_qp *q);
/* The connection of a queue pair may go on when the queue's receives are where it goes. returns:
 * false: later, urn_sv_srq_settle() sees to it */
bool urn_sv_srq_there(struct urn_sv_qp *q);
/* Move homes, and let connections go on that wait for it; for the thread. */
void urn_sv_srq_settle(struct urn_sv_ctx *ctx);
/* Shut the real queue pair of a path that is to be made anew. now: ms; returns: true: it has no
 * receive of its shared queue in hand, or does not say; false: later */
bool urn_sv_srq_given(struct urn_sv_path *p, uint64_t now);
/* The real queue pairs of a queue pair are about to be destroyed or reset: they give back the
 * receives that they have in hand, which are whole messages only if their completions say so. */
void urn_sv_srq_take_back(struct urn_sv_qp *q);
/* True when the real queue pair of a path can't be used any more, because receives of its queue
 * went elsewhere. */
bool urn_sv_srq_stale(const struct urn_sv_path *p);

/* ---- query.c; the lock is held */

/* One more event waits to be handed out; or one that nobody will fetch is taken back. */
void urn_sv_event_tell(struct urn_sv_ctx *ctx);
void urn_sv_event_hush(struct urn_sv_ctx *ctx);

/* ---- srq_last.c; the lock is held */

/* A queue pair takes no more receives of its shared queue: the program is to be told once. Nothing
 * happens to one without such a queue. */
void urn_sv_last_want(struct urn_sv_qp *q);
/* Give the events that are wanted, behind the completions; for the thread. */
void urn_sv_last_settle(struct urn_sv_ctx *ctx);
/* An adapter says that a real queue pair has given back all receives. */
void urn_sv_last_reached(struct urn_sv_ctx *ctx, uint32_t adapter, uint32_t qpn);
/* Hand the event of a queue pair out. returns: false: there is none */
bool urn_sv_last_take(struct urn_sv_qp *q);
/* The queue pair is reset or destroyed: an event that waits is of no use. */
void urn_sv_last_forget(struct urn_sv_qp *q);

#endif
