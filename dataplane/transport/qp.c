/* SPDX-License-Identifier: BSD-3-Clause */
/* Making, stopping, flushing and freeing queue pairs; waiting for addresses. */
#include "transport/complete.h"
#include "transport/pool.h"
#include "transport/qp_end.h"
#include "transport/requester.h"
#include "transport/responder.h"
#include "transport/sched.h"

#include <errno.h>
#include <stdlib.h>

/* ---- the table */

/* Take a free slot; slots are reused as late as possible, so that late packets find no QP. */
static int
take_slot(struct urn_tp *tp, const struct urn_qp_config *cfg, uint32_t *slot)
{
	uint32_t total = tp->qp_chunks * URN_TP_QP_CHUNK;

	for (uint32_t tries = 0; tries < total; tries++) {
		uint32_t s = tp->qp_next;

		tp->qp_next = s + 1 < total ? s + 1 : 0;
		/* QP0 and QP1 are not for programs (IBTA 3.9), the last number means multicast (IBTA 10.5.2.1). */
		if (s < 2 || (tp->cfg.engine << URN_TP_ENGINE_SHIFT | s) >= URN_QPN_MULTICAST)
			continue;

		uint32_t c = s / URN_TP_QP_CHUNK;

		if (!tp->qp[c]) {
			tp->qp[c] = calloc(URN_TP_QP_CHUNK, sizeof(*tp->qp[c]));
			if (!tp->qp[c])
				return ENOMEM;
		}
		if (tp->qp[c][s % URN_TP_QP_CHUNK] ||
		    (cfg->held && cfg->held(cfg->held_ctx, tp->cfg.engine << URN_TP_ENGINE_SHIFT | s)))
			continue;
		*slot = s;
		return 0;
	}
	return ENOSPC;
}

/*
 * QPs are made many at a time: one by one, each on its own cache lines, the heap would take 100
 * bytes more for each.
 */
enum { SLAB = 64 };

struct urn_qp_slab {
	struct urn_qp_slab *next;
	struct urn_qp qp[SLAB] __attribute__((aligned(64)));
};
_Static_assert(sizeof(struct urn_qp) % 64 == 0, "QPs begin on a line");

/* Memory for a QP, cleared. NULL: no memory */
static struct urn_qp *
get_qp(struct urn_tp *tp)
{
	struct urn_qp *qp = tp->qp_free;

	if (!qp) {
		struct urn_qp_slab *slab = aligned_alloc(64, sizeof(*slab));

		if (!slab)
			return NULL;
		slab->next = tp->qp_slabs;
		tp->qp_slabs = slab;
		for (unsigned int i = SLAB; i-- > 0;) {
			slab->qp[i].source.next = (struct urn_source *)tp->qp_free;
			tp->qp_free = &slab->qp[i];
		}
		qp = tp->qp_free;
	}
	tp->qp_free = urn_source_qp(qp->source.next);
	memset(qp, 0, sizeof(*qp));
	return qp;
}

static void
put_qp(struct urn_tp *tp, struct urn_qp *qp)
{
	qp->source.next = (struct urn_source *)tp->qp_free;
	tp->qp_free = qp;
}

void
urn_qp_free_all(struct urn_tp *tp)
{
	struct urn_qp_slab *slab;

	while ((slab = tp->qp_slabs)) {
		tp->qp_slabs = slab->next;
		free(slab);
	}
}

int
urn_qp_create(struct urn_tp *tp, const struct urn_qp_config *cfg, struct urn_qp **out)
{
	struct urn_qp *qp;
	uint32_t slot;
	int rc;

	if (cfg->type >= URN_TP_SERVICES || !tp->service[cfg->type])
		return EOPNOTSUPP;
	rc = tp->qp_count < tp->cfg.max_qp ? take_slot(tp, cfg, &slot) : ENOSPC;

	if (rc != 0)
		return rc;
	qp = get_qp(tp);
	if (!qp)
		return ENOMEM;
	qp->qpn = tp->cfg.engine << URN_TP_ENGINE_SHIFT | slot;
	qp->type = cfg->type;
	qp->state = URN_QPS_RESET;
	qp->flags = cfg->sig_all ? URN_QPF_SIG_ALL : 0;
	qp->pd = cfg->pd;
	qp->source.db = cfg->db;
	qp->cookie = cfg->cookie;
	qp->share = cfg->share ? cfg->share : &tp->nobodys;
	qp->send_cq = cfg->send_cq;
	qp->recv_cq = cfg->recv_cq;
	qp->srq = cfg->srq;
	qp->sq = cfg->sq;
	qp->rq = cfg->rq;
	qp->mtu = tp->cfg.mtu;
	qp->mtu_shift = (uint8_t)__builtin_ctz(tp->cfg.mtu);
	tp->qp[slot / URN_TP_QP_CHUNK][slot % URN_TP_QP_CHUNK] = qp;
	tp->qp_count++;
	*out = qp;
	return 0;
}

