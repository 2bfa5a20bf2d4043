/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Software completion queues (FO-3): a ring above the queues of all adapters. Every completion of
 * the program goes through the ring, so that those of drains and rebuilt ones keep their order.
 *
 * The ring has room for each request of the queue's queue pairs: with a session, a request is
 * posted only when the program has polled enough. Without one the queues below are the bound:
 * completions stay there while the ring can't grow.
 */
#include "verbs/front.h"
#include "verbs/session/heal.h"
#include "verbs/session/srq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Entries beyond those that the program asked for. */
enum { URN_SV_CQ_MORE = 64 };

/* Grow the ring; the lock is held. returns: 0 or ENOMEM with its text */
static int
urn_sv_cq_grow(struct urn_sv_cq *cq, uint32_t entries)
{
	uint32_t size = urn_sv_power(entries), n = cq->tail - cq->head;
	struct urn_sv_wc *ring;

	if (size <= cq->size)
		return 0;
	ring = calloc(size, sizeof(*ring));
	if (ring == NULL)
		return urn_fail(ENOMEM, "no memory for a completion queue");
	for (uint32_t i = 0; i < n; i++)
		ring[i] = cq->ring[(cq->head + i) & (cq->size - 1)];
	free(cq->ring);
	cq->ring = ring;
	cq->size = size;
	cq->head = 0;
	cq->tail = n;
	return 0;
}

static void
urn_sv_cq_free(struct urn_sv_cq *cq)
{
	for (int i = 0; i < URN_SV_ADAPTERS; i++)
		if (cq->below[i] != NULL)
			ibv_destroy_cq(cq->below[i]);
	free(cq->ring);
}

int
urn_sv_cq_below(struct urn_sv_cq *cq, struct urn_sv_ctx *ctx, uint32_t adapter)
{
	struct ibv_context *c = ctx->below[adapter];
	uint32_t load = cq->real_load != 0 ? urn_sv_power(cq->real_load + URN_SV_CQ_MORE) : 0;
	uint32_t cqe = load > (uint32_t)cq->ibv.cqe ? load : (uint32_t)cq->ibv.cqe;
	struct ibv_comp_channel *channel = cq->channel != NULL ? cq->channel->below[adapter] : NULL;

	cq->below[adapter] = ibv_create_cq(c, (int)cqe, cq, channel,
					   (int)(cq->vector % (uint32_t)c->num_comp_vectors));
	return cq->below[adapter] != NULL ? 0 : errno;
}

/* Make the ring, and a queue on each adapter that is there, at least on one. returns: 0 or an errno
 * value with its text */
static int
urn_sv_cq_make(struct urn_sv_cq *cq, struct urn_sv_ctx *ctx)
{
	int err = urn_fail(EIO, "both adapters of the virtual device are away");

	for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++) {
		int its = EIO;

		if (ctx->below[i] != NULL && (cq->channel == NULL || cq->channel->below[i] != NULL))
			its = urn_sv_cq_below(cq, ctx, i);
		if (its != 0 && its != EIO)
			return its;
		if (its == 0)
			err = 0;
	}
	return err == 0 ? urn_sv_cq_grow(cq, (uint32_t)cq->ibv.cqe + URN_SV_CQ_MORE) : err;
}

struct ibv_cq_ex *
urn_sv_create_cq(struct ibv_context *c, const struct ibv_cq_init_attr_ex *attr)
{
	struct urn_sv_cq *cq = urn_object_alloc(sizeof(*cq));
	struct urn_sv_ctx *ctx = urn_sv_ctx(c);
	int err;

	if (cq == NULL)
		return NULL;
	cq->channel = (struct urn_sv_channel *)attr->channel;
	cq->vector = attr->comp_vector;
	cq->ibv.cqe = (int)attr->cqe;
	cq->ibv.context = c;
	err = urn_sv_thread_start(ctx);
	if (err == 0)
		err = urn_sv_cq_make(cq, ctx);
	if (err != 0) {
		urn_sv_cq_free(cq);
		free(cq);
		errno = err;
		return NULL;
	}
	cq->ibv.handle = cq->below[cq->below[0] == NULL]->handle;
	urn_sv_cq_ex(cq);
	urn_sv_lock(ctx);
	LIST_INSERT_HEAD(&ctx->cqs, cq, link);
	urn_sv_unlock(ctx);
	return &cq->ex;
}

/* The ring and the queues below grow with the queue pairs; the program sees the size it wants. */
int
urn_sv_resize_cq(struct ibv_cq *ibcq, uint32_t cqe)
{
	struct urn_sv_cq *cq = (struct urn_sv_cq *)ibcq;
	struct urn_sv_ctx *ctx = urn_sv_ctx(ibcq->context);
	int err = urn_sv_forked(ctx);

	if (err != 0)
		return err;
	urn_sv_lock(ctx);
	err = urn_sv_cq_grow(cq, cqe + URN_SV_CQ_MORE);
	urn_sv_unlock(ctx);
	if (err == 0)
		ibcq->cqe = (int)cqe;
	return err;
}

/* Take a queue from the context's list, and destroy those below. returns: 0 or an errno value */
static int
urn_sv_cq_end(struct urn_sv_cq *cq)
{
	if (cq->load != 0)
		return urn_fail(EBUSY, "the completion queue is used by queue pairs");
	for (int i = 0; i < URN_SV_ADAPTERS; i++) {
		int err = cq->below[i] != NULL ? ibv_destroy_cq(cq->below[i]) : 0;

		if (err != 0)
			return err;
		cq->below[i] = NULL;
	}
	LIST_REMOVE(cq, link);
	if (cq->channel != NULL)
		urn_sv_channel_calm(urn_sv_ctx(cq->ibv.context), cq->channel);
	return 0;
}

