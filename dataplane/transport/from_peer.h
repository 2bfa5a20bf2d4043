/* SPDX-License-Identifier: BSD-3-Clause */
/* The address that a connected queue pair takes packets from. */
#ifndef URN_TRANSPORT_FROM_PEER_H
#define URN_TRANSPORT_FROM_PEER_H

#include "transport/tp.h"

/*
 * True when the frame comes from the address that the QP is connected to, and goes to the address
 * that the QP is connected from. With another address of ours that QP would have other rivals.
 */
static inline bool
urn_qp_from_peer(const struct urn_qp *qp, struct rte_mbuf *m)
{
	const struct urn_pkt *p = urn_pkt(m);
	const uint8_t *l3 = rte_pktmbuf_mtod_offset(m, const uint8_t *, p->l3_off), *dst;

	/* The template, which an answer needs too, has the addresses in wire order. */
	if (unlikely(p->ipv6 != qp->tmpl.ipv6))
		return false;
	dst = urn_tmpl_dst(&qp->tmpl);
	if (likely(!p->ipv6))
		return memcmp(l3 + offsetof(struct urn_ipv4, src), dst, 4) == 0 &&
		       memcmp(l3 + offsetof(struct urn_ipv4, dst), dst - 4, 4) == 0;
	return memcmp(l3 + offsetof(struct urn_ipv6, src), dst, 16) == 0 &&
	       memcmp(l3 + offsetof(struct urn_ipv6, dst), dst - 16, 16) == 0;
}

#endif
