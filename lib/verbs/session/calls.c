/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of the program that make, change or end objects, and the replacement of an adapter
 * (anew.c), exclude each other: so a call finds the same adapters from its beginning to its end,
 * though it lets the lock go meanwhile. The thread does not wait for calls, which may take
 * long; a replacement that is due makes new calls wait, and is carried out when the last one ends.
 * The calls wait on until all objects were tried once on the adapter that came back (rest.c).
 * A call that lasts, for it waits for a peer or for the program's own memory, holds no others up
 * for longer than an adapter may be silent, all calls of the program together: the replacement
 * comes later then. Calls wait for it again after as long a time, because calls that overlap
 * could keep it off for ever.
 */
#include "verbs/session/heal.h"

#include <errno.h>
#include <time.h>

uint64_t
urn_sv_hold(struct urn_sv_ctx *ctx, bool replaces, uint64_t now)
{
	const uint64_t most = ctx->options.silence;

	if (!replaces) {
		if (ctx->replacing)
			pthread_cond_broadcast(&ctx->cond);
		ctx->replacing = false;
		return UINT64_MAX;
	}
	if (!ctx->replacing || now >= ctx->hold_until + most)
		ctx->hold_until = now + most;
	ctx->replacing = true;
	return ctx->hold_until + most;
}

void
urn_sv_enter(struct urn_sv_ctx *ctx)
{
	struct timespec until;
	uint64_t ms;

	urn_sv_lock_first(ctx);
	ms = ctx->hold_until;
	until = (struct timespec){.tv_sec = (time_t)(ms / 1000),
				  .tv_nsec = (long)(ms % 1000) * 1000000};
	/* A time that has changed is the next wait's: this call has waited. */
	while (ctx->replacing && ctx->hold_until == ms &&
	       pthread_cond_clockwait(&ctx->cond, &ctx->lock, CLOCK_MONOTONIC, &until) == 0)
		;
	ctx->calls++;
	urn_sv_unlock(ctx);
}

bool
urn_sv_enter_now(struct urn_sv_ctx *ctx)
{
	bool there;

	urn_sv_lock_first(ctx);
	there = !ctx->dead[0];
	if (there)
		ctx->calls++;
	urn_sv_unlock(ctx);
	return there;
}

void
urn_sv_exit(struct urn_sv_ctx *ctx)
{
	int err = errno;
	bool last;

	urn_sv_lock_first(ctx);
	/* The call may have ended the last object of a wreck. */
	last = --ctx->calls == 0 && (ctx->replacing || !LIST_EMPTY(&ctx->wrecks));
	urn_sv_unlock(ctx);
	if (last)
		urn_sv_kick(ctx);
	errno = err; /* the call's */
}

int
urn_sv_in_query_port(struct ibv_context *c, struct ibv_port_attr *attr)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(c);
	int err;

	urn_sv_enter(ctx);
	err = urn_sv_query_port(c, attr);
	urn_sv_exit(ctx);
	return err;
}

int
urn_sv_in_query_gid(struct ibv_context *c, uint32_t index, union ibv_gid *gid)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(c);
	int err;

	urn_sv_enter(ctx);
	err = urn_sv_query_gid(c, index, gid);
	urn_sv_exit(ctx);
	return err;
}

struct ibv_pd *
urn_sv_in_alloc_pd(struct ibv_context *c)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(c);
	struct ibv_pd *made;

	urn_sv_enter(ctx);
	made = urn_sv_alloc_pd(c);
	urn_sv_exit(ctx);
	return made;
}

int
urn_sv_in_dealloc_pd(struct ibv_pd *pd)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(pd->context);
	int err;

	urn_sv_enter(ctx);
	err = urn_sv_dealloc_pd(pd);
	urn_sv_exit(ctx);
	return err;
}

struct ibv_mr *
urn_sv_in_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(pd->context);
	struct ibv_mr *made;

	urn_sv_enter(ctx);
	made = urn_sv_reg_mr(pd, addr, length, iova, access);
	urn_sv_exit(ctx);
	return made;
}