void
urn_qp_leave_neigh(struct urn_tp *tp, struct urn_qp *qp)
{
	urn_source_unlink(&tp->neigh_head, &tp->neigh_tail, &qp->source);
	qp->flags &= ~(uint32_t)URN_QPF_NEIGH;
	tp->neigh_n--;
}

enum { UNBIND_STEP = 128 }; /* windows that one call unbinds: the engine has other QPs to serve */

void
urn_qp_stop(struct urn_tp *tp, struct urn_qp *qp)
{
	urn_mem_unbind_some(tp->cfg.mem, &qp->windows, UNBIND_STEP);
	if (qp->flags & URN_QPF_DYING)
		return;
	urn_sched_remove(&tp->sched, &qp->source);
	if (qp->flags & URN_QPF_NEIGH)
		urn_qp_leave_neigh(tp, qp);
	urn_resp_last_ack(tp, qp);
	qp->flags |= URN_QPF_DYING;
	urn_wheel_stop(&tp->wheel, &qp->tx.timer);
	urn_resp_drop_kept(tp, qp);
	urn_repair_end(tp, qp);
	urn_peer_untime(tp, &qp->tx);
	if (qp->recv)
		urn_recv_put(tp, qp, qp->recv);
	qp->recv = NULL;
	while (qp->tx.head) {
		struct urn_work *w = qp->tx.head;

		qp->tx.head = w->next;
		urn_work_put(tp, qp, w);
	}
	qp->tx.tail = qp->tx.cur.work = qp->tx.fetch = NULL;
}

void
urn_qp_lost(struct urn_tp *tp, struct urn_qp *qp)
{
	/* In error, too, the QP would answer earlier requests. */
	qp->rx.flags &= ~(uint32_t)(URN_RXF_ACK | URN_RXF_NAK);
	if (qp->state == URN_QPS_ERR || qp->state == URN_QPS_RESET || (qp->flags & URN_QPF_DYING))
		return;
	urn_qp_event(tp, qp, URN_EVENT_QP_FATAL);
	urn_qp_error(tp, qp);
}

bool
urn_qp_quiet(const struct urn_qp *qp)
{
	return !qp->rx_head && !qp->tx_last;
}

bool
urn_qp_silent(const struct urn_qp *qp)
{
	if (!urn_qp_quiet(qp))
		return false;
	return qp->state == URN_QPS_RESET || (qp->flags & URN_QPF_DYING) ||
	       (qp->state == URN_QPS_ERR && !urn_resp_owes(qp));
}

bool
urn_qp_stopped(const struct urn_qp *qp)
{
	return urn_qp_quiet(qp) && !qp->windows;
}

void
urn_qp_destroy(struct urn_tp *tp, struct urn_qp *qp)
{
	uint32_t slot = qp->qpn & ((1u << URN_TP_ENGINE_SHIFT) - 1);

	tp->qp[slot / URN_TP_QP_CHUNK][slot % URN_TP_QP_CHUNK] = NULL;
	tp->qp_count--;
	free(qp->rec);
	urn_peer_put(&tp->peers, qp->tx.peer);
	put_qp(tp, qp);
}

/* ---- errors and flushing */

