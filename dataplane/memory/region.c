/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions: registering memory and taking it away. Control only. */
#include "memory/foreign.h"
#include "memory/internal.h"
#include "memory/stores.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Access bits that a region may be registered with. Bits 20 to 29 are the optional ones of enum
 * ibv_access_flags, which may be ignored.
 */
#define REGION_ACCESS                                                                \
	(URN_ACCESS_LOCAL_WRITE | URN_ACCESS_REMOTE_WRITE | URN_ACCESS_REMOTE_READ | \
	 URN_ACCESS_REMOTE_ATOMIC | URN_ACCESS_MW_BIND | URN_ACCESS_ZERO_BASED)
#define REGION_OPTIONAL 0x3ff00000u

static bool
region_access_ok(uint32_t access)
{
	if (access & ~(REGION_ACCESS | REGION_OPTIONAL))
		return false;
	/* IBTA 10.6.3.1: a region with remote write or atomics needs local write. */
	return !(access & (URN_ACCESS_REMOTE_WRITE | URN_ACCESS_REMOTE_ATOMIC)) ||
	       (access & URN_ACCESS_LOCAL_WRITE);
}

/* True when the last of `length` bytes at `start` has an address. */
static bool
region_fits(uint64_t start, uint64_t length)
{
	return !length || start <= UINT64_MAX - (length - 1);
}

/* Give the region with this key its counts, if stores are counted. returns: false: no memory */
static bool
region_counts(struct urn_mem *mem, uint32_t key)
{
	struct urn_region_cold *cold = urn_region_cold(mem, urn_region_at(mem, key >> 8));

	if (mem->count_stores)
		cold->stores = urn_stores_make();
	return cold->stores || !mem->count_stores;
}

/* Make a region, on any kind of memory. base: see struct urn_region */
static int
region_make(struct urn_mem *mem, uint32_t pd, void *base, bool foreign, uint64_t length,
	    uint64_t iova, uint32_t access, uint32_t *key)
{
	struct urn_region_view v;
	struct urn_region *r;
	uint32_t k;
	int rc;

	rc = urn_key_alloc(mem, pd, &k);
	if (rc)
		return rc;
	r = urn_region_at(mem, k >> 8);
	if (!region_counts(mem, k)) {
		urn_key_free(mem, r, k);
		urn_mem_pd_release(mem, pd);
		return ENOMEM;
	}
	/* No window was bound here since the last region of this index died. */
	__atomic_store_n(&urn_region_cold(mem, r)->bound, 0, __ATOMIC_RELEASE);
	urn_region_take(r, 1u << URN_REGION_FREE, &v);
	URN_REGION_SET(r, key, k);
	URN_REGION_SET(r, pd, pd);
	URN_REGION_SET(r, qpn, 0);
	URN_REGION_SET(r, access, access & REGION_ACCESS);
	URN_REGION_SET(r, kind, URN_REGION_MR);
	URN_REGION_SET(r, start, iova);
	URN_REGION_SET(r, length, length);
	URN_REGION_SET(r, base, (uint8_t *)base);
	URN_REGION_SET(r, foreign, foreign);
	URN_REGION_SET(r, mr, r);
	urn_region_unlock(r, &v);
	*key = k;
	return 0;
}

int
urn_mem_reg_mr(struct urn_mem *mem, uint32_t pd, void *base, uint64_t length, uint64_t iova,
	       uint32_t access, uint32_t *key)
{
	if (access & URN_ACCESS_ZERO_BASED)
		iova = 0;
	if (!region_access_ok(access) || (!base && length) ||
	    !region_fits((uintptr_t)base, length) || !region_fits(iova, length))
		return EINVAL;
	return region_make(mem, pd, base, false, length, iova, access, key);
}

int
urn_mem_check_foreign(const struct urn_space *space, uint64_t addr, uint64_t length, uint64_t iova,
		      uint32_t access, char *why, size_t len)
{
	uint32_t writes =
		URN_ACCESS_LOCAL_WRITE | URN_ACCESS_REMOTE_WRITE | URN_ACCESS_REMOTE_ATOMIC;

	if (access & URN_ACCESS_ZERO_BASED)
		iova = 0;
	if (!region_access_ok(access)) {
		snprintf(why, len,
			 "access 0x%x is not possible: remote write and atomics need local "
			 "write, and the bits must be known",
			 access);
		return EINVAL;
	}
	if (!region_fits(addr, length) || !region_fits(iova, length)) {
		snprintf(why, len, "%llu bytes at 0x%llx wrap around the address space",
			 (unsigned long long)length, (unsigned long long)addr);
		return EINVAL;
	}
	return urn_space_check(space, addr, length, access & writes, why, len);
}

/* Make the place for a domain's space. returns: false: no memory; true also when there is no such domain */
static bool
pd_room(struct urn_mem *mem, uint32_t pd)
{
	struct urn_space **chunk;

	if (pd > mem->max_pds || urn_mem_pd_space(mem, pd))
		return true;
	chunk = calloc(URN_MEM_PDS, sizeof(*chunk));
	if (!chunk)
		return false;
	/* Pairs with the acquire in urn_mem_pd_space(). */
	__atomic_store_n(&mem->pd_space[pd / URN_MEM_PDS], chunk, __ATOMIC_RELEASE);
	return true;
}

