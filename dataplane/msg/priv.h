/* SPDX-License-Identifier: BSD-3-Clause */
/* Register sets inside: struct urn_msg_rset, and what the files of this folder ask each other. */
#ifndef URN_MSG_PRIV_H
#define URN_MSG_PRIV_H

#include "base/hash.h"
#include "base/pool.h"
#include "counters.h"
#include "msg/msg.h"
#include "transport/tp.h"

enum {
	URN_MSG_NIL = 0xffff, /* no slot */
	URN_MSG_NAME_BUCKETS = 16384,
	URN_MSG_BUSY_NS = 1000000000, /* ns that a message waits for room in a flow, until BUSY is
					 its error */
};
_Static_assert((int)URN_MSG_SLOTS <= (int)URN_MSG_NIL, "slots have 16 bits");

/* Bits of struct urn_source.flags that are a register set's. */
enum urn_msg_flag {
	URN_MSGF_PENDING = 1 << 16,  /* a message is on its way: seq is not answered */
	URN_MSGF_IN_FLOW = 1 << 17,  /* ... and a flow has it */
	URN_MSGF_TRY = 1 << 18,	     /* ... and is to be given to a flow at the set's next turn */
	URN_MSGF_BUSY = 1 << 19,     /* ... after the flow had no room; busy_until is valid */
	URN_MSGF_TOUCHED = 1 << 20,  /* in the list of sets to look at for ARM INTR */
	URN_MSGF_LATE = 1 << 21,     /* in the list of sets whose event found no room */
	URN_MSGF_BAD_HEAD = 1 << 22, /* the head was no head of the ring when a message came last */
};

/* A register set. A set's slot, its ring and its message are never read back from the client's
 * memory. */
struct urn_msg_rset {
	struct urn_source_ops_user user; /* source and operations */
	struct urn_abi_msg_set
		*regs;	/* in the client's area; the arena is right behind; the same for its life */
	uint32_t arena; /* bytes of the arena; the same for its life */
	uint32_t name;	/* name of the queue; 0: none */

	/* The message on its way; valid with URN_MSGF_PENDING. */
	struct urn_flow_msg msg;       /* the flow's with URN_MSGF_IN_FLOW */
	uint8_t node[16];	       /* target node */
	struct urn_source_timer timer; /* started while the next try waits */
	uint32_t seq;		       /* number of the doorbell write taken last; 0 at first */
	uint32_t retry_us;	       /* microseconds between tries */
	uint16_t retries;    /* further tries that may be made; URN_MSG_NO_END: without end */
	uint8_t retry_kinds; /* enum urn_msg_retry */
	uint8_t code;	     /* code of the last answer; the same for reports */

	/* The receive queue. */
	uint32_t conf_seq;   /* number of the configuration that was looked at last; 0 at first */
	uint32_t ring;	     /* offset of the ring in the arena; valid with entries */
	uint32_t entries;    /* a power of two; 0: the queue takes no messages */
	uint32_t entry_size; /* bytes */
	uint32_t tail;	     /* entries ever filled since a ring was taken */
	uint8_t permit_bits, conf_flags; /* copies from struct urn_abi_msg_conf */
	uint8_t permit[16];
	uint8_t state; /* enum urn_msgq_state, as the client was told last */
	uint8_t rsvd;

	/* Events. */
	int channel_fd;	 /* -1: none; the same for its life */
	uint64_t cookie; /* the same for its life */
	uint16_t next,
		prev;  /* slots; in the list of touched or of late sets; valid with those flags */
	uint16_t slot; /* the same for its life */
	uint16_t busy_until; /* units of 2^20 ns, wraps; valid with URN_MSGF_BUSY */
	uint32_t channel;    /* control's: handle of the client's channel; 0: none */
	uint32_t sent;	     /* doorbells taken; wraps */
	uint32_t seen; /* number of the doorbell write that was taken or refused last; 0 at first */
};
/* The C library gives as many bytes for 256. */
_Static_assert(sizeof(struct urn_msg_rset) <= 264, "thousands of sets a node (DB-1)");

/* A slot, which outlives its sets. */
struct urn_msg_slot {
	struct urn_msg_rset *set; /* NULL: none */
	uint32_t generation;	  /* number of the slot's set, or of its last one; 0: it had none */
	uint32_t next;	     /* with a name: the next in the bucket; free: the pool's */
};

/* A list of sets by slots, the oldest first. */
struct urn_msg_list {
	uint16_t head, tail; /* URN_MSG_NIL: none */
};

struct urn_msg_regs {
	struct urn_msg_slot *slot; /* URN_MSG_SLOTS; untouched memory until a slot is used; owner */
	struct urn_pool slots;	   /* free slots */
	_Atomic uint32_t count;	   /* sets; other threads read it */
	uint32_t generation;	   /* start of the generations, from the seed */
	uint16_t engine, first;	   /* index of this engine, and of the adapter's first */
	struct urn_msg_list touched, late; /* sets to look at, and sets whose event is late */
	uint32_t untold;		   /* number of sets in these two lists */
	uint64_t late_due;     /* ns: when late events are tried again; valid with some */
	struct urn_hash names; /* by name; the first engine's, made with the first name */
};

static inline struct urn_msg_regs *
urn_msg_regs_of(const struct urn_tp *tp)
{
	return tp->cfg.flow_ctx;
}

/* The arena of a set. */
static inline uint8_t *
urn_msg_arena(const struct urn_msg_rset *s)
{
	return (uint8_t *)(s->regs + 1);
}

/* Number of the queue of a slot that has a set. */
uint64_t urn_msg_number(const struct urn_msg_regs *r, uint32_t slot);
/* The set that a queue's number or name leads to, in this engine; NULL: none. */
struct urn_msg_rset *urn_msg_find(const struct urn_msg_regs *r, uint64_t qid);
/* The set with a name; NULL: none. (name.c) */
struct urn_msg_rset *urn_msg_by_name(const struct urn_msg_regs *r, uint32_t name);

/* Look at the set's send doorbell. (send.c) */
void urn_msg_look_send(struct urn_tp *tp, struct urn_msg_rset *s);
/*
 * Give the message to a flow, at the set's turn. returns: true when no flow had room now: the set
 * is to be looked at again
 */
bool urn_msg_try(struct urn_tp *tp, struct urn_msg_rset *s);
/* A message of this set was answered; struct urn_flow_user.answered. */
void urn_msg_answered(struct urn_tp *tp, struct urn_flow_msg *m, uint8_t code);

/* Look at the receive queue's configuration, and at ARM INTR. (queue.c) */
void urn_msg_look_conf(struct urn_tp *tp, struct urn_msg_rset *s);
/* struct urn_flow_user. (queue.c) */
uint8_t urn_msg_admit(struct urn_tp *tp, const struct urn_flow_from *from, uint64_t qid,
		      uint32_t len);
uint8_t urn_msg_deliver(struct urn_tp *tp, const struct urn_flow_from *from, uint64_t qid,
			const uint8_t *data, uint32_t len);

/* A message came, or the reader armed while messages wait: look at ARM INTR at the turn's end.
 * (tell.c) */
void urn_msg_touch(struct urn_msg_regs *r, struct urn_msg_rset *s);
/* The set ends: it is in no list any more. */
void urn_msg_forget(struct urn_msg_regs *r, struct urn_msg_rset *s);

#endif
