/* SPDX-License-Identifier: BSD-3-Clause */
#include "node_check.h"

#include "transport/ack.h"
#include "transport/ring.h"
#include "transport/service.h"
#include "transport/uc_hold.h"

#include <inttypes.h>

/* ---- frames that reach a QP; the linker puts these in front (--wrap) */

void __real_urn_resp_accept(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);
void __wrap_urn_resp_accept(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);
void __real_urn_comp_accept(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);
void __wrap_urn_comp_accept(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m);

static struct node *current;

/* A datagram that is dropped for memory has that outcome already. */
static void
count_datagram(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	uint64_t dropped = tp->c.v[URN_C_DROP_MEMORY];

	urn_ud.accept(tp, qp, m);
	current->delivered += tp->c.v[URN_C_DROP_MEMORY] == dropped;
}

/* The same of UC; a stranger's packet has its outcome as well. */
static void
count_uc(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	uint64_t before = tp->c.v[URN_C_DROP_MEMORY] + tp->c.v[URN_C_DROP_PEER];

	urn_uc.accept(tp, qp, m);
	current->delivered += tp->c.v[URN_C_DROP_MEMORY] + tp->c.v[URN_C_DROP_PEER] == before;
}

/* A packet that waited, and finds its QP refused, was delivered and is dropped all the same. */
static bool
transmit_uc(struct urn_tp *tp, struct urn_qp *qp, unsigned int budget)
{
	uint64_t before = tp->c.v[URN_C_DROP_QP_STATE];
	bool more = urn_uc.transmit(tp, qp, budget);

	current->delivered -= tp->c.v[URN_C_DROP_QP_STATE] - before;
	return more;
}

static bool
flush_uc(struct urn_tp *tp, struct urn_qp *qp, unsigned int budget)
{
	uint64_t before = tp->c.v[URN_C_DROP_QP_STATE];
	bool more = urn_uc.flush(tp, qp, budget);

	current->delivered -= tp->c.v[URN_C_DROP_QP_STATE] - before;
	return more;
}

void
node_count_on(struct node *n)
{
	static struct urn_service counted, counted_uc;

	counted_uc = urn_uc;
	counted_uc.accept = count_uc;
	counted_uc.transmit = transmit_uc;
	counted_uc.flush = flush_uc;
	n->tp->service[URN_QPT_UC] = &counted_uc;
	counted = urn_ud;
	counted.accept = count_datagram;
	n->tp->service[URN_QPT_UD] = &counted;
	current = n;
}

void
__wrap_urn_resp_accept(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	current->delivered++;
	__real_urn_resp_accept(tp, qp, m);
}

void
__wrap_urn_comp_accept(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	current->delivered++;
	__real_urn_comp_accept(tp, qp, m);
}

/* ---- every frame has one outcome */

static uint64_t
sum(const struct node *n, const enum urn_counter *id, unsigned int count)
{
	uint64_t s = 0;

	for (unsigned int i = 0; i < count; i++)
		s += n->tp->c.v[id[i]];
	return s;
}

