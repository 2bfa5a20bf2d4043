/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fences: find out when operations that were accepted under a key are done. An operation is
 * accepted by a check, is in an engine's hand until the burst is executed, and is then with that
 * engine's executor until memory answers. So a thread that took the key away asks every engine for
 * its next turn (no engine has the operation in hand then), and then waits for a point in that
 * engine's executor.
 */
#include "memory/foreign.h"
#include "memory/internal.h"

void
urn_mem_join(struct urn_mem *mem, unsigned int engine, const struct urn_memx *x)
{
	mem->turns[engine].x = x;
}

uint32_t
urn_mem_ask_turn(struct urn_mem *mem)
{
	/* Pairs with the acquire in urn_mem_turn(). */
	return __atomic_add_fetch(&mem->asked, 1, __ATOMIC_RELEASE);
}

bool
urn_mem_turned(const struct urn_mem *mem, unsigned int engine, uint32_t asked,
	       const struct urn_memx **x)
{
	const struct urn_mem_turns *t = &mem->turns[engine];

	*x = t->x;
	/* Pairs with the release in urn_mem_turn(). */
	return !t->x || (int32_t)(__atomic_load_n(&t->seen, __ATOMIC_ACQUIRE) - asked) >= 0;
}

/* ---- points in a lane */

uint32_t
urn_lane_mark(const struct urn_space *space, const void *owner)
{
	const struct urn_lane *l = urn_lane_find(space, owner);

	return l ? __atomic_load_n(&l->put, __ATOMIC_RELAXED) : 0;
}

bool
urn_lane_passed(const struct urn_space *space, const void *owner, uint32_t mark)
{
	const struct urn_lane *l = urn_lane_find(space, owner);

	/* Pairs with the release in lane_take(). */
	return !l || (int32_t)(__atomic_load_n(&l->taken, __ATOMIC_ACQUIRE) - mark) >= 0;
}
