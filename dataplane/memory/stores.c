/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts of the stores of placements (stores.h). Control only. */
#include "memory/stores.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct urn_stores_of *
urn_stores_make(void)
{
	size_t bytes = URN_ABI_MAX_ENGINES * sizeof(struct urn_stores_of);
	struct urn_stores_of *s = aligned_alloc(64, bytes);

	if (s)
		memset(s, 0, bytes);
	return s;
}

int
urn_stores_read(const struct urn_mem *mem, uint32_t lkey, struct urn_abi_stores *out)
{
	const struct urn_region *r = urn_region_at(mem, lkey >> 8);
	const struct urn_stores_of *s;
	struct urn_region_view v;

	if (!r || !urn_region_read(r, &v) || v.kind != URN_REGION_MR || v.key != lkey)
		return EINVAL;
	s = urn_stores_at(r);
	if (!s)
		return EOPNOTSUPP;
	memset(out, 0, sizeof(*out));
	for (unsigned int e = 0; e < URN_ABI_MAX_ENGINES; e++) {
		for (unsigned int i = 0; i < URN_STORES_LINES; i++) {
			out->full[i] += __atomic_load_n(&s[e].full[i], __ATOMIC_RELAXED);
			out->partial[i] += __atomic_load_n(&s[e].partial[i], __ATOMIC_RELAXED);
		}
	}
	return 0;
}
