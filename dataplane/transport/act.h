/* SPDX-License-Identifier: BSD-3-Clause */
/* Actions of packets: the work that a packet does in its turn, once its memory operations are done.
 */
#ifndef URN_TRANSPORT_ACT_H
#define URN_TRANSPORT_ACT_H

#include <stdint.h>

/*
 * Action in a packet's turn (urn_pkt.action). Actions of received packets come first, then those of
 * frames to be sent.
 */
enum urn_act {
	URN_ACT_DROP,	 /* nothing: free it */
	URN_ACT_REQUEST, /* SEND, WRITE: placed; bits say more (enum urn_req_bit) */
	URN_ACT_READ,	 /* READ request: put on record and answer */
	URN_ACT_ATOMIC,	 /* atomic: executed; put on record and answer */
	URN_ACT_NAK,	 /* refuse; arg: syndrome */
	URN_ACT_DUP,	 /* SEND, WRITE repeated: acknowledge */
	URN_ACT_DUP_READ,
	URN_ACT_DUP_ATOMIC,
	URN_ACT_ACK, /* ACK or NAK for the requester */
	URN_ACT_SACK,
	URN_ACT_READ_RESP,  /* READ response: placed */
	URN_ACT_ATOMIC_ACK, /* atomic response: placed */
	URN_ACT_BAD_RESP,   /* a response that does not fit; arg: vendor error, word[1]: status */
	URN_ACT_LOST,	 /* a response beyond the one that is due: the one that is due was lost */
	URN_ACT_MADE_UP, /* an atomic response unlike the one taken up: one of the two was forged */
	URN_ACT_UD_RECV,
	URN_ACT_TX_REQUEST,  /* frame of a request */
	URN_ACT_TX_RESPONSE, /* frame of a response */
};

/* Bits of URN_ACT_REQUEST; arg: bytes of the message, when LAST. */
enum urn_req_bit {
	URN_REQ_LAST = 1 << 0, /* ends a message */
	URN_REQ_RECV = 1 << 1, /* completes a receive: wr_id, byte_len, imm */
	URN_REQ_IMM = 1 << 2,
	URN_REQ_INV = 1 << 3,	/* imm is the rkey that was invalidated */
	URN_REQ_WRITE = 1 << 4, /* the receive is that of a WRITE with immediate */
};

#endif
