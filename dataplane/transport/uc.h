/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder of unreliable connected queue pairs. (uc_resp.c) */
#ifndef URN_TRANSPORT_UC_H
#define URN_TRANSPORT_UC_H

#include "transport/tp.h"

/*
 * PSNs by which a packet may be behind its turn and count as late or duplicated. A packet further
 * behind is ahead by more than half of all PSNs, perhaps: its sender was not heard for a while.
 */
enum { URN_UC_LATE = 4096 };

/* Take a packet in, or let it wait for memory behind others; takes m. */
void urn_uc_accept(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);
/* Accept or drop a packet in its turn, ahead of it or behind, that need not wait; takes m. */
void urn_uc_take(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);
/* Finish a packet that memory answered; takes m. */
void urn_uc_finish(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);

#endif
