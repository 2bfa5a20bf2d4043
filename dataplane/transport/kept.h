/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets kept ahead of their turn that another packet with the same PSN contradicts
 * (doc/inside/recovery.md "Frames that somebody made up"). Two such packets that wait at the same time are
 * both dropped, and the peer repeats its own. A packet that was taken up already leaves a
 * fingerprint for a while: a later request with other headers ends the QP, one with another payload
 * is counted. A later response is counted; a later atomic response with another value ends the QP.
 *
 * A requester may change AckReq and MigReq when it repeats, and ask for a part of a READ: these
 * bits and the length of a READ are not compared.
 */
#ifndef URN_TRANSPORT_KEPT_H
#define URN_TRANSPORT_KEPT_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

struct urn_tp;
struct urn_qp;

enum {
	URN_TRACES = 1024,       /* QPs of an engine that can have fingerprints; a power of two */
	URN_TRACES_PART = URN_TRACES / 8, /* QPs of a client: one with more is the first to lose some */
	URN_TRACE_PRINTS = 256,  /* fingerprints a side; a power of two. The newest with the same low bits stays */
	URN_TRACE_REACH = 1024,  /* PSNs behind the one that is due: older fingerprints do not count */
	URN_TRACE_LIFE = 1 << 22, /* PSNs after which all fingerprints are forgotten, before the numbers come again */
};

/* A request or response in 8 bytes. */
struct urn_print {
	uint32_t head;           /* CRC-32 of the opcode, solicited event, length and headers */
	uint32_t payload;        /* CRC-32 of the payload or an atomic response's value; READ and atomic requests: 0 */
};

/* The side that a PSN belongs to. */
enum urn_trace_of {
	URN_TRACE_REQ,           /* requests to us */
	URN_TRACE_RESP,          /* responses to us */
	URN_TRACE_SIDES,
};

/* Likeness of a repeated packet to the packet that was taken up in its place. */
enum urn_trace_verdict {
	URN_TRACE_SAME,          /* everything, or no fingerprint of the other is known */
	URN_TRACE_PAYLOAD,       /* all but the payload */
	URN_TRACE_HEAD,          /* not even the headers */
};

/* Fingerprints of the kept requests, or responses, that a QP took up recently. */
struct urn_trace_side {
	bool some;               /* the QP took up some; otherwise nothing else is valid */
	uint32_t begun;          /* PSN that was due when the first of them was taken up */
	uint32_t end;            /* ... and when the newest was */
	struct {
		uint32_t psn;    /* low 24 bits; 0xffffffff: none */
		struct urn_print print;
	} of[URN_TRACE_PRINTS];  /* indexed by the low bits of the PSN */
};

/* Fingerprints of one QP. Owner: the pool of its transport. */
struct urn_trace {
	struct urn_qp *qp;       /* QP that holds this; NULL: in the pool */
	uint16_t older, newer;   /* neighbours among the same client's, by index; 0: none */
	uint32_t next;           /* the pool's */
	struct urn_trace_side side[URN_TRACE_SIDES];
};

_Static_assert(URN_TRACES < 1 << 12, "urn_qp.trace");

/* Make the pool. returns: 0, or -1: no memory */
int urn_traces_init(struct urn_tp *tp);
/* Give back the fingerprints of the QP. */
void urn_trace_end(struct urn_tp *tp, struct urn_qp *qp);
/* The fingerprint of a packet: all that a copy must share. To be taken before the packet is accepted. */
struct urn_print urn_trace_print(struct rte_mbuf *m);
/*
 * A kept packet with this fingerprint and PSN is taken up now; another PSN is due next. When the
 * pool is empty, another QP loses its fingerprints (NO_TRACE).
 */
void urn_trace_add(struct urn_tp *tp, struct urn_qp *qp, enum urn_trace_of of, uint32_t psn,
		   struct urn_print print);
/* Compare a packet behind its turn with the packet that was taken up in its place. */
enum urn_trace_verdict urn_trace_compare(const struct urn_tp *tp, const struct urn_qp *qp,
					 enum urn_trace_of of, struct rte_mbuf *m);
/*
 * Packets were accepted in their turn: forget all fingerprints when the newest lies URN_TRACE_REACH
 * PSNs behind, or the oldest may be URN_TRACE_LIFE PSNs old. To be called at least once in 2^23
 * PSNs.
 */
void urn_trace_age(struct urn_tp *tp, struct urn_qp *qp, enum urn_trace_of of);

/* True when two requests, or two responses, with the same PSN have the same content. */
bool urn_kept_same(struct rte_mbuf *a, struct rte_mbuf *b);

#endif
