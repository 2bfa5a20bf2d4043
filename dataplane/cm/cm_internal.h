/* SPDX-License-Identifier: BSD-3-Clause */
/* Structs and calls that the files of connection management share (cm.h). */
#ifndef URN_CM_CM_INTERNAL_H
#define URN_CM_CM_INTERNAL_H

#include "base/draw.h"
#include "base/hash.h"
#include "base/pool.h"
#include "cm/cm.h"

#include <errno.h>

#define CM_NIL URN_HASH_NIL

/* Peers' addresses are told apart by so many numbers, to limit what one peer may begin. */
enum { CM_SOURCES = 256 };

enum {
	CM_LEFT = 256, /* services whose listeners ended a moment ago that are remembered at most */
	CM_LEFT_OWNER = 4,   /* services of one owner among these */
	CM_HELD = 32,	     /* requests that wait for a listener */
	CM_HELD_SERVICE = 8, /* requests for one service among these */
	CM_SHARERS = 64,     /* listeners of one service */
};

/* The end of a listener is remembered so long, ns: a program may set up a connection before it
 * listens anew. */
#define CM_LEFT_NS 2000000000ull
/* A request waits at most so long, ns: less than until its peer repeats it, after 1 s (lib/dropin)
 * or 4 s (Linux). */
#define CM_HOLD_NS 500000000ull

/* Keys by which an id is looked up besides its number; each has a chain of the hash. */
enum cm_hash {
	CM_BY_PEER,    /* peer's address and the peer's id; for a listener the service */
	CM_BY_QPN,     /* peer's address and the peer's queue pair */
	CM_BY_OWN_QPN, /* our queue pair, once the peer may know the QP */
	CM_HASHES,
};

struct cm_conn {
	TAILQ_ENTRY(cm_conn) link; /* in the owner's list, the orphans, or the free places */
	struct urn_cm_owner *owner; /* NULL: an orphan, or free */
	uint32_t id;               /* 0: free */
	uint32_t uses; /* drawn for each use of this place; its low bits are part of the id */
	uint32_t chain[CM_HASHES]; /* next in the bucket */
	bool hashed[CM_HASHES];
	uint8_t state;             /* enum urn_cm_state */
	bool active;               /* this side asked */
	bool sidr;
	bool knows_peer;           /* remote_id is valid */
	bool was_up;               /* TIMEWAIT: after a connection; false: after a refusal, which is in mad */
	bool waits;                /* counts in its listener's backlog */
	bool half; /* made for a peer's request, which is not answered: counts in urn_cm.half, and
		      its owner's */
	bool excused;              /* this side asked the peer for patience (MRA): the peer does not ask again soon */
	bool insists;	/* ESTABLISHED, TIMEWAIT: the message in mad is still repeated without being
			   asked */
	uint8_t doubts; /* ESTABLISHED: questions sent to a peer that may have forgotten the
			   connection, of max_tries + 1; 0: no question is under way */
	uint8_t tries;             /* messages sent of max_tries + 1 */
	uint8_t max_tries;
	uint8_t mras;              /* MRAs taken from the peer in this exchange */
	uint8_t timeout;           /* code: wait for an answer of the peer */
	uint8_t ack_timeout;       /* code: how long packets may be on their way */
	uint8_t peer[16], own[16];
	uint32_t remote_id;
	uint32_t qpn, remote_qpn;
	uint32_t listener;         /* id of the listener that a request came to; 0: none */
	uint32_t pending, backlog; /* LISTEN: requests that wait, and that may wait */
	bool shared;	/* LISTEN: other owners of the user may have the cookie's service; request:
			   its listener's */
	bool heir;	/* LISTEN: gets requests before listeners without this */
	uint64_t given; /* LISTEN: urn_cm.given when it got its last request; 0: never */
	uint64_t service_id;
	uint64_t cookie;
	int32_t channel;           /* the owner's, for events */
	uint32_t use;              /* index of the channel in urn_cm.use; CM_NIL: an orphan, or free */
	uint64_t tid;              /* transaction id of the exchange */
	uint64_t doubt_tid; /* transaction id of the questions that `doubts` counts; 0: there was
			       none */
	uint64_t due;              /* ns; when the timer runs out */
	uint32_t at;               /* index in the heap of timers; CM_NIL: the timer does not run */
	uint8_t mad[URN_MAD_BYTES]; /* message sent last, to be repeated */
};

