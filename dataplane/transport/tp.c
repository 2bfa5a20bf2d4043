/* SPDX-License-Identifier: BSD-3-Clause */
/* Making a transport, its pools, the packet pipeline and the memory burst. */
#include "transport/internal.h"

#include <stdlib.h>

_Static_assert(sizeof(struct urn_pkt) <= URN_PKT_PRIV, "private area of an mbuf");

/* ---- pools */

static int
make_pools(struct urn_tp *tp)
{
	uint32_t n = tp->cfg.work, next = n / 4 + 64, nrecv = n / 4 + 64;
	struct urn_work *w = calloc(n, sizeof(*w));
	struct urn_work_ext *x = calloc(next, sizeof(*x));
	struct urn_recv *r = calloc(nrecv, sizeof(*r));

	tp->work_mem = w;
	tp->ext_mem = x;
	tp->recv_mem = r;
	if (!w || !x || !r)
		return -1;
	/* Pushed from the end, so that what is used first lies together. */
	for (uint32_t i = n; i-- > 0;) {
		w[i].next = tp->work_free;
		tp->work_free = &w[i];
	}
	for (uint32_t i = next; i-- > 0;) {
		x[i].next = tp->ext_free;
		tp->ext_free = &x[i];
	}
	for (uint32_t i = nrecv; i-- > 0;)
		urn_recv_put(tp, &r[i]);
	return 0;
}

struct urn_tp *
urn_tp_create(const struct urn_tp_config *cfg, uint64_t now)
{
	struct urn_tp *tp = aligned_alloc(64, (sizeof(*tp) + 63) & ~63ul);

	if (!tp)
		return NULL;
	memset(tp, 0, sizeof(*tp));
	tp->cfg = *cfg;
	tp->now = now;
	tp->quiet = true;
	for (unsigned int i = 0; i < cfg->gids; i++) {
		if (!urn_gid_is_v4(cfg->gid[i]))
			continue;
		memcpy(tp->ipv4, cfg->gid[i] + 12, 4);
		tp->has_ipv4 = true;
	}
	urn_wheel_init(&tp->wheel, now);
	tp->qp_chunks = (cfg->max_qp + 2 + URN_TP_QP_CHUNK - 1) / URN_TP_QP_CHUNK;
	tp->qp = calloc(tp->qp_chunks, sizeof(*tp->qp));
	if (!tp->qp || make_pools(tp) != 0) {
		urn_tp_destroy(tp);
		return NULL;
	}
	return tp;
}

static void
free_all(struct rte_mbuf **m, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		rte_pktmbuf_free(m[i]);
}

void
urn_tp_destroy(struct urn_tp *tp)
{
	if (!tp)
		return;
	free_all(tp->tx, tp->tx_n);
	free_all(tp->loop, tp->loop_n);
	free_all(tp->other, tp->other_n);
	free_all(tp->handover, tp->handover_n);
	free_all(tp->done, tp->done_n);
	if (tp->fresh_n)
		rte_mempool_put_bulk(tp->cfg.pool, (void **)tp->fresh, tp->fresh_n);
	for (uint32_t i = 0; tp->qp && i < tp->qp_chunks; i++)
		free(tp->qp[i]);
	free(tp->qp);
	free(tp->work_mem);
	free(tp->ext_mem);
	free(tp->recv_mem);
	free(tp);
}

bool
urn_tp_refill(struct urn_tp *tp)
{
	void **fresh = (void **)tp->fresh;

	if (likely(rte_mempool_get_bulk(tp->cfg.pool, fresh, URN_TP_BURST) == 0)) {
		tp->fresh_n = URN_TP_BURST;
		return true;
	}
	/* Fewer than a burst left: take what there is, one by one. */
	while (tp->fresh_n < URN_TP_BURST &&
	       rte_mempool_get(tp->cfg.pool, &fresh[tp->fresh_n]) == 0)
		tp->fresh_n++;
	if (tp->fresh_n)
		return true;
	URN_COUNT(tp, NO_MBUF);
	return false;
}

void
urn_tp_give_back(struct urn_tp *tp)
{
	rte_pktmbuf_free_bulk(tp->done, tp->done_n);
	tp->done_n = 0;
}

