/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How two ends make a path anew (doc/inside/failover.md, "After healing"). Each end counts how
 * often it was made: that is its round. An OFFER (wire.h) tells the round of an end, and the round
 * of the peer's end that it is connected to. An end is connected once in its life; so an end whose
 * peer's end was made anew has to be made anew, too.
 *
 *   A: own 2, to 0 ──── OFFER round 2, to 0 ────► B: own 1, to 1: REMAKE_CONNECT: own 2, to 2
 *   A: CONNECT: to 2 ◄── OFFER round 2, to 2 ──── B
 *   A: agreed ────────── OFFER round 2, to 2 ───► B: agreed
 *
 * The rules are pure. Offers may be lost, repeated and reordered, over several paths.
 */
#ifndef URN_SESSION_HEAL_H
#define URN_SESSION_HEAL_H

#include <stdbool.h>
#include <stdint.h>

enum { URN_SESS_HEAL_AHEAD = 1 << 16 }; /* rounds that a peer may be ahead: more are forged */

/* One end of a path. All are the session layer's; rounds are from 1 on. */
struct urn_sess_heal {
	uint32_t own;  /* round of this end */
	uint32_t to;   /* round of the peer's end that this end is connected to; 0: none */
	uint32_t seen; /* highest round of the peer's end that was heard of */
	uint32_t bound; /* round of our end that the peer's of round `seen` is connected to; 0: none
			   that was heard of */
	bool agreed;   /* the peer's end is known to be connected to this one */
};

/* Steps that an offer asks of the end that hears it. */
enum urn_sess_heal_step {
	URN_SESS_HEAL_OLD,     /* nothing: the offer is of an end that is gone, or was overtaken */
	URN_SESS_HEAL_FORGED,  /* nothing: no peer sends such an offer */
	URN_SESS_HEAL_AGREED,  /* nothing: both ends are connected to each other */
	URN_SESS_HEAL_TELL,    /* the peer lacks this end's offer */
	URN_SESS_HEAL_CONNECT, /* connect this end to the peer's, and tell */
	URN_SESS_HEAL_REMAKE,  /* make this end anew, and tell: the peer's can't be connected to */
	URN_SESS_HEAL_REMAKE_CONNECT, /* make this end anew, connect it, and tell */
	URN_SESS_HEAL_STEPS,
};

/* The first end of a path: made and connected when the connection began. */
void urn_sess_heal_begin(struct urn_sess_heal *h);
/* The end was made anew, and is not connected. */
void urn_sess_heal_made(struct urn_sess_heal *h);
/* The end was connected to the peer's. round: the peer's; agreed: the peer's end is connected, too
 */
void urn_sess_heal_connected(struct urn_sess_heal *h, uint32_t round, bool agreed);
/*
 * Judge an offer. Our end does not change, so a step that can't be carried out now may be left to
 * the next repeat of the offer. The function notes only what the offer says of the peer's end.
 *
 * round: round of the peer's end; to: round of our end that it is connected to, 0: none
 */
enum urn_sess_heal_step urn_sess_heal_judge(struct urn_sess_heal *h, uint32_t round, uint32_t to);

#endif
