/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs/session/regions.h"

#include <stddef.h>

/* Place of bytes in a region. returns: NULL: they are not inside, or a right is missing */
static uint8_t *
place(const struct urn_sv_region *r, uint64_t addr, uint64_t bytes, unsigned int access)
{
	if ((r->access & access) != access || addr < r->start || bytes > r->length ||
	    addr - r->start > r->length - bytes)
		return NULL;
	return r->base + (addr - r->start);
}

uint8_t *
urn_sv_regions_local(const struct urn_sv_regions *list, uint32_t lkey, uint64_t addr,
		     uint64_t bytes, unsigned int access)
{
	const struct urn_sv_region *r;

	LIST_FOREACH(r, list, link)
		if (r->lkey == lkey)
			return place(r, addr, bytes, access);
	return NULL;
}

uint8_t *
urn_sv_regions_find(const struct urn_sv_regions *list, uint64_t addr, uint64_t bytes,
		    unsigned int access)
{
	const struct urn_sv_region *r;
	uint8_t *found = NULL;

	LIST_FOREACH(r, list, link) {
		uint8_t *at = place(r, addr, bytes, access);

		if (at != NULL && found != NULL && at != found)
			return NULL;
		if (at != NULL)
			found = at;
	}
	return found;
}
