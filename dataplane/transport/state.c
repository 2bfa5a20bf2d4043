/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The QP state machine (IBTA 10.3.1, 11.2.5.2): the moves that exist, the attributes that each move
 * needs and allows, and the actions of each. The table decides; the rest carries out.
 */
#include "transport/attr_words.h"
#include "transport/mcast.h"
#include "transport/qp_end.h"
#include "transport/requester.h"
#include "transport/reshape.h"
#include "transport/service.h"
#include "transport/uc_hold.h"
#include "wire/ecn.h"
#include "transport/sched.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const state_names[URN_QP_STATES] = {
	"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR",
};

const char *
urn_qp_state_name(unsigned int state)
{
	return state < URN_QP_STATES ? state_names[state] : "?";
}

/* Attributes that a move needs or may have, besides these two. */
#define MAY_ALWAYS (URN_QPM_STATE | URN_QPM_CUR_STATE)

const struct urn_qp_move urn_rc_moves[URN_QP_STATES][URN_QP_STATES] = {
	[URN_QPS_RESET][URN_QPS_INIT] = {true, URN_QPM_PKEY_INDEX | URN_QPM_PORT | URN_QPM_ACCESS, 0},
	[URN_QPS_INIT][URN_QPS_INIT] = {true, 0, URN_QPM_PKEY_INDEX | URN_QPM_PORT | URN_QPM_ACCESS},
	[URN_QPS_INIT][URN_QPS_RTR] = {true,
				       URN_QPM_AV | URN_QPM_PATH_MTU | URN_QPM_DEST_QPN |
					       URN_QPM_RQ_PSN | URN_QPM_MAX_DEST_RD_ATOMIC |
					       URN_QPM_MIN_RNR_TIMER,
				       URN_QPM_ACCESS | URN_QPM_PKEY_INDEX},
	[URN_QPS_RTR][URN_QPS_RTS] = {true,
				      URN_QPM_TIMEOUT | URN_QPM_RETRY_CNT | URN_QPM_RNR_RETRY |
					      URN_QPM_SQ_PSN | URN_QPM_MAX_RD_ATOMIC,
				      URN_QPM_ACCESS | URN_QPM_MIN_RNR_TIMER |
					      URN_QPM_PATH_MIG_STATE},
	[URN_QPS_RTS][URN_QPS_RTS] = {true, 0,
				      URN_QPM_ACCESS | URN_QPM_MIN_RNR_TIMER |
					      URN_QPM_PATH_MIG_STATE},
	[URN_QPS_RTS][URN_QPS_SQD] = {true, 0, URN_QPM_EN_SQD_NOTIFY},
	[URN_QPS_SQD][URN_QPS_SQD] = {true, 0,
				      URN_QPM_PORT | URN_QPM_AV | URN_QPM_TIMEOUT |
					      URN_QPM_RETRY_CNT | URN_QPM_RNR_RETRY |
					      URN_QPM_MAX_RD_ATOMIC | URN_QPM_MAX_DEST_RD_ATOMIC |
					      URN_QPM_ACCESS | URN_QPM_PKEY_INDEX |
					      URN_QPM_MIN_RNR_TIMER | URN_QPM_PATH_MIG_STATE},
	[URN_QPS_SQD][URN_QPS_RTS] = {true, 0,
				      URN_QPM_ACCESS | URN_QPM_MIN_RNR_TIMER |
					      URN_QPM_PATH_MIG_STATE},
};

const struct urn_qp_move urn_uc_moves[URN_QP_STATES][URN_QP_STATES] = {
	[URN_QPS_RESET][URN_QPS_INIT] = {true, URN_QPM_PKEY_INDEX | URN_QPM_PORT | URN_QPM_ACCESS,
					 0},
	[URN_QPS_INIT][URN_QPS_INIT] = {true, 0,
					URN_QPM_PKEY_INDEX | URN_QPM_PORT | URN_QPM_ACCESS},
	[URN_QPS_INIT][URN_QPS_RTR] = {true,
				       URN_QPM_AV | URN_QPM_PATH_MTU | URN_QPM_DEST_QPN |
					       URN_QPM_RQ_PSN,
				       URN_QPM_ACCESS | URN_QPM_PKEY_INDEX},
	[URN_QPS_RTR][URN_QPS_RTS] = {true, URN_QPM_SQ_PSN,
				      URN_QPM_ACCESS | URN_QPM_PATH_MIG_STATE},
	[URN_QPS_RTS][URN_QPS_RTS] = {true, 0, URN_QPM_ACCESS | URN_QPM_PATH_MIG_STATE},
	[URN_QPS_RTS][URN_QPS_SQD] = {true, 0, URN_QPM_EN_SQD_NOTIFY},
	[URN_QPS_SQD][URN_QPS_SQD] = {true, 0,
				      URN_QPM_AV | URN_QPM_ACCESS | URN_QPM_PKEY_INDEX |
					      URN_QPM_PATH_MIG_STATE},
	[URN_QPS_SQD][URN_QPS_RTS] = {true, 0, URN_QPM_ACCESS | URN_QPM_PATH_MIG_STATE},
	[URN_QPS_SQE][URN_QPS_RTS] = {true, 0, URN_QPM_ACCESS},
};

