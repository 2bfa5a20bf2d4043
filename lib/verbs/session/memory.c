/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains and regions, which are on all adapters; addresses and shared receive queues,
 * which are on the primary one alone. */
#include "verbs/front.h"
#include "verbs/session/sv.h"

#include <urnic/attach.h>

#include <errno.h>
#include <stdlib.h>

/* Rights that a peer needs a key for. */
#define URN_SV_REMOTE                                                      \
	((unsigned int)(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | \
			IBV_ACCESS_REMOTE_ATOMIC))

/* The first key of a region that is on the backup adapter alone: adapters have fewer regions. */
#define URN_SV_NAMES 0x80000000u

/* ---- protection domains */

static void
urn_sv_pd_free(struct urn_sv_pd *pd)
{
	for (int i = 0; i < URN_SV_ADAPTERS; i++) {
		if (pd->remote_mr[i] != NULL)
			ibv_dereg_mr(pd->remote_mr[i]);
		if (pd->below[i] != NULL)
			ibv_dealloc_pd(pd->below[i]);
	}
	urn_free(pd->remote);
}

struct ibv_pd *
urn_sv_alloc_pd(struct ibv_context *c)
{
	struct urn_sv_ctx *ctx = urn_sv_ctx(c);
	struct urn_sv_pd *pd = urn_object_alloc(sizeof(*pd));

	if (pd == NULL)
		return NULL;
	pd->remote = urn_alloc(sizeof(*pd->remote));
	if (pd->remote == NULL)
		goto err;
	for (int i = 0; i < URN_SV_ADAPTERS; i++) {
		struct ibv_pd *below = ibv_alloc_pd(ctx->below[i]);

		pd->below[i] = below;
		if (below == NULL)
			goto err;
		pd->remote_mr[i] =
			ibv_reg_mr(below, pd->remote, sizeof(*pd->remote), IBV_ACCESS_REMOTE_READ);
		if (pd->remote_mr[i] == NULL)
			goto err;
		if (i == 0)
			pd->ibv.handle = below->handle;
	}
	return &pd->ibv;

err:
	urn_sv_pd_free(pd);
	free(pd);
	return NULL;
}

int
urn_sv_dealloc_pd(struct ibv_pd *ibv)
{
	struct urn_sv_pd *pd = (struct urn_sv_pd *)ibv;

	if (atomic_load(&pd->objects) != 0)
		return urn_fail(EBUSY, "objects of the program are in the protection domain");
	if (pd->remote_mr[0] != NULL) {
		ibv_dereg_mr(pd->remote_mr[0]);
		pd->remote_mr[0] = NULL;
	}
	if (pd->below[0] != NULL) {
		int err = ibv_dealloc_pd(pd->below[0]);

		if (err != 0)
			return err;
		pd->below[0] = NULL;
	}
	urn_sv_pd_free(pd);
	return 0;
}

/* ---- regions */

/*
 * Choose the keys that the program knows: those of the primary adapter. When that is dead, they are
 * keys that no region ever had: a peer may still know what a key meant before.
 */
static void
urn_sv_mr_names(struct urn_sv_pd *pd, struct urn_sv_mr *mr)
{
	if (mr->below[0] != NULL) {
		mr->ibv.lkey = mr->below[0]->lkey;
		mr->ibv.rkey = mr->below[0]->rkey;
	} else {
		mr->ibv.lkey = mr->ibv.rkey = URN_SV_NAMES + (pd->names++ << 8);
	}
}

/* Give a region its keys, and put them in the tables. returns: 0 or ENOMEM with its text */
static int
urn_sv_mr_keys(struct urn_sv_ctx *ctx, struct urn_sv_pd *pd, struct urn_sv_mr *mr, bool remote)
{
	bool fits = true;

	urn_sv_lock(ctx);
	urn_sv_mr_names(pd, mr);
	if (mr->below[1] != NULL)
		fits = urn_sv_keys_put(&pd->local, mr->ibv.lkey, mr->below[1]->lkey);
	if (mr->below[1] != NULL && fits && remote &&
	    !urn_sv_keys_put(pd->remote, mr->ibv.rkey, mr->below[1]->rkey)) {
		urn_sv_keys_drop(&pd->local, mr->ibv.lkey);
		fits = false;
	}
	urn_sv_unlock(ctx);
	return fits ? 0
		    : urn_fail(ENOMEM,
			       "a protection domain of a virtual device has at most %d regions",
			       URN_SV_KEYS);
}

/* Deregister a region on both adapters. */
static int
urn_sv_mr_end(struct urn_sv_mr *mr)
{
	for (int i = 0; i < URN_SV_ADAPTERS; i++) {
		int err = mr->below[i] != NULL ? ibv_dereg_mr(mr->below[i]) : 0;

		if (err != 0)
			return err;
		mr->below[i] = NULL;
	}
	return 0;
}

