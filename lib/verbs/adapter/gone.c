/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A dataplane in another process that is gone, and fork().
 *
 * Memory that the dataplane shared with us stays as it is: the kernel shows the end of the
 * connection when no thread of the dataplane runs any more. So the channel's thread
 * seals all queues, marks the completion queues, and ends the pipes for events, in
 * this order. A dataplane that was given up alive (attach/patience.h) could change that memory, so
 * a copy takes its place between the seals and the marks. None of that costs posting and polling
 * anything: a sealed queue looks like one that takes no requests in its state, and a poll reads the
 * completion queue's mark only when the queue is empty.
 *
 * The first poll of a completion queue then makes a ring in memory of its own with the
 * missing completions: a flushed completion of every request that is neither
 * retired nor completed, like real adapters that broke down. The queues' indices are
 * exact, because the dataplane stores cons and done with the completion, in an order that
 * the reader can finish (lib/abi/queue.h).
 */
#include "verbs/adapter/adapter.h"

#include "attach/pipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* urn_gone_lock protects the list of contexts that watch; taken before the lock of a context's
 * objs. */
static pthread_mutex_t urn_gone_lock = PTHREAD_MUTEX_INITIALIZER;
static struct urn_ctx *urn_gone_list; /* contexts that watch; under urn_gone_lock */
static pthread_once_t urn_gone_once = PTHREAD_ONCE_INIT;

/* ---- the objects of a context; the lock of objs is held */

/* The next object of a kind from slot *i on; *i moves behind it. NULL: no more */
static void *
urn_gone_next(const struct urn_objs *t, uint32_t *i, enum urn_obj_kind kind)
{
	while (*i < t->slots) {
		const struct urn_obj_slot *s = &t->slot[(*i)++];

		if (s->kind == (uint32_t)kind)
			return s->obj;
	}
	return NULL;
}

/* ---- the dataplane died */

static void
urn_gone_seal_rq(struct urn_adapter_rq *rq)
{
	urn_lock_take(&rq->lock);
	rq->ok = false;
	urn_lock_give(&rq->lock);
}

/* Freeze the area, as far as somebody could still write there. */
static void
urn_gone_still(struct urn_abi_channel *channel)
{
	int err = channel->still != NULL ? channel->still(channel->ctx) : 0;

	/* The engines that have answered write nothing all the same (urn_dev_leave()). */
	if (err != 0)
		fprintf(stderr,
			"urnic: the queues of a dataplane that does not answer can't be copied: "
			"%s: a completion may be lost or repeated if it goes on\n",
			strerror(err));
}

/* The dataplane died: seal, mark and end all, in the channel's thread. */
static void
urn_gone_died(void *arg)
{
	struct urn_ctx *ctx = arg;
	struct urn_adapter_srq *srq;
	struct urn_way *w;
	struct urn_adapter_qp *qp;
	struct urn_adapter_cq *cq;
	uint32_t i;

	urn_dev_leave(&ctx->dev);
	/* A thread that changes a queue's state reads this under the queue's lock. */
	atomic_store(&ctx->dev.gone, URN_DEV_DIED);
	pthread_mutex_lock(&ctx->objs.lock);
	for (i = 0; (qp = urn_gone_next(&ctx->objs, &i, URN_OBJ_QP)) != NULL;) {
		urn_lock_take(&qp->sq.lock);
		qp->sq.ok = false;
		urn_lock_give(&qp->sq.lock);
		urn_gone_seal_rq(&qp->rq);
	}
	for (i = 0; (srq = urn_gone_next(&ctx->objs, &i, URN_OBJ_SRQ)) != NULL;)
		urn_gone_seal_rq(&srq->rq);
	urn_gone_still(ctx->dev.channel);
	/* Now the indices stand still. Release: pairs with the acquire in poll.c. */
	for (i = 0; (cq = urn_gone_next(&ctx->objs, &i, URN_OBJ_CQ)) != NULL;)
		atomic_store_explicit(&cq->gone, URN_CQ_ORPHAN, memory_order_release);
	for (w = ctx->ways; w != NULL; w = w->next)
		urn_pipe_end(w->write_fd);
	pthread_mutex_unlock(&ctx->objs.lock);
	urn_pipe_end(ctx->async_write_fd);
}

void
urn_gone_join(struct urn_ctx *ctx, struct urn_way *w)
{
	pthread_mutex_lock(&ctx->objs.lock);
	w->next = ctx->ways;
	w->at = &ctx->ways;
	if (w->next != NULL)
		w->next->at = &w->next;
	ctx->ways = w;
	if (urn_dev_gone(&ctx->dev) == URN_DEV_DIED)
		urn_pipe_end(w->write_fd);
	pthread_mutex_unlock(&ctx->objs.lock);
}

