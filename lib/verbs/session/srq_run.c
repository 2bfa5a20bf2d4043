/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receives of shared receive queues: posted, completed, and found behind a queue pair that was
 * fenced. A completion of an adapter tells which queue pair had a receive; its header, which the
 * peer wrote, has to name the same connection. So no peer speaks for another one.
 */
#include "verbs/front.h"
#include "verbs/session/heal.h"
#include "verbs/session/srq.h"

#include <errno.h>
#include <string.h>

#define URN_SV_POSTS 0xffffffu /* bits of urn_sv_slot.posts in a wr_id */

/* ---- slots */

void
urn_sv_srq_free(struct urn_sv_srq *s, uint32_t at)
{
	s->slot[at].state = URN_SV_SLOT_FREE;
	s->slot[at].next = s->free;
	s->free = at;
}

/* Append a slot to the kept ones. */
static void
urn_sv_srq_hold(struct urn_sv_srq *s, uint32_t at)
{
	s->slot[at].state = URN_SV_SLOT_KEPT;
	s->slot[at].next = URN_SV_SLOT_NONE;
	if (s->kept == URN_SV_SLOT_NONE)
		s->kept = at;
	else
		s->slot[s->kept_last].next = at;
	s->kept_last = at;
}

/* Post a slot's receive to the home adapter. returns: 0 or an errno value */
static int
urn_sv_srq_post(struct urn_sv_srq *s, uint32_t at)
{
	struct urn_sv_slot *r = &s->slot[at];
	const struct ibv_sge *from = &s->sge[(size_t)at * s->max_sge];
	struct ibv_sge sge[URN_SV_SGES + 1];
	struct ibv_recv_wr wr = {.sg_list = sge, .num_sge = (int)r->num_sge + 1}, *bad;

	r->posts++;
	r->on = s->home;
	wr.wr_id = URN_SV_ID_RECV | (uint64_t)(r->posts & URN_SV_POSTS) << 32 | at;
	memset(&s->area[at], 0, sizeof(s->area[at]));
	sge[0] = (struct ibv_sge){(uintptr_t)&s->area[at], sizeof(s->area[at]),
				  s->area_mr[s->home]->lkey};
	for (uint32_t i = 0; i < r->num_sge; i++)
		sge[i + 1] = (struct ibv_sge){from[i].addr, from[i].length,
					      urn_sv_pd_key(s->pd, s->home, from[i].lkey)};
	return ibv_post_srq_recv(s->shared[s->home]->ibv, &wr, &bad);
}

void
urn_sv_srq_go(struct urn_sv_srq *s)
{
	const struct urn_sv_ctx *ctx = urn_sv_ctx(s->pd->ibv.context);

	if (s->kind != URN_SV_SRQ_SESSION || s->shared[s->home] == NULL || ctx->dead[s->home])
		return;
	while (s->kept != URN_SV_SLOT_NONE) {
		uint32_t at = s->kept, next = s->slot[at].next;

		/* A real queue that is full has room again soon, one that is gone has none. */
		if (urn_sv_srq_post(s, at) != 0)
			return;
		s->slot[at].state = URN_SV_SLOT_ON;
		s->kept = next;
	}
}

void
urn_sv_srq_back(struct urn_sv_srq *s, uint32_t at)
{
	urn_sv_srq_hold(s, at);
	urn_sv_srq_go(s);
}

/* ---- completions */

/* Read the header of a slot. returns: false: there is none */
static bool
urn_sv_srq_header(const struct urn_sv_srq *s, uint32_t at, struct urn_sess_header *h)
{
	/* The payload of a write with immediate data is not in the receive. */
	return urn_sess_header_get(&s->area[at], UINT32_MAX, h) &&
	       (h->op == (uint8_t)IBV_WC_RECV_RDMA_WITH_IMM || h->length <= s->slot[at].room);
}

void
urn_sv_srq_done(struct urn_sv_qp *q, uint32_t at, const struct urn_sess_header *h)
{
	uint64_t wr_id = q->srq->slot[at].wr_id;

	urn_sv_srq_free(q->srq, at);
	urn_sv_recv_tell(q, wr_id, h);
}

