/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics, and their log in the memory of the program whose memory they change (lib/abi/queue.h):
 * the new value is logged before it is stored.
 */
#ifndef URN_MEMORY_ATOMIC_H
#define URN_MEMORY_ATOMIC_H

#include "abi/queue.h"
#include "memory/mem.h"
#include "wire/pkt.h"

/* Value that an atomic leaves where it found `old`. */
static inline uint64_t
urn_atomic_result(const struct urn_memop *op, uint64_t old, const uint64_t word[2])
{
	return op->kind == URN_MEMOP_FETCH_ADD ? old + word[0] : old == word[0] ? word[1] : old;
}

/* Log the value that is going to be stored; memory is written after this. */
static inline void
urn_atomic_intend(const struct urn_memop *op, uint64_t old, uint64_t now)
{
	struct urn_abi_atomic *a = (void *)op->frame;

	if (!a)
		return;
	atomic_store_explicit(&a->state, URN_ATOMIC_NONE, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	a->addr = op->addr;
	a->old = old;
	a->new = now;
	a->psn = urn_pkt(op->m)->psn;
	atomic_store_explicit(&a->state, URN_ATOMIC_INTENT, memory_order_release);
}

/* Log that memory has been written. */
static inline void
urn_atomic_did(const struct urn_memop *op)
{
	struct urn_abi_atomic *a = (void *)op->frame;

	if (a)
		atomic_store_explicit(&a->state, URN_ATOMIC_DONE, memory_order_release);
}

#endif
