/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains, memory regions. */
#include "verbs/adapter/adapter.h"
#include "verbs/adapter/beside.h"
#include "verbs/adapter/copy.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct ibv_pd *
urn_alloc_pd(struct ibv_context *context)
{
	struct urn_abi_req req = {.op = URN_CTL_ALLOC_PD};
	struct urn_adapter_pd *pd = urn_object_alloc(sizeof(*pd));
	struct urn_abi_rep rep;

	if (pd == NULL)
		return NULL;
	if (urn_dev_call(urn_ctx_dev(context), &req, &rep) != 0) {
		free(pd);
		return NULL;
	}
	pd->ibv.handle = rep.handle;
	return &pd->ibv;
}

int
urn_dealloc_pd(struct ibv_pd *pd)
{
	bool imported = ((struct urn_adapter_pd *)pd)->imported;

	return urn_dev_call_handle(urn_ctx_dev(pd->context),
				   imported ? URN_CTL_END_PD : URN_CTL_DEALLOC_PD, pd->handle);
}

struct ibv_mr *
urn_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	struct urn_abi_req req = {.op = URN_CTL_REG_MR};
	struct urn_ctx *ctx = urn_ctx(pd->context);
	struct urn_adapter_mr *mr;
	struct urn_abi_rep rep;

	mr = urn_object_alloc(sizeof(*mr));
	if (mr == NULL)
		return NULL;
	req.reg_mr.pd = pd->handle;
	req.reg_mr.access = urn_access(access);
	req.reg_mr.addr = urn_share_take(&ctx->dev, addr, length, &mr->hold);
	req.reg_mr.length = length;
	req.reg_mr.iova = iova;
	/* Pages that were moved are shared; for others the program's memory may be handed over. */
	if ((!urn_share_has(&mr->hold) && urn_dev_share(&ctx->dev, addr, length) != 0) ||
	    urn_dev_call(&ctx->dev, &req, &rep) != 0) {
		urn_share_drop(&mr->hold);
		free(mr);
		return NULL;
	}
	mr->iova = iova;
	mr->access = access;
	mr->ibv.handle = rep.mr.lkey;
	mr->ibv.lkey = rep.mr.lkey;
	mr->ibv.rkey = rep.mr.rkey;
	if (!urn_share_has(&mr->hold))
		urn_copy_note(ctx, &req, rep.mr.lkey);
	return &mr->ibv;
}

int
urn_dereg_mr(struct ibv_mr *mr)
{
	bool imported = ((struct urn_adapter_mr *)mr)->imported;
	int err;

	urn_copy_forget(urn_ctx(mr->context), mr->lkey);
	err = urn_dev_call_handle(urn_ctx_dev(mr->context),
				  imported ? URN_CTL_END_MR : URN_CTL_DEREG_MR, mr->handle);
	/* The dataplane completes no further message into the region. */
	urn_beside_settle(urn_ctx(mr->context));
	if (err == 0)
		urn_share_drop(&((struct urn_adapter_mr *)mr)->hold);
	return err;
}

/* The region has the memory, domain and rights of `now`, which is over, and keeps its keys. */
static void
urn_mr_replaced(struct urn_adapter_mr *mr, struct urn_adapter_mr *now, const struct ibv_pd *pd)
{
	struct urn_ctx *ctx = urn_ctx(mr->ibv.context);
	struct urn_abi_req req = {.reg_mr = {.addr = (uintptr_t)now->ibv.addr,
					     .length = now->ibv.length,
					     .iova = now->iova,
					     .pd = pd->handle}};

	urn_copy_forget(ctx, mr->ibv.lkey);
	urn_copy_forget(ctx, now->ibv.lkey);
	urn_share_drop(&mr->hold);
	urn_share_pass(&now->hold, &mr->hold);
	mr->iova = now->iova;
	mr->access = now->access;
	if (!urn_share_has(&mr->hold))
		urn_copy_note(ctx, &req, mr->ibv.lkey);
}

/* The new memory is registered before the old one goes, so that a failure leaves the region as it
 * was. */
int
urn_rereg_mr(struct ibv_mr *ibmr, int flags, struct ibv_pd *pd, void *addr, size_t length,
	     unsigned int access)
{
	struct urn_adapter_mr *mr = (struct urn_adapter_mr *)ibmr, *now;
	struct urn_abi_req req = {.op = URN_CTL_REPLACE_MR, .handle = ibmr->lkey};
	uint64_t iova = mr->iova;
	struct urn_abi_rep rep;

	if (mr->imported) {
		urn_unsupported("changing an imported region");
		return IBV_REREG_MR_ERR_INPUT;
	}
	if (!(flags & IBV_REREG_MR_CHANGE_ACCESS))
		access = mr->access;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION)
		iova = (uintptr_t)addr;
	if (access & IBV_ACCESS_ZERO_BASED)
		iova = 0;
	now = (struct urn_adapter_mr *)urn_reg_mr(pd, addr, length, iova, access);
	if (now == NULL)
		return IBV_REREG_MR_ERR_INPUT;
	now->ibv.context = ibmr->context;
	now->ibv.addr = addr;
	now->ibv.length = length;
	req.replace_mr.by = now->ibv.lkey;
	if (urn_dev_call(urn_ctx_dev(ibmr->context), &req, &rep) != 0) {
		int err = errno;

		/* Windows are bound to the old region. The text is that call's. */
		(void)urn_dereg_mr(&now->ibv);
		free(now);
		errno = err;
		return IBV_REREG_MR_ERR_INPUT;
	}
	urn_beside_settle(urn_ctx(ibmr->context));
	urn_mr_replaced(mr, now, pd);
	free(now);
	return 0;
}

int
urn_query_stores(struct ibv_mr *mr, struct urn_stores *stores)
{
	struct urn_abi_req req = {.op = URN_CTL_QUERY_STORES, .handle = mr->handle};
	struct urn_abi_rep rep;
	int err = urn_dev_call(urn_ctx_dev(mr->context), &req, &rep);

	if (err != 0)
		return err;
	memcpy(stores->full, rep.stores.full, sizeof(stores->full));
	memcpy(stores->partial, rep.stores.partial, sizeof(stores->partial));
	return 0;
}
