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
 * True when the requests before `mark` are done, or nobody will do them: the queue stands still, or
 * no dataplane is there.
 */
static bool
urn_sq_passed(const struct urn_adapter_qp *qp, uint32_t mark)
{
	uint32_t cons = atomic_load_explicit(&qp->sq.hdr->cons, memory_order_acquire);

	return (int32_t)(cons - mark) >= 0 || qp->ibv.state != IBV_QPS_RTS ||
	       urn_dev_gone(qp->dev) != URN_DEV_THERE;
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

/* Look at all UD queue pairs of a context. mark: begin to wait. returns: true when all have passed
 */
static bool
urn_datagrams_passed(struct urn_ctx *ctx, bool mark)
{
	bool passed = true;
	uint32_t i;

	pthread_mutex_lock(&ctx->objs.lock);
	for (i = 0; i < ctx->objs.slots; i++) {
		struct urn_adapter_qp *qp = ctx->objs.slot[i].obj;

		if (ctx->objs.slot[i].kind != URN_OBJ_QP || qp->sq.hdr == NULL || !qp->sq.ud)
			continue;
		if (mark)
			qp->mark = atomic_load_explicit(&qp->sq.hdr->prod, memory_order_relaxed);
		passed = passed && urn_sq_passed(qp, qp->mark);
	}
	pthread_mutex_unlock(&ctx->objs.lock);
	return passed;
}

void
urn_datagrams_drain(struct urn_ctx *ctx)
{
	int64_t end = urn_drain_now() + URN_DRAIN_NS;
	bool passed = urn_datagrams_passed(ctx, true);

	while (!passed && urn_drain_now() < end) {
		sched_yield();
		passed = urn_datagrams_passed(ctx, false);
	}
}
