/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs/adapter/polled.h"

#include "verbs/adapter/adapter.h"
#include "verbs/adapter/poll.h"

#include <errno.h>
#include <stdlib.h>

/* Completions until one whose record is fetched early. */
enum { URN_POLLED_AHEAD = 8 };

/* ---- tables */

static struct urn_polled_leaf *
urn_polled_leaf(const struct urn_polled_map *map, uint32_t qpn)
{
	const struct urn_polled_mid *mid = atomic_load_explicit(
		&map->mid[(qpn >> 2 * URN_POLLED_BITS) % URN_POLLED_MIDS], memory_order_acquire);

	if (mid == NULL)
		return NULL;
	return atomic_load_explicit(&mid->leaf[(qpn >> URN_POLLED_BITS) % URN_POLLED_FAN],
				    memory_order_acquire);
}

/* Like urn_polled_leaf(), makes what is not there; the lock of objs is held. NULL: no memory */
static struct urn_polled_leaf *
urn_polled_leaf_made(struct urn_polled_map *map, uint32_t qpn)
{
	_Atomic(struct urn_polled_mid *) *at =
		&map->mid[(qpn >> 2 * URN_POLLED_BITS) % URN_POLLED_MIDS];
	_Atomic(struct urn_polled_leaf *) *under;
	struct urn_polled_mid *mid = *at;
	struct urn_polled_leaf *leaf;

	if (mid == NULL)
		mid = calloc(1, sizeof(*mid));
	if (mid == NULL)
		return NULL;
	atomic_store_explicit(at, mid, memory_order_release);
	under = &mid->leaf[(qpn >> URN_POLLED_BITS) % URN_POLLED_FAN];
	leaf = *under;
	if (leaf == NULL)
		leaf = calloc(1, sizeof(*leaf));
	atomic_store_explicit(under, leaf, memory_order_release);
	return leaf;
}

void
urn_polled_close(struct urn_polled_map *map)
{
	struct urn_polled *page, *earlier;
	unsigned int i, j;

	for (page = map->made; page != NULL; page = earlier) {
		earlier = page->earlier;
		free(page);
	}
	for (i = 0; i < URN_POLLED_MIDS; i++) {
		struct urn_polled_mid *mid = map->mid[i];

		for (j = 0; mid != NULL && j < URN_POLLED_FAN; j++)
			free(mid->leaf[j]);
		free(mid);
	}
}

/* The record that a queue pair's number leads to. NULL: none */
static inline struct urn_polled *
urn_polled_at(const struct urn_adapter_cq *cq, uint32_t qpn)
{
	struct urn_polled_leaf *leaf = urn_polled_leaf(&urn_ctx(cq->ibv.context)->polled, qpn);

	return leaf != NULL
		       ? atomic_load_explicit(&leaf->of[qpn % URN_POLLED_FAN], memory_order_acquire)
		       : NULL;
}

struct urn_polled *
urn_polled_find(struct urn_adapter_cq *cq, uint32_t cons, uint32_t qpn)
{
	const struct urn_abi_cqe *ahead = urn_cq_at(cq, cons + URN_POLLED_AHEAD);
	struct urn_polled *p;

	/* Completions of many queue pairs: no record of theirs is in this core's caches. */
	if (ahead != NULL)
		__builtin_prefetch(urn_polled_at(cq, ahead->qp_num), 1);
	p = urn_polled_at(cq, qpn);
	/* The record of a destroyed queue pair is another's, or nobody's. */
	if (p == NULL || atomic_load_explicit(&p->qpn, memory_order_acquire) != qpn)
		return NULL;
	cq->polled = p;
	return p;
}

/* ---- records of queue pairs */

/*
 * Make spare records, if there is memory; the lock of objs is held. Many lie in one page: one that
 * is alone among a queue pair's other objects costs the thread that polls a TLB miss each.
 */
static void
urn_polled_make(struct urn_polled_map *map)
{
	struct urn_polled *page = urn_object_alloc(URN_POLLED_PAGE * sizeof(*page));

	if (page == NULL)
		return;
	page->earlier = map->made;
	map->made = page;
	for (int i = URN_POLLED_PAGE - 1; i >= 0; i--) {
		page[i].spare = map->spare;
		map->spare = &page[i];
	}
}

int
urn_polled_get(struct urn_ctx *ctx, struct urn_adapter_qp *qp)
{
	struct urn_polled_map *map = &ctx->polled;
	struct urn_polled *p;

	pthread_mutex_lock(&ctx->objs.lock);
	if (map->spare == NULL)
		urn_polled_make(map);
	p = map->spare;
	if (p != NULL)
		map->spare = p->spare;
	pthread_mutex_unlock(&ctx->objs.lock);
	qp->polled = p;
	return p != NULL ? 0 : ENOMEM;
}

int
urn_polled_begin(struct urn_ctx *ctx, struct urn_adapter_qp *qp, struct ibv_srq *srq)
{
	uint32_t qpn = qp->ibv.qp_num;
	struct urn_polled *p = qp->polled;
	struct urn_polled_leaf *leaf;

	p->srq = srq != NULL ? &urn_srq(srq)->polled : NULL;
	atomic_store(&p->send, atomic_load(&qp->sq.hdr->cons));
	atomic_store(&p->recv,
		     atomic_load(qp->taken != NULL ? &qp->taken->cons : &qp->rq.hdr->done));
	pthread_mutex_lock(&ctx->objs.lock);
	leaf = urn_polled_leaf_made(&ctx->polled, qpn);
	if (leaf != NULL) {
		atomic_store_explicit(&p->qpn, qpn, memory_order_release);
		atomic_store_explicit(&leaf->of[qpn % URN_POLLED_FAN], p, memory_order_release);
	}
	pthread_mutex_unlock(&ctx->objs.lock);
	return leaf != NULL ? 0 : ENOMEM;
}

void
urn_polled_restart(struct urn_adapter_qp *qp, uint32_t taken)
{
	struct urn_polled *p = qp->polled;

	atomic_store_explicit(&p->send, atomic_load(&qp->sq.hdr->cons), memory_order_release);
	if (qp->taken == NULL) {
		atomic_store_explicit(&p->recv, atomic_load(&qp->rq.hdr->done),
				      memory_order_release);
		return;
	}
	if (p->srq != NULL)
		atomic_fetch_add_explicit(p->srq, taken - atomic_load(&p->recv),
					  memory_order_release);
	atomic_store_explicit(&p->recv, taken, memory_order_release);
}

void
urn_polled_put(struct urn_ctx *ctx, struct urn_adapter_qp *qp)
{
	struct urn_polled *p = qp->polled;
	struct urn_polled_leaf *leaf;

	pthread_mutex_lock(&ctx->objs.lock);
	leaf = urn_polled_leaf(&ctx->polled, qp->ibv.qp_num);
	/* Another queue pair may have got the number. */
	if (leaf != NULL && leaf->of[qp->ibv.qp_num % URN_POLLED_FAN] == p)
		atomic_store_explicit(&leaf->of[qp->ibv.qp_num % URN_POLLED_FAN], NULL,
				      memory_order_release);
	atomic_store_explicit(&p->qpn, 0, memory_order_release);
	p->spare = ctx->polled.spare;
	ctx->polled.spare = p;
	pthread_mutex_unlock(&ctx->objs.lock);
}
