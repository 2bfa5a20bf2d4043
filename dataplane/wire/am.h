/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of remote memory access, in wire format (doc/inside/active-messages.md). One message is
 * the data of a segment of a flow (wire/flow.h) whose target is an endpoint: this header, then the
 * bytes.
 *
 *   WRITE        bytes for addr..addr+len     ─► WRITE_REPLY, or ERROR
 *   READ         nothing                      ─► READ_REPLY with the bytes, or ERROR
 *   ATOMIC       operation and operands       ─► ATOMIC_REPLY with the word's value before, or
 * ERROR
 *   PART         bytes of a transfer of many packets ─► TAG_DONE for several, or TAG_ERROR
 *   TAG_WRITE    nothing; TAG_DATA with bytes ─► TAG_DONE when all are placed, or TAG_ERROR
 *   TAG_READ     nothing                      ─► TAG_BACK with bytes, or TAG_ERROR
 *   TAG_CANCEL   nothing: the initiator gave the operation up
 *
 * The tag is the initiator's number of the packet, or of the operation (kinds from 8 on); a reply
 * carries it back. The segment names the two endpoints.
 */
#ifndef URN_WIRE_AM_H
#define URN_WIRE_AM_H

#include "wire/hdr.h"

#include <stdbool.h>

enum {
	URN_AM_CHUNK_MAX = 4096,    /* bytes of memory that one message moves */
	URN_AM_TOTAL_MAX = 1 << 30, /* bytes of memory that one operation moves */
};

/*
 * X(NAME, number, reply, data)
 *   reply  1: the kind answers a message
 *   data   bytes that follow the header; 1: `len` bytes
 */
/* clang-format off */
#define URN_AM_KIND_LIST(X) \
	X(WRITE, 1, 0, 1) \
	X(WRITE_REPLY, 2, 1, 0) \
	X(READ, 3, 0, 0) \
	X(READ_REPLY, 4, 1, 1) \
	X(ERROR, 5, 1, 0) \
	X(ATOMIC, 6, 0, 24) \
	X(ATOMIC_REPLY, 7, 1, 8) \
	X(TAG_WRITE, 8, 0, 0) \
	X(TAG_READ, 9, 0, 0) \
	X(TAG_DATA, 10, 0, 1) \
	X(TAG_BACK, 11, 1, 1) \
	X(TAG_DONE, 12, 1, 0) \
	X(TAG_ERROR, 13, 1, 0) \
	X(TAG_CANCEL, 14, 0, 0) \
	X(PART, 15, 0, 1)

enum urn_am_kind {
#define X(name, number, reply, data) URN_AM_K_##name = (number),
	URN_AM_KIND_LIST(X)
#undef X
	URN_AM_KINDS,
};
/* clang-format on */

struct urn_am_hdr {
	uint8_t kind;	/* enum urn_am_kind */
	uint8_t code;	/* ERROR, TAG_ERROR, TAG_CANCEL: enum urn_am_code, not DONE; else 0 */
	uint16_t flags; /* WRITE_REPLY: further writes that it answers (wire/am_more.h); else 0 */
	uint32_t len;  /* bytes of memory, 1 to URN_AM_CHUNK_MAX, ATOMIC: 4 or 8; replies: as in the
			  message that they answer; TAG_WRITE, TAG_READ, TAG_DONE, TAG_ERROR,
			  TAG_CANCEL: bytes of the operation, 1 to URN_AM_TOTAL_MAX */
	uint64_t tag;  /* number of the message, or of the operation; replies: likewise, of what
			  they answer */
	uint64_t addr; /* WRITE, READ, ATOMIC, PART, TAG_WRITE, TAG_READ: first byte in the target's
			  memory; TAG_DATA, TAG_BACK: bytes of the operation before these; TAG_DONE,
			  TAG_ERROR: bytes placed; else 0 */
	uint64_t key;  /* likewise: access key, 0: none; TAG_DATA, TAG_BACK: number of the endpoint
			  that it is for (AM-10); else 0 */
} __attribute__((packed));
_Static_assert(sizeof(struct urn_am_hdr) == 32, "header of remote memory access");
_Static_assert(offsetof(struct urn_am_hdr, tag) == 8, "header of remote memory access");
_Static_assert(offsetof(struct urn_am_hdr, key) == 24, "header of remote memory access");

