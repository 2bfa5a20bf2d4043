/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short messages for foreign memory. Waking the worker of a space takes longer than all else that
 * happens to a short message, and the program can't look at the bytes before it has polled the
 * completion. So the bytes stay in the packet, are written beside the completion
 * (lib/abi/queue.h), and the library copies them to the receive's memory. (beside.c)
 */
#ifndef URN_TRANSPORT_BESIDE_H
#define URN_TRANSPORT_BESIDE_H

#include "transport/act.h"
#include "transport/complete.h"

/* urn_beside_takes() for a receive queue whose completions have room beside them. */
bool urn_beside_takes_short(const struct urn_tp *tp, const struct urn_qp *qp, struct rte_mbuf *m,
			    const struct urn_recv *r, uint32_t len);

/*
 * True when all `len` bytes of a message go to foreign memory by its completion: the packet, which
 * holds the whole message, then needs no memory operation, and gets URN_REQ_BESIDE in recv.bits.
 * False also when the receive's memory is wrong.
 */
static inline bool
urn_beside_takes(const struct urn_tp *tp, const struct urn_qp *qp, struct rte_mbuf *m,
		 const struct urn_recv *r, uint32_t len)
{
	if (likely(!qp->recv_cq->beside || len > URN_ABI_BESIDE))
		return false;
	return urn_beside_takes_short(tp, qp, m, r, len);
}

/*
 * Before the completion of a packet with URN_REQ_BESIDE: look at the key once more, because no
 * operation kept the region, and let the completion take these bytes along.
 * returns: false when the memory is not there any more
 */
bool urn_beside_ready(struct urn_tp *tp, const struct urn_qp *qp, struct rte_mbuf *m,
		      const uint8_t *data, uint32_t len);

#endif
