/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/ring.h"

bool
urn_ring_insert(struct rte_mbuf **last, struct rte_mbuf *m)
{
	uint32_t psn = urn_pkt(m)->psn;
	struct rte_mbuf *at = *last;

	/* Mostly it is the newest so far. */
	if (likely(!at || urn_psn_diff(psn, urn_pkt(at)->psn) > 0)) {
		urn_ring_append(last, m);
		return true;
	}
	while (urn_psn_diff(urn_pkt(urn_pkt(at)->next)->psn, psn) < 0)
		at = urn_pkt(at)->next;
	if (urn_pkt(urn_pkt(at)->next)->psn == psn)
		return false;
	urn_pkt(m)->next = urn_pkt(at)->next;
	urn_pkt(at)->next = m;
	return true;
}
