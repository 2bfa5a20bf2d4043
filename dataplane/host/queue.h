/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The dataplane's end of a client's queues: fetch send requests, take receives, write completions.
 * Data that the client wrote is copied once, then checked, then used (architecture rule 3). A false
 * index is clamped to what the queue can hold, so it can hurt nobody but its owner.
 */
#ifndef URN_HOST_QUEUE_H
#define URN_HOST_QUEUE_H

#include "abi/queue.h"

#include <stdbool.h>
#include <string.h>
#include <sys/queue.h>

#include <rte_atomic.h>
#include <rte_branch_prediction.h>
#include <rte_prefetch.h>

struct urn_space;
struct urn_tp_share;

/* ---- send queue */

struct urn_sq {
	struct urn_abi_wq *hdr; /* client's area; NULL: no queue */
	uint32_t mask;          /* entries - 1 */
	uint32_t prod;          /* hdr->prod as seen last, when that made sense */
	uint32_t fetched;       /* requests copied out so far */
	uint32_t retired;       /* requests completed so far; published as hdr->cons */
	uint16_t stride;        /* bytes of a slot */
	uint8_t max_sge;
	uint8_t pad;
	uint16_t max_inline;    /* bytes */
};

/* Look at the client's index. returns: see urn_sq_ready() */
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

/* Number of requests posted, seen and not yet fetched; at most the queue's size, 0 if there is none. */
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
 * Tell the client that n more requests are retired, none of which has a completion; urn_cq_put()
 * tells of the others.
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
	struct urn_abi_wq *hdr; /* client's area; QP with an SRQ: log of what it took; NULL: no queue */
	uint32_t cons;          /* receives taken so far */
	uint32_t prod;          /* hdr->prod as seen last, clamped */
	uint16_t mask;          /* entries - 1 */
	uint16_t undone;        /* QP: receives taken and not completed */
	uint16_t stride;
	uint8_t max_sge;
	uint8_t pad;
};

/* True when a QP has taken so many receives from an SRQ without completing them that it may take no more. */
static inline bool
urn_rq_taken_full(const struct urn_rq *rq)
{
	return unlikely(rq->undone >= URN_ABI_TAKEN);
}

/* Log a receive that a QP takes from an SRQ, where it is entry number `index`. */
static inline void
urn_rq_put_down(struct urn_rq *own, uint64_t wr_id, uint32_t index)
{
	uint32_t i = own->cons++ & (URN_ABI_TAKEN - 1);
	uint64_t *slot;

	if (unlikely(!own->hdr))
		return; /* nobody to read the log */
	slot = (void *)((uint8_t *)own->hdr + URN_ABI_WQ_SLOTS);
	slot[i] = wr_id;
	atomic_store_explicit(&own->hdr->last, index, memory_order_relaxed);
	atomic_store_explicit(&own->hdr->cons, own->cons, memory_order_release);
}

/* A receive that the transport holds: a checked copy. */
struct urn_recv {
	struct urn_recv *next;  /* next in a pool */
	uint64_t wr_id;
	uint32_t length;        /* bytes that it can take, all elements together */
	uint32_t num_sge;
	struct urn_abi_sge sge[URN_ABI_MAX_SGE];
};

static inline bool
urn_rq_refresh(struct urn_rq *rq)
{
	uint32_t prod = atomic_load_explicit(&rq->hdr->prod, memory_order_acquire);

	if (unlikely(prod - rq->cons > rq->mask + 1u))
		return false;
	rq->prod = prod;
	return prod != rq->cons;
}

/* True when a receive is posted. */
static inline bool
urn_rq_ready(struct urn_rq *rq)
{
	return likely(rq->prod != rq->cons) || urn_rq_refresh(rq);
}

/* Number of receives posted and not taken. */
static inline uint32_t
urn_rq_count(struct urn_rq *rq)
{
	urn_rq_refresh(rq);
	return rq->prod - rq->cons;
}

/*
 * Take the next receive; the caller has seen urn_rq_ready(). own: the QP's queue; where rq is a
 * shared one, own logs the entry, and the entry's slot gets taker, the QPN.
 * returns: false when its element count is false: *out then has wr_id and no elements
 */
