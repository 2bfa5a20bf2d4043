/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The dataplane's end of a client's queues: fetch send requests, take
 * receives, write completions. What the client wrote is copied once, then
 * checked, then used (architecture rule 3); an index that lies is clamped to what
 * the queue can hold, so it can hurt nobody but its owner.
 */
#ifndef URN_HOST_QUEUE_H
#define URN_HOST_QUEUE_H

#include "abi/queue.h"

#include <stdbool.h>
#include <string.h>

#include <rte_atomic.h>
#include <rte_branch_prediction.h>
#include <rte_prefetch.h>

/* ---- send queue */

struct urn_sq {
	struct urn_abi_wq *hdr; /* client's area; NULL: no queue */
	uint32_t mask;          /* entries - 1 */
	uint32_t prod;          /* last seen of hdr->prod, when that made sense */
	uint32_t fetched;       /* requests copied out so far */
	uint32_t retired;       /* requests completed so far; published as hdr->cons */
	uint16_t stride;        /* bytes of a slot */
	uint8_t max_sge;
	uint8_t pad;
	uint16_t max_inline;    /* bytes */
};

/* Look at the client's index. returns as urn_sq_ready() */
static inline uint32_t
urn_sq_refresh(struct urn_sq *sq)
{
	/* Pairs with the release in lib/verbs after it wrote the slots. */
	uint32_t prod = atomic_load_explicit(&sq->hdr->prod, memory_order_acquire);

	if (unlikely(prod - sq->fetched > sq->mask + 1))
		return 0;
	sq->prod = prod;
	return prod - sq->fetched;
}

/* Requests posted, seen and not yet fetched; at most the queue's size, 0 if there is none. */
static inline uint32_t
urn_sq_ready(struct urn_sq *sq)
{
	return sq->prod != sq->fetched ? sq->prod - sq->fetched : urn_sq_refresh(sq);
}

/* Slot of the next request to fetch. */
static inline const struct urn_abi_swqe *
urn_sq_slot(const struct urn_sq *sq)
{
	return (const void *)((const uint8_t *)sq->hdr + URN_ABI_WQ_SLOTS +
			      (size_t)(sq->fetched & sq->mask) * sq->stride);
}

/*
 * Tell the client that n more requests are retired; before the completion that
 * says so, for whoever sees that may post into their slots at once.
 */
static inline void
urn_sq_retire(struct urn_sq *sq, uint32_t n)
{
	sq->retired += n;
	/* Pairs with the acquire in lib/verbs before it reuses a slot. */
	atomic_store_explicit(&sq->hdr->cons, sq->retired, memory_order_release);
}

/* ---- receive queue and shared receive queue */

struct urn_rq {
	struct urn_abi_wq *hdr; /* client's area; NULL: no queue */
	uint32_t mask;
	uint32_t cons;          /* receives taken so far */
	uint32_t prod;          /* last seen of hdr->prod, clamped */
	uint16_t stride;
	uint8_t max_sge;
	uint8_t pad;
};

/* A receive as the transport holds it: a checked copy. */
struct urn_recv {
	struct urn_recv *next;  /* in a pool */
	uint64_t wr_id;
	uint32_t length;        /* bytes it can take, all elements together */
	uint32_t num_sge;
	struct urn_abi_sge sge[URN_ABI_MAX_SGE];
};

static inline bool
urn_rq_refresh(struct urn_rq *rq)
{
	uint32_t prod = atomic_load_explicit(&rq->hdr->prod, memory_order_acquire);

	if (unlikely(prod - rq->cons > rq->mask + 1))
		return false;
	rq->prod = prod;
	return prod != rq->cons;
}

/* Is a receive posted? */
static inline bool
urn_rq_ready(struct urn_rq *rq)
{
	return likely(rq->prod != rq->cons) || urn_rq_refresh(rq);
}

/* Receives posted and not taken. */
static inline uint32_t
urn_rq_count(struct urn_rq *rq)
{
	urn_rq_refresh(rq);
	return rq->prod - rq->cons;
}