const struct urn_qp_move urn_ud_moves[URN_QP_STATES][URN_QP_STATES] = {
	[URN_QPS_RESET][URN_QPS_INIT] = {true, URN_QPM_PKEY_INDEX | URN_QPM_PORT | URN_QPM_QKEY, 0},
	[URN_QPS_INIT][URN_QPS_INIT] = {true, 0, URN_QPM_PKEY_INDEX | URN_QPM_PORT | URN_QPM_QKEY},
	[URN_QPS_INIT][URN_QPS_RTR] = {true, 0, URN_QPM_PKEY_INDEX | URN_QPM_QKEY},
	[URN_QPS_RTR][URN_QPS_RTS] = {true, URN_QPM_SQ_PSN, URN_QPM_QKEY},
	[URN_QPS_RTS][URN_QPS_RTS] = {true, 0, URN_QPM_QKEY},
	[URN_QPS_RTS][URN_QPS_SQD] = {true, 0, URN_QPM_EN_SQD_NOTIFY},
	[URN_QPS_SQD][URN_QPS_SQD] = {true, 0, URN_QPM_PKEY_INDEX | URN_QPM_QKEY},
	[URN_QPS_SQD][URN_QPS_RTS] = {true, 0, URN_QPM_QKEY},
	[URN_QPS_SQE][URN_QPS_RTS] = {true, 0, URN_QPM_QKEY},
};

/* Write the reason, and fail with EINVAL. */
static int __attribute__((format(printf, 3, 4)))
refuse(char *why, size_t len, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, len, fmt, ap);
	va_end(ap);
	return EINVAL;
}

static int
check_move(const struct urn_tp *tp, const struct urn_qp *qp, uint32_t mask, const struct urn_abi_qp_attr *a, uint8_t to,
	   char *why, size_t len)
{
	const struct urn_qp_move *m;
	uint32_t extra;
	char words[72]; /* the sentence has 120 bytes */

	if ((mask & URN_QPM_STATE) && a->state >= URN_QP_STATES)
		return refuse(why, len, "QP 0x%x: no such state: %u", qp->qpn, a->state);
	if ((mask & URN_QPM_CUR_STATE) && a->cur_state != qp->state)
		return refuse(why, len, "QP 0x%x is in %s, not in the state given as current",
			      qp->qpn, urn_qp_state_name(qp->state));
	if (to == URN_QPS_RESET || to == URN_QPS_ERR)
		return mask & ~(uint32_t)MAY_ALWAYS
			       ? refuse(why, len, "QP 0x%x: a move to %s takes no attributes", qp->qpn,
					urn_qp_state_name(to))
			       : 0;
	m = &urn_qp_service(tp, qp)->moves[qp->state][to];
	if (!m->valid)
		return refuse(why, len, "QP 0x%x can't go from %s to %s", qp->qpn,
			      urn_qp_state_name(qp->state), urn_qp_state_name(to));
	if ((mask & m->need) != m->need)
		return refuse(why, len, "QP 0x%x, %s to %s: give %s too", qp->qpn,
			      urn_qp_state_name(qp->state), urn_qp_state_name(to),
			      urn_qp_attr_words(m->need & ~mask, words, sizeof(words)));
	extra = mask & ~(m->need | m->may | MAY_ALWAYS);
	if (extra)
		return refuse(why, len, "QP 0x%x, %s to %s: leave %s out", qp->qpn,
			      urn_qp_state_name(qp->state), urn_qp_state_name(to),
			      urn_qp_attr_words(extra, words, sizeof(words)));
	return 0;
}

