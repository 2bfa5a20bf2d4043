/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Paths are made anew (FO-19): those of an adapter that came back, here or at the peer, and those
 * that were left, whose queue pairs are in the error state. Both ends make new queue pairs, tell
 * each other of them over the control paths that are left (session/heal.h), and connect them. Then
 * the path carries probes, and counts as alive for the machine when it has carried enough. Nobody
 * gives up: offers are repeated, with longer and longer pauses, as long as there is the connection.
 */
#include "verbs/front.h"
#include "verbs/session/heal.h"
#include "verbs/session/log.h"
#include "verbs/session/srq.h"

#include <errno.h>
#include <string.h>

enum {
	URN_SV_PROBES = 5,	     /* probes that a path carries before it is trusted */
	URN_SV_PROVEN = 50,	     /* times of a probe until a trusted path is proven */
	URN_SV_PAUSE_MOST_MS = 2000, /* between offers that nobody answers */
	URN_SV_REMAKES = 16, /* paths made anew in a turn of the thread, which has the lock */
};

static uint32_t
urn_sv_place_of(const struct urn_sv_path *p)
{
	return p->mine * URN_SV_ADAPTERS + p->theirs;
}

static uint32_t
urn_sv_bit_of(const struct urn_sv_path *p)
{
	return urn_sv_bit(p->qp, urn_sv_place_of(p));
}

static bool
urn_sv_alive(const struct urn_sv_path *p)
{
	return (p->qp->c.alive & 1u << urn_sv_bit_of(p)) != 0;
}

/* True when the machine uses a path, has not drained it, or is about to use it. */
static bool
urn_sv_busy(const struct urn_sv_path *p)
{
	const struct urn_sess_conn *c = &p->qp->c;
	uint32_t bit = urn_sv_bit_of(p);

	return (c->open && c->path == bit) || (c->state == URN_SESS_BINDING && c->next == bit);
}

/* True when paths of a connection can be made anew. */
static bool
urn_sv_heals(const struct urn_sv_qp *q)
{
	return q->mode == URN_SV_SESSION && q->ctx->options.probe != 0 && !q->left && !q->told &&
	       q->c.state != URN_SESS_DEAD && q->ibv.state == IBV_QPS_RTS;
}

void
urn_sv_heal_begin(struct urn_sv_qp *q)
{
	for (uint32_t i = 0; i < URN_SV_PATHS; i++) {
		struct urn_sess_heal end = q->path[i].heal.end;

		q->path[i].heal =
			(struct urn_sv_heal){.pause = q->ctx->options.probe, .peer_trusts = true};
		if (end.own <= 1)
			urn_sess_heal_begin(&q->path[i].heal.end);
		else
			q->path[i].heal.end = (struct urn_sess_heal){.own = end.own, .seen = 1};
	}
}

void
urn_sv_heal_keep(struct urn_sv_qp *q, const struct ibv_qp_attr *attr, int mask)
{
	if (mask & IBV_QP_ACCESS_FLAGS)
		q->init.qp_access_flags = q->rtr.qp_access_flags = attr->qp_access_flags;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		q->rtr.min_rnr_timer = attr->min_rnr_timer;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		q->rtr.max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IBV_QP_TIMEOUT)
		q->rts.timeout = attr->timeout;
	if (mask & IBV_QP_RETRY_CNT)
		q->rts.retry_cnt = attr->retry_cnt;
	if (mask & IBV_QP_RNR_RETRY)
		q->rts.rnr_retry = attr->rnr_retry;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		q->rts.max_rd_atomic = attr->max_rd_atomic;
	/* Queue pairs that are on their way have the attributes of before. */
	for (uint32_t i = 0; i < URN_SV_PATHS; i++)
		q->path[i].heal.fresh = false;
}

/* ---- queue pairs */

/* The queue pair of the program's traffic. P-P's keeps its number, by which peers know the
 * connection, as long as its adapter is there. returns: 0 or an errno value with its text */
