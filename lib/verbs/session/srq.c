/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues as objects: the program's, and those of the adapters. */
#include "verbs/session/srq.h"

#include "verbs/front.h"
#include "verbs/session/heal.h"
#include "verbs/session/log.h"

#include <urnic/attach.h>

#include <errno.h>
#include <stdlib.h>

/* ---- real queues */

/* Register the headers on an adapter. returns: 0 or an errno value with its text */
static int
urn_sv_srq_area(struct urn_sv_srq *s, uint32_t adapter)
{
	if (s->area_mr[adapter] != NULL)
		return 0;
	s->area_mr[adapter] =
		ibv_reg_mr(s->pd->below[adapter], s->area, s->size * sizeof(struct urn_sess_wire),
			   IBV_ACCESS_LOCAL_WRITE);
	return s->area_mr[adapter] != NULL ? 0 : errno;
}

/*
 * Make a queue's part of an adapter. The real queue has room for twice the receives: those that a
 * queue pair took and did not complete hold their places until that is gone. returns: 0 or an errno
 * value with its text
 */
static int
urn_sv_srq_below(struct urn_sv_srq *s, uint32_t adapter)
{
	uint32_t most = (uint32_t)urn_sv_ctx(s->pd->ibv.context)->device.orig_attr.max_srq_wr;
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 2 * s->size < most ? 2 * s->size : most,
						  .max_sge = s->max_sge + 1}};
	struct urn_sv_shared *on;
	int err;

	if (s->pd->below[adapter] == NULL)
		return urn_fail(EIO, "an adapter of the virtual device is away");
	err = urn_sv_srq_area(s, adapter);
	if (err != 0 || s->shared[adapter] != NULL)
		return err;
	on = calloc(1, sizeof(*on));
	if (on == NULL)
		return urn_fail(ENOMEM, "no memory for a shared receive queue");
	on->ibv = ibv_create_srq(s->pd->below[adapter], &init);
	if (on->ibv == NULL) {
		err = errno;
		free(on);
		return err;
	}
	s->shared[adapter] = on;
	return 0;
}

static void
urn_sv_shared_end(struct urn_sv_shared *on)
{
	(void)ibv_destroy_srq(on->ibv);
	free(on);
}

struct urn_sv_shared *
urn_sv_srq_use(struct urn_sv_srq *s, uint32_t adapter)
{
	int err = s->kind != URN_SV_SRQ_PLAIN ? urn_sv_srq_below(s, adapter) : 0;

	/* A plain queue is the primary adapter's, in one life of that. */
	if (s->kind == URN_SV_SRQ_PLAIN && (adapter != 0 || s->pd->below[0] == NULL ||
					    s->shared[0]->ibv->context != s->pd->below[0]->context))
		err = urn_fail(EIO, "the shared receive queue was the primary adapter's before "
				    "that was lost: make another one");
	if (err != 0) {
		errno = err;
		return NULL;
	}
	s->shared[adapter]->users++;
	return s->shared[adapter];
}

void
urn_sv_srq_leave(struct urn_sv_shared *on)
{
	if (--on->users == 0 && on->spoiled)
		urn_sv_shared_end(on);
}

void
urn_sv_srq_spoil(struct urn_sv_srq *s, uint32_t adapter)
{
	struct urn_sv_shared *on = s->shared[adapter];

	s->shared[adapter] = NULL;
	if (on == NULL)
		return;
	on->spoiled = true;
	if (on->users == 0)
		urn_sv_shared_end(on);
}

void
urn_sv_srq_lost(struct urn_sv_srq *s, uint32_t adapter)
{
	if (s->area_mr[adapter] != NULL)
		(void)ibv_dereg_mr(s->area_mr[adapter]);
	s->area_mr[adapter] = NULL;
	if (s->kind == URN_SV_SRQ_PLAIN && adapter == 0)
		return; /* lost, and in the hands of the program (wreck.c) */
	urn_sv_srq_spoil(s, adapter);
	for (uint32_t i = 0; i < s->size; i++)
		if (s->slot[i].state == URN_SV_SLOT_ON && s->slot[i].on == adapter)
			urn_sv_srq_back(s, i);
}

/* ---- kinds */

