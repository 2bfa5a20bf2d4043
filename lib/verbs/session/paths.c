/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs of paths: one for the program's traffic, and one for control messages (FO-5). */
#include "verbs/front.h"
#include "verbs/session/heal.h"
#include "verbs/session/srq.h"

#include <errno.h>
#include <sys/random.h>

enum { URN_SV_24_BITS = 0xffffff };

/* ---- finding paths by their queue pairs */

static struct urn_sv_bucket *
urn_sv_bucket(struct urn_sv_bucket *of, uint32_t qpn)
{
	return &of[qpn % URN_SV_BUCKETS];
}

struct urn_sv_path *
urn_sv_find(struct urn_sv_ctx *ctx, uint32_t adapter, uint32_t qpn)
{
	struct urn_sv_path *p;

	LIST_FOREACH(p, urn_sv_bucket(ctx->bucket, qpn), link)
		if (p->mine == adapter && p->real->qp_num == qpn)
			break;
	return p;
}

struct urn_sv_path *
urn_sv_find_ctl(struct urn_sv_ctx *ctx, uint32_t adapter, uint32_t qpn)
{
	struct urn_sv_path *p;

	LIST_FOREACH(p, urn_sv_bucket(ctx->ctl_bucket, qpn), ctl_link)
		if (p->mine == adapter && p->ctl->qp_num == qpn)
			break;
	return p;
}

/* ---- making paths */

bool
urn_sv_ready(const struct urn_sv_qp *q, uint32_t adapter)
{
	return urn_sv_pd_whole(q->pd, adapter) &&
	       (q->srq == NULL || urn_sv_pd_whole(q->srq->pd, adapter)) &&
	       q->memory_mr[adapter] != NULL && URN_SV_BELOW(cq, q->ibv.send_cq, adapter) != NULL &&
	       URN_SV_BELOW(cq, q->ibv.recv_cq, adapter) != NULL;
}

/* Name the real shared receive queue of a path's queue pair. returns: 0 or an errno value with its
 * text */
static int
urn_sv_shared_use(const struct urn_sv_qp *q, struct urn_sv_path *p, struct ibv_qp_init_attr *init)
{
	if (q->srq == NULL)
		return 0;
	p->given = false;
	p->shut_at = 0;
	p->shared = urn_sv_srq_use(q->srq, p->mine);
	if (p->shared == NULL)
		return errno;
	init->srq = p->shared->ibv;
	return 0;
}

void
urn_sv_shared_leave(struct urn_sv_path *p)
{
	if (p->shared != NULL)
		urn_sv_srq_leave(p->shared);
	p->shared = NULL;
}

int
urn_sv_real_make(struct urn_sv_qp *q, struct urn_sv_path *p, const struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp_init_attr init = {
		.send_cq = URN_SV_BELOW(cq, attr->send_cq, p->mine),
		.recv_cq = URN_SV_BELOW(cq, attr->recv_cq, p->mine),
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = q->can ? 0 : attr->sq_sig_all,
	};
	int err;

	if (q->pd->below[p->mine] == NULL || init.send_cq == NULL || init.recv_cq == NULL)
		return urn_fail(EIO, "an adapter of the virtual device is away");
	if (!q->can && urn_sv_rest_early(q->ctx) != 0)
		return EIO;
	if (q->can && !urn_sv_ready(q, p->mine))
		return urn_fail(EIO, "an adapter of the virtual device came back, and has not all "
				     "regions of the protection domain");
	err = urn_sv_shared_use(q, p, &init);
	if (err != 0)
		return err;
	p->real = ibv_create_qp(q->pd->below[p->mine], &init);
	if (p->real == NULL) {
		err = errno;
		urn_sv_shared_leave(p);
		return err;
	}
	if (!q->can)
		q->cap = init.cap;
	LIST_INSERT_HEAD(urn_sv_bucket(q->ctx->bucket, p->real->qp_num), p, link);
	return 0;
}

int
urn_sv_ctl_make(struct urn_sv_qp *q, struct urn_sv_path *p)
{
	uint32_t each = 2 * URN_SV_CONTROLS + 2, *load = &q->ctx->ctl_load[p->mine];
	struct ibv_cq *cq = q->ctx->ctl_cq[p->mine];
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		/* One READ of the table of keys may be in flight beside the Sends. */
		.cap = {URN_SV_CONTROLS + 2, URN_SV_CONTROLS, 1, 1, 0},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	if (*load + each > (uint32_t)cq->cqe && ibv_resize_cq(cq, (int)(2 * (*load + each))) != 0)
		return errno;
	p->ctl = ibv_create_qp(q->pd->below[p->mine], &init);
	if (p->ctl == NULL)
		return errno;
	*load += each;
	LIST_INSERT_HEAD(urn_sv_bucket(q->ctx->ctl_bucket, p->ctl->qp_num), p, ctl_link);
	return 0;
}

void
urn_sv_path_end(struct urn_sv_path *p, bool real)
{
	if (real && p->real != NULL) {
		if (!p->alone)
			LIST_REMOVE(p, link);
		p->alone = false;
		(void)ibv_destroy_qp(p->real);
		p->real = NULL;
		urn_sv_shared_leave(p);
	}
	if (p->ctl != NULL) {
		LIST_REMOVE(p, ctl_link);
		p->qp->ctx->ctl_load[p->mine] -= 2 * URN_SV_CONTROLS + 2;
		(void)ibv_destroy_qp(p->ctl);
		p->ctl = NULL;
	}
	p->ctl_ok = p->leaves = false;
}

void
urn_sv_path_psns(struct urn_sv_path *p)
{
	uint32_t psn[2] = {0, 0};

	if (getrandom(psn, sizeof(psn), GRND_NONBLOCK) < 0)
		psn[0] = psn[1] = p->real->qp_num;
	p->psn = psn[0] & URN_SV_24_BITS;
	p->ctl_psn = psn[1] & URN_SV_24_BITS;
}

int
urn_sv_paths_make(struct urn_sv_qp *q, const struct ibv_qp_init_attr_ex *real)
{
	for (uint32_t i = 0; i < URN_SV_PATHS; i++) {
		struct urn_sv_path *p = &q->path[i];
		int err = i != 0 ? urn_sv_real_make(q, p, real) : 0;

		if (err == 0)
			err = urn_sv_ctl_make(q, p);
		/* A backup that is away gets its queue pairs when it is back. */
		if (err == EIO && p->mine != 0)
			urn_sv_path_end(p, true);
		else if (err != 0)
			return err;
		else
			urn_sv_path_psns(p);
	}
	return 0;
}

void
urn_sv_paths_end(struct urn_sv_qp *q)
{
	for (uint32_t i = 0; i < URN_SV_PATHS; i++)
		urn_sv_path_end(&q->path[i], i != 0);
}