static int
urn_sv_remake_real(struct urn_sv_path *p)
{
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	struct urn_sv_qp *q = p->qp;

	if (q->srq != NULL && p->real != NULL) /* receives that it gives back */
		urn_sv_cq_drain((struct urn_sv_cq *)q->ibv.recv_cq, p->mine);
	if (p == &q->path[0] && p->real != NULL && !urn_sv_srq_stale(p)) {
		urn_sv_path_end(p, false);
		p->given = false;
		p->shut_at = 0;
		return ibv_modify_qp(p->real, &reset, IBV_QP_STATE);
	}
	if (p == &q->path[0] && q->listener != 0) {
		urn_sv_unlisten(q);
		q->lost = true; /* another queue pair may get its number */
	}
	urn_sv_path_end(p, true);
	return urn_sv_real_anew(p);
}

/* When the queue pairs of a path may be made anew, ms: once in the time of a probe, whatever the
 * peer asks for. Honest peers repeat what they offer. */
static uint64_t
urn_sv_remake_due(const struct urn_sv_path *p)
{
	return p->heal.made_at != 0 ? p->heal.made_at + p->qp->ctx->options.probe : 0;
}

/* True when the adapter of a path lacks what new queue pairs need: the program's objects come after
 * the adapter. P-P's queue pair stays, as long as there is one. */
static bool
urn_sv_lacking(const struct urn_sv_path *p)
{
	return (p != &p->qp->path[0] || p->real == NULL || urn_sv_srq_stale(p)) &&
	       !urn_sv_ready(p->qp, p->mine);
}

/* True when this turn takes another path; if not, the queue pair is the first of the next turn. */
static bool
urn_sv_remake_room(const struct urn_sv_qp *q)
{
	struct urn_sv_ctx *ctx = q->ctx;

	if (ctx->remade < URN_SV_REMAKES)
		return true;
	if (ctx->heal_next == 0)
		ctx->heal_next = q->ibv.qp_num;
	return false;
}

/* Make the queue pairs of a path anew, unconnected. returns: 0 or an errno value with its text */
static int
urn_sv_remake(struct urn_sv_path *p)
{
	struct urn_sv_heal *h = &p->heal;
	int err;

	p->qp->ctx->remade++;
	if (urn_sv_alive(p))
		urn_sv_down(p->qp, urn_sv_bit_of(p));
	/* A round that was made in vain has not been told: peers believe no end that is far ahead.
	 */
	if (!h->vain)
		urn_sess_heal_made(&h->end);
	h->made_at = urn_sv_now_ms();
	h->fresh = h->probing = h->peer_trusts = h->peer_lost = false;
	h->carried = 0;
	p->ctl_ok = false;
	p->ctl_busy = p->epoch = 0;
	err = urn_sv_remake_real(p);
	if (err == 0)
		err = urn_sv_ctl_make(p->qp, p);
	if (err == 0)
		err = urn_sv_path_init(p);
	if (err == 0)
		urn_sv_path_psns(p);
	h->vain = err != 0;
	h->fresh = err == 0;
	return err;
}

/* Connect the queue pairs of a path to the peer's. returns: 0 or an errno value with its text */
static int
urn_sv_connect(struct urn_sv_path *p, const struct urn_sess_offer *o)
{
	const int mask = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			 IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	const struct urn_sv_ends to = {o->qpn, o->psn, o->ctl_qpn, o->ctl_psn};
	struct ibv_qp_attr rts = p->qp->rts;
	int err;

	memcpy(p->gid, o->gid, sizeof(p->gid));
	p->key = o->key;
	err = urn_sv_path_rtr(p->qp, p, &to);
	rts.qp_state = IBV_QPS_RTS;
	rts.sq_psn = p->psn;
	if (err == 0)
		err = ibv_modify_qp(p->real, &rts, mask);
	if (err == 0)
		err = urn_sv_ctl_connect(p->qp, p, &to);
	/* The peer's end is not known to be connected: nothing is sent until then. */
	p->ctl_ok = false;
	p->heal.peer_lost = false;
	if (err == 0)
		urn_sess_heal_connected(&p->heal.end, o->round, false);
	else
		p->heal.fresh = false;
	return err;
}

/* ---- offers and probes */

