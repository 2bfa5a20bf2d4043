/* SPDX-License-Identifier: BSD-3-Clause */
/* Bugs that are imitated, so that the oracles are seen to notice. */
#ifndef URN_AMSIM_SABOTAGE_H
#define URN_AMSIM_SABOTAGE_H

#include "amsim.h"

/* X(id, name, text) */
/* clang-format off */
#define AS_SABOTAGES(X) \
	X(LOST, "lost", "an event is not written") \
	X(TWICE, "twice", "an event is written twice") \
	X(EARLY, "early", "a write is done before its last byte is in place") \
	X(TORN, "torn", "a byte of a read is wrong") \
	X(OUTSIDE, "outside", "a byte outside of all ranges is written") \
	X(BEHIND, "behind", "a byte behind the range of a write is written") \
	X(LIE, "lie", "a good operation ends with range") \
	X(DENIED, "denied", "a write that was done ends with an error, and not may be there") \
	X(GRANTED, "granted", "a wrong operation is done") \
	X(COUNT, "count", "an event has wrong bytes") \
	X(REVOKED, "revoked", "a byte is written after its region was taken back") \
	X(STALL, "stall", "the doorbells of an endpoint are lost") \
	X(PACKET, "packet", "a packet of an operation is lost to the pool") \
	X(REPLY, "reply", "a reply is lost to the pool") \
	X(ONCE_MORE, "once", "an atomic operation is carried out twice") \
	X(OLD, "old", "an atomic operation has another old value") \
	X(FENCE, "fence", "an operation does not wait at a fence") \
	X(MBUF, "mbuf", "a frame is lost to the pool") \
	X(UNHEARD, "unheard", "a request is answered, and its handler does not run") \
	X(HEARD, "heard", "a request's handler runs twice") \
	X(MUTE, "mute", "a reply is lost in the library") \
	X(AGAIN, "again", "a reply comes twice") \
	X(GARBLED, "garbled", "a reply has other bytes") \
	X(UNTOLD, "untold", "a failure is not told") \
	X(EXCUSE, "excuse", "a failure has another reason") \
	X(ASTRAY, "astray", "data of a tagged write is placed into the transfer of another tag") \
	X(PAIRED, "paired", "a tag is given to a second operation while the first is open") \
	X(EARLY_LOST, "unkept", "data that came before its request is dropped, and taken for kept") \
	X(EARLY_MORE, "doubled", "data that came before its request is placed twice") \
	X(EARLY_LEFT, "kept", "a buffer of data that came before its request is never given back") \
	X(ADRIFT, "adrift", "a request is lost after its target's node was restarted") \
	X(UNSERVED, "unserved", "an operation is lost after its target's node was restarted")
/* clang-format on */

enum as_sabotage {
	AS_BREAK_NOTHING,
#define X(id, name, text) AS_BREAK_##id,
	AS_SABOTAGES(X)
#undef X
		AS_BREAKS,
};

/* True when it is time to break something, which is noted. fits: it can be broken here */
bool as_sabotage_now(struct ms_world *w, enum as_sabotage what, bool fits);
/* The world whose tags are broken. */
void as_sabotage_open(struct ms_world *w);
/* ... and what comes to nodes that were started anew. */
void as_sabotage_anew_open(struct ms_world *w);

#endif