/* Take a pipe off its context's list. The lock of objs is held. */
static void
urn_gone_part(struct urn_way *w)
{
	*w->at = w->next; // NOLINT(clang-analyzer-core.NullDereference): at is set while w is in a list
	if (w->next != NULL)
		w->next->at = w->at;
	w->at = NULL;
}

void
urn_gone_leave(struct urn_ctx *ctx, struct urn_way *w)
{
	pthread_mutex_lock(&ctx->objs.lock);
	urn_gone_part(w);
	pthread_mutex_unlock(&ctx->objs.lock);
}

void
urn_gone_leave_all(struct urn_ctx *ctx)
{
	pthread_mutex_lock(&ctx->objs.lock);
	while (ctx->ways != NULL)
		urn_gone_part(ctx->ways);
	pthread_mutex_unlock(&ctx->objs.lock);
}

struct urn_adapter_cq *
urn_gone_event(struct urn_channel *ch)
{
	struct urn_ctx *ctx = urn_ctx(ch->ibv.context);
	struct urn_adapter_cq *cq;
	uint32_t i;

	if (urn_dev_gone(&ctx->dev) != URN_DEV_DIED)
		return NULL;
	pthread_mutex_lock(&ctx->objs.lock);
	for (i = 0; (cq = urn_gone_next(&ctx->objs, &i, URN_OBJ_CQ)) != NULL;) {
		if (cq->ibv.channel != &ch->ibv || !atomic_exchange(&cq->expects, false))
			continue;
		cq->comp_got++;
		break;
	}
	pthread_mutex_unlock(&ctx->objs.lock);
	return cq;
}

/* ---- making completions up; the locks of the queue and of objs are held */

/* The QP with number qpn whose completions this queue gets. */
static struct urn_adapter_qp *
urn_gone_qp(struct urn_ctx *ctx, const struct urn_adapter_cq *cq, uint32_t qpn, bool recv)
{
	struct urn_adapter_qp *qp;
	uint32_t i = 0;

	while ((qp = urn_gone_next(&ctx->objs, &i, URN_OBJ_QP)) != NULL)
		if (qp->ibv.qp_num == qpn && (recv ? qp->ibv.recv_cq : qp->ibv.send_cq) == &cq->ibv)
			break;
	return qp;
}

static struct urn_abi_wq *
urn_gone_recv_hdr(const struct urn_adapter_qp *qp)
{
	return qp->taken != NULL ? qp->taken : qp->rq.hdr;
}

/* If the dataplane died while it wrote a completion, take the steps that are left. returns: true when it had */
static bool
urn_gone_finish(struct urn_ctx *ctx, struct urn_adapter_cq *cq)
{
	struct urn_abi_cqe *cqe = &cq->cqe[cq->cons & cq->mask];
	bool recv = (cqe->opcode & URN_WCO_RECV) != 0;
	_Atomic uint32_t *word;
	struct urn_adapter_qp *qp;
	uint16_t ahead;

	if (atomic_load_explicit(&cqe->phase, memory_order_acquire) != URN_CQE_WHOLE)
		return false;
	qp = urn_gone_qp(ctx, cq, cqe->qp_num, recv);
	if (qp == NULL)
		return false;
	word = recv ? &urn_gone_recv_hdr(qp)->done : &qp->sq.hdr->cons;
	/* 0: the word was stored already. No queue has more than half of 2^16 slots. */
	ahead = (uint16_t)(cqe->wqe + 1u - atomic_load(word));
	if (ahead <= URN_ABI_MAX_WR)
		atomic_fetch_add(word, ahead);
	atomic_store_explicit(&cqe->phase, (cq->cons & cq->entries) == 0, memory_order_release);
	return true;
}

/* Completions that are gathered; out NULL: only counted. */
struct urn_gather {
	struct urn_abi_cqe *out;
	uint32_t n;
};

static void
urn_gather_one(struct urn_gather *g, uint32_t qpn, enum urn_abi_wc_op opcode, uint64_t wr_id)
{
	uint32_t i = g->n++;

	if (g->out == NULL)
		return;
	g->out[i].wr_id = wr_id;
	g->out[i].qp_num = qpn;
	g->out[i].vendor_err = URN_VE_GONE;
	g->out[i].status = URN_WC_WR_FLUSH_ERR;
	g->out[i].opcode = (uint8_t)opcode;
	g->out[i].phase = 1; /* phase of the first lap */
}

static void
urn_gather_sends(struct urn_gather *g, const struct urn_adapter_qp *qp)
{
	const struct urn_adapter_sq *sq = &qp->sq;
	uint32_t i = atomic_load(&sq->hdr->cons), end = atomic_load(&sq->hdr->prod);

	for (; i != end && end - i <= sq->mask + 1; i++) {
		const struct urn_abi_swqe *w = (const void *)(sq->slots + (size_t)(i & sq->mask) * sq->stride);

		urn_gather_one(g, qp->ibv.qp_num, URN_WCO_SEND, w->wr_id);
	}
}