static void
check_counters(const struct node *n)
{
	static const enum urn_counter parse[] = {
		URN_C_DROP_SHORT,   URN_C_DROP_LENGTH,	 URN_C_DROP_IP_HEADER,
		URN_C_DROP_IP_CSUM, URN_C_DROP_FRAGMENT, URN_C_DROP_BTH_VERSION,
		URN_C_DROP_OPCODE,  URN_C_DROP_PAD,	 URN_C_DROP_NOT_ROCE,
		URN_C_DROP_VLAN,
	};
	static const enum urn_counter find_qp[] = {
		URN_C_DROP_ADDRESS,  URN_C_DROP_ICRC,	  URN_C_DROP_PKEY,	   URN_C_CNP_RX,
		URN_C_DROP_NO_QP,    URN_C_DROP_QP_STATE, URN_C_DROP_QP_TYPE,	   URN_C_DROP_PEER,
		URN_C_DROP_HANDOVER, URN_C_DROP_MEMORY,	  URN_C_FLOW_DROP_NO_USER,
	};
	const uint64_t *v = n->tp->c.v;
	uint64_t bad = sum(n, parse, sizeof(parse) / sizeof(parse[0]));
	uint64_t lost = sum(n, find_qp, sizeof(find_qp) / sizeof(find_qp[0]));

	fuzz_check(v[URN_C_RX_PACKETS] == n->frames_in - n->in_n);
	fuzz_check(v[URN_C_RX_PACKETS] == v[URN_C_RX_ROCE] + bad + n->others);
	fuzz_check(v[URN_C_RX_ROCE] + v[URN_C_LOOPBACK] - n->tp->loop_n ==
		   lost + n->mads + n->handovers + n->delivered);
	fuzz_check(v[URN_C_DROP_OTHER] == 0); /* a burst has room */
	fuzz_check(v[URN_C_CQ_OVERRUN] == 0);
}

void
node_trace_begin(const struct node *n, struct node_trace *t)
{
	t->c = n->tp->c;
	t->out = n->tp->other_n + n->tp->handover_n;
	for (unsigned int i = 0; i < NODE_QPS; i++)
		memcpy(&t->qp[i], n->q[i].qp, sizeof(t->qp[i]));
}

void
node_trace_end(const struct node *n, const struct node_trace *t, unsigned int frames)
{
	struct urn_counters c = n->tp->c;

	if (frames > 1)
		return;
	c.v[URN_C_RX_PACKETS] = t->c.v[URN_C_RX_PACKETS];
	c.v[URN_C_RX_BYTES] = t->c.v[URN_C_RX_BYTES];
	c.v[URN_C_RX_ROCE] = t->c.v[URN_C_RX_ROCE];
	if (memcmp(&c, &t->c, sizeof(c)) != 0 || t->out != n->tp->other_n + n->tp->handover_n)
		return;
	for (unsigned int i = 0; i < NODE_QPS; i++)
		/* The frame's answer may be the one that is pending already. */
		if (memcmp(&t->qp[i], n->q[i].qp, sizeof(t->qp[i])) != 0 ||
		    urn_ack_nak_is_owed(&t->qp[i].rx))
			return;
	fuzz_fail("a frame was taken and left no trace: opcode 0x%02x, PSN 0x%06x, QP 0x%06x",
		  urn_pkt(n->in[0])->opcode, urn_pkt(n->in[0])->psn, urn_pkt(n->in[0])->dqpn);
}

/* ---- completions */

static const struct urn_abi_cqe *
next_cqe(struct urn_cq *cq, uint32_t *seen)
{
	const struct urn_abi_cqe *c;

	if (*seen == cq->prod)
		return NULL;
	c = (const struct urn_abi_cqe *)((uint8_t *)cq->hdr + URN_ABI_CQ_SLOTS) + (*seen & cq->mask);
	++*seen;
	atomic_store(&cq->hdr->cons, *seen);
	return c;
}

/* Requests before `to` are done without a completion: none of them may have a pending one. */
static void
skip_quiet(struct node_qp *q, uint32_t to)
{
	for (; q->sent_seen != to; q->sent_seen++)
		if (!(q->quiet >> q->sent_seen % NODE_SLOTS & 1))
			fuzz_fail("request %u of QP 0x%06x has no completion", q->sent_seen, q->qp->qpn);
}

static void
sent_one(struct node *n, const struct urn_abi_cqe *c)
{
	struct node_qp *q = &n->q[c->wr_id >> 32];
	uint32_t number = (uint32_t)c->wr_id;

	fuzz_check(c->wr_id >> 32 < NODE_QPS && q->qp->qpn == c->qp_num);
	if (number - q->sent_seen >= q->sent - q->sent_seen)
		fuzz_fail("request %u of QP 0x%06x completes out of turn; %u is next, of %u", number,
			  c->qp_num, q->sent_seen, q->sent);
	skip_quiet(q, number);
	if (c->status == URN_WC_SUCCESS)
		fuzz_check(!(q->quiet >> number % NODE_SLOTS & 1));
	q->sent_seen = number + 1;
}

