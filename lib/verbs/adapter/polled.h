/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How far the program has polled the queues of its queue pairs.
 *
 * A request holds its slot until the program has polled its completion, or the completion of a
 * later request of the same queue. So a program that posts until a queue is full, and polls then,
 * never has more completions under way than there are slots, as with hardware adapters. The thread
 * that polls stores the indices here, and one that posts reads them when a queue seems full.
 *
 * Records stay until the context is closed, and go from one queue pair to the next: a thread that
 * polls may look at a record while another thread destroys a queue pair.
 */
#ifndef URN_VERBS_POLLED_H
#define URN_VERBS_POLLED_H

#include "abi/queue.h"

#include <stdint.h>

struct ibv_srq;
struct urn_ctx;
struct urn_adapter_cq;
struct urn_adapter_qp;

enum { URN_POLLED_BITS = 8, URN_POLLED_FAN = 1 << URN_POLLED_BITS, URN_POLLED_MIDS = 1 << 8 };

/* Records that are made at once: a page of them. */
enum { URN_POLLED_PAGE = 64 };

/* Record of a queue pair, on a cache line of its own. */
struct urn_polled {
	_Atomic uint32_t qpn;	    /* 0: no queue pair's; stored last */
	_Atomic uint32_t send;	    /* send requests polled, as indices count them */
	_Atomic uint32_t recv;	    /* the same of receives: its own, or those taken from an SRQ */
	_Atomic uint32_t *srq;	    /* receives of all queue pairs of its SRQ; NULL: has no SRQ */
	struct urn_polled *spare;   /* next one without a queue pair; lock of objs */
	struct urn_polled *earlier; /* a page's first record: the page made before; lock of objs */
} URN_ABI_ALIGNED(URN_ABI_CACHE_LINE);

/* Records by the low byte of a QPN, and tables of those by the byte above. */
struct urn_polled_leaf {
	_Atomic(struct urn_polled *) of[URN_POLLED_FAN];
};

struct urn_polled_mid {
	_Atomic(struct urn_polled_leaf *) leaf[URN_POLLED_FAN];
};

/* Records of a context. Tables stay until the context is closed. */
struct urn_polled_map {
	_Atomic(struct urn_polled_mid *) mid[URN_POLLED_MIDS];
	struct urn_polled *spare; /* records without a queue pair; lock of objs */
	struct urn_polled *made;  /* pages of all records; lock of objs */
};

void urn_polled_close(struct urn_polled_map *map);

/* Give a new queue pair a record, before it has a number. returns: 0 or ENOMEM */
int urn_polled_get(struct urn_ctx *ctx, struct urn_adapter_qp *qp);
/*
 * The queue pair has its number and queues, which are empty: completions count from now on.
 * returns: 0 or ENOMEM
 */
int urn_polled_begin(struct urn_ctx *ctx, struct urn_adapter_qp *qp, struct ibv_srq *srq);
/*
 * The dataplane has dropped all requests of the queue pair, and their completions are removed.
 * taken: receives taken from its SRQ, which has their slots back; without an SRQ not read
 */
void urn_polled_restart(struct urn_adapter_qp *qp, uint32_t taken);
/* The queue pair ends, or was not made: give its record back. */
void urn_polled_put(struct urn_ctx *ctx, struct urn_adapter_qp *qp);

/*
 * Find the record of a queue pair, and note it in the queue, whose lock is held.
 * cons: index of its completion. returns: NULL: there is none
 */
struct urn_polled *urn_polled_find(struct urn_adapter_cq *cq, uint32_t cons, uint32_t qpn);

#endif
