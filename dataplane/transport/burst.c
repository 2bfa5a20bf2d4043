/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The burst in hand: memory operations, and the packets and frames that wait for them. The burst is
 * executed when it is full or the turn ends. Packets that memory answered are finished in order;
 * the others wait in the lists of their QP.
 */
#include "transport/act.h"
#include "transport/frame.h"
#include "transport/mcast.h"
#include "transport/pool.h"
#include "transport/ring.h"
#include "transport/sched.h"
#include "transport/service.h"
#include "transport/unsealed.h"

#include "stage.h"

/* ---- frames to send */

URN_FAST struct urn_txd *
urn_tp_frame(struct urn_tp *tp, const struct urn_tmpl *tmpl, uint8_t opcode, uint32_t payload,
	     uint32_t dqpn, uint32_t psn, uint8_t bth_flags, bool ackreq, uint8_t **bth)
{
	return urn_tp_frame_inline(tp, tmpl, opcode, payload, dqpn, psn, bth_flags, ackreq, bth);
}

static void
emit(struct urn_tp *tp, const struct urn_txd *d)
{
	struct rte_mbuf *m = d->m;

	if (unlikely(d->loop == URN_LOOP_OWN)) { /* nobody checks its ICRC */
		URN_COUNT(tp, LOOPBACK);
		tp->loop[tp->loop_n++] = m;
		return;
	}
	if (!d->sealed)
		urn_tp_seal(tp, m, d->ipv6);
	if (unlikely(d->loop))
		urn_mcast_sent(tp, d);
	tp->tx[tp->tx_n++] = m;
}

/* ---- memory */

enum urn_mem_error
urn_tp_sge_ops(struct urn_tp *tp, struct rte_mbuf *m, struct urn_txd *d,
	       const struct urn_abi_sge *sge, uint32_t num_sge, uint32_t off, uint8_t *frame,
	       uint32_t len, uint32_t pd)
{
	unsigned int before = tp->ops_n;
	enum urn_mem_error e = URN_MEM_OK;

	for (uint32_t i = 0; i < num_sge && len; i++) {
		if (off >= sge[i].length) {
			off -= sge[i].length;
			continue;
		}

		uint32_t n = sge[i].length - off < len ? sge[i].length - off : len;
		uint64_t addr = sge[i].addr + off;
		struct urn_region *region;

		e = urn_mem_check(tp->cfg.mem, sge[i].lkey, pd, 0, addr, n,
				  d ? 0 : URN_ACCESS_LOCAL_WRITE, 0, &region);
		if (unlikely(e != URN_MEM_OK))
			break;
		if (d)
			urn_tp_gather(tp, d, region, addr, frame, n);
		else
			urn_tp_op(tp, m, URN_MEMOP_PLACE, region, addr, frame, n);
		frame += n;
		len -= n;
		off = 0;
	}
	if (unlikely(len && e == URN_MEM_OK))
		e = URN_MEM_RANGE;
	if (unlikely(e != URN_MEM_OK)) {
		tp->ops_n = before;
		if (!d)
			urn_pkt(m)->mem_left = 0;
	}
	return e;
}

/* The memory of a frame could not be read: the work that the frame belongs to fails. */
static void
tx_failed(struct urn_tp *tp, const struct urn_txd *d)
{
	rte_pktmbuf_free(d->m);
	urn_qp_service(tp, d->qp)->unreadable(tp, d);
}

/*
 * True when this frame must not go out any more: a response behind one that failed; a request when
 * its QP, or send queue, is in error and its work flushed, or when work at the cursor has failed
 * and the frame belongs to that work or is behind it.
 */
static bool
is_void(const struct urn_tp *tp, const struct urn_txd *d)
{
	const struct urn_qp *qp = d->qp;

	if (d->action == URN_ACT_TX_RESPONSE)
		return !urn_qp_service(tp, qp)->valid(d);
	if (unlikely(qp->state >= URN_QPS_SQE))
		return true;
	return qp->tx.cur.work && unlikely(qp->tx.cur.work->state == URN_WORK_FAILED) &&
	       urn_qp_service(tp, qp)->in_order &&
	       urn_psn_diff(d->psn, qp->tx.cur.work->first_psn) >= 0;
}