static void
received_one(struct node *n, const struct urn_abi_cqe *c)
{
	struct node_qp *q = NULL;

	for (unsigned int i = 0; i < NODE_QPS; i++)
		if (n->q[i].qp->qpn == c->qp_num)
			q = &n->q[i];
	fuzz_check(q);
	if (!q->qp->srq) {
		fuzz_check(c->wr_id >> 32 == (uint64_t)(q - n->q));
		fuzz_check((uint32_t)c->wr_id == q->recvs_seen && q->recvs_seen != q->recvs);
		q->recvs_seen++;
		return;
	}
	fuzz_check(c->wr_id < n->srq_posted && c->wr_id < n->srq.rq.cons);
	fuzz_check(!n->srq_got[c->wr_id]);
	n->srq_got[c->wr_id] = 1;
	n->srq_done++;
}

static void
poll_cqs(struct node *n)
{
	const struct urn_abi_cqe *c;

	while ((c = next_cqe(&n->scq, &n->scq_seen)))
		sent_one(n, c);
	while ((c = next_cqe(&n->rcq, &n->rcq_seen)))
		received_one(n, c);
}

void
node_forget(struct node *n, struct node_qp *q)
{
	node_deliver(n);
	poll_cqs(n);
	q->sent_seen = q->sent;
	q->recvs_seen = q->recvs;
	n->lost_recvs |= q->qp->srq != NULL;
}

static void
check_completions(struct node *n)
{
	poll_cqs(n);
	for (unsigned int i = 0; i < NODE_QPS; i++) {
		uint32_t cons = atomic_load(&n->q[i].sq->cons);

		if ((int32_t)(cons - n->q[i].sent_seen) > 0)
			skip_quiet(&n->q[i], cons);
	}
}

/* ---- accounts */

/* Count the packets of a ring, given by its last, each by PSN after `last`. */
static uint32_t
count_list(struct rte_mbuf *end, uint32_t last)
{
	struct rte_mbuf *m = end;
	uint32_t n = 0;

	if (!end)
		return 0;
	do {
		m = urn_pkt(m)->next;
		fuzz_check(urn_psn_diff(urn_pkt(m)->psn, last) > 0);
		last = urn_pkt(m)->psn;
		n++;
	} while (m != end);
	return n;
}

/* Packets of UC that wait for memory, in any order of PSNs; nobody waits for a QP in error. */
static uint32_t
held_of(const struct urn_tp *tp, const struct urn_qp *qp)
{
	bool told = tp->uc_dealt[urn_qpn_slot(qp->qpn)] != 0;
	uint32_t n = 0;

	for (struct rte_mbuf *m = urn_ring_first(qp->rx.ooo); m; m = urn_ring_next(qp->rx.ooo, m))
		n++;
	fuzz_check(n == qp->rx.ooo_count && n <= URN_UC_HELD);
	fuzz_check(tp->uc_full[urn_qpn_slot(qp->qpn)] == (n != 0));
	fuzz_check(told == (qp->state >= URN_QPS_RTR && qp->state != URN_QPS_ERR));
	fuzz_check(tp->nobodys.uc_n == told);
	return n;
}

static uint32_t
kept_of(const struct urn_tp *tp, const struct urn_qp *qp)
{
	if (qp->type == URN_QPT_UC)
		return held_of(tp, qp);

	const struct urn_repair *r = qp->tx.repair ? &tp->repair[qp->tx.repair] : NULL;
	uint32_t n = count_list(qp->rx.ooo, qp->rx.epsn), parts = 0;

	fuzz_check(n == qp->rx.ooo_count && n <= URN_TP_OOO_QP);
	if (!r)
		return n;
	fuzz_check(count_list(r->kept, urn_psn_add(r->resp.base, URN_PSN_MASK)) == r->kept_n);
	for (const struct rte_mbuf *m = r->parts; m; m = urn_pkt((struct rte_mbuf *)(uintptr_t)m)->next)
		parts++;
	fuzz_check(parts == r->parts_n && parts <= URN_REPAIR_PARTS);
	fuzz_check(r->kept_n <= URN_TP_OOO_READ);
	fuzz_check(!parts == !(qp->flags & URN_QPF_PARTS));
	return n + r->kept_n + parts;
}