/* True when the peer may return to a path. */
static bool
urn_sv_offers_trust(const struct urn_sv_path *p)
{
	urn_sv_srq_shun(p->qp);
	return (p->qp->c.alive & ~p->qp->c.shun & 1u << urn_sv_bit_of(p)) != 0;
}

/* The flags of an offer. An end that is neither trusted nor fresh is only waiting to be made anew.
 */
static uint32_t
urn_sv_offer_flags(const struct urn_sv_path *p)
{
	return (urn_sv_offers_trust(p) ? URN_SESS_O_TRUSTED : 0) |
	       (p->heal.peer_trusts ? URN_SESS_O_KNOWN : 0) |
	       (!urn_sv_alive(p) && !p->heal.fresh ? URN_SESS_O_LOST : 0);
}

static void
urn_sv_offer(struct urn_sv_path *p)
{
	uint8_t bytes[URN_SESS_WIRE_OFFER_BYTES];
	struct urn_sv_qp *q = p->qp;
	struct urn_sess_offer o = {
		.path = urn_sv_bit_of(p),
		.flags = urn_sv_offer_flags(p),
		.round = p->heal.end.own,
		.to = p->heal.end.to,
	};

	if (p->real == NULL || p->ctl == NULL || p->heal.vain || q->pd->remote_mr[p->mine] == NULL)
		return;
	o.qpn = p->real->qp_num;
	o.psn = p->psn;
	o.ctl_qpn = p->ctl->qp_num;
	o.ctl_psn = p->ctl_psn;
	o.key = q->pd->remote_mr[p->mine]->rkey;
	memcpy(o.gid, q->ctx->gid[p->mine].raw, sizeof(o.gid));
	urn_sv_log_offer(q, "tell", q->c.epoch, &o);
	urn_sv_control_send(q, bytes, urn_sess_wire_offer(bytes, q->peer.number, q->c.epoch, &o));
}

/* Both ends are connected to each other. flags: of the peer's offer */
static void
urn_sv_agreed(struct urn_sv_path *p, uint32_t flags)
{
	struct urn_sv_heal *h = &p->heal;

	if (!h->end.agreed) {
		h->end.agreed = true;
		h->due = 0;
		p->ctl_ok = true;
		pthread_cond_broadcast(&p->qp->ctx->cond); /* an end that leaves tells it so */
	}
	/* Offers overtake each other: an older one does not undo the word of a loss. */
	h->peer_lost = h->peer_lost || (flags & URN_SESS_O_LOST) != 0;
	h->peer_trusts = !h->peer_lost && (flags & URN_SESS_O_TRUSTED) != 0;
	/* An end that does not trust the path has nothing that the peer must know: two such ends
	 * would answer each other for ever. */
	if (urn_sv_offers_trust(p) && !(flags & URN_SESS_O_KNOWN))
		urn_sv_offer(p);
}

/* Carry out a step that changes this end. returns: false: not now, or in vain */
static bool
urn_sv_heal_step(struct urn_sv_path *p, enum urn_sess_heal_step step,
		 const struct urn_sess_offer *o)
{
	if (step == URN_SESS_HEAL_REMAKE || step == URN_SESS_HEAL_REMAKE_CONNECT) {
		/* The peer has lost the path: it is left first. */
		if (urn_sv_alive(p))
			urn_sv_down(p->qp, urn_sv_bit_of(p));
		if (urn_sv_busy(p) || urn_sv_now_ms() < urn_sv_remake_due(p))
			return false;
		if (!urn_sv_remake_room(p->qp) || !urn_sv_srq_given(p, urn_sv_now_ms())) {
			/* A later turn makes the path anew by itself, and offers it. */
			p->heal.fresh = false;
			p->heal.due = 0;
			return false;
		}
		if (urn_sv_lacking(p) || urn_sv_remake(p) != 0)
			return false;
	}
	if (step == URN_SESS_HEAL_REMAKE)
		return true;
	if (!p->heal.fresh || urn_sv_busy(p) || urn_sv_connect(p, o) != 0)
		return false;
	if (o->to == p->heal.end.own)
		urn_sv_agreed(p, o->flags);
	return true;
}