/* A channel of an owner, and how many of the owner's ids use the channel for events. */
struct cm_use {
	const struct urn_cm_owner *owner;
	int32_t channel;
	uint32_t ids;              /* 0: free */
	uint32_t next;             /* next in the bucket, or of the free entries */
};

/* A service whose listener ended. owner: the state machine */
struct cm_left {
	uint64_t service_id;
	uint64_t until; /* ns; requests that come before then wait. 0: never used */
	const struct urn_cm_owner *owner; /* to be compared only: the owner may be gone */
};

/* A request that waits for a listener of its service. owner: the state machine; valid if used */
struct cm_held {
	bool used;
	bool wanted;	    /* a listener came */
	uint32_t remote_id; /* the peer's name for it */
	uint64_t service_id;
	uint64_t due; /* ns; then it goes to the listener, or is refused */
	uint8_t peer[16], own[16];
	struct urn_cm_msg m;
};

struct urn_cm {
	struct urn_cm_config cfg;
	struct urn_draw draw;	   /* numbers that peers see */
	uint32_t bits;             /* low bits of an id that are its index */
	uint32_t fresh;            /* index of the first place never used */
	uint32_t used;             /* ids in use */
	uint32_t half;		   /* ids with `half` */
	uint32_t half_of[CM_SOURCES]; /* the same, by the peers' addresses (cm_source()) */
	struct cm_conns free;      /* places used before; longest free first */
	struct cm_conns orphans;   /* oldest first */
	struct urn_hash hash[CM_HASHES]; /* by enum cm_hash, for entries of conn */
	struct urn_hash use_hash;  /* for entries of use */
	struct cm_use *use;        /* one for each id at most */
	struct urn_pool uses;      /* entries of use that are free */
	uint32_t *heap;            /* indices of ids by due */
	uint32_t heap_n;
	uint64_t seen;	 /* ns; the time at the last tick */
	uint64_t given;	 /* requests given to listeners since the start */
	uint32_t held_n; /* entries of held in use */
	struct cm_held held[CM_HELD];
	struct cm_left left[CM_LEFT]; /* by a hash of the service */
	struct urn_counts counts;
	struct cm_conn *conn;
};

/* ---- cm_table.c */

/*
 * True when a request of this peer to this owner's listener may have an id: one peer and one owner
 * get an eighth of them each, all together half. A 256th of them each owner gets from any peer. The
 * rest stays for requests of our own.
 */
bool cm_may_begin(const struct urn_cm *cm, const struct urn_cm_owner *o, const uint8_t peer[16]);
/* An id was made for a request of a peer. */
void cm_begins(struct urn_cm *cm, struct cm_conn *e);
/* The id has its connection, ends, or loses its owner. */
void cm_begun(struct urn_cm *cm, struct cm_conn *e);

/* Numbers that a peer cannot guess from the outside. */
uint64_t cm_draw(struct urn_cm *cm);
struct cm_conn *cm_by_id(const struct urn_cm *cm, uint32_t id);
struct cm_conn *cm_by_peer(const struct urn_cm *cm, const uint8_t peer[16], uint32_t remote_id,
			   bool sidr);
struct cm_conn *cm_by_qpn(const struct urn_cm *cm, const uint8_t peer[16], uint32_t qpn);
struct cm_conn *cm_by_service(const struct urn_cm *cm, uint64_t service_id);
/* The next listener of the service of listener l; NULL: there is none. */
struct cm_conn *cm_next_of_service(const struct urn_cm *cm, const struct cm_conn *l);
void cm_hash(struct urn_cm *cm, struct cm_conn *e, enum cm_hash h);
void cm_unhash(struct urn_cm *cm, struct cm_conn *e, enum cm_hash h);
/* A new id of an owner, IDLE. returns 0, EDQUOT, ENOSPC */
int cm_alloc(struct urn_cm *cm, struct urn_cm_owner *o, int32_t channel, struct cm_conn **out);
/* Count an id more, or less, of the owner's user, over all adapters. returns: true when the user
 * may have it */
