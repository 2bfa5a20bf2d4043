/* SPDX-License-Identifier: BSD-3-Clause */
/* Fair use of a pool: levels of the reserve. */
#include "base/fair.h"

/* Length in bits of a number; 0 of 0. */
static unsigned int
bits(uint32_t n)
{
	return n ? 32 - (unsigned int)__builtin_clz(n) : 0;
}

void
urn_fair_init(struct urn_fair *f, uint32_t size)
{
	unsigned int levels;

	f->kept = size / 8;
	levels = 1 + bits(f->kept / 8);
	for (unsigned int i = 0; i < URN_FAIR_LEVELS; i++)
		f->least[i] = i < levels ? (uint32_t)((uint64_t)f->kept * i / levels) : UINT32_MAX;
}

bool
urn_fair_has_kept(const struct urn_fair *f, uint32_t left, uint32_t held)
{
	return left > f->least[bits(held)];
}

/* Entries that stay in the pool when a holder of so many takes one. */
static uint64_t
stay(const struct urn_fair *f, uint32_t held)
{
	uint32_t least = f->least[bits(held)];

	return least != UINT32_MAX ? least : (uint64_t)f->kept + held / 8;
}

bool
urn_fair_user_has_kept(const struct urn_fair *f, uint32_t left, uint32_t held, uint32_t all)
{
	return 2ull * left > stay(f, held) + stay(f, all);
}
