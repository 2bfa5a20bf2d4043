/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * State of a QP that repairs losses packet by packet (doc/inside/recovery.md). The state is taken from a
 * pool at the first loss and given back when nothing is missing any more, so that a QP without
 * losses has none. When the pool is empty, the QP goes back and repeats everything, as plain RoCEv2
 * does.
 */
#ifndef URN_TRANSPORT_REPAIR_H
#define URN_TRANSPORT_REPAIR_H

#include "transport/board.h"

#include <rte_mbuf.h>

enum {
	URN_REPAIRS = 1024,       /* states in the pool of an engine */
	URN_REPAIR_PARTS = 64,    /* requests for parts of READs that wait to be answered, a QP */
};

struct urn_repair {
	uint32_t next;            /* the pool's */
	uint8_t nak_syn;          /* a refusal that overtook a response: its syndrome; 0: none did */
	uint32_t nak_psn;         /* ... and PSN */
	struct urn_board req;     /* our requests: which of them the peer has */
	struct urn_board resp;    /* responses to us */
	struct rte_mbuf *kept;    /* the last of the responses kept ahead of their turn; a ring (ring.h) */
	struct rte_mbuf *parts, *parts_tail; /* repeated READ requests, for parts, in order */
	uint16_t kept_n, parts_n;
};

#endif
