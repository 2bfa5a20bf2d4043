/* SPDX-License-Identifier: BSD-3-Clause */
/* Records of errors (failure.h). All of this is out of line: only errors come here. */
#include "transport/failure.h"

#include "transport/qp_end.h"
#include "transport/requester.h"
#include "transport/service.h"

#include <stdlib.h>
#include <string.h>

/* Find out what stands in the way to the peer. hop: set with URN_OBSTACLE_NO_MAC */
static uint8_t
obstacle(const struct urn_tp *tp, const struct urn_qp *qp, uint8_t hop[16])
{
	uint8_t port = URN_OBSTACLE_NONE;

	if (qp->flags & URN_QPF_LOOP)
		return port;
	if (tp->cfg.obstacle)
		port = tp->cfg.obstacle(tp->cfg.give_ctx);
	if (port != URN_OBSTACLE_NONE)
		return port;
	if (!(qp->flags & (URN_QPF_NO_MAC | URN_QPF_NEIGH)))
		return URN_OBSTACLE_NONE;
	memcpy(hop, qp->av.dgid, 16);
	if (tp->cfg.neigh_hop && !tp->cfg.neigh_hop(tp->cfg.neigh_ctx, qp->av.dgid, hop))
		return URN_OBSTACLE_NO_ROUTE;
	return URN_OBSTACLE_NO_MAC;
}

/* The record that is kept for a queue pair. returns: NULL: there is none */
static struct urn_failure *
kept_of(const struct urn_tp *tp, uint32_t qpn)
{
	return tp->failures ? tp->failures[urn_qpn_slot(qpn)] : NULL;
}

/* Memory for the record that is kept for a queue pair that is there. returns: NULL: no memory */
static struct urn_failure *
keep_for(struct urn_tp *tp, uint32_t qpn)
{
	struct urn_failure **f;

	if (!tp->failures)
		tp->failures =
			calloc((size_t)tp->qp_chunks * URN_TP_QP_CHUNK, sizeof(*tp->failures));
	if (!tp->failures)
		return NULL;
	f = &tp->failures[urn_qpn_slot(qpn)];
	if (!*f)
		*f = calloc(1, sizeof(**f));
	return *f;
}

/* Keep a record for its queue pair that is pushed out of the ring, unless the one that is kept says
 * why the queue pair ended, and this one does not. */
static void
push_out(struct urn_tp *tp, const struct urn_tp_share *share, const struct urn_failure *f)
{
	const struct urn_qp *qp = urn_tp_qp(tp, f->qpn);
	struct urn_failure *to;

	if (f->kind == URN_FAILURE_NONE || !qp || qp->share != share)
		return;
	to = keep_for(tp, f->qpn);
	if (to && (f->flushes != URN_FLUSHES_NONE || to->flushes == URN_FLUSHES_NONE))
		*to = *f;
}

/* The record of a datagram that failed a receive of the queue pair. NULL: there is none */
static struct urn_failure *
datagram_of(struct urn_failures *fs, uint32_t qpn)
{
	for (unsigned int i = 0; i < URN_FAILURES; i++) {
		struct urn_failure *f = &fs->ring[i];

		if (f->kind == URN_FAILURE_RECEIVE && f->qpn == qpn && !f->connected)
			return f;
	}
	return NULL;
}

/*
 * Take the oldest record of the queue pair's client, and fill in what all records have. Any host
 * can let receives of UD fail, as often as it likes: a queue pair has one record for that.
 */
static struct urn_failure *
begin(struct urn_tp *tp, const struct urn_qp *qp, enum urn_failure_kind kind)
{
	bool datagram = qp->type == URN_QPT_UD && kind == URN_FAILURE_RECEIVE;
	struct urn_failures *fs = &qp->share->failures;
	struct urn_failure *f = datagram ? datagram_of(fs, qp->qpn) : NULL;

	if (!f) {
		f = &fs->ring[fs->n % URN_FAILURES];
		push_out(tp, qp->share, f);
		__atomic_store_n(&fs->n, fs->n + 1, __ATOMIC_RELAXED);
	}
	*f = (struct urn_failure){
		.at = tp->now,
		.qpn = qp->qpn,
		.kind = kind & UINT8_MAX,
		.connected = qp->type != URN_QPT_UD && qp->state != URN_QPS_INIT,
		.obstacle = URN_OBSTACLE_NONE,
		/* In ERR, the first error is the reason of all that follows. */
		.flushes =
			datagram || qp->state == URN_QPS_ERR ? URN_FLUSHES_NONE : URN_FLUSHES_ALL,
	};
	if (f->connected) {
		f->dest_qpn = qp->dest_qpn;
		f->una = qp->tx.una;
		f->acked = qp->type == URN_QPT_RC && qp->tx.una != qp->sq_psn;
		memcpy(f->dgid, qp->av.dgid, sizeof(f->dgid));
	}
	return f;
}

