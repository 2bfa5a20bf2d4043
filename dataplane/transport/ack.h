/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The policy of acknowledgements, of both ends of a sequence of PSNs: when the sender asks for one,
 * when the receiver owes one, how long it waits for more to be merged into it, and when a gap is
 * told by a NAK or a SACK (doc/reference/wire.md "Acknowledgement"). All of it is here; the
 * requester and the responder carry out what is decided. The functions are pure.
 */
#ifndef URN_TRANSPORT_ACK_H
#define URN_TRANSPORT_ACK_H

#include "transport/psn_rx.h"
#include "transport/psn_tx.h"
#include "wire/hdr.h"

enum {
	URN_ACK_EVERY = 32, /* packets sent before an ACK is asked for anyway */
	URN_ACK_TURNS = 4,  /* turns of the engine that an ACK waits at most */
};

/* Packet that the receiver is to send now, behind all responses. */
enum urn_ack_due {
	URN_ACK_NONE,  /* nothing is owed, or its packet calls again once it is done */
	URN_ACK_LATER, /* an ACK that waits for more to be merged into it */
	URN_ACK_ACK,
	URN_ACK_NAK,
};

/* ---- sender */

/*
 * True when the packet at the cursor asks for an acknowledgement even if more follow.
 * out: packets in flight before it; window: how many there may be
 */
static inline bool
urn_ack_wanted(const struct urn_psn_tx *tx, const struct urn_psn_cursor *cur, uint32_t out,
	       uint32_t window)
{
	if (cur->since_ack + 1u >= URN_ACK_EVERY || out + 1 >= window || tx->credits)
		return true;
	/* The last packet that is repeated now. */
	return unlikely(cur->psn != tx->next) && urn_psn_add(cur->psn, 1) == cur->end;
}

/* ---- receiver */

/* An acknowledgement is owed from this turn on; now: it does not wait to be merged. */
static inline void
urn_ack_owe(struct urn_psn_rx *rx, uint32_t turn, bool now)
{
	if (!(rx->flags & URN_RXF_ACK)) {
		rx->flags |= URN_RXF_ACK;
		rx->ack_turn = turn;
	}
	if (now)
		rx->ack_turn = turn - UINT8_MAX; /* long ago */
}

/* A NAK with this syndrome is owed for this PSN, 24 bits. */
static inline void
urn_ack_owe_nak(struct urn_psn_rx *rx, uint32_t psn, uint8_t syndrome)
{
	rx->flags |= URN_RXF_NAK;
	rx->nak_syn = syndrome;
	rx->nak_psn = psn;
}

/*
 * True when an ACK has waited for a turn, or for some while there is other work, so that one ACK
 * may cover more and an answer of the program goes out first. quiet: there is no other work
 */
static inline bool
urn_ack_ripe(const struct urn_psn_rx *rx, uint32_t turn, bool quiet)
{
	return turn - rx->ack_turn >= (quiet ? 1 : URN_ACK_TURNS);
}

/* The PSN that the NAK is for. */
static inline uint32_t
urn_ack_nak_for(const struct urn_psn_rx *rx)
{
	return rx->nak_syn == URN_NAK_SEQ ? rx->epsn : rx->nak_psn;
}

/*
 * Decide whether the NAK that is owed is sent now. A void one, whose packet came again meanwhile, is
 * forgotten, and the decision is that for the ACK: ack. cut: the NAK is for a response that failed,
 * and comes behind the responses before it; dead: the sequence does nothing before the NAK any more
 */
enum urn_ack_due urn_ack_nak_due(struct urn_psn_rx *rx, bool cut, bool dead, enum urn_ack_due ack);

/* Decide which packet is sent now. turn, quiet: see urn_ack_ripe(); cut, dead: see urn_ack_nak_due() */
static inline enum urn_ack_due
urn_ack_due(struct urn_psn_rx *rx, uint32_t turn, bool quiet, bool cut, bool dead)
{
	enum urn_ack_due ack = !(rx->flags & URN_RXF_ACK)       ? URN_ACK_NONE
			       : urn_ack_ripe(rx, turn, quiet) ? URN_ACK_ACK
								: URN_ACK_LATER;

	return unlikely(rx->flags & URN_RXF_NAK) ? urn_ack_nak_due(rx, cut, dead, ack) : ack;
}

/* True when the kept packets may be told by a SACK now. */
static inline bool
urn_ack_sack_due(const struct urn_psn_rx *rx, uint32_t turn, bool quiet)
{
	return rx->ooo && (rx->flags & (URN_RXF_ACK | URN_RXF_NAK)) == URN_RXF_ACK &&
	       urn_ack_ripe(rx, turn, quiet);
}

/* All PSNs from the one that is due to before `end` are missing: a sequence NAK is owed. */
void urn_ack_ask_for(struct urn_psn_rx *rx, uint32_t end);
/*
 * A packet came ahead of its turn. selective: the peer takes SACKs; far: the packet is too far ahead
 * to be kept. returns: true when something is owed that was not
 */
bool urn_ack_ahead(struct urn_psn_rx *rx, uint32_t turn, bool selective, bool far);
/* Kept packets were taken up in their turn: tell of a second gap behind. returns: as urn_ack_ahead() */
bool urn_ack_taken_up(struct urn_psn_rx *rx, uint32_t turn, bool selective);
/*
 * The missing packet has come, and was accepted or refused. A NAK that is not sent yet is not
 * needed, unless more packets were dropped behind: nothing else tells the peer of those.
 * over: the sequence accepts no more
 */
void urn_ack_gap_closed(struct urn_psn_rx *rx, bool over);
/*
 * The packet with this PSN was dropped unseen: is it to be asked for? most: PSNs ahead of their turn
 * that are kept at most. returns: true when a NAK is owed for it
 */
bool urn_ack_missed(struct urn_psn_rx *rx, uint32_t psn, int32_t most);

#endif
