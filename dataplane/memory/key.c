/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Indices and keys. A freed index waits in a queue until more than URN_MEM_REUSE_AFTER are free, or
 * no new index is left; then the oldest is given out, with the key whose low 8 bits come after
 * those of its last key in a fixed cycle. A stale key is refused until its index was used 256 times
 * more.
 *
 * Where keys are drawn (urn_mem_draw_keys()), the new indices of a chunk are given out in a random
 * order, the low bits of an index begin at a random value, and the cycle is a random one: from keys
 * of its own a peer or a program does not learn those of others.
 */
#include "memory/internal.h"

#include "base/draw.h"
#include "base/rnd.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

void
urn_key_in_order(struct urn_mem *mem)
{
	for (unsigned int i = 0; i < URN_MEM_TAGS; i++)
		mem->after[i] = (uint8_t)(i + 1);
}

int
urn_mem_draw_keys(struct urn_mem *mem, uint64_t seed)
{
	uint8_t cycle[URN_MEM_TAGS] = {0};
	struct urn_draw d;
	int rc = urn_draw_init(&d, seed);

	if (rc)
		return rc;
	for (unsigned int i = 0; i < URN_MEM_TAGS; i++) {
		unsigned int j = (unsigned int)urn_rnd_below(urn_draw(&d), i + 1);

		cycle[i] = cycle[j];
		cycle[j] = (uint8_t)i;
	}
	for (unsigned int i = 0; i < URN_MEM_TAGS; i++)
		mem->after[cycle[i]] = cycle[(i + 1) % URN_MEM_TAGS];
	mem->draws = true;
	mem->seed = seed;
	return 0;
}

/* Shuffle the n indices of a chunk, and draw the low bits with which each begins. returns: 0 or an
 * errno value */
static int
urn_key_shuffle(const struct urn_mem *mem, struct urn_mem_chunk *chunk, uint16_t *order, uint32_t n)
{
	struct urn_draw d;
	int rc = urn_draw_init(&d, mem->seed ? urn_rnd_at(mem->seed, mem->fresh) | 1 : 0);

	for (uint32_t i = 0; rc == 0 && i < n; i++) {
		uint64_t r = urn_draw(&d);
		uint32_t j = (uint32_t)urn_rnd_below(r, i + 1);
		uint16_t at = order[i];

		order[i] = order[j];
		order[j] = at;
		chunk->cold[at].tag = r & 0xff; /* urn_rnd_below() goes by the high bits */
	}
	return rc;
}

/* Make the chunk of the lowest index that has none, and list its indices to be given out. */
static bool
urn_key_grow(struct urn_mem *mem)
{
	uint32_t c = mem->fresh >> URN_MEM_CHUNK_SHIFT, first = mem->fresh & (URN_MEM_CHUNK - 1),
		 n = 0;
	struct urn_mem_chunk *chunk;
	uint16_t order[URN_MEM_CHUNK];

	chunk = aligned_alloc(64, (sizeof(*chunk) + 63) & ~(size_t)63);
	if (!chunk)
		return false;
	memset(chunk, 0, sizeof(*chunk));
	for (uint32_t i = 0; i < URN_MEM_CHUNK; i++) {
		chunk->hot[i].index = (c << URN_MEM_CHUNK_SHIFT) + i;
		/* Neighbours differ in the low byte, too, so that an index that is off by one is noticed sooner. */
		chunk->cold[i].tag = chunk->hot[i].index * 167u & 0xff;
		if (i >= first && chunk->hot[i].index <= mem->max_keys)
			order[n++] = (uint16_t)i;
	}
	if (mem->draws && urn_key_shuffle(mem, chunk, order, n) != 0) {
		free(chunk);
		return false;
	}
	for (uint32_t i = n; i-- > 0;) {
		chunk->cold[order[i]].next = mem->ready;
		mem->ready = chunk->hot[order[i]].index;
	}
	mem->fresh = (c + 1) << URN_MEM_CHUNK_SHIFT;
	/* Pairs with the acquire in urn_region_at(). */
	__atomic_store_n(&mem->chunk[c], chunk, __ATOMIC_RELEASE);
	return true;
}

/* The freed index that waits longest. */
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

/* An index that was never given out. 0: none is left, or no memory */
static uint32_t
urn_key_new(struct urn_mem *mem)
{
	uint32_t index;

	if (!mem->ready && (mem->fresh > mem->max_keys || !urn_key_grow(mem)))
		return 0;
	index = mem->ready;
	mem->ready = urn_region_cold(mem, urn_region_at(mem, index))->next;
	return index;
}

int
urn_key_alloc(struct urn_mem *mem, uint32_t pd, uint32_t *key)
{
	bool none_new = !mem->ready && mem->fresh > mem->max_keys;
	struct urn_region_cold *cold;
	uint32_t index;

	if (urn_mem_pd_hold(mem, pd))
		return EINVAL;
	if (mem->waiting > URN_MEM_REUSE_AFTER || (none_new && mem->waiting))
		index = urn_key_oldest(mem);
	else
		index = urn_key_new(mem);
	if (!index) {
		urn_mem_pd_release(mem, pd);
		return ENOMEM;
	}
	cold = urn_region_cold(mem, urn_region_at(mem, index));
	cold->tag = mem->after[cold->tag];
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
