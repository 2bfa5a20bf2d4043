/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ways and outcomes of operations on remote memory, and rights to it (AM-2 to AM-9). Events of
 * endpoints hold the outcomes (abi/am.h), and access error messages carry them from node to node.
 */
#ifndef URN_ABI_AM_CODES_H
#define URN_ABI_AM_CODES_H

#include <stdint.h>

/* Ways of an operation (AM-8). */
enum urn_am_way {
	URN_AM_AUTO = 0,      /* by length: direct, pipelined, or tagged (am_tagged_from) */
	URN_AM_DIRECT = 1,    /* one packet; BAD_COMMAND if that does not hold all bytes */
	URN_AM_PIPELINED = 2, /* packets with an address each */
	URN_AM_TAGGED = 3,    /* one request, and packets that name its tag */
	URN_AM_WAYS,
};

/* Atomic operations on a word of 4 or 8 bytes. Commands and packets hold these numbers. */
enum urn_am_atomic_op {
	URN_AM_FETCH_ADD = 3,	 /* add a value; a sum too large wraps around */
	URN_AM_SWAP = 4,	 /* store a value */
	URN_AM_COMPARE_SWAP = 5, /* store a value if the word equals another */
};

static inline int
urn_am_op_is_atomic(uint8_t op)
{
	return op >= URN_AM_FETCH_ADD && op <= URN_AM_COMPARE_SWAP;
}

/* Replies to a pipelined write (AM-4); other numbers: one reply for so many packets. */
enum urn_am_every {
	URN_AM_EVERY_PACKET = 0,     /* one for each packet */
	URN_AM_EVERY_TRANSFER = 255, /* one for the transfer, when every byte is placed */
};

/* Access rights of a region. */
enum urn_am_access {
	URN_AM_ACCESS_WRITE = 1 << 0,
	URN_AM_ACCESS_READ = 1 << 1,
	URN_AM_ACCESS_ATOMIC = 1 << 2,
	URN_AM_ACCESS_ALL = URN_AM_ACCESS_WRITE | URN_AM_ACCESS_READ | URN_AM_ACCESS_ATOMIC,
};

/* X(NAME, number, word, text) */
/* clang-format off */
#define URN_AM_CODE_LIST(X) \
	X(DONE,         0, "done",         "every byte is where the operation moves it") \
	X(BAD_COMMAND,  1, "bad-command",  "operation, length, way or target of the command make no sense") \
	X(LOCAL,        2, "local",        "the local bytes are not memory of that local key, or may not be used so") \
	X(BAD_KEY,      3, "bad-key",      "the target endpoint has no region with that key") \
	X(RANGE,        4, "range",        "not every byte lies within the ranges of the target's region") \
	X(RIGHTS,       5, "rights",       "the target's region does not allow this access") \
	X(UNREGISTERED, 6, "unregistered", "the target endpoint declared no memory that is reached without a key") \
	X(NO_ENDPOINT,  7, "no-endpoint",  "the target node has no such endpoint") \
	X(NO_NODE,      8, "no-node",      "nobody answers for the address of the target node") \
	X(UNREACHABLE,  9, "unreachable",  "the target node does not answer") \
	X(RESTARTED,   10, "restarted",    "the target node was restarted meanwhile") \
	X(BUSY,        11, "busy",         "a dataplane had no room for the operation for too long") \
	X(NO_REPLY,    12, "no-reply",     "the target node took a packet, and sent no reply to it") \
	X(BAD_PACKET,  13, "bad-packet",   "the target node found a packet malformed") \
	X(ALIGN,       14, "align",        "the address of an atomic operation is not a multiple of its 4 or 8 bytes") \
	X(ADDRESSEE,   15, "addressee",    "a tagged message names another endpoint than the one that it came to") \
	X(TAG_USED,    16, "tag-used",     "the tag is that of another operation, under way or ended") \
	X(TAG_RETIRED, 17, "tag-retired",  "the tag of a request is that of an operation that failed") \
	X(SCATTERED,   18, "scattered",    "the bytes of a packet lie in more than 4 memory regions of the target")
/* clang-format on */

enum urn_am_code {
#define X(name, number, word, text) URN_AM_##name = (number),
	URN_AM_CODE_LIST(X)
#undef X
		URN_AM_CODES,
	/* Added to a code of a write or an atomic operation: memory may have been changed all
	 * the same. */
	URN_AM_MAY_BE_THERE = 0x80,
};

/* A word for a code, with or without URN_AM_MAY_BE_THERE. code: any number */
static inline const char *
urn_am_code_word(uint8_t code)
{
	switch (code & ~URN_AM_MAY_BE_THERE) {
#define X(name, number, word, text) \
	case URN_AM_##name:         \
		return word;
		URN_AM_CODE_LIST(X)
#undef X
	}
	return "unknown";
}

/* A sentence for people about a code, without URN_AM_MAY_BE_THERE. code: any number */
static inline const char *
urn_am_code_text(uint8_t code)
{
	switch (code & ~URN_AM_MAY_BE_THERE) {
#define X(name, number, word, text) \
	case URN_AM_##name:         \
		return text;
		URN_AM_CODE_LIST(X)
#undef X
	}
	return "a code of a newer release";
}

#endif