/* A message came whole. */
static void
urn_sv_srq_came(struct urn_sv_path *p, uint32_t at, const struct ibv_wc *wc)
{
	struct urn_sv_qp *q = p->qp;
	struct urn_sess_header h;
	bool ours = urn_sv_srq_header(q->srq, at, &h) && urn_sv_recv_fits(&h, wc) &&
		    h.conn == q->ibv.qp_num;

	h.acked = 0; /* like that of a queue pair's own receive (take.c) */
	if (ours && urn_sess_received(&q->c, p->epoch, &h)) {
		urn_sv_srq_done(q, at, &h);
		urn_sv_after(q);
		return;
	}
	urn_sv_srq_back(q->srq, at);
	urn_sv_kill(q); /* the peer breaks the protocol */
}

/* A receive failed for a reason of its own. */
static void
urn_sv_srq_failed(struct urn_sv_qp *q, uint32_t at, const struct ibv_wc *wc)
{
	struct ibv_wc told = *wc;

	told.wr_id = q->srq->slot[at].wr_id;
	told.qp_num = q->ibv.qp_num;
	urn_sv_srq_free(q->srq, at);
	urn_sv_push((struct urn_sv_cq *)q->ibv.recv_cq, &told, q, false, true);
	urn_sv_kill(q);
}

/* The queue pair gives a receive back that it had. The header may be that of a whole message, whose
 * completion was lost: the drain tells the machine of it. */
static void
urn_sv_srq_flushed(struct urn_sv_qp *q, uint32_t at)
{
	struct urn_sess_header h;

	if (!urn_sv_srq_header(q->srq, at, &h) || h.conn != q->ibv.qp_num) {
		urn_sv_srq_back(q->srq, at);
		return;
	}
	q->srq->slot[at].state = URN_SV_SLOT_LEFT;
	q->srq->slot[at].left = q;
}

void
urn_sv_srq_take(struct urn_sv_path *p, const struct ibv_wc *wc)
{
	uint32_t at = (uint32_t)wc->wr_id, posts = (uint32_t)(wc->wr_id >> 32) & URN_SV_POSTS;
	struct urn_sv_qp *q = p->qp;
	struct urn_sv_srq *s = q->srq;
	bool used = q->mode == URN_SV_SESSION && q->c.open && p == urn_sv_used(q);

	/* A receive that went elsewhere meanwhile is not this queue pair's any more. */
	if (at >= s->size || s->slot[at].state != URN_SV_SLOT_ON || s->slot[at].on != p->mine ||
	    (s->slot[at].posts & URN_SV_POSTS) != posts)
		return;
	if (!used)
		urn_sv_srq_back(s, at);
	else if (wc->status == IBV_WC_SUCCESS)
		urn_sv_srq_came(p, at, wc);
	else if (wc->status == IBV_WC_WR_FLUSH_ERR)
		urn_sv_srq_flushed(q, at);
	else
		urn_sv_srq_failed(q, at, wc);
}

/* ---- behind a queue pair */

/* The slot that a queue pair left with the lowest message id. returns: URN_SV_SLOT_NONE: none */
static uint32_t
urn_sv_srq_lowest(const struct urn_sv_qp *q, struct urn_sess_header *lowest)
{
	const struct urn_sv_srq *s = q->srq;
	uint32_t found = URN_SV_SLOT_NONE;
	struct urn_sess_header h;

	for (uint32_t i = 0; i < s->size; i++) {
		if (s->slot[i].state != URN_SV_SLOT_LEFT || s->slot[i].left != q ||
		    !urn_sv_srq_header(s, i, &h))
			continue;
		if (found != URN_SV_SLOT_NONE && h.id >= lowest->id)
			continue;
		*lowest = h;
		found = i;
	}
	return found;
}

void
urn_sv_srq_found(struct urn_sv_qp *q)
{
	struct urn_sv_srq *s = q->srq;
	struct urn_sess_header h;
	uint32_t at;

	while ((at = urn_sv_srq_lowest(q, &h)) != URN_SV_SLOT_NONE) {
		s->slot[at].state = URN_SV_SLOT_TOLD;
		/* More than a queue pair can have: a peer's headers say so, not the adapter. */
		if (!urn_sess_found(&q->c, at, &h))
			urn_sv_srq_back(s, at);
	}
}