int
urn_sv_destroy_cq(struct ibv_cq *ibcq)
{
	struct urn_sv_cq *cq = (struct urn_sv_cq *)ibcq;
	struct urn_sv_ctx *ctx = urn_sv_ctx(ibcq->context);
	uint32_t got;
	int err;

	/* Other threads look at the queues below with the lock held. */
	urn_sv_lock(ctx);
	err = urn_sv_cq_end(cq);
	got = cq->got;
	urn_sv_unlock(ctx);
	if (err != 0)
		return err;
	if (!ctx->forked) /* threads of the parent acknowledge nothing here */
		urn_acks_wait(&ibcq->mutex, &ibcq->cond, &ibcq->comp_events_completed, got);
	pthread_mutex_destroy(&cq->polling);
	free(cq->ring);
	return 0;
}

int
urn_sv_cq_load(struct urn_sv_cq *cq, uint32_t here, uint32_t below)
{
	uint32_t real = cq->real_load + below + URN_SV_CQ_MORE;

	if (urn_sv_cq_grow(cq, cq->load + here + URN_SV_CQ_MORE) != 0)
		return ENOMEM;
	for (int i = 0; i < URN_SV_ADAPTERS; i++) {
		int err = 0;

		if (cq->below[i] != NULL && (uint32_t)cq->below[i]->cqe < real)
			err = ibv_resize_cq(cq->below[i], (int)urn_sv_power(real));
		/* On an adapter that is lost the queue is made anew, as large as it has to be. */
		if (err != 0 && err != EIO)
			return err;
	}
	cq->load += here;
	cq->real_load += below;
	return 0;
}

void
urn_sv_cq_unload(struct urn_sv_cq *cq, uint32_t here, uint32_t below)
{
	cq->load -= here;
	cq->real_load -= below;
}

void
urn_sv_cq_clean(struct urn_sv_cq *cq, const struct urn_sv_qp *qp)
{
	uint32_t kept = cq->head;

	for (uint32_t i = cq->head; i != cq->tail; i++) {
		const struct urn_sv_wc *w = &cq->ring[i & (cq->size - 1)];

		if (w->wc.qp_num != qp->ibv.qp_num) {
			cq->ring[kept++ & (cq->size - 1)] = *w;
			continue;
		}
		cq->plain -= w->qp == NULL;
		if (w->qp != NULL && !w->send && qp->srq != NULL)
			qp->srq->held--;
	}
	cq->tail = kept;
}

void
urn_sv_push(struct urn_sv_cq *cq, const struct ibv_wc *wc, struct urn_sv_qp *qp, bool send,
	    bool solicited)
{
	if (cq->tail - cq->head == cq->size && urn_sv_cq_grow(cq, 2 * cq->size) != 0)
		return; /* impossible: urn_sv_cq_room() */
	cq->plain += qp == NULL;
	cq->ring[cq->tail++ & (cq->size - 1)] = (struct urn_sv_wc){*wc, qp, send};
	if (cq->armed && (!cq->solicited || solicited || wc->status != IBV_WC_SUCCESS))
		urn_sv_fire(cq);
}

bool
urn_sv_pop(struct urn_sv_cq *cq, struct urn_sv_wc *out)
{
	if (cq->head == cq->tail)
		return false;
	*out = cq->ring[cq->head++ & (cq->size - 1)];
	if (out->qp != NULL && out->send)
		out->qp->send_held--;
	else if (out->qp != NULL && out->qp->srq != NULL)
		out->qp->srq->held--;
	else if (out->qp != NULL)
		out->qp->recv_held--;
	cq->plain -= out->qp == NULL;
	return true;
}

/* True when the ring has room for a batch of completions without a session, beside all that
 * sessions may have outstanding. The ring grows for that. */
static bool
urn_sv_cq_room(struct urn_sv_cq *cq)
{
	if (cq->plain + URN_SV_BATCH + cq->load <= cq->size)
		return true;
	return urn_sv_cq_grow(cq, 2 * cq->size) == 0;
}

void
urn_sv_cq_drain(struct urn_sv_cq *cq, uint32_t adapter)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(cq->ibv.context);
	struct ibv_wc wc[URN_SV_BATCH];
	int n;

	if (cq->below[adapter] == NULL)
		return;
	do {
		n = urn_sv_cq_room(cq) ? ibv_poll_cq(cq->below[adapter], URN_SV_BATCH, wc) : 0;
		for (int k = 0; k < n; k++)
			urn_sv_take(ctx, adapter, &wc[k]);
	} while (n > 0);
	urn_sv_take_end(ctx);
}

void
urn_sv_progress(struct urn_sv_cq *cq)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(cq->ibv.context);
	struct ibv_wc wc[URN_SV_BATCH];

	for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++) {
		int n = 0;

		if (cq->below[i] != NULL && urn_sv_cq_room(cq))
			n = ibv_poll_cq(cq->below[i], URN_SV_BATCH, wc);
		for (int k = 0; k < n; k++)
			urn_sv_take(ctx, i, &wc[k]);
	}
	urn_sv_take_end(ctx);
}

int
urn_sv_poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
	struct urn_sv_cq *cq = (struct urn_sv_cq *)ibcq;
	struct urn_sv_ctx *ctx = urn_sv_ctx(ibcq->context);
	struct urn_sv_wc one;
	int got = 0;

	if (urn_sv_forked(ctx) != 0)
		return -1;
	urn_sv_lock(ctx);
	if (cq->head == cq->tail)
		urn_sv_progress(cq);
	while (got < n && urn_sv_pop(cq, &one))
		wc[got++] = one.wc;
	urn_sv_unlock(ctx);
	return got;
}
