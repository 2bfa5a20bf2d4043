/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions of endpoints, and the check of each packet against them (AM-9). A region is a sorted list
 * of disjoint ranges of the client's memory regions; one contiguous range is a list of one. The
 * check searches the list by halves, and no range is looked at behind: each knows how far those go
 * that touch it, however many they are. Each packet is checked against the memory region below as
 * well: memory that was deregistered meanwhile is not reached, and nobody has to tell the endpoint.
 */
#include "am/priv.h"
#include "memory/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAPPED_OK, MAPPED_NOT, MAPPED_FOREIGN };

/* Look memory up. *at: set with MAPPED_OK */
static inline __attribute__((always_inline)) int
look_up(const struct urn_tp *tp, uint32_t pd, uint32_t lkey, uint64_t addr, uint64_t len,
	uint32_t access, uint8_t **at)
{
	struct urn_region *r;

	if (urn_mem_check_inline(tp->cfg.mem, lkey, pd, 0, addr, len, access, 0, &r) != URN_MEM_OK)
		return MAPPED_NOT;
	if (r->foreign)
		return MAPPED_FOREIGN;
	*at = r->base + (addr - r->start);
	return MAPPED_OK;
}

URN_FAST uint8_t *
urn_am_mapped(const struct urn_tp *tp, uint32_t pd, uint32_t lkey, uint64_t addr, uint64_t len,
	      uint32_t access)
{
	uint8_t *at;

	return look_up(tp, pd, lkey, addr, len, access, &at) == MAPPED_OK ? at : NULL;
}

/* Rights to the memory region below that an access needs. access: bits of enum urn_am_access */
static uint32_t
local_access(uint32_t access)
{
	return access & (URN_AM_ACCESS_WRITE | URN_AM_ACCESS_ATOMIC) ? URN_ACCESS_LOCAL_WRITE : 0;
}

/* ---- the check of a packet */

static struct urn_am_region *
find_region(const struct urn_am_ep *ep, uint64_t key)
{
	struct urn_am_region *r;

	if (!key)
		return ep->space;
	r = ep->region ? ep->region[key % URN_AM_REGIONS_MAX] : NULL;
	return r && r->key == key ? r : NULL;
}

/* Index of the last range that begins at or before addr; 0 when none does. */
static uint32_t
find_range(const struct urn_am_region *r, uint64_t addr)
{
	uint32_t low = 0, high = r->n; /* the range is in [low, high), or there is none */

	while (high - low > 1) {
		uint32_t mid = low + (high - low) / 2;

		if (r->range[mid].addr <= addr)
			low = mid;
		else
			high = mid;
	}
	return low;
}

/* True when all bytes lie in a range and those behind that touch each other. len: not 0 */
static bool
holds(const struct urn_am_range *g, uint64_t addr, uint32_t len)
{
	return urn_range_in(g->addr, g->len, addr, 1) && len - 1 <= g->last - addr;
}

URN_FAST uint8_t
urn_am_reach(const struct urn_tp *tp, const struct urn_am_ep *ep, uint64_t key, uint64_t addr,
	     uint32_t len, uint32_t access, struct urn_am_piece piece[URN_AM_PIECES],
	     unsigned int *n)
{
	const struct urn_am_region *r = find_region(ep, key);
	uint32_t local = local_access(access);

	if (!r)
		return key ? URN_AM_BAD_KEY : URN_AM_UNREGISTERED;
	if (access & ~r->access)
		return URN_AM_RIGHTS;
	*n = 0;
	for (uint32_t i = find_range(r, addr); len; i++) {
		uint64_t off, here;

		if (i == r->n || !urn_range_in(r->range[i].addr, r->range[i].len, addr, 1))
			return URN_AM_RANGE;
		if (unlikely(*n == URN_AM_PIECES))
			return holds(&r->range[i], addr, len) ? URN_AM_SCATTERED : URN_AM_RANGE;
		off = addr - r->range[i].addr;
		here = RTE_MIN(r->range[i].len - off, (uint64_t)len);
		if (look_up(tp, ep->pd, r->range[i].lkey, addr, here, local, &piece[*n].at) !=
		    MAPPED_OK)
			return URN_AM_BAD_KEY;
		piece[*n].len = (uint32_t)here;
		(*n)++;
		addr += here;
		len -= (uint32_t)here;
	}
	return URN_AM_DONE;
}

uint8_t
urn_am_covers(const struct urn_am_ep *ep, uint64_t key, uint64_t addr, uint32_t len,
	      uint32_t access)
{
	const struct urn_am_region *r = find_region(ep, key);

	if (!r)
		return key ? URN_AM_BAD_KEY : URN_AM_UNREGISTERED;
	if (access & ~r->access)
		return URN_AM_RIGHTS;
	return !len || holds(&r->range[find_range(r, addr)], addr, len) ? URN_AM_DONE
									: URN_AM_RANGE;
}

/* ---- regions come and go */

