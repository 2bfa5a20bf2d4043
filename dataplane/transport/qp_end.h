/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors, flushing and waiting of queue pairs. (qp.c, reach.c) */
#ifndef URN_TRANSPORT_QP_END_H
#define URN_TRANSPORT_QP_END_H

#include "transport/tp.h"

/* Free the memory of all QPs: the transport goes away. */
void urn_qp_free_all(struct urn_tp *tp);
/* Put the QP into the error state, and flush it once all accepted packets are finished. */
void urn_qp_error(struct urn_tp *tp, struct urn_qp *qp);
/* Send queue error of a UD QP: put the QP into state SQE. */
void urn_qp_sqe(struct urn_tp *tp, struct urn_qp *qp);
/* Flush a bounded number of requests. returns: true when more is to be flushed */
bool urn_qp_flush(struct urn_tp *tp, struct urn_qp *qp, unsigned int budget);
/* True when the template has the peer's MAC address. If not, the QP waits. */
bool urn_qp_reachable(struct urn_tp *tp, struct urn_qp *qp);
/* Let the QP wait for the neighbour table to change. */
void urn_qp_wait_neigh(struct urn_tp *tp, struct urn_qp *qp);
/* End the QP's wait for a MAC address, in time that does not depend on how many QPs wait. */
void urn_qp_leave_neigh(struct urn_tp *tp, struct urn_qp *qp);
/* Take the oldest work off the queue and complete it with this status. */
void urn_req_flush_one(struct urn_tp *tp, struct urn_qp *qp, uint8_t status);
/* State SQD: give the drained event when no work is under way any more. */
void urn_qp_check_drained(struct urn_tp *tp, struct urn_qp *qp);

#endif