/* Fill in how often the peer was asked, and for how long there was no progress. */
static void
add_tries(const struct urn_tp *tp, const struct urn_qp *qp, struct urn_failure *f)
{
	const struct urn_peer *peer = urn_qp_peer(tp, qp);
	bool rnr = f->status == URN_WC_RNR_RETRY_EXC_ERR;
	unsigned int spent = rnr ? (unsigned int)(qp->tx.rnr_retry - qp->tx.rnr_tries)
				 : (unsigned int)(qp->tx.retry_cnt - qp->tx.retries);

	f->tried = (uint8_t)(spent + 1);
	f->timeout = rnr ? 0 : qp->tx.timeout;
	f->obstacle = rnr ? URN_OBSTACLE_NONE : obstacle(tp, qp, f->hop);
	/* Queue pairs to the same adapter share `heard`, and the latest counts: this one has had no
	 * progress since, though the peer may have answered others. After a NAK nobody knows. */
	if (f->vendor_err == URN_VE_TIMEOUT && peer->heard && tp->now > peer->heard)
		f->stalled_ns = tp->now - peer->heard;
}

/* True when no packet of the oldest request was ever sent. */
static bool
never_sent(const struct urn_psn_tx *tx, const struct urn_work *w)
{
	int32_t ahead = urn_psn_diff(w->first_psn, tx->next);

	/* Packets of a head follow those of its bulk. */
	return urn_psn_tx_idle(tx) && (w->piece == URN_PIECE_HEAD ? ahead > 0 : ahead >= 0);
}

/* The syndrome of the NAK that gave a request this status; 0: no NAK did, or its value says nothing
 * about the reason. */
static uint8_t
syndrome_of(uint8_t status)
{
	switch (status) {
	case URN_WC_REM_INV_REQ_ERR:
		return URN_NAK_INV_REQ;
	case URN_WC_REM_ACCESS_ERR:
		return URN_NAK_ACCESS;
	case URN_WC_REM_OP_ERR:
		return URN_NAK_OP;
	default:
		return 0;
	}
}

/* Hand a record on that is whole. */
static void
tell(const struct urn_tp *tp, struct urn_tp_share *share, const struct urn_failure *f)
{
	if (tp->cfg.failed)
		tp->cfg.failed(tp->cfg.give_ctx, share, f);
}

void
urn_failure_request(struct urn_tp *tp, const struct urn_qp *qp, const struct urn_work *w,
		    uint8_t status, uint8_t vendor_err)
{
	struct urn_failure *f = begin(tp, qp, URN_FAILURE_REQUEST);

	f->psn = w->first_psn;
	f->local_work = w->npsn == 0;
	f->length = w->piece == URN_PIECE_HEAD ? w->whole : w->length;
	f->status = status;
	f->vendor_err = vendor_err;
	f->opcode = urn_wr_info[w->opcode & (URN_WR_INFOS - 1)].wc_opcode;
	f->syndrome = syndrome_of(status);
	if (f->flushes == URN_FLUSHES_ALL && urn_qp_service(tp, qp)->fail == urn_qp_sqe)
		f->flushes = URN_FLUSHES_SENDS;
	if (status == URN_WC_RETRY_EXC_ERR || status == URN_WC_RNR_RETRY_EXC_ERR)
		add_tries(tp, qp, f);
	f->unsent = vendor_err == URN_VE_TIMEOUT && never_sent(&qp->tx, w);
	if (vendor_err != URN_VE_SEQ)
		tell(tp, qp->share, f);
}

void
urn_failure_sequence(struct urn_tp *tp, struct urn_tp_share *share, uint32_t qpn, bool answers)
{
	for (unsigned int i = 0; i < URN_FAILURES; i++) {
		struct urn_failure *f = &share->failures.ring[i];

		if (f->qpn != qpn || f->kind != URN_FAILURE_REQUEST || f->vendor_err != URN_VE_SEQ)
			continue;
		f->answers_lost = answers;
		tell(tp, share, f);
	}
}

