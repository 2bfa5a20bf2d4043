/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The check of a key, in line, for callers that check every packet; all others call
 * urn_mem_check(). internal.h explains the table.
 */
#ifndef URN_MEMORY_CHECK_H
#define URN_MEMORY_CHECK_H

#include "memory/mem.h"

#include <rte_branch_prediction.h>

#define URN_MEM_CHUNK_SHIFT 9
#define URN_MEM_CHUNK (1u << URN_MEM_CHUNK_SHIFT)
/* Keys of an index: values of the low 8 bits. */
#define URN_MEM_TAGS 256u

enum urn_region_kind {
	URN_REGION_FREE,
	URN_REGION_MR,
	URN_REGION_DYING, /* a region or window between kill and free: no key reaches it */
	URN_REGION_MW1,
	URN_REGION_MW2,
};

/*
 * One index of the table: a region or a window. All fields but seq are stored under an odd
 * sequence. `start`, `base` and `foreign` of a region do not change until the region is freed, so
 * the executor reads them without looking at the sequence.
 */
struct urn_region {
	uint32_t seq;          /* odd while the entry is being written */
	uint32_t key;          /* the whole key; 0: no key */
	uint32_t pd;           /* handle */
	uint32_t qpn;          /* type 2 windows: number of the QP that the window is bound to */
	uint32_t access;       /* enum urn_abi_access; windows: remote rights only */
	uint32_t kind;         /* enum urn_region_kind */
	uint64_t start;        /* the first address of the key */
	uint64_t length;       /* bytes */
	uint8_t *base; /* regions: address of `start` in this process; or struct urn_foreign */
	struct urn_region *mr; /* region: itself; window: the region it is bound to, NULL: none */
	uint32_t index;        /* index of this entry; constant */
	uint32_t foreign;      /* regions: 1: `base` is a struct urn_foreign (foreign.h) */
} URN_ABI_ALIGNED(64);
_Static_assert(sizeof(struct urn_region) == 64, "a check reads one cache line");

struct urn_region_cold {
	uint32_t bound; /* regions: windows bound to it, or URN_BOUND_DEAD; engines, atomically */
	uint32_t next;	/* free: next in the queue, or of those that were never given out, 0: none;
			 * control. Bound  type 2 window: next in its QP's list; that QP's engine */
	uint32_t prev;  /* type 2 window, bound: the one before in that list, 0: first; the QP's engine */
	uint32_t tag;   /* low 8 bits of the last key of this index; control */
	struct urn_stores_of *stores; /* regions, by engine: URN_ABI_MAX_ENGINES of them (stores.h);
				       * owner: the region; NULL: not counted */
};

struct urn_mem_chunk {
	struct urn_region hot[URN_MEM_CHUNK];
	struct urn_region_cold cold[URN_MEM_CHUNK];
};

/* An engine's answer to urn_mem_ask_turn(). */
struct urn_mem_turns {
	const struct urn_memx *x; /* NULL: no such engine; constant once there are clients */
	uint32_t seen;            /* the newest question from before its last turn began */
} URN_ABI_ALIGNED(64);

struct urn_mem {
	/* Read by checks; constant, but for chunks that are added. */
	struct urn_mem_chunk **chunk; /* directory; entries are stored with release, never changed */
	uint32_t chunks;              /* entries of the directory */
	uint32_t max_keys;            /* highest index */
	/*
	 * The space of a PD's foreign regions, which outlives the PD's QPs; NULL: there were none.
	 * By PD, in chunks of URN_MEM_PDS, stored with release and never changed.
	 */
	struct urn_space ***pd_space;
	/* Control only, on cache lines that checks don't read. */
	uint32_t fresh URN_ABI_ALIGNED(64); /* lowest index that is in no chunk */
	uint32_t ready; /* first index of a chunk that was never given out; 0: none */
	uint32_t waiting;                   /* freed indices in the queue */
	uint32_t first, last;               /* oldest and newest of that queue; 0: empty */
	struct urn_pd *pd;                  /* by handle; [0] unused; grows by doubling */
	uint32_t pd_room;                   /* entries of pd[] */
	uint32_t pd_fresh;                  /* lowest handle never given out */
	uint32_t pd_first, pd_last;         /* queue of freed handles; 0: empty */
	uint32_t max_pds;
	bool draws;		     /* keys are drawn; constant once there are regions */
	uint64_t seed;		     /* ... as a sequence from here; 0: by the kernel */
	uint8_t after[URN_MEM_TAGS]; /* low 8 bits of a key: those of the next one of its index */
	bool count_stores; /* regions get counts of stores; constant once there are regions */
	struct urn_mem_turns turns[URN_ABI_MAX_ENGINES];
	uint32_t asked URN_ABI_ALIGNED(64); /* questions so far (urn_mem_ask_turn()); read each turn */
};