/* ---- frames to send */

/*
 * Take a buffer. What lies in a pool has one reference and one segment, so
 * only what we use is set: the second line of the mbuf stays untouched.
 */
static inline struct rte_mbuf *
take_buffer(struct urn_tp *tp)
{
	struct rte_mbuf *m;

	if (unlikely(tp->fresh_n == 0) && !urn_tp_refill(tp))
		return NULL;
	m = tp->fresh[--tp->fresh_n];
	if (likely(tp->fresh_n >= 3)) {
		struct rte_mbuf *soon = tp->fresh[tp->fresh_n - 3];

		rte_prefetch0(soon);
		rte_prefetch0((uint8_t *)soon->buf_addr + RTE_PKTMBUF_HEADROOM);
		rte_prefetch0((uint8_t *)soon->buf_addr + RTE_PKTMBUF_HEADROOM + 64);
	}
	m->data_off = RTE_PKTMBUF_HEADROOM;
	m->ol_flags = 0;
	m->port = RTE_MBUF_PORT_INVALID;
	m->packet_type = 0;
	return m;
}

struct urn_txd *
urn_tp_frame(struct urn_tp *tp, const struct urn_tmpl *tmpl, uint8_t opcode, uint32_t payload,
	     uint32_t dqpn, uint32_t psn, uint8_t bth_flags, bool ackreq, uint8_t **bth)
{
	struct rte_mbuf *m = take_buffer(tp);
	struct urn_txd *d = &tp->txd[tp->txd_n];

	if (unlikely(!m))
		return NULL;

	const struct urn_opcode *op = &urn_opcodes[opcode];
	uint32_t pad = -payload & 3, roce = op->hdr_len + payload + pad;
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *), *b = frame + tmpl->len;

	urn_build_headers(frame, tmpl, roce);
	urn_build_bth((struct urn_bth *)b, opcode, bth_flags, (uint8_t)pad, dqpn, psn, ackreq);
	if (pad)
		memset(b + op->hdr_len + payload, 0, pad);
	m->data_len = (uint16_t)(tmpl->len + roce);
	m->pkt_len = m->data_len;
	d->m = m;
	d->psn = psn;
	d->mem_left = 0;
	d->mem_status = URN_MEMOP_DONE;
	d->ipv6 = tmpl->ipv6;
	*bth = b;
	return d;
}