/* Behind the header of ATOMIC. */
struct urn_am_atomic_hdr {
	uint8_t op;	  /* enum urn_am_atomic_op */
	uint8_t rsvd[7];  /* 0 */
	uint64_t value;	  /* added or stored; below 2^32 with 4 bytes */
	uint64_t compare; /* COMPARE_SWAP: compared with the word, likewise; else 0 */
} __attribute__((packed));
_Static_assert(sizeof(struct urn_am_atomic_hdr) == 24, "operands of an atomic operation");
_Static_assert(offsetof(struct urn_am_atomic_hdr, value) == 8, "operands of an atomic operation");

/* Operation and operands, in host order. */
struct urn_am_atomic {
	uint8_t op;		 /* enum urn_am_atomic_op */
	uint64_t value, compare; /* those of struct urn_am_atomic_hdr */
};

/* Behind the header of a PART. */
struct urn_am_part_hdr {
	uint32_t total;	 /* bytes of the transfer, up to URN_AM_TOTAL_MAX */
	uint8_t every;	 /* packets for one reply; URN_AM_EVERY_TRANSFER: one when all are placed */
	uint8_t rsvd[3]; /* 0 */
} __attribute__((packed));
_Static_assert(sizeof(struct urn_am_part_hdr) == 8, "header of a part");

/* A message, its numbers in host order. */
struct urn_am_msg {
	uint8_t kind, code; /* those of struct urn_am_hdr */
	uint8_t every;	    /* that of struct urn_am_part_hdr; valid for PART, else 0 */
	uint32_t len;	    /* bytes of memory */
	uint32_t total;	    /* that of struct urn_am_part_hdr; valid for PART, else 0 */
	uint64_t tag, addr, key;
	const uint8_t *data; /* in the message: len bytes, or those of an atomic; NULL: a kind
				without */
};

enum {
	URN_AM_MSG_MAX = (int)(sizeof(struct urn_am_hdr) + sizeof(struct urn_am_part_hdr)) +
			 URN_AM_CHUNK_MAX, /* bytes of the longest message */
};

/* True when messages of the kind go to the initiator. kind: of a message that was parsed */
bool urn_am_kind_is_reply(uint8_t kind);
/*
 * Read a message. Everything about it is checked that can be checked without the endpoint: kind,
 * code, flags that must be 0, lengths, fields that the kind does not use, and addresses that wrap
 * around.
 *
 * data, len: the message; any bytes
 * returns: true: *m is set, and m->data points into data
 */
bool urn_am_parse(const uint8_t *data, uint32_t len, struct urn_am_msg *m);
/*
 * Write the header of a message, from values in registers: fields go straight to their place. A
 * copy of fields that were just written one by one would wait until they are in the cache.
 */
static inline void
urn_am_put_hdr(uint8_t *at, uint8_t kind, uint8_t code, uint32_t len, uint64_t tag, uint64_t addr,
	       uint64_t key)
{
	struct urn_am_hdr *h = (struct urn_am_hdr *)at;

	h->kind = kind;
	h->code = code;
	h->flags = 0;
	h->len = rte_cpu_to_be_32(len);
	h->tag = rte_cpu_to_be_64(tag);
	h->addr = rte_cpu_to_be_64(addr);
	h->key = rte_cpu_to_be_64(key);
}

/* Write the header of a message. returns: bytes of the whole message; its data, if the kind has
 * any, goes to its end */
uint32_t urn_am_build(uint8_t *at, const struct urn_am_msg *m);

/* Write the data of ATOMIC. */
void urn_am_put_atomic(uint8_t *data, const struct urn_am_atomic *a);
/* Read the data of ATOMIC. len: bytes of memory. returns: false: malformed */
bool urn_am_get_atomic(const uint8_t *data, uint32_t len, struct urn_am_atomic *a);
/* Write the data of ATOMIC_REPLY: the word's value before. */
void urn_am_put_old(uint8_t *data, uint64_t old);
/* Read the data of ATOMIC_REPLY, of a message that was parsed. */
uint64_t urn_am_get_old(const uint8_t *data);

#endif