/* Copy of an entry at one moment. */
struct urn_region_view {
	uint32_t seq, key, pd, qpn, access, kind;
	uint64_t start, length;
	struct urn_region *mr;
};

enum { URN_MEM_PDS = 1024 };

/* Place that holds the space of a protection domain; NULL: no domain of its chunk has a space. */
static inline struct urn_space **
urn_mem_pd_space(const struct urn_mem *mem, uint32_t pd)
{
	/* Pairs with the release in pd_room() of region.c: the chunk is cleared. */
	struct urn_space **chunk =
		pd <= mem->max_pds ? __atomic_load_n(&mem->pd_space[pd / URN_MEM_PDS], __ATOMIC_ACQUIRE) : NULL;

	return chunk ? &chunk[pd % URN_MEM_PDS] : NULL;
}

/* A turn of an engine begins, with no check in hand. *seen: newest question that the engine saw */
static inline void
urn_mem_turn(struct urn_mem *mem, unsigned int engine, uint32_t *seen)
{
	/* Pairs with the release in urn_mem_ask_turn(): keys taken away before that are seen as gone from here on. */
	uint32_t asked = __atomic_load_n(&mem->asked, __ATOMIC_ACQUIRE);

	if (likely(asked == *seen) || engine >= URN_ABI_MAX_ENGINES)
		return;
	*seen = asked;
	/* Pairs with the acquire in urn_mem_turned(): operations that were in hand have gone to the executor. */
	__atomic_store_n(&mem->turns[engine].seen, asked, __ATOMIC_RELEASE);
}

/* Entry of an index, given out or not; NULL: the index was never used. */
static inline struct urn_region *
urn_region_at(const struct urn_mem *mem, uint32_t index)
{
	uint32_t c = index >> URN_MEM_CHUNK_SHIFT;
	struct urn_mem_chunk *chunk;

	if (c >= mem->chunks)
		return NULL;
	/* Pairs with the release in urn_key_grow(): the chunk is cleared. */
	chunk = __atomic_load_n(&mem->chunk[c], __ATOMIC_ACQUIRE);
	return chunk ? &chunk->hot[index & (URN_MEM_CHUNK - 1)] : NULL;
}

/* Acquire: no later load of the entry, including its sequence, comes first. */
#define URN_REGION_GET(r, field) __atomic_load_n(&(r)->field, __ATOMIC_ACQUIRE)

/* Read an entry. returns: false when another thread is writing the entry */
static inline bool
urn_region_read(const struct urn_region *r, struct urn_region_view *v)
{
	v->seq = URN_REGION_GET(r, seq);
	v->key = URN_REGION_GET(r, key);
	v->pd = URN_REGION_GET(r, pd);
	v->qpn = URN_REGION_GET(r, qpn);
	v->access = URN_REGION_GET(r, access);
	v->kind = URN_REGION_GET(r, kind);
	v->start = URN_REGION_GET(r, start);
	v->length = URN_REGION_GET(r, length);
	v->mr = URN_REGION_GET(r, mr);
	/* A field stored after the odd sequence was acquired with that sequence: the change is noticed here. */
	return !(v->seq & 1) && __atomic_load_n(&r->seq, __ATOMIC_RELAXED) == v->seq;
}

/*
 * True when `len` bytes at `addr` lie within `length` bytes at `start`. Right for any numbers as
 * long as start + length does not exceed 2^64: an address below `start` wraps to an offset of at
 * least `length`.
 */
static inline bool
urn_range_in(uint64_t start, uint64_t length, uint64_t addr, uint64_t len)
{
	uint64_t off = addr - start;

	return off <= length && len <= length - off;
}

/* urn_mem_check(), in line. */
static inline enum urn_mem_error
urn_mem_check_inline(const struct urn_mem *mem, uint32_t key, uint32_t pd, uint32_t qpn,
		     uint64_t addr, uint64_t len, uint32_t access, int remote,
		     struct urn_region **region)
{
	const struct urn_region *r = urn_region_at(mem, key >> 8);
	struct urn_region_view v;

	if (!r || !urn_region_read(r, &v))
		return URN_MEM_BAD_KEY;
	/* A free index, a dying region and an unbound window have no region. */
	if (v.key != key || v.pd != pd || !v.mr)
		return URN_MEM_BAD_KEY;
	if (v.kind != URN_REGION_MR && (!remote || (v.kind == URN_REGION_MW2 && v.qpn != qpn)))
		return URN_MEM_BAD_KEY;
	if (access & ~v.access)
		return URN_MEM_ACCESS;
	if (len && !urn_range_in(v.start, v.length, addr, len))
		return URN_MEM_RANGE;
	*region = v.mr;
	return URN_MEM_OK;
}

#endif
