/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RoCEv2 frames as the independent peer writes and reads them (IBTA 9.2 to 9.6, annex
 * A17). No line here comes from the product: a mistake of the product can't hide in this
 * file.
 */
#ifndef PEER_WIRE_H
#define PEER_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PW_ROOM = 4096 + 160, /* bytes of the largest frame, and some more */
	PW_PSN_MASK = 0xffffff,
	PW_ACK = 0x1f,        /* syndrome of an ACK without credits */
	PW_RNR = 0x20,        /* ... of an RNR NAK; low 5 bits: timer code */
	PW_NAK_SEQ = 0x60,
	PW_NAK_INV = 0x61,
	PW_NAK_ACCESS = 0x62,
	PW_NAK_OP = 0x63,
};

enum pw_op {
	PW_SEND_FIRST,
	PW_SEND_MIDDLE,
	PW_SEND_LAST,
	PW_SEND_LAST_IMM,
	PW_SEND_ONLY,
	PW_SEND_ONLY_IMM,
	PW_WRITE_FIRST,
	PW_WRITE_MIDDLE,
	PW_WRITE_LAST,
	PW_WRITE_LAST_IMM,
	PW_WRITE_ONLY,
	PW_WRITE_ONLY_IMM,
	PW_READ,
	PW_RESP_FIRST,
	PW_RESP_MIDDLE,
	PW_RESP_LAST,
	PW_RESP_ONLY,
	PW_ACKNOWLEDGE,
	PW_ATOMIC_ACK,
	PW_CMP_SWAP,
	PW_FETCH_ADD,
	PW_SEND_LAST_INV = 0x16,
	PW_SEND_ONLY_INV,
	PW_OPS,
};

/* Properties and contents of an opcode. */
enum pw_is {
	PWI_KNOWN = 1 << 0,
	PWI_RESPONSE = 1 << 1,
	PWI_BEGINS = 1 << 2,  /* first of a message, or of a response */
	PWI_ENDS = 1 << 3,
	PWI_DATA = 1 << 4,    /* may carry payload */
	PWI_RETH = 1 << 5,
	PWI_AETH = 1 << 6,
	PWI_ATOMIC = 1 << 7,
	PWI_ORIG = 1 << 8,
	PWI_IMM = 1 << 9,
	PWI_INV = 1 << 10,
	PWI_SEND = 1 << 11,
	PWI_WRITE = 1 << 12,
	PWI_FETCH = 1 << 13,  /* READ request or atomic: it gets a response of its own */
};

/* One end of the wire. ip: an IPv4 address is in the first four bytes */
struct pw_addr {
	uint8_t mac[6];
	uint8_t ip[16];
	bool v6;
};

/* One frame. Only the fields that its opcode carries are valid. */
struct pw {
	uint16_t sport;       /* UDP source port; only of a frame that was read */
	uint8_t op;           /* enum pw_op */
	bool se, mig, ack;    /* solicited event, MigReq, AckReq */
	uint32_t qpn, psn;    /* destination QP */
	uint64_t va;          /* RETH, AtomicETH */
	uint32_t rkey, dmalen;
	uint64_t swap_add, compare;
	uint8_t syn;
	uint32_t msn;
	uint64_t orig;
	uint32_t imm;         /* immediate, or the key to invalidate */
	const uint8_t *data;  /* in the frame that was read, or to be written */
	uint32_t len;         /* bytes of data */
};

/* returns: properties of an opcode, bits of enum pw_is; 0: not one of RC */
unsigned int pw_is(uint8_t op);
const char *pw_name(uint8_t op);
/* out: PW_ROOM bytes. returns: bytes of the frame */
size_t pw_write(const struct pw *f, const struct pw_addr *from, const struct pw_addr *to,
		uint16_t sport, uint8_t *out);
/*
 * Read a frame strictly by the standard, to the last bit that it defines. from, to: the
 * ends that it must name. returns: NULL, or a sentence about the frame's mistake
 */
const char *pw_read(const uint8_t *at, size_t len, const struct pw_addr *from,
		    const struct pw_addr *to, struct pw *f);
/* ICRC of a packet, from the IP header on; len: without the ICRC. (peer_crc.c) */
uint32_t pw_icrc(const uint8_t *ip, size_t len);

/* a - b modulo 2^24 PSNs, -2^23 to 2^23 - 1. */
static inline int32_t
pw_diff(uint32_t a, uint32_t b)
{
	uint32_t d = (a - b) & PW_PSN_MASK;

	return d & 0x800000 ? (int32_t)d - 0x1000000 : (int32_t)d;
}

static inline uint32_t
pw_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & PW_PSN_MASK;
}

#endif