int
urn_mem_add_foreign(struct urn_mem *mem, uint32_t pd, struct urn_space *space, uint64_t addr,
		    uint64_t length, uint64_t iova, uint32_t access, uint32_t *key, char *why,
		    size_t len)
{
	struct urn_foreign *f;
	int rc;

	if (access & URN_ACCESS_ZERO_BASED)
		iova = 0;
	rc = urn_space_start(space);
	if (rc != 0) {
		snprintf(why, len, "no thread to copy its memory: %s", strerror(rc));
		return rc;
	}
	f = pd_room(mem, pd) ? malloc(sizeof(*f)) : NULL;
	if (f)
		*f = (struct urn_foreign){.space = space, .base = addr};
	rc = f ? region_make(mem, pd, f, true, length, iova, access, key) : ENOMEM;
	if (rc != 0) {
		free(f);
		snprintf(why, len,
			 rc == EINVAL ? "no protection domain %u"
				      : "no memory, or no more regions, in domain %u",
			 pd);
		return rc;
	}
	urn_space_hold(space);
	/* Pairs with the acquire in urn_memx_gated(). */
	__atomic_store_n(urn_mem_pd_space(mem, pd), space, __ATOMIC_RELEASE);
	return 0;
}

int
urn_mem_kill_mr(struct urn_mem *mem, uint32_t key, struct urn_region **region)
{
	struct urn_region *r = urn_region_at(mem, key >> 8);
	struct urn_region_view v;
	uint32_t none = 0;

	if (!r || !urn_region_read(r, &v) || v.kind != URN_REGION_MR || v.key != key)
		return EINVAL;
	/* From here on no window can be bound; pairs with urn_region_bind(). */
	if (!__atomic_compare_exchange_n(&urn_region_cold(mem, r)->bound, &none, URN_BOUND_DEAD,
					 false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return EBUSY;
	urn_region_take(r, 1u << URN_REGION_MR, &v);
	URN_REGION_SET(r, key, 0);
	URN_REGION_SET(r, kind, URN_REGION_DYING);
	URN_REGION_SET(r, mr, NULL);
	urn_region_unlock(r, &v);
	/* The key is needed once more, to make the next one of this index. */
	urn_region_cold(mem, r)->tag = key & 0xff;
	*region = r;
	return 0;
}

/* References that a region holds; the region is killed. */
struct region_refs {
	struct urn_foreign *f; /* NULL: none */
	uint32_t pd;
};

static struct region_refs
region_refs(const struct urn_region *r)
{
	return (struct region_refs){.f = r->foreign ? (void *)r->base : NULL, .pd = r->pd};
}

static void
region_let_go(struct urn_mem *mem, const struct region_refs *refs)
{
	urn_mem_pd_release(mem, refs->pd);
	if (refs->f)
		urn_space_release(refs->f->space);
	free(refs->f);
}

/* Queue the index of a killed region, whose references are another's or let go. returns: false: not
 * killed */
static bool
region_end(struct urn_mem *mem, struct urn_region *region)
{
	struct urn_region_view v;

	if (!urn_region_take(region, 1u << URN_REGION_DYING, &v))
		return false;
	free(urn_region_cold(mem, region)->stores);
	urn_region_cold(mem, region)->stores = NULL;
	URN_REGION_SET(region, kind, URN_REGION_FREE);
	URN_REGION_SET(region, pd, 0);
	URN_REGION_SET(region, base, NULL);
	URN_REGION_SET(region, foreign, 0);
	URN_REGION_SET(region, length, 0);
	urn_region_unlock(region, &v);
	urn_key_free(mem, region, urn_region_cold(mem, region)->tag);
	return true;
}

void
urn_mem_free_mr(struct urn_mem *mem, struct urn_region *region)
{
	struct region_refs refs = region_refs(region);

	if (region_end(mem, region))
		region_let_go(mem, &refs);
}

/* Let a killed region's key work again; the region is taken. */
static void
region_open(struct urn_mem *mem, struct urn_region *r, const struct urn_region_view *v,
	    uint32_t key)
{
	URN_REGION_SET(r, key, key);
	URN_REGION_SET(r, kind, URN_REGION_MR);
	URN_REGION_SET(r, mr, r);
	__atomic_store_n(&urn_region_cold(mem, r)->bound, 0, __ATOMIC_RELEASE);
	urn_region_unlock(r, v);
}

void
urn_mem_revive_mr(struct urn_mem *mem, struct urn_region *region, uint32_t key)
{
	struct urn_region_view v;

	if (urn_region_take(region, 1u << URN_REGION_DYING, &v))
		region_open(mem, region, &v, key);
}

void
urn_mem_replace_mr(struct urn_mem *mem, struct urn_region *region, uint32_t key,
		   struct urn_region *by)
{
	struct region_refs refs = region_refs(region);
	struct urn_region_view v;

	if (!urn_region_take(region, 1u << URN_REGION_DYING, &v))
		return;
	URN_REGION_SET(region, pd, by->pd);
	URN_REGION_SET(region, access, by->access);
	URN_REGION_SET(region, start, by->start);
	URN_REGION_SET(region, length, by->length);
	URN_REGION_SET(region, base, by->base);
	URN_REGION_SET(region, foreign, by->foreign);
	region_open(mem, region, &v, key);
	(void)region_end(mem, by);
	region_let_go(mem, &refs);
}
