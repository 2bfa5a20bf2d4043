/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Repairing losses packet by packet: taking in selective acknowledgements, keeping responses ahead
 * of their turn, and sending only missing packets again (doc/inside/recovery.md).
 */
#include "transport/frame.h"
#include "transport/pool.h"
#include "transport/psn_again.h"
#include "transport/requester.h"
#include "transport/ring.h"
#include "transport/sack.h"
#include "transport/sched.h"

#include <stdlib.h>

/* ---- the pool */

int
urn_repairs_init(struct urn_tp *tp)
{
	uint32_t n = tp->cfg.repairs ? tp->cfg.repairs : URN_REPAIRS;

	tp->cfg.repairs = n;
	tp->repair = calloc(n + 1, sizeof(*tp->repair));
	urn_pool_init(&tp->repairs, 1, n + 1);
	tp->left.repairs = n;
	urn_fair_init(&tp->fair_repairs, n);
	return tp->repair ? 0 : -1;
}

/* Count states that a client has more; or fewer: a negative number. */
static void
count(struct urn_tp *tp, struct urn_tp_share *share, int32_t more)
{
	tp->left.repairs -= (uint32_t)more;
	share->repairs += (uint32_t)more;
	urn_share_user(share)->repairs += (uint32_t)more;
}

/* Take a state for a client. returns: its index; URN_HASH_NIL: the client may have none (counted)
 */
static uint32_t
take(struct urn_tp *tp, struct urn_tp_share *share)
{
	uint32_t i = URN_HASH_NIL;

	if (urn_fair_user_has(&tp->fair_repairs, tp->left.repairs, share->repairs,
			      urn_share_user(share)->repairs))
		i = urn_pool_get(&tp->repairs, &tp->repair->next, sizeof(*tp->repair));
	if (i == URN_HASH_NIL)
		URN_COUNT(tp, NO_REPAIR);
	else
		count(tp, share, 1);
	return i;
}

struct urn_repair *
urn_repair_get(struct urn_tp *tp, struct urn_qp *qp)
{
	struct urn_psn_tx *tx = &qp->tx;
	struct urn_repair *r;
	uint32_t i;

	if (tx->repair)
		return urn_repair_of(tp, tx);
	i = take(tp, qp->share);
	if (i == URN_HASH_NIL)
		return NULL;
	r = &tp->repair[i];
	tx->repair = (uint16_t)i;
	r->kept = r->parts = r->parts_tail = NULL;
	r->kept_n = r->parts_n = 0;
	r->nak_syn = 0;
	urn_board_reset(&r->req, tx->una);
	urn_board_reset(&r->resp, urn_psn_tx_response(tx));
	return r;
}

static void
drop_list(struct urn_tp *tp, const struct urn_qp *qp, struct rte_mbuf *m)
{
	while (m) {
		struct rte_mbuf *next = urn_pkt(m)->next;

		urn_kept_count(tp, qp->share, -1);
		urn_tp_drop(tp, m, URN_C_DROP_FLUSHED);
		m = next;
	}
}

void
urn_repair_end(struct urn_tp *tp, struct urn_qp *qp)
{
	struct urn_repair *r = urn_repair_of(tp, &qp->tx);

	if (!r)
		return;
	while (r->kept) {
		urn_kept_count(tp, qp->share, -1);
		urn_tp_drop(tp, urn_ring_pop(&r->kept), URN_C_DROP_FLUSHED);
	}
	drop_list(tp, qp, r->parts);
	urn_pool_put(&tp->repairs, qp->tx.repair, &tp->repair->next, sizeof(*r));
	count(tp, qp->share, -1);
	qp->tx.repair = 0;
	qp->flags &= ~(uint32_t)URN_QPF_PARTS;
}

