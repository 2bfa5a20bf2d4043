/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reports on queue pairs. The adapter's lock keeps queue pairs from going away, because only
 * control calls make and free them. For a list a queue pair is read while its engine
 * goes on working; a queue pair that is asked for by its number is copied by the engine.
 */
#include "report/report_priv.h"

#include "near.h"
#include "transport/requester.h"
#include "transport/service.h"

#include <errno.h>
#include <stdio.h>

static const uint8_t none[16];

static uint32_t
psn_count(uint32_t from, uint32_t to)
{
	return (to - from) & 0xffffffu;
}

/* Report the common fields of a queue pair: all fields of a list, and the first of a card. */
static void
common(const struct urn_adapter *a, const struct urn_qp *qp, struct urn_report_sink *s)
{
	const struct urn_client *c = urn_client_of_qp(qp);
	bool connected = qp->type != URN_QPT_UD;
	uint32_t posted = atomic_load_explicit(&qp->sq.hdr->prod, memory_order_relaxed);
	uint32_t receives =
		qp->rq.hdr ? atomic_load_explicit(&qp->rq.hdr->prod, memory_order_relaxed) : 0;
	char text[48];

	s->u64(s, "qpn", qp->qpn);
	s->str(s, "adapter", a->cfg.name);
	s->u64(s, "client", c ? c->id : 0);
	s->u64(s, "pid", c ? (uint64_t)c->pid : 0);
	/* The name of the program when it attached: a list reads no file for each queue pair. */
	s->str(s, "program", c ? c->engine.who.program : "");
	s->str(s, "type", urn_qp_service(urn_adapter_shard(a, 0)->tp, qp)->name);
	s->str(s, "state", urn_qp_state_name(LOOK(qp->state)));
	/* The peer is set by control calls: it does not change under the adapter's lock. */
	s->str(s, "peer",
	       connected && memcmp(qp->av.dgid, none, 16) != 0 ? report_gid(qp->av.dgid, text)
							       : "");
	s->u64(s, "peer_qpn", connected ? LOOK(qp->dest_qpn) : 0);
	s->u64(s, "mtu", LOOK(qp->mtu));
	s->u64(s, "sends", report_fill(posted, LOOK(qp->sq.retired), qp->sq.mask));
	s->u64(s, "receives",
	       qp->rq.hdr ? report_fill(receives, LOOK(qp->rq.cons), qp->rq.mask) : 0);
	s->u64(s, "outstanding", connected ? psn_count(LOOK(qp->tx.una), LOOK(qp->tx.next)) : 0);
}

/* ---- in detail */

struct detail {
	const struct urn_tp *tp;
	const struct urn_qp *qp;
	struct urn_qp copy;
	struct urn_peer peer; /* RC */
	uint64_t rto_ns;      /* timeout by the measured round trip, ns; 0: not measured */
	uint64_t rate;	      /* bytes a second by congestion control; 0: as fast as can be */
	uint32_t missing_n;   /* responses kept ahead of their turn */
	bool selective;
	bool repairing;
	struct urn_failure failure; /* its latest error; URN_FAILURE_NONE: none is on record */
};

/* In the engine's thread. */
static void
look(void *arg)
{
	struct detail *d = arg;
	const struct urn_qp *qp = d->qp;
	const struct urn_repair *r = urn_repair_of(d->tp, &qp->tx);
	const struct urn_failure *f = urn_failure_find(d->tp, qp->share, qp->qpn, UINT8_MAX);

	if (f)
		d->failure = *f;
	d->copy = *qp;
	d->peer = *urn_qp_peer(d->tp, qp);
	d->selective = urn_qp_selective(d->tp, qp);
	d->repairing = r != NULL;
	d->rate = urn_congestion_rate(d->tp, qp);
	d->missing_n = r ? r->kept_n : 0;
	if (d->tp->cfg.rto_floor && d->peer.srtt)
		d->rto_ns = urn_peer_rto(&d->peer, d->tp->cfg.rto_floor);
}