bool cm_user_takes(const struct urn_cm_owner *o);
void cm_user_gives(const struct urn_cm_owner *o);
/* Take an id from its owner. */
void cm_orphan(struct urn_cm *cm, struct cm_conn *e);
/* Free an id's place. */
void cm_free(struct urn_cm *cm, struct cm_conn *e);

/* ---- cm_use.c: channels that ids of an owner use, so that no look-up goes through all ids */

/* seed: of the hash, random. returns: true when there was memory */
bool cm_use_create(struct urn_cm *cm, uint32_t seed);
void cm_use_destroy(struct urn_cm *cm);
/* Count an id more of this channel; an id less. */
uint32_t cm_use_begin(struct urn_cm *cm, const struct urn_cm_owner *o, int32_t channel);
void cm_use_end(struct urn_cm *cm, uint32_t use);

/* ---- cm_held.c: requests that wait for a listener */

/* The owner of listener l ends the listener. The owner stays, and may listen anew soon. */
void cm_leaves(struct urn_cm *cm, const struct cm_conn *l, uint64_t now);
/* The owner goes: services that it listened at are refused. */
void cm_left_forget(struct urn_cm *cm, const struct urn_cm_owner *o);
/*
 * Let a request for a service without a listener wait. returns: CM_RX, or CM_DUPLICATE: it waits
 * already; CM_NO_SERVICE: to be refused, because no listener ended lately, or too many requests
 * wait
 */
enum urn_counter cm_hold(struct urn_cm *cm, const struct urn_cm_msg *m, const uint8_t own[16],
			 const uint8_t peer[16], uint64_t now);
/* The peer takes its request back. returns: true when it waited */
bool cm_held_withdrawn(struct urn_cm *cm, const uint8_t peer[16], uint32_t remote_id);
/* The service has a listener: the next tick gives it the requests that waited. */
void cm_held_wanted(struct urn_cm *cm, uint64_t service_id);
/* Time at which the next held request is due, ns; UINT64_MAX: none waits */
uint64_t cm_held_due(const struct urn_cm *cm);
/* Give requests that are due to their listener, or refuse them. returns: their number, at most
 * CM_HELD */
unsigned int cm_held_tick(struct urn_cm *cm, uint64_t now);

/* ---- cm_heir.c: services that several owners share */

/* True when a listener may join those of its service. returns: 0; EADDRINUSE */
int cm_may_listen(const struct urn_cm *cm, const struct urn_cm_owner *o,
		  const struct urn_abi_cm_listen *p);
/*
 * A listener has joined. The first heir gets requests that came before: those that wait at
 * listeners that are no heirs are forgotten, and their peers ask again.
 */
void cm_joined(struct urn_cm *cm, const struct cm_conn *l);
/* The listener that gets the next request of a service; NULL: there is none. O(listeners of the
 * service), CM_SHARERS at most */
struct cm_conn *cm_pick(const struct urn_cm *cm, uint64_t service_id);

/* ---- cm_input.c */

/*
 * A request for a connection that belongs to no id. may_wait: for a listener, if one ended lately.
 * returns: the counter that applies
 */
enum urn_counter cm_request(struct urn_cm *cm, const struct urn_cm_msg *m, const uint8_t own[16],
			    const uint8_t peer[16], uint64_t now, bool may_wait);

/* ---- cm_timer.c */

/* Let the id's timer run out at `due`, whether it ran before or not. */
void cm_timer(struct urn_cm *cm, struct cm_conn *e, uint64_t due);
void cm_timer_stop(struct urn_cm *cm, struct cm_conn *e);

/* ---- cm_say.c: messages and events of an id */