/*
 * Gaps are in order, none is empty; the part dealt with lies within. No gap touches another
 * or the end, except where responses were missed: at a closed gate, or for contradicting
 * one that was kept (urn_board_missed()).
 */
static void
check_board(const struct urn_board *b, bool missed)
{
	uint32_t last = b->base;

	fuzz_check(b->n <= URN_BOARD_GAPS && urn_psn_diff(b->high, b->base) >= 0);
	for (uint32_t i = 0; i < b->n; i++) {
		const struct urn_gap *g = &b->gap[i];

		fuzz_check(urn_psn_diff(g->first, last) >= (i > 0 && !missed));
		fuzz_check(urn_psn_diff(g->end, g->first) > 0);
		fuzz_check(g->state < URN_GAP_STATES);
		fuzz_check(g->state != URN_GAP_LOST || (urn_psn_diff(g->cur, g->first) >= 0 &&
							urn_psn_diff(g->cur, g->end) < 0));
		last = g->end;
	}
	fuzz_check(b->n == 0 || urn_psn_diff(b->high, last) >= !missed);
}

/* The READs and atomics in flight, and the one among them whose response is expected. */
static void
check_fetches(const struct urn_qp *qp)
{
	const struct urn_work *waits = NULL;
	uint32_t out = 0;

	for (const struct urn_work *w = qp->tx.head; w; w = w->next) {
		if (w->state == URN_WORK_FAILED)
			return; /* the QP ends there */
		if (!urn_work_is_fetch(w) || w->state == URN_WORK_QUEUED)
			continue;
		fuzz_check(w->accepted <= w->npsn && w->placed <= w->accepted);
		out++;
		if (!waits && w->accepted < w->npsn)
			waits = w;
	}
	fuzz_check(out == qp->tx.fetch_out && out <= qp->tx.max_fetch);
	fuzz_check(waits == qp->tx.fetch);
}

/* The last tick at which a timer may run that checks for things due then. */
static uint64_t
due_tick(const struct urn_tp *tp, uint64_t due)
{
	uint64_t tick = due >> URN_WHEEL_TICK_SHIFT;

	return (tick > tp->wheel.now ? tick : tp->wheel.now) + 2;
}

/* True when a missing packet waits to be judged by time. None may wait to be sent again. */
static bool
check_gaps(const struct urn_board *b)
{
	for (uint32_t i = 0; i < b->n; i++)
		fuzz_check(b->gap[i].state != URN_GAP_LOST);
	return urn_board_open(b);
}

/*
 * A QP that waits for the peer is looked at again without the peer: the QP is due to be
 * served, or a timer runs, at the latest when the QP's own timeout is up.
 */
static void
check_alive(const struct urn_tp *tp, const struct urn_qp *qp)
{
	const struct urn_repair *r = qp->tx.repair ? &tp->repair[qp->tx.repair] : NULL;
	bool waits = qp->tx.timeout && qp->tx.una != qp->tx.next && qp->tx.head;
	uint64_t due = waits ? qp->tx.deadline : UINT64_MAX;

	if ((qp->flags & (URN_QPF_SCHED | URN_QPF_NEIGH)) || qp->tx_last || qp->rx_head)
		return;
	if (qp->tx.flags & URN_TXF_RNR_WAIT) {
		waits = true;
		due = qp->tx.deadline;
	} else if (r) {
		waits |= check_gaps(&r->req);
		waits |= check_gaps(&r->resp);
	}
	if (waits && (!urn_timer_started(&qp->tx.timer) || qp->tx.timer.tick > due_tick(tp, due)))
		fuzz_fail("QP 0x%06x sleeps %s, what is due is due at %" PRIu64 " ns", qp->qpn,
			  urn_timer_started(&qp->tx.timer) ? "too long" : "for ever", due);
}