/* The reason why a queue pair waits, if it does. */
static const char *
waits_for(const struct urn_qp *qp)
{
	if (qp->flags & URN_QPF_DYING)
		return "its end";
	if (qp->flags & URN_QPF_NEIGH)
		return "address";
	if (qp->tx.flags & URN_TXF_RNR_WAIT)
		return "receiver";
	if (qp->rx_head || qp->tx_last)
		return "memory";
	return qp->tx.una != qp->tx.next ? "acknowledgement" : "";
}

/* A number and its key. */
struct figure {
	const char *key;
	uint64_t value;
};

static void
figures(struct urn_report_sink *s, const struct figure *f, size_t n)
{
	for (size_t i = 0; i < n; i++)
		s->u64(s, f[i].key, f[i].value);
}

#define FIGURES(s, ...)                                          \
	figures((s), (const struct figure[]){__VA_ARGS__},       \
		sizeof((const struct figure[]){__VA_ARGS__}) / sizeof(struct figure))

static void
requester(const struct detail *d, struct urn_report_sink *s)
{
	const struct urn_qp *qp = &d->copy;

	FIGURES(s, {"una_psn", qp->tx.una}, {"current_psn", qp->tx.cur.psn}, {"next_psn", qp->tx.next},
		{"first_sq_psn", qp->sq_psn});
	s->flag(s, "selective", d->selective);
	s->flag(s, "repairing", d->repairing);
	FIGURES(s, {"responses_kept", d->missing_n},
		{"timeout_ns", qp->tx.timeout ? 4096ull << qp->tx.timeout : 0},
		{"retries", qp->tx.retry_cnt}, {"retries_left", qp->tx.retries},
		{"rnr_retries", qp->tx.rnr_retry}, {"rnr_retries_left", qp->tx.rnr_tries},
		{"reads_max", qp->tx.max_fetch}, {"reads_outstanding", qp->tx.fetch_out},
		{"rtt_ns", d->peer.srtt}, {"rtt_var_ns", d->peer.rttvar}, {"rto_ns", d->rto_ns},
		{"backoff", d->peer.backoff}, {"window", d->peer.window},
		{"paced_mbps", d->rate / 125000});
}

static void
responder(const struct urn_qp *qp, struct urn_report_sink *s)
{
	FIGURES(s, {"expected_psn", qp->rx.epsn}, {"done_psn", qp->rx.done},
		{"first_rq_psn", qp->rq_psn}, {"msn", qp->rx.msn}, {"out_of_order_kept", qp->rx.ooo_count},
		{"peer_reads_max", qp->max_dest_rd_atomic}, {"peer_reads_pending", qp->rec_pending},
		{"min_rnr_timer", qp->min_rnr_timer});
}

/* Address whose MAC address is asked for; "": the queue pair has no peer, or no route leads there.
 */
static void
next_hop(const struct urn_adapter *a, const struct urn_qp *qp, struct urn_report_sink *s)
{
	char text[48] = "";
	uint8_t hop[16];

	if (qp->type != URN_QPT_UD && memcmp(qp->av.dgid, none, 16) != 0 &&
	    urn_neigh_hop(a->neigh, qp->av.dgid, hop))
		report_gid(hop, text);
	s->str(s, "next_hop", text);
}

static void
card(const struct urn_adapter *a, const struct detail *d, struct urn_report_sink *s)
{
	const struct urn_qp *qp = &d->copy;
	char why[512] = "";

	s->begin(s, "qp", true);
	common(a, qp, s);
	next_hop(a, qp, s);
	s->str(s, "waits_for", waits_for(qp));
	FIGURES(s, {"engine", urn_qpn_engine(qp->qpn)}, {"pd", qp->pd},
		{"send_cq", qp->send_cq->handle}, {"recv_cq", qp->recv_cq->handle},
		{"srq", qp->srq ? qp->srq->handle : 0}, {"sq_entries", qp->sq.mask + 1ull},
		{"rq_entries", qp->rq.hdr ? qp->rq.mask + 1ull : 0}, {"udp_source_port", urn_tmpl_sport(&qp->tmpl)});
	if (qp->type == URN_QPT_RC) {
		requester(d, s);
		responder(qp, s);
	} else if (qp->type == URN_QPT_UD) {
		s->u64(s, "qkey", qp->qkey);
	}
	if (d->failure.kind != URN_FAILURE_NONE)
		urn_failure_text(&d->failure, a->cfg.port->cfg.name, false, why, sizeof(why));
	s->str(s, "last_error", why);
	s->end(s);
}

