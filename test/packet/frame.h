/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RoCEv2 frames made and read by hand, from doc/reference/wire.md alone: nothing here is
 * shared with dataplane/wire, so that a mistake there cannot hide itself.
 */
#ifndef URN_TEST_FRAME_H
#define URN_TEST_FRAME_H

#include <stdbool.h>
#include <stdint.h>

/* Opcodes (doc/reference/wire.md "Opcodes"). */
enum {
	SEND_FIRST = 0x00,
	SEND_MIDDLE = 0x01,
	SEND_LAST = 0x02,
	SEND_LAST_IMM = 0x03,
	SEND_ONLY = 0x04,
	SEND_ONLY_IMM = 0x05,
	WRITE_FIRST = 0x06,
	WRITE_MIDDLE = 0x07,
	WRITE_LAST = 0x08,
	WRITE_LAST_IMM = 0x09,
	WRITE_ONLY = 0x0a,
	WRITE_ONLY_IMM = 0x0b,
	READ_REQ = 0x0c,
	READ_FIRST = 0x0d,
	READ_MIDDLE = 0x0e,
	READ_LAST = 0x0f,
	READ_ONLY = 0x10,
	ACK = 0x11,
	ATOMIC_ACK = 0x12,
	CMP_SWAP = 0x13,
	FETCH_ADD = 0x14,
	SEND_LAST_INV = 0x16,
	SEND_ONLY_INV = 0x17,
	UC = 0x20, /* UC | SEND_FIRST and so on, to UC | WRITE_ONLY_IMM */
	UC_SEND_ONLY = 0x24,
	UD_SEND = 0x64,
	UD_SEND_IMM = 0x65,
	CNP = 0x81,
	WRITE_TWO = 0xc4, /* the last of a WRITE with two addresses */
	WRITE_TWO_IMM = 0xc5,
	UC_WORD = 0xc6, /* a UC receiver's PSN that is due; MSN: its window */
	SACK = 0xc0,	/* SACK's own header, behind the AETH, is the payload here */
};

/* Syndromes (doc/reference/wire.md "Acknowledgement"). */
enum { SYN_ACK = 0x1f, SYN_RNR = 0x20, NAK_SEQ = 0x60, NAK_INV = 0x61, NAK_ACCESS = 0x62, NAK_OP = 0x63 };

enum {
	FRAME_DATA = 4200,  /* bytes of payload, a little more than any MTU */
	FRAME_ROOM = 4608,  /* bytes of a whole frame */
};

/* Addresses of one end of the wire. */
struct frame_addr {
	uint8_t mac[6];
	uint8_t gid[16];    /* IPv4 as ::ffff:a.b.c.d */
};

/* A frame as fields. Only the fields that the opcode has count. */
struct frame {
	uint8_t op;
	bool ack, se;
	bool no_m; /* M bit clear; urnic sets it but in CNPs, like hardware that migrates no path */
	uint8_t tver;       /* 0 */
	uint8_t ecn;	    /* low two bits of the IP header's traffic class */
	uint8_t tclass, hops; /* read: the IP header's traffic class and hop limit, whole */
	uint8_t fb;	    /* F and B of the BTH, as they stand: 0x80, 0x40 */
	int pad;            /* pad bytes to claim; -1: as the payload needs */
	uint16_t pkey;
	uint32_t psn, dqpn;
	uint64_t va;        /* RETH, AtomicETH */
	uint32_t rkey;
	uint32_t length;    /* RETH */
	uint8_t syn;        /* AETH */
	uint32_t msn;
	uint64_t swap, compare; /* AtomicETH; an add in swap */
	uint64_t orig;      /* AtomicAckETH */
	uint32_t imm;       /* ImmDt (as a big-endian number), IETH */
	uint32_t qkey, sqpn; /* DETH */
	uint32_t len;       /* bytes of payload */
	uint8_t data[FRAME_DATA];
};

/* A frame with the usual values: P_Key 0xffff, pad as needed. */
struct frame frame_of(uint8_t op, uint32_t psn);

/* Bytes of extension headers of an opcode. */
uint32_t frame_ext_len(uint8_t op);

/*
 * Write the frame to out (FRAME_ROOM bytes), from Ethernet header to ICRC.
 * returns: its length
 */
uint32_t frame_write(const struct frame *f, const struct frame_addr *src,
		     const struct frame_addr *dst, uint8_t *out);

/* Set the right IPv4 checksum and ICRC in a frame of any contents, if it is long enough. */
void frame_seal(uint8_t *out, uint32_t len);

/*
 * Read a frame that a node sent, and judge it: addresses, lengths, checksum,
 * ICRC, pad, reserved bits. returns: NULL when all is well, else the error.
 */
const char *frame_read(const uint8_t *in, uint32_t len, const struct frame_addr *src,
		       const struct frame_addr *dst, struct frame *f);

#endif
