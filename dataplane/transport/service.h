/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transport services, one for each type of queue pair: what becomes of a packet that is received
 * for it, of its requests, and of its frames. The rest of the transport (burst, schedule, pools,
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
	uint32_t opcodes;  /* enum urn_op_flag: the flag that its packets have; others are dropped */
	uint8_t checked;   /* enum urn_work_kind: kinds of requests that check() looks at; any of these bits */
	bool reads_on;     /* memory of further frames may be read while frames wait for memory, in state RTS */
	bool in_order;     /* frames of failed work, and behind it, must not go out */
	const struct urn_qp_move (*moves)[URN_QP_STATES]; /* from, to */

	/* Accept or drop a packet, whose QP is at least in state RTR; takes m. */
	void (*accept)(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);
	/* Finish a packet in its turn: memory answered all that accept() asked for; takes m. */
	void (*finish)(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);
	/* Check a request that was fetched. returns: enum urn_abi_wc_status to fail it with; 0: none */
	uint8_t (*check)(const struct urn_qp *qp, const struct urn_work *w);
	/* Send at most `budget` frames; not in an error state. returns: true when there is more to send */
	bool (*transmit)(struct urn_tp *tp, struct urn_qp *qp, unsigned int budget);
	/* The same in an error state (ERR, SQE): flush requests. */
	bool (*flush)(struct urn_tp *tp, struct urn_qp *qp, unsigned int budget);
	/* The memory of a frame could not be read, and the frame is gone. */
	void (*unreadable)(struct urn_tp *tp, const struct urn_txd *d);
	/* A frame with action URN_ACT_TX_DATAGRAM went out. NULL: there are none */
	void (*sent)(struct urn_tp *tp, struct urn_qp *qp);
	/* A request failed, and was completed: put the QP into the state that follows. */
	void (*fail)(struct urn_tp *tp, struct urn_qp *qp);
};

extern const struct urn_service urn_rc, urn_ud; /* rc.c, ud.c */
/* Moves of QPs of these services. (state.c) */
extern const struct urn_qp_move urn_rc_moves[URN_QP_STATES][URN_QP_STATES];
extern const struct urn_qp_move urn_ud_moves[URN_QP_STATES][URN_QP_STATES];

static inline const struct urn_service *
urn_qp_service(const struct urn_tp *tp, const struct urn_qp *qp)
{
	return tp->service[qp->type];
}

#endif
