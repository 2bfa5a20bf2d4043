/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A packet inside the dataplane: an mbuf whose private area holds the parser's results and the
 * state of the packet's way through the transport. Every mempool of the dataplane has URN_PKT_PRIV
 * bytes of private area.
 */
#ifndef URN_WIRE_PKT_H
#define URN_WIRE_PKT_H

#include "wire/hdr.h"
#include "wire/opcode.h"

#include <stddef.h>

#include <rte_mbuf.h>

struct urn_qp;

/* Kinds of frames that the parser tells apart. */
enum urn_frame_kind {
	URN_FRAME_ROCE,    /* a well-formed RoCEv2 frame, ICRC not checked yet */
	URN_FRAME_ARP,
	URN_FRAME_ICMP,    /* ICMP over IPv4 */
	URN_FRAME_ICMP6,   /* ICMPv6, including neighbour discovery */
	URN_FRAME_OTHER,   /* not for us; counted, dropped */
	URN_FRAME_BAD,     /* meant to be RoCEv2 and malformed; `drop` tells how */
};

#define URN_PKT_PRIV 128u

struct urn_pkt {
	/*
	 * One cache line: all fields that a SEND or WRITE without immediate needs. Set by the
	 * parser; valid for URN_FRAME_ROCE.
	 */
	const struct urn_opcode *op;
	uint8_t l3_off;        /* bytes from the frame's start to the IP header */
	uint8_t bth_off;       /* ... to the BTH */
	uint8_t payload_off;   /* ... to the payload */
	uint8_t kind;          /* enum urn_frame_kind */
	uint16_t payload_len;  /* bytes, without pad and ICRC */
	uint16_t pkey;
	uint32_t psn;
	uint32_t dqpn;
	uint8_t opcode;
	uint8_t drop;          /* enum urn_counter when kind is BAD or OTHER */
	uint8_t ipv6;          /* 0 or 1 */
	uint8_t ackreq;        /* BTH A */
	uint8_t solicited;     /* BTH SE */

	/* Used by the transport; see transport/. Valid only between calls of the transport. */
	uint8_t action;        /* action in the packet's turn, enum urn_act */
	uint8_t mem_status;    /* worst result of its memory operations */
	uint8_t loop;          /* frame to be sent: to this adapter itself */
	uint16_t mem_left;     /* memory operations not answered yet */
	uint8_t bits;          /* depends on the action */
	uint8_t rsvd;
	uint32_t arg;          /* depends on the action: syndrome, message length, ... */
	struct urn_qp *qp;
	struct rte_mbuf *next; /* next in a list of the QP */
	uint64_t wr_id;        /* wr_id of the receive that this packet completes */

	/* A second line, for further fields. */
	uint32_t imm;          /* immediate or invalidated key of the message */
	uint32_t rsvd2;
	uint64_t word[4];      /* depends on the action; atomics: operands, then the old value */
};
_Static_assert(offsetof(struct urn_pkt, imm) == 64, "what every packet needs is one line");
_Static_assert(sizeof(struct urn_pkt) <= URN_PKT_PRIV, "mbuf private area");

/* The packet in an mbuf of the dataplane. */
static inline struct urn_pkt *
urn_pkt(struct rte_mbuf *m)
{
	return (struct urn_pkt *)(m + 1);
}

/*
 * Start of the frame in an mbuf that comes fresh from its pool. Known without a look at the mbuf's
 * header, which may be in no cache.
 */
static inline uint8_t *
urn_pkt_fresh(struct rte_mbuf *m)
{
	return (uint8_t *)(m + 1) + URN_PKT_PRIV + RTE_PKTMBUF_HEADROOM;
}

static inline struct urn_bth *
urn_pkt_bth(struct rte_mbuf *m)
{
	return rte_pktmbuf_mtod_offset(m, struct urn_bth *, urn_pkt(m)->bth_off);
}

/* Extension header of a packet whose opcode has it. */
static inline void *
urn_pkt_ext(struct rte_mbuf *m, enum urn_ext ext)
{
	return (uint8_t *)urn_pkt_bth(m) + urn_pkt(m)->op->off[ext];
}

static inline uint8_t *
urn_pkt_payload(struct rte_mbuf *m)
{
	return rte_pktmbuf_mtod_offset(m, uint8_t *, urn_pkt(m)->payload_off);
}

/*
 * Parse one received frame into urn_pkt(m) (doc/reference/wire.md "Frame", "BTH", "Lengths"). Reads only
 * inside the frame; accepts single-segment mbufs (the caller linearises others). Checks:
 * Ethernet type, IP version, header length, total length against the frame (trailing Ethernet
 * padding is trimmed), no fragments, IPv4 header checksum, UDP length, BTH version, opcode
 * known, pad against length. Does not check the ICRC, MTU, MAC or IP addresses.
 *
 * returns: kind; for OTHER and BAD urn_pkt(m)->drop is the counter
 */
enum urn_frame_kind urn_wire_parse(struct rte_mbuf *m);

/*
 * returns: nonzero when the ICRC of a parsed RoCEv2 frame is right. The masked header bytes are
 * changed while computing and put back. (doc/reference/wire.md "ICRC")
 */
int urn_wire_icrc_ok(struct rte_mbuf *m);

#endif