/* Post what is kept to the primary adapter as it is. */
static void
urn_sv_srq_plain(struct urn_sv_srq *s)
{
	s->life = urn_sv_life_more(urn_sv_ctx(s->pd->ibv.context));
	while (s->kept != URN_SV_SLOT_NONE) {
		struct urn_sv_slot *r = &s->slot[s->kept];
		struct ibv_sge *sge = &s->sge[(size_t)s->kept * s->max_sge];
		struct ibv_recv_wr *bad,
			wr = {.wr_id = r->wr_id, .sg_list = sge, .num_sge = (int)r->num_sge};

		s->kept = r->next;
		for (uint32_t i = 0; i < r->num_sge; i++)
			sge[i].lkey = urn_sv_pd_key(s->pd, 0, sge[i].lkey);
		/* EIO is the end of the adapter, and the queue's, too; there is room. */
		(void)ibv_post_srq_recv(s->shared[0]->ibv, &wr, &bad);
	}
	s->held = 0;
}

int
urn_sv_srq_decide(struct urn_sv_srq *s, bool session)
{
	enum urn_sv_srq_kind kind = session ? URN_SV_SRQ_SESSION : URN_SV_SRQ_PLAIN;
	int err;

	if (s->kind == kind)
		return 0;
	if (s->kind != URN_SV_SRQ_OPEN)
		return urn_fail(EOPNOTSUPP,
				"the shared receive queue has queue pairs %s a session, and this "
				"one is %s: use another queue for it",
				session ? "without" : "with", session ? "with" : "without");
	err = session ? 0 : urn_sv_srq_below(s, 0);
	if (err != 0)
		return err;
	if (!session)
		urn_sv_srq_plain(s);
	s->kind = kind;
	urn_sv_log_device(urn_sv_ctx(s->pd->ibv.context), URN_SV_E_QUEUE,
			  "shared receive queue %u is for queue pairs %s a session", s->ibv.handle,
			  session ? "with" : "without");
	/* A session's home arms it when the first connection joins. */
	if (!session && s->limit != 0)
		(void)urn_sv_srq_arm(s);
	return 0;
}

bool
urn_sv_srq_first(const struct urn_sv_qp *q, const struct ibv_cq *cq)
{
	const struct urn_sv_qp *other;

	if (q->srq == NULL)
		return false;
	LIST_FOREACH(other, &q->ctx->qps, link)
		if (other != q && other->srq == q->srq && other->ibv.recv_cq == cq)
			return false;
	return true;
}

/* ---- the program's queues */

static void
urn_sv_srq_free_all(struct urn_sv_srq *s)
{
	for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++) {
		if (s->shared[i] != NULL)
			urn_sv_shared_end(s->shared[i]);
		if (s->area_mr[i] != NULL)
			(void)ibv_dereg_mr(s->area_mr[i]);
	}
	urn_free(s->area);
	free(s->slot);
	free(s->sge);
}

/* returns: 0 or an errno value with its text */
static int
urn_sv_srq_check(const struct urn_sv_ctx *ctx, const struct ibv_srq_attr *attr)
{
	const struct ibv_device_attr *d = &ctx->device.orig_attr;

	if (attr->max_wr != 0 && attr->max_wr <= (uint32_t)d->max_srq_wr &&
	    attr->max_sge <= (uint32_t)d->max_srq_sge)
		return 0;
	return urn_fail(EINVAL,
			"a shared receive queue of a virtual device has 1 to %d entries of at most "
			"%d elements, not %u of %u",
			d->max_srq_wr, d->max_srq_sge, attr->max_wr, attr->max_sge);
}

/* Make rings and headers. returns: 0 or an errno value with its text */
static int
urn_sv_srq_rings(struct urn_sv_srq *s, const struct ibv_srq_attr *attr)
{
	s->size = urn_sv_power(attr->max_wr);
	s->max_sge = attr->max_sge != 0 ? attr->max_sge : 1;
	s->slot = calloc(s->size, sizeof(*s->slot));
	s->sge = calloc((size_t)s->size * s->max_sge, sizeof(*s->sge));
	s->area = urn_alloc(s->size * sizeof(struct urn_sess_wire));
	if (s->slot == NULL || s->sge == NULL || s->area == NULL)
		return urn_fail(ENOMEM, "no memory for a shared receive queue");
	s->free = s->kept = URN_SV_SLOT_NONE;
	for (uint32_t i = s->size; i-- != 0; s->free = i)
		s->slot[i].next = s->free;
	return 0;
}

/* Make a queue on each adapter that is there, at least on one (FO-4). returns: 0 or an errno value
 */
