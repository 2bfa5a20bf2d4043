/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains, memory regions. */
#include "verbs/adapter/adapter.h"
#include "verbs/adapter/copy.h"

#include "attach/share/share.h"

#include <stdlib.h>

/* A region of this provider. */
struct urn_adapter_mr {
	struct ibv_mr ibv;	    /* must be first: the front frees it */
	struct urn_share_hold hold; /* on memory that is shared as long as there is the region */
};

static struct urn_adapter_mr *
urn_adapter_mr(struct ibv_mr *mr)
{
	return (struct urn_adapter_mr *)mr;
}

struct ibv_pd *
urn_alloc_pd(struct ibv_context *context)
{
	struct urn_abi_req req = {.op = URN_CTL_ALLOC_PD};
	struct ibv_pd *pd = urn_object_alloc(sizeof(*pd));
	struct urn_abi_rep rep;

	if (pd == NULL)
		return NULL;
	if (urn_dev_call(urn_ctx_dev(context), &req, &rep) != 0) {
		free(pd);
		return NULL;
	}
	pd->handle = rep.handle;
	return pd;
}

int
urn_dealloc_pd(struct ibv_pd *pd)
{
	return urn_dev_call_handle(urn_ctx_dev(pd->context), URN_CTL_DEALLOC_PD, pd->handle);
}

struct ibv_mr *
urn_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	struct urn_abi_req req = {.op = URN_CTL_REG_MR};
	struct urn_ctx *ctx = urn_ctx(pd->context);
	struct urn_adapter_mr *amr;
	struct urn_abi_rep rep;
	struct ibv_mr *mr;

	if (urn_dev_share(&ctx->dev, addr, length) != 0)
		return NULL;
	amr = urn_object_alloc(sizeof(*amr));
	if (amr == NULL)
		return NULL;
	mr = &amr->ibv;
	req.reg_mr.pd = pd->handle;
	req.reg_mr.access = urn_access(access);
	req.reg_mr.addr = urn_share_take(&ctx->dev, addr, length, &amr->hold);
	req.reg_mr.length = length;
	req.reg_mr.iova = iova;
	if (urn_dev_call(&ctx->dev, &req, &rep) != 0) {
		urn_share_drop(&amr->hold);
		free(amr);
		return NULL;
	}
	mr->handle = rep.mr.lkey;
	mr->lkey = rep.mr.lkey;
	mr->rkey = rep.mr.rkey;
	if (!urn_share_has(&amr->hold))
		urn_copy_note(ctx, &req, rep.mr.lkey);
	return mr;
}

int
urn_dereg_mr(struct ibv_mr *mr)
{
	int err;

	urn_copy_forget(urn_ctx(mr->context), mr->lkey);
	err = urn_dev_call_handle(urn_ctx_dev(mr->context), URN_CTL_DEREG_MR, mr->handle);
	if (err == 0)
		urn_share_drop(&urn_adapter_mr(mr)->hold);
	return err;
}
