/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a QP keeps while it repairs losses packet by packet (doc/recovery.md).
 * Taken from a pool at the first loss and given back when nothing is missing
 * any more, so that a QP without losses has none. Without one left, the QP goes
 * back and repeats all, as plain RoCEv2 does.
 */
#ifndef URN_TRANSPORT_REPAIR_H
#define URN_TRANSPORT_REPAIR_H

#include "transport/board.h"

#include <rte_mbuf.h>

enum {
	URN_REPAIRS = 1024,       /* of an engine */
	URN_REPAIR_PARTS = 64,    /* parts of READs of a QP that wait to be answered again */
};

struct urn_repair {
	uint16_t next;            /* in the pool, by index; 0: the last */
	uint8_t nak_syn;          /* a refusal that overtook a response: its syndrome; 0: none did */
	uint32_t nak_psn;         /* ... and PSN */
	struct urn_board req;     /* of our requests: what the peer says that it has */
	struct urn_board resp;    /* of responses to us */
	struct rte_mbuf *kept;    /* the last of the responses ahead of their turn; a ring (ring.h) */
	struct rte_mbuf *parts, *parts_tail; /* READ requests come again, for parts, in order */
	uint16_t kept_n, parts_n;
};

#endif