/* Check range i of a list. returns: 0, or an errno value as of urn_am_region_add() */
static int
check_range(const struct urn_tp *tp, const struct urn_am_ep *ep, const struct urn_abi_am_range *l,
	    uint32_t i, uint32_t access)
{
	uint32_t local = local_access(access);
	uint8_t *at;

	if (!l[i].len || l[i].addr + (l[i].len - 1) < l[i].addr || l[i].rsvd)
		return EINVAL;
	if (i && (l[i].addr <= l[i - 1].addr || l[i].addr - l[i - 1].addr < l[i - 1].len))
		return EINVAL;
	switch (look_up(tp, ep->pd, l[i].lkey, l[i].addr, l[i].len, local, &at)) {
	case MAPPED_OK:
		return 0;
	case MAPPED_FOREIGN:
		return EOPNOTSUPP;
	default:
		return EFAULT;
	}
}

/* Fill a region with a list that was checked; ranges of one memory region that touch become one. */
static void
fill(struct urn_am_region *r, const struct urn_abi_am_range *l, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct urn_am_range *last = i ? &r->range[r->n - 1] : NULL;

		if (last && last->lkey == l[i].lkey && last->addr + last->len == l[i].addr) {
			last->len += l[i].len;
			continue;
		}
		r->range[r->n++] = (struct urn_am_range){
			.addr = l[i].addr, .len = l[i].len, .lkey = l[i].lkey};
	}
	for (uint32_t i = r->n; i-- > 0;) {
		struct urn_am_range *g = &r->range[i];
		bool touch = i + 1 < r->n && g->addr + g->len == r->range[i + 1].addr;

		g->last = touch ? r->range[i + 1].last : g->addr + (g->len - 1);
	}
}

/* Make a region of a list that nobody else can change. *region: set on success. returns: as
 * urn_am_region_add() */
static int
make(const struct urn_tp *tp, const struct urn_am_ep *ep, const struct urn_abi_am_range *l,
     struct urn_am_region_config *c, struct urn_am_region **region)
{
	struct urn_am_region *r;

	for (c->bad = 0; c->bad < c->n; c->bad++) {
		int rc = check_range(tp, ep, l, c->bad, c->access);

		if (rc != 0)
			return rc;
	}
	r = malloc(sizeof(*r) + c->n * sizeof(r->range[0]));
	if (!r)
		return ENOMEM;
	*r = (struct urn_am_region){.access = c->access};
	fill(r, l, c->n);
	*region = r;
	return 0;
}

/* Put a region into a free place, and make its key. returns: 0; ENOSPC: there is none; ENOMEM */
static int
enter(struct urn_am_ep *ep, struct urn_am_region *r, uint64_t random)
{
	uint32_t i = 0;

	if (!ep->region)
		ep->region = calloc(URN_AM_REGIONS_MAX, sizeof(*ep->region));
	if (!ep->region)
		return ENOMEM;
	while (i < URN_AM_REGIONS_MAX && ep->region[i])
		i++;
	if (i == URN_AM_REGIONS_MAX)
		return ENOSPC;
	/* A place below 56 random bits: no region of this node or another has the key, nor had it.
	 */
	r->key = random / URN_AM_REGIONS_MAX * URN_AM_REGIONS_MAX + i;
	if (!r->key)
		r->key = URN_AM_REGIONS_MAX;
	ep->region[i] = r;
	return 0;
}

int
urn_am_region_add(struct urn_tp *tp, struct urn_am_ep *ep, struct urn_am_region_config *c)
{
	struct urn_am *am = urn_am_of(tp);
	struct urn_abi_am_range *l;
	struct urn_am_region *r;
	int rc;

	if (c->space && !am->unregistered)
		return EPERM;
	if (c->space && ep->space)
		return EEXIST;
	if (!c->n || c->n > ep->ranges || c->n > URN_AM_RANGES_MAX - ep->ranges_n)
		return ENOSPC;
	l = malloc(c->n * sizeof(*l));
	if (!l)
		return ENOMEM;
	memcpy(l, urn_am_ranges(ep->regs, ep->entries),
	       c->n * sizeof(*l)); /* once: the client may change it */
	rc = make(tp, ep, l, c, &r);
	free(l);
	if (rc != 0)
		return rc;
	if (c->space)
		ep->space = r;
	else
		rc = enter(ep, r, c->random);
	if (rc != 0) {
		free(r);
		return rc;
	}
	c->key = r->key;
	ep->ranges_n += r->n;
	ep->regions_n++;
	return 0;
}

int
urn_am_region_remove(struct urn_am_ep *ep, uint64_t key)
{
	struct urn_am_region *r = find_region(ep, key);

	if (!r)
		return ENOENT;
	if (r == ep->space)
		ep->space = NULL;
	else
		ep->region[key % URN_AM_REGIONS_MAX] = NULL;
	ep->ranges_n -= r->n;
	ep->regions_n--;
	free(r);
	return 0;
}

void
urn_am_regions_free(struct urn_am_ep *ep)
{
	for (uint32_t i = 0; ep->region && i < URN_AM_REGIONS_MAX; i++)
		free(ep->region[i]);
	free(ep->region);
	free(ep->space);
	ep->region = NULL;
	ep->space = NULL;
}
