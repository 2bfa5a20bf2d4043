/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pool of entries of an array: so many and no more, by index. The entry that was put back last is
 * taken first; entries that were never taken are not touched, so that their memory costs nothing.
 * The owner keeps the array, whose entries have a uint32_t field for the index of the next free one;
 * the pool uses that field only while the entry is in the pool.
 */
#ifndef URN_BASE_POOL_H
#define URN_BASE_POOL_H

#include "base/hash.h"

struct urn_pool {
	uint32_t free; /* entry that was put back last; URN_HASH_NIL: none */
	uint32_t made; /* index behind the entries that were ever taken */
	uint32_t end;  /* index behind the last entry */
};

/* All entries from `first` to before `end` are in the pool. first: 1 for an owner to whom 0 is no entry */
static inline void
urn_pool_init(struct urn_pool *p, uint32_t first, uint32_t end)
{
	*p = (struct urn_pool){.free = URN_HASH_NIL, .made = first, .end = end};
}

/*
 * Take an entry, whose bytes are as they were put back, or as the owner made them. next: the field
 * of entry 0; size: bytes of an entry. returns: the index, or URN_HASH_NIL: the pool is empty
 */
static inline uint32_t
urn_pool_get(struct urn_pool *p, const uint32_t *next, size_t size)
{
	uint32_t i = p->free;

	if (i != URN_HASH_NIL)
		p->free = *(const uint32_t *)((const char *)next + i * size);
	else if (p->made < p->end)
		i = p->made++;
	return i;
}

/* Put back entry i, which was taken. next, size: as for urn_pool_get() */
static inline void
urn_pool_put(struct urn_pool *p, uint32_t i, uint32_t *next, size_t size)
{
	*(uint32_t *)((char *)next + i * size) = p->free;
	p->free = i;
}

#endif
