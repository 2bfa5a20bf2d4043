/* SPDX-License-Identifier: BSD-3-Clause */
/* The policy of acknowledgements: its seldom needed part (ack.h). */
#include "transport/ack.h"

enum urn_ack_due
urn_ack_nak_due(struct urn_psn_rx *rx, bool cut, bool dead, enum urn_ack_due ack)
{
	uint32_t psn = urn_ack_nak_for(rx);

	/* Everything before the NAK is done, as the NAK says. */
	if (urn_psn_add(rx->done, 1) == psn || cut)
		return URN_ACK_NAK;
	if (urn_psn_diff(rx->done, psn) < 0 && !dead)
		return URN_ACK_NONE; /* the packet before the NAK calls again once it is done */
	rx->flags &= (uint8_t)~URN_RXF_NAK;
	return ack;
}

void
urn_ack_ask_for(struct urn_psn_rx *rx, uint32_t end)
{
	rx->flags |= URN_RXF_GAP;
	urn_ack_owe_nak(rx, end, URN_NAK_SEQ);
}

bool
urn_ack_ahead(struct urn_psn_rx *rx, uint32_t turn, bool selective, bool far)
{
	if (rx->ooo && selective) {
		/* A packet too far ahead is not kept, so the SACK would not mention it. */
		if (far || (rx->flags & (URN_RXF_RNR_SENT | URN_RXF_NAK)))
			return false;
		urn_ack_owe(rx, turn, true); /* the SACK says which packets are kept */
		return true;
	}
	if (rx->flags & (URN_RXF_GAP | URN_RXF_RNR_SENT | URN_RXF_NAK))
		return false;
	/*
	 * One NAK a gap (IBTA 9.7.5.2.8), once all before is done; without room for the packet
	 * nothing else reports the gap.
	 */
	urn_ack_ask_for(rx, urn_psn_add(rx->epsn, 1));
	return true;
}

bool
urn_ack_taken_up(struct urn_psn_rx *rx, uint32_t turn, bool selective)
{
	if (rx->flags & (URN_RXF_RNR_SENT | URN_RXF_NAK))
		return false;
	if (selective) {
		urn_ack_owe(rx, turn, true);
		return true;
	}
	if (!rx->ooo)
		return false;
	/* The gap behind the one that was filled is asked for at once; the rest of that one was. */
	urn_ack_ask_for(rx, urn_psn_add(rx->epsn, 1));
	return true;
}

void
urn_ack_gap_closed(struct urn_psn_rx *rx, bool over)
{
	bool more = urn_psn_diff(rx->epsn, rx->nak_psn) < 0 && !over &&
		    !(rx->flags & URN_RXF_RNR_SENT);

	if (!(rx->flags & URN_RXF_NAK) || rx->nak_syn != URN_NAK_SEQ)
		rx->flags &= (uint8_t)~URN_RXF_GAP;
	else if (!more)
		rx->flags &= (uint8_t)~(URN_RXF_GAP | URN_RXF_NAK);
}

bool
urn_ack_missed(struct urn_psn_rx *rx, uint32_t psn, int32_t most)
{
	int32_t d = urn_psn_rx_ahead(rx, psn);
	bool owed = rx->flags & URN_RXF_NAK;

	if (d > most)
		psn = urn_psn_add(rx->epsn, (uint32_t)most); /* no further: packets behind that are not kept */
	if (d < 0 || (d > 0 && (rx->flags & URN_RXF_RNR_SENT)) ||
	    (owed && (rx->nak_syn != URN_NAK_SEQ || urn_psn_diff(psn, rx->nak_psn) < 0)))
		return false; /* the request was done, or comes again anyway */
	/*
	 * Packets behind a gap that was asked for come again, too. A second NAK would make us drop
	 * the packets that come then, and the peer does not go back twice without progress.
	 */
	if (!owed && d > 0 && (rx->flags & URN_RXF_GAP))
		return false;
	rx->flags &= (uint8_t)~URN_RXF_RNR_SENT;
	urn_ack_ask_for(rx, urn_psn_add(psn, 1));
	return true;
}
