/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of connection management share (cm.h). */
#ifndef URN_CM_CM_INTERNAL_H
#define URN_CM_CM_INTERNAL_H

#include "cm/cm.h"

#include <errno.h>

#define CM_NIL UINT32_MAX

/* By what an id is looked up besides its number; a chain of the hash for each. */
enum cm_hash {
	CM_BY_PEER,    /* peer's address and its id of it; or the service, of a listener */
	CM_BY_QPN,     /* peer's address and its queue pair */
	CM_BY_OWN_QPN, /* our queue pair, once the peer may know of it */
	CM_HASHES,
};

struct cm_conn {
	TAILQ_ENTRY(cm_conn) link; /* owner's list, the orphans, or the free ones */
	struct urn_cm_owner *owner; /* NULL: an orphan, or free */
	uint32_t id;               /* 0: free */
	uint32_t uses;             /* of this place; part of the id */
	uint32_t chain[CM_HASHES]; /* next in the bucket */
	bool hashed[CM_HASHES];
	uint8_t state;             /* enum urn_cm_state */
	bool active;               /* this side asked */
	bool sidr;
	bool knows_peer;           /* remote_id is valid */
	bool was_up;               /* TIMEWAIT: of a connection; else of a refusal, which is in mad */
	bool waits;                /* counts in its listener's backlog */
	bool excused;              /* this side asked the peer for patience (MRA): it does not ask again soon */
	bool insists;              /* TIMEWAIT: the refusal in mad is still repeated unasked */
	uint8_t tries;             /* messages sent of max_tries + 1 */
	uint8_t max_tries;
	uint8_t mras;              /* taken from the peer in this exchange */
	uint8_t timeout;           /* code: patience with the peer */
	uint8_t ack_timeout;       /* code: how long packets may be on their way */
	uint8_t peer[16], own[16];
	uint32_t remote_id;
	uint32_t qpn, remote_qpn;
	uint32_t listener;         /* id of it, of a request that came; 0 */
	uint32_t pending, backlog; /* LISTEN: requests that wait, and may */
	uint64_t service_id;
	uint64_t cookie;
	int32_t channel;           /* the owner's, for events */
	uint32_t use;              /* index of it in urn_cm.use; CM_NIL: an orphan, or free */
	uint64_t tid;              /* of the exchange */
	uint64_t due;              /* ns; when the timer runs out */
	uint32_t at;               /* in the heap of timers; CM_NIL: it does not run */
	uint8_t mad[URN_MAD_BYTES]; /* sent last, to be repeated */
};

/* A channel of an owner's, and how many of its ids tell of events by it. */
struct cm_use {
	const struct urn_cm_owner *owner;
	int32_t channel;
	uint32_t ids;              /* 0: free */
	uint32_t next;             /* in the bucket, or of the free ones */
};

struct urn_cm {
	struct urn_cm_config cfg;
	uint64_t rng;
	uint32_t hash_seed;        /* peers can't choose to collide */
	uint32_t bits;             /* of an id that are the index */
	uint32_t fresh;            /* places never used begin here */
	uint32_t used;             /* ids */
	struct cm_conns free;      /* used before; longest free first */
	struct cm_conns orphans;   /* oldest first */
	uint32_t buckets;          /* a power of two */
	uint32_t *bucket[CM_HASHES];
	uint32_t *use_bucket;
	struct cm_use *use;        /* as many as ids */
	uint32_t use_free;         /* first of the free ones; CM_NIL: none */
	uint32_t use_fresh;        /* those never used begin here */
	uint32_t *heap;            /* indices of ids by due */
	uint32_t heap_n;
	struct urn_counters c;
	struct cm_conn *conn;
};

/* ---- cm_table.c */

/* Numbers that a peer cannot guess from the outside. */
uint64_t cm_draw(struct urn_cm *cm);
struct cm_conn *cm_by_id(const struct urn_cm *cm, uint32_t id);
struct cm_conn *cm_by_peer(const struct urn_cm *cm, const uint8_t peer[16], uint32_t remote_id,
			   bool sidr);
