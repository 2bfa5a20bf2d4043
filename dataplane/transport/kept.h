/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets kept ahead of their turn that another one with the same PSN contradicts
 * (doc/recovery.md "Frames that somebody made up"). Two that wait at the same time are both
 * dropped, and the peer repeats its own. Of one that was taken up already a fingerprint is kept
 * for a while: a later one with other headers ends the QP, one with another payload is counted.
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
	URN_TRACES = 1024,       /* QPs of an engine of which fingerprints are kept */
	URN_TRACE_PRINTS = 256,  /* of each; a power of two. The newest of those with the same low bits */
	URN_TRACE_REACH = 1024,  /* PSNs behind the one that is due: older fingerprints do not count */
};

/* A request in 8 bytes. */
struct urn_print {
	uint32_t head;           /* CRC-32 of the opcode, solicited event, length and headers */
	uint32_t payload;        /* CRC-32 of the payload; of READs and atomics 0 */
};

/* What a request that comes again has in common with the one that was taken up in its place. */
enum urn_trace_verdict {
	URN_TRACE_SAME,          /* everything, or nothing is known of that one */
	URN_TRACE_PAYLOAD,       /* all but the payload */
	URN_TRACE_HEAD,          /* not even the headers */
};

/* What a QP took up of late of what it had kept. Owner: the pool of its transport. */
struct urn_trace {
	uint16_t next;           /* in the pool, by index; 0: the last */
	uint32_t end;            /* PSN that was due when the newest of them was taken up */
	struct {
		uint32_t psn;    /* low 24 bits; 0xffffffff: none */
		struct urn_print print;
	} of[URN_TRACE_PRINTS];  /* by the low bits of the PSN */
};

_Static_assert(URN_TRACES < 1 << 12, "urn_qp.trace");

/* Make the pool. returns 0, or -1: no memory */
int urn_traces_init(struct urn_tp *tp);
/* Give back what the QP has. */
void urn_trace_end(struct urn_tp *tp, struct urn_qp *qp);
/* The fingerprint of a request: all of it that a copy must have, too. */
struct urn_print urn_trace_print(struct rte_mbuf *m);
/*
 * A request of this fingerprint and PSN was kept, and is taken up now; epsn says what is due
 * next. Counts NO_TRACE where the pool is empty, and then remembers nothing.
 */
void urn_trace_add(struct urn_tp *tp, struct urn_qp *qp, uint32_t psn, struct urn_print print);
/* Compare a request behind its turn with what was taken up in its place. */
enum urn_trace_verdict urn_trace_compare(const struct urn_tp *tp, const struct urn_qp *qp,
					 struct rte_mbuf *m);
/* A request was accepted in its turn: forget all when the newest lies URN_TRACE_REACH behind. */
void urn_trace_age(struct urn_tp *tp, struct urn_qp *qp);

/* True when two requests, or two responses, with the same PSN say the same. */
bool urn_kept_same(struct rte_mbuf *a, struct rte_mbuf *b);

#endif