/* Entries of a receive queue from index i on. */
static void
urn_gather_recvs(struct urn_gather *g, const struct urn_adapter_rq *rq, uint32_t qpn, uint32_t i)
{
	uint32_t end = atomic_load(&rq->hdr->prod);

	for (; i != end && end - i <= rq->mask + 1; i++) {
		const struct urn_abi_rwqe *w = (const void *)(rq->slots + (size_t)(i & rq->mask) * rq->stride);

		urn_gather_one(g, qpn, URN_WCO_RECV, w->wr_id);
	}
}

/*
 * Receives that a QP took from an SRQ and did not complete. The dataplane may have died between
 * noting the newest and moving the SRQ's cons; cons moves here, so that the SRQ has it no more.
 */
static void
urn_gather_taken(struct urn_gather *g, const struct urn_adapter_qp *qp)
{
	const uint64_t *slot = (const void *)((const uint8_t *)qp->taken + URN_ABI_WQ_SLOTS);
	struct urn_abi_wq *srq = urn_srq(qp->ibv.srq)->rq.hdr;
	uint32_t i = atomic_load(&qp->taken->done), end = atomic_load(&qp->taken->cons);

	if (i != end && atomic_load(&qp->taken->last) == atomic_load(&srq->cons))
		atomic_fetch_add(&srq->cons, 1);
	for (; i != end && end - i <= URN_ABI_TAKEN; i++)
		urn_gather_one(g, qp->ibv.qp_num, URN_WCO_RECV, slot[i & (URN_ABI_TAKEN - 1)]);
}

/*
 * Entries of an SRQ that no QP took are flushed to the receive CQ of the first QP on the SRQ.
 * That QP must be the same for all queues.
 */
static void
urn_gather_srqs(struct urn_gather *g, struct urn_ctx *ctx, struct urn_adapter_cq *cq)
{
	struct urn_adapter_srq *srq;
	struct urn_adapter_qp *qp;
	uint32_t i, k;

	for (i = 0; (qp = urn_gone_next(&ctx->objs, &i, URN_OBJ_QP)) != NULL;)
		if (qp->ibv.srq != NULL && urn_srq(qp->ibv.srq)->heir == NULL)
			urn_srq(qp->ibv.srq)->heir = urn_cq(qp->ibv.recv_cq);
	for (k = 0; (srq = urn_gone_next(&ctx->objs, &k, URN_OBJ_SRQ)) != NULL;) {
		if (srq->heir != cq)
			continue;
		/* A QP of the SRQ may have taken an entry before the SRQ's cons moved. */
		for (i = 0; (qp = urn_gone_next(&ctx->objs, &i, URN_OBJ_QP)) != NULL;) {
			struct urn_gather none = {0};

			if (qp->ibv.srq == &srq->ibv)
				urn_gather_taken(&none, qp);
		}
		for (i = 0; (qp = urn_gone_next(&ctx->objs, &i, URN_OBJ_QP)) != NULL;)
			if (qp->ibv.srq == &srq->ibv && qp->ibv.recv_cq == &cq->ibv)
				break;
		urn_gather_recvs(g, &srq->rq, qp != NULL ? qp->ibv.qp_num : 0,
			atomic_load(&srq->rq.hdr->cons));
	}
}

static void
urn_gather_all(struct urn_gather *g, struct urn_ctx *ctx, struct urn_adapter_cq *cq)
{
	struct urn_adapter_qp *qp;
	uint32_t i = 0;

	while ((qp = urn_gone_next(&ctx->objs, &i, URN_OBJ_QP)) != NULL) {
		/* A QP that is still being made has no such CQs yet. */
		if (qp->ibv.send_cq == &cq->ibv)
			urn_gather_sends(g, qp);
		if (qp->ibv.recv_cq == &cq->ibv && qp->taken != NULL)
			urn_gather_taken(g, qp);
		else if (qp->ibv.recv_cq == &cq->ibv && qp->rq.hdr != NULL)
			urn_gather_recvs(g, &qp->rq, qp->ibv.qp_num, atomic_load(&qp->rq.hdr->done));
	}
	urn_gather_srqs(g, ctx, cq);
}

/* Put a ring with the missing completions in the queue's place. returns: true when there are any */
static bool
urn_gone_make_up(struct urn_ctx *ctx, struct urn_adapter_cq *cq)
{
	struct urn_gather g = {0};
	uint32_t entries = 1;

	urn_gather_all(&g, ctx, cq);
	if (g.n != 0) {
		while (entries < g.n)
			entries *= 2;
		g.out = calloc(entries, sizeof(*g.out));
		if (g.out == NULL)
			return false; /* the next poll tries again */
		g.n = 0;
		urn_gather_all(&g, ctx, cq);
		cq->made_up = g.out;
		/* A thread that settles takes the lock of objs, too. */
		cq->beside = NULL;
		cq->cqe = g.out;
		cq->entries = entries;
		cq->mask = entries - 1;
		cq->cons = 0;
	}
	atomic_store(&cq->gone, URN_CQ_FLUSHED);
	return g.n != 0;
}

