/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Going back to repeat: all, or to a peer without selective acknowledgements a little at
 * first (doc/recovery.md "A peer without selective acknowledgements").
 */
#ifndef URN_TRANSPORT_BACK_H
#define URN_TRANSPORT_BACK_H

#include "transport/tp.h"

/* Go back to PSN una: everything from there on is sent again. */
void urn_req_go_back(struct urn_tp *tp, struct urn_qp *qp);
/* The same for the timeout of a QP whose peer has no selective acknowledgements: a little at first. */
void urn_req_back_timeout(struct urn_tp *tp, struct urn_qp *qp);
/* ... for its early repeat, that of the oldest request alone, and for going on behind what was answered. */
void urn_req_back_early(struct urn_tp *tp, struct urn_qp *qp);
/* When is that due, ns from when time started anew? UINT64_MAX: never */
uint64_t urn_req_back_due(const struct urn_tp *tp, const struct urn_qp *qp);
/* The peer refused all behind una: what is held back is repeated, too. */
void urn_req_all_back(struct urn_tp *tp, struct urn_qp *qp);
/* There was progress, after a repeat. */
void urn_req_back_answered(struct urn_tp *tp, struct urn_qp *qp);
/*
 * A duplicate came of a response, or ACK, of this PSN: a peer without selective
 * acknowledgements lives, and the timeout starts anew. A bounded number of times until
 * there is progress, so that frames of others cannot hold a QP up for ever.
 */
void urn_req_alive(struct urn_tp *tp, struct urn_qp *qp, uint32_t psn, bool response);

/* Is only a part of what is to be repeated to be repeated now? */
static inline bool
urn_req_held_back(const struct urn_qp *qp)
{
	return qp->back && qp->cur_psn != qp->next_psn;
}

#endif
