/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams. (ud.c) */
#ifndef URN_TRANSPORT_UD_H
#define URN_TRANSPORT_UD_H

#include "transport/tp.h"

void urn_ud_accept(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);
void urn_ud_finish(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);
bool urn_ud_tx(struct urn_tp *tp, struct urn_qp *qp, unsigned int budget);
/* The frame of the oldest request is finished; ok: its memory could be read. */
void urn_ud_sent(struct urn_tp *tp, struct urn_qp *qp, bool ok);

#endif
