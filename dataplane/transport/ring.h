/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of packets kept ahead of their turn, by PSN, or of frames that wait for memory, by age.
 * The ring is linked by urn_pkt.next; the owner holds the last packet, because the newest mostly
 * goes behind it.
 */
#ifndef URN_TRANSPORT_RING_H
#define URN_TRANSPORT_RING_H

#include "transport/psn.h"
#include "wire/pkt.h"

#include <stdbool.h>

/* The packet with the lowest PSN, or the oldest; NULL: none. */
static inline struct rte_mbuf *
urn_ring_first(struct rte_mbuf *last)
{
	return last ? urn_pkt(last)->next : NULL;
}

/* The packet behind m; NULL: m was the last. */
static inline struct rte_mbuf *
urn_ring_next(struct rte_mbuf *last, struct rte_mbuf *m)
{
	return m == last ? NULL : urn_pkt(m)->next;
}

/* Take the first packet out. */
static inline struct rte_mbuf *
urn_ring_pop(struct rte_mbuf **last)
{
	struct rte_mbuf *m = urn_pkt(*last)->next;

	if (m == *last)
		*last = NULL;
	else
		urn_pkt(*last)->next = urn_pkt(m)->next;
	return m;
}

/* Put a packet behind all others. */
static inline void
urn_ring_append(struct rte_mbuf **last, struct rte_mbuf *m)
{
	if (*last) {
		urn_pkt(m)->next = urn_pkt(*last)->next;
		urn_pkt(*last)->next = m;
	} else {
		urn_pkt(m)->next = m;
	}
	*last = m;
}

/* Put a packet in its place by PSN. returns: false when that PSN is there already (ring.c) */
bool urn_ring_insert(struct rte_mbuf **last, struct rte_mbuf *m);
/* The packet with this PSN; NULL: none (ring.c) */
struct rte_mbuf *urn_ring_find(struct rte_mbuf *last, uint32_t psn);
/* Take a packet out of the ring that it is in (ring.c) */
void urn_ring_remove(struct rte_mbuf **last, struct rte_mbuf *m);

#endif