void
urn_sv_heal_heard(struct urn_sv_qp *q, const struct urn_sess_offer *o)
{
	enum urn_sess_heal_step step;
	struct urn_sv_path *p;

	if (!urn_sv_heals(q) || o->path >= URN_SV_PATHS)
		return;
	p = urn_sv_at(q, o->path);
	if (q->ctx->dead[p->mine] || q->ctx->down[p->mine])
		return; /* there is no end here, or nothing reaches it */
	step = urn_sess_heal_judge(&p->heal.end, o->round, o->to);
	q->offers[step]++;
	switch (step) {
	case URN_SESS_HEAL_OLD:
	case URN_SESS_HEAL_FORGED:
		break;
	case URN_SESS_HEAL_AGREED:
		urn_sv_agreed(p, o->flags);
		break;
	case URN_SESS_HEAL_TELL:
		urn_sv_offer(p);
		break;
	default:
		if (urn_sv_heal_step(p, step, o))
			urn_sv_offer(p);
		break;
	}
}

void
urn_sv_heal_lost(struct urn_sv_path *p)
{
	p->heal.due = 0;
	if (urn_sv_heals(p->qp))
		urn_sv_offer(p);
}

void
urn_sv_heal_reported(struct urn_sv_qp *q, uint32_t paths)
{
	for (uint32_t bit = 0; bit < URN_SV_PATHS; bit++)
		if (!(paths & ~(paths >> URN_SESS_PATHS) & 1u << bit))
			urn_sv_at(q, bit)->heal.peer_trusts = false;
}

void
urn_sv_heal_carried(struct urn_sv_path *p)
{
	struct urn_sv_qp *q = p->qp;

	p->heal.probing = false;
	if (!urn_sv_heals(q) || !p->heal.fresh || !p->heal.end.agreed || urn_sv_alive(p))
		return;
	if (++p->heal.carried < URN_SV_PROBES)
		return;
	p->heal.fresh = false;
	p->heal.trusted_at = urn_sv_now_ms();
	p->heal.due = 0;
	p->heal.pause = q->ctx->options.probe;
	urn_sess_up(&q->c, urn_sv_bit_of(p));
	urn_sv_log_up(q, urn_sv_bit_of(p));
	urn_sv_offer(p);
	urn_sv_link_leave(q);
}

/* Offer, and do so again after a longer pause. */
static void
urn_sv_offer_again(struct urn_sv_path *p, uint64_t now)
{
	struct urn_sv_heal *h = &p->heal;

	urn_sv_offer(p);
	h->due = now + h->pause;
	h->pause = 2 * h->pause < URN_SV_PAUSE_MOST_MS ? 2 * h->pause : URN_SV_PAUSE_MOST_MS;
}

/* Do what is due on a path that is not alive. */
static void
urn_sv_heal_dead(struct urn_sv_path *p, uint64_t now)
{
	struct urn_sv_heal *h = &p->heal;

	if (!h->fresh || (h->end.agreed && !p->ctl_ok)) {
		h->due = urn_sv_remake_due(p);
		if (now < h->due)
			return;
		if (!urn_sv_remake_room(p->qp) || !urn_sv_srq_given(p, now)) {
			h->due = now + URN_SV_TURN_MS;
			return;
		}
		if (urn_sv_lacking(p)) {
			h->due = now + p->qp->ctx->options.probe;
			return;
		}
		(void)urn_sv_remake(p);
	}
	if (h->end.agreed) {
		h->due = now + p->qp->ctx->options.probe;
		if (!h->probing)
			h->probing = urn_sv_control_probe(p);
		return;
	}
	urn_sv_offer_again(p, now);
}

/* Do what is due on a path. returns: ms: when to look again; UINT64_MAX: no need to */
static uint64_t
urn_sv_heal_path(struct urn_sv_path *p, uint64_t now)
{
	struct urn_sv_heal *h = &p->heal;

	if (p->qp->ctx->dead[p->mine] || p->qp->ctx->down[p->mine] ||
	    (urn_sv_alive(p) && h->peer_trusts))
		return UINT64_MAX;
	if (urn_sv_busy(p))
		return urn_sv_alive(p) ? UINT64_MAX : now + p->qp->ctx->options.probe;
	if (now < h->due)
		return h->due;
	if (urn_sv_alive(p)) /* the peer has not said yet that it trusts the path */
		urn_sv_offer_again(p, now);
	else
		urn_sv_heal_dead(p, now);
	return h->due;
}