bool
urn_gone_fill(struct urn_adapter_cq *cq)
{
	struct urn_ctx *ctx = urn_ctx(cq->ibv.context);
	bool some;

	if (cq->resizing || atomic_load(&cq->gone) != URN_CQ_ORPHAN)
		return false;
	if (urn_cq_next(cq) != NULL)
		return true; /* written between the poll that found nothing and the end */
	pthread_mutex_lock(&ctx->objs.lock);
	some = urn_gone_finish(ctx, cq) || urn_gone_make_up(ctx, cq);
	pthread_mutex_unlock(&ctx->objs.lock);
	return some;
}

/* ---- fork() */

static void
urn_gone_fork_hold(void)
{
	struct urn_ctx *ctx;

	pthread_mutex_lock(&urn_gone_lock);
	for (ctx = urn_gone_list; ctx != NULL; ctx = ctx->next)
		pthread_mutex_lock(&ctx->objs.lock);
}

static void
urn_gone_fork_parent(void)
{
	struct urn_ctx *ctx;

	for (ctx = urn_gone_list; ctx != NULL; ctx = ctx->next)
		pthread_mutex_unlock(&ctx->objs.lock);
	pthread_mutex_unlock(&urn_gone_lock);
}

/* In the child: free the objects' locks, whose holders may be threads of the parent, and mark the objects. */
static void
urn_gone_fork_objects(struct urn_ctx *ctx)
{
	struct urn_adapter_srq *srq;
	struct urn_adapter_qp *qp;
	struct urn_adapter_cq *cq;
	uint32_t i;

	for (i = 0; (qp = urn_gone_next(&ctx->objs, &i, URN_OBJ_QP)) != NULL;) {
		qp->sq.lock = qp->rq.lock = (struct urn_lock){0};
		qp->sq.ok = qp->rq.ok = false;
	}
	for (i = 0; (srq = urn_gone_next(&ctx->objs, &i, URN_OBJ_SRQ)) != NULL;) {
		srq->rq.lock = (struct urn_lock){0};
		srq->rq.ok = false;
	}
	for (i = 0; (cq = urn_gone_next(&ctx->objs, &i, URN_OBJ_CQ)) != NULL;) {
		cq->lock = cq->beside_lock = (struct urn_lock){0};
		cq->beside = NULL;
		cq->resizing = false;
		urn_cq_blind(cq);
		atomic_store(&cq->gone, URN_CQ_FORKED);
	}
}

static void
urn_gone_fork_child(void)
{
	struct urn_ctx *ctx;

	pthread_mutex_init(&urn_gone_lock, NULL);
	for (ctx = urn_gone_list; ctx != NULL; ctx = ctx->next) {
		pthread_mutex_init(&ctx->objs.lock, NULL);
		pthread_mutex_init(&ctx->front.vctx.context.mutex, NULL);
		atomic_store(&ctx->dev.gone, URN_DEV_FORKED);
		urn_gone_fork_objects(ctx);
		ctx->dev.channel->forked(ctx->dev.channel->ctx);
	}
}

static void
urn_gone_start(void)
{
	(void)pthread_atfork(urn_gone_fork_hold, urn_gone_fork_parent, urn_gone_fork_child);
}

void
urn_gone_forks(void)
{
	(void)pthread_once(&urn_gone_once, urn_gone_start);
}

int
urn_gone_watch(struct urn_ctx *ctx)
{
	struct urn_abi_channel *channel = ctx->dev.channel;
	int err;

	if (channel->watch == NULL)
		return 0;
	urn_gone_forks();
	pthread_mutex_lock(&urn_gone_lock);
	ctx->next = urn_gone_list;
	ctx->at = &urn_gone_list;
	if (ctx->next != NULL)
		ctx->next->at = &ctx->next;
	urn_gone_list = ctx;
	pthread_mutex_unlock(&urn_gone_lock);
	err = channel->watch(channel->ctx, urn_gone_died, ctx);
	if (err != 0)
		urn_gone_unwatch(ctx);
	return err;
}

void
urn_gone_unwatch(struct urn_ctx *ctx)
{
	if (ctx->at == NULL)
		return;
	pthread_mutex_lock(&urn_gone_lock);
	*ctx->at = ctx->next;
	if (ctx->next != NULL)
		ctx->next->at = ctx->at;
	ctx->at = NULL;
	pthread_mutex_unlock(&urn_gone_lock);
}