static URN_FAST void
finish_tx(struct urn_tp *tp, const struct urn_txd *d)
{
	if (unlikely((d->qp->flags & URN_QPF_DYING) || is_void(tp, d))) {
		rte_pktmbuf_free(d->m);
	} else if (unlikely(d->mem_status != URN_MEMOP_DONE)) {
		tx_failed(tp, d);
	} else {
		emit(tp, d);
		if (d->action == URN_ACT_TX_DATAGRAM)
			urn_qp_service(tp, d->qp)->sent(tp, d->qp);
	}
}

static void
finish_rx(struct urn_tp *tp, struct rte_mbuf *m)
{
	struct urn_pkt *p = urn_pkt(m);
	struct urn_qp *qp = p->qp;

	if (unlikely(qp->flags & URN_QPF_DYING))
		urn_tp_drop(tp, m, URN_C_DROP_FLUSHED);
	else
		urn_qp_service(tp, qp)->finish(tp, qp, m);
}

static void
append(struct rte_mbuf **head, struct rte_mbuf **tail, struct rte_mbuf *m)
{
	urn_pkt(m)->next = NULL;
	if (*head)
		urn_pkt(*tail)->next = m;
	else
		*head = m;
	*tail = m;
}

/* Let a frame wait for memory, or behind one that does: its packet keeps the descriptor. */
static void
park(const struct urn_txd *d)
{
	struct urn_pkt *p = urn_pkt(d->m);
	struct urn_qp *qp = d->qp;

	p->qp = qp;
	p->psn = d->psn;
	p->mem_left = (uint8_t)d->mem_left;
	p->mem_status = d->mem_status;
	p->ipv6 = d->ipv6;
	p->tx.loop = d->loop;
	p->action = d->action;
	p->tx.syndrome = d->syndrome;
	p->tx.sealed = d->sealed;
	urn_ring_append(&qp->tx_last, d->m);
	qp->tx_waiting++;
}

static struct urn_txd
unpark(struct urn_qp *qp)
{
	struct rte_mbuf *m = urn_ring_pop(&qp->tx_last);
	const struct urn_pkt *p = urn_pkt(m);

	qp->tx_waiting--;
	return (struct urn_txd){
		.m = m,
		.qp = qp,
		.psn = p->psn,
		.mem_status = p->mem_status,
		.ipv6 = p->ipv6,
		.loop = p->tx.loop,
		.action = p->action,
		.syndrome = p->tx.syndrome,
		.sealed = p->tx.sealed,
	};
}

/* Every operation was done: no packet needs to know how many it asked for. */
static void
finish_all(struct urn_tp *tp)
{
	URN_STAGE(COMPLETE);
	for (unsigned int i = 0; i < tp->burst_n; i++) {
		struct urn_pkt *p = urn_pkt(tp->burst[i]);

		p->mem_left = 0;
		if (likely(!p->qp->rx_head))
			finish_rx(tp, tp->burst[i]);
		else
			append(&p->qp->rx_head, &p->qp->rx_tail, tp->burst[i]);
	}
	URN_STAGE(EMIT);
	for (unsigned int i = 0; i < tp->txd_n; i++) {
		struct urn_txd *d = &tp->txd[i];

		d->mem_left = 0;
		if (likely(!d->qp->tx_last))
			finish_tx(tp, d);
		else
			park(d);
	}
}

static inline void
answer(const struct urn_memop *op)
{
	struct urn_pkt *p = urn_pkt(op->m);

	p->mem_left--;
	if (unlikely(op->status != URN_MEMOP_DONE))
		p->mem_status = URN_MEMOP_FAILED;
}

static inline void
answer_txd(struct urn_txd *d, const struct urn_memop *op)
{
	d->mem_left--;
	if (unlikely(op->status != URN_MEMOP_DONE))
		d->mem_status = URN_MEMOP_FAILED;
}

