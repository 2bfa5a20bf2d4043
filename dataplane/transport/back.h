/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Going back: the requester repeats everything or, to a peer without selective acknowledgements, a
 * little at first (doc/inside/recovery.md "A peer without selective acknowledgements").
 */
#ifndef URN_TRANSPORT_BACK_H
#define URN_TRANSPORT_BACK_H

#include "transport/tp.h"

/* Go back to PSN una: everything from una on is sent again. */
void urn_req_go_back(struct urn_tp *tp, struct urn_qp *qp);
/* The same for the timeout of a QP whose peer has no selective acknowledgements: a little is repeated at first. */
void urn_req_back_timeout(struct urn_tp *tp, struct urn_qp *qp);
/* ... for the early repeat: that of the oldest request alone, or going on behind what was answered. */
void urn_req_back_early(struct urn_tp *tp, struct urn_qp *qp);
/* Time of the early repeat: ns from when the timer was restarted; UINT64_MAX: never */
uint64_t urn_req_back_due(const struct urn_tp *tp, const struct urn_qp *qp);
/* The peer refused everything behind una: PSNs that are held back are repeated, too. */
void urn_req_all_back(struct urn_tp *tp, struct urn_qp *qp);
/* Progress came, after a repeat. */
void urn_req_back_answered(struct urn_tp *tp, struct urn_qp *qp);
/*
 * A duplicate of a response, or of an ACK, with this PSN came: a peer without selective
 * acknowledgements lives, and the timeout restarts. Duplicates do so a bounded number of times
 * until there is progress, so that forged frames cannot hold up a QP for ever.
 */
void urn_req_alive(struct urn_tp *tp, struct urn_qp *qp, uint32_t psn, bool response);

#endif
