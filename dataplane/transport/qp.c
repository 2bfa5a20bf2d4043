/* SPDX-License-Identifier: BSD-3-Clause */
/* Making, stopping, flushing and freeing queue pairs. */
#include "transport/ack.h"
#include "transport/complete.h"
#include "transport/frame.h"
#include "transport/mcast.h"
#include "transport/pool.h"
#include "transport/qp_end.h"
#include "transport/sched.h"
#include "transport/service.h"

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
	qp->pd = (uint16_t)cfg->pd;
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
	urn_failure_forget(tp, qp->share, qp->qpn);
	*out = qp;
	return 0;
}

static void
stop_service(struct urn_tp *tp, struct urn_qp *qp, bool gone)
{
	const struct urn_service *s = urn_qp_service(tp, qp);

	if (s->stop)
		s->stop(tp, qp, gone);
}

enum { UNBIND_STEP = 128 }; /* windows that one call unbinds: the engine has other QPs to serve */

/* Let go of all that the QP has of the transport; it sends nothing and takes nothing any more. */
static void
halt(struct urn_tp *tp, struct urn_qp *qp)
{
	urn_sched_remove(&tp->sched, &qp->source);
	if (qp->flags & URN_QPF_NEIGH)
		urn_qp_leave_neigh(tp, qp);
	stop_service(tp, qp, true);
	qp->flags |= URN_QPF_DYING;
	/* Frames that memory has answered for, and that wait for room, have no turn any more. */
	urn_tp_drain_tx(tp, qp);
	if (qp->flags & URN_QPF_MCAST)
		urn_mcast_rest(qp);
	urn_wheel_stop(&tp->wheel, &qp->tx.timer);
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
urn_qp_stop(struct urn_tp *tp, struct urn_qp *qp)
{
	urn_mem_unbind_some(tp->cfg.mem, &qp->windows, UNBIND_STEP);
	if (!(qp->flags & URN_QPF_DYING))
		halt(tp, qp);
}

bool
urn_qp_left(struct urn_tp *tp, struct urn_qp *qp)
{
	if (qp->flags & URN_QPF_DYING)
		return false;
	URN_COUNT(tp, LEFT_QPS);
	/* The peer would take an answer for one of the client's. */
	urn_ack_void(&qp->rx);
	halt(tp, qp);
	/* A call of the client that waits to be carried out must not bring the QP up. */
	qp->state = URN_QPS_ERR;
	return true;
}

void
urn_qp_lost(struct urn_tp *tp, struct urn_qp *qp)
{
	/* In error, too, the QP would answer earlier requests. */
	urn_ack_void(&qp->rx);
	if (qp->state == URN_QPS_ERR || qp->state == URN_QPS_RESET || (qp->flags & URN_QPF_DYING))
		return;
	urn_failure_quiet(tp, qp, URN_FAILURE_LOST, qp->rx.epsn, 0);
	urn_qp_event(tp, qp, URN_EVENT_QP_FATAL);
	urn_qp_error(tp, qp);
}

bool
urn_qp_quiet(const struct urn_qp *qp)
{
	return !qp->rx_head && !qp->tx_last;
}

bool
urn_qp_silent(const struct urn_tp *tp, const struct urn_qp *qp)
{
	const struct urn_service *s = urn_qp_service(tp, qp);

	if (!urn_qp_quiet(qp))
		return false;
	return qp->state == URN_QPS_RESET || (qp->flags & URN_QPF_DYING) ||
	       (qp->state == URN_QPS_ERR && !(s->owes && s->owes(qp)));
}

bool
urn_qp_stopped(const struct urn_qp *qp)
{
	return urn_qp_quiet(qp) && !qp->windows;
}

bool
urn_qp_offered(const struct urn_tp *tp, uint32_t type)
{
	return type < URN_TP_SERVICES && tp->service[type] && tp->service[type]->offered;
}

void
urn_qp_destroy(struct urn_tp *tp, struct urn_qp *qp)
{
	uint32_t slot = qp->qpn & ((1u << URN_TP_ENGINE_SHIFT) - 1);

	tp->qp[slot / URN_TP_QP_CHUNK][slot % URN_TP_QP_CHUNK] = NULL;
	tp->qp_count--;
	urn_failure_drop(tp, qp->qpn);
	if (qp->flags & URN_QPF_MCAST)
		urn_mcast_detach_all(tp, qp);
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
	if (qp->state == URN_QPS_SQE)
		urn_failure_leave_sqe(tp, qp->share, qp->qpn);
	qp->state = URN_QPS_ERR;
	if (qp->flags & URN_QPF_MCAST)
		urn_mcast_rest(qp);
	qp->flags &= ~(uint32_t)URN_QPF_NO_MAC;
	qp->tx.flags &= (uint16_t)~(URN_TXF_RNR_WAIT | URN_TXF_WENT_BACK);
	urn_wheel_stop(&tp->wheel, &qp->tx.timer);
	stop_service(tp, qp, false);
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
	urn_failure_quiet(tp, qp, URN_FAILURE_CQ, qp->tx.next, 0);
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

/* Flush the receive whose message is under way. returns: how many were flushed */
static unsigned int
flush_in_hand(struct urn_tp *tp, struct urn_qp *qp)
{
	bool bad = qp->flags & URN_QPF_RECV_BAD;

	if (!qp->recv)
		return 0;
	urn_qp_recv_done(tp, qp, qp->recv->wr_id, bad ? URN_WC_LOC_PROT_ERR : URN_WC_WR_FLUSH_ERR,
			 bad ? URN_VE_MEMORY : 0, 0, URN_WCO_RECV, 0, 0, 0, false);
	urn_recv_put(tp, qp, qp->recv);
	qp->recv = NULL;
	return 1;
}

bool
urn_qp_fence(struct urn_tp *tp, struct urn_qp *qp)
{
	if (qp->rx_head)
		return false;
	(void)flush_in_hand(tp, qp);
	return true;
}

static unsigned int
flush_receives(struct urn_tp *tp, struct urn_qp *qp, unsigned int budget)
{
	unsigned int n = flush_in_hand(tp, qp);

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
	if (qp->tx.head &&
	    (qp->tx.head->state != URN_WORK_QUEUED || qp->tx.head->piece == URN_PIECE_HEAD))
		return; /* a head's request was begun with its bulk */
	qp->flags &= ~(uint32_t)URN_QPF_DRAINING;
	if (qp->en_sqd_notify)
		urn_qp_event(tp, qp, URN_EVENT_SQ_DRAINED);
}
