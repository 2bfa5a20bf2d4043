/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames without ICRC, for a transport that the same thread drives (wire/unsealed.h): on a wire
 * between two adapters of one engine, with nothing on it. (unsealed.c)
 */
#ifndef URN_TRANSPORT_UNSEALED_H
#define URN_TRANSPORT_UNSEALED_H

#include "transport/tp.h"
#include "wire/build.h"
#include "wire/unsealed.h"

/* Finish a frame that holds everything before its ICRC: write the ICRC, or mark that it is missing.
 */
static inline void
urn_tp_seal(const struct urn_tp *tp, struct rte_mbuf *m, int ipv6)
{
	if (unlikely(tp->unsealed))
		m->ol_flags |= tp->unsealed;
	else
		urn_build_icrc(rte_pktmbuf_mtod(m, uint8_t *), m->data_len - URN_ICRC_BYTES, ipv6,
			       tp->cfg.icrc);
}

/*
 * True when a received frame's ICRC is right, or is not to be checked. The mark is believed on a
 * wire whose both ends are ours: nobody else sets it there.
 */
static inline bool
urn_tp_icrc_ok(const struct urn_tp *tp, struct rte_mbuf *m)
{
	return (m->ol_flags & tp->unsealed) || !tp->cfg.icrc || urn_wire_icrc_ok(m);
}

/*
 * Send frames without ICRC from now on, and take such: the other end of the wire is a transport of
 * the same thread, which does the same. Before the first frame; without ICRCs (cfg.icrc) nothing
 * changes. The caller has frames sealed that others look at. returns: true: it is so now
 */
bool urn_tp_unseal(struct urn_tp *tp);
/* Seal the frames in tp->tx that are not. */
void urn_tp_seal_tx(struct urn_tp *tp);

#endif
