/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/kept.h"
#include "transport/ack.h"
#include "transport/act.h"
#include "transport/frame.h"
#include "transport/pool.h"
#include "transport/requester.h"
#include "transport/responder.h"
#include "transport/ring.h"
#include "transport/sched.h"

#include <stdlib.h>

#include <isa-l/crc.h>

/* ---- content that a copy must share */

/* True when the packet is a READ request, not a part of a response. */
static inline bool
is_read(const struct urn_pkt *p)
{
	return (p->op->flags & (URN_OPF_READ | URN_OPF_RESPONSE)) == URN_OPF_READ;
}

/* Extension headers and payload, in one piece. READ: without the length, which may differ. */
static uint32_t
body(struct rte_mbuf *m, const uint8_t **at)
{
	const struct urn_pkt *p = urn_pkt(m);

	*at = (const uint8_t *)urn_pkt_bth(m) + sizeof(struct urn_bth);
	if (is_read(p))
		return offsetof(struct urn_reth, length);
	/* The AETH of a response has credits, and its opcode may be that of another part. */
	if ((p->op->flags & (URN_OPF_RESPONSE | URN_OPF_ATOMIC)) == URN_OPF_RESPONSE) {
		*at = urn_pkt_payload(m);
		return p->payload_len;
	}
	if (urn_opcode_atomic_ack(p->op)) {
		*at = urn_pkt_ext(m, URN_EXT_ATOMIC_ACK);
		return sizeof(uint64_t);
	}
	return p->op->hdr_len - (uint32_t)sizeof(struct urn_bth) + p->payload_len;
}

/* Opcode and solicited event; the opcodes of READ responses all count as one. */
static uint32_t
kind(const struct urn_pkt *p)
{
	if (p->op->flags & URN_OPF_RESPONSE)
		return urn_opcode_atomic_ack(p->op);
	return (uint32_t)p->opcode << 1 | (p->solicited != 0);
}

bool
urn_kept_same(struct rte_mbuf *a, struct rte_mbuf *b)
{
	const uint8_t *x, *y;
	uint32_t n = body(a, &x);

	return kind(urn_pkt(a)) == kind(urn_pkt(b)) && n == body(b, &y) && memcmp(x, y, n) == 0;
}

struct urn_print
urn_trace_print(struct rte_mbuf *m)
{
	const uint8_t *at;
	uint32_t n = body(m, &at), head[2] = {kind(urn_pkt(m)), n};
	uint32_t payload = is_read(urn_pkt(m))		      ? 0
			   : urn_opcode_atomic_ack(urn_pkt(m)->op) ? n
								     : urn_pkt(m)->payload_len;
	uint32_t crc = crc32_gzip_refl(0, (const uint8_t *)head, sizeof(head));

	return (struct urn_print){
		.head = crc32_gzip_refl(crc, at, n - payload),
		.payload = payload ? crc32_gzip_refl(0, at + n - payload, payload) : 0,
	};
}

/* ---- fingerprints of packets taken up: the pool */

int
urn_traces_init(struct urn_tp *tp)
{
	tp->trace = calloc(URN_TRACES + 1, sizeof(*tp->trace));
	urn_pool_init(&tp->traces, 1, URN_TRACES + 1);
	return tp->trace ? 0 : -1;
}

void
urn_trace_end(struct urn_tp *tp, struct urn_qp *qp)
{
	struct urn_tp_share *s = qp->share;
	struct urn_trace *t = &tp->trace[qp->trace];

	if (!qp->trace)
		return;
	*(t->older ? &tp->trace[t->older].newer : &s->trace_oldest) = t->newer;
	*(t->newer ? &tp->trace[t->newer].older : &s->trace_newest) = t->older;
	s->trace--;
	urn_share_user(s)->trace--;
	t->qp = NULL;
	urn_pool_put(&tp->traces, qp->trace, &tp->trace->next, sizeof(*t));
	qp->trace = 0;
	qp->flags &= ~(uint32_t)URN_QPF_TRACE;
}

