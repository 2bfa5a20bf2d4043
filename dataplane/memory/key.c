/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Indices and keys. A freed index waits in a queue until more than URN_MEM_REUSE_AFTER are free, or
 * no new index is left; then the oldest is given out, with a key whose low 8 bits are one above
 * those of its last key. A stale key is refused until its index was used 256 times more.
 */
#include "memory/internal.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* Make the chunk of an index. */
static bool
urn_key_grow(struct urn_mem *mem, uint32_t index)
{
	uint32_t c = index >> URN_MEM_CHUNK_SHIFT;
	struct urn_mem_chunk *chunk;

	if (mem->chunk[c])
		return true;
	chunk = aligned_alloc(64, (sizeof(*chunk) + 63) & ~(size_t)63);
	if (!chunk)
		return false;
	memset(chunk, 0, sizeof(*chunk));
	for (uint32_t i = 0; i < URN_MEM_CHUNK; i++) {
		chunk->hot[i].index = (c << URN_MEM_CHUNK_SHIFT) + i;
		/* Neighbours differ in the low byte, too, so that an index that is off by one is noticed sooner. */
		chunk->cold[i].tag = chunk->hot[i].index * 167u;
	}
	/* Pairs with the acquire in urn_region_at(). */
	__atomic_store_n(&mem->chunk[c], chunk, __ATOMIC_RELEASE);
	return true;
}

static uint32_t
urn_key_oldest(struct urn_mem *mem)
{
	uint32_t index = mem->first;

	mem->first = urn_region_cold(mem, urn_region_at(mem, index))->next;
	if (!mem->first)
		mem->last = 0;
	mem->waiting--;
	return index;
}

int
urn_key_alloc(struct urn_mem *mem, uint32_t pd, uint32_t *key)
{
	struct urn_region_cold *cold;
	uint32_t index;

	if (urn_mem_pd_hold(mem, pd))
		return EINVAL;
	if (mem->waiting > URN_MEM_REUSE_AFTER || (mem->fresh > mem->max_keys && mem->waiting)) {
		index = urn_key_oldest(mem);
	} else {
		if (mem->fresh > mem->max_keys || !urn_key_grow(mem, mem->fresh)) {
			urn_mem_pd_release(mem, pd);
			return ENOMEM;
		}
		index = mem->fresh++;
	}
	cold = urn_region_cold(mem, urn_region_at(mem, index));
	cold->tag = (cold->tag + 1) & 0xff;
	*key = index << 8 | cold->tag;
	return 0;
}

void
urn_key_free(struct urn_mem *mem, struct urn_region *r, uint32_t last_key)
{
	struct urn_region_cold *cold = urn_region_cold(mem, r);

	cold->tag = last_key & 0xff;
	cold->next = 0;
	if (mem->last)
		urn_region_cold(mem, urn_region_at(mem, mem->last))->next = r->index;
	else
		mem->first = r->index;
	mem->last = r->index;
	mem->waiting++;
}

bool
urn_region_take(struct urn_region *r, uint32_t kinds, struct urn_region_view *v)
{
	for (;;) {
		if (urn_region_read(r, v)) {
			if (!(kinds & 1u << v->kind))
				return false;
			if (urn_region_lock(r, v))
				return true;
		}
		sched_yield();
	}
}
