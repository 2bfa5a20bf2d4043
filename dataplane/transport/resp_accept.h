/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder takes or refuses a request whose turn has come (responder.c, resp_record.c). */
#ifndef URN_TRANSPORT_RESP_ACCEPT_H
#define URN_TRANSPORT_RESP_ACCEPT_H

#include "transport/act.h"
#include "transport/frame.h"

/* Refuse this packet in its turn; nothing behind it is accepted. */
static inline void
urn_resp_refuse(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m, uint8_t syndrome)
{
	struct urn_pkt *p = urn_pkt(m);

	p->recv.syndrome = syndrome;
	p->recv.bits = 0;
	qp->flags |= URN_QPF_REFUSED;
	urn_tp_hold(tp, m, qp, URN_ACT_NAK);
}

/* Accept the packet: it waits for memory, and the next PSN becomes due. */
static inline void
urn_resp_accepted(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m, uint8_t action,
		  uint32_t npsn)
{
	urn_psn_rx_accept(&qp->rx, npsn);
	urn_tp_hold(tp, m, qp, action);
}

/* Accept, or refuse, a READ: it goes on record, and is answered in its turn. */
void urn_resp_accept_read(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);
/* Accept, or refuse, an atomic: it goes on record, and memory executes it. */
void urn_resp_accept_atomic(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);

#endif
