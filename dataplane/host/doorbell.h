/* SPDX-License-Identifier: BSD-3-Clause */
/* The dataplane's end of the doorbells (lib/abi/doorbell.h). */
#ifndef URN_HOST_DOORBELL_H
#define URN_HOST_DOORBELL_H

#include "abi/doorbell.h"

#include <stdbool.h>

#include <rte_branch_prediction.h>

/* One client's doorbells on one engine, and the place where a scan stopped. */
struct urn_db_scan {
	struct urn_abi_db *db;  /* client's area */
	uint32_t tops;          /* summary words that can have bits: depends on the highest id given out */
	uint32_t word;          /* leaf word that `left` comes from */
	uint32_t top;           /* summary word that `left_top` comes from */
	uint64_t left_top;      /* bits of a summary word that were taken and not yet looked at */
	uint64_t left;          /* bits of a leaf word that were taken and not yet handed out */
};

/* True when any doorbell is rung. Cheap: one load for 4,096 sources of the client. */
static inline bool
urn_db_any(const struct urn_db_scan *s)
{
	if (s->left | s->left_top)
		return true;
	for (uint32_t t = 0; t < s->tops; t++)
		if (atomic_load_explicit(&s->db->top[t], memory_order_relaxed))
			return true;
	return false;
}

/* Take up to max doorbells that were rung. Further ones come with the next call. returns: number of ids written */
unsigned int urn_db_take(struct urn_db_scan *s, uint32_t *ids, unsigned int max);

#endif
