/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The input of the transport's target: RECORD_HEAD bytes for the node's configuration,
 * then records, each a byte for its kind and the bytes of that kind. All bytes have a
 * meaning: numbers choose from values that make sense at that moment (the PSN that is
 * due, a QP that exists, a valid key), so that frames get through the checks, and
 * sometimes from values that do not.
 *
 * The engine's target (RECORD_ENGINE) has the same records and, from 0x80 on, more: the
 * surroundings of a transport, the other nodes of the network and the program's other
 * calls.
 */
#ifndef URN_TEST_RECORD_H
#define URN_TEST_RECORD_H

#include <stddef.h>
#include <stdint.h>

enum { RECORD_HEAD = 8, RECORD_MAX = 192 /* records that are used */ };

#ifdef RECORD_ENGINE
enum { RECORD_MORE = 1 };
#else
enum { RECORD_MORE = 0 };
#endif

enum record_kind {
	RECORD_FRAME, /* a RoCEv2 frame in words: struct frame_words */
	RECORD_RAW,   /* a frame in bytes, some of which may be corrected first */
	RECORD_TURN,  /* time passes: 2^n ns */
	RECORD_POST,  /* the program posts a request */
	RECORD_RECV,  /* ... or a receive */
	RECORD_STATE, /* ... or moves a QP to another state */
	RECORD_WORLD, /* memory goes or comes, the peer's address is known or not */
	RECORD_AGAIN, /* the wire duplicates an earlier frame */
	RECORD_L3,    /* ARP, neighbour discovery, echo */
	RECORD_LINK,  /* a link request or response */
	RECORD_CM,    /* a message of connection management */
	RECORD_CALL,  /* the program's call about a connection */
	RECORD_WIRE,  /* the wire's state from now on */
	RECORD_TURNS, /* some turns of one engine, or all */
	RECORD_GUEST, /* another program comes or goes */
	RECORD_KINDS,
};

/* Bytes of a kind, without the kind; RECORD_RAW: before its frame. */
static const uint8_t record_fixed[RECORD_KINDS] = {
	[RECORD_FRAME] = 18, [RECORD_RAW] = 5,	 [RECORD_TURN] = 1,  [RECORD_POST] = 11,
	[RECORD_RECV] = 5,   [RECORD_STATE] = 2, [RECORD_WORLD] = 1, [RECORD_AGAIN] = 1,
	[RECORD_L3] = 8,     [RECORD_LINK] = 8,	 [RECORD_CM] = 12,   [RECORD_CALL] = 4,
	[RECORD_WIRE] = 1,   [RECORD_TURNS] = 2, [RECORD_GUEST] = 1,
};

static inline enum record_kind
record_kind(uint8_t byte)
{
	static const uint8_t kind[16] = {
		RECORD_FRAME, RECORD_FRAME, RECORD_FRAME, RECORD_FRAME, RECORD_FRAME, RECORD_FRAME,
		RECORD_RAW,   RECORD_TURN,  RECORD_TURN,  RECORD_POST,	RECORD_POST,  RECORD_RECV,
		RECORD_RECV,  RECORD_STATE, RECORD_WORLD, RECORD_AGAIN,
	};
#ifdef RECORD_ENGINE
	static const uint8_t more[16] = {
		RECORD_L3,   RECORD_L3,	  RECORD_L3,	RECORD_LINK,  RECORD_LINK, RECORD_CM,
		RECORD_CM,   RECORD_CM,	  RECORD_CM,	RECORD_CALL,  RECORD_CALL, RECORD_CALL,
		RECORD_WIRE, RECORD_WIRE, RECORD_TURNS, RECORD_GUEST,
	};

	if (byte & 0x80)
		return (enum record_kind)more[byte % 16];
#endif

	return (enum record_kind)kind[byte % 16];
}

/* Bytes of the record at p, at most the `left` that are there. */
static inline size_t
record_size(const uint8_t *p, size_t left)
{
	enum record_kind kind = record_kind(p[0]);
	size_t n = 1u + record_fixed[kind];

	if (kind == RECORD_RAW && left >= n)
		n += (size_t)(p[4] | p[5] << 8) % 4600;
	return n < left ? n : left;
}

#endif