static inline bool
urn_rq_take(struct urn_rq *rq, struct urn_recv *out, uint32_t taker, struct urn_rq *own)
{
	struct urn_abi_rwqe *w = (void *)((uint8_t *)rq->hdr + URN_ABI_WQ_SLOTS +
					  (size_t)(rq->cons & rq->mask) * rq->stride);
	const struct urn_abi_sge *sge = (const void *)(w + 1);
	uint32_t n = *(const volatile uint32_t *)&w->num_sge; /* read once, whatever the client does meanwhile */
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
	own->undone++;
	if (own != rq) {
		w->taker = taker;
		urn_rq_put_down(own, out->wr_id, rq->cons);
	}
	rq->cons++;
	/* Once the client sees this, it may reuse the slot. */
	atomic_store_explicit(&rq->hdr->cons, rq->cons, memory_order_release);
	return ok;
}

/* The oldest receive that a QP took is completed. returns: number of completed ones, for urn_cq_put() */
static inline uint32_t
urn_rq_did(struct urn_rq *own)
{
	return own->cons - --own->undone;
}

/* The word for that number; NULL: none. */
static inline _Atomic uint32_t *
urn_rq_mark(const struct urn_rq *own)
{
	return likely(own->hdr != NULL) ? &own->hdr->done : NULL;
}