/*
 * Take the next receive; the caller has seen urn_rq_ready(). taker: QPN, put
 * down for a shared queue. returns false when its element count is a lie: it
 * then has wr_id and no elements.
 */
static inline bool
urn_rq_take(struct urn_rq *rq, struct urn_recv *out, uint32_t taker)
{
	struct urn_abi_rwqe *w = (void *)((uint8_t *)rq->hdr + URN_ABI_WQ_SLOTS +
					  (size_t)(rq->cons & rq->mask) * rq->stride);
	const struct urn_abi_sge *sge = (const void *)(w + 1);
	uint32_t n = w->num_sge;
	uint64_t total = 0;
	bool ok = n <= rq->max_sge;

	out->wr_id = w->wr_id;
	out->num_sge = ok ? n : 0;
	if (likely(n == 1 && ok)) {
		memcpy(&out->sge[0], sge, sizeof(out->sge[0]));
		rte_compiler_barrier(); /* read once */
		total = out->sge[0].length;
	} else {
		for (uint32_t i = 0; i < out->num_sge && i < URN_ABI_MAX_SGE; i++) {
			memcpy(&out->sge[i], &sge[i], sizeof(out->sge[i]));
			rte_compiler_barrier();
			total += out->sge[i].length;
		}
	}
	out->length = total > URN_ABI_MAX_MSG ? URN_ABI_MAX_MSG : (uint32_t)total;
	if (taker)
		w->taker = taker;
	rq->cons++;
	/* The slot is free for the client once it sees this. */
	atomic_store_explicit(&rq->hdr->cons, rq->cons, memory_order_release);
	return ok;
}

/* From now on every post must ring (see lib/abi/queue.h). */
static inline void
urn_rq_want_ring(struct urn_rq *rq)
{
	atomic_store_explicit(&rq->hdr->ring, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
}

/* ---- completion queue */

struct urn_cq {
	struct urn_abi_cq *hdr; /* client's area */
	uint32_t mask;
	uint32_t prod;          /* completions written so far */
	uint32_t cons;          /* last seen of hdr->cons */
	uint32_t handle;        /* for events */
	uint8_t engine;         /* owner */
	bool touched;           /* in the owner's list of queues to look at for an armed event */
	bool solicited;         /* a solicited or failed completion since the last look */
	bool overrun;           /* a completion was lost; the queue takes no more */
	int32_t channel_fd;     /* write end of the completion channel; -1: none */
	uint32_t users;         /* control: QPs and SRQs that use it */
	uint32_t events;        /* events written to the channel */
	uint64_t cookie;        /* the client's, for events */
	void *client;           /* control: who made it */
	struct urn_cq *next;    /* in that list */
};

/* Room for one more? */
static inline bool
urn_cq_room(struct urn_cq *cq)
{
	uint32_t used = cq->prod - cq->cons;

	if (likely(used <= cq->mask))
		return true;
	cq->cons = atomic_load_explicit(&cq->hdr->cons, memory_order_acquire);
	return cq->prod - cq->cons <= cq->mask;
}

/* Write one completion; the caller has seen room. cqe->phase is not read. */
static inline __attribute__((always_inline)) void
urn_cq_put(struct urn_cq *cq, const struct urn_abi_cqe *cqe)
{
	struct urn_abi_cqe *slot = (struct urn_abi_cqe *)((uint8_t *)cq->hdr + URN_ABI_CQ_SLOTS) +
				   (cq->prod & cq->mask);
	uint8_t phase = (cq->prod & (cq->mask + 1)) == 0; /* odd laps: 0 */

	slot->wr_id = cqe->wr_id;
	slot->byte_len = cqe->byte_len;
	slot->imm = cqe->imm;
	slot->qp_num = cqe->qp_num;
	slot->src_qp = cqe->src_qp;
	slot->vendor_err = cqe->vendor_err;
	slot->status = cqe->status;
	slot->opcode = cqe->opcode;
	slot->wc_flags = cqe->wc_flags;
	/* Pairs with the acquire of the reader: the rest of the slot is written. */
	atomic_store_explicit(&slot->phase, phase, memory_order_release);
	cq->prod++;
}

#endif