/* Register memory on each adapter that is there, at least on one. returns: 0 or an errno value */
static int
urn_sv_mr_make(struct urn_sv_mr *mr, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	int err = EIO;

	for (int i = 0; i < URN_SV_ADAPTERS; i++) {
		mr->below[i] = ibv_reg_mr_iova2(mr->pd->below[i], addr, length, iova, access);
		if (mr->below[i] == NULL && errno != EIO)
			return errno;
		if (mr->below[i] != NULL)
			err = 0;
	}
	return err;
}

struct ibv_mr *
urn_sv_reg_mr(struct ibv_pd *ibpd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	struct urn_sv_pd *pd = (struct urn_sv_pd *)ibpd;
	struct urn_sv_mr *mr = urn_object_alloc(sizeof(*mr));
	int err;

	if (mr == NULL)
		return NULL;
	mr->pd = pd;
	err = urn_sv_mr_make(mr, addr, length, iova, access);
	if (err == 0)
		err = urn_sv_mr_keys(urn_sv_ctx(ibpd->context), pd, mr,
				     (access & URN_SV_REMOTE) != 0);
	if (err != 0) {
		(void)urn_sv_mr_end(mr);
		free(mr);
		errno = err;
		return NULL;
	}
	mr->ibv.handle = mr->ibv.lkey;
	atomic_fetch_add(&pd->objects, 1);
	return &mr->ibv;
}

int
urn_sv_dereg_mr(struct ibv_mr *ibmr)
{
	struct urn_sv_mr *mr = (struct urn_sv_mr *)ibmr;
	struct urn_sv_ctx *ctx = urn_sv_ctx(ibmr->context);
	struct urn_sv_pd *pd = mr->pd;

	int err = urn_sv_mr_end(mr);

	if (err != 0)
		return err;
	urn_sv_lock(ctx);
	urn_sv_keys_drop(&pd->local, ibmr->lkey);
	urn_sv_keys_drop(pd->remote, ibmr->rkey);
	urn_sv_unlock(ctx);
	atomic_fetch_sub(&pd->objects, 1);
	return 0;
}

/* ---- windows: there are none */

struct ibv_mw *
urn_sv_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	(void)pd, (void)type;
	urn_unsupported("a memory window of a virtual device");
	return NULL;
}

int
urn_sv_dealloc_mw(struct ibv_mw *mw)
{
	(void)mw;
	return urn_unsupported("a memory window of a virtual device");
}

/* ---- on the primary adapter alone */

struct ibv_ah *
urn_sv_create_ah(struct ibv_pd *pd, const struct ibv_ah_attr *attr)
{
	struct urn_sv_ah *ah = urn_object_alloc(sizeof(*ah));
	struct ibv_ah_attr same = *attr;

	if (ah == NULL)
		return NULL;
	ah->below = ibv_create_ah(URN_SV_BELOW(pd, pd, 0), &same);
	if (ah->below == NULL) {
		free(ah);
		return NULL;
	}
	ah->ibv.handle = ah->below->handle;
	ah->pd = (struct urn_sv_pd *)pd;
	atomic_fetch_add(&ah->pd->objects, 1);
	return &ah->ibv;
}

int
urn_sv_destroy_ah(struct ibv_ah *ah)
{
	const struct urn_sv_ah *a = (struct urn_sv_ah *)ah;
	int err = ibv_destroy_ah(a->below);

	if (err == 0)
		atomic_fetch_sub(&a->pd->objects, 1);
	return err;
}

struct ibv_srq *
urn_sv_create_srq(struct ibv_pd *pd, struct ibv_srq_attr *attr, const struct ibv_cq *cq)
{
	struct urn_sv_srq *srq = urn_object_alloc(sizeof(*srq));
	struct ibv_srq_init_attr init = {.attr = *attr};

	(void)cq;
	if (srq == NULL)
		return NULL;
	srq->below = ibv_create_srq(URN_SV_BELOW(pd, pd, 0), &init);
	if (srq->below == NULL) {
		free(srq);
		return NULL;
	}
	*attr = init.attr;
	srq->ibv.handle = srq->below->handle;
	srq->pd = (struct urn_sv_pd *)pd;
	atomic_fetch_add(&srq->pd->objects, 1);
	return &srq->ibv;
}

int
urn_sv_modify_srq(struct ibv_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
	struct ibv_srq_attr same = *attr;

	return ibv_modify_srq(((struct urn_sv_srq *)srq)->below, &same, mask);
}

int
urn_sv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	return ibv_query_srq(((struct urn_sv_srq *)srq)->below, attr);
}

int
urn_sv_destroy_srq(struct ibv_srq *srq)
{
	const struct urn_sv_srq *s = (struct urn_sv_srq *)srq;
	int err = ibv_destroy_srq(s->below);

	if (err == 0)
		atomic_fetch_sub(&s->pd->objects, 1);
	return err;
}