static int
check_av(const struct urn_tp *tp, const struct urn_qp *qp, const struct urn_abi_av *av, char *why,
	 size_t len)
{
	static const uint8_t none[16];
	uint8_t mac[6];

	if (av->port_num != 0 && av->port_num != 1)
		return refuse(why, len, "QP 0x%x: port %u, and there is only port 1", qp->qpn,
			      av->port_num);
	if (av->sgid_index >= tp->cfg.gids || memcmp(tp->cfg.gid[av->sgid_index], none, 16) == 0)
		return refuse(why, len, "QP 0x%x: no source GID with index %u", qp->qpn,
			      av->sgid_index);
	if (memcmp(av->dgid, none, 16) == 0)
		return refuse(why, len, "QP 0x%x: the peer's GID is missing", qp->qpn);
	if (urn_gid_multicast_mac(mac, av->dgid))
		return refuse(why, len, "QP 0x%x: the peer's GID is that of a multicast group",
			      qp->qpn);
	if (urn_gid_is_v4(av->dgid) != urn_gid_is_v4(tp->cfg.gid[av->sgid_index]))
		return refuse(why, len,
			      "QP 0x%x: source GID %u and the peer's GID are not both IPv4 or IPv6",
			      qp->qpn, av->sgid_index);
	return 0;
}

/* Say which path MTU is too large, or none, and which one to give. returns: EINVAL */
static int
refuse_mtu(const struct urn_tp *tp, const struct urn_qp *qp, unsigned int code, char *why,
	   size_t len)
{
	if (code < 1 || code > 5)
		return refuse(
			why, len,
			"QP 0x%x: path_mtu %u is none; give IBV_MTU_%u, all that the port carries",
			qp->qpn, code, tp->cfg.mtu);
	return refuse(
		why, len,
		"QP 0x%x: a path_mtu of %u bytes is more than the port carries; give IBV_MTU_%u "
		"or less",
		qp->qpn, 128u << code, tp->cfg.mtu);
}

/* Check the values of the attributes that are given. */
static int
check_values(const struct urn_tp *tp, const struct urn_qp *qp, uint32_t mask,
	     const struct urn_abi_qp_attr *a, char *why, size_t len)
{
	const struct {
		uint32_t bit;
		const char *what;
		uint32_t value, max;
	} limit[] = {
		{URN_QPM_PKEY_INDEX, "P_Key index", a->pkey_index, 0},
		{URN_QPM_DEST_QPN, "destination QPN", a->dest_qpn, URN_QPN_MASK},
		{URN_QPM_TIMEOUT, "timeout", a->timeout, 31},
		{URN_QPM_RETRY_CNT, "retry count", a->retry_cnt, 7},
		{URN_QPM_RNR_RETRY, "RNR retry count", a->rnr_retry, 7},
		{URN_QPM_MIN_RNR_TIMER, "RNR timer", a->min_rnr_timer, 31},
		{URN_QPM_MAX_RD_ATOMIC, "max_rd_atomic", a->max_rd_atomic, URN_ABI_MAX_RD_ATOMIC},
		{URN_QPM_MAX_DEST_RD_ATOMIC, "max_dest_rd_atomic", a->max_dest_rd_atomic,
		 URN_ABI_MAX_RD_ATOMIC},
	};

	for (size_t i = 0; i < sizeof(limit) / sizeof(limit[0]); i++)
		if ((mask & limit[i].bit) && limit[i].value > limit[i].max)
			return refuse(why, len, "QP 0x%x: %s %u, at most %u", qp->qpn, limit[i].what,
				      limit[i].value, limit[i].max);
	if ((mask & URN_QPM_PORT) && a->port_num != 1)
		return refuse(why, len, "QP 0x%x: port %u, and there is only port 1", qp->qpn,
			      a->port_num);
	if ((mask & URN_QPM_PATH_MTU) &&
	    (a->path_mtu < 1 || a->path_mtu > 5 || 128u << a->path_mtu > tp->cfg.mtu))
		return refuse_mtu(tp, qp, a->path_mtu, why, len);
	return mask & URN_QPM_AV ? check_av(tp, qp, &a->av, why, len) : 0;
}

/*
 * Make the record of READs and atomics: a power of two, so that indices wrap. The newest entries of
 * the old record stay (SQD), and so does the log until urn_qp_log_atomics() moves it.
 */
