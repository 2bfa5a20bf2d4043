/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Moving a completion queue to another place in its client's area, while its engine
 * goes on writing to it. The thread of the control call carries the unread completions over,
 * not the engine: the engine tells how far the queue is and, when no more than
 * URN_CQ_MOVE_STEP completions are left, copies those and changes over.
 *
 *   old   ...|#### copied ####|== while that was done ==|
 *            ^ cons           ^ from                    ^ prod
 *
 * A client with urnic's library reads nothing meanwhile. A client that does read loses
 * completions or gets them twice: only its own.
 */
#ifndef URN_CONTROL_CQ_MOVE_H
#define URN_CONTROL_CQ_MOVE_H

#include "host/queue.h"

/* Completions that an engine copies at once, at most: 8 KiB. */
enum { URN_CQ_MOVE_STEP = 256 };

struct urn_cq_move {
	struct urn_cq *cq;  /* the queue; its engine's */
	struct urn_cq to;   /* the new queue: hdr, mask, and prod of the completions carried over */
	uint64_t off;       /* offset of the new queue in the client's area */
	uint32_t from;      /* index of the first completion that is not copied; valid once begun */
	uint32_t end;       /* index behind the last that may be copied */
	bool begun;
	int rc;             /* result of urn_cq_move_step() */
};

/* hdr: header of the new queue, all zero; entries: a power of two */
void urn_cq_move_init(struct urn_cq_move *m, struct urn_cq *cq, struct urn_abi_cq *hdr, uint64_t off,
		      uint32_t entries);
/*
 * In the owner's thread: m->rc becomes 0: the queue has moved; EAGAIN: carry over and call
 * again; EINVAL: the queue holds more than the new one has room for, and stays. m: struct urn_cq_move
 */
void urn_cq_move_step(void *m);
/* Carry over the completions of the last step, which was EAGAIN. Any thread, in parallel to the owner's. */
void urn_cq_move_carry(struct urn_cq_move *m);

#endif
