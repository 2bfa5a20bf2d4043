/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Register sets of messages (abi/msg.h) for programs: one adapter of a dataplane, embedded or in another
 * process, and sets made over it. A message is sent by stores to the set's registers alone.
 *
 * Making a set does not wait for the engine, so that a program may poll an embedded engine in the thread
 * that makes sets: a receive queue takes messages from when urn_regset_ready() says so.
 *
 * A set is used by one thread at a time.
 */
#ifndef URN_APPS_COMMON_MSG_PORT_H
#define URN_APPS_COMMON_MSG_PORT_H

#include "abi/msg.h"
#include "attach/dev.h"
#include "common/options.h"

#include <string.h>

/* An adapter's address, and the way to the adapter. */
struct urn_msg_port {
	struct urn_dev dev;
	bool open;         /* dev is valid */
	uint8_t gid[16];   /* the adapter's address of the family that was asked for */
};

/*
 * Open an adapter over a channel, which is taken over, also on failure. ipv6: the family of port->gid.
 * port: all zero; does not move until it is closed. returns: 0, or -1 with *err; urn_msg_port_close() in
 * either case
 */
int urn_msg_port_open(struct urn_msg_port *port, struct urn_abi_channel *channel, bool ipv6, struct urn_err *err);
/* Open a node of a dataplane in another process. attach: its socket, or "auto"; node: NULL: the default one */
int urn_msg_port_attach(struct urn_msg_port *port, const char *attach, const char *node, bool ipv6,
			struct urn_err *err);
/* Close an adapter whose sets have been closed. A port that is not open is left alone. */
void urn_msg_port_close(struct urn_msg_port *port);

/* Wishes for a set. */
struct urn_regset_want {
	uint64_t send_bytes;  /* bytes of the send buffer, at most URN_MSG_ARENA_MAX; 0: the set does not send */
	uint32_t entries;     /* entries of the receive queue, a power of two; 0: no queue */
	uint32_t recv_size;   /* bytes of the longest message to receive; valid with entries */
	bool own_node;        /* only messages of the own node are taken */
};

struct urn_regset {
	struct urn_msg_port *port;    /* owner: the program; NULL: the set is not open */
	struct urn_abi_msg_set *regs; /* in the client's area, and so are the next two */
	uint8_t *out;                 /* the send buffer, at offset 0 of the arena */
	uint8_t *ring;                /* the receive queue; NULL: none */
	uint64_t qid;                 /* number of the queue */
	uint32_t entries;             /* of the ring, a power of two; 0: no queue */
	uint32_t entry_size;          /* bytes */
	uint32_t handle, db, engine;  /* the dataplane's names */
	uint32_t seq;                 /* number of the doorbell write made last */
	uint32_t head;                /* entries that were given back */
	uint32_t seen;                /* RQ TAIL as read last */
};

/* Make a set, and ask for its receive queue. returns: 0, or -1 with *err; the set may be closed in either case */
int urn_regset_open(struct urn_regset *s, struct urn_msg_port *port, const struct urn_regset_want *want,
		     struct urn_err *err);
/* Close a set. Messages in its queue are lost. A set that is not open is left alone. */
void urn_regset_close(struct urn_regset *s);

/* State of the receive queue that was asked for: 0: not known yet; 1: it takes messages; -1: it was refused. */
static inline int
urn_regset_ready(const struct urn_regset *s)
{
	const struct urn_abi_msg_rstat *r = &s->regs->rstat;

	/* State is stored before the number: acquire. */
	if (atomic_load_explicit(&r->conf_seq, memory_order_acquire) == 0)
		return 0;
	return atomic_load_explicit(&r->state, memory_order_relaxed) == URN_MSGQ_OPEN ? 1 : -1;
}

/* ---- sending */

/* Set target and policy of all further messages of a set. kinds: enum urn_msg_retry; us: between two tries */
static inline void
urn_regset_target(struct urn_regset *s, const uint8_t gid[16], uint64_t qid, uint16_t retries, uint8_t kinds,
		   uint32_t us)
{
	struct urn_abi_msg_send *l = &s->regs->send;

	memcpy(l->node, gid, sizeof(l->node));
	l->qid = qid;
	l->retries = retries;
	l->retry_kinds = kinds;
	l->retry_us = us;
}

/* Write the doorbell for a message in the send buffer, without the bit. No message of the set is pending. */
static inline void
urn_regset_write(struct urn_regset *s, uint64_t addr, uint32_t size)
{
	struct urn_abi_msg_send *l = &s->regs->send;

	l->addr = addr;
	l->size = size;
	/* The engine that sees the number sees the fields and the message: release. */
	atomic_store_explicit(&l->seq, ++s->seq, memory_order_release);
}

/* Send a message of the send buffer. */
static inline void
urn_regset_send(struct urn_regset *s, uint64_t addr, uint32_t size)
{
	urn_regset_write(s, addr, size);
	urn_dev_ring(&s->port->dev, s->engine, s->db);
}

/* The answer to the message sent last: URN_MSG_PENDING, URN_MSG_DONE, or an error (abi/msg_codes.h). */
static inline uint8_t
urn_regset_answer(const struct urn_regset *s)
{
	uint64_t a = atomic_load_explicit(&s->regs->sstat.answer, memory_order_acquire);

	return urn_msg_answer_seq(a) == s->seq ? urn_msg_answer_code(a) : (uint8_t)URN_MSG_PENDING;
}

/* ---- receiving */

/* Entry n, which lies between head and tail. */
static inline const struct urn_abi_msg_entry *
urn_regset_at(const struct urn_regset *s, uint32_t n)
{
	return (const void *)(s->ring + (size_t)(n & (s->entries - 1)) * s->entry_size);
}

/* The oldest message of the queue; NULL: there is none. The message is behind its header. */
static inline const struct urn_abi_msg_entry *
urn_regset_poll(struct urn_regset *s)
{
	if (s->head == s->seen) {
		/* The entries before the tail are filled: acquire. */
		s->seen = atomic_load_explicit(&s->regs->rstat.tail, memory_order_acquire);
		if (s->head == s->seen)
			return NULL;
	}
	return urn_regset_at(s, s->head);
}

/* RQ TAIL: entries before it hold messages. For programs that look beyond the oldest message. */
static inline uint32_t
urn_regset_tail(const struct urn_regset *s)
{
	return atomic_load_explicit(&s->regs->rstat.tail, memory_order_acquire);
}

/* The oldest message is done with; the dataplane is told by urn_regset_give(). */
static inline void
urn_regset_next(struct urn_regset *s)
{
	s->head++;
}

/* Give all entries that are done with back to the dataplane. */
static inline void
urn_regset_give(struct urn_regset *s)
{
	/* The engine fills entries anew only after our reads of them: release. */
	atomic_store_explicit(&s->regs->ctrl.head, s->head, memory_order_release);
}

#endif
