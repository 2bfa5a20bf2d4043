/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A source of work: the thing behind one doorbell bit, and the element of the schedule. Queue pairs
 * are sources; the engine's scan of doorbells and the schedule know nothing else about them. An
 * idle source is in no list and costs nothing.
 */
#ifndef URN_TRANSPORT_SOURCE_H
#define URN_TRANSPORT_SOURCE_H

#include "abi/urn_abi.h"
#include "transport/failure.h"
#include "transport/wheel.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rte_branch_prediction.h>

struct urn_tp;
struct urn_tp_share;

/* Kinds of sources. A compare tells queue pairs: their path has no call through a pointer. */
enum urn_source_kind {
	URN_SOURCE_QP,  /* embedded in a struct urn_qp, as its first member */
	URN_SOURCE_OPS, /* embedded in a struct urn_source_ops_user, as its first member */
};

/* Bits of struct urn_source.flags that are the source's; the others are its owner's. */
enum urn_source_flag {
	URN_SOURCE_SCHED = 1 << 0,   /* in the schedule */
	URN_SOURCE_PARKED = 1 << 1,  /* waits for its time (struct urn_pace) */
	URN_SOURCE_STOPPED = 1 << 2, /* waits until its priority may go on (urn_sched_stop()) */
	/* Three bits: the priority of the frames that the source waits to send; valid with
	 * URN_SOURCE_STOPPED. */
	URN_SOURCE_PRIORITY = 7 << 3,
	URN_SOURCE_AWAY = 1 << 7,   /* in another list of its owner's, by the same links */
	URN_SOURCE_CLOSED = 1 << 9, /* enters no list: its owner ends */
	/* May not enter the schedule. A source that is stopped is among them, and urn_sched_add()
	 * lets it enter all the same. */
	URN_SOURCE_HELD = URN_SOURCE_SCHED | URN_SOURCE_PARKED | URN_SOURCE_STOPPED |
			  URN_SOURCE_AWAY | URN_SOURCE_CLOSED,
};

struct urn_source {
	struct urn_source *next;    /* next in its list; valid while in one */
	struct urn_source *prev;    /* previous there; not valid for the first */
	struct urn_tp_share *share; /* share of the client that made it; set by the maker, never NULL */
	uint32_t flags;             /* enum urn_source_flag, and bits of the owner */
	uint32_t db : 18;           /* doorbell id, an index of its client's sources; the same for its life */
	uint32_t kind : 2;          /* enum urn_source_kind; the same for its life */
	uint32_t rest : 12;         /* the owner's */
};
_Static_assert(sizeof(struct urn_source) == 32, "half a line of a queue pair");
_Static_assert(URN_ABI_MAX_QP_ENGINE <= 1 << 18, "urn_source.db");

/*
 * A client's part in multicast on an engine (mcast.h), or another engine's: its places in groups,
 * and copies of datagrams. Engine's thread only.
 */
struct urn_mcast_share {
	LIST_HEAD(, urn_mcast_place)
	places;		       /* its places in groups, one for each; not of an engine */
	uint32_t groups;       /* number of those */
	uint32_t members;      /* attachments of its queue pairs; at least `groups` */
	uint32_t turn, copies; /* copies made for it in that turn */
};

#define URN_SCHED_PRIORITIES 8u

/*
 * A user's part of those that wait because a priority is stopped. A source that is woken meanwhile
 * leaves its user's place, and its client's, behind: to be rung puts nobody back.
 */
struct urn_stop_user {
	/* Clients that have places, in the order in which they go on; made with the first. */
	TAILQ_HEAD(, urn_tp_share) clients;
	TAILQ_ENTRY(urn_tp_user) link; /* among the users that have places; valid with `placed` */
	bool placed;		       /* the user has a place; true with a client */
};

/* A client's part of those that wait because a priority is stopped. */
struct urn_stop_client {
	/* Sources that wait, in the order in which they go on; tail valid with head. */
	struct urn_source *head, *tail;
	TAILQ_ENTRY(urn_tp_share) link; /* among its user's clients; valid with `placed` */
	bool placed;			/* the client has a place; true with head */
};

/*
 * All clients of a user on an engine: their place in the schedule, and what they hold together. A
 * user gets the same turns with one client as with hundreds, and the more its clients hold of a
 * pool the less each may add (base/fair.h). Engine's thread only.
 */