void
urn_repair_settle(struct urn_tp *tp, struct urn_qp *qp)
{
	struct urn_repair *r = urn_repair_of(tp, &qp->tx);

	struct urn_board_news news = {.again_ns = UINT64_MAX};

	if (!r)
		return;
	if (urn_board_open(&r->req)) {
		urn_board_came(&r->req, r->req.base, qp->tx.una, tp->now, &news);
		urn_peer_learn(urn_qp_peer(tp, qp), &news);
	}
	urn_board_advance(&r->req, qp->tx.una);
	urn_board_advance(&r->resp, urn_psn_tx_response(&qp->tx));
	if (urn_board_open(&r->req) || urn_board_open(&r->resp) || r->kept || r->parts || r->nak_syn)
		return;
	urn_peer_repaired(urn_qp_peer(tp, qp));
	urn_repair_end(tp, qp);
}

/* Reset the scoreboard of responses: only the kept responses are known to have come. */
static void
count_kept(struct urn_tp *tp, struct urn_qp *qp, struct urn_repair *r)
{
	urn_board_reset(&r->resp, urn_psn_tx_response(&qp->tx));
	for (struct rte_mbuf *m = urn_ring_first(r->kept); m; m = urn_ring_next(r->kept, m)) {
		struct urn_board_news news = {.again_ns = UINT64_MAX};
		uint32_t psn = urn_pkt(m)->psn;

		urn_board_came(&r->resp, psn, urn_psn_add(psn, 1), tp->now, &news);
	}
}

void
urn_repair_void(struct urn_tp *tp, struct urn_qp *qp)
{
	struct urn_repair *r = urn_repair_of(tp, &qp->tx);

	if (!r)
		return;
	urn_board_reset(&r->req, qp->tx.una);
	count_kept(tp, qp, r); /* kept responses stay known */
}

/* ---- looking at what is missing */

uint64_t
urn_repair_look(struct urn_tp *tp, struct urn_qp *qp)
{
	struct urn_repair *r = urn_repair_of(tp, &qp->tx);
	struct urn_board_limits l;
	bool lost;
	uint64_t a, b;

	if (!r)
		return UINT64_MAX;
	urn_peer_limits(urn_qp_peer(tp, qp), &l);
	lost = urn_board_judge(&r->req, &l, tp->now);
	if (urn_board_judge(&r->resp, &l, tp->now) || lost)
		urn_tp_sched(tp, qp);
	a = urn_board_due(&r->req, &l);
	b = urn_board_due(&r->resp, &l);
	return a < b ? a : b;
}

/* There are news: learn from them, judge gaps, and set the timer. */
static void
looked(struct urn_tp *tp, struct urn_qp *qp, const struct urn_board_news *news)
{
	uint64_t due;

	urn_peer_learn(urn_qp_peer(tp, qp), news);
	due = urn_repair_look(tp, qp);
	if (due != UINT64_MAX)
		urn_req_wake_at(tp, qp, due);
}

/* ---- selective acknowledgements */

/* PSNs first..end-1 came: measure, if the packet that is being timed is among those. */
static void
timed(struct urn_tp *tp, const struct urn_qp *qp, uint32_t first, uint32_t end)
{
	struct urn_peer *p = urn_qp_peer(tp, qp);

	if (p->timed != &qp->tx || urn_psn_diff(p->timed_psn, first) < 0 ||
	    urn_psn_diff(p->timed_psn, end) >= 0)
		return;
	urn_peer_delivered(p, tp->now, tp->cfg.window);
}

bool
urn_repair_sack(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	struct urn_board_news news = {.again_ns = UINT64_MAX};
	struct urn_sack_run run = {0};
	struct urn_repair *r;
	struct urn_sack s;

	memcpy(&s, urn_pkt_ext(m, URN_EXT_SACK), sizeof(s));
	if (!urn_sack_sound(&s, qp->tx.next)) {
		URN_COUNT(tp, DROP_SACK);
		return true;
	}
	r = urn_repair_get(tp, qp);
	if (!r)
		return false;
	urn_board_advance(&r->req, qp->tx.una);
	urn_board_came(&r->req, r->req.base, urn_sack_expected(&s), tp->now, &news);
	timed(tp, qp, qp->tx.una, urn_sack_expected(&s));
	while (urn_sack_next(&s, &run)) {
		urn_board_came(&r->req, run.first, run.end, tp->now, &news);
		timed(tp, qp, run.first, run.end);
	}
	looked(tp, qp, &news);
	return true;
}