static void
check_qp(const struct urn_tp *tp, const struct urn_qp *qp)
{
	uint32_t pending = 0;

	for (uint32_t i = 0; qp->rec && i <= qp->rec_mask; i++)
		pending += qp->rec[i].pending;
	fuzz_check(pending == qp->rec_pending);
	if (qp->tx.repair) {
		check_board(&tp->repair[qp->tx.repair].req, false);
		check_board(&tp->repair[qp->tx.repair].resp,
			    tp->c.v[URN_C_DROP_MEMORY] || tp->c.v[URN_C_CONTRADICTS]);
	}
	if (qp->type != URN_QPT_RC || (qp->state != URN_QPS_RTS && qp->state != URN_QPS_SQD))
		return;
	fuzz_check(urn_psn_diff(qp->tx.cur.psn, qp->tx.una) >= 0);
	fuzz_check(urn_psn_diff(qp->tx.next, qp->tx.cur.psn) >= 0);
	check_fetches(qp);
	check_alive(tp, qp);
}

void
node_check(struct node *n)
{
	uint32_t kept = 0;

	check_completions(n);
	check_counters(n);
	for (unsigned int i = 0; i < NODE_QPS; i++) {
		check_qp(n->tp, n->q[i].qp);
		kept += kept_of(n->tp, n->q[i].qp);
	}
	fuzz_check(kept == n->tp->kept && kept + n->tp->left.held == n->tp->cfg.kept);
	fuzz_check(kept == n->tp->nobodys.held && kept == n->tp->nobodys.own.held);
}

bool
node_at_rest(const struct node *n)
{
	if (urn_tp_busy(n->tp) || n->far_n || urn_memx_holds(n->memx, NULL))
		return false;
	for (unsigned int i = 0; i < NODE_QPS; i++) {
		const struct node_qp *q = &n->q[i];

		if (!urn_qp_quiet(q->qp) || q->qp->tx.head ||
		    atomic_load(&q->sq->cons) != atomic_load(&q->sq->prod) ||
		    (q->rq && atomic_load(&q->rq->cons) != atomic_load(&q->rq->prod)))
			return false;
	}
	return true;
}

void
node_check_end(struct node *n)
{
	uint32_t work = 0, ext = 0, recv = 0, repairs = 0, extra = n->tp->cfg.work / 4 + 64;

	for (unsigned int i = 0; i < NODE_QPS; i++) {
		fuzz_check(n->q[i].sent_seen == n->q[i].sent);
		fuzz_check(n->q[i].recvs_seen == n->q[i].recvs);
	}
	fuzz_check(n->lost_recvs ? n->srq_done <= n->srq.rq.cons : n->srq_done == n->srq.rq.cons);
	for (const struct urn_work *w = n->tp->work_free; w; w = w->next)
		work++;
	for (const struct urn_work_ext *x = n->tp->ext_free; x; x = x->next)
		ext++;
	for (const struct urn_recv *r = n->tp->recv_free; r; r = r->next)
		recv++;
	for (uint32_t i = n->tp->repairs.free; i != URN_HASH_NIL; i = n->tp->repair[i].next)
		repairs++;
	fuzz_check(repairs == n->tp->repairs.made - 1);
	fuzz_check(work == n->tp->made.work && ext == n->tp->made.ext && recv == n->tp->made.recv);
	fuzz_check(n->tp->left.work == n->tp->cfg.work && n->tp->left.ext == extra && n->tp->left.recv == extra);
	fuzz_check(!n->tp->nobodys.work && !n->tp->nobodys.ext && !n->tp->nobodys.recv);
}