static int
make_record(struct urn_qp *qp, uint8_t depth)
{
	uint32_t n = depth ? 1 : 0, old = qp->rec ? qp->rec_mask + 1u : 0, pending = 0;
	struct urn_rec *rec = NULL;

	while (n < depth)
		n *= 2;
	if (n) {
		rec = calloc(1, n * sizeof(*rec) + sizeof(struct urn_rec_log)); /* URN_QP_LOG */
		if (!rec)
			return ENOMEM;
		if (old)
			memcpy(rec + n, URN_QP_LOG(qp), sizeof(struct urn_rec_log));
	}
	for (uint32_t i = 1; i <= n && i <= old; i++) {
		rec[n - i] = qp->rec[(qp->rec_head - i) & qp->rec_mask];
		pending += rec[n - i].pending;
	}
	free(qp->rec);
	qp->rec = rec;
	qp->rec_mask = (uint8_t)(n ? n - 1 : 0);
	qp->rec_head = 0;
	qp->rec_pending = (uint8_t)pending;
	return 0;
}

/* Copy the newest entries of a log to another one, which is empty. */
static void
move_log(const struct urn_rec_log *from, struct urn_abi_atomic *to, uint32_t mask)
{
	uint64_t n = (from->mask < mask ? from->mask : mask) + 1ull;

	for (uint64_t i = 0; i < n && i < from->count; i++) {
		uint64_t number = from->count - i;

		memcpy(&to[number & mask], &from->entry[number & from->mask], sizeof(*to));
	}
}

void
urn_qp_log_atomics(struct urn_qp *qp, struct urn_abi_atomic *entry, uint64_t off)
{
	struct urn_rec_log *log = URN_QP_LOG(qp);

	if (log->entry)
		move_log(log, entry, qp->rec_mask);
	log->entry = entry;
	log->mask = qp->rec_mask;
	qp->rq.hdr->atomics_off = off;
	atomic_store(&qp->rq.hdr->atomics, qp->rec_mask + 1u);
}

/* Make the headers to the peer; its MAC address is looked up when first needed. */
static void
make_template(struct urn_tp *tp, struct urn_qp *qp, const struct urn_abi_av *av)
{
	struct urn_path path = {
		/*
		 * With congestion control, switches may mark frames of RC, whose rate it sets,
		 * instead of dropping them.
		 */
		.tos = (uint8_t)(tp->dcqcn.line && qp->type == URN_QPT_RC
					 ? (av->traffic_class & ~URN_ECN_MASK) | URN_ECN_ECT0
					 : av->traffic_class),
		.ttl = av->hop_limit ? av->hop_limit : 64,
		.flow_label = av->flow_label,
	};

	qp->av = *av;
	/* Constant for a QP, and spread over QPs (doc/reference/wire.md "Frame"). */
	path.sport = (uint16_t)(URN_ROCE_SPORT_MIN |
				((qp->qpn * 2654435761u ^ qp->dest_qpn * 40503u) >> 8 & 0x3fff));
	memcpy(path.smac, tp->cfg.mac, 6);
	memcpy(path.dmac, tp->cfg.mac, 6);
	memcpy(path.sgid, tp->cfg.gid[av->sgid_index], 16);
	memcpy(path.dgid, av->dgid, 16);
	urn_tmpl_init(&qp->tmpl, &path);
	qp->flags &= ~(uint32_t)(URN_QPF_LOOP | URN_QPF_MAC);
	for (unsigned int i = 0; i < tp->cfg.gids; i++)
		if (memcmp(tp->cfg.gid[i], av->dgid, 16) == 0)
			qp->flags |= URN_QPF_LOOP | URN_QPF_MAC;
}

/* Find the way to the peer's adapter. The peer's features are asked for now, and may be told later. */
static void
find_peer(struct urn_tp *tp, struct urn_qp *qp, const uint8_t gid[16])
{
	uint16_t old = qp->tx.peer;
	struct urn_peer *p;

	urn_peer_untime(tp, &qp->tx);
	qp->tx.peer = urn_peer_get(&tp->peers, gid);
	urn_peer_put(&tp->peers, old);
	p = urn_qp_peer(tp, qp);
	if (qp->tx.peer == 0)
		return; /* no room: plain RoCEv2 */
	if (qp->flags & URN_QPF_LOOP)
		p->features = tp->cfg.features;
	else if (tp->cfg.learn)
		p->features = tp->cfg.learn(tp->cfg.learn_ctx, gid) & tp->cfg.features;
	if (tp->cfg.learn_line)
		p->line = urn_reshape_line(tp->cfg.learn_line(tp->cfg.learn_ctx, gid));
}

