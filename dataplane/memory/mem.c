/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory/foreign.h"
#include "memory/internal.h"

#include <stdlib.h>
#include <string.h>

struct urn_mem *
urn_mem_create(uint32_t max_keys, uint32_t max_pds)
{
	struct urn_mem *mem;

	if (max_keys > URN_MEM_MAX_KEYS)
		return NULL;
	mem = aligned_alloc(64, sizeof(*mem));
	if (!mem)
		return NULL;
	memset(mem, 0, sizeof(*mem));
	mem->chunks = (max_keys >> URN_MEM_CHUNK_SHIFT) + 1;
	mem->chunk = calloc(mem->chunks, sizeof(*mem->chunk));
	mem->pd_space = calloc(max_pds / URN_MEM_PDS + 1u, sizeof(*mem->pd_space));
	if (!mem->chunk || !mem->pd_space) {
		free(mem->chunk);
		free(mem->pd_space);
		free(mem);
		return NULL;
	}
	mem->max_keys = max_keys;
	mem->max_pds = max_pds;
	mem->fresh = 1;
	urn_key_in_order(mem);
	mem->pd_fresh = 1;
	return mem;
}

void
urn_mem_count_stores(struct urn_mem *mem)
{
	mem->count_stores = true;
}

/* Release the spaces, and the counts, of regions that nobody took away. */
static void
mem_drop_regions(struct urn_mem_chunk *chunk)
{
	for (uint32_t i = 0; i < URN_MEM_CHUNK; i++) {
		struct urn_foreign *f = (void *)chunk->hot[i].base;

		free(chunk->cold[i].stores);
		if (!chunk->hot[i].foreign)
			continue;
		urn_space_release(f->space);
		free(f);
	}
}

void
urn_mem_destroy(struct urn_mem *mem)
{
	if (!mem)
		return;
	for (uint32_t i = 0; i < mem->chunks; i++) {
		if (mem->chunk[i])
			mem_drop_regions(mem->chunk[i]);
		free(mem->chunk[i]);
	}
	free(mem->chunk);
	for (uint32_t i = 0; i <= mem->max_pds / URN_MEM_PDS; i++)
		free(mem->pd_space[i]);
	free(mem->pd_space);
	free(mem->pd);
	free(mem);
}

URN_FAST enum urn_mem_error
urn_mem_check(struct urn_mem *mem, uint32_t key, uint32_t pd, uint32_t qpn, uint64_t addr,
	      uint64_t len, uint32_t access, int remote, struct urn_region **region)
{
	return urn_mem_check_inline(mem, key, pd, qpn, addr, len, access, remote, region);
}

bool
urn_mem_foreign_at(const struct urn_region *region, const struct urn_space *space, uint64_t addr,
		   uint64_t *to)
{
	const struct urn_foreign *f = (const void *)region->base;

	if (!region->foreign || f->space != space)
		return false;
	*to = f->base + (addr - region->start);
	return true;
}
