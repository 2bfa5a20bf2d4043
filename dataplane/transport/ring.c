/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/ring.h"

struct rte_mbuf *
urn_ring_find(struct rte_mbuf *last, uint32_t psn)
{
	struct rte_mbuf *m = urn_ring_first(last);

	while (m && urn_psn_diff(urn_pkt(m)->psn, psn) < 0)
		m = urn_ring_next(last, m);
	return m && urn_pkt(m)->psn == psn ? m : NULL;
}

void
urn_ring_remove(struct rte_mbuf **last, struct rte_mbuf *m)
{
	struct rte_mbuf *before = *last;

	while (urn_pkt(before)->next != m)
		before = urn_pkt(before)->next;
	if (before == m) {
		*last = NULL;
		return;
	}
	urn_pkt(before)->next = urn_pkt(m)->next;
	if (*last == m)
		*last = before;
}

bool
urn_ring_insert(struct rte_mbuf **last, struct rte_mbuf *m)
{
	uint32_t psn = urn_pkt(m)->psn;
	struct rte_mbuf *at = *last;

	/* Mostly the new packet is the newest so far. */
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
