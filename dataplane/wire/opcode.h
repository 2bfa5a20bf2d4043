/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The one table of opcodes. Parsing, building, requester and responder look
 * everything about a packet type up here (doc/reference/wire.md "Opcodes").
 */
#ifndef URN_WIRE_OPCODE_H
#define URN_WIRE_OPCODE_H

#include <stdint.h>

/*
 * Values on the wire. RC has 0x00 in its top three bits, UC 0x20, UD 0x60. The requests of UC are
 * those of RC with another top: URN_UC | URN_RC_SEND_FIRST.
 */
enum urn_op {
	URN_RC_SEND_FIRST = 0x00,
	URN_RC_SEND_MIDDLE = 0x01,
	URN_RC_SEND_LAST = 0x02,
	URN_RC_SEND_LAST_IMM = 0x03,
	URN_RC_SEND_ONLY = 0x04,
	URN_RC_SEND_ONLY_IMM = 0x05,
	URN_RC_WRITE_FIRST = 0x06,
	URN_RC_WRITE_MIDDLE = 0x07,
	URN_RC_WRITE_LAST = 0x08,
	URN_RC_WRITE_LAST_IMM = 0x09,
	URN_RC_WRITE_ONLY = 0x0a,
	URN_RC_WRITE_ONLY_IMM = 0x0b,
	URN_RC_READ_REQUEST = 0x0c,
	URN_RC_READ_RESP_FIRST = 0x0d,
	URN_RC_READ_RESP_MIDDLE = 0x0e,
	URN_RC_READ_RESP_LAST = 0x0f,
	URN_RC_READ_RESP_ONLY = 0x10,
	URN_RC_ACK = 0x11,
	URN_RC_ATOMIC_ACK = 0x12,
	URN_RC_CMP_SWAP = 0x13,
	URN_RC_FETCH_ADD = 0x14,
	URN_RC_SEND_LAST_INV = 0x16,
	URN_RC_SEND_ONLY_INV = 0x17,
	URN_UC = 0x20, /* top of the opcodes of UC; by itself "UC SEND first" */
	URN_UD_SEND_ONLY = 0x64,
	URN_UD_SEND_ONLY_IMM = 0x65,
	URN_CNP = 0x81,
	URN_RC_SACK = 0xc0, /* the manufacturers' space, from here on (doc/reference/wire.md) */
	URN_FLOW_DATA = 0xc1,
	URN_FLOW_ACK = 0xc2,
	URN_FLOW_RESET = 0xc3,
	URN_RC_WRITE_LAST_TWO =
		0xc4, /* end of the bulk, and the head (doc/inside/aligned-writes.md) */
	URN_RC_WRITE_LAST_TWO_IMM = 0xc5,
	URN_UC_WORD = 0xc6, /* the PSN that is due at a UC receiver; MSN: its window, packets */
};

/* Properties of a packet; bits of struct urn_opcode.flags. */
enum urn_op_flag {
	URN_OPF_VALID = 1 << 0,	   /* an opcode that urnic knows */
	URN_OPF_REQUEST = 1 << 1,  /* goes to the responder */
	URN_OPF_RESPONSE = 1 << 2, /* goes to the requester */
	URN_OPF_RC = 1 << 3,
	URN_OPF_UD = 1 << 4,
	URN_OPF_FIRST = 1 << 5, /* starts a message (first, only) */
	URN_OPF_LAST = 1 << 6,	/* ends a message (last, only) */
	URN_OPF_SEND = 1 << 7,
	URN_OPF_WRITE = 1 << 8,
	URN_OPF_READ = 1 << 9,
	URN_OPF_ATOMIC = 1 << 10,
	URN_OPF_PAYLOAD = 1 << 11, /* may carry payload */
	URN_OPF_FULL = 1 << 12,	   /* payload is the path MTU exactly, pad 0 (first, middle) */
	URN_OPF_NONZERO = 1 << 13, /* payload is at least one byte (last) */
	URN_OPF_RECV =
		1 << 14, /* ends a message that takes a receive (sends; writes with immediate) */
	URN_OPF_CNP = 1 << 15,
	URN_OPF_ACK = 1 << 16,	   /* acknowledgement alone, also a NAK or SACK */
	URN_OPF_COMPARE = 1 << 17, /* atomic that compares first */
	URN_OPF_FLOW = 1 << 18,	   /* packet of a flow: belongs to no queue pair */
	URN_OPF_UC = 1 << 19,
};

/* Extension headers; indices into struct urn_opcode.off. */
enum urn_ext {
	URN_EXT_RETH,
	URN_EXT_AETH,
	URN_EXT_ATOMIC,
	URN_EXT_ATOMIC_ACK,
	URN_EXT_IMM,
	URN_EXT_IETH,
	URN_EXT_DETH,
	URN_EXT_SACK,
	URN_EXT_FLOW,
	URN_EXTS,
};

struct urn_opcode {
	const char *name;       /* "RC SEND only"; NULL when unknown */
	uint32_t flags;         /* enum urn_op_flag */
	uint8_t hdr_len;        /* bytes of BTH and extension headers: where payload starts */
	uint8_t off[URN_EXTS];  /* offset of an extension from the BTH; 0: not there */
};

/*
 * All 256 values; unknown ones have flags 0. Reserved opcodes of RC are requests of no kind: the
 * responder of a live QP refuses them in their turn (IBTA 9.7.4.1.1, 9.9.3).
 */
extern const struct urn_opcode urn_opcodes[256];

/* True when the opcode is the response to an atomic. */
static inline int
urn_opcode_atomic_ack(const struct urn_opcode *op)
{
	return (op->flags & (URN_OPF_RESPONSE | URN_OPF_ATOMIC)) == (URN_OPF_RESPONSE | URN_OPF_ATOMIC);
}

/* True when the opcode belongs to RC and has no meaning here. */
static inline int
urn_opcode_reserved(const struct urn_opcode *op)
{
	const uint32_t kind = URN_OPF_SEND | URN_OPF_WRITE | URN_OPF_READ | URN_OPF_ATOMIC;

	return (op->flags & (URN_OPF_RC | URN_OPF_REQUEST | kind)) == (URN_OPF_RC | URN_OPF_REQUEST);
}

#endif