int
urn_sv_in_dereg_mr(struct ibv_mr *mr)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(mr->context);
	int err;

	urn_sv_enter(ctx);
	err = urn_sv_dereg_mr(mr);
	urn_sv_exit(ctx);
	return err;
}

struct ibv_ah *
urn_sv_in_create_ah(struct ibv_pd *pd, const struct ibv_ah_attr *attr)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(pd->context);
	struct ibv_ah *made;

	urn_sv_enter(ctx);
	made = urn_sv_create_ah(pd, attr);
	urn_sv_exit(ctx);
	return made;
}

int
urn_sv_in_destroy_ah(struct ibv_ah *ah)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(ah->context);
	int err;

	urn_sv_enter(ctx);
	err = urn_sv_destroy_ah(ah);
	urn_sv_exit(ctx);
	return err;
}

struct ibv_comp_channel *
urn_sv_in_create_channel(struct ibv_context *c)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(c);
	struct ibv_comp_channel *made;

	urn_sv_enter(ctx);
	made = urn_sv_create_channel(c);
	urn_sv_exit(ctx);
	return made;
}

int
urn_sv_in_destroy_channel(struct ibv_comp_channel *channel)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(channel->context);
	int err;

	urn_sv_enter(ctx);
	err = urn_sv_destroy_channel(channel);
	urn_sv_exit(ctx);
	return err;
}

struct ibv_cq_ex *
urn_sv_in_create_cq(struct ibv_context *c, const struct ibv_cq_init_attr_ex *attr)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(c);
	struct ibv_cq_ex *made;

	urn_sv_enter(ctx);
	made = urn_sv_create_cq(c, attr);
	urn_sv_exit(ctx);
	return made;
}

int
urn_sv_in_resize_cq(struct ibv_cq *cq, uint32_t cqe)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(cq->context);
	int err;

	urn_sv_enter(ctx);
	err = urn_sv_resize_cq(cq, cqe);
	urn_sv_exit(ctx);
	return err;
}

struct ibv_srq *
urn_sv_in_create_srq(struct ibv_pd *pd, struct ibv_srq_attr *attr, const struct ibv_cq *cq)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(pd->context);
	struct ibv_srq *made;

	urn_sv_enter(ctx);
	made = urn_sv_create_srq(pd, attr, cq);
	urn_sv_exit(ctx);
	return made;
}

int
urn_sv_in_destroy_srq(struct ibv_srq *srq)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(srq->context);
	int err;

	urn_sv_enter(ctx);
	err = urn_sv_destroy_srq(srq);
	urn_sv_exit(ctx);
	return err;
}

struct ibv_qp *
urn_sv_in_create_qp(struct ibv_qp_init_attr_ex *attr)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(attr->pd->context);
	struct ibv_qp *made;

	urn_sv_enter(ctx);
	made = urn_sv_create_qp(attr);
	urn_sv_exit(ctx);
	return made;
}

int
urn_sv_in_modify_qp(struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct urn_sv_ctx *ctx = ((struct urn_sv_qp *)qp)->ctx;
	int err;

	urn_sv_enter(ctx);
	err = urn_sv_modify_qp(qp, attr, mask);
	urn_sv_exit(ctx);
	return err;
}

int
urn_sv_in_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		   struct ibv_qp_init_attr *init)
{
	struct urn_sv_ctx *ctx = ((struct urn_sv_qp *)qp)->ctx;
	int err;

	urn_sv_enter(ctx);
	err = urn_sv_query_qp(qp, attr, mask, init);
	urn_sv_exit(ctx);
	return err;
}

int
urn_sv_in_destroy_qp(struct ibv_qp *qp)
{
	struct urn_sv_ctx *ctx = ((struct urn_sv_qp *)qp)->ctx;
	int err;

	urn_sv_enter(ctx);
	err = urn_sv_destroy_qp(qp);
	urn_sv_exit(ctx);
	return err;
}
