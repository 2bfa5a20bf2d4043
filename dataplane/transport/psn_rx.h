/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receiving end of a sequence of PSNs: which PSN is due, which are done, which came ahead of
 * their turn and wait, and which acknowledgement or NAK is owed (ack.h). A queue pair has one; a
 * channel of another kind, which wants the same reliability, embeds one of its own.
 */
#ifndef URN_TRANSPORT_PSN_RX_H
#define URN_TRANSPORT_PSN_RX_H

#include "transport/psn.h"
#include "wire/hdr.h"

#include <stdbool.h>
#include <stdint.h>

struct rte_mbuf;

/* Bits of struct urn_psn_rx.flags. */
enum urn_psn_rx_flag {
	URN_RXF_ACK = 1 << 0,	   /* an acknowledgement is owed, since ack_turn */
	URN_RXF_NAK = 1 << 1,	   /* a NAK (also RNR) is to be sent: nak_syn, nak_psn */
	URN_RXF_GAP = 1 << 2,	   /* a sequence NAK for this gap was sent, or is to be */
	URN_RXF_RNR_SENT = 1 << 3, /* RNR NAK sent; the refused packet has not come again */
	URN_RXF_MANY = 1 << 4,	   /* ... for several packets; valid with URN_RXF_ACK */
};

struct urn_psn_rx {
	uint32_t epsn;         /* next PSN to accept */
	uint32_t done;         /* newest PSN whose work is done: an ACK names this PSN */
	uint32_t msn;          /* messages completed */
	uint32_t nak_psn;      /* valid with URN_RXF_NAK; for a sequence NAK, which is for epsn: one past the
				* newest PSN that is missing for certain */
	uint32_t ack_turn;     /* turn of the engine since which the ACK is owed */
	uint8_t nak_syn;       /* syndrome; valid with URN_RXF_NAK */
	uint8_t flags;         /* enum urn_psn_rx_flag */
	uint16_t ooo_count;    /* packets in ooo */
	/*
	 * The last packet of a ring (ring.h): packets kept ahead of their turn, by PSN; of UC those
	 * that wait for memory, in the order in which they came (uc_hold.h). NULL: none
	 */
	struct rte_mbuf *ooo;
};

/* Number of PSNs by which a packet is ahead of its turn; 0: it is due; negative: it came before. */
static inline int32_t
urn_psn_rx_ahead(const struct urn_psn_rx *rx, uint32_t psn)
{
	return urn_psn_diff(psn, rx->epsn);
}

/* The packet that is due was accepted: the one behind its npsn PSNs is due now. */
static inline void
urn_psn_rx_accept(struct urn_psn_rx *rx, uint32_t npsn)
{
	rx->epsn = urn_psn_add(rx->epsn, npsn);
}

/* Begin with this PSN, 24 bits: nothing has come. */
static inline void
urn_psn_rx_start(struct urn_psn_rx *rx, uint32_t psn)
{
	rx->epsn = psn;
	rx->done = urn_psn_add(psn, URN_PSN_MASK);
}

#endif
