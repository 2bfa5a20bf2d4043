/* SPDX-License-Identifier: BSD-3-Clause */
/* Owner of a frame's memory. */
#ifndef URN_SWITCH_FRAME_H
#define URN_SWITCH_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

/* True when only the holder of the frame refers to its memory. */
static inline bool
urn_frame_is_ours(const struct rte_mbuf *m)
{
	for (; m; m = m->next) {
		if (!RTE_MBUF_DIRECT(m) || rte_mbuf_refcnt_read(m) != 1)
			return false;
	}
	return true;
}

/* Make a whole copy. NULL: the pool is empty, or there is no pool. */
static inline struct rte_mbuf *
urn_frame_copy(const struct rte_mbuf *m, struct rte_mempool *pool)
{
	return pool ? rte_pktmbuf_copy(m, pool, 0, UINT32_MAX) : NULL;
}

#endif
