/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Codes of the answer to a message (DB-5, DB-7), and states of a receive queue. Both are stored in
 * the status lines of abi/msg.h; codes also travel in acknowledgements of flows.
 */
#ifndef URN_ABI_MSG_CODES_H
#define URN_ABI_MSG_CODES_H

#include <stdint.h>

/*
 * X(NAME, number, kind, word, text)
 *   kind  bit of the retry policy that asks for another try; 0: another try is never made
 */
/* clang-format off */
#define URN_MSG_CODE_LIST(X) \
	X(IDLE,          0, 0,      "idle",          "no message was sent yet") \
	X(PENDING,       1, 0,      "pending",       "the message is on its way") \
	X(DONE,          2, 0,      "done",          "the message is in the target queue") \
	X(QUEUE_FULL,    3, 1 << 0, "queue-full",    "the target queue has no free entry") \
	X(NO_NODE,       4, 1 << 1, "no-node",       "nobody answers for the address of the target node") \
	X(NO_QUEUE,      5, 1 << 2, "no-queue",      "the target node has no such queue") \
	X(TOO_LONG,      6, 0,      "too-long",      "the message is longer than an entry of the target queue") \
	X(NOT_PERMITTED, 7, 0,      "not-permitted", "the target queue takes no message from this node") \
	X(UNREACHABLE,   8, 1 << 3, "unreachable",   "the target node does not answer") \
	X(BAD_DOORBELL,  9, 0,      "bad-doorbell",  "address, size or target of the message make no sense") \
	X(BUSY,         10, 1 << 4, "busy",          "a dataplane has no room for the message now") \
	X(RESTARTED,    11, 1 << 5, "restarted",     "the target node was restarted meanwhile")
/* clang-format on */

enum urn_msg_code {
#define X(name, number, kind, word, text) URN_MSG_##name = (number),
	URN_MSG_CODE_LIST(X)
#undef X
	URN_MSG_CODES,
	/* Added to a code: the message may be in the target queue all the same (DB-7). */
	URN_MSG_MAY_BE_THERE = 0x80,
};

/* Kinds of errors that a retry policy names; bits of urn_abi_msg_send.retry_kinds. */
enum urn_msg_retry {
#define X(name, number, kind, word, text) URN_MSG_RETRY_##name = (kind),
	URN_MSG_CODE_LIST(X)
#undef X
	URN_MSG_RETRY_KINDS = 0x3f,
};

/* The kind of retry that a code belongs to. code: any number; returns: 0: no other try is made */
static inline uint32_t
urn_msg_code_kind(uint8_t code)
{
	switch (code & ~URN_MSG_MAY_BE_THERE) {
#define X(name, number, kind, word, text) \
	case URN_MSG_##name:              \
		return (kind);
		URN_MSG_CODE_LIST(X)
#undef X
	}
	return 0;
}

/* A word for a code, with or without URN_MSG_MAY_BE_THERE. code: any number */
static inline const char *
urn_msg_code_word(uint8_t code)
{
	switch (code & ~URN_MSG_MAY_BE_THERE) {
#define X(name, number, kind, word, text) \
	case URN_MSG_##name:              \
		return word;
		URN_MSG_CODE_LIST(X)
#undef X
	}
	return "unknown";
}

/* A sentence for people about a code, without URN_MSG_MAY_BE_THERE. code: any number */
static inline const char *
urn_msg_code_text(uint8_t code)
{
	switch (code & ~URN_MSG_MAY_BE_THERE) {
#define X(name, number, kind, word, text) \
	case URN_MSG_##name:              \
		return text;
		URN_MSG_CODE_LIST(X)
#undef X
	}
	return "a code of a newer release";
}

/*
 * States of a receive queue, in urn_abi_msg_rstat.state: X(NAME, number, word, text)
 */
/* clang-format off */
#define URN_MSGQ_STATE_LIST(X) \
	X(NONE,      0, "none",      "the queue was not configured yet") \
	X(OPEN,      1, "open",      "the queue takes messages") \
	X(BAD_RING,  2, "bad-ring",  "base, entries or entry size of the configuration make no sense") \
	X(IN_USE,    3, "in-use",    "the ring was not changed, because it holds messages") \
	X(BAD_HEAD,  4, "bad-head",  "the head is not between tail - entries and tail; no message is taken until it is")
/* clang-format on */

enum urn_msgq_state {
#define X(name, number, word, text) URN_MSGQ_##name = (number),
	URN_MSGQ_STATE_LIST(X)
#undef X
	URN_MSGQ_STATES,
};

#endif