static int
set_attributes(struct urn_tp *tp, struct urn_qp *qp, uint32_t mask, const struct urn_abi_qp_attr *a)
{
	if (mask & URN_QPM_MAX_DEST_RD_ATOMIC) {
		if (make_record(qp, a->max_dest_rd_atomic) != 0)
			return ENOMEM;
		qp->max_dest_rd_atomic = a->max_dest_rd_atomic;
	}
	if (mask & URN_QPM_ACCESS)
		qp->access = (uint8_t)a->access;
	if (mask & URN_QPM_QKEY)
		qp->qkey = a->qkey;
	if (mask & URN_QPM_DEST_QPN)
		qp->dest_qpn = a->dest_qpn;
	if (mask & URN_QPM_PATH_MTU) {
		qp->path_mtu = a->path_mtu;
		qp->mtu_shift = (uint8_t)(a->path_mtu + 7);
		qp->mtu = (uint16_t)(1u << qp->mtu_shift);
	}
	if (mask & URN_QPM_RQ_PSN) {
		qp->rq_psn = a->rq_psn & URN_PSN_MASK;
		urn_psn_rx_start(&qp->rx, qp->rq_psn);
	}
	if (mask & URN_QPM_SQ_PSN) {
		qp->sq_psn = a->sq_psn & URN_PSN_MASK;
		urn_psn_tx_start(&qp->tx, qp->sq_psn);
	}
	if (mask & URN_QPM_MIN_RNR_TIMER)
		qp->min_rnr_timer = a->min_rnr_timer;
	if (mask & URN_QPM_TIMEOUT)
		qp->tx.timeout = a->timeout;
	if (mask & URN_QPM_RETRY_CNT)
		qp->tx.retry_cnt = qp->tx.retries = a->retry_cnt;
	if (mask & URN_QPM_RNR_RETRY)
		qp->tx.rnr_retry = qp->tx.rnr_tries = a->rnr_retry;
	if (mask & URN_QPM_MAX_RD_ATOMIC)
		qp->tx.max_fetch = a->max_rd_atomic;
	if (mask & URN_QPM_EN_SQD_NOTIFY)
		qp->en_sqd_notify = a->en_sqd_notify != 0;
	if (mask & URN_QPM_AV) {
		make_template(tp, qp, &a->av);
		if (qp->type == URN_QPT_RC || qp->type == URN_QPT_UC)
			find_peer(tp, qp, a->av.dgid);
		if (qp->type == URN_QPT_UC)
			urn_uc_connect(tp, qp);
	}
	return 0;
}

/* Put the QP into RESET: like a new QP, but for its numbers and queues. */
static int
reset(struct urn_tp *tp, struct urn_qp *qp)
{
	struct urn_qp keep;

	urn_qp_stop(tp, qp);
	if (!urn_qp_stopped(qp))
		return EAGAIN;
	make_record(qp, 0);
	urn_peer_put(&tp->peers, qp->tx.peer);
	keep = *qp;
	memset(qp, 0, sizeof(*qp));
	qp->qpn = keep.qpn;
	qp->type = keep.type;
	qp->state = URN_QPS_RESET;
	qp->pd = keep.pd;
	qp->flags = keep.flags & (URN_QPF_SIG_ALL | URN_QPF_MCAST);
	qp->align = keep.align & 15u;
	qp->source.db = keep.source.db;
	qp->cookie = keep.cookie;
	qp->share = keep.share;
	urn_failure_forget(tp, qp->share, qp->qpn);
	if (qp->type == URN_QPT_UD)
		qp->groups.lh_first = keep.groups.lh_first;
	qp->send_cq = keep.send_cq;
	qp->recv_cq = keep.recv_cq;
	qp->srq = keep.srq;
	qp->sq = keep.sq;
	qp->rq = keep.rq;
	qp->mtu = tp->cfg.mtu;
	qp->mtu_shift = (uint8_t)__builtin_ctz(tp->cfg.mtu);
	/* Requests that were posted and not done are forgotten (lib/abi/queue.h). */
	qp->sq.prod = qp->sq.fetched = qp->sq.retired = atomic_load(&qp->sq.hdr->prod);
	atomic_store(&qp->sq.hdr->cons, qp->sq.retired);
	qp->rq.undone = 0;
	if (!qp->rq.hdr)
		return 0;
	if (!qp->srq) {
		qp->rq.prod = qp->rq.cons = atomic_load(&qp->rq.hdr->prod);
		atomic_store(&qp->rq.hdr->cons, qp->rq.cons);
		atomic_store(&qp->rq.hdr->ring, 0);
	}
	atomic_store(&qp->rq.hdr->done, qp->rq.cons);
	atomic_store(&qp->rq.hdr->atomics, 0);
	return 0;
}

