/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Software completion queues (FO-3): a ring above the queues of all adapters. Every completion of
 * the program goes through the ring, so that those of drains and rebuilt ones keep their order.
 *
 * The ring has room for each request of the queue's queue pairs: a request is posted only when the
 * program has polled enough.
 */
#include "verbs/front.h"
#include "verbs/session/sv.h"

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

static int
urn_sv_cq_make(struct urn_sv_cq *cq, struct urn_sv_ctx *ctx, const struct ibv_cq_init_attr_ex *attr)
{
	for (int i = 0; i < URN_SV_ADAPTERS; i++) {
		struct ibv_context *c = ctx->below[i];
		uint32_t vector = attr->comp_vector % (uint32_t)c->num_comp_vectors;
		struct ibv_comp_channel *channel =
			cq->channel != NULL ? cq->channel->below[i] : NULL;

		cq->below[i] = ibv_create_cq(c, (int)attr->cqe, cq, channel, (int)vector);
		if (cq->below[i] == NULL)
			return errno;
	}
	return urn_sv_cq_grow(cq, attr->cqe + URN_SV_CQ_MORE);
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
	err = urn_sv_cq_make(cq, ctx, attr);
	if (err != 0) {
		urn_sv_cq_free(cq);
		free(cq);
		errno = err;
		return NULL;
	}
	cq->ibv.handle = cq->below[0]->handle;
	cq->ibv.cqe = (int)attr->cqe;
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
	int err;

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
		int err = (uint32_t)cq->below[i]->cqe < real
				  ? ibv_resize_cq(cq->below[i], (int)urn_sv_power(real))
				  : 0;

		if (err != 0)
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

		if (w->wc.qp_num != qp->ibv.qp_num)
			cq->ring[kept++ & (cq->size - 1)] = *w;
	}
	cq->tail = kept;
}

void
urn_sv_push(struct urn_sv_cq *cq, const struct ibv_wc *wc, struct urn_sv_qp *qp, bool send,
	    bool solicited)
{
	/* Completions of queue pairs without a session are bounded by the queues below. */
	if (cq->tail - cq->head == cq->size && urn_sv_cq_grow(cq, 2 * cq->size) != 0)
		return;
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
	else if (out->qp != NULL)
		out->qp->recv_held--;
	return true;
}

void
urn_sv_cq_drain(struct urn_sv_cq *cq, uint32_t adapter)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(cq->ibv.context);
	struct ibv_wc wc[URN_SV_BATCH];
	int n;

	do {
		n = ibv_poll_cq(cq->below[adapter], URN_SV_BATCH, wc);
		for (int k = 0; k < n; k++)
			urn_sv_take(ctx, adapter, &wc[k]);
	} while (n > 0);
}

void
urn_sv_progress(struct urn_sv_cq *cq)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(cq->ibv.context);
	struct ibv_wc wc[URN_SV_BATCH];

	for (uint32_t i = 0; i < URN_SV_ADAPTERS; i++) {
		int n = ibv_poll_cq(cq->below[i], URN_SV_BATCH, wc);

		for (int k = 0; k < n; k++)
			urn_sv_take(ctx, i, &wc[k]);
	}
}

int
urn_sv_poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
	struct urn_sv_cq *cq = (struct urn_sv_cq *)ibcq;
	struct urn_sv_ctx *ctx = urn_sv_ctx(ibcq->context);
	struct urn_sv_wc one;
	int got = 0;

	urn_sv_lock(ctx);
	if (cq->head == cq->tail)
		urn_sv_progress(cq);
	while (got < n && urn_sv_pop(cq, &one))
		wc[got++] = one.wc;
	urn_sv_unlock(ctx);
	return got;
}