struct cm_conn *cm_by_qpn(const struct urn_cm *cm, const uint8_t peer[16], uint32_t qpn);
struct cm_conn *cm_by_service(const struct urn_cm *cm, uint64_t service_id);
void cm_hash(struct urn_cm *cm, struct cm_conn *e, enum cm_hash h);
void cm_unhash(struct urn_cm *cm, struct cm_conn *e, enum cm_hash h);
/* A new id of an owner, IDLE. returns 0, EDQUOT, ENOSPC */
int cm_alloc(struct urn_cm *cm, struct urn_cm_owner *o, int32_t channel, struct cm_conn **out);
/* Take an id from its owner. */
void cm_orphan(struct urn_cm *cm, struct cm_conn *e);
/* Nobody has it any more. */
void cm_free(struct urn_cm *cm, struct cm_conn *e);

/* ---- cm_use.c: which channels ids of an owner use, so that nobody has to look at all of them */

/* returns: was there memory? */
bool cm_use_create(struct urn_cm *cm);
void cm_use_destroy(struct urn_cm *cm);
/* One id more has this channel; one less. */
uint32_t cm_use_begin(struct urn_cm *cm, const struct urn_cm_owner *o, int32_t channel);
void cm_use_end(struct urn_cm *cm, uint32_t use);
/* Ids that are counted. For tests: O(all) */
uint32_t cm_use_sum(const struct urn_cm *cm);

/* ---- cm_timer.c */

/* Have its timer run out then, whether it ran before or not. */
void cm_timer(struct urn_cm *cm, struct cm_conn *e, uint64_t due);
void cm_timer_stop(struct urn_cm *cm, struct cm_conn *e);

/* ---- cm_say.c: messages and events of an id */

/* Fill in who says it, in which exchange. */
void cm_head(const struct cm_conn *e, struct urn_cm_msg *m, enum urn_cm_attr attr);
/* Keep the message as what was sent last, and send it; its timer waits for an answer. */
void cm_ask(struct urn_cm *cm, struct cm_conn *e, const struct urn_cm_msg *m, uint64_t now);
/* Send once more what was sent last, and wait for an answer. */
void cm_ask_again(struct urn_cm *cm, struct cm_conn *e, uint64_t now);
/* Keep a message that waits for no answer, and send it. */
void cm_say(struct urn_cm *cm, struct cm_conn *e, const struct urn_cm_msg *m);
/* Send once more what was kept: the peer did not hear it. */
void cm_repeat(struct urn_cm *cm, struct cm_conn *e);
/* Send without keeping. */
void cm_send(struct urn_cm *cm, const uint8_t own[16], const uint8_t peer[16],
	     const struct urn_cm_msg *m);
void cm_say_rej(struct urn_cm *cm, struct cm_conn *e, uint16_t reason, uint8_t about);
void cm_say_mra(struct urn_cm *cm, struct cm_conn *e, uint8_t about);
/* m: a DREQ with its private data */
void cm_say_dreq(struct urn_cm *cm, struct cm_conn *e, struct urn_cm_msg *m, uint64_t now);
/* Tell the owner, if there is one; m: the message that says it, or NULL. returns: could be told */
bool cm_tell(struct urn_cm *cm, struct cm_conn *e, enum urn_cm_event_type type,
	     const struct urn_cm_msg *m, uint16_t reason);
/* Its peer has answered: from here on the connection counts for its owner (urn_cm_claimed()). */
void cm_stands(struct urn_cm *cm, const struct cm_conn *e);

/* ---- cm_state.c */

void cm_timewait(struct urn_cm *cm, struct cm_conn *e, uint64_t now);
/* To IDLE: nothing is known of the peer any more. An orphan is freed. */
void cm_idle(struct urn_cm *cm, struct cm_conn *e);
/*
 * A peer that connects a queue pair anew has forgotten the connection it had: that
 * ends (IBTA 12.9.8.3.1). What it said is to be refused, and may come again.
 */
void cm_stale(struct urn_cm *cm, struct cm_conn *old, uint64_t now);
/* A request no longer waits in its listener's backlog. */
void cm_no_longer_waits(struct urn_cm *cm, struct cm_conn *e);
/* The timer of an id ran out. */
void cm_timed_out(struct urn_cm *cm, struct cm_conn *e, uint64_t now);
/*
 * What was said last ends an exchange in which the peer was asked for patience. If it is
 * lost the peer finds out only when that is over, a minute later: say it again unasked,
 * whenever we would ask again, and as often.
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

#define CM_COUNT(cm, name) ((cm)->c.v[URN_C_##name]++)

#endif
