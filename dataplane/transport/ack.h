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
 * True when the packet at the cursor asks for an acknowledgement even if more follow. The last
 * packet for now asks in any case; only its owner knows whether more follow.
 *
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

/* The next packet that is made at this cursor asks for an acknowledgement. */
static inline void
urn_ack_ask(struct urn_psn_cursor *cur)
{
	cur->since_ack = URN_ACK_EVERY;
}

/*
 * A paced sender waits after n packets more: the last of them is to ask, so that the wait for the
 * pace is not taken for silence of the peer. n: from 1 to URN_ACK_EVERY. Not while the newest
 * packet has asked and is outstanding: nothing may be sent now, and that packet must not seem
 * unasked.
 */
static inline void
urn_ack_ask_within(struct urn_psn_tx *tx, uint32_t n)
{
	if ((tx->cur.since_ack || tx->una == tx->next) && tx->cur.since_ack < URN_ACK_EVERY - n)
		tx->cur.since_ack = (uint8_t)(URN_ACK_EVERY - n);
}

/* The packet that asked for an acknowledgement may never go out: another is to ask. */
static inline void
urn_ack_ask_undone(struct urn_psn_cursor *cur)
{
	cur->since_ack = 1;
}

/* The newest packet was made again at this cursor, or was to be: its count is the sequence's. */
static inline void
urn_ack_ask_tried(struct urn_psn_tx *tx, const struct urn_psn_cursor *cur)
{
	tx->cur.since_ack = cur->since_ack;
}

/* True when packets are outstanding, and the newest did not ask for an acknowledgement. */
static inline bool
urn_ack_unasked(const struct urn_psn_tx *tx)
{
	return tx->cur.since_ack && tx->una != tx->next;
}

/* The cursor goes back: the sequence remembers whether the newest packet asked. */
static inline void
urn_ack_ask_back(struct urn_psn_tx *tx)
{
	if (tx->cur.psn == tx->next)
		tx->flags = (uint16_t)(tx->cur.since_ack ? tx->flags | URN_TXF_UNASKED
							 : tx->flags & ~URN_TXF_UNASKED);
	tx->cur.since_ack = 0;
}

/* The cursor moves on to work never sent: a remembered packet that did not ask counts again. */
static inline void
urn_ack_ask_on(struct urn_psn_tx *tx)
{
	tx->cur.since_ack = (tx->flags & URN_TXF_UNASKED) != 0;
}

/* ---- receiver */

/* True when an ACK is owed. */
static inline bool
urn_ack_is_owed(const struct urn_psn_rx *rx)
{
	return rx->flags & URN_RXF_ACK;
}

/* True when a NAK is owed, an RNR NAK too. */
static inline bool
urn_ack_nak_is_owed(const struct urn_psn_rx *rx)
{
	return rx->flags & URN_RXF_NAK;
}

/* True when an ACK or a NAK is owed. */
static inline bool
urn_ack_any_is_owed(const struct urn_psn_rx *rx)
{
	return rx->flags & (URN_RXF_ACK | URN_RXF_NAK);
}

/* True when a sequence NAK is owed: packets are to be asked for. */
static inline bool
urn_ack_gap_is_owed(const struct urn_psn_rx *rx)
{
	return (rx->flags & URN_RXF_NAK) && rx->nak_syn == URN_NAK_SEQ;
}

/* True when a sequence NAK was sent, or is to be, and the missing packet has not come. */
static inline bool
urn_ack_has_gap(const struct urn_psn_rx *rx)
{
	return rx->flags & URN_RXF_GAP;
}

/* True when the packet with this PSN, 24 bits, is the one that a sequence NAK has asked for. */
static inline bool
urn_ack_was_asked_for(const struct urn_psn_rx *rx, uint32_t psn)
{
	return psn == rx->epsn && (rx->flags & (URN_RXF_GAP | URN_RXF_NAK)) == URN_RXF_GAP;
}

/* The packet that is due finds no receive: an RNR NAK follows, and tells of packets behind too. */
static inline void
urn_ack_not_ready(struct urn_psn_rx *rx)
{
	rx->flags |= URN_RXF_RNR_SENT;
}

/* True while the packet that found no receive has not come again: none behind it is kept. */
static inline bool
urn_ack_is_not_ready(const struct urn_psn_rx *rx)
{
	return rx->flags & URN_RXF_RNR_SENT;
}

/* The packet that is due has come, perhaps once more. */
static inline void
urn_ack_came(struct urn_psn_rx *rx)
{
	rx->flags &= (uint8_t)~URN_RXF_RNR_SENT;
}

/* The ACK that was owed was sent, perhaps as a SACK. */
static inline void
urn_ack_sent(struct urn_psn_rx *rx)
{
	rx->flags &= (uint8_t)~URN_RXF_ACK;
}

/* The NAK that was owed was sent; all PSNs before its own are acknowledged by it, too. */
static inline void
urn_ack_nak_sent(struct urn_psn_rx *rx)
{
	rx->flags &= (uint8_t) ~(URN_RXF_NAK | URN_RXF_ACK);
}

/* Nobody is there to be told: neither ACK nor NAK is owed any more. */
static inline void
urn_ack_void(struct urn_psn_rx *rx)
{
	rx->flags &= (uint8_t) ~(URN_RXF_NAK | URN_RXF_ACK);
}

/* True when an acknowledgement is owed; of UC the receiver's word (uc_hold.h). */
static inline bool
urn_ack_owes(const struct urn_psn_rx *rx)
{
	return rx->flags & URN_RXF_ACK;
}

/* An acknowledgement is owed from this turn on; now: it does not wait to be merged. */
static inline void
urn_ack_owe(struct urn_psn_rx *rx, uint32_t turn, bool now)
{
	if (!(rx->flags & URN_RXF_ACK)) {
		rx->flags = (uint8_t)((rx->flags & ~URN_RXF_MANY) | URN_RXF_ACK);
		rx->ack_turn = turn;
	} else {
		rx->flags |= URN_RXF_MANY;
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