/* Begin a message: fill in its attribute, the two ids, and the exchange. */
void cm_head(const struct cm_conn *e, struct urn_cm_msg *m, enum urn_cm_attr attr);
/* Keep a message for retries, and send it; the id's timer waits for an answer. */
void cm_ask(struct urn_cm *cm, struct cm_conn *e, const struct urn_cm_msg *m, uint64_t now);
/* Send the kept message once more, and wait for an answer. */
void cm_ask_again(struct urn_cm *cm, struct cm_conn *e, uint64_t now);
/* Keep a message that waits for no answer, and send it. */
void cm_say(struct urn_cm *cm, struct cm_conn *e, const struct urn_cm_msg *m);
/* The peer did not answer in time: its MAC address is doubted. */
void cm_doubt(const struct urn_cm *cm, const struct cm_conn *e);
/* Repeat the kept message, which the peer did not get. */
void cm_repeat(struct urn_cm *cm, struct cm_conn *e);
/* Send a message without keeping it. */
void cm_send(struct urn_cm *cm, const uint8_t own[16], const uint8_t peer[16],
	     const struct urn_cm_msg *m);
/* The same; while the peer's MAC address is not known the message waits for it. */
void cm_send_late(struct urn_cm *cm, const uint8_t own[16], const uint8_t peer[16],
		  const struct urn_cm_msg *m);
void cm_say_rej(struct urn_cm *cm, struct cm_conn *e, uint16_t reason, uint8_t about);
void cm_say_mra(struct urn_cm *cm, struct cm_conn *e, uint8_t about);
/* m: a DREQ with its private data */
void cm_say_dreq(struct urn_cm *cm, struct cm_conn *e, struct urn_cm_msg *m, uint64_t now);
/* Give an event to the owner, if there is one; m: the message that caused it, or NULL. returns: false: no room */
bool cm_tell(struct urn_cm *cm, struct cm_conn *e, enum urn_cm_event_type type,
	     const struct urn_cm_msg *m, uint16_t reason);
/* The peer has answered: from here on the connection counts for the id's owner (urn_cm_claimed()). */
void cm_stands(struct urn_cm *cm, const struct cm_conn *e);

/* ---- cm_stale.c */

/*
 * A message says that the peer connects a queue pair anew which has the connection `old`, so that
 * the peer may have forgotten the connection. The peer is asked, unless it is being asked; the
 * connection ends if the peer says so. The caller refuses the message, which may come again.
 */
void cm_stale(struct urn_cm *cm, struct cm_conn *old, uint64_t now);
/* The timer of an established connection ran out: ask once more, if the peer is being asked. */
void cm_stale_again(struct urn_cm *cm, struct cm_conn *e, uint64_t now);
/* A DREP comes for an established connection. returns: the counter that applies */
enum urn_counter cm_stale_answer(struct urn_cm *cm, struct cm_conn *e, const struct urn_cm_msg *m,
				 uint64_t now);

/* ---- cm_state.c */

void cm_timewait(struct urn_cm *cm, struct cm_conn *e, uint64_t now);
/* Go to IDLE and forget the peer. An orphan is freed. */
void cm_idle(struct urn_cm *cm, struct cm_conn *e);
/* Take a request out of its listener's backlog. */
void cm_no_longer_waits(struct urn_cm *cm, struct cm_conn *e);
/* The timer of an id ran out. */
void cm_timed_out(struct urn_cm *cm, struct cm_conn *e, uint64_t now);
/*
 * Repeat the kept message without being asked, with the timeout and as often as a request's
 * retries. For a message that ends an exchange in which the peer was asked for patience: if
 * the message is lost, the peer finds out only when its patience ends, a minute later.
 */
void cm_insist(struct urn_cm *cm, struct cm_conn *e, uint64_t now);
/* A message to an id. returns the counter that applies */
enum urn_counter cm_message(struct urn_cm *cm, struct cm_conn *e, const struct urn_cm_msg *m,
			    uint64_t now);

static inline uint64_t
cm_patience(uint8_t code)
{
	uint8_t c = code < URN_CM_TIMEOUT_MIN ? URN_CM_TIMEOUT_MIN : code;

	return urn_cm_ns(c > URN_CM_TIMEOUT_MAX ? URN_CM_TIMEOUT_MAX : c);
}

static inline bool
cm_orphaned(const struct cm_conn *e)
{
	return !e->owner;
}

#define CM_COUNT(cm, name) urn_counts_add(&(cm)->counts, URN_C_##name)

#endif