/* True when paths that both ends trust, beside the one in use and a better one, outlast the loss of
 * either adapter of the better one. The path in use is left by a return, and is not one of them. */
static bool
urn_sv_outlasted(struct urn_sv_qp *q, uint32_t better)
{
	const struct urn_sv_path *b = urn_sv_at(q, better);
	bool mine = false, theirs = false;

	for (uint32_t bit = 0; bit < URN_SV_PATHS; bit++) {
		const struct urn_sv_path *p = urn_sv_at(q, bit);

		if (bit == better || bit == q->c.path || !urn_sv_alive(p) || !p->heal.peer_trusts)
			continue;
		mine |= p->mine != b->mine;
		theirs |= p->theirs != b->theirs;
	}
	return mine && theirs;
}

/*
 * FO-19: traffic returns to the best path that both ends trust, if the connection would outlast
 * another loss of it, or else once the path is proven.
 *
 * now: ms
 * returns: ms: when the path is proven; UINT64_MAX: nothing to wait for
 */
static uint64_t
urn_sv_fail_back(struct urn_sv_qp *q, uint64_t now)
{
	const struct urn_sv_path *p;
	uint32_t better;
	uint64_t proven;

	urn_sv_srq_shun(q);
	better = q->c.alive & ~q->c.shun & ((1u << q->c.path) - 1);
	if (!q->ctx->options.fail_back || q->c.state != URN_SESS_CONNECTED || better == 0 ||
	    !urn_sv_at(q, (uint32_t)__builtin_ctz(better))->heal.peer_trusts)
		return UINT64_MAX;
	p = urn_sv_at(q, (uint32_t)__builtin_ctz(better));
	proven = p->heal.trusted_at + (uint64_t)URN_SV_PROVEN * q->ctx->options.probe;
	if (p->heal.trusted_at != 0 && now < proven &&
	    !urn_sv_outlasted(q, (uint32_t)__builtin_ctz(better)))
		return proven;
	q->why = "a better path is trusted again";
	urn_sess_fail_back(&q->c);
	q->why = NULL;
	urn_sv_after(q);
	return UINT64_MAX;
}

/* Do what is due of a queue pair. returns: like urn_sv_heal_path() */
static uint64_t
urn_sv_heal_qp(struct urn_sv_qp *q, uint64_t now)
{
	uint64_t next = UINT64_MAX, back;

	if (!urn_sv_heals(q))
		return UINT64_MAX;
	for (uint32_t i = 0; i < URN_SV_PATHS; i++) {
		uint64_t its = urn_sv_heal_path(&q->path[i], now);

		next = its < next ? its : next;
	}
	back = urn_sv_fail_back(q, now);
	return back < next ? back : next;
}

/* The queue pair for which the turn before had no room; else the first one. */
static struct urn_sv_qp *
urn_sv_heal_first(struct urn_sv_ctx *ctx)
{
	struct urn_sv_qp *q;

	LIST_FOREACH(q, &ctx->qps, link)
		if (q->ibv.qp_num == ctx->heal_next)
			return q;
	return LIST_FIRST(&ctx->qps);
}

uint64_t
urn_sv_heal_tick(struct urn_sv_ctx *ctx, uint64_t now)
{
	struct urn_sv_qp *first = urn_sv_heal_first(ctx), *q = first;
	uint64_t next = UINT64_MAX;

	ctx->heal_next = 0;
	while (q != NULL) {
		uint64_t its = urn_sv_heal_qp(q, now);

		next = its < next ? its : next;
		q = LIST_NEXT(q, link);
		if (q == NULL)
			q = LIST_FIRST(&ctx->qps);
		if (q == first)
			break;
	}
	ctx->remade = 0;
	return next;
}
