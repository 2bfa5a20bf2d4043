/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets kept ahead of their turn that another one with the same PSN contradicts
 * (doc/recovery.md "Frames that somebody made up"). Two that wait at the same time are both
 * dropped, and the peer repeats its own. Of one that was taken up already a fingerprint is kept
 * for a while: a later request with other headers ends the QP, one with another payload is
 * counted. A later response is counted; an atomic's with another value ends the QP.
 *
 * A requester may change AckReq and MigReq when it repeats, and ask for a part of a READ: these
 * bits and a READ's length are not compared.
 */
#ifndef URN_TRANSPORT_KEPT_H
#define URN_TRANSPORT_KEPT_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

struct urn_tp;
struct urn_qp;

enum {
	URN_TRACES = 1024,       /* QPs of an engine of which fingerprints are kept; a power of two */
	URN_TRACES_PART = URN_TRACES / 8, /* of a client: one with more is the first to lose some */
	URN_TRACE_PRINTS = 256,  /* of each side; a power of two. The newest of those with the same low bits */
	URN_TRACE_REACH = 1024,  /* PSNs behind the one that is due: older fingerprints do not count */
	URN_TRACE_LIFE = 1 << 22, /* PSNs after which all are forgotten, before their numbers come again */
};

/* A request or response in 8 bytes. */
struct urn_print {
	uint32_t head;           /* CRC-32 of the opcode, solicited event, length and headers */
	uint32_t payload;        /* CRC-32 of the payload, or an atomic response's value; of READs and atomics 0 */
};

/* Whose PSNs they are. */
enum urn_trace_of {
	URN_TRACE_REQ,           /* requests to us */
	URN_TRACE_RESP,          /* responses to us */
	URN_TRACE_SIDES,
};

/* How much a packet that comes again has in common with the one that was taken up in its place. */
enum urn_trace_verdict {
	URN_TRACE_SAME,          /* everything, or nothing is known of that one */
	URN_TRACE_PAYLOAD,       /* all but the payload */
	URN_TRACE_HEAD,          /* not even the headers */
};

/* Fingerprints of the kept requests, or responses, that a QP took up of late. */
struct urn_trace_side {
	bool some;               /* it did; otherwise nothing else is valid */
	uint32_t begun;          /* PSN that was due when the first of them was taken up */
	uint32_t end;            /* ... and the newest */
	struct {
		uint32_t psn;    /* low 24 bits; 0xffffffff: none */
		struct urn_print print;
	} of[URN_TRACE_PRINTS];  /* by the low bits of the PSN */
};

/* Owner: the pool of its transport. */
struct urn_trace {
	struct urn_qp *qp;       /* that holds it; NULL: it is in the pool */
	uint16_t older, newer;   /* that the same client holds, by index; 0: none. In the pool newer is the next */
	struct urn_trace_side side[URN_TRACE_SIDES];
};

_Static_assert(URN_TRACES < 1 << 12, "urn_qp.trace");

/* Make the pool. returns 0, or -1: no memory */
int urn_traces_init(struct urn_tp *tp);
/* Give back what the QP has. */
void urn_trace_end(struct urn_tp *tp, struct urn_qp *qp);
/* The fingerprint of a packet: all of it that a copy must have, too. Before it is accepted. */
struct urn_print urn_trace_print(struct rte_mbuf *m);
/*
 * A packet of this fingerprint and PSN was kept, and is taken up now; another is due next.
 * Where the pool is empty another QP loses what it remembers (NO_TRACE).
 */
void urn_trace_add(struct urn_tp *tp, struct urn_qp *qp, enum urn_trace_of of, uint32_t psn,
		   struct urn_print print);
/* Compare a packet behind its turn with what was taken up in its place. */
enum urn_trace_verdict urn_trace_compare(const struct urn_tp *tp, const struct urn_qp *qp,
					 enum urn_trace_of of, struct rte_mbuf *m);
/*
 * Some were accepted in their turn: forget all when the newest lies URN_TRACE_REACH behind, or
 * the oldest may be URN_TRACE_LIFE old. At least once in 2^23 PSNs.
 */
void urn_trace_age(struct urn_tp *tp, struct urn_qp *qp, enum urn_trace_of of);

/* True when two requests, or two responses, with the same PSN say the same. */
bool urn_kept_same(struct rte_mbuf *a, struct rte_mbuf *b);

#endif