void
urn_qp_error(struct urn_tp *tp, struct urn_qp *qp)
{
	if (qp->state == URN_QPS_ERR)
		return;
	qp->state = URN_QPS_ERR;
	qp->flags &= ~(uint32_t)URN_QPF_NO_MAC;
	qp->tx.flags &= (uint16_t)~(URN_TXF_RNR_WAIT | URN_TXF_WENT_BACK);
	urn_wheel_stop(&tp->wheel, &qp->tx.timer);
	urn_resp_drop_kept(tp, qp);
	urn_repair_end(tp, qp);
	urn_peer_untime(tp, &qp->tx);
	if (!qp->srq && qp->rq.hdr) {
		urn_rq_want_ring(&qp->rq);
		/* The program may have posted a receive before it saw that: look again soon. */
		urn_wheel_start(&tp->wheel, &qp->tx.timer, tp->now + 1000000);
	}
	if (qp->flags & URN_QPF_NEIGH)
		urn_qp_leave_neigh(tp, qp);
	urn_tp_sched(tp, qp);
}

void
urn_qp_cq_broken(struct urn_tp *tp, struct urn_qp *qp)
{
	qp->flags &= ~(uint32_t)URN_QPF_CQ_BROKEN;
	if (qp->state == URN_QPS_RESET || qp->state == URN_QPS_ERR || (qp->flags & URN_QPF_DYING))
		return;
	urn_qp_event(tp, qp, URN_EVENT_QP_FATAL);
	urn_qp_error(tp, qp);
}

void
urn_qp_sqe(struct urn_tp *tp, struct urn_qp *qp)
{
	if (qp->state != URN_QPS_ERR)
		qp->state = URN_QPS_SQE;
	urn_tp_sched(tp, qp);
}

/* Flush requests that were posted and never fetched. returns: how many were flushed */
static unsigned int
flush_posted(struct urn_tp *tp, struct urn_qp *qp, unsigned int budget)
{
	unsigned int n = 0;

	while (n < budget && urn_sq_ready(&qp->sq)) {
		const struct urn_abi_swqe *slot = urn_sq_slot(&qp->sq);
		struct urn_abi_cqe cqe = {
			.wr_id = slot->wr_id,
			.qp_num = qp->qpn,
			.status = URN_WC_WR_FLUSH_ERR,
			.opcode = URN_WCO_SEND,
		};

		qp->sq.fetched++;
		qp->sq.retired++;
		(void)urn_tp_cqe(tp, qp->send_cq, &cqe, false, &qp->sq.hdr->cons, qp->sq.retired);
		n++;
	}
	return n;
}

static unsigned int
flush_receives(struct urn_tp *tp, struct urn_qp *qp, unsigned int budget)
{
	unsigned int n = 0;

	if (qp->recv) {
		bool bad = qp->flags & URN_QPF_RECV_BAD;

		urn_qp_recv_done(tp, qp, qp->recv->wr_id,
				 bad ? URN_WC_LOC_PROT_ERR : URN_WC_WR_FLUSH_ERR,
				 bad ? URN_VE_MEMORY : 0, 0, URN_WCO_RECV, 0, 0, 0, false);
		urn_recv_put(tp, qp, qp->recv);
		qp->recv = NULL;
		n++;
	}
	if (qp->srq) {
		if (!(qp->flags & URN_QPF_LAST_WQE))
			urn_qp_event(tp, qp, URN_EVENT_LAST_WQE);
		qp->flags |= URN_QPF_LAST_WQE;
		return n;
	}
	while (n < budget && urn_rq_ready(&qp->rq)) {
		struct urn_recv r;

		urn_rq_take(&qp->rq, &r, 0, &qp->rq);
		urn_qp_recv_done(tp, qp, r.wr_id, URN_WC_WR_FLUSH_ERR, 0, 0, URN_WCO_RECV, 0, 0, 0,
				 false);
		n++;
	}
	return n;
}

bool
urn_qp_flush(struct urn_tp *tp, struct urn_qp *qp, unsigned int budget)
{
	unsigned int n = 0;

	/* Memory operations under way end first: a flushed buffer belongs to the program again. */
	if (!urn_qp_quiet(qp))
		return false;
	qp->tx.cur.work = qp->tx.fetch = NULL;
	qp->tx.fetch_out = 0;
	while (n < budget && qp->tx.head) {
		urn_req_flush_one(tp, qp, URN_WC_WR_FLUSH_ERR);
		n++;
	}
	n += flush_posted(tp, qp, budget - n);
	if (qp->state == URN_QPS_ERR && n < budget)
		n += flush_receives(tp, qp, budget - n);
	return n >= budget;
}

