/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs end a datagram queue pair, or an address handle, right after the last post without a
 * completion: hardware has sent by then. Here the requests that are posted go out first, as far as
 * they can in a bounded time.
 */
#include "verbs/adapter/adapter.h"

#include <sched.h>
#include <time.h>

/*
 * The longest wait for requests that are posted. A dataplane that runs needs some microseconds;
 * one whose core others hold can need tens of milliseconds.
 */
#define URN_DRAIN_NS 1000000000ll

static int64_t
urn_drain_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/*
 * True when the requests before `mark` are done, or nobody will do them: the queue stands still, an
 * earlier wait for it was in vain and nothing went since, or no dataplane is there.
 */
static bool
urn_sq_passed(const struct urn_adapter_qp *qp, uint32_t mark)
{
	uint32_t cons = atomic_load_explicit(&qp->sq.hdr->cons, memory_order_acquire);

	return (int32_t)(cons - mark) >= 0 || qp->ibv.state != IBV_QPS_RTS ||
	       (qp->in_vain && qp->in_vain_at == cons) || urn_dev_gone(qp->dev) != URN_DEV_THERE;
}

void
urn_qp_drain(struct urn_adapter_qp *qp)
{
	int64_t end = urn_drain_now() + URN_DRAIN_NS;
	uint32_t mark = atomic_load_explicit(&qp->sq.hdr->prod, memory_order_relaxed);

	if (qp->ibv.qp_type != IBV_QPT_UD && qp->ibv.qp_type != IBV_QPT_UC)
		return;
	while (!urn_sq_passed(qp, mark) && urn_drain_now() < end)
		sched_yield();
}

enum urn_drain_step { URN_DRAIN_BEGIN, URN_DRAIN_LOOK, URN_DRAIN_GIVE_UP };

/* Look at all UD queue pairs of a context. returns: true when all have passed */
static bool
urn_datagrams_passed(struct urn_ctx *ctx, enum urn_drain_step step)
{
	bool passed = true;
	uint32_t i;

	pthread_mutex_lock(&ctx->objs.lock);
	for (i = 0; i < ctx->objs.slots; i++) {
		struct urn_adapter_qp *qp = ctx->objs.slot[i].obj;

		if (ctx->objs.slot[i].kind != URN_OBJ_QP || qp->sq.hdr == NULL || !qp->sq.ud)
			continue;
		if (step == URN_DRAIN_BEGIN)
			qp->mark = atomic_load_explicit(&qp->sq.hdr->prod, memory_order_relaxed);
		if (urn_sq_passed(qp, qp->mark))
			continue;
		passed = false;
		if (step == URN_DRAIN_GIVE_UP) {
			qp->in_vain = true;
			qp->in_vain_at =
				atomic_load_explicit(&qp->sq.hdr->cons, memory_order_relaxed);
		}
	}
	pthread_mutex_unlock(&ctx->objs.lock);
	return passed;
}

void
urn_datagrams_drain(struct urn_ctx *ctx)
{
	int64_t end = urn_drain_now() + URN_DRAIN_NS;
	bool passed = urn_datagrams_passed(ctx, URN_DRAIN_BEGIN);

	while (!passed && urn_drain_now() < end) {
		sched_yield();
		passed = urn_datagrams_passed(ctx, URN_DRAIN_LOOK);
	}
	if (!passed)
		(void)urn_datagrams_passed(ctx, URN_DRAIN_GIVE_UP);
}
