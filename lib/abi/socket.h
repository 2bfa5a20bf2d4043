/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The dataplane's UNIX socket: how a program attaches to a dataplane that is a
 * process of its own. SOCK_SEQPACKET, so a message is whole or not there. The
 * program asks, one message at a time; the dataplane answers each:
 *
 *   HELLO  range of versions        -> HELLO  the version agreed on, what the dataplane is
 *   LIST   index                    -> DEVICE adapter number `index`, or err ENOENT
 *   OPEN   name of an adapter [mem, maps] -> OPEN [area, a wake eventfd for each engine]
 *   MEMORY [mem, maps]             -> MEMORY
 *   CALL   urn_abi_req [descriptor] -> CALL   urn_abi_rep [descriptor]
 *   EVENTS how many at most         -> EVENTS so many urn_abi_cm_event, the oldest first
 *
 * One connection opens one adapter, once; MEMORY, CALL and EVENTS are for after that. EVENTS
 * is URN_CTL_CM_EVENT of any id, so many times or until there is no event. Closing the
 * connection gives everything back that was made over it. A message that makes
 * no sense is answered with an error and the connection is closed.
 *
 * The head, HELLO's range and the answer's head, err and why lie where they lie in every
 * version, so that an end of any version can say hello to one of any other (abi/agree.h). A
 * HELLO may be longer than its kind, up to the size of a question: bytes that only a newer
 * library knows are ignored. Features are agreed upon by URN_CTL_HELLO, the control call that
 * channels within a process begin with, too.
 *
 * A program maps its area before its first CALL or EVENTS: then the dataplane seals the area
 * (F_SEAL_FUTURE_WRITE), so that nobody punches holes into it under an engine, and no
 * mapping that is made later is writable. URN_CTL_SHARE does the same to the memfd it brings.
 *
 * Descriptors travel by SCM_RIGHTS. With MEMORY the program hands over its /proc/self/mem, open
 * for reading and writing, and its /proc/self/maps, once: then regions may lie in any memory of the
 * program, not only in memory that it shares. A program that registers no other memory keeps them.
 * To a dataplane without URN_SOCK_CAN_MEMORY they go with OPEN. Only one
 * control request brings a descriptor, URN_CTL_SHARE; the answers to URN_CTL_ASYNC_FD and
 * URN_CTL_CREATE_CHANNEL bring the two ends of a pipe for events.
 */
#ifndef URN_ABI_SOCKET_H
#define URN_ABI_SOCKET_H

#include "abi/control.h"

#define URN_SOCK_MAGIC 0x6e72752fu /* "/urn" */
#define URN_SOCK_VERSION 2u

enum urn_sock_kind {
	URN_SOCK_HELLO = 1,
	URN_SOCK_LIST,
	URN_SOCK_OPEN,
	URN_SOCK_CALL,
	URN_SOCK_EVENTS,
	URN_SOCK_MEMORY,
};

/* Abilities that a dataplane tells in its HELLO. Bits; dataplanes of before have none. */
enum urn_sock_can {
	URN_SOCK_CAN_MEMORY = 1, /* takes MEMORY */
};

struct urn_sock_head {
	uint32_t magic;   /* URN_SOCK_MAGIC */
	uint16_t version; /* URN_SOCK_VERSION */
	uint16_t kind;    /* enum urn_sock_kind; an answer has its question's */
	uint32_t serial;  /* chosen by the asker; the answer brings it back */
	uint32_t bytes;   /* length of the whole message, this head included */
};

/* Question of the program. A message has the bytes of its kind and no more, but for HELLO. */
struct urn_sock_ask {
	struct urn_sock_head head;
	union {
		/* versions of the library, like struct urn_abi_offer; version 6 leaves newest 0 */
		struct { uint32_t oldest; uint32_t newest; } hello;
		struct { uint32_t index; uint32_t rsvd; } list;
		struct { char name[32]; } open;                 /* the adapter's name, ends with NUL */
		struct urn_abi_req call;
		struct { uint32_t max; uint32_t rsvd; } events; /* at most; URN_SOCK_EVENTS_MAX caps it */
		struct {
			uint64_t rsvd;
		} memory;
	};
};

struct urn_sock_device {
	char name[32];
	char node[32];
	uint64_t guid;  /* host order */
};

/* Answer of the dataplane, always of this size. The answer to EVENTS is followed by the events. */
struct urn_sock_answer {
	struct urn_sock_head head;
	int32_t err;    /* HELLO, LIST, OPEN, EVENTS: 0 or an errno value; CALL: see call.err */
	uint32_t can;	/* HELLO: bits of enum urn_sock_can; others: 0 */
	char why[120];  /* when err: a sentence for people */
	union {
		/* abi: the version agreed on; when err: the dataplane's newest */
		struct { uint32_t abi; uint32_t adapters; char version[64]; } hello;
		struct urn_sock_device device;
		struct { uint64_t area_size; uint32_t engines; uint32_t foreign; } open; /* foreign: 1: any memory */
		struct urn_abi_rep call;
		struct { uint32_t n; uint32_t rsvd; } events; /* how many follow; 0 when err */
	};
};

/* Most descriptors that a message carries, in the answer to OPEN. */
enum { URN_SOCK_FDS = 1 + URN_ABI_MAX_ENGINES };

/* Most events that an answer brings. */
enum { URN_SOCK_EVENTS_MAX = 16 };

_Static_assert(sizeof(struct urn_sock_head) == 16, "head");
_Static_assert(sizeof(struct urn_sock_ask) == 304, "question");
_Static_assert(offsetof(struct urn_sock_ask, call) == 16, "question");
_Static_assert(offsetof(struct urn_sock_ask, hello.oldest) == 16, "every version's");
_Static_assert(offsetof(struct urn_sock_ask, hello.newest) == 20, "every version's");
_Static_assert(offsetof(struct urn_sock_answer, err) == 16, "every version's");
_Static_assert(offsetof(struct urn_sock_answer, why) == 24, "every version's");
_Static_assert(sizeof(struct urn_sock_device) == 72, "device");
_Static_assert(sizeof(struct urn_sock_answer) == 616, "answer");
_Static_assert(offsetof(struct urn_sock_answer, call) == 144, "answer");

/* Bytes of a question of the given kind, for HELLO the least; 0: there is no such kind. */
static inline uint32_t
urn_sock_ask_bytes(uint16_t kind)
{
	static const uint16_t body[] = {
		[URN_SOCK_HELLO] = 8,  [URN_SOCK_LIST] = 8,
		[URN_SOCK_OPEN] = 32,  [URN_SOCK_CALL] = sizeof(struct urn_abi_req),
		[URN_SOCK_EVENTS] = 8, [URN_SOCK_MEMORY] = 8,
	};

	if (kind == 0 || kind >= sizeof(body) / sizeof(body[0]))
		return 0;
	return (uint32_t)sizeof(struct urn_sock_head) + body[kind];
}

#endif