/* ---- finding queue pairs */

/* True when the query asks for this queue pair. qp may be NULL. */
static bool
is_wanted(const struct urn_qp *qp, const struct urn_report_query *q)
{
	const struct urn_client *c = qp ? urn_client_of_qp(qp) : NULL;

	return qp && (q->client == 0 || (c && c->id == q->client)) &&
	       (q->state == NULL || strcasecmp(urn_qp_state_name(LOOK(qp->state)), q->state) == 0);
}

/* Report queue pairs of an adapter on an engine, from slot q->at.inner on. */
static bool
walk_shard(struct report_walk *w, const struct urn_adapter *a, const struct urn_tp *tp)
{
	uint32_t *i = &w->q->at.inner;
	uint32_t end = tp->qp_chunks * URN_TP_QP_CHUNK;

	while (*i < end) {
		const struct urn_qp *qp;

		if (report_full(w))
			return false;
		w->scan--;
		if (tp->qp[*i / URN_TP_QP_CHUNK] == NULL) { /* never used */
			*i += URN_TP_QP_CHUNK;
			continue;
		}
		qp = urn_tp_qp(tp, (*i)++);
		if (!is_wanted(qp, w->q))
			continue;
		w->s->begin(w->s, "qp", false);
		common(a, qp, w->s);
		w->s->end(w->s);
		w->rows--;
	}
	return true;
}

static bool
adapter_qps(struct report_walk *w, struct urn_adapter *a)
{
	struct urn_report_at *at = &w->q->at;

	for (; at->middle < URN_ABI_MAX_ENGINES; at->middle++, at->inner = 0)
		if (a->shard[at->middle] && !walk_shard(w, a, a->shard[at->middle]->tp))
			return false;
	return true;
}

/* Report the queue pair that is asked for by its number, if it is there. */
static bool
adapter_qp(struct report_walk *w, struct urn_adapter *a)
{
	unsigned int engine = urn_qpn_engine(w->q->qpn);
	struct urn_shard *shard = engine < URN_ABI_MAX_ENGINES ? a->shard[engine] : NULL;
	struct detail d = {.tp = shard ? shard->tp : NULL};

	d.qp = shard && w->q->qpn <= 0xffffffu ? urn_tp_qp(shard->tp, w->q->qpn) : NULL;
	if (!is_wanted(d.qp, w->q))
		return true;
	urn_engine_call(shard->engine, look, &d);
	card(a, &d, w->s);
	w->rows--;
	return true;
}

/* returns: 0, or -1 with *err: no state has this name */
static int
check_state(const char *state, struct urn_err *err)
{
	char mean[URN_NEAR_HINT];
	struct urn_near near;

	if (state == NULL)
		return 0;
	urn_near_begin(&near, state);
	for (unsigned int i = 0; i < URN_QP_STATES; i++) {
		if (strcasecmp(urn_qp_state_name(i), state) == 0)
			return 0;
		urn_near_try(&near, urn_qp_state_name(i));
	}
	urn_err_set(err,
		    "%s is no state of a queue pair; %sthere are RESET, INIT, RTR, RTS, SQD, "
		    "SQE and ERR",
		    state, urn_near_mean(&near, mean));
	return -1;
}

int
urn_report_qps(const struct urn_report_source *src, struct urn_report_query *q,
	       struct urn_report_sink *s, struct urn_err *err)
{
	struct report_walk w = report_walk_begin(src, q, s);
	uint32_t rows = w.rows;
	int rc;

	if (check_state(q->state, err) != 0)
		return URN_REPORT_FAILED;
	if (!q->by_qpn)
		return report_adapters_walk(&w, err, adapter_qps);
	rc = report_adapters_walk(&w, err, adapter_qp);
	if (rc != URN_REPORT_DONE || w.rows != rows)
		return rc;
	urn_err_set(err, "no queue pair has the number %u; 'show qp' lists them", q->qpn);
	return URN_REPORT_FAILED;
}
