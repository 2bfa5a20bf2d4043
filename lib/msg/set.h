/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A register set in the library. The numbers of sending and receiving lie in the registers
 * themselves, so processes related by fork() that serialise their calls may use one set.
 */
#ifndef URN_MSG_SET_H
#define URN_MSG_SET_H

#include "abi/msg.h"
#include "msg/dev.h"

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
