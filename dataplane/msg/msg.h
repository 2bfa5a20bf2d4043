/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Register sets of messages (doorbell.md; lib/abi/msg.h): the user of flows on one adapter and
 * engine. A register set is a source of work with one send channel and one receive queue. The
 * client's lines are never trusted: each is copied once and then checked, and everything that the
 * dataplane must remember is kept in struct urn_msg_rset. A client that writes nonsense harms its
 * own messages only.
 *
 *   set.c    sets come and go; slots and generations
 *   send.c   a doorbell ─► message ─► flow ─► answer; retries
 *   queue.c  configuration; a message from a flow ─► ring
 *   name.c   names of queues
 *   tell.c   ARM INTR ─► event
 *
 * All calls in the engine's thread, unless they say otherwise. An idle set is in no list.
 */
#ifndef URN_MSG_MSG_H
#define URN_MSG_MSG_H

#include "abi/control.h"
#include "transport/flow.h"
#include "transport/source.h"

struct urn_msg_regs;
struct urn_msg_rset;

enum {
	URN_MSG_SLOTS =
		URN_MSG_SETS_MAX -
		1, /* register sets of one adapter on one engine; the last number is no slot */
	URN_MSG_RETRY_MIN_US = 10,	/* microseconds between tries: least, */
	URN_MSG_RETRY_DEFAULT_US = 100, /* ... if the client says 0, */
	URN_MSG_RETRY_MAX_US = 1000000, /* ... and most */
	URN_MSG_NO_END = 65535,		/* retries without end */
};

/* The calls that flows make (flow.h); ctx of the transport: struct urn_msg_regs. */
extern const struct urn_flow_user urn_msg_flow_user;
/* The operations of register sets as sources. */
extern const struct urn_source_ops urn_msg_ops;

/*
 * Make the register sets of an adapter on an engine. engine: its index; first: the index of the
 * adapter's first engine, which has the names; seed: random, different at each start of the
 * dataplane: generations begin there. NULL: no memory
 */
struct urn_msg_regs *urn_msg_regs_create(unsigned int engine, unsigned int first, uint64_t seed);
/* All sets have ended. NULL is taken */
void urn_msg_regs_destroy(struct urn_msg_regs *r);

/* Properties of a set that control decides before the set is made. */
struct urn_msg_config {
	struct urn_tp_share *share; /* share of the client on this engine; never NULL */
	uint32_t db;		    /* doorbell id, taken */
	struct urn_abi_msg_set
		*regs;	  /* in the client's area, all zero; the arena follows right behind */
	uint32_t arena;	  /* bytes of the arena */
	int channel_fd;	  /* events are written there; -1: none */
	uint32_t channel; /* control's: handle of a remote client's channel; 0: none */
	uint64_t cookie;  /* the client's, for events */
};

/* Make a set. returns: 0; ENOSPC: no slot is left; ENOMEM. set: valid on success */
int urn_msg_open(struct urn_msg_regs *r, const struct urn_msg_config *cfg,
		 struct urn_msg_rset **set);
/* End a set, with its message in flight; struct urn_source_ops.end. returns: true, always */
bool urn_msg_end(struct urn_tp *tp, struct urn_source *src);

/*
 * Let a queue have a name from now on, instead of the name before. name: not 0; returns: 0;
 * EADDRINUSE: another queue has it
 */
int urn_msg_bind(struct urn_msg_regs *r, struct urn_msg_rset *set, uint32_t name);
/* The queue has no name any more. */
void urn_msg_unbind(struct urn_msg_regs *r, struct urn_msg_rset *set);

/* A view of a set, for control and reports. */
struct urn_msg_view {
	uint64_t qid;		      /* number of the queue */
	struct urn_tp_share *share;   /* share of the client */
	struct urn_abi_msg_set *regs; /* in the client's area */
	uint32_t arena;		      /* bytes */
	uint32_t db;		      /* doorbell id */
	uint32_t slot;
	uint32_t name;	     /* 0: none */
	uint32_t channel;    /* control's, of struct urn_msg_config */
	uint32_t entries;    /* entries of the ring; 0: the queue takes no messages */
	uint32_t entry_size; /* bytes; valid with entries */
	uint32_t head, tail; /* head: by the client's word */
	uint8_t state;	     /* enum urn_msgq_state */
	uint8_t code;  /* enum urn_msg_code of the last answer; PENDING: a message is on its way */
	uint64_t sent; /* doorbells taken */
};

/*
 * The set in a slot; slot: any number; NULL: none. In any thread that keeps sets from coming and
 * going (the adapter's lock).
 */
struct urn_msg_rset *urn_msg_set_at(const struct urn_msg_regs *r, uint32_t slot);
/* One more than the highest slot that ever had a set; in any thread, as urn_msg_set_at(). */
uint32_t urn_msg_slots(const struct urn_msg_regs *r);
/* Sets that there are now. In any thread */
uint32_t urn_msg_count(const struct urn_msg_regs *r);
/* Look at a set. In the engine's thread, or as urn_msg_set_at(): then numbers may be a moment old.
 */
void urn_msg_look(const struct urn_msg_regs *r, const struct urn_msg_rset *set,
		  struct urn_msg_view *v);
/* The set of a source with urn_msg_ops. */
struct urn_msg_rset *urn_msg_set_of(struct urn_source *src);
/* The source of a set. */
struct urn_source *urn_msg_source(struct urn_msg_rset *set);

/* Handle of a set at its client: engine and slot. */
#define URN_MSG_HANDLE(engine, slot) (((uint32_t)(engine) << 16 | (uint32_t)(slot)) + 1)
#define URN_MSG_HANDLE_ENGINE(handle) (((uint32_t)(handle)-1) >> 16)
#define URN_MSG_HANDLE_SLOT(handle) (((uint32_t)(handle)-1) & 0xffffu)

/* ---- events of ARM INTR (tell.c) */

/* Write an event to a channel without blocking. returns: true: done, or nobody will ever read
 * there; false: no room */
typedef bool urn_msg_tell_fn(void *ctx, int fd, const struct urn_abi_event *ev);

/* returns: where the number of queues stands that are to be looked at, for a look each turn; valid
 * as long as r */
const uint32_t *urn_msg_untold_at(const struct urn_msg_regs *r);
/*
 * Look at queues that messages came for since the last call, and try again those whose event found
 * no room at least 1 ms ago, a few of them. now: ns, of the turn
 */
void urn_msg_tell(struct urn_msg_regs *r, uint64_t now, urn_msg_tell_fn *tell, void *ctx);

#endif
