/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The session header: 32 bytes in front of the payload of each Send, and of nothing else (FO-7).
 * The header holds all that a receive completion holds, so that the completion can be made from the
 * receive buffer when the adapter died before it wrote one (FO-9).
 *
 *   0        8        16      20      24      28      30   31   32
 *   | id     | acked  | conn  | length| word  | epoch |flags|op |     network byte order
 */
#ifndef URN_SESSION_HEADER_H
#define URN_SESSION_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Flags of a header. */
enum urn_sess_header_flag {
	URN_SESS_H_IMM = 1 << 0,       /* word is immediate data */
	URN_SESS_H_INV = 1 << 1,       /* word is the key that the Send invalidated */
	URN_SESS_H_SOLICITED = 1 << 2, /* the Send asked for an event */
	URN_SESS_H_VALID =
		1 << 7, /* "this receive succeeded"; a cleared header area has no such flag */
};

/* A session header as it lies in front of the payload, in network byte order. */
struct urn_sess_wire {
	uint64_t id;	/* message id; from 1 on */
	uint64_t acked; /* LAST ACKED: highest message id that the sender received reliably; 0: none
			 */
	uint32_t conn;	/* number of the connection, on the receiver's side */
	uint32_t length; /* bytes of the payload */
	uint32_t word;	 /* immediate data, or an invalidated key; 0: neither */
	uint16_t epoch;	 /* low bits of the epoch of the queue pair that carried it */
	uint8_t flags;	 /* enum urn_sess_header_flag */
	uint8_t op;	 /* opcode of the receive completion, as the sender sets it */
};
_Static_assert(sizeof(struct urn_sess_wire) == 32, "FO-7: at most 32 bytes");
_Static_assert(offsetof(struct urn_sess_wire, acked) == 8, "session header");
_Static_assert(offsetof(struct urn_sess_wire, conn) == 16, "session header");
_Static_assert(offsetof(struct urn_sess_wire, word) == 24, "session header");
_Static_assert(offsetof(struct urn_sess_wire, epoch) == 28, "session header");
_Static_assert(offsetof(struct urn_sess_wire, op) == 31, "session header");

/* A session header in the byte order of the host; the fields are those of struct urn_sess_wire. */
struct urn_sess_header {
	uint64_t id;	 /* message id */
	uint64_t acked;	 /* LAST ACKED */
	uint32_t conn;	 /* number of the connection, on the receiver's side */
	uint32_t length; /* bytes of the payload */
	uint32_t word;	 /* immediate data or key, as in the completion */
	uint16_t epoch;	 /* low bits of the epoch */
	uint8_t flags;	 /* enum urn_sess_header_flag */
	uint8_t op;	 /* opcode of the receive completion */
};

/* Write a header in front of a payload. The flag VALID is set in any case. */
void urn_sess_header_put(struct urn_sess_wire *to, const struct urn_sess_header *h);
/*
 * Read the header in front of a payload.
 *
 * room: bytes of the receive buffer behind the header
 * returns: false: no whole header is there, or one that contradicts itself
 */
bool urn_sess_header_get(const struct urn_sess_wire *from, uint32_t room,
			 struct urn_sess_header *h);

#endif