/* ---- responses ahead of their turn */

/*
 * Two responses that have the same PSN and differ are both dropped, and the PSN is asked for again.
 * The two may also differ because the memory that the READ reads has changed since the first was
 * sent.
 */
static void
let_go_if_other(struct urn_tp *tp, struct urn_qp *qp, struct urn_repair *r, struct rte_mbuf *m)
{
	struct urn_board_news news = {.again_ns = UINT64_MAX};
	struct rte_mbuf *old = urn_ring_find(r->kept, urn_pkt(m)->psn);

	if (!old || urn_kept_same(old, m))
		return;
	URN_COUNT(tp, CONTRADICTS);
	urn_ring_remove(&r->kept, old);
	r->kept_n--;
	urn_kept_count(tp, qp->share, -1);
	urn_tp_drop(tp, old, URN_C_DROP_OOO);
	count_kept(tp, qp, r);
	urn_board_missed(&r->resp, urn_pkt(m)->psn, tp->now);
	looked(tp, qp, &news);
}

enum urn_keep
urn_repair_keep(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	struct urn_board_news news = {.again_ns = UINT64_MAX};
	uint32_t psn = urn_pkt(m)->psn;
	struct urn_repair *r;

	if (urn_psn_diff(psn, urn_psn_tx_response(&qp->tx)) > URN_TP_OOO_READ) {
		URN_COUNT(tp, DROP_FAR);
		return URN_KEEP_NO_ROOM;
	}
	r = urn_repair_get(tp, qp);
	if (!r)
		return URN_KEEP_NO_ROOM;
	if (r->kept_n >= URN_TP_OOO_READ || !urn_kept_room(tp, qp->share)) {
		let_go_if_other(tp, qp, r, m);
		return URN_KEEP_NO_ROOM;
	}
	if (!urn_ring_insert(&r->kept, m)) {
		let_go_if_other(tp, qp, r, m);
		return URN_KEEP_AGAIN;
	}
	r->kept_n++;
	urn_kept_count(tp, qp->share, 1);
	URN_COUNT(tp, OOO_KEPT);
	urn_board_advance(&r->resp, urn_psn_tx_response(&qp->tx));
	urn_board_came(&r->resp, psn, urn_psn_add(psn, 1), tp->now, &news);
	looked(tp, qp, &news);
	return URN_KEEP_DONE;
}

bool
urn_repair_missed(struct urn_tp *tp, struct urn_qp *qp, uint32_t psn)
{
	struct urn_board_news news = {.again_ns = UINT64_MAX};
	struct urn_repair *r = urn_qp_selective(tp, qp) ? urn_repair_get(tp, qp) : NULL;

	if (!r)
		return false;
	urn_board_advance(&r->resp, urn_psn_tx_response(&qp->tx));
	if (!urn_board_missed(&r->resp, psn, tp->now))
		return false;
	looked(tp, qp, &news);
	return true;
}

bool
urn_repair_asked(const struct urn_tp *tp, const struct urn_qp *qp, uint32_t psn)
{
	const struct urn_repair *r = urn_repair_of(tp, &qp->tx);

	if (psn != urn_psn_tx_response(&qp->tx))
		return false;
	return (qp->tx.flags & URN_TXF_WENT_BACK) ||
	       (r && r->resp.n && r->resp.gap[0].first == psn && r->resp.gap[0].tries);
}

struct rte_mbuf *
urn_repair_take(struct urn_tp *tp, struct urn_qp *qp)
{
	struct urn_repair *r = urn_repair_of(tp, &qp->tx);
	struct rte_mbuf *m = r ? urn_ring_first(r->kept) : NULL;

	if (!m || urn_psn_diff(urn_pkt(m)->psn, urn_psn_tx_response(&qp->tx)) > 0)
		return NULL;
	r->kept_n--;
	urn_kept_count(tp, qp->share, -1);
	return urn_ring_pop(&r->kept);
}

