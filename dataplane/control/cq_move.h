/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Moving a completion queue to another place in its client's area, while its engine
 * goes on writing to it. What nobody has read yet is carried over, by whoever asked
 * for it and not by the engine: that says how far the queue is and, when no more than
 * URN_CQ_MOVE_STEP completions are left, copies those and changes over.
 *
 *   old   ...|#### copied ####|== while that was done ==|
 *            ^ cons           ^ from                    ^ prod
 *
 * A client that keeps its library's word reads nothing meanwhile. Of one that does,
 * completions are lost or told twice: its own.
 */
#ifndef URN_CONTROL_CQ_MOVE_H
#define URN_CONTROL_CQ_MOVE_H

#include "host/queue.h"

/* Completions that an engine copies in one go, at most: 8 KiB. */
enum { URN_CQ_MOVE_STEP = 256 };

struct urn_cq_move {
	struct urn_cq *cq;  /* its engine's */
	struct urn_cq to;   /* what it becomes: hdr, mask, and prod of those that are there */
	uint64_t off;       /* where that is in the client's area */
	uint32_t from;      /* cq->prod of the first that is not copied; once it has begun */
	uint32_t end;       /* ... behind the last that may be */
	bool begun;
	int rc;             /* of the last step; see there */
};

/* hdr: of the new queue, all zero; entries: a power of two */
void urn_cq_move_init(struct urn_cq_move *m, struct urn_cq *cq, struct urn_abi_cq *hdr, uint64_t off,
		      uint32_t entries);
/*
 * In the owner's thread: m->rc becomes 0, the queue has moved; EAGAIN, carry over and
 * come again; EINVAL, it holds more than there is room for, and stays where it is. m: struct urn_cq_move
 */
void urn_cq_move_step(void *m);
/* Carry over what was there at the last step, which was EAGAIN. Any thread, beside the owner's. */
void urn_cq_move_carry(struct urn_cq_move *m);

#endif