/* From now on every post must ring (see lib/abi/queue.h). */
static inline void
urn_rq_want_ring(struct urn_rq *rq)
{
	atomic_store_explicit(&rq->hdr->ring, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
}

/* ---- completion queue */

/*
 * Fields that tell engines that don't own a queue whether it has room. A resize fills the other one
 * of the two, and then switches to it.
 */
struct urn_cq_side {
	struct urn_abi_cq *hdr;
	uint32_t mask;
	uint32_t base; /* completions that were read before hdr->cons began to count */
};

struct urn_cq {
	struct urn_abi_cq *hdr; /* client's area */
	struct urn_abi_beside *beside; /* client's area: an element an entry; NULL: none */
	const struct urn_space *space; /* the client's own foreign memory; valid with beside */
	uint32_t mask;
	uint32_t prod;          /* completions written so far */
	uint32_t cons;          /* hdr->cons as seen last */
	uint32_t handle;        /* for events */
	uint8_t engine;         /* owner */
	bool touched;           /* in the owner's list of queues to be checked for an armed event */
	bool solicited;         /* a solicited or failed completion came since the last check */
	bool overrun;           /* a completion was lost: no more are begun; any engine, atomically */
	bool shared;            /* QPs of other engines use it, too: each completion first claims its slot */
	int32_t channel_fd;     /* write end of the completion channel; -1: none */
	uint32_t users;         /* control: QPs and SRQs that use it */
	uint32_t events;        /* events written to the channel */
	uint64_t cookie;        /* the client's, for events */
	struct urn_tp_share *owner; /* the client's share on the queue's engine; NULL: no client */
	struct urn_cq *next;    /* next in the owner's list of touched queues; valid while touched and not late */
	TAILQ_ENTRY(urn_cq) untold; /* in the owner's list of queues with a late event; valid while late */
	bool late;              /* its event is late */
	/* Valid when shared. */
	struct urn_cq_side side[2];
	uint32_t at;            /* index of the side in use; the owner's, read by others */
	uint32_t claimed;       /* slots claimed since it is shared; all engines */
	uint32_t handed_late;   /* completions that all engines keep until the owner's ring has room */
};

/* True when the queue has room for one more completion. */
static inline bool
urn_cq_room(struct urn_cq *cq)
{
	uint32_t used = cq->prod - cq->cons;

	if (likely(used <= cq->mask))
		return true;
	cq->cons = atomic_load_explicit(&cq->hdr->cons, memory_order_acquire);
	return cq->prod - cq->cons <= cq->mask;
}

/* From now on other engines' QPs use the queue. In the owner's thread, before there are such QPs. */
static inline void
urn_cq_share(struct urn_cq *cq)
{
	if (cq->shared)
		return;
	cq->side[0] = (struct urn_cq_side){.hdr = cq->hdr, .mask = cq->mask};
	cq->at = 0;
	cq->claimed = cq->prod;
	cq->shared = true;
}

/*
 * Claim a slot of a shared queue, for a completion that is put later, or by another engine: a
 * claimed slot has room. Any engine. The count relies on the client's own index: a client that lies
 * gets as many slots as it likes, so nobody else's memory may depend on that.
 * returns: false when there is no room
 */
static inline bool
urn_cq_claim(struct urn_cq *cq)
{
	uint32_t n = __atomic_load_n(&cq->claimed, __ATOMIC_RELAXED);

	do {
		/* Pairs with the release in urn_cq_turn_side(). */
		const struct urn_cq_side *s = &cq->side[__atomic_load_n(&cq->at, __ATOMIC_ACQUIRE)];

		if (n - s->base - atomic_load_explicit(&s->hdr->cons, memory_order_acquire) > s->mask)
			return false;
	} while (!__atomic_compare_exchange_n(&cq->claimed, &n, n + 1, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return true;
}

/* Entries of a shared queue, by the dataplane's own count, not the client's. Any engine. */
static inline uint32_t
urn_cq_entries(const struct urn_cq *cq)
{
	return cq->side[__atomic_load_n(&cq->at, __ATOMIC_ACQUIRE)].mask + 1;
}

/* Slots claimed and not filled yet; 0 for a queue that is not shared. The owner's. */
static inline uint32_t
urn_cq_on_way(const struct urn_cq *cq)
{
	return cq->shared ? __atomic_load_n(&cq->claimed, __ATOMIC_RELAXED) - cq->side[cq->at].base - cq->prod
			  : 0;
}

/*
 * Replace a shared queue's ring by `hdr`, to which `carried` unread completions were copied. The
 * owner's; nobody looks at the old ring any more once every engine has begun another turn.
 */
static inline void
urn_cq_turn_side(struct urn_cq *cq, struct urn_abi_cq *hdr, uint32_t mask, uint32_t carried)
{
	uint32_t to = cq->at ^ 1;

	cq->side[to] = (struct urn_cq_side){
		.hdr = hdr, .mask = mask, .base = cq->side[cq->at].base + cq->prod - carried};
	/* Pairs with the acquire in urn_cq_claim(). */
	__atomic_store_n(&cq->at, to, __ATOMIC_RELEASE);
}

/*
 * Write one completion; the caller has checked for room. cqe->phase is not read. mark: word of the
 * request's queue that becomes `after`. The word is stored before the completion can be seen,
 * because a program that sees the completion may post into that slot at once; and after the rest of
 * the completion is there (lib/abi/queue.h). NULL: none, and cqe->wqe counts.
 */
static inline __attribute__((always_inline)) void
urn_cq_put(struct urn_cq *cq, const struct urn_abi_cqe *cqe, _Atomic uint32_t *mark, uint32_t after)
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
	slot->wqe = mark ? (uint16_t)(after - 1) : cqe->wqe;
	slot->status = cqe->status;
	slot->opcode = cqe->opcode;
	slot->wc_flags = cqe->wc_flags;
	if (mark) {
		atomic_store_explicit(&slot->phase, URN_CQE_WHOLE, memory_order_release);
		/* Pairs with the acquire in lib/verbs before it reuses a slot. */
		atomic_store_explicit(mark, after, memory_order_release);
	}
	/* Pairs with the acquire of the reader: the rest of the slot is written. */
	atomic_store_explicit(&slot->phase, phase, memory_order_release);
	cq->prod++;
}

/*
 * Write the bytes of a message beside the completion that is written next; the caller has checked
 * for room, and that the bytes fit. to: the client's address that they belong to
 */
static inline void
urn_cq_put_beside(struct urn_cq *cq, uint64_t to, const uint8_t *data, uint32_t length)
{
	struct urn_abi_beside *b = &cq->beside[cq->prod & cq->mask];

	b->addr = to;
	b->length = length;
	memcpy(b->data, data, length);
}

#endif