void
urn_repair_came(struct urn_tp *tp, struct urn_qp *qp, uint32_t psn)
{
	struct urn_board_news news = {.again_ns = UINT64_MAX};
	struct urn_repair *r = urn_repair_of(tp, &qp->tx);

	urn_board_came(&r->resp, psn, urn_psn_add(psn, 1), tp->now, &news);
	urn_peer_learn(urn_qp_peer(tp, qp), &news);
}

/* ---- parts of READs that are asked for again */

bool
urn_repair_part(struct urn_tp *tp, struct urn_qp *qp, struct rte_mbuf *m)
{
	struct urn_repair *r = urn_repair_get(tp, qp);

	if (!r || r->parts_n >= URN_REPAIR_PARTS || !urn_kept_room(tp, qp->share))
		return false;
	urn_pkt(m)->next = NULL;
	if (r->parts)
		urn_pkt(r->parts_tail)->next = m;
	else
		r->parts = m;
	r->parts_tail = m;
	r->parts_n++;
	urn_kept_count(tp, qp->share, 1);
	qp->flags |= URN_QPF_PARTS;
	urn_tp_sched(tp, qp);
	return true;
}

void
urn_repair_part_done(struct urn_tp *tp, struct urn_qp *qp)
{
	struct urn_repair *r = urn_repair_of(tp, &qp->tx);
	struct rte_mbuf *m = r->parts;

	r->parts = urn_pkt(m)->next;
	r->parts_n--;
	urn_kept_count(tp, qp->share, -1);
	rte_pktmbuf_free(m);
	if (r->parts)
		return;
	qp->flags &= ~(uint32_t)URN_QPF_PARTS;
	urn_repair_settle(tp, qp);
}

/* ---- sending again */

/* Send a lost stretch of requests again. returns: false when this must be tried again later */
static bool
resend(struct urn_tp *tp, struct urn_qp *qp, struct urn_gap *g, unsigned int *budget)
{
	struct urn_work *w = NULL;
	uint32_t next;

	while ((w = urn_psn_again(&qp->tx, g, w))) {
		if (!*budget || !urn_tp_tx_ops(tp))
			return false;
		next = urn_req_resend(tp, qp, w, g->cur, urn_psn_add(g->cur, 1) == g->end);
		if (next == g->cur)
			return false;
		--*budget;
		urn_board_asked(g, urn_psn_diff(next, g->end) < 0 ? next : g->end, tp->now);
	}
	if (g->state == URN_GAP_LOST)
		urn_board_asked(g, g->end, tp->now); /* the rest is left to others */
	return true;
}

/* Ask again for responses that were lost. returns: false when this must be tried again later */
static bool
refetch(struct urn_tp *tp, struct urn_qp *qp, struct urn_gap *g, unsigned int *budget)
{
	struct urn_work *w = NULL;
	uint32_t first, end;

	while ((w = urn_psn_again_response(&qp->tx, g, w, &first, &end))) {
		if (!*budget || !urn_tp_tx_ops(tp) || !urn_req_refetch(tp, qp, w, first, end))
			return false;
		--*budget;
		urn_board_asked(g, end, tp->now);
	}
	if (g->state == URN_GAP_LOST)
		urn_board_asked(g, g->end, tp->now); /* no response in the gap is waited for */
	return true;
}

bool
urn_repair_tx(struct urn_tp *tp, struct urn_qp *qp, unsigned int *budget)
{
	struct urn_repair *r = urn_repair_of(tp, &qp->tx);
	uint64_t due;
	bool done = true;

	for (uint32_t i = 0; done && i < r->resp.n; i++)
		if (r->resp.gap[i].state == URN_GAP_LOST)
			done = refetch(tp, qp, &r->resp.gap[i], budget);
	for (uint32_t i = 0; done && i < r->req.n; i++)
		if (r->req.gap[i].state == URN_GAP_LOST)
			done = resend(tp, qp, &r->req.gap[i], budget);
	if (!urn_repair_of(tp, &qp->tx) || !done)
		return !done;
	due = urn_repair_look(tp, qp);
	if (due != UINT64_MAX)
		urn_req_wake_at(tp, qp, due);
	return false;
}
