/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts of the stores of placements: how many cache lines of a region each packet covered whole,
 * and how many it only touched (AW-7). A line that is covered whole can be stored without being
 * read first; a line that is only touched costs a read, or the join of two stores.
 *
 *   line        line        line        line
 *   |-----------|-----------|-----------|
 *         [ one placement        ]
 *         partial     full      partial
 *
 * Off by default: an executor that does not count has no code of it on its path. Each engine has
 * lines of its own for each region, so that nothing is shared on the fast path.
 */
#ifndef URN_MEMORY_STORES_H
#define URN_MEMORY_STORES_H

#include "memory/internal.h"

#include <stdint.h>

/* Lines that are counted: 64, 128 and 256 bytes, by index (AW-1). */
enum { URN_STORES_LINES = URN_ABI_STORES_LINES, URN_STORES_SHIFT = 6 };

/* Counts of one region by one engine, which alone writes them; others may read them. */
struct urn_stores_of {
	uint64_t full[URN_STORES_LINES]; /* lines covered whole by one placement, by size of line */
	uint64_t partial[URN_STORES_LINES]; /* lines touched and not covered, by size of line */
} URN_ABI_ALIGNED(64);
_Static_assert(sizeof(struct urn_stores_of) == 64, "a cache line of the engine's own");

/* Counts of one region, for all engines; owner: the caller, free(). NULL: no memory */
struct urn_stores_of *urn_stores_make(void);

/* The counts of a region, which lies in its chunk's hot[]. NULL: not counted */
static inline struct urn_stores_of *
urn_stores_at(const struct urn_region *r)
{
	const struct urn_region *first = r - (r->index & (URN_MEM_CHUNK - 1));
	const struct urn_mem_chunk *chunk = (const void *)first;

	return chunk->cold[r->index & (URN_MEM_CHUNK - 1)].stores;
}
_Static_assert(offsetof(struct urn_mem_chunk, hot) == 0, "a chunk is found by its first region");

/* Count a placement of len bytes, at least one, at this address. */
static inline void
urn_stores_count(struct urn_stores_of *s, uint64_t at, uint32_t len)
{
	for (unsigned int i = 0; i < URN_STORES_LINES; i++) {
		unsigned int shift = URN_STORES_SHIFT + i;
		uint64_t line = UINT64_C(1) << shift;
		uint64_t touched = ((at + len - 1) >> shift) - (at >> shift) + 1;
		uint64_t from = (at + line - 1) >> shift, to = (at + len) >> shift;
		uint64_t full = to > from ? to - from : 0;

		__atomic_store_n(&s->full[i], s->full[i] + full, __ATOMIC_RELAXED);
		__atomic_store_n(&s->partial[i], s->partial[i] + touched - full, __ATOMIC_RELAXED);
	}
}

/*
 * Add up the counts of all engines of the region with this key. The caller keeps the region, as
 * control calls do. returns: 0; EINVAL: no such region; EOPNOTSUPP: stores are not counted
 */
int urn_stores_read(const struct urn_mem *mem, uint32_t lkey, struct urn_abi_stores *out);

#endif
