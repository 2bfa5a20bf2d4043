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

#include <stdbool.h>
#include <stddef.h>

#include <rte_mbuf.h>

struct urn_qp;

/* Kinds of frames that the parser tells apart. */
enum urn_frame_kind {
	URN_FRAME_ROCE, /* a well-formed RoCEv2 frame, ICRC not checked yet */
	URN_FRAME_ARP,
	URN_FRAME_ICMP,	 /* ICMP over IPv4 */
	URN_FRAME_ICMP6, /* ICMPv6, including neighbour discovery */
	URN_FRAME_OTHER, /* not for us; counted, dropped */
	URN_FRAME_BAD,	 /* meant to be RoCEv2 and malformed; `drop` tells how */
};

#define URN_PKT_PRIV 128u

/* Receive that a packet completes, or refusal of a request. */
struct urn_pkt_recv {
	uint8_t bits;          /* enum urn_req_bit */
	uint8_t status;        /* enum urn_abi_wc_status; NAK with URN_REQ_RECV, and UD_RECV */
	uint8_t vendor_err;    /* enum urn_abi_vendor_err; valid where status is */
	uint8_t syndrome;      /* NAK: syndrome of the AETH */
	uint32_t bytes;        /* REQUEST with URN_REQ_LAST, UD_RECV: length of the message */
	uint64_t wr_id;        /* the receive's; valid with URN_REQ_RECV, and for UD_RECV */
	uint32_t imm;          /* immediate, network order; with URN_REQ_INV the R_Key that was invalidated */
	uint32_t src_qp;       /* UD_RECV: QP number of the sender */
};

/* Memory that the bytes of a short message go to, while they wait for their completion. */
struct urn_pkt_beside {
	uint64_t addr; /* address that the receive names */
	uint64_t to;   /* the same in the client's process; valid once the completion is written */
	uint32_t lkey;
};

/* READ or atomic that was put on record. */
struct urn_pkt_record {
	uint32_t index;        /* the record's, in urn_qp.rec */
	uint64_t operand[2];   /* atomic: compare and swap, or what is added; then the first is the old value */
};

/* Part of a READ that was asked for again and waits to be answered. */
struct urn_pkt_part {
	uint32_t start, end;   /* packets of the READ's response, end exclusive */
	bool head;             /* the next packet is the first of the part */
};

/* Response that does not fit its request. */
struct urn_pkt_bad {
	uint8_t status;        /* enum urn_abi_wc_status that the request completes with */
	uint8_t vendor_err;    /* enum urn_abi_vendor_err */
};

/* Frame to be sent that waits for memory. */
struct urn_pkt_tx {
	uint8_t syndrome;      /* TX_RESPONSE: of an ACK or NAK; 0: another response */
	uint8_t loop;	       /* enum urn_loop */
	bool sealed;	       /* memory writes the ICRC when it gathers the payload */
};

struct urn_pkt {
	/*
	 * One cache line: all fields that a SEND or WRITE without immediate needs. Fields of the
	 * parser are valid for URN_FRAME_ROCE, fields of the transport (transport/) between its
	 * calls.
	 */
	const struct urn_opcode *op;
	struct urn_qp *qp;     /* transport */
	struct rte_mbuf *next; /* transport: next in a list of the QP */
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
	uint8_t action;        /* transport: action in the packet's turn, enum urn_act */
	uint8_t mem_status;    /* transport: worst result of its memory operations */
	uint8_t mem_left;      /* transport: memory operations not answered yet */

	/*
	 * State of the action, from when the packet is held until its turn. The action says which
	 * member is valid (enum urn_act); an action that is not named here needs none.
	 */
	union {
		struct urn_pkt_recv recv;     /* REQUEST, NAK, UD_RECV */
		struct urn_pkt_record record; /* READ, ATOMIC */
		struct urn_pkt_part part;     /* DUP_READ that was put aside */
		struct urn_pkt_bad bad;       /* BAD_RESP */
		struct urn_pkt_tx tx;         /* TX_REQUEST, TX_RESPONSE */
	};
	struct urn_pkt_beside beside; /* valid with URN_REQ_BESIDE in recv.bits */
};
_Static_assert(offsetof(struct urn_pkt, recv.imm) == 64,
	       "a packet without immediate needs one line");
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
 * Parse one received frame into urn_pkt(m) (doc/reference/wire.md "Frame", "BTH", "Lengths"). Reads
 * only inside the frame; accepts single-segment mbufs (the caller linearises others). Checks:
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
