/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transport services, one for each type of queue pair. A service handles the packets that are
 * received for it, its requests, and its frames. The rest of the transport (burst, schedule, pools,
 * completions) knows of services only what this table says.
 */
#ifndef URN_TRANSPORT_SERVICE_H
#define URN_TRANSPORT_SERVICE_H

#include "transport/tp.h"

/* One move of the state machine of queue pairs (IBTA 10.3.1, 11.2.5). */
struct urn_qp_move {
	bool valid;
	uint32_t need, may; /* attributes, enum urn_abi_qp_mask: required; allowed besides */
};

struct urn_service {
	const char *name;  /* for people */
	bool offered;	   /* programs may make QPs of this type */
	uint32_t opcodes;  /* enum urn_op_flag: the flag that its packets have; others are dropped */
	uint8_t checked;   /* enum urn_work_kind: kinds of requests that check() looks at; any of these bits */
	bool reads_on;     /* memory of further frames may be read while frames wait for memory, in state RTS */
	bool in_order;     /* frames of failed work, and behind it, must not go out */
	const struct urn_qp_move (*moves)[URN_QP_STATES]; /* from, to */

	/* Accept or drop a packet, whose QP is at least in state RTR; takes m. */
	void (*accept)(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);
	/* A congestion notification came for the QP; takes m. NULL: the service takes none */
	void (*notified)(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);
	/* Finish a packet in its turn: memory answered all that accept() asked for; takes m. */
	void (*finish)(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);
	/* Check a request that was fetched. returns: enum urn_abi_wc_status to fail it with; 0: none */
	uint8_t (*check)(const struct urn_qp *qp, const struct urn_work *w);
	/* Send at most `budget` frames; not in an error state. returns: true when there is more to send */
	bool (*transmit)(struct urn_tp *tp, struct urn_qp *qp, unsigned int budget);
	/* The same in an error state (ERR, SQE): flush requests. */
	bool (*flush)(struct urn_tp *tp, struct urn_qp *qp, unsigned int budget);
	/*
	 * True when a frame with action URN_ACT_TX_RESPONSE, built before, may still go out. NULL:
	 * the service makes no such frame
	 */
	bool (*valid)(const struct urn_txd *d);
	/* The memory of a frame could not be read, and the frame is gone. */
	void (*unreadable)(struct urn_tp *tp, const struct urn_txd *d);
	/* A frame with action URN_ACT_TX_DATAGRAM went out. NULL: there are none */
	void (*sent)(struct urn_tp *tp, struct urn_qp *qp);
	/* The QP's timer is due, in state RTS or SQD. NULL: the service starts no timer there */
	void (*due)(struct urn_tp *tp, struct urn_qp *qp);
	/* True when the QP owes its peer an answer, in any state. NULL: it never does */
	bool (*owes)(const struct urn_qp *qp);
	/* A request failed, and was completed: put the QP into the state that follows. */
	void (*fail)(struct urn_tp *tp, struct urn_qp *qp);
	/*
	 * The QP enters the error state, or (gone) is reset or destroyed: let go of packets and
	 * pool entries that the service keeps for it. NULL: the service keeps none
	 */
	void (*stop)(struct urn_tp *tp, struct urn_qp *qp, bool gone);
};

extern const struct urn_service urn_rc, urn_uc, urn_ud; /* rc.c, uc.c, ud.c */
/* Moves of QPs of these services. (state.c) */
extern const struct urn_qp_move urn_rc_moves[URN_QP_STATES][URN_QP_STATES];
extern const struct urn_qp_move urn_uc_moves[URN_QP_STATES][URN_QP_STATES];
extern const struct urn_qp_move urn_ud_moves[URN_QP_STATES][URN_QP_STATES];

static inline const struct urn_service *
urn_qp_service(const struct urn_tp *tp, const struct urn_qp *qp)
{
	return tp->service[qp->type];
}

#endif