struct urn_tp_user {
	/* Clients with work to do, in the order of their turns; tail valid with head. */
	struct urn_tp_share *head, *tail;
	/* In the round of users; valid with head, prev not for the first. */
	struct urn_tp_user *next, *prev;
	uint32_t debt;	  /* bytes sent beyond those of turns: URN_TURN_BYTES of it cost a turn */
	uint32_t turn;	  /* turn of the engine in which clients gave up turns last */
	uint32_t paid;	  /* turns that they gave up in it */
	uint32_t went_on; /* turn of the engine in which a source went on after a pause last */
	uint32_t
		long_at; /* turn of the engine in which a turn of its was not short last (part.h) */
	uint32_t part_at;	  /* turn of the engine in which it had a part last */
	uint32_t part;		  /* bytes used of the part; valid in the turn part_at */
	uint32_t work, ext, recv; /* entries that its clients hold: the sums of their shares' */
	uint32_t held, repairs, states, trace, am; /* likewise */
	uint32_t groups, members; /* places in multicast groups, attachments: likewise */
	struct urn_stop_user stop[URN_SCHED_PRIORITIES]; /* its clients that wait, by priority */
};

/*
 * A client's share of an engine: entries that its QPs hold of the pools, and its place in the
 * schedule. All clients share the pools, and work that waits for a silent peer may wait for
 * ever: so the less is left, the less one client may hold, and something is always left for others
 * (base/fair.h).
 */
struct urn_tp_share {
	/* The client's shares by engine, this one too, the same for its life; NULL: no client. */
	struct urn_tp_share *const *sibling;
	/* User of the client, fixed before it has work; NULL: the share stands for one (`own`). */
	struct urn_tp_user *user;
	uint32_t work, ext, recv; /* entries held; engine's thread only */
	uint32_t held; /* packets kept ahead of their turn, and UC packets that wait for memory;
			  engine's thread only */
	uint32_t uc_n; /* UC QPs that take packets (uc_hold.h); engine's thread only */
	uint32_t uc_window; /* packets that each of them may have on their way from another
				 dataplane; valid with uc_n */
	/* Packets in flight that the client left to nobody; some have come back if nobody has
	 * fewer (flow_strand.c). Engine's thread only. */
	uint32_t orphans;
	uint32_t debt;	  /* bytes, as a user's among users; engine's thread only */
	uint32_t repairs; /* QPs that repair losses; engine's thread only */
	uint32_t states;  /* QPs with a state of congestion (congestion.c); engine's thread only */
	uint32_t trace;           /* QPs with fingerprints; engine's thread only */
	uint32_t am; /* packets of operations on remote memory (am/out.c); engine's thread only */
	struct urn_mcast_share mcast; /* groups its QPs are attached to; engine's thread only */
	uint16_t trace_oldest, trace_newest; /* ordered by when they got them, index in the pool; 0: none (kept.h) */
	struct urn_source *head, *tail; /* sources with work to do, in the order of their turns; tail valid with head */
	struct urn_tp_share *next, *prev; /* in the round of its user's clients; valid with head,
					     prev not for the first */
	/* Strands of flows that wait for work (flow_dry.c), in the order of their turns; dry_tail
	 * valid with dry. */
	struct urn_source *dry, *dry_tail;
	struct urn_tp_share *dry_next, *dry_prev; /* among the clients with such; valid with dry,
						     dry_prev not for the first */
	struct urn_failures failures;		  /* its latest errors here (failure.h) */
	struct urn_stop_client stop[URN_SCHED_PRIORITIES]; /* its sources that wait, by priority */
	struct urn_tp_user own; /* the user that the share stands for; valid without `user` */
};

/* The user of a share's client, or the one that the share stands for. */
static inline struct urn_tp_user *
urn_share_user(struct urn_tp_share *share)
{
	return likely(share->user != NULL) ? share->user : &share->own;
}

/* True when the share is a client's; false for NULL, and for the share of QPs without a client. */
static inline bool
urn_share_has_client(const struct urn_tp_share *share)
{
	return share && share->sibling;
}

/*
 * The share that a client has on an engine. share: any share of the client, or NULL; engine: index
 * of the engine. returns: NULL when there is no client, or the engine does not serve it
 */
static inline struct urn_tp_share *
urn_share_on(const struct urn_tp_share *share, uint32_t engine)
{
	return urn_share_has_client(share) ? share->sibling[engine] : NULL;
}