static void
emit(struct urn_tp *tp, const struct urn_txd *d)
{
	struct rte_mbuf *m = d->m;

	urn_build_icrc(rte_pktmbuf_mtod(m, uint8_t *), m->data_len, d->ipv6, tp->cfg.icrc);
	m->data_len = (uint16_t)(m->data_len + URN_ICRC_BYTES);
	m->pkt_len = m->data_len;
	if (unlikely(d->loop)) {
		URN_COUNT(tp, LOOPBACK);
		tp->loop[tp->loop_n++] = m;
		return;
	}
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

/* A frame's memory could not be read: the work it belongs to fails. */
static void
tx_failed(struct urn_tp *tp, const struct urn_txd *d)
{
	struct urn_qp *qp = d->qp;

	rte_pktmbuf_free(d->m);
	if (qp->type == URN_QPT_UD) {
		urn_ud_sent(tp, qp, false);
		return;
	}
	if (d->action == URN_ACT_TX_RESPONSE)
		urn_resp_cut(tp, qp, d->psn, URN_NAK_OP);
	else
		urn_req_unreadable(tp, qp, d->psn);
}

/*
 * Must this frame not go out any more? A response behind one that failed; a
 * request when the QP is in error and its work flushed, or when work at the
 * cursor has failed and the frame is of it or behind it.
 */
static bool
is_void(const struct urn_txd *d)
{
	const struct urn_qp *qp = d->qp;

	if (d->action == URN_ACT_TX_RESPONSE)
		return !urn_resp_valid(d);
	if (qp->type != URN_QPT_RC)
		return false;
	return unlikely(qp->state == URN_QPS_ERR) ||
	       (qp->w_cur && unlikely(qp->w_cur->state == URN_WORK_FAILED) &&
		urn_psn_diff(d->psn, qp->w_cur->first_psn) >= 0);
}

static void
finish_tx(struct urn_tp *tp, const struct urn_txd *d)
{
	if (unlikely((d->qp->flags & URN_QPF_DYING) || is_void(d))) {
		rte_pktmbuf_free(d->m);
	} else if (unlikely(d->mem_status != URN_MEMOP_DONE)) {
		tx_failed(tp, d);
	} else {
		emit(tp, d);
		if (d->qp->type == URN_QPT_UD)
			urn_ud_sent(tp, d->qp, true);
	}
}

static void
finish_rx(struct urn_tp *tp, struct rte_mbuf *m)
{
	struct urn_pkt *p = urn_pkt(m);
	struct urn_qp *qp = p->qp;

	if (unlikely(qp->flags & URN_QPF_DYING))
		urn_tp_drop(tp, m, URN_C_DROP_FLUSHED);
	else if (p->action <= URN_ACT_DUP_ATOMIC)
		urn_resp_finish(tp, qp, m);
	else if (p->action == URN_ACT_UD_RECV)
		urn_ud_finish(tp, qp, m);
	else
		urn_comp_finish(tp, qp, m);
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

/* A frame waits for memory, or behind one that does: now its packet remembers it. */
static void
park(const struct urn_txd *d)
{
	struct urn_pkt *p = urn_pkt(d->m);
	struct urn_qp *qp = d->qp;

	p->qp = qp;
	p->psn = d->psn;
	p->mem_left = d->mem_left;
	p->mem_status = d->mem_status;
	p->ipv6 = d->ipv6;
	p->loop = d->loop;
	p->action = d->action;
	p->arg = d->syndrome;
	append(&qp->tx_head, &qp->tx_tail, d->m);
	qp->tx_waiting++;
}

static struct urn_txd
unpark(struct urn_qp *qp)
{
	struct rte_mbuf *m = qp->tx_head;
	const struct urn_pkt *p = urn_pkt(m);

	qp->tx_head = p->next;
	qp->tx_waiting--;
	return (struct urn_txd){
		.m = m,
		.qp = qp,
		.psn = p->psn,
		.mem_status = p->mem_status,
		.ipv6 = p->ipv6,
		.loop = p->loop,
		.action = p->action,
		.syndrome = (uint8_t)p->arg,
	};
}

static void
settle_rx(struct urn_tp *tp, struct rte_mbuf *m)
{
	struct urn_qp *qp = urn_pkt(m)->qp;

	if (likely(!urn_pkt(m)->mem_left && !qp->rx_head))
		finish_rx(tp, m);
	else
		append(&qp->rx_head, &qp->rx_tail, m);
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

void
urn_tp_execute(struct urn_tp *tp)
{
	unsigned int nops = tp->ops_n;

	if (nops)
		urn_memx_execute(tp->cfg.memx, tp->ops, nops);
	for (unsigned int i = 0; i < nops; i++) {
		struct urn_memop *op = &tp->ops[i];

		if (unlikely(op->status == URN_MEMOP_PENDING))
			continue;
		if (op->tag)
			answer_txd(&tp->txd[op->tag - 1], op);
		else
			answer(op);
	}
	tp->ops_n = 0;
	tp->ops_bytes = 0;
	/* Finishing asks for no memory operation, holds no packet and makes no frame. */
	for (unsigned int i = 0; i < tp->burst_n; i++)
		settle_rx(tp, tp->burst[i]);
	tp->burst_n = 0;
	for (unsigned int i = 0; i < tp->txd_n; i++) {
		const struct urn_txd *d = &tp->txd[i];

		if (likely(!d->mem_left && !d->qp->tx_head))
			finish_tx(tp, d);
		else
			park(d);
	}
	tp->txd_n = 0;
	if (tp->done_n)
		urn_tp_give_back(tp);
}

static void
drain_tx(struct urn_tp *tp, struct urn_qp *qp)
{
	struct rte_mbuf *m;

	/* Frames of the burst in hand were promised their places already. */
	while ((m = qp->tx_head) && !urn_pkt(m)->mem_left && tp->tx_n + tp->txd_n < URN_TP_TX &&
	       tp->loop_n + tp->txd_n < URN_TP_LOOP) {
		struct urn_txd d = unpark(qp);

		finish_tx(tp, &d);
	}
}

/* Finish what a memory answer has set free, in order. */
static void
drain_waiting(struct urn_tp *tp, struct urn_qp *qp)
{
	struct rte_mbuf *m;

	while ((m = qp->rx_head) && !urn_pkt(m)->mem_left) {
		qp->rx_head = urn_pkt(m)->next;
		finish_rx(tp, m);
	}
	drain_tx(tp, qp);
	urn_tp_sched(tp, qp);
}

unsigned int
urn_tp_poll_memory(struct urn_tp *tp)
{
	struct urn_memop ops[URN_TP_BURST];
	unsigned int n = urn_memx_poll(tp->cfg.memx, ops, URN_TP_BURST);

	for (unsigned int i = 0; i < n; i++) {
		answer(&ops[i]);
		drain_waiting(tp, urn_pkt(ops[i].m)->qp);
	}
	return n;
}

/* ---- receive */

/* Is the frame meant for this adapter? */
static inline bool
addressed(const struct urn_tp *tp, struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	const uint8_t *l3 = frame + urn_pkt(m)->l3_off;

	if (unlikely(memcmp(frame, tp->cfg.mac, 6) != 0))
		return false;
	if (likely(!urn_pkt(m)->ipv6))
		return tp->has_ipv4 && memcmp(l3 + 16, tp->ipv4, 4) == 0;
	for (unsigned int i = 0; i < tp->cfg.gids; i++)
		if (tp->cfg.gid[i][0] && memcmp(l3 + 24, tp->cfg.gid[i], 16) == 0)
			return true;
	return false;
}

/* Does the frame come from the address the QP is connected to? */
static inline bool
from_peer(const struct urn_qp *qp, struct rte_mbuf *m)
{
	const struct urn_pkt *p = urn_pkt(m);
	const uint8_t *l3 = rte_pktmbuf_mtod_offset(m, const uint8_t *, p->l3_off);

	if (unlikely(p->ipv6 != qp->tmpl.ipv6))
		return false;
	return likely(!p->ipv6) ? memcmp(l3 + 12, qp->av.dgid + 12, 4) == 0
				: memcmp(l3 + 8, qp->av.dgid, 16) == 0;
}

static void
deliver_rc(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	const struct urn_opcode *op = urn_pkt(m)->op;

	if (unlikely(!(op->flags & URN_OPF_RC)))
		urn_tp_drop(tp, m, URN_C_DROP_QP_TYPE);
	else if (unlikely(!from_peer(qp, m)))
		urn_tp_drop(tp, m, URN_C_DROP_PEER);
	else if (op->flags & URN_OPF_REQUEST)
		urn_resp_accept(tp, qp, m);
	else if (likely(qp->state == URN_QPS_RTS || qp->state == URN_QPS_SQD))
		urn_comp_accept(tp, qp, m);
	else
		urn_tp_drop(tp, m, URN_C_DROP_QP_STATE);
}

static void
deliver(struct urn_tp *tp, struct rte_mbuf *m)
{
	struct urn_qp *qp = urn_tp_qp(tp, urn_pkt(m)->dqpn);

	if (unlikely(!qp)) {
		urn_tp_drop(tp, m, URN_C_DROP_NO_QP);
		return;
	}
	if (unlikely(qp->state < URN_QPS_RTR || qp->state == URN_QPS_ERR ||
		     (qp->flags & (URN_QPF_DYING | URN_QPF_REFUSED)))) {
		urn_tp_drop(tp, m, URN_C_DROP_QP_STATE);
		return;
	}
	if (qp->type == URN_QPT_RC)
		deliver_rc(tp, qp, m);
	else if (urn_pkt(m)->op->flags & URN_OPF_UD)
		urn_ud_accept(tp, qp, m);
	else
		urn_tp_drop(tp, m, URN_C_DROP_QP_TYPE);
	/* A packet and the kept ones behind it may ask for much memory. */
	if (tp->ops_bytes >= URN_TP_OPS_BYTES ||
	    unlikely(tp->ops_n + 2 * URN_ABI_MAX_SGE > URN_TP_OPS || tp->burst_n + 2 > URN_TP_TX))
		urn_tp_execute(tp);
}

static void
demultiplex(struct urn_tp *tp, struct rte_mbuf *m, bool checked)
{
	struct urn_pkt *p = urn_pkt(m);

	if (likely(!checked))
		URN_COUNT(tp, RX_ROCE);
	if (unlikely(!addressed(tp, m)))
		urn_tp_drop(tp, m, URN_C_DROP_ADDRESS);
	else if (unlikely(!checked && tp->cfg.icrc && !urn_wire_icrc_ok(m)))
		urn_tp_drop(tp, m, URN_C_DROP_ICRC);
	else if (unlikely(!urn_pkey_match(p->pkey, URN_PKEY_DEFAULT)))
		urn_tp_drop(tp, m, URN_C_DROP_PKEY);
	else if (unlikely(p->op->flags & URN_OPF_CNP))
		urn_tp_drop(tp, m, URN_C_CNP_RX);
	else if (likely(urn_qpn_engine(p->dqpn) == tp->cfg.engine))
		deliver(tp, m);
	else if (tp->handover_n < URN_TP_OUT)
		tp->handover[tp->handover_n++] = m;
	else
		urn_tp_drop(tp, m, URN_C_DROP_HANDOVER);
}

static void
receive_one(struct urn_tp *tp, struct rte_mbuf *m, bool checked)
{
	if (unlikely(m->nb_segs > 1) && rte_pktmbuf_linearize(m) != 0) {
		urn_tp_drop(tp, m, URN_C_DROP_LENGTH);
		return;
	}
	switch (urn_wire_parse(m)) {
	case URN_FRAME_ROCE:
		demultiplex(tp, m, checked);
		return;
	case URN_FRAME_ARP:
	case URN_FRAME_ICMP:
	case URN_FRAME_ICMP6:
		if (tp->other_n < URN_TP_OUT)
			tp->other[tp->other_n++] = m;
		else
			urn_tp_drop(tp, m, URN_C_DROP_NOT_ROCE);
		return;
	case URN_FRAME_OTHER:
	case URN_FRAME_BAD:
		urn_tp_drop(tp, m, urn_pkt(m)->drop);
		return;
	}
}

enum { AHEAD = 6 }; /* packets fetched into the cache before they are looked at */

static inline void
prefetch_packet(struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);

	rte_prefetch0(urn_pkt(m));
	rte_prefetch0(frame);
	rte_prefetch0(frame + 64);
}

void
urn_tp_rx(struct urn_tp *tp, struct rte_mbuf **m, unsigned int n, bool checked)
{
	uint64_t bytes = 0;

	/* Headers of mbufs, then private areas and frames, arrive while others are handled. */
	for (unsigned int i = 0; i < n; i++)
		rte_prefetch0(m[i]);
	for (unsigned int i = 0; i < n && i < AHEAD; i++)
		prefetch_packet(m[i]);
	for (unsigned int i = 0; i < n; i++) {
		if (i + AHEAD < n)
			prefetch_packet(m[i + AHEAD]);
		bytes += m[i]->pkt_len;
		receive_one(tp, m[i], checked);
	}
	/* Each counts once: not again when it is handed over, nor when it never was at a port. */
	if (!checked) {
		URN_COUNT_N(tp, RX_PACKETS, n);
		URN_COUNT_N(tp, RX_BYTES, bytes);
	}
	urn_tp_execute(tp);
}

/* ---- turns */

static void
neigh_unlink_all(struct urn_tp *tp)
{
	struct urn_qp *qp = tp->neigh_head, *next;

	tp->neigh_head = NULL;
	for (; qp; qp = next) {
		next = qp->sched_next;
		qp->flags &= ~(uint32_t)URN_QPF_NEIGH;
		urn_tp_sched(tp, qp);
	}
}

void
urn_tp_neigh_changed(struct urn_tp *tp)
{
	neigh_unlink_all(tp);
	tp->neigh_next = tp->now + 1000000;
}

static unsigned int
run_timers(struct urn_tp *tp)
{
	unsigned int n = 0;
	struct urn_timer *t;

	while (n < URN_TP_BURST && (t = urn_wheel_expire(&tp->wheel, tp->now))) {
		urn_req_timer(tp, (struct urn_qp *)((char *)t - offsetof(struct urn_qp, timer)));
		n++;
	}
	return n;
}

/*
 * Frames to ourselves that the last turn made; as many as can be handed over
 * if they are another engine's, with a burst of the port's besides.
 */
static unsigned int
run_loop(struct urn_tp *tp)
{
	struct rte_mbuf *m[URN_TP_BURST];
	unsigned int done = 0, n;

	while (tp->loop_n && tp->handover_n + 2 * URN_TP_BURST <= URN_TP_OUT) {
		n = tp->loop_n < URN_TP_BURST ? tp->loop_n : URN_TP_BURST;
		memcpy(m, tp->loop, n * sizeof(m[0]));
		tp->loop_n -= n;
		memmove(tp->loop, tp->loop + n, tp->loop_n * sizeof(m[0]));
		urn_tp_rx(tp, m, n, true);
		done += n;
	}
	return done;
}

unsigned int
urn_tp_turn(struct urn_tp *tp, uint64_t now)
{
	unsigned int n = 0;

	tp->now = now;
	tp->turn++;
	if (unlikely(urn_memx_holds(tp->cfg.memx, NULL)))
		n += urn_tp_poll_memory(tp);
	if (unlikely(urn_wheel_due(&tp->wheel, now)))
		n += run_timers(tp);
	if (unlikely(tp->loop_n))
		n += run_loop(tp);
	if (unlikely(tp->neigh_head && now >= tp->neigh_next))
		urn_tp_neigh_changed(tp);
	return n;
}

void
urn_tp_doorbell(struct urn_tp *tp, struct urn_qp *qp)
{
	if (likely(qp->state >= URN_QPS_RTS))
		urn_tp_sched(tp, qp);
}

/* One QP's share of a turn. returns: whether it has more to send */
static bool
serve(struct urn_tp *tp, struct urn_qp *qp)
{
	enum { SHARE = 16 };
	bool more;

	if (unlikely(qp->flags & URN_QPF_DYING))
		return false;
	if (unlikely(qp->tx_head)) { /* its frames go in order: wait for memory, or for room */
		drain_tx(tp, qp);
		if (qp->tx_head)
			return !urn_pkt(qp->tx_head)->mem_left;
	}
	if (unlikely(qp->state == URN_QPS_SQD))
		urn_qp_check_drained(tp, qp);
	if (qp->type == URN_QPT_UD)
		return qp->state == URN_QPS_ERR || qp->state == URN_QPS_SQE
			       ? urn_qp_flush(tp, qp, SHARE)
			       : urn_ud_tx(tp, qp, SHARE);
	if (unlikely(qp->state == URN_QPS_ERR)) {
		more = urn_resp_owes(qp) && urn_qp_reachable(tp, qp) && urn_resp_tx(tp, qp, SHARE);
		return urn_qp_flush(tp, qp, SHARE) || more;
	}
	if (unlikely(!urn_qp_reachable(tp, qp)))
		return false;
	more = urn_resp_owes(qp) && urn_resp_tx(tp, qp, SHARE);
	if (qp->state == URN_QPS_RTS || qp->state == URN_QPS_SQD)
		more |= urn_req_tx(tp, qp, SHARE);
	return more;
}

unsigned int
urn_tp_tx(struct urn_tp *tp)
{
	unsigned int before = tp->tx_n + tp->loop_n, n = 0;
	struct urn_qp *qp, *last = tp->sched_tail;

	/* Each QP that was in the schedule gets one share. */
	while ((qp = tp->sched_head)) {
		if (!urn_tp_tx_room(tp)) {
			urn_tp_execute(tp);
			if (!urn_tp_tx_room(tp))
				break;
		}
		tp->sched_head = qp->sched_next;
		if (!tp->sched_head)
			tp->sched_tail = NULL;
		else
			rte_prefetch0(&tp->sched_head->sq);
		qp->flags &= ~(uint32_t)URN_QPF_SCHED;
		if (serve(tp, qp))
			urn_tp_sched(tp, qp);
		if (qp == last)
			break;
	}
	urn_tp_execute(tp);
	n = tp->tx_n + tp->loop_n;
	return n > before ? n - before : 0;
}