void
urn_failure_receive(struct urn_tp *tp, const struct urn_qp *qp, uint32_t psn, uint8_t status,
		    uint8_t vendor_err, uint8_t syndrome)
{
	struct urn_failure *f = begin(tp, qp, URN_FAILURE_RECEIVE);

	f->psn = psn;
	f->status = status;
	f->vendor_err = vendor_err;
	f->syndrome = syndrome;
	tell(tp, qp->share, f);
}

void
urn_failure_quiet(struct urn_tp *tp, const struct urn_qp *qp, enum urn_failure_kind kind,
		  uint32_t psn, uint8_t syndrome)
{
	struct urn_failure *f;

	if (qp->state == URN_QPS_ERR)
		return; /* the first error is the reason of all that follows */
	f = begin(tp, qp, kind);
	f->psn = psn;
	f->syndrome = syndrome;
	tell(tp, qp->share, f);
}

void
urn_failure_drop(struct urn_tp *tp, uint32_t qpn)
{
	if (!tp->failures)
		return;
	free(tp->failures[urn_qpn_slot(qpn)]);
	tp->failures[urn_qpn_slot(qpn)] = NULL;
}

void
urn_failures_free(struct urn_tp *tp)
{
	for (uint32_t i = 0; tp->failures && i < tp->qp_chunks * URN_TP_QP_CHUNK; i++)
		free(tp->failures[i]);
	free(tp->failures);
	tp->failures = NULL;
}

void
urn_failure_forget(struct urn_tp *tp, struct urn_tp_share *share, uint32_t qpn)
{
	for (unsigned int i = 0; i < URN_FAILURES; i++)
		if (share->failures.ring[i].qpn == qpn)
			share->failures.ring[i].kind = URN_FAILURE_NONE;
	urn_failure_drop(tp, qpn);
}

void
urn_failure_leave_sqe(struct urn_tp *tp, struct urn_tp_share *share, uint32_t qpn)
{
	struct urn_failure *kept = kept_of(tp, qpn);

	if (kept && kept->flushes == URN_FLUSHES_SENDS)
		kept->flushes = URN_FLUSHES_NONE;
	for (unsigned int i = 0; i < URN_FAILURES; i++) {
		struct urn_failure *f = &share->failures.ring[i];

		if (f->qpn == qpn && f->flushes == URN_FLUSHES_SENDS)
			f->flushes = URN_FLUSHES_NONE;
	}
}

/* True when a record explains completions with this status. */
static bool
explains(const struct urn_failure *f, uint8_t status)
{
	if (status == UINT8_MAX || f->status == status)
		return true;
	if (status == URN_WC_WR_FLUSH_ERR)
		return f->flushes != URN_FLUSHES_NONE;
	/* RC refuses a message, and its receive completes with the message's end only. */
	return status == URN_WC_LOC_PROT_ERR && f->kind == URN_FAILURE_REFUSED;
}

/* The newest record in a ring of a queue pair that explains a completion. returns: NULL: none */
static const struct urn_failure *
in_ring(const struct urn_tp_share *share, uint32_t qpn, uint8_t status)
{
	const struct urn_failures *fs = &share->failures;
	const struct urn_failure *newest = NULL;

	/* n may have wrapped: places that were never filled are empty. */
	for (unsigned int i = 1; i <= URN_FAILURES; i++) {
		const struct urn_failure *f = &fs->ring[(fs->n - i) % URN_FAILURES];

		if (f->kind == URN_FAILURE_NONE || f->qpn != qpn || !explains(f, status))
			continue;
		/* The record of datagrams keeps its place when a newer one comes. */
		if (!newest || f->at > newest->at)
			newest = f;
	}
	return newest;
}

const struct urn_failure *
urn_failure_find(const struct urn_tp *tp, const struct urn_tp_share *share, uint32_t qpn,
		 uint8_t status)
{
	const struct urn_failure *f = in_ring(share, qpn, status);
	const struct urn_qp *qp = f ? NULL : urn_tp_qp(tp, qpn);

	if (!qp || qp->share != share)
		return f;
	f = kept_of(tp, qpn);
	return f && explains(f, status) ? f : NULL;
}