/* Operations of a source that is no queue pair. In the engine's thread. */
struct urn_source_ops {
	/* The source's doorbell was rung. */
	void (*rung)(struct urn_tp *tp, struct urn_source *src);
	/* Use one share of a turn; the source is in no list then. returns: true when it has more to do */
	bool (*serve)(struct urn_tp *tp, struct urn_source *src);
	/*
	 * The source's timer is due (struct urn_source_timer), or its pace (struct urn_pace): it
	 * has no turn then. NULL: it has no timer, and a turn when its pace is due
	 */
	void (*due)(struct urn_tp *tp, struct urn_source *src);
	/*
	 * The source ends: its client goes. Called until true, a turn or more between two calls;
	 * true when the source is in no list, none of its timers is started, nothing of it waits
	 * for memory, and its own memory is freed.
	 */
	bool (*end)(struct urn_tp *tp, struct urn_source *src);
};

/* Head of a source of the kind URN_SOURCE_OPS. */
struct urn_source_ops_user {
	struct urn_source source;         /* kind URN_SOURCE_OPS */
	const struct urn_source_ops *ops; /* operations of the source; never NULL */
};

#define URN_SOURCE_PRIORITY_SHIFT 3

enum {
	URN_TURN_FRAMES = 16, /* frames of requests, and of answers, in a queue pair's turn */
	/* Bytes of a turn: those of 16 frames with an MTU of 1024, from the BTH on. A client that
	 * sends more gives up later turns for that, while others have work (sched.h). */
	URN_TURN_BYTES = URN_TURN_FRAMES * (1024 + 64),
	/*
	 * Bytes that a user has in a turn of the engine beside one with short turns (part.h), but
	 * for the last frame. Each frame counts as 512 bytes at least, because its headers cost as
	 * much.
	 */
	URN_PART_BYTES = 4096,
	URN_PART_FRAME = 512,
	URN_PART_LONG = 4096 + 64, /* bytes of a short turn: of one frame with the longest MTU */
	URN_PART_TURNS =
		256, /* turns of the engine for which a user counts as one with short turns */
};

/* A user whose turns are short: one frame each, and nothing is left to do behind it. */
struct urn_sched_short {
	const struct urn_tp_user *user; /* compared only: the user may be gone; NULL: none yet */
	uint32_t at;			/* turn of the engine in which it had such a turn last */
};

/*
 * Sources with work to do. The round goes over users, then over the clients of a user, and then
 * over the sources of a client: a user gets the same turns with one client as with hundreds, and a
 * client with one busy source as with thousands. Sources of a priority that the port's peer has
 * paused for long are in a round of the same kind beside it, and cost nothing there.
 */
struct urn_sched {
	struct urn_tp_user *head,
		*tail;	 /* users, in the order of their turns; tail valid with head */
	uint32_t n;	 /* sources in the schedule, of all clients */
	uint8_t stopped; /* bit p: no more frames of priority p are to be made; set by the engine */
	uint8_t waiting; /* bit p: sources wait, waiting_n[p] of them */
	uint8_t placed; /* bit p: users have places in stop[p], perhaps only such as sources left */
	uint8_t resume_at; /* priority whose sources go on next, of those that may */
	bool resumed;  /* the last turn was of a source that waited; valid while some may go on */
	bool over;     /* this turn of the engine is to end, and the next one goes on */
	uint16_t paid; /* turns that users and clients gave up in this turn of the engine */
	uint32_t turn; /* number of this turn of the engine; wraps */
	/* The two users that had short turns last, the newer one first: one of them is another user
	 * than any given one, if any is. */
	struct urn_sched_short brief[2];
	uint32_t parted_at; /* turn of the engine in which a user had a part only */
	bool parts;	    /* a user counts as one with short turns in this turn of the engine */
	uint32_t waiting_n[URN_SCHED_PRIORITIES]; /* sources that wait, by priority */
	/* Users that have places, in the order in which they go on, by priority; valid with the bit
	 * in `placed`. */
	TAILQ_HEAD(, urn_tp_user) stop[URN_SCHED_PRIORITIES];
};

/* A source's "not before". Only paced sources have one, in memory of their owner. */
struct urn_pace {
	struct urn_timer timer;    /* started while the source is parked */
	struct urn_source *source; /* the source; set by the owner, never NULL */
	uint64_t not_before;       /* ns: time of the source's next turn; valid while it is parked */
};

/* A timer of a source of the kind URN_SOURCE_OPS, in memory of its owner; calls `due`. */
struct urn_source_timer {
	struct urn_timer timer;	   /* kind URN_TIMER_SOURCE */
	struct urn_source *source; /* the source; set by the owner, never NULL */
};

/* Operations of a source of the kind URN_SOURCE_OPS. */
static inline const struct urn_source_ops *
urn_source_ops(const struct urn_source *src)
{
	return ((const struct urn_source_ops_user *)src)->ops;
}

#endif