/* Receives go back that a queue pair had, and the machine has not decided on. */
static void
urn_sv_srq_recall(struct urn_sv_qp *q)
{
	struct urn_sv_srq *s = q->srq;

	for (uint32_t i = 0; i < s->size; i++)
		if ((s->slot[i].state == URN_SV_SLOT_LEFT ||
		     s->slot[i].state == URN_SV_SLOT_TOLD) &&
		    s->slot[i].left == q)
			urn_sv_srq_back(s, i);
}

/* The device has no adapter left: all receives fail, as those of the last connection (FO-19). */
static void
urn_sv_srq_flush(struct urn_sv_qp *q)
{
	struct ibv_wc wc = {
		.status = IBV_WC_WR_FLUSH_ERR, .opcode = IBV_WC_RECV, .qp_num = q->ibv.qp_num};
	struct urn_sv_srq *s = q->srq;
	const struct urn_sv_qp *other;

	LIST_FOREACH(other, &q->ctx->qps, link)
		if (urn_sv_srq_lives(other, s))
			return;
	s->kept = URN_SV_SLOT_NONE;
	for (uint32_t i = 0; i < s->size; i++) {
		if (s->slot[i].state == URN_SV_SLOT_FREE)
			continue;
		wc.wr_id = s->slot[i].wr_id;
		urn_sv_srq_free(s, i);
		urn_sv_push((struct urn_sv_cq *)q->ibv.recv_cq, &wc, q, false, true);
	}
}

void
urn_sv_srq_dead(struct urn_sv_qp *q)
{
	if (q->srq == NULL)
		return;
	q->bound = false;
	urn_sv_srq_recall(q);
	urn_sv_last_want(q);
	if (q->ctx->dead[0] && q->ctx->dead[1])
		urn_sv_srq_flush(q);
	urn_sv_kick(q->ctx); /* others may wait for this connection to leave the home adapter */
}

void
urn_sv_srq_quit(struct urn_sv_qp *q)
{
	if (q->srq == NULL || q->srq->kind != URN_SV_SRQ_SESSION)
		return;
	q->bound = false;
	urn_sv_srq_recall(q);
	urn_sv_kick(q->ctx);
}

/* ---- from the program */

/* Keep a receive. returns: 0 or an errno value */
static int
urn_sv_srq_keep(struct urn_sv_srq *s, const struct ibv_recv_wr *wr)
{
	uint32_t at = s->free;
	struct urn_sv_slot *r;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > s->max_sge)
		return EINVAL;
	if (s->held >= s->size || at == URN_SV_SLOT_NONE)
		return ENOMEM;
	r = &s->slot[at];
	s->free = r->next;
	r->wr_id = wr->wr_id;
	r->num_sge = (uint32_t)wr->num_sge;
	r->room = 0;
	for (int i = 0; i < wr->num_sge; i++) {
		s->sge[(size_t)at * s->max_sge + (uint32_t)i] = wr->sg_list[i];
		r->room = r->room + wr->sg_list[i].length < r->room
				  ? UINT32_MAX
				  : r->room + wr->sg_list[i].length;
	}
	s->held++;
	urn_sv_srq_hold(s, at);
	return 0;
}

int
urn_sv_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct urn_sv_srq *s = (struct urn_sv_srq *)srq;
	struct urn_sv_ctx *ctx = urn_sv_ctx(s->pd->ibv.context);
	int err = 0;

	if (s->kind != URN_SV_SRQ_PLAIN) {
		urn_sv_lock(ctx);
		*bad = wr;
		err = ctx->forked ? EIO : 0;
		for (; s->kind != URN_SV_SRQ_PLAIN && wr != NULL && err == 0; wr = wr->next) {
			*bad = wr;
			err = urn_sv_srq_keep(s, wr);
		}
		urn_sv_srq_go(s);
		urn_sv_unlock(ctx);
	}
	/* A plain queue stays one, with its real queue. */
	return err == 0 && wr != NULL ? urn_sv_recv_plain(s->pd, NULL, s->shared[0]->ibv, wr, bad)
				      : err;
}
