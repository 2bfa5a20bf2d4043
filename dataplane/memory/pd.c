/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains: their handles, and the number of users of each. Control only. */
#include "memory/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Grow pd[] so that it holds `handle`. */
static int
pd_grow(struct urn_mem *mem, uint32_t handle)
{
	uint64_t room = mem->pd_room ? mem->pd_room : 16;
	struct urn_pd *pd;

	while (room <= handle)
		room *= 2;
	if (room == mem->pd_room)
		return 0;
	if (room > UINT32_MAX)
		room = UINT32_MAX;
	pd = realloc(mem->pd, room * sizeof(*pd));
	if (!pd)
		return ENOMEM;
	memset(pd + mem->pd_room, 0, (room - mem->pd_room) * sizeof(*pd));
	mem->pd = pd;
	mem->pd_room = (uint32_t)room;
	return 0;
}

static struct urn_pd *
pd_at(const struct urn_mem *mem, uint32_t pd)
{
	return pd && pd < mem->pd_fresh && mem->pd[pd].used ? &mem->pd[pd] : NULL;
}

int
urn_mem_alloc_pd(struct urn_mem *mem, uint32_t *pd)
{
	uint32_t handle;

	if (mem->pd_fresh <= mem->max_pds && mem->pd_fresh < UINT32_MAX) {
		/* New handles come before used ones, so that a stale handle stays invalid for long. */
		if (pd_grow(mem, mem->pd_fresh))
			return ENOMEM;
		handle = mem->pd_fresh++;
	} else if (mem->pd_first) {
		handle = mem->pd_first;
		mem->pd_first = mem->pd[handle].next;
		if (!mem->pd_first)
			mem->pd_last = 0;
	} else {
		return ENOMEM;
	}
	mem->pd[handle] = (struct urn_pd){.used = 1};
	*pd = handle;
	return 0;
}

int
urn_mem_dealloc_pd(struct urn_mem *mem, uint32_t pd)
{
	struct urn_pd *p = pd_at(mem, pd);
	struct urn_space **at = urn_mem_pd_space(mem, pd);

	if (!p)
		return EINVAL;
	if (p->users)
		return EBUSY;
	if (at)
		__atomic_store_n(at, NULL, __ATOMIC_RELAXED);
	p->used = 0;
	p->next = 0;
	if (mem->pd_last)
		mem->pd[mem->pd_last].next = pd;
	else
		mem->pd_first = pd;
	mem->pd_last = pd;
	return 0;
}

int
urn_mem_pd_hold(struct urn_mem *mem, uint32_t pd)
{
	struct urn_pd *p = pd_at(mem, pd);

	if (!p)
		return EINVAL;
	p->users++;
	return 0;
}

void
urn_mem_pd_release(struct urn_mem *mem, uint32_t pd)
{
	struct urn_pd *p = pd_at(mem, pd);

	if (p && p->users)
		p->users--;
}
