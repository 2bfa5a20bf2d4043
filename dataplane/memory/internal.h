/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Declarations that the files of memory/ share: the table of keys and the protection domains.
 *
 *   directory            chunk (made when its first index is given out)
 *   +---------+          +--------------------------------+
 *   | chunk 0 |--------->| hot[512]   64 bytes an index   |  read by every check
 *   | chunk 1 |          | cold[512]  16 bytes an index   |  binds and control
 *   |  NULL   |          +--------------------------------+
 *   +---------+
 *
 * A check reads one line of hot[], and no chunk ever moves or is freed before the whole table
 * is, so the address of its line identifies a region.
 *
 * A writer of an entry makes its sequence odd by compare-and-swap, stores, and makes the
 * sequence even again. Readers do not wait for that: a reader that meets a writer answers "no
 * such key", which is true of a key that is being made, bound or taken away. Nobody waits for a
 * lock, so a writer that the kernel takes off its core holds up no engine. The alternative, a
 * reader that retries, would spin for that long.
 *
 * A writer looks at the entry first and then swaps the sequence that it saw: a refused bind or
 * invalidation writes nothing, and can't disturb the checks of another client.
 */
#ifndef URN_MEMORY_INTERNAL_H
#define URN_MEMORY_INTERNAL_H

#include "memory/check.h"

#include <stddef.h>

#define URN_MEM_MAX_KEYS ((1u << 24) - 1)

/* Freed indices that must wait before the oldest of them is reused. */
#define URN_MEM_REUSE_AFTER 512u

/* Set in `bound` of a region that was killed: no further window can be bound. */
#define URN_BOUND_DEAD (1u << 31)

struct urn_pd {
	uint32_t users; /* number of regions, windows, QPs, SRQs, AHs */
	uint32_t next;  /* free: next handle in the queue, 0: none */
	uint32_t used;  /* 1: given out */
};

_Static_assert(offsetof(struct urn_mem, fresh) == 64, "control's lines");

static inline struct urn_region_cold *
urn_region_cold(const struct urn_mem *mem, const struct urn_region *r)
{
	return &mem->chunk[r->index >> URN_MEM_CHUNK_SHIFT]->cold[r->index & (URN_MEM_CHUNK - 1)];
}

/* Release: the odd sequence is seen before any store that follows it. */
#define URN_REGION_SET(r, field, value) __atomic_store_n(&(r)->field, value, __ATOMIC_RELEASE)

/* True when the entry has not changed since it was read. */
static inline bool
urn_region_same(const struct urn_region *r, const struct urn_region_view *v)
{
	return URN_REGION_GET(r, seq) == v->seq;
}

/* Start writing an entry that has not changed since it was read. returns: false when it has */
static inline bool
urn_region_lock(struct urn_region *r, const struct urn_region_view *v)
{
	uint32_t seen = v->seq;

	return __atomic_compare_exchange_n(&r->seq, &seen, v->seq + 1, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

static inline void
urn_region_unlock(struct urn_region *r, const struct urn_region_view *v)
{
	__atomic_store_n(&r->seq, v->seq + 2, __ATOMIC_RELEASE);
}

/*
 * Read and start writing an entry, waiting for an engine that does. For control calls. returns:
 * false when the entry is none of the kinds whose bits are set
 */
bool urn_region_take(struct urn_region *r, uint32_t kinds, struct urn_region_view *v);

/*
 * Take an index out of the table and make its next key, for an object that belongs to `pd` and
 * holds it. returns: 0, EINVAL: no such PD, ENOMEM. Control.
 */
int urn_key_alloc(struct urn_mem *mem, uint32_t pd, uint32_t *key);
/* Keys of an index count up, until urn_mem_draw_keys(). */
void urn_key_in_order(struct urn_mem *mem);
/* Queue the index of an entry that no key reaches any more. Control. */
void urn_key_free(struct urn_mem *mem, struct urn_region *r, uint32_t last_key);

/* Subtract one window from the count of the region that it was bound to; NULL: none. */
void urn_region_unbound(const struct urn_mem *mem, const struct urn_region *mr);

#endif