/* Some operations failed, or will be answered later. */
static __attribute__((noinline)) void
finish_some(struct urn_tp *tp)
{
	for (unsigned int i = 0; i < tp->ops_n; i++) {
		struct urn_memop *op = &tp->ops[i];

		if (op->status == URN_MEMOP_PENDING)
			continue;
		if (op->tag)
			answer_txd(&tp->txd[op->tag - 1], op);
		else
			answer(op);
	}
	for (unsigned int i = 0; i < tp->burst_n; i++) {
		struct urn_pkt *p = urn_pkt(tp->burst[i]);

		if (!p->mem_left && !p->qp->rx_head)
			finish_rx(tp, tp->burst[i]);
		else
			append(&p->qp->rx_head, &p->qp->rx_tail, tp->burst[i]);
	}
	for (unsigned int i = 0; i < tp->txd_n; i++) {
		const struct urn_txd *d = &tp->txd[i];

		if (!d->mem_left && !d->qp->tx_last)
			finish_tx(tp, d);
		else
			park(d);
	}
}

URN_FAST void
urn_tp_execute(struct urn_tp *tp)
{
	URN_STAGE_IN(MEMORY);
	/* Finishing asks for no memory operation, holds no packet and makes no frame. */
	if (likely(!tp->ops_n || urn_memx_execute(tp->cfg.memx, tp->ops, tp->ops_n) == 0))
		finish_all(tp);
	else
		finish_some(tp);
	tp->ops_n = 0;
	tp->ops_bytes = 0;
	tp->burst_n = 0;
	tp->txd_n = 0;
	urn_flow_emit_last(tp);
	if (tp->done_n)
		urn_tp_give_back(tp);
	URN_STAGE_OUT();
}

/* True when a frame that waited may be finished now: its place is free, or it needs none, because
 * its QP ends. Frames of the burst in hand have their places reserved already. */
static bool
has_place(const struct urn_tp *tp, const struct urn_qp *qp)
{
	return (qp->flags & URN_QPF_DYING) ||
	       (tp->tx_n + tp->txd_n < URN_TP_TX && tp->loop_n + tp->txd_n < URN_TP_LOOP);
}

void
urn_tp_drain_tx(struct urn_tp *tp, struct urn_qp *qp)
{
	struct rte_mbuf *m;

	while ((m = urn_ring_first(qp->tx_last)) && !urn_pkt(m)->mem_left && has_place(tp, qp)) {
		struct urn_txd d = unpark(qp);

		finish_tx(tp, &d);
	}
}

/* Finish the packets and frames that a memory answer has set free, in order. */
static void
drain_waiting(struct urn_tp *tp, struct urn_qp *qp)
{
	struct rte_mbuf *m;

	while ((m = qp->rx_head) && !urn_pkt(m)->mem_left) {
		qp->rx_head = urn_pkt(m)->next;
		finish_rx(tp, m);
	}
	urn_tp_drain_tx(tp, qp);
	urn_tp_sched(tp, qp);
}

/* An operation failed. The client may have given this process up: then its QP ends in silence. */
static __attribute__((cold, noinline)) void
look_for_left(struct urn_tp *tp, struct urn_qp *qp)
{
	if (tp->cfg.has_left && tp->cfg.has_left(tp->cfg.give_ctx, qp->share))
		(void)urn_qp_left(tp, qp);
}

unsigned int
urn_tp_poll_memory(struct urn_tp *tp)
{
	struct urn_memop ops[URN_TP_BURST];
	unsigned int n = urn_memx_poll(tp->cfg.memx, ops, URN_TP_BURST);

	for (unsigned int i = 0; i < n; i++) {
		answer(&ops[i]);
		if (unlikely(ops[i].status != URN_MEMOP_DONE))
			look_for_left(tp, urn_pkt(ops[i].m)->qp);
		drain_waiting(tp, urn_pkt(ops[i].m)->qp);
	}
	return n;
}