static void
enter(struct urn_tp *tp, struct urn_qp *qp, uint8_t to)
{
	uint8_t from = qp->state;

	if (to == URN_QPS_ERR) {
		urn_qp_error(tp, qp);
		return;
	}
	if (from == URN_QPS_SQE && to != from)
		urn_failure_leave_sqe(tp, qp->share, qp->qpn);
	qp->state = to;
	if (to == URN_QPS_RTR && (qp->flags & URN_QPF_MCAST))
		urn_mcast_wake(qp);
	if (to == URN_QPS_RTS && from != URN_QPS_RTS) {
		qp->flags &= ~(uint32_t)URN_QPF_DRAINING;
		urn_tp_sched(tp, qp); /* requests may have been posted before */
	} else if (to == URN_QPS_SQD && from == URN_QPS_RTS) {
		qp->flags |= URN_QPF_DRAINING;
		urn_tp_sched(tp, qp);
		urn_qp_check_drained(tp, qp);
	}
}

/* Flush requests posted up to now, and not those that the program posts during the flush. */
static void
flush_before(struct urn_tp *tp, struct urn_qp *qp)
{
	uint32_t n = qp->sq.fetched - qp->sq.retired + urn_sq_ready(&qp->sq);

	(void)urn_qp_flush(tp, qp, n);
}

int
urn_qp_modify(struct urn_tp *tp, struct urn_qp *qp, uint32_t mask, const struct urn_abi_qp_attr *a,
	      char *why, size_t len)
{
	uint8_t to = mask & URN_QPM_STATE ? a->state : qp->state;
	int rc = check_move(tp, qp, mask, a, to, why, len);

	if (rc == 0)
		rc = check_values(tp, qp, mask, a, why, len);
	if (rc != 0)
		return rc;
	if (to == URN_QPS_RESET)
		return reset(tp, qp);
	/* Packets that wait for memory refer to their place on the record. */
	if ((mask & URN_QPM_MAX_DEST_RD_ATOMIC) && !urn_qp_quiet(qp))
		return EAGAIN;
	if (qp->state == URN_QPS_SQE && to == URN_QPS_RTS) {
		/* Requests posted before this are flushed, not sent (IBTA 10.3.1.6). */
		if (!urn_qp_quiet(qp))
			return EAGAIN;
		flush_before(tp, qp);
	}
	if (set_attributes(tp, qp, mask, a) != 0) {
		snprintf(why, len, "QP 0x%x: no memory for the record of READs", qp->qpn);
		return ENOMEM;
	}
	enter(tp, qp, to);
	return 0;
}

int
urn_qp_align_writes(struct urn_qp *qp, uint32_t line)
{
	bool bytes = urn_reshape_line(line) != 0;

	if (qp->type != URN_QPT_RC || (line > URN_ALIGN_PEER && !bytes))
		return EINVAL;
	qp->align = (bytes ? (uint32_t)__builtin_ctz(line) : line) & 15u;
	return 0;
}

void
urn_qp_query(const struct urn_qp *qp, struct urn_abi_qp_attr *a)
{
	memset(a, 0, sizeof(*a));
	a->state = a->cur_state = qp->state;
	a->path_mtu = qp->path_mtu;
	a->en_sqd_notify = qp->en_sqd_notify;
	a->sq_draining = qp->state == URN_QPS_SQD && (qp->flags & URN_QPF_DRAINING);
	a->max_rd_atomic = qp->tx.max_fetch;
	a->max_dest_rd_atomic = qp->max_dest_rd_atomic;
	a->min_rnr_timer = qp->min_rnr_timer;
	a->port_num = 1;
	a->timeout = qp->tx.timeout;
	a->retry_cnt = qp->tx.retry_cnt;
	a->rnr_retry = qp->tx.rnr_retry;
	a->qkey = qp->type == URN_QPT_UD ? qp->qkey : 0;
	a->rq_psn = qp->type != URN_QPT_UD ? qp->rx.epsn : qp->rq_psn;
	a->sq_psn = qp->tx.next;
	a->dest_qpn = qp->dest_qpn;
	a->access = qp->access;
	a->av = qp->av;
}