/*
 * The pool is empty: pick the QP that loses its fingerprints to a QP of s's client. A client with
 * its part or more loses its own, those it has had longest. Otherwise a client with more than its
 * part loses some, or else one whose user has more than two parts, and when none shows up, the QP
 * whose turn it is.
 */
static struct urn_qp *
loser(struct urn_tp *tp, const struct urn_tp_share *s)
{
	enum { LOOKS = 8 };
	struct urn_qp *qp = NULL, *of_user = NULL;

	if (s->trace >= URN_TRACES_PART)
		return tp->trace[s->trace_oldest].qp;
	for (int i = 0; i < LOOKS; i++) {
		tp->trace_hand = tp->trace_hand % URN_TRACES + 1;
		qp = tp->trace[tp->trace_hand].qp;
		if (qp->share->trace > URN_TRACES_PART)
			return tp->trace[qp->share->trace_oldest].qp;
		if (urn_share_user(qp->share)->trace > 2 * URN_TRACES_PART)
			of_user = qp;
	}
	return of_user ? of_user : qp;
}

static void
begin(struct urn_tp *tp, struct urn_qp *qp)
{
	struct urn_tp_share *s = qp->share;
	struct urn_trace *t;
	uint32_t i = urn_pool_get(&tp->traces, &tp->trace->next, sizeof(*t));

	if (unlikely(i == URN_HASH_NIL)) {
		URN_COUNT(tp, NO_TRACE);
		urn_trace_end(tp, loser(tp, s));
		i = urn_pool_get(&tp->traces, &tp->trace->next, sizeof(*t));
	}
	qp->trace = i & (URN_TRACES * 2 - 1);
	qp->flags |= URN_QPF_TRACE;
	t = &tp->trace[qp->trace];
	t->qp = qp;
	t->side[URN_TRACE_REQ].some = t->side[URN_TRACE_RESP].some = false;
	t->newer = 0;
	t->older = s->trace_newest;
	*(t->older ? &tp->trace[t->older].newer : &s->trace_oldest) = (uint16_t)qp->trace;
	s->trace_newest = (uint16_t)qp->trace;
	s->trace++;
	urn_share_user(s)->trace++;
}

/* ---- fingerprints of one QP */

/* PSN of the packet that is due next. */
static uint32_t
due(const struct urn_qp *qp, enum urn_trace_of of)
{
	return of == URN_TRACE_REQ ? qp->rx.epsn : urn_psn_tx_response(&qp->tx);
}

/* True when PSN a is more than n behind b, or in front of b: that counts as more than half a round behind. */
static bool
past(uint32_t b, uint32_t a, uint32_t n)
{
	return (uint32_t)urn_psn_diff(b, a) > n;
}

void
urn_trace_add(struct urn_tp *tp, struct urn_qp *qp, enum urn_trace_of of, uint32_t psn,
	      struct urn_print print)
{
	struct urn_trace_side *t;

	if (!qp->trace)
		begin(tp, qp);
	t = &tp->trace[qp->trace].side[of];
	if (!t->some) {
		t->some = true;
		t->begun = due(qp, of);
		memset(t->of, 0xff, sizeof(t->of));
	}
	t->of[psn % URN_TRACE_PRINTS].psn = psn;
	t->of[psn % URN_TRACE_PRINTS].print = print;
	t->end = due(qp, of);
}

enum urn_trace_verdict
urn_trace_compare(const struct urn_tp *tp, const struct urn_qp *qp, enum urn_trace_of of,
		  struct rte_mbuf *m)
{
	uint32_t psn = urn_pkt(m)->psn;
	const struct urn_trace_side *t = &tp->trace[qp->trace].side[of];
	struct urn_print a = t->of[psn % URN_TRACE_PRINTS].print, b;

