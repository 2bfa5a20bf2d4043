/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of memory/ share: the table of keys and the protection
 * domains.
 *
 *   directory            chunk (made when its first index is given out)
 *   +---------+          +--------------------------------+
 *   | chunk 0 |--------->| hot[512]   64 bytes an index   |  read by every check
 *   | chunk 1 |          | cold[512]  12 bytes an index   |  binds and control
 *   |  NULL   |          +--------------------------------+
 *   +---------+
 *
 * A check reads one line of hot[], and no chunk ever moves or goes before the
 * whole table does, so a region is known by the address of its line.
 *
 * Who writes an entry makes its sequence odd by compare-and-swap, stores, and
 * makes it even again. Readers do not wait for that: whoever meets a writer
 * says "no such key", which is the truth about a key that is being made, bound
 * or taken away. Nobody waits for a lock, so a writer that the kernel takes
 * off its core holds up no engine. A retrying reader was the alternative; it
 * would spin for as long as that.
 *
 * A writer has looked at the entry first and swaps the sequence it saw: a
 * refused bind or invalidation writes nothing, and can't disturb the checks of
 * another client.
 */
#ifndef URN_MEMORY_INTERNAL_H
#define URN_MEMORY_INTERNAL_H

#include "memory/mem.h"

#include <stddef.h>

#define URN_MEM_CHUNK_SHIFT 9
#define URN_MEM_CHUNK (1u << URN_MEM_CHUNK_SHIFT)
#define URN_MEM_MAX_KEYS ((1u << 24) - 1)

/* Freed indices that must wait before the oldest of them is given out again. */
#define URN_MEM_REUSE_AFTER 512u

enum urn_region_kind {
	URN_REGION_FREE,
	URN_REGION_MR,
	URN_REGION_DYING, /* a region between kill and free: no key reaches it */
	URN_REGION_MW1,
	URN_REGION_MW2,
};

/*
 * One index of the table: a region or a window. All but seq are stored under
 * an odd sequence. `start` and `base` of a region do not change until it is
 * freed, so the executor reads them without looking at the sequence.
 */
struct urn_region {
	uint32_t seq;          /* odd while the entry is being written */
	uint32_t key;          /* the whole key; 0: none */
	uint32_t pd;           /* handle */
	uint32_t qpn;          /* type 2 windows: the QP bound to */
	uint32_t access;       /* enum urn_abi_access; windows: the remote ones only */
	uint32_t kind;         /* enum urn_region_kind */
	uint64_t start;        /* the first address the key speaks of */
	uint64_t length;       /* bytes */
	uint8_t *base;         /* regions: where `start` lies in this process */
	struct urn_region *mr; /* region: itself; window: the region bound to, NULL: none */
	uint32_t index;        /* of this entry; constant */
	uint32_t rsvd;
} URN_ABI_ALIGNED(64);
_Static_assert(sizeof(struct urn_region) == 64, "a check reads one cache line");

/* Set in `bound` once the region was killed: no further window can be bound. */
#define URN_BOUND_DEAD (1u << 31)

struct urn_region_cold {
	uint32_t bound; /* regions: windows bound to it, or URN_BOUND_DEAD; engines, atomically */
	uint32_t next;  /* free: index behind this one in the queue, 0: none; control */
	uint32_t tag;   /* low 8 bits of the last key that the index had; control */
};

struct urn_mem_chunk {
	struct urn_region hot[URN_MEM_CHUNK];
	struct urn_region_cold cold[URN_MEM_CHUNK];
};

struct urn_pd {
	uint32_t users; /* regions, windows, QPs, SRQs, AHs */
	uint32_t next;  /* free: handle behind this one in the queue, 0: none */
	uint32_t used;  /* 1: given out */
};

struct urn_mem {
	/* Read by checks, constant but for the chunks that appear. */
	struct urn_mem_chunk **chunk; /* directory; entries stored with release, never changed */
	uint32_t chunks;              /* entries of the directory */
	uint32_t max_keys;            /* highest index */
	/* Control only, on lines that checks don't read. */
	uint32_t fresh URN_ABI_ALIGNED(64); /* lowest index never given out */
	uint32_t waiting;                   /* freed indices in the queue */
	uint32_t first, last;               /* of that queue; 0: empty */
	struct urn_pd *pd;                  /* by handle; [0] unused; grows by doubling */
	uint32_t pd_room;                   /* entries of pd[] */
	uint32_t pd_fresh;                  /* lowest handle never given out */
	uint32_t pd_first, pd_last;         /* queue of freed handles; 0: empty */
	uint32_t max_pds;
};
_Static_assert(offsetof(struct urn_mem, fresh) == 64, "control's lines");

/* What an entry said at one moment. */
struct urn_region_view {
	uint32_t seq, key, pd, qpn, access, kind;
	uint64_t start, length;
	struct urn_region *mr;
};

/* Entry of an index, given out or not; NULL: there was never one. */
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

static inline struct urn_region_cold *
urn_region_cold(const struct urn_mem *mem, const struct urn_region *r)
{
	return &mem->chunk[r->index >> URN_MEM_CHUNK_SHIFT]->cold[r->index & (URN_MEM_CHUNK - 1)];
}

/* Acquire: no later load of the entry, its sequence included, comes first. */
#define URN_REGION_GET(r, field) __atomic_load_n(&(r)->field, __ATOMIC_ACQUIRE)
/* Release: the odd sequence is seen before any store that follows it. */
#define URN_REGION_SET(r, field, value) __atomic_store_n(&(r)->field, value, __ATOMIC_RELEASE)

/* Read an entry. False: somebody is writing it. */
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
	/* A field stored after the odd sequence was acquired with it: it is seen here. */
	return !(v->seq & 1) && __atomic_load_n(&r->seq, __ATOMIC_RELAXED) == v->seq;
}

/* Has the entry stayed as it was read? */
static inline bool
urn_region_same(const struct urn_region *r, const struct urn_region_view *v)
{
	return URN_REGION_GET(r, seq) == v->seq;
}

/* Start writing an entry that is still as it was read. False: it isn't. */
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
 * Do `len` bytes at `addr` lie within `length` bytes at `start`? Right for any
 * numbers as long as start + length does not exceed 2^64: an address below
 * `start` wraps to an offset of at least `length`.
 */
static inline bool
urn_range_in(uint64_t start, uint64_t length, uint64_t addr, uint64_t len)
{
	uint64_t off = addr - start;

	return off <= length && len <= length - off;
}

/*
 * Read and start writing an entry, waiting for an engine that does. For
 * control calls. False: the entry is none of the kinds whose bits are set.
 */
bool urn_region_take(struct urn_region *r, uint32_t kinds, struct urn_region_view *v);

/* Take an index out of the table and make its next key; 0: ENOMEM. Control. */
uint32_t urn_key_alloc(struct urn_mem *mem);
/* Queue the index of an entry that nothing reaches any more. Control. */
void urn_key_free(struct urn_mem *mem, struct urn_region *r, uint32_t last_key);

/* Drop one window from the count of the region it was bound to; NULL: none. */
void urn_region_unbound(const struct urn_mem *mem, const struct urn_region *mr);

#endif