/* ---- frames that the node sends */

static bool
is_full(uint8_t op)
{
	return op == SEND_FIRST || op == SEND_MIDDLE || op == WRITE_FIRST || op == WRITE_MIDDLE ||
	       op == READ_FIRST || op == READ_MIDDLE;
}

static bool
is_last(uint8_t op)
{
	return op == SEND_LAST || op == SEND_LAST_IMM || op == SEND_LAST_INV || op == WRITE_LAST ||
	       op == WRITE_LAST_IMM || op == READ_LAST;
}

/*
 * Check that a READ response is part of the request, and has the bytes at that place.
 * Where memory answers late, the record's place may have been reused meanwhile, and the
 * bytes may have changed.
 */
static const char *
judge_response(const struct node *n, const struct urn_qp *qp, const struct frame *f)
{
	bool late = n->cfg.late || n->cfg.failing || n->space;

	for (uint32_t i = 0; !late && qp->rec && i <= qp->rec_mask; i++) {
		const struct urn_rec *rec = &qp->rec[i];
		uint32_t at = ((f->psn - rec->first_psn) & URN_PSN_MASK) * qp->mtu;

		if (rec->kind != URN_REC_READ || (at && at >= rec->length))
			continue;
		if (f->len != RTE_MIN(rec->length - at, (uint32_t)qp->mtu))
			return "a READ response of the wrong length";
		return memcmp(f->data, node_at(n, rec->va + at), f->len) == 0
			       ? NULL
			       : "a READ response with other bytes";
	}
	return late ? NULL : "a response that nobody asked for";
}

static const char *
judge_uc(const struct urn_qp *qp, const struct frame *f)
{
	uint8_t op = f->op & ~UC;

	if (f->op < UC || f->op > (UC | WRITE_ONLY_IMM))
		return "opcode of a UC QP";
	return f->len > qp->mtu || (is_full(op) && f->len != qp->mtu) ||
			       (is_last(op) && f->len == 0)
		       ? "payload of the wrong length"
		       : NULL;
}

static const char *
judge(const struct node *n, const struct frame *f)
{
	const struct node_qp *q = &n->q[f->dqpn - NODE_PEER_QPN];

	if (f->pkey != 0xffff)
		return "P_Key";
	if (f->dqpn - NODE_PEER_QPN >= NODE_QPS)
		return "destination QP";
	if (q->qp->type == URN_QPT_UD)
		return f->op == UD_SEND || f->op == UD_SEND_IMM ? NULL : "opcode of a UD QP";
	if (q->qp->type == URN_QPT_UC)
		return judge_uc(q->qp, f);
	if ((f->op > SEND_ONLY_INV || f->op == 0x15) && f->op != SACK)
		return "opcode";
	if (f->op == SACK && n->cfg.plain)
		return "an opcode that is not offered";
	if (f->len > q->qp->mtu || (is_full(f->op) && f->len != q->qp->mtu) ||
	    (is_last(f->op) && f->len == 0))
		return "payload of the wrong length";
	if (f->op == ACK && (f->syn & 0x60) == 0 && f->syn != SYN_ACK)
		return "an ACK that gives credits";
	if (f->op >= READ_FIRST && f->op <= READ_ONLY)
		return judge_response(n, q->qp, f);
	return NULL;
}

void
node_judge(struct node *n, struct rte_mbuf *m)
{
	struct frame *f = &n->seen;
	const char *why = m->nb_segs != 1 || m->pkt_len != m->data_len || m->ol_flags || m->packet_type
				  ? "an mbuf of another packet"
				  : frame_read(rte_pktmbuf_mtod(m, const uint8_t *), m->data_len,
					       &n->self, &n->peer, f);

	if (!why)
		why = judge(n, f);
	if (why)
		fuzz_fail("sent a bad frame, opcode 0x%02x, PSN 0x%06x, %u bytes: %s", f->op, f->psn,
			  m->data_len, why);
}