void
urn_qp_check_drained(struct urn_tp *tp, struct urn_qp *qp)
{
	if (!(qp->flags & URN_QPF_DRAINING) || qp->tx_last)
		return;
	if (qp->tx.head && qp->tx.head->state != URN_WORK_QUEUED)
		return;
	qp->flags &= ~(uint32_t)URN_QPF_DRAINING;
	if (qp->en_sqd_notify)
		urn_qp_event(tp, qp, URN_EVENT_SQ_DRAINED);
}

/* ---- addresses */

void
urn_qp_wait_neigh(struct urn_tp *tp, struct urn_qp *qp)
{
	/* serve() has taken the QP off the schedule. */
	qp->flags |= URN_QPF_NEIGH;
	qp->source.next = NULL;
	qp->source.prev = tp->neigh_tail;
	if (tp->neigh_head)
		tp->neigh_tail->next = &qp->source;
	else
		tp->neigh_head = &qp->source;
	tp->neigh_tail = &qp->source;
	tp->neigh_n++;
	if (tp->neigh_next < tp->now)
		tp->neigh_next = tp->now + URN_TP_NEIGH_NS;
}

/* True when the QP has work to be sent, or work sent and not acknowledged. */
static bool
has_work(struct urn_qp *qp)
{
	return (qp->state == URN_QPS_RTS || qp->state == URN_QPS_SQD) &&
	       (qp->tx.head || (qp->state == URN_QPS_RTS && urn_sq_ready(&qp->sq)));
}

/*
 * The peer's MAC address is not known now. Work under way waits for the address as long as for a
 * peer that does not answer, by the QP's own timeout and retries. Work with nothing sent yet does
 * so from when nobody answered for the address (silent). So a silent neighbour cuts neither wait
 * short.
 */
static void
wait_for_mac(struct urn_tp *tp, struct urn_qp *qp, bool silent)
{
	urn_qp_wait_neigh(tp, qp);
	if ((qp->flags & URN_QPF_NO_MAC) || !has_work(qp) || (!silent && qp->tx.una == qp->tx.next))
		return;
	qp->flags |= URN_QPF_NO_MAC;
	if (qp->tx.una == qp->tx.next || !urn_timer_started(&qp->tx.timer))
		urn_req_arm(tp, qp);
}

/*
 * Nobody answers for the peer's address. Answers that the responder owes are dropped, because the
 * peer asks again; so a QP that has nothing else to send does not wait.
 */
static void
unreachable(struct urn_tp *tp, struct urn_qp *qp)
{
	if (urn_resp_owes(qp))
		URN_COUNT(tp, DROP_NO_NEIGH);
	qp->rx.flags &= ~(uint32_t)(URN_RXF_ACK | URN_RXF_NAK);
	for (uint32_t i = 0; qp->rec && i <= qp->rec_mask; i++)
		qp->rec[i].pending = 0;
	qp->rec_pending = 0;
	if (has_work(qp))
		wait_for_mac(tp, qp, true);
}

bool
urn_qp_reachable(struct urn_tp *tp, struct urn_qp *qp)
{
	uint8_t mac[6];
	int rc;

	if (likely((qp->flags & URN_QPF_MAC) && qp->mac_gen == tp->mac_gen) || !tp->cfg.neigh ||
	    (qp->flags & URN_QPF_LOOP))
		return true;
	rc = tp->cfg.neigh(tp->cfg.neigh_ctx, qp->av.dgid, mac);
	if (rc == 0) {
		if ((qp->tx.flags & URN_TXF_DOUBT) && memcmp(qp->tmpl.bytes, mac, 6) != 0)
			qp->tx.flags |= URN_TXF_MOVED;
		memcpy(qp->tmpl.bytes, mac, 6);
		qp->mac_gen = tp->mac_gen;
		qp->flags |= URN_QPF_MAC;
		qp->flags &= ~(uint32_t)URN_QPF_NO_MAC;
		return true;
	}
	qp->flags &= ~(uint32_t)URN_QPF_MAC;
	if (rc == -1)
		wait_for_mac(tp, qp, false);
	else
		unreachable(tp, qp);
	return false;
}
