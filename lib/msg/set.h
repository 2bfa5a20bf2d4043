/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A register set in the library. The numbers of sending and receiving lie in the registers
 * themselves, so processes related by fork() that serialise their calls may use one set.
 */
#ifndef URN_MSG_SET_H
#define URN_MSG_SET_H

#include "abi/msg.h"
#include "msg/dev.h"

#include <string.h>

struct urn_register_set {
	struct urn_msg_dev *dev;
	struct urn_abi_msg_set *regs; /* in the client's area */
	uint8_t *arena;		      /* in the client's area: send buffer, then ring */
	uint32_t send_size;	      /* bytes of the send buffer */
	uint32_t entries, entry_size; /* the ring's; entries: 0 or a power of two */
	uint64_t base;		      /* offset of the ring in the arena */
	uint64_t qid;
	uint32_t handle, db, engine; /* handle: the dataplane's name of the set */
	int fd, write_fd;	     /* channel; -1: none */
	int32_t channel;	     /* the dataplane's name of the channel */
	uint32_t drained;	     /* events read from the channel; the side that receives */
};

/* Make a set in memory of the caller's. returns: 0, or an errno value with errno and text set */
int urn_msg_set_init(struct urn_register_set *set, struct urn_msg_dev *dev,
		     const struct urn_msg_attr *attr);
/* End a set, and close its channel; the memory stays the caller's. */
void urn_msg_set_fini(struct urn_register_set *set);

/* Messages that wait in the ring. */
static inline uint32_t
urn_msg_set_waiting(const struct urn_register_set *set)
{
	return atomic_load_explicit(&set->regs->rstat.tail, memory_order_acquire) -
	       atomic_load_explicit(&set->regs->ctrl.head, memory_order_relaxed);
}

/*
 * Ring the send doorbell; the message before has its answer. off, len: of the message in the arena;
 * the caller has checked them. returns: the number of the doorbell write
 */
static inline uint32_t
urn_msg_set_ring(struct urn_register_set *set, const struct urn_msg_to *to, uint32_t off,
		 uint32_t len)
{
	struct urn_abi_msg_send *send = &set->regs->send;
	uint32_t seq = atomic_load_explicit(&send->seq, memory_order_relaxed) + 1;

	send->size = len;
	send->addr = off;
	memcpy(send->node, to->node, sizeof(send->node));
	send->qid = to->qid;
	send->retry_us = to->retry_us;
	send->retries = to->retries;
	send->retry_kinds = to->retry_kinds;
	/* Release: the engine that sees the new number sees the fields and the message. */
	atomic_store_explicit(&send->seq, seq, memory_order_release);
	urn_dev_ring(&set->dev->dev, set->engine, set->db);
	return seq;
}

/* The answer to doorbell write `seq`, the last one: like urn_msg_set_status(). */
static inline uint8_t
urn_msg_set_answer(const struct urn_register_set *set, uint32_t seq)
{
	uint64_t answer = atomic_load_explicit(&set->regs->sstat.answer, memory_order_acquire);

	if (urn_msg_answer_seq(answer) == seq && urn_msg_answer_code(answer) != URN_MSG_PENDING)
		return urn_msg_answer_code(answer);
	return urn_dev_gone(&set->dev->dev) == URN_DEV_THERE
		       ? (uint8_t)URN_MSG_PENDING
		       : (uint8_t)(URN_MSG_UNREACHABLE | URN_MSG_MAY_BE_THERE);
}

/* The number of the oldest entry, as long as no entry is given back. */
static inline uint32_t
urn_msg_set_head(const struct urn_register_set *set)
{
	return atomic_load_explicit(&set->regs->ctrl.head, memory_order_relaxed);
}

/* Give all entries before a number back. */
static inline void
urn_msg_set_release_to(struct urn_register_set *set, uint32_t head)
{
	/* Release: the engine fills the entries anew only after our reads of them. */
	atomic_store_explicit(&set->regs->ctrl.head, head, memory_order_release);
}

/* The message of an entry, which waits (urn_msg_set_waiting()). */
static inline void
urn_msg_set_entry(const struct urn_register_set *set, uint32_t head, struct urn_msg *m)
{
	const struct urn_abi_msg_entry *e;
	uint32_t room = set->entry_size - (uint32_t)sizeof(*e);

	e = (const void *)(set->arena + set->base +
			   (uint64_t)(head & (set->entries - 1)) * set->entry_size);
	m->data = e + 1;
	m->len = e->len < room ? e->len : room;
	m->rsvd = 0;
	m->qid = e->qid;
	memcpy(m->node, e->node, sizeof(m->node));
}

/* Disarm: events are not wanted while the reader looks itself. */
static inline void
urn_msg_set_disarm(struct urn_register_set *set)
{
	if (atomic_load_explicit(&set->regs->conf.arm, memory_order_relaxed))
		atomic_exchange_explicit(&set->regs->conf.arm, 0, memory_order_seq_cst);
}

/*
 * Make the descriptor tell the truth to a sleeper: with an empty ring it has no event and is armed,
 * else it has an event or soon gets one. returns: true when messages wait
 */
bool urn_msg_set_show(struct urn_register_set *set);

#endif
