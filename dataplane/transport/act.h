/* SPDX-License-Identifier: BSD-3-Clause */
/* Actions of packets, done in a packet's turn, once its memory operations are done. */
#ifndef URN_TRANSPORT_ACT_H
#define URN_TRANSPORT_ACT_H

#include <stdint.h>

/*
 * Action in a packet's turn (urn_pkt.action). Actions of received packets come first, then those of
 * frames to be sent.
 */
enum urn_act {
	URN_ACT_DROP,	  /* nothing: free it */
	URN_ACT_REQUEST,  /* SEND, WRITE: placed (urn_pkt.recv) */
	URN_ACT_READ,	  /* READ request: put on record and answer (urn_pkt.record) */
	URN_ACT_ATOMIC,	  /* atomic: executed; put on record and answer (urn_pkt.record) */
	URN_ACT_NAK,	  /* refuse (urn_pkt.recv) */
	URN_ACT_DUP,	  /* SEND, WRITE repeated: acknowledge */
	URN_ACT_DUP_READ, /* READ repeated: answer; one that waits for its turn: urn_pkt.part */
	URN_ACT_DUP_ATOMIC,
	URN_ACT_ACK, /* ACK or NAK for the requester */
	URN_ACT_SACK,
	URN_ACT_READ_RESP,  /* READ response: placed */
	URN_ACT_ATOMIC_ACK, /* atomic response: placed */
	URN_ACT_BAD_RESP,   /* a response that does not fit (urn_pkt.bad) */
	URN_ACT_LOST,	 /* a response beyond the one that is due: the one that is due was lost */
	URN_ACT_MADE_UP, /* an atomic response unlike the one taken up: one of the two was forged */
	URN_ACT_UD_RECV, /* datagram: placed (urn_pkt.recv) */
	URN_ACT_TX_REQUEST,  /* frame of a request (urn_pkt.tx) */
	URN_ACT_TX_RESPONSE, /* frame of a response, or a UC receiver's window (urn_pkt.tx) */
	URN_ACT_TX_DATAGRAM, /* frame of a UD or UC request (urn_pkt.tx): sent() of the service
				follows */
	URN_ACT_TX_NOTICE,   /* congestion notification (urn_pkt.tx) */
};

/* Bits of urn_pkt.recv. */
enum urn_req_bit {
	URN_REQ_LAST = 1 << 0, /* ends a message */
	URN_REQ_RECV = 1 << 1, /* completes a receive: wr_id is valid */
	URN_REQ_IMM = 1 << 2,
	URN_REQ_INV = 1 << 3,	 /* imm is the rkey that was invalidated */
	URN_REQ_WRITE = 1 << 4,	 /* the receive is that of a WRITE with immediate */
	URN_REQ_BESIDE = 1 << 5, /* the message waits for its completion (urn_pkt.beside) */
};

#endif
