/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder: requests of peers. (responder.c, resp_record.c, resp_finish.c, resp_tx.c) */
#ifndef URN_TRANSPORT_RESPONDER_H
#define URN_TRANSPORT_RESPONDER_H

#include "transport/tp.h"

void urn_resp_accept(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);
/* True when a request that would be dropped unseen is a repeat, and nothing else would bring its
 * answer. */
bool urn_resp_must_answer(struct urn_qp *qp, struct rte_mbuf *m);
/* A request was dropped unseen: ask for it again when the QP is served next. */
void urn_resp_missed(struct urn_tp *tp, struct urn_qp *qp, uint32_t psn);
void urn_resp_finish(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);
/* Answer a repeated READ or atomic from its record, even while other packets wait. Takes m. */
void urn_resp_replay(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);
/* The responder owes an acknowledgement; now: the acknowledgement does not wait to be merged. */
void urn_resp_owe_ack(struct urn_tp *tp, struct urn_qp *qp, bool now);
/* The newest record that holds a PSN, for repeated requests; NULL: none. */
struct urn_rec *urn_resp_find_record(struct urn_qp *qp, uint32_t psn, uint8_t kind);
/* READ responses, atomic responses, NAKs, ACKs. returns: true when more is to be sent */
bool urn_resp_tx(struct urn_tp *tp, struct urn_qp *qp, unsigned int budget);
bool urn_resp_owes(const struct urn_qp *qp);
/* The QP goes away: send the acknowledgement that it owes, if that can be done at once. */
void urn_resp_last_ack(struct urn_tp *tp, struct urn_qp *qp);
/* The response of PSN psn can't be made: refuse the request, and send no response behind it. */
void urn_resp_cut(struct urn_tp *tp, struct urn_qp *qp, uint32_t psn, uint8_t syndrome);
/* True when a frame of a response, built before, may still go out. */
bool urn_resp_valid(const struct urn_txd *d);
/* Keep a packet ahead of its turn. returns: false when the packet is not wanted; the caller still
 * owns m then */
bool urn_resp_keep(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);
/* Free packets kept ahead of their turn, and their fingerprints. */
void urn_resp_drop_kept(struct urn_tp *tp, struct urn_qp *qp);

#endif