	if (!qp->trace || !t->some || t->of[psn % URN_TRACE_PRINTS].psn != psn ||
	    past(due(qp, of), psn, URN_TRACE_REACH))
		return URN_TRACE_SAME;
	b = urn_trace_print(m);
	if (a.head != b.head)
		return URN_TRACE_HEAD;
	return a.payload == b.payload ? URN_TRACE_SAME : URN_TRACE_PAYLOAD;
}

void
urn_trace_age(struct urn_tp *tp, struct urn_qp *qp, enum urn_trace_of of)
{
	struct urn_trace *t = &tp->trace[qp->trace];
	struct urn_trace_side *side = &t->side[of];
	uint32_t now = due(qp, of);

	if (side->some && (past(now, side->end, URN_TRACE_REACH) ||
			   past(now, side->begun, URN_TRACE_LIFE)))
		side->some = false;
	if (!t->side[URN_TRACE_REQ].some && !t->side[URN_TRACE_RESP].some)
		urn_trace_end(tp, qp);
}

/* ---- requests ahead of their turn */

/* Two requests that have the same PSN and differ are both dropped: the peer repeats its own. */
static void
let_go_if_other(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	uint32_t psn = urn_pkt(m)->psn;
	struct rte_mbuf *old = urn_ring_find(qp->rx.ooo, psn);

	if (!old || urn_kept_same(old, m))
		return;
	URN_COUNT(tp, CONTRADICTS);
	urn_ring_remove(&qp->rx.ooo, old);
	qp->rx.ooo_count--;
	urn_kept_count(tp, qp->share, -1);
	urn_tp_drop(tp, old, URN_C_DROP_OOO);
}

bool
urn_resp_keep(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	if (urn_ack_is_not_ready(&qp->rx))
		return false;
	if (!urn_kept_room(tp, qp->share) || !urn_ring_insert(&qp->rx.ooo, m)) {
		let_go_if_other(tp, qp, m);
		return false;
	}
	qp->rx.ooo_count++;
	urn_kept_count(tp, qp->share, 1);
	URN_COUNT(tp, OOO_KEPT);
	return true;
}

void
urn_resp_drop_kept(struct urn_tp *tp, struct urn_qp *qp)
{
	urn_trace_end(tp, qp);
	while (qp->rx.ooo) {
		qp->rx.ooo_count--;
		urn_kept_count(tp, qp->share, -1);
		urn_tp_drop(tp, urn_ring_pop(&qp->rx.ooo), URN_C_DROP_FLUSHED);
	}
}

bool
urn_resp_must_answer(struct urn_qp *qp, struct rte_mbuf *m)
{
	const struct urn_pkt *p = urn_pkt(m);
	struct urn_pkt *last = qp->rx_head ? urn_pkt(qp->rx_tail) : NULL;

	if (urn_psn_diff(p->psn, qp->rx.epsn) >= 0)
		return false;
	if ((p->op->flags & (URN_OPF_READ | URN_OPF_ATOMIC)) || !last)
		return true;
	/* An acknowledgement is needed: the one for a packet that waits in front says as much. */
	if (last->action == URN_ACT_REQUEST)
		last->ackreq = true;
	return last->action != URN_ACT_REQUEST && last->action != URN_ACT_DUP;
}

void
urn_resp_missed(struct urn_tp *tp, struct urn_qp *qp, uint32_t psn)
{
	if (urn_ack_missed(&qp->rx, psn, URN_TP_OOO_QP))
		urn_tp_sched(tp, qp);
}

/* ---- repeated responses */

__attribute__((cold)) bool
urn_comp_is_copy(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	enum urn_trace_verdict v = urn_trace_compare(tp, qp, URN_TRACE_RESP, m);

	if (likely(v == URN_TRACE_SAME))
		return true;
	URN_COUNT(tp, CONTRADICTS);
	if (!(urn_pkt(m)->op->flags & URN_OPF_ATOMIC) || v != URN_TRACE_PAYLOAD)
		return true;
	urn_pkt_begin(urn_pkt(m));
	urn_tp_hold(tp, m, qp, URN_ACT_MADE_UP);
	return false;
}
