/* SPDX-License-Identifier: BSD-3-Clause */
/* Completions of the adapters, given to the machine, and through it to the program. */
#include "verbs/session/cq.h"
#include "verbs/session/log.h"
#include "verbs/session/srq.h"

/* True when a failed completion tells of the path, and not of the request (FO-11). */
static bool
urn_sv_of_path(enum ibv_wc_status status)
{
	return status == IBV_WC_WR_FLUSH_ERR || status == IBV_WC_RETRY_EXC_ERR;
}

static void
urn_sv_take_recv_failed(struct urn_sv_qp *q, uint32_t index, const struct ibv_wc *wc)
{
	struct ibv_wc told = *wc;

	if (urn_sv_of_path(wc->status))
		return; /* the receive is found by the drain */
	told.wr_id = q->rwr[index & (q->rwrs - 1)].wr_id;
	told.qp_num = q->ibv.qp_num;
	q->recv_head = index + 1;
	urn_sv_push((struct urn_sv_cq *)q->ibv.recv_cq, &told, q, false, true);
	urn_sv_kill(q);
}

static void
urn_sv_take_recv(struct urn_sv_qp *q, struct urn_sv_path *p, const struct ibv_wc *wc)
{
	uint32_t index = (uint32_t)wc->wr_id;
	struct urn_sess_header h;

	/* A queue pair that was left: the drain has seen to its receives. */
	if (!q->c.open || p != urn_sv_used(q) || index != q->recv_head)
		return;
	if (wc->status != IBV_WC_SUCCESS) {
		urn_sv_take_recv_failed(q, index, wc);
		return;
	}
	if (!urn_sv_recv_header(q, index, &h) || !urn_sv_recv_fits(&h, wc)) {
		urn_sv_kill(q); /* the peer breaks the protocol */
		return;
	}
	/* Requests are complete with their own flush READs only: slots of the send queue are free
	 * no earlier. */
	h.acked = 0;
	if (urn_sess_received(&q->c, p->epoch, &h))
		urn_sv_recv_done(q, index, &h);
	else
		urn_sv_kill(q);
	urn_sv_after(q);
}

static void
urn_sv_take_send(struct urn_sv_qp *q, struct urn_sv_path *p, const struct ibv_wc *wc)
{
	uint64_t seq = wc->wr_id & ~URN_SV_ID_BITS;

	/* Behind a request that failed, nothing is of interest. */
	if (!q->c.open || p != urn_sv_used(q) || q->failing)
		return;
	if (wc->status == IBV_WC_SUCCESS) {
		if ((wc->wr_id & URN_SV_ID_FLUSH) && q->flushes != 0)
			q->flushes--;
		(void)urn_sess_done(&q->c, p->epoch, seq);
		urn_sv_after(q);
	} else if (urn_sv_of_path(wc->status) || (wc->wr_id & URN_SV_ID_FLUSH)) {
		if (urn_sv_flows(q) || q->c.state == URN_SESS_ANSWERED) {
			q->why = ibv_wc_status_str(wc->status);
			urn_sv_down(q, q->c.path);
		}
	} else {
		urn_sv_log(q, URN_SV_E_FAILED,
			   "has a request that failed, and ends: %s\tfailed request=%llu %s",
			   ibv_wc_status_str(wc->status), (unsigned long long)seq,
			   ibv_wc_status_str(wc->status));
		q->genuine = wc->status;
		q->notes.vendor_err = wc->vendor_err;
		q->failed_at = seq;
		q->failing = q->ctx->failing = true;
	}
}

/* The connection ends by its request that failed, once what came before is known. */
static void
urn_sv_fail_now(struct urn_sv_qp *q)
{
	const struct urn_sv_path *p = urn_sv_used(q);

	/* Receives that were delivered are complete, polled or not. */
	urn_sv_cq_drain((struct urn_sv_cq *)q->ibv.recv_cq, p->mine);
	if (!q->failing)
		return; /* the drain ended with another one that failed, and saw to this one */
	q->failing = false;
	urn_sess_failed(&q->c, p->epoch, q->failed_at);
	urn_sv_after(q);
}

void
urn_sv_take_end(struct urn_sv_ctx *ctx)
{
	struct urn_sv_qp *q;

	if (!ctx->failing)
		return;
	ctx->failing = false;
	LIST_FOREACH(q, &ctx->qps, link)
		if (q->mode == URN_SV_SESSION && q->failing)
			urn_sv_fail_now(q);
}

/* True when a completion is that of a receive of a shared queue, kept for sessions. */
static bool
urn_sv_of_shared(const struct urn_sv_qp *q, const struct ibv_wc *wc)
{
	if (q->srq == NULL || q->srq->kind != URN_SV_SRQ_SESSION)
		return false;
	/* One that is not connected, or not any more, gives its receives back. */
	return q->mode == URN_SV_SESSION ? (wc->wr_id & URN_SV_ID_RECV) != 0
					 : (wc->opcode & IBV_WC_RECV) != 0;
}

void
urn_sv_take(struct urn_sv_ctx *ctx, uint32_t adapter, const struct ibv_wc *wc)
{
	struct urn_sv_path *p = urn_sv_find(ctx, adapter, wc->qp_num);
	struct urn_sv_qp *q = p != NULL ? p->qp : NULL;
	bool recv;

	if (q == NULL)
		return; /* the queue pair is gone */
	if (urn_sv_of_shared(q, wc)) {
		urn_sv_srq_take(p, wc);
	} else if (q->mode == URN_SV_SESSION && (wc->wr_id & URN_SV_ID_RECV)) {
		urn_sv_take_recv(q, p, wc);
	} else if (q->mode == URN_SV_SESSION) {
		urn_sv_take_send(q, p, wc);
	} else if (p == &q->path[0]) {
		recv = (wc->opcode & IBV_WC_RECV) != 0;
		urn_sv_push((struct urn_sv_cq *)(recv ? q->ibv.recv_cq : q->ibv.send_cq), wc, NULL,
			    !recv, true);
	}
}