static int
urn_sv_srq_make(struct urn_sv_srq *s, const struct ibv_srq_attr *attr)
{
	int err = urn_sv_srq_check(urn_sv_ctx(s->pd->ibv.context), attr), made = EIO;

	if (err == 0)
		err = urn_sv_srq_rings(s, attr);
	for (uint32_t i = 0; i < URN_SV_ADAPTERS && (err == 0 || err == EIO); i++) {
		err = urn_sv_srq_below(s, i);
		made = err == 0 ? 0 : made;
	}
	return err == EIO ? made : err;
}

struct ibv_srq *
urn_sv_create_srq(struct ibv_pd *pd, struct ibv_srq_attr *attr, const struct ibv_cq *cq)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(pd->context);
	struct urn_sv_srq *s = urn_object_alloc(sizeof(*s));
	int err;

	(void)cq;
	if (s == NULL)
		return NULL;
	s->pd = (struct urn_sv_pd *)pd;
	urn_sv_lock_first(ctx);
	err = urn_sv_srq_make(s, attr);
	if (err == 0)
		LIST_INSERT_HEAD(&ctx->srqs, s, link);
	else
		urn_sv_srq_free_all(s);
	urn_sv_unlock(ctx);
	if (err != 0) {
		free(s);
		errno = err;
		return NULL;
	}
	attr->max_wr = s->size;
	s->ibv.handle = s->shared[s->shared[0] == NULL]->ibv->handle;
	atomic_fetch_add(&s->pd->objects, 1);
	return &s->ibv;
}

int
urn_sv_modify_srq(struct ibv_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
	struct urn_sv_srq *s = (struct urn_sv_srq *)srq;
	struct urn_sv_ctx *ctx = urn_sv_ctx(s->pd->ibv.context);
	int err = urn_sv_forked(ctx);

	if (err != 0 || !(mask & IBV_SRQ_LIMIT))
		return err;
	if (attr->srq_limit > s->size)
		return urn_fail(EINVAL,
				"the limit %u is more than the %u entries of the shared "
				"receive queue",
				attr->srq_limit, s->size);
	urn_sv_lock_first(ctx);
	s->limit = attr->srq_limit;
	err = urn_sv_srq_arm(s);
	urn_sv_unlock(ctx);
	return err;
}

int
urn_sv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	struct urn_sv_srq *s = (struct urn_sv_srq *)srq;
	struct urn_sv_ctx *ctx = urn_sv_ctx(s->pd->ibv.context);

	urn_sv_lock(ctx);
	*attr = (struct ibv_srq_attr){
		.max_wr = s->size, .max_sge = s->max_sge, .srq_limit = s->limit};
	urn_sv_unlock(ctx);
	return 0;
}

/* ---- events */

int
urn_sv_srq_arm(struct urn_sv_srq *s)
{
	const struct urn_sv_shared *on = s->shared[s->home];
	struct ibv_srq_attr attr = {.srq_limit = s->limit};
	int err;

	if (s->kind == URN_SV_SRQ_OPEN || on == NULL)
		return 0; /* armed when the receives are there */
	err = ibv_modify_srq(on->ibv, &attr, IBV_SRQ_LIMIT);
	/* An adapter that is lost is followed by another one. */
	return err == EIO && s->kind == URN_SV_SRQ_SESSION ? 0 : err;
}

bool
urn_sv_srq_limit(struct urn_sv_ctx *ctx, const struct ibv_srq *below)
{
	struct urn_sv_srq *s;

	LIST_FOREACH(s, &ctx->srqs, link)
		if (s->shared[s->home] != NULL && s->shared[s->home]->ibv == below)
			break;
	if (s == NULL || s->limit == 0 || s->due)
		return false;
	s->limit = 0;
	s->due = true;
	return true;
}

int
urn_sv_destroy_srq(struct ibv_srq *srq)
{
	struct urn_sv_srq *s = (struct urn_sv_srq *)srq;
	struct urn_sv_ctx *ctx = urn_sv_ctx(s->pd->ibv.context);

	urn_sv_lock_first(ctx);
	if (s->users != 0) {
		urn_sv_unlock(ctx);
		return urn_fail(EBUSY,
				"the shared receive queue is used by %u queue pairs: "
				"destroy those first",
				s->users);
	}
	LIST_REMOVE(s, link);
	if (s->due)
		urn_sv_event_hush(ctx);
	urn_sv_srq_free_all(s);
	urn_sv_unlock(ctx);
	if (!ctx->forked) /* threads of the parent acknowledge nothing here */
		urn_acks_wait(&srq->mutex, &srq->cond, &srq->events_completed, s->got);
	atomic_fetch_sub(&s->pd->objects, 1);
	if (s->life != NULL)
		urn_sv_life_leave(s->life);
	return 0;
}
