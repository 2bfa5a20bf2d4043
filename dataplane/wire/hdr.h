/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Headers in wire format, network byte order, with accessors that swap bytes. Ethernet / IPv4 or
 * IPv6 / UDP 4791 / BTH / extension headers (doc/reference/wire.md).
 */
#ifndef URN_WIRE_HDR_H
#define URN_WIRE_HDR_H

#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>

#define URN_ROCE_PORT 4791u
#define URN_ROCE_SPORT_MIN 0xc000u /* source ports are spread from here to 0xffff */
#define URN_PSN_MASK 0xffffffu
#define URN_QPN_MASK 0xffffffu
#define URN_QPN_GSI 1u /* the queue pair of management datagrams */
#define URN_QPN_MULTICAST 0xffffffu /* destination of multicast datagrams; no queue pair has it */
#define URN_GSI_QKEY 0x80010000u
#define URN_PKEY_DEFAULT 0xffffu
#define URN_GRH_BYTES 40u          /* bytes in front of the payload in a UD receive */
#define URN_ICRC_BYTES 4u
#define URN_ETH_BYTES 14u

struct urn_eth {
	uint8_t dst[6], src[6];
	uint16_t type;
} __attribute__((packed));

struct urn_ipv4 {
	uint8_t ver_ihl, tos;
	uint16_t len;
	uint16_t id, frag;
	uint8_t ttl, proto;
	uint16_t csum;
	uint8_t src[4], dst[4];
} __attribute__((packed));

struct urn_ipv6 {
	uint32_t ver_tc_flow;
	uint16_t len;
	uint8_t next, hop;
	uint8_t src[16], dst[16];
} __attribute__((packed));

struct urn_udp {
	uint16_t sport, dport, len, csum;
} __attribute__((packed));

struct urn_bth {
	uint8_t opcode;
	uint8_t flags;    /* SE 0x80, M 0x40, pad 0x30, version 0x0f */
	uint16_t pkey;
	uint32_t dqpn;    /* F, B, reserved in the top byte, which the ICRC masks */
	uint32_t apsn;    /* A 0x80 in the top byte */
} __attribute__((packed));

struct urn_reth {
	uint64_t va;
	uint32_t rkey, length;
} __attribute__((packed));

struct urn_aeth {
	uint32_t syn_msn; /* syndrome 8 bits, MSN 24 bits */
} __attribute__((packed));

struct urn_atomic_eth {
	uint64_t va;
	uint32_t rkey;
	uint64_t swap_add, compare;
} __attribute__((packed));

struct urn_deth {
	uint32_t qkey, sqpn;
} __attribute__((packed));

/* Selective acknowledgement, behind an AETH (doc/inside/recovery.md). */
enum { URN_SACK_VERSION = 1, URN_SACK_RANGES = 4, URN_SACK_BITS = 256 };

struct urn_sack {
	uint8_t version;  /* URN_SACK_VERSION */
	uint8_t ranges;   /* entries of range[] in use */
	uint16_t flags;   /* sent as 0; ignored */
	uint32_t expected; /* PSN that is accepted next; top byte 0 */
	struct {
		uint32_t first, end; /* kept PSNs, end exclusive; top bytes 0 */
	} range[URN_SACK_RANGES];    /* behind the bitmap, in PSN order */
	uint8_t bitmap[URN_SACK_BITS / 8]; /* bit i: PSN expected + 1 + i is kept; low bits first */
} __attribute__((packed));

_Static_assert(sizeof(struct urn_sack) == 72, "sack");
_Static_assert(sizeof(struct urn_eth) == 14, "eth");
_Static_assert(sizeof(struct urn_ipv4) == 20, "ipv4");
_Static_assert(sizeof(struct urn_ipv6) == 40, "ipv6");
_Static_assert(sizeof(struct urn_udp) == 8, "udp");
_Static_assert(sizeof(struct urn_bth) == 12, "bth");
_Static_assert(sizeof(struct urn_reth) == 16, "reth");
_Static_assert(sizeof(struct urn_aeth) == 4, "aeth");
_Static_assert(sizeof(struct urn_atomic_eth) == 28, "atomic eth");
_Static_assert(sizeof(struct urn_deth) == 8, "deth");

enum urn_bth_bits {
	URN_BTH_SE = 0x80,
	URN_BTH_M = 0x40,
	URN_BTH_PAD_SHIFT = 4,
	URN_BTH_TVER = 0x0f,
};
#define URN_BTH_ACKREQ 0x80000000u

/* AETH syndromes (doc/reference/wire.md "Acknowledgement"). */
enum urn_syndrome {
	URN_SYN_KIND = 0x60,        /* mask of the kind */
	URN_SYN_VALUE = 0x1f,
	URN_SYN_ACK = 0x00,
	URN_SYN_ACK_NOCREDIT = 0x1f, /* an ACK without credit count */
	URN_SYN_RNR = 0x20,
	URN_SYN_NAK = 0x60,
	URN_NAK_SEQ = 0x60,
	URN_NAK_INV_REQ = 0x61,
	URN_NAK_ACCESS = 0x62,
	URN_NAK_OP = 0x63,
};

/* P_Keys match: equal low 15 bits, not 0, at least one full member. */
static inline int
urn_pkey_match(uint16_t a, uint16_t b)
{
	return ((a ^ b) & 0x7fff) == 0 && (a & 0x7fff) != 0 && ((a | b) & 0x8000);
}

#endif
